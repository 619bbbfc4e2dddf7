//! Documents name files that exist.

use std::fs;
use std::path::{Path, PathBuf};

use tests::server::repository;

/// Folders whose files are named by their whole path.
const FOLDERS: [&str; 9] =
    [".ci/", "crates/", "deploy/", "docs/", "examples/", "explore/", "fuzz/", "scripts/", "tests/"];

#[test]
fn what_documents_name_exists() {
    let root = repository();
    let (mut missing, mut checked) = (Vec::new(), 0);
    for document in all(&root) {
        let text = fs::read_to_string(&document).expect("a document is text");
        let folder = document.parent().expect("it lies in a folder");
        let links = links(&text).map(|link| folder.join(link));
        let paths = named_paths(&text).map(|path| root.join(path));
        for path in links.chain(paths) {
            checked += 1;
            if !path.exists() {
                missing.push(format!("{} names {}", document.display(), path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(checked > 100, "only {checked} paths were found");
}

/// A page that the site does not list is not in it.
#[test]
fn every_page_is_in_the_summary() {
    let root = repository();
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).expect("it is text");
    let listed: Vec<_> = links(&summary).map(|link| root.join("docs").join(link)).collect();
    let is_listed = |page: &PathBuf| {
        let same = |other: &PathBuf| other.canonicalize().ok() == page.canonicalize().ok();
        page.ends_with("SUMMARY.md") || listed.iter().any(same)
    };
    let mut pages = all(&root);
    find_documents(&root.join("examples"), &mut pages);
    pages.retain(|page| !is_listed(page));
    assert!(pages.is_empty(), "not in docs/SUMMARY.md: {pages:?}");
}

/// All documents.
pub(crate) fn all(root: &Path) -> Vec<PathBuf> {
    let names = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let mut documents: Vec<_> = names.iter().map(|name| root.join(name)).collect();
    find_documents(&root.join("docs"), &mut documents);
    documents
}

fn find_documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() && !path.ends_with("node_modules") {
            find_documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The targets of links to files, `[text](target#place)`, as they stand there.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("](").skip(1);
    let targets = behind.filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:"))
}

/// What stands in backticks and looks like a path of the repository. A word with `<family>` or `*`
/// in it stands for many.
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').skip(1).step_by(2);
    words.filter(|word| {
        let one = !word.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '*' | '{'));
        one && FOLDERS.iter().any(|folder| word.starts_with(folder))
    })
}

#[test]
fn links_and_paths_are_found() {
    let text = "see `tests/a.rs` and `x` [b](c/d.md#e) [f](https://g) `docs/<h>` [i](#j)";
    assert_eq!(links(text).collect::<Vec<_>>(), ["c/d.md"]);
    assert_eq!(named_paths(text).collect::<Vec<_>>(), ["tests/a.rs"]);
}
