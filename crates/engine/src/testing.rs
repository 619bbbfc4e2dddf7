//! An engine in memory for tests: a world outside that does nothing ([`NoHost`]), a journal that
//! remembers, and a connection that takes commands and returns what would be sent.

mod plain;
mod replay;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use resp::args::OwnedArguments;
use resp::output::Output;
use store::Held;
use store::gate::{Access, Gate, Presence};
use store::reserve::Reservation;

use crate::commands::registry;
use crate::engine::Engine;
use crate::no_host::NoHost;
use crate::persistence::backlog::{Backlog, Record};
use crate::persistence::journal::{Batch, Journal, State};
use crate::run::authority::Authority;
use crate::run::drive::Policy;
use crate::run::request::{Call, Outcome, Request, Requests};
use crate::run::turn::Turn;
use crate::session::Session;
use crate::session::client::Client;
use crate::wait::waiting::Attachment;
use config::Config;
use resp::client::{ReplyParser, Value};

/// One command of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) database: usize,
    pub(crate) argv: Vec<Vec<u8>>,
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
pub(crate) struct Recorder {
    effects: Mutex<Vec<Effect>>,
    deaf: AtomicBool,
    /// Batches so far: the offset.
    end: AtomicU64,
    /// The answer of [`Journal::synced`].
    pub(crate) synced: AtomicU64,
    /// Whether replies must wait.
    pub(crate) defers_replies: AtomicBool,
    /// Whether the disk does not keep up.
    pub(crate) pressed: AtomicBool,
    /// Why nothing is kept.
    pub(crate) failure: Mutex<Option<String>>,
    /// The part that is kept for followers.
    backlog: Backlog,
    /// Called before each append.
    pub(crate) appending: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Recorder {
    /// Takes the effects recorded since the last call.
    pub(crate) fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut *self.effects.lock())
    }

    /// The offset after everything that was appended.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Relaxed)
    }

    /// Stops or resumes listening, from the next turn on.
    pub(crate) fn set_listening(&self, listening: bool) {
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
        matches!(outcome, Outcome::NeedsProgram | Outcome::NeedsGates)
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

    fn append(&self, batch: &Batch) -> u64 {
        if let Some(appending) = &*self.0.appending.lock() {
            appending();
        }
        let mut own = self.0.effects.lock();
        let mut effects: Vec<_> =
            batch.commands().map(|(database, command)| Effect::parse(database, command)).collect();
        if effects.len() > 1 {
            let word = |word: &str, at: &Effect| Effect {
                database: at.database,
                argv: vec![word.as_bytes().to_vec()],
            };
            effects.insert(0, word("MULTI", &effects[0]));
            effects.push(word("EXEC", &effects[effects.len() - 1]));
        }
        own.append(&mut effects);
        let end = self.0.end.fetch_add(1, Relaxed) + 1;
        if self.0.backlog.is_on() {
            self.0.backlog.push(Arc::new(Record::new(end, batch.clone())));
        }
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
        self.0.backlog.begin(self.0.end(), history);
    }
}

/// An engine with one connection.
pub(crate) struct TestServer {
    pub(crate) engine: Arc<Engine>,
    pub(crate) host: Arc<NoHost>,
    pub(crate) journal: Arc<Recorder>,
    pub(crate) session: Session,
    pub(crate) turn: Turn,
    /// Stands in for the clock, in Unix milliseconds.
    pub(crate) now: Option<u64>,
    pub(crate) gate: Gate,
    /// Bytes that the reply of a command may have.
    pub(crate) output_limit: usize,
    /// Commands go the short way if they can, as on a worker.
    pub(crate) takes_short_way: bool,
}

impl TestServer {
    /// An empty server with the default settings.
    pub(crate) fn new() -> TestServer {
        TestServer::with_config(Config::default())
    }

    /// An empty server.
    pub(crate) fn with_config(config: Config) -> TestServer {
        let journal = Arc::new(Recorder::default());
        let recording = Arc::new(Recording(Arc::clone(&journal)));
        let host = Arc::new(NoHost::default());
        let engine = Engine::new(
            config,
            registry(),
            Arc::clone(&host) as _,
            Arc::clone(&host) as _,
            recording,
        );
        let engine = Arc::new(engine);
        let client = new_client(&engine);
        let (turn, gate) = (Turn::new(&engine, "test"), engine.gates.register());
        let session = Session::new(client, true);
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

    /// Another connection, to be exchanged with [`TestServer::session`].
    pub(crate) fn connect(&self) -> Session {
        Session::new(new_client(&self.engine), true)
    }

    /// Runs a command and returns its reply as wire bytes: empty when the client waits.
    pub(crate) fn run<A: AsRef<[u8]>>(&mut self, argv: &[A]) -> Vec<u8> {
        self.try_run(argv).expect("one connection alone is never held up")
    }

    /// Runs the first of some commands the short path, as far as they may take it together. Returns how
    /// many, and their replies.
    pub(crate) fn run_together(&mut self, commands: &[OwnedArguments]) -> (usize, Vec<u8>) {
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
        let presence = inside.presence();
        let ran = self.engine.execute_plainly(turn, session, &mut requests, presence, &mut output);
        (ran, output.to_vec())
    }

    /// [`TestServer::run`] where other threads may hold slots. Nothing when the command must be tried
    /// again.
    pub(crate) fn try_run<A: AsRef<[u8]>>(&mut self, argv: &[A]) -> Option<Vec<u8>> {
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
        let presence = inside.presence();
        let outcome = match reservation {
            Some(own) => {
                let authority = Authority::Program(own, presence);
                engine.execute(turn, session, request, authority, &mut output)
            }
            None => {
                let mut alone = Together(vec![request]);
                if self.takes_short_way
                    && engine.execute_plainly(turn, session, &mut alone, presence, &mut output) > 0
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

    /// Runs a command of words that are separated by single spaces, and returns the reply's wire
    /// form as text.
    pub(crate) fn text(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8_lossy(&self.run(&words)).into_owned()
    }

    /// [`TestServer::text`] where other threads may hold slots: see [`TestServer::try_run`].
    pub(crate) fn try_text(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        self.try_run(&words).map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// [`TestServer::try_text`] of a command that reserves the slots that it finds locked.
    pub(crate) fn try_text_reserved(
        &mut self,
        line: &str,
        reservation: &Reservation,
    ) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = self.try_run_reserved(&words, Some(reservation));
        reply.map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// Acts while another thread holds the slot of a key.
    pub(crate) fn while_held(&mut self, key: &[u8], action: impl FnOnce(&mut TestServer)) {
        let slot = base::crc::key_slot(key);
        let engine = Arc::clone(&self.engine);
        let gate = engine.gates.register();
        let inside = gate.enter();
        let held = engine.hold_slot(inside.presence(), slot);
        action(self);
        drop(held);
    }

    /// Whether any client has left anything at the slot of a key.
    pub(crate) fn has_attachment(&self, key: &[u8]) -> bool {
        let slot = base::crc::key_slot(key);
        let inside = self.gate.enter();
        self.engine.hold_slot(inside.presence(), slot).attachment(slot).is_some()
    }

    /// Does the work that workers do now and then.
    pub(crate) fn clean_slots(&self) {
        self.engine.clean_slots(self.gate.enter().presence());
    }

    /// Runs a command as another connection: see [`TestServer::text`].
    pub(crate) fn text_as(&mut self, other: &mut Session, line: &str) -> String {
        std::mem::swap(&mut self.session, other);
        let text = self.text(line);
        std::mem::swap(&mut self.session, other);
        text
    }

    /// Begins a turn at the server's time. Work that is done once per turn tells turns apart by the
    /// microsecond, and a test may be faster than that: so it waits for the next one.
    pub(crate) fn begin_turn(&mut self) {
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
    pub(crate) fn hold_slot<'k>(
        &'k self,
        presence: Presence<'k>,
        slot: u16,
    ) -> Held<'k, Attachment> {
        let held = self.keyspace.try_hold_one(presence, slot, base::clock::now_us());
        held.expect("nobody else holds the slot")
    }
}

/// Takes the messages that wait for a connection, as text.
pub(crate) fn messages(session: &Session) -> String {
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

#[test]
fn a_command_is_answered_and_journaled() {
    let mut server = TestServer::new();
    assert_eq!(server.text("MULTI"), "+OK\r\n");
    assert_eq!(server.text("EXEC"), "*0\r\n");
    assert!(server.journal.take().is_empty());
    server.journal.set_listening(false);
    server.session = server.connect();
    assert!(server.text("NOSUCHCOMMAND x").starts_with("-ERR unknown command 'NOSUCHCOMMAND'"));
}
