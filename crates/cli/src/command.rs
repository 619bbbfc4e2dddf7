//! A command of the command line.

use std::io::{self, Read};

use crate::docs::Docs;
use crate::help;
use crate::print::{complain, reason, say};
use crate::quote::unquoted;
use crate::session::{Failed, Session};

/// Runs the command that the options have, and prints what comes until it has ended.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    let words = words(session)?;
    if words[0].eq_ignore_ascii_case(b"help") || words[0] == b"?" {
        let _ = session.connect();
        help::print(&docs(session), &words[1..]);
        return Ok(());
    }
    let repeat = session.options.repeat;
    session.issue(&words, repeat)?;
    while session.is_subscribed {
        session.show_message()?;
    }
    Ok(())
}

/// What the server says of its commands, or else this program.
pub(crate) fn docs(session: &mut Session) -> Docs {
    let own = session.documentation().and_then(|reply| Docs::of_server(&reply));
    own.unwrap_or_else(Docs::own)
}

/// The words, with those from standard input in place.
fn words(session: &Session) -> Result<Vec<Vec<u8>>, Failed> {
    let options = &session.options;
    let mut words = options.words.clone();
    if options.quoted_input {
        let plain: Option<Vec<_>> = words.iter().map(|word| unquoted(word)).collect();
        words = plain.ok_or_else(|| {
            say("Invalid quoted string");
            Failed
        })?;
    }
    if options.last_from_input {
        words.push(input()?);
    } else if let Some(tag) = &options.tag_from_input {
        let Some(word) = words.iter_mut().find(|word| *word == tag) else {
            complain("Using -X option but stdin tag not match.");
            return Err(Failed);
        };
        *word = input()?;
    }
    Ok(words)
}

fn input() -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| {
        complain(&format!("cannot read standard input: {}", reason(&error)));
        Failed
    })?;
    Ok(bytes)
}
