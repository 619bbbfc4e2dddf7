//! An engine in memory for tests, here and in the crate of commands: a world outside that does
//! nothing ([`NoHost`]), a journal that remembers, and a connection that takes commands and returns
//! what would be sent.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "only tests use it")]

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use resp::args::OwnedArguments;
use resp::output::Output;
use store::gate::{Access, Gate, Pinned};
use store::reserve::Reservation;
use store::{LockedSlots, StringValue};

use crate::db::slot_access::SlotAccess;
use crate::engine::{Engine, Registry, Row};
use crate::journal::backlog::Backlog;
use crate::journal::tail::Tail;
use crate::journal::{EffectBatch, Journal, State};
use crate::no_host::NoHost;
use crate::persistence::loading::{Arrival, Duplicates, Expired, LoadRules, Loader};
use crate::run::drive::Policy;
use crate::session::attachment::Attachment;
use crate::session::client::Client;
use crate::session::{Session, User};
use crate::turn::Turn;
use crate::turn::request::{Call, Outcome, Request, Requests};
use config::Config;
use resp::client::{ReplyParser, Value};

/// One command of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The number of its database.
    pub database: usize,
    /// Its words.
    pub argv: Vec<Vec<u8>>,
}

impl Effect {
    fn parse(database: usize, command: &[u8]) -> Effect {
        let (value, _) = ReplyParser::new().next(command).unwrap().unwrap();
        let Value::Array(words) = value else { panic!("a command is an array: {value:?}") };
        let argv = words.iter().map(|word| word.as_bytes().unwrap().to_vec()).collect();
        Effect { database, argv }
    }
}

/// A journal that keeps all that is appended.
#[derive(Default)]
pub struct Recorder {
    effects: Mutex<Vec<Effect>>,
    deaf: AtomicBool,
    /// The offset: batches so far. As soon as they are kept for followers, their bytes count.
    end: AtomicU64,
    /// The answer of [`Journal::synced`].
    pub synced: AtomicU64,
    /// The answer of [`Journal::released`], if not all is covered.
    pub released: Mutex<Option<u64>>,
    /// Whether replies must wait.
    pub defers_replies: AtomicBool,
    /// Whether the disk does not keep up.
    pub pressed: AtomicBool,
    /// Why nothing is kept.
    pub failure: Mutex<Option<String>>,
    /// The part that is kept for followers.
    backlog: Backlog,
    tail: Mutex<Tail>,
    /// Called before each append.
    pub appending: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Recorder {
    /// Takes the effects recorded since the last call.
    pub fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut *self.effects.lock())
    }

    /// The offset after everything that was appended.
    pub fn end(&self) -> u64 {
        self.end.load(Relaxed)
    }

    /// Stops or resumes listening, from the next turn on.
    pub fn set_listening(&self, listening: bool) {
        self.deaf.store(!listening, Relaxed);
    }
}

/// The engine's share of a [`Recorder`].
struct Recording(Arc<Recorder>);

/// Gives a command what it needs, but does not wait for others. The turn has begun.
struct Once;

impl Policy for Once {
    fn begin(&mut self, _: &mut Turn, _: &Engine) {}

    fn wait(&mut self, _: &mut Turn, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::NeedsAllSlots | Outcome::NeedsStoppedWorld)
    }
}

/// Commands that follow each other.
struct Together<'r>(Vec<Request<'r>>);

impl Requests for Together<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn at(&self, index: usize) -> Request<'_> {
        self.0[index]
    }

    fn defer_reply(&mut self, _: u64, _: u64) {}
}

impl Journal for Recording {
    fn has_file(&self) -> bool {
        !self.0.deaf.load(Relaxed)
    }

    fn append(&self, batch: &EffectBatch) -> u64 {
        if let Some(appending) = &*self.0.appending.lock() {
            appending();
        }
        let mut own = self.0.effects.lock();
        let mut effects: Vec<_> =
            batch.commands().map(|(database, command)| Effect::parse(database, &command)).collect();
        if effects.len() > 1 {
            let word = |word: &str, at: &Effect| Effect {
                database: at.database,
                argv: vec![word.as_bytes().to_vec()],
            };
            effects.insert(0, word("MULTI", &effects[0]));
            effects.push(word("EXEC", &effects[effects.len() - 1]));
        }
        own.append(&mut effects);
        let end = match self.0.backlog.is_on() {
            true => self.0.tail.lock().append(batch, &self.0.backlog),
            false => self.0.end() + 1,
        };
        self.0.end.store(end, Relaxed);
        end
    }

    fn state(&self) -> State {
        State {
            listening: self.has_file(),
            defers_replies: self.0.defers_replies.load(Relaxed),
            failed: self.0.failure.lock().is_some(),
            pressed: self.0.pressed.load(Relaxed),
        }
    }

    fn end(&self) -> u64 {
        self.0.end.load(Relaxed)
    }

    fn released(&self) -> u64 {
        self.0.released.lock().unwrap_or(u64::MAX)
    }

    fn synced(&self) -> u64 {
        self.0.synced.load(Relaxed)
    }

    fn failure(&self) -> Option<String> {
        self.0.failure.lock().clone()
    }

    fn changes(&self) -> Option<&Backlog> {
        Some(&self.0.backlog)
    }

    fn keep_changes(&self, history: String) {
        self.0.tail.lock().go_on_from(self.0.end(), None);
        self.0.backlog.begin(self.0.end(), history);
    }
}

/// An engine with one connection.
pub struct TestServer {
    /// See the module's text.
    pub engine: Arc<Engine>,
    /// Its world outside.
    pub host: Arc<NoHost>,
    /// Its journal.
    pub journal: Arc<Recorder>,
    /// The connection.
    pub session: Session,
    /// The turn of the thread.
    pub turn: Turn,
    /// Stands in for the clock, in Unix milliseconds.
    pub now: Option<u64>,
    /// The gate of the thread.
    pub gate: Gate,
    /// Bytes that the reply of a command may have.
    pub output_limit: usize,
    /// Commands go the short way if they can, as on a worker.
    pub takes_short_way: bool,
}

impl TestServer {
    /// A server without commands, with the default settings.
    #[expect(clippy::new_without_default, reason = "a server is made for what is done with it")]
    pub fn new() -> TestServer {
        TestServer::with(Box::leak(Box::new(Registry::new(&[]))), Config::default())
    }

    /// An empty server with these commands.
    pub fn with(commands: &'static Registry, config: Config) -> TestServer {
        let journal = Arc::new(Recorder::default());
        let recording = Arc::new(Recording(Arc::clone(&journal)));
        let host = Arc::new(NoHost::default());
        let engine = Engine::new(
            config,
            commands,
            Arc::clone(&host) as _,
            Arc::clone(&host) as _,
            recording,
        );
        let engine = Arc::new(engine);
        let client = new_client(&engine);
        let (turn, gate) = (Turn::new(&engine, "test"), engine.gates.register());
        let session = Session::new(client, User::at_first(&engine.users));
        let output_limit = usize::MAX;
        TestServer {
            engine,
            host,
            journal,
            session,
            turn,
            now: None,
            gate,
            output_limit,
            takes_short_way: true,
        }
    }

    /// Puts short strings into database 0, with names of a prefix and a number, and with times to
    /// expire.
    pub fn populate(&self, prefix: &str, count: usize, expire_at: impl Fn(usize) -> Option<u64>) {
        let names: Vec<_> = (0..count).map(|number| format!("{prefix}:{number}")).collect();
        let arrivals = names.iter().enumerate().map(|(number, name)| Arrival {
            database: 0,
            key: Cow::Borrowed(name.as_bytes()),
            value: store::Value::String(StringValue::Plain(Cow::Borrowed(b"abc"))),
            expire_at: expire_at(number),
            usage: None,
            content_type: None,
        });
        let rules = LoadRules { duplicates: Duplicates::Refuse, expired: Expired::Keep };
        let mut loader = Loader::new(&self.engine, rules, Access::Gate(&self.gate));
        loader.place(arrivals.collect()).expect("the keys are new");
    }

    /// Another connection, to be exchanged with [`TestServer::session`].
    pub fn connect(&self) -> Session {
        Session::new(new_client(&self.engine), User::at_first(&self.engine.users))
    }

    /// Runs a command and returns its reply as wire bytes: empty when the client waits.
    pub fn run<A: AsRef<[u8]>>(&mut self, argv: &[A]) -> Vec<u8> {
        self.try_run(argv).expect("one connection alone is never held up")
    }

    /// Runs the first of some commands the fast path, as far as they may take it together. Returns
    /// how many, and their replies.
    pub fn run_together(&mut self, commands: &[OwnedArguments]) -> (usize, Vec<u8>) {
        let prepare = |argv: &OwnedArguments| {
            let mut keys = Vec::new();
            (self.engine.prepare(argv.view(), &mut keys), keys)
        };
        let prepared: Vec<_> = commands.iter().map(prepare).collect();
        let requests = commands.iter().zip(&prepared).map(|(argv, (row, keys))| Request {
            argv: argv.view(),
            row: *row,
            keys,
            busy: None,
        });
        let mut requests = Together(requests.collect());
        let mut output = Output::new();
        output.set_limit(self.output_limit);
        self.begin_turn();
        let inside = self.gate.enter();
        let (turn, session) = (&mut self.turn, &mut self.session);
        let pinned = inside.pinned();
        let ran = self.engine.execute_fast(turn, session, &mut requests, pinned, &mut output);
        (ran, output.to_vec())
    }

    /// [`TestServer::run`] where other threads may hold slots. Nothing when the command must be
    /// tried again.
    pub fn try_run<A: AsRef<[u8]>>(&mut self, argv: &[A]) -> Option<Vec<u8>> {
        self.try_run_reserved(argv, None)
    }

    /// [`TestServer::try_run`] of a command that keeps newcomers away, if it does.
    fn try_run_reserved<A: AsRef<[u8]>>(
        &mut self,
        argv: &[A],
        reservation: Option<&Reservation>,
    ) -> Option<Vec<u8>> {
        let argv: OwnedArguments = argv.iter().collect();
        let mut keys = Vec::new();
        let row = self.engine.prepare(argv.view(), &mut keys);
        let request = Request { argv: argv.view(), row, keys: &keys, busy: None };
        let mut output = Output::new();
        output.set_limit(self.output_limit);
        self.begin_turn();
        let TestServer { engine, session, turn, gate, .. } = self;
        let inside = gate.enter();
        let pinned = inside.pinned();
        let outcome = match reservation {
            Some(own) => {
                let slot_access = SlotAccess::Reserved(own, pinned);
                engine.execute(turn, session, request, slot_access, &mut output)
            }
            None => {
                let mut alone = Together(vec![request]);
                if self.takes_short_way
                    && engine.execute_fast(turn, session, &mut alone, pinned, &mut output) > 0
                {
                    return Some(output.to_vec());
                }
                let call = Call { turn, session, request, output: &mut output };
                engine.drive_from(call, Access::Gate(gate), inside, Once).0
            }
        };
        match outcome {
            Outcome::Done | Outcome::Blocked(_) => Some(output.to_vec()),
            Outcome::Contended | Outcome::Paused(_) => None,
            _ => panic!("one connection alone is never held up"),
        }
    }

    /// Runs a command of a row that no client can name, as the server itself. Returns the reply's
    /// wire form as text.
    pub fn text_of_row(&mut self, row: &'static Row, line: &str) -> String {
        let argv: OwnedArguments = line.split(' ').collect();
        let mut keys = Vec::new();
        self.engine.find_keys(row, argv.view(), &mut keys);
        let request = Request { argv: argv.view(), row: Some(row), keys: &keys, busy: None };
        let (mut session, mut output) = (Session::internal(), Output::new());
        self.begin_turn();
        let TestServer { engine, turn, gate, .. } = self;
        let call = Call { turn, session: &mut session, request, output: &mut output };
        let outcome = engine.drive(call, gate, Once);
        assert!(matches!(outcome, Outcome::Done), "nobody holds it up");
        String::from_utf8_lossy(&output.to_vec()).into_owned()
    }

    /// Runs a command of words that are separated by single spaces, and returns the reply's wire
    /// form as text.
    pub fn text(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8_lossy(&self.run(&words)).into_owned()
    }

    /// [`TestServer::text`] where other threads may hold slots: see [`TestServer::try_run`].
    pub fn try_text(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        self.try_run(&words).map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// [`TestServer::try_text`] of a command that reserves the slots that it finds locked.
    pub fn try_text_reserved(&mut self, line: &str, reservation: &Reservation) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = self.try_run_reserved(&words, Some(reservation));
        reply.map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// Acts while another thread holds the slot of a key.
    pub fn while_locked(&mut self, key: &[u8], action: impl FnOnce(&mut TestServer)) {
        let slot = base::crc::key_slot(key);
        let engine = Arc::clone(&self.engine);
        let gate = engine.gates.register();
        let inside = gate.enter();
        let locked = engine.lock_slot(inside.pinned(), slot);
        action(self);
        drop(locked);
    }

    /// Whether any client has left anything at the slot of a key.
    pub fn has_attachment(&self, key: &[u8]) -> bool {
        let slot = base::crc::key_slot(key);
        let inside = self.gate.enter();
        self.engine.lock_slot(inside.pinned(), slot).attachment(slot).is_some()
    }

    /// Does the work that workers do now and then.
    pub fn clean_slots(&self) {
        self.engine.clean_slots(self.gate.enter().pinned());
    }

    /// Runs a command as another connection: see [`TestServer::text`].
    pub fn text_as(&mut self, other: &mut Session, line: &str) -> String {
        std::mem::swap(&mut self.session, other);
        let text = self.text(line);
        std::mem::swap(&mut self.session, other);
        text
    }

    /// Begins a turn at the server's time. Work that is done once per turn tells turns apart by the
    /// microsecond, and a test may be faster than that: so it waits for the next one.
    pub fn begin_turn(&mut self) {
        let before = self.turn.began_at;
        while self.turn.began_at == before {
            self.turn.begin(&self.engine);
        }
        if let Some(now) = self.now {
            self.turn.stop_time(now);
        }
    }
}

impl Engine {
    /// Locks a slot that no other thread holds.
    pub fn lock_slot<'k>(&'k self, pinned: Pinned<'k>, slot: u16) -> LockedSlots<'k, Attachment> {
        let locked = self.keyspace.try_lock_one(pinned, slot, base::clock::now_us());
        locked.expect("nobody else holds the slot")
    }
}

/// Takes the messages that wait for a connection, as text.
pub fn messages(session: &Session) -> String {
    let inbox = std::mem::take(&mut *session.client.inbox.lock());
    let bytes: Vec<u8> = inbox.pushes.iter().flat_map(|message| message.iter().copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn new_client(engine: &Engine) -> Arc<Client> {
    let id = engine.next_client_id();
    let client = Client::new(id, 0, "test:0".to_string(), "test:0".to_string(), 0, 0);
    let client = Arc::new(client);
    engine.clients.add(&client);
    client
}
