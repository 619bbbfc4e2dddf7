//! The fast path of a command: keys that it names, no waiting client, nothing unusual going on.
//!
//! Nearly every command of nearly every server takes it. Each condition here stands for checks and
//! steps of [`Engine::execute`] that would do nothing when the condition is met. A command that
//! fails a condition has done nothing yet, and takes the slow path from its beginning.
//!
//! Commands that one connection has sent one after another take it together, so that what they have
//! in common is checked once.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits::PREFETCH_MAX;
use resp::output::Output;
use smallvec::SmallVec;
use store::Key;
use store::gate::Pinned;

use crate::admission::{allowed_shortly, brings};
use crate::command::{self, args::Args};
use crate::db::Db;
use crate::db::expiry::Expiry;
use crate::db::slot_access::SlotAccess;
use crate::engine::{Context, Engine, Row};
use crate::session::Session;
use crate::turn::Turn;
use crate::turn::request::{Request, Requests};
use crate::turn::slots::slots_of;

/// Nanoseconds after which commands no longer follow each other here, so that the caller looks at
/// the time.
const LONG_NS: u64 = 20_000_000;

/// Nanoseconds for which commands that follow each other have one time.
const ONE_TIME_NS: u64 = 500_000;

/// Members that one command alone has to name to have them prefetched.
const MANY_MEMBERS: usize = 16;

/// The command with its row, if it is one that may take the fast path where nothing is the matter.
#[inline]
fn fast_request(requests: &impl Requests, index: usize) -> Option<(&'static Row, Request<'_>)> {
    if index >= requests.count() {
        return None;
    }
    let request = requests.at(index);
    // A command whose arguments are too few or too many has no key here.
    let row = request.row.filter(|row| row.fast_path && !request.keys.is_empty())?;
    Some((row, request))
}

/// Prefetches the members that a command names, and those behind it that have the same key, which
/// is locked. Returns the first command that is not among them.
fn prefetch_members(db: &Db<'_>, requests: &impl Requests, first: usize, until: usize) -> usize {
    let begins = requests.at(first);
    let [key] = begins.keys else { return first + 1 };
    let mut names: SmallVec<[&[u8]; PREFETCH_MAX]> = SmallVec::new();
    let mut next = first;
    while next < until
        && names.len() < PREFETCH_MAX
        && let Some((row, request)) = fast_request(requests, next)
        && let (Some((from, step)), [own]) = (row.command.members, request.keys)
        && (own.hash, own.slot) == (key.hash, key.slot)
    {
        let mut at = usize::from(from);
        while names.len() < PREFETCH_MAX
            && let Some(name) = request.argv.get(at)
        {
            names.push(name);
            at += usize::from(step);
        }
        next += 1;
    }
    if next > first + 1 || names.len() >= MANY_MEMBERS {
        let bytes = begins.argv.at(key.index as usize);
        let key = Key { bytes, hash: key.hash, slot: key.slot };
        if let Some(entry) = db.locked.find(db.index, &key) {
            entry.value().prefetch(&names);
        }
    }
    next
}

impl Engine {
    /// Runs commands of a connection on the fast path, up to the first that has to take the slow
    /// one, of which nothing was touched then. Returns how many have run. It ends too when the
    /// output is over its limit.
    pub fn execute_fast(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        requests: &mut impl Requests,
        pinned: Pinned<'_>,
        output: &mut Output,
    ) -> usize {
        let mut done = 0;
        let begun = turn.effects.last_end;
        while let Some((row, _)) = fast_request(requests, done) {
            if !self.admits_shortly(pinned, turn, session, row.command) {
                break;
            }
            // A command beyond the limit makes room before the next one.
            let until = if turn.config.maxmemory > 0 { done + 1 } else { usize::MAX };
            turn.advance();
            if let Some(view) = &turn.cluster
                && !self.cluster.may_serve_as(view, turn.monotonic_us)
                && session.link.is_none()
            {
                break;
            }
            let ran = self.run_fast(turn, session, (requests, done, until), pinned, output);
            self.clean_up(pinned, turn);
            if ran > 0 {
                let last = requests.at(done + ran - 1);
                turn.sample_keys(ran as u64, session.database, last.argv, last.keys);
            }
            done += ran;
            let is_long = turn.effects.last_end.since_ns(begun) > LONG_NS;
            if ran == 0 || is_long || output.is_over_limit() {
                break;
            }
        }
        done
    }

    /// Runs commands from `begin` on, up to `until`, as long as those that have run leave no
    /// further work. Returns how many have run.
    fn run_fast(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        (requests, begin, until): (&mut impl Requests, usize, usize),
        pinned: Pinned<'_>,
        output: &mut Output,
    ) -> usize {
        let until = until.min(begin.saturating_add(turn.commands_to_sample()));
        let touch = !session.no_touch;
        let is_replicated = session.link.is_some();
        // Replies to writes that are to be held take the slow path.
        let holds = session.durability.or_default(&turn.config).holds_replies();
        let refuses_writes = (turn.refuses_writes || holds) && !is_replicated;
        let is_restricted = session.user.is_restricted() && !is_replicated;
        let may_import = session.import.is_none() || self.is_of_nodes(session.user.account());
        let locked = self.keyspace.no_slots(pinned, turn.clock);
        let Some((row, _)) = fast_request(requests, begin) else { return 0 };
        let (parts, effects) = turn.parts();
        let import = session.import.as_ref().map(|own| Arc::clone(&own.import));
        effects.silent = import.is_some();
        let imports = is_replicated || import.is_some();
        let mut db = Db::new(parts, effects, session.database, locked, touch, imports);
        if import.is_some() {
            db.expiry = Expiry::Elsewhere;
        }
        let mut cx = Context::new(self, session, row, SlotAccess::Ordinary(pinned), db, output);
        let (mut next, mut near, mut known) = (begin, begin, None);
        let started = cx.db.effects.last_end;
        let is_server = is_replicated || import.is_some() || cx.session.user.is_server();
        let node = cx.db.cluster.filter(|_| !is_server);
        let reads_here = cx.session.reads_from_replica;
        while next < until
            && let Some((row, request)) = fast_request(requests, next)
        {
            if refuses_writes && row.command.has(command::WRITE) {
                break;
            }
            if is_restricted
                && !brings(cx.session, row.command)
                && !allowed_shortly(cx.session, row, &request, &mut known)
            {
                break;
            }
            if let Some(view) = node {
                let writes = row.command.has(command::WRITE);
                if !view.surely_serves(writes, reads_here, request.keys) {
                    break;
                }
            }
            if let Some(own) = &import
                && !(may_import && own.admits(request.keys.iter().map(|key| key.slot)))
            {
                break;
            }
            let locked = &mut cx.db.locked;
            let is_free = !self.pause.is_on(cx.db.monotonic)
                && match request.keys {
                    [key] => {
                        locked.try_lock_next(key.slot) && locked.attachment(key.slot).is_none()
                    }
                    keys => locked.try_lock_next_slots(&slots_of(keys)) && locked.is_bare(),
                };
            if !is_free {
                // Or somebody watches a key there, or waits for one.
                break;
            }
            if next >= near && row.command.members.is_some() {
                near = prefetch_members(&cx.db, requests, next, until);
            }
            let from = cx.reply.output().end();
            cx.session.client.last_command.store(row.id + 1, Relaxed);
            cx.run_handler(row, &mut Args::new(request.argv, request.keys));
            debug_assert!(cx.block.is_none(), "it does not wait");
            debug_assert!(cx.db.effects.ready.is_empty(), "nobody waits for its key");
            debug_assert!(cx.db.locked.missed().is_none(), "it has reached no further");
            if let Some(appended) = self.settle(&mut cx.db) {
                cx.session.write_offset = appended;
            }
            next += 1;
            if cx.db.effects.defers_replies && cx.session.durability.heeds_disk() {
                cx.note_dependence();
                requests.defer_reply(from, cx.session.depends_on);
            }
            cx.db.locked.release();
            let is_long = cx.db.effects.last_end.since_ns(started) > ONE_TIME_NS;
            if is_long || cx.db.effects.leave_work() || cx.reply.output().is_over_limit() {
                break;
            }
        }
        next - begin
    }
}
