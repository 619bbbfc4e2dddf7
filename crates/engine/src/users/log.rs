//! ACL LOG: what users were refused.

use std::collections::VecDeque;

use super::verdict::Lack;

/// Milliseconds within which equal refusals count as one entry.
const TOGETHER: u64 = 60_000;

/// Bytes that are kept of each text. Users may be refused for names of any length, and a hundred of
/// them are kept.
const KEPT: usize = 4096;

/// Why something was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// A database.
    Database,
    /// A login.
    Login,
    /// The name of a certificate, which no user has that may log in.
    Certificate,
}

impl Reason {
    /// The word that ACL LOG shows.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Database => "database",
            Reason::Login => "auth",
            Reason::Certificate => "tls-cert",
        }
    }
}

impl From<Lack> for Reason {
    fn from(lack: Lack) -> Reason {
        match lack {
            Lack::Command => Reason::Command,
            Lack::Key(_) => Reason::Key,
            Lack::Channel(_) => Reason::Channel,
            Lack::Database(_) => Reason::Database,
        }
    }
}

/// Where something was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalContext {
    /// A client has sent it.
    TopLevel,
    /// In a transaction.
    Multi,
    /// In a script.
    Script,
}

impl RefusalContext {
    /// The word that ACL LOG shows.
    pub fn name(self) -> &'static str {
        match self {
            RefusalContext::TopLevel => "toplevel",
            RefusalContext::Multi => "multi",
            RefusalContext::Script => "lua",
        }
    }
}

/// What was refused, to whom and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// Where.
    pub context: RefusalContext,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// The user.
    pub user: Vec<u8>,
}

/// An entry of ACL LOG.
#[derive(Clone)]
pub struct LogEntry {
    /// How often.
    pub count: u64,
    /// What.
    pub refusal: Refusal,
    /// The line of CLIENT LIST for the client.
    pub client: Vec<u8>,
    /// Its number.
    pub id: u64,
    /// Milliseconds of Unix time of the first refusal.
    pub created: u64,
    /// The same of the last one.
    pub updated: u64,
}

/// See the module's text. The newest entry is the first.
#[derive(Default)]
pub(super) struct Log {
    entries: VecDeque<LogEntry>,
    next_id: u64,
}

impl Log {
    /// Notes a refusal at this millisecond of Unix time. At most so many entries are kept.
    pub(super) fn note(
        &mut self,
        mut refusal: Refusal,
        mut client: Vec<u8>,
        now: u64,
        most: usize,
    ) {
        for text in [&mut refusal.object, &mut refusal.user, &mut client] {
            text.truncate(KEPT);
            text.shrink_to_fit();
        }
        let is_same =
            |own: &LogEntry| own.refusal == refusal && now.saturating_sub(own.updated) <= TOGETHER;
        match self.entries.iter().position(is_same) {
            Some(found) => {
                if let Some(mut entry) = self.entries.remove(found) {
                    (entry.count, entry.client, entry.updated) = (entry.count + 1, client, now);
                    self.entries.push_front(entry);
                }
            }
            None => {
                let id = self.next_id;
                self.next_id += 1;
                let entry = LogEntry { count: 1, refusal, client, id, created: now, updated: now };
                self.entries.push_front(entry);
            }
        }
        self.entries.truncate(most);
    }

    pub(super) fn newest(&self, count: usize) -> Vec<LogEntry> {
        self.entries.iter().take(count).cloned().collect()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_refusals_count_together_for_a_minute_and_the_oldest_go() {
        let of = |object: &str| Refusal {
            reason: Reason::Key,
            context: RefusalContext::TopLevel,
            object: object.into(),
            user: b"u".to_vec(),
        };
        let mut log = Log::default();
        let shown = |log: &Log| {
            let entries = log.newest(9);
            let text = |own: &LogEntry| String::from_utf8_lossy(&own.refusal.object).into_owned();
            entries.iter().map(|own| (text(own), own.count, own.id)).collect::<Vec<_>>()
        };
        for (object, now) in [("a", 0), ("b", 1), ("a", 60_000), ("b", 60_002)] {
            log.note(of(object), Vec::new(), now, 9);
        }
        let expected = [("b".into(), 1, 2), ("a".into(), 2, 0), ("b".into(), 1, 1)];
        assert_eq!(shown(&log), expected);
        log.note(of("c"), Vec::new(), 60_003, 2);
        assert_eq!(shown(&log), [("c".into(), 1, 3), ("b".into(), 1, 2)]);
        log.clear();
        assert!(shown(&log).is_empty());
        log.note(of(&"k".repeat(2 * KEPT)), vec![b'c'; 2 * KEPT], 60_004, 2);
        let entry = &log.entries[0];
        assert_eq!((entry.refusal.object.len(), entry.client.len()), (KEPT, KEPT));
    }
}
