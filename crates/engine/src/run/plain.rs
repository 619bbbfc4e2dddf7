//! The short path of a command: keys that it names, no waiting client, nothing unusual going on.
//!
//! Nearly every command of nearly every server takes it. Each condition here stands for checks and
//! steps of [`Engine::execute`] that would do nothing when the condition is met. A command that fails a
//! condition has done nothing yet, and takes the long path from its beginning.
//!
//! Commands that one connection has sent one after another take it together, so that what they have in
//! common is checked once.

use std::sync::atomic::Ordering::Relaxed;

use base::limits::BROUGHT_NEAR;
use resp::output::Output;
use resp::reply::Reply;
use smallvec::SmallVec;
use store::Key;
use store::gate::Presence;

use crate::command::{
    BLOCKING, CLOSES_GATES, Command, FOLLOWS, INTERNAL, PROTECTED, READS_BY_PATTERN, SCRIPT,
    WHOLE_KEYSPACE,
};
use crate::engine::{Context, Engine, Row};
use crate::handler::args::Args;
use crate::handler::db::Db;
use crate::reclaim::eviction;
use crate::run::authority::Authority;
use crate::run::request::{Request, Requests};
use crate::run::slots::slots_of;
use crate::run::turn::Turn;
use crate::session::Session;

/// Flags of commands that wait, reach further than the key that they name, or may be refused.
const UNUSUAL: crate::command::Flags = BLOCKING
    | CLOSES_GATES
    | FOLLOWS
    | INTERNAL
    | PROTECTED
    | READS_BY_PATTERN
    | SCRIPT
    | WHOLE_KEYSPACE;

/// Nanoseconds after which commands no longer follow each other here, so that the caller looks at the time.
const LONG_NS: u64 = 20_000_000;

/// Nanoseconds for which commands that follow each other have one time.
const ONE_TIME_NS: u64 = 500_000;

/// Whether a command may take the short path; `has_keys` says that it has keys, or none where its
/// arguments are too few.
pub(crate) fn is_plain(command: &Command, has_keys: bool) -> bool {
    // GET of a key over HTTP is as simple as GET, and as frequent.
    if (command.parent, command.name) == (Some("http"), "get") {
        return has_keys;
    }
    let has_subcommands = command.parent.is_some() || !command.subcommands.is_empty();
    has_keys && !has_subcommands && command.reach.is_none() && !command.has(UNUSUAL)
}

/// Members that one command alone has to name to have them brought near.
const MANY_MEMBERS: usize = 16;

/// The command with its row, if it is one that may take the short path where nothing is the matter.
#[inline]
fn short(requests: &impl Requests, index: usize) -> Option<(&'static Row, Request<'_>)> {
    if index >= requests.count() {
        return None;
    }
    let request = requests.at(index);
    // A command whose arguments are too few or too many has no key here.
    let row = request.row.filter(|row| row.plain && !request.keys.is_empty())?;
    Some((row, request))
}

/// Brings near the members that a command names, and those behind it that have the same key, which is
/// locked. Returns the first command that is not among them.
fn bring_members_near(db: &Db<'_>, requests: &impl Requests, first: usize, until: usize) -> usize {
    let begins = requests.at(first);
    let [key] = begins.keys else { return first + 1 };
    let mut names: SmallVec<[&[u8]; BROUGHT_NEAR]> = SmallVec::new();
    let mut next = first;
    while next < until
        && names.len() < BROUGHT_NEAR
        && let Some((row, request)) = short(requests, next)
        && let (Some((from, step)), [own]) = (row.command.members, request.keys)
        && (own.hash, own.slot) == (key.hash, key.slot)
    {
        let mut at = usize::from(from);
        while names.len() < BROUGHT_NEAR
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
        if let Some(entry) = db.held.find(db.index, &key) {
            entry.value().bring_near(&names);
        }
    }
    next
}

impl Engine {
    /// Runs commands of a connection on the short path, up to the first that has to take the long one, of
    /// which nothing was touched then. Returns how many have run. It ends too when the output is over
    /// its limit.
    pub fn execute_plainly(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        requests: &mut impl Requests,
        presence: Presence<'_>,
        output: &mut Output,
    ) -> usize {
        let mut done = 0;
        let begun = turn.effects.last_end;
        while let Some((row, _)) = short(requests, done) {
            if !(turn.plain && session.is_plain()) {
                break;
            }
            let limited = turn.config.maxmemory > 0;
            if limited && eviction::admit(self, presence, turn, session, row.command).is_err() {
                break;
            }
            // A command beyond the limit makes room before the next one.
            let until = if limited { done + 1 } else { usize::MAX };
            turn.advance();
            let ran = self.run_plainly(turn, session, (requests, done, until), presence, output);
            self.clean_up(presence, turn);
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

    /// Runs commands from `begin` on, the last of them before `until`, or as long as what has run leaves
    /// nothing to do besides. Returns how many.
    fn run_plainly(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        (requests, begin, until): (&mut impl Requests, usize, usize),
        presence: Presence<'_>,
        output: &mut Output,
    ) -> usize {
        let until = until.min(begin.saturating_add(turn.commands_to_sample()));
        let (resp3, database) = (session.resp3, session.database);
        let touch = !session.no_touch;
        let held = self.keyspace.hold_none(presence, turn.clock);
        let Some((row, _)) = short(requests, begin) else { return 0 };
        let (parts, effects) = turn.parts();
        let mut cx = Context {
            db: Db::new(parts, effects, database, held, touch, false),
            reply: Reply::new(output, resp3),
            session,
            engine: self,
            row,
            authority: Authority::Ordinary(presence),
            nested: false,
            busy: None,
            block: None,
        };
        let (mut next, mut near) = (begin, begin);
        let started = cx.db.effects.last_end;
        while next < until
            && let Some((row, request)) = short(requests, next)
        {
            let held = &mut cx.db.held;
            let is_free = !self.pause.is_on(cx.db.steady)
                && match request.keys {
                    [key] => held.try_go_on(key.slot) && held.attachment(key.slot).is_none(),
                    keys => held.try_go_on_with(&slots_of(keys)) && held.is_bare(),
                };
            if !is_free {
                // Or somebody watches a key there, or waits for one.
                break;
            }
            if next >= near && row.command.members.is_some() {
                near = bring_members_near(&cx.db, requests, next, until);
            }
            let from = cx.reply.output().end();
            cx.session.client.last_command.store(row.id + 1, Relaxed);
            cx.run_handler(row, &mut Args::new(request.argv, request.keys));
            debug_assert!(cx.block.is_none(), "it does not wait");
            debug_assert!(cx.db.effects.ready.is_empty(), "nobody waits for its key");
            debug_assert!(cx.db.held.missed().is_none(), "it has reached no further");
            let appended = self.settle(&mut cx.db);
            if appended > 0 {
                cx.session.written_to = appended;
            }
            next += 1;
            if cx.db.effects.defers_replies {
                cx.note_dependence();
                requests.defer_reply(from, cx.session.depends_on);
            }
            cx.db.held.let_go();
            let is_long = cx.db.effects.last_end.since_ns(started) > ONE_TIME_NS;
            if is_long || cx.db.effects.leave_work() || cx.reply.output().is_over_limit() {
                break;
            }
        }
        next - begin
    }

    /// Whether the server is in no state that makes commands be refused or wait, as far as that does
    /// not change within a turn.
    pub(crate) fn is_usual(&self, turn: &Turn) -> bool {
        let effects = &turn.effects;
        let stands_still = self.loading.is_on() || self.saving.stops_writes(&turn.config);
        !(stands_still || effects.journal_failed || turn.writes_wait || turn.beside_script)
    }
}
