//! Watches: every change of the keys with a prefix, from a revision on, over all breaks.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::clock::monotonic_ms;
use cluster::store::{Revision, WatchEvent};
use ureq::{BodyReader, Error};

use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::stop::Stop;
use crate::wire::{self, Message};

/// Longer messages are not read.
const LONGEST_MESSAGE: u64 = 64 << 20;
/// How long it waits after a break, before it is opened anew.
const PAUSE: Duration = Duration::from_millis(50);
/// The same at most, where members answer and refuse: only somebody who changes rights at etcd
/// helps, and each attempt costs etcd the check of a password.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// After so long without a member that can be watched it is lost. Members choose a leader in less.
const LOST_AFTER_MS: u64 = 3000;

/// What a watch tells.
#[derive(Debug)]
pub enum Watched {
    /// A member answers: all changes from `next` on will come.
    Open {
        /// The first revision that will come.
        next: Revision,
    },
    /// Changes, in the order in which they happened. All of one revision come together.
    Events {
        /// The revision of the last of them.
        revision: Revision,
        /// The changes.
        events: Vec<WatchEvent>,
    },
    /// All changes up to this revision have come.
    Progress {
        /// That revision.
        revision: Revision,
    },
    /// The member has gone. The watch looks for another one, and is [`Watched::Open`] there.
    Broken(String),
}

/// How a watch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// It was stopped.
    Stopped,
    /// Changes that were asked for are forgotten: all keys have to be read again.
    Compacted {
        /// The first revision that etcd still has.
        revision: Revision,
    },
    /// No member can be watched at present.
    Lost(String),
}

/// How one attempt to watch ended.
enum Break {
    End(WatchEnd),
    /// Nothing was said for some time: all may be well.
    Silent,
    /// The member has answered that it may not be.
    Refused(Failure),
    Failed(Failure),
}

/// How long a watch waits before its next attempt, after so many in a row that were refused.
fn pause_after(refusals: u32) -> Duration {
    let doubled = PAUSE.saturating_mul(1 << refusals.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE)
}

impl Gateway {
    /// Tells every change of the keys that begin with `prefix`, from a revision on, until the
    /// watch is stopped or cannot go on. After a break it goes on where it was, at another member.
    pub fn watch(
        &self,
        prefix: &str,
        from_revision: Revision,
        stop: &Stop,
        tell: &mut dyn FnMut(Watched),
    ) -> WatchEnd {
        let mut watch = Watch { gateway: self, prefix, next: from_revision, stop, tell };
        // How many members in a row could not be watched, and since when.
        let (mut failed, mut since) = (0, monotonic_ms());
        let mut is_told = false;
        loop {
            if stop.is_stopped() {
                return WatchEnd::Stopped;
            }
            let place = self.preferred.load(Ordering::Relaxed);
            let mut opened = false;
            let end = watch.at(place, &mut opened, is_told);
            is_told |= opened;
            if opened {
                (failed, since) = (0, monotonic_ms());
                self.refusals.store(0, Ordering::Relaxed);
            }
            match end {
                Break::End(end) => return end,
                Break::Silent => {}
                Break::Failed(_) | Break::Refused(_) if stop.is_stopped() => {
                    return WatchEnd::Stopped;
                }
                Break::Failed(ref failure) | Break::Refused(ref failure) => {
                    let pause = match end {
                        // The next watch goes on at that pace.
                        Break::Refused(_) => {
                            pause_after(self.refusals.fetch_add(1, Ordering::Relaxed) + 1)
                        }
                        _ => PAUSE,
                    };
                    self.pass_over(place);
                    failed += 1;
                    if failed >= self.members.len() && monotonic_ms() - since > LOST_AFTER_MS {
                        return WatchEnd::Lost(failure.to_string());
                    }
                    if is_told {
                        (watch.tell)(Watched::Broken(failure.to_string()));
                        is_told = false;
                    }
                    stop.wait(pause);
                }
            }
        }
    }
}

impl Break {
    fn of(failure: Failure) -> Break {
        match failure {
            Failure::Refused { .. } => Break::Refused(failure),
            Failure::Unsent(_) | Failure::Unknown(_) => Break::Failed(failure),
        }
    }
}

struct Watch<'w> {
    gateway: &'w Gateway,
    prefix: &'w str,
    /// The first revision that has not come.
    next: Revision,
    stop: &'w Stop,
    tell: &'w mut dyn FnMut(Watched),
}

impl Watch<'_> {
    /// Watches at one member. `opened` becomes true when it answers.
    fn at(&mut self, place: usize, opened: &mut bool, is_told: bool) -> Break {
        let gateway = self.gateway;
        let member = &gateway.members[place % gateway.members.len()];
        let (limit, silence) = (gateway.config.attempt(), gateway.config.silence());
        let token = match gateway.token(member, limit) {
            Ok(token) => token,
            Err(failure) => return Break::of(failure),
        };
        let body = wire::watch(self.prefix, self.next);
        let request = ("/v3/watch", body.as_bytes());
        let stream = member.open(request, token.as_deref(), limit, silence, self.stop);
        let mut lines = match stream {
            Ok(stream) => BufReader::new(stream),
            Err(failure) => {
                if failure.is_of_token() {
                    gateway.login.forget(token.as_deref());
                }
                return Break::of(failure);
            }
        };
        loop {
            let line = match line(&mut lines) {
                Ok(line) => line,
                Err(Error::Timeout(_)) if *opened => return Break::Silent,
                Err(error) => return Break::Failed(member.failed(error)),
            };
            let message = match wire::message(&line) {
                Ok(Ok(message)) => message,
                Ok(Err(problem)) => return Break::of(member.refusal(&problem)),
                Err(text) => return Break::Failed(Failure::Unknown(text)),
            };
            match message {
                Message::Created { etcd } => {
                    // What it goes on with is not what has become of what was read.
                    if let Err(failure) = gateway.check_origin(member, false, etcd) {
                        return Break::End(WatchEnd::Lost(failure.to_string()));
                    }
                    *opened = true;
                    if !is_told {
                        (self.tell)(Watched::Open { next: self.next });
                    }
                }
                Message::Events { revision, events } => {
                    self.next = revision + 1;
                    (self.tell)(Watched::Events { revision, events });
                }
                Message::Progress { revision } => {
                    self.next = self.next.max(revision + 1);
                    (self.tell)(Watched::Progress { revision });
                }
                Message::Compacted { revision } => {
                    return Break::End(WatchEnd::Compacted { revision });
                }
                Message::Cancelled { reason } => {
                    // It says the same of a token that has ended and of a right that is missing.
                    gateway.login.forget(token.as_deref());
                    *opened = false;
                    let text = format!("{}: the watch was ended: {reason}", member.url());
                    return Break::Refused(Failure::Unknown(text));
                }
            }
        }
    }
}

/// The next message.
fn line(lines: &mut BufReader<BodyReader<'static>>) -> Result<Vec<u8>, Error> {
    let mut line = Vec::new();
    lines.by_ref().take(LONGEST_MESSAGE).read_until(b'\n', &mut line)?;
    match line.ends_with(b"\n") {
        true => Ok(line),
        false => Err(Error::Io(ErrorKind::UnexpectedEof.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_refused_again_and_again_asks_less_often() {
        let pauses: Vec<_> = (1..=10).map(|times| pause_after(times).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(pause_after(u32::MAX), LONGEST_PAUSE);
    }
}
