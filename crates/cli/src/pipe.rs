//! Sends raw commands from standard input as fast as the server takes them, and counts the replies.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use base::clock::monotonic_ms;
use resp::client::{Value, encode_command};

use crate::print::{complain, reason, say};
use crate::session::{Failed, Session};

/// What is read from standard input at once.
const PIECE: usize = 64 * 1024;
/// How many such pieces wait to be sent.
const PIECES: usize = 16;
/// How long a wait for the server lasts before standard input is looked at again.
const GLANCE: Duration = Duration::from_millis(5);

/// See the module's text. Returns the exit code.
pub(crate) fn run(session: &mut Session) -> Result<ExitCode, Failed> {
    session.connected()?;
    let pieces = read_input();
    let timeout = session.options.pipe_timeout.map(|timeout| timeout.as_millis() as u64);
    let token = format!("{:016x}{:04x}", RandomState::new().hash_one("end"), std::process::id());
    let (mut pending, mut at, mut is_all) = (Vec::new(), 0, false);
    let (mut replies, mut errors, mut last_ms) = (0u64, 0u64, monotonic_ms());
    loop {
        if at == pending.len() && !is_all {
            match pieces.try_recv() {
                Ok(piece) => (pending, at) = (piece, 0),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    is_all = true;
                    at = 0;
                    // A line end before it, in case that the last command has none.
                    pending = b"\r\n".to_vec();
                    encode_command(["ECHO", &token].iter(), &mut pending);
                    say("All data transferred. Waiting for the last reply...");
                }
            }
        }
        let Some(connection) = session.connection() else { return Err(Failed) };
        match connection.exchange(&pending[at..], GLANCE) {
            Ok(sent) => at += sent,
            Err(error) => {
                complain(&format!("Error: {}", reason(&error)));
                say(&format!("errors: {}, replies: {replies}", errors + 1));
                return Err(Failed);
            }
        }
        loop {
            match connection.received() {
                Ok(None) => break,
                Ok(Some(Value::Push(_))) => continue,
                Ok(Some(Value::Bulk(text))) if is_all && text == token.as_bytes() => {
                    say("Last reply received from server.");
                    say(&format!("errors: {errors}, replies: {replies}"));
                    return Ok(if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
                }
                Ok(Some(value)) => {
                    if let Value::Error(text) = value {
                        complain(&String::from_utf8_lossy(&text));
                        errors += 1;
                    }
                    replies += 1;
                    last_ms = monotonic_ms();
                }
                Err(error) => return Err(session.lose(&error)),
            }
        }
        if !is_all || at < pending.len() {
            last_ms = monotonic_ms();
        } else if timeout.is_some_and(|timeout| monotonic_ms() - last_ms > timeout) {
            let seconds = timeout.unwrap_or(0) as f64 / 1000.0;
            complain(&format!("No replies for {seconds} seconds: exiting."));
            say(&format!("errors: {}, replies: {replies}", errors + 1));
            return Err(Failed);
        }
    }
}

/// Standard input in pieces, read by a thread: it may wait while replies come.
fn read_input() -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(PIECES);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut piece = vec![0; PIECE];
            match input.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => piece.truncate(length),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    complain(&format!("Error reading from stdin: {}", reason(&error)));
                    std::process::exit(1);
                }
            }
            if sender.send(piece).is_err() {
                return;
            }
        }
    });
    receiver
}
