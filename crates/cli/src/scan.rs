//! Walks through all keys, for the modes that look at each of them.

use std::thread::sleep;

use resp::client::Value;

use crate::connection::Words;
use crate::format::Form;
use crate::interrupt;
use crate::options::Options;
use crate::print::{complain, output};
use crate::quote::repr;
use crate::session::{Failed, Session};

/// Pauses come once in this many steps where keys are looked at.
const STEPS_BETWEEN_PAUSES: u64 = 100;

/// A walk with SCAN.
pub(crate) struct Walk {
    cursor: Option<u64>,
    steps: u64,
}

impl Walk {
    /// Begins at the cursor of the options.
    pub(crate) fn new(options: &Options) -> Walk {
        Walk { cursor: Some(options.cursor), steps: 0 }
    }

    /// The cursor at which the walk goes on; none at its end.
    pub(crate) fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// The next keys; `None` at the end, and after Ctrl-C.
    pub(crate) fn step(&mut self, session: &mut Session) -> Result<Option<Words>, Failed> {
        let Some(cursor) = self.cursor.filter(|_| !interrupt::is_asked()) else { return Ok(None) };
        let options = &session.options;
        let mut words: Words = vec![b"SCAN".to_vec(), cursor.to_string().into_bytes()];
        if let Some(pattern) = &options.pattern {
            words.extend([b"MATCH".to_vec(), pattern.clone()]);
        }
        words.extend([b"COUNT".to_vec(), options.count.to_string().into_bytes()]);
        let reply = session.ask(&words)?;
        let next = match &reply {
            Value::Array(parts) => match &parts[..] {
                [Value::Bulk(cursor), Value::Array(keys)] => parsed(cursor).map(|it| (it, keys)),
                _ => None,
            },
            _ => None,
        };
        let Some((cursor, keys)) = next else {
            complain("SCAN is answered with something else than a cursor and keys");
            return Err(Failed);
        };
        self.cursor = Some(cursor).filter(|cursor| *cursor != 0);
        self.steps += 1;
        Ok(Some(keys.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec)).collect()))
    }

    /// Pauses, as often as that is to be where keys are looked at.
    pub(crate) fn pause(&self, options: &Options) {
        if self.steps.is_multiple_of(STEPS_BETWEEN_PAUSES) {
            sleep(options.interval);
        }
    }
}

fn parsed(cursor: &[u8]) -> Option<u64> {
    std::str::from_utf8(cursor).ok()?.parse().ok()
}

/// Prints the names of all keys.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    let mut walk = Walk::new(&session.options);
    while let Some(keys) = walk.step(session)? {
        let mut lines = Vec::new();
        for key in keys {
            match session.options.form {
                Form::Standard => repr(&key, &mut lines),
                _ => lines.extend_from_slice(&key),
            }
            lines.push(b'\n');
        }
        output(&lines);
        sleep(session.options.interval);
    }
    Ok(())
}
