//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.
//!
//! A transaction whose commands name all their keys is one command over the union of their slots;
//! the locks were taken before EXEC's handler runs. Others run as an exclusive command, or with the
//! world stopped: see `run/call.rs` of the engine.

use engine::admission;
use engine::command::args::{Args, KeyAt};
use engine::command::error::{CommandError, CommandResult};
use engine::command::keys::collect_keys;
use engine::command::{
    ALLOW_BUSY, Docs, FAST, Flags, Group, IN_STREAM, LOADING, LOOKS_ALL, NEVER_QUEUED, NO_KEYS,
    NOSCRIPT, OF_CONNECTION, RUNS_QUEUED, SKIP_SLOWLOG, STALE, docs, key,
};
use engine::db::slot_access::SlotAccess;
use engine::engine::{Command, Context, Family, row};
use engine::persistence::durability::SEES_ALL;
use engine::turn::expansion::stops_the_world;

/// The error for a command that would have to wait in the middle of its transaction.
const TOO_LATE: CommandError = CommandError::text(
    "ERR this command cannot follow a script in a transaction that has run for busy-reply-threshold \
     while another script runs as long",
);

/// Attempts to close the gates again that a script of the transaction has opened: other threads
/// leave theirs within milliseconds, unless a script runs there.
const TRIES_MAX: usize = 25;

/// MULTI
fn multi(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.session.transaction.is_some() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    cx.session.transaction = Some(Box::default());
    cx.session.publish_state();
    cx.reply.ok();
    Ok(())
}

/// DISCARD
fn discard_command(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.session.transaction.is_none() {
        return Err(CommandError::text("ERR DISCARD without MULTI"));
    }
    cx.end_transaction();
    cx.reply.ok();
    Ok(())
}

/// EXEC
fn exec(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let Some(transaction) = cx.session.transaction.take() else {
        return Err(CommandError::text("ERR EXEC without MULTI"));
    };
    let stale = cx.session.watch.as_ref().is_some_and(|watch| watch.is_stale(&cx.db));
    cx.forget_watch();
    if transaction.aborted || stale {
        let aborted = transaction.aborted;
        cx.session.publish_state();
        cx.engine.free_transaction(transaction);
        if aborted {
            return Err(CommandError::EXEC_ABORT);
        }
        cx.reply.null_array();
        return Ok(());
    }
    // Until the end other clients see that it is in MULTI, and so does CLIENT LIST in the
    // transaction itself.
    let row = cx.row;
    cx.reply.array(transaction.commands.len());
    cx.nested = true;
    let mut sees_all = false;
    let mut keys: Vec<KeyAt> = Vec::new();
    for queued in &transaction.commands {
        let argv = queued.argv.view();
        keys.clear();
        let row = &cx.engine.commands.rows()[queued.row];
        collect_keys(queued.command, argv, &mut keys);
        cx.db.index = cx.session.database;
        if let Err(error) = admission::admit_queued(cx, row, argv, &keys) {
            cx.reply.error(error.as_bytes());
            continue;
        }
        if stops_the_world(queued.command, argv) && !keep_others_out(cx) {
            // A script of the transaction has already run for so long that others were let in, and
            // one of them runs for long as well.
            cx.reply.error(TOO_LATE.as_bytes());
            continue;
        }
        cx.run_handler(row, &mut Args::new(argv, &keys));
        cx.engine.free_removed(cx.db.effects);
        sees_all |= queued.command.has(SEES_ALL);
        // The commands run to the end, whatever happens to their replies.
        cx.reply.output().lose_what_exceeds(0);
    }
    if sees_all {
        cx.depend_on_all();
    }
    cx.nested = false;
    cx.row = row;
    cx.session.publish_state();
    cx.engine.free_transaction(transaction);
    // The journal gets the effects of the commands.
    cx.propagate_nothing();
    Ok(())
}

/// Makes sure that no other thread is inside its gate, for a transaction that began so.
fn keep_others_out(cx: &Context<'_>) -> bool {
    let locked = &cx.db.locked;
    let is_kept = || match cx.slot_access {
        SlotAccess::Stopped(stopped) => locked.keep_others_out(stopped),
        SlotAccess::Ordinary(_) | SlotAccess::Reserved(..) => locked.is_everything(),
    };
    (0..TRIES_MAX).any(|_| is_kept())
}

/// WATCH key [key ...]
fn watch(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if cx.session.transaction.is_some() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    for key in args.rest_as_keys()? {
        cx.watch(&key);
    }
    cx.reply.ok();
    Ok(())
}

/// UNWATCH
fn unwatch(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.forget_watch();
    cx.reply.ok();
    Ok(())
}

/// Flags of commands that change the state of their connection.
const OWN: Flags = OF_CONNECTION | NOSCRIPT | LOADING | STALE;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Transactions.rows([
    row("multi", multi, 1, OWN | FAST | ALLOW_BUSY | NEVER_QUEUED | IN_STREAM, NO_KEYS),
    row("exec", exec, 1, OWN | SKIP_SLOWLOG | NEVER_QUEUED | RUNS_QUEUED | IN_STREAM, NO_KEYS),
    row("discard", discard_command, 1, OWN | FAST | ALLOW_BUSY | NEVER_QUEUED, NO_KEYS),
    row("watch", watch, -2, OWN | FAST | ALLOW_BUSY | NEVER_QUEUED, LOOKS_ALL),
    row("unwatch", unwatch, 1, OWN | FAST | ALLOW_BUSY, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("multi", "1.2.0", "Begins to queue commands that EXEC runs as one.").cost("O(1)"),
    docs("exec", "1.2.0", "Runs the queued commands as one.")
        .cost("Depends on commands in the transaction"),
    docs("discard", "2.0.0", "Forgets the queued commands.")
        .cost("O(N) for N commands that are queued."),
    docs("watch", "2.2.0", "Makes the next EXEC depend on keys staying as they are.")
        .cost("O(1) for every key.")
        .arguments(&[key("key", 0).multiple()]),
    docs("unwatch", "2.2.0", "Forgets the watched keys.").cost("O(1)"),
];

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use crate::testing::TestServer;
    use engine::session::client::flag;

    const ABORTED: &str = "*-1\r\n";
    const EMPTY: &str = "*0\r\n";

    /// A server where the first connection watches a key, and whose clock is its own.
    fn watching(key: &str) -> TestServer {
        let mut server = crate::testing::server();
        server.now = Some(1_000_000);
        server.text(&format!("WATCH {key}"));
        server
    }

    #[test]
    fn a_client_is_in_multi_until_exec_has_run() {
        let mut server = crate::testing::server();
        server.text("WATCH k");
        server.text("MULTI");
        server.text("CLIENT INFO");
        server.text("PING");
        let shown = server.text("EXEC");
        assert!(shown.contains(" flags=x ") && shown.contains(" multi=2 watch=0 "), "{shown}");
        let shown = server.text("CLIENT INFO");
        assert!(shown.contains(" flags=N ") && shown.contains(" multi=-1 "), "{shown}");
        server.text("WATCH k");
        let mut other = server.connect();
        server.text_as(&mut other, "SET k v");
        server.text("MULTI");
        assert_eq!(server.text("EXEC"), ABORTED);
        assert!(server.text("CLIENT INFO").contains(" multi=-1 watch=0 "));
    }

    #[test]
    fn a_large_transaction_is_freed_in_the_background() {
        let mut server = crate::testing::server();
        let mut queue = |length: usize, end: &str| {
            let before = server.host.dropped.load(Relaxed);
            server.text("MULTI");
            server.run(&[b"APPEND".to_vec(), b"k".to_vec(), vec![b'v'; length]]);
            if end == "refused" {
                server.text("NOSUCHCOMMAND");
            }
            server.text(if end == "DISCARD" { end } else { "EXEC" });
            server.host.dropped.load(Relaxed) - before
        };
        for end in ["EXEC", "DISCARD", "refused"] {
            assert_eq!(queue(100, end), 0, "{end}");
            assert_eq!(queue(base::limits::FREED_LATER, end), 1, "{end}");
        }
    }

    #[test]
    fn what_a_transaction_replaces_is_freed_before_its_end() {
        let mut server = crate::testing::server();
        server.text("MULTI");
        for size in [2, 4, 8] {
            let value = vec![b'v'; size * base::limits::FREED_AT_ONCE_SINGLE];
            server.run(&[b"HSET".to_vec(), b"h".to_vec(), b"f".to_vec(), value.clone()]);
            server.run(&[b"SET".to_vec(), b"k".to_vec(), value]);
        }
        server.text("INFO memory");
        let dropped = server.host.dropped.load(Relaxed);
        let reply = server.text("EXEC");
        assert!(reply.contains("lazyfreed_objects:2\r\n"), "{reply}");
        // Each text that was replaced by itself, and the transaction.
        assert_eq!(server.host.dropped.load(Relaxed) - dropped, 2 + 2 + 1);
    }

    fn exec(server: &mut TestServer) -> String {
        assert_eq!(server.text("MULTI"), "+OK\r\n");
        server.text("EXEC")
    }

    #[test]
    fn exec_fails_when_a_watched_key_has_changed() {
        let mut server = watching("k");
        let mut other = server.connect();
        server.text_as(&mut other, "SET k v");
        assert!(
            server
                .session
                .client
                .describe(0, server.engine.commands)
                .windows(8)
                .any(|field| field == b"flags=d ")
        );
        assert_eq!(exec(&mut server), ABORTED);
        assert_eq!(exec(&mut server), EMPTY, "the watch is over");
    }

    #[test]
    fn keys_are_watched_on_when_all_their_database_has_changed() {
        let mut server = crate::testing::server();
        let mut other = server.connect();
        server.text_as(&mut other, "MSET a 1 b 1");
        server.text("WATCH a b");
        let shown = |server: &TestServer| {
            let line = server.session.client.describe(0, server.engine.commands);
            let line = String::from_utf8(line).unwrap();
            let fields = line
                .split(' ')
                .filter(|it| ["flags", "watch"].contains(&it.split_once('=').unwrap().0));
            fields.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&server), "flags=N watch=2");
        server.text_as(&mut other, "SWAPDB 0 1");
        assert_eq!(shown(&server), "flags=d watch=2");
        server.text("WATCH c");
        assert_eq!(shown(&server), "flags=d watch=2", "EXEC fails already");
        server.text_as(&mut other, "SET b 2");
        assert_eq!(shown(&server), "flags=d watch=0");
        assert_eq!(exec(&mut server), ABORTED);
    }

    #[test]
    fn nothing_is_kept_for_an_exec_that_will_fail() {
        let mut server = crate::testing::server();
        let mut other = server.connect();
        let kept = |server: &TestServer| {
            let line = server.session.client.describe(0, server.engine.commands);
            let line = String::from_utf8(line).unwrap();
            line.split(' ').find(|field| field.starts_with("multi=")).unwrap().to_owned()
        };
        server.text("MULTI");
        server.text("GET a");
        server.text("GET");
        assert_eq!(server.text("GET a"), "+QUEUED\r\n");
        assert_eq!(kept(&server), "multi=1");
        assert!(server.text("EXEC").starts_with("-EXECABORT "));
        server.text("WATCH a");
        server.text_as(&mut other, "SET a 1");
        server.text("MULTI");
        assert_eq!(server.text("GET a"), "+QUEUED\r\n");
        assert_eq!(kept(&server), "multi=0");
        assert_eq!(server.text("EXEC"), ABORTED);
    }

    /// Whether a client watches a key of a slot, or waits for one.
    fn has_attachment(server: &TestServer, slot: u16) -> bool {
        let inside = server.gate.enter();
        server.engine.lock_slot(inside.pinned(), slot).attachment(slot).is_some()
    }

    #[test]
    fn watches_leave_nothing_behind() {
        let mut server = watching("a");
        server.text("WATCH b");
        for key in ["a", "b"] {
            assert!(has_attachment(&server, base::crc::key_slot(key.as_bytes())));
        }
        server.text("UNWATCH");
        assert!(!(0..base::limits::SLOTS as u16).any(|slot| has_attachment(&server, slot)));
    }

    #[test]
    fn a_key_that_expires_after_watch_aborts_whether_or_not_it_was_deleted() {
        for delete in [false, true] {
            let mut server = crate::testing::server();
            server.now = Some(1_000_000);
            server.text("SET k v PX 10");
            server.text("WATCH k");
            server.now = Some(1_000_011);
            if delete {
                let mut other = server.connect();
                assert_eq!(server.text_as(&mut other, "GET k"), "$-1\r\n");
            }
            assert_eq!(exec(&mut server), ABORTED);
        }
    }

    #[test]
    fn a_key_that_had_expired_at_watch_may_be_deleted_but_not_replaced() {
        for (command, expected) in
            [("GET k", EMPTY), ("DEL k", EMPTY), ("SET k w", ABORTED), ("FLUSHALL", EMPTY)]
        {
            let mut server = crate::testing::server();
            server.now = Some(1_000_000);
            server.text("SET k v PX 10");
            server.now = Some(1_000_011);
            server.text("WATCH k");
            let mut other = server.connect();
            server.text_as(&mut other, command);
            assert_eq!(exec(&mut server), expected, "{command}");
        }
    }

    #[test]
    fn emptying_and_swapping_count_where_they_change_something() {
        for (key, command, expected) in [
            ("k", "FLUSHDB", ABORTED),
            ("nokey", "FLUSHDB", EMPTY),
            ("k", "SWAPDB 0 1", ABORTED),
            ("nokey", "SWAPDB 0 1", EMPTY),
            ("there", "SWAPDB 0 1", ABORTED),
            ("dead", "SWAPDB 0 1", EMPTY),
        ] {
            let mut server = crate::testing::server();
            server.now = Some(1_000_000);
            let mut other = server.connect();
            server.text_as(&mut other, "SET k v");
            server.text_as(&mut other, "SELECT 1");
            server.text_as(&mut other, "SET there v");
            server.text_as(&mut other, "SET dead v PX 10");
            server.now = Some(1_000_011);
            server.text(&format!("WATCH {key}"));
            server.text_as(&mut other, "SELECT 0");
            assert_eq!(server.text_as(&mut other, command), "+OK\r\n");
            assert_eq!(exec(&mut server), expected, "{command} with {key}");
        }
    }

    #[test]
    fn a_refused_exec_says_why_and_ends_the_transaction() {
        let mut server = crate::testing::server();
        server.text("MULTI");
        assert_eq!(server.text("PING"), "+QUEUED\r\n");
        assert!(server.session.client.has_flag(flag::MULTI));
        let refusal = "-EXECABORT Transaction discarded because of: wrong number of arguments for \
                       'exec' command\r\n";
        assert_eq!(server.text("EXEC now"), refusal);
        assert!(!server.session.client.has_flag(flag::MULTI));
        assert_eq!(server.text("EXEC"), "-ERR EXEC without MULTI\r\n");
    }

    #[test]
    fn a_connection_that_goes_away_leaves_nothing_behind() {
        let mut server = crate::testing::server();
        let mut other = server.connect();
        for line in ["WATCH k", "SUBSCRIBE a", "PSUBSCRIBE b", "SSUBSCRIBE c"] {
            server.text_as(&mut other, line);
        }
        server.engine.close_session(server.gate.enter().pinned(), &mut other);
        assert!(server.engine.clients.get(other.client.id).is_none());
        assert_eq!(server.text("PUBLISH a x"), ":0\r\n");
        assert_eq!(server.text("PUBSUB NUMPAT"), ":0\r\n");
        assert_eq!(server.text("SPUBLISH c x"), ":0\r\n");
        assert!(!has_attachment(&server, base::crc::key_slot(b"k")));
    }
}
