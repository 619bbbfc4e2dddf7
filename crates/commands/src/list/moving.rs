//! Elements that move from list to list, and pops from the first of several lists.

use store::Key;
use store::list::Popped;
use store::pack::End;

use super::{Answer, pop_event, pop_many, push_event};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

/// The end that an element is taken from, and the end that it is added to.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) from: End,
    pub(super) to: End,
}

impl Ends {
    /// The ends between which RPOPLPUSH moves.
    pub(super) const RPOPLPUSH: Ends = Ends { from: End::Back, to: End::Front };

    /// Reads LEFT or RIGHT, twice.
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Ends, CommandError> {
        Ok(Ends { from: parse_end(args)?, to: parse_end(args)? })
    }
}

/// LEFT or RIGHT.
pub(super) fn parse_end(args: &mut Args<'_>) -> Result<End, CommandError> {
    if args.word("left") {
        Ok(End::Front)
    } else if args.word("right") {
        Ok(End::Back)
    } else {
        Err(CommandError::SYNTAX)
    }
}

/// The word for an end in the journal.
pub(super) fn end_word(end: End) -> &'static [u8] {
    if end == End::Front { b"LEFT" } else { b"RIGHT" }
}

/// The command that pops at an end, as the journal records it.
pub(super) fn pop_word(end: End) -> &'static [u8] {
    if end == End::Front { b"LPOP" } else { b"RPOP" }
}

/// LMOVE source destination LEFT|RIGHT LEFT|RIGHT
pub(super) fn lmove(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (source, destination) = (args.key()?, args.key()?);
    let ends = Ends::parse(args)?;
    if !move_element(cx, &source, &destination, ends)? {
        cx.reply.null();
    }
    Ok(())
}

/// RPOPLPUSH source destination
pub(super) fn rpoplpush(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (source, destination) = (args.key()?, args.key()?);
    if !move_element(cx, &source, &destination, Ends::RPOPLPUSH)? {
        cx.reply.null();
    }
    Ok(())
}

/// Moves an element and answers it. Writes nothing and returns false if the source does not exist;
/// the destination must be a list only if the source exists.
pub(super) fn move_element(
    cx: &mut Context<'_>,
    source: &Key<'_>,
    destination: &Key<'_>,
    ends: Ends,
) -> Result<bool, CommandError> {
    if cx.db.list_mut(source)?.is_none() {
        return Ok(false);
    }
    cx.db.list_mut(destination)?;
    let limits = cx.db.list_limits();
    let popped = cx.db.list_mut(source)?.and_then(|list| list.pop(ends.from));
    let popped: Popped = popped.expect("the list was there just now, and lists are never empty");
    // If both are the same list, it may be empty at this moment and exists nevertheless.
    cx.db.list_or_new(destination)?.push(ends.to, &popped, &limits);
    cx.db.changed_times(destination, push_event(ends.to), 0);
    cx.db.changed(source, pop_event(ends.from));
    let emptied = cx.db.list_mut(source)?.is_some_and(|list| {
        list.shrink(&limits);
        list.is_empty()
    });
    if emptied {
        cx.db.remove_empty(source);
    }
    cx.reply.item(popped.as_item());
    Ok(true)
}

/// The arguments of LMPOP and BLMPOP after the timeout.
pub(super) struct PopMany<'a> {
    pub(super) keys: Vec<Key<'a>>,
    pub(super) end: End,
    /// At least 1.
    pub(super) count: usize,
}

impl<'a> PopMany<'a> {
    pub(super) fn parse(args: &mut Args<'a>) -> Result<PopMany<'a>, CommandError> {
        let key_count = args.at_least(1, CommandError::NO_KEYS)?;
        let keys = args.keys(key_count)?;
        let end = parse_end(args)?;
        let mut count = None;
        while !args.is_empty() {
            if count.is_some() || args.len() < 2 || !args.word("count") {
                return Err(CommandError::SYNTAX);
            }
            count = Some(args.at_least(1, CommandError::NO_COUNT)?);
        }
        Ok(PopMany { keys, end, count: count.unwrap_or(1) })
    }

    /// Pops from one of the keys and answers its name and the elements; false if none of them is a
    /// list.
    pub(super) fn pop_from(
        &self,
        cx: &mut Context<'_>,
        key: &Key<'_>,
    ) -> Result<bool, CommandError> {
        let popped = pop_many(cx, key, self.end, self.count, Answer::KeyAndPopped)?;
        let Some(popped) = popped else { return Ok(false) };
        if cx.is_journaling() {
            let digits = popped.to_string();
            cx.propagate(&[pop_word(self.end), key.bytes, digits.as_bytes()]);
        }
        Ok(true)
    }
}

/// LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]
pub(super) fn lmpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let request = PopMany::parse(args)?;
    for key in &request.keys {
        if request.pop_from(cx, key)? {
            return Ok(());
        }
    }
    cx.reply.null_array();
    Ok(())
}
