//! A stop of the server that waits for its replicas. SHUTDOWN ABORT gives it up.

use parking_lot::Mutex;

/// See the module's text.
#[derive(Default)]
pub struct StopWait(Mutex<State>);

#[derive(Default)]
struct State {
    present: Present,
    /// How many stops were given up: who asks for a stop means the next one.
    given_up: u64,
    /// A stop was asked for since then.
    is_asked: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Present {
    /// No stop waits.
    #[default]
    None,
    /// One does, until this millisecond of the monotonic clock.
    Waits(u64),
    /// The one that waits is given up, and does not know it yet.
    GivenUp,
}

impl StopWait {
    /// A stop is asked for. Returns how many were given up before: with those it has nothing to do.
    pub fn ask(&self) -> u64 {
        let mut state = self.0.lock();
        state.is_asked = true;
        state.given_up
    }

    /// A stop waits until this millisecond of the monotonic clock.
    pub fn begin(&self, until: u64) {
        self.0.lock().present = Present::Waits(until);
    }

    /// The stop waits no longer. If it was given up, returns how many were by now: who has asked
    /// before that waits for nothing any more, and who asks now begins another one.
    pub fn end(&self) -> Option<u64> {
        let mut state = self.0.lock();
        let is_given_up = std::mem::take(&mut state.present) == Present::GivenUp;
        is_given_up.then_some(state.given_up)
    }

    /// Gives up the stop that waits, or what was asked for since another one was given up that does
    /// not know it yet. Returns whether there is one.
    pub fn give_up(&self) -> bool {
        let mut state = self.0.lock();
        let is_there = match state.present {
            Present::None => false,
            Present::Waits(_) => true,
            Present::GivenUp => state.is_asked,
        };
        if is_there {
            *state =
                State { present: Present::GivenUp, given_up: state.given_up + 1, is_asked: false };
        }
        is_there
    }

    /// Whether it is given up.
    pub fn is_given_up(&self) -> bool {
        self.0.lock().present == Present::GivenUp
    }

    /// For how many milliseconds a stop waits at most, if one does.
    pub fn left(&self, monotonic: u64) -> Option<u64> {
        match self.0.lock().present {
            Present::Waits(until) => Some(until.saturating_sub(monotonic)),
            Present::None | Present::GivenUp => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_given_up_once_and_while_it_waits() {
        let own = StopWait::default();
        assert_eq!(own.ask(), 0);
        assert!(!own.give_up() && own.left(10).is_none());
        own.begin(30);
        assert_eq!((own.left(10), own.left(40)), (Some(20), Some(0)));
        assert!(!own.is_given_up());
        assert!(own.give_up());
        assert!(!own.give_up() && own.is_given_up() && own.left(10).is_none());
        assert_eq!(own.end(), Some(1));
        own.begin(50);
        assert!(own.end().is_none() && !own.give_up());
    }

    #[test]
    fn who_asks_after_a_stop_was_given_up_means_another_one() {
        let own = StopWait::default();
        let first = own.ask();
        own.begin(30);
        assert!(own.give_up());
        let second = own.ask();
        assert!(own.give_up() && !own.give_up());
        let third = own.ask();
        let given_up = own.end().unwrap();
        assert!(first < given_up && second < given_up && third >= given_up);
    }
}
