//! Documents name files that exist.

use std::fs;

use anyhow::{Result, ensure};
use tests::server::repository;

/// Checked, with the fewest paths that each is known to name: a check that finds none proves nothing.
const DOCUMENTS: [(&str, usize); 2] = [("docs/ARCHITECTURE.md", 20), ("README.md", 4)];

#[test]
fn paths_in_documents_exist() -> Result<()> {
    let root = repository();
    for (document, least) in DOCUMENTS {
        let text = fs::read_to_string(root.join(document))?;
        let paths: Vec<&str> = named_paths(&text).collect();
        ensure!(paths.len() >= least, "{document} names only {paths:?}");
        for path in paths {
            ensure!(root.join(path).exists(), "{document} names {path}, which does not exist");
        }
    }
    Ok(())
}

/// What stands in backticks or in the parentheses of a link, and looks like a path of the
/// repository.
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let roots = ["crates/", "tests/", "docs/", "scripts/", "README.md", "CHANGELOG.md", "LICENSE"];
    text.split(['`', '(', ')']).filter(move |word| {
        let one_word = !word.contains(char::is_whitespace);
        one_word && roots.iter().any(|root| word.starts_with(root))
    })
}
