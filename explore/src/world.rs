//! An engine in memory, and connections to it whose commands run as those of a worker do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use commands::registry;
use config::Config;
use engine::db::slot_access::SlotAccess;
use engine::engine::Engine;
use engine::journal::{EffectBatch, Journal};
use engine::no_host::NoHost;
use engine::session::awaited::Wait;
use engine::session::client::Client;
use engine::session::{Session, User};
use engine::turn::Turn;
use engine::turn::request::{Outcome, Request};
use resp::args::OwnedArguments;
use resp::output::Output;
use server::net::pending::{PendingCommand, PendingCommands, Ran, WaitsFor};
use store::Key;
use store::gate::Gate;

/// Nothing reads the stream of writes.
pub struct NoJournal;

impl Journal for NoJournal {
    fn has_file(&self) -> bool {
        false
    }

    fn append(&self, _: &EffectBatch) -> u64 {
        1
    }
}

/// An engine without data.
pub fn engine() -> Arc<Engine> {
    let config = Config { databases: 1, ..Config::default() };
    let host = Arc::new(NoHost::default());
    let (host, storage) = (Arc::clone(&host) as _, host);
    Arc::new(Engine::new(config, registry(), host, storage, Arc::new(NoJournal)))
}

/// One try of a command.
pub struct Try {
    /// When it was, on the worker's clock.
    pub at: Instant,
    /// Whether it could keep newcomers away from slots.
    pub reserved: bool,
    /// Whether it was in vain.
    pub contended: bool,
}

/// A connection, without a socket.
pub struct Connection {
    session: Session,
    output: Output,
    pending: PendingCommands,
    /// The requests that its client has sent.
    requests: VecDeque<&'static str>,
    /// The tries of its commands.
    pub tries: Vec<Try>,
}

impl Connection {
    /// Sends a command, of words between single spaces.
    pub fn send(&mut self, line: &'static str) {
        self.requests.push_back(line);
    }

    /// The replies so far.
    pub fn replies(&self) -> String {
        String::from_utf8_lossy(&self.output.to_vec()).into_owned()
    }

    /// The number of its client.
    pub fn id(&self) -> u64 {
        self.session.client.id
    }

    /// Whether it has nothing left to run, and waits for nothing.
    pub fn rests(&self) -> bool {
        self.requests.is_empty() && self.pending.is_empty() && self.pending.runs()
    }

    /// The wait in which it is blocked.
    pub fn waiter(&self) -> Option<Arc<Wait>> {
        match &self.pending.waits_for {
            WaitsFor::Blocked(wait) => Some(Arc::clone(wait)),
            _ => None,
        }
    }

    /// Ends its waiting. The claimer of the waiter answers.
    pub fn end_wait(&mut self, worker: &Worker, reply: &[u8]) {
        let Some(waiter) = self.waiter() else { return };
        self.pending.waits_for = WaitsFor::Nothing;
        let inside = worker.gate.enter();
        worker.engine.end_wait(inside.pinned(), &self.session, &waiter);
        drop(inside);
        self.output.push(reply);
    }

    /// Takes the reply that another thread has left for it, if there is one.
    pub fn take_inbox(&mut self, worker: &Worker) -> bool {
        let served = self.session.client.inbox.lock().served.take();
        served.inspect(|served| self.end_wait(worker, &served.reply.to_vec())).is_some()
    }
}

/// A worker, without a poll. Its clock goes on by a step each turn.
pub struct Worker {
    /// The engine in which it runs commands.
    pub engine: Arc<Engine>,
    gate: Gate,
    turn: Turn,
    now: Instant,
}

/// The time of a turn.
const STEP: Duration = Duration::from_millis(1);

impl Worker {
    /// A worker of an engine.
    pub fn new(engine: &Arc<Engine>) -> Worker {
        let (gate, turn) = (engine.gates.register(), Turn::new(engine, "worker"));
        Worker { engine: Arc::clone(engine), gate, turn, now: Instant::now() }
    }

    /// A connection of this worker.
    pub fn connect(&self) -> Connection {
        let (id, none) = (self.engine.next_client_id(), String::new);
        let client = Arc::new(Client::new(id, 0, none(), none(), 0, 0));
        self.engine.clients.add(&client);
        Connection {
            session: Session::new(client, User::at_first(&self.engine.users)),
            output: Output::new(),
            pending: PendingCommands::default(),
            requests: VecDeque::new(),
            tries: Vec::new(),
        }
    }

    /// Serves a connection once: runs a pending command, or else a command that has come.
    pub fn serve(&mut self, connection: &mut Connection) {
        self.now += STEP;
        let now = self.now;
        let mut pending = std::mem::take(&mut connection.pending);
        let engine = Arc::clone(&self.engine);
        if pending.runs()
            && pending.is_empty()
            && let Some(line) = connection.requests.pop_front()
        {
            let argv: OwnedArguments = line.split(' ').collect();
            let row = engine.prepare(argv.view(), &mut Vec::new());
            let command = PendingCommand { row, argv };
            let inside = self.gate.enter();
            let slot_access = SlotAccess::Ordinary(inside.pinned());
            let ran = run(&engine, &mut self.turn, connection, command, slot_access, now);
            if !matches!(ran.outcome, Outcome::Done) {
                pending.wait_for(ran.outcome, ran.command, ran.slot, now);
            }
        } else {
            let (space, gates, turn) = (&engine.keyspace, &engine.gates, &mut self.turn);
            pending.run(
                space,
                Some(gates),
                (&self.gate, false),
                || now,
                |command, slot_access| run(&engine, turn, connection, command, slot_access, now),
            );
        }
        connection.pending = pending;
    }

    /// Runs commands of a connection of its own, and returns the replies.
    pub fn text(&mut self, line: &'static str) -> String {
        let mut connection = self.connect();
        connection.send(line);
        while !connection.rests() {
            self.serve(&mut connection);
            shuttle::thread::yield_now();
        }
        connection.replies()
    }

    /// Whether a client has left something at the slot of a key. No thread holds the slot.
    pub fn has_attachment(&self, key: &[u8]) -> bool {
        let (inside, slot) = (self.gate.enter(), Key::new(key).slot);
        let locked = self.engine.keyspace.try_lock_one(inside.pinned(), slot, 0);
        locked.expect("nobody holds it").attachment(slot).is_some()
    }

    /// Does what workers do now and then.
    pub fn clean_slots(&self) {
        self.engine.clean_slots(self.gate.enter().pinned());
    }
}

fn run(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    command: PendingCommand,
    slot_access: SlotAccess<'_>,
    at: Instant,
) -> Ran {
    let mut keys = Vec::new();
    if let Some(row) = command.row {
        engine.find_keys(row, command.argv.view(), &mut keys);
    }
    let request = Request { argv: command.argv.view(), row: command.row, keys: &keys, busy: None };
    turn.enter(engine);
    let (session, output) = (&mut connection.session, &mut connection.output);
    let outcome = engine.execute(turn, session, request, slot_access, output);
    let contended = matches!(outcome, Outcome::Contended);
    connection.tries.push(Try { at, reserved: slot_access.reservation().is_some(), contended });
    let again = outcome.runs_again().then_some(command);
    Ran { outcome, command: again, parts: Vec::new(), slot: turn.contended_slot, open: true }
}
