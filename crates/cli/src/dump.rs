//! All data of a server as an RDB file, as a replica gets it; and what comes after it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::connection::{Connection, Ready};
use crate::format::Form;
use crate::print::{complain, error_text, output, reason};
use crate::session::{Failed, Session};

/// The bytes of the mark that ends data of unknown length.
const MARK: usize = 40;
/// The longest line with which data begins.
const LINE_MAX: usize = 256;
/// What is taken at once.
const PIECE: usize = 256 * 1024;

/// How often the server is told that its replica is there. It sends commands after the first time,
/// and gives a replica up that is silent.
const BETWEEN_SIGNS: Duration = Duration::from_secs(1);

/// How much data comes.
enum Extent {
    Length(u64),
    /// Until these bytes come.
    Mark(Vec<u8>),
}

/// Where the data goes.
enum Target {
    Output,
    /// A file that gets its name when it is whole.
    File {
        file: File,
        temporary: PathBuf,
        name: PathBuf,
    },
    /// Something that is there and no regular file.
    Other(File),
}

/// Asks for the file and writes it.
pub(crate) fn run(session: &mut Session, file: &[u8], functions: bool) -> Result<(), Failed> {
    session.connected()?;
    negotiate(session, &["capa", "eof"]);
    negotiate(session, &["rdb-only", "1"]);
    if functions && !negotiate(session, &["rdb-filter-only", "functions"]) {
        complain("Failed requesting functions only RDB from server, aborting");
        return Err(Failed);
    }
    let shown = String::from_utf8_lossy(file).into_owned();
    let connection = session.connected()?;
    let extent = begin(connection)?;
    match &extent {
        Extent::Length(length) => {
            complain(&format!("SYNC sent to master, writing {length} bytes to '{shown}'"));
        }
        Extent::Mark(_) => complain(&format!(
            "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '{shown}'"
        )),
    }
    let mut target = Target::open(file).map_err(|error| {
        complain(&format!("Error opening '{shown}': {}", reason(&error)));
        Failed
    })?;
    let received = receive(connection, extent, &mut |bytes| target.write(bytes));
    let ended = received.and_then(|length| target.end().map(|()| length));
    match ended {
        Ok(length) => {
            complain(&format!("Transfer finished with success after {length} bytes"));
            Ok(())
        }
        Err(error) => {
            target.give_up();
            complain(&format!("Error: the transfer to '{shown}' failed: {}", reason(&error)));
            Err(Failed)
        }
    }
}

/// Prints all commands that a primary sends to its replicas, after its data.
pub(crate) fn follow(session: &mut Session) -> Result<(), Failed> {
    session.connected()?;
    negotiate(session, &["capa", "eof"]);
    // A server that can leaves the data out.
    negotiate(session, &["rdb-filter-only", ""]);
    let connection = session.connected()?;
    let extent = begin(connection)?;
    match &extent {
        Extent::Length(length) => {
            complain(&format!("SYNC with master, discarding {length} bytes of bulk transfer..."));
        }
        Extent::Mark(_) => {
            complain("SYNC with master, discarding bytes of bulk transfer until EOF marker...");
        }
    }
    let received = receive(connection, extent, &mut |_| Ok(()));
    let length = received.map_err(|error| failed(&error))?;
    complain(&format!("SYNC done after {length} bytes. Logging commands from master."));
    session.options.form = Form::Csv;
    loop {
        let Some(connection) = session.connection() else { return Err(Failed) };
        let ready = match connection.received() {
            Ok(Some(command)) => {
                session.show(&command, false);
                continue;
            }
            Ok(None) => connection.wait(Some(BETWEEN_SIGNS), false),
            Err(error) => Err(error),
        };
        let went_on = match ready {
            Ok(Ready::Interrupt) => return Ok(()),
            Ok(Ready::Timeout) => connection.send(&["REPLCONF", "ACK", "0"]),
            Ok(Ready::Server | Ready::Input) => connection.read(),
            Err(error) => Err(error),
        };
        if let Err(error) = went_on {
            return Err(session.lose(&error));
        }
    }
}

/// Tells of an error, if nobody has asked for the end.
fn failed(error: &io::Error) -> Failed {
    if error.kind() != io::ErrorKind::Interrupted {
        complain(&format!("Error: {}", reason(error)));
    }
    Failed
}

/// Tells the server what is wanted. Returns whether it knows that.
fn negotiate(session: &mut Session, words: &[&str; 2]) -> bool {
    complain(&format!("sending REPLCONF {} {}", words[0], words[1]));
    let Ok(connection) = session.connected() else { return false };
    match connection.call(&["REPLCONF", words[0], words[1]]) {
        Ok(reply) if reply.is_error() => {
            complain(&format!("REPLCONF {} error: {}", words[0], error_text(&reply)));
            false
        }
        Ok(_) => true,
        Err(error) => {
            session.lose(&error);
            false
        }
    }
}

/// Sends SYNC and waits until the data begins.
fn begin(connection: &mut Connection) -> Result<Extent, Failed> {
    let line = connection.send_bytes(b"SYNC\r\n").and_then(|()| line(connection));
    let line = line.map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&line).into_owned();
    let begun = match text.strip_prefix('$') {
        Some(rest) => match rest.strip_prefix("EOF:") {
            Some(mark) if mark.len() == MARK => Some(Extent::Mark(mark.as_bytes().to_vec())),
            _ => rest.parse().ok().map(Extent::Length),
        },
        None => None,
    };
    begun.ok_or_else(|| {
        complain(&format!("SYNC with master failed: {text}"));
        Failed
    })
}

/// A line. Empty ones before it only say that the server is at work.
fn line(connection: &mut Connection) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        match connection.take_bytes(1)?[..] {
            [b'\n'] if line.is_empty() || line == b"\r" => line.clear(),
            [b'\n'] => {
                line.pop_if(|byte| *byte == b'\r');
                return Ok(line);
            }
            [byte] if line.len() < LINE_MAX => line.push(byte),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "an endless line")),
        }
    }
}

/// Receives the data; returns how many bytes it has.
fn receive(
    connection: &mut Connection,
    extent: Extent,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut length = 0;
    match extent {
        Extent::Length(all) => {
            while length < all {
                let most = usize::try_from(all - length).unwrap_or(PIECE).min(PIECE);
                let bytes = connection.take_bytes(most)?;
                write(&bytes)?;
                length += bytes.len() as u64;
            }
        }
        Extent::Mark(mark) => {
            // The last bytes may be the mark, so they are kept until others follow.
            let mut kept: Vec<u8> = Vec::new();
            loop {
                kept.extend(connection.take_bytes(PIECE)?);
                if kept.ends_with(&mark) {
                    let data = kept.len() - MARK;
                    write(&kept[..data])?;
                    return Ok(length + data as u64);
                }
                let sure = kept.len().saturating_sub(MARK);
                write(&kept[..sure])?;
                length += sure as u64;
                kept.drain(..sure);
            }
        }
    }
    Ok(length)
}

impl Target {
    fn open(file: &[u8]) -> io::Result<Target> {
        if file == b"-" {
            return Ok(Target::Output);
        }
        let name = Path::new(OsStr::from_bytes(file)).to_owned();
        if fs::metadata(&name).is_ok_and(|there| !there.is_file()) {
            return File::options().write(true).open(&name).map(Target::Other);
        }
        let mut temporary = name.clone().into_os_string();
        temporary.push(format!(".{}.part", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary)?;
        Ok(Target::File { file, temporary, name })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Target::Output => {
                output(bytes);
                Ok(())
            }
            Target::File { file, .. } | Target::Other(file) => file.write_all(bytes),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Target::File { temporary, name, .. } => fs::rename(temporary, name),
            Target::Output | Target::Other(_) => Ok(()),
        }
    }

    fn give_up(&self) {
        if let Target::File { temporary, .. } = self {
            // If it cannot be removed, its name says what it is.
            let _ = fs::remove_file(temporary);
        }
    }
}
