//! CLUSTERSCAN: a walk over all keys of a cluster, slot after slot.
//!
//! Its cursor names the slot that comes next by a hash tag, so clients send it where they would
//! send a key with that tag, and follow the slot when it moves.
//!
//! ```text
//!     1-{06S}-4711     the slot of the tag `06S`, and a position in its table
//!     |
//!     the order of positions: it is the same on all nodes
//! ```

use std::sync::OnceLock;

use base::limits::{SLOTS, WALKED_PER_LOCK};

use engine::admission::slots::serves_slot;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::scan::{ScanOptions, Scanned};
use engine::handler::walk::{SlotWalk, walk_in_slot};
use resp::output::Output;
use resp::reply::Reply;

use super::slots::slot;
use super::view;

/// The order of positions in the tables of this version. A cursor of another order begins its slot
/// again.
const ORDER: &[u8] = b"1";

const INVALID_CURSOR: CommandError = CommandError::text("ERR Invalid cursor");

/// Where a walk goes on: a slot, and a position in its table.
type Cursor = (u16, u32);

/// A short hash tag for each slot.
fn tags() -> &'static [[u8; 3]] {
    static TAGS: OnceLock<Vec<[u8; 3]>> = OnceLock::new();
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    TAGS.get_or_init(|| {
        let mut tags = vec![None; SLOTS];
        let texts = DIGITS.iter().flat_map(|first| {
            let second = DIGITS.iter();
            second.flat_map(move |second| DIGITS.iter().map(move |third| [*first, *second, *third]))
        });
        for text in texts {
            tags[usize::from(base::crc::key_slot(&text))].get_or_insert(text);
        }
        let all: Option<Vec<_>> = tags.into_iter().collect();
        all.expect("three letters make a tag for each slot")
    })
}

/// The slot and the position that a cursor names; nothing for the one that begins.
fn parse(text: &[u8]) -> Result<Option<Cursor>, CommandError> {
    if text == b"0" {
        return Ok(None);
    }
    let parts: Vec<&[u8]> = text.splitn(3, |byte| *byte == b'-').collect();
    let [order, tag, position] = parts[..] else { return Err(INVALID_CURSOR) };
    let inner = tag.strip_prefix(b"{").and_then(|tag| tag.strip_suffix(b"}"));
    let position = base::num::parse_i64(position).and_then(|number| u32::try_from(number).ok());
    let (Some(inner), Some(position)) = (inner.filter(|own| !own.is_empty()), position) else {
        return Err(INVALID_CURSOR);
    };
    let position = if order == ORDER { position } else { 0 };
    Ok(Some((base::crc::key_slot(inner), position)))
}

fn show((slot, position): Cursor) -> Vec<u8> {
    let tag = tags()[usize::from(slot)];
    [ORDER, b"-{", &tag, b"}-", position.to_string().as_bytes()].concat()
}

/// CLUSTERSCAN cursor [MATCH pattern] [COUNT count] [TYPE type] [SLOT slot]
pub(super) fn clusterscan(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    let cursor = parse(args.bytes()?)?;
    let (only, options) = options(args)?;
    let from = match (cursor, only) {
        (Some((slot, _)), Some(only)) if slot != only => {
            return Err(CommandError::text("ERR Cursor slot mismatch with SLOT argument"));
        }
        (Some(cursor), _) => cursor,
        // Any node says where a walk begins.
        (None, only) => {
            reply(cx, Some((only.unwrap_or(0), 0)), &Output::new(), 0);
            return Ok(());
        }
    };
    serves_slot(cx, from.0)?;
    let mut keys = Output::new();
    let (next, count) = look(cx, from, only.is_some(), &options, &mut keys)?;
    reply(cx, next, &keys, count);
    Ok(())
}

/// Takes SLOT out of the options; the others are those of SCAN.
fn options<'a>(args: &mut Args<'a>) -> Result<(Option<u16>, ScanOptions<'a>), CommandError> {
    ScanOptions::parse_with_slot(args, Scanned::Keys, slot)
}

/// Looks at keys from a place on: at those of one slot, or also of the slots behind it, as long as
/// this node has them. Returns where to go on, and how many keys are shown.
fn look(
    cx: &Context<'_>,
    (mut slot, mut position): Cursor,
    is_alone: bool,
    options: &ScanOptions<'_>,
    keys: &mut Output,
) -> Result<(Option<Cursor>, usize), CommandError> {
    let view = view(cx)?;
    let mut shown = Reply::new(keys, cx.session.resp3);
    let (mut seen, mut count) = (0, 0);
    loop {
        let wanted = (options.count - seen).min(WALKED_PER_LOCK);
        let walk =
            walk_in_slot(&cx.db, cx.slot_access, (slot, position), wanted, |_, entry, lives| {
                let type_name = entry.value().type_name().as_bytes();
                let is_wanted =
                    options.type_name.is_none_or(|name| name.eq_ignore_ascii_case(type_name));
                if lives && is_wanted && options.admits(entry.key()) {
                    shown.bulk(entry.key());
                    count += 1;
                }
            });
        match walk {
            SlotWalk::Missed if seen == 0 => return Err(CommandError::MISSED_SLOT),
            SlotWalk::Missed => {
                cx.db.locked.forgive_missed();
                return Ok((Some((slot, position)), count));
            }
            SlotWalk::Looked { seen: looked, next: Some(next) } => {
                seen += looked;
                position = next;
            }
            SlotWalk::Looked { seen: looked, next: None } => {
                seen += looked;
                let next = next_slot(cx, slot, |slot| view.has_slot(slot));
                let Some(next) = next.filter(|_| !is_alone) else { return Ok((None, count)) };
                (slot, position) = (next, 0);
                if !view.has_slot(slot) {
                    return Ok((Some((slot, 0)), count));
                }
            }
        }
        if seen >= options.count {
            return Ok((Some((slot, position)), count));
        }
    }
}

/// The slot at which a walk goes on after another one: empty slots of this node are left out.
fn next_slot(cx: &Context<'_>, after: u16, has: impl Fn(u16) -> bool) -> Option<u16> {
    let keyspace = &cx.engine.keyspace;
    let mut later = after + 1..SLOTS as u16;
    later.find(|slot| !has(*slot) || keyspace.slot_len(cx.db.index, *slot) > 0)
}

fn reply(cx: &mut Context<'_>, next: Option<Cursor>, keys: &Output, count: usize) {
    cx.reply.array(2);
    match next {
        Some(cursor) => cx.reply.bulk(&show(cursor)),
        None => cx.reply.bulk(b"0"),
    }
    cx.reply.array(count);
    keys.slices().for_each(|slice| cx.reply.raw(slice));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_lies_in_the_slot_that_it_names() {
        for slot in 0..SLOTS as u16 {
            let text = show((slot, 7));
            assert_eq!(base::crc::key_slot(&text), slot);
            assert_eq!(parse(&text), Ok(Some((slot, 7))));
        }
        assert_eq!(parse(b"0"), Ok(None));
        assert_eq!(parse(b"9-{06S}-7"), Ok(Some((0, 0))), "positions of another order");
        for wrong in [&b""[..], b"1", b"x", b"1-{}-0", b"1-06S-0", b"1-{06S}", b"1-{06S}--1"] {
            assert_eq!(parse(wrong), Err(INVALID_CURSOR));
        }
    }
}
