//! A request on its way to its answer.

mod view;

use std::sync::Arc;

use base::limits;
use engine::changes::filter::Filter;
use engine::http::{ABSENT, CREATED, FAILED, Facts, REPLACED, UNCONDITIONAL};
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

/// The form in which a client that sends commands gets replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) resp3: bool,
    pub(super) strings: Strings,
}

/// The form of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
    MsgPack,
}

/// What a GET or HEAD of a key asks for besides its address.
pub(super) enum Want {
    /// The value in its usual form.
    Plain(Question),
    /// Other options.
    With(Box<Get>),
}

/// A question for a value in its usual form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The client has this version, and asks for another one.
    pub(super) unless: Option<u64>,
}

impl Want {
    /// What these options ask for.
    pub(super) fn of(get: Option<Box<Get>>) -> Want {
        match get {
            None => Want::Plain(Question { unless: None }),
            Some(get) => match get.only_version() {
                Some(version) => Want::Plain(Question { unless: Some(version) }),
                None => Want::With(get),
            },
        }
    }

    /// The version that the client has, if that is all, or the options.
    fn parts(&self) -> (Option<u64>, Option<&Get>) {
        match self {
            Want::Plain(question) => (question.unless, None),
            Want::With(get) => (None, Some(get)),
        }
    }
}

/// The options of a GET of a key besides its address.
pub(super) struct Get {
    pub(super) none_match: Option<Tags>,
    pub(super) matches: Option<Tags>,
    pub(super) range: Option<(Option<u64>, Option<u64>)>,
    pub(super) if_range: Option<Tags>,
    /// Absent if the client accepts none of the forms.
    pub(super) form: Option<Form>,
}

impl Get {
    /// The version that the client has, if it names one and nothing else.
    fn only_version(&self) -> Option<u64> {
        let Some(Tags::Versions(versions)) = &self.none_match else { return None };
        let is_all = self.matches.is_none() && self.range.is_none() && self.if_range.is_none();
        match versions[..] {
            [version] if is_all && self.form == Some(Form::Json) => Some(version),
            _ => None,
        }
    }
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

/// Characters that have a meaning in a pattern lose it.
fn literally(prefix: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(prefix.len() + 2);
    for &byte in prefix {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern
}

/// Keys that begin with the same bytes.
pub(super) struct List {
    pattern: Vec<u8>,
    limit: usize,
    names: Vec<u8>,
    found: usize,
    steps: usize,
}

impl List {
    pub(super) fn new(prefix: &[u8], limit: usize) -> List {
        let pattern = [&literally(prefix)[..], b"*"].concat();
        List { pattern, limit, names: Vec::new(), found: 0, steps: 0 }
    }

    /// The command that goes on at a cursor.
    pub(super) fn scan<'w>(&'w self, cursor: &'w [u8]) -> [&'w [u8]; 6] {
        [b"SCAN", cursor, b"MATCH", &self.pattern, b"COUNT", b"1000"]
    }

    /// Takes the result of a SCAN. Returns the answer's text, or the next command.
    fn take(&mut self, pieces: &mut Pieces<'_>) -> Option<Result<Vec<u8>, OwnedArguments>> {
        let Some(Piece::Array(2)) = pieces.next() else { return None };
        let Some(Piece::Bytes(cursor)) = pieces.next() else { return None };
        let Some(Piece::Array(count)) = pieces.next() else { return None };
        for _ in 0..count {
            if self.found > 0 {
                self.names.push(b',');
            }
            reply::write_json(pieces, Strings::Tagged, &mut self.names)?;
            self.found += 1;
        }
        self.steps += 1;
        if cursor != b"0" && self.found < self.limit && self.steps < limits::HTTP_LIST_STEPS {
            return Some(Err(owned(&self.scan(cursor))));
        }
        let mut text = b"{\"keys\":[".to_vec();
        text.append(&mut self.names);
        text.extend_from_slice(b"],\"cursor\":");
        match cursor {
            b"0" => text.extend_from_slice(b"null"),
            cursor => json::write_text(&mut text, cursor),
        }
        text.push(b'}');
        Some(Ok(text))
    }
}

/// A key that is deleted with those below it.
pub(super) struct Tree {
    pattern: Vec<u8>,
    deleted: i64,
    /// Where the search goes on; absent before it has begun.
    cursor: Option<Vec<u8>>,
    /// The found keys are being deleted.
    deletes: bool,
}

impl Tree {
    pub(super) fn new(key: &[u8]) -> Tree {
        let pattern = [&literally(key)[..], b"/*"].concat();
        Tree { pattern, deleted: 0, cursor: None, deletes: false }
    }

    /// Takes the reply of the last command. Returns the next one, if there is one.
    fn take(&mut self, pieces: &mut Pieces<'_>) -> Option<Option<OwnedArguments>> {
        let scan = |tree: &Tree, cursor: &[u8]| {
            let words = [b"SCAN", cursor, b"MATCH", &tree.pattern, b"COUNT", b"1000"];
            Some(Some(owned(&words)))
        };
        match (pieces.next()?, self.cursor.clone()) {
            (Piece::Integer(count), Some(cursor)) if self.deletes => {
                self.deleted += count;
                self.deletes = false;
                if cursor == b"0" { Some(None) } else { scan(self, &cursor) }
            }
            (Piece::Array(2), None) => {
                // The key itself: see `Exchange::take_reply`, which has looked at it.
                self.deleted += i64::from(pieces.next()? == Piece::Integer(REPLACED));
                self.cursor = Some(b"0".to_vec());
                scan(self, b"0")
            }
            (Piece::Array(2), Some(_)) => {
                let Some(Piece::Bytes(cursor)) = pieces.next() else { return None };
                let Some(Piece::Array(count)) = pieces.next() else { return None };
                self.cursor = Some(cursor.to_vec());
                if count == 0 {
                    return if cursor == b"0" { Some(None) } else { scan(self, cursor) };
                }
                let mut words: Vec<&[u8]> = vec![b"UNLINK"];
                for _ in 0..count {
                    let Some(Piece::Bytes(key)) = pieces.next() else { return None };
                    words.push(key);
                }
                self.deletes = true;
                Some(Some(owned(&words)))
            }
            _ => None,
        }
    }
}

fn owned(words: &[&[u8]]) -> OwnedArguments {
    words.iter().collect()
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
        if let Kind::Get(want) = &self.kind {
            answer_get(want.parts(), &self.envelope, now, reply, output);
            return Next::Answered;
        }
        if let Kind::Wait(wait, get) = &mut self.kind {
            let get = get.as_deref();
            let tags = get.and_then(|get| get.none_match.as_ref());
            match wait.take(reply, tags, steady) {
                Step::Runs(argv) => return Next::Runs(argv),
                Step::Reads(argv) => return Next::Reads(argv),
                Step::Answer => {
                    self.envelope.position = wait.position();
                    answer_get((None, get), &self.envelope, now, reply, output);
                    return Next::Answered;
                }
                Step::Nothing => {
                    self.envelope.position = wait.position();
                    Answer::begin(output, &self.envelope, 304, now).empty();
                    return Next::Answered;
                }
                Step::Failed => {
                    answer_error(Pieces::new(&reply.bytes()), &self.envelope, now, output);
                    return Next::Answered;
                }
            }
        }
        let envelope = &self.envelope;
        if let Kind::Watch(watch) = &mut self.kind {
            return match watch.take(reply, envelope, now, output) {
                EventStep::Answered => Next::Answered,
                EventStep::Waits(argv) => Next::Watches(argv),
                EventStep::GoesOn(argv) => Next::GoesOn(argv),
            };
        }
        if let Kind::View(none_match) = &self.kind {
            let mut pieces = Pieces::new(reply.first_slice());
            let tags = none_match.as_deref();
            if view::answer_view(&mut pieces, tags, envelope, now, reply, output).is_none() {
                answer_error(Pieces::new(reply.first_slice()), envelope, now, output);
            }
            return Next::Answered;
        }
        if let Kind::Node = &self.kind {
            answer_node(reply, envelope, now, output);
            return Next::Answered;
        }
        let bytes = reply.bytes();
        let mut pieces = Pieces::new(&bytes);
        let answered = match &mut self.kind {
            Kind::Ready(_) | Kind::Get(_) | Kind::Wait(..) | Kind::View(_) => None,
            Kind::Watch(_) | Kind::Node => None,
            Kind::Follow(filter) => match position_of(&mut pieces) {
                Some(position) => {
                    let from = begin_events(position, envelope, now, output);
                    return Next::Follows(Filter::clone(filter), from);
                }
                None => None,
            },
            Kind::Write => answer_write(&mut pieces, envelope, now, output),
            Kind::Metrics { open } => {
                let content_type = match open {
                    true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    false => "text/plain; version=0.0.4; charset=utf-8",
                };
                match pieces.next() {
                    Some(Piece::Bytes(text)) => {
                        let answer = Answer::begin(output, envelope, 200, now);
                        answer.text_body(content_type, text);
                        Some(())
                    }
                    _ => None,
                }
            }
            Kind::Mget => answer_mget(&mut pieces, envelope, now, output),
            Kind::One(style) => answer_one(&mut pieces, *style, envelope, now, output),
            Kind::Pipeline { style, left, text } => {
                *left -= 1;
                let (last, before) = (*left == 0, text.len());
                if reply::write_outcome(&mut pieces, style.strings, text).is_none() {
                    // The replies of the other commands still belong to this request.
                    text.truncate(before);
                    text.extend_from_slice(br#"{"error":"ERR the reply is not as expected"}"#);
                }
                text.push(if last { b']' } else { b',' });
                if !last {
                    return Next::Waits;
                }
                Answer::begin(output, envelope, 200, now).text_body(JSON, text);
                Some(())
            }
            Kind::Transaction { condition: condition @ Condition::Open, .. } => {
                let mut outcome = pieces.clone();
                let met = outcome.next() == Some(Piece::Array(2))
                    && outcome.next() == Some(Piece::Integer(REPLACED));
                *condition = if met { Condition::Met } else { Condition::Refused(bytes.to_vec()) };
                return Next::Waits;
            }
            Kind::Transaction { style, left, condition, .. } => {
                *left -= 1;
                if *left > 0 {
                    // The reply is QUEUED, or an error that makes EXEC fail.
                    return Next::Waits;
                }
                match condition {
                    // EXEC was refused because a queued command had been refused.
                    Condition::Refused(reply) => {
                        let refused = answer_write(&mut Pieces::new(reply), envelope, now, output);
                        if refused.is_none() {
                            answer_error(Pieces::new(reply), envelope, now, output);
                        }
                        Some(())
                    }
                    Condition::Met if pieces.clone().next() == Some(Piece::Null) => {
                        let answer = Answer::begin(output, envelope, 412, now);
                        answer.error(b"the key has changed meanwhile");
                        Some(())
                    }
                    _ => answer_transaction(&mut pieces, *style, envelope, now, output),
                }
            }
            Kind::Count(name) => match pieces.clone().next() {
                Some(Piece::Integer(count)) => {
                    let text = format!("{{\"{name}\":{count}}}");
                    Answer::begin(output, envelope, 200, now).text_body(JSON, text.as_bytes());
                    Some(())
                }
                _ => None,
            },
            Kind::Json => answer_json(pieces.clone(), envelope, now, output),
            Kind::List(list) => match list.take(&mut pieces) {
                Some(Err(next)) => return Next::Runs(next),
                Some(Ok(text)) => {
                    Answer::begin(output, envelope, 200, now).text_body(JSON, &text);
                    Some(())
                }
                None => None,
            },
            Kind::Tree(tree) => {
                if tree.cursor.is_none() && is_refused(pieces.clone()) {
                    answer_write(&mut pieces, envelope, now, output)
                } else {
                    match tree.take(&mut pieces) {
                        Some(Some(next)) => return Next::Runs(next),
                        Some(None) => {
                            let text = format!("{{\"deleted\":{}}}", tree.deleted);
                            Answer::begin(output, envelope, 200, now)
                                .text_body(JSON, text.as_bytes());
                            Some(())
                        }
                        None => None,
                    }
                }
            }
        };
        if answered.is_none() {
            answer_error(Pieces::new(&bytes), envelope, now, output);
        }
        Next::Answered
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

/// Whether the first command about a tree was refused.
fn is_refused(mut pieces: Pieces<'_>) -> bool {
    let refused = [FAILED, UNCONDITIONAL].map(Piece::Integer);
    pieces.next() == Some(Piece::Array(2))
        && pieces.next().is_some_and(|one| refused.contains(&one))
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

    #[test]
    fn a_prefix_is_no_pattern() {
        let list = List::new(b"a*[b]?\\", 1);
        assert_eq!(list.pattern, b"a\\*\\[b\\]\\?\\\\*");
        assert!(base::glob::matches(&list.pattern, b"a*[b]?\\c"));
    }
}
