//! What a system call has come to.

/// What a call has come to.
pub(crate) enum Outcome {
    /// Its answer.
    Value(i64),
    /// The kernel executes it.
    GoOn,
    /// Nothing yet: the thread waits.
    Wait,
}

/// The outcome of a call, or an error's number.
pub(crate) type Done = Result<Outcome, i32>;
