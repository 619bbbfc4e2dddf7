//! One client of the storm: it sends, waits, connects again, and notes what happened.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use tests::client::{Client, Received, Reply, encode};
use tests::random::Random;

use crate::data::HOME;
use crate::history::{Action, Clock, NEVER, Operation, Time};
use crate::replicas::Replicas;

/// What goes on at some time: for the report of a stall.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    pub(crate) what: String,
    pub(crate) begin: Time,
    pub(crate) end: Time,
}

/// What all clients of one process share.
pub(crate) struct World {
    pub(crate) port: u16,
    pub(crate) clock: Clock,
    /// The number of this life, which makes values new.
    pub(crate) life: u64,
    /// That the clients come to an end.
    pub(crate) stop: AtomicBool,
    /// That no more scripts are to be run that take long: a stop is refused beside them.
    pub(crate) calm: AtomicBool,
    /// Those that run.
    pub(crate) long_scripts: AtomicUsize,
    pub(crate) violations: Mutex<Vec<String>>,
    pub(crate) happenings: Mutex<Vec<Happening>>,
    /// The replicas of the server, if the storm is about them.
    pub(crate) replicas: Option<Replicas>,
}

impl World {
    pub(crate) fn new(port: u16, clock: Clock, life: u64) -> World {
        World {
            port,
            clock,
            life,
            stop: AtomicBool::new(false),
            calm: AtomicBool::new(false),
            long_scripts: AtomicUsize::new(0),
            violations: Mutex::default(),
            happenings: Mutex::default(),
            replicas: None,
        }
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// Waits until no script takes long, and none will.
    pub(crate) fn become_calm(&self) {
        self.calm.store(true, Ordering::SeqCst);
        while self.long_scripts.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(3));
        }
    }

    pub(crate) fn complain(&self, violation: String) {
        self.violations.lock().expect("no client panics").push(violation);
    }

    /// Notes what went on from some time until now.
    pub(crate) fn note(&self, what: &str, begin: Time) {
        let end = self.clock.now();
        let happening = Happening { what: what.to_owned(), begin, end };
        self.happenings.lock().expect("no client panics").push(happening);
    }
}

/// The answer to a transaction.
pub(crate) enum Executed {
    Done(Vec<Reply>),
    /// A watched key had changed.
    Aborted,
    Refused,
    Unanswered,
}

/// One client.
pub(crate) struct Actor<'w> {
    pub(crate) world: &'w World,
    pub(crate) random: Random,
    pub(crate) operations: Vec<Operation>,
    /// Connections broken so far.
    pub(crate) breaks: u64,
    /// A command that each new connection begins with.
    pub(crate) greeting: Option<String>,
    client: Option<Client>,
    name: &'static str,
    database: usize,
    /// Whether errors are part of its work.
    lenient: bool,
}

/// Errors that say that nothing was done.
const REFUSALS: &[&[u8]] = &[
    b"MISCONF ",
    b"LOADING ",
    b"EXECABORT ",
    b"OOM ",
    b"BUSY ",
    // A flush takes groups with it; functions may be lost where nothing promised them.
    b"NOGROUP ",
    b"BUSYGROUP ",
    b"ERR Function not found",
    b"ERR The server is stopping.",
    // CLIENT KILL also ends a script of its client that has written nothing.
    b"ERR Script killed by user",
];

/// Errors of servers that have replicas, or become replicas.
const REFUSALS_AMONG_REPLICAS: &[&[u8]] =
    &[b"READONLY ", b"NODURABLE ", b"MASTERDOWN ", b"UNBLOCKED ", b"ERR WAIT cannot "];

/// Whether a reply is an error that a busy server with a failing disk may give.
pub(crate) fn is_refusal(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if REFUSALS.iter().any(|start| text.starts_with(start)))
}

impl<'w> Actor<'w> {
    pub(crate) fn new(world: &'w World, seed: u64, name: &'static str) -> Actor<'w> {
        let (random, operations) = (Random::new(seed), Vec::new());
        let (client, greeting, breaks, database) = (None, None, 0, HOME);
        let lenient = false;
        Actor { world, random, operations, breaks, greeting, client, name, database, lenient }
    }

    /// One whose errors are no violations, in the first database.
    pub(crate) fn lenient(world: &'w World, seed: u64, name: &'static str) -> Actor<'w> {
        Actor { lenient: true, database: 0, ..Actor::new(world, seed, name) }
    }

    /// A number that was never used before, larger than all of this client's.
    pub(crate) fn fresh(&self, client: usize, count: u64) -> u64 {
        (self.world.life << 36) + ((client as u64) << 30) + count
    }

    pub(crate) fn now(&self) -> Time {
        self.world.clock.now()
    }

    pub(crate) fn rest(&mut self, most_microseconds: i64) {
        let wanted = self.random.between(0, most_microseconds).unsigned_abs();
        sleep(Duration::from_micros(wanted));
    }

    pub(crate) fn record(&mut self, action: Action, begin: Time, end: Option<Time>) {
        self.operations.push(Operation { action, begin, end: end.unwrap_or(NEVER) });
    }

    /// Gives up the connection.
    pub(crate) fn hang_up(&mut self) {
        self.client = None;
        self.breaks += 1;
    }

    /// The connection, a new one if need be; none when the storm is over.
    pub(crate) fn connected(&mut self) -> Option<&mut Client> {
        while self.client.is_none() && self.world.goes_on() {
            match self.introduce() {
                Ok(client) => self.client = Some(client),
                Err(_) => sleep(Duration::from_millis(3)),
            }
        }
        self.client.as_mut()
    }

    fn introduce(&self) -> anyhow::Result<Client> {
        let mut client = Client::connect(self.world.port)?;
        let first = [format!("SELECT {}", self.database), format!("CLIENT SETNAME {}", self.name)];
        for command in first.iter().chain(&self.greeting) {
            let reply = client.call_text(command)?;
            anyhow::ensure!(!reply.is_error(), "{reply:?}");
        }
        Ok(client)
    }

    /// Sends commands at once and collects the answers, with their times; `None` for each that did
    /// not come.
    pub(crate) fn exchange(&mut self, commands: &[String]) -> Vec<Option<(Reply, Time)>> {
        let mut answers = Vec::with_capacity(commands.len());
        let words: Vec<Vec<&str>> =
            commands.iter().map(|command| command.split(' ').collect()).collect();
        let mut request = Vec::new();
        words.iter().for_each(|words| encode(words, &mut request));
        let world = self.world;
        if let Some(client) = self.connected()
            && client.send_raw(&request).is_ok()
        {
            for command in commands {
                let received = client.receive();
                match received {
                    Ok(Received::Reply(reply)) => answers.push(Some((reply, world.clock.now()))),
                    Ok(Received::Closed) => break,
                    Err(error) => {
                        blame(world, &error, command);
                        break;
                    }
                }
            }
        }
        if answers.len() < commands.len() {
            self.hang_up();
        }
        if !self.lenient {
            self.look_for_errors(commands, &answers);
        }
        answers.resize(commands.len(), None);
        answers
    }

    fn look_for_errors(&self, commands: &[String], answers: &[Option<(Reply, Time)>]) {
        for (command, answer) in commands.iter().zip(answers) {
            let Some((reply, _)) = answer else { continue };
            if reply.is_error() && !is_refusal(reply) && !self.is_excused(reply) {
                let command: String = command.chars().take(80).collect();
                self.world.complain(format!("{command} was answered {reply:?}"));
            }
        }
    }

    /// Whether an error comes from the replicas that the server has.
    fn is_excused(&self, reply: &Reply) -> bool {
        let Reply::Error(text) = reply else { return false };
        self.world.replicas.is_some()
            && REFUSALS_AMONG_REPLICAS.iter().any(|start| text.starts_with(start))
    }

    /// The answer to one command, and its time.
    pub(crate) fn call(&mut self, command: &str) -> Option<(Reply, Time)> {
        self.exchange(&[command.to_owned()]).pop().flatten()
    }

    /// Executes commands as one transaction, and says when it was answered.
    pub(crate) fn transaction(&mut self, commands: &[String]) -> (Executed, Option<Time>) {
        let mut all = vec!["MULTI".to_owned()];
        all.extend_from_slice(commands);
        all.push("EXEC".to_owned());
        match self.exchange(&all).pop().flatten() {
            None => (Executed::Unanswered, None),
            Some((Reply::Array(replies), end)) => {
                if let Some(error) = replies.iter().find(|reply| reply.is_error()) {
                    self.world.complain(format!("an EXEC was executed in part: {error:?}"));
                }
                (Executed::Done(replies), Some(end))
            }
            Some((Reply::NilArray | Reply::Nil, end)) => (Executed::Aborted, Some(end)),
            Some((_, end)) => (Executed::Refused, Some(end)),
        }
    }
}

/// Reports an answer that does not come, or is not valid.
fn blame(world: &World, error: &anyhow::Error, command: &str) {
    let cause = error.root_cause().downcast_ref::<io::Error>().map(io::Error::kind);
    let command: String = command.chars().take(80).collect();
    match cause {
        Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            world.complain(format!("{command} was not answered within ten seconds"));
        }
        // The connection broke in the middle of an answer.
        Some(_) => {}
        None if error.to_string().contains("line that does not end") => {}
        None => world.complain(format!("{command} was answered with {error:#}")),
    }
}
