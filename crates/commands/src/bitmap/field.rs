//! BITFIELD: integers of any width inside a string.

use crate::bitmap::bits::{Field, Overflow};
use base::num::parse_i64;
use resp::args::Arguments;
use store::{EntryMut, Key, StringValue};

use super::{BAD_OFFSET, SETBIT, check_offset};
use engine::command::ArgumentKind::{Integer, String};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{ACCESS, Argument, KeyFlags, RO, RW, UPDATE, argument, block, one_of, word};
use engine::engine::Context;

/// One operation of BITFIELD.
#[derive(Clone, Copy)]
struct FieldOperation {
    action: Action,
    field: Field,
    offset: u64,
    overflow: Overflow,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

impl FieldOperation {
    /// The byte in which the field begins.
    fn start(&self) -> usize {
        (self.offset / 8) as usize
    }

    /// The same operation on bytes that begin at `byte`, which is not after the operation's first
    /// byte.
    fn seen_from(&self, byte: usize) -> FieldOperation {
        FieldOperation { offset: self.offset - 8 * byte as u64, ..*self }
    }

    /// The byte after the field.
    fn end(&self) -> usize {
        (self.offset + u64::from(self.field.width())).div_ceil(8) as usize
    }

    fn writes(&self) -> bool {
        !matches!(self.action, Action::Get)
    }

    fn get(&self, bytes: &[u8]) -> i64 {
        self.field.get(bytes, self.offset)
    }

    /// Changes the field. Returns the reply, or none when the number does not fit and was
    /// refused, and whether another number is there now.
    fn apply(&self, bytes: &mut [u8]) -> (Option<i64>, bool) {
        let before = self.get(bytes);
        let exact = match self.action {
            Action::Get => return (Some(before), false),
            Action::Set(value) => self.field.argument(value),
            Action::Add(amount) => i128::from(before) + i128::from(amount),
        };
        let Some(after) = self.field.fit(exact, self.overflow) else { return (None, false) };
        self.field.set(bytes, self.offset, after);
        let reply = if matches!(self.action, Action::Set(_)) { before } else { after };
        (Some(reply), before != after)
    }
}

/// Reads all operations.
fn parse(cx: &Context<'_>, args: &mut Args<'_>) -> Result<Vec<FieldOperation>, CommandError> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    while !args.is_empty() {
        if args.word("OVERFLOW") {
            overflow = parse_overflow(args)?;
            continue;
        }
        // The number that the action needs comes last, but decides how many arguments there must
        // be.
        let (action, count): (fn(i64) -> Action, usize) = if args.word("GET") {
            (|_| Action::Get, 2)
        } else if args.word("SET") {
            (Action::Set, 3)
        } else if args.word("INCRBY") {
            (Action::Add, 3)
        } else {
            return Err(CommandError::SYNTAX);
        };
        if args.len() < count {
            return Err(CommandError::SYNTAX);
        }
        let field = Field::parse(args.bytes()?).ok_or(CommandError::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        ))?;
        let offset = parse_offset(cx, args.bytes()?, field)?;
        let action = action(if count == 3 { args.i64()? } else { 0 });
        operations.push(FieldOperation { action, field, offset, overflow });
    }
    Ok(operations)
}

fn parse_overflow(args: &mut Args<'_>) -> Result<Overflow, CommandError> {
    if args.is_empty() {
        return Err(CommandError::SYNTAX);
    }
    if args.word("WRAP") {
        Ok(Overflow::Wrap)
    } else if args.word("SAT") {
        Ok(Overflow::Saturate)
    } else if args.word("FAIL") {
        Ok(Overflow::Fail)
    } else {
        Err(CommandError::text("ERR Invalid OVERFLOW type specified"))
    }
}

/// An offset in bits, or after a `#` in fields of this width.
fn parse_offset(cx: &Context<'_>, text: &[u8], field: Field) -> Result<u64, CommandError> {
    let offset = match text {
        [b'#', index @ ..] => {
            parse_i64(index).and_then(|index| index.checked_mul(i64::from(field.width())))
        }
        text => parse_i64(text),
    };
    offset.and_then(|offset| check_offset(cx, offset)).ok_or(BAD_OFFSET)
}

/// BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL]
///     SET encoding offset value | INCRBY encoding offset increment ...]
pub(super) fn bitfield(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let operations = parse(cx, args)?;
    match operations.iter().filter(|operation| operation.writes()).map(FieldOperation::end).max() {
        Some(end) => change(cx, &key, &operations, end),
        None => read(cx, &key, &operations),
    }
}

/// BITFIELD_RO key [GET encoding offset ...]
pub(super) fn bitfield_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let operations = parse(cx, args)?;
    if operations.iter().any(FieldOperation::writes) {
        return Err(CommandError::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(cx, &key, &operations)
}

fn read(cx: &mut Context<'_>, key: &Key<'_>, operations: &[FieldOperation]) -> CommandResult {
    let string = cx.db.string(key)?.map(|string| string.bytes());
    let bytes = string.as_deref().unwrap_or_default();
    cx.reply.array(operations.len());
    operations.iter().for_each(|operation| cx.reply.integer(operation.get(bytes)));
    Ok(())
}

/// Runs operations of which some write. The string becomes long enough for all of these, even if
/// their numbers are refused.
fn change(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    operations: &[FieldOperation],
    end: usize,
) -> CommandResult {
    let Some(mut entry) = cx.db.find_mut(key) else {
        let mut bytes = vec![0; end];
        let replies = apply_all(operations, &mut bytes, true);
        cx.db.set_string(key, StringValue::Raw(bytes.into()), None, SETBIT);
        // One change was counted for the key.
        cx.add_dirty(replies.changes.saturating_sub(1));
        reply(cx, &replies);
        return Ok(());
    };
    let replies = apply_to_entry(&mut entry, operations, end)?;
    if replies.changes > 0 {
        cx.db.changed_times(key, SETBIT, replies.changes);
    }
    reply(cx, &replies);
    Ok(())
}

fn apply_to_entry(
    entry: &mut EntryMut<'_>,
    operations: &[FieldOperation],
    end: usize,
) -> Result<Replies, CommandError> {
    let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
    let (grows, length) = (end > string.len(), end.max(string.len()));
    // For a large string, only the part that the operations concern.
    let start = operations.iter().map(FieldOperation::start).min().unwrap_or(0);
    let behind = operations.iter().map(FieldOperation::end).max().unwrap_or(0).min(length);
    let operations: Vec<_> =
        operations.iter().map(|operation| operation.seen_from(start)).collect();
    let bytes = entry.string_range_mut(end, start..behind).ok_or(CommandError::WRONG_TYPE)?;
    let mut replies = apply_all(&operations, bytes, grows);
    // A longer string is a change, even if no number was written.
    replies.changes = replies.changes.max(u64::from(grows));
    Ok(replies)
}

struct Replies {
    values: Vec<Option<i64>>,
    /// Writes that count as changes.
    changes: u64,
}

/// Runs operations one after the other. When the string `grows`, each write counts as a change.
fn apply_all(operations: &[FieldOperation], bytes: &mut [u8], grows: bool) -> Replies {
    let mut replies = Replies { values: Vec::with_capacity(operations.len()), changes: 0 };
    for operation in operations {
        let (value, differs) = operation.apply(bytes);
        let wrote = operation.writes() && value.is_some();
        replies.changes += u64::from(wrote && (differs || grows));
        replies.values.push(value);
    }
    replies
}

fn reply(cx: &mut Context<'_>, replies: &Replies) {
    cx.reply.array(replies.values.len());
    for value in &replies.values {
        match value {
            Some(value) => cx.reply.integer(*value),
            None => cx.reply.null(),
        }
    }
}

const ENCODING: Argument = argument("encoding", String);
const OFFSET: Argument = argument("offset", Integer);

/// The arguments of BITFIELD_RO.
pub(super) const GET: Argument = block("get-block", &[ENCODING, OFFSET]).token("GET");

const OVERFLOW: Argument =
    one_of("overflow-block", &[word("wrap", "WRAP"), word("sat", "SAT"), word("fail", "FAIL")])
        .token("OVERFLOW")
        .optional();

const WRITES: Argument = one_of(
    "write-operation",
    &[
        block("set-block", &[ENCODING, OFFSET, argument("value", Integer)]).token("SET"),
        block("incrby-block", &[ENCODING, OFFSET, argument("increment", Integer)]).token("INCRBY"),
    ],
);

/// The arguments of BITFIELD.
pub(super) const OPERATIONS: Argument =
    one_of("operation", &[GET, block("write", &[OVERFLOW, WRITES])]).optional().multiple();

/// What BITFIELD does with its key.
pub(super) fn key_flags(argv: &Arguments<'_>) -> KeyFlags {
    if only_gets(argv.skip(2)) { RO | ACCESS } else { RW | ACCESS | UPDATE }
}

/// Whether all operations of BITFIELD are known to be reads. An incomplete operation counts as a
/// change.
fn only_gets(operations: Arguments<'_>) -> bool {
    let mut at = 0;
    while at < operations.len() {
        let behind = operations.len() - at - 1;
        let is = |word: &[u8]| operations.at(at).eq_ignore_ascii_case(word);
        at += if is(b"get") && behind >= 2 {
            3
        } else if is(b"overflow") && behind >= 1 {
            2
        } else {
            return false;
        };
    }
    true
}
#[cfg(test)]
mod tests {

    #[test]
    fn fields_lie_where_they_are_said_to_in_a_string_of_which_a_part_is_changed() {
        let mut server = crate::testing::server();
        server.text("SETRANGE k 100000 x");
        let line = "BITFIELD k SET u8 8000 200 GET u8 8000 GET u16 800000 INCRBY i5 8003 1 \
                    GET u8 7996 GET u8 4000000 SET u4 8012 3";
        let numbers = [0, 200, 0x7800, 9, 0xc, 0, 0];
        let answers: String = numbers.iter().map(|number| format!(":{number}\r\n")).collect();
        assert_eq!(server.text(line), format!("*7\r\n{answers}"));
        assert_eq!(server.run(&["GETRANGE", "k", "1000", "1001"]), b"$2\r\n\xc9\x03\r\n");
        assert_eq!(server.text("STRLEN k"), ":100001\r\n");
        assert_eq!(server.text("BITFIELD k SET u8 800008 7 GET u8 800000"), "*2\r\n:0\r\n:120\r\n");
        assert_eq!(server.text("STRLEN k"), ":100002\r\n");
    }
}
