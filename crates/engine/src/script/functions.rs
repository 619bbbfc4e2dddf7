//! Libraries of functions.
//!
//! They change with the world stopped. So their order in the journal is the order in which they
//! came, and a cut of the data has exactly the libraries of its instant.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use parking_lot::{Mutex, RwLock};

use crate::command::error::CommandError;
use crate::script::emptying;
use crate::script::shebang::{ScriptFlags, line_length, words};

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: Vec<u8>,
    /// Its own description.
    pub description: Option<Vec<u8>>,
    /// What it needs.
    pub flags: ScriptFlags,
}

/// What names a library to an interpreter, which may keep what it has loaded of the library for as
/// long as this is shared.
#[derive(Debug)]
pub struct Identity {
    /// No other text ever has this number.
    pub number: u64,
}

/// A library.
#[derive(Debug)]
pub struct Library {
    /// See there.
    pub identity: Arc<Identity>,
    /// Its name.
    pub name: Vec<u8>,
    source: Box<[u8]>,
    /// Where the code begins.
    code_at: usize,
    /// It stops the world from the start: see [`crate::script::emptying`].
    pub may_empty: bool,
    /// Its functions, in the order of their registration.
    pub functions: Vec<Function>,
}

impl Library {
    /// The whole text.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// The text that is compiled.
    pub fn code(&self) -> &[u8] {
        &self.source[self.code_at..]
    }

    fn memory(&self) -> usize {
        let functions = self.functions.iter().map(|own| own.name.len() + size_of::<Function>());
        self.source.len() + functions.sum::<usize>() + size_of::<Library>()
    }
}

/// The first line of a library.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Header {
    name: Vec<u8>,
    code_at: usize,
}

impl Header {
    /// Reads it.
    pub(crate) fn parse(source: &[u8]) -> Result<Header, CommandError> {
        let Some(after) = source.strip_prefix(b"#!") else {
            return Err(CommandError::text("ERR Missing library metadata"));
        };
        let end = line_length(source).ok_or(CommandError::text("ERR Invalid library metadata"))?;
        let mut words = words(&after[..end - 2]);
        let engine = words.next().unwrap_or_default();
        let mut name = None;
        for word in words {
            let given = word.get(..5).filter(|start| start.eq_ignore_ascii_case(b"name="));
            if given.is_none() {
                return Err(CommandError::quoting("ERR Invalid metadata value given: ", word, ""));
            }
            if name.replace(word[5..].to_vec()).is_some() {
                return Err(CommandError::text(
                    "ERR Invalid metadata value, name argument was given multiple times",
                ));
            }
        }
        let name = name.ok_or(CommandError::text("ERR Library name was not given"))?;
        check_name(&name)?;
        if !engine.eq_ignore_ascii_case(b"lua") {
            return Err(CommandError::quoting("ERR Engine '", engine, "' not found"));
        }
        Ok(Header { name, code_at: end })
    }

    /// The library's name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The text that is compiled.
    pub(crate) fn code<'s>(&self, source: &'s [u8]) -> &'s [u8] {
        &source[self.code_at..]
    }

    /// The library, once its functions are known.
    pub(crate) fn library(
        self,
        identity: Arc<Identity>,
        source: &[u8],
        functions: Vec<Function>,
    ) -> Library {
        let Header { name, code_at } = self;
        let may_empty = emptying::is_named_in(source);
        Library { identity, name, source: source.into(), code_at, may_empty, functions }
    }
}

/// Refuses a text that cannot be the name of a library or a function.
///
/// # Errors
/// See the text.
pub fn check_name(name: &[u8]) -> Result<(), CommandError> {
    let may_be = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if !name.is_empty() && name.iter().all(may_be) {
        return Ok(());
    }
    Err(CommandError::text(
        "ERR Library names can only contain letters, numbers, or underscores(_) and must be at \
         least one character long",
    ))
}

#[derive(Default)]
struct Known {
    libraries: BTreeMap<Vec<u8>, Arc<Library>>,
    /// By their names in lower case: the library, and the function's index in it.
    functions: HashMap<Vec<u8>, (Arc<Library>, usize)>,
}

/// All libraries.
#[derive(Default)]
pub struct Functions {
    known: RwLock<Known>,
    /// The libraries that belong to the cut that is being written.
    at_cut: Mutex<Vec<Arc<Library>>>,
}

/// What happens to present libraries when others are restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// They stay, and none may have the name of a new one.
    Append,
    /// Libraries that have the name of a new one are replaced.
    Replace,
    /// All go.
    Flush,
}

impl Functions {
    /// A function by its name, in any case.
    pub fn find(&self, name: &[u8]) -> Option<(Arc<Library>, usize)> {
        self.known.read().functions.get(&name.to_ascii_lowercase()).cloned()
    }

    /// All libraries, by name.
    pub fn libraries(&self) -> Vec<Arc<Library>> {
        self.known.read().libraries.values().cloned().collect()
    }

    /// Functions.
    pub fn count(&self) -> usize {
        self.known.read().functions.len()
    }

    /// Bytes that libraries take.
    pub fn memory(&self) -> usize {
        self.known.read().libraries.values().map(|library| library.memory()).sum()
    }

    /// Whether there is a library of this name.
    pub(crate) fn has(&self, header: &Header) -> bool {
        self.known.read().libraries.contains_key(&header.name)
    }

    /// Adds libraries, all or none.
    pub fn add(&self, libraries: Vec<Library>, policy: Policy) -> Result<(), CommandError> {
        let mut known = self.known.write();
        if policy == Policy::Flush {
            let mut fresh = Known::default();
            fresh.add_all(libraries, policy)?;
            *known = fresh;
            return Ok(());
        }
        known.add_all(libraries, policy)
    }

    /// Removes a library.
    pub fn remove(&self, name: &[u8]) -> Result<(), CommandError> {
        let removed = self.known.write().remove(name);
        removed.map(drop).ok_or(CommandError::text("ERR Library not found"))
    }

    /// Removes all.
    pub fn flush(&self) {
        *self.known.write() = Known::default();
    }

    /// A cut begins: the present libraries belong to it. Must be called with the world stopped.
    pub fn note_cut(&self) {
        let libraries = self.libraries();
        *self.at_cut.lock() = libraries;
    }

    /// The libraries of the cut that began last, for the one who reads it.
    pub fn take_at_cut(&self) -> Vec<Arc<Library>> {
        std::mem::take(&mut *self.at_cut.lock())
    }
}

impl Known {
    /// Adds libraries, or changes nothing.
    fn add_all(&mut self, libraries: Vec<Library>, policy: Policy) -> Result<(), CommandError> {
        // What was changed, to be undone: it is cheaper than a copy of everything.
        let mut added = Vec::new();
        for library in libraries {
            let library = Arc::new(library);
            let replaced = match policy {
                Policy::Replace => self.remove(&library.name),
                Policy::Append | Policy::Flush => None,
            };
            let checked = self.check(&library);
            if checked.is_ok() {
                self.insert(Arc::clone(&library));
            }
            added.push((library, replaced));
            if let Err(error) = checked {
                self.undo(added);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes what was added, the last first, and puts back what it replaced. The last one was
    /// refused.
    fn undo(&mut self, mut added: Vec<(Arc<Library>, Option<Arc<Library>>)>) {
        let refused = added.pop().and_then(|(_, replaced)| replaced);
        refused.into_iter().for_each(|library| self.insert(library));
        while let Some((library, replaced)) = added.pop() {
            self.remove(&library.name);
            replaced.into_iter().for_each(|library| self.insert(library));
        }
    }

    /// Whether a library's name, and those of its functions, are new.
    fn check(&self, library: &Library) -> Result<(), CommandError> {
        if self.libraries.contains_key(&library.name) {
            let (before, after) = ("ERR Library ", " already exists");
            return Err(CommandError::quoting(before, &library.name, after));
        }
        let mut own = HashSet::new();
        for function in &library.functions {
            let name = function.name.to_ascii_lowercase();
            if self.functions.contains_key(&name) || !own.insert(name) {
                let (before, after) = ("ERR Function ", " already exists");
                return Err(CommandError::quoting(before, &function.name, after));
            }
        }
        Ok(())
    }

    fn insert(&mut self, library: Arc<Library>) {
        for (index, function) in library.functions.iter().enumerate() {
            let place = (Arc::clone(&library), index);
            self.functions.insert(function.name.to_ascii_lowercase(), place);
        }
        self.libraries.insert(library.name.clone(), library);
    }

    fn remove(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        let library = self.libraries.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        Some(library)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, functions: &[&str]) -> Library {
        let source = format!("#!lua name={name}\ncode");
        let functions = functions.iter().map(|name| Function {
            name: name.as_bytes().to_vec(),
            description: None,
            flags: 0,
        });
        let header = Header::parse(source.as_bytes()).unwrap();
        header.library(Arc::new(Identity { number: 1 }), source.as_bytes(), functions.collect())
    }

    #[test]
    fn the_first_line_names_the_library() {
        let own = library("a_1", &["f"]);
        assert_eq!((&*own.name, own.code()), (&b"a_1"[..], &b"\ncode"[..]));
        for (source, error) in [
            ("x", "ERR Missing library metadata"),
            ("#!lua name=a", "ERR Invalid library metadata"),
            ("#!lua\n", "ERR Library name was not given"),
            ("#!lua name=a b\n", "ERR Invalid metadata value given: b"),
            ("#!js name=a\n", "ERR Engine 'js' not found"),
        ] {
            assert_eq!(Header::parse(source.as_bytes()).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn libraries_that_are_refused_change_nothing() {
        let all = Functions::default();
        all.add(vec![library("a", &["f"]), library("b", &["g"])], Policy::Append).unwrap();
        let before = all.libraries();
        for (libraries, policy) in [
            (vec![library("a", &["new"]), library("c", &["G"])], Policy::Replace),
            (vec![library("a", &["new"]), library("b", &["New"])], Policy::Replace),
            (vec![library("c", &["g2"]), library("c", &["h"])], Policy::Append),
            (vec![library("c", &["h", "H"])], Policy::Append),
            (vec![library("c", &["h"]), library("d", &["h"])], Policy::Flush),
        ] {
            let names = format!("{policy:?} of {libraries:?}");
            assert!(all.add(libraries, policy).is_err(), "{names}");
            let same = |(one, other): (&Arc<Library>, &Arc<Library>)| Arc::ptr_eq(one, other);
            assert!(all.libraries().iter().zip(&before).all(same), "{names}");
            assert_eq!((all.libraries().len(), all.count()), (2, 2), "{names}");
            assert!(all.find(b"F").is_some() && all.find(b"g").is_some(), "{names}");
        }
        // A function may move from one library to another when both are replaced.
        let moved = vec![library("a", &["x"]), library("b", &["f"])];
        all.add(moved, Policy::Replace).unwrap();
        assert_eq!(all.find(b"f").map(|(library, _)| library.name.clone()), Some(b"b".to_vec()));
    }

    #[test]
    fn names_of_functions_are_unique_among_all_libraries() {
        let all = Functions::default();
        all.add(vec![library("a", &["f", "g"])], Policy::Append).unwrap();
        let error = |result: Result<(), CommandError>| result.unwrap_err().to_string();
        let again = all.add(vec![library("a", &["h"])], Policy::Append);
        assert_eq!(error(again), "ERR Library a already exists");
        let other = all.add(vec![library("b", &["x", "F"])], Policy::Append);
        assert_eq!(error(other), "ERR Function F already exists");
        assert_eq!((all.count(), all.libraries().len()), (2, 1), "nothing of it was added");
        all.note_cut();
        all.add(vec![library("a", &["h"])], Policy::Replace).unwrap();
        assert!(all.find(b"H").is_some() && all.find(b"f").is_none());
        all.add(vec![library("b", &["x"])], Policy::Flush).unwrap();
        assert!(all.find(b"h").is_none() && all.find(b"x").is_some());
        assert_eq!(all.take_at_cut()[0].functions.len(), 2);
        assert_eq!(error(all.remove(b"a")), "ERR Library not found");
        all.remove(b"b").unwrap();
        assert_eq!((all.count(), all.memory()), (0, 0));
    }
}
