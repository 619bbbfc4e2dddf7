//! A request on its way to its answer.

mod choice;
mod choosing;
mod get_request;
mod next;
mod range;
mod streaming;
mod view;
mod walks;
mod withheld;

use std::sync::Arc;

use base::limits;
use commands::http::metadata::{ABSENT, CREATED, Metadata, REPLACED, UNCONDITIONAL};
use engine::journal::filter::Filter;
use engine::session::sync::SyncWait;
use engine::session::{Session, Transaction, User};
use http::answer::{Answer, Envelope, JSON};
use http::reply::{Piece, Pieces};
use http::request::Refusal;
use http::tag::{Tag, Tags, Variant};
use http::translation::{Form, Progress, Strings, Translation};
use resp::output::Output;
use resp::reply::Reply;

use super::changes::{NextStep, Wait, begin_events, position_of, told_gone};
use super::etcd::answer::{EventStep, Watch, answer_node};
use super::prepared::{Prepared, in_own_words};

pub(super) use choice::Choice;
pub(super) use get_request::{GetOptions, GetRequest, PlainGet};
pub(super) use next::Next;
use streaming::Streaming;
pub(super) use walks::{List, Tree};

/// The form in which a client that sends commands gets replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) resp3: bool,
    pub(super) strings: Strings,
}

/// The kind of a request.
pub(super) enum Kind {
    /// It is answered already.
    Ready(Box<Prepared>),
    /// GET or HEAD of a key.
    Get(GetRequest),
    /// PUT, PATCH, POST or DELETE of a key.
    Write,
    /// Figures, in the format of OpenMetrics or in the older one of Prometheus.
    Metrics { open: bool },
    /// One command.
    One(Style),
    /// Commands one after the other: how many replies are still to come, those that have come, and
    /// whether the head of the answer is written.
    Pipeline { style: Style, left: usize, replies: Box<Streaming>, begun: bool },
    /// Commands as one, with EXEC after them.
    Transaction { style: Style, left: usize, begun: bool, condition: Condition },
    /// A command whose reply is the answer.
    Json,
    /// An answer whose head is written. It goes on as the client takes it.
    Streaming(Box<Streaming>),
    /// A command whose reply is a number, and the name of that number.
    Count(&'static str),
    /// A result of a database, and the versions of it that the client has.
    View(Option<Box<Tags>>),
    /// The names of keys.
    List(Box<List>),
    /// A key with all keys below it.
    Tree(Box<Tree>),
    /// A key that is waited for.
    Wait(Box<Wait>, Option<Box<GetOptions>>),
    /// Changes from a position on, without an end.
    Follow(Box<Filter>),
    /// A node of the tree of `/v2/keys`.
    Node,
    /// Waits for events of a node.
    Watch(Box<Watch>),
}

/// The condition of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// On nothing.
    None,
    /// A command of the transaction was refused: the reply that says why.
    Spoilt(Vec<u8>),
    /// The command before it decides.
    Open,
    /// It may run as long as the key stays as it is.
    Met,
    /// It may not run: the reply that says why.
    Refused(Vec<u8>),
}

impl Kind {
    pub(super) fn ready(prepared: Prepared) -> Kind {
        Kind::Ready(Box::new(prepared))
    }

    /// This many commands, one after the other.
    pub(super) fn pipeline(style: Style, left: usize, chunked: bool) -> Kind {
        let translation = Translation::row_of_outcomes(left, style.strings);
        let replies = Box::new(Streaming::new(translation, chunked));
        Kind::Pipeline { style, left, replies, begun: false }
    }

    /// Whether the answer goes on until the connection ends.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Kind::Follow(_) => true,
            Kind::Watch(watch) => watch.ends_connection(),
            _ => false,
        }
    }
}

/// See the module's text.
pub(super) struct Exchange {
    pub(super) envelope: Envelope,
    kind: Kind,
    database: usize,
    /// Who has sent it, until its first command begins; absent if that is the user of the request
    /// before it.
    user: Option<User>,
    /// What the client has chosen for this request.
    choice: Option<Box<Choice>>,
    /// The session's last write before the first command of the request.
    written_before: Option<u64>,
    /// What the answer is going to wait for.
    withholds: Option<SyncWait>,
    /// An answer that waits for the durability which the client has chosen.
    withheld: Option<Box<withheld::Withheld>>,
    /// Until when it waits for a primary of its slot, once it has begun.
    primary_awaited_until: Option<u64>,
}

impl Exchange {
    pub(super) fn new(envelope: Envelope, kind: Kind, database: usize) -> Exchange {
        Exchange {
            envelope,
            kind,
            database,
            user: None,
            choice: None,
            written_before: None,
            withholds: None,
            withheld: None,
            primary_awaited_until: None,
        }
    }

    pub(super) fn prepared(envelope: Envelope, prepared: Prepared) -> Exchange {
        Exchange::new(envelope, Kind::ready(prepared), 0)
    }

    /// Something that is no request.
    pub(super) fn refused(refusal: Refusal) -> Exchange {
        let envelope = Envelope { close: true, ..Envelope::default() };
        Exchange::prepared(envelope, Prepared::error(refusal.status, refusal.reason))
    }

    /// Says who has sent it.
    pub(super) fn of_user(mut self, user: Option<User>) -> Exchange {
        self.user = user;
        self
    }

    /// The user whom the session gets for it.
    pub(super) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// The question that is all of the request apart from its key, if it has so simple an answer.
    pub(super) fn question(&self) -> Option<PlainGet> {
        let Envelope { head, close, keeps_1_0, origin, id, position, .. } = &self.envelope;
        let is_said_in_head = origin.is_some() || id.is_some() || position.is_some();
        match &self.kind {
            Kind::Get(GetRequest::Plain(question))
                if self.choice.is_none()
                    && !(*head
                        || *close
                        || *keeps_1_0
                        || is_said_in_head
                        || self.database != 0) =>
            {
                Some(*question)
            }
            _ => None,
        }
    }

    /// Whether its answer depends on no command.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.kind, Kind::Ready(_))
    }

    /// Bytes of the body of such an answer.
    pub(super) fn prepared_length(&self) -> usize {
        if let Kind::Ready(prepared) = &self.kind { prepared.body.len() } else { 0 }
    }

    /// Writes such an answer.
    pub(super) fn write_ready(self, now: u64, output: &mut Output) {
        let Kind::Ready(prepared) = self.kind else { return };
        let mut answer = Answer::begin(output, &self.envelope, prepared.status, now);
        for (name, value) in &prepared.headers {
            answer.header(name, value);
        }
        if prepared.content_type.is_empty() {
            answer.empty();
        } else {
            answer.text_body(prepared.content_type, &prepared.body);
        }
    }

    /// The replies of which an answer is still to be made.
    fn gathered(&self) -> Option<&Streaming> {
        match &self.kind {
            Kind::Pipeline { replies: streaming, .. } | Kind::Streaming(streaming) => {
                Some(streaming)
            }
            _ => None,
        }
    }

    /// Bytes of memory that they keep alive.
    pub(super) fn gathered_memory(&self) -> usize {
        self.gathered().map_or(0, Streaming::memory)
    }

    /// Bytes that they have.
    pub(super) fn gathered_length(&self) -> usize {
        self.gathered().map_or(0, Streaming::len)
    }

    /// Whether its answer goes on when the client has taken what is written.
    #[inline]
    pub(super) fn streams(&self) -> bool {
        match &self.kind {
            Kind::Pipeline { replies, begun, .. } => *begun && replies.len() > 0,
            Kind::Streaming(_) => true,
            _ => false,
        }
    }

    /// Writes the next piece of such an answer.
    pub(super) fn go_on(&mut self, output: &mut Output) -> Next {
        match &mut self.kind {
            Kind::Streaming(streaming) => match streaming.write(output) {
                Progress::Complete => Next::Answered,
                Progress::Part => Next::Waits,
                Progress::BreaksOff => Next::Breaks,
            },
            // It breaks off where the next reply is to come.
            Kind::Pipeline { replies, begun: true, .. } => {
                let _ = replies.write(output);
                Next::Waits
            }
            _ => Next::Waits,
        }
    }

    /// Makes its answer one that goes on as the client takes it.
    pub(super) fn stream(&mut self, streaming: Box<Streaming>) {
        self.kind = Kind::Streaming(streaming);
    }

    /// Whether the client waits for a change of a key, or for copies of what is written already:
    /// it takes nothing from the data.
    pub(super) fn only_waits(&self) -> bool {
        matches!(self.kind, Kind::Wait(..)) || self.withheld.is_some()
    }

    /// Prepares the session for its next command.
    pub(super) fn begin(&mut self, monotonic: u64, session: &mut Session) {
        self.choose(monotonic, session);
        self.await_primary(monotonic, session);
        if let Some(user) = self.user.take() {
            session.set_user(user);
        }
        if session.database != self.database {
            session.select(self.database);
        }
        session.resp3 = match &mut self.kind {
            Kind::One(style) | Kind::Pipeline { style, .. } => style.resp3,
            Kind::Transaction { condition: Condition::Open, .. } => true,
            Kind::Transaction { style, begun, condition, .. } => {
                if !std::mem::replace(begun, true) {
                    let aborted = matches!(condition, Condition::Refused(_));
                    session.transaction =
                        Some(Box::new(Transaction { aborted, ..Transaction::default() }));
                }
                style.resp3
            }
            _ => true,
        };
    }

    /// Takes the reply of a command, and writes the answer if it was the last.
    pub(super) fn take_reply(
        &mut self,
        (now, monotonic): (u64, u64),
        reply: &mut Output,
        output: &mut Output,
    ) -> Next {
        let Exchange { envelope, kind, .. } = self;
        // These look at the reply where it lies: it may be large, or shared.
        match kind {
            Kind::Get(want) => return answer_get(want.parts(), envelope, now, reply, output),
            Kind::Wait(wait, get) => {
                return take_of_wait(
                    (wait, get.as_deref()),
                    envelope,
                    (now, monotonic),
                    reply,
                    output,
                );
            }
            Kind::Watch(watch) => {
                return match watch.take(reply, envelope, now, output) {
                    EventStep::Answered => Next::Answered,
                    EventStep::Waits(argv) => Next::Watches(argv),
                    EventStep::GoesOn(argv) => Next::GoesOn(argv),
                    EventStep::Breaks => Next::Breaks,
                };
            }
            Kind::View(none_match) => {
                let mut pieces = Pieces::new(reply.first_slice());
                let tags = none_match.as_deref();
                if view::answer_view(&mut pieces, tags, envelope, now, reply, output).is_none() {
                    answer_error(Pieces::new(reply.first_slice()), envelope, now, output);
                }
                return Next::Answered;
            }
            Kind::Node => {
                answer_node(reply, envelope, now, output);
                return Next::Answered;
            }
            Kind::Pipeline { left, replies, begun, .. } => {
                *left -= 1;
                let is_last = *left == 0;
                take_of_pipeline(reply, replies);
                let next = go_on_with_pipeline(replies, (is_last, begun), envelope, now, output);
                if !(is_last && matches!(next, Next::Waits)) {
                    return next;
                }
                let Kind::Pipeline { replies, .. } = std::mem::replace(kind, Kind::Json) else {
                    return Next::Breaks;
                };
                return Next::Streams(replies);
            }
            Kind::One(style) => {
                let status = match Pieces::of(reply).next() {
                    Some(Piece::Error(text)) => status_of(text, envelope),
                    _ => 200,
                };
                let form = Translation::outcome(style.strings);
                return answer_in(form, (status, JSON), envelope, now, (reply, output), |_| {});
            }
            Kind::Json if !matches!(Pieces::of(reply).next(), Some(Piece::Error(_))) => {
                let form = Translation::new(Form::Json(Strings::Tagged));
                return answer_in(form, (200, JSON), envelope, now, (reply, output), |_| {});
            }
            Kind::Transaction { style, left: 1, condition, .. } => {
                return answer_exec((*style, condition), envelope, now, reply, output);
            }
            _ => {}
        }
        let bytes = reply.bytes();
        let mut pieces = Pieces::new(&bytes);
        let answered = |()| Next::Answered;
        let next = match kind {
            Kind::Ready(_) | Kind::Get(_) | Kind::Wait(..) | Kind::View(_) => None,
            Kind::Watch(_) | Kind::Node | Kind::Json | Kind::One(_) => None,
            Kind::Pipeline { .. } | Kind::Streaming(_) => None,
            Kind::Follow(filter) => position_of(&mut pieces).map(|position| {
                let from = begin_events(position, envelope, now, output);
                Next::Follows(Filter::clone(filter), from)
            }),
            Kind::Write => answer_write(&mut pieces, envelope, now, output).map(answered),
            Kind::Metrics { open } => {
                answer_metrics(&mut pieces, *open, envelope, now, output).map(answered)
            }
            Kind::Transaction { condition: condition @ Condition::Open, .. } => {
                *condition = condition_of(&bytes);
                Some(Next::Waits)
            }
            Kind::Transaction { left, condition, .. } => {
                *left -= 1;
                // The reply is QUEUED, or an error that makes EXEC fail.
                let is_refused = matches!(pieces.next(), Some(Piece::Error(_)));
                if is_refused && matches!(condition, Condition::None | Condition::Met) {
                    *condition = Condition::Spoilt(bytes.to_vec());
                }
                Some(Next::Waits)
            }
            Kind::Count(name) => {
                answer_count(&mut pieces, name, envelope, now, output).map(answered)
            }
            Kind::List(list) => take_of_list(&mut pieces, list, envelope, now, output),
            Kind::Tree(tree) => take_of_tree(&mut pieces, tree, envelope, now, output),
        };
        next.unwrap_or_else(|| {
            answer_error(Pieces::new(&bytes), envelope, now, output);
            Next::Answered
        })
    }

    /// Answers that the server stops, in place of the answer.
    pub(super) fn stop(mut self, times: (u64, u64), output: &mut Output) {
        if self.stop_withheld(times.0, output) {
            return;
        }
        let mut reply = Output::new();
        Reply::new(&mut reply, true).error(b"STOPPING the server stops");
        match self.kind {
            // What the client has of these is a part of an answer, and no error can follow it.
            Kind::Pipeline { begun: true, .. } | Kind::Streaming(_) => {}
            // These would wait for more replies.
            Kind::Pipeline { .. } | Kind::Transaction { .. } => {
                answer_error(Pieces::new(&reply.bytes()), &self.envelope, times.0, output);
            }
            _ => drop(self.take_reply(times, &mut reply, output)),
        }
    }
}

/// The next step of a request that waits for a key.
fn take_of_wait(
    (wait, get): (&mut Wait, Option<&GetOptions>),
    envelope: &mut Envelope,
    (now, monotonic): (u64, u64),
    reply: &mut Output,
    output: &mut Output,
) -> Next {
    let tags = get.and_then(|get| get.none_match.as_ref());
    match wait.take(reply, tags, monotonic) {
        NextStep::Runs(argv) => return Next::Runs(argv),
        NextStep::Reads(argv) => return Next::Reads(argv),
        NextStep::Answer => {
            envelope.position = wait.position();
            return answer_get((None, get), envelope, now, reply, output);
        }
        NextStep::Nothing => {
            envelope.position = wait.position();
            Answer::begin(output, envelope, 304, now).empty();
        }
        NextStep::Failed => answer_error(Pieces::new(&reply.bytes()), envelope, now, output),
    }
    Next::Answered
}

/// Writes a reply in the form that the client takes: at once, or piece by piece if it is long.
/// `say` adds to the head of the answer.
fn answer_in(
    form: Translation,
    (status, content_type): (u16, &str),
    envelope: &mut Envelope,
    now: u64,
    (reply, output): (&mut Output, &mut Output),
    say: impl FnOnce(&mut Answer<'_>),
) -> Next {
    let mut streaming = Box::new(Streaming::new(form, !envelope.is_1_0));
    streaming.add(reply);
    if streaming.len() > limits::HTTP_WHOLE {
        return stream((status, content_type), streaming, envelope, now, output, say);
    }
    let Some(text) = streaming.whole() else {
        answer_error(Pieces::new(b""), envelope, now, output);
        return Next::Answered;
    };
    let mut answer = Answer::begin(output, envelope, status, now);
    say(&mut answer);
    answer.text_body(content_type, &text);
    Next::Answered
}

/// Begins an answer that goes on as the client takes it.
fn stream(
    (status, content_type): (u16, &str),
    mut streaming: Box<Streaming>,
    envelope: &mut Envelope,
    now: u64,
    output: &mut Output,
    say: impl FnOnce(&mut Answer<'_>),
) -> Next {
    if envelope.is_1_0 {
        // Only the end of the connection tells the end of the answer.
        (envelope.close, envelope.keeps_1_0) = (true, false);
    }
    let mut answer = Answer::begin(output, envelope, status, now);
    say(&mut answer);
    streaming.end_head(answer, content_type);
    if envelope.head {
        return Next::Answered;
    }
    match streaming.write(output) {
        Progress::Complete => Next::Answered,
        Progress::Part => Next::Streams(streaming),
        Progress::BreaksOff => Next::Breaks,
    }
}

/// Adds the reply of one of several commands.
fn take_of_pipeline(reply: &mut Output, replies: &mut Streaming) {
    // Looking through a long reply takes long.
    if reply.len() > limits::HTTP_WHOLE || Pieces::of(reply).are_whole() {
        return replies.add(reply);
    }
    // The replies of the other commands still belong to this request.
    let mut own = Output::new();
    Reply::new(&mut own, true).error(b"ERR the reply is not as expected");
    replies.add(&mut own);
}

/// Answers what has come of several commands, if that is all, or so much that the client is to take
/// it first.
fn go_on_with_pipeline(
    replies: &mut Streaming,
    (is_last, begun): (bool, &mut bool),
    envelope: &mut Envelope,
    now: u64,
    output: &mut Output,
) -> Next {
    if !*begun && replies.len() <= limits::HTTP_WHOLE {
        if !is_last {
            return Next::Waits;
        }
        match replies.whole() {
            Some(text) => Answer::begin(output, envelope, 200, now).text_body(JSON, &text),
            None => answer_error(Pieces::new(b""), envelope, now, output),
        }
        return Next::Answered;
    }
    if !std::mem::replace(begun, true) {
        if envelope.is_1_0 {
            (envelope.close, envelope.keeps_1_0) = (true, false);
        }
        replies.end_head(Answer::begin(output, envelope, 200, now), JSON);
    }
    match replies.write(output) {
        Progress::Complete => Next::Answered,
        Progress::BreaksOff if is_last => Next::Breaks,
        // It breaks off where the next reply is to come.
        Progress::Part | Progress::BreaksOff => Next::Waits,
    }
}

/// What the reply to the condition of a transaction says.
fn condition_of(reply: &[u8]) -> Condition {
    let mut pieces = Pieces::new(reply);
    let met =
        pieces.next() == Some(Piece::Array(2)) && pieces.next() == Some(Piece::Integer(REPLACED));
    if met { Condition::Met } else { Condition::Refused(reply.to_vec()) }
}

/// The answer to a transaction, when EXEC has replied.
fn answer_exec(
    (style, condition): (Style, &Condition),
    envelope: &mut Envelope,
    now: u64,
    reply: &mut Output,
    output: &mut Output,
) -> Next {
    match (condition, Pieces::of(reply).next()) {
        // EXEC was refused because a queued command had been refused.
        (Condition::Refused(why), _) => {
            if answer_write(&mut Pieces::new(why), envelope, now, output).is_none() {
                answer_error(Pieces::new(why), envelope, now, output);
            }
        }
        (Condition::Spoilt(why), _) => answer_spoilt(why, envelope, now, output),
        (Condition::Met, Some(Piece::Null)) => {
            Answer::begin(output, envelope, 412, now).error(b"the key has changed meanwhile");
        }
        (_, Some(Piece::Array(_))) => {
            let form = Translation::outcomes(style.strings);
            return answer_in(form, (200, JSON), envelope, now, (reply, output), |_| {});
        }
        _ => answer_error(Pieces::of(reply), envelope, now, output),
    }
    Next::Answered
}

/// Answers a transaction of which a command was refused, and says why.
fn answer_spoilt(why: &[u8], envelope: &Envelope, now: u64, output: &mut Output) {
    let Some(Piece::Error(why)) = Pieces::new(why).next() else {
        return answer_error(Pieces::new(why), envelope, now, output);
    };
    let text = [DISCARDED, why].concat();
    Answer::begin(output, envelope, status_of(&text, envelope), now).error(&in_own_words(&text));
}

/// Takes names of keys; the answer has all of them.
fn take_of_list(
    pieces: &mut Pieces<'_>,
    list: &mut List,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<Next> {
    Some(match list.take(pieces)? {
        Err(next) => Next::Runs(next),
        Ok(text) => {
            Answer::begin(output, envelope, 200, now).text_body(JSON, &text);
            Next::Answered
        }
    })
}

/// The next step of the removal of a tree.
fn take_of_tree(
    pieces: &mut Pieces<'_>,
    tree: &mut Tree,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<Next> {
    if tree.is_refused(pieces.clone()) {
        return answer_write(pieces, envelope, now, output).map(|()| Next::Answered);
    }
    if let Some(next) = tree.take(pieces)? {
        return Some(Next::Runs(next));
    }
    let text = format!("{{\"deleted\":{}}}", tree.deleted());
    Answer::begin(output, envelope, 200, now).text_body(JSON, text.as_bytes());
    Some(Next::Answered)
}

/// The answer of metrics.
fn answer_metrics(
    pieces: &mut Pieces<'_>,
    open: bool,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    let content_type = match open {
        true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        false => "text/plain; version=0.0.4; charset=utf-8",
    };
    let Some(Piece::Bytes(text)) = pieces.next() else { return None };
    Answer::begin(output, envelope, 200, now).text_body(content_type, text);
    Some(())
}

/// The answer of a number with a name.
fn answer_count(
    pieces: &mut Pieces<'_>,
    name: &str,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    let Some(Piece::Integer(count)) = pieces.next() else { return None };
    let text = format!("{{\"{name}\":{count}}}");
    Answer::begin(output, envelope, 200, now).text_body(JSON, text.as_bytes());
    Some(())
}

/// The words before the reason why a transaction was discarded.
const DISCARDED: &[u8] = b"EXECABORT Transaction discarded because of: ";

/// The status that corresponds to an error, in answer to this request.
fn status_of(text: &[u8], envelope: &Envelope) -> u16 {
    let text = text.strip_prefix(DISCARDED).unwrap_or(text);
    match text.split(|byte| *byte == b' ').next().unwrap_or_default() {
        b"LOADING" | b"MISCONF" | b"BUSY" | b"MASTERDOWN" | b"STOPPING" | b"STALE"
        | b"CLUSTERDOWN" => 503,
        b"MOVED" if envelope.location.is_some() => 307,
        b"MOVED" => 421,
        b"NODURABLE" => 504,
        b"NOHISTORY" => 412,
        b"READONLY" => 421,
        b"OOM" => 507,
        b"DATABASE" => 502,
        b"NOAUTH" | b"WRONGPASS" => 401,
        b"NOPERM" => 403,
        b"WRONGTYPE" | b"REFUSED" => 409,
        b"UNFIT" => 422,
        b"GONE" => 410,
        _ => 400,
    }
}

/// Answers a reply that is an error, or not the expected one.
fn answer_error(mut pieces: Pieces<'_>, envelope: &Envelope, now: u64, output: &mut Output) {
    match pieces.next() {
        Some(Piece::Error(text)) if text.starts_with(b"GONE ") => {
            Answer::begin(output, envelope, 410, now).text_body(JSON, &told_gone(text));
        }
        Some(Piece::Error(text)) => {
            Answer::begin(output, envelope, status_of(text, envelope), now)
                .error(&in_own_words(text));
        }
        _ => Answer::begin(output, envelope, 500, now).error(b"ERR the reply is not as expected"),
    }
}

/// How a key is.
struct State<'s> {
    metadata: Metadata<'s>,
    now: u64,
}

impl State<'_> {
    /// Tells the client the version, and for how long it may keep the answer. `variant` is the form
    /// of a value that has several.
    #[inline]
    fn write(&self, variant: Option<Variant>, answer: &mut Answer<'_>) {
        match variant {
            None => answer.version(self.metadata.version),
            Some(variant) => {
                // A cache keeps each form for clients that ask for it.
                answer.header("Vary", b"Accept");
                // A hash of which a field has expired has no version of which a client could say
                // that it is still the same.
                let version = Some(self.metadata.version).filter(|version| *version > 0);
                answer.represents(version.map(|version| Tag::new(version, variant)));
            }
        }
        match self.metadata.expire_at {
            None => answer.header("Cache-Control", b"no-cache"),
            Some(expire_at) => self.write_age(answer, expire_at),
        }
    }

    fn write_age(&self, answer: &mut Answer<'_>, expire_at: u64) {
        // Versions are microseconds of Unix time, or were before something pushed them further.
        let written = self.metadata.version / 1000;
        let age = self.now.saturating_sub(written) / 1000;
        let left = expire_at.saturating_sub(self.now) / 1000;
        let lifetime = format!("max-age={}", left.saturating_add(age));
        answer.header("Cache-Control", lifetime.as_bytes());
        answer.number("Age", age);
    }
}

/// The answer to GET and HEAD of a key.
#[inline]
fn answer_get(
    want: (Option<Tag>, Option<&GetOptions>),
    envelope: &mut Envelope,
    now: u64,
    reply: &mut Output,
    output: &mut Output,
) -> Next {
    let bytes = reply.first_slice();
    let mut pieces = match Metadata::usual(bytes) {
        Some((metadata, rest)) if metadata.type_name == STRING => {
            let found = (metadata, &mut Pieces::new(rest));
            if answer_string(found, want, envelope, now, reply, output).is_none() {
                answer_error(Pieces::new(b""), envelope, now, output);
            }
            return Next::Answered;
        }
        _ => Pieces::new(bytes),
    };
    match pieces.next() {
        Some(Piece::Array(3)) => {}
        Some(Piece::Null) => {
            Answer::begin(output, envelope, 404, now).error(b"there is no such key");
            return Next::Answered;
        }
        _ => {
            answer_error(Pieces::new(bytes), envelope, now, output);
            return Next::Answered;
        }
    }
    let metadata = match pieces.next() {
        Some(Piece::Bytes(metadata)) => Metadata::read(metadata),
        _ => None,
    };
    let answered = match metadata {
        Some(metadata) if metadata.type_name == STRING => {
            answer_string((metadata, &mut pieces), want, envelope, now, reply, output)
                .map(|()| Next::Answered)
        }
        Some(metadata) => {
            let (type_name, version, expire_at) =
                (metadata.type_name, metadata.version, metadata.expire_at);
            let metadata = Metadata { version, expire_at, type_name, content_type: None };
            let cursor = match pieces.next() {
                Some(Piece::Bytes(cursor)) => Some(Some(cursor.to_vec())),
                Some(Piece::Null) => Some(None),
                _ => None,
            };
            let taken = pieces.taken();
            cursor.map(|cursor| {
                reply.advance(taken);
                let state = State { metadata, now };
                answer_collection((&state, cursor), want, envelope, reply, output)
            })
        }
        None => None,
    };
    answered.unwrap_or_else(|| {
        answer_error(Pieces::new(b""), envelope, now, output);
        Next::Answered
    })
}

/// The name of the type whose values are answered as they are.
const STRING: &str = "string";

/// Answers a client whose conditions are not met, or that has the value already. Returns whether it
/// has answered. `variant` is the form of a value that has several.
#[inline]
fn answer_condition(
    state: &State<'_>,
    (unless, get): (Option<Tag>, Option<&GetOptions>),
    variant: Option<Variant>,
    envelope: &Envelope,
    output: &mut Output,
) -> bool {
    let version = state.metadata.version;
    if get.is_some_and(|get| get.matches.as_ref().is_some_and(|tags| !tags.has(version))) {
        let mut answer = Answer::begin(output, envelope, 412, state.now);
        answer.version(version);
        answer.error(b"the key has another version");
        return true;
    }
    let form = variant.unwrap_or_default();
    let none_match = get.and_then(|get| get.none_match.as_ref());
    let known = unless
        .filter(|tag| tag.is_of(version, form))
        .or_else(|| none_match.and_then(|tags| tags.of(version, form)));
    let Some(known) = known else { return false };
    let mut answer = Answer::begin(output, envelope, 304, state.now);
    state.write(variant, &mut answer);
    if variant.is_some() && version > 0 {
        // The client looks for this one among those that it has.
        answer.represents_again(known);
    }
    answer.empty();
    true
}

/// Answers a collection, of which the reply has the elements.
fn answer_collection(
    (state, cursor): (&State<'_>, Option<Vec<u8>>),
    want: (Option<Tag>, Option<&GetOptions>),
    envelope: &mut Envelope,
    reply: &mut Output,
    output: &mut Output,
) -> Next {
    let variant = want.1.map_or(Some(Variant::Plain), |get| get.form);
    let known_as = Some(variant.unwrap_or_default());
    if answer_condition(state, want, known_as, envelope, output) {
        return Next::Answered;
    }
    let (form, content_type) = match variant {
        Some(Variant::Plain) => (Form::Json(Strings::Tagged), JSON),
        Some(Variant::Text) => (Form::Lines, "text/plain; charset=utf-8"),
        Some(Variant::MsgPack) => (Form::MsgPack, "application/msgpack"),
        None => {
            Answer::begin(output, envelope, 406, state.now).error(
                b"the value is a collection: there are application/json, text/plain and \
                     application/msgpack",
            );
            return Next::Answered;
        }
    };
    let form = Translation::new(form);
    answer_in(form, (200, content_type), envelope, state.now, (reply, output), |answer| {
        state.write(variant, answer);
        answer.header("X-Type", state.metadata.type_name.as_bytes());
        if let Some(cursor) = cursor {
            answer.header("X-Cursor", &cursor);
        }
    })
}

/// A string value in a reply.
enum Value<'v> {
    Here(&'v [u8]),
    Apart(&'v Arc<Vec<u8>>),
}

#[inline]
fn answer_string(
    (metadata, pieces): (Metadata<'_>, &mut Pieces<'_>),
    want: (Option<Tag>, Option<&GetOptions>),
    envelope: &Envelope,
    now: u64,
    reply: &Output,
    output: &mut Output,
) -> Option<()> {
    let state = State { metadata, now };
    if answer_condition(&state, want, None, envelope, output) {
        return Some(());
    }
    // The cursor, which a string has not.
    pieces.next()?;
    let length = pieces.length()?;
    // A large string is stored elsewhere; its length is the last thing written here.
    let value = match pieces.rest().get(..length) {
        Some(bytes) => Value::Here(bytes),
        None => Value::Apart(reply.first_shared()?),
    };
    write_string(&value, &state, want.1, envelope, output);
    Some(())
}

#[inline]
fn write_string(
    value: &Value<'_>,
    state: &State<'_>,
    get: Option<&GetOptions>,
    envelope: &Envelope,
    output: &mut Output,
) {
    let content = state.metadata.content_type;
    let content_type = content.unwrap_or(b"application/octet-stream");
    let bytes = match value {
        Value::Here(bytes) => *bytes,
        Value::Apart(buffer) => buffer,
    };
    let asked = get.and_then(|get| {
        let version = state.metadata.version;
        get.range.filter(|_| get.if_range.as_ref().is_none_or(|tags| tags.has(version)))
    });
    let part = asked.map(|asked| range::part_of(bytes.len() as u64, asked));
    let status = match part {
        None => 200,
        Some(Some(_)) => 206,
        Some(None) => 416,
    };
    let mut answer = Answer::begin(output, envelope, status, state.now);
    state.write(None, &mut answer);
    if content.is_some() {
        // A page that a client has stored must not act in the name of this server's own pages.
        answer.header("X-Content-Type-Options", b"nosniff");
        answer.header("Content-Security-Policy", b"sandbox");
    }
    match part {
        None => match value {
            Value::Here(bytes) => answer.body(content_type, bytes),
            Value::Apart(buffer) => answer.shared_body(content_type, buffer),
        },
        Some(Some((from, to))) => {
            let range = format!("bytes {from}-{}/{}", to - 1, bytes.len());
            answer.header("Content-Range", range.as_bytes());
            answer.body(content_type, &bytes[from as usize..to as usize]);
        }
        Some(None) => {
            answer.header("Content-Range", format!("bytes */{}", bytes.len()).as_bytes());
            answer.error(b"the range is outside of the value");
        }
    }
}

/// The answer to a write of a key.
fn answer_write(
    pieces: &mut Pieces<'_>,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    let Piece::Array(2) = pieces.next()? else { return None };
    let (Piece::Integer(outcome), Piece::Integer(version)) = (pieces.next()?, pieces.next()?)
    else {
        return None;
    };
    let (status, reason): (u16, &[u8]) = match outcome {
        CREATED => (201, b""),
        REPLACED => (204, b""),
        ABSENT => (404, b"there is no such key"),
        UNCONDITIONAL => (428, b"a change of an existing key needs If-Match or If-None-Match"),
        _ => (412, b"the key has another version"),
    };
    let mut answer = Answer::begin(output, envelope, status, now);
    if version > 0 {
        answer.version(version.cast_unsigned());
    }
    if reason.is_empty() {
        answer.empty()
    } else {
        answer.error(reason)
    }
    Some(())
}
