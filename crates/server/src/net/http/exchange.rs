//! A request on its way to its answer.

mod view;
mod walks;
mod want;

use std::sync::Arc;

use engine::changes::filter::Filter;
use engine::http::{ABSENT, CREATED, Facts, REPLACED, UNCONDITIONAL};
use engine::session::{Session, Transaction};
use http::answer::{Answer, Envelope, JSON};
use http::json;
use http::reply::{self, Piece, Pieces, Strings};
use http::request::Refusal;
use http::tag::{self, Tags};
use resp::args::OwnedArguments;
use resp::output::Output;
use resp::reply::Reply;

use super::changes::{Step, Wait, begin_events, position_of, told_gone};
use super::etcd::answer::{Step as EventStep, Watch, answer_node};
use super::prepared::Prepared;

pub(super) use walks::{List, Tree};
pub(super) use want::{Form, Get, Question, Want};

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
    Get(Want),
    /// PUT, PATCH, POST or DELETE of a key.
    Write,
    /// Many keys.
    Mget,
    /// Figures, in the format of OpenMetrics or in the older one of Prometheus.
    Metrics { open: bool },
    /// One command.
    One(Style),
    /// Commands one after the other: how many replies are still to come, and the answer so far.
    Pipeline { style: Style, left: usize, text: Vec<u8> },
    /// Commands as one, with EXEC after them.
    Transaction { style: Style, left: usize, begun: bool, condition: Condition },
    /// A command whose reply is the answer.
    Json,
    /// A command whose reply is a number, and the name of that number.
    Count(&'static str),
    /// A result of a database, and the versions of it that the client has.
    View(Option<Box<Tags>>),
    /// The names of keys.
    List(Box<List>),
    /// A key with all keys below it.
    Tree(Box<Tree>),
    /// A key that is waited for.
    Wait(Box<Wait>, Option<Box<Get>>),
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
}

/// The next step after a reply.
pub(super) enum Next {
    /// The answer is written.
    Answered,
    /// More replies are to come.
    Waits,
    /// Run this; its reply comes next.
    Runs(OwnedArguments),
    /// Read a key with these words, as GET of a key does.
    Reads(OwnedArguments),
    /// The head of the answer is written: changes after this offset follow.
    Follows(Filter, u64),
    /// Wait for an event of the tree with these words.
    Watches(OwnedArguments),
    /// The same, after the written part is sent.
    GoesOn(OwnedArguments),
}

impl Exchange {
    pub(super) fn new(envelope: Envelope, kind: Kind, database: usize) -> Exchange {
        Exchange { envelope, kind, database }
    }

    pub(super) fn prepared(envelope: Envelope, prepared: Prepared) -> Exchange {
        Exchange::new(envelope, Kind::ready(prepared), 0)
    }

    /// Something that is no request.
    pub(super) fn refused(refusal: Refusal) -> Exchange {
        let envelope = Envelope { close: true, ..Envelope::default() };
        Exchange::prepared(envelope, Prepared::error(refusal.status, refusal.reason))
    }

    /// The question that is all of the request apart from its key, if it has so simple an answer.
    pub(super) fn question(&self) -> Option<Question> {
        let Envelope { head, close, keeps_1_0, origin, id, position, .. } = &self.envelope;
        let is_said_in_head = origin.is_some() || id.is_some() || position.is_some();
        match &self.kind {
            Kind::Get(Want::Plain(question))
                if !(*head || *close || *keeps_1_0 || is_said_in_head || self.database != 0) =>
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

    /// Bytes of memory of an answer that replies are still to be added to.
    pub(super) fn gathered(&self) -> usize {
        match &self.kind {
            Kind::Pipeline { text, .. } => text.capacity(),
            _ => 0,
        }
    }

    /// Bytes that such an answer has so far.
    pub(super) fn gathered_length(&self) -> usize {
        match &self.kind {
            Kind::Pipeline { text, .. } => text.len(),
            _ => 0,
        }
    }

    /// Prepares the session for its next command.
    pub(super) fn begin(&mut self, session: &mut Session) {
        // Requests without permission were refused before they got here.
        session.authenticated = true;
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
        (now, steady): (u64, u64),
        reply: &Output,
        output: &mut Output,
    ) -> Next {
        let Exchange { envelope, kind, .. } = self;
        // These look at the reply where it lies: it may be large, or shared.
        match kind {
            Kind::Get(want) => {
                answer_get(want.parts(), envelope, now, reply, output);
                return Next::Answered;
            }
            Kind::Wait(wait, get) => {
                return take_of_wait(
                    (wait, get.as_deref()),
                    envelope,
                    (now, steady),
                    reply,
                    output,
                );
            }
            Kind::Watch(watch) => {
                return match watch.take(reply, envelope, now, output) {
                    EventStep::Answered => Next::Answered,
                    EventStep::Waits(argv) => Next::Watches(argv),
                    EventStep::GoesOn(argv) => Next::GoesOn(argv),
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
            _ => {}
        }
        let bytes = reply.bytes();
        let mut pieces = Pieces::new(&bytes);
        let answered = |()| Next::Answered;
        let next = match kind {
            Kind::Ready(_) | Kind::Get(_) | Kind::Wait(..) | Kind::View(_) => None,
            Kind::Watch(_) | Kind::Node => None,
            Kind::Follow(filter) => position_of(&mut pieces).map(|position| {
                let from = begin_events(position, envelope, now, output);
                Next::Follows(Filter::clone(filter), from)
            }),
            Kind::Write => answer_write(&mut pieces, envelope, now, output).map(answered),
            Kind::Metrics { open } => {
                answer_metrics(&mut pieces, *open, envelope, now, output).map(answered)
            }
            Kind::Mget => answer_mget(&mut pieces, envelope, now, output).map(answered),
            Kind::One(style) => {
                answer_one(&mut pieces, *style, envelope, now, output).map(answered)
            }
            Kind::Pipeline { style, left, text } => {
                Some(take_of_pipeline(&mut pieces, (*style, left, text), envelope, now, output))
            }
            Kind::Transaction { condition: condition @ Condition::Open, .. } => {
                *condition = condition_of(&bytes);
                Some(Next::Waits)
            }
            Kind::Transaction { style, left, condition, .. } => {
                *left -= 1;
                match *left {
                    0 => answer_exec(&mut pieces, (*style, condition), envelope, now, output)
                        .map(answered),
                    // The reply is QUEUED, or an error that makes EXEC fail.
                    _ => Some(Next::Waits),
                }
            }
            Kind::Count(name) => {
                answer_count(&mut pieces, name, envelope, now, output).map(answered)
            }
            Kind::Json => answer_json(pieces.clone(), envelope, now, output).map(answered),
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
        let mut reply = Output::new();
        Reply::new(&mut reply, true).error(b"STOPPING the server stops");
        match self.kind {
            // These would wait for more replies.
            Kind::Pipeline { .. } | Kind::Transaction { .. } => {
                answer_error(Pieces::new(&reply.bytes()), &self.envelope, times.0, output);
            }
            _ => drop(self.take_reply(times, &reply, output)),
        }
    }
}

/// The next step of a request that waits for a key.
fn take_of_wait(
    (wait, get): (&mut Wait, Option<&Get>),
    envelope: &mut Envelope,
    (now, steady): (u64, u64),
    reply: &Output,
    output: &mut Output,
) -> Next {
    let tags = get.and_then(|get| get.none_match.as_ref());
    match wait.take(reply, tags, steady) {
        Step::Runs(argv) => return Next::Runs(argv),
        Step::Reads(argv) => return Next::Reads(argv),
        Step::Answer => {
            envelope.position = wait.position();
            answer_get((None, get), envelope, now, reply, output);
        }
        Step::Nothing => {
            envelope.position = wait.position();
            Answer::begin(output, envelope, 304, now).empty();
        }
        Step::Failed => answer_error(Pieces::new(&reply.bytes()), envelope, now, output),
    }
    Next::Answered
}

/// Adds the reply of one of several commands.
fn take_of_pipeline(
    pieces: &mut Pieces<'_>,
    (style, left, text): (Style, &mut usize, &mut Vec<u8>),
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Next {
    *left -= 1;
    let (last, before) = (*left == 0, text.len());
    if reply::write_outcome(pieces, style.strings, text).is_none() {
        // The replies of the other commands still belong to this request.
        text.truncate(before);
        text.extend_from_slice(br#"{"error":"ERR the reply is not as expected"}"#);
    }
    text.push(if last { b']' } else { b',' });
    if !last {
        return Next::Waits;
    }
    Answer::begin(output, envelope, 200, now).text_body(JSON, text);
    Next::Answered
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
    pieces: &mut Pieces<'_>,
    (style, condition): (Style, &Condition),
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    match condition {
        // EXEC was refused because a queued command had been refused.
        Condition::Refused(reply) => {
            if answer_write(&mut Pieces::new(reply), envelope, now, output).is_none() {
                answer_error(Pieces::new(reply), envelope, now, output);
            }
        }
        Condition::Met if pieces.clone().next() == Some(Piece::Null) => {
            Answer::begin(output, envelope, 412, now).error(b"the key has changed meanwhile");
        }
        _ => return answer_transaction(pieces, style, envelope, now, output),
    }
    Some(())
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

/// The answer of figures.
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

/// The status that corresponds to an error.
fn status_of(text: &[u8]) -> u16 {
    match text.split(|byte| *byte == b' ').next().unwrap_or_default() {
        b"LOADING" | b"MISCONF" | b"BUSY" | b"MASTERDOWN" | b"STOPPING" => 503,
        b"OOM" => 507,
        b"DATABASE" => 502,
        b"NOAUTH" => 401,
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
            Answer::begin(output, envelope, status_of(text), now).error(text);
        }
        _ => Answer::begin(output, envelope, 500, now).error(b"ERR the reply is not as expected"),
    }
}

/// How a key is.
struct State<'s> {
    facts: Facts<'s>,
    now: u64,
}

impl State<'_> {
    /// Tells the client the version, and for how long it may keep the answer.
    #[inline]
    fn write(&self, answer: &mut Answer<'_>) {
        answer.version(self.facts.version);
        match self.facts.expire_at {
            None => answer.header("Cache-Control", b"no-cache"),
            Some(expire_at) => self.write_age(answer, expire_at),
        }
    }

    fn write_age(&self, answer: &mut Answer<'_>, expire_at: u64) {
        // Versions are microseconds of Unix time, or were before something pushed them further.
        let written = self.facts.version / 1000;
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
    want: (Option<u64>, Option<&Get>),
    envelope: &Envelope,
    now: u64,
    reply: &Output,
    output: &mut Output,
) {
    let bytes = reply.first_slice();
    if let Some((facts, rest)) = Facts::usual(bytes) {
        let found = (facts, &mut Pieces::new(rest));
        if answer_found(found, want, envelope, now, reply, output).is_none() {
            answer_error(Pieces::new(b""), envelope, now, output);
        }
        return;
    }
    let mut pieces = Pieces::new(bytes);
    match pieces.next() {
        Some(Piece::Array(3)) => {}
        Some(Piece::Null) => {
            return Answer::begin(output, envelope, 404, now).error(b"there is no such key");
        }
        _ => return answer_error(Pieces::new(reply.first_slice()), envelope, now, output),
    }
    let facts = match pieces.next() {
        Some(Piece::Bytes(facts)) => Facts::read(facts),
        _ => None,
    };
    let answered = facts
        .and_then(|facts| answer_found((facts, &mut pieces), want, envelope, now, reply, output));
    if answered.is_none() {
        answer_error(Pieces::new(b""), envelope, now, output);
    }
}

#[inline]
fn answer_found(
    (facts, pieces): (Facts<'_>, &mut Pieces<'_>),
    (unless, get): (Option<u64>, Option<&Get>),
    envelope: &Envelope,
    now: u64,
    reply: &Output,
    output: &mut Output,
) -> Option<()> {
    let state = State { facts, now };
    let is_string = facts.type_name == "string";
    if get.is_some_and(|get| get.matches.as_ref().is_some_and(|tags| !tags.has(facts.version))) {
        let mut answer = Answer::begin(output, envelope, 412, now);
        answer.version(facts.version);
        answer.error(b"the key has another version");
        return Some(());
    }
    let none_match = get.and_then(|get| get.none_match.as_ref());
    if unless == Some(facts.version) || none_match.is_some_and(|tags| tags.has(facts.version)) {
        let mut answer = Answer::begin(output, envelope, 304, now);
        state.write(&mut answer);
        if !is_string {
            answer.header("Vary", b"Accept");
        }
        answer.empty();
        return Some(());
    }
    let cursor = match pieces.next()? {
        Piece::Bytes(cursor) => Some(cursor),
        _ => None,
    };
    if is_string {
        let length = pieces.length()?;
        // A large string is stored elsewhere; its length is the last thing written here.
        let value = match pieces.rest().get(..length) {
            Some(bytes) => Value::Here(bytes),
            None => Value::Apart(reply.first_shared()?),
        };
        answer_string(&value, &state, get, envelope, output);
        return Some(());
    }
    let Some(form) = get.map_or(Some(Form::Json), |get| get.form) else {
        Answer::begin(output, envelope, 406, now).error(
            b"the value is a collection: there are application/json, text/plain and \
                     application/msgpack",
        );
        return Some(());
    };
    let joined = reply.bytes();
    let mut pieces = Pieces::new(&joined);
    // Up to the value, as above.
    (0..3).try_for_each(|_| pieces.next().map(|_| ()))?;
    let (content_type, mut body) = (content_type(form), Vec::new());
    match form {
        Form::Json => reply::write_json(&mut pieces, Strings::Tagged, &mut body)?,
        Form::Text => reply::write_lines(&mut pieces, &mut body)?,
        Form::MsgPack => reply::write_msgpack(&mut pieces, &mut body)?,
    }
    let mut answer = Answer::begin(output, envelope, 200, now);
    state.write(&mut answer);
    // A cache keeps each form for clients that ask for it.
    answer.header("Vary", b"Accept");
    answer.header("X-Type", facts.type_name.as_bytes());
    if let Some(cursor) = cursor {
        answer.header("X-Cursor", cursor);
    }
    answer.text_body(content_type, &body);
    Some(())
}

fn content_type(form: Form) -> &'static str {
    match form {
        Form::Json => JSON,
        Form::Text => "text/plain; charset=utf-8",
        Form::MsgPack => "application/msgpack",
    }
}

/// A string value in a reply.
enum Value<'v> {
    Here(&'v [u8]),
    Apart(&'v Arc<Vec<u8>>),
}

#[inline]
fn answer_string(
    value: &Value<'_>,
    state: &State<'_>,
    get: Option<&Get>,
    envelope: &Envelope,
    output: &mut Output,
) {
    let content = state.facts.content_type;
    let content_type = content.unwrap_or(b"application/octet-stream");
    let bytes = match value {
        Value::Here(bytes) => *bytes,
        Value::Apart(buffer) => buffer,
    };
    let asked = get.and_then(|get| {
        let version = state.facts.version;
        get.range.filter(|_| get.if_range.as_ref().is_none_or(|tags| tags.has(version)))
    });
    let part = asked.map(|range| part_of(bytes.len() as u64, range));
    let status = match part {
        None => 200,
        Some(Some(_)) => 206,
        Some(None) => 416,
    };
    let mut answer = Answer::begin(output, envelope, status, state.now);
    state.write(&mut answer);
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

/// Where a range begins and ends in a text of this many bytes; `None` when it contains none of them.
fn part_of(length: u64, (first, last): (Option<u64>, Option<u64>)) -> Option<(u64, u64)> {
    let (from, to) = match (first, last) {
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(length)),
        (Some(first), None) => (first, length),
        (None, Some(count)) => (length - count.min(length), length),
        (None, None) => (0, length),
    };
    (from < to).then_some((from, to))
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

/// The answer to a question for many keys.
fn answer_mget(
    pieces: &mut Pieces<'_>,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    let Piece::Array(count) = pieces.next()? else { return None };
    let mut text = b"[".to_vec();
    for index in 0..count {
        if index > 0 {
            text.push(b',');
        }
        match pieces.next()? {
            Piece::Null => text.extend_from_slice(b"null"),
            Piece::Array(3) => write_entry(pieces, now, &mut text)?,
            _ => return None,
        }
    }
    text.push(b']');
    Answer::begin(output, envelope, 200, now).text_body(JSON, &text);
    Some(())
}

fn write_entry(pieces: &mut Pieces<'_>, now: u64, text: &mut Vec<u8>) -> Option<()> {
    let Piece::Bytes(facts) = pieces.next()? else { return None };
    let facts = Facts::read(facts)?;
    text.extend_from_slice(b"{\"etag\":\"\\\"");
    text.extend_from_slice(tag::digits(facts.version, &mut [0; 16]));
    text.extend_from_slice(b"\\\"\",\"ttl\":");
    match facts.expire_at {
        Some(at) => {
            let left = at.saturating_sub(now);
            text.extend_from_slice(format!("{}.{:03}", left / 1000, left % 1000).as_bytes());
        }
        None => text.extend_from_slice(b"null"),
    }
    text.extend_from_slice(b",\"type\":");
    json::write_str(text, facts.type_name);
    text.extend_from_slice(b",\"content_type\":");
    match facts.content_type {
        Some(content_type) => json::write_text(text, content_type),
        None => text.extend_from_slice(b"null"),
    }
    // The collection is complete, so its cursor says nothing.
    pieces.next()?;
    text.extend_from_slice(b",\"value\":");
    reply::write_json(pieces, Strings::Tagged, text)?;
    text.push(b'}');
    Some(())
}

fn answer_one(
    pieces: &mut Pieces<'_>,
    style: Style,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    let status = match pieces.clone().next()? {
        Piece::Error(text) => status_of(text),
        _ => 200,
    };
    let mut text = Vec::new();
    reply::write_outcome(pieces, style.strings, &mut text)?;
    Answer::begin(output, envelope, status, now).text_body(JSON, &text);
    Some(())
}

fn answer_json(
    mut pieces: Pieces<'_>,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    if matches!(pieces.clone().next()?, Piece::Error(_)) {
        return None;
    }
    let mut text = Vec::new();
    reply::write_json(&mut pieces, Strings::Tagged, &mut text)?;
    Answer::begin(output, envelope, 200, now).text_body(JSON, &text);
    Some(())
}

fn answer_transaction(
    pieces: &mut Pieces<'_>,
    style: Style,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) -> Option<()> {
    let Piece::Array(count) = pieces.next()? else { return None };
    let mut text = b"[".to_vec();
    for index in 0..count {
        if index > 0 {
            text.push(b',');
        }
        reply::write_outcome(pieces, style.strings, &mut text)?;
    }
    text.push(b']');
    Answer::begin(output, envelope, 200, now).text_body(JSON, &text);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        assert_eq!(part_of(10, (Some(0), Some(4))), Some((0, 5)));
        assert_eq!(part_of(10, (Some(5), None)), Some((5, 10)));
        assert_eq!(part_of(10, (Some(5), Some(u64::MAX))), Some((5, 10)));
        assert_eq!(part_of(10, (None, Some(3))), Some((7, 10)));
        assert_eq!(part_of(10, (None, Some(30))), Some((0, 10)));
        assert_eq!(part_of(10, (Some(10), None)), None);
        assert_eq!(part_of(0, (None, Some(3))), None);
        assert_eq!(part_of(10, (None, Some(0))), None);
    }
}
