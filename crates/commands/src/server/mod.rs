//! The server as a whole: its size, emptying and exchanging databases, time, role, its end.

use resp::args::Arguments;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ALLOW_BUSY, Argument, ArgumentKind, ChangeForm, Docs, FAST, Flags, Group, IN_DANGEROUS,
    IN_KEYSPACE, LOADING, NO_KEYS, NO_MULTI, NOSCRIPT, READONLY, STALE, STOPS_THE_WORLD,
    WHOLE_KEYSPACE, WRITE, argument, docs, one_of, word,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::flush::{empty, note_emptied, serve_waiters, stopped_world};
use engine::host::Shutdown;
use engine::script::slow::Need;
use engine::session::watcher::Fate;

mod lolwut;

/// DBSIZE
fn dbsize(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let keys = cx.engine.keyspace.len(cx.db.index);
    cx.reply.integer(keys as i64);
    Ok(())
}

/// FLUSHDB [ASYNC | SYNC]
fn flushdb(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    parse_flush(args)?;
    let database = cx.db.index;
    let removed = empty(cx, database..database + 1);
    cx.add_dirty(removed as u64);
    // A follower of the journal may have data, also where there was nothing to remove.
    cx.propagate_itself(args.argv());
    cx.reply.ok();
    Ok(())
}

/// FLUSHALL [ASYNC | SYNC]
fn flushall(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    parse_flush(args)?;
    let databases = 0..cx.engine.keyspace.databases();
    let removed = empty(cx, databases);
    cx.add_dirty(removed as u64);
    note_emptied(cx);
    // A follower of the journal may have data, also where there was nothing to remove.
    cx.propagate_itself(args.argv());
    cx.reply.ok();
    Ok(())
}

/// Reads the mode. Both modes do the same: the tables are taken away at once and freed in the
/// background. The only difference would be how long clients wait.
fn parse_flush(args: &mut Args<'_>) -> CommandResult {
    let _ = args.word("async") || args.word("sync");
    args.end()
}

/// FLUSHALL concerns all databases.
fn all_databases(_argv: Arguments<'_>, visit: &mut dyn FnMut(Option<usize>)) {
    visit(None);
}

/// The databases of SWAPDB.
fn swapped(_argv: Arguments<'_>, visit: &mut dyn FnMut(Option<usize>)) {
    (1..=2).for_each(|index| visit(Some(index)));
}

/// SWAPDB index1 index2
fn swapdb(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if cx.db.cluster.is_some() {
        return Err(CommandError::text("ERR SWAPDB is not allowed in cluster mode"));
    }
    let one = database_index(args, "ERR invalid first DB index")?;
    let other = database_index(args, "ERR invalid second DB index")?;
    let known = |index: i32| {
        let index = usize::try_from(index).ok();
        index.filter(|index| *index < cx.engine.keyspace.databases())
    };
    let (Some(one), Some(other)) = (known(one), known(other)) else {
        return Err(CommandError::DB_OUT_OF_RANGE);
    };
    if one != other {
        cx.db.mark_all_watchers(|database| match database {
            _ if database == one => Fate::Replaced(other),
            _ if database == other => Fate::Replaced(one),
            _ => Fate::Stays,
        });
        cx.engine.keyspace.swap(stopped_world(cx), one, other);
        serve_waiters(cx, |database| [one, other].contains(&database));
    }
    cx.add_dirty(1);
    cx.reply.ok();
    Ok(())
}

fn database_index(args: &mut Args<'_>, error: &'static str) -> Result<i32, CommandError> {
    let index = args.i64().ok().and_then(|index| i32::try_from(index).ok());
    index.ok_or(CommandError::text(error))
}

/// TIME
fn time(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let now_us = cx.db.now_us as i64;
    cx.reply.array(2);
    cx.reply.bulk_int(now_us / 1_000_000);
    cx.reply.bulk_int(now_us % 1_000_000);
    Ok(())
}

/// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]
fn shutdown(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (mut now, mut force) = (false, false);
    let (mut save, mut nosave, mut abort) = (false, false, false);
    while !args.is_empty() {
        if args.word("nosave") {
            nosave = true;
        } else if args.word("save") {
            save = true;
        } else if args.word("now") {
            now = true;
        } else if args.word("force") {
            force = true;
        } else if args.word("abort") {
            abort = true;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    if save && nosave || abort && (save || nosave || now || force) {
        return Err(CommandError::SYNTAX);
    }
    if abort {
        if !cx.engine.stop_wait.give_up() {
            return Err(CommandError::text("ERR No shutdown in progress."));
        }
        cx.reply.ok();
        return Ok(());
    }
    let save = match (save, nosave) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    if !nosave && let Some(busy) = cx.engine.scripts.slow.refusal(Need::Thread) {
        return Err(busy);
    }
    let given_up_before = cx.engine.stop_wait.ask();
    let request = Shutdown { save, now, force, given_up_before };
    let waiter = cx.wait_for_host();
    cx.engine.host.shut_down(request, Some(waiter));
    Ok(())
}

/// Flags of commands that empty or exchange whole databases.
const OF_ALL: Flags = WRITE | STOPS_THE_WORLD | IN_KEYSPACE | IN_DANGEROUS;
/// Flags of SHUTDOWN.
const ENDING: Flags = ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([
    row("dbsize", dbsize, 1, READONLY | FAST | WHOLE_KEYSPACE | IN_KEYSPACE, NO_KEYS),
    row("flushdb", flushdb, -1, OF_ALL, NO_KEYS).told(ChangeForm::FlushDatabase),
    row("flushall", flushall, -1, OF_ALL, NO_KEYS)
        .told(ChangeForm::FlushAll)
        .databases(all_databases),
    row("swapdb", swapdb, 3, OF_ALL | FAST, NO_KEYS).told(ChangeForm::Swap).databases(swapped),
    row("time", time, 1, LOADING | STALE | FAST, NO_KEYS),
    row("lolwut", lolwut::lolwut, -1, READONLY | FAST, NO_KEYS),
    row("shutdown", shutdown, -1, ENDING, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const MODES: &[Argument] = &[one_of(
    "flush-type",
    &[word("async", "ASYNC").since("4.0.0"), word("sync", "SYNC").since("6.2.0")],
)
.optional()];

const MODES_HISTORY: &[(&str, &str)] = &[("4.0.0", "Takes `ASYNC`."), ("6.2.0", "Takes `SYNC`.")];

const DOCS: &[Docs] = &[
    docs("dbsize", "1.0.0", "Counts the keys of the selected database.")
        .cost("O(1)")
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    docs("flushdb", "1.0.0", "Removes all keys of the selected database.")
        .cost("O(N) for N keys in the database.")
        .arguments(MODES)
        .history(MODES_HISTORY)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    docs("flushall", "1.0.0", "Removes all keys of all databases.")
        .cost("O(N) for N keys in all databases.")
        .arguments(MODES)
        .history(MODES_HISTORY)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    docs("swapdb", "4.0.0", "Exchanges two databases.")
        .cost("O(N) for N clients that watch or wait for keys of the two databases.")
        .arguments(&[
            argument("index1", ArgumentKind::Integer),
            argument("index2", ArgumentKind::Integer),
        ]),
    docs("time", "2.6.0", "Tells the server's time: seconds and microseconds.")
        .cost("O(1)")
        .tips(&["nondeterministic_output"]),
    docs("lolwut", "5.0.0", "Draws something and says the version.").arguments(&[argument(
        "version",
        ArgumentKind::Integer,
    )
    .token("VERSION")
    .optional()]),
    docs("shutdown", "1.0.0", "Stops the server.")
        .cost("O(N) for N keys in all databases when they are saved, otherwise O(1).")
        .arguments(&[
            one_of("save-selector", &[word("nosave", "NOSAVE"), word("save", "SAVE")]).optional(),
            word("now", "NOW").since("7.0.0").optional(),
            word("force", "FORCE").since("7.0.0").optional(),
            word("abort", "ABORT").since("7.0.0").optional(),
        ])
        .history(&[("7.0.0", "Takes `NOW`, `FORCE` and `ABORT`.")]),
];

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn the_offset_is_that_of_the_journal() {
        let mut server = crate::testing::server();
        let shown = |server: &mut TestServer| {
            let role = server.text("ROLE");
            assert!(server.text("INFO replication").contains(&format!(
                "master_repl_offset:{}",
                role.split("\r\n:").nth(1).and_then(|rest| rest.lines().next()).unwrap()
            )));
            role
        };
        let role = |offset: u64| format!("*3\r\n$6\r\nmaster\r\n:{offset}\r\n*0\r\n");
        assert_eq!(shown(&mut server), role(0));
        server.text("SET k 1");
        server.text("GET k");
        assert_eq!(shown(&mut server), role(1));
        for command in ["MULTI", "SET k 1", "SET l 1", "EXEC", "CONFIG RESETSTAT"] {
            server.text(command);
        }
        assert_eq!(shown(&mut server), role(server.journal.end()));
        let before = server.journal.end();
        server.journal.set_listening(false);
        server.text("SET k 1");
        assert_eq!(shown(&mut server), role(before));
    }

    #[test]
    fn flushes_are_journaled_in_every_case() {
        let mut server = crate::testing::server();
        assert_eq!(server.text("FLUSHDB ASYNC"), "+OK\r\n");
        assert_eq!(server.text("flushall"), "+OK\r\n");
        let journal = server.journal.take();
        let argv = journal.iter().map(|effect| effect.argv.concat());
        assert!(argv.eq([b"FLUSHDBASYNC".to_vec(), b"flushall".to_vec()]));
        assert_eq!(server.text("FLUSHALL ASYNC x"), "-ERR syntax error\r\n");
    }

    #[test]
    fn databases_are_exchanged() {
        let mut server = crate::testing::server();
        assert_eq!(server.text("SWAPDB 0 16"), "-ERR DB index is out of range\r\n");
        assert_eq!(server.text("SWAPDB 99 a"), "-ERR invalid second DB index\r\n");
        assert_eq!(server.text("SWAPDB 9999999999 1"), "-ERR invalid first DB index\r\n");
        assert_eq!(server.text("RPUSH list a b"), ":2\r\n");
        assert_eq!(server.text("WATCH list other"), "+OK\r\n");
        assert_eq!(server.text("SWAPDB 0 1"), "+OK\r\n");
        assert_eq!(server.text("DBSIZE"), ":0\r\n");
        assert_eq!(server.text("MULTI"), "+OK\r\n");
        assert_eq!(server.text("EXEC"), "*-1\r\n", "a watched key has changed its place");
        assert_eq!(server.text("WATCH list"), "+OK\r\n");
        assert_eq!(server.text("FLUSHALL"), "+OK\r\n");
        assert_eq!(server.text("MULTI"), "+OK\r\n");
        assert_eq!(server.text("EXEC"), "*0\r\n", "there was no such key in this database");
    }

    #[test]
    fn a_waiter_on_several_streams_hears_of_the_first_removed_one() {
        for (one, other) in [("a", "b"), ("b", "a")] {
            let mut server = crate::testing::server();
            for key in [one, other] {
                server.text(&format!("XGROUP CREATE {key} g $ MKSTREAM"));
            }
            let mut waiting = server.connect();
            let read = format!("XREADGROUP GROUP g c BLOCK 0 STREAMS {one} {other} > >");
            assert_eq!(server.text_as(&mut waiting, &read), "");
            server.text("FLUSHALL");
            let served = waiting.client.inbox.lock().served.take().expect("it is told");
            let reply = String::from_utf8(served.reply.to_vec()).unwrap();
            assert!(reply.starts_with(&format!("-NOGROUP No such key '{one}'")), "{reply}");
        }
    }

    #[test]
    fn a_waiter_is_served_by_an_exchange() {
        let mut server = crate::testing::server();
        assert_eq!(server.text("RPUSH list a"), ":1\r\n");
        assert_eq!(server.text("SWAPDB 0 1"), "+OK\r\n");
        let other = server.connect();
        let first = std::mem::replace(&mut server.session, other);
        assert_eq!(server.text("BLPOP list 0"), "");
        let waiting = std::mem::replace(&mut server.session, first);
        assert_eq!(server.text("SWAPDB 1 0"), "+OK\r\n");
        let served = waiting.client.inbox.lock().served.take();
        let served = served.map(|served| served.reply.to_vec());
        assert_eq!(served.as_deref(), Some(&b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n"[..]));
        assert_eq!(server.text("DBSIZE"), ":0\r\n");
    }

    #[test]
    fn a_shutdown_is_parsed_completely() {
        let mut server = crate::testing::server();
        for line in ["SHUTDOWN SAVE NOSAVE", "SHUTDOWN NOW ABORT", "SHUTDOWN foo"] {
            assert_eq!(server.text(line), "-ERR syntax error\r\n");
        }
        assert_eq!(server.text("SHUTDOWN ABORT"), "-ERR No shutdown in progress.\r\n");
        // It is answered when the server has to go on.
        assert_eq!(server.text("SHUTDOWN NOSAVE NOW"), "");
    }
}
