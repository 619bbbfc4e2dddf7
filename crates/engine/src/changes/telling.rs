//! How changes reach listeners.
//!
//! A thread of the host tells all listeners that keep up ([`Engine::tell_changes`]): it puts the
//! changes into their inboxes, and their workers send them. When too much waits for a listener already,
//! it is told nothing more. It reads on by itself after that is sent ([`Engine::read_on`]), until it
//! has caught up. So a slow client costs no more than a little memory. When it needs changes that are
//! no longer kept, it is told that.
//!
//! No listener is told of a change before the reply of its command may leave: see
//! [`crate::persistence::journal::Journal::shown`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use hashbrown::HashMap;
use resp::output::Output;
use resp::reply::Reply;
use smallvec::SmallVec;

use super::change::Change;
use super::listeners::{Listener, Listeners, Place};
use super::reading::changes_of;
use crate::engine::{Engine, random_id};
use crate::persistence::backlog::{Backlog, Gone, Record};
use crate::wait::awaited::{Awaited, Wait};

/// How changes are written for clients that follow.
pub trait Form {
    /// Writes a change. The last of several changes made at once carries the position after it.
    fn write(&self, change: &Change<'_>, position: Option<&str>, output: &mut Vec<u8>);

    /// Tells a listener that nothing else has happened up to a position.
    fn write_position(&self, position: &str, output: &mut Vec<u8>);
}

/// The result of reading on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// The listener has caught up: it is told of what happens next.
    Live,
    /// There is more to read.
    More,
    /// The next changes are not kept any more.
    Gone(Gone),
}

/// Roughly the bytes that a message takes in an inbox besides its own.
const MESSAGE_FRAME: usize = 64;

/// The changes of a record, each written when a listener needs it.
struct Telling<'t, 'r> {
    form: &'t dyn Form,
    changes: &'t [Change<'r>],
    position: &'t str,
    /// Without and with the position.
    written: Vec<[Option<Arc<Vec<u8>>>; 2]>,
}

impl Telling<'_, '_> {
    fn message(&mut self, place: usize, is_last: bool) -> Arc<Vec<u8>> {
        let message = self.written[place][usize::from(is_last)].get_or_insert_with(|| {
            let mut output = Vec::new();
            self.form.write(&self.changes[place], is_last.then_some(self.position), &mut output);
            Arc::new(output)
        });
        Arc::clone(message)
    }

    /// Several changes as one message, which listeners to the same changes share: a record may have very
    /// many, and the listeners may take them slowly.
    fn together(&self, places: &[usize]) -> Arc<Vec<u8>> {
        let mut output = Vec::new();
        for (at, &place) in places.iter().enumerate() {
            let position = (at + 1 == places.len()).then_some(self.position);
            self.form.write(&self.changes[place], position, &mut output);
        }
        Arc::new(output)
    }
}

/// A listener with the changes that it listens to.
type Match = (Arc<Listener>, SmallVec<[usize; 2]>);

/// Changes that are matched with listeners before other threads get at the index.
const MATCHED_AT_ONCE: usize = 64;

/// Several changes of a record as one message.
type Together = (SmallVec<[usize; 2]>, Arc<Vec<u8>>);

/// Which listeners listen to which of a record's changes, each listener once, and from which change on
/// they are told.
fn matches(listeners: &Listeners, end: u64, changes: &[Change<'_>]) -> (Vec<Match>, u64) {
    let mut found: Vec<Match> = Vec::new();
    let mut places = HashMap::new();
    let before = std::mem::replace(&mut listeners.index.lock().told, end);
    for first in (0..changes.len()).step_by(MATCHED_AT_ONCE) {
        // Workers need the index too, so no thread locks it for long.
        let index = listeners.index.lock();
        let some = changes.iter().enumerate().skip(first).take(MATCHED_AT_ONCE);
        for (place, change) in some {
            index.admitting(change, |listener| {
                if !listener.wants(end) {
                    return;
                }
                if changes.len() == 1 {
                    return found.push((Arc::clone(listener), SmallVec::from_slice(&[place])));
                }
                let own = *places.entry(Arc::as_ptr(listener)).or_insert_with(|| {
                    found.push((Arc::clone(listener), SmallVec::new()));
                    found.len() - 1
                });
                found[own].1.push(place);
            });
        }
    }
    (found, before)
}

impl Engine {
    /// Begins to keep the journal for followers. Must be called with all gates closed, so that every
    /// write after this instant is kept.
    pub(crate) fn keep_changes(&self) {
        let Some(backlog) = self.journal.changes() else { return };
        if !backlog.is_on() {
            // After a gap, the same name would make positions from before it look valid.
            let name = match backlog.has_histories() {
                true => random_id(),
                false => self.replication_id.lock().clone(),
            };
            self.journal.keep_changes(name);
            let newest = backlog.newest();
            self.listeners.index.lock().told = newest;
            self.listeners.note_heard(newest);
        }
    }

    /// Tells listeners some of what has happened. Returns whether there is more.
    pub fn tell_changes(&self, form: &dyn Form) -> bool {
        let Some(backlog) = self.journal.changes().filter(|backlog| backlog.is_on()) else {
            return false;
        };
        let shown = self.journal.shown();
        let told = {
            let mut index = self.listeners.index.lock();
            if self.listeners.is_empty() {
                index.told = index.told.max(shown.min(backlog.newest()));
                self.listeners.note_heard(index.told);
                return false;
            }
            index.told
        };
        match backlog.read(told, shown, limits::CHANGES_STEP) {
            Ok(records) => {
                for record in &records {
                    self.tell(backlog, record, form);
                    self.listeners.note_heard(record.end);
                }
                records.len() == limits::CHANGES_STEP
            }
            Err(_) => {
                self.skip_what_is_gone(backlog);
                true
            }
        }
    }

    /// More has happened since the last call than is kept. A client that follows finds out where it is
    /// when it reads on. A client that waits for one change cannot, so it is told that there may have
    /// been one.
    fn skip_what_is_gone(&self, backlog: &Backlog) {
        let (oldest, behind) = {
            let mut index = self.listeners.index.lock();
            let (told, oldest) = (index.told, backlog.oldest());
            let behind: Vec<_> =
                index.all().filter(|listener| listener.misses(oldest)).cloned().collect();
            let follow = behind.iter().filter(|listener| listener.waiter.is_none());
            follow.for_each(|listener| self.listeners.leave_behind(listener, told));
            index.told = oldest;
            (oldest, behind)
        };
        let reply = format!("-{}\r\n", backlog.gone(self.journal.shown()));
        for listener in behind {
            match &listener.waiter {
                Some(waiter) => {
                    self.answer(waiter, reply.as_bytes());
                    self.listeners.note_given_up();
                    self.listeners.remove(&listener);
                }
                None => self.host.wake(&listener.client),
            }
        }
        // Only now: a client that gave up waiting before this has missed nothing up to where all were
        // told.
        self.listeners.note_heard(oldest);
    }

    fn tell(&self, backlog: &Backlog, record: &Record, form: &dyn Form) {
        let changes = changes_of(self.commands, &record.batch);
        let (found, before) = matches(&self.listeners, record.end, &changes);
        if found.is_empty() {
            return;
        }
        let position = backlog.position(record.end);
        let written = vec![[None, None]; changes.len()];
        let mut telling = Telling { form, changes: &changes, position: &position, written };
        // Listeners that wait for the same key follow each other here, and are told the same.
        let mut last: Option<(SmallVec<[usize; 2]>, bool, Output)> = None;
        let mut last_together: Option<Together> = None;
        for (listener, places) in found {
            if let Some(waiter) = &listener.waiter {
                let is_same = |(own, resp3, _): &(SmallVec<[usize; 2]>, bool, Output)| {
                    *own == places && *resp3 == waiter.wait.resp3
                };
                let reply = match last.take().filter(is_same) {
                    Some((_, _, reply)) => reply,
                    None => first_changes(&telling, &places, waiter.wait.resp3),
                };
                self.answer_with(waiter, reply.clone());
                last = Some((places, waiter.wait.resp3, reply));
                self.listeners.remove(&listener);
                continue;
            }
            // A large change alone is shared with those who listen to others besides.
            let pushed = if is_many_small(record, places.len()) {
                let message = match last_together.take().filter(|(own, _)| *own == places) {
                    Some((_, message)) => message,
                    None => telling.together(&places),
                };
                last_together = Some((places, Arc::clone(&message)));
                self.push_to(&listener, std::iter::once(message))
            } else {
                let last = places.len() - 1;
                let messages = places.iter().enumerate();
                let messages = messages.map(|(at, &place)| telling.message(place, at == last));
                self.push_to(&listener, messages)
            };
            if !pushed {
                self.listeners.leave_behind(&listener, before);
                self.host.wake(&listener.client);
            }
        }
    }

    /// Puts messages into the inbox of a listener, unless too much waits there.
    fn push_to(&self, listener: &Listener, messages: impl Iterator<Item = Arc<Vec<u8>>>) -> bool {
        let client = &listener.client;
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

    /// Tells listeners how far the journal is, even when nothing has happened.
    pub fn tell_positions(&self, form: &dyn Form) {
        let Some(backlog) = self.journal.changes().filter(|backlog| backlog.is_on()) else {
            return;
        };
        // Workers need the index too, so no thread locks it for long.
        let (told, listeners) = {
            let index = self.listeners.index.lock();
            let told = index.told;
            let follow = |own: &&Arc<Listener>| own.waiter.is_none() && own.is_at(told);
            (told, index.all().filter(follow).cloned().collect::<Vec<_>>())
        };
        let mut text = Vec::new();
        form.write_position(&backlog.position(told), &mut text);
        let text = Arc::new(text);
        for listener in listeners {
            // A listener with many waiting messages is told later.
            self.push_to(&listener, std::iter::once(Arc::clone(&text)));
        }
    }

    /// Reads on for a listener that is behind. Its worker must call this after the earlier messages are
    /// in its output. Appends to `output` not much more than may wait there.
    pub fn read_on(&self, listener: &Listener, form: &dyn Form, output: &mut Output) -> Reading {
        let (Some(mut from), Some(backlog)) = (listener.behind(), self.journal.changes()) else {
            return Reading::Live;
        };
        let shown = self.journal.shown().max(self.listeners.told());
        let records = match backlog.read(from, shown, limits::CHANGES_STEP) {
            Ok(records) => records,
            Err(gone) => {
                self.listeners.note_given_up();
                return Reading::Gone(gone);
            }
        };
        if records.is_empty() {
            let live = self.listeners.catch_up(listener, from);
            return if live { Reading::Live } else { Reading::More };
        }
        let (begun, mut text) = (output.len(), Vec::new());
        for record in records {
            let changes = changes_of(self.commands, &record.batch);
            if is_many_small(&record, changes.len()) {
                let place = (record.end, Place::All(listener.filter.clone()));
                let text = self.listeners.written(place, |text| {
                    let own = changes.iter().filter(|own| listener.filter.admits(own));
                    let mut own = own.peekable();
                    while let Some(change) = own.next() {
                        let position = own.peek().is_none().then(|| backlog.position(record.end));
                        form.write(change, position.as_deref(), text);
                    }
                });
                output.push_shared(&text);
                from = record.end;
                if output.len() - begun >= limits::CHANGES_PENDING {
                    break;
                }
                continue;
            }
            let own = changes.iter().enumerate();
            let mut own = own.filter(|(_, own)| listener.filter.admits(own)).peekable();
            while let Some((place, change)) = own.next() {
                let position = own.peek().is_none().then(|| backlog.position(record.end));
                let write = |text: &mut Vec<u8>| form.write(change, position.as_deref(), text);
                if record.batch.bytes() < limits::SHARED_REPLY {
                    text.clear();
                    write(&mut text);
                    output.push(&text);
                } else {
                    let place = (record.end, Place::One(place, position.is_some()));
                    output.push_shared(&self.listeners.written(place, write));
                }
            }
            from = record.end;
            if output.len() - begun >= limits::CHANGES_PENDING {
                break;
            }
        }
        listener.note_read(from);
        Reading::More
    }

    /// Stops keeping the journal when no client has followed it for this many milliseconds. `steady` is
    /// the present millisecond of the steady clock.
    pub fn let_changes_go(&self, steady: u64, patience: u64) {
        let Some(backlog) = self.journal.changes().filter(|backlog| backlog.is_on()) else {
            return;
        };
        if !self.listeners.is_empty() {
            backlog.note_use(steady);
        } else if backlog.unused_for(steady) > patience {
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
        let position = self.journal.changes()?.position(self.listeners.heard());
        wait.claim().then(|| no_changes(&position, wait.resp3))
    }
}

/// Whether a record has many changes, together long and each of them short.
fn is_many_small(record: &Record, changes: usize) -> bool {
    let bytes = record.batch.bytes();
    bytes >= limits::SHARED_REPLY && bytes / limits::SHARED_REPLY < changes
}

/// The reply of CHANGES to a client that has waited for these changes. Copies share it if it is large.
fn first_changes(telling: &Telling<'_, '_>, places: &[usize], resp3: bool) -> Output {
    let mut output = Output::default();
    let mut reply = Reply::new(&mut output, resp3);
    reply.array(2);
    reply.bulk(telling.position.as_bytes());
    reply.array(places.len());
    for (at, &place) in places.iter().enumerate() {
        let position = (at + 1 == places.len()).then_some(telling.position);
        telling.changes[place].reply(position, &mut reply);
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
