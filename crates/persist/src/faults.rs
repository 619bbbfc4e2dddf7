//! What happens to data and to clients when the disk fails: all of this room together, under a
//! whole engine, on a disk that fails when the test says so.
//!
//! A server works on a directory when one kind of operation begins to fail. The data that a power
//! failure would leave is loaded elsewhere and compared with what the client was told. Then the
//! disk works again, and so must everything.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{AppendFsync, Config};
use engine::engine::Engine;
use engine::no_host::NoHost;
use engine::run::drive::Policy;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::{Call, Outcome, Request};
use resp::args::OwnedArguments;
use resp::output::Output;
use store::gate::Gate;
use tempfile::TempDir;

use super::aof::append_only::{AppendOnly, DeferredReplies};
use super::cuts::Cuts;
use super::disk::faulty::{FaultyDisk, Operation};
use super::disk::{Disk, RealDisk};
use super::load::Load;
use super::rdb::saver::Saver;
use process::log::Log;

mod corruption;
mod files;
mod rewrites;

use files::Files;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The operations that are made to fail between a fault and the end of the load. No step has more
/// operations of a kind.
const MOST_OPERATIONS: usize = 60;

/// A server without sockets, with one client.
struct Rig {
    engine: Arc<Engine>,
    files: Arc<Files>,
    session: Session,
    turn: Turn,
    gate: Gate,
}

/// The answer that the client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answered {
    /// A reply, which was allowed to leave.
    Reply(String),
    /// Its connection is closed: the fate of its write is unknown.
    Nothing,
}

impl Answered {
    fn is_refusal(&self) -> bool {
        matches!(self, Answered::Reply(text) if text.starts_with("-MISCONF "))
    }

    fn number(&self) -> Option<u64> {
        let Answered::Reply(text) = self else { return None };
        text.strip_prefix(':')?.trim_end().parse().ok()
    }
}

fn config(home: &Path, appendonly: bool) -> Config {
    let path = |name: &str| home.join(name).as_os_str().as_bytes().to_vec();
    Config {
        appendonly,
        appendfsync: AppendFsync::Always,
        appenddirname: path("appendonlydir"),
        dbfilename: path("dump.rdb"),
        logfile: path("log"),
        ..Config::default()
    }
}

/// Waits for slots and for the disk.
struct Patient<'l> {
    line: &'l str,
    begun: Instant,
}

impl Policy for Patient<'_> {
    fn wait(&mut self, _: &mut Turn, _: &Outcome) -> bool {
        assert!(self.begun.elapsed() < PATIENCE, "{} is held up", self.line);
        std::thread::sleep(Duration::from_millis(1));
        true
    }
}

/// Nothing waits for the journal.
struct Nobody;

impl DeferredReplies for Nobody {
    fn note_progress(&self) {}

    fn note_failure(&self) {}
}

impl Rig {
    /// Loads the files, and goes on with them.
    fn start(disk: Arc<dyn Disk>, config: Config) -> Result<Rig, String> {
        let log = Arc::new(Log::open(&config).unwrap());
        let cuts = Arc::<Cuts>::default();
        let saver = Arc::new(Saver::new(Arc::clone(&disk), Arc::clone(&cuts)));
        let waiting = Arc::new(Nobody) as _;
        let append_only = AppendOnly::new(&config, &log, &waiting, cuts, Arc::clone(&disk));
        let append_only = Arc::new(append_only.unwrap());
        let journal = Arc::clone(append_only.journal());
        let host = Arc::new(NoHost::with_log(move |level, line| log.write(level, line)));
        let files = Arc::new(Files { saver, append_only });
        let storage = Arc::clone(&files) as _;
        let commands = commands::registry();
        let engine = Arc::new(Engine::new(config, commands, host, storage, journal));
        files.saver.connect(&engine);
        files.append_only.connect(&engine);
        let loaded = Load::new(&engine, disk, &|| false).all();
        loaded.map_err(|error| error.to_string())?;
        files.append_only.start(&engine)?;
        let (turn, gate) = (Turn::new(&engine, "test"), engine.gates.register());
        Ok(Rig { engine, files, session: Session::internal(), turn, gate })
    }

    fn execute(&mut self, line: &str, output: &mut Output) -> Outcome {
        let Rig { engine, session, turn, gate, .. } = self;
        let argv: OwnedArguments = line.split(' ').collect();
        let mut keys = Vec::new();
        let row = engine.prepare(argv.view(), &mut keys);
        let request = Request { argv: argv.view(), row, keys: &keys, busy: None };
        let call = Call { turn, session, request, output };
        engine.drive(call, gate, Patient { line, begun: Instant::now() })
    }

    fn tell(&mut self, line: &str) -> Answered {
        let mut output = Output::new();
        match self.execute(line, &mut output) {
            Outcome::Done => {}
            Outcome::Blocked(wait) => {
                let served =
                    self.wait_for("an answer", |rig| rig.session.client.inbox.lock().served.take());
                let inside = self.gate.enter();
                self.engine.end_wait(inside.pinned(), &self.session, &wait);
                return Answered::Reply(String::from_utf8(served.reply.to_vec()).unwrap());
            }
            _ => panic!("{line} needs more"),
        }
        self.turn.announce_appends(&self.engine);
        let reply = Answered::Reply(String::from_utf8(output.to_vec()).unwrap());
        let awaits_write = self.turn.awaits_write(&self.engine, &self.session);
        let awaited = match self.turn.defers_replies() {
            true => self.session.depends_on,
            false => awaits_write.unwrap_or_default(),
        };
        self.wait_for("the journal", |rig| {
            // In this order: it has synced what it covers before it failed.
            let failed = rig.engine.journal.state().failed;
            if rig.engine.journal.released() >= awaited {
                Some(reply.clone())
            } else {
                failed.then_some(Answered::Nothing)
            }
        })
    }

    fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&Rig) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = find(self) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} does not come");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Another client's turn: it does not depend on what this one has seen.
    fn reconnect(&mut self) {
        self.session = Session::internal();
    }

    fn is_rewriting(&self) -> bool {
        self.files.append_only.metrics().rewrites.current_seconds.is_some()
    }

    fn rewrite(&mut self) {
        let begun =
            Answered::Reply("+Background append only file rewriting started\r\n".to_owned());
        assert_eq!(self.tell("BGREWRITEAOF"), begun);
        self.wait_for("the end of the rewrite", |rig| (!rig.is_rewriting()).then_some(()));
    }

    fn counter(&mut self) -> u64 {
        match self.tell("GET counter") {
            Answered::Reply(text) => text.lines().nth(1).map_or(0, |line| line.parse().unwrap()),
            Answered::Nothing => panic!("nothing has failed"),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.files.append_only.stop();
    }
}

/// A directory and the disk that it is on.
struct Setup {
    home: TempDir,
    disk: FaultyDisk,
}

impl Setup {
    fn new() -> Setup {
        Setup { home: tempfile::tempdir().unwrap(), disk: FaultyDisk::new() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    fn start(&self, appendonly: bool) -> Result<Rig, String> {
        Rig::start(Arc::new(self.disk.clone()), config(self.home.path(), appendonly))
    }

    fn start_with(&self, appendfsync: AppendFsync) -> Rig {
        let config = Config { appendfsync, ..config(self.home.path(), true) };
        Rig::start(Arc::new(self.disk.clone()), config).unwrap()
    }

    /// The counter that a server finds after a power failure at this instant.
    fn counter_after_power_failure(&self) -> u64 {
        let elsewhere = tempfile::tempdir().unwrap();
        let directory = elsewhere.path().join("appendonlydir");
        self.disk.survivors(&self.path("appendonlydir"), &directory).unwrap();
        let mut rig = Rig::start(Arc::new(RealDisk), config(elsewhere.path(), true)).unwrap();
        rig.counter()
    }

    /// What a power failure at this instant would leave, in another directory, if it kept all of
    /// the files with names like this.
    fn after_power_failure_that_keeps(&self, name: &str) -> TempDir {
        let elsewhere = tempfile::tempdir().unwrap();
        let directory = elsewhere.path().join("appendonlydir");
        let is_whole = |other: &str| other.contains(name);
        self.disk.survivors_with(&self.path("appendonlydir"), &directory, is_whole).unwrap();
        elsewhere
    }

    /// The counter that a server finds when this one is killed at this instant.
    fn counter_after_kill(&self) -> u64 {
        let elsewhere = tempfile::tempdir().unwrap();
        let (from, to) = (self.path("appendonlydir"), elsewhere.path().join("appendonlydir"));
        fs::create_dir(&to).unwrap();
        for name in RealDisk.list(&from).unwrap() {
            fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
        let mut rig = Rig::start(Arc::new(RealDisk), config(elsewhere.path(), true)).unwrap();
        rig.counter()
    }

    /// Files that no list names.
    fn leftovers(&self) -> Vec<String> {
        let directory = self.path("appendonlydir");
        let list = fs::read_to_string(directory.join("appendonly.aof.manifest")).unwrap();
        let names = RealDisk.list(&directory).unwrap();
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        let listed = |name: &String| list.contains(&format!("file {name} "));
        names.filter(|name| !listed(name) && !name.ends_with(".manifest")).collect()
    }
}

/// How far a client has got that counts.
#[derive(Default)]
struct Count {
    /// The last value that was acknowledged.
    acknowledged: u64,
    /// The value that the counter may have.
    attempted: u64,
}

impl Count {
    fn go_on(&mut self, rig: &mut Rig) -> Answered {
        let told = rig.tell("INCR counter");
        if !told.is_refusal() {
            self.attempted += 1;
        }
        match told.number() {
            Some(number) => self.acknowledged = number,
            None => rig.reconnect(),
        }
        told
    }

    fn check(&self, found: u64, what: &str) {
        let range = self.acknowledged..=self.attempted;
        assert!(range.contains(&found), "{what}: {found} is not in {range:?}");
    }
}

/// Lets an operation fail while a client counts and the file is rewritten. Returns whether it came
/// to that operation.
fn fail_beside_a_rewrite(operation: Operation, after: usize, errno: i32) -> bool {
    let setup = Setup::new();
    let mut rig = setup.start(true).unwrap();
    let mut count = Count::default();
    let what = format!("{operation:?} after {after}");
    for line in ["SET other value", "RPUSH list a b c", "SADD set x y"] {
        assert!(matches!(rig.tell(line), Answered::Reply(_)), "{what}");
    }
    (0..3).for_each(|_| drop(count.go_on(&mut rig)));
    assert_eq!(count.acknowledged, 3);

    setup.disk.fail(operation, after, errno);
    count.go_on(&mut rig);
    rig.tell("BGREWRITEAOF");
    while rig.is_rewriting() {
        count.go_on(&mut rig);
    }
    (0..3).for_each(|_| drop(count.go_on(&mut rig)));
    rig.reconnect();
    assert_eq!(rig.tell("GET other"), Answered::Reply("$5\r\nvalue\r\n".to_owned()), "{what}");
    count.check(setup.counter_after_power_failure(), &what);
    let temporary = |name: &String| name.starts_with("temp-");
    let temporary: Vec<_> = setup.leftovers().into_iter().filter(temporary).collect();
    assert!(operation == Operation::Remove || temporary.is_empty(), "{what}: {temporary:?}");

    let came = setup.disk.failures() > 0;
    setup.disk.heal();
    for _ in 0..3 {
        rig.rewrite();
    }
    let told = count.go_on(&mut rig);
    assert!(told.number().is_some(), "{what}: {told:?}");
    let live = rig.counter();
    count.check(live, &what);
    assert_eq!(setup.counter_after_power_failure(), live, "{what}");
    assert_eq!(setup.leftovers(), [""; 0], "{what}");
    came
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_disk_fails() {
    for operation in [
        Operation::Create,
        Operation::Write,
        Operation::Sync,
        Operation::Truncate,
        Operation::Rename,
        Operation::Remove,
        Operation::SyncDirectory,
    ] {
        let errno = if operation == Operation::Sync { libc::EIO } else { libc::ENOSPC };
        let mut after = 0;
        while fail_beside_a_rewrite(operation, after, errno) {
            after += 1;
            assert!(after < MOST_OPERATIONS, "{operation:?}");
        }
        assert!(after > 0 || operation == Operation::Truncate, "{operation:?} does not happen");
    }
}

/// Lets an operation fail while a snapshot is written. Returns whether it came to that operation.
fn fail_within_a_save(operation: Operation, after: usize) -> bool {
    let setup = Setup::new();
    let mut rig = setup.start(false).unwrap();
    let ok = Answered::Reply("+OK\r\n".to_owned());
    let (file, what) = (setup.path("dump.rdb"), format!("{operation:?} after {after}"));
    assert_eq!(rig.tell("SET key old"), ok);
    assert_eq!(rig.tell("SAVE"), ok);
    assert_eq!(rig.tell("SET key new"), ok);
    let before = fs::read(&file).unwrap();

    setup.disk.fail(operation, after, libc::ENOSPC);
    let saved = rig.tell("SAVE");
    let came = setup.disk.failures() > 0;
    assert_eq!(saved == ok, !came, "{what}: {saved:?}");
    if came {
        let replaced = operation == Operation::SyncDirectory;
        assert_eq!(fs::read(&file).unwrap() == before, !replaced, "{what}");
        // Only a save for which no client waited has consequences.
        assert_eq!(rig.tell("SET key new"), ok, "{what}");
        assert_eq!(rig.tell("GET key"), Answered::Reply("$3\r\nnew\r\n".to_owned()), "{what}");
    }
    let names = RealDisk.list(setup.home.path()).unwrap();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("temp-")), "{names:?}");

    setup.disk.heal();
    assert_eq!(rig.tell("SAVE"), ok, "{what}");
    assert_eq!(rig.tell("SET key newer"), ok, "{what}");
    drop(rig);
    let mut again = setup.start(false).unwrap();
    assert_eq!(again.tell("GET key"), Answered::Reply("$3\r\nnew\r\n".to_owned()), "{what}");
    came
}

#[test]
fn a_save_that_fails_leaves_the_old_file_wherever_it_fails() {
    for operation in [
        Operation::Create,
        Operation::Write,
        Operation::Sync,
        Operation::Rename,
        Operation::SyncDirectory,
    ] {
        let mut after = 0;
        while fail_within_a_save(operation, after) {
            after += 1;
            assert!(after < MOST_OPERATIONS, "{operation:?}");
        }
        assert!(after > 0, "{operation:?} does not happen");
    }
}

#[test]
fn a_tail_that_cannot_be_cut_off_is_not_passed_over() {
    for operation in [Operation::Create, Operation::Truncate, Operation::Sync] {
        let setup = Setup::new();
        let mut rig = setup.start(true).unwrap();
        assert_eq!(rig.tell("INCR counter").number(), Some(1));
        drop(rig);
        let file = setup.path("appendonlydir").join("appendonly.aof.1.incr.aof");
        let torn = [&fs::read(&file).unwrap()[..], b"*2\r\n$4\r\nINC"].concat();
        fs::write(&file, &torn).unwrap();
        setup.disk.fail(operation, 0, libc::EIO);
        assert!(setup.start(true).is_err(), "{operation:?}");
        if operation != Operation::Sync {
            assert_eq!(fs::read(&file).unwrap(), torn, "{operation:?}");
        }
        setup.disk.heal();
        let mut rig = setup.start(true).unwrap();
        assert_eq!(rig.tell("INCR counter").number(), Some(2), "{operation:?}");
    }
}

/// Lets an operation fail while the file is turned on. Returns whether it came to that operation.
fn fail_while_it_is_turned_on(operation: Operation, after: usize) -> bool {
    let setup = Setup::new();
    let mut rig = setup.start(false).unwrap();
    let mut count = Count::default();
    let what = format!("{operation:?} after {after}");
    (0..3).for_each(|_| drop(count.go_on(&mut rig)));

    setup.disk.fail(operation, after, libc::ENOSPC);
    let turn_on = |rig: &Rig| {
        let turned_on = rig.files.append_only.turn_on(&config(setup.home.path(), true));
        rig.wait_for("the end of the attempt", |rig| (!rig.is_rewriting()).then_some(()));
        turned_on
    };
    let turned_on = turn_on(&rig);
    let came = setup.disk.failures() > 0;
    assert!(turned_on.is_ok() || came, "{what}");
    assert!(matches!(rig.tell("GET counter"), Answered::Reply(_)), "{what}");

    setup.disk.heal();
    if turned_on.is_err() {
        // Nothing was begun where no file could be made.
        assert_eq!(turn_on(&rig), Ok(()), "{what}");
    }
    // The attempt has either failed as a whole, or there is a file, which may be given up by now.
    for _ in 0..3 {
        rig.rewrite();
    }
    assert!(count.go_on(&mut rig).number().is_some(), "{what}");
    let live = rig.counter();
    count.check(live, &what);
    assert_eq!(setup.counter_after_power_failure(), live, "{what}");
    assert_eq!(setup.leftovers(), [""; 0], "{what}");
    came
}

#[test]
fn the_file_is_turned_on_in_the_end_wherever_that_failed() {
    for operation in [
        Operation::Create,
        Operation::Write,
        Operation::Sync,
        Operation::Rename,
        Operation::SyncDirectory,
    ] {
        let mut after = 0;
        while fail_while_it_is_turned_on(operation, after) {
            after += 1;
            assert!(after < MOST_OPERATIONS, "{operation:?}");
        }
        assert!(after > 0, "{operation:?} does not happen");
    }
}

/// The contents of the files of an append-only directory, by their names.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = RealDisk.list(directory).unwrap_or_default();
    let content = |name: &std::ffi::OsString| fs::read(directory.join(name)).unwrap();
    let parts = names.iter().filter(|name| !name.as_bytes().starts_with(b"temp-"));
    parts.map(|name| (name.to_string_lossy().into_owned(), content(name))).collect()
}

/// Ends the process after this many operations while the file is turned on. Returns whether it got
/// that far.
fn end_while_it_is_turned_on(after: usize) -> bool {
    let setup = Setup::new();
    let mut rig = setup.start(false).unwrap();
    let mut count = Count::default();
    (0..3).for_each(|_| drop(count.go_on(&mut rig)));
    setup.disk.stop_after(after);
    let turned_on = rig.files.append_only.turn_on(&config(setup.home.path(), true));
    rig.wait_for("the end of the attempt", |rig| (!rig.is_rewriting()).then_some(()));
    drop(rig);
    let came = setup.disk.failures() > 0;
    assert!(turned_on.is_ok() || came, "{after}");
    setup.disk.heal();
    let directory = setup.path("appendonlydir");
    let left = contents(&directory);
    let listed = directory.join("appendonly.aof.manifest").exists();

    let mut rig = setup.start(true).unwrap();
    assert_eq!(rig.counter(), if listed { 3 } else { 0 }, "{after}");
    count.go_on(&mut rig);
    drop(rig);
    let mut again = setup.start(true).unwrap();
    assert_eq!(again.counter(), count.acknowledged, "{after}");
    again.rewrite();
    drop(again);
    assert_eq!(setup.start(true).unwrap().counter(), count.acknowledged, "{after}");
    if !listed {
        // They may be all that is left of the data.
        for (name, content) in left {
            let now = fs::read(directory.join(&name)).unwrap_or_default();
            assert_eq!(now, content, "{after}: {name}");
        }
    }
    came
}

#[test]
fn a_process_that_ends_while_the_file_is_turned_on_leaves_all_of_it_or_none() {
    let mut after = 0;
    while end_while_it_is_turned_on(after) {
        after += 1;
        assert!(after < MOST_OPERATIONS);
    }
    assert!(after > 5, "{after}");
}
