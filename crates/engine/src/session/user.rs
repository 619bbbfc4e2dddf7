//! Who a session acts for, and what that user may do. No other code knows.
//!
//! Clients can be one user, `default`, whose password is `requirepass`, and who may run every
//! command.

use config::Config;
use sha2::{Digest, Sha256};

use crate::command::error::{CommandError, CommandResult};
use crate::command::{NO_AUTH, Spec};

/// The name of the only user that clients can be.
pub const DEFAULT_USER: &[u8] = b"default";

/// Who a session acts for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum User {
    /// A client that has not shown who it is. It is restricted while there is a password.
    Unknown,
    /// The user that all clients are.
    Default,
    /// The server itself.
    Internal,
}

impl User {
    /// The user of a client that has said nothing yet.
    pub fn at_first(config: &Config) -> User {
        if config.requirepass.is_empty() { User::Default } else { User::Unknown }
    }

    /// The user that a name and a password show, if they are right. While there is no password, any
    /// is right. Digests are compared, so that the time does not show how much of a guess was
    /// right.
    pub fn log_in(config: &Config, name: &[u8], password: &[u8]) -> Option<User> {
        let wanted = &config.requirepass;
        let is_right = || Sha256::digest(wanted) == Sha256::digest(password);
        (name == DEFAULT_USER && (wanted.is_empty() || is_right())).then_some(User::Default)
    }

    /// Whether it is known who it is.
    #[inline]
    pub fn is_known(self) -> bool {
        self != User::Unknown
    }

    /// Whether more is open to it than to show who it is.
    #[inline]
    pub fn is_admitted(self, config: &Config) -> bool {
        self.is_known() || config.requirepass.is_empty()
    }

    /// Whether it may run a command.
    #[inline]
    pub(crate) fn may_run(self, config: &Config, command: &Spec) -> CommandResult {
        if self.is_admitted(config) || command.has(NO_AUTH) {
            return Ok(());
        }
        Err(CommandError::NO_AUTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_user_is_restricted_while_there_is_a_password() {
        let open = Config::default();
        let protected = Config { requirepass: b"p".to_vec(), ..Config::default() };
        assert_eq!(User::at_first(&open), User::Default);
        assert_eq!(User::at_first(&protected), User::Unknown);
        assert!(User::Unknown.is_admitted(&open) && !User::Unknown.is_admitted(&protected));
        assert!(User::Internal.is_admitted(&protected));
        assert_eq!(User::log_in(&protected, DEFAULT_USER, b"p"), Some(User::Default));
        assert_eq!(User::log_in(&open, DEFAULT_USER, b"any"), Some(User::Default));
        for (name, password) in [(DEFAULT_USER, &b"P"[..]), (DEFAULT_USER, b""), (b"other", b"p")] {
            assert_eq!(User::log_in(&protected, name, password), None);
        }
    }
}
