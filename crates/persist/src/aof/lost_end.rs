//! Whether the end of an increment was lost because the machine stopped before it was durable.
//! Later increments may be there nevertheless, because increments are synced separately. They are
//! then useless.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::reader::{Item, Scanner};
use crate::journal::{BEFORE_MAX, Before};

/// A file that cannot be read, and why.
pub type Unreadable = (PathBuf, io::Error);

/// Whether an increment of this size lacks its end, and `later` increments go on after that. The
/// later ones say how long it was when they began. They also say when it has become durable: an end
/// that is missing since then is damage.
///
/// # Errors
/// A later file cannot be read.
pub fn lacks_end(later: &[PathBuf], size: u64, is_torn: bool) -> Result<bool, Unreadable> {
    let written = |path: &PathBuf| match at_start(path) {
        Ok(Some(Before::Written(length))) => Ok(Some(length)),
        Ok(_) => Ok(None),
        Err(error) => Err((path.clone(), error)),
    };
    let is_suspect = match is_torn {
        true => later.iter().try_fold(false, |any, path| Ok(any || written(path)?.is_some()))?,
        // It may have lost whole commands.
        false => match later.first() {
            Some(next) => written(next)?.is_some_and(|length| length > size),
            None => false,
        },
    };
    if !is_suspect {
        return Ok(false);
    }
    for path in later {
        if follows_durable(path).map_err(|error| (path.clone(), error))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a file says at its beginning of the one before it.
fn at_start(path: &PathBuf) -> io::Result<Option<Before>> {
    let mut first = Vec::new();
    File::open(path)?.take(BEFORE_MAX as u64).read_to_end(&mut first)?;
    Ok(Before::at_start(&first))
}

/// Whether a file says that those before it have become durable.
fn follows_durable(path: &PathBuf) -> io::Result<bool> {
    let mut scanner = Scanner::new(File::open(path)?, 0);
    loop {
        let is_end = matches!(scanner.next()?, Item::End(_));
        if is_end || scanner.follows_durable() {
            return Ok(scanner.follows_durable());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_lost_only_while_no_file_calls_it_durable() {
        let home = tempfile::tempdir().unwrap();
        let later = |contents: &[&str]| -> Vec<PathBuf> {
            let name = |index: usize| home.path().join(index.to_string());
            contents.iter().enumerate().for_each(|(index, content)| {
                std::fs::write(name(index), content).unwrap();
            });
            (0..contents.len()).map(name).collect()
        };
        let command = "*1\r\n$4\r\nPING\r\n";
        let begins = &format!("#BEFORE:100\r\n{command}");
        let durable = &format!("{begins}#BEFORE:durable\r\n{command}");
        // Whether it is missing of a file of 99 bytes, of 100, and of one that breaks off.
        let cases: [(&[&str], [bool; 3]); 9] = [
            (&[], [false, false, false]),
            (&[""], [false, false, false]),
            (&[command], [false, false, false]),
            (&[begins], [true, false, true]),
            (&[durable], [false, false, false]),
            (&[begins, durable], [false, false, false]),
            (&[begins, command], [true, false, true]),
            (&["", begins], [false, false, true]),
            (&["#BEFORE:durable\r\n"], [false, false, false]),
        ];
        for (contents, expected) in cases {
            let later = later(contents);
            let lacks = |size, is_torn| lacks_end(&later, size, is_torn).unwrap();
            assert_eq!([lacks(99, false), lacks(100, false), lacks(50, true)], expected);
        }
        let (path, _) = lacks_end(&[home.path().join("absent")], 1, true).unwrap_err();
        assert!(path.ends_with("absent"));
    }
}
