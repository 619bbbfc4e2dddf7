//! The journal: when replies may leave, and how a rewrite goes on in another file.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::AppendFsync;
use engine::journal::Journal;
use explore::explore;
use persist::disk::{DiskFile, SyncElsewhere};
use persist::journal::{Failure, Observer, Opened, ServerJournal, Timing};
use server::net::Wakers;
use shuttle::thread;
use store::gate::Gates;
use store::sync::point;

/// The contents of a file, and how much of it survives a stop of the machine.
#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    durable: usize,
}

/// The files of a disk, in their order. No lock of it is held where another thread may go on.
#[derive(Default)]
struct Disk {
    files: Mutex<Vec<Content>>,
    /// Where the files begin in the stream.
    begins: Mutex<Vec<u64>>,
    /// Effects that were acknowledged; a sync does not end before there are this many.
    acknowledged: Mutex<usize>,
    syncs_end_at: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    fn open(self: &Arc<Disk>) -> Opened {
        let mut files = locked(&self.files);
        files.push(Content::default());
        let file = File { disk: Arc::clone(self), number: files.len() - 1 };
        let (file, name) = (Box::new(file), "increment".into());
        Opened { file, name, length: 0, is_behind_durable: false }
    }

    fn text(&self, number: usize) -> String {
        String::from_utf8_lossy(&locked(&self.files)[number].bytes).into_owned()
    }

    /// Whether the effect is in a file: it survives the end of the process.
    fn has(&self, effect: &str) -> bool {
        let files = locked(&self.files).len();
        (0..files).any(|number| self.text(number).contains(effect))
    }

    /// Where the stream ends that survives a stop of the machine.
    fn durable(&self) -> u64 {
        let (files, begins) = (locked(&self.files), locked(&self.begins));
        if begins.is_empty() {
            return 0;
        }
        let whole = files.iter().take_while(|file| file.durable == file.bytes.len());
        // The last one that is durable in part, after others that are durable completely.
        let last = whole.count().min(begins.len() - 1);
        let end = begins.get(last + 1).copied().unwrap_or(u64::MAX);
        (begins[last] + files[last].durable as u64).min(end)
    }

    fn acknowledged(&self) -> usize {
        *locked(&self.acknowledged)
    }

    /// Makes durable what is written by now, after a while.
    fn sync(&self, number: usize) {
        let written = locked(&self.files)[number].bytes.len();
        point();
        while self.acknowledged() < self.syncs_end_at {
            thread::yield_now();
        }
        let file = &mut locked(&self.files)[number];
        file.durable = file.durable.max(written);
    }
}

struct File {
    disk: Arc<Disk>,
    number: usize,
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        point();
        if bytes.starts_with(b"#") {
            // An annotation is no part of the stream.
            return Ok(bytes.len());
        }
        locked(&self.disk.files)[self.number].bytes.extend_from_slice(bytes);
        point();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.sync(self.number);
        Ok(())
    }

    fn sync_elsewhere(&self) -> io::Result<SyncElsewhere> {
        let (disk, number) = (Arc::clone(&self.disk), self.number);
        Ok(Box::new(move || {
            disk.sync(number);
            Ok(())
        }))
    }

    fn truncate(&mut self, _: u64) -> io::Result<()> {
        unreachable!("no write fails")
    }
}

/// Sees to it that the journal never says that more is durable than is, and tells workers that
/// wait.
struct Checking(Arc<Disk>, Arc<Wakers>);

impl Observer for Checking {
    fn progressed(&self, synced: u64) {
        assert!(synced <= self.0.durable(), "{synced} is not durable");
        self.1.note_journal_progress();
    }

    fn failed(&self, failure: &Failure) {
        panic!("{failure}");
    }

    fn recovered(&self) {}

    fn took(&self, _: &'static str, _: Duration) {}
}

/// A journal that has begun in a file.
fn begun(policy: AppendFsync, disk: &Arc<Disk>, gates: &Gates) -> Arc<ServerJournal> {
    begun_with(policy, disk, gates, &Arc::new(Wakers::new()))
}

/// The same, with these workers.
fn begun_with(
    policy: AppendFsync,
    disk: &Arc<Disk>,
    gates: &Gates,
    wakers: &Arc<Wakers>,
) -> Arc<ServerJournal> {
    let observer = Arc::new(Checking(Arc::clone(disk), Arc::clone(wakers)));
    // Written effects are old enough to be synced at once.
    let timing = Timing { sync_age: Duration::ZERO, ..Timing::default() };
    let journal = ServerJournal::start(policy, timing, observer).expect("threads can be made");
    let file = disk.open();
    let offset = {
        let _stopped = gates.stop_the_world();
        journal.begin_file(file)
    };
    locked(&disk.begins).push(offset);
    Arc::new(journal)
}

/// Goes on in another file, as a rewrite does.
fn rotate(journal: &ServerJournal, disk: &Arc<Disk>, gates: &Gates) {
    let next = disk.open();
    let _stopped = gates.stop_the_world();
    let offset = journal.rotate(next);
    locked(&disk.begins).push(offset);
}

const EFFECTS: [[&str; 2]; 2] = [["<a1>", "<a2>"], ["<b1>", "<b2>"]];

/// Threads that append their effects one by one, each of which `acknowledge` answers.
fn appenders(
    journal: &Arc<ServerJournal>,
    disk: &Arc<Disk>,
    gates: &Arc<Gates>,
    acknowledge: fn(&ServerJournal, &Disk, &str, u64),
) -> Vec<thread::JoinHandle<Vec<u64>>> {
    let spawn = |effects: [&'static str; 2]| {
        let (journal, disk, gates) = (Arc::clone(journal), Arc::clone(disk), Arc::clone(gates));
        thread::spawn(move || {
            let gate = gates.register();
            let appended = effects.map(|effect| {
                let inside = gate.enter();
                let offset = journal.append_raw(effect.as_bytes(), None);
                drop(inside);
                journal.notify();
                acknowledge(&journal, &disk, effect, offset);
                *locked(&disk.acknowledged) += 1;
                offset
            });
            appended.to_vec()
        })
    };
    EFFECTS.map(spawn).into()
}

/// Waits for the threads. Each effect is in that file, and there, that its offset says.
fn check_places(disk: &Disk, threads: Vec<thread::JoinHandle<Vec<u64>>>) {
    let ends = threads.into_iter().map(|thread| thread.join().expect("it ends"));
    let ends: Vec<_> = ends.collect();
    let stream = disk.text(0) + &disk.text(1);
    let begins = locked(&disk.begins).clone();
    assert_eq!(disk.text(0).len() as u64, begins[1] - begins[0], "the cut is where the file ends");
    assert_eq!(stream.len(), EFFECTS.as_flattened().concat().len(), "{stream}");
    for (ends, effects) in ends.into_iter().zip(EFFECTS) {
        for (end, effect) in ends.into_iter().zip(effects) {
            let end = (end - begins[0]) as usize;
            assert_eq!(&stream[end - effect.len()..end], effect, "{stream}");
        }
    }
}

/// Under `no` and `everysec` an effect is in a file before it is acknowledged: the end of the
/// process loses nothing, also while a rewrite goes on in another file and the sync of the old one
/// takes as long as it may, and where a thread has given up waiting for another one that writes.
/// The sync ends only when all is acknowledged, so no writer may wait for it.
#[test]
fn what_is_acknowledged_is_in_a_file_while_a_rewrite_goes_on_in_another() {
    explore(|| {
        let syncs_end_at = EFFECTS.as_flattened().len();
        let disk = Arc::new(Disk { syncs_end_at, ..Disk::default() });
        let gates = Arc::new(Gates::new());
        let journal = begun(AppendFsync::No, &disk, &gates);
        let threads = appenders(&journal, &disk, &gates, |journal, disk, effect, offset| {
            while journal.released() < offset {
                thread::yield_now();
            }
            assert!(disk.has(effect), "{effect} is in this process only");
        });
        rotate(&journal, &disk, &gates);
        while disk.acknowledged() < syncs_end_at {
            thread::yield_now();
        }
        journal.flush().expect("no sync fails");
        assert_eq!(disk.durable(), journal.appended());
        check_places(&disk, threads);
        journal.stop();
    });
}

/// A worker cannot write while another one does so for long. Its replies wait until it is told that
/// the system has what it wrote, which no sync tells it.
#[test]
fn a_reply_leaves_when_its_write_is_in_a_file_and_its_worker_is_told() {
    explore(|| {
        let (disk, gates) = (Arc::new(Disk::default()), Arc::new(Gates::new()));
        let wakers = Arc::new(Wakers::new());
        let journal = begun_with(AppendFsync::No, &disk, &gates, &wakers);
        let threads = EFFECTS.map(|effects| {
            let (journal, disk) = (Arc::clone(&journal), Arc::clone(&disk));
            let mailbox = wakers.register(|| ());
            thread::spawn(move || {
                for effect in effects {
                    let end = journal.append_raw(effect.as_bytes(), None);
                    let mut released = journal.notify();
                    while released < end {
                        mailbox.await_journal(&*journal);
                        released = journal.released();
                        while released < end && !mailbox.take().journal_progressed {
                            thread::yield_now();
                        }
                        released = released.max(journal.released());
                    }
                    assert!(disk.has(effect), "{effect} is in this process only");
                }
            })
        });
        for thread in threads {
            thread.join().expect("it ends");
        }
        journal.stop();
    });
}

/// Under `always` an effect is durable before it is acknowledged, in whichever file it is, and with
/// everything before it. Effects share syncs.
#[test]
fn what_is_acknowledged_is_durable() {
    explore(|| {
        let (disk, gates) = (Arc::new(Disk::default()), Arc::new(Gates::new()));
        let journal = begun(AppendFsync::Always, &disk, &gates);
        let threads = appenders(&journal, &disk, &gates, |journal, disk, _, offset| {
            while journal.released() < offset {
                thread::yield_now();
            }
            assert!(disk.durable() >= offset);
        });
        rotate(&journal, &disk, &gates);
        check_places(&disk, threads);
        journal.stop();
    });
}

/// While another thread syncs, writing goes on: that sync does not make later effects durable.
#[test]
fn a_sync_covers_what_was_written_before_it() {
    explore(|| {
        let (disk, gates) = (Arc::new(Disk::default()), Arc::new(Gates::new()));
        let journal = begun(AppendFsync::EverySecond, &disk, &gates);
        let threads = appenders(&journal, &disk, &gates, |_, _, _, _| ());
        rotate(&journal, &disk, &gates);
        journal.flush().expect("no sync fails");
        for thread in threads {
            thread.join().expect("it ends");
        }
        journal.stop();
        assert_eq!(disk.durable(), journal.appended());
    });
}

/// Readers of the stream see whole effects, in one order and at their offsets, while others are
/// appended to the same block and written to a file from there. A reader that rests is woken.
#[test]
fn readers_share_the_bytes_that_are_appended() {
    explore(|| {
        let (disk, gates) = (Arc::new(Disk::default()), Arc::new(Gates::new()));
        let journal = begun(AppendFsync::No, &disk, &gates);
        {
            let _stopped = gates.stop_the_world();
            journal.keep_changes("name".to_owned());
        }
        let total = EFFECTS.as_flattened().concat().len();
        let reader = {
            let journal = Arc::clone(&journal);
            thread::spawn(move || {
                let backlog = journal.changes().expect("it has one");
                let begin = backlog.oldest();
                let woken = Arc::new(store::sync::AtomicBool::new(false));
                let own = Arc::clone(&woken);
                let wake = Box::new(move || own.store(true, Ordering::Release));
                let reader = backlog.add_reader(wake);
                let (mut at, mut bytes) = (begin, Vec::new());
                while bytes.len() < total {
                    let pieces = backlog.read_bytes(at, u64::MAX, usize::MAX);
                    for piece in pieces.expect("nothing is dropped") {
                        let piece = piece.bytes();
                        assert!(piece.starts_with(b"<") && piece.ends_with(b">"), "a part");
                        bytes.extend_from_slice(piece);
                        at += piece.len() as u64;
                    }
                    if backlog.begin_rest(&reader, at) && bytes.len() < total {
                        while !woken.swap(false, Ordering::Acquire) {
                            store::sync::spin_loop();
                        }
                    }
                }
                backlog.remove_reader(&reader);
                bytes
            })
        };
        let threads = appenders(&journal, &disk, &gates, |journal, _, _, offset| {
            while journal.released() < offset {
                thread::yield_now();
            }
        });
        rotate(&journal, &disk, &gates);
        let read = reader.join().expect("it ends");
        check_places(&disk, threads);
        journal.stop();
        assert_eq!(String::from_utf8_lossy(&read), disk.text(0) + &disk.text(1));
    });
}
