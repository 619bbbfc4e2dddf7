//! Why a load did not run.

use std::io;

/// Why a load did not take place.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan asks for something that cannot be done.
    #[error("{0}")]
    Plan(String),
    /// The server's name is unknown, or nothing listens there.
    #[error("Could not connect to {address}: {error}")]
    Connect {
        /// Host and port, or the socket's path.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The server refuses the password, the protocol or the database.
    #[error("Error from server: {0}")]
    Refused(String),
    /// Some of the connections could not be opened.
    #[error("Could not open all connections: {0}")]
    Opening(String),
    /// The system refuses something that every load needs.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl LoadError {
    /// The same error; one of the system becomes what `failed` makes of it.
    pub(super) fn or_connect(self, failed: impl FnOnce(io::Error) -> LoadError) -> LoadError {
        match self {
            LoadError::System(error) => failed(error),
            other => other,
        }
    }
}
