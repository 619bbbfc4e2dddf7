//! FAILOVER: the server hands over to one of its replicas.

use std::sync::OnceLock;

use config::PrimaryAddress;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, Argument, ArgumentKind, Docs, Group, INTERNAL, NO_KEYS, NOSCRIPT, SKIP_MONITOR, STALE,
    STOPS_THE_WORLD, argument, block, docs, word,
};
use engine::engine::{Command, Context, Family, Row, row};
use engine::handler::flush::stopped_world;
use engine::host::LogLevel;
use engine::session::failover::{Next, Plan, address_of};

use super::primary::{UNBLOCKED, lead};

/// The options of FAILOVER as they are given.
#[derive(Default)]
struct Options<'a> {
    target: Option<(&'a [u8], i64)>,
    timeout: u64,
    forced: bool,
    aborts: bool,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options =
            Options { aborts: args.len() == 1 && args.word("abort"), ..Options::default() };
        while !args.is_empty() {
            let left = args.len();
            if options.timeout == 0 && left >= 2 && args.word("timeout") {
                let timeout = u64::try_from(args.i64()?).unwrap_or_default();
                if timeout == 0 {
                    let text = "ERR FAILOVER timeout must be greater than 0";
                    return Err(CommandError::text(text));
                }
                options.timeout = timeout;
            } else if options.target.is_none() && left >= 3 && args.word("to") {
                options.target = Some((args.bytes()?, args.i64()?));
            } else if !options.forced && args.word("force") {
                options.forced = true;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]
fn failover(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if cx.db.cluster.is_some() {
        return Err(CommandError::text(
            "ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.",
        ));
    }
    let options = Options::parse(args)?;
    let is_on = cx.engine.failover.is_on();
    if options.aborts {
        if !is_on {
            return Err(CommandError::text("ERR No failover in progress."));
        }
        give_up(cx, "Failover manually aborted");
        cx.reply.ok();
        return Ok(());
    }
    let refused = if is_on {
        Some("ERR FAILOVER already in progress.")
    } else if cx.engine.replication.is_replica() {
        Some("ERR FAILOVER is not valid when server is a replica.")
    } else if cx.engine.replicas.is_empty() {
        Some("ERR FAILOVER requires connected replicas.")
    } else if options.forced && (options.timeout == 0 || options.target.is_none()) {
        Some("ERR FAILOVER with force option requires both a timeout and target HOST and IP.")
    } else {
        None
    };
    if let Some(text) = refused {
        return Err(CommandError::text(text));
    }
    let target = options.target.map(|(host, port)| target(cx, host, port)).transpose()?;
    let whom = target.as_ref().map_or_else(|| "any replica".to_owned(), name_of);
    cx.engine.host.log(LogLevel::Notice, &format!("FAILOVER requested to {whom}."));
    let until = (options.timeout > 0).then(|| cx.db.monotonic.saturating_add(options.timeout));
    let plan = Plan { target, until, forced: options.forced };
    cx.engine.begin_failover(stopped_world(cx), plan);
    cx.reply.ok();
    Ok(())
}

fn name_of(address: &PrimaryAddress) -> String {
    format!("{}:{}", String::from_utf8_lossy(&address.host), address.port)
}

/// The replica that is meant, which has to follow already.
fn target(cx: &Context<'_>, host: &[u8], port: i64) -> Result<PrimaryAddress, CommandError> {
    let unknown = || CommandError::text("ERR FAILOVER target HOST and PORT is not a replica.");
    let replica = cx.engine.replica_at(host, port).ok_or_else(unknown)?;
    let address = address_of(&replica).ok_or_else(unknown)?;
    if !replica.is_online() {
        return Err(CommandError::text("ERR FAILOVER target replica is not online."));
    }
    Ok(address)
}

/// Ends a failover that does not succeed. A server that is a replica already leads again.
fn give_up(cx: &mut Context<'_>, why: &str) {
    let state = cx.engine.failover.name();
    let line = format!("Aborting failover while {state}: {why}");
    cx.engine.host.log(LogLevel::Notice, &line);
    if cx.engine.failover.asks() {
        lead(cx, "failover");
    }
    end(cx);
}

/// Lets writes go on, or be refused.
fn end(cx: &mut Context<'_>) {
    cx.engine.end_failover(stopped_world(cx));
    cx.engine.wake_all_clients();
}

/// REPLICATION HANDOVER (NEXT | ANSWERED | LATE | REFUSED): what the thread of the host does that looks
/// after a failover. It answers whether there was anything to do.
fn hand_over(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    cx.propagate_nothing();
    let mut done = true;
    if args.word("next") {
        match cx.engine.failover.next(&cx.engine.replicas, cx.db.monotonic) {
            Next::Wait => done = false,
            Next::Ask => {
                let end = cx.engine.ask_as_last(stopped_world(cx));
                cx.engine.failover.note_asked(end);
            }
            Next::GiveUp => give_up(cx, "Replica never caught up before timeout"),
            Next::HandOver(target) => {
                let line = format!("Failing over to {}.", name_of(&target));
                cx.engine.host.log(LogLevel::Notice, &line);
                // Before any worker can see the new part: see `follow`.
                cx.engine.break_waits(UNBLOCKED);
                cx.engine.hand_over(stopped_world(cx), target);
                // Some wait for copies that this server does not count any more.
                cx.engine.wake_all_clients();
                cx.db.effects.config_changed = true;
            }
        }
    } else if !cx.engine.failover.asks() {
        // It was aborted meanwhile.
        done = false;
    } else if args.word("answered") {
        end(cx);
    } else if args.word("late") {
        give_up(cx, "Failover target did not answer before timeout");
    } else {
        give_up(cx, "Failover target rejected psync request");
    }
    cx.reply.integer(i64::from(done));
    Ok(())
}

/// The row of the internal command, among all rows.
pub(crate) fn hand_over_row(rows: &'static [Row]) -> &'static Row {
    static ROW: OnceLock<&'static Row> = OnceLock::new();
    ROW.get_or_init(|| {
        let mut rows = rows.iter();
        let row = rows.find(|row| {
            row.command.parent == Some("replication") && row.command.name == "handover"
        });
        row.expect("it is one of the rows below")
    })
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

/// The internal command of this family.
pub(crate) const INTERNALS: Family = Family::new(INTERNAL_COMMANDS, INTERNAL_DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([row(
    "failover",
    failover,
    -1,
    ADMIN | NOSCRIPT | STALE | STOPS_THE_WORLD,
    NO_KEYS,
)]);

const INTERNAL_COMMANDS: &[Command] = &Group::Server.under("replication").rows([row(
    "handover",
    hand_over,
    2,
    INTERNAL | SKIP_MONITOR | NOSCRIPT | STALE | STOPS_THE_WORLD,
    NO_KEYS,
)]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs("failover", "6.2.0", "Hands over to one of the server's replicas.")
    .cost("O(1)")
    .arguments(ARGUMENTS)];

const INTERNAL_DOCS: &[Docs] =
    &[docs("replication|handover", "7.0.0", "Goes on with a FAILOVER.").cost("O(1)")];

const ARGUMENTS: &[Argument] = &[
    block(
        "target",
        &[
            argument("host", ArgumentKind::String),
            argument("port", ArgumentKind::Integer),
            word("force", "FORCE").optional(),
        ],
    )
    .token("TO")
    .optional(),
    word("abort", "ABORT").optional(),
    argument("milliseconds", ArgumentKind::Integer).token("TIMEOUT").optional(),
];
