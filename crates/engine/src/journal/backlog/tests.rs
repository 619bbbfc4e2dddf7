use super::*;
use crate::journal::EffectBatch;
use crate::journal::tail::Tail;

/// A backlog with the end of its stream.
#[derive(Default)]
struct Rig {
    backlog: Backlog,
    tail: Tail,
}

impl Rig {
    /// One that keeps a history from an offset on.
    fn begun(end: u64, name: &str) -> Rig {
        let mut rig = Rig::default();
        rig.tail.go_on_from(end, Some(0));
        rig.backlog.begin(end, name.into());
        rig
    }

    /// Appends effects of 100 bytes and more in database 0. Returns the offset after them.
    fn append(&mut self, more: usize) -> u64 {
        let (mut batch, value) = (EffectBatch::default(), "x".repeat(more + 73));
        batch.push(0, [&b"SET"[..], b"k", value.as_bytes()].into_iter());
        self.tail.append(&batch, &self.backlog)
    }

    fn load(&mut self, history: &str, offset: u64) {
        self.backlog.load_history(Position { history: history.into(), offset });
        self.tail.go_on_from(offset, Some(0));
    }

    fn resolve(&self, history: &str, offset: u64) -> Result<u64, Gone> {
        let position = Position { history: history.into(), offset };
        self.backlog.resolve(&Since::Position(position), u64::MAX)
    }

    fn read(&self, from: u64, shown: u64, count: usize) -> Result<Vec<u64>, Gone> {
        let records = self.backlog.read(from, shown, count)?;
        Ok(records.iter().map(Record::end).collect())
    }

    fn bytes(&self, from: u64, most: usize) -> Vec<u8> {
        let pieces = self.backlog.read_bytes(from, u64::MAX, most).unwrap();
        pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect()
    }
}

#[test]
fn followers_resume_from_every_kept_position() {
    let mut rig = Rig::begun(1000, "a");
    assert_eq!(rig.backlog.current(1000).unwrap().to_string(), "a:1000");
    let ends: Vec<_> = (0..5).map(|_| rig.append(0)).collect();
    assert_eq!(ends, [1100, 1200, 1300, 1400, 1500]);
    let backlog = &rig.backlog;
    assert_eq!(backlog.resolve(&Since::Now, u64::MAX), Ok(1500));
    assert_eq!(backlog.resolve(&Since::Now, 1300), Ok(1300), "no more than may be seen");
    assert_eq!(backlog.resolve(&Since::Oldest, u64::MAX), Ok(1000));
    assert_eq!(rig.resolve("a", 1200), Ok(1200));
    assert_eq!(rig.read(1200, u64::MAX, 10).unwrap(), [1300, 1400, 1500]);
    assert_eq!(rig.read(1200, 1400, 10).unwrap(), [1300, 1400]);
    assert_eq!(rig.read(1000, u64::MAX, 2).unwrap(), [1100, 1200]);
    assert_eq!(rig.read(1200, u64::MAX, 1).unwrap(), [1300], "where another one stopped");
    assert_eq!(rig.read(1500, u64::MAX, 1).unwrap(), [0; 0]);
    for gone in [("a", 999), ("a", 1501), ("b", 1200)] {
        let error = Gone { oldest: "a:1000".into(), newest: "a:1500".into() };
        assert_eq!(rig.resolve(gone.0, gone.1), Err(error));
    }
}

#[test]
fn a_history_that_begins_at_the_end_counts_if_it_is_noted() {
    let mut rig = Rig::default();
    rig.load("a", 1000);
    assert_eq!(rig.append(0), 1100);
    for unused in ["b", "c"] {
        rig.load(unused, 1100);
    }
    let used = |noted: Option<(&str, u64)>| {
        let noted = noted.map(|(name, offset)| Position { history: name.into(), offset });
        rig.backlog.last_used(noted.as_ref()).unwrap().to_string()
    };
    assert_eq!(used(None), "a:1100");
    assert_eq!(used(Some(("b", 1100))), "b:1100");
    assert_eq!(used(Some(("c", 1100))), "c:1100");
    for (name, offset) in [("b", 1000), ("d", 1100), ("a", 1100)] {
        assert_eq!(used(Some((name, offset))), "a:1100");
    }
}

#[test]
fn the_bytes_are_those_of_the_stream() {
    let mut rig = Rig::begun(0, "a");
    rig.backlog.set_limit(1 << 15);
    for more in 0..100 {
        rig.append(more);
    }
    let all = rig.bytes(0, usize::MAX);
    assert_eq!(all.len() as u64, rig.tail.end());
    assert!(rig.backlog.read_bytes(0, u64::MAX, usize::MAX).unwrap().len() > 5);
    for from in (0..all.len()).step_by(97) {
        assert_eq!(rig.bytes(from as u64, 3000), all[from..(from + 3000).min(all.len())]);
        let shown = rig.backlog.read_bytes(from as u64, 5000, usize::MAX).unwrap();
        let shown: usize = shown.iter().map(|piece| piece.bytes().len()).sum();
        assert_eq!(shown, 5000_usize.saturating_sub(from));
        let mut ends = Vec::new();
        let mut at = from as u64;
        while let Some(end) = rig.read(at, u64::MAX, 1).unwrap().first() {
            ends.push(*end);
            at = *end;
        }
        assert_eq!(ends, rig.read(from as u64, u64::MAX, 1000).unwrap());
        assert_eq!(ends.last(), Some(&rig.tail.end()));
    }
    assert_eq!(rig.bytes(rig.tail.end(), 10), b"");
}

#[test]
fn no_more_memory_is_taken_than_the_limit() {
    let mut rig = Rig::begun(0, "a");
    for limit in [100_000, 20_000] {
        rig.backlog.set_limit(limit);
        (0..1000).for_each(|_| {
            rig.append(100);
            assert!(rig.backlog.bytes() as u64 <= limit);
        });
        let kept = rig.tail.end() - rig.backlog.oldest();
        // Small blocks hold few effects, and the rest of each is of no use.
        assert!(kept > limit * 2 / 3, "{kept} of {limit} bytes are effects");
    }
    let oldest = rig.backlog.oldest();
    assert!(rig.read(oldest - 1, u64::MAX, 1).is_err());
    assert!(rig.backlog.read_bytes(oldest - 1, u64::MAX, 1).is_err());
    assert_eq!(rig.read(oldest, u64::MAX, 1).unwrap(), [oldest + 201]);
    let before = rig.tail.end();
    let end = rig.append(100_000);
    assert_eq!((rig.backlog.oldest(), rig.backlog.newest()), (before, end), "it stays");
    // Who reads a block may go on with it.
    let piece = rig.backlog.read_bytes(before, u64::MAX, 100).unwrap().remove(0);
    rig.append(0);
    assert_eq!((rig.backlog.oldest(), piece.bytes().len()), (end, 100));
}

#[test]
fn what_somebody_needs_stays_beyond_the_limit() {
    let mut rig = Rig::begun(0, "a");
    rig.backlog.set_limit(20_000);
    let needed = rig.append(100);
    rig.backlog.keep_from(Some(needed));
    (0..1000).for_each(|_| _ = rig.append(100));
    assert_eq!(rig.bytes(needed, usize::MAX).len() as u64, rig.tail.end() - needed);
    rig.backlog.keep_from(Some(needed + 100_000));
    assert!(rig.backlog.oldest() > needed && rig.backlog.oldest() <= needed + 100_000);
    rig.backlog.keep_from(None);
    assert!(rig.backlog.bytes() <= 20_000);
}

#[test]
fn a_start_begins_a_history_where_the_file_ends() {
    let mut rig = Rig::default();
    rig.load("a", 500);
    assert_eq!(rig.append(0), 600);
    rig.load("a", 600);
    assert_eq!(rig.append(0), 700);
    rig.backlog.note_loaded(Some(3));
    assert_eq!(rig.backlog.loaded_end(), Some((700, Some(3))));
    rig.backlog.begin_series(700, "b".into());
    assert_eq!(rig.backlog.loaded_end(), None);
    assert_eq!(rig.backlog.current(700).unwrap().to_string(), "b:700");
    rig.tail.go_on_from(700, Some(0));
    rig.append(0);
    assert_eq!(rig.resolve("a", 600), Ok(600));
    assert_eq!(rig.resolve("a", 700), Ok(700));
    assert!(rig.resolve("a", 701).is_err(), "the disk has lost that");
    assert_eq!(rig.resolve("b", 800), Ok(800));
    assert!(rig.resolve("b", 699).is_err(), "there was no such position");
    assert_eq!(rig.read(500, u64::MAX, 9).unwrap(), [600, 700, 800]);
    let positions = [699, 700].map(|offset| rig.backlog.position(offset));
    assert_eq!(positions, ["a:699", "b:700"]);
    let histories = rig.backlog.histories().unwrap();
    assert_eq!((histories.oldest, histories.newest), (500, 800));
    assert_eq!(histories.present, "b");
    assert_eq!(histories.previous.unwrap().to_string(), "a:700");
}

#[test]
fn a_gap_begins_another_history() {
    let mut rig = Rig::begun(0, "a");
    rig.append(0);
    rig.backlog.end(true);
    assert_eq!(rig.backlog.begin(400, "c".into()), None, "offsets have gone on");
    assert!(rig.resolve("a", 300).is_err(), "nothing was kept meanwhile");
    assert_eq!(rig.resolve("a", 400), Ok(400));
    rig.backlog.end(false);
    let none = Position::parse(rig.backlog.position(100).as_bytes()).expect("like others");
    assert!(rig.backlog.resolve(&Since::Position(none), u64::MAX).is_err());
    assert_eq!(rig.backlog.histories(), None);
    assert_eq!(rig.backlog.begin(400, "c".into()).unwrap().to_string(), "c:400");
}

#[test]
fn a_history_of_another_server_may_be_further_than_the_journal() {
    let rig = Rig::begun(1000, "a");
    rig.backlog.adopt(1000, Position { history: "p".into(), offset: 5000 });
    assert_eq!(rig.backlog.in_history(1000), 5000);
    assert_eq!((rig.backlog.in_journal(5000), rig.backlog.in_journal(4500)), (1000, 500));
    assert_eq!(rig.backlog.in_journal(10), 0, "the journal does not reach back so far");
}

#[test]
fn a_history_of_another_server_goes_on_here() {
    let mut rig = Rig::begun(1000, "a");
    rig.append(0);
    let foreign = |offset| Position { history: "p".into(), offset };
    // It is behind our own offset: all is read anew.
    let (noted, goes_on) = rig.backlog.adopt(1100, foreign(50));
    assert_eq!((noted, goes_on), (Some(foreign(50)), false));
    rig.tail.go_on_from(1100, None);
    let bytes = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$4\r\nping\r\n";
    let end = rig.tail.append_raw(bytes, Some(0), &rig.backlog);
    assert_eq!((end, rig.backlog.in_history(end)), (1137, 87));
    assert_eq!((rig.backlog.in_journal(87), rig.backlog.in_journal(50)), (1137, 1100));
    assert_eq!(rig.backlog.position(1137), "p:87");
    assert!(rig.resolve("a", 1100).is_err() && rig.resolve("p", 49).is_err());
    let from = rig.resolve("p", 50).unwrap();
    assert_eq!(rig.bytes(from, usize::MAX), bytes);
    assert!(rig.resolve("p", 88).is_err());
    // This server is promoted: positions of the old name stay valid up to here.
    let (noted, goes_on) = rig.backlog.adopt(1137, Position { history: "q".into(), offset: 87 });
    assert_eq!((noted.unwrap().to_string().as_str(), goes_on), ("q:87", true));
    rig.append(0);
    assert_eq!([rig.resolve("p", 87), rig.resolve("q", 187)], [Ok(1137), Ok(1237)]);
    assert!(rig.resolve("p", 88).is_err() && rig.resolve("q", 86).is_err());
    let histories = rig.backlog.histories().unwrap();
    assert_eq!((histories.oldest, histories.newest), (50, 187));
    assert_eq!(histories.previous.unwrap().to_string(), "p:87");
    // After a start, the old name goes on if nothing has happened under another one.
    let again = || Position { history: "r".into(), offset: 187 };
    assert!(rig.backlog.adopt(1237, again()).1);
    assert!(rig.backlog.adopt(1237, Position { history: "q".into(), ..again() }).1);
    assert_eq!(rig.backlog.position(1237), "q:187");
    assert_eq!(rig.backlog.histories().unwrap().previous.unwrap().to_string(), "p:87");
}

#[test]
fn a_reader_that_rests_is_woken_once() {
    let mut rig = Rig::begun(0, "a");
    let woken = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&woken);
    let wake = Box::new(move || {
        own.fetch_add(1, Relaxed);
    });
    let reader = rig.backlog.add_reader(wake);
    rig.backlog.wake();
    assert!(rig.backlog.begin_rest(&reader, 0));
    assert_eq!(woken.load(Relaxed), 0, "it did not rest");
    rig.append(0);
    (0..3).for_each(|_| rig.backlog.wake());
    assert_eq!(woken.load(Relaxed), 1);
    assert!(!rig.backlog.begin_rest(&reader, 0), "there is something");
    assert!(rig.backlog.begin_rest(&reader, 100));
    rig.backlog.remove_reader(&reader);
    rig.backlog.wake();
    assert_eq!(woken.load(Relaxed), 1);
}
