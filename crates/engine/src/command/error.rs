//! Every error text that more than one command sends.

use std::borrow::Cow;
use std::fmt;

/// An error reply: the whole line after the `-`, with its code. It consists of bytes, because it
/// may quote words of the client as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError(Cow<'static, [u8]>);

/// The result of a handler. The handler has written the reply itself through the context.
pub type CommandResult = Result<(), CommandError>;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        impl CommandError {
            $($(#[$doc])* pub const $name: CommandError = CommandError(Cow::Borrowed($text.as_bytes()));)*
        }
    };
}

texts! {
    /// Another thread had locked a slot. Never sent: the command is tried again.
    MISSED_SLOT = "";
    /// The value of the key has another type than the command works on.
    WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";
    /// A client's write on a replica.
    READ_ONLY_REPLICA = "READONLY You can't write against a read only replica.";
    /// A replica whose link is down may not answer from old data.
    PRIMARY_DOWN = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    /// The primary of a link is not the present one.
    PRIMARY_CHANGED = "ERR the replica follows another primary";
    /// A source of slots writes somewhere else, or after the end.
    IMPORT_OVER = "ERR the import of these slots is over";
    /// Options that do not fit together or are unknown.
    SYNTAX = "ERR syntax error";
    /// An argument, or the stored value, is no 64-bit integer.
    NOT_AN_INTEGER = "ERR value is not an integer or out of range";
    /// An argument, or the stored value, is no number.
    NOT_A_FLOAT = "ERR value is not a valid float";
    /// A key that must exist does not.
    NO_SUCH_KEY = "ERR no such key";
    /// An index beyond the end.
    INDEX_OUT_OF_RANGE = "ERR index out of range";
    /// A count that must not be negative.
    MUST_BE_POSITIVE = "ERR value is out of range, must be positive";
    /// A number of keys that is not a number, or not positive.
    NO_KEYS = "ERR numkeys should be greater than 0";
    /// A count that is not a number, or not positive.
    NO_COUNT = "ERR count should be greater than 0";
    /// A count whose sign has a meaning, and whose opposite is not a 64-bit integer.
    NO_OPPOSITE = "ERR value is out of range, value must between -9223372036854775807 and \
                   9223372036854775807";
    /// A number outside of what the command accepts.
    OUT_OF_RANGE = "ERR value is out of range";
    /// INCR and similar commands.
    OVERFLOW = "ERR increment or decrement would overflow";
    /// A float operation without a finite result.
    NAN_OR_INFINITY = "ERR increment would produce NaN or Infinity";
    /// A string beyond the bound.
    STRING_TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    /// A collection with as many elements as it can count.
    TOO_MANY_ELEMENTS = "ERR maximum number of elements of a collection is reached";
    /// A key beyond the bound.
    KEY_TOO_LONG = "ERR key exceeds maximum allowed size (4294967295 bytes)";
    /// A timeout of a blocking command that is not a number.
    TIMEOUT_NOT_A_FLOAT = "ERR timeout is not a float or out of range";
    /// A timeout in milliseconds that is not a number.
    TIMEOUT_NOT_AN_INTEGER = "ERR timeout is not an integer or out of range";
    /// A timeout of a blocking command below zero.
    TIMEOUT_NEGATIVE = "ERR timeout is negative";
    /// A timeout whose end is not a date.
    TIMEOUT_OUT_OF_RANGE = "ERR timeout is out of range";
    /// A number that does not fit 32 bits.
    NOT_32_BITS = "ERR value is out of range, value must between -2147483648 and 2147483647";
    /// SELECT and similar commands.
    DB_OUT_OF_RANGE = "ERR DB index is out of range";
    /// A source and a destination that are the same.
    SAME_OBJECT = "ERR source and destination objects are the same";
    /// A cursor that is no number.
    INVALID_CURSOR = "ERR invalid cursor";
    /// The limit of `maxmemory` was reached and nothing could be evicted.
    OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
    /// `min-replicas-to-write`.
    NOT_ENOUGH_REPLICAS = "NOREPLICAS Not enough good replicas to write.";
    /// Data is being loaded, and the command needs it.
    LOADING = "LOADING Redis is loading the dataset in memory";
    /// Nothing but AUTH, HELLO and QUIT before authentication.
    NO_AUTH = "NOAUTH Authentication required.";
    /// Wrong user name or password.
    WRONG_PASS = "WRONGPASS invalid username-password pair or user is disabled.";
    /// EXEC after an error while queueing.
    EXEC_ABORT = "EXECABORT Transaction discarded because of previous errors.";
    /// A serialised value that cannot be read.
    BAD_PAYLOAD = "ERR DUMP payload version or checksum are wrong";
    /// Keys of several slots, of a node of a cluster.
    CROSS_SLOT = "CROSSSLOT Keys in request don't hash to the same slot";
    /// A key of a slot that no node of the cluster serves.
    SLOT_NOT_SERVED = "CLUSTERDOWN Hash slot not served";
    /// A slot of the cluster is not served, or this node may not serve now.
    CLUSTER_DOWN = "CLUSTERDOWN The cluster is down";
    /// Keys of several slots, of which one changes its owner.
    TRY_AGAIN = "TRYAGAIN Multiple keys request during rehashing of slot";
    /// No primary of the slot has come up for as long as the request waits for one.
    NO_PRIMARY = "CLUSTERDOWN The slot has no primary";
    /// The same where reads are served nevertheless.
    CLUSTER_TAKES_READS_ONLY = "CLUSTERDOWN The cluster is down and only accepts read commands";
    /// A destination that must not exist does.
    BUSY_KEY = "BUSYKEY Target key name already exists.";
}

impl CommandError {
    /// DEBUG without the right to it.
    pub(crate) const DEBUG_NOT_ALLOWED: CommandError = CommandError::text(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
         can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    );

    /// MODULE LOAD and the like.
    pub const MODULES_NOT_ALLOWED: CommandError = CommandError::text(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you \
         can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    );

    /// An error with a fixed text, code included ("ERR ...").
    pub const fn text(text: &'static str) -> CommandError {
        CommandError(Cow::Borrowed(text.as_bytes()))
    }

    /// An error with a text put together for it, code included.
    pub fn owned(text: String) -> CommandError {
        CommandError(Cow::Owned(text.into_bytes()))
    }

    /// An error with a line put together for it, code included.
    pub fn line(line: Vec<u8>) -> CommandError {
        CommandError(line.into())
    }

    /// An error that quotes a client's word, up to a zero byte as C prints strings.
    pub fn quoting(before: &str, word: &[u8], after: &str) -> CommandError {
        CommandError([before.as_bytes(), printable(word), after.as_bytes()].concat().into())
    }

    /// An error that quotes two of a client's words, each up to a zero byte.
    pub fn quoting_two(
        [before, between, after]: [&str; 3],
        [one, other]: [&[u8]; 2],
    ) -> CommandError {
        let parts = [before.as_bytes(), printable(one), between.as_bytes(), printable(other)];
        CommandError([&parts[..], &[after.as_bytes()]].concat().concat().into())
    }

    /// The wrong number of arguments for a command ("get", "config|set").
    pub fn wrong_arity(command: &str) -> CommandError {
        CommandError::owned(format!("ERR wrong number of arguments for '{command}' command"))
    }

    /// An unknown subcommand, or one whose number of arguments only its handler can judge.
    /// `command` is the container ("client"), `subcommand` the word as it came.
    pub fn subcommand_syntax(command: &str, subcommand: &[u8]) -> CommandError {
        CommandError::quoting(
            "ERR unknown subcommand or wrong number of arguments for '",
            &subcommand[..subcommand.len().min(128)],
            &format!("'. Try {} HELP.", command.to_ascii_uppercase()),
        )
    }

    /// An EXEC that was refused, with the reason. A general reason appears without its code.
    pub fn exec_refused(reason: &CommandError) -> CommandError {
        let reason = reason.as_bytes().strip_prefix(b"ERR ").unwrap_or(reason.as_bytes());
        CommandError([b"EXECABORT Transaction discarded because of: ", reason].concat().into())
    }

    /// Whether it sends the client to another node of the cluster, or has it try again.
    pub(crate) fn redirects(&self) -> bool {
        let codes: [&[u8]; 3] = [b"MOVED ", b"CROSSSLOT ", b"CLUSTERDOWN "];
        codes.iter().any(|code| self.0.starts_with(code))
    }

    /// Whether it says that the slot of a key is not served just now.
    pub(crate) fn says_cluster_is_down(&self) -> bool {
        self.0.starts_with(b"CLUSTERDOWN ")
    }

    /// An expiry out of bounds, named after the command.
    pub fn invalid_expire(command: &str) -> CommandError {
        CommandError::owned(format!("ERR invalid expire time in '{command}' command"))
    }

    /// The whole line.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The code as INFO shows it: the first word, if it ends where codes end, without the signs
    /// that structure INFO. Scripts choose it freely.
    pub fn code(&self) -> String {
        let mut beginning = self.0.iter().take(LONGEST_CODE + 1);
        match beginning.position(|byte| *byte == b' ') {
            Some(end) => {
                String::from_utf8_lossy(&self.0[..end]).replace(['#', ':', '\n', '\r'], "_")
            }
            None => String::from("ERR"),
        }
    }
}

/// Bytes of the longest code. Redis looks no further for its end.
const LONGEST_CODE: usize = 30;

/// The part of a string that C prints: the bytes before a zero byte.
pub(crate) fn printable(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl std::error::Error for CommandError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_safe_to_show() {
        let longest = format!("{} x", "l".repeat(LONGEST_CODE));
        for (line, code) in [
            ("WRONGTYPE Operation", "WRONGTYPE"),
            ("a:b#c d", "a_b_c"),
            ("NOSPACE", "ERR"),
            (&longest, &longest[..LONGEST_CODE]),
            (&format!("l{longest}"), "ERR"),
            (" x", ""),
        ] {
            assert_eq!(CommandError::line(line.as_bytes().to_vec()).code(), code);
        }
    }
}
