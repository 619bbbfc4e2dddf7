//! Writes a report of invented results, to look at: `cargo run --example sample_report -- DIRECTORY`.

use std::path::Path;

#[path = "../tests/sample/mod.rs"]
#[allow(dead_code)]
mod sample;

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "sample-report".to_owned());
    let results = sample::results();
    lab::report::write_all(&results, Path::new(&directory))?;
    lab::report::write_markdown(&results, &Path::new(&directory).join("results"))?;
    Ok(())
}
