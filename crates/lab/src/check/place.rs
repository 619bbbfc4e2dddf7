//! Where clients of the checker write: at one server, at the one that Sentinels name, or at the
//! next of several when one refuses, as clients do that follow a move.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::sentinels;
use crate::load::topology;
use crate::targets::connection::{Connection, Endpoint};
use crate::targets::shards::TAG;

/// See the module's text.
#[derive(Debug)]
pub enum Place {
    /// This server.
    Fixed(Endpoint),
    /// The primary that these Sentinels know. Where others reach a server over another port than
    /// clients do, that port stands before the clients' own.
    Sentinels(Vec<Endpoint>, Vec<(u16, Endpoint)>),
    /// The first of these that does not refuse.
    Servers(Vec<Endpoint>, AtomicUsize),
    /// The node of a cluster that has slot 0, as one of these says: the next one each time.
    Cluster(Vec<Endpoint>, AtomicUsize),
}

/// At which of several servers a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop(usize);

impl Place {
    /// Whether clients go elsewhere when a server is gone or refuses.
    pub fn is_left(&self) -> bool {
        !matches!(self, Place::Fixed(_))
    }

    /// A connection to the server where clients write now. `patience` is for each of its replies.
    ///
    /// # Errors
    /// Nobody knows where that is, or nobody answers there.
    pub(super) fn connect(&self, patience: Duration) -> io::Result<(Connection, Stop)> {
        match self {
            Place::Fixed(endpoint) => Ok((endpoint.connect(patience)?, Stop(0))),
            Place::Sentinels(asked, others) => {
                let port = sentinels::primary(asked, patience)?;
                let own = others.iter().find(|(known, _)| *known == port);
                let endpoint = match (own, asked.first()) {
                    (Some((_, own)), _) => own.clone(),
                    (None, Some(sentinel)) => Endpoint { port, ..sentinel.clone() },
                    (None, None) => return Err(io::ErrorKind::NotFound.into()),
                };
                Ok((endpoint.connect(patience)?, Stop(0)))
            }
            Place::Servers(all, at) => {
                let at = at.load(Ordering::Acquire);
                let endpoint = all.get(at % all.len().max(1));
                let endpoint = endpoint.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                Ok((endpoint.connect(patience)?, Stop(at)))
            }
            Place::Cluster(nodes, turn) => {
                let turn = turn.fetch_add(1, Ordering::Relaxed);
                let asked = nodes.get(turn % nodes.len().max(1)).ok_or(io::ErrorKind::NotFound)?;
                let reply = asked.connect(patience)?.call(&["CLUSTER", "SLOTS"])?;
                let ranges = topology::read(&reply, &asked.host)?;
                let owner = ranges.iter().find(|range| range.has(0));
                let owner = owner.and_then(|range| range.nodes.first());
                let owner = owner.ok_or_else(|| io::Error::other("slot 0 has no node"))?;
                let own = Endpoint { host: owner.host.clone(), port: owner.port, ..asked.clone() };
                Ok((own.connect(patience)?, Stop(0)))
            }
        }
    }

    /// What the names of all keys begin with.
    pub(super) fn tag(&self) -> String {
        match self {
            Place::Cluster(..) => format!("{{{TAG}}}"),
            _ => String::new(),
        }
    }

    /// A server refuses writes: clients go to the next one.
    pub(super) fn leave(&self, stop: Stop) {
        if let Place::Servers(_, at) = self {
            // Another client may have left it already.
            let next = stop.0 + 1;
            let _ = at.compare_exchange(stop.0, next, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Whether clients have left the server of this connection.
    pub(super) fn has_left(&self, stop: Stop) -> bool {
        matches!(self, Place::Servers(_, at) if at.load(Ordering::Acquire) != stop.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_first_decides_for_all() {
        let endpoint = |port| Endpoint {
            host: "127.0.0.1".to_owned(),
            port,
            password: None,
            encryption: None,
        };
        let place = Place::Servers(vec![endpoint(1), endpoint(2)], AtomicUsize::new(0));
        assert!(place.is_left() && !Place::Fixed(endpoint(1)).is_left());
        let old = Stop(0);
        assert!(!place.has_left(old));
        place.leave(old);
        place.leave(old);
        assert!(place.has_left(old) && !place.has_left(Stop(1)));
    }
}
