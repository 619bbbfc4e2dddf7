//! The list of a store that is being written to.

use std::collections::{BTreeSet, HashSet};
use std::mem::take;
use std::sync::Arc;

use crate::files::BEGUN;
use crate::manifest::{LONGEST, MANIFEST, Manifest, StoredFile};
use crate::moment::Moment;
use crate::names::{self, OwnName, is_own};
use crate::print::say;
use crate::retention::Retention;
use crate::storage::{self, Store};

/// So many runs that have not said that they have ended are remembered.
const RUNS: usize = 8;

/// See the module's text.
pub(crate) struct Catalog {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) manifest: Manifest,
    /// The list as the store has it.
    written: Option<Vec<u8>>,
    /// What the names of this run's files have, and those of no other run: one that believes to
    /// have the store still may write at the same time, and count from the same number.
    run: String,
    /// Files that are not there, which no run has missed before.
    missed: Vec<String>,
    /// When something was last written here, before the present.
    seen: Moment,
}

impl Catalog {
    /// Makes the store ready, and removes what a run that was killed has left.
    pub(crate) fn open(store: Arc<dyn Store>) -> Result<Catalog, String> {
        let mut catalog = Catalog::find(store)?;
        if catalog.written.is_none() {
            // Before any other file: none counts without a list.
            catalog.save()?;
        }
        Ok(catalog)
    }

    /// The same of a store that has a list.
    pub(crate) fn open_existing(store: Arc<dyn Store>) -> Result<Catalog, String> {
        // Before anything is written: the place may be a mistake.
        storage::existing_manifest(&*store)?;
        let catalog = Catalog::find(store)?;
        match catalog.written {
            Some(_) => Ok(catalog),
            None => {
                Err(format!("{}: there is no backup: {MANIFEST} is missing", catalog.store.name()))
            }
        }
    }

    fn find(store: Arc<dyn Store>) -> Result<Catalog, String> {
        store.prepare()?;
        let written = storage::read_all(&*store, MANIFEST, LONGEST)?;
        let files = store.files()?;
        let in_store = |problem: String| format!("{}: {problem}", store.name());
        let manifest = match &written {
            Some(bytes) => Manifest::parse(bytes).map_err(in_store)?,
            // A list that cannot be read just now must not cost what it names.
            None => match files.iter().find(|name| is_own(name) || *name == MANIFEST) {
                Some(file) => {
                    return Err(in_store(format!(
                        "{file} is there, but {MANIFEST} cannot be found: put the newest one back, or \
                         use another place. Nothing was changed"
                    )));
                }
                None => Manifest::new(),
            },
        };
        let run = names::new_run();
        let (missed, seen) = (Vec::new(), manifest.written);
        let mut catalog = Catalog { store, manifest, written, run, missed, seen };
        let finds = catalog.look_for_files(&files)?;
        let left = catalog.unlisted(&files);
        catalog.check_left(&left)?;
        if catalog.missed.is_empty() {
            // Nobody lists one that is not complete, and a disk that it has filled has room again.
            let (begun, left): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|name| name.ends_with(BEGUN));
            begun.iter().try_for_each(|name| catalog.store.remove(name))?;
            let forgets = catalog.forget_lines_without_base();
            // A run whose lock has run out finds the list changed, and cannot list what is removed.
            let claims = !left.is_empty() && catalog.written.is_some();
            if finds || forgets || claims {
                catalog.save()?;
            }
            left.iter().try_for_each(|name| catalog.store.remove(name))?;
        }
        Ok(catalog)
    }

    /// Sets aside what is not there, and takes back what is there again. What was behind it stays
    /// where it is. Returns whether something was taken back.
    fn look_for_files(&mut self, files: &[String]) -> Result<bool, String> {
        let missing = self.manifest.missing_files().count();
        let found: HashSet<&String> = files.iter().collect();
        let mut there = HashSet::new();
        for name in self.manifest.all_files().map(|file| &file.name) {
            if found.contains(name) || self.store.read(name)?.is_some() {
                there.insert(name.clone());
            }
        }
        let missed = self.manifest.files().filter(|file| !there.contains(&file.name));
        self.missed = missed.map(|file| file.name.clone()).collect();
        for file in &self.missed {
            say(&format!("{file} is missing, which the list names"));
        }
        self.manifest.take_back(&there);
        let finds = self.manifest.missing_files().count() < missing;
        self.manifest.set_aside(&self.missed);
        Ok(finds)
    }

    /// A run that is killed before its first base is complete leaves a stream behind nothing.
    /// Returns whether the list had one.
    fn forget_lines_without_base(&mut self) -> bool {
        let count = self.manifest.segments.len();
        let mut lines = self.manifest.lines();
        lines.extend(self.manifest.missing.bases.iter().map(|base| base.line));
        self.manifest.segments.retain(|segment| lines.contains(&segment.line));
        self.manifest.segments.len() < count
    }

    /// Files of this program that the list does not name.
    fn unlisted<'f>(&self, files: &'f [String]) -> Vec<&'f String> {
        let listed: HashSet<_> = self.manifest.all_files().map(|file| &file.name).collect();
        let is_left = |name: &&String| match name.strip_suffix(BEGUN) {
            Some(begun) => is_own(begun) || begun == MANIFEST,
            None => is_own(name) && !listed.contains(name),
        };
        files.iter().filter(is_left).collect()
    }

    /// Whether files that the list does not name are what runs have left that were killed. Others
    /// are newer than the list: it was put in the place of the one that names them.
    fn check_left(&self, left: &[&String]) -> Result<(), String> {
        let newer = left
            .iter()
            .filter(|name| OwnName::of(name).is_some_and(|own| own.number >= self.manifest.next));
        let newer: Vec<_> = newer.map(|name| name.as_str()).collect();
        let running = self.manifest.running.as_ref();
        let was_running = |own: &OwnName<'_>| {
            running.is_none_or(|runs| runs.iter().any(|run| own.run == Some(run)))
        };
        // Each has left one of a kind at most, and has removed nothing that is listed.
        let mut seen = BTreeSet::new();
        let are_left = newer.iter().filter_map(|name| OwnName::of(name)).all(|own| {
            self.missed.is_empty() && was_running(&own) && seen.insert((own.kind, own.run))
        });
        match are_left {
            true => Ok(()),
            false => Err(format!(
                "{}: {MANIFEST} is older than {}: put the newest one back, or take away what it \
                 does not name. Nothing was changed",
                self.store.name(),
                newer.join(", ")
            )),
        }
    }

    /// A name for a new base or segment, which no file has had.
    pub(crate) fn new_name(&mut self, kind: &str, extension: &str) -> Result<String, String> {
        self.begin()?;
        let number = self.manifest.next;
        self.manifest.next += 1;
        Ok(names::name(kind, number, &self.run, extension))
    }

    /// Says in the list, before the first file, that this run may leave some that it does not name.
    fn begin(&mut self) -> Result<(), String> {
        let mut runs = self.manifest.running.take().unwrap_or_default();
        let is_new = !runs.contains(&self.run);
        if is_new {
            // One whose lock has run out may go on to write.
            runs.drain(..runs.len().saturating_sub(RUNS - 1));
            runs.push(self.run.clone());
        }
        self.manifest.running = Some(runs);
        if is_new { self.save() } else { Ok(()) }
    }

    /// Says in the list that this run leaves nothing. What it or another run has missed is an
    /// error, if none has ended with one.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        let runs = self.manifest.running.get_or_insert_default();
        let count = runs.len();
        runs.retain(|run| *run != self.run);
        let untold = take(&mut self.manifest.missing.untold);
        if runs.len() < count || !untold.is_empty() {
            self.save()?;
        }
        if untold.is_empty() {
            return Ok(());
        }
        Err(format!("{}: missing, and so is each point that needs it", untold.join(", ")))
    }

    /// Writes a small file under this name, and reads it back.
    pub(crate) fn put(&self, name: String, bytes: &[u8]) -> Result<StoredFile, String> {
        self.store.put(&name, bytes)?;
        self.read_back(&name, bytes)?;
        let (bytes, sha256) = (bytes.len() as u64, crate::digest::sha256(bytes));
        Ok(StoredFile { name, bytes, sha256 })
    }

    fn read_back(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let read = storage::read_all(&*self.store, name, bytes.len() as u64)?;
        match read.as_deref() == Some(bytes) {
            true => Ok(()),
            false => Err(format!("{name}: what {} gives back differs", self.store.name())),
        }
    }

    /// Writes the list, after everything that it names.
    pub(crate) fn save(&mut self) -> Result<(), String> {
        self.manifest.generation += 1;
        self.manifest.written = Moment::now();
        let bytes = self.manifest.format();
        // No list that the next run refuses: a server may have given an impossible offset.
        Manifest::parse(&bytes)?;
        self.store.replace(MANIFEST, self.written.as_deref(), &bytes)?;
        self.read_back(MANIFEST, &bytes)?;
        self.written = Some(bytes);
        Ok(())
    }

    /// Removes what need not be kept, and returns the number of its files. A clock that is ahead in
    /// one run alone costs no history: what had no time to become old here stays until the next
    /// time.
    pub(crate) fn retain(&mut self, retention: &Retention) -> Result<usize, String> {
        let mut kept = self.manifest.clone();
        let now = Moment::now();
        let old = retention.apply(&mut kept, now);
        if old.is_empty() {
            return Ok(0);
        }
        let seen = std::mem::replace(&mut self.seen, now);
        if retention.age_ms.is_some_and(|age| now.0 >= seen.0.saturating_add(age)) {
            say(&format!(
                "nothing is removed: the list was written at {seen}, and the clock says {now}. If \
                 that is right, the next time removes what is old"
            ));
            // So that the next time knows of this one.
            self.save()?;
            return Ok(0);
        }
        self.manifest = kept;
        self.save()?;
        self.remove(&old)?;
        Ok(old.len())
    }

    /// Removes files that the list does not name any more.
    pub(crate) fn remove(&self, files: &[StoredFile]) -> Result<(), String> {
        files.iter().try_for_each(|file| self.store.remove(&file.name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::sync::Mutex;

    use super::*;
    use crate::manifest::Base;
    use crate::position::Position;
    use crate::storage::{Source, Upload};

    /// A store whose lock keeps nobody away.
    #[derive(Default)]
    struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

    impl Source for Memory {
        fn name(&self) -> String {
            "memory".to_owned()
        }

        fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
            let bytes = self.0.lock().unwrap().get(file).cloned();
            Ok(bytes.map(|bytes| -> Box<dyn Read + Send> { Box::new(std::io::Cursor::new(bytes)) }))
        }
    }

    impl Store for Memory {
        fn prepare(&self) -> Result<(), String> {
            Ok(())
        }

        fn begin(&self, _: &str) -> Result<Box<dyn Upload>, String> {
            unreachable!("small files are put")
        }

        fn put(&self, file: &str, bytes: &[u8]) -> Result<(), String> {
            self.0.lock().unwrap().insert(file.to_owned(), bytes.to_vec());
            Ok(())
        }

        fn replace(&self, file: &str, known: Option<&[u8]>, bytes: &[u8]) -> Result<(), String> {
            match storage::read_all(self, file, LONGEST)?.as_deref() == known {
                true => self.put(file, bytes),
                false => Err("it has changed".to_owned()),
            }
        }

        fn remove(&self, file: &str) -> Result<(), String> {
            self.0.lock().unwrap().remove(file);
            Ok(())
        }

        fn files(&self) -> Result<Vec<String>, String> {
            Ok(self.0.lock().unwrap().keys().cloned().collect())
        }
    }

    fn base(file: StoredFile) -> Base {
        let position = Position::parse(&format!("{}:1", "a".repeat(40))).unwrap();
        Base::new(file, 1, position, Moment::default())
    }

    /// It has written a file before another run took the store, and lists the file after that.
    fn check_removed_file(open: impl Fn() -> Arc<dyn Store>, lose_lock: impl Fn()) {
        let mut one = Catalog::open(open()).unwrap();
        let name = one.new_name("base", "rdb").unwrap();
        let file = one.put(name, b"of the first run").unwrap();
        lose_lock();
        let mut other = Catalog::open(open()).unwrap();
        one.manifest.bases.push(base(file));
        one.save().unwrap_err();
        // Both count from the same number.
        let name = other.new_name("base", "rdb").unwrap();
        assert_ne!(name, one.manifest.bases[0].file.name);
        let file = other.put(name, b"of the other run").unwrap();
        other.manifest.bases.push(base(file));
        other.save().unwrap();
        lose_lock();
        assert_eq!(Catalog::open(open()).unwrap().manifest.bases.len(), 1);
    }

    #[test]
    fn a_file_that_another_run_has_removed_is_not_listed() {
        let memory = Arc::new(Memory::default());
        check_removed_file(|| Arc::clone(&memory) as Arc<dyn Store>, || {});
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        // As on a network's file system that does not tell other machines of locks.
        let lose_lock = || std::fs::remove_file(directory.path().join("lock")).unwrap();
        check_removed_file(
            || storage::open(path, &Default::default(), &Default::default()).unwrap().into(),
            lose_lock,
        );
    }

    fn name_of(number: u64, run: &str) -> String {
        format!("stream-{number:08}-{run}.aof")
    }

    #[test]
    fn what_a_killed_run_has_left_goes_and_what_is_newer_than_the_list_stays() {
        let (killed, other) = ("0123abcd", "4567abcd");
        let [one, two] = [5, 6].map(|number| name_of(number, killed));
        for (running, left, may_go) in [
            (Some(&[killed][..]), vec![one.clone()], true),
            (Some(&[killed, other]), vec![one.clone(), name_of(6, other)], true),
            // One run has written them, one after the other: there was a list that named the first.
            (Some(&[killed]), vec![one.clone(), two.clone()], false),
            (Some(&[other]), vec![one.clone()], false),
            (Some(&[]), vec![one.clone()], false),
            (Some(&[]), vec![name_of(4, killed)], true),
            // Of an earlier version.
            (None, vec!["stream-00000005.aof".to_owned()], true),
            (None, vec![one, two], false),
        ] {
            let store = Arc::new(Memory::default());
            let mut manifest = Manifest::new();
            manifest.next = 5;
            manifest.running = running.map(|runs| runs.iter().map(|&run| run.to_owned()).collect());
            store.put(MANIFEST, &manifest.format()).unwrap();
            left.iter().for_each(|name| store.put(name, b"").unwrap());
            let opened = Catalog::open(Arc::clone(&store) as Arc<dyn Store>);
            assert_eq!(opened.is_ok(), may_go, "{running:?} {left:?}");
            let there = store.files().unwrap();
            assert!(left.iter().all(|name| there.contains(name) != may_go), "{running:?} {left:?}");
        }
    }

    #[test]
    fn a_run_is_in_the_list_until_it_has_ended() {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let running = || storage::existing_manifest(&*store).unwrap().running.unwrap();
        let mut one = Catalog::open(Arc::clone(&store)).unwrap();
        assert!(running().is_empty());
        one.new_name("base", "rdb").unwrap();
        assert_eq!(running(), [one.run.clone()]);
        // It may go on to write when others have come and gone.
        for _ in 0..2 {
            let mut other = Catalog::open(Arc::clone(&store)).unwrap();
            other.new_name("base", "rdb").unwrap();
            other.end().unwrap();
            assert_eq!(running(), [one.run.clone()]);
        }
    }

    #[test]
    fn a_list_that_the_next_run_would_refuse_is_not_written() {
        let mut catalog = Catalog::open(Arc::new(Memory::default())).unwrap();
        let name = catalog.new_name("base", "rdb").unwrap();
        let file = catalog.put(name, b"").unwrap();
        let mut base = base(file);
        base.position.offset = u64::MAX;
        catalog.manifest.bases.push(base);
        assert!(catalog.save().unwrap_err().contains("is too large a number"));
        Catalog::open(catalog.store).unwrap();
    }

    #[test]
    fn what_is_missing_is_told_by_the_first_run_that_comes_to_its_end() {
        let store = Arc::new(Memory::default());
        let open = || Catalog::open(Arc::clone(&store) as Arc<dyn Store>).unwrap();
        let mut first = open();
        let name = first.new_name("base", "rdb").unwrap();
        let file = first.put(name.clone(), b"").unwrap();
        first.manifest.bases.push(base(file));
        first.save().unwrap();
        first.end().unwrap();
        store.remove(&name).unwrap();
        // It is killed when it has written the list.
        open().new_name("base", "rdb").unwrap();
        assert!(open().end().unwrap_err().contains(&name));
        open().end().unwrap();
    }

    #[test]
    fn a_clock_that_is_far_ahead_in_one_run_removes_nothing() {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        let retention = Retention { bases: None, age_ms: Some(7 * DAY_MS) };
        for (days, removed) in [(6, [1, 0]), (8, [0, 1])] {
            let mut catalog = Catalog::open(Arc::new(Memory::default())).unwrap();
            let now = Moment::now().0;
            for age in [20, 10, 9] {
                let name = catalog.new_name("base", "rdb").unwrap();
                let file = catalog.put(name, b"").unwrap();
                let time = Moment(now - age * DAY_MS);
                catalog.manifest.bases.push(Base { time, ..base(file) });
            }
            // As the run before has left it.
            catalog.seen = Moment(now - days * DAY_MS);
            catalog.manifest.bases.remove(1);
            assert_eq!([(); 2].map(|()| catalog.retain(&retention).unwrap()), removed, "{days}");
            let written = storage::existing_manifest(&*catalog.store).unwrap().written;
            assert!(written >= Moment(now), "{days}");
        }
    }
}
