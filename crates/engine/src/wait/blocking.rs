//! Blocking commands: how clients begin to wait and how they are served.
//!
//! A waiter lies in the slots of its keys. A command that makes such a key appear serves the
//! waiters before it unlocks, in the order in which they came. It runs the waiter's own command for
//! that key, and the waiter's connection receives the reply. Serving BLMOVE changes a further key,
//! which may satisfy further waiters: [`acquire_destinations`] locks their slots beforehand.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use resp::output::Output;
use resp::reply::Reply;
use store::gate::Pinned;
use store::reserve::Reservation;
use store::{Entry, Key, LockedSlots, ValueRef};

use crate::admission;
use crate::db::Db;
use crate::db::effects::Woken;
use crate::db::slot_access::SlotAccess;
use crate::engine::{Context, Engine};
use crate::session::Session;
use crate::session::attachment::{Attachment, Waiter};
use crate::session::awaited::{Awaited, Wait};
use crate::session::left_behind::remove_waiter;
use crate::turn::request::Outcome;
use crate::turn::slots::Slots;

/// Locks the slots of keys that serving any waiter of the held slots may change, then the slots for
/// the waiters there, and so on. Returns whether all of them were free.
pub(crate) fn acquire_destinations(
    locked: &LockedSlots<'_, Attachment>,
    reservation: Option<&Reservation>,
) -> bool {
    let mut to_look_at = Slots::new();
    locked.each_slot(|slot| to_look_at.push(slot));
    while let Some(slot) = to_look_at.pop() {
        let Some(attachment) = locked.attachment(slot) else { continue };
        for destination in attachment.all_destinations() {
            let destination = base::crc::key_slot(destination);
            if locked.contains(destination) {
                continue;
            }
            if !locked.try_acquire(destination, reservation) {
                return false;
            }
            to_look_at.push(destination);
        }
    }
    true
}

/// Serves the waiters of all keys that became ready, and of keys that this makes ready.
///
/// That happens after the command, which began at `begun`: a key that has expired meanwhile serves
/// no client.
#[inline]
pub(crate) fn serve_ready(cx: &mut Context<'_>, begun: Ticks) {
    if !cx.db.effects.ready.is_empty() {
        cx.db.let_time_pass(begun.elapsed_ns() / 1_000_000);
        serve_all(cx);
    }
}

fn serve_all(cx: &mut Context<'_>) {
    if cx.engine.scripts.slow.is_stopping() {
        // A script that was ended in the middle may have made them ready.
        while cx.db.effects.ready.take().is_some() {}
    }
    while let Some(ready) = cx.db.effects.ready.take() {
        let key = Key::new(&ready.key);
        // A client that waits for something else, or was just claimed by another thread, stays in
        // the queue.
        let mut passed = 0;
        while may_serve(cx, ready.database, &key)
            && let Some(waiter) = waiter_at(cx, ready.database, &key, passed)
        {
            let value = cx.db.peek_in(ready.database, &key).map(Entry::value);
            if waiter.wait.is_met(value, &key) && waiter.wait.claim() {
                serve(cx, &key, &waiter);
            } else {
                passed += 1;
            }
        }
    }
}

fn waiter_at(cx: &Context<'_>, database: usize, key: &Key<'_>, place: usize) -> Option<Waiter> {
    cx.db.locked.attachment(key.slot)?.waiter(database, key.bytes, place)
}

/// Whether any client can be waiting for the value under a key now.
fn may_serve(cx: &Context<'_>, database: usize, key: &Key<'_>) -> bool {
    match cx.db.peek_in(database, key).map(Entry::value) {
        Some(ValueRef::List(_) | ValueRef::Zset(_)) => true,
        _ => cx.db.locked.attachment(key.slot).is_some_and(Attachment::has_stream_waiters),
    }
}

/// Serves clients that wait for keys that no command changed, but expiry or eviction, and settles
/// the effects.
pub(crate) fn serve_unasked(engine: &Engine, mut db: Db<'_>) {
    let pinned = db.locked.pinned();
    let any_waits = db.effects.ready.first().is_some_and(|ready| {
        let key = Key::new(&ready.key);
        let attachment = db.locked.attachment(key.slot);
        attachment.is_some_and(|own| own.has_waiters(ready.database, key.bytes))
    });
    if !any_waits {
        while db.effects.ready.take().is_some() {}
        engine.settle(&mut db);
        return;
    }
    // No client runs a command here.
    let mut session = Session::internal();
    let mut output = Output::default();
    let (row, slot_access) = (&engine.commands.rows()[0], SlotAccess::Ordinary(pinned));
    let mut cx = Context::new(engine, &mut session, row, slot_access, db, &mut output);
    cx.nested = true;
    serve_all(&mut cx);
    engine.settle(&mut cx.db);
}

/// The key that serves a waiter when `ready` has what it waits for: the first of its keys that
/// does, as if its command ran now. This command has not changed keys whose slots others hold, so
/// these have nothing for it.
fn first_of<'k>(cx: &Context<'_>, ready: &Key<'k>, wait: &'k Wait) -> Key<'k> {
    let before = wait.keys.iter().take_while(|key| ***key != *ready.bytes);
    let mut before = before.map(|key| Key::new(key)).filter(|key| cx.db.locked.contains(key.slot));
    let holds_something =
        |key: &Key<'_>| wait.is_met(cx.db.peek_in(wait.database, key).map(Entry::value), key);
    before.find(holds_something).unwrap_or(*ready)
}

/// Serves one claimed waiter when a key is ready.
fn serve(cx: &mut Context<'_>, ready: &Key<'_>, waiter: &Waiter) {
    let wait = &waiter.wait;
    let key = &first_of(cx, ready, wait);
    remove_from_locked(cx, wait);
    let mut output = Output::default();
    let mut session = Session::of_waiter(waiter);
    let own_database = std::mem::replace(&mut cx.db.index, wait.database);
    let own_nested = std::mem::replace(&mut cx.nested, true);
    // What it gets by a command of another server's stream is no part of that stream.
    let journaling = cx.db.effects.journaling || cx.db.effects.unit.is_some();
    let journaling = std::mem::replace(&mut cx.db.effects.journaling, journaling);
    // It does not concern the connection whose command makes the key ready.
    let (busy, block) = (cx.busy.take(), cx.block.take());
    cx.with_session(&mut session, &mut output, |cx, _| {
        let Awaited::Key(_, row) = wait.awaited else { unreachable!("it waits for a key") };
        let command = cx.engine.commands.rows()[row].command;
        let serve = command.serve;
        let serve = serve.expect("the row of a command that waits for keys says how it is served");
        let admitted =
            admission::admit_served(cx, &cx.engine.commands.rows()[row], wait.argv.view());
        match admitted.and_then(|()| serve(cx, key, wait.argv.view())) {
            Ok(served) => debug_assert!(served, "the key holds what the waiter waits for"),
            Err(error) => {
                cx.db.stats.error_replies.add(1);
                cx.engine.stats.count_error(&error.code());
                cx.reply.error(error.as_bytes());
            }
        }
    });
    (cx.busy, cx.block) = (busy, block);
    cx.db.index = own_database;
    cx.nested = own_nested;
    cx.db.effects.journaling = journaling;
    cx.db.effects.woken.push(Woken::by_command(waiter.clone(), output));
}

impl Context<'_> {
    /// Runs `action` with another session in place of the connection's, on the same locks; with
    /// `output` for its replies, beside the connection's own reply.
    pub(crate) fn with_session<T>(
        &mut self,
        session: &mut Session,
        output: &mut Output,
        action: impl FnOnce(&mut Context<'_>, &mut Reply<'_>) -> T,
    ) -> T {
        let (keyspace, pinned) = (&self.engine.keyspace, self.slot_access.pinned());
        let locks = std::mem::replace(&mut self.db.locked, keyspace.no_slots(pinned, 0)).detach();
        let db = Db {
            locked: keyspace.attach(pinned, locks),
            index: self.db.index,
            now: self.db.now,
            now_us: self.db.now_us,
            monotonic: self.db.monotonic,
            config: self.db.config,
            cluster: self.db.cluster,
            effects: self.db.effects,
            stats: self.db.stats,
            packed_threshold: self.db.packed_threshold,
            clock: self.db.clock,
            touch: self.db.touch,
            expire_by: self.db.expire_by,
            expiry: self.db.expiry,
        };
        let mut inner = Context::new(self.engine, session, self.row, self.slot_access, db, output);
        inner.nested = true;
        inner.busy = self.busy;
        // A host that has been asked already answers the same wait.
        inner.block = self.block.take();
        let result = action(&mut inner, &mut self.reply);
        self.block = inner.block.take();
        let locks = inner.db.locked.detach();
        self.db.locked = keyspace.attach(pinned, locks);
        result
    }
}

/// Takes a waiter out of the locked slots. At its other slots it will be found claimed, and dropped
/// then.
fn remove_from_locked(cx: &mut Context<'_>, wait: &Arc<Wait>) {
    for key in &wait.keys {
        let slot = base::crc::key_slot(key);
        if cx.db.locked.contains(slot) {
            remove_waiter(&mut cx.db.locked, slot, key, wait);
        }
    }
}

/// Puts a client that wants to wait into the slots of its keys, which are still locked.
#[inline]
pub(crate) fn begin_to_wait(cx: &mut Context<'_>) -> Outcome {
    let Some(waiter) = cx.block.take() else { return Outcome::Done };
    for key in &waiter.wait.keys {
        let slot = base::crc::key_slot(key);
        let attachment = cx.db.locked.attachment_mut(slot).get_or_insert_default();
        attachment.add_waiter(key, &waiter);
    }
    let wait = Arc::clone(&waiter.wait);
    cx.session.show_blocked(true);
    *cx.session.client.wait.lock() = Some(Arc::clone(&wait));
    cx.engine.blocked_clients.fetch_add(1, Relaxed);
    if matches!(wait.awaited, Awaited::Host)
        && let Some((reply, write_offset)) = wait.take_answer(Output::new(), 0)
    {
        // The host was quicker than the command. What the command itself has written, the session
        // notes.
        cx.db.effects.woken.push(Woken { waiter, reply, write_offset: Some(write_offset) });
    }
    cx.engine.look_again(&cx.session.client);
    Outcome::Blocked(wait)
}

impl Engine {
    /// Ends a client's waiting: it was served, has timed out, was unblocked or has gone. The caller
    /// has claimed the wait or found it claimed, and holds no slot.
    pub fn end_wait(&self, pinned: Pinned<'_>, session: &Session, wait: &Arc<Wait>) {
        debug_assert!(!wait.is_waiting(), "nobody else ends it from now on");
        let clock = base::clock::now_us();
        for key in &wait.keys {
            self.take_out_waiter(pinned, wait, key, clock);
        }
        match &wait.awaited {
            Awaited::Changes(filter) => self.followers.remove_waiter(filter, wait),
            Awaited::Event(path) => self.nodes.remove(path, wait),
            Awaited::Key(..) | Awaited::Host | Awaited::Refusal(_) | Awaited::Sync(_) => {}
        }
        self.show_waiting_ended(session);
    }

    /// A client that has left nothing elsewhere, or has taken it out, waits no more.
    pub(crate) fn show_waiting_ended(&self, session: &Session) {
        session.show_blocked(false);
        *session.client.wait.lock() = None;
        self.blocked_clients.fetch_sub(1, Relaxed);
    }

    /// Clients that wait.
    pub fn blocked_clients(&self) -> u64 {
        self.blocked_clients.load(Relaxed)
    }
}
