//! Opening connections, and losing them.

use std::io;

use base::clock::monotonic_ns;
use rustix::event::epoll;

use super::Worker;
use crate::load::channel::Channel;
use crate::load::connection::State;
use crate::load::descriptors;

/// After this time a lost connection is opened again, and after this time once more, in
/// nanoseconds.
const REOPEN_PAUSE: u64 = 50_000_000;
/// How often a request is sent on before that is its answer.
pub(super) const MOST_HOPS: u8 = 16;

impl Worker<'_> {
    pub(super) fn open(&mut self, index: usize) {
        let endpoint = match &self.spread {
            Some(spread) => spread.endpoint(index / self.clients.len()),
            None => &self.shared.members[self.connections[index].member].1,
        };
        match endpoint.open() {
            Ok(socket) => {
                let (data, flags) =
                    (epoll::EventData::new_u64(index as u64), epoll::EventFlags::OUT);
                if let Err(error) = epoll::add(&self.epoll, &socket, data, flags) {
                    return self.lose(index, &io::Error::from(error).to_string());
                }
                match Channel::new(socket, self.shared.encryption.as_ref()) {
                    Ok(channel) => self.connections[index].channel = Some(channel),
                    Err(error) => return self.lose(index, &error.to_string()),
                }
                self.connections[index].state = State::Opening;
            }
            Err(error) => {
                if let Some(reason) = descriptors::own_fault(&error) {
                    self.tally.own_errors += 1;
                    return self.lose(index, &reason);
                }
                self.lose(index, &error.to_string());
            }
        }
    }

    /// The connection became writable for the first time, or failed to, or its handshake goes on.
    pub(super) fn opened(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(channel) = &mut connection.channel else { return };
        match channel.socket().take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return self.lose(index, &error.to_string()),
        }
        match channel.shake_hands() {
            Ok(true) => {}
            Ok(false) => {
                // What it waits for, and nothing else.
                connection.awaits_room = !channel.wants_write();
                self.settle(index, Ok(()));
                return;
            }
            Err(error) => return self.lose(index, &error.to_string()),
        }
        self.tally.connects += 1;
        self.tally.resumed += u64::from(channel.is_resumed());
        let connection = &mut self.connections[index];
        let (greeting, replies) = &self.shared.greeting;
        connection.state = State::Open;
        connection.greet(greeting, *replies);
        let flushed = connection.flush();
        // Until now epoll reported that it is writable; from now on it must report what there is to
        // read.
        self.connections[index].awaits_room = true;
        if self.settle(index, flushed) && *replies == 0 {
            self.greeted(index);
        }
    }

    /// The connection may be used.
    pub(super) fn greeted(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if self.is_gathering {
            self.gathered += usize::from(!connection.is_gathered);
            connection.is_gathered = true;
        } else if self.clients[self.client_of(index)].waiting == 0 {
            self.give_work(self.client_of(index), monotonic_ns());
        }
    }

    /// Asks for the events that the connection needs; returns whether it still is one.
    #[inline]
    pub(super) fn settle(&mut self, index: usize, result: io::Result<()>) -> bool {
        if let Err(error) = result {
            self.lose(index, &error.to_string());
            return false;
        }
        let connection = &mut self.connections[index];
        let awaits = connection.awaits_to_send();
        if awaits == connection.awaits_room {
            return true;
        }
        connection.awaits_room = awaits;
        let Some(channel) = &connection.channel else { return false };
        let out = if awaits { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(index as u64);
        let changed =
            epoll::modify(&self.epoll, channel.socket(), data, epoll::EventFlags::IN | out);
        if let Err(error) = changed {
            self.lose(index, &io::Error::from(error).to_string());
            return false;
        }
        true
    }

    /// The connection is lost, with all that was not answered.
    pub(super) fn lose(&mut self, index: usize, reason: &str) {
        let now = monotonic_ns();
        let connection = &mut self.connections[index];
        connection.close();
        connection.member = (connection.member + 1) % self.shared.members.len();
        connection.hops = 0;
        for flight in connection.flights.drain(..) {
            self.tally.lost(&flight, "connection", now);
        }
        connection.requests.clear();
        let lost = std::mem::take(&mut connection.waiting);
        self.in_flight -= lost;
        let client = self.client_of(index);
        self.clients[client].waiting -= lost;
        self.tally.socket_errors += 1;
        if !self.plan.reconnect || self.is_gathering {
            return self.shared.end(format!("connection lost: {reason}"));
        }
        if let Some(cluster) = &self.shared.cluster {
            cluster.doubt();
            // Its other connections are there, and this one is opened when it is needed.
            if lost > 0 {
                self.hold_back(client, now);
            }
            return;
        }
        self.clients[client].is_free = false;
        self.reopening.push_back((now + REOPEN_PAUSE, index));
    }

    /// An answer names the member that has to be asked instead: the connection goes there. What was
    /// sent is not kept, so another request of the load takes its place.
    pub(super) fn follow(&mut self, index: usize, location: &str) {
        let place = location.split_once("://").map_or(location, |(_, rest)| rest);
        let name = place.split('/').next().unwrap_or_default();
        let member = self.shared.members.iter().position(|(own, _)| own == name);
        let connection = &mut self.connections[index];
        connection.hops += 1;
        let Some(member) = member.filter(|_| connection.hops <= MOST_HOPS) else {
            return self.lose(index, "an answer names nobody who is asked");
        };
        self.tally.redirects += 1;
        connection.close();
        connection.member = member;
        let (bytes, rendered) = self.renderer.render(1);
        if let (Some(flight), Some(run)) = (connection.flights.front_mut(), rendered.first()) {
            flight.operation = run.operation as u32;
        }
        let kept = connection.send(bytes);
        self.sent(index, kept);
    }

    /// A client of a cluster goes on a while later: what it met is not over at once.
    pub(super) fn hold_back(&mut self, client: usize, now: u64) {
        self.reopening.push_back((now + REOPEN_PAUSE, client));
    }

    /// Who uses a connection.
    #[inline]
    pub(super) fn client_of(&self, index: usize) -> usize {
        if self.spread.is_some() { index % self.clients.len() } else { index }
    }

    /// Closes a connection that has done its work.
    pub(super) fn retire(&mut self, index: usize) {
        self.connections[index].close();
    }
}
