//! REPLICAOF, SLAVEOF and ROLE; and how the data of a primary takes the place of the present data.

use std::sync::OnceLock;

use config::PrimaryAddress;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, Argument, ArgumentKind, Docs, FAST, Flags, Group, IN_DANGEROUS, INTERNAL, LOADING,
    NO_ASYNC_LOADING, NO_KEYS, NOSCRIPT, SKIP_MONITOR, STALE, STOPS_THE_WORLD, argument, block,
    docs, one_of, word,
};
use engine::engine::{Command, Context, Family, Row, random_id, row};
use engine::handler::flush::{replace_all, stopped_world};
use engine::host::LogLevel;
use engine::journal::backlog::Position;
use engine::replication::LinkState;
use engine::script::functions::Policy;

/// The error of clients that wait where they may no longer change anything.
pub(super) const UNBLOCKED: &[u8] =
    b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

/// REPLICAOF (host port | NO ONE)
fn replicaof(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if cx.db.cluster.is_some() {
        return Err(CommandError::text("ERR REPLICAOF not allowed in cluster mode."));
    }
    if cx.engine.failover.is_on() {
        return Err(CommandError::text("ERR REPLICAOF not allowed while failing over."));
    }
    let (host, port) = (args.bytes()?, args.bytes()?);
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        lead(cx, "user");
        cx.reply.ok();
        return Ok(());
    }
    let port = base::num::parse_i64(port).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or(CommandError::text("ERR Invalid master port"))?;
    let primary = PrimaryAddress { host: host.to_vec(), port };
    let present = cx.engine.replication.primary();
    let is_same = present.is_some_and(|present| {
        present.port == port && present.host.eq_ignore_ascii_case(&primary.host)
    });
    if is_same {
        cx.reply.simple(b"OK Already connected to specified master");
        return Ok(());
    }
    let line = format!("REPLICAOF {}:{port} enabled", String::from_utf8_lossy(host));
    follow(cx, primary);
    log(cx, &line, "user");
    cx.reply.ok();
    Ok(())
}

/// Becomes a primary, if it is none, because somebody wants that.
pub(super) fn lead(cx: &mut Context<'_>, who: &str) {
    if cx.engine.replication.is_replica() {
        begin_to_lead(cx, random_id());
        log(cx, "MASTER MODE enabled", who);
    }
}

/// Becomes a primary, whose history has this name.
fn begin_to_lead(cx: &mut Context<'_>, history: String) {
    cx.engine.change_part_as(stopped_world(cx), None, history);
    cx.engine.wake_all_clients();
    cx.db.effects.config_changed = true;
}

/// Becomes the replica of a primary.
fn follow(cx: &mut Context<'_>, primary: PrimaryAddress) {
    // What the same transaction has written before belongs to the stream of this server.
    if let Some(written) = cx.engine.settle(&mut cx.db) {
        cx.session.write_offset = written;
    }
    // Before any worker can see the new part, and end a wait for replicas with their number.
    cx.engine.break_waits(UNBLOCKED);
    cx.engine.change_part(stopped_world(cx), Some(primary));
    // Some wait for what can no longer come, or no longer for long.
    cx.engine.wake_all_clients();
    cx.db.effects.config_changed = true;
}

/// REPLICATION PART (LEAD history | FOLLOW host port): what the thread does that makes the server a
/// node of a cluster. It answers whether the server's part has changed.
fn part(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    cx.propagate_nothing();
    let changes;
    if args.word("lead") {
        let history = String::from_utf8_lossy(args.bytes()?).into_owned();
        changes = cx.engine.replication.is_replica();
        cx.engine.keep_stream(stopped_world(cx));
        if changes {
            begin_to_lead(cx, history);
        }
    } else {
        args.skip(1);
        let (host, port) = (args.bytes()?.to_vec(), args.i64()?);
        let port = u16::try_from(port).map_err(|_| CommandError::OUT_OF_RANGE)?;
        let primary = PrimaryAddress { host, port };
        changes = cx.engine.replication.primary().as_ref() != Some(&primary);
        if changes {
            follow(cx, primary);
        }
    }
    cx.reply.integer(i64::from(changes));
    Ok(())
}

fn log(cx: &Context<'_>, what: &str, who: &str) {
    let client = &cx.session.client;
    let line = format!("{what} ({who} request from 'id={} addr={}')", client.id, client.address);
    cx.engine.host.log(LogLevel::Notice, &line);
}

/// ROLE
fn role(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let replication = &cx.engine.replication;
    let Some(view) = replication.view() else {
        cx.reply.array(3);
        cx.reply.bulk(b"master");
        cx.reply.integer(cx.engine.replication_offset().cast_signed());
        let mut replicas = cx.engine.replicas.all();
        replicas.retain(|replica| replica.is_online());
        cx.reply.array(replicas.len());
        for replica in replicas {
            cx.reply.array(3);
            cx.reply.bulk(replica.address().as_bytes());
            cx.reply.bulk(replica.introduction.listening_port.to_string().as_bytes());
            let offset = cx.engine.shown_offset(replica.acknowledged());
            cx.reply.bulk(offset.to_string().as_bytes());
        }
        return Ok(());
    };
    cx.reply.array(5);
    cx.reply.bulk(b"slave");
    cx.reply.bulk(&view.primary.host);
    cx.reply.integer(i64::from(view.primary.port));
    cx.reply.bulk(match view.link {
        LinkState::Down => b"connect",
        LinkState::Connecting => b"connecting",
        LinkState::Syncing => b"sync",
        LinkState::Up => b"connected",
    });
    let offset = match view.link {
        LinkState::Up => replication.applied().cast_signed(),
        _ => -1,
    };
    cx.reply.integer(offset);
    Ok(())
}

/// Takes in the data that the thread which follows the primary has offered.
fn take_in(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let replication = &cx.engine.replication;
    let incoming = replication.take_incoming().ok_or(CommandError::PRIMARY_CHANGED)?;
    cx.engine.scripts.functions.add(incoming.libraries, Policy::Flush)?;
    replace_all(cx, incoming.keyspace);
    replication.note_taken_in(incoming.position.as_ref(), cx.engine.journal.end());
    cx.engine.replicas.leave_behind();
    let (history, offset) = incoming.position.unwrap_or_else(|| (random_id(), 0));
    cx.engine.replication_id.lock().clone_from(&history);
    if let Some(changes) = cx.engine.journal.changes() {
        // What followed from the old data says nothing of the new.
        changes.end(false);
        cx.engine.adopt_history(Position { history, offset }, incoming.selected);
    }
    replication.note_break();
    cx.add_dirty(1);
    cx.propagate_nothing();
    cx.reply.ok();
    Ok(())
}

/// The row of the command that takes in the data of a primary, among all rows.
pub(crate) fn take_in_row(rows: &'static [Row]) -> &'static Row {
    static ROW: OnceLock<&'static Row> = OnceLock::new();
    ROW.get_or_init(|| internal(rows, "takein"))
}

/// The row of the command that changes the part of a node of a cluster, among all rows.
pub(crate) fn part_row(rows: &'static [Row]) -> &'static Row {
    static ROW: OnceLock<&'static Row> = OnceLock::new();
    ROW.get_or_init(|| internal(rows, "part"))
}

fn internal(rows: &'static [Row], name: &str) -> &'static Row {
    let mut rows = rows.iter();
    let row =
        rows.find(|row| row.command.parent == Some("replication") && row.command.name == name);
    row.expect("it is one of the rows below")
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

/// The internal commands of this family.
pub(crate) const INTERNALS: Family = Family::new(INTERNAL_COMMANDS, INTERNAL_DOCS);

/// Flags of the commands that change the part of the server.
const CHANGING: Flags = ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING | STOPS_THE_WORLD;

const COMMANDS: &[Command] = &Group::Server.rows([
    row("replicaof", replicaof, 3, CHANGING, NO_KEYS),
    row("slaveof", replicaof, 3, CHANGING, NO_KEYS),
    row("role", role, 1, NOSCRIPT | LOADING | STALE | FAST | IN_DANGEROUS, NO_KEYS)
        .categories(&["admin"]),
]);

const WITHIN: Flags = INTERNAL | SKIP_MONITOR | NOSCRIPT | STALE | STOPS_THE_WORLD;

const INTERNAL_COMMANDS: &[Command] = &Group::Server
    .under("replication")
    .rows([row("takein", take_in, 1, WITHIN, NO_KEYS), row("part", part, -2, WITHIN, NO_KEYS)]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("replicaof", "5.0.0", "Makes the server the replica of a primary, or a primary.")
        .cost("O(1)")
        .arguments(PRIMARY),
    docs("slaveof", "1.0.0", "Makes the server the replica of a primary, or a primary.")
        .cost("O(1)")
        .arguments(PRIMARY)
        .deprecated("5.0.0", "`REPLICAOF`"),
    docs("role", "2.8.12", "Tells the server's role in replication.").cost("O(1)"),
];

const INTERNAL_DOCS: &[Docs] = &[
    docs("replication|takein", "7.0.0", "Takes in the data of a primary.").cost("O(1)"),
    docs("replication|part", "7.0.0", "Changes the part of a node of a cluster.").cost("O(1)"),
];

const PRIMARY: &[Argument] = &[one_of(
    "args",
    &[
        block(
            "host-port",
            &[argument("host", ArgumentKind::String), argument("port", ArgumentKind::Integer)],
        ),
        block("no-one", &[word("no", "NO"), word("one", "ONE")]),
    ],
)];
