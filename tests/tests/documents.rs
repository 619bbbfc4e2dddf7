//! Documents that the program prints are up to date, the site is whole, its calculator is right.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::peers;
use tests::server::{Server, Target, dunlin_binary, repository};

#[test]
fn the_compatibility_page_is_what_the_program_prints() -> Result<()> {
    let printed = Command::new(dunlin_binary()?).args(["docs", "compatibility"]).output()?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let kept = fs::read(repository().join("docs/COMPATIBILITY.md"))?;
    ensure!(printed.stdout == kept, "docs/COMPATIBILITY.md is out of date: make docs");
    Ok(())
}

#[test]
fn the_site_has_no_broken_links() -> Result<()> {
    let output = Command::new(repository().join("scripts/make-site")).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{said}");
    Ok(())
}

#[test]
fn the_calculator_fits_what_is_measured() -> Result<()> {
    let python = peers::directory().join("python/bin/python");
    let script = repository().join("scripts/measure-sizing");
    let output = Command::new(python).arg(script).arg(dunlin_binary()?).arg("--quick").output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{said}");
    Ok(())
}

/// The page's table, by the page's own script.
#[test]
fn the_calculator_fits_the_table() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/sizing.md"))?;
    let rows = page.lines().filter_map(|line| {
        let words: Vec<&str> = line.split('|').map(str::trim).collect();
        let numbers: Vec<f64> = words.get(2..5)?.iter().flat_map(|word| word.parse()).collect();
        // The last column of the table of measurements says how far the formula is off.
        let is_measured = words.len() == 8 && words[6].ends_with('%') && numbers.len() == 3;
        is_measured.then(|| (words[1].to_owned(), numbers))
    });
    let rows: Vec<_> = rows.collect();
    ensure!(rows.len() > 30, "{} rows", rows.len());
    let mut program = fs::read_to_string(repository().join("docs/sizing.js"))?;
    for (kind, numbers) in &rows {
        let own = if matches!(&**kind, "hash" | "stream") { 8.0 } else { 0.0 };
        let (count, size) = (numbers[0], numbers[1] + own);
        program += &format!("console.log(sizingBytes('{kind}', 1, 16, {count}, {size}));\n");
    }
    let output = Command::new("node").args(["-e", &program]).output()?;
    let printed = String::from_utf8(output.stdout)?;
    let estimates: Vec<f64> = printed.lines().flat_map(str::parse).collect();
    ensure!(estimates.len() == rows.len(), "{printed}");
    for ((kind, numbers), estimate) in rows.iter().zip(estimates) {
        let off = estimate / numbers[2] - 1.0;
        ensure!(off.abs() < 0.25, "{kind} {numbers:?}: {estimate}");
    }
    Ok(())
}

/// The list from which the page derives what is not there.
#[test]
fn the_commands_of_the_reference_are_known() -> Result<()> {
    let path = repository().join("crates/commands/src/compatibility/redis-8.0.txt");
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
    // Vector sets are a module, which is not in every build.
    let of_module = |family: &str| matches!(family, "module" | "vector-set");
    let different = listed.symmetric_difference(&described);
    let different: Vec<_> = different.filter(|(_, family)| !of_module(family)).collect();
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
