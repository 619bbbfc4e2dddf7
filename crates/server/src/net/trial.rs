//! Whether pausing pays, found out by trying.
//!
//! A pause saves wake-ups on both sides. A client that is slow with each request sends more in the
//! same time then; a quick one has sent everything before the pause is over, and waits. The worker
//! cannot see which kind it serves. So it serves with and without pauses in turn, for some
//! milliseconds each, counts requests, and goes on with the way that served more. Some time later
//! it tries again. When both ways serve the same number, it pauses, because that takes less
//! processor time.

/// Windows of one way before the other one's turn. The first is not counted: the requests that it
/// serves were sent under the other way.
const SPELL: u32 = 4;
/// Spells in a trial: each way has half of them, in turn.
const SPELLS: u32 = 6;
/// Windows between two trials, at first. They double while the outcome stays the same, up to the
/// greatest number.
const BETWEEN_LEAST: u32 = 64;
const BETWEEN_MOST: u32 = 1024;
/// Pausing has to serve at least this percentage of what is served without.
const PERCENT_LEAST: u64 = 98;

/// The achievement of one way of serving.
#[derive(Default, Clone, Copy)]
struct Tally {
    requests: u64,
    elapsed_us: u64,
}

/// See the module's text.
pub(super) struct Trial {
    pays: bool,
    /// Windows until the next trial begins.
    rest: u32,
    between: u32,
    /// Windows of the present trial.
    done: u32,
    pausing: Tally,
    serving_at_once: Tally,
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            pays: true,
            rest: 0,
            between: BETWEEN_LEAST,
            done: 0,
            pausing: Tally::default(),
            serving_at_once: Tally::default(),
        }
    }
}

impl Trial {
    /// Whether to pause in the next window.
    pub(super) fn pauses(&self) -> bool {
        if self.rest > 0 { self.pays } else { self.tries_pausing() }
    }

    /// Notes a window with a load that pausing may pay for.
    pub(super) fn note_window(&mut self, requests: u32, elapsed_us: u64) {
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        let counts = !self.done.is_multiple_of(SPELL);
        let way = if self.tries_pausing() { &mut self.pausing } else { &mut self.serving_at_once };
        if counts {
            way.requests += u64::from(requests);
            way.elapsed_us += elapsed_us;
        }
        self.done += 1;
        if self.done == SPELL * SPELLS {
            self.decide();
        }
    }

    /// Which way has its turn in the present trial.
    fn tries_pausing(&self) -> bool {
        (self.done / SPELL).is_multiple_of(2)
    }

    fn decide(&mut self) {
        // Products of counts that take milliseconds to gather.
        let paused = self.pausing.requests * self.serving_at_once.elapsed_us;
        let at_once = self.serving_at_once.requests * self.pausing.elapsed_us;
        let pays = paused * 100 >= at_once * PERCENT_LEAST;
        let between = match pays == self.pays {
            true => (self.between * 2).min(BETWEEN_MOST),
            false => BETWEEN_LEAST,
        };
        *self = Trial { pays, rest: between, between, ..Trial::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of windows with a pause, in percent, when a window with a pause serves `pausing`
    /// requests and one without serves `at_once`.
    fn share_of_pauses(pausing: u32, at_once: u32) -> u32 {
        let mut trial = Trial::default();
        let windows = 10_000;
        let paused = (0..windows).filter(|_| {
            let pauses = trial.pauses();
            trial.note_window(if pauses { pausing } else { at_once }, 1000);
            pauses
        });
        paused.count() as u32 * 100 / windows
    }

    #[test]
    fn the_way_that_serves_more_is_used_nearly_always() {
        assert!(share_of_pauses(130, 100) >= 97);
        assert!(share_of_pauses(139, 165) <= 3);
    }

    #[test]
    fn pausing_is_preferred_where_both_serve_the_same() {
        assert!(share_of_pauses(100, 100) >= 97);
        assert!(share_of_pauses(99, 100) >= 97);
        assert!(share_of_pauses(97, 100) <= 3);
    }

    #[test]
    fn a_load_that_changes_is_noticed() {
        let mut trial = Trial::default();
        for (pausing, at_once) in [(100, 200), (200, 100), (100, 200)] {
            for _ in 0..2 * (BETWEEN_MOST + SPELL * SPELLS) {
                let requests = if trial.pauses() { pausing } else { at_once };
                trial.note_window(requests, 1000);
            }
            assert_eq!(trial.pays, pausing > at_once);
        }
    }
}
