//! HyperLogLog: PFADD, PFCOUNT, PFMERGE, and two commands that look inside.
//!
//! The value is a string whose content [`crate::hyperloglog::registers`] understands. A dense one
//! is changed where it lies. A sparse one is short, so a copy is changed and then replaces it.

mod registers;

use crate::hyperloglog::registers::{
    Encoding, HyperLogLog, HyperLogLogError, REGISTERS, Registers,
};
use store::{Entry, EntryMut, Key, Removed, StringValue, Value};

use engine::command::ArgumentKind::String;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ACCESS, ADDS, ADMIN, Argument, DENYOOM, Docs, FAST, Group, INSERT, KeySpec, MAY_REPLICATE,
    NO_KEYS, READONLY, RO, RW, WRITE, argument, docs, key,
};
use engine::db::notify::{Class, Event};
use engine::engine::{Command, Context, Family, row};

/// PFMERGE has this event too, as in Redis.
const PFADD: Event = Event(Class::STRING, "pfadd");

impl From<HyperLogLogError> for CommandError {
    fn from(error: HyperLogLogError) -> CommandError {
        CommandError::text(match error {
            HyperLogLogError::NotHyperLogLog => {
                "WRONGTYPE Key is not a valid HyperLogLog string value."
            }
            HyperLogLogError::Corrupted => "INVALIDOBJ Corrupted HLL object detected",
        })
    }
}

/// A copy of the value of an entry. Dense ones are better changed by [`in_place`].
fn copy(entry: Entry<'_>) -> Result<HyperLogLog<Vec<u8>>, CommandError> {
    let string = entry.value().as_string().ok_or(CommandError::WRONG_TYPE)?;
    Ok(HyperLogLog::parse(string.bytes().to_vec())?)
}

/// The value of an entry, to be changed without changing its length.
fn in_place<'e>(entry: &'e mut EntryMut<'_>) -> Result<HyperLogLog<&'e mut [u8]>, CommandError> {
    let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
    HyperLogLog::parse(&*string.bytes())?;
    let bytes = entry.string_mut(0).ok_or(CommandError::WRONG_TYPE)?;
    Ok(HyperLogLog::parse(bytes)?)
}

/// Replaces the value of an entry.
fn put(entry: &mut EntryMut<'_>, value: HyperLogLog<Vec<u8>>) -> Option<Removed> {
    let expire_at = entry.as_ref().expire_at();
    entry.replace(Value::String(raw(value)), expire_at)
}

fn raw(value: HyperLogLog<Vec<u8>>) -> StringValue<'static> {
    StringValue::Raw(value.into_bytes().into())
}

/// PFADD key [element ...]
fn pfadd(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let elements = args.rest();
    let sparse_maximum = cx.db.config.hll_sparse_max_bytes;
    let Some(mut entry) = cx.db.find_mut(&key) else {
        let mut value = HyperLogLog::new();
        let mut rises = 0;
        for element in elements.iter() {
            rises += u64::from(value.add(element, sparse_maximum)?);
        }
        cx.db.set_string(&key, raw(value), None, PFADD);
        cx.add_dirty(rises);
        cx.reply.integer(1);
        return Ok(());
    };
    let mut rises = 0;
    let mut replaced = None;
    let mut value = in_place(&mut entry)?;
    if value.encoding() == Encoding::Dense {
        for element in elements.iter() {
            rises += u64::from(value.add_in_place(element) == Some(true));
        }
    } else {
        let mut value = copy(entry.as_ref())?;
        for element in elements.iter() {
            rises += u64::from(value.add(element, sparse_maximum)?);
        }
        replaced = put(&mut entry, value);
    }
    if let Some(replaced) = replaced {
        cx.db.discard(replaced);
    }
    if rises > 0 {
        cx.db.changed_times(&key, PFADD, rises);
    }
    cx.reply.integer(i64::from(rises > 0));
    Ok(())
}

/// PFCOUNT key [key ...]
fn pfcount(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let count = match args.len() {
        1 => count_one(cx, &args.key()?)?,
        _ => {
            let keys = args.rest_as_keys()?;
            let mut registers = Registers::new();
            merge_into(cx, &keys, &mut registers)?;
            registers.estimate()
        }
    };
    cx.reply.integer(count.cast_signed());
    Ok(())
}

/// The count of one value, which remembers it: a change of bytes, though by a command that reads.
fn count_one(cx: &mut Context<'_>, key: &Key<'_>) -> Result<u64, CommandError> {
    let Some(string) = cx.db.string(key)? else { return Ok(0) };
    let bytes = string.bytes();
    let value = HyperLogLog::parse(&*bytes)?;
    if let Some(count) = value.cached_count() {
        return Ok(count);
    }
    let count = value.estimate()?;
    if cx.db.effects.journal_failed {
        return Ok(count);
    }
    if let Some(mut entry) = cx.db.find_mut(key) {
        in_place(&mut entry)?.cache_count(count);
        // A client of a replica has changed nothing that others would lack.
        if cx.session.link.is_some() || !cx.engine.replication.is_replica() {
            cx.db.changed_silently(key, 1);
        }
    }
    Ok(count)
}

/// Raises registers to those of all values. Returns whether one of them is dense.
fn merge_into(
    cx: &Context<'_>,
    keys: &[Key<'_>],
    registers: &mut Registers,
) -> Result<bool, CommandError> {
    let mut dense = false;
    for key in keys {
        let Some(string) = cx.db.string(key)? else { continue };
        let bytes = string.bytes();
        let value = HyperLogLog::parse(&*bytes)?;
        dense |= value.encoding() == Encoding::Dense;
        value.merge_into(registers)?;
    }
    Ok(dense)
}

/// PFMERGE destkey [sourcekey ...]
fn pfmerge(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let keys = args.rest_as_keys()?;
    let sparse_maximum = cx.db.config.hll_sparse_max_bytes;
    let mut registers = Registers::new();
    // The destination counts among the sources.
    let dense = merge_into(cx, &keys, &mut registers)?;
    let destination = &keys[0];
    let changed = cx.db.change(destination, PFADD, |entry| {
        let mut value = copy(entry.as_ref())?;
        value.absorb(&registers, dense, sparse_maximum)?;
        Ok(put(entry, value))
    })?;
    match changed {
        Some(Some(replaced)) => cx.db.discard(replaced),
        Some(None) => {}
        None => {
            let mut value = HyperLogLog::new();
            value.absorb(&registers, dense, sparse_maximum)?;
            cx.db.set_string(destination, raw(value), None, PFADD);
        }
    }
    cx.reply.ok();
    Ok(())
}

/// PFDEBUG GETREG | DECODE | ENCODING | TODENSE key, PFDEBUG SIMD ON | OFF
fn pfdebug(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let action = args.bytes()?;
    let is = |word: &str| action.eq_ignore_ascii_case(word.as_bytes());
    if is("SIMD") {
        if !args.word("on") && !args.word("off") {
            return Err(CommandError::text("ERR Argument must be ON or OFF"));
        }
        // There is one way to count, as in Redis on a processor without special instructions for
        // it.
        cx.reply.simple(b"disabled");
        return Ok(());
    }
    let key = args.key()?;
    let entry = cx.db.find_mut(&key);
    let entry = entry.ok_or(CommandError::text("ERR The specified key does not exist"))?;
    let value = copy(entry.as_ref())?;
    if is("GETREG") {
        make_dense(cx, &key, value.clone())?;
        let mut registers = Registers::new();
        value.merge_into(&mut registers)?;
        cx.reply.array(REGISTERS);
        registers.values().iter().for_each(|&value| cx.reply.integer(i64::from(value)));
    } else if is("DECODE") {
        let runs = value.describe_runs();
        let runs = runs.ok_or(CommandError::text("ERR HLL encoding is not sparse"))?;
        cx.reply.bulk(runs.as_bytes());
    } else if is("ENCODING") {
        cx.reply.simple(match value.encoding() {
            Encoding::Dense => b"dense",
            Encoding::Sparse => b"sparse",
        });
    } else if is("TODENSE") {
        let converted = make_dense(cx, &key, value)?;
        cx.reply.integer(i64::from(converted));
    } else {
        return Err(CommandError::quoting("ERR Unknown PFDEBUG subcommand '", action, "'"));
    }
    Ok(())
}

/// Stores a sparse value as a dense one. Returns whether it was sparse.
fn make_dense(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    mut value: HyperLogLog<Vec<u8>>,
) -> Result<bool, CommandError> {
    let converted = value.make_dense()?;
    if converted {
        let replaced = cx.db.find_mut(key).and_then(|mut entry| put(&mut entry, value));
        if let Some(replaced) = replaced {
            cx.db.discard(replaced);
        }
        cx.db.converted(key);
    }
    Ok(converted)
}

/// PFSELFTEST
fn pfselftest(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let failed = |text| CommandError::owned(format!("ERR TESTFAILED {text}"));
    crate::hyperloglog::registers::self_test().map_err(failed)?;
    cx.reply.ok();
    Ok(())
}

/// Keys that are counted together.
const COUNTS: &[KeySpec] = &[KeySpec::range(RW | ACCESS, 1, -1, 1).notes(
    "RW because it may change the internal representation of the key, and propagate to replicas",
)];
/// Merges all other keys into the first.
const MERGES: &[KeySpec] =
    &[KeySpec::at(RW | ACCESS | INSERT, 1), KeySpec::range(RO | ACCESS, 2, -1, 1)];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::HyperLogLog.rows([
    row("pfadd", pfadd, -2, WRITE | DENYOOM | FAST, ADDS),
    row("pfcount", pfcount, -2, READONLY | MAY_REPLICATE, COUNTS),
    row("pfmerge", pfmerge, -2, WRITE | DENYOOM, MERGES),
    row("pfdebug", pfdebug, 3, WRITE | DENYOOM | ADMIN, &[KeySpec::at(RW | ACCESS, 2)]),
    row("pfselftest", pfselftest, 1, ADMIN, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);

const DOCS: &[Docs] = &[
    docs("pfadd", "2.8.9", "Adds elements to a HyperLogLog.")
        .cost("O(1) to add every element.")
        .arguments(&[KEY, argument("element", String).optional().multiple()]),
    docs(
        "pfcount",
        "2.8.9",
        "Estimates how many distinct elements HyperLogLogs have seen together.",
    )
    .cost("O(1) for one key; O(N) for N keys, each of which takes a while.")
    .arguments(&[KEY.multiple()]),
    docs("pfmerge", "2.8.9", "Merges HyperLogLogs into one.")
        .cost("O(N) for N keys, each of which takes a while.")
        .arguments(&[key("destkey", 0), key("sourcekey", 1).optional().multiple()]),
    docs("pfdebug", "2.8.9", "Shows the inside of a HyperLogLog.")
        .cost("N/A")
        .arguments(&[argument("subcommand", String), KEY])
        .system(),
    docs("pfselftest", "2.8.9", "Checks the estimates of HyperLogLogs.").cost("N/A").system(),
];
