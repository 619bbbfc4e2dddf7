//! Is told when a thread is busy.

/// A thread that runs scripts, as its scripts see it.
pub trait Busy {
    /// A script keeps it busy for long. Repeated as long as that lasts: the thread may
    /// serve others, with a [`crate::run::turn::Turn`] for that.
    fn note_slow_script(&self);
}
