//! The list of a store that is being written to.

use std::sync::Arc;

use crate::manifest::{MANIFEST, Manifest, StoredFile};
use crate::moment::Moment;
use crate::storage::{self, Store};

/// How the names of files begin that this program writes besides the list.
const PREFIXES: [&str; 2] = ["base-", "stream-"];

/// See the module's text.
pub(crate) struct Catalog {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) manifest: Manifest,
    /// The list as the store has it.
    written: Option<Vec<u8>>,
}

impl Catalog {
    /// Makes the store ready, and removes what a run that was killed has left.
    pub(crate) fn open(store: Arc<dyn Store>) -> Result<Catalog, String> {
        store.prepare()?;
        let written = storage::read_all(&*store, MANIFEST)?;
        let manifest = match &written {
            Some(bytes) => {
                Manifest::parse(bytes).map_err(|problem| format!("{}: {problem}", store.name()))?
            }
            None => Manifest::new(),
        };
        let mut catalog = Catalog { store, manifest, written };
        catalog.forget_lines_without_base()?;
        catalog.remove_unlisted()?;
        Ok(catalog)
    }

    /// A run that is killed before its first base is complete leaves a stream behind nothing.
    fn forget_lines_without_base(&mut self) -> Result<(), String> {
        let count = self.manifest.segments.len();
        let lines = self.manifest.lines();
        self.manifest.segments.retain(|segment| lines.contains(&segment.line));
        if self.manifest.segments.len() < count { self.save() } else { Ok(()) }
    }

    fn remove_unlisted(&self) -> Result<(), String> {
        for name in self.store.files()? {
            let is_own = PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || name.starts_with(MANIFEST) && name != MANIFEST;
            if is_own && !self.manifest.files().any(|file| file.name == name) {
                self.store.remove(&name)?;
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
