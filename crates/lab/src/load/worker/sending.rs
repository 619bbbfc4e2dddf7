//! Sending: in a closed load when the last replies have come, in an open one when a request is due.

use std::io;

use base::clock::monotonic_ns;

use super::Worker;
use crate::load::connection::State;
use crate::load::tally::Flight;

/// A pipeline from which on the time to lay it out is kept apart from the server's time.
const LONG_PIPELINE: usize = 4;

impl Worker<'_> {
    /// The next step of a connection without requests.
    #[inline]
    pub(super) fn give_work(&mut self, index: usize, now: u64) {
        if self.due.is_some() {
            self.make_free(index, now);
        } else {
            self.send_next(index, now);
        }
    }

    /// A connection of an open load has room.
    pub(super) fn make_free(&mut self, index: usize, now: u64) {
        if !self.connections[index].is_free {
            if self.free.is_empty() {
                self.free_since = now;
            }
            self.connections[index].is_free = true;
            self.free.push_back(index);
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
        self.in_flight += count;
        let result = connection.send(bytes);
        self.sent(index, result);
    }

    /// The next step after a connection got requests.
    #[inline]
    fn sent(&mut self, index: usize, result: io::Result<()>) {
        if self.connections[index].state == State::Closed && result.is_ok() {
            self.open(index);
        } else if self.connections[index].state == State::Open {
            self.settle(index, result);
        }
    }

    /// Sends the requests of an open load that are due, as far as connections are free.
    pub(super) fn send_due(&mut self) {
        loop {
            let now = monotonic_ns();
            let Some(due) = &mut self.due else { return };
            if !self.is_sending || due.next() > now || due.next() >= self.deadline {
                return;
            }
            let Some(index) = self.free.pop_front() else { return };
            let connection = &mut self.connections[index];
            if !std::mem::take(&mut connection.is_free) {
                // It was lost since.
                continue;
            }
            // Many at once are shared out evenly.
            let share = due.overdue(now).div_ceil(self.free.len() + 1);
            let room = (self.plan.pipeline - connection.waiting).min(share.max(1));
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
            if !self.due_times.is_empty() {
                self.send_these(index, now);
            }
            let connection = &self.connections[index];
            if connection.waiting > 0 && connection.waiting < self.plan.pipeline {
                let since = self.free_since;
                self.make_free(index, since);
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
        self.in_flight += self.due_times.len();
        let result = connection.send(bytes);
        self.sent(index, result);
    }

    /// Does the work that was due at a time: ends pauses, opens connections again.
    pub(super) fn wake(&mut self, now: u64) {
        while let Some((at, index)) = self.thinking.front().copied()
            && at <= now
        {
            self.thinking.pop_front();
            if self.connections[index].waiting == 0 {
                self.send_next(index, monotonic_ns());
            }
        }
        while let Some((at, index)) = self.reopening.front().copied()
            && at <= now
        {
            self.reopening.pop_front();
            if self.connections[index].state == State::Closed && self.is_sending {
                if self.keep_alive {
                    self.open(index);
                } else {
                    self.give_work(index, monotonic_ns());
                }
            }
        }
    }
}
