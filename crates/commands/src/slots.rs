//! SLOTMOVE: slots that come from another server, which sends it, and slots that go to one.
//!
//! SLOTMOVE BEGIN makes a connection that of a source: what follows over it is written into the
//! slots, which stay hidden. In a cluster the cluster has to know the move; without one, only
//! clients that may use DEBUG move slots.

use std::sync::Arc;

use store::SlotSet;

use config::Permission;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ArgumentKind, Docs, Group, IN_DANGEROUS, NO_KEYS, NO_MULTI, NOSCRIPT, OF_CONNECTION,
    argument, block, docs, one_of, word,
};
use engine::engine::{Command, Context, Family, row};
use engine::host::SlotMove;
use engine::persistence::chosen::Reached;
use engine::session::slot_moves::Import;
use engine::session::sync::SyncWait;

const NO_IMPORT: CommandError = CommandError::text("ERR this connection brings no slots");
const NO_SLOTS: CommandError = CommandError::text("ERR Invalid or out of range slot");

/// SLOTMOVE BEGIN id slots epoch attempt | FLUSH database|ALL | (SURE | READY) [FSYNC] | TAKE |
///     START host port slots [RATE bytes]
fn slotmove(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let subcommand = args.bytes()?;
    match (subcommand.to_ascii_lowercase().as_slice(), args.len()) {
        (b"begin", 4) => begin(cx, args),
        (b"flush", 1) => flush(cx, args.bytes()?),
        (b"sure", 0 | 1) => sure(cx, args, |import| import.admits(std::iter::empty())),
        (b"ready", 0 | 1) => sure(cx, args, Import::note_ready),
        (b"take", 0) => take(cx),
        (b"start", 3 | 5) => start(cx, args),
        _ => Err(CommandError::subcommand_syntax("slotmove", subcommand)),
    }
}

/// Whether a client may move slots without a cluster.
fn may_debug(cx: &Context<'_>) -> bool {
    match cx.db.config.enable_debug_command {
        Permission::Yes => true,
        Permission::Local => cx.session.client.is_local(),
        Permission::No => false,
    }
}

fn begin(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (id, slots) = (args.bytes()?, SlotSet::parse(args.bytes()?).ok_or(NO_SLOTS)?);
    let mut number = || u64::try_from(args.i64()?).map_err(|_| CommandError::OUT_OF_RANGE);
    let attempt = (number()?, number()?);
    let (keyspace, moves) = (&cx.engine.keyspace, &cx.engine.slot_moves);
    if !moves.expects(id, &slots) && !may_debug(cx) {
        return Err(CommandError::text("ERR no such move of slots to this server"));
    }
    if cx.engine.replication.is_replica() {
        return Err(CommandError::READ_ONLY_REPLICA);
    }
    if cx.session.import.is_some() {
        return Err(CommandError::text("ERR this connection brings slots already"));
    }
    let is_in_use = |slot: u16| {
        let mut databases = 0..keyspace.databases();
        !keyspace.hidden.has(slot) && databases.any(|own| keyspace.slot_len(own, slot) > 0)
    };
    if let Some(slot) = slots.iter().find(|slot| is_in_use(*slot)) {
        return Err(CommandError::owned(format!("ERR slot {slot} of this server has keys")));
    }
    let client = cx.session.client.id;
    let importing = moves.begin(&keyspace.hidden, (id, slots, attempt), client);
    let importing = importing.ok_or(CommandError::IMPORT_OVER)?;
    moves.flush(&importing.import, None, cx.wait_for_host());
    cx.session.bring_slots(Some(Box::new(importing)));
    Ok(())
}

fn flush(cx: &mut Context<'_>, database: &[u8]) -> CommandResult {
    let database = match database.eq_ignore_ascii_case(b"all") {
        true => None,
        false => {
            let number = base::num::parse_i64(database).and_then(|own| usize::try_from(own).ok());
            Some(number.ok_or(CommandError::DB_OUT_OF_RANGE)?)
        }
    };
    let own = Arc::clone(&cx.session.import.as_ref().ok_or(NO_IMPORT)?.import);
    // Another import may have the slots by now.
    if !own.admits(std::iter::empty()) {
        return Err(CommandError::IMPORT_OVER);
    }
    // Nothing can have arrived in a database that the source alone has.
    if database.is_some_and(|own| own >= cx.engine.keyspace.databases()) {
        cx.reply.ok();
        return Ok(());
    }
    let waiter = cx.wait_for_host();
    cx.engine.slot_moves.flush(&own, database, waiter);
    Ok(())
}

/// Answers 1 if nothing of what has arrived, or of what was deleted for it, can be lost any more:
/// this server's append-only file has it on disk, and in a cluster a quorum of the shard has it.
/// Else it asks for that, and answers 0. Without a file, FSYNC is refused. `note` is done with an
/// import that is sure, and says whether it still counts.
fn sure(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    note: impl FnOnce(&Import) -> bool,
) -> CommandResult {
    let needs_file = !args.is_empty();
    if needs_file && !args.word("fsync") {
        return Err(CommandError::SYNTAX);
    }
    let own = Arc::clone(&cx.session.import.as_ref().ok_or(NO_IMPORT)?.import);
    if cx.engine.replication.is_replica() {
        return Err(CommandError::READ_ONLY_REPLICA);
    }
    // Clients of the source may have chosen that for any write, or a quorum.
    let is_synced = needs_file || cx.engine.journal.has_file();
    let of_shard = cx.db.config.cluster_enabled;
    let sync = SyncWait {
        offset: cx.session.write_offset.max(own.emptied()),
        local: is_synced.then_some(1),
        replicas: if of_shard { cx.engine.replicas.quorum.replicas() } else { 0 },
        of_shard,
    };
    let is_sure = match cx.engine.reached(&sync) {
        Reached::Yes => true,
        Reached::NotYet => false,
        Reached::Never(why) => return Err(CommandError::owned(format!("NODURABLE {why}"))),
    };
    if !is_sure {
        cx.engine.ask_for(&sync);
    } else if !note(&own) {
        return Err(CommandError::IMPORT_OVER);
    }
    cx.reply.integer(i64::from(is_sure));
    Ok(())
}

fn take(cx: &mut Context<'_>) -> CommandResult {
    if !may_debug(cx) {
        return Err(CommandError::text("ERR the cluster gives slots to servers"));
    }
    let own = cx.session.import.as_ref().ok_or(NO_IMPORT)?;
    if !cx.engine.slot_moves.take(&cx.engine.keyspace.hidden, &own.import) {
        return Err(CommandError::IMPORT_OVER);
    }
    cx.reply.ok();
    Ok(())
}

fn start(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if !may_debug(cx) {
        return Err(CommandError::text("ERR the cluster moves slots"));
    }
    let (host, port, slots) = (args.bytes()?, args.i64()?, args.bytes()?);
    let rate = match args.is_empty() {
        true => 0,
        false if args.word("rate") => args.i64()?,
        false => return Err(CommandError::SYNTAX),
    };
    let wanted = SlotMove {
        slots: SlotSet::parse(slots).ok_or(NO_SLOTS)?,
        host: String::from_utf8_lossy(host).into_owned(),
        port: u16::try_from(port).map_err(|_| CommandError::OUT_OF_RANGE)?,
        rate: u64::try_from(rate).map_err(|_| CommandError::OUT_OF_RANGE)?,
    };
    let waiter = cx.wait_for_host();
    cx.engine.host.move_slots(wanted, waiter);
    Ok(())
}

/// The command of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Cluster.rows([row(
    "slotmove",
    slotmove,
    -2,
    OF_CONNECTION | ADMIN | NOSCRIPT | NO_MULTI | IN_DANGEROUS,
    NO_KEYS,
)]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs(
    "slotmove",
    "8.0.0",
    "Brings slots to this server, or has it send slots to another one.",
)
.cost("O(N) for N keys in the slots.")
.arguments(&[one_of(
    "action",
    &[
        block(
            "begin",
            &[
                argument("id", ArgumentKind::String).token("BEGIN"),
                argument("slots", ArgumentKind::String),
                argument("epoch", ArgumentKind::Integer),
                argument("attempt", ArgumentKind::Integer),
            ],
        ),
        argument("database", ArgumentKind::String).token("FLUSH"),
        block("sure", &[word("sure", "SURE"), word("fsync", "FSYNC").optional()]),
        block("ready", &[word("ready", "READY"), word("fsync", "FSYNC").optional()]),
        word("take", "TAKE"),
        block(
            "start",
            &[
                argument("host", ArgumentKind::String).token("START"),
                argument("port", ArgumentKind::Integer),
                argument("slots", ArgumentKind::String),
                argument("bytes", ArgumentKind::Integer).token("RATE").optional(),
            ],
        ),
    ],
)])];

#[cfg(test)]
mod tests {
    use config::Config;
    use engine::turn::Turn;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::testing::{TestServer, server_with};

    const OVER: &str = "-ERR the import of these slots is over\r\n";

    /// A server with a client that brings the slot of the key `bar`.
    fn importing() -> TestServer {
        let config = Config { enable_debug_command: Permission::Yes, ..Config::default() };
        let mut server = server_with(config);
        assert_eq!(server.text("SLOTMOVE BEGIN m 5061 1 1"), "", "it waits");
        assert_eq!(server.text("SET bar 1"), "+OK\r\n");
        server
    }

    #[test]
    fn what_arrives_is_synced_where_there_is_a_file() {
        let mut server = importing();
        for line in ["SLOTMOVE SURE", "SLOTMOVE READY", "SLOTMOVE READY FSYNC"] {
            assert_eq!(server.text(line), ":0\r\n", "{line}");
        }
        server.journal.synced.store(u64::MAX, Relaxed);
        for line in ["SLOTMOVE SURE", "SLOTMOVE READY", "SLOTMOVE READY FSYNC"] {
            assert_eq!(server.text(line), ":1\r\n", "{line}");
        }
        server.journal.set_listening(false);
        assert_eq!(server.text("SLOTMOVE READY"), ":1\r\n");
        let refused = "-NODURABLE there is no append-only file\r\n";
        assert_eq!(server.text("SLOTMOVE READY FSYNC"), refused);
    }

    #[test]
    fn what_was_flushed_after_all_had_arrived_is_brought_anew() {
        let mut server = importing();
        server.journal.synced.store(u64::MAX, Relaxed);
        assert_eq!(server.text("SLOTMOVE READY"), ":1\r\n");
        let mut other = server.connect();
        assert_eq!(server.text_as(&mut other, "FLUSHALL"), "+OK\r\n");
        for line in ["SLOTMOVE SURE", "SLOTMOVE READY", "SET bar 2", "SLOTMOVE FLUSH ALL"] {
            assert_eq!(server.text(line), OVER, "{line}");
        }
        assert_eq!(server.text_as(&mut other, "SLOTMOVE BEGIN m 5061 1 2"), "", "it waits");
        assert_eq!(server.text_as(&mut other, "SET bar 2"), "+OK\r\n");
    }

    /// The source may have more of them.
    #[test]
    fn a_flush_of_a_database_that_is_not_here_has_nothing_to_do() {
        let mut server = importing();
        for number in ["16", "100000"] {
            assert_eq!(server.text(&format!("SLOTMOVE FLUSH {number}")), "+OK\r\n", "{number}");
        }
        for none in ["-1", "x"] {
            let refused = "-ERR DB index is out of range\r\n";
            assert_eq!(server.text(&format!("SLOTMOVE FLUSH {none}")), refused, "{none}");
        }
        assert_eq!(server.text("GET bar"), "$1\r\n1\r\n");
        let mut other = server.connect();
        assert_eq!(server.text_as(&mut other, "SLOTMOVE BEGIN m 5061 1 2"), "", "it waits");
        assert_eq!(server.text("SLOTMOVE FLUSH 16"), OVER);
    }

    #[test]
    fn slots_are_not_emptied_while_the_stream_stands_still() {
        let server = crate::testing::server();
        let (engine, gate) = (&server.engine, server.engine.gates.register());
        let mut turn = Turn::new(engine, "slots");
        let mut slots = SlotSet::default();
        slots.insert(5061);
        let mut empties = || engine.empty_slots(&mut turn, &gate, (&slots, None), &|| false);
        assert!(empties());
        engine.stop_writes(|| ());
        assert!(!empties(), "what is said of slots before would go into the stream");
        engine.let_writes_go_on();
        assert!(empties());
    }
}
