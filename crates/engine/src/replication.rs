//! The part of the server in replication, as all threads see it: it is a primary, or the replica of
//! one.
//!
//! The part changes while the world is stopped, at the beginning of another term. A thread of the
//! host follows the primary. What it does belongs to the term in which it began: commands of a
//! link whose term is over are refused, so that no write of an old primary comes after the change.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use config::PrimaryAddress;
use parking_lot::{Condvar, Mutex};
use store::Keyspace;

use crate::journal::backlog::Position;
use crate::script::functions::Library;
use crate::session::attachment::Attachment;

/// How far the link of a replica is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LinkState {
    /// There is none: one is about to be made.
    #[default]
    Down,
    /// It is being made.
    Connecting,
    /// The replica receives all data, or takes it in.
    Syncing,
    /// The replica follows the stream.
    Up,
}

/// A full sync while data arrives.
#[derive(Clone, Copy, Default, Debug)]
pub struct SyncProgress {
    /// Bytes of the file, if the primary has said that.
    pub total: Option<u64>,
    /// Bytes of it that have arrived.
    pub received: u64,
    /// When the last of them did, in milliseconds of the monotonic clock.
    pub at: u64,
}

/// All data of a primary, before it takes the place of the present data.
pub struct Incoming {
    /// The data.
    pub keyspace: Keyspace<Attachment>,
    /// The libraries of functions.
    pub libraries: Vec<Library>,
    /// The history to which the data belongs, and the offset up to which it has everything;
    /// absent if the primary knows no offsets.
    pub position: Option<(String, u64)>,
    /// The database that is selected where the stream goes on, if one is known to be.
    pub selected: Option<usize>,
}

/// Why the last link of a replica has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkTrouble {
    /// In one line.
    pub reason: String,
    /// Another attempt would end in the same way: the data is not understood.
    pub lasts: bool,
}

/// A replica, as INFO and ROLE show it.
#[derive(Clone, Debug)]
pub struct ReplicaView {
    /// Its primary.
    pub primary: PrimaryAddress,
    /// Its link.
    pub link: LinkState,
    /// When the last byte came over the link, in milliseconds of the monotonic clock.
    pub heard_at: Option<u64>,
    /// Since when the link is down, if it was ever up.
    pub down_since: Option<u64>,
    /// A full sync that is under way.
    pub sync: Option<SyncProgress>,
    /// Why the last link of this term has ended, if none has worked since.
    pub trouble: Option<LinkTrouble>,
}

#[derive(Default)]
struct Part {
    primary: Option<PrimaryAddress>,
    link: LinkState,
    heard_at: Option<u64>,
    down_since: Option<u64>,
    sync: Option<SyncProgress>,
    trouble: Option<LinkTrouble>,
    /// The data is that of this history, so that its stream may go on after the applied offset.
    resumes: Option<String>,
    /// The history that the present one has grown out of, and the first offset that it does not
    /// share.
    earlier: Option<(String, u64)>,
    /// The last term in which the data became those of the primary, and how far its stream reached
    /// when it last let this replica go on in it. They outlive the term: who ends it looks at them
    /// afterwards.
    joined: Option<u64>,
    end: Option<u64>,
}

/// See the module's text.
#[derive(Default)]
pub struct Replication {
    part: Mutex<Part>,
    changed: Condvar,
    term: AtomicU64,
    /// This is a replica.
    follows: AtomicBool,
    /// Its link is up.
    is_up: AtomicBool,
    /// The offset after the last unit of the primary's stream that was applied.
    applied: AtomicU64,
    /// The offset up to which the stream has arrived.
    received: AtomicU64,
    /// What the offset of a primary is ahead of what it has written itself. It wraps around.
    ahead: AtomicU64,
    /// How often the stream has broken off, or got another name.
    breaks: AtomicU64,
    /// When the replica had applied all that had come, in milliseconds of the monotonic clock; 0 if
    /// that was never so in this term.
    in_step_at: AtomicU64,
    incoming: Mutex<Option<Incoming>>,
    /// The end of the journal when data of a primary last took the place of the present data.
    replaced_to: AtomicU64,
    /// Clients of a replica have changed its data beside the stream of its primary.
    differs: AtomicBool,
}

impl Replication {
    /// The part at the start.
    pub fn new(primary: Option<PrimaryAddress>) -> Replication {
        let replication = Replication::default();
        replication.follows.store(primary.is_some(), Relaxed);
        replication.part.lock().primary = primary;
        replication
    }

    /// Whether this is a replica.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.follows.load(Relaxed)
    }

    /// Whether this is a replica whose link is down, so that its data may be old.
    pub fn is_stale(&self) -> bool {
        self.is_replica() && !self.is_up.load(Relaxed)
    }

    /// The present term.
    pub fn term(&self) -> u64 {
        self.term.load(Relaxed)
    }

    /// The primary of a replica.
    pub fn primary(&self) -> Option<PrimaryAddress> {
        self.part.lock().primary.clone()
    }

    /// The term, and the primary to follow in it.
    pub fn assignment(&self) -> (u64, Option<PrimaryAddress>) {
        let part = self.part.lock();
        (self.term(), part.primary.clone())
    }

    /// Waits until a term is over, or so long.
    pub fn wait_for_change(&self, term: u64, longest: Duration) {
        let mut part = self.part.lock();
        if self.term() == term {
            self.changed.wait_for(&mut part, longest);
        }
    }

    /// Lets whoever waits for the end of a term look again.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// A replica as others see it.
    pub fn view(&self) -> Option<ReplicaView> {
        let part = self.part.lock();
        Some(ReplicaView {
            primary: part.primary.clone()?,
            link: part.link,
            heard_at: part.heard_at,
            down_since: part.down_since,
            sync: part.sync,
            trouble: part.trouble.clone(),
        })
    }

    /// The history that the present one has grown out of, and the first offset that it does not
    /// share.
    pub fn earlier(&self) -> Option<(String, u64)> {
        self.part.lock().earlier.clone()
    }

    /// The offset after the last unit that was applied.
    pub fn applied(&self) -> u64 {
        self.applied.load(Relaxed)
    }

    /// The offset up to which the stream has arrived.
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed).max(self.applied())
    }

    /// The offset of a server that has written so much itself since it began.
    pub fn offset(&self, written: u64) -> u64 {
        match self.is_replica() {
            true => self.applied(),
            false => written.wrapping_add(self.ahead.load(Relaxed)),
        }
    }

    /// A number that changes when the stream of this server breaks off or gets another name: before
    /// its next byte, while the world is stopped. Replicas that follow it have to ask anew.
    pub fn breaks(&self) -> u64 {
        self.breaks.load(Acquire)
    }

    /// The stream has broken off, or has another name: it begins now, with the next byte. Replicas
    /// that were left behind before are told apart by that from those that ask from here on. The
    /// world is stopped.
    pub fn note_break(&self) {
        self.breaks.fetch_add(1, Release);
    }

    // ---- The part changes -----------------------------------------------------------------------

    /// The history of a primary begins anew at this offset, with data that its stream has not led
    /// to. The server has written so much itself. The world is stopped.
    pub(crate) fn begin_anew(&self, offset: u64, written: u64) {
        self.replaced_to.store(written, Relaxed);
        self.part.lock().earlier = None;
        self.ahead.store(offset.wrapping_sub(written), Relaxed);
    }

    /// Begins a term as the replica of this primary. The server has written so much itself, and
    /// its history is `own`, if its writes were counted: the primary may have grown out of it. The
    /// world is stopped.
    pub(crate) fn begin_to_follow(
        &self,
        primary: PrimaryAddress,
        written: u64,
        own: Option<Position>,
    ) {
        let mut part = self.part.lock();
        if !self.is_replica() {
            let offset = own.as_ref().map_or_else(|| self.offset(written), |own| own.offset);
            self.applied.store(offset, Relaxed);
            self.received.store(offset, Relaxed);
            part.resumes = own.map(|own| own.history);
            self.differs.store(false, Relaxed);
        }
        *part = Part {
            primary: Some(primary),
            resumes: part.resumes.take(),
            earlier: part.earlier.take(),
            joined: part.joined,
            end: part.end,
            ..Part::default()
        };
        self.follows.store(true, Relaxed);
        self.begin_term();
    }

    /// Begins a term as a primary, whose history was `history` so far. Returns the offset at which
    /// its own begins: behind a gap if others that are as far lack something. The world is stopped.
    pub(crate) fn begin_to_lead(&self, history: String, written: u64) -> u64 {
        let mut part = self.part.lock();
        let differs = self.differs.swap(false, Relaxed);
        let (applied, offset) = (self.applied(), self.applied() + u64::from(differs));
        let earlier = (!differs).then_some((history, applied + 1));
        *part = Part { earlier, ..Part::default() };
        self.ahead.store(offset.wrapping_sub(written), Relaxed);
        self.follows.store(false, Relaxed);
        self.begin_term();
        offset
    }

    fn begin_term(&self) {
        self.is_up.store(false, Relaxed);
        self.in_step_at.store(0, Relaxed);
        self.term.fetch_add(1, Relaxed);
        self.changed.notify_all();
    }

    // ---- What the thread that follows says ------------------------------------------------------

    /// The position from which the stream can go on: a history, and the offset up to which the data
    /// has everything.
    pub fn resumes_at(&self) -> Option<(String, u64)> {
        let history = self.part.lock().resumes.clone()?;
        Some((history, self.applied()))
    }

    /// The primary of a term has let this replica go on in its stream, which reaches so far by now.
    pub fn note_end(&self, term: u64, end: Option<u64>) {
        let mut part = self.part.lock();
        if self.term() == term {
            part.end = end;
        }
    }

    /// Whether the data have become those of the primary of a term: it has let this replica go on
    /// in its stream, or all its data were taken in. Says how far the stream reached when the
    /// replica last went on in it, if the primary has told that; 0 after a copy of all data. The
    /// answer is there until another term has one.
    pub fn joined(&self, term: u64) -> Option<u64> {
        let part = self.part.lock();
        (part.joined == Some(term)).then(|| part.end.unwrap_or(0))
    }

    /// The link of a term has come so far, at this millisecond of the monotonic clock.
    pub fn set_link(&self, term: u64, link: LinkState, now: u64) {
        let mut part = self.part.lock();
        if self.term() != term {
            return;
        }
        let was_up = part.link == LinkState::Up;
        let is_up = link == LinkState::Up;
        if was_up && !is_up {
            part.down_since = Some(now);
        } else if is_up {
            part.down_since = None;
            part.trouble = None;
            part.joined = Some(term);
        }
        if link != LinkState::Syncing {
            part.sync = None;
        }
        if link == LinkState::Down {
            part.heard_at = None;
            self.received.store(self.applied(), Relaxed);
        }
        part.link = link;
        self.is_up.store(is_up, Relaxed);
    }

    /// The link of a term has ended, for this reason.
    pub fn note_trouble(&self, term: u64, trouble: LinkTrouble) {
        let mut part = self.part.lock();
        if self.term() == term {
            part.trouble = Some(trouble);
        }
    }

    /// Bytes have come over the link of a term.
    pub fn note_heard(&self, term: u64, now: u64) {
        let mut part = self.part.lock();
        if self.term() == term {
            part.heard_at = Some(now);
        }
    }

    /// Whether the link to the primary of this term has broken, less than so many milliseconds ago,
    /// and no other is there yet.
    pub fn has_lost_primary(&self, now: u64, within: u64) -> bool {
        let part = self.part.lock();
        let is_down = matches!(part.link, LinkState::Down | LinkState::Connecting);
        let since = part.down_since.filter(|_| is_down && self.is_replica());
        since.is_some_and(|since| now.saturating_sub(since) < within)
    }

    /// A part of all data has arrived.
    pub fn note_sync(&self, term: u64, progress: SyncProgress) {
        let mut part = self.part.lock();
        if self.term() == term {
            part.sync = Some(progress);
        }
    }

    /// The stream has arrived up to this offset.
    pub fn note_received(&self, offset: u64) {
        self.received.store(offset, Relaxed);
    }

    /// A unit of the stream of a term was applied, which ends at this offset.
    pub fn note_applied(&self, term: u64, offset: u64) {
        if self.term() == term {
            self.applied.store(offset, Relaxed);
        }
    }

    /// All that had come by this millisecond of the monotonic clock is applied.
    pub fn note_in_step(&self, term: u64, at: u64) {
        if self.term() == term {
            self.in_step_at.store(at, Relaxed);
        }
    }

    /// How many milliseconds ago the replica was known to be in step with its primary; nothing if
    /// it never was in this term.
    pub fn staleness(&self, monotonic: u64) -> Option<u64> {
        let at = self.in_step_at.load(Relaxed);
        (at > 0).then(|| monotonic.saturating_sub(at))
    }

    /// A client of this replica has changed its data: a server that is as far in the stream of the
    /// primary may have others.
    pub(crate) fn note_difference(&self) {
        self.differs.store(true, Relaxed);
    }

    /// What the primary of a term sends does not follow on the data: no stream does.
    pub fn forget_stream(&self, term: u64) {
        let mut part = self.part.lock();
        if self.term() == term {
            part.resumes = None;
        }
    }

    /// The primary has another name for the history of the data. `known` is the one up to now.
    pub fn note_renamed(&self, known: String, history: &str) {
        let mut part = self.part.lock();
        part.earlier = Some((known, self.applied() + 1));
        part.resumes = Some(history.to_owned());
        part.joined = Some(self.term());
    }

    /// The offset of a primary is so much ahead of what it has written itself.
    pub(crate) fn set_ahead(&self, ahead: u64) {
        self.ahead.store(ahead, Relaxed);
    }

    /// The data that was loaded at the start belongs to this position.
    pub fn note_loaded(&self, position: &Position) {
        self.part.lock().resumes = Some(position.history.clone());
        self.applied.store(position.offset, Relaxed);
        self.received.store(position.offset, Relaxed);
    }

    /// All data has arrived, and is about to be taken in by a command.
    pub fn offer(&self, incoming: Incoming) {
        *self.incoming.lock() = Some(incoming);
    }

    /// The data that was offered.
    pub fn take_incoming(&self) -> Option<Incoming> {
        self.incoming.lock().take()
    }

    /// Data has taken the place of the present data, when the server had written so much itself: it
    /// belongs to this position.
    pub fn note_taken_in(&self, position: Option<&(String, u64)>, written: u64) {
        self.replaced_to.store(written, Relaxed);
        self.differs.store(false, Relaxed);
        let mut part = self.part.lock();
        part.resumes = position.map(|(history, _)| history.clone());
        (part.earlier, part.end, part.joined) = (None, None, Some(self.term()));
        let offset = position.map_or(0, |(_, offset)| *offset);
        self.applied.store(offset, Relaxed);
        self.received.store(offset, Relaxed);
    }

    /// Whether a write that has ended at this offset of the journal may have gone, because data of
    /// a primary has taken the place of what this server had. No replica that has this server's
    /// stream up to there says anything of the write.
    pub fn may_have_lost(&self, write_offset: u64) -> bool {
        (1..=self.replaced_to.load(Relaxed)).contains(&write_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primary(port: u16) -> PrimaryAddress {
        PrimaryAddress { host: b"h".to_vec(), port }
    }

    #[test]
    fn what_belongs_to_an_old_term_changes_nothing() {
        let replication = Replication::new(None);
        replication.begin_to_follow(primary(1), 10, None);
        let term = replication.term();
        replication.set_link(term, LinkState::Up, 5);
        assert!(!replication.is_stale());
        replication.begin_to_follow(primary(2), 10, None);
        replication.set_link(term, LinkState::Up, 5);
        replication.note_applied(term, 99);
        assert!(replication.is_stale());
        assert_eq!((replication.applied(), replication.offset(10)), (10, 10));
        assert_eq!(replication.view().map(|view| view.primary), Some(primary(2)));
    }

    #[test]
    fn offsets_go_on_after_a_promotion() {
        let replication = Replication::new(Some(primary(1)));
        let data = (String::from("history"), 1000);
        replication.note_taken_in(Some(&data), 10);
        replication.note_applied(replication.term(), 1500);
        assert_eq!(replication.resumes_at(), Some((String::from("history"), 1500)));
        replication.begin_to_lead("history".into(), 7);
        assert_eq!((replication.offset(7), replication.offset(9)), (1500, 1502));
        assert_eq!(replication.earlier(), Some((String::from("history"), 1501)));
        replication.begin_to_follow(primary(1), 9, None);
        assert_eq!(replication.resumes_at(), None, "nobody has counted what it has written");
        assert_eq!(replication.applied(), 1502);
        replication.begin_to_lead("history".into(), 9);
        let own = Position { history: "own".into(), offset: 1510 };
        replication.begin_to_follow(primary(1), 17, Some(own));
        assert_eq!(replication.resumes_at(), Some((String::from("own"), 1510)));
        // What it writes itself as a replica is in no stream.
        replication.note_difference();
        assert_eq!(replication.begin_to_lead("own".into(), 17), 1511);
        assert_eq!((replication.offset(17), replication.earlier()), (1511, None));
    }

    #[test]
    fn data_become_those_of_the_primary_when_a_link_stands_or_all_were_taken_in() {
        let replication = Replication::new(None);
        // What a primary has written is its own.
        let own = Position { history: "own".into(), offset: 700 };
        replication.begin_to_follow(primary(1), 700, Some(own));
        let term = replication.term();
        assert_eq!(replication.joined(term), None);
        replication.set_link(term, LinkState::Connecting, 1);
        replication.set_link(term, LinkState::Syncing, 2);
        replication.note_end(term, Some(1000));
        assert_eq!(replication.joined(term), None);
        replication.set_link(term, LinkState::Up, 3);
        replication.set_link(term, LinkState::Down, 4);
        // Whoever ends the term asks afterwards.
        replication.begin_to_follow(primary(2), 0, None);
        assert_eq!(replication.joined(term), Some(1000));
        replication.note_end(term, Some(2000));
        replication.set_link(term, LinkState::Up, 5);
        assert_eq!(replication.joined(term), Some(1000), "its term is over");
        let next = replication.term();
        assert_eq!(replication.joined(next), None);
        // Its name is the first that a replica takes over.
        replication.note_renamed("own".into(), "other");
        assert_eq!((replication.joined(next), replication.joined(term)), (Some(1000), None));
        replication.begin_to_follow(primary(3), 0, None);
        replication.note_taken_in(Some(&("history".into(), 500)), 10);
        assert!(replication.may_have_lost(10) && !replication.may_have_lost(11));
        assert!(!replication.may_have_lost(0), "there was no write");
        assert_eq!(replication.joined(replication.term()), Some(0));
    }

    #[test]
    fn trouble_is_told_until_a_link_works_or_the_term_is_over() {
        let replication = Replication::new(Some(primary(1)));
        let told = || replication.view().and_then(|view| view.trouble);
        let trouble = LinkTrouble { reason: String::from("it refuses"), lasts: false };
        replication.note_trouble(0, trouble.clone());
        replication.set_link(0, LinkState::Connecting, 1);
        assert_eq!(told(), Some(trouble.clone()));
        replication.set_link(0, LinkState::Up, 2);
        assert_eq!(told(), None);
        replication.note_trouble(0, trouble.clone());
        replication.begin_to_follow(primary(2), 0, None);
        replication.note_trouble(0, trouble);
        assert_eq!(told(), None, "it is that of another term");
    }

    #[test]
    fn a_link_that_was_never_up_is_down_since_no_time() {
        let replication = Replication::new(Some(primary(1)));
        let down_since = || replication.view().and_then(|view| view.down_since);
        for link in [LinkState::Connecting, LinkState::Syncing, LinkState::Down] {
            replication.set_link(0, link, 1);
            assert_eq!(down_since(), None);
        }
        replication.set_link(0, LinkState::Up, 2);
        replication.set_link(0, LinkState::Down, 3);
        replication.set_link(0, LinkState::Connecting, 4);
        assert_eq!(down_since(), Some(3));
    }
}
