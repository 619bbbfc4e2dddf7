//! How changes reach followers.
//!
//! A thread of the host delivers changes to all followers that keep up
//! ([`Engine::deliver_changes`]): it puts the changes into their inboxes, and their workers send
//! them. A follower for which too much waits already gets nothing more from that thread. When the
//! waiting changes are sent, the follower's worker reads on ([`Engine::read_on`]) until the
//! follower has caught up. So a slow client takes little memory. A follower that needs changes
//! which are no longer kept is told so.
//!
//! No follower is told of a change before the reply of its command may leave: see
//! [`crate::journal::Journal::shown`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use hashbrown::HashMap;
use resp::output::Output;
use resp::reply::Reply;
use smallvec::SmallVec;
use store::gate::StoppedWorld;

use crate::changes::reading::changes_of;
use crate::engine::{Engine, random_id};
use crate::journal::backlog::{Backlog, Gone, Position};
use crate::journal::change::Change;
use crate::journal::records::Record;
use crate::session::awaited::{Awaited, Wait};
use crate::session::followers::{Follower, Followers, Selection};

/// How changes are written for clients that follow.
pub trait Form {
    /// Writes a change. The last of several changes made at once carries the position after it.
    fn write(&self, change: &Change<'_>, position: Option<&str>, output: &mut Vec<u8>);

    /// Tells a follower that nothing else has happened up to a position.
    fn write_position(&self, position: &str, output: &mut Vec<u8>);
}

/// The result of reading on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// The follower has caught up: it is told of what happens next.
    Live,
    /// There is more to read.
    More,
    /// The next changes are not kept any more.
    Gone(Gone),
    /// It was sent away, and is told so when its worker takes its inbox.
    Left,
}

/// Roughly the bytes that a message takes in an inbox besides its own.
const MESSAGE_FRAME: usize = 64;

/// The changes of a record, each written when a follower needs it.
struct WrittenChanges<'t, 'r> {
    form: &'t dyn Form,
    changes: &'t [Change<'r>],
    position: &'t str,
    /// Without and with the position.
    written: Vec<[Option<Arc<Vec<u8>>>; 2]>,
}

impl WrittenChanges<'_, '_> {
    fn message(&mut self, number: usize, is_last: bool) -> Arc<Vec<u8>> {
        let message = self.written[number][usize::from(is_last)].get_or_insert_with(|| {
            let mut output = Vec::new();
            self.form.write(&self.changes[number], is_last.then_some(self.position), &mut output);
            Arc::new(output)
        });
        Arc::clone(message)
    }

    /// Several changes as one message, which followers of the same changes share: a record may have
    /// very many, and the followers may take them slowly.
    fn together(&self, numbers: &[usize]) -> Arc<Vec<u8>> {
        let mut output = Vec::new();
        for (at, &number) in numbers.iter().enumerate() {
            let position = (at + 1 == numbers.len()).then_some(self.position);
            self.form.write(&self.changes[number], position, &mut output);
        }
        Arc::new(output)
    }
}

/// A follower with the changes that it follows.
type Match = (Arc<Follower>, SmallVec<[usize; 2]>);

/// Changes that are matched with followers before other threads get at the index.
const MATCHED_AT_ONCE: usize = 64;

/// Several changes of a record as one message.
type Together = (SmallVec<[usize; 2]>, Arc<Vec<u8>>);

/// Which followers follow which of a record's changes, each follower once, and from which change on
/// they are told.
fn matches(followers: &Followers, end: u64, changes: &[Change<'_>]) -> (Vec<Match>, u64) {
    let mut found: Vec<Match> = Vec::new();
    let mut numbers = HashMap::new();
    let before = std::mem::replace(&mut followers.index.lock().delivered, end);
    for first in (0..changes.len()).step_by(MATCHED_AT_ONCE) {
        // Workers need the index too, so no thread locks it for long.
        let index = followers.index.lock();
        let some = changes.iter().enumerate().skip(first).take(MATCHED_AT_ONCE);
        for (number, change) in some {
            index.admitting(change, |follower| {
                if !follower.wants(end) {
                    return;
                }
                if changes.len() == 1 {
                    return found.push((Arc::clone(follower), SmallVec::from_slice(&[number])));
                }
                let own = *numbers.entry(Arc::as_ptr(follower)).or_insert_with(|| {
                    found.push((Arc::clone(follower), SmallVec::new()));
                    found.len() - 1
                });
                found[own].1.push(number);
            });
        }
    }
    (found, before)
}

impl Engine {
    /// Begins to keep the journal for followers. Must be called with the world stopped, so that
    /// every write after this instant is kept.
    pub fn keep_changes(&self) {
        let Some(backlog) = self.journal.changes() else { return };
        if !backlog.is_on() {
            // After a gap, the same name would make positions from before it look valid.
            let name = match backlog.has_histories() {
                true => random_id(),
                false => self.replication_id.lock().clone(),
            };
            self.journal.keep_changes(name);
            self.begin_to_deliver(backlog);
        }
    }

    /// Begins to keep the journal for replicas that may come.
    pub fn keep_stream(&self, _: &StoppedWorld<'_>) {
        self.keep_changes();
    }

    /// Takes over a history: see [`crate::journal::Journal::adopt`].
    pub fn adopt_history(&self, position: Position, selected: Option<usize>) {
        let Some(backlog) = self.journal.changes() else { return };
        let was_on = backlog.is_on();
        self.journal.adopt(position, selected);
        if !was_on {
            self.begin_to_deliver(backlog);
        }
    }

    fn begin_to_deliver(&self, backlog: &Backlog) {
        let newest = backlog.newest();
        self.followers.index.lock().delivered = newest;
        self.followers.note_complete(newest);
    }

    /// Tells followers some of what has happened. Returns whether there is more.
    pub fn deliver_changes(&self, form: &dyn Form) -> bool {
        let Some(backlog) = self.journal.changes().filter(|backlog| backlog.is_on()) else {
            return false;
        };
        let shown = self.journal.shown();
        let delivered = {
            let mut index = self.followers.index.lock();
            if self.followers.is_empty() {
                index.delivered = index.delivered.max(shown.min(backlog.newest()));
                self.followers.note_complete(index.delivered);
                return false;
            }
            index.delivered
        };
        match backlog.read(delivered, shown, limits::CHANGES_STEP) {
            Ok(records) => {
                for record in &records {
                    self.deliver(backlog, record, form);
                    self.followers.note_complete(record.end());
                }
                records.len() == limits::CHANGES_STEP
            }
            Err(_) => {
                self.skip_what_is_gone(backlog);
                true
            }
        }
    }

    /// More has happened since the last call than is kept. A client that follows finds out where it
    /// is when it reads on. A client that waits for one change cannot, so it is told that there may
    /// have been one.
    fn skip_what_is_gone(&self, backlog: &Backlog) {
        let (oldest, behind) = {
            let mut index = self.followers.index.lock();
            let (delivered, oldest) = (index.delivered, backlog.oldest());
            let behind: Vec<_> =
                index.all().filter(|follower| follower.misses(oldest)).cloned().collect();
            let follow = behind.iter().filter(|follower| follower.waiter.is_none());
            follow.for_each(|follower| self.followers.leave_behind(follower, delivered));
            index.delivered = oldest;
            (oldest, behind)
        };
        let reply = format!("-{}\r\n", backlog.gone(self.journal.shown()));
        for follower in behind {
            match &follower.waiter {
                Some(waiter) => {
                    self.answer(waiter, reply.as_bytes());
                    self.followers.note_given_up();
                    self.followers.remove(&follower);
                }
                None => self.host.wake(&follower.client),
            }
        }
        // Only now: a client that gave up waiting before this has missed nothing up to where all
        // were told.
        self.followers.note_complete(oldest);
    }

    fn deliver(&self, backlog: &Backlog, record: &Record, form: &dyn Form) {
        let changes = changes_of(self.commands, record.commands());
        let (found, before) = matches(&self.followers, record.end(), &changes);
        if found.is_empty() {
            return;
        }
        let position = backlog.position(record.end());
        let written = vec![[None, None]; changes.len()];
        let mut written_changes =
            WrittenChanges { form, changes: &changes, position: &position, written };
        // Followers that wait for the same key come one after another here, and are told the same.
        let mut last: Option<(SmallVec<[usize; 2]>, bool, Output)> = None;
        let mut last_together: Option<Together> = None;
        for (follower, numbers) in found {
            if let Some(waiter) = &follower.waiter {
                let is_same = |(own, resp3, _): &(SmallVec<[usize; 2]>, bool, Output)| {
                    *own == numbers && *resp3 == waiter.wait.resp3
                };
                let reply = match last.take().filter(is_same) {
                    Some((_, _, reply)) => reply,
                    None => first_changes(&written_changes, &numbers, waiter.wait.resp3),
                };
                self.answer_with(waiter, reply.clone());
                last = Some((numbers, waiter.wait.resp3, reply));
                self.followers.remove(&follower);
                continue;
            }
            // A large change is shared with clients that follow other keys, too.
            let pushed = if is_many_small(record, numbers.len()) {
                let message = match last_together.take().filter(|(own, _)| *own == numbers) {
                    Some((_, message)) => message,
                    None => written_changes.together(&numbers),
                };
                last_together = Some((numbers, Arc::clone(&message)));
                self.push_to(&follower, std::iter::once(message))
            } else {
                let last = numbers.len() - 1;
                let messages = numbers.iter().enumerate();
                let messages =
                    messages.map(|(at, &number)| written_changes.message(number, at == last));
                self.push_to(&follower, messages)
            };
            if !pushed {
                self.followers.leave_behind(&follower, before);
                self.host.wake(&follower.client);
            }
        }
    }

    /// Puts messages into the inbox of a follower, unless too much waits there.
    fn push_to(&self, follower: &Follower, messages: impl Iterator<Item = Arc<Vec<u8>>>) -> bool {
        let client = &follower.client;
        let mut inbox = client.inbox.lock();
        let waiting = client.output_bytes.load(Relaxed).saturating_add(inbox.bytes);
        if waiting > limits::CHANGES_PENDING {
            return false;
        }
        // The sender of the first message has woken the worker, which takes all of them at once.
        let tell = inbox.pushes.is_empty();
        for message in messages {
            inbox.bytes += message.len() + MESSAGE_FRAME;
            inbox.pushes.push(message);
        }
        drop(inbox);
        if tell {
            self.host.wake(client);
        }
        true
    }

    /// Tells followers how far the journal is, even when nothing has happened.
    pub fn deliver_positions(&self, form: &dyn Form) {
        let Some(backlog) = self.journal.changes().filter(|backlog| backlog.is_on()) else {
            return;
        };
        // Workers need the index too, so no thread locks it for long.
        let (delivered, followers) = {
            let index = self.followers.index.lock();
            let delivered = index.delivered;
            let follow = |own: &&Arc<Follower>| own.waiter.is_none() && own.is_at(delivered);
            (delivered, index.all().filter(follow).cloned().collect::<Vec<_>>())
        };
        let mut text = Vec::new();
        form.write_position(&backlog.position(delivered), &mut text);
        let text = Arc::new(text);
        for follower in followers {
            // A follower with many waiting messages is told later.
            self.push_to(&follower, std::iter::once(Arc::clone(&text)));
        }
    }

    /// Reads on for a follower that is behind. Its worker must call this after the earlier messages
    /// are in its output. Appends to `output` not much more than may wait there.
    pub fn read_on(&self, follower: &Follower, form: &dyn Form, output: &mut Output) -> Reading {
        let (Some(mut from), Some(backlog)) = (follower.behind(), self.journal.changes()) else {
            return Reading::Live;
        };
        let shown = self.journal.shown().max(self.followers.delivered());
        let read = backlog.read(from, shown, limits::CHANGES_STEP);
        // Looked at only now: its key may be deleted here once it was sent away.
        if follower.refusal().is_some() {
            return Reading::Left;
        }
        let records = match read {
            Ok(records) => records,
            Err(gone) => {
                self.followers.note_given_up();
                return Reading::Gone(gone);
            }
        };
        if records.is_empty() {
            let live = self.followers.catch_up(follower, from);
            return if live { Reading::Live } else { Reading::More };
        }
        let (begun, mut text) = (output.len(), Vec::new());
        for record in records {
            let changes = changes_of(self.commands, record.commands());
            if is_many_small(&record, changes.len()) {
                let selected = (record.end(), Selection::All(follower.filter.clone()));
                let text = self.followers.written(selected, |text| {
                    let own = changes.iter().filter(|own| follower.filter.admits(own));
                    let mut own = own.peekable();
                    while let Some(change) = own.next() {
                        let position = own.peek().is_none().then(|| backlog.position(record.end()));
                        form.write(change, position.as_deref(), text);
                    }
                });
                output.push_shared(&text);
                from = record.end();
                if output.len() - begun >= limits::CHANGES_PENDING {
                    break;
                }
                continue;
            }
            let own = changes.iter().enumerate();
            let mut own = own.filter(|(_, own)| follower.filter.admits(own)).peekable();
            while let Some((number, change)) = own.next() {
                let position = own.peek().is_none().then(|| backlog.position(record.end()));
                let write = |text: &mut Vec<u8>| form.write(change, position.as_deref(), text);
                if record.bytes() < limits::SHARED_REPLY {
                    text.clear();
                    write(&mut text);
                    output.push(&text);
                } else {
                    let selected = (record.end(), Selection::One(number, position.is_some()));
                    output.push_shared(&self.followers.written(selected, write));
                }
            }
            from = record.end();
            if output.len() - begun >= limits::CHANGES_PENDING {
                break;
            }
        }
        follower.note_read(from);
        Reading::More
    }

    /// Stops keeping the journal when no client has followed it for this many milliseconds.
    /// `monotonic` is the present millisecond of the monotonic clock.
    pub fn let_changes_go(&self, monotonic: u64, patience: u64) {
        let Some(backlog) = self.journal.changes().filter(|backlog| backlog.is_on()) else {
            return;
        };
        // A replica keeps it: its primary may be lost, and others then go on here. So does a node
        // of a cluster, which knows by the history's name to which epoch its data belong.
        let is_kept = self.replication.is_replica() || self.cluster.is_enabled();
        if !self.followers.is_empty() || is_kept {
            backlog.note_use(monotonic);
        } else if backlog.unused_for(monotonic) > patience {
            self.leave_history();
            self.journal.let_changes_go();
        }
    }

    /// Ends the waiting of a client whose time is up. Returns its reply, unless another thread was
    /// quicker.
    pub fn time_out(&self, wait: &Wait) -> Option<Vec<u8>> {
        if !matches!(wait.awaited, Awaited::Changes(_)) {
            return wait.claim().then(|| {
                let mut output = Output::default();
                wait.reply_timed_out(&mut Reply::new(&mut output, wait.resp3));
                output.to_vec()
            });
        }
        // No change up to here concerned it. So this comes before the claim.
        let position = self.journal.changes()?.position(self.followers.complete_up_to());
        wait.claim().then(|| no_changes(&position, wait.resp3))
    }
}

/// Whether a record has many changes, together long and each of them short.
fn is_many_small(record: &Record, changes: usize) -> bool {
    let bytes = record.bytes();
    bytes >= limits::SHARED_REPLY && bytes / limits::SHARED_REPLY < changes
}

/// The reply of CHANGES to a client that has waited for these changes. Copies share it if it is
/// large.
fn first_changes(
    written_changes: &WrittenChanges<'_, '_>,
    numbers: &[usize],
    resp3: bool,
) -> Output {
    let mut output = Output::default();
    let mut reply = Reply::new(&mut output, resp3);
    reply.array(2);
    reply.bulk(written_changes.position.as_bytes());
    reply.array(numbers.len());
    for (at, &number) in numbers.iter().enumerate() {
        let position = (at + 1 == numbers.len()).then_some(written_changes.position);
        written_changes.changes[number].reply(position, &mut reply);
    }
    let mut shared = Output::default();
    shared.push_shared(&Arc::new(output.to_vec()));
    shared
}

/// The answer of CHANGES when nothing has happened up to a position.
fn no_changes(position: &str, resp3: bool) -> Vec<u8> {
    let mut output = Output::default();
    let mut reply = Reply::new(&mut output, resp3);
    reply.array(2);
    reply.bulk(position.as_bytes());
    reply.array(0);
    output.to_vec()
}
