//! Why a rule of a user is refused.

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleError {
    /// It is no rule.
    Syntax,
    /// There is no such command, and no such category.
    UnknownCommand,
    /// A password that is to go is not there.
    NoSuchPassword,
    /// A digest is not 64 hexadecimal digits.
    BadDigest,
    /// A pattern after the one that allows all keys.
    AllKeys,
    /// A pattern after the one that allows all channels.
    AllChannels,
    /// The number of a database is too small or too large.
    DatabaseRange,
    /// There is no such role.
    UnknownRole,
    /// It is about users, and was given for a role.
    OfUsers,
    /// A first argument can be allowed for whole commands alone.
    FirstArgumentOfSubcommand,
}

impl RuleError {
    /// What clients are told.
    pub fn text(self) -> &'static str {
        match self {
            RuleError::Syntax => "Syntax error",
            RuleError::UnknownCommand => "Unknown command or category name in ACL",
            RuleError::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            RuleError::BadDigest => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            RuleError::AllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does \
                 not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::AllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            RuleError::DatabaseRange => "The provided database ID is out of range",
            RuleError::UnknownRole => "There is no such role",
            RuleError::OfUsers => "This rule is for users, not for roles",
            RuleError::FirstArgumentOfSubcommand => {
                "Allowing first-arg of a subcommand is not supported"
            }
        }
    }
}
