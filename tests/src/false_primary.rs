//! A primary of the test's own: it takes replicas through the handshake, and then says what the
//! test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::observe::PATIENCE;

/// The name of its history.
pub const HISTORY: &str = "0123456789abcdef0123456789abcdef01234567";

/// A file without keys, whose checksum was left out.
pub const EMPTY_FILE: &[u8] = b"REDIS0011\xff\0\0\0\0\0\0\0\0";

/// See the module's text.
pub struct FalsePrimary {
    listener: TcpListener,
}

impl FalsePrimary {
    /// One that listens, and accepts nobody by itself.
    ///
    /// # Errors
    /// No port is free.
    pub fn listen() -> Result<FalsePrimary> {
        Ok(FalsePrimary { listener: TcpListener::bind(("127.0.0.1", 0))? })
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn port(&self) -> Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Waits for a replica, and takes it through the handshake until it asks for a sync.
    ///
    /// # Errors
    /// The replica goes away, or says what no replica says.
    pub fn accept(&self) -> Result<FalseLink> {
        let (socket, _) = self.listener.accept()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut link = FalseLink { input: BufReader::new(socket), asked: Vec::new() };
        loop {
            let words = link.next_command()?;
            let asks = words.first().is_some_and(|word| word.eq_ignore_ascii_case("psync"));
            link.asked.push(words);
            if asks {
                return Ok(link);
            }
            link.send(b"+OK\r\n")?;
        }
    }

    /// Gives each replica one of these answers in its turn, and ends its link when it says
    /// something more, or after half a second. Returns the port, and how many have come.
    ///
    /// # Errors
    /// No port is free.
    pub fn answering(answers: Vec<Vec<u8>>) -> Result<(u16, Arc<AtomicU64>)> {
        let own = FalsePrimary::listen()?;
        let port = own.port()?;
        let count = Arc::<AtomicU64>::default();
        let served = Arc::clone(&count);
        std::thread::spawn(move || {
            loop {
                // One that has gone again counts too.
                let link = own.accept();
                let number = served.fetch_add(1, SeqCst) as usize;
                let Ok(mut link) = link else { continue };
                if link.send(&answers[number % answers.len()]).is_ok() {
                    let socket = link.input.get_mut();
                    let _ = socket.set_read_timeout(Some(Duration::from_millis(500)));
                    let _ = socket.read(&mut [0; 4096]);
                }
            }
        });
        Ok((port, count))
    }
}

/// The answer to PSYNC that gives all data: this file, which belongs to this offset.
#[must_use]
pub fn full_sync(offset: u64, file: &[u8]) -> Vec<u8> {
    let begin = format!("+FULLRESYNC {HISTORY} {offset}\r\n${}\r\n", file.len());
    [begin.as_bytes(), file].concat()
}

/// A link with a replica.
pub struct FalseLink {
    input: BufReader<TcpStream>,
    asked: Vec<Vec<String>>,
}

impl FalseLink {
    /// What the replica has said in the handshake.
    #[must_use]
    pub fn asked(&self) -> &[Vec<String>] {
        &self.asked
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The replica is gone.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.input.get_mut().write_all(bytes)?)
    }

    /// The next command of the replica, without its signs of life.
    ///
    /// # Errors
    /// The replica is gone, is silent for long, or sends something else.
    pub fn next_command(&mut self) -> Result<Vec<String>> {
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            ensure!(self.input.read_line(&mut line)? > 0, "the replica is gone");
        }
        let count = line.strip_prefix('*').with_context(|| format!("no command: {line:?}"))?;
        let mut words = Vec::new();
        for _ in 0..count.trim().parse()? {
            line.clear();
            self.input.read_line(&mut line)?;
            let length = line.strip_prefix('$').context("no length")?.trim().parse::<usize>()?;
            let mut word = vec![0; length + 2];
            self.input.read_exact(&mut word)?;
            words.push(String::from_utf8_lossy(&word[..length]).into_owned());
        }
        Ok(words)
    }
}
