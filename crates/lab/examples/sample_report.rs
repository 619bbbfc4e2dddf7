//! Writes a report of invented results, to look at: `cargo run --example sample_report --
//! DIRECTORY`. With the path of a `results.json` after it, writes a report of these results.

use std::path::Path;

use lab::results::Results;

#[path = "../tests/sample/mod.rs"]
#[allow(dead_code)]
mod sample;

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "sample-report".to_owned());
    let results = match std::env::args().nth(2) {
        Some(path) => Results::read(Path::new(&path)).map_err(std::io::Error::other)?,
        None => sample::results(),
    };
    lab::report::write_all(&results, Path::new(&directory))?;
    lab::report::write_markdown(&results, &Path::new(&directory).join("results"))?;
    Ok(())
}
