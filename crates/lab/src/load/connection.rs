//! One connection of a load: its sent requests, and what waits for their replies.

use std::collections::VecDeque;
use std::io;

use super::channel::Channel;
use super::render::Request;
use super::responses::ResponseScanner;
use super::tally::Flight;
use resp::client::ReplyScanner;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is none: it was lost, or none is needed before the next request.
    Closed,
    /// It is being opened.
    Opening,
    /// Requests may be sent.
    Open,
}

/// Finds the ends of replies, in the protocol of the load.
#[derive(Debug)]
pub(crate) enum Scanner {
    Resp(ReplyScanner),
    Http(ResponseScanner),
}

/// A connection, which is opened again when it was lost.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: State,
    pub(crate) channel: Option<Channel>,
    pub(crate) scanner: Scanner,
    /// Missing replies to the greeting with which every connection begins.
    pub(crate) greetings: usize,
    /// Requests that were sent, or wait to be, the oldest first.
    pub(crate) flights: VecDeque<Flight>,
    /// The requests to a node of a cluster, one for each of these; none for what goes before one.
    pub(crate) requests: VecDeque<Option<Request>>,
    /// How many requests these are.
    pub(crate) waiting: usize,
    /// Bytes that the kernel did not take yet.
    unsent: Vec<u8>,
    unsent_from: usize,
    /// Whether epoll was asked to report when the kernel takes more.
    pub(crate) awaits_room: bool,
    /// Whether it was counted as open when the load began.
    pub(crate) is_gathered: bool,
    /// Which of those that serve the same it goes to.
    pub(crate) member: usize,
    /// How often its request was sent on.
    pub(crate) hops: u8,
}

impl Connection {
    pub(crate) fn new(scanner: Scanner) -> Self {
        Connection {
            state: State::Closed,
            channel: None,
            scanner,
            greetings: 0,
            flights: VecDeque::new(),
            requests: VecDeque::new(),
            waiting: 0,
            unsent: Vec::new(),
            unsent_from: 0,
            awaits_room: false,
            is_gathered: false,
            member: 0,
            hops: 0,
        }
    }

    /// The same, to one of those that serve the same.
    pub(crate) fn to(self, member: usize) -> Self {
        Connection { member, ..self }
    }

    /// Sends bytes, or keeps those that cannot be sent now.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        if self.state == State::Open && self.unsent.is_empty() {
            if let Some(channel) = &mut self.channel {
                sent = channel.write(bytes)?;
            }
            if sent == bytes.len() {
                return Ok(());
            }
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Keeps bytes that are to be sent together with others.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Sends the kept bytes.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.state == State::Open
            && let Some(channel) = &mut self.channel
            && (!self.unsent.is_empty() || channel.wants_write())
        {
            self.unsent_from += channel.write(&self.unsent[self.unsent_from..])?;
        }
        if self.unsent_from == self.unsent.len() {
            self.unsent.clear();
            self.unsent_from = 0;
        }
        Ok(())
    }

    /// Puts the greeting with which every connection begins before all else.
    pub(crate) fn greet(&mut self, greeting: &[u8], replies: usize) {
        self.greetings = replies;
        if !greeting.is_empty() {
            self.unsent.splice(0..0, greeting.iter().copied());
        }
    }

    /// Whether data waits for the kernel to take it.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.channel.as_ref().is_some_and(Channel::wants_write)
    }

    /// Whether epoll is to report when the kernel takes more. While it is being opened, what is to
    /// be sent waits for the handshake.
    #[inline]
    pub(crate) fn awaits_to_send(&self) -> bool {
        match self.state {
            State::Opening => self.channel.as_ref().is_some_and(Channel::wants_write),
            State::Open | State::Closed => self.has_unsent(),
        }
    }

    /// Closes the socket. The caller takes the requests that were not answered.
    pub(crate) fn close(&mut self) {
        self.state = State::Closed;
        self.channel = None;
        self.unsent.clear();
        self.unsent_from = 0;
        self.awaits_room = false;
        self.greetings = 0;
        match &mut self.scanner {
            Scanner::Resp(scanner) => scanner.reset(),
            Scanner::Http(scanner) => scanner.reset(),
        }
    }
}
