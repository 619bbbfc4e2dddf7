//! Bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP, BITFIELD.
//!
//! [`crate::bitmap::bits`] counts, finds and combines the bits.

mod bits;
mod field;

use crate::bitmap::bits::{self as bitmap, Operation};
use base::num::parse_i64;
use store::{StringBytes, StringValue};

use engine::command::ArgumentKind::Integer;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ACCESS, Argument, CHANGES, DENYOOM, Docs, FAST, Group, KeySpec, OW, READONLY, RO, RW, UPDATE,
    VARIABLE_FLAGS, WRITE, argument, block, docs, key, one_of, word,
};
use engine::db::notify::{Class, Event};
use engine::engine::{Command, Context, Family, row};

/// BITFIELD has this event too, as in Redis.
const SETBIT: Event = Event(Class::STRING, "setbit");
const SET: Event = Event(Class::STRING, "set");
const DEL: Event = Event(Class::GENERIC, "del");

const BAD_OFFSET: CommandError =
    CommandError::text("ERR bit offset is not an integer or out of range");

/// Reads an offset in bits, within the longest string that the settings allow.
fn offset(cx: &Context<'_>, text: &[u8]) -> Result<u64, CommandError> {
    parse_i64(text).and_then(|offset| check_offset(cx, offset)).ok_or(BAD_OFFSET)
}

fn check_offset(cx: &Context<'_>, offset: i64) -> Option<u64> {
    let longest = cx.longest_string();
    u64::try_from(offset).ok().filter(|offset| offset / 8 < longest)
}

/// SETBIT key offset value
fn setbit(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let offset = offset(cx, args.bytes()?)?;
    let bit = match args.bytes()? {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::text("ERR bit is not an integer or out of range")),
    };
    let end = (offset / 8) as usize + 1;
    let Some(mut entry) = cx.db.find_mut(&key) else {
        let mut bytes = vec![0; end];
        bitmap::set(&mut bytes, offset, bit);
        cx.db.set_string(&key, StringValue::Raw(bytes.into()), None, SETBIT);
        cx.reply.integer(0);
        return Ok(());
    };
    let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
    let grows = end > string.len();
    let byte = entry.string_range_mut(end, end - 1..end).ok_or(CommandError::WRONG_TYPE)?;
    let before = bitmap::set(byte, offset % 8, bit);
    if grows || before != bit {
        cx.db.changed(&key, SETBIT);
    }
    cx.reply.integer(i64::from(before));
    Ok(())
}

/// GETBIT key offset
fn getbit(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let offset = offset(cx, args.bytes()?)?;
    let string = cx.db.string(&key)?;
    let bit = string.is_some_and(|string| bitmap::get(&string.bytes(), offset));
    cx.reply.integer(i64::from(bit));
    Ok(())
}

/// A range of a string as BITCOUNT and BITPOS take it, in bytes or in bits, both ends included;
/// negative ends count from the end of the string.
struct BitRange {
    start: i64,
    end: i64,
    in_bits: bool,
}

impl BitRange {
    fn parse_unit(args: &mut Args<'_>) -> Result<bool, CommandError> {
        let in_bits = args.word("BIT");
        if !in_bits && !args.is_empty() && !args.word("BYTE") {
            return Err(CommandError::SYNTAX);
        }
        args.end()?;
        Ok(in_bits)
    }

    /// The offsets of the first and the last bit in a string of `length` bytes, if it has any.
    fn resolve(&self, length: usize) -> Option<(u64, u64)> {
        let total = length as i64 * if self.in_bits { 8 } else { 1 };
        let from_start = |at: i64| if at < 0 { at.saturating_add(total).max(0) } else { at };
        let (start, end) = (from_start(self.start), from_start(self.end).min(total - 1));
        if start > end {
            return None;
        }
        let (start, end) = (start.unsigned_abs(), end.unsigned_abs());
        Some(if self.in_bits { (start, end) } else { (start * 8, end * 8 + 7) })
    }
}

/// BITCOUNT key [start [end [BYTE | BIT]]]
fn bitcount(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let range = match args.len() {
        0 => None,
        // Valkey's: Redis 8.0 asks for an end.
        1 => Some(BitRange { start: args.i64()?, end: -1, in_bits: false }),
        2 | 3 => {
            let (start, end) = (args.i64()?, args.i64()?);
            Some(BitRange { start, end, in_bits: BitRange::parse_unit(args)? })
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let count = match (cx.db.string(&key)?, range) {
        (None, _) => 0,
        (Some(string), None) => bitmap::count(&string.bytes()),
        (Some(string), Some(range)) => {
            let bytes = string.bytes();
            // Both negative and in the wrong order: nothing, however short the string.
            let reversed = range.start < 0 && range.end < 0 && range.start > range.end;
            let bits = range.resolve(bytes.len()).filter(|_| !reversed);
            bits.map_or(0, |(first, last)| bitmap::count_range(&bytes, first..=last))
        }
    };
    cx.reply.integer(count as i64);
    Ok(())
}

/// BITPOS key bit [start [end [BYTE | BIT]]]
fn bitpos(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let bit = match args.i64()? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    let mut range = BitRange { start: 0, end: -1, in_bits: false };
    let ends_somewhere = args.len() >= 2;
    if args.len() > 3 {
        return Err(CommandError::SYNTAX);
    }
    if !args.is_empty() {
        range.start = args.i64()?;
    }
    if !args.is_empty() {
        // The unit is looked at first.
        let end = args.bytes()?;
        range.in_bits = BitRange::parse_unit(args)?;
        range.end = parse_i64(end).ok_or(CommandError::NOT_AN_INTEGER)?;
    }
    // A missing key is all zeros, for any range.
    let Some(string) = cx.db.string(&key)? else {
        cx.reply.integer(if bit { -1 } else { 0 });
        return Ok(());
    };
    let bytes = string.bytes();
    let position = match range.resolve(bytes.len()) {
        None => None,
        Some((first, last)) => bitmap::position(&bytes, bit, first..=last)
            // Without an end the string counts as followed by zeros.
            .or((!bit && !ends_somewhere).then_some(bytes.len() as u64 * 8)),
    };
    cx.reply.integer(position.map_or(-1, u64::cast_signed));
    Ok(())
}

/// BITOP AND | OR | XOR | NOT destkey key [key ...]
fn bitop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let operation = if args.word("AND") {
        Operation::And
    } else if args.word("OR") {
        Operation::Or
    } else if args.word("XOR") {
        Operation::Xor
    } else if args.word("NOT") {
        Operation::Not
    } else {
        return Err(CommandError::SYNTAX);
    };
    let destination = args.key()?;
    let keys = args.rest_as_keys()?;
    if operation == Operation::Not && keys.len() != 1 {
        let text = "ERR BITOP NOT must be called with a single source key.";
        return Err(CommandError::text(text));
    }
    let mut sources: Vec<StringBytes<'_>> = Vec::with_capacity(keys.len());
    let mut missing = false;
    for key in &keys {
        match cx.db.string(key)? {
            Some(string) => sources.push(string.bytes()),
            None => missing = true,
        }
    }
    let mut strings: Vec<&[u8]> = sources.iter().map(|source| &**source).collect();
    if missing {
        // Missing keys are empty strings, so one of them is enough.
        strings.push(&[]);
    }
    let result = bitmap::combine(operation, &strings);
    let length = result.len();
    if length > 0 {
        cx.db.set_string(&destination, StringValue::Raw(result.into()), None, SET);
    } else if cx.db.remove(&destination) {
        cx.db.changed(&destination, DEL);
    }
    cx.reply.integer(length as i64);
    Ok(())
}

const READS: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1)];

/// Behind the operation.
const STORES_ALL_2: &[KeySpec] =
    &[KeySpec::at(OW | UPDATE, 2), KeySpec::range(RO | ACCESS, 3, -1, 1)];
/// What happens depends on the operations.
const VARIES: &[KeySpec] = &[KeySpec::at(RW | ACCESS | UPDATE | VARIABLE_FLAGS, 1)
    .notes("This command allows both access and modification of the key")];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Bitmap.rows([
    row("setbit", setbit, 4, WRITE | DENYOOM, CHANGES),
    row("getbit", getbit, 3, READONLY | FAST, READS),
    row("bitcount", bitcount, -2, READONLY, READS),
    row("bitpos", bitpos, -3, READONLY, READS),
    row("bitop", bitop, -4, WRITE | DENYOOM, STORES_ALL_2),
    row("bitfield", field::bitfield, -2, WRITE | DENYOOM, VARIES).key_flags(field::key_flags),
    row("bitfield_ro", field::bitfield_ro, -2, READONLY | FAST, READS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);
const UNIT: Argument =
    one_of("unit", &[word("byte", "BYTE"), word("bit", "BIT")]).since("7.0.0").optional();

const UNITS_ADDED: &[(&str, &str)] = &[("7.0.0", "Takes `BYTE` and `BIT`.")];

const DOCS: &[Docs] = &[
    docs("setbit", "2.2.0", "Sets or clears a bit of the string under a key.")
        .cost("O(1)")
        .arguments(&[KEY, argument("offset", Integer), argument("value", Integer)]),
    docs("getbit", "2.2.0", "Returns a bit of the string under a key.")
        .cost("O(1)")
        .arguments(&[KEY, argument("offset", Integer)]),
    docs("bitcount", "2.6.0", "Counts the set bits of a string.")
        .cost("O(N)")
        .arguments(&[
            KEY,
            block("range", &[argument("start", Integer), argument("end", Integer), UNIT])
                .optional(),
        ])
        .history(UNITS_ADDED),
    docs("bitpos", "2.8.7", "Finds the first set or clear bit of a string.")
        .cost("O(N)")
        .arguments(&[
            KEY,
            argument("bit", Integer),
            block(
                "range",
                &[
                    argument("start", Integer),
                    block("end-unit-block", &[argument("end", Integer), UNIT]).optional(),
                ],
            )
            .optional(),
        ])
        .history(UNITS_ADDED),
    docs("bitop", "2.6.0", "Combines strings bit by bit and stores the result.")
        .cost("O(N)")
        .arguments(&[
            one_of(
                "operation",
                &[word("and", "AND"), word("or", "OR"), word("xor", "XOR"), word("not", "NOT")],
            ),
            key("destkey", 0),
            key("key", 1).multiple(),
        ]),
    docs("bitfield", "3.2.0", "Reads and writes integers of any width inside a string.")
        .cost("O(1) for each subcommand specified")
        .arguments(&[KEY, field::OPERATIONS]),
    docs("bitfield_ro", "6.0.0", "Reads integers of any width inside a string.")
        .cost("O(1) for each subcommand specified")
        .arguments(&[KEY, field::GET.optional().multiple_token()]),
];
