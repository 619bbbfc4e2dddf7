//! What is in a slot: KEYSLOT, COUNTKEYSINSLOT, GETKEYSINSLOT and SLOT-STATS.

use base::limits::{SLOTS, WALKED_PER_LOCK};

use engine::cluster::slot_stats::SlotCost;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::walk::{SlotWalk, walk_in_slot};

use super::view;

const NO_SLOT: CommandError = CommandError::text("ERR Invalid or out of range slot");
const NO_LIMIT: CommandError =
    CommandError::text("ERR Limit has to lie in between 1 and 16384 (maximum number of slots).");

/// CLUSTER KEYSLOT key
pub(super) fn keyslot(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    args.skip(1);
    let slot = base::crc::key_slot(args.bytes()?);
    cx.reply.integer(i64::from(slot));
    Ok(())
}

/// The next argument as a slot, if it is a number.
fn number_of_slot(args: &mut Args<'_>) -> Result<Option<u16>, CommandError> {
    Ok(u16::try_from(args.i64()?).ok().filter(|slot| usize::from(*slot) < SLOTS))
}

/// The next argument as a slot.
pub(super) fn slot(args: &mut Args<'_>) -> Result<u16, CommandError> {
    number_of_slot(args).ok().flatten().ok_or(NO_SLOT)
}

/// CLUSTER COUNTKEYSINSLOT slot
pub(super) fn countkeysinslot(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    args.skip(1);
    let slot = number_of_slot(args)?.ok_or(CommandError::text("ERR Invalid slot"))?;
    let count = match view.has_slot(slot) {
        true => cx.engine.keyspace.slot_len(cx.db.index, slot),
        false => 0,
    };
    cx.reply.integer(count as i64);
    Ok(())
}

/// CLUSTER GETKEYSINSLOT slot count
pub(super) fn getkeysinslot(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    args.skip(1);
    let (slot, count) = (number_of_slot(args)?, usize::try_from(args.i64()?).ok());
    let (Some(slot), Some(count)) = (slot, count) else {
        return Err(CommandError::text("ERR Invalid slot or number of keys"));
    };
    let mark = cx.reply.mark();
    let mut shown = 0;
    let mut next = view.has_slot(slot).then_some(0);
    while let Some(position) = next.filter(|_| shown < count) {
        let reply = &mut cx.reply;
        let wanted = (count - shown).min(WALKED_PER_LOCK);
        let walk =
            walk_in_slot(&cx.db, cx.slot_access, (slot, position), wanted, |_, entry, lives| {
                if lives && shown < count {
                    reply.bulk(entry.key());
                    shown += 1;
                }
            });
        next = match walk {
            SlotWalk::Missed => return Err(CommandError::MISSED_SLOT),
            SlotWalk::Looked { next, .. } => next,
        };
    }
    cx.reply.close_array(mark, shown);
    Ok(())
}

/// By what CLUSTER SLOT-STATS orders slots.
#[derive(Clone, Copy)]
enum Metric {
    Keys,
    Processor,
    BytesIn,
    BytesOut,
}

/// What CLUSTER SLOT-STATS shows of a slot.
struct Shown {
    slot: u16,
    keys: u64,
    cost: SlotCost,
}

impl Shown {
    fn of(cx: &Context<'_>, slot: u16) -> Shown {
        let keyspace = &cx.engine.keyspace;
        let databases = 0..keyspace.databases();
        let keys = databases.map(|database| keyspace.slot_len(database, slot) as u64).sum();
        Shown { slot, keys, cost: cx.engine.cluster.slot_stats.of(slot) }
    }

    fn measure(&self, metric: Metric) -> u64 {
        match metric {
            Metric::Keys => self.keys,
            Metric::Processor => self.cost.nanoseconds,
            Metric::BytesIn => self.cost.bytes_in,
            Metric::BytesOut => self.cost.bytes_out,
        }
    }
}

/// CLUSTER SLOT-STATS (SLOTSRANGE start end | ORDERBY metric [LIMIT limit] [ASC | DESC])
pub(super) fn slot_stats(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    args.skip(1);
    let own = |first: u16, last: u16| (first..=last).filter(|slot| view.has_slot(*slot));
    if args.len() == 3 && args.word("slotsrange") {
        let (first, last) = (slot(args)?, slot(args)?);
        if first > last {
            return Err(CommandError::owned(format!(
                "ERR Start slot number {first} is greater than end slot number {last}"
            )));
        }
        let all: Vec<_> = own(first, last).map(|slot| Shown::of(cx, slot)).collect();
        reply_stats(cx, &all);
        return Ok(());
    }
    if args.len() < 2 || !args.word("orderby") {
        return Err(CommandError::subcommand_syntax("cluster", args.argv().at(1)));
    }
    let order = Order::parse(args, cx.db.config.cluster_slot_stats_enabled)?;
    let mut all: Vec<_> = own(0, SLOTS as u16 - 1).map(|slot| Shown::of(cx, slot)).collect();
    let compare = |one: &Shown, other: &Shown| {
        let by = one.measure(order.metric).cmp(&other.measure(order.metric));
        let by = if order.ascending { by } else { by.reverse() };
        by.then(one.slot.cmp(&other.slot))
    };
    if order.limit < all.len() {
        all.select_nth_unstable_by(order.limit, compare);
        all.truncate(order.limit);
    }
    all.sort_unstable_by(compare);
    reply_stats(cx, &all);
    Ok(())
}

/// How CLUSTER SLOT-STATS orders slots.
struct Order {
    metric: Metric,
    limit: usize,
    ascending: bool,
}

impl Order {
    fn parse(args: &mut Args<'_>, counts_costs: bool) -> Result<Order, CommandError> {
        let metric = match () {
            () if args.word("key-count") => Metric::Keys,
            () if counts_costs && args.word("cpu-usec") => Metric::Processor,
            () if counts_costs && args.word("network-bytes-in") => Metric::BytesIn,
            () if counts_costs && args.word("network-bytes-out") => Metric::BytesOut,
            () => return Err(CommandError::text("ERR Unrecognized sort metric for ORDERBY.")),
        };
        let (mut limit, mut ascending) = (None, None);
        while !args.is_empty() {
            let is_again = if args.len() >= 2 && args.word("limit") {
                let given = args.at_least(1, NO_LIMIT)?;
                limit.replace(if given > SLOTS { return Err(NO_LIMIT) } else { given }).is_some()
            } else if args.word("asc") {
                ascending.replace(true).is_some()
            } else if args.word("desc") {
                ascending.replace(false).is_some()
            } else {
                return Err(CommandError::SYNTAX);
            };
            if is_again {
                let text = "ERR Multiple filters of the same type are disallowed.";
                return Err(CommandError::text(text));
            }
        }
        let ascending = ascending.unwrap_or(false);
        Ok(Order { metric, limit: limit.unwrap_or(SLOTS), ascending })
    }
}

fn reply_stats(cx: &mut Context<'_>, all: &[Shown]) {
    let counts_costs = cx.db.config.cluster_slot_stats_enabled;
    cx.reply.array(all.len());
    for Shown { slot, keys, cost } in all {
        cx.reply.array(2);
        cx.reply.integer(i64::from(*slot));
        cx.reply.map(if counts_costs { 4 } else { 1 });
        cx.reply.bulk(b"key-count");
        cx.reply.integer(keys.cast_signed());
        if !counts_costs {
            continue;
        }
        let costs = [
            ("cpu-usec", cost.nanoseconds / 1000),
            ("network-bytes-in", cost.bytes_in),
            ("network-bytes-out", cost.bytes_out),
        ];
        for (name, value) in costs {
            cx.reply.bulk(name.as_bytes());
            cx.reply.integer(value.cast_signed());
        }
    }
}
