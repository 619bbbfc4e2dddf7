//! Rewrites on a disk that is slow, full or fails: acknowledged writes stay, and the server
//! recovers by itself.

use std::ffi::OsStr;

use super::*;
use crate::aof::directory::{AofDirectory, OldFile};

const UNSYNCED: [AppendFsync; 2] = [AppendFsync::EverySecond, AppendFsync::No];

/// The journal has given every acknowledged write to the system.
fn wait_for_writes(rig: &Rig) {
    let journal = rig.files.append_only.journal();
    rig.wait_for("the write", |_| (journal.pending() == 0).then_some(()));
}

/// When replies wait for no sync, a process that is killed has lost nothing, also while the old
/// file is being synced after a rewrite's cut.
#[test]
fn a_kill_beside_a_slow_rewrite_loses_nothing() {
    for policy in UNSYNCED {
        let setup = Setup::new();
        let mut rig = setup.start_with(policy);
        let mut count = Count::default();
        (0..3).for_each(|_| drop(count.go_on(&mut rig)));
        wait_for_writes(&rig);
        setup.disk.stall_syncs_of(&[".1.incr.", "temp-rewriteaof"]);
        assert!(matches!(rig.tell("BGREWRITEAOF"), Answered::Reply(_)));
        rig.wait_for("the cut", |_| {
            let begins = |name: &String| name.starts_with("temp-rewriteaof");
            setup.leftovers().iter().any(begins).then_some(())
        });
        for round in 0..4 {
            (0..20).for_each(|_| drop(count.go_on(&mut rig)));
            wait_for_writes(&rig);
            assert_eq!(count.acknowledged, 3 + 20 * (round + 1));
            assert_eq!(setup.counter_after_kill(), count.acknowledged, "{policy:?}");
        }
        setup.disk.stall_syncs_of(&[".1.incr."]);
        rig.wait_for("the end of the rewrite", |rig| (!rig.is_rewriting()).then_some(()));
        count.go_on(&mut rig);
        wait_for_writes(&rig);
        assert_eq!(setup.counter_after_kill(), count.acknowledged);
        setup.disk.stall_syncs_of(&[]);
        drop(rig);
        assert_eq!(setup.counter_after_power_failure(), count.acknowledged);
    }
}

/// A file is synced apart from the one after it. The machine may keep the later one, into which the
/// journal has gone on, and lose the end of the earlier one. What follows the lost end is not
/// loaded.
#[test]
fn nothing_is_loaded_that_follows_a_lost_end() {
    for policy in UNSYNCED {
        let setup = Setup::new();
        let mut rig = setup.start_with(policy);
        assert_eq!(rig.tell("INCR counter").number(), Some(1));
        rig.files.append_only.journal().flush().unwrap();
        setup.disk.stall_syncs_of(&[".1.incr.", "temp-rewriteaof"]);
        assert_eq!(rig.tell("INCR counter").number(), Some(2));
        assert!(matches!(rig.tell("BGREWRITEAOF"), Answered::Reply(_)));
        let second = setup.path("appendonlydir").join("appendonly.aof.2.incr.aof");
        rig.wait_for("the cut", |_| (fs::metadata(&second).ok()?.len() > 0).then_some(()));
        assert_eq!(rig.tell("INCR counter").number(), Some(3));
        wait_for_writes(&rig);
        for torn in [false, true] {
            let elsewhere = setup.after_power_failure_that_keeps(".2.incr.");
            let first = elsewhere.path().join("appendonlydir/appendonly.aof.1.incr.aof");
            if torn {
                let content = [&fs::read(&first).unwrap()[..], b"*2\r\n$4\r\nIN"].concat();
                fs::write(&first, content).unwrap();
            }
            let strict = Config { aof_load_truncated: false, ..config(elsewhere.path(), true) };
            let refused = Rig::start(Arc::new(RealDisk), strict).err().expect("it is incomplete");
            assert!(refused.contains("Unexpected end of file"), "{refused}");
            for started in 1..=2 {
                let mut other =
                    Rig::start(Arc::new(RealDisk), config(elsewhere.path(), true)).unwrap();
                assert_eq!(other.tell("INCR counter").number(), Some(1 + started), "{policy:?}");
            }
            let lost = elsewhere.path().join("appendonlydir/appendonly.aof.2.incr.aof.original");
            assert!(fs::read(lost).unwrap().ends_with(b"INCR\r\n$7\r\ncounter\r\n"));
            // By now the first file is known to be durable: that something is missing is damage.
            fs::write(&first, &fs::read(&first).unwrap()[..30]).unwrap();
            assert!(Rig::start(Arc::new(RealDisk), config(elsewhere.path(), true)).is_err());
        }
        setup.disk.stall_syncs_of(&["temp-rewriteaof"]);
        let is_durable = || fs::read(&second).unwrap().ends_with(b"#BEFORE:durable\r\n");
        rig.wait_for("the mark", |_| is_durable().then_some(()));
        let elsewhere = setup.after_power_failure_that_keeps(".2.incr.");
        let mut other = Rig::start(Arc::new(RealDisk), config(elsewhere.path(), true)).unwrap();
        assert_eq!(other.tell("INCR counter").number(), Some(4));
        setup.disk.stall_syncs_of(&[]);
    }
}

/// Without a file for the effects after the cut only the rewrite fails.
#[test]
fn a_file_that_cannot_be_opened_fails_the_rewrite_alone() {
    for policy in [AppendFsync::Always, AppendFsync::EverySecond, AppendFsync::No] {
        for (operation, errno) in
            [(Operation::Create, libc::EMFILE), (Operation::Rename, libc::ENOSPC)]
        {
            let setup = Setup::new();
            let mut rig = setup.start_with(policy);
            let mut count = Count::default();
            count.go_on(&mut rig);
            setup.disk.fail(operation, 0, errno);
            rig.rewrite();
            let metrics = rig.files.append_only.metrics();
            assert_eq!(
                metrics.rewrites.last_status,
                engine::files::append_only::LastStatus::Failed
            );
            assert_eq!(metrics.last_write, engine::files::append_only::LastStatus::Ok);
            for _ in 0..3 {
                let told = count.go_on(&mut rig);
                assert_eq!(told.number(), Some(count.attempted), "{operation:?}: {told:?}");
            }
            wait_for_writes(&rig);
            assert_eq!(setup.counter_after_kill(), 4, "{operation:?}");
            setup.disk.heal();
            rig.rewrite();
            count.go_on(&mut rig);
            drop(rig);
            assert_eq!(setup.counter_after_power_failure(), 5, "{operation:?}");
            assert_eq!(setup.leftovers(), [""; 0], "{operation:?}");
        }
    }
}

/// The next file is listed before the cut. A server that stops in between leaves it empty, after
/// one that may break off.
#[test]
fn a_stop_between_the_listing_and_the_cut_leaves_files_that_load() {
    let setup = Setup::new();
    let mut rig = setup.start(true).unwrap();
    (1..=3).for_each(|number| assert_eq!(rig.tell("INCR counter").number(), Some(number)));
    drop(rig);
    let directory = AofDirectory::open(
        Arc::new(setup.disk.clone()),
        setup.home.path(),
        OsStr::new("appendonlydir"),
        OsStr::new("appendonly.aof"),
        OldFile::Leave,
    );
    drop(directory.unwrap().open_increment().unwrap());
    let file = setup.path("appendonlydir").join("appendonly.aof.1.incr.aof");
    let torn = [&fs::read(&file).unwrap()[..], b"*2\r\n$4\r\nINC"].concat();
    fs::write(&file, &torn).unwrap();
    let mut rig = setup.start(true).unwrap();
    assert_eq!(rig.tell("INCR counter").number(), Some(4));
    drop(rig);
    assert_eq!(setup.counter_after_power_failure(), 4);
    // A file that breaks off before one that is in use is another matter.
    fs::write(&file, &torn).unwrap();
    assert!(setup.start(true).is_err());
}

/// A base is complete before it is listed: one that breaks off is damaged, also when nothing was
/// written after it.
#[test]
fn a_base_that_breaks_off_before_an_empty_file_is_refused() {
    let setup = Setup::new();
    let settings = Config { aof_use_rdb_preamble: false, ..config(setup.home.path(), true) };
    let mut rig = Rig::start(Arc::new(RealDisk), settings).unwrap();
    (1..=3).for_each(|number| assert_eq!(rig.tell("INCR counter").number(), Some(number)));
    rig.rewrite();
    drop(rig);
    let file = setup.path("appendonlydir").join("appendonly.aof.2.base.aof");
    let whole = fs::read(&file).unwrap();
    let torn = &whole[..whole.len() - 3];
    fs::write(&file, torn).unwrap();
    assert!(setup.start(true).is_err());
    assert_eq!(fs::read(&file).unwrap(), torn);
    fs::write(&file, &whole).unwrap();
    assert_eq!(setup.start(true).unwrap().counter(), 3);
}

/// Makes an operation fail until a client is refused, and returns how far it got.
fn fail_until_refused(setup: &Setup, rig: &mut Rig, operation: Operation) -> Count {
    let mut count = Count::default();
    (0..3).for_each(|_| drop(count.go_on(rig)));
    setup.disk.fail(operation, 0, libc::EIO);
    let begun = Instant::now();
    while !count.go_on(rig).is_refusal() {
        assert!(begun.elapsed() < PATIENCE, "{operation:?} stops nothing");
    }
    count
}

/// When there is room again writes are accepted again, whatever operation had failed, and no
/// acknowledged write is missing.
#[test]
fn a_failed_journal_recovers_by_itself() {
    for policy in [AppendFsync::Always, AppendFsync::EverySecond] {
        for operation in [Operation::Write, Operation::Sync] {
            let what = format!("{operation:?} under {policy:?}");
            let setup = Setup::new();
            let mut rig = setup.start_with(policy);
            let mut count = fail_until_refused(&setup, &mut rig, operation);
            let engine = Arc::clone(&rig.engine);
            // An attempt in vain.
            rig.files.append_only.tick(&engine);
            rig.wait_for("the attempt", |rig| (!rig.is_rewriting()).then_some(()));
            assert!(rig.tell("INCR counter").is_refusal(), "{what}");
            setup.disk.heal();
            rig.wait_for("recovery", |rig| {
                rig.files.append_only.tick(&engine);
                (!engine.journal.state().failed && !rig.is_rewriting()).then_some(())
            });
            let told = count.go_on(&mut rig);
            assert!(told.number().is_some(), "{what}: {told:?}");
            let live = rig.counter();
            count.check(live, &what);
            drop(rig);
            assert_eq!(setup.counter_after_power_failure(), live, "{what}");
        }
    }
}

/// A server refuses to stop while the disk fails. When there is room again, it saves everything and
/// stops.
#[test]
fn a_stop_writes_what_could_not_be_written() {
    for policy in [AppendFsync::Always, AppendFsync::EverySecond] {
        for operation in [Operation::Write, Operation::Sync] {
            let what = format!("{operation:?} under {policy:?}");
            let setup = Setup::new();
            let mut rig = setup.start_with(policy);
            let count = fail_until_refused(&setup, &mut rig, operation);
            // A running snapshot has to give way.
            rig.engine.config.update(|config| config.rdb_key_save_delay = 30_000_000);
            let started = Answered::Reply("+Background saving started\r\n".to_owned());
            assert_eq!(rig.tell("BGSAVE"), started, "{what}");
            rig.wait_for("its first key", |rig| {
                (rig.engine.saving.metrics(0).keys_written > 0).then_some(())
            });
            rig.engine.config.update(|config| config.rdb_key_save_delay = 0);
            let append_only = Arc::clone(&rig.files.append_only);
            append_only.stop_rewrites();
            assert!(append_only.keep_all().is_err(), "{what}");
            setup.disk.heal();
            assert_eq!(append_only.keep_all(), Ok(()), "{what}");
            count.check(setup.counter_after_power_failure(), &what);
            append_only.let_rewrites_go_on();
            assert!(rig.tell("INCR counter").number().is_some(), "it stays after all");
            assert_eq!(rig.tell("SAVE"), Answered::Reply("+OK\r\n".to_owned()), "{what}");
        }
    }
}

/// A rewrite that succeeds while a file cannot be written to is a way out, too.
#[test]
fn a_rewrite_replaces_what_could_not_be_written() {
    let setup = Setup::new();
    let mut rig = setup.start_with(AppendFsync::EverySecond);
    let mut count = fail_until_refused(&setup, &mut rig, Operation::Write);
    rig.rewrite();
    assert!(count.go_on(&mut rig).is_refusal(), "the base cannot be written either");
    setup.disk.heal();
    rig.rewrite();
    rig.wait_for("recovery", |rig| (!rig.engine.journal.state().failed).then_some(()));
    assert!(count.go_on(&mut rig).number().is_some());
    let live = rig.counter();
    count.check(live, "after the rewrite");
    drop(rig);
    assert_eq!(setup.counter_after_power_failure(), live);
}

/// The list may have changed between the command that turns the file on and the attempt: a file
/// that a failed attempt removes is never listed.
#[test]
fn a_file_that_is_turned_on_beside_a_rewrite_goes_on_from_what_that_has_left() {
    let setup = Setup::new();
    let mut rig = setup.start(false).unwrap();
    (1..=3).for_each(|number| assert_eq!(rig.tell("INCR counter").number(), Some(number)));
    setup.disk.stall_syncs_of(&["temp-rewriteaof"]);
    assert!(matches!(rig.tell("BGREWRITEAOF"), Answered::Reply(_)));
    let append_only = Arc::clone(&rig.files.append_only);
    assert_eq!(append_only.turn_on(&config(setup.home.path(), true)), Ok(()));
    setup.disk.stall_syncs_of(&[]);
    rig.wait_for("the end of the rewrite", |rig| (!rig.is_rewriting()).then_some(()));
    assert_eq!(setup.counter_after_power_failure(), 3);
    // The attempt fails after its files have got their names.
    for _ in 0..3 {
        setup.disk.fail(Operation::SyncDirectory, 0, libc::EIO);
        append_only.rewrite(false);
        rig.wait_for("the end of the attempt", |rig| (!rig.is_rewriting()).then_some(()));
        setup.disk.heal();
        assert_eq!(setup.counter_after_kill(), 3);
    }
    rig.rewrite();
    assert_eq!(rig.tell("INCR counter").number(), Some(4));
    assert_eq!(setup.counter_after_power_failure(), 4);
    assert_eq!(setup.leftovers(), [""; 0]);
}

/// The command that turns the file off comes when the next file is open, and before the cut.
#[test]
fn a_file_that_is_turned_off_before_its_cut_does_not_begin() {
    let setup = Setup::new();
    let mut rig = setup.start(false).unwrap();
    assert_eq!(rig.tell("INCR counter").number(), Some(1));
    let append_only = Arc::clone(&rig.files.append_only);
    let inside = rig.gate.enter();
    assert_eq!(append_only.turn_on(&config(setup.home.path(), true)), Ok(()));
    let hidden = setup.path("appendonlydir").join("temp-appendonly.aof.incr");
    rig.wait_for("the next file", |_| hidden.exists().then_some(()));
    append_only.turn_off();
    drop(inside);
    let log = || fs::read_to_string(setup.path("log")).unwrap();
    rig.wait_for("the end of the attempt", |_| log().contains("given up").then_some(()));
    assert!(!append_only.journal().has_file());
    assert!(!hidden.exists());
    assert_eq!(rig.tell("INCR counter").number(), Some(2));
    assert_eq!(append_only.turn_on(&config(setup.home.path(), true)), Ok(()));
    rig.wait_for("the end of the attempt", |rig| (!rig.is_rewriting()).then_some(()));
    assert_eq!(setup.counter_after_power_failure(), 2);
}

/// While other data takes the place of all data there is no file. What CONFIG SET says meanwhile is
/// not forgotten.
#[test]
fn what_is_said_of_the_file_while_other_data_comes_counts_afterwards() {
    let setup = Setup::new();
    let mut rig = setup.start(true).unwrap();
    let append_only = Arc::clone(&rig.files.append_only);
    let settings = config(setup.home.path(), true);
    assert_eq!(rig.tell("INCR counter").number(), Some(1));
    for (says, is_there) in [(None, true), (Some(false), false), (None, false), (Some(true), true)]
    {
        append_only.suspend();
        assert!(!append_only.journal().has_file());
        match says {
            Some(true) => assert_eq!(append_only.turn_on(&settings), Ok(())),
            Some(false) => append_only.turn_off(),
            None => {}
        }
        assert!(!append_only.journal().has_file(), "it would have the old data");
        append_only.resume();
        rig.wait_for("the first file", |rig| (!rig.is_rewriting()).then_some(()));
        assert_eq!(append_only.metrics().writing.is_some(), is_there, "{says:?}");
        assert_eq!(append_only.journal().has_file(), is_there, "{says:?}");
    }
    assert_eq!(rig.tell("INCR counter").number(), Some(2));
    assert_eq!(setup.counter_after_power_failure(), 2);
}

/// A file that is to go on after other data has come is begun as soon as the disk allows it.
#[test]
fn a_file_that_cannot_be_begun_after_other_data_came_is_tried_again() {
    let setup = Setup::new();
    let mut rig = setup.start(true).unwrap();
    let append_only = Arc::clone(&rig.files.append_only);
    append_only.suspend();
    setup.disk.fail(Operation::SyncDirectory, 0, libc::EIO);
    append_only.resume();
    rig.wait_for("the end of the attempt", |rig| (!rig.is_rewriting()).then_some(()));
    assert!(rig.engine.journal.beginning() && !append_only.journal().has_file());
    setup.disk.heal();
    rig.rewrite();
    assert_eq!(rig.tell("INCR counter").number(), Some(1));
    assert_eq!(setup.counter_after_power_failure(), 1);
}
