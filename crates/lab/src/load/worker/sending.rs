//! Sending: in a closed load when the last replies have come, in an open one when a request is due.

use std::io;

use base::clock::monotonic_ns;

use super::Worker;
use crate::load::connection::State;
use crate::load::tally::Flight;

/// A pipeline from which on the time to lay it out is kept apart from the server's time.
const LONG_PIPELINE: usize = 4;

impl Worker<'_> {
    /// The next step of a client without requests.
    #[inline]
    pub(super) fn give_work(&mut self, client: usize, now: u64) {
        if self.due.is_some() {
            self.make_free(client, now);
        } else {
            self.send_next(client, now);
        }
    }

    /// A client of an open load has room.
    pub(super) fn make_free(&mut self, client: usize, now: u64) {
        if !self.clients[client].is_free {
            if self.free.is_empty() {
                self.free_since = now;
            }
            self.clients[client].is_free = true;
            self.free.push_back(client);
        }
    }

    /// Sends the next pipeline of a closed load.
    #[inline]
    fn send_next(&mut self, index: usize, now: u64) {
        if !self.is_sending {
            return;
        }
        let mut count = self.plan.pipeline;
        let is_measured = now >= self.measured_from;
        if is_measured {
            count = self.shared.take(count);
            if count == 0 {
                self.is_sending = false;
                return;
            }
        }
        if self.spread.is_some() {
            self.due_times.clear();
            self.due_times.resize(count, now);
            return self.scatter(index, now);
        }
        let (bytes, rendered) = self.renderer.render(count);
        let connection = &mut self.connections[index];
        let sent = if count >= LONG_PIPELINE { monotonic_ns() } else { now };
        for run in rendered {
            if is_measured {
                self.tally.sent(run.operation, run.bytes);
            }
            connection.flights.push_back(Flight {
                due: sent,
                sent,
                operation: run.operation as u32,
                count: run.count as u32,
                is_measured,
            });
        }
        connection.waiting += count;
        self.clients[index].waiting += count;
        self.in_flight += count;
        let result = connection.send(bytes);
        self.sent(index, result);
    }

    /// The next step after a connection got requests.
    #[inline]
    pub(super) fn sent(&mut self, index: usize, result: io::Result<()>) {
        if self.connections[index].state == State::Closed && result.is_ok() {
            self.open(index);
        } else if self.connections[index].state == State::Open {
            self.settle(index, result);
        }
    }

    /// Sends the requests of an open load that are due, as far as clients are free.
    pub(super) fn send_due(&mut self) {
        loop {
            let now = monotonic_ns();
            let Some(due) = &mut self.due else { return };
            if !self.is_sending || due.next() > now || due.next() >= self.deadline {
                return;
            }
            let Some(place) = self.free.pop_front() else { return };
            let client = &mut self.clients[place];
            if !std::mem::take(&mut client.is_free) {
                // It was lost since.
                continue;
            }
            // Many at once are shared out evenly.
            let share = due.overdue(now).div_ceil(self.free.len() + 1);
            let room = self.plan.pipeline.saturating_sub(client.waiting).min(share.max(1));
            self.due_times.clear();
            while self.due_times.len() < room && due.next() <= now && due.next() < self.deadline {
                let is_measured = due.next() >= self.measured_from;
                if is_measured && self.shared.take(1) == 0 {
                    self.is_sending = false;
                    break;
                }
                self.due_times.push(due.next());
                due.advance();
            }
            match (self.due_times.is_empty(), &self.spread) {
                (true, _) => {}
                (false, None) => self.send_these(place, now),
                (false, Some(_)) => self.scatter(place, now),
            }
            let waiting = self.clients[place].waiting;
            if waiting > 0 && waiting < self.plan.pipeline {
                let since = self.free_since;
                self.make_free(place, since);
            }
        }
    }

    /// Sends requests with these due times.
    fn send_these(&mut self, index: usize, now: u64) {
        let (bytes, rendered) = self.renderer.render(self.due_times.len());
        let connection = &mut self.connections[index];
        let mut due_times = self.due_times.iter();
        for run in rendered {
            let mut measured = 0;
            for &due in due_times.by_ref().take(run.count) {
                let is_measured = due >= self.measured_from;
                if is_measured {
                    measured += 1;
                    self.tally.lateness.record(now.saturating_sub(due.max(self.free_since)));
                }
                let operation = run.operation as u32;
                connection.flights.push_back(Flight {
                    due,
                    sent: now,
                    operation,
                    count: 1,
                    is_measured,
                });
            }
            self.tally.sent(run.operation, run.bytes * measured / run.count);
        }
        connection.waiting += self.due_times.len();
        self.clients[index].waiting += self.due_times.len();
        self.in_flight += self.due_times.len();
        let result = connection.send(bytes);
        self.sent(index, result);
    }

    /// Does the work that was due at a time: ends pauses, opens connections again.
    pub(super) fn wake(&mut self, now: u64) {
        while let Some((at, client)) = self.thinking.front().copied()
            && at <= now
        {
            self.thinking.pop_front();
            if self.clients[client].waiting == 0 {
                self.send_next(client, monotonic_ns());
            }
        }
        while let Some((at, index)) = self.reopening.front().copied()
            && at <= now
        {
            self.reopening.pop_front();
            if self.spread.is_some() {
                // Its other connections may have gone on, or those of an open load have room.
                if self.is_sending && self.clients[index].waiting < self.room_to_go_on() {
                    self.give_work(index, monotonic_ns());
                }
            } else if self.connections[index].state == State::Closed && self.is_sending {
                if self.keep_alive {
                    self.open(index);
                } else {
                    self.give_work(index, monotonic_ns());
                }
            }
        }
    }
}
