//! Where a running script reports that it keeps its thread busy.

/// A thread that runs scripts, as its scripts see it.
pub trait Busy {
    /// A script keeps it busy for long. Repeated as long as that lasts: the thread may serve
    /// others, with a [`crate::turn::Turn`] for that. Returns what has become of the client for
    /// which the script runs.
    fn note_slow_script(&self) -> Asker;
}

/// The client for which a script runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    /// It waits for the end of the script, or the script runs to its end without it.
    Waits,
    /// It has gone, and a script that has written nothing ends.
    Gone,
}
