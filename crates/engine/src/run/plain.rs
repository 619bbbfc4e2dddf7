//! The short path of a command: one key, no waiting client, nothing unusual going on.
//!
//! Nearly every command of nearly every server takes it. Each condition here stands for checks and
//! steps of [`Engine::execute`] that would do nothing when the condition is met. A command that fails a
//! condition has done nothing yet, and takes the long path from its beginning.

use std::sync::atomic::Ordering::Relaxed;

use resp::output::Output;
use resp::reply::Reply;
use store::gate::Presence;

use crate::command::{
    BLOCKING, CLOSES_GATES, Command, FOLLOWS, INTERNAL, PROTECTED, READS_BY_PATTERN, SCRIPT,
    WHOLE_KEYSPACE,
};
use crate::engine::{Context, Engine};
use crate::handler::args::Args;
use crate::handler::db::Db;
use crate::reclaim::eviction;
use crate::run::authority::Authority;
use crate::run::request::Request;
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

/// Whether a command may take the short path; `one_key` says that it has one key, or none if its
/// arguments are too few.
pub(crate) fn is_plain(command: &Command, one_key: bool) -> bool {
    let has_subcommands = command.parent.is_some() || !command.subcommands.is_empty();
    one_key && !has_subcommands && command.reach.is_none() && !command.has(UNUSUAL)
}

impl Engine {
    /// Runs a command of a connection the short way. Returns false if the command has to go the long
    /// way; then nothing was touched.
    #[inline]
    pub fn execute_plainly(
        &self,
        turn: &mut Turn,
        session: &mut Session,
        request: &Request<'_>,
        presence: Presence<'_>,
        output: &mut Output,
    ) -> bool {
        // A command with too few or too many arguments has no key here.
        let (Some(row), [key]) = (request.row, request.keys) else { return false };
        if !(row.plain && turn.plain && session.is_plain()) || self.pause.is_on(turn.steady) {
            return false;
        }
        let limited = turn.config.maxmemory > 0;
        if limited && eviction::admit(self, presence, turn, session, row.command).is_err() {
            return false;
        }
        let Some(held) = self.keyspace.try_hold_one(presence, key.slot, turn.clock) else {
            return false;
        };
        if held.attachment(key.slot).is_some() {
            // A client watches a key there, or waits for one.
            return false;
        }
        session.client.last_command.store(row.id + 1, Relaxed);
        let resp3 = session.resp3;
        let touch = !session.no_touch;
        let (parts, effects) = turn.parts();
        {
            let mut cx = Context {
                db: Db::new(parts, effects, session.database, held, touch, false),
                reply: Reply::new(output, resp3),
                session,
                engine: self,
                row,
                authority: Authority::Ordinary(presence),
                nested: false,
                busy: None,
                hears_itself: false,
                block: None,
                sync_wait: None,
            };
            cx.run_handler(row, &mut Args::new(request.argv, request.keys));
            debug_assert!(cx.block.is_none() && cx.sync_wait.is_none(), "it does not wait");
            debug_assert!(cx.db.effects.ready.is_empty(), "nobody waits for its key");
            debug_assert!(cx.db.held.missed().is_none(), "it has reached no further");
            let appended = self.settle(&mut cx.db);
            if appended > 0 {
                cx.session.written_to = appended;
            }
            if cx.db.effects.holds_replies {
                cx.note_dependence();
            }
            let Context { db: Db { held, .. }, .. } = cx;
            held.end();
        }
        self.clean_up(presence, turn);
        turn.sample_keys(session.database, request.argv, request.keys);
        true
    }

    /// Whether the server is in no state that makes commands be refused or wait, as far as that does
    /// not change within a turn.
    pub(crate) fn is_usual(&self, turn: &Turn) -> bool {
        let effects = &turn.effects;
        let stands_still = self.loading.is_on() || self.saving.stops_writes(&turn.config);
        !(stands_still || effects.journal_failed || turn.writes_wait || turn.beside_script)
    }
}
