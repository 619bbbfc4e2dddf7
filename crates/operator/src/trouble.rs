//! Why a command has not done what it was to do.

use std::fmt;

/// See the module's text.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It has failed.
    Failed(String),
    /// All was asked for, and the cluster has not got there in time.
    NotYet(String),
    /// The user was asked, and does not want it.
    Refused,
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Failed(text) => formatter.write_str(text),
            Trouble::NotYet(text) => write!(formatter, "not there in time: {text}"),
            Trouble::Refused => formatter.write_str("nothing was done"),
        }
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Trouble {
        Trouble::Failed(text)
    }
}
