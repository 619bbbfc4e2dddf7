//! What shows to etcd who asks. etcd works long at each password, on purpose: threads log in one
//! at a time, and one that was refused is not asked for again at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::clock::monotonic_ms;

use crate::failure::Failure;

/// How long a login that was refused is answered from, the first time. It doubles with each one.
const PAUSE_MS: u64 = 50;
/// The same at most: only somebody who changes the password at etcd helps.
const LONGEST_PAUSE_MS: u64 = 5000;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Login {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What the last login has brought. There is no token where etcd has no users.
    token: Option<Option<String>>,
    is_under_way: bool,
    /// Logins that have ended.
    ended: u64,
    /// Why the last one has failed.
    failure: Option<Failure>,
    /// How many in a row were refused, and until when none is tried.
    refused: u32,
    next_at: u64,
}

impl Login {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token, which `ask` asks for if there is none and no other thread does. Another thread's
    /// login is waited for no longer than `limit`.
    pub(crate) fn token(
        &self,
        limit: Duration,
        ask: impl FnOnce() -> Result<Option<String>, Failure>,
    ) -> Result<Option<String>, Failure> {
        let state = self.state();
        let before = state.ended;
        let waited = self.ended.wait_timeout_while(state, limit, |own| own.is_under_way);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = &state.token {
            return Ok(token.clone());
        }
        if state.is_under_way {
            return Err(Failure::Unsent("the login at etcd is not answered in time".to_owned()));
        }
        match &state.failure {
            Some(failure) if state.ended > before || monotonic_ms() < state.next_at => {
                return Err(failure.clone());
            }
            _ => state.is_under_way = true,
        }
        drop(state);
        let answer = ask();
        self.end(answer.clone());
        answer
    }

    fn end(&self, answer: Result<Option<String>, Failure>) {
        let mut state = self.state();
        (state.is_under_way, state.failure) = (false, None);
        state.ended += 1;
        match answer {
            Ok(token) => (state.token, state.refused) = (Some(token), 0),
            Err(failure) => {
                if matches!(failure, Failure::Refused { .. }) {
                    let pause = PAUSE_MS << state.refused.min(16);
                    state.refused += 1;
                    state.next_at = monotonic_ms() + pause.min(LONGEST_PAUSE_MS);
                }
                state.failure = Some(failure);
            }
        }
        drop(state);
        self.ended.notify_all();
    }

    /// Asks for a new one the next time, unless that has happened.
    pub(crate) fn forget(&self, of_no_use: Option<&str>) {
        let mut state = self.state();
        if state.token.as_ref().is_some_and(|token| token.as_deref() == of_no_use) {
            state.token = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn refused() -> Result<Option<String>, Failure> {
        Err(Failure::Refused { code: 3, text: "no".to_owned() })
    }

    #[test]
    fn one_that_was_refused_is_tried_less_and_less_often() {
        let login = Login::default();
        for pause in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            login.state().next_at = 0;
            let begun = monotonic_ms();
            assert_eq!(login.token(Duration::ZERO, refused), refused());
            assert!(login.state().next_at >= begun + pause);
            assert!(login.state().next_at <= monotonic_ms() + pause);
            login.state().next_at = u64::MAX;
            assert_eq!(login.token(Duration::ZERO, || panic!("it is asked again")), refused());
        }
        login.state().next_at = 0;
        let token = Ok(Some("t".to_owned()));
        assert_eq!(login.token(Duration::ZERO, || token.clone()), token);
        assert_eq!(login.state().refused, 0);
    }

    #[test]
    fn a_token_stays_until_it_is_of_no_use() {
        let login = Login::default();
        let none = || panic!("there is one");
        login.end(Ok(None));
        assert_eq!(login.token(Duration::ZERO, none), Ok(None), "etcd has no users");
        login.forget(Some("old"));
        assert_eq!(login.token(Duration::ZERO, none), Ok(None));
        login.forget(None);
        let new = || Ok(Some("new".to_owned()));
        assert_eq!(login.token(Duration::ZERO, new), new());
        login.forget(None);
        assert_eq!(login.token(Duration::ZERO, none), new(), "another thread has it already");
    }

    #[test]
    fn others_wait_for_one_that_is_under_way_and_no_longer_than_they_may() {
        let login = Login::default();
        let none = || panic!("one is under way");
        let lost = Failure::Unsent("gone".to_owned());
        login.state().is_under_way = true;
        let late = login.token(Duration::from_millis(1), none);
        assert!(matches!(late, Err(Failure::Unsent(_))), "{late:?}");
        thread::scope(|scope| {
            let other = scope.spawn(|| login.token(Duration::from_secs(60), || Ok(None)));
            login.end(Err(lost.clone()));
            // It may have come too late to hear of that one.
            assert!([Ok(None), Err(lost)].contains(&other.join().unwrap()));
        });
    }
}
