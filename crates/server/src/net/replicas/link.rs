//! The connection of one replica: what it gets next, and what it says.
//!
//! A link has a place in the copy of the data, then one in the stream of writes. It keeps no bytes
//! besides those that are on their way into its socket: what comes next lies in the chunks of the
//! copy and in the backlog, which all replicas share.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use config::Config;
use engine::engine::Engine;
use engine::journal::backlog::Backlog;
use engine::session::replicas::introduction::{Introduction, capability};
use engine::session::replicas::slowing;
use engine::session::replicas::{Replica, Standing};
use resp::args::Arguments;
use resp::output::Output;
use resp::request::{Limits, Parsed, Parser};

use super::fan_out::{FanOut, Next};
use crate::net::transport::{AnyTransport, Flushed, Readiness, Received, Sent, Transport};

/// Bytes that are put into the output at once.
const PORTION: usize = 256 * 1024;
/// Bytes that one replica gets before others have their turn.
const SHARE: usize = 1024 * 1024;
/// Times that what one replica has sent is read before others have their turn.
const READS_AT_ONCE: usize = 16;
/// A replica sends nothing that is longer.
const LONGEST_INPUT: usize = 64 * 1024;

/// Why one is let go that the walk through the data has left behind.
pub(super) const LEFT_BEHIND: &str =
    "it takes its copy too slowly, and others must not wait for it";

/// Why the links end when the stream breaks off, or gets another name. See [`Link::breaks`].
pub(super) const STREAM_BROKE: &str =
    "its stream has another name or other data from here on: it asks anew";

/// What makes offsets that replicas name into the journal's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// How far those that replicas know are ahead, wrapping.
    pub(super) ahead: u64,
    /// The end of the journal.
    pub(super) end: u64,
}

impl Known {
    /// The journal's offset, if it has got so far.
    fn own(self, offset: u64) -> Option<u64> {
        Some(offset.wrapping_sub(self.ahead)).filter(|own| *own <= self.end)
    }
}

/// Where the copy comes from.
pub(super) enum Source {
    /// From the walk, shared with others.
    Chunks { from: Arc<FanOut>, at: u64, mark: [u8; 40] },
    /// From a file that is complete, up to its length.
    File { file: Arc<File>, at: u64, length: u64 },
    /// From a file that is still being written.
    Unfinished,
}

/// What a replica gets.
pub(super) enum Stage {
    /// It waits for a copy.
    Waits,
    /// A copy, and then the stream from this offset of the journal on.
    Copy { source: Source, then: u64 },
    /// Nothing before it says that it has loaded the copy: it may take what comes right after the
    /// copy's end for a part of it.
    Loads { then: u64 },
    /// The stream from this offset on.
    Follows { at: u64 },
    /// It wanted a copy and has got it.
    Done,
}

/// How fast it takes the stream.
struct Paced {
    /// Where it was in the stream when it was looked at last.
    at: u64,
    /// When that was, in milliseconds of the monotonic clock.
    since: u64,
    /// Bytes that it took in a second before that.
    pace: u64,
}

/// See the module's text.
pub(super) struct Link {
    pub(super) transport: AnyTransport,
    pub(super) replica: Arc<Replica>,
    pub(super) stage: Stage,
    output: Output,
    input: Vec<u8>,
    parser: Parser,
    readable: bool,
    /// It sends no more, as an event has said, which may have come with the last bytes.
    read_closed: bool,
    writable: bool,
    /// Why it is closed, for the log.
    pub(super) close_reason: Option<String>,
    /// Since when too much waits for it, in milliseconds of the monotonic clock.
    over_soft_limit_since: Option<u64>,
    /// When it took something last, in milliseconds of the monotonic clock.
    pub(super) moved_at: u64,
    paced: Option<Paced>,
    /// It was told in the log that its data cannot be told to it.
    pub(super) was_told: bool,
    /// The number of breaks of the stream when it attached: it follows the stream to the next one.
    pub(super) breaks: u64,
}

impl Link {
    pub(super) fn new(
        transport: AnyTransport,
        replica: Arc<Replica>,
        input: Vec<u8>,
        breaks: u64,
    ) -> Link {
        Link {
            transport,
            replica,
            stage: Stage::Waits,
            output: Output::new(),
            input,
            parser: Parser::new(),
            readable: true,
            read_closed: false,
            writable: true,
            close_reason: None,
            over_soft_limit_since: None,
            moved_at: base::clock::monotonic_ms(),
            paced: None,
            was_told: false,
            breaks,
        }
    }

    pub(super) fn introduction(&self) -> &Introduction {
        &self.replica.introduction
    }

    /// The number of its client.
    pub(super) fn id(&self) -> u64 {
        self.replica.client.id
    }

    /// What it is called in the log.
    pub(super) fn name(&self) -> String {
        let (address, port) = (self.replica.address(), self.introduction().listening_port);
        if port == 0 { self.replica.client.address.clone() } else { format!("{address}:{port}") }
    }

    /// Sends bytes of its own, before what comes next.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        self.output.push(bytes);
    }

    /// Says that the server lives, while there is nothing else to say.
    pub(super) fn say_that_it_lives(&mut self) {
        if self.output.is_empty() {
            self.output.push(b"\n");
        }
    }

    /// Closes it for this reason.
    pub(super) fn close(&mut self, reason: impl Into<String>) {
        self.close_reason.get_or_insert_with(|| reason.into());
    }

    pub(super) fn note_readiness(&mut self, readiness: Readiness) {
        self.readable |= readiness.readable || readiness.read_closed;
        self.read_closed |= readiness.read_closed;
        self.writable |= readiness.writable;
    }

    /// The first offset of the stream that it still needs.
    pub(super) fn needs(&self) -> Option<u64> {
        match self.stage {
            Stage::Waits | Stage::Done => None,
            Stage::Copy { then, .. } | Stage::Loads { then } => Some(then),
            Stage::Follows { at } => Some(at),
        }
    }

    // ---- What it says ---------------------------------------------------------------------------

    /// Reads what has come. Returns whether it says that it is further than before.
    pub(super) fn hear(&mut self, known: Known, monotonic: u64) -> bool {
        let mut is_further = self.understand(known, monotonic);
        // Others have their turn even if it never stops sending.
        for _ in 0..READS_AT_ONCE {
            if !self.has_unread() {
                break;
            }
            self.input.reserve(limits::READ_BUFFER);
            match self.transport.receive(&mut self.input, limits::READ_BUFFER) {
                // The end of the stream may have come with the same event.
                Received::Bytes { drained, .. } => self.readable = !drained || self.read_closed,
                Received::Nothing => self.readable = false,
                Received::Later => break,
                Received::End => self.close("it closed the connection"),
                Received::Failed => self.close("the connection failed"),
            }
            is_further |= self.understand(known, monotonic);
            if self.input.len() > LONGEST_INPUT {
                self.close("it sends what no replica sends");
            }
        }
        is_further
    }

    /// Whether it may have sent more.
    pub(super) fn has_unread(&self) -> bool {
        self.readable && self.close_reason.is_none()
    }

    /// Parses what was received.
    fn understand(&mut self, known: Known, monotonic: u64) -> bool {
        let (mut is_further, mut words) = (false, Vec::new());
        let limits =
            Limits { max_bulk: LONGEST_INPUT as u64, authenticated: true, exact_line_ends: false };
        while self.close_reason.is_none() {
            words.clear();
            match self.parser.parse(&self.input, &limits, &mut words) {
                Parsed::Command { .. } => {
                    let argv = self.parser.arguments(&self.input, &words);
                    let Some(said) = acknowledgement(argv) else {
                        self.close("it sends commands");
                        return is_further;
                    };
                    self.replica.hear(monotonic);
                    if let Some((offset, synced)) = said {
                        // Nobody has what was never there.
                        if let Some(offset) = known.own(offset) {
                            let synced = synced.and_then(|synced| known.own(synced));
                            is_further |= self.replica.acknowledge(offset, synced, monotonic);
                        }
                        if let Stage::Loads { then } = self.stage {
                            self.begin_to_follow(then);
                            is_further = true;
                        }
                    }
                }
                // One that loads a copy for long says in this way that it lives.
                Parsed::Empty { .. } => self.replica.hear(monotonic),
                Parsed::Incomplete => break,
                Parsed::BigArgument { .. } | Parsed::Protocol(_) => {
                    self.close("it sends what no replica sends");
                }
            }
        }
        let done = self.parser.compact();
        self.input.drain(..done);
        is_further
    }

    // ---- What it gets ---------------------------------------------------------------------------

    /// Begins the stream at an offset.
    pub(super) fn begin_to_follow(&mut self, at: u64) {
        self.stage = Stage::Follows { at };
        self.was_told = false;
        self.replica.stand(Standing::Online);
    }

    /// Sends what there is, up to its share. Returns whether there may be more that it takes.
    pub(super) fn send(&mut self, engine: &Engine, backlog: &Backlog, shown: u64) -> bool {
        let mut sent = 0;
        while self.close_reason.is_none() && sent < SHARE {
            if self.transport.held_back() > 0 || self.transport.wants_write() {
                match self.transport.flush() {
                    Flushed::All => {}
                    Flushed::Part => self.writable = false,
                    Flushed::Failed => self.close("the connection failed while writing"),
                }
            }
            if !self.writable {
                return false;
            }
            if self.output.is_empty() {
                self.fill(backlog, shown);
                // What comes after a break was read after the break was noted.
                if engine.replication.breaks() != self.breaks {
                    self.close(STREAM_BROKE);
                    return false;
                }
            }
            if self.output.is_empty() {
                if matches!(self.stage, Stage::Done) {
                    self.close("it has got the copy that it wanted");
                }
                return false;
            }
            match self.transport.send(&self.output, usize::MAX) {
                Sent::Bytes(count) => {
                    self.output.advance(count);
                    sent += count;
                    self.moved_at = base::clock::monotonic_ms();
                    engine.replicas.counts.sent_bytes.fetch_add(count as u64, Relaxed);
                }
                Sent::Full => self.writable = false,
                Sent::Failed => self.close("the connection failed while writing"),
            }
        }
        true
    }

    /// Puts what comes next into the output.
    fn fill(&mut self, backlog: &Backlog, shown: u64) {
        match &mut self.stage {
            Stage::Waits | Stage::Loads { .. } | Stage::Done => {}
            Stage::Copy { .. } => self.fill_with_copy(),
            Stage::Follows { at } => match backlog.read_bytes(*at, shown, PORTION) {
                Ok(pieces) => {
                    for piece in pieces {
                        self.output.push(piece.bytes());
                        *at = piece.end();
                    }
                }
                Err(_) => self.close("what it needs next of the stream is not kept"),
            },
        }
    }

    fn fill_with_copy(&mut self) {
        let id = self.id();
        let Stage::Copy { source, then } = &mut self.stage else { return };
        let then = *then;
        match source {
            Source::Unfinished => {}
            Source::Chunks { from, at, mark } => match from.take(id, *at) {
                Next::Chunk(chunk) => {
                    self.output.push_shared(&chunk);
                    *at += 1;
                }
                // It cannot take what is not there.
                Next::Nothing => self.moved_at = base::clock::monotonic_ms(),
                Next::End => {
                    self.output.push(mark.as_slice());
                    from.leave(id);
                    self.end_copy(Stage::Loads { then });
                }
                Next::Failed => self.close("its copy failed"),
                Next::LeftBehind => self.close(LEFT_BEHIND),
            },
            Source::File { file, at, length } => {
                let mut portion = vec![0; PORTION.min((*length - *at) as usize)];
                match file.read_exact_at(&mut portion, *at) {
                    Ok(()) => {
                        *at += portion.len() as u64;
                        self.output.push(&portion);
                        if *at == *length {
                            self.end_copy(Stage::Follows { at: then });
                        }
                    }
                    Err(error) => self.close(format!("its copy cannot be read: {error}")),
                }
            }
        }
    }

    /// The whole copy is in the output.
    fn end_copy(&mut self, next: Stage) {
        if self.introduction().copy_alone {
            self.stage = Stage::Done;
            return self.replica.stand(Standing::HasCopy);
        }
        self.replica.hear(base::clock::monotonic_ms());
        self.stage = next;
        match self.stage {
            // Redis shows one that loads a copy with a mark as online.
            Stage::Follows { .. } | Stage::Loads { .. } => self.replica.stand(Standing::Online),
            _ => {}
        }
    }

    /// Whether a copy can be sent to it without its length.
    pub(super) fn finds_end(&self) -> bool {
        self.introduction().has(capability::END_MARK)
    }

    // ---- How much waits -------------------------------------------------------------------------

    /// Bytes that wait for it: what is in the output, and what it has not got of the stream.
    pub(super) fn waiting(&self, end: u64) -> u64 {
        let stream = self.needs().map_or(0, |at| end.saturating_sub(at));
        stream + self.output.len() as u64
    }

    /// Closes it when more waits than `client-output-buffer-limit replica` allows.
    pub(super) fn look_at_limits(&mut self, engine: &Engine, end: u64, monotonic: u64) {
        let waiting = self.waiting(end);
        self.replica.waiting.store(waiting, Relaxed);
        self.replica.client.note_output(waiting as usize, self.output.memory());
        let config = engine.config.load();
        let (hard, soft) = limits(&config);
        let is_over = |limit: u64| limit > 0 && waiting > limit;
        if is_over(hard) {
            return self.close("it went over the hard limit of client-output-buffer-limit replica");
        }
        if !is_over(soft) {
            self.over_soft_limit_since = None;
            return;
        }
        let since = *self.over_soft_limit_since.get_or_insert(monotonic);
        let patience = config.client_output_buffer_limits.replica.soft_seconds * 1000;
        if monotonic.saturating_sub(since) > patience {
            self.close("it went over the soft limit of client-output-buffer-limit replica");
        }
    }

    /// For how many tenths of the time writes are to wait, so that it need not be closed.
    pub(super) fn slows_writers(&mut self, config: &Config, end: u64, monotonic: u64) -> u8 {
        let Some(pace) = self.pace(monotonic) else { return 0 };
        let (hard, soft) = limits(config);
        let limit = [hard, soft].into_iter().filter(|limit| *limit > 0).min().unwrap_or(0);
        slowing::tenths_for(self.waiting(end), pace, limit)
    }

    /// Bytes of the stream that it takes in a second, if it follows the stream. They are counted
    /// each second; before the first count it is taken to be fast.
    fn pace(&mut self, monotonic: u64) -> Option<u64> {
        let Stage::Follows { at } = self.stage else { return None };
        let own = self.paced.get_or_insert(Paced { at, since: monotonic, pace: u64::MAX });
        let passed = monotonic.saturating_sub(own.since);
        if passed >= 1000 {
            let pace = at.saturating_sub(own.at).saturating_mul(1000) / passed;
            *own = Paced { at, since: monotonic, pace };
        }
        Some(own.pace)
    }
}

/// The hard and the soft limit in bytes; 0 is none. As in Redis: a limit below the backlog's size
/// would only end links that cost nothing.
fn limits(config: &Config) -> (u64, u64) {
    let limits = config.client_output_buffer_limits.replica;
    let [hard, soft] = [limits.hard_bytes, limits.soft_bytes].map(|bytes| match bytes {
        0 => 0,
        bytes => bytes.max(config.repl_backlog_size),
    });
    (hard, soft)
}

/// The offsets of a REPLCONF ACK: those of the stream that it has applied, and that its own file
/// has. Inside is nothing for words of a replica that say nothing of this; nothing at all is said
/// of other commands, to which there would be a reply.
#[expect(clippy::option_option, reason = "see above")]
fn acknowledgement(argv: Arguments<'_>) -> Option<Option<(u64, Option<u64>)>> {
    let is = |index: usize, word: &[u8]| {
        argv.get(index).is_some_and(|own| own.eq_ignore_ascii_case(word))
    };
    if !is(0, b"replconf") || argv.len().is_multiple_of(2) {
        return None;
    }
    if is(1, b"getack") {
        return Some(None);
    }
    if !is(1, b"ack") {
        return None;
    }
    let number = |index: usize| {
        let number = argv.get(index).and_then(base::num::parse_i64);
        number.and_then(|number| u64::try_from(number).ok())
    };
    let synced = if is(3, b"fack") { number(4) } else { None };
    Some(number(2).map(|offset| (offset, synced)))
}

#[cfg(test)]
mod tests {
    use resp::args::OwnedArguments;

    use super::*;

    fn said(line: &str) -> Option<Option<(u64, Option<u64>)>> {
        acknowledgement(line.split(' ').collect::<OwnedArguments>().view())
    }

    #[test]
    fn only_acknowledgements_come_on_a_link() {
        assert_eq!(said("REPLCONF ACK 150"), Some(Some((150, None))));
        assert_eq!(said("replconf ack 150 fack 7"), Some(Some((150, Some(7)))));
        for silent in ["REPLCONF ACK x", "REPLCONF ACK -1", "REPLCONF GETACK *"] {
            assert_eq!(said(silent), Some(None), "{silent}");
        }
        for command in ["PING", "REPLCONF", "REPLCONF ACK", "REPLCONF capa eof", "SET k v"] {
            assert_eq!(said(command), None, "{command}");
        }
    }
}
