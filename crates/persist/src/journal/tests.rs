use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use tempfile::TempDir;

use super::*;
use crate::aof::reader::{Ending, Item, Scanner};
use crate::disk::faulty::{FaultyDisk, Operation as DiskOperation};
use crate::disk::{Disk, RealDisk};
use std::time::Instant;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Remembers what it was told.
#[derive(Default)]
struct Reported {
    progress: Mutex<Vec<u64>>,
    failures: Mutex<Vec<Failure>>,
    recoveries: AtomicU64,
    events: Mutex<Vec<&'static str>>,
}

impl Observer for Reported {
    fn progressed(&self, synced: u64) {
        self.progress.lock().push(synced);
    }

    fn failed(&self, failure: &Failure) {
        self.failures.lock().push(failure.clone());
    }

    fn recovered(&self) {
        self.recoveries.fetch_add(1, Ordering::Relaxed);
    }

    fn took(&self, event: &'static str, _: Duration) {
        self.events.lock().push(event);
    }
}

/// A journal on a disk of its own.
struct Rig {
    home: TempDir,
    disk: FaultyDisk,
    reported: Arc<Reported>,
    journal: ServerJournal,
}

impl Rig {
    /// A journal that has begun in the file `1`.
    fn new(policy: AppendFsync, timing: Timing) -> Rig {
        let reported = Arc::new(Reported::default());
        let observer = Arc::clone(&reported) as Arc<dyn Observer>;
        let journal = ServerJournal::start(policy, timing, observer).unwrap();
        let home = tempfile::tempdir().unwrap();
        let rig = Rig { home, disk: FaultyDisk::new(), reported, journal };
        rig.journal.begin_file(rig.open("1"));
        rig
    }

    fn usual(policy: AppendFsync) -> Rig {
        Rig::new(policy, Timing::default())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn open(&self, name: &str) -> Opened {
        let file = self.disk.create(&self.path(name)).unwrap();
        Opened { file, name: name.into(), length: 0, is_behind_durable: false }
    }

    /// Appends a command of database 0.
    fn append(&self, words: &[&str]) -> u64 {
        let offset = append_batch(&self.journal, 0, &[words]);
        self.journal.notify();
        offset
    }

    /// The commands in a file, which must be complete.
    fn commands(&self, name: &str) -> Vec<String> {
        commands(&self.path(name))
    }

    fn wait_for(&self, what: &str, condition: impl Fn(&ServerJournal) -> bool) {
        let begun = Instant::now();
        while !condition(&self.journal) {
            assert!(begun.elapsed() < PATIENCE, "{what} does not happen");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn wait_for_failure(&self) -> Failure {
        self.wait_for("the failure", |journal| journal.failure().is_some());
        self.journal.failure().unwrap()
    }
}

/// Appends as the engine does.
fn append_batch(journal: &ServerJournal, database: usize, commands: &[&[&str]]) -> u64 {
    let mut batch = EffectBatch::default();
    commands
        .iter()
        .for_each(|words| batch.push(database, words.iter().map(|word| word.as_bytes())));
    journal.append(&batch)
}

fn commands(path: &Path) -> Vec<String> {
    let mut scanner = Scanner::new(fs::File::open(path).unwrap(), 0);
    let mut commands = Vec::new();
    loop {
        match scanner.next().unwrap() {
            Item::Command(arguments) => {
                let words: Vec<_> = arguments.iter().map(String::from_utf8_lossy).collect();
                commands.push(words.join(" "));
            }
            Item::Timestamp(second) => commands.push(format!("at {second}")),
            Item::End(ending) => {
                assert_eq!(ending, Ending::Complete);
                return commands;
            }
        }
    }
}

/// Threads append at the same time: nothing is lost, mixed up or reordered.
#[test]
fn what_was_appended_is_in_the_file() {
    const THREADS: usize = 3;
    const BATCHES: usize = 3000;
    for policy in [AppendFsync::Always, AppendFsync::EverySecond, AppendFsync::No] {
        let rig = Rig::usual(policy);
        rig.disk.write_at_most(100_000);
        let start = Barrier::new(THREADS);
        let padding = "x".repeat(200);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (rig, start, padding) = (&rig, &start, &padding);
                scope.spawn(move || {
                    start.wait();
                    for batch in 0..BATCHES {
                        let number = batch.to_string();
                        let name = format!("t{thread}");
                        let set = ["SET", &name, &number, padding];
                        append_batch(&rig.journal, thread, &[&set, &["INCR", &name]]);
                        if batch % 16 == 0 {
                            rig.journal.notify();
                        }
                    }
                });
            }
        });
        let length = "1".repeat(3 * limits::JOURNAL_BLOCK);
        rig.append(&["SET", "big", &length]);
        rig.journal.flush().unwrap();
        assert_eq!((rig.journal.pending(), rig.journal.synced()), (0, rig.journal.appended()));
        let commands = rig.commands("1");
        assert_eq!(rig.journal.file_length(), fs::metadata(rig.path("1")).unwrap().len());
        let line = [COUNTED, b"\r\n"].concat();
        let file = fs::read(rig.path("1")).unwrap();
        let lines = file.windows(line.len()).filter(|window| *window == line).count();
        let annotations = (lines * line.len()) as u64;
        assert_eq!(rig.journal.appended() + annotations, rig.journal.file_length());
        let mut next = [0; THREADS];
        let mut rest = commands.iter();
        let mut database = String::new();
        while let Some(command) = rest.next() {
            if let Some(selected) = command.strip_prefix("SELECT ") {
                database = selected.to_owned();
            } else if command == "MULTI" {
                let set = rest.next().unwrap();
                let thread: usize = database.parse().unwrap();
                assert!(set.starts_with(&format!("SET t{thread} {} ", next[thread])), "{set}");
                next[thread] += 1;
                assert_eq!(*rest.next().unwrap(), format!("INCR t{thread}"));
                assert_eq!(rest.next().unwrap(), "EXEC");
            } else {
                assert_eq!(*command, format!("SET big {length}"));
            }
        }
        assert_eq!(next, [BATCHES; THREADS]);
    }
}

#[test]
fn under_always_a_reply_waits_for_the_sync_that_many_share() {
    let rig = Rig::usual(AppendFsync::Always);
    rig.wait_for("the beginning", |_| !rig.reported.progress.lock().is_empty());
    rig.disk.stall_syncs(true);
    let first = rig.append(&["SET", "a", "1"]);
    assert!(rig.journal.released() < first);
    rig.wait_for("the write", |journal| journal.written() >= first);
    // While the first sync runs, others gather.
    let offsets: Vec<u64> = (0..100).map(|_| rig.append(&["INCR", "a"])).collect();
    let last = *offsets.last().unwrap();
    rig.disk.stall_syncs(false);
    rig.wait_for("the sync", |journal| journal.released() >= last);
    assert!(rig.journal.metrics().syncs.get() <= 4, "{}", rig.journal.metrics().syncs.get());
    rig.wait_for("the news", |_| rig.reported.progress.lock().last() == Some(&last));
    assert!(rig.reported.progress.lock().is_sorted());
    assert!(rig.reported.events.lock().contains(&"aof-fsync-always"));
    let counted: u64 = rig.journal.metrics().sync_durations.counts().map(|(_, count)| count).sum();
    assert_eq!(counted, rig.journal.metrics().syncs.get());
    // While a snapshot needs the disk, being written is enough, where that is configured.
    rig.journal.pause_syncs(true);
    let paused = rig.append(&["INCR", "a"]);
    rig.wait_for("the write", |journal| journal.released() >= paused);
    assert_eq!(rig.journal.synced(), last);
    rig.wait_for("the news", |_| rig.reported.progress.lock().len() >= 4);
    rig.journal.pause_syncs(false);
    rig.wait_for("the sync", |journal| journal.synced() == paused);
}

#[test]
fn the_policy_says_when_to_sync_and_can_change() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    let first = rig.append(&["SET", "a", "1"]);
    assert!(rig.journal.released() >= first, "nobody waits for a sync under everysec");
    rig.wait_for("the sync", |journal| journal.synced() == first);
    rig.journal.set_policy(AppendFsync::No);
    let second = rig.append(&["SET", "a", "2"]);
    rig.wait_for("the write", |journal| journal.written() == second);
    std::thread::sleep(Timing::default().sync_age + Duration::from_millis(300));
    assert_eq!((rig.journal.synced(), rig.journal.released() >= second), (first, true));
    rig.journal.set_policy(AppendFsync::Always);
    rig.wait_for("the sync", |journal| journal.synced() == second);
    rig.journal.set_policy(AppendFsync::No);
    let third = rig.append(&["SET", "a", "3"]);
    rig.journal.stop();
    assert_eq!(rig.journal.synced(), third, "the end makes everything durable");
}

/// Waits as a worker does: it asks to be told, looks once more, and looks again when it was told.
fn wait_until_released(rig: &Rig, offset: u64) {
    loop {
        let reported = rig.reported.progress.lock().len();
        rig.journal.notify_when_released();
        if rig.journal.released() >= offset {
            return;
        }
        rig.wait_for("the news", |_| rig.reported.progress.lock().len() > reported);
    }
}

/// Without syncs nothing but the write itself ends the wait.
#[test]
fn a_reply_waits_while_another_worker_writes_for_long() {
    let rig = Rig::usual(AppendFsync::No);
    let first = rig.append(&["SET", "a", "1"]);
    wait_until_released(&rig, first);
    rig.disk.stall_writes(true);
    std::thread::scope(|scope| {
        scope.spawn(|| rig.append(&["SET", "a", "2"]));
        rig.wait_for("the slow write", |_| rig.disk.stalled_writes() == 1);
        let behind = append_batch(&rig.journal, 0, &[&["SET", "b", "1"]]);
        assert!(rig.journal.notify() < behind, "it is in this process only");
        assert!(rig.journal.released() < behind);
        rig.disk.stall_writes(false);
        wait_until_released(&rig, behind);
    });
    assert_eq!(rig.commands("1").last().unwrap(), "SET b 1");
    // Nobody waits for a file that there is not.
    rig.journal.end_file();
    assert_eq!(rig.journal.released(), u64::MAX);
}

#[test]
fn a_reply_waits_after_a_write_that_failed() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    rig.disk.fail(DiskOperation::Write, 0, libc::ENOSPC);
    let offset = append_batch(&rig.journal, 0, &[&["SET", "a", "1"]]);
    assert!(rig.journal.notify() < offset);
    // The journal's own thread may have begun to write, and fails a little later.
    rig.wait_for("the failure, which changes the reply", |journal| journal.has_failed());
    rig.disk.heal();
    rig.journal.retry().unwrap();
    assert!(rig.journal.released() >= offset);
}

/// Replies that wait under one policy may not need to under another: their workers are told.
#[test]
fn a_change_of_the_policy_is_told() {
    let rig = Rig::usual(AppendFsync::Always);
    rig.journal.flush().unwrap();
    rig.disk.stall_syncs(true);
    let offset = rig.append(&["SET", "a", "1"]);
    assert!(rig.journal.released() < offset);
    rig.wait_for("the write", |journal| journal.written() >= offset);
    rig.journal.set_policy(AppendFsync::No);
    assert!(rig.journal.released() >= offset);
    rig.disk.stall_syncs(false);
    for paused in [true, false] {
        rig.wait_for("quiet", |journal| !journal.shared.config.changed.load(Ordering::Relaxed));
        let reported = rig.reported.progress.lock().len();
        rig.journal.pause_syncs(paused);
        rig.wait_for("the news", |_| rig.reported.progress.lock().len() > reported);
    }
}

#[test]
fn a_late_disk_is_noticed() {
    let late = Duration::from_millis(100);
    let sync_age = Duration::from_millis(10);
    let rig = Rig::new(AppendFsync::EverySecond, Timing { late, sync_age, ..Timing::default() });
    rig.append(&["SET", "a", "1"]);
    rig.journal.flush().unwrap();
    assert!(!rig.journal.is_late());
    let begun = rig.disk.begun_syncs();
    rig.disk.stall_syncs(true);
    rig.append(&["SET", "a", "2"]);
    rig.wait_for("the sync's begin", |_| rig.disk.begun_syncs() > begun);
    rig.wait_for("the lateness", ServerJournal::is_late);
    assert!(rig.journal.is_pressed());
    rig.disk.write_takes(Duration::from_millis(2));
    let last = rig.append(&["SET", "a", "3"]);
    rig.wait_for("the write", |journal| journal.written() == last);
    let delayed = rig.journal.metrics().delayed_syncs.get();
    rig.disk.stall_syncs(false);
    rig.wait_for("the count", |journal| journal.metrics().delayed_syncs.get() > delayed);
    rig.wait_for("the end", |journal| !journal.is_late() && journal.pending() == 0);
    assert!(rig.reported.events.lock().contains(&"aof-write-pending-fsync"));
}

#[test]
fn under_everysec_writing_goes_on_during_a_sync() {
    let sync_age = Duration::from_millis(10);
    let rig = Rig::new(AppendFsync::EverySecond, Timing { sync_age, ..Timing::default() });
    rig.disk.stall_syncs(true);
    rig.append(&["SET", "a", "1"]);
    rig.wait_for("the sync's begin", |_| rig.disk.begun_syncs() == 1);
    let second = rig.append(&["SET", "a", "2"]);
    rig.wait_for("the write", |journal| journal.written() == second);
    rig.disk.stall_syncs(false);
    rig.journal.flush().unwrap();
    let [.., first, sync, last] = rig.disk.operations()[..] else { panic!("too few operations") };
    let expected = [DiskOperation::Write, DiskOperation::Sync, DiskOperation::Sync];
    assert_eq!([first, sync, last], expected, "the second write came before the first sync's end");
    assert_eq!(rig.journal.synced(), second);
}

#[test]
fn what_is_appended_is_written_before_a_reply_leaves() {
    for policy in [AppendFsync::EverySecond, AppendFsync::No] {
        let rig = Rig::usual(policy);
        rig.append(&["SET", "a", "0"]);
        rig.wait_for("the write", |journal| journal.pending() == 0);
        let in_memory = (1..100).filter(|value: &u32| {
            let offset = rig.append(&["SET", "a", &value.to_string()]);
            rig.journal.written() < offset
        });
        // On a busy machine the thread may have to wait for a processor while it has the file
        // locked.
        assert!(in_memory.count() < 10, "acknowledged writes are in this process's memory");
    }
}

#[test]
fn a_full_queue_presses_until_the_disk_has_caught_up() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    rig.journal.set_write_delay(Duration::from_secs(1));
    let big = "x".repeat(1 << 20);
    while rig.journal.pending() <= limits::JOURNAL_PENDING {
        assert!(!rig.journal.is_pressed() || rig.journal.is_late());
        rig.append(&["SET", "big", &big]);
    }
    assert!(rig.journal.is_pressed());
    rig.journal.set_write_delay(Duration::ZERO);
    rig.wait_for("relief", |journal| !journal.is_pressed());
}

/// Each file begins with its own SELECT; the old one is made durable.
#[test]
fn a_rotation_happens_between_two_appends() {
    let rig = Rig::usual(AppendFsync::No);
    rig.append(&["SET", "a", "1"]);
    let cut = rig.journal.rotate(rig.open("2"));
    let after = rig.append(&["SET", "a", "2"]);
    rig.wait_for("the write", |journal| journal.written() == after);
    rig.wait_for("the sync", |journal| journal.synced() == cut);
    assert_eq!(rig.commands("1"), ["SELECT 0", "SET a 1"]);
    assert_eq!(rig.commands("2"), ["SELECT 0", "SET a 2"]);
    assert_eq!(rig.disk.count(DiskOperation::Sync), 1);
    let end = rig.journal.end_file();
    assert!(!rig.journal.has_file());
    rig.wait_for("the end", |journal| journal.synced() == end);
    assert_eq!(rig.append(&["SET", "a", "3"]), end, "nobody listens");
    rig.journal.begin_file(rig.open("3"));
    rig.append(&["SET", "a", "4"]);
    rig.journal.flush().unwrap();
    assert_eq!(rig.commands("3"), ["SELECT 0", "SET a 4"]);
}

/// The bytes that the stream should have from these batches, one after another.
fn encoded(batches: &[(usize, &[&[&str]])]) -> Vec<u8> {
    let (mut out, mut selected) = (Vec::new(), None);
    for (database, commands) in batches {
        let mut batch = EffectBatch::default();
        commands.iter().for_each(|words| batch.push(*database, words.iter().map(|w| w.as_bytes())));
        batch.write_to(&mut out, &mut selected);
    }
    out
}

/// The bytes of the stream that are kept behind an offset.
fn kept(journal: &ServerJournal, from: u64) -> Vec<u8> {
    let backlog = journal.changes().unwrap();
    let pieces = backlog.read_bytes(from, u64::MAX, usize::MAX).unwrap();
    pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect()
}

/// What files there are changes nothing in the stream: the offset is the number of its bytes. A
/// file whose first effect would lack SELECT has one of its own, which does not count.
#[test]
fn the_stream_is_the_same_with_and_without_files() {
    let batches: [(usize, &[&[&str]]); 6] = [
        (3, &[&["SET", "a", "1"]]),
        (3, &[&["SET", "a", "2"], &["DEL", "b"]]),
        (3, &[&["SET", "a", "3"]]),
        (3, &[&["SET", "a", "4"]]),
        (0, &[&["SET", "a", "5"]]),
        (0, &[&["SET", "a", "6"]]),
    ];
    let rig = Rig::usual(AppendFsync::No);
    rig.journal.end_file();
    rig.journal.keep_changes("one".to_owned());
    let append = |index: usize| {
        let (database, commands) = batches[index];
        let offset = append_batch(&rig.journal, database, commands);
        rig.journal.notify();
        assert_eq!(offset, encoded(&batches[..=index]).len() as u64);
    };
    (0..2).for_each(append);
    rig.journal.begin_file(rig.open("2"));
    append(2);
    rig.journal.rotate(rig.open("3"));
    append(3);
    rig.journal.rotate(rig.open("4"));
    append(4);
    rig.journal.flush().unwrap();
    rig.journal.end_file();
    append(5);
    assert_eq!(kept(&rig.journal, 0), encoded(&batches));
    assert_eq!(rig.journal.appended(), encoded(&batches).len() as u64);
    assert_eq!(rig.commands("2"), ["SELECT 3", "SET a 3"]);
    assert_eq!(rig.commands("3"), ["SELECT 3", "SET a 4"]);
    // A process that ends before the next effect leaves a file that says where the stream goes on.
    assert_eq!(rig.commands("4"), ["SELECT 3", "SELECT 0", "SET a 5"]);
    let third = fs::read_to_string(rig.path("3")).unwrap();
    let own = "#UNCOUNTED\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n";
    assert!(third.contains(own), "{third}");
    assert!(third.contains("#CHANGES:one:"), "{third}");
}

/// A sync that fails ends a file. Followers go on, in the same history and without a gap.
#[test]
fn the_stream_goes_on_when_its_file_is_given_up() {
    let rig = Rig::usual(AppendFsync::Always);
    rig.journal.keep_changes("one".to_owned());
    let first = rig.append(&["SET", "a", "1"]);
    rig.journal.flush().unwrap();
    rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
    let failed = rig.append(&["SET", "a", "2"]);
    rig.wait_for_failure();
    rig.wait_for("the end", ServerJournal::has_given_up);
    rig.disk.heal();
    // Effects that were under way.
    let under_way = rig.append(&["SET", "a", "3"]);
    assert_eq!(under_way - failed, failed - first, "it counts as before");
    let journal: &dyn Journal = &rig.journal;
    assert_eq!((journal.released(), journal.shown()), (first, first), "no reply leaves");
    rig.journal.refuse_writes(Some("because".to_owned()));
    let cut = rig.journal.begin_file(rig.open("2"));
    assert_eq!((cut, journal.released()), (under_way, first), "nothing is in a base yet");
    rig.journal.refuse_writes(None);
    let last = rig.append(&["SET", "a", "4"]);
    rig.wait_for("the sync", |journal| journal.released() >= last);
    let backlog = journal.changes().unwrap();
    let records = backlog.read(first, journal.shown(), 10).unwrap();
    assert_eq!(records.iter().map(|own| own.end()).collect::<Vec<_>>(), [failed, under_way, last]);
    assert_eq!(backlog.position(last), format!("one:{last}"));
    let values: [&[&[&str]]; 4] = [
        &[&["SET", "a", "1"]],
        &[&["SET", "a", "2"]],
        &[&["SET", "a", "3"]],
        &[&["SET", "a", "4"]],
    ];
    assert_eq!(kept(&rig.journal, 0), encoded(&values.map(|own| (0, own))));
    assert_eq!(rig.commands("2"), ["SELECT 0", "SET a 4"]);
}

/// A replica passes the stream of its primary on, byte for byte.
#[test]
fn a_foreign_stream_goes_on_verbatim() {
    let rig = Rig::usual(AppendFsync::No);
    rig.append(&["SET", "own", "1"]);
    let position = |history: &str, offset| Position { history: history.to_owned(), offset };
    rig.journal.adopt(position("primary", 7), Some(5));
    let begin = rig.journal.appended();
    let command = "*2\r\n$4\r\nincr\r\n$1\r\na\r\n";
    let select = "*2\r\n$6\r\nSELECT\r\n$2\r\n10\r\n";
    rig.journal.append_raw(command.as_bytes(), Some(5));
    let end = rig.journal.append_raw(format!("{select}{command}").as_bytes(), Some(10));
    let backlog = rig.journal.changes().unwrap();
    let raw = format!("{command}{select}{command}");
    assert_eq!(String::from_utf8(kept(&rig.journal, begin)).unwrap(), raw);
    assert_eq!(backlog.in_history(end), 7 + raw.len() as u64);
    assert_eq!(rig.journal.selected(), Some(10));
    let records = backlog.read(begin, u64::MAX, 10).unwrap();
    let databases = records.iter().flat_map(|record| record.commands()).map(|(own, _)| own);
    assert_eq!(databases.collect::<Vec<_>>(), [5, 10]);
    // Promoted: the stream goes on under a name of its own.
    rig.journal.adopt(position("mine", 7 + raw.len() as u64), None);
    let last = append_batch(&rig.journal, 10, &[&["SET", "a", "1"]]);
    rig.journal.flush().unwrap();
    assert_eq!(kept(&rig.journal, end), b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n");
    let histories = backlog.histories().unwrap();
    assert_eq!(histories.present, "mine");
    assert_eq!(histories.newest, backlog.in_history(last));
    assert_eq!(histories.previous, Some(position("primary", 7 + raw.len() as u64)));
    let file = fs::read_to_string(rig.path("1")).unwrap();
    let (_, foreign) = file.split_once("#CHANGES:primary:7\r\n").expect("it says where it begins");
    let own = "#UNCOUNTED\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n";
    let next = format!("{own}{command}#COUNTED\r\n{select}{command}#SELECTED:10\r\n#CHANGES:mine:");
    assert!(foreign.starts_with(&next), "{foreign}");
}

/// What a replica has not applied is in the stream as it came, and marked in the file.
#[test]
fn what_was_not_known_is_marked_where_it_begins() {
    let rig = Rig::usual(AppendFsync::No);
    rig.journal.adopt(Position { history: "primary".to_owned(), offset: 7 }, Some(0));
    let begin = rig.journal.appended();
    let [unknown, known] = ["*1\r\n$6\r\nNOSUCH\r\n", "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"];
    rig.journal.append_unknown(unknown.as_bytes(), Some(0));
    rig.journal.append_raw(known.as_bytes(), Some(0));
    rig.journal.append_unknown(unknown.as_bytes(), Some(0));
    rig.journal.flush().unwrap();
    let raw = format!("{unknown}{known}{unknown}");
    assert_eq!(String::from_utf8(kept(&rig.journal, begin)).unwrap(), raw);
    let file = fs::read_to_string(rig.path("1")).unwrap();
    let marked = format!("#UNKNOWN\r\n{unknown}{known}#UNKNOWN\r\n{unknown}");
    assert!(file.ends_with(&marked), "{file}");
    assert!(rig.commands("1").starts_with(&["SELECT 0".to_owned()]), "its own comes first");
}

/// Messages are not in the file. It says before the next effect where it goes on, and otherwise
/// once a second at most. Followers wait for nothing.
#[test]
fn messages_cost_the_file_next_to_nothing() {
    for policy in [AppendFsync::Always, AppendFsync::EverySecond, AppendFsync::No] {
        let rig = Rig::usual(policy);
        rig.journal.keep_changes("own".into());
        rig.append(&["SET", "a", "1"]);
        rig.journal.flush().unwrap();
        let message = b"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\nm\r\n";
        let begun = Instant::now();
        for _ in 0..200 {
            rig.journal.append_messages(message);
            rig.journal.notify();
            let end = rig.journal.appended();
            rig.wait_for("the message is shown", |journal| journal.shown() >= end);
        }
        rig.journal.flush().unwrap();
        let end = rig.journal.appended();
        assert_eq!((rig.journal.written(), rig.journal.synced()), (end, end), "{policy:?}");
        let notes = |name: &str| {
            fs::read_to_string(rig.path(name)).unwrap().matches("#CHANGES:own:").count() as u64
        };
        // One is that of the beginning.
        let noted = notes("1");
        assert!(noted <= 3 + begun.elapsed().as_secs(), "{policy:?}: {noted} times");
        rig.append(&["SET", "a", "2"]);
        rig.journal.flush().unwrap();
        let file = fs::read_to_string(rig.path("1")).unwrap();
        assert!(file.contains(&format!("#CHANGES:own:{end}\r\n*3\r\n$3\r\nSET")), "{file}");
        // The end of the file accounts for everything.
        rig.journal.append_messages(message);
        rig.journal.notify();
        let end = rig.journal.appended();
        rig.journal.stop();
        let file = fs::read_to_string(rig.path("1")).unwrap();
        assert!(file.ends_with(&format!("#CHANGES:own:{end}\r\n")), "{policy:?}: {file}");
    }
}

/// Threads append while the file changes again and again: each effect is once in the file that the
/// offset says.
#[test]
fn rotations_lose_nothing_under_load() {
    let rig = Rig::usual(AppendFsync::Always);
    let stop = AtomicBool::new(false);
    let (cuts, appended) = std::thread::scope(|scope| {
        let appender = scope.spawn(|| {
            let mut offsets = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                offsets.push(rig.append(&["SET", "n", &offsets.len().to_string()]));
            }
            offsets
        });
        let cuts: Vec<u64> = (2..20)
            .map(|file| {
                std::thread::sleep(Duration::from_millis(2));
                rig.journal.rotate(rig.open(&file.to_string()))
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        (cuts, appender.join().unwrap())
    });
    rig.journal.flush().unwrap();
    let mut next = 0;
    for (file, cut) in (1..).zip(cuts.iter().chain([&u64::MAX])) {
        for command in rig.commands(&file.to_string()) {
            if command != "SELECT 0" {
                assert_eq!(command, format!("SET n {next}"));
                assert!(appended[next] <= *cut, "{command} in {file}");
                next += 1;
            }
        }
    }
    assert_eq!(next, appended.len());
}

/// Effects that could not be written are kept, and follow when there is room: complete commands,
/// once each.
#[test]
fn a_full_disk_stops_the_journal_until_there_is_room() {
    for policy in [AppendFsync::Always, AppendFsync::EverySecond, AppendFsync::No] {
        let retry = Duration::from_millis(20);
        let rig = Rig::new(policy, Timing { retry, ..Timing::default() });
        let kept = rig.append(&["SET", "a", "1"]);
        rig.journal.flush().unwrap();
        rig.disk.write_at_most(7);
        rig.disk.fail(DiskOperation::Write, 2, libc::ENOSPC);
        let stuck = rig.append(&["SET", "a", "2"]);
        let failure = rig.wait_for_failure();
        assert_eq!((failure.operation, failure.errno), (Operation::Write, Some(libc::ENOSPC)));
        assert_eq!(failure.synced, kept);
        assert!(failure.to_string().starts_with("writing to the append-only file: No space left"));
        assert_eq!(*rig.reported.failures.lock(), std::slice::from_ref(&failure));
        assert_eq!(rig.commands("1"), ["SELECT 0", "SET a 1"]);
        assert_eq!(rig.journal.synced(), kept);
        assert!(rig.journal.has_failed() && !rig.journal.is_pressed());
        assert_eq!(rig.journal.flush(), Err(failure.clone()));
        assert_eq!(rig.journal.retry(), Err(failure));
        let last = rig.append(&["SET", "a", "3"]);
        assert!(stuck < last && !rig.journal.has_given_up());
        // Not even the end of a partial write could be cut off.
        rig.disk.fail(DiskOperation::Truncate, 0, libc::EIO);
        rig.disk.fail(DiskOperation::Write, 1, libc::ENOSPC);
        assert!(rig.journal.retry().is_err());
        rig.disk.heal();
        rig.wait_for("recovery", |journal| journal.failure().is_none() && !journal.has_failed());
        rig.journal.flush().unwrap();
        assert_eq!((rig.journal.written(), rig.journal.synced()), (last, last));
        assert_eq!(rig.commands("1"), ["SELECT 0", "SET a 1", "SET a 2", "SET a 3"]);
        assert_eq!(rig.reported.failures.lock().len(), 1, "it is told once");
        assert_eq!(rig.reported.recoveries.load(Ordering::Relaxed), 1);
    }
}

/// A rewrite on a full disk: the next file waits for the unwritten effects, until they are written
/// or the complete base has them.
#[test]
fn effects_in_a_base_need_not_be_written() {
    for replaced in [false, true] {
        let rig = Rig::usual(AppendFsync::EverySecond);
        rig.append(&["SET", "a", "1"]);
        rig.journal.flush().unwrap();
        rig.disk.fail(DiskOperation::Write, 0, libc::ENOSPC);
        rig.append(&["SET", "a", "2"]);
        rig.wait_for_failure();
        let cut = rig.journal.rotate(rig.open("2"));
        let last = rig.append(&["SET", "a", "3"]);
        rig.disk.heal();
        if replaced {
            rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
            rig.journal.note_replaced(cut);
            rig.wait_for("recovery", |journal| journal.written() == last);
            assert_eq!(rig.journal.synced(), cut);
            rig.disk.heal();
        } else {
            rig.journal.retry().unwrap();
        }
        rig.journal.flush().unwrap();
        assert_eq!((rig.journal.failure(), rig.journal.synced()), (None, last));
        let first: &[&str] = &["SELECT 0", "SET a 1", "SET a 2"];
        assert_eq!(rig.commands("1"), &first[..if replaced { 2 } else { 3 }]);
        assert_eq!(rig.commands("2"), ["SELECT 0", "SET a 3"]);
    }
}

/// A base that is begun for another reason replaces unwritten effects.
#[test]
fn a_new_base_replaces_unwritten_effects() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    rig.disk.fail(DiskOperation::Write, 0, libc::ENOSPC);
    rig.append(&["SET", "a", "1"]);
    rig.wait_for_failure();
    rig.disk.heal();
    rig.journal.begin_file(rig.open("2"));
    assert!(!rig.journal.has_failed());
    rig.append(&["SET", "a", "2"]);
    rig.journal.flush().unwrap();
    assert_eq!(rig.commands("2"), ["SELECT 0", "SET a 2"]);
    assert_eq!(rig.commands("1"), [""; 0]);
}

/// Effects that were skipped, or dropped with their file, are not waited for: that would never end
/// while writes are suspended.
#[test]
fn skipped_effects_do_not_make_the_disk_late() {
    for replaced in [false, true] {
        let (late, retry) = (Duration::from_millis(50), Duration::from_millis(5));
        let timing = Timing { late, retry, ..Timing::default() };
        let rig = Rig::new(AppendFsync::EverySecond, timing);
        rig.disk.fail(DiskOperation::Write, 0, libc::ENOSPC);
        rig.append(&["SET", "a", "1"]);
        rig.wait_for_failure();
        if replaced {
            rig.journal.note_replaced(rig.journal.rotate(rig.open("2")));
        } else {
            rig.journal.begin_file(rig.open("2"));
        }
        rig.wait_for("recovery", |journal| !journal.has_failed() && journal.pending() == 0);
        let begun = Instant::now();
        while begun.elapsed() < 3 * late {
            std::thread::sleep(late / 10);
        }
        assert!(!rig.journal.is_pressed(), "replaced: {replaced}");
    }
}

/// A thread that waits for effects written to a file that has ended hears that its sync has failed.
#[test]
fn a_flush_after_the_end_of_the_file_reports_a_failed_sync() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    let last = rig.append(&["SET", "a", "1"]);
    rig.wait_for("the write", |journal| journal.written() == last);
    rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
    rig.journal.end_file();
    rig.wait_for("the failure", |_| !rig.reported.failures.lock().is_empty());
    std::thread::scope(|scope| {
        let flushing = scope.spawn(|| rig.journal.flush());
        let begun = Instant::now();
        let in_time = || begun.elapsed() < PATIENCE / 3;
        while !flushing.is_finished() && in_time() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let hangs = !flushing.is_finished();
        // So that the test ends in any case.
        rig.journal.begin_file(rig.open("2"));
        assert!(!hangs, "the flush does not end");
        assert_eq!(flushing.join().unwrap().unwrap_err().operation, Operation::Sync);
    });
    rig.journal.flush().unwrap();
    assert!(!rig.journal.has_failed() && rig.journal.synced() >= last);
}

/// While the base that mends a gap is missing, nothing before it is durable.
#[test]
fn a_repair_makes_nothing_durable_before_its_base() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
    let lost = rig.append(&["SET", "a", "1"]);
    assert!(rig.journal.flush().is_err());
    rig.disk.heal();
    rig.journal.refuse_writes(Some("because".to_owned()));
    let cut = rig.journal.begin_file(rig.open("2"));
    rig.wait_for("the beginning", |journal| journal.synced() >= cut);
    let journal: &dyn Journal = &rig.journal;
    assert!(journal.synced() < lost, "what WAITAOF goes by");
    rig.journal.refuse_writes(None);
    assert!(journal.synced() >= lost);
}

/// A disk that is slow with the old file keeps nothing in this process's memory, and nothing counts
/// as durable that is in the new file alone.
#[test]
fn a_slow_sync_at_a_rotation_holds_up_no_write() {
    for policy in [AppendFsync::EverySecond, AppendFsync::No] {
        let rig = Rig::usual(policy);
        let before = rig.append(&["SET", "a", "0"]);
        rig.wait_for("the write", |journal| journal.written() == before);
        rig.disk.stall_syncs(true);
        let cut = rig.journal.rotate(rig.open("2"));
        rig.wait_for("the sync", |_| rig.disk.begun_syncs() == 1);
        // Only the flush is delayed.
        let flushed = std::thread::scope(|scope| {
            let flushing = scope.spawn(|| rig.journal.flush());
            for value in 1..100 {
                let offset = rig.append(&["SET", "a", &value.to_string()]);
                rig.wait_for("the write", |journal| journal.written() == offset);
            }
            assert_eq!(rig.commands("2").len(), 100);
            let third = rig.journal.rotate(rig.open("3"));
            let offset = rig.append(&["SET", "b", "1"]);
            rig.wait_for("the write", |journal| journal.written() == offset);
            assert_eq!(rig.commands("3"), ["SELECT 0", "SET b 1"]);
            assert!(cut < third && rig.journal.synced() < cut, "the first file is not durable");
            assert_eq!(rig.disk.begun_syncs(), 1);
            rig.disk.stall_syncs(false);
            flushing.join().unwrap()
        });
        assert_eq!(flushed, Ok(()));
        rig.journal.flush().unwrap();
        assert_eq!(rig.journal.synced(), rig.journal.appended());
    }
}

/// Under `everysec` another thread waits for a sync, also when a client asks for one.
#[test]
fn a_flush_holds_up_no_write() {
    for policy in [AppendFsync::EverySecond, AppendFsync::No] {
        let rig = Rig::usual(policy);
        rig.append(&["SET", "a", "0"]);
        rig.disk.stall_syncs(true);
        std::thread::scope(|scope| {
            scope.spawn(|| rig.journal.flush().unwrap());
            rig.wait_for("the sync", |_| rig.disk.begun_syncs() == 1);
            for value in 1..100 {
                let offset = rig.append(&["SET", "a", &value.to_string()]);
                rig.wait_for("the write", |journal| journal.written() == offset);
            }
            rig.disk.stall_syncs(false);
        });
        assert_eq!(rig.commands("1").len(), 101);
    }
}

/// The old file's sync fails when the next one is in use: the effects there follow a gap.
#[test]
fn a_failed_sync_after_a_rotation_gives_both_files_up() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    let first = rig.append(&["SET", "a", "1"]);
    rig.wait_for("the write", |journal| journal.written() == first);
    rig.disk.stall_syncs(true);
    rig.journal.rotate(rig.open("2"));
    rig.wait_for("the sync", |_| rig.disk.begun_syncs() == 1);
    let second = rig.append(&["SET", "a", "2"]);
    rig.wait_for("the write", |journal| journal.written() == second);
    rig.journal.rotate(rig.open("3"));
    rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
    rig.disk.stall_syncs(false);
    assert_eq!(rig.wait_for_failure().operation, Operation::Sync);
    rig.disk.heal();
    assert!(rig.journal.has_given_up() && rig.journal.flush().is_err());
    rig.journal.stop();
    assert!(rig.journal.synced() < first);
}

/// The same with a device that is really full.
#[test]
fn a_full_device_is_noticed() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    let file = RealDisk.append(Path::new("/dev/full")).unwrap();
    let name = "full".into();
    rig.journal.begin_file(Opened { file, name, length: 0, is_behind_durable: false });
    rig.append(&["SET", "a", "1"]);
    let failure = rig.wait_for_failure();
    assert_eq!((failure.operation, failure.errno), (Operation::Write, Some(libc::ENOSPC)));
}

#[test]
fn a_failed_sync_is_never_tried_again() {
    let rig = Rig::usual(AppendFsync::Always);
    rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
    let offset = rig.append(&["SET", "a", "1"]);
    let failure = rig.wait_for_failure();
    assert_eq!((failure.operation, failure.errno), (Operation::Sync, Some(libc::EIO)));
    rig.disk.heal();
    assert!(rig.journal.flush().is_err());
    rig.append(&["SET", "a", "2"]);
    rig.journal.stop();
    assert_eq!(rig.disk.count(DiskOperation::Sync), 0);
    assert!(rig.journal.released() < offset);
}

/// After a sync that failed, only a file with a base that is being written can follow.
#[test]
fn nothing_follows_a_gap() {
    let rig = Rig::usual(AppendFsync::EverySecond);
    rig.append(&["SET", "a", "1"]);
    rig.disk.fail(DiskOperation::Sync, 0, libc::EIO);
    assert!(rig.journal.flush().is_err());
    rig.disk.heal();
    let failure = rig.journal.failure();
    rig.journal.rotate(rig.open("2"));
    rig.append(&["SET", "a", "2"]);
    assert!(rig.journal.retry().is_err());
    assert_eq!(rig.journal.failure(), failure);
    assert_eq!(rig.commands("2"), [""; 0]);
    rig.journal.begin_file(rig.open("3"));
    let after = rig.append(&["SET", "a", "3"]);
    rig.journal.flush().unwrap();
    assert!(rig.journal.released() >= after && rig.journal.failure().is_none());
    assert_eq!(rig.commands("3"), ["SELECT 0", "SET a 3"]);
}

#[test]
fn annotations_say_when_things_happened() {
    let rig = Rig::usual(AppendFsync::No);
    rig.journal.set_timestamps(true);
    let before = base::clock::now_us() / 1_000_000;
    (0..100).for_each(|_| {
        rig.append(&["INCR", "a"]);
    });
    rig.journal.rotate(rig.open("2"));
    rig.append(&["INCR", "a"]);
    rig.journal.flush().unwrap();
    for file in ["1", "2"] {
        let commands = rig.commands(file);
        let times: Vec<u64> =
            commands.iter().filter_map(|line| line.strip_prefix("at ")?.parse().ok()).collect();
        assert!(commands[0].starts_with("at ") && commands[1] == "SELECT 0", "{commands:?}");
        assert!(times[0] >= before && times.is_sorted_by(|one, next| one < next), "{times:?}");
        let took = base::clock::now_us() / 1_000_000 - before;
        assert!(times.len() as u64 <= took + 1, "{times:?}");
    }
    // They are no part of the stream.
    let lengths = ["1", "2"].map(|file| fs::metadata(rig.path(file)).unwrap().len());
    assert!(rig.journal.appended() < lengths[0] + lengths[1]);
}

/// Prints what an append costs, for the thread that appends and altogether: `cargo test --profile
/// ci -p server append_costs -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn append_costs() {
    const BATCHES: u32 = 16;
    const NUDGES: u32 = 100_000;
    let set = ["SET", "key:000000001", "a value of some bytes"];
    let mut batch = EffectBatch::default();
    batch.push(0, set.iter().map(|word| word.as_bytes()));
    for policy in [AppendFsync::No, AppendFsync::EverySecond] {
        let rig = Rig::usual(policy);
        let (begun, cpu) = (Instant::now(), process::system::cpu_seconds());
        for _ in 0..NUDGES {
            for _ in 0..BATCHES {
                rig.journal.append(&batch);
            }
            rig.journal.notify();
        }
        let appending = begun.elapsed() / (NUDGES * BATCHES);
        rig.journal.flush().unwrap();
        let after = process::system::cpu_seconds();
        let all = after.user + after.system - cpu.user - cpu.system;
        let all = Duration::from_secs_f64(all) / (NUDGES * BATCHES);
        println!(
            "{policy:?}: appending 60 bytes takes {appending:?}, and {all:?} of all processors"
        );
    }
}
