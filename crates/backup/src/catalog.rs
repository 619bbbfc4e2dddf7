//! The list of a store that is being written to.

use std::sync::Arc;

use crate::manifest::{MANIFEST, Manifest, StoredFile};
use crate::moment::Moment;
use crate::storage::{self, Store};

/// How the names of files begin and end that this program writes besides the list. There are eight
/// digits or more in between.
const NAMES: [(&str, &str); 2] = [("base-", ".rdb"), ("stream-", ".aof")];
/// What follows where a file was not complete.
const BEGUN: &str = ".part";

/// See the module's text.
pub(crate) struct Catalog {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) manifest: Manifest,
    /// The list as the store has it.
    written: Option<Vec<u8>>,
    /// Files that the list names, and that are not there.
    pub(crate) missing: Vec<String>,
}

/// Whether this program gives such a name to a base or a segment.
fn is_own(name: &str) -> bool {
    NAMES.iter().any(|(begin, end)| {
        let digits = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        digits.is_some_and(|own| own.len() >= 8 && own.bytes().all(|byte| byte.is_ascii_digit()))
    })
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
        let written = storage::read_all(&*store, MANIFEST)?;
        let files = store.files()?;
        let in_store = |problem: String| format!("{}: {problem}", store.name());
        let manifest = match &written {
            Some(bytes) => Manifest::parse(bytes).map_err(in_store)?,
            // A list that cannot be read just now must not cost what it names.
            None => match files.iter().find(|name| is_own(name) || *name == MANIFEST) {
                Some(file) => {
                    return Err(in_store(format!(
                        "{file} is there, but {MANIFEST} cannot be found: put it back, or use \
                         another place. Nothing was changed"
                    )));
                }
                None => Manifest::new(),
            },
        };
        let mut catalog = Catalog { store, manifest, written, missing: Vec::new() };
        catalog.forget_missing(&files)?;
        if catalog.missing.is_empty() {
            catalog.forget_lines_without_base()?;
            catalog.remove_unlisted(&files)?;
        }
        Ok(catalog)
    }

    /// Takes those out of the list that are not there. What was behind them stays where it is, for
    /// this run.
    fn forget_missing(&mut self, files: &[String]) -> Result<(), String> {
        let unseen = self.manifest.files().filter(|file| !files.contains(&file.name));
        for name in unseen.map(|file| file.name.clone()) {
            if self.store.read(&name)?.is_none() {
                self.missing.push(name);
            }
        }
        let is_there = |file: &StoredFile| !self.missing.contains(&file.name);
        self.manifest.bases.retain(|base| is_there(&base.file));
        self.manifest.segments.retain(|segment| is_there(&segment.file));
        Ok(())
    }

    /// A run that is killed before its first base is complete leaves a stream behind nothing.
    fn forget_lines_without_base(&mut self) -> Result<(), String> {
        let count = self.manifest.segments.len();
        let lines = self.manifest.lines();
        self.manifest.segments.retain(|segment| lines.contains(&segment.line));
        if self.manifest.segments.len() < count { self.save() } else { Ok(()) }
    }

    fn remove_unlisted(&self, files: &[String]) -> Result<(), String> {
        for name in files {
            let begun = name.strip_suffix(BEGUN);
            let is_left = match begun {
                Some(begun) => is_own(begun) || begun == MANIFEST,
                None => is_own(name) && !self.manifest.files().any(|file| file.name == *name),
            };
            if is_left {
                self.store.remove(name)?;
            }
        }
        Ok(())
    }

    /// A name for a new base or segment, which no file has had.
    pub(crate) fn new_name(&mut self, kind: &str, extension: &str) -> String {
        let number = self.manifest.next;
        self.manifest.next += 1;
        format!("{kind}-{number:08}.{extension}")
    }

    /// Writes a small file under this name, and reads it back.
    pub(crate) fn put(&self, name: String, bytes: &[u8]) -> Result<StoredFile, String> {
        self.store.put(&name, bytes)?;
        if storage::read_all(&*self.store, &name)?.as_deref() != Some(bytes) {
            return Err(format!("{name}: what {} gives back differs", self.store.name()));
        }
        let (bytes, sha256) = (bytes.len() as u64, crate::digest::sha256(bytes));
        Ok(StoredFile { name, bytes, sha256 })
    }

    /// Writes the list, after everything that it names.
    pub(crate) fn save(&mut self) -> Result<(), String> {
        if storage::read_all(&*self.store, MANIFEST)? != self.written {
            return Err(format!(
                "{}: another backup has written there meanwhile",
                self.store.name()
            ));
        }
        self.manifest.generation += 1;
        self.manifest.written = Moment::now();
        let bytes = self.manifest.format();
        self.put(MANIFEST.to_owned(), &bytes)?;
        self.written = Some(bytes);
        Ok(())
    }

    /// Removes files that the list does not name any more.
    pub(crate) fn remove(&self, files: &[StoredFile]) -> Result<(), String> {
        files.iter().try_for_each(|file| self.store.remove(&file.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_this_program_gives_are_its_own() {
        for name in ["base-00000001.rdb", "stream-00000012.aof", "stream-123456789.aof"] {
            assert!(is_own(name), "{name}");
        }
        for name in [
            "base-system.tar",
            "base-1.rdb",
            "stream-notes.txt",
            "base-00000001.rdb.part",
            "base-00000001.aof",
            "base-0000000x.rdb",
            "manifest.json.bak",
        ] {
            assert!(!is_own(name), "{name}");
        }
    }
}
