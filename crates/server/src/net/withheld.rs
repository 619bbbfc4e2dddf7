//! Replies that wait for the durability that their client has chosen (CLIENT DURABILITY), and
//! everything that the connection is sent after them.
//!
//! They lie here and not in the output, because a reply becomes an error when what it waits for is
//! not reached in time. See [`engine::persistence::chosen`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use engine::engine::Engine;
use engine::persistence::chosen::Reached;
use engine::session::choice::{Choices, Owed};
use engine::session::sync::SyncWait;
use engine::turn::Turn;
use resp::output::Output;
use resp::reply::Reply;

use super::deferred::Deferred;

/// Why a reply waits.
pub(super) struct Reason {
    /// What was chosen, and until which millisecond of the monotonic clock it waits for that.
    pub(super) owed: Option<(Owed, u64)>,
    /// The offset of the journal that it depends on besides.
    pub(super) depends_on: Option<u64>,
    /// Its client waits for the host before it is sent.
    pub(super) is_open: bool,
}

struct WithheldReply {
    bytes: Output,
    reason: Reason,
}

/// See the module's text.
pub(super) struct Withheld {
    replies: VecDeque<WithheldReply>,
    /// Bytes of them.
    length: usize,
    /// What nobody was asked for yet.
    to_ask: Option<SyncWait>,
    choices: Arc<Choices>,
}

impl Withheld {
    pub(super) fn new(choices: &Arc<Choices>) -> Withheld {
        choices.holding.fetch_add(1, Relaxed);
        let choices = Arc::clone(choices);
        Withheld { replies: VecDeque::new(), length: 0, to_ask: None, choices }
    }

    /// Adds a reply behind the others.
    pub(super) fn add(&mut self, bytes: Output, reason: Reason) {
        if let Some((owed, _)) = &reason.owed
            && owed.sync.is_counted()
        {
            let earlier = self.to_ask.unwrap_or(owed.sync);
            self.to_ask = Some(SyncWait {
                offset: owed.sync.offset.max(earlier.offset),
                local: owed.sync.local.or(earlier.local),
                replicas: owed.sync.replicas.max(earlier.replicas),
                of_shard: owed.sync.of_shard && earlier.of_shard,
            });
        }
        self.length += bytes.len();
        self.replies.push_back(WithheldReply { bytes, reason });
    }

    /// Adds a message that waits for nothing but its turn.
    pub(super) fn pass(&mut self, message: &Arc<Vec<u8>>) {
        self.length += message.len();
        if let Some(last) = self.replies.back_mut()
            && last.reason.owed.is_none()
            && !last.reason.is_open
        {
            return last.bytes.push_shared(message);
        }
        let mut bytes = Output::new();
        bytes.push_shared(message);
        let reason = Reason { owed: None, depends_on: None, is_open: false };
        self.replies.push_back(WithheldReply { bytes, reason });
    }

    /// The client of the open reply has waited for the host to the end. Returns whether there was
    /// one. Messages may lie behind it.
    pub(super) fn close_open(&mut self) -> bool {
        let open = self.replies.iter_mut().rev().find(|reply| reply.reason.is_open);
        open.is_some_and(|reply| std::mem::take(&mut reply.reason.is_open))
    }

    /// Bytes that are held.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Bytes of memory for them.
    pub(super) fn memory(&self) -> usize {
        self.length + self.replies.capacity() * size_of::<WithheldReply>()
    }

    /// Whether so much is held that no further command of the connection runs.
    pub(super) fn is_full(&self) -> bool {
        self.length > limits::HELD_BYTES || self.replies.len() > limits::HELD_REPLIES
    }

    /// Whether nothing is held any more.
    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// When the first reply has waited for long enough. An open one waits for the host as well,
    /// which has no deadline.
    pub(super) fn deadline(&self) -> Option<u64> {
        let first = self.replies.front().filter(|first| !first.reason.is_open)?;
        let (_, deadline) = first.reason.owed?;
        Some(deadline)
    }

    /// Whether the first reply may go.
    pub(super) fn is_first_over(&self, engine: &Engine) -> bool {
        let Some(first) = self.replies.front().filter(|first| !first.reason.is_open) else {
            return false;
        };
        first.reason.owed.is_none_or(|(owed, _)| engine.reached(&owed.sync) != Reached::NotYet)
    }

    /// Moves replies to the output that wait no more, or in vain: these become errors. `end` says
    /// why the others do not wait any longer either.
    pub(super) fn settle(
        &mut self,
        (engine, turn): (&Engine, &Turn),
        (resp3, end): (bool, Option<&str>),
        (output, deferred_replies): (&mut Output, &mut Deferred),
    ) {
        if let Some(sync) = self.to_ask.take() {
            engine.ask_for(&sync);
        }
        let is_waiting = |first: &mut WithheldReply| {
            let Some((owed, deadline)) = first.reason.owed else { return false };
            let why = match engine.reached(&owed.sync) {
                Reached::Yes => return false,
                Reached::Never(why) => why,
                Reached::NotYet if deadline <= turn.monotonic => "durability-timeout is over",
                Reached::NotYet => match end {
                    Some(why) => why,
                    None => return true,
                },
            };
            let error = engine.not_durable(turn, &owed.sync, why);
            let mut failed = Output::new();
            Reply::new(&mut failed, resp3).error(error.as_bytes());
            first.bytes.advance(owed.length);
            failed.append(&first.bytes);
            first.bytes = failed;
            // That it failed depends on no disk.
            first.reason.depends_on = None;
            false
        };
        while let Some(first) = self.replies.front_mut() {
            let length = first.bytes.len();
            if first.reason.is_open && end.is_none() || is_waiting(first) {
                break;
            }
            self.length -= length;
            let Some(first) = self.replies.pop_front() else { break };
            if let Some(offset) = first.reason.depends_on {
                deferred_replies.add(output.end(), offset);
            }
            output.append(&first.bytes);
        }
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        self.choices.holding.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use engine::session::sync::SyncWait;

    use super::*;

    /// One reply whose client waits for the host, and for a replica until the millisecond 10.
    fn open_reply() -> Withheld {
        let mut held = Withheld::new(&Arc::default());
        let mut bytes = Output::new();
        bytes.push(b"+OK\r\n");
        let sync = SyncWait { offset: 1, local: None, replicas: 1, of_shard: false };
        let owed = Some((Owed { sync, length: bytes.len() }, 10));
        held.add(bytes, Reason { owed, depends_on: None, is_open: true });
        held
    }

    #[test]
    fn an_open_reply_has_no_deadline_before_it_is_closed() {
        let mut held = open_reply();
        assert_eq!(held.deadline(), None);
        assert!(held.close_open());
        assert_eq!(held.deadline(), Some(10));
    }

    #[test]
    fn an_open_reply_is_closed_where_messages_lie_behind_it() {
        let mut held = open_reply();
        held.pass(&Arc::new(b">0\r\n".to_vec()));
        assert!(held.close_open());
        assert!(!held.replies[0].reason.is_open);
        assert!(!held.close_open(), "it is closed");
    }
}
