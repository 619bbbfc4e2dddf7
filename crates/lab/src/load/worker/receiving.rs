//! Receiving: which requests replies answer, and what a connection does then.

use std::collections::VecDeque;

use base::clock::monotonic_ns;

use super::Worker;
use super::opening::MOST_HOPS;
use crate::load::connection::{Connection, Scanner};
use crate::load::render::Request;
use crate::load::tally::{Flight, Tally};
use crate::load::topology::Redirect;

/// Reads of one connection before others have their turn.
const READS_PER_TURN: usize = 16;
/// A request that was sent on, and where to.
type SentOn = (Flight, Request, Redirect);

/// What the replies of one read have said.
struct Taken {
    /// How many requests they answer.
    answered: usize,
    /// Those that are to be sent on.
    sent_on: Vec<SentOn>,
    /// The member of those over HTTP that has to be asked instead.
    location: Option<String>,
}

impl Worker<'_> {
    /// Reads available bytes, and counts the answered requests.
    pub(super) fn receive(&mut self, index: usize) {
        for _ in 0..READS_PER_TURN {
            let Some(channel) = &mut self.connections[index].channel else { return };
            let length = match channel.read(&mut self.buffer) {
                Ok(None) if channel.wants_write() => {
                    self.settle(index, Ok(()));
                    return;
                }
                Ok(None) => return,
                Ok(Some(0)) => return self.closed(index),
                Ok(Some(length)) => length,
                Err(_) if self.may_close(index) => return self.retire(index),
                Err(error) => return self.lose(index, &error.to_string()),
            };
            let now = monotonic_ns();
            match self.take_replies(index, length, now) {
                Ok(Taken { location: Some(location), .. }) => {
                    return self.follow(index, &location);
                }
                Ok(Taken { answered, sent_on, .. }) => {
                    if !sent_on.is_empty() {
                        self.send_on(index, sent_on);
                    }
                    self.answered(index, answered, now);
                }
                Err(reason) => return self.lose(index, &reason),
            }
            if length < self.buffer.len() {
                return;
            }
        }
    }

    /// Whether the server may close the connection: HTTP allows it whenever no response is due, and
    /// the next request opens it again.
    fn may_close(&self, index: usize) -> bool {
        let connection = &self.connections[index];
        connection.waiting == 0 && matches!(connection.scanner, Scanner::Http(_))
    }

    /// The server has closed the connection, which may be how a response ends.
    fn closed(&mut self, index: usize) {
        if self.may_close(index) {
            return self.retire(index);
        }
        let now = monotonic_ns();
        let Connection { scanner, flights, requests, waiting, .. } = &mut self.connections[index];
        let mut no_greetings = 0;
        let asked = (flights, requests);
        let mut counter = Counter::new(&mut self.tally, asked, &mut no_greetings, now);
        if let Scanner::Http(scanner) = scanner {
            scanner.end(|length, error| counter.reply(length, error));
        }
        let answered = counter.finish();
        *waiting -= answered;
        self.in_flight -= answered;
        let client = self.client_of(index);
        self.clients[client].waiting -= answered;
        if answered > 0 && self.connections[index].waiting == 0 {
            self.retire(index);
            self.next_after(client, now);
        } else {
            self.lose(index, "closed by the server");
        }
    }

    /// Finds the replies in received bytes.
    #[inline]
    fn take_replies(&mut self, index: usize, length: usize, now: u64) -> Result<Taken, String> {
        let Connection { scanner, flights, requests, greetings, .. } = &mut self.connections[index];
        let bytes = &self.buffer[..length];
        let is_bodiless =
            flights.front().is_some_and(|flight| self.bodiless[flight.operation as usize]);
        let mut counter = Counter::new(&mut self.tally, (flights, requests), greetings, now);
        counter.follows = self.shared.members.len() > 1;
        match scanner {
            Scanner::Resp(scanner) => scanner
                .scan(bytes, |length, error| counter.reply(length, error))
                .map_err(|error| error.to_string())?,
            Scanner::Http(scanner) => scanner
                .scan(bytes, is_bodiless, |length, error| counter.reply(length, error))
                .map_err(|error| error.to_string())?,
        }
        if let Some(error) = counter.refused.take() {
            return Err(error);
        }
        if counter.unexpected {
            return Err("the server sent a reply without a request".to_owned());
        }
        self.is_down |= counter.is_down;
        let (sent_on, location) = (std::mem::take(&mut counter.sent_on), counter.location.take());
        Ok(Taken { answered: counter.finish(), sent_on, location })
    }

    /// This many requests of a connection were answered.
    #[inline]
    fn answered(&mut self, index: usize, count: usize, now: u64) {
        let client = self.client_of(index);
        let connection = &mut self.connections[index];
        connection.waiting -= count;
        connection.hops = 0;
        self.in_flight -= count;
        self.clients[client].waiting -= count;
        if self.clients[client].waiting > 0 {
            if count > 0 && self.due.is_some() {
                self.make_free(client, now);
            }
            return;
        }
        if count == 0 {
            if connection.greetings == 0 {
                self.greeted(index);
            }
            return;
        }
        let closes = match &connection.scanner {
            Scanner::Resp(_) => false,
            Scanner::Http(scanner) => scanner.closes(),
        };
        if closes || !self.keep_alive {
            self.retire(index);
        }
        self.next_after(client, now);
    }

    /// All requests of a client were answered.
    #[inline]
    fn next_after(&mut self, client: usize, now: u64) {
        if std::mem::take(&mut self.is_down) {
            self.hold_back(client, now);
        } else if self.think > 0 {
            self.thinking.push_back((now + self.think, client));
        } else {
            self.give_work(client, now);
        }
    }
}

/// Counts the replies of one read.
struct Counter<'a> {
    tally: &'a mut Tally,
    flights: &'a mut VecDeque<Flight>,
    requests: &'a mut VecDeque<Option<Request>>,
    greetings: &'a mut usize,
    now: u64,
    /// Requests for which the answer named another node.
    sent_on: Vec<SentOn>,
    /// A node of a cluster has said that it does not serve now.
    is_down: bool,
    /// There are others that serve the same.
    follows: bool,
    /// One of them that an answer has named.
    location: Option<String>,
    /// Replies to the flight at the front, and their bytes.
    replies: u64,
    bytes: u64,
    /// Errors among them.
    failed: u64,
    answered: usize,
    /// A greeting was answered with this error.
    refused: Option<String>,
    unexpected: bool,
}

impl<'a> Counter<'a> {
    fn new(
        tally: &'a mut Tally,
        (flights, requests): (&'a mut VecDeque<Flight>, &'a mut VecDeque<Option<Request>>),
        greetings: &'a mut usize,
        now: u64,
    ) -> Self {
        Counter {
            tally,
            flights,
            requests,
            greetings,
            now,
            sent_on: Vec::new(),
            is_down: false,
            follows: false,
            location: None,
            replies: 0,
            bytes: 0,
            failed: 0,
            answered: 0,
            refused: None,
            unexpected: false,
        }
    }

    #[inline]
    fn reply(&mut self, length: u64, error: Option<&[u8]>) {
        if *self.greetings > 0 {
            *self.greetings -= 1;
            // The first refusal is the reason of those that follow.
            let refused = error.map(|text| String::from_utf8_lossy(text).into_owned());
            self.refused = self.refused.take().or(refused);
            return;
        }
        let Some(flight) = self.flights.front_mut() else {
            self.unexpected = true;
            return;
        };
        if let Some(location) = error.and_then(|text| text.strip_prefix(b"307 "))
            && self.follows
        {
            self.location = Some(String::from_utf8_lossy(location).into_owned());
            return;
        }
        if let Some(text) = error
            && let Some(Some(request)) = self.requests.front_mut()
        {
            if request.hops < MOST_HOPS
                && let Some(redirect) = Redirect::read(text)
            {
                request.hops += 1;
                let sent_on = self.flights.pop_front().zip(self.requests.pop_front().flatten());
                self.sent_on.extend(sent_on.map(|(flight, request)| (flight, request, redirect)));
                return;
            }
            self.is_down |= text.starts_with(b"CLUSTERDOWN");
        }
        self.replies += 1;
        self.bytes += length;
        if let Some(text) = error {
            self.tally.error(flight, text, self.now);
            self.failed += 1;
        }
        if self.replies == u64::from(flight.count) {
            self.tally.answered(flight, self.replies, self.failed, self.bytes, self.now);
            self.answered += self.replies as usize;
            (self.replies, self.failed, self.bytes) = (0, 0, 0);
            self.flights.pop_front();
            self.requests.pop_front();
        }
    }

    /// Counts the replies to a flight that is not answered in full.
    fn finish(self) -> usize {
        if self.replies > 0
            && let Some(flight) = self.flights.front_mut()
        {
            self.tally.answered(flight, self.replies, self.failed, self.bytes, self.now);
            flight.count -= self.replies as u32;
            return self.answered + self.replies as usize;
        }
        self.answered
    }
}
