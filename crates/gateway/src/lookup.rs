//! Where a member is, by its name.
//!
//! The system's lookup has no time limit, so it needs a thread, and a system that is short of
//! threads must not end the program. Addresses need no lookup, and names need few.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{fmt, io, thread};

use base::clock::monotonic_ms;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Error, Timeout};

/// An answer is believed for so long, or until a request fails.
const FRESH_MS: u64 = 30_000;
/// The most addresses that are tried of a name.
const MOST: usize = 16;
/// Where a request has no limit of its own, the lookup has.
const LONGEST: Duration = Duration::from_secs(60);

/// See the module's text.
#[derive(Default)]
pub(crate) struct Lookup {
    /// The answer that was had last, and when.
    last: Mutex<Option<(u64, Vec<SocketAddr>)>>,
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
        if let Ok(address) = place.parse() {
            found.push(address);
            return Ok(found);
        }
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let addresses = match known {
            Some((at, known)) if monotonic_ms() < at + FRESH_MS => known,
            _ => {
                let asked = ask(place, (*timeout.after).min(LONGEST), timeout.reason)?;
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some((monotonic_ms(), asked.clone()));
                asked
            }
        };
        addresses.into_iter().take(MOST).for_each(|address| found.push(address));
        if found.is_empty() { Err(Error::HostNotFound) } else { Ok(found) }
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lookup")
    }
}

fn ask(place: String, limit: Duration, reason: Timeout) -> Result<Vec<SocketAddr>, Error> {
    let (tell, told) = mpsc::sync_channel(1);
    let look = move || {
        let found = place.to_socket_addrs().map(Iterator::collect);
        // Nobody waits any more if that took too long.
        let _ = tell.send(found);
    };
    thread::Builder::new().name("cluster-lookup".to_owned()).spawn(look).map_err(Error::Io)?;
    let found: io::Result<Vec<SocketAddr>> =
        told.recv_timeout(limit).map_err(|_| Error::Timeout(reason))?;
    Ok(found?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(url: &str) -> Result<Vec<SocketAddr>, Error> {
        let timeout = NextTimeout {
            after: Duration::from_secs(20).into(),
            reason: Timeout::Resolve,
            ..NextTimeout::default()
        };
        let found =
            Lookup::default().resolve(&url.parse().unwrap(), &Config::default(), timeout)?;
        Ok(found.iter().copied().collect())
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
}
