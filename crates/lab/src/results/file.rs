//! Results as a file, `results.json`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Results;

/// The version of the format that this program writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// Why a file could not be read as results.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is not there, or may not be read.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is JSON of another kind, or no JSON at all.
    #[error("{}: no results of the lab: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// It was written by another version of the lab.
    #[error("{}: results in format {found}; this lab reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format it says it has.
        found: u64,
    },
}

/// The field that every version of the format has.
#[derive(Deserialize)]
struct Head {
    format: u64,
}

impl Results {
    /// Reads what [`Results::write`] has written.
    ///
    /// # Errors
    /// When there is no such file, or it is in another format, which the error then names.
    pub fn read(path: &Path) -> Result<Results, FileError> {
        let open = |source| FileError::Open { path: path.to_owned(), source };
        let content = |source| FileError::Content { path: path.to_owned(), source };
        let text = std::fs::read(path).map_err(open)?;
        // The format first: of another version's file one can say more than which field is missing.
        let head: Head = serde_json::from_slice(&text).map_err(content)?;
        if head.format != u64::from(FORMAT) {
            return Err(FileError::Format { path: path.to_owned(), found: head.format });
        }
        serde_json::from_slice(&text).map_err(content)
    }

    /// Writes the results, in place of what the file held before: until all of them are written,
    /// the file stays as it was, so that a lab that is killed meanwhile loses nothing more.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        // What is no plain file, as /dev/stdout, is written as it is.
        let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        let new = (!is_special).then(|| {
            name.push(".new");
            path.with_file_name(&name)
        });
        let mut file = BufWriter::new(File::create(new.as_deref().unwrap_or(path))?);
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.flush()?;
        new.map_or(Ok(()), |new| std::fs::rename(new, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Results, FileError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("results.json");
        std::fs::write(&path, text).expect("it can be written");
        Results::read(&path)
    }

    #[test]
    fn another_format_is_named() {
        let error = read(r#"{"format": 7, "anything": []}"#).expect_err("not ours").to_string();
        assert!(error.contains("results.json: results in format 7; this lab reads format 1"));
    }

    #[test]
    fn other_files_are_refused_with_a_place() {
        let error = read("{\n  \"runs\": 3\n}").expect_err("not ours").to_string();
        assert!(error.contains("missing field `format` at line 3"), "{error}");
        let error = read("requests,rate\n").expect_err("not ours").to_string();
        assert!(error.contains("line 1"), "{error}");
        let error = read(r#"{"format": 1, "size": 5}"#).expect_err("not ours").to_string();
        assert!(error.contains("invalid type"), "{error}");
        assert!(Results::read(Path::new("/nowhere/results.json")).is_err());
    }
}
