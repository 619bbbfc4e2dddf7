//! Conducts a world: starts the server and its clients, ends them, and compares what is left with
//! what was acknowledged.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use simulation::{MachineNumber, ProcessNumber, Program, World};

use crate::check;
use crate::clients::{ENCRYPTED_PORT, PORT, RECORD};
use crate::history::{Action, Life, Promise, State, Time};
use crate::plan::{self, Ending, Moment, Policy};
use crate::record::Record;

/// How long a start may take, of the virtual time.
const START: Duration = Duration::from_secs(60);
/// How long an end waits for its moment.
const MOMENT: Duration = Duration::from_millis(600);
/// How long clients may take to end when the server is gone.
const END: Duration = Duration::from_secs(120);
/// What `everysec` may lose at most.
const MAY_LOSE: Duration = Duration::from_secs(2);

/// What can be told of worlds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) time: Duration,
    pub(crate) steps: u64,
    pub(crate) lives: u64,
    pub(crate) operations: usize,
    /// Starts for which files had to be repaired.
    pub(crate) repairs: u64,
    pub(crate) hash: u64,
}

impl Told {
    /// Adds what is told of another world.
    pub(crate) fn add(&mut self, other: &Told) {
        self.time += other.time;
        self.steps += other.steps;
        self.lives += other.lives;
        self.operations += other.operations;
        self.repairs += other.repairs;
        self.hash ^= other.hash;
    }
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { time, steps, lives, operations, repairs, hash } = self;
        let time = time.as_secs_f64();
        write!(
            formatter,
            "{time:.3} s, {lives} lives, {operations} operations, {repairs} repairs, {steps} calls, {hash:016x}"
        )
    }
}

/// Plays the world of a seed, at most this many lives of it.
pub(crate) fn play(seed: u64, most: usize) -> Result<Told> {
    let mut conductor = Conductor::new(seed)?;
    for (number, life) in plan::lives(seed).iter().take(most).enumerate() {
        conductor.live(number as u64, life).with_context(|| format!("life {number}, {life:?}"))?;
    }
    let Conductor { world, operations, lives, repairs, .. } = conductor;
    Ok(Told {
        time: world.now(),
        steps: world.steps(),
        lives,
        operations,
        repairs,
        hash: world.hash(),
    })
}

/// A life that is over, and has not been judged yet.
struct Past {
    record: Record,
    policy: Policy,
    ending: Ending,
    /// When its disk was sound for the last time, at its end at the latest.
    sound: Time,
}

struct Conductor {
    world: World,
    server: MachineNumber,
    clients: MachineNumber,
    dunlin: std::path::PathBuf,
    /// The server has certificates.
    is_certified: bool,
    /// What the server had when it was read last, and what has happened since.
    before: State,
    past: Option<Past>,
    operations: usize,
    lives: u64,
    repairs: u64,
}

/// A time of the world as clients count it.
pub(crate) fn nanoseconds(time: Duration) -> Time {
    u64::try_from(time.as_nanos()).unwrap_or(Time::MAX - 1)
}

impl Conductor {
    fn new(seed: u64) -> Result<Conductor> {
        let mut world = World::new(seed);
        let (server, clients) = (world.add_machine(), world.add_machine());
        world.forward(clients, PORT, server);
        world.forward(clients, ENCRYPTED_PORT, server);
        let dunlin = tests::server::dunlin_binary()?;
        let (before, past, operations, lives, repairs) = (State::default(), None, 0, 0, 0);
        Ok(Conductor {
            world,
            server,
            clients,
            dunlin,
            is_certified: false,
            before,
            past,
            operations,
            lives,
            repairs,
        })
    }

    fn start_server(&mut self, life: &plan::Life) -> Result<ProcessNumber> {
        let threads = life.threads.to_string();
        let options = [
            ("--port", "6379"),
            ("--bind", "127.0.0.1"),
            ("--dir", "/data"),
            ("--appendonly", "yes"),
            ("--appendfsync", life.policy.name()),
            ("--save", "60 1"),
            ("--enable-debug-command", "yes"),
            ("--threads", &threads),
        ];
        let mut arguments = vec!["serve".to_owned()];
        let encrypted_port = ENCRYPTED_PORT.to_string();
        let encryption = [
            ("--tls-port", &*encrypted_port),
            ("--tls-cert-file", "/data/tls/server.crt"),
            ("--tls-key-file", "/data/tls/server.key"),
            ("--tls-auth-clients", "no"),
        ];
        let encryption = if life.is_encrypted { &encryption[..] } else { &[] };
        for (name, value) in options.iter().chain(encryption) {
            arguments.extend([(*name).to_owned(), (*value).to_owned()]);
        }
        let path = self.dunlin.clone();
        self.world.start(self.server, &Program { path, arguments, environment: Vec::new() })
    }

    /// Makes certificates on the server's machine, which no cut of the power takes away.
    fn certify(&mut self) -> Result<()> {
        let arguments = ["tls", "dev", "/data/tls"].map(str::to_owned).to_vec();
        let program = Program { path: self.dunlin.clone(), arguments, environment: Vec::new() };
        let made = self.world.start(self.server, &program)?;
        let has_ended = self.world.run(END, |world| !world.is_running(made))?;
        let status = self.world.status(made);
        ensure!(has_ended && status == Some(0), "certificates: {status:?}\n{}", self.log(made));
        self.world.write_back(self.server);
        self.is_certified = true;
        Ok(())
    }

    fn start_clients(&mut self, task: &str, words: &[u64]) -> Result<ProcessNumber> {
        let path = std::env::current_exe()?;
        let mut arguments = vec![format!("client:{task}")];
        arguments.extend(words.iter().map(u64::to_string));
        self.world.start(self.clients, &Program { path, arguments, environment: Vec::new() })
    }

    /// Waits until the server is there.
    fn wait_for_server(&mut self, server: ProcessNumber) -> Result<()> {
        let machine = self.server;
        let listens = |world: &World| world.listens(machine, PORT) || !world.is_running(server);
        let is_there = self.world.run(START, listens)? && self.world.is_running(server);
        ensure!(
            is_there,
            "the server does not start: {:?}\n{}",
            self.world.status(server),
            self.log(server)
        );
        Ok(())
    }

    fn log(&self, server: ProcessNumber) -> String {
        let log = self.world.output(server);
        let lines: Vec<&str> = log.lines().collect();
        let files = self.world.files(self.server);
        let files: Vec<_> =
            files.iter().map(|(name, bytes)| format!("{name}: {}", bytes.len())).collect();
        format!("{}\n{files:?}", lines[lines.len().saturating_sub(40)..].join("\n"))
    }

    /// Waits until clients have ended, and takes what they have left.
    fn record(&mut self, clients: ProcessNumber, most: Duration) -> Result<Record> {
        let has_ended = self.world.run(most, |world| !world.is_running(clients))?;
        ensure!(has_ended, "the clients do not end: {}", self.world.output(clients));
        let status = self.world.status(clients);
        ensure!(status == Some(0), "clients: {status:?}\n{}", self.world.output(clients));
        let files = self.world.files(self.clients);
        let record = files.iter().find(|(name, _)| format!("/data{name}") == RECORD);
        let (_, text) = record.context("the clients have left nothing")?;
        Record::read(&String::from_utf8_lossy(text), nanoseconds(World::origin()))
    }

    fn live(&mut self, number: u64, life: &plan::Life) -> Result<()> {
        // A server whose disk fails at the start does not start, as it should.
        let failing = std::mem::take(&mut self.world.weather().failing_syncs);
        if life.is_encrypted && !self.is_certified {
            self.certify()?;
        }
        for (after, ending) in &life.early {
            let server = self.start_server(life)?;
            self.world.run(*after, |world| !world.is_running(server))?;
            let ending = self.end(server, *ending)?;
            if ending == Ending::PowerCut
                && let Some(past) = self.past.as_mut().filter(|past| past.ending == Ending::Kill)
            {
                // What the process had written was still there after it, and may be gone now.
                past.ending = ending;
            }
        }
        let server = self.begin(life)?;
        self.world.run(life.quiet, |world| !world.is_running(server))?;
        self.world.weather().failing_syncs = failing;
        let clients =
            self.start_clients("work", &[life.seed, number, u64::from(life.is_encrypted)])?;
        self.world.run(life.busy, |world| !world.is_running(clients))?;
        ensure!(
            self.world.is_running(server),
            "the server has ended by itself: {:?}\n{}",
            self.world.status(server),
            self.log(server)
        );
        self.wait_for_moment(life.moment)?;
        let now = nanoseconds(self.world.now());
        let ending = self.end(server, life.ending)?;
        let record = self.record(clients, END)?;
        ensure!(
            record.violations.is_empty(),
            "{}\n{}",
            record.violations.join("\n"),
            self.log(server)
        );
        self.operations += record.operations.len();
        self.lives += 1;
        let failed = self.world.disk_failed(self.server).map_or(Time::MAX, nanoseconds);
        self.past = Some(Past { record, policy: life.policy, ending, sound: now.min(failed) });
        Ok(())
    }

    /// Starts the server, and holds what it has loaded against the life before.
    fn begin(&mut self, life: &plan::Life) -> Result<ProcessNumber> {
        for _ in 0..2 {
            let server = self.start_server(life)?;
            self.wait_for_server(server)?;
            let reader = self.start_clients("read", &[])?;
            let read = self.record(reader, END)?;
            if self.world.is_running(server) {
                self.judge(server, read)?;
                if life.policy != Policy::Always {
                    // What was loaded need not be durable, and the next life is judged from here
                    // on.
                    self.world.write_back(self.server);
                }
                return Ok(server);
            }
            // When the power fails while nothing is synced, it may ask for this.
            let asks = self.world.output(server).contains("`dunlin check --fix` keeps");
            ensure!(asks, "the server has ended at its start:\n{}", self.log(server));
            self.repair()?;
        }
        bail!("the server does not start, and repairing its files does not help")
    }

    /// Has the files repaired, which must not cost what was promised.
    fn repair(&mut self) -> Result<()> {
        let arguments = ["check", "/data/appendonlydir", "--fix"].map(str::to_owned).to_vec();
        let program = Program { path: self.dunlin.clone(), arguments, environment: Vec::new() };
        let check = self.world.start(self.server, &program)?;
        let has_ended = self.world.run(END, |world| !world.is_running(check))?;
        let status = self.world.status(check);
        ensure!(has_ended && status == Some(0), "check: {status:?}\n{}", self.log(check));
        self.repairs += 1;
        Ok(())
    }

    fn judge(&mut self, server: ProcessNumber, read: Record) -> Result<()> {
        let mut wrong = read.violations;
        let state = read.state;
        if let Some(Past { record, policy, ending, sound }) = self.past.take() {
            let promise = promise(ending, policy, sound);
            let before = std::mem::take(&mut self.before);
            let operations = record.operations;
            let mut life = Life { before, operations, promise, after: state.clone() };
            if policy != Policy::Always {
                // Nobody who has only read was promised anything: replies that tell of others'
                // writes do not wait until these are written.
                let spans = std::mem::take(&mut life.promise.spans);
                wrong.extend(check::check(&life));
                life.promise.spans = spans;
                life.operations.retain(|it| !matches!(it.action, Action::Read { .. }));
            }
            wrong.extend(check::check(&life));
        }
        if !wrong.is_empty() {
            bail!("{}\n{}", wrong.join("\n"), self.log(server));
        }
        self.before = state;
        Ok(())
    }

    fn wait_for_moment(&mut self, moment: Moment) -> Result<()> {
        let machine = self.server;
        let is_there = |world: &World| match moment {
            Moment::Any => true,
            Moment::Sync => world.is_syncing(machine, false),
            Moment::Naming => world.is_syncing(machine, true),
            Moment::Renaming => world.has_names_at_stake(machine),
        };
        self.world.run(MOMENT, is_there)?;
        Ok(())
    }

    /// Ends the server's process, and says how that went.
    fn end(&mut self, server: ProcessNumber, ending: Ending) -> Result<Ending> {
        match ending {
            Ending::Kill => self.world.kill(server),
            Ending::PowerCut => drop(self.world.cut_power(self.server)),
            Ending::Stop => {
                // TERM
                self.world.signal(server, 15);
                if !self.world.run(END, |world| !world.is_running(server))? {
                    // It may refuse to lose what it cannot write.
                    let has_failed = self.world.disk_failed(self.server).is_some();
                    ensure!(has_failed, "the server does not stop:\n{}", self.log(server));
                    self.world.kill(server);
                    return Ok(Ending::Kill);
                }
            }
        }
        Ok(ending)
    }
}

/// What must have survived an end, given when the disk was sound for the last time.
pub(crate) fn promise(ending: Ending, policy: Policy, sound: Time) -> Promise {
    let spans = match (ending, policy) {
        (Ending::Stop, _) | (_, Policy::Always) => vec![(0, Time::MAX - 1)],
        (Ending::Kill, _) => vec![(0, sound)],
        (Ending::PowerCut, Policy::EverySecond) => {
            vec![(0, sound.saturating_sub(nanoseconds(MAY_LOSE)))]
        }
        (Ending::PowerCut, Policy::Never) => Vec::new(),
    };
    let reason = format!("{ending:?} under {}", policy.name());
    match (ending, policy) {
        // A reader does not wait for the write of another client.
        (Ending::Kill, Policy::EverySecond | Policy::Never) => {
            Promise { spans, of_what_is_seen: Vec::new(), reason }
        }
        _ => Promise::of_all(spans, reason),
    }
}
