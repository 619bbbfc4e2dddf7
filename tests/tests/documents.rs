//! Documents name files that exist, and those that the program prints are up to date.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::server::{Server, Target, dunlin_binary, repository};

/// Checked, with the fewest paths that each is known to name: a check that finds none proves nothing.
const DOCUMENTS: [(&str, usize); 7] = [
    ("docs/ARCHITECTURE.md", 20),
    ("README.md", 5),
    ("CONTRIBUTING.md", 8),
    ("docs/formats/entry.md", 1),
    ("docs/formats/bucket.md", 2),
    ("docs/formats/packed.md", 2),
    ("docs/formats/journal.md", 4),
];

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
    let folders = ["crates/", "tests/", "docs/", "scripts/"];
    let files = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"];
    text.split(['`', '(', ')']).filter(move |word| {
        let mut roots = folders.iter().chain(&files);
        // A word with `<family>` in it stands for many paths.
        let one_path = !word.contains(|c: char| c.is_whitespace() || c == '<');
        one_path && roots.any(|root| word.starts_with(root))
    })
}

#[test]
fn the_compatibility_page_is_what_the_program_prints() -> Result<()> {
    let printed = Command::new(dunlin_binary()?).args(["docs", "compatibility"]).output()?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let kept = fs::read(repository().join("docs/COMPATIBILITY.md"))?;
    ensure!(printed.stdout == kept, "docs/COMPATIBILITY.md is out of date: make docs");
    Ok(())
}

/// The list from which the page derives what is not there.
#[test]
fn the_commands_of_the_reference_are_known() -> Result<()> {
    let path = repository().join("crates/engine/src/compatibility/redis-7.0.txt");
    let text = fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let listed = lines.flat_map(|line| {
        let mut words = line.split(' ');
        let family = words.next().unwrap_or_default();
        words.map(move |name| (name.to_owned(), family.to_owned()))
    });
    let listed: BTreeSet<_> = listed.collect();
    let reference = Server::start(Target::Reference, &[])?;
    let mut described = BTreeSet::new();
    describe(&reference.connect()?.call_text("COMMAND DOCS")?, &mut described)?;
    let different: Vec<_> = listed.symmetric_difference(&described).collect();
    ensure!(different.is_empty(), "listed or described, but not both: {different:?}");
    Ok(())
}

/// Collects names and families out of COMMAND DOCS, subcommands included.
fn describe(docs: &Reply, found: &mut BTreeSet<(String, String)>) -> Result<()> {
    for (name, fields) in pairs(docs)? {
        let fields = pairs(fields)?;
        let field = |wanted: &[u8]| {
            fields.iter().find(|(name, _)| name.text() == Some(wanted)).map(|(_, value)| *value)
        };
        let text = |reply: &Reply| reply.text().map(|it| String::from_utf8_lossy(it).into_owned());
        let name = text(name).context("a command without a name")?;
        let family = field(b"group").and_then(text).context("a command without a family")?;
        found.insert((name, family));
        if let Some(subcommands) = field(b"subcommands") {
            describe(subcommands, found)?;
        }
    }
    Ok(())
}

/// The elements of a flat array two by two, as RESP2 has maps.
fn pairs(map: &Reply) -> Result<Vec<(&Reply, &Reply)>> {
    let Reply::Array(elements) = map else { anyhow::bail!("no map: {map:?}") };
    Ok(elements.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect())
}
