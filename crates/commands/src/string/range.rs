//! Parts of strings: APPEND, STRLEN, SETRANGE, GETRANGE.

use store::StringValue;

use super::stored;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

const APPEND: Event = Event(Class::STRING, "append");
const SETRANGE: Event = Event(Class::STRING, "setrange");

/// APPEND key value
pub(super) fn append(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let (added, buffer) = args.big()?;
    let longest = cx.longest_string();
    let length = cx.db.change(&key, APPEND, |entry| {
        let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
        let length = string.len();
        let end = end_of(length, added.len(), longest)?;
        let bytes = entry.string_range_mut(end, length..end).ok_or(CommandError::WRONG_TYPE)?;
        bytes.copy_from_slice(added);
        Ok(end)
    })?;
    if length.is_none() {
        cx.db.set_string(&key, stored(added, buffer), None, APPEND);
    }
    cx.reply.integer(length.unwrap_or(added.len()) as i64);
    Ok(())
}

/// STRLEN key
pub(super) fn strlen(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let length = cx.db.string(&key)?.map_or(0, |string| string.len());
    cx.reply.integer(length as i64);
    Ok(())
}

/// SETRANGE key offset value
pub(super) fn setrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, offset, part) = (args.key()?, args.i64()?, args.bytes()?);
    let Ok(offset) = usize::try_from(offset) else {
        return Err(CommandError::text("ERR offset is out of range"));
    };
    if part.is_empty() {
        let length = match cx.db.find_mut(&key) {
            None => 0,
            Some(entry) => {
                let string = entry.as_ref().value().as_string();
                string.ok_or(CommandError::WRONG_TYPE)?.len()
            }
        };
        cx.reply.integer(length as i64);
        return Ok(());
    }
    let longest = cx.longest_string();
    let length = cx.db.change(&key, SETRANGE, |entry| {
        let string = entry.as_ref().value().as_string().ok_or(CommandError::WRONG_TYPE)?;
        let end = end_of(offset, part.len(), longest)?;
        let length = string.len().max(end);
        let bytes = entry.string_range_mut(end, offset..end).ok_or(CommandError::WRONG_TYPE)?;
        bytes.copy_from_slice(part);
        Ok(length)
    })?;
    let length = match length {
        Some(length) => length,
        None => {
            let end = end_of(offset, part.len(), longest)?;
            let mut bytes = vec![0; end];
            bytes[offset..].copy_from_slice(part);
            cx.db.set_string(&key, StringValue::Raw(bytes.into()), None, SETRANGE);
            end
        }
    };
    cx.reply.integer(length as i64);
    Ok(())
}

/// GETRANGE key start end, and its old name SUBSTR
pub(super) fn getrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, start, end) = (args.key()?, args.i64()?, args.i64()?);
    let Some(string) = cx.db.string(&key)? else {
        cx.reply.bulk(b"");
        return Ok(());
    };
    match part(string.len(), start, end) {
        Some(range) if range.len() == string.len() => cx.reply.string(string),
        Some(range) => cx.reply.bulk(&string.bytes()[range]),
        None => cx.reply.bulk(b""),
    }
    Ok(())
}

/// The bytes from `start` to `end`, both included, of a string of `length` bytes; negative ones
/// count from the end. `None` when it is empty.
fn part(length: usize, start: i64, end: i64) -> Option<std::ops::Range<usize>> {
    // Two negative ends in the wrong order stay empty if both are before the string; any other end
    // before the string is its first byte.
    if length == 0 || (start < 0 && end < 0 && start > end) {
        return None;
    }
    let from_start = |index: i64| match index {
        0.. => index as usize,
        _ => length.saturating_sub(index.unsigned_abs() as usize),
    };
    let (start, end) = (from_start(start), from_start(end).min(length - 1));
    (start <= end).then_some(start..end + 1)
}

/// Where a part that is written at an offset ends, if the string may become that long.
fn end_of(offset: usize, added: usize, longest: u64) -> Result<usize, CommandError> {
    let end = offset.checked_add(added).filter(|&end| end as u64 <= longest);
    end.ok_or(CommandError::STRING_TOO_LONG)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn ranges_are_cut_to_the_string() {
        let cases = [
            ((11, 0, 4), Some(0..5)),
            ((11, 0, -1), Some(0..11)),
            ((11, -5, 100), Some(6..11)),
            ((11, 5, 2), None),
            ((11, 11, 11), None),
            ((11, -100, -50), Some(0..1)),
            ((11, -50, -100), None),
            ((11, i64::MIN, i64::MAX), Some(0..11)),
            ((11, 0, i64::MIN), Some(0..1)),
            ((0, 0, -1), None),
        ];
        for ((length, start, end), expected) in cases {
            assert_eq!(part(length, start, end), expected, "{length} {start} {end}");
        }
    }
}
