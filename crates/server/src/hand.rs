//! What a thread runs commands with that serves no connection.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use engine::engine::{Engine, Row};
use engine::handler::args::KeyAt;
use engine::run::drive::Policy;
use engine::run::request::{Call, Outcome, Request};
use engine::run::turn::Turn;
use engine::session::Session;
use engine::session::client::Client;
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
}

impl Policy for Tries<'_> {
    fn wait(&mut self, turn: &mut Turn, outcome: &Outcome) -> bool {
        turn.announce_appends(self.engine);
        self.left -= 1;
        let again = matches!(outcome, Outcome::Contended) && self.left > 0;
        if again {
            sleep(PAUSE_OF_TRIES);
        }
        again
    }
}

/// See the module's text.
pub struct Hand {
    patience: Duration,
    engine: Arc<Engine>,
    turn: Turn,
    gate: Gate,
    session: Session,
}

impl Hand {
    /// That of a thread, whose figures have this name.
    pub fn new(engine: Arc<Engine>, thread: &str) -> Hand {
        let client = Client::new(0, 0, String::new(), String::new(), 0, base::clock::steady_ms());
        let session = Session::new(Arc::new(client), true);
        let (turn, gate) = (Turn::new(&engine, thread), engine.gates.register());
        Hand { patience: PATIENCE, turn, gate, session, engine }
    }

    /// Does something whose commands wait this long for slots that others keep locked.
    pub fn with_patience<T>(&mut self, patience: Duration, act: impl FnOnce(&mut Hand) -> T) -> T {
        let before = std::mem::replace(&mut self.patience, patience);
        let result = act(self);
        self.patience = before;
        result
    }

    /// Runs a command as a client would send it. Returns its reply, or nothing where it cannot run now.
    pub fn run(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let argv: OwnedArguments = words.iter().collect();
        let mut keys = Vec::new();
        let row = self.engine.prepare(argv.view(), &mut keys);
        self.execute(row, &argv, &keys).map(|reply| reply.to_vec())
    }

    /// Runs a command of this row.
    pub fn run_row(&mut self, row: &'static Row, argv: &OwnedArguments) -> Option<Output> {
        let mut keys = Vec::new();
        self.engine.find_keys(row, argv.view(), &mut keys);
        self.execute(Some(row), argv, &keys)
    }

    fn execute(
        &mut self,
        row: Option<&'static Row>,
        argv: &OwnedArguments,
        keys: &[KeyAt],
    ) -> Option<Output> {
        let Hand { patience, engine, turn, gate, session } = self;
        let mut output = Output::new();
        let request = Request { argv: argv.view(), row, keys, busy: None };
        let call = Call { turn, session, request, output: &mut output };
        let left = (patience.as_micros() / PAUSE_OF_TRIES.as_micros()) as usize;
        let outcome = engine.drive(call, gate, Tries { engine, left });
        turn.announce_appends(engine);
        matches!(outcome, Outcome::Done).then_some(output)
    }

    /// Whether a command runs without an error.
    pub fn succeeds(&mut self, words: &[&[u8]]) -> bool {
        self.run(words).is_some_and(|reply| !reply.starts_with(b"-"))
    }
}
