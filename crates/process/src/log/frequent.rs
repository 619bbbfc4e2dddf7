//! Lines that clients may cause as often as they like: one of a kind a second, with the number of
//! those that were left out.

use engine::host::{Frequent, LogLevel};
use parking_lot::Mutex;

/// Milliseconds between two lines of a kind.
const PAUSE: u64 = 1000;

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is written.
    Written(String),
    /// It is kept as the next of its kind. Somebody has to look when it is due.
    Kept,
    /// It is counted.
    Counted,
}

/// What is known of a kind. Times are in milliseconds of the monotonic clock.
#[derive(Default)]
struct State {
    /// No line is written before.
    quiet_until: u64,
    /// The first line that was not written since the last that was, with its level.
    kept: Option<(LogLevel, String)>,
    /// How many came after that one.
    counted: u64,
}

impl State {
    /// Takes the line that was kept, if it may be written.
    fn take(&mut self, now: u64) -> Option<(LogLevel, String)> {
        if self.quiet_until > now {
            return None;
        }
        let (level, line) = self.kept.take()?;
        self.quiet_until = now.saturating_add(PAUSE);
        Some(match std::mem::take(&mut self.counted) {
            0 => (level, line),
            counted => (level, format!("{line} ({counted} more like this)")),
        })
    }
}

/// See the module's text.
#[derive(Default)]
pub(super) struct FrequentLines([Mutex<State>; Frequent::ALL.len()]);

impl FrequentLines {
    /// Decides what becomes of a line.
    pub(super) fn note(
        &self,
        kind: Frequent,
        level: LogLevel,
        now: u64,
        line: &dyn Fn() -> String,
    ) -> Fate {
        let mut state = self.0[kind as usize].lock();
        if state.kept.is_some() {
            state.counted += 1;
            // The one that is kept waits for nobody if nobody has looked.
            return state.take(now).map_or(Fate::Counted, |(_, kept)| Fate::Written(kept));
        }
        if now >= state.quiet_until {
            state.quiet_until = now.saturating_add(PAUSE);
            return Fate::Written(line());
        }
        state.kept = Some((level, line()));
        Fate::Kept
    }

    /// When the next line that was kept may be written.
    pub(super) fn next(&self) -> Option<u64> {
        let due = |state: &Mutex<State>| {
            let state = state.lock();
            state.kept.is_some().then_some(state.quiet_until)
        };
        self.0.iter().filter_map(due).min()
    }

    /// Takes the lines that may be written by this time.
    pub(super) fn take(&self, now: u64) -> Vec<(LogLevel, String)> {
        self.0.iter().filter_map(|state| state.lock().take(now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_there_is_a_line_a_second_that_says_how_many_there_were() {
        let lines = FrequentLines::default();
        let note =
            |kind, now, text: &str| lines.note(kind, LogLevel::Warning, now, &|| text.to_owned());
        let written = |text: &str| Fate::Written(text.to_owned());
        assert_eq!(note(Frequent::Login, 5000, "a"), written("a"));
        assert_eq!(lines.next(), None);
        assert_eq!(note(Frequent::Login, 5001, "b"), Fate::Kept);
        assert_eq!(note(Frequent::Login, 5999, "c"), Fate::Counted);
        assert_eq!(note(Frequent::Handshake, 5999, "h"), written("h"), "another kind");
        assert_eq!((lines.next(), lines.take(5999)), (Some(6000), Vec::new()));
        assert_eq!(lines.take(6000), [(LogLevel::Warning, "b (1 more like this)".to_owned())]);
        assert_eq!((lines.next(), lines.take(9000)), (None, Vec::new()));
        assert_eq!(note(Frequent::Login, 6001, "d"), Fate::Kept, "a second since the last line");
        assert_eq!(note(Frequent::Login, 7000, "e"), written("d (1 more like this)"));
        assert_eq!(note(Frequent::Login, 8000, "f"), written("f"));
        assert_eq!(note(Frequent::Login, 8001, "g"), Fate::Kept);
        assert_eq!(lines.take(u64::MAX), [(LogLevel::Warning, "g".to_owned())]);
    }
}
