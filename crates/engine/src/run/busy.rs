//! Who is to know that a thread is busy.

/// A thread that runs scripts, as they see it.
pub trait Busy: Send + Sync {
    /// A script keeps it busy for long. Said again and again, for as long as that lasts.
    fn note_slow_script(&self);
}
