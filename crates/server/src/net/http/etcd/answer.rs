//! Answers of `/v2/keys` and the addresses that belong to it, in the form that clients of etcd
//! know.
//!
//! A client that waits for an event gets the head of the answer at once, and the event in a chunk
//! when it happens: clients may have a short timeout for the head and a long one for the event. A
//! stream goes on from event to event, at the pace at which the client reads: the next event is
//! looked up when most of the last one is sent.

use std::sync::Arc;

use engine::command::error::CommandError;
use engine::nodes::kept::directory_key;
use engine::session::awaited::Unblocking;
use etcd::error::{Code, Error};
use etcd::request::Wait;
use http::answer::{Answer, Envelope, JSON, chunk, chunk_shared, last_chunk};
use http::reply::{Piece, Pieces};
use resp::args::OwnedArguments;
use resp::output::Output;

use super::cluster::CLUSTER;
use crate::net::http::prepared::in_own_words;

/// Elections that there were.
const TERM: u64 = 1;

/// Why a request fails that etcd's members could not agree on in time, in etcd's words.
const NO_LEADER: &[u8] = b"etcdserver: request timed out, possibly due to previous leader failure";

/// The contents of a reply: the status, the index of the tree, the index of the event, and the
/// body.
struct Said<'r> {
    status: u16,
    index: u64,
    event: u64,
    body: Option<Body<'r>>,
}

/// The body: within the reply, or shared by all clients that get the same event.
enum Body<'r> {
    Here(&'r [u8]),
    Apart(&'r Arc<Vec<u8>>),
}

impl<'r> Said<'r> {
    /// Reads a reply. A body that is stored elsewhere is not in the pieces.
    fn read(mut pieces: Pieces<'r>, apart: Option<&'r Arc<Vec<u8>>>) -> Option<Said<'r>> {
        let Some(Piece::Array(4)) = pieces.next() else { return None };
        let mut number = || match pieces.next()? {
            Piece::Integer(number) => Some(number.cast_unsigned()),
            _ => None,
        };
        let (status, index, event) = (number()?, number()?, number()?);
        let body = match apart {
            Some(body) => Some(Body::Apart(body)),
            None => match pieces.next()? {
                Piece::Bytes(body) => Some(Body::Here(body)),
                _ => None,
            },
        };
        Some(Said { status: u16::try_from(status).ok()?, index, event, body })
    }

    fn begin<'a>(&self, envelope: &'a Envelope, now: u64, output: &'a mut Output) -> Answer<'a> {
        let mut answer = Answer::begin(output, envelope, self.status, now);
        answer.header("X-Etcd-Cluster-Id", CLUSTER.as_bytes());
        answer.number("X-Etcd-Index", self.index);
        if self.status < 400 {
            answer.number("X-Raft-Index", self.index);
            answer.number("X-Raft-Term", TERM);
        }
        answer
    }
}

/// Answers a request that is over.
pub(in crate::net::http) fn answer_node(
    reply: &Output,
    envelope: &Envelope,
    now: u64,
    output: &mut Output,
) {
    // Without a string that lies apart, the first slice is all.
    let mut pieces = Pieces::new(reply.first_slice());
    if let Some(said) = Said::read(pieces.clone(), reply.first_shared()) {
        let answer = said.begin(envelope, now, output);
        return match &said.body {
            Some(Body::Apart(body)) => answer.shared_text_body(JSON, body),
            Some(Body::Here(body)) => answer.text_body(JSON, body),
            None => answer.text_body(JSON, b""),
        };
    }
    // The command was refused: there is no memory, the disk has failed, data is being loaded, or
    // the user may not run it.
    let cause = match pieces.next() {
        Some(Piece::Error(text)) => text,
        _ => b"ERR the reply is not as expected",
    };
    if cause.starts_with(b"MOVED ") && envelope.location.is_some() {
        return Answer::begin(output, envelope, 307, now).text_body(JSON, b"");
    }
    let words = in_own_words(cause);
    let error = if cause.starts_with(b"NOPERM ") {
        Error::of_request(Code::Unauthorized, &String::from_utf8_lossy(&words))
    } else if cause == CommandError::NO_PRIMARY.as_bytes() {
        Error::internal(NO_LEADER)
    } else {
        Error::internal(&words)
    };
    let mut body = Vec::new();
    error.write(&mut body);
    let said = Said { status: error.code.status(), index: 0, event: 0, body: None };
    said.begin(envelope, now, output).text_body(JSON, &body);
}

/// The next step after a reply to a request that waits for an event.
pub(in crate::net::http) enum EventStep {
    /// The answer is written.
    Answered,
    /// Wait for an event with these words.
    Waits(OwnedArguments),
    /// The same, after the written part is sent.
    GoesOn(OwnedArguments),
    /// The answer breaks off: the client goes on waiting by another request.
    Breaks,
}

/// A request that waits for an event, or follows all events.
pub(in crate::net::http) struct Watch {
    path: Vec<u8>,
    recursive: bool,
    /// Events count from this index on; 0 until it is known.
    since: u64,
    stream: bool,
    /// The client reads chunks.
    chunked: bool,
    /// The head of the answer is written.
    begun: bool,
}

impl Watch {
    pub(in crate::net::http) fn new(
        path: &[u8],
        recursive: bool,
        wait: Wait,
        chunked: bool,
    ) -> Watch {
        let Wait { since, stream } = wait;
        Watch { path: path.into(), recursive, since, stream, chunked, begun: false }
    }

    /// Whether the answer goes on until the connection ends.
    pub(in crate::net::http) fn ends_connection(&self) -> bool {
        self.stream || !self.chunked
    }

    /// Whether the head of the answer is written.
    pub(in crate::net::http) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The command that looks for an event; once the head of the answer is written, it waits for
    /// one.
    pub(in crate::net::http) fn command(&self) -> OwnedArguments {
        let scope: &[u8] = if self.recursive { b"ALL" } else { b"ONE" };
        let mode: &[u8] = if self.begun { b"NEXT" } else { b"FIND" };
        let (key, since) = (directory_key(b"/"), self.since.to_string());
        let words: [&[u8]; 6] = [b"NODEWAIT", &key, &self.path, scope, since.as_bytes(), mode];
        words.iter().collect()
    }

    /// Takes a reply, and writes its contents.
    pub(in crate::net::http) fn take(
        &mut self,
        reply: &Output,
        envelope: &Envelope,
        now: u64,
        output: &mut Output,
    ) -> EventStep {
        // Without a string that is stored elsewhere, the first slice is everything.
        let (bytes, apart) = (reply.first_slice(), reply.first_shared());
        let said = Said::read(Pieces::new(bytes), apart).filter(|said| said.status < 400);
        let Some(said) = said else {
            if self.begun {
                // The tree is elsewhere now, or its primary is. A client takes an answer that ends
                // well for all there is, and one that breaks off for the loss of a member.
                let text = bytes.strip_prefix(b"-").unwrap_or_default();
                if !text.is_empty() && !text.starts_with(Unblocking::ERROR) {
                    return EventStep::Breaks;
                }
                // CLIENT UNBLOCK ended it, or it was too slow for the kept history.
                self.end(output);
            } else {
                answer_node(reply, envelope, now, output);
            }
            return EventStep::Answered;
        };
        if !std::mem::replace(&mut self.begun, true) {
            let answer = said.begin(envelope, now, output);
            if self.chunked {
                answer.chunked_body(JSON)
            } else {
                answer.endless_body(JSON)
            }
            self.since = self.since.max(1);
            if said.body.is_none() {
                self.since = self.since.max(said.index.saturating_add(1));
            }
        }
        let Some(event) = said.body else { return EventStep::Waits(self.command()) };
        match event {
            Body::Here(event) if self.chunked => chunk(output, event),
            Body::Here(event) => output.push(event),
            Body::Apart(event) if self.chunked => chunk_shared(output, event),
            Body::Apart(event) => output.push_shared(event),
        }
        if !self.stream {
            self.end(output);
            return EventStep::Answered;
        }
        self.since = said.event.saturating_add(1);
        EventStep::GoesOn(self.command())
    }

    fn end(&self, output: &mut Output) {
        if self.chunked {
            last_chunk(output);
        }
    }
}
