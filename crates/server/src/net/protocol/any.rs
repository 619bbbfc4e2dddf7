//! The protocols that the server speaks. Another one is a row, a variant, and an arm of
//! `with_protocol`, all in this file, besides its own [`Protocol`].

use std::ops::Range;

use config::Config;
use engine::db::slot_access::SlotAccess;
use engine::engine::Engine;
use engine::engine::busy::Busy;
use engine::session::client::flag;
use engine::session::{Session, User};
use engine::turn::Turn;
use engine::turn::request::Request;
use engine::users::Users;
use resp::args::{ArgRange, Arguments};
use resp::output::Output;
use resp::reply::Reply;
use store::gate::Pinned;

use super::{In, Parts, Protocol};
use crate::net::batch::{CommandBatch, Item};
use crate::net::http::{self, Http};
use crate::net::intake::Intake;
use crate::net::pending::Executed;
use crate::net::resp::{self as redis, Resp};

/// What the server knows of a protocol before a client speaks it.
struct Row {
    /// What the log calls it.
    name: &'static str,
    /// The port where it is spoken, 0 for none.
    port: fn(&Config) -> u16,
    /// The same, to be changed.
    port_mut: fn(&mut Config) -> &mut u16,
    /// Whether connections there are encrypted.
    is_encrypted: bool,
    /// Whether the server does not start when it cannot listen for it.
    is_needed: bool,
    /// The user of a client that has said nothing yet.
    user_at_first: fn(&Users) -> User,
    /// The mark of its clients.
    flag: u32,
    /// The state of a connection that begins at this millisecond of the monotonic clock.
    open: fn(u64) -> AnyProtocol,
    /// What to send to a client that is refused, with a status of HTTP and an error of RESP.
    refuse: fn(u16, &[u8]) -> Output,
}

const RESP: Row = Row {
    name: "RESP",
    port: |config| config.port,
    port_mut: |config| &mut config.port,
    is_encrypted: false,
    is_needed: true,
    user_at_first: User::at_first,
    flag: 0,
    open: |_| AnyProtocol::Resp(Resp::default()),
    refuse: redis::refuse,
};

// On a machine with several servers each would need a setting for a port that most of them do not
// need, if it were needed.
const HTTP: Row = Row {
    name: "HTTP",
    port: |config| config.http_port,
    port_mut: |config| &mut config.http_port,
    is_encrypted: false,
    is_needed: false,
    // Each request shows by itself who sends it.
    user_at_first: |_| User::nobody(),
    flag: flag::HTTP,
    open: |monotonic| AnyProtocol::Http(Box::new(Http::new(monotonic))),
    refuse: http::refuse,
};

/// All of them.
static ROWS: [Row; 4] = [
    RESP,
    HTTP,
    Row {
        name: "RESP over TLS",
        port: |config| config.tls_port,
        port_mut: |config| &mut config.tls_port,
        is_encrypted: true,
        ..RESP
    },
    // There is no default port for it that another server might have: who asks for it needs it.
    Row {
        name: "HTTPS",
        port: |config| config.https_port,
        port_mut: |config| &mut config.https_port,
        is_encrypted: true,
        is_needed: true,
        ..HTTP
    },
];

/// The protocol of the clients of a listener.
#[derive(Clone, Copy)]
pub struct Speaks(&'static Row);

impl PartialEq for Speaks {
    fn eq(&self, other: &Speaks) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Speaks {
    /// The protocol of Redis.
    pub const RESP: Speaks = Speaks(&ROWS[0]);
    /// HTTP/1.1.
    pub const HTTP: Speaks = Speaks(&ROWS[1]);
    /// The protocol of Redis, encrypted.
    pub const RESP_OVER_TLS: Speaks = Speaks(&ROWS[2]);
    /// HTTP/1.1, encrypted.
    pub const HTTPS: Speaks = Speaks(&ROWS[3]);

    /// All protocols. The first is the one that unix sockets speak.
    pub fn all() -> impl Iterator<Item = Speaks> + Clone {
        ROWS.iter().map(Speaks)
    }

    /// What the log calls it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The port where it is spoken, 0 for none.
    pub fn port(self, config: &Config) -> u16 {
        (self.0.port)(config)
    }

    /// Has the settings name another port for it.
    pub fn set_port(self, config: &mut Config, port: u16) {
        *(self.0.port_mut)(config) = port;
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(self) -> bool {
        self.0.is_encrypted
    }

    /// Whether clients speak HTTP.
    pub(in crate::net) fn is_http(self) -> bool {
        self.0.flag == flag::HTTP
    }

    /// Whether the server does not start when it cannot listen for it.
    pub fn is_needed(self) -> bool {
        self.0.is_needed
    }

    /// The user of a client that has said nothing yet.
    pub(in crate::net) fn user_at_first(self, users: &Users) -> User {
        (self.0.user_at_first)(users)
    }

    /// The mark of its clients.
    pub(in crate::net) fn flag(self) -> u32 {
        self.0.flag
    }

    /// The state of a connection that begins at this millisecond of the monotonic clock.
    pub(in crate::net) fn open(self, monotonic: u64) -> AnyProtocol {
        (self.0.open)(monotonic)
    }

    /// What to send to a client that is refused, with a status of HTTP and an error of RESP.
    pub(in crate::net) fn refusal(self, status: u16, error: &[u8]) -> Output {
        (self.0.refuse)(status, error)
    }
}

/// The protocol of a connection, with its state.
#[expect(
    clippy::large_enum_variant,
    reason = "most connections speak RESP, whose state is to lie in the connection itself"
)]
pub(in crate::net) enum AnyProtocol {
    Resp(Resp),
    Http(Box<Http>),
}

/// Calls the protocol: the one place that tells them apart.
macro_rules! with_protocol {
    ($any:expr, $own:ident => $call:expr) => {
        match $any {
            AnyProtocol::Resp($own) => $call,
            AnyProtocol::Http($own) => $call,
        }
    };
}

impl Protocol for AnyProtocol {
    #[inline]
    fn parse(&mut self, input: &[u8], intake: Intake<'_>, batch: &mut CommandBatch) -> bool {
        with_protocol!(self, own => own.parse(input, intake, batch))
    }

    #[inline]
    fn arguments<'a>(&'a self, input: &'a [u8], ranges: &'a [ArgRange]) -> Arguments<'a> {
        with_protocol!(self, own => own.arguments(input, ranges))
    }

    #[inline]
    fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        with_protocol!(self, own => own.receives_apart())
    }

    #[inline]
    fn is_receiving_apart(&self) -> bool {
        with_protocol!(self, own => own.is_receiving_apart())
    }

    #[inline]
    fn note_received(&mut self) {
        with_protocol!(self, own => own.note_received());
    }

    #[inline]
    fn has_refused(&self) -> bool {
        with_protocol!(self, own => own.has_refused())
    }

    fn may_be_sending(&self) -> bool {
        with_protocol!(self, own => own.may_be_sending())
    }

    fn refuse_late(&mut self, input: &[u8], monotonic: u64, waits: bool) -> bool {
        with_protocol!(self, own => own.refuse_late(input, monotonic, waits))
    }

    #[inline]
    fn done(&self) -> usize {
        with_protocol!(self, own => own.done())
    }

    #[inline]
    fn compact_if_worthwhile(&mut self, length: usize) -> Range<usize> {
        with_protocol!(self, own => own.compact_if_worthwhile(length))
    }

    #[inline]
    fn memory(&self) -> usize {
        with_protocol!(self, own => own.memory())
    }

    #[inline]
    fn unfinished(&self, length: usize) -> usize {
        with_protocol!(self, own => own.unfinished(length))
    }

    #[inline]
    fn apart_memory(&self) -> (usize, usize) {
        with_protocol!(self, own => own.apart_memory())
    }

    #[inline]
    fn run_fast(
        &mut self,
        within: In<'_>,
        items: &[Item],
        batch: &CommandBatch,
        pinned: Pinned<'_>,
        parts: Parts<'_>,
    ) -> usize {
        with_protocol!(self, own => own.run_fast(within, items, batch, pinned, parts))
    }

    #[inline]
    fn run_parsed(
        &mut self,
        within: In<'_>,
        item: &Item,
        batch: &CommandBatch,
        with: (SlotAccess<'_>, Option<&dyn Busy>),
        parts: Parts<'_>,
    ) -> Executed {
        with_protocol!(self, own => own.run_parsed(within, item, batch, with, parts))
    }

    fn run(
        &mut self,
        within: In<'_>,
        request: Request<'_>,
        slot_access: SlotAccess<'_>,
        parts: Parts<'_>,
    ) -> Executed {
        with_protocol!(self, own => own.run(within, request, slot_access, parts))
    }

    #[inline]
    fn has_answer(&self) -> bool {
        with_protocol!(self, own => own.has_answer())
    }

    fn answer_ready(&mut self, now: u64, session: &mut Session, output: &mut Output) {
        with_protocol!(self, own => own.answer_ready(now, session, output));
    }

    #[inline]
    fn answer_earlier(&mut self, now: u64, output: &mut Output) {
        with_protocol!(self, own => own.answer_earlier(now, output));
    }

    fn reply(
        &mut self,
        within: (&Engine, &Turn),
        write: impl FnOnce(&Session, &mut Reply<'_>) -> bool,
        parts: Parts<'_>,
    ) -> bool {
        with_protocol!(self, own => own.reply(within, write, parts))
    }

    #[inline]
    fn goes_on(&self) -> bool {
        with_protocol!(self, own => own.goes_on())
    }

    #[inline]
    fn streams(&self) -> bool {
        with_protocol!(self, own => own.streams())
    }

    fn go_on(&mut self, now: u64, parts: Parts<'_>) {
        with_protocol!(self, own => own.go_on(now, parts));
    }

    #[inline]
    fn is_endless(&self) -> bool {
        with_protocol!(self, own => own.is_endless())
    }

    #[inline]
    fn follows(&self) -> bool {
        with_protocol!(self, own => own.follows())
    }

    #[inline]
    fn is_behind(&self) -> bool {
        with_protocol!(self, own => own.is_behind())
    }

    fn read_on(&mut self, engine: &Engine, session: &mut Session, output: &mut Output) {
        with_protocol!(self, own => own.read_on(engine, session, output));
    }

    fn leave_slots(&mut self, session: &mut Session, output: &mut Output) {
        with_protocol!(self, own => own.leave_slots(session, output));
    }

    #[inline]
    fn is_admitted(&self, session: &Session) -> bool {
        with_protocol!(self, own => own.is_admitted(session))
    }

    #[inline]
    fn is_choked(&self, unsent: impl FnOnce() -> usize) -> bool {
        with_protocol!(self, own => own.is_choked(unsent))
    }

    fn is_to_be_taken(&self, ended: bool) -> bool {
        with_protocol!(self, own => own.is_to_be_taken(ended))
    }

    #[inline]
    fn gathered_length(&self) -> usize {
        with_protocol!(self, own => own.gathered_length())
    }

    #[inline]
    fn gathered(&self) -> usize {
        with_protocol!(self, own => own.gathered())
    }

    #[inline]
    fn objection(&self, input: usize) -> Option<&'static str> {
        with_protocol!(self, own => own.objection(input))
    }

    fn only_waits(&self) -> bool {
        with_protocol!(self, own => own.only_waits())
    }

    fn gives_up_at_end(&self) -> bool {
        with_protocol!(self, own => own.gives_up_at_end())
    }

    fn stop(&mut self, times: (u64, u64), output: &mut Output) {
        with_protocol!(self, own => own.stop(times, output));
    }

    fn leave(&mut self, engine: &Engine) {
        with_protocol!(self, own => own.leave(engine));
    }
}
