//! COMMANDLOG: logs of the last commands that took long, of those with large requests, and of those
//! with large replies. SLOWLOG shows the first of these logs.

use std::collections::VecDeque;

use base::limits::{LOGGED_ARGUMENT_BYTES, LOGGED_ARGUMENTS};
use config::Config;
use parking_lot::Mutex;
use resp::args::Arguments;

use crate::command::Spec;
use crate::observe::redaction;

/// The kind of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Commands that took long, in microseconds.
    Slow,
    /// Requests of many bytes.
    LargeRequest,
    /// Replies of many bytes.
    LargeReply,
}

/// The log of each kind.
#[derive(Default)]
pub struct CommandLogs([CommandLog; 3]);

impl CommandLogs {
    /// The log of one kind.
    pub fn of(&self, kind: LogKind) -> &CommandLog {
        &self.0[kind as usize]
    }
}

/// One command of a log.
#[derive(Clone, Debug)]
pub struct LoggedCommand {
    /// Its number; rises for ever.
    pub id: u64,
    /// When it ran, in Unix seconds.
    pub at: u64,
    /// How long the command took in microseconds, or how many bytes it had, by the kind of the log.
    pub measure: u64,
    /// Its arguments, shortened.
    pub argv: Vec<Vec<u8>>,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
}

/// The newest commands of one kind.
#[derive(Default)]
pub struct CommandLog(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next_id: u64,
    newest_first: VecDeque<LoggedCommand>,
}

impl CommandLog {
    /// Logs a command and gives it its number. Keeps at most `keep` entries.
    pub(crate) fn note(&self, command: LoggedCommand, keep: usize) {
        let mut entries = self.0.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.newest_first.push_front(LoggedCommand { id, ..command });
        entries.newest_first.truncate(keep);
    }

    /// The newest commands, the newest first.
    pub fn newest(&self, count: usize) -> Vec<LoggedCommand> {
        self.0.lock().newest_first.iter().take(count).cloned().collect()
    }

    /// How many are kept now.
    pub fn len(&self) -> usize {
        self.0.lock().newest_first.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all.
    pub fn reset(&self) {
        self.0.lock().newest_first.clear();
    }
}

/// The cost of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Its time.
    pub(crate) nanoseconds: u64,
    /// Bytes of its reply.
    pub(crate) reply: u64,
}

/// A command is noted from this duration on, by the logs of commands or by the latency monitor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotedFrom {
    pub(crate) nanoseconds: u64,
    /// Bytes.
    pub(crate) request: u64,
    /// Bytes.
    pub(crate) reply: u64,
}

impl NotedFrom {
    /// As the settings define it.
    pub(crate) fn new(config: &Config) -> Self {
        if config.cluster_enabled && config.cluster_slot_stats_enabled {
            // Each command counts for its slot.
            return NotedFrom::default();
        }
        let slow = threshold(config.slowlog_log_slower_than).saturating_mul(1000);
        let delay = match config.latency_monitor_threshold {
            0 => u64::MAX,
            milliseconds => milliseconds.saturating_mul(1_000_000),
        };
        NotedFrom {
            nanoseconds: slow.min(delay),
            request: threshold(config.commandlog_request_larger_than),
            reply: threshold(config.commandlog_reply_larger_than),
        }
    }
}

/// A threshold of the settings; a negative one lets nothing through.
fn threshold(setting: i64) -> u64 {
    u64::try_from(setting).unwrap_or(u64::MAX)
}

/// The arguments of a command in the form that the log keeps.
pub(crate) fn shortened(command: &Spec, argv: Arguments<'_>) -> Vec<Vec<u8>> {
    let shown = if argv.len() > LOGGED_ARGUMENTS { LOGGED_ARGUMENTS - 1 } else { argv.len() };
    let arguments = redaction::shown(command, argv).take(shown);
    let mut kept: Vec<Vec<u8>> = arguments.map(shortened_argument).collect();
    if argv.len() > shown {
        kept.push(format!("... ({} more arguments)", argv.len() - shown).into_bytes());
    }
    kept
}

fn shortened_argument(argument: &[u8]) -> Vec<u8> {
    if argument.len() <= LOGGED_ARGUMENT_BYTES {
        return argument.to_vec();
    }
    let mut kept = argument[..LOGGED_ARGUMENT_BYTES].to_vec();
    let more = argument.len() - LOGGED_ARGUMENT_BYTES;
    kept.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    kept
}
