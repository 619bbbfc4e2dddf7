//! How a move fails.

/// See the module's text.
pub(crate) enum Failure {
    /// Before the promotion.
    Unmoved(String),
    /// After it, or where nobody knows that, or with an old server that holds its writes: a step is
    /// missing.
    Unfinished(String),
}

impl From<String> for Failure {
    fn from(problem: String) -> Failure {
        Failure::Unmoved(problem)
    }
}
