//! Verdicts on files of any kind.

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This server can load all of it.
    Good,
    /// Something is damaged, and still is.
    Damaged,
    /// Nothing is damaged (any more), and the files contain something that this server refuses to
    /// load.
    Unsupported,
    /// This server can load it now; something was changed.
    Changed,
}

/// Databases that a server has by default.
pub(super) const DATABASES: usize = 16;

/// The remark about a database beyond those.
pub(super) fn beyond(index: usize) -> String {
    format!("database {index} is used: a server needs the setting `databases` for it")
}
