//! What a client of a cluster knows: which node has which slots. A thread asks the nodes again
//! when a request was sent on or a connection was lost, and once a second.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use resp::client::{ReplyParser, Value, encode_command};
use tls::Stream;

use super::Address;
use super::socket::Endpoint;

/// How many slots there are.
const SLOTS: usize = 16_384;
/// How often the nodes are asked when nothing seems to have changed.
const USUAL: Duration = Duration::from_secs(1);
/// The pause between two looks whether something has.
const LOOK: Duration = Duration::from_millis(20);
/// How long a node may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// A node as others name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// A name or an address.
    pub(crate) host: String,
    /// The TCP port.
    pub(crate) port: u16,
    /// Its id of 40 letters.
    pub(crate) id: String,
}

/// Slots of one shard, and its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first slot.
    pub(crate) first: u16,
    /// The last slot.
    pub(crate) last: u16,
    /// The primary, and then its replicas.
    pub(crate) nodes: Vec<Named>,
}

impl Range {
    /// Whether a slot is one of these.
    pub(crate) fn has(&self, slot: u16) -> bool {
        (self.first..=self.last).contains(&slot)
    }
}

/// Reads the reply to CLUSTER SLOTS of the node at `asked`, which may leave out its own host.
///
/// # Errors
/// It is no such reply.
pub(crate) fn read(reply: &Value, asked: &str) -> io::Result<Vec<Range>> {
    if let Value::Error(text) = reply {
        return Err(io::Error::other(String::from_utf8_lossy(text).into_owned()));
    }
    let number = |value: &Value| match value {
        Value::Integer(number) => u16::try_from(*number).ok(),
        _ => None,
    };
    let text = |value: &Value| String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into();
    let node = |value: &Value| {
        let Value::Array(words) = value else { return None };
        let [host, port, id, ..] = &words[..] else { return None };
        let host: String = text(host);
        let host = if matches!(host.as_str(), "" | "?") { asked.to_owned() } else { host };
        Some(Named { host, port: number(port)?, id: text(id) })
    };
    let range = |value: &Value| {
        let Value::Array(words) = value else { return None };
        let [first, last, nodes @ ..] = &words[..] else { return None };
        let nodes = nodes.iter().map(node).collect::<Option<Vec<_>>>()?;
        let (first, last) = (number(first)?, number(last)?);
        let is_right = !nodes.is_empty() && first <= last && last < SLOTS as u16;
        is_right.then_some(Range { first, last, nodes })
    };
    let ranges = match reply {
        Value::Array(ranges) => ranges.iter().map(range).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    ranges.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "no reply of CLUSTER SLOTS"))
}

/// Where a request was sent on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// The slot, if it belongs to that node from now on.
    pub(super) slot: Option<u16>,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Redirect {
    /// Reads an error; none if it says nothing of another node.
    pub(super) fn read(error: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(error).ok()?;
        let (word, rest) =
            text.split_once(' ').filter(|(word, _)| matches!(*word, "MOVED" | "ASK"))?;
        let (slot, place) = rest.split_once(' ')?;
        let slot = slot.parse().ok().filter(|slot| usize::from(*slot) < SLOTS)?;
        let (host, port) = place.trim_end().rsplit_once(':')?;
        let slot = (word == "MOVED").then_some(slot);
        Some(Redirect { slot, host: host.to_owned(), port: port.parse().ok()? })
    }
}

/// A node, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    host: String,
    port: u16,
    pub(super) endpoint: Endpoint,
    /// It is a replica: it was a primary if there are requests for it.
    pub(super) is_replica: bool,
}

/// Which node has which slots.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// None is ever taken away.
    pub(super) nodes: Vec<Node>,
    /// By slot, the node's place.
    pub(super) owners: Vec<u16>,
}

impl Known {
    fn place(&mut self, host: &str, port: u16) -> io::Result<u16> {
        let own = self.nodes.iter().position(|node| node.port == port && node.host == host);
        let place = own.unwrap_or(self.nodes.len());
        if own.is_none() {
            let address = Address { host: host.to_owned(), port, ..Address::default() };
            let endpoint = Endpoint::resolve(&address)?.remove(0);
            self.nodes.push(Node { host: host.to_owned(), port, endpoint, is_replica: false });
        }
        Ok(place as u16)
    }
}

/// What the threads of a load know together.
#[derive(Debug)]
pub(super) struct Cluster {
    known: Mutex<Known>,
    /// Grows with each change of what is known.
    version: AtomicU64,
    is_doubted: AtomicBool,
    has_ended: AtomicBool,
}

impl Cluster {
    /// Asks the node at this address. `call` opens a connection that has greeted.
    ///
    /// # Errors
    /// It is no node of a cluster, or not all slots have a node.
    pub(super) fn of(
        address: &Address,
        endpoint: &Endpoint,
        open: &dyn Fn(&Endpoint) -> io::Result<Stream>,
    ) -> io::Result<Self> {
        let nobody = Known { nodes: Vec::new(), owners: vec![u16::MAX; SLOTS] };
        let cluster = Cluster {
            known: Mutex::new(nobody),
            version: AtomicU64::new(0),
            is_doubted: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        };
        cluster.learn(&read(&ask(open(endpoint)?)?, &address.host)?)?;
        if cluster.known().owners.contains(&u16::MAX) {
            return Err(io::Error::other("there are slots that no node of the cluster has"));
        }
        Ok(cluster)
    }

    /// What is known, if it has changed since this version.
    pub(super) fn since(&self, version: &mut u64) -> Option<Known> {
        let now = self.version.load(Ordering::Acquire);
        (now != std::mem::replace(version, now)).then(|| self.known())
    }

    pub(super) fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The place of a node, which may be a new one.
    ///
    /// # Errors
    /// Its name is not known.
    pub(super) fn place(&self, host: &str, port: u16) -> io::Result<u16> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.nodes.len();
        let place = known.place(host, port)?;
        if known.nodes.len() > before {
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        Ok(place)
    }

    /// The place of the node at another port of a node's host.
    ///
    /// # Errors
    /// Its name is not known.
    pub(super) fn beside(&self, place: usize, port: u16) -> io::Result<u16> {
        let host = self.known().nodes.get(place).map(|node| node.host.clone());
        self.place(&host.ok_or(ErrorKind::NotFound)?, port)
    }

    /// Something has changed.
    pub(super) fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    fn learn(&self, ranges: &[Range]) -> io::Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for range in ranges {
            for (at, node) in range.nodes.iter().enumerate() {
                let place = known.place(&node.host, node.port)?;
                known.nodes[usize::from(place)].is_replica = at > 0;
                if at == 0 {
                    known.owners[usize::from(range.first)..=usize::from(range.last)].fill(place);
                }
            }
        }
        self.version.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Asks nodes until the load has ended: the first that answers is believed.
    pub(super) fn follow(&self, open: &dyn Fn(&Endpoint) -> io::Result<Stream>) {
        let (mut turn, mut last) = (0, Instant::now());
        while !self.has_ended.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            if !self.is_doubted.swap(false, Ordering::Relaxed) && last.elapsed() < USUAL {
                continue;
            }
            let nodes = self.known().nodes;
            for _ in 0..nodes.len() {
                turn += 1;
                let node = &nodes[turn % nodes.len()];
                let reply = open(&node.endpoint).and_then(ask);
                let learned = reply
                    .and_then(|reply| read(&reply, &node.host))
                    .and_then(|ranges| self.learn(&ranges));
                if learned.is_ok() || self.has_ended.load(Ordering::Acquire) {
                    break;
                }
            }
            last = Instant::now();
        }
    }
}

/// Where requests go, as one thread knows it.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// What is known is as new as this.
    pub(super) version: u64,
    pub(super) nodes: Vec<Endpoint>,
    /// By slot, the node's place.
    pub(super) owners: Vec<u16>,
    /// The slot of the next request without a key.
    turn: u16,
    /// Connections that have got bytes which are not sent yet.
    pub(super) touched: Vec<usize>,
}

impl Spread {
    pub(super) fn endpoint(&self, place: usize) -> &Endpoint {
        &self.nodes[place]
    }

    pub(super) fn owner(&mut self, slot: Option<u16>) -> usize {
        let slot = slot.unwrap_or_else(|| {
            // Far apart, so that all nodes have their turn.
            self.turn = self.turn.wrapping_add(6_151) % 16_384;
            self.turn
        });
        usize::from(self.owners[usize::from(slot)])
    }
}

/// Sends CLUSTER SLOTS, and waits for its reply.
fn ask(mut stream: Stream) -> io::Result<Value> {
    let (mut parser, mut input, mut piece) = (ReplyParser::new(), Vec::new(), [0; 4096]);
    encode_command(["CLUSTER", "SLOTS"].iter(), &mut input);
    stream.write_all(&input)?;
    stream.flush()?;
    input.clear();
    loop {
        let next = parser.next(&input);
        let next = next.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        if let Some((value, _)) = next {
            return Ok(value);
        }
        match stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => input.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_name_a_node() {
        let node = |slot| Redirect { slot, host: "::1".to_owned(), port: 7001 };
        assert_eq!(Redirect::read(b"MOVED 3999 ::1:7001"), Some(node(Some(3999))));
        assert_eq!(Redirect::read(b"ASK 3999 ::1:7001"), Some(node(None)));
        for other in ["MOVED 16384 a:1", "MOVED 1", "MOVED 1 a:x", "ERR MOVED 1 a:1", "ASKED 1 a:1"]
        {
            assert_eq!(Redirect::read(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_node_may_leave_out_its_own_host() {
        let text = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let node = |host: Value, port| {
            Value::Array(vec![host, Value::Integer(port), text("id"), Value::Array(Vec::new())])
        };
        let range = |last, nodes: Vec<Value>| {
            Value::Array([vec![Value::Integer(0), Value::Integer(last)], nodes].concat())
        };
        let own = range(99, vec![node(text(""), 7000), node(text("b"), 7001)]);
        let ranges = read(&Value::Array(vec![own]), "a").expect("it is a reply");
        let hosts: Vec<&str> = ranges[0].nodes.iter().map(|node| node.host.as_str()).collect();
        assert_eq!((hosts, ranges[0].last), (vec!["a", "b"], 99));
        assert!(ranges[0].has(99) && !ranges[0].has(100));
        for wrong in [range(99, Vec::new()), range(16_384, vec![node(text("a"), 1)])] {
            assert!(read(&Value::Array(vec![wrong]), "a").is_err());
        }
        let backwards =
            [vec![Value::Integer(9), Value::Integer(3)], vec![node(text("a"), 1)]].concat();
        assert!(read(&Value::Array(vec![Value::Array(backwards)]), "a").is_err());
        assert!(read(&Value::Error(b"ERR no cluster".to_vec()), "a").is_err());
    }
}
