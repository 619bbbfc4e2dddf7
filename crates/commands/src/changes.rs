//! CHANGES: what has happened to keys since a position in the journal.

use base::limits;
use resp::reply::Reply;

use engine::changes::reading::changes_of;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ArgumentKind, BLOCKING, Docs, FOLLOWS, Flags, Group, NO_KEYS, NOSCRIPT, READONLY, argument,
    docs, one_of,
};
use engine::engine::{Command, Context, Family, row};
use engine::journal::backlog::{Backlog, Gone, Position, Since};
use engine::journal::filter::{Filter, Keys};
use engine::session::attachment::Waiter;
use engine::session::awaited::{Awaited, Wait};

const NO_JOURNAL: CommandError = CommandError::text("ERR this server keeps no journal");
const NO_POSITION: CommandError =
    CommandError::text("ERR a position is $, - or one that this command has answered");

/// The arguments of CHANGES.
struct ChangesRequest {
    since: Since,
    filter: Filter,
    /// At most this many changes; changes that happened together stay together.
    count: usize,
    /// Wait if there are none: for this many milliseconds, or for ever.
    block: Option<Option<u64>>,
}

impl ChangesRequest {
    fn parse(args: &mut Args<'_>, databases: usize) -> Result<ChangesRequest, CommandError> {
        if !args.word("since") {
            return Err(CommandError::SYNTAX);
        }
        let since = match args.bytes()? {
            b"$" => Since::Now,
            b"-" => Since::Oldest,
            text => Since::Position(Position::parse(text).ok_or(NO_POSITION)?),
        };
        let filter = Filter { database: None, keys: Keys::Prefix(Box::default()) };
        let mut request =
            ChangesRequest { since, filter, count: limits::CHANGES_COUNT, block: None };
        while !args.is_empty() {
            if args.word("prefix") {
                request.filter.keys = Keys::Prefix(args.bytes()?.into());
            } else if args.word("key") {
                request.filter.keys = Keys::One(args.bytes()?.into());
            } else if args.word("db") {
                request.filter.database = Some(args.database(databases)?);
            } else if args.word("count") {
                let count = args.at_least(0, CommandError::OUT_OF_RANGE)?;
                request.count = count.min(limits::CHANGES_COUNT);
            } else if args.word("block") {
                let timeout = args.at_least(0, CommandError::TIMEOUT_NEGATIVE)? as u64;
                request.block = Some(Some(timeout).filter(|timeout| *timeout > 0));
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(request)
    }
}

/// The error that makes a client read anew the keys that it follows.
fn refusal(gone: &Gone) -> CommandError {
    CommandError::owned(gone.to_string())
}

/// CHANGES SINCE position [PREFIX prefix | KEY key] [DB number] [COUNT count] [BLOCK milliseconds]
fn changes(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let request = ChangesRequest::parse(args, cx.engine.keyspace.databases())?;
    cx.may_follow(&request.filter)?;
    cx.serves_followed(&request.filter)?;
    let engine = cx.engine;
    let backlog = engine.journal.changes().ok_or(NO_JOURNAL)?;
    backlog.note_use(cx.db.monotonic);
    let shown = engine.journal.shown();
    let mut from = backlog.resolve(&request.since, shown).map_err(|gone| refusal(&gone))?;
    let mark = cx.reply.mark();
    let (mut found, mut left) = (0, limits::CHANGES_COUNT);
    loop {
        let step = left.min(limits::CHANGES_STEP);
        let shown = engine.journal.shown().max(engine.followers.delivered());
        let records = backlog.read(from, shown, step).map_err(|gone| refusal(&gone))?;
        let at_end = records.len() < step;
        for record in records {
            if found >= request.count {
                return answer(cx, backlog, mark, from, found);
            }
            let changes = changes_of(engine.commands, record.commands());
            let mut own = changes.iter().filter(|own| request.filter.admits(own)).peekable();
            while let Some(change) = own.next() {
                let position = own.peek().is_none().then(|| backlog.position(record.end()));
                change.reply(position.as_deref(), &mut cx.reply);
                found += 1;
            }
            from = record.end();
        }
        left -= step;
        let waits = found == 0 && request.count > 0 && cx.may_block();
        if at_end
            && waits
            && let Some(timeout) = request.block
        {
            if wait(cx, &request.filter, from, timeout) {
                return Ok(());
            }
            // More has happened meanwhile.
            continue;
        }
        if at_end || left == 0 {
            return answer(cx, backlog, mark, from, found);
        }
    }
}

/// Answers how far the changes reach, before them.
fn answer(
    cx: &mut Context<'_>,
    backlog: &Backlog,
    mark: resp::output::Mark,
    from: u64,
    found: usize,
) -> CommandResult {
    cx.reply.close_array(mark, found);
    let mut head = resp::output::Output::new();
    let mut reply = Reply::new(&mut head, cx.reply.is_resp3());
    reply.array(2);
    reply.bulk(backlog.position(from).as_bytes());
    let head = head.to_vec();
    cx.reply.output().insert(mark, &head);
    Ok(())
}

/// Lets the client wait for the first change after an offset. False when there is one already.
fn wait(cx: &mut Context<'_>, filter: &Filter, from: u64, timeout: Option<u64>) -> bool {
    let deadline = timeout.map(|timeout| cx.db.monotonic.saturating_add(timeout));
    let awaited = Awaited::Changes(filter.clone());
    let wait = Wait::new(awaited, cx.db.index, cx.session.resp3, deadline);
    let waiter = Waiter::new(&cx.session.client, wait);
    let waits = cx.engine.followers.add_waiter(waiter.clone(), filter.clone(), from);
    if waits {
        cx.block = Some(waiter);
    }
    waits
}

const FOLLOWING: Flags = READONLY | BLOCKING | NOSCRIPT | FOLLOWS;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] =
    &Group::Generic.rows([row("changes", changes, -3, FOLLOWING, NO_KEYS)]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs(
    "changes",
    "7.0.0",
    "Answers what has happened to keys since a position in the journal.",
)
.cost("O(N) for N records of the journal after the position.")
.arguments(&[
    argument("position", ArgumentKind::String).token("SINCE"),
    one_of(
        "keys",
        &[
            argument("prefix", ArgumentKind::String).token("PREFIX"),
            argument("key", ArgumentKind::String).token("KEY"),
        ],
    )
    .optional(),
    argument("number", ArgumentKind::Integer).token("DB").optional(),
    argument("count", ArgumentKind::Integer).token("COUNT").optional(),
    argument("milliseconds", ArgumentKind::Integer).token("BLOCK").optional(),
])];

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    /// The offset after `SET a 1` behind a SELECT, and after another such command.
    const FIRST: u64 = 23 + 27;
    const SECOND: u64 = FIRST + 27;

    /// The history of a server, and a server that keeps its journal.
    fn server() -> (TestServer, String) {
        let mut server = crate::testing::server();
        server.text("CHANGES SINCE $");
        let history = server.engine.replication_id.lock().clone();
        (server, history)
    }

    #[test]
    fn changes_are_read_from_position_to_position() {
        let (mut server, history) = server();
        assert_eq!(server.text("CHANGES SINCE $"), format!("*2\r\n$42\r\n{history}:0\r\n*0\r\n"));
        server.text("SET a 1");
        server.text("SET b 2");
        let set = |key: &str, value: &str, at: u64| {
            format!(
                "*10\r\n$8\r\nposition\r\n$43\r\n{history}:{at}\r\n$2\r\nop\r\n$3\r\nset\r\n$2\r\ndb\r\n\
                 :0\r\n$3\r\nkey\r\n$1\r\n{key}\r\n$5\r\nvalue\r\n$1\r\n{value}\r\n"
            )
        };
        let (a, b) = (set("a", "1", FIRST), set("b", "2", SECOND));
        let told = |at: u64, count: usize| {
            let position = format!("{history}:{at}");
            format!("*2\r\n${}\r\n{position}\r\n*{count}\r\n", position.len())
        };
        assert_eq!(server.text("CHANGES SINCE -"), told(SECOND, 2) + &a + &b);
        let since = |offset: u64, rest: &str| format!("CHANGES SINCE {history}:{offset}{rest}");
        assert_eq!(server.text(&since(FIRST, "")), told(SECOND, 1) + &b);
        assert_eq!(server.text(&since(0, " COUNT 1")), told(FIRST, 1) + &a);
        assert_eq!(server.text(&since(0, " COUNT 0")), told(0, 0));
        assert_eq!(server.text(&since(0, " KEY b")), told(SECOND, 1) + &b);
        assert_eq!(server.text(&since(0, " PREFIX c")), told(SECOND, 0));
        assert_eq!(server.text(&since(0, " DB 3")), told(SECOND, 0));
        assert_eq!(server.text(&since(SECOND, "")), told(SECOND, 0));
    }

    #[test]
    fn positions_that_are_not_kept_are_refused() {
        let (mut server, history) = server();
        server.text("SET a 1");
        for position in [format!("{history}:{}", FIRST + 1), "0123:0".to_owned()] {
            let reply = server.text(&format!("CHANGES SINCE {position}"));
            let expected = format!("-GONE oldest={history}:0 newest={history}:{FIRST} ");
            assert!(reply.starts_with(&expected), "{reply}");
        }
        for wrong in ["x", "SINCE x", "SINCE $ BLOCK -1", "SINCE $ COUNT x", "SINCE $ DB 99 x"] {
            assert!(server.text(&format!("CHANGES {wrong}")).starts_with("-ERR"), "{wrong}");
        }
    }
}
