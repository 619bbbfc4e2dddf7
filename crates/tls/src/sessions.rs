//! Sessions that clients can resume, for a while.
//!
//! They are kept by the server, so that all of them are gone when the settings change: a client
//! whose certificate is not believed any more does not come in by an old session.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::server::StoresServerSessions;

/// So few places of sessions that are gone are not worth a look.
const PLACES_SPARED: usize = 16;

/// A longer session is not kept: it has all certificates that its client has shown, and thousands
/// are kept.
const LONGEST: usize = 16 * 1024;

/// See the module's text.
pub(crate) struct Sessions {
    most: usize,
    lasts: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_name: HashMap<Vec<u8>, (Vec<u8>, Instant)>,
    /// The oldest first. Some of them are gone.
    in_order: VecDeque<(Vec<u8>, Instant)>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// Keeps up to `most` of them, 0 for no bound, each for this many seconds.
    pub(crate) fn new(most: usize, seconds: u32) -> Sessions {
        let most = if most == 0 { usize::MAX } else { most };
        let lasts = Duration::from_secs(u64::from(seconds));
        Sessions { most, lasts, kept: Mutex::default() }
    }

    fn holds(&self, since: Instant) -> bool {
        since.elapsed() < self.lasts
    }
}

impl Kept {
    /// Forgets the places of those that are gone, when they are many. One that is never resumed
    /// would keep them all behind it.
    fn forget_gone(&mut self) {
        let Kept { by_name, in_order } = self;
        if in_order.len() > 2 * by_name.len() + PLACES_SPARED {
            in_order.retain(|(name, since)| by_name.get(name).is_some_and(|(_, own)| own == since));
        }
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        if session.len() > LONGEST {
            return false;
        }
        let (mut kept, now) = (self.kept.lock(), Instant::now());
        while let Some((oldest, since)) = kept.in_order.front() {
            let is_current = kept.by_name.get(oldest).is_some_and(|(_, own)| own == since);
            if is_current && self.holds(*since) && kept.by_name.len() < self.most {
                break;
            }
            if is_current {
                let oldest = oldest.clone();
                kept.by_name.remove(&oldest);
            }
            kept.in_order.pop_front();
        }
        kept.in_order.push_back((name.clone(), now));
        kept.by_name.insert(name, (session, now));
        kept.forget_gone();
        true
    }

    fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        let kept = self.kept.lock();
        let (session, _) = kept.by_name.get(name).filter(|(_, since)| self.holds(*since))?;
        Some(session.clone())
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (session, since) = self.kept.lock().by_name.remove(name)?;
        self.holds(since).then_some(session)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(sessions: &Sessions, name: u8) {
        assert!(sessions.put(vec![name], vec![name, name]));
    }

    #[test]
    fn the_oldest_make_room() {
        let sessions = Sessions::new(2, 300);
        (1..=3).for_each(|name| put(&sessions, name));
        assert_eq!(sessions.get(&[1]), None);
        assert_eq!(sessions.get(&[2]), Some(vec![2, 2]));
        assert_eq!(sessions.take(&[2]), Some(vec![2, 2]));
        assert_eq!(sessions.take(&[2]), None);
        put(&sessions, 3);
        put(&sessions, 4);
        assert_eq!((sessions.get(&[3]), sessions.get(&[4])), (Some(vec![3, 3]), Some(vec![4, 4])));
        for name in 5..100 {
            put(&sessions, name);
            sessions.take(&[name]);
        }
        let places = sessions.kept.lock().in_order.len();
        assert!(places <= 2 * 2 + PLACES_SPARED, "what is gone is forgotten: {places}");
    }

    #[test]
    fn long_ones_are_not_kept() {
        let sessions = Sessions::new(2, 300);
        assert!(
            sessions.put(vec![1], vec![0; LONGEST]) && !sessions.put(vec![2], vec![0; LONGEST + 1])
        );
        assert!(sessions.get(&[1]).is_some() && sessions.get(&[2]).is_none());
    }

    #[test]
    fn they_end_with_their_time() {
        let sessions = Sessions::new(0, 0);
        put(&sessions, 1);
        assert_eq!((sessions.get(&[1]), sessions.take(&[1])), (None, None));
    }
}
