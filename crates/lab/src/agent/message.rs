//! The messages between agents and coordinators: JSON, with its length in four bytes before it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::load::Plan;
use crate::record::Recording;

/// The longest message before the other side has proved its identity.
pub(super) const LONGEST_GREETING: usize = 1024;
/// The longest order.
pub(super) const LONGEST_ORDER: usize = 1024 * 1024;
/// The longest report: the histograms of some hours.
pub(super) const LONGEST_REPORT: usize = 512 * 1024 * 1024;

/// The agent's first words.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version of this protocol: 1.
    pub(super) version: u32,
    pub(super) challenge: String,
}

/// The coordinator's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) challenge: String,
    pub(super) proof: String,
}

/// The agent's proof that it is one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) proof: String,
}

/// The requests of a coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// What time is it?
    Clock,
    /// Open the connections of this plan.
    Prepare(Box<Plan>),
    /// Begin at this time of the agent's clock, in nanoseconds of Unix time.
    Start { at: u64 },
    /// End, and report the result so far.
    Stop,
}

/// The messages of an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// When the question came, and when this answer left, in nanoseconds of Unix time.
    Clock { received: u64, sent: u64 },
    /// All connections are open.
    Ready,
    /// How far it is.
    Progress { requests: u64, errors: u64, response_ms: f64 },
    /// It is over.
    Done(Box<Recording>),
    /// It cannot be done.
    Failed(String),
}

/// Reads until an instant, however slowly the bytes come.
pub(super) struct Until<'a> {
    stream: &'a mut TcpStream,
    end: Instant,
}

impl<'a> Until<'a> {
    pub(super) fn new(stream: &'a mut TcpStream, patience: Duration) -> Self {
        Until { stream, end: Instant::now() + patience }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// Sends a message.
///
/// # Errors
/// The connection is lost.
pub(super) fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(|_| io::Error::other("a message too long"))?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(text);
    stream.write_all(&bytes)?;
    stream.flush()
}

/// Receives a message of `longest` bytes at most.
///
/// # Errors
/// The connection is lost, or the bytes are not such a message.
pub(super) fn receive<T: DeserializeOwned>(
    stream: &mut impl Read,
    longest: usize,
) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    // Memory is taken for received bytes, not for announced ones.
    let mut text = Vec::new();
    stream.take(length as u64).read_to_end(&mut text)?;
    if text.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_received() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Order::Prepare(Box::default())).expect("memory takes every write");
        send(&mut bytes, &Order::Start { at: 7 }).expect("memory takes every write");
        let mut rest = &bytes[..];
        let first: Order = receive(&mut rest, LONGEST_ORDER).expect("an order");
        assert!(matches!(first, Order::Prepare(plan) if *plan == Plan::default()));
        let second: Order = receive(&mut rest, LONGEST_ORDER).expect("an order");
        assert!(matches!(second, Order::Start { at: 7 }));
        assert!(rest.is_empty());
    }

    #[test]
    fn long_short_and_other_messages_are_refused() {
        let refused = |bytes: &[u8]| receive::<Order>(&mut &bytes[..], 100).is_err();
        assert!(refused(&[0, 0, 1, 0, b'"']));
        assert!(refused(&[0, 0, 0, 9, b'"', b'c']));
        assert!(refused(b"\0\0\0\x05hello"));
        assert!(refused(&[0, 0]));
        assert!(!refused(b"\0\0\0\x07\"clock\""));
    }
}
