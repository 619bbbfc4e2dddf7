//! What `docs/ARCHITECTURE.md` promises of the sources, checked from the sources.

mod documents;
mod imports;
mod rooms;
mod rules;
mod source;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use imports::{Imports, circles, shortest_way};
use source::Source;
use tests::server::repository;

/// The sources, and what they import of each other.
struct House {
    sources: Vec<Source>,
    imports: Imports,
}

impl House {
    /// The house, read once.
    fn get() -> &'static House {
        static HOUSE: LazyLock<House> = LazyLock::new(House::read);
        &HOUSE
    }

    fn read() -> House {
        let sources = source::read_all(&repository());
        assert!(sources.len() > 300, "only {} sources were found", sources.len());
        let imports = imports::find(&sources);
        House { sources, imports }
    }

    fn path(&self, at: usize) -> &str {
        &self.sources[at].path
    }

    /// Every import between files: from, to, and one of the names.
    fn edges(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.imports.edges.iter().enumerate().flat_map(move |(from, targets)| {
            targets.iter().map(move |(to, name)| (self.path(from), self.path(*to), &**name))
        })
    }
}

/// Says what was found and not expected, and what was expected and not found: a list of exceptions
/// only gets shorter.
fn compare(what: &str, found: &BTreeSet<String>, listed: &BTreeSet<String>) {
    let new: Vec<_> = found.difference(listed).map(String::as_str).collect();
    let gone: Vec<_> = listed.difference(found).map(String::as_str).collect();
    assert!(new.is_empty(), "{what}:\n  {}", new.join("\n  "));
    assert!(
        gone.is_empty(),
        "{what}, no longer true, to be taken off the list:\n  {}",
        gone.join("\n  ")
    );
}

#[test]
fn crates_import_in_one_direction() {
    let house = House::get();
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (source, packages) in house.sources.iter().zip(&house.imports.packages) {
        let own = found.entry(&source.package).or_default();
        own.extend(packages.iter().map(String::as_str));
    }
    for (package, imported) in found {
        let allowed = rules::CRATES.iter().find(|(name, _)| *name == package);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("what may {package} import?"));
        for name in imported {
            assert!(allowed.contains(&name), "{package} imports {name}");
        }
    }
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let house = House::get();
    let mut known = BTreeSet::new();
    let mut new = Vec::new();
    for circle in circles(&house.imports.edges) {
        let members: BTreeSet<&str> = circle.iter().map(|at| house.path(*at)).collect();
        if rules::is_family(&members) {
            continue;
        }
        let listed = rules::CIRCLES.iter().position(|(files, _)| {
            let files: BTreeSet<&str> = files.iter().copied().collect();
            members.is_subset(&files)
        });
        match listed {
            Some(at) => drop(known.insert(at)),
            None => {
                let way = shortest_way(&circle, &house.imports.edges);
                let mut text = format!("a circle of {} files:", circle.len());
                for pair in way.windows(2) {
                    let name = &house.imports.edges[pair[0]][&pair[1]];
                    let (from, to) = (house.path(pair[0]), house.path(pair[1]));
                    text += &format!("\n  {from} names {name} of {to}");
                }
                new.push(text);
            }
        }
    }
    assert!(new.is_empty(), "{}", new.join("\n"));
    let gone: Vec<_> = (0..rules::CIRCLES.len()).filter(|at| !known.contains(at)).collect();
    assert!(gone.is_empty(), "no circles any more: {gone:?} of the list");
}

#[test]
fn families_of_commands_do_not_import_each_other() {
    const FAMILIES: &str = "crates/commands/src/";
    let family = |path: &str| {
        let inner = path.strip_prefix(FAMILIES)?;
        let name = inner.split(['/', '.']).next()?;
        (!matches!(name, "lib" | "compatibility")).then(|| name.to_string())
    };
    let house = House::get();
    let mut inside = 0;
    for (from, to, name) in house.edges() {
        let target = family(to);
        if to.starts_with(FAMILIES) {
            let allowed = from.starts_with(FAMILIES);
            assert!(allowed, "{from} imports a family: {name}");
        }
        if let (Some(one), Some(other)) = (family(from), target) {
            assert_eq!(one, other, "{from} imports {name}");
            inside += 1;
        }
    }
    assert!(inside > 10, "only {inside} imports within families were found");
}

#[test]
fn data_is_synced_by_one_room() {
    let house = House::get();
    let mut callers = 0;
    for source in &house.sources {
        let tokens = source.tokens();
        let calls = |pair: &[&str]| {
            pair[1] == "(" && matches!(pair[0], "sync_all" | "sync_data" | "fsync" | "fdatasync")
        };
        if tokens.windows(2).any(calls) {
            let path = &source.path;
            let may = path.starts_with("crates/persist/src/") || path == rules::SYNCS_ITS_OWN;
            assert!(may, "{path} syncs");
            callers += 1;
        }
    }
    assert!(callers > 0, "nobody syncs");
}

#[test]
fn the_clock_is_read_in_one_place() {
    let house = House::get();
    let mut found = BTreeSet::new();
    for source in &house.sources {
        let tokens = source.tokens();
        let reads = |kind: &str| {
            tokens.windows(3).any(|three| three[0] == kind && three[1] == "::" && three[2] == "now")
        };
        // How long a thread of the server or of the lab has waited concerns nothing else.
        let waits = matches!(&*source.package, "process" | "persist" | "server" | "lab" | "dunlin");
        let raw = tokens.windows(2).any(|two| two == ["clock_gettime", "("]);
        if reads("SystemTime") || raw || reads("Instant") && !waits {
            found.insert(source.path.clone());
        }
    }
    let listed = rules::CLOCKS.iter().map(|(path, _)| (*path).to_string());
    compare("reads a clock", &found, &listed.collect());
}

#[test]
fn unsafe_code_is_where_it_is_expected() {
    let house = House::get();
    let found = house.sources.iter().filter(|source| source.tokens().contains(&"unsafe"));
    let found = found.map(|source| source.path.clone()).collect();
    let listed = rules::UNSAFE.iter().map(|path| (*path).to_string()).collect();
    compare("has unsafe code", &found, &listed);
}

/// The path and the text of each source file, tests included.
fn texts() -> Vec<(String, String)> {
    let root = repository();
    let mut files = Vec::new();
    for folder in ["crates", "tests", "fuzz/fuzz_targets", "explore/src", "explore/tests"] {
        source::find_files(&root.join(folder), &mut files);
    }
    assert!(files.len() > 400, "only {} files were found", files.len());
    let read = |file: &PathBuf| {
        let path = file.strip_prefix(&root).expect("it was found there");
        let text = std::fs::read_to_string(file).expect("a source is text");
        (path.to_string_lossy().into_owned(), text)
    };
    files.iter().map(read).collect()
}

#[test]
fn files_are_not_long() {
    let long =
        |(path, text): (String, String)| (text.lines().count() > rules::LINES_MAX).then_some(path);
    let found = texts().into_iter().filter_map(long).collect();
    let listed = rules::LONG.iter().map(|(path, _)| (*path).to_string()).collect();
    compare(&format!("has more than {} lines", rules::LINES_MAX), &found, &listed);
}

/// The formatter sees to the code. A row of a table cannot be divided.
#[test]
fn comments_are_not_wide() {
    let is_wide = |line: &&str| {
        let comment = line.trim_start();
        let divides = comment.starts_with("//") && !comment.contains(" | ");
        divides && line.chars().count() > rules::COLUMNS_MAX
    };
    let wide: Vec<_> = texts()
        .iter()
        .flat_map(|(path, text)| text.lines().filter(is_wide).map(move |line| (path, line)))
        .map(|(path, line)| format!("{path}: {line}"))
        .collect();
    assert!(wide.is_empty(), "wider than {} columns:\n{}", rules::COLUMNS_MAX, wide.join("\n"));
}
