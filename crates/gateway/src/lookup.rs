//! Where a member is, by its name.
//!
//! The system's lookup has no time limit, so it needs a thread, and a system that is short of
//! threads must not end the program. Addresses need no lookup, and names need few.
//!
//! ureq wants an address even where it has a connection. So an answer that is old is given until
//! there is a new one: name servers that are silent take no connection away.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};

use base::clock::monotonic_ms;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Error, Timeout};

use crate::encryption::NotConnected;

/// An answer is believed for so long, or until a request fails.
const FRESH_MS: u64 = 30_000;
/// After a lookup that found nothing, so long passes before the next one.
const PAUSE_MS: u64 = 500;
/// The most addresses that are tried of a name.
const MOST: usize = 16;
/// How long a new answer is waited for where a request to the old one has failed.
const DOUBT: Duration = Duration::from_millis(100);
/// Where a request has no limit of its own, the lookup has.
const LONGEST: Duration = Duration::from_secs(60);

/// See the module's text. Its copies are one, and one lookup is under way at most.
#[derive(Clone, Default)]
pub(crate) struct Lookup(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The answer that was had last. There may be none, but not an empty one.
    known: Vec<SocketAddr>,
    /// When it is looked up again at the earliest.
    next_at: u64,
    is_under_way: bool,
    /// A request has failed since the last answer, and nobody has waited for the next one yet.
    is_doubted: bool,
    /// Why the last lookup has found nothing.
    failed: Option<(io::ErrorKind, String)>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, found: io::Result<Vec<SocketAddr>>) {
        let mut state = self.state();
        (state.is_under_way, state.is_doubted) = (false, false);
        match found {
            Ok(found) if !found.is_empty() => {
                (state.known, state.failed) = (found, None);
                state.next_at = monotonic_ms() + FRESH_MS;
            }
            Ok(_) => state.fail(&io::Error::new(io::ErrorKind::NotFound, "no address")),
            Err(error) => state.fail(&error),
        }
        drop(state);
        self.ended.notify_all();
    }
}

impl State {
    fn fail(&mut self, error: &io::Error) {
        self.failed = Some((error.kind(), error.to_string()));
        self.next_at = monotonic_ms() + PAUSE_MS;
    }
}

impl Lookup {
    /// A request has failed: the name may mean another address by now.
    pub(crate) fn doubt(&self) {
        let mut state = self.0.state();
        if state.failed.is_none() {
            (state.next_at, state.is_doubted) = (0, true);
        }
    }

    fn addresses(
        &self,
        place: &str,
        limit: Duration,
        reason: Timeout,
    ) -> Result<Vec<SocketAddr>, Error> {
        let mut state = self.0.state();
        if !state.is_under_way && monotonic_ms() >= state.next_at {
            state.is_under_way = true;
            if let Err(error) = look_up(&self.0, place) {
                state.is_under_way = false;
                state.fail(&error);
            }
        }
        let is_doubted = std::mem::take(&mut state.is_doubted);
        let patience = match state.known.is_empty() {
            true => limit,
            false if is_doubted => DOUBT.min(limit / 4),
            false => Duration::ZERO,
        };
        let waited = self.0.ended.wait_timeout_while(state, patience, |own| own.is_under_way);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.failed {
            _ if !state.known.is_empty() => Ok(state.known.clone()),
            Some((kind, text)) if !state.is_under_way => {
                Err(NotConnected::because(Error::Io(io::Error::new(*kind, text.clone()))))
            }
            _ => Err(Error::Timeout(reason)),
        }
    }
}

/// Begins to look a place up.
fn look_up(shared: &Arc<Shared>, place: &str) -> io::Result<()> {
    let (shared, place) = (Arc::clone(shared), place.to_owned());
    let look = move || shared.end(place.to_socket_addrs().map(Iterator::collect));
    thread::Builder::new().name("cluster-lookup".to_owned()).spawn(look).map(drop)
}

impl Resolver for Lookup {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let parts = uri.scheme().zip(uri.authority());
        let place = parts.and_then(|(scheme, own)| DefaultResolver::host_and_port(scheme, own));
        let place = place.ok_or(Error::HostNotFound)?;
        let mut found = self.empty();
        match place.parse() {
            Ok(address) => found.push(address),
            Err(_) => {
                let limit = (*timeout.after).min(LONGEST);
                let known = self.addresses(&place, limit, timeout.reason)?;
                known.into_iter().take(MOST).for_each(|address| found.push(address));
            }
        }
        Ok(found)
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lookup")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(lookup: &Lookup, url: &str, limit: Duration) -> Result<Vec<SocketAddr>, Error> {
        let timeout =
            NextTimeout { after: limit.into(), reason: Timeout::Resolve, ..NextTimeout::default() };
        let found = lookup.resolve(&url.parse().unwrap(), &Config::default(), timeout)?;
        Ok(found.iter().copied().collect())
    }

    fn places(url: &str) -> Result<Vec<SocketAddr>, Error> {
        places_of(&Lookup::default(), url, Duration::from_secs(20))
    }

    #[test]
    fn addresses_stand_for_themselves() {
        assert_eq!(
            places("http://127.0.0.1:2379/v3").unwrap(),
            ["127.0.0.1:2379".parse().unwrap()]
        );
        assert_eq!(places("https://[::1]/").unwrap(), ["[::1]:443".parse().unwrap()]);
    }

    #[test]
    fn names_are_looked_up() {
        let found = places("http://localhost:2379").unwrap();
        assert!(found.iter().all(|at| at.ip().is_loopback() && at.port() == 2379), "{found:?}");
        assert!(!found.is_empty());
        // Too long for a name, so that nobody is asked.
        assert!(places(&format!("http://{}:2379", "x".repeat(64))).is_err());
    }

    #[test]
    fn what_was_known_is_told_until_there_is_something_new() {
        let (lookup, old) = (Lookup::default(), "127.0.0.9:1".parse().unwrap());
        let url = "http://localhost:2379";
        lookup.0.end(Ok(vec![old]));
        assert_eq!(places_of(&lookup, url, Duration::ZERO).unwrap(), [old]);
        assert!(!lookup.0.state().is_under_way, "it is fresh");
        // A name server that says nothing, and one that says no.
        lookup.doubt();
        lookup.0.state().is_under_way = true;
        assert_eq!(places_of(&lookup, url, Duration::from_secs(60)).unwrap(), [old]);
        lookup.0.end(Err(io::ErrorKind::TimedOut.into()));
        assert_eq!(places_of(&lookup, url, Duration::from_secs(60)).unwrap(), [old]);
        lookup.doubt();
        assert!(lookup.0.state().next_at > 0, "it is not asked without a pause");
        // It answers again.
        lookup.0.state().next_at = 0;
        assert_eq!(places_of(&lookup, url, Duration::from_secs(60)).unwrap(), [old]);
        let state = lookup.0.state();
        drop(lookup.0.ended.wait_while(state, |own| own.is_under_way).unwrap());
        let new = places_of(&lookup, url, Duration::ZERO).unwrap();
        assert!(!new.is_empty() && !new.contains(&old), "{new:?}");
    }

    #[test]
    fn all_wait_for_one_lookup_and_none_longer_than_it_may() {
        let lookup = Lookup::default();
        lookup.0.state().is_under_way = true;
        let late = places_of(&lookup, "http://etcd:1", Duration::from_millis(1));
        assert!(matches!(late, Err(Error::Timeout(_))), "{late:?}");
        let at: SocketAddr = "127.0.0.9:1".parse().unwrap();
        thread::scope(|scope| {
            let wait = || places_of(&lookup, "http://etcd:1", Duration::from_secs(60)).unwrap();
            let waiting = [scope.spawn(wait), scope.spawn(wait)];
            lookup.0.end(Ok(vec![at]));
            waiting.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), [at]));
        });
    }
}
