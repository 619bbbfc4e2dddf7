//! Requests that wait for changes, or follow them.
//!
//! Both begin with the command CHANGES. A request that waits for a key blocks in it, and reads the
//! key when something has happened. A request that follows gets its head when its position is known
//! to be kept. From then on changes are written as Server-Sent Events into the connection's output,
//! by the thread that tells followers, or by the connection's own worker while it is behind.

use commands::http::metadata::Metadata;
use engine::changes::delivery::{Form, Reading};
use engine::engine::Engine;
use engine::journal::backlog::{Gone, Position};
use engine::journal::change::Change;
use engine::session::followers::Follower;
use http::answer::{Answer, Envelope};
use http::json;
use http::reply::{Piece, Pieces};
use http::tag::Tags;
use http::translation::{self, Strings};
use resp::args::OwnedArguments;
use resp::output::Output;
use resp::reply::Reply;

/// Changes as Server-Sent Events.
pub struct ChangeEvents;

impl Form for ChangeEvents {
    fn write(&self, change: &Change<'_>, position: Option<&str>, output: &mut Vec<u8>) {
        if let Some(position) = position {
            write_id(position, output);
        }
        output.extend_from_slice(b"event: change\ndata: ");
        let mut own = Output::new();
        change.reply(position, &mut Reply::new(&mut own, true));
        // The event written just now is complete.
        let _ = translation::write(
            &mut Pieces::of(&own),
            translation::Form::Json(Strings::Tagged),
            output,
        );
        output.extend_from_slice(b"\n\n");
    }

    fn write_position(&self, position: &str, output: &mut Vec<u8>) {
        write_id(position, output);
        output.push(b'\n');
    }
}

fn write_id(position: &str, output: &mut Vec<u8>) {
    output.extend_from_slice(b"id: ");
    output.extend_from_slice(position.as_bytes());
    output.push(b'\n');
}

/// Writes the head of an answer that follows changes, and the position that it follows from.
/// Returns the offset of the position.
pub(super) fn begin_events(
    position: &[u8],
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> u64 {
    let mut answer = Answer::begin(output, envelope, 200, now);
    answer.header("Cache-Control", b"no-cache");
    // Some proxies keep back what they receive until there is more of it.
    answer.header("X-Accel-Buffering", b"no");
    answer.endless_body("text/event-stream");
    let mut text = Vec::new();
    ChangeEvents.write_position(&String::from_utf8_lossy(position), &mut text);
    output.push(&text);
    Position::parse(position).map_or(0, |position| position.offset)
}

/// The position that a reply of CHANGES begins with.
pub(super) fn position_of<'r>(pieces: &mut Pieces<'r>) -> Option<&'r [u8]> {
    match (pieces.next()?, pieces.next()?) {
        (Piece::Array(2), Piece::Bytes(position)) => Some(position),
        _ => None,
    }
}

/// The refusal, as JSON, of a position that is no longer kept.
pub(super) fn told_gone(text: &[u8]) -> Vec<u8> {
    let mut body = b"{\"error\":".to_vec();
    json::write_text(&mut body, text);
    for (name, mark) in [("oldest", OLDEST), ("newest", NEWEST)] {
        body.extend_from_slice(format!(",\"{name}\":").as_bytes());
        json::write_text(&mut body, told_position(text, mark));
    }
    body.push(b'}');
    body
}

/// The words before the positions in such a refusal.
const OLDEST: &[u8] = b"oldest=";
const NEWEST: &[u8] = b"newest=";

/// A position in such a refusal.
fn told_position<'t>(text: &'t [u8], mark: &[u8]) -> &'t [u8] {
    let mut words = text.split(|byte| *byte == b' ');
    words.find_map(|word| word.strip_prefix(mark)).unwrap_or_default()
}

/// Lets a follower read on, for a while. Returns whether the next changes are not kept any more, so
/// that the connection ends.
pub(in crate::net) fn read_on(engine: &Engine, follower: &Follower, output: &mut Output) -> bool {
    let reading = engine.read_on(follower, &ChangeEvents, output);
    if let Reading::Gone(Gone { oldest, newest }) = &reading {
        let error = "GONE the client was too slow: read the keys anew, and follow from newest";
        let mut text = b"event: gone\ndata: ".to_vec();
        let data = format!("oldest={oldest} newest={newest}");
        text.extend_from_slice(&told_gone(format!("{error} {data}").as_bytes()));
        text.extend_from_slice(b"\n\n");
        output.push(&text);
    }
    matches!(reading, Reading::Gone(_))
}

/// Tells a follower of a key that its slot has left this node of a cluster. Nothing follows.
pub(super) fn write_moved(error: &[u8], output: &mut Output) {
    let mut text = b"event: moved\ndata: {\"error\":".to_vec();
    json::write_text(&mut text, error);
    text.extend_from_slice(b"}\n\n");
    output.push(&text);
}

/// The stages of a request that waits for a key.
enum Stage {
    /// It asks for the present position.
    Asks,
    /// It looks whether the key has changed already.
    Looks,
    /// It waits.
    Waits,
    /// It reads the present value of the key.
    Reads,
}

/// A request that waits for a key.
pub(super) struct Wait {
    key: Vec<u8>,
    database: usize,
    /// The position that it waits from; empty until it is known.
    since: Vec<u8>,
    /// The client named no position, so it only wants to hear of the key, not of positions.
    from_now: bool,
    /// When it gives up, in milliseconds of the monotonic clock.
    deadline: u64,
    stage: Stage,
}

/// The next step after a reply to a waiting request.
pub(super) enum NextStep {
    /// Another command.
    Runs(OwnedArguments),
    /// Read the key with these words.
    Reads(OwnedArguments),
    /// The reply is the answer to a read, and the whole answer.
    Answer,
    /// Nothing has happened.
    Nothing,
    /// The reply is an error, or not the expected one.
    Failed,
}

impl Wait {
    /// A request for a key that waits from a position on, or without one from now on. If the client
    /// names versions that it has, the key is looked at first.
    pub(super) fn new(
        key: &[u8],
        database: usize,
        (since, has_versions): (Option<&[u8]>, bool),
        deadline: u64,
    ) -> Wait {
        let from_now = since.is_none();
        let stage = if from_now || has_versions { Stage::Asks } else { Stage::Waits };
        let since = since.unwrap_or_default().to_vec();
        Wait { key: key.into(), database, since, from_now, deadline, stage }
    }

    /// The first command.
    pub(super) fn first(&self, monotonic: u64) -> OwnedArguments {
        match self.stage {
            Stage::Asks => [&b"CHANGES"[..], b"SINCE", b"$", b"COUNT", b"0"].iter().collect(),
            _ => self.wait(monotonic),
        }
    }

    fn wait(&self, monotonic: u64) -> OwnedArguments {
        let left = self.deadline.saturating_sub(monotonic).max(1).to_string();
        let (database, left) = (self.database.to_string(), left.as_bytes());
        let words: [&[u8]; 11] = [
            b"CHANGES",
            b"SINCE",
            &self.since,
            b"KEY",
            &self.key,
            b"DB",
            database.as_bytes(),
            b"COUNT",
            b"1",
            b"BLOCK",
            left,
        ];
        words.iter().collect()
    }

    fn read(&mut self, stage: Stage) -> NextStep {
        self.stage = stage;
        NextStep::Reads([&b"GET"[..], &self.key].iter().collect())
    }

    /// The position from which to wait for the next change.
    pub(super) fn position(&self) -> Option<Box<[u8]>> {
        Some(self.since.as_slice().into())
    }

    /// Takes the reply of the last command. `tags` are those of the versions that the client has,
    /// if it names any.
    pub(super) fn take(&mut self, reply: &Output, tags: Option<&Tags>, monotonic: u64) -> NextStep {
        match self.stage {
            Stage::Reads => return NextStep::Answer,
            Stage::Looks => {
                if has_changed(reply, tags) {
                    return NextStep::Answer;
                }
                self.stage = Stage::Waits;
                return NextStep::Runs(self.wait(monotonic));
            }
            Stage::Asks | Stage::Waits => {}
        }
        // It may be a large value that other clients share: it is not copied.
        let bytes = reply.bytes();
        let mut pieces = Pieces::new(&bytes);
        let Some(position) = position_of(&mut pieces) else {
            return match Pieces::new(&bytes).next() {
                // The waiting was ended by an operator.
                Some(Piece::Null) => NextStep::Nothing,
                // More has happened at once than is kept, so it is unknown whether the key was
                // concerned.
                Some(Piece::Error(text)) if self.from_now && text.starts_with(b"GONE ") => {
                    self.since = told_position(text, NEWEST).to_vec();
                    self.read(Stage::Reads)
                }
                _ => NextStep::Failed,
            };
        };
        if self.from_now || !matches!(self.stage, Stage::Asks) {
            self.since = position.to_vec();
        }
        let happened = !matches!(pieces.next(), Some(Piece::Array(0)));
        match self.stage {
            Stage::Asks if tags.is_some() => self.read(Stage::Looks),
            Stage::Waits if happened => self.read(Stage::Reads),
            Stage::Waits if monotonic >= self.deadline => NextStep::Nothing,
            _ => {
                self.stage = Stage::Waits;
                NextStep::Runs(self.wait(monotonic))
            }
        }
    }
}

/// Whether the reply to a read has another version than the client has.
fn has_changed(reply: &Output, tags: Option<&Tags>) -> bool {
    let mut pieces = Pieces::new(reply.first_slice());
    match (pieces.next(), pieces.next()) {
        (Some(Piece::Array(_)), Some(Piece::Bytes(metadata))) => Metadata::read(metadata)
            .is_none_or(|metadata| tags.is_none_or(|tags| !tags.has(metadata.version))),
        _ => true,
    }
}
