//! A client inside the process: a thread that serves no connection runs commands with it.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use engine::command::args::KeyAt;
use engine::engine::{Engine, Row};
use engine::run::drive::Policy;
use engine::session::Session;
use engine::session::client::{Client, flag};
use engine::turn::Turn;
use engine::turn::request::{Call, Outcome, Request};
use resp::args::OwnedArguments;
use resp::output::Output;
use store::gate::Gate;

/// How long a command waits for slots that others keep locked, if nothing else was said.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause before a command that has found its slots locked is tried again.
const PAUSE_OF_TRIES: Duration = Duration::from_micros(200);

/// Waits for slots, but not for long.
struct Tries<'h> {
    engine: &'h Engine,
    left: usize,
    /// Other threads may be stopped for it.
    may_stop_the_world: bool,
    /// See [`InternalClient::tree_state`].
    tree_state: &'h mut (u64, u64),
}

impl Policy for Tries<'_> {
    fn note_try(&mut self, _: &mut Turn, _: &Session, _: &Outcome, _: bool) {
        *self.tree_state = (self.engine.replication.term(), self.engine.nodes.written());
    }

    fn wait(&mut self, turn: &mut Turn, outcome: &Outcome) -> bool {
        turn.announce_appends(self.engine);
        self.left -= 1;
        let again = matches!(outcome, Outcome::Contended) && self.left > 0;
        if again {
            sleep(PAUSE_OF_TRIES);
        }
        again || self.may_stop_the_world && matches!(outcome, Outcome::NeedsStoppedWorld)
    }
}

/// See the module's text.
pub struct InternalClient {
    patience: Duration,
    may_stop_the_world: bool,
    engine: Arc<Engine>,
    turn: Turn,
    gate: Gate,
    session: Session,
    tree_state: (u64, u64),
}

impl InternalClient {
    /// The client of a thread whose metrics have this name.
    pub fn new(engine: Arc<Engine>, thread: &str) -> InternalClient {
        let (turn, gate) = (Turn::new(&engine, thread), engine.gates.register());
        let (patience, session) = (PATIENCE, Session::internal());
        let (may_stop_the_world, tree_state) = (false, (0, 0));
        InternalClient { patience, may_stop_the_world, turn, gate, session, tree_state, engine }
    }

    /// Does something whose commands wait this long for slots that others keep locked.
    pub fn with_patience<T>(
        &mut self,
        patience: Duration,
        act: impl FnOnce(&mut InternalClient) -> T,
    ) -> T {
        let before = std::mem::replace(&mut self.patience, patience);
        let result = act(self);
        self.patience = before;
        result
    }

    /// Runs a command as a client would send it. Returns its reply, or nothing where it cannot run
    /// now.
    pub fn run(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let argv: OwnedArguments = words.iter().collect();
        let mut keys = Vec::new();
        let row = self.engine.prepare(argv.view(), &mut keys);
        self.execute(row, &argv, &keys).map(|reply| reply.to_vec())
    }

    /// Selects the database of the commands after it.
    pub fn select(&mut self, database: usize) {
        self.session.database = database;
    }

    /// Has what is said of other nodes name the ports that this client can use.
    pub fn speak_like(&mut self, client: &Client) {
        self.session.client.set_flag(flag::ENCRYPTED, client.has_flag(flag::ENCRYPTED));
    }

    /// The journal's offset after its last write.
    pub fn write_offset(&self) -> u64 {
        self.session.write_offset
    }

    /// The term of replication in which the last command has run, and the offset of the journal on
    /// which all depends that it can have read of the tree. Both are noted in the command's gate:
    /// later the server may be a replica, which knows no such offset.
    pub fn tree_state(&self) -> (u64, u64) {
        self.tree_state
    }

    /// Runs a command of this row.
    pub fn run_row(&mut self, row: &'static Row, argv: &OwnedArguments) -> Option<Output> {
        let mut keys = Vec::new();
        self.engine.find_keys(row, argv.view(), &mut keys);
        self.execute(Some(row), argv, &keys)
    }

    /// Runs a command of a row without keys, for which other threads may be stopped.
    pub fn run_with_stopped_world(&mut self, row: &'static Row, argv: &OwnedArguments) {
        self.may_stop_the_world = true;
        self.execute(Some(row), argv, &[]);
        self.may_stop_the_world = false;
    }

    fn execute(
        &mut self,
        row: Option<&'static Row>,
        argv: &OwnedArguments,
        keys: &[KeyAt],
    ) -> Option<Output> {
        let InternalClient { patience, engine, turn, gate, session, tree_state, .. } = self;
        let may_stop_the_world = self.may_stop_the_world;
        let mut output = Output::new();
        let request = Request { argv: argv.view(), row, keys, busy: None };
        let call = Call { turn, session, request, output: &mut output };
        let left = (patience.as_micros() / PAUSE_OF_TRIES.as_micros()) as usize;
        let tries = Tries { engine, left, may_stop_the_world, tree_state };
        let outcome = engine.drive(call, gate, tries);
        turn.announce_appends(engine);
        matches!(outcome, Outcome::Done).then_some(output)
    }

    /// Whether a command runs without an error.
    pub fn succeeds(&mut self, words: &[&[u8]]) -> bool {
        self.run(words).is_some_and(|reply| !reply.starts_with(b"-"))
    }
}
