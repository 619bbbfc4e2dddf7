//! A storm: clients of all kinds work on a process that is stopped, killed and started again, on a
//! disk that is slow, full or failing at times. A checker looks at what they saw.
//!
//! `make storm SECONDS=3600 SEED=7` runs a long storm; the tests include a short one with a fixed
//! seed. A long storm has [`squalls`] between the lives of the process. The seed alone decides what
//! is done to the server, but not which client is faster than another. [`check`] says what is
//! wrong, [`conduct`] what must survive, and [`watch`] who waited.

mod actor;
mod canary;
mod check;
mod conduct;
mod data;
mod history;
#[allow(dead_code, reason = "simulated worlds use all of it")]
mod judge;
mod plan;
mod replicas;
mod roles;
mod squalls;
mod watch;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::observe::{figure, number};
use tests::server::{Server, Target};
use tests::volume::Volume;

use actor::World;
use conduct::Conductor;
use history::{Action, Clock, Life, Operation, State};
use plan::{Disk, Ending, Plan};

/// How long the storm that goes with the tests is.
const SHORT: Duration = Duration::from_secs(40);
/// The room for data files.
const ROOM: u64 = 192 << 20;
/// What may stay in use after everything is flushed: tables, buffers of a few clients, and those of
/// the journal, which keeps some megabytes for the next burst.
const MAY_REMAIN: u64 = 10 << 20;
/// How long a squall is, between two lives or when it is repeated.
const SQUALL: Duration = Duration::from_secs(6);
/// How long memory may take to come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the environment asks for.
struct Wishes {
    seed: u64,
    duration: Duration,
    /// Whether a PING that waits is a failure.
    strict: bool,
    /// The only kind of squall that is wanted, in place of the storm.
    squall: Option<String>,
}

impl Wishes {
    fn new() -> Wishes {
        let setting = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
        let seconds = setting("DUNLIN_STORM");
        Wishes {
            seed: setting("DUNLIN_SEED").unwrap_or(1),
            duration: seconds.map_or(SHORT, Duration::from_secs),
            strict: seconds.is_some(),
            squall: std::env::var("DUNLIN_SQUALL").ok(),
        }
    }
}

fn say(text: &str) {
    // Past the capture of the test's output: a user who waits for an hour wants to see something.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A server that is started again and again, and its expected data.
struct Storm {
    server: Server,
    volume: Option<Volume>,
    clock: Clock,
    state: State,
    appends: bool,
    /// Bytes in use by an empty server.
    empty: u64,
    /// Waits that nothing explains.
    stalls: Vec<String>,
    operations: usize,
    worst_loss: u64,
}

#[test]
fn nothing_goes_wrong_in_a_storm() -> Result<()> {
    let wishes = Wishes::new();
    say(&format!("storm: seed {}, {} s", wishes.seed, wishes.duration.as_secs()));
    if let Some(name) = &wishes.squall {
        return repeat(squalls::Squall::named(name)?, &wishes);
    }
    let mut storm = Storm::begin()?;
    let begin = Instant::now();
    let mut life = 0;
    while life == 0 || begin.elapsed() < wishes.duration {
        let plan = Plan::new(wishes.seed, life);
        if wishes.strict {
            say(&format!("life {life} at {} s: {:?}", begin.elapsed().as_secs(), plan));
        }
        let lived = storm.live(&plan, life);
        if let Err(error) = lived {
            let kept = storm.keep(wishes.seed);
            bail!("seed {}, life {life}, {plan:?}: {error:#}\nkept in {kept:?}", wishes.seed);
        }
        // In the tests each kind has its own, see there.
        if wishes.strict && life % 2 == 1 {
            let kinds = squalls::ALL;
            let turn = (life / 2 + wishes.seed) as usize % kinds.len();
            kinds[turn].play(wishes.seed * 1000 + life, SQUALL)?;
        }
        life += 1;
    }
    let Storm { operations, worst_loss, ref stalls, .. } = storm;
    say(&format!(
        "storm: {life} lives, {operations} operations, the most lost after a kill that nothing \
         promised: {} ms; {} long waits\n{}",
        worst_loss / 1_000_000,
        stalls.len(),
        stalls.join("\n")
    ));
    ensure!(!wishes.strict || stalls.is_empty(), "{} PINGs waited", stalls.len());
    Ok(())
}

/// One kind of squall after the other, each from the next seed.
fn repeat(squall: &squalls::Squall, wishes: &Wishes) -> Result<()> {
    let begin = Instant::now();
    let mut seed = wishes.seed;
    while seed == wishes.seed || begin.elapsed() < wishes.duration {
        say(&format!("{}, seed {seed}, at {} s", squall.name, begin.elapsed().as_secs()));
        squall.play(seed, SQUALL)?;
        seed += 1;
    }
    Ok(())
}

impl Storm {
    fn begin() -> Result<Storm> {
        let volume = Volume::mount(ROOM, "the part of the storm with full disks")?;
        let mut server = Server::start(Target::Dunlin, &[])?;
        let empty = number(&mut server.connect()?, "used_memory")?;
        server.kill();
        let state = State::default();
        let (clock, appends, stalls) = (Clock::new(), false, Vec::new());
        let (operations, worst_loss) = (0, 0);
        Ok(Storm { server, volume, clock, state, appends, empty, stalls, operations, worst_loss })
    }

    fn data_directory(&self) -> PathBuf {
        match &self.volume {
            Some(volume) => volume.path().to_owned(),
            None => self.server.directory().to_owned(),
        }
    }

    /// One process, from its start to what it left behind.
    fn live(&mut self, plan: &Plan, number: u64) -> Result<()> {
        self.start(plan)?;
        let loaded =
            self.server.connect()?.call(&["FUNCTION", "LOAD", "REPLACE", data::LIBRARY])?;
        ensure!(!loaded.is_error() || actor::is_refusal(&loaded), "{loaded:?}");
        let world = World::new(self.server.port(), self.clock, number + 1);
        let mut life = Life { before: self.state.clone(), ..Life::default() };
        let pid = self.server.pid();
        let volume = self.volume.as_ref();
        let mut conductor = Conductor::new(&mut self.server, &world, volume, plan, self.appends);
        let (ended, stalls, lateness) = thread::scope(|scope| {
            let players: Vec<_> = roles::cast(&world, plan.seed, roles::OF_ONE)
                .into_iter()
                .map(|play| scope.spawn(play))
                .collect();
            let ping = |connection| {
                let world = &world;
                scope.spawn(move || watch::ping(world, connection))
            };
            let pingers: Vec<_> = (0..watch::CONNECTIONS).map(ping).collect();
            let measurer = scope.spawn(|| watch::measure(&world, pid));
            for (before, event) in &plan.events {
                thread::sleep(Duration::from_millis(*before));
                conductor.perform(event);
            }
            thread::sleep(Duration::from_millis(plan.rest));
            if matches!(plan.ending, Ending::Shutdown(_) | Ending::ShutdownAndUnpause) {
                world.become_calm();
            }
            let begin = world.clock.now();
            let ended = match plan.ending {
                Ending::Idle => Ok(None),
                _ => conductor.end().map(Some),
            };
            world.note("!the end", begin);
            world.stop.store(true, std::sync::atomic::Ordering::SeqCst);
            for player in players {
                life.operations.extend(player.join().expect("clients do not panic"));
            }
            let stalls =
                pingers.into_iter().map(|pinger| pinger.join().expect("it does not panic"));
            let stalls: Vec<_> = stalls.flatten().collect();
            (ended, stalls, measurer.join().expect("it does not panic"))
        });
        self.appends = conductor.appends();
        // Its connection counts as a client.
        drop(conductor);
        let ended = ended.with_context(|| violations(&world))?;
        self.stalls.extend(
            watch::explain(&world, &stalls, &lateness)
                .into_iter()
                .map(|stall| format!("life {number}: {stall}")),
        );
        self.operations += life.operations.len();
        let said = world.violations.into_inner().expect("no client panics");
        ensure!(said.is_empty(), "{}", said.join("\n"));
        if let Some(promise) = ended {
            life.promise = promise;
            self.look_at_log()?;
            self.copy_data()?;
            self.start_plainly()?;
            self.judge(&mut life)?;
        } else {
            let reason = "the process goes on".to_owned();
            life.promise = history::Promise::of_all(vec![(0, u64::MAX - 1)], reason);
            self.make_healthy()?;
            self.judge(&mut life)?;
            self.become_idle()?;
        }
        Ok(())
    }

    /// Makes room on the disk, and has a failed journal replaced by a rewrite: until then no reply
    /// is sent that nothing makes durable.
    fn make_healthy(&self) -> Result<()> {
        if let Some(volume) = &self.volume {
            let _ = fs::remove_file(volume.path().join("ballast"));
        }
        let begin = Instant::now();
        let mut client = self.server.connect()?;
        // It changes nothing, and is refused like any write.
        while client.call_text("DEL nothing").map_or(true, |reply| reply.is_error()) {
            client = self.server.connect()?;
            client.call_text("BGREWRITEAOF")?;
            ensure!(begin.elapsed() < PATIENCE, "writes are refused:\n{}", self.server.log_tail());
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Holds what a life has left behind against its history.
    fn judge(&mut self, life: &mut Life) -> Result<()> {
        let mut client = self.server.connect()?;
        let (state, mut wrong) = data::read_state(&mut client)?;
        life.after = state;
        let read = life.after.clone();
        if !self.appends && read == State::default() {
            // FLUSHALL writes an empty snapshot at once, before what follows it in a transaction.
            life.after.mark = last_flush(life).unwrap_or(0);
        }
        wrong.extend(check::check(life));
        let (_, loss) = check::loss(life);
        if self.appends {
            self.worst_loss = self.worst_loss.max(loss);
        }
        if !wrong.is_empty() {
            let mut history = String::new();
            for operation in &life.operations {
                writeln!(history, "{operation:?}")?;
            }
            let _ = fs::write(self.server.directory().join("history"), history);
            let states = format!("{:#?}\n{:#?}\n{:#?}", life.before, life.after, life.promise);
            let _ = fs::write(self.server.directory().join("states"), states);
            bail!("{}", wrong.join("\n"));
        }
        self.state = read;
        Ok(())
    }

    /// The clients have left: everything is flushed, and what it took comes back.
    fn become_idle(&mut self) -> Result<()> {
        let mut client = self.server.connect()?;
        let begin = Instant::now();
        // A journal that has failed needs a rewrite. If it fails meanwhile, replies that depend on
        // it are lost, with their connections.
        while client.call_text("FLUSHALL").map_or(true, |reply| reply.is_error())
            || client.call_text("PING").is_err()
        {
            client = self.server.connect()?;
            client.call_text("BGREWRITEAOF")?;
            ensure!(begin.elapsed() < PATIENCE, "FLUSHALL is refused:\n{}", self.server.log_tail());
            thread::sleep(Duration::from_millis(100));
        }
        let begin = Instant::now();
        loop {
            client.call_text("MEMORY PURGE")?;
            let used = number(&mut client, "used_memory")?;
            let blocked = figure(&mut client, "blocked_clients")?;
            let clients = number(&mut client, "connected_clients")?;
            if used <= self.empty + MAY_REMAIN && blocked == "0" && clients == 1 {
                break;
            }
            ensure!(
                begin.elapsed() < PATIENCE,
                "all is flushed, all have left, and {used} bytes remain in use where an empty server \
                 has {}; {blocked} blocked clients, {clients} connected\n{:?}",
                self.empty,
                client.call_text("MEMORY STATS")?
            );
            thread::sleep(Duration::from_millis(50));
        }
        // The flush has to be in the file that the next start loads.
        client.call_text(if self.appends { "WAITAOF 1 0 5000" } else { "SAVE" })?;
        self.state = State::default();
        self.server.kill();
        Ok(())
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("dir", self.data_directory().to_string_lossy().into_owned()),
            ("appendonly", if self.appends { "yes" } else { "no" }.to_owned()),
            // So that a stop saves.
            ("save", "3600 1".to_owned()),
        ]
    }

    /// Starts the process as its plan says.
    fn start(&mut self, plan: &Plan) -> Result<()> {
        let mut options = self.options();
        options.push(("threads", plan.threads.to_string()));
        options.push(("busy-reply-threshold", plan.slow.to_string()));
        let options: Vec<(&str, &str)> =
            options.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.server.set_options(&options);
        let words = wrapper(plan.disk);
        self.server.set_wrapper(&words.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some(volume) = &self.volume {
            let _ = fs::remove_file(volume.path().join("ballast"));
        }
        self.server.start_again()
    }

    /// Starts the process on a healthy disk, to read its data.
    fn start_plainly(&mut self) -> Result<()> {
        let options = self.options();
        let options: Vec<(&str, &str)> =
            options.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.server.set_options(&options);
        self.server.set_wrapper(&[]);
        if let Some(volume) = &self.volume {
            let _ = fs::remove_file(volume.path().join("ballast"));
        }
        self.server.start_again()
    }

    /// A server that broke down says so in its log.
    fn look_at_log(&self) -> Result<()> {
        let log = self.server.log();
        for word in ["BUG REPORT", "panicked at"] {
            ensure!(!log.contains(word), "the server broke down:\n{}", self.server.log_tail());
        }
        Ok(())
    }

    /// Keeps what the process has left, before the next one changes it.
    fn copy_data(&self) -> Result<()> {
        let copy = self.server.directory().join("left");
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir(&copy)?;
        fs::copy(self.server.directory().join("server.log"), copy.join("server.log"))?;
        for name in ["appendonlydir", "dump.rdb"] {
            let from = self.data_directory().join(name);
            if from.exists() {
                Command::new("cp").arg("-a").arg(from).arg(&copy).status()?;
            }
        }
        Ok(())
    }

    /// Saves the files of a failure, to look for its cause.
    fn keep(&mut self, seed: u64) -> PathBuf {
        let place =
            std::env::temp_dir().join(format!("dunlin-storm-{seed}-{}", std::process::id()));
        let _ = fs::create_dir_all(&place);
        let copy = |from: &Path, name: &str| {
            let _ = Command::new("cp").arg("-a").arg(from).arg(place.join(name)).status();
        };
        copy(self.server.directory(), "server");
        copy(&self.data_directory(), "data");
        place
    }
}

/// The mark of the last flush in a life.
fn last_flush(life: &Life) -> Option<u64> {
    let flush = |operation: &Operation| match operation.action {
        Action::Mark { number, flush: true } => Some(number),
        _ => None,
    };
    life.operations.iter().filter_map(flush).max()
}

fn violations(world: &World) -> String {
    world.violations.lock().map(|violations| violations.join("\n")).unwrap_or_default()
}

/// The program that makes a disk slow or failing, if it is there.
pub(crate) fn wrapper(disk: Disk) -> Vec<String> {
    let fault = match disk {
        Disk::Healthy => return Vec::new(),
        Disk::Slow(milliseconds) => format!("delay_enter={}", milliseconds * 1000),
        Disk::Failing(first) => format!("error=EIO:when={first}..{}", first + 2),
    };
    let is_there = Command::new("strace").arg("--version").output().is_ok();
    if !is_there {
        return Vec::new();
    }
    let inject = format!("inject=fdatasync,fsync:{fault}");
    let words = ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e"];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.extend(["trace=fdatasync,fsync", "-e", &inject].map(str::to_owned));
    words
}
