//! Lists: pushing, popping, reading and editing. `moving` has the commands that move elements
//! between lists or take them from the first of several. `blocking` has the commands that wait for
//! elements.
//!
//! Elements go from the list straight into the reply. A large element that was received into an
//! allocation of its own stays in it.

mod blocking;
mod moving;
mod rows;
#[cfg(test)]
mod tests;

use resp::reply::Reply;
use store::list::{ListInput, ListLimits, Side};
use store::pack::End;
use store::{Key, List};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

pub(crate) use rows::FAMILY;

/// LPUSH key element [element ...]
fn lpush(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    push(cx, args, End::Front)
}

/// RPUSH key element [element ...]
fn rpush(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    push(cx, args, End::Back)
}

/// LPUSHX key element [element ...]
fn lpushx(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    push_to_existing(cx, args, End::Front)
}

/// RPUSHX key element [element ...]
fn rpushx(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    push_to_existing(cx, args, End::Back)
}

#[inline]
fn push(cx: &mut Context<'_>, args: &mut Args<'_>, end: End) -> CommandResult {
    let key = args.key()?;
    let limits = cx.db.list_limits();
    let mut length = 0;
    cx.db.add_to_list(&key, push_event(end), |list| {
        let pushed = push_rest(list, args, end, &limits);
        length = list.len();
        pushed
    })?;
    cx.reply.integer(length as i64);
    Ok(())
}

fn push_to_existing(cx: &mut Context<'_>, args: &mut Args<'_>, end: End) -> CommandResult {
    let key = args.key()?;
    let limits = cx.db.list_limits();
    let Some(list) = cx.db.list_mut(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let pushed = push_rest(list, args, end, &limits);
    let length = list.len();
    cx.db.changed_times(&key, push_event(end), pushed);
    cx.reply.integer(length as i64);
    Ok(())
}

/// Pushes all remaining arguments and returns their number.
#[inline]
fn push_rest(list: &mut List, args: &mut Args<'_>, end: End, limits: &ListLimits) -> u64 {
    let pushed = args.len();
    list.expect(pushed, args.argv().skip(2).iter().map(<[u8]>::len).sum(), limits);
    while let Ok(element) = element(args) {
        list.push_expected(end, element, limits);
    }
    pushed as u64
}

/// The next argument as an element to store.
#[inline]
fn element<'a>(args: &mut Args<'a>) -> Result<ListInput<'a>, CommandError> {
    let (bytes, buffer) = args.big()?;
    Ok(buffer.map_or(ListInput::Bytes(bytes), ListInput::Shared))
}

fn push_event(end: End) -> Event {
    Event(Class::LIST, if end == End::Front { "lpush" } else { "rpush" })
}

fn pop_event(end: End) -> Event {
    Event(Class::LIST, if end == End::Front { "lpop" } else { "rpop" })
}

/// LPOP key [count]
fn lpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop(cx, args, End::Front)
}

/// RPOP key [count]
fn rpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop(cx, args, End::Back)
}

#[inline]
fn pop(cx: &mut Context<'_>, args: &mut Args<'_>, end: End) -> CommandResult {
    if args.argv().len() > 3 {
        // The row, like Redis's, says "at least two".
        return Err(CommandError::wrong_arity(cx.row.command.name));
    }
    let key = args.key()?;
    if !args.is_empty() {
        let count = args.at_least(0, CommandError::MUST_BE_POSITIVE)?;
        if pop_many(cx, &key, end, count, Answer::Popped)?.is_none() {
            cx.reply.null_array();
        }
    } else if !pop_one(cx, &key, end, Answer::Popped)? {
        cx.reply.null();
    }
    Ok(())
}

/// How a pop is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The popped element or elements alone.
    Popped,
    /// The key's name and the popped element or elements.
    KeyAndPopped,
}

impl Answer {
    #[inline]
    fn begin(self, reply: &mut Reply<'_>, key: &Key<'_>) {
        if self == Answer::KeyAndPopped {
            reply.array(2);
            reply.bulk(key.bytes);
        }
    }
}

/// Pops an element into the reply. Writes nothing and returns false if the list does not exist.
#[inline]
fn pop_one(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    end: End,
    answer: Answer,
) -> Result<bool, CommandError> {
    let limits = cx.db.list_limits();
    let reply = &mut cx.reply;
    cx.db.take_from_list(key, pop_event(end), |list| {
        answer.begin(reply, key);
        list.pop_with(end, |item| reply.item(item));
        list.shrink(&limits);
        1
    })
}

/// Pops up to `count` elements into the reply, as an array, and returns how many. Writes nothing if
/// the list does not exist.
fn pop_many(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    end: End,
    count: usize,
    answer: Answer,
) -> Result<Option<usize>, CommandError> {
    let limits = cx.db.list_limits();
    let reply = &mut cx.reply;
    let mut popped = 0;
    let found = cx.db.take_from_list(key, pop_event(end), |list| {
        let length = list.len();
        popped = count.min(length);
        answer.begin(reply, key);
        reply.array(popped);
        let first = if end == End::Front { 0 } else { length - 1 };
        list.range(first, popped, end).for_each(|item| reply.item(item));
        match end {
            End::Front => list.trim(popped as i64, -1),
            End::Back => list.trim(0, -1 - popped as i64),
        };
        list.shrink(&limits);
        popped as u64
    })?;
    Ok(found.then_some(popped))
}

/// LLEN key
fn llen(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let length = cx.db.list(&key)?.map_or(0, List::len);
    cx.reply.integer(length as i64);
    Ok(())
}

/// LINDEX key index
fn lindex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    // The key is looked at before the index is read.
    let Some(list) = cx.db.list(&key)? else {
        cx.reply.null();
        return Ok(());
    };
    match list.get(args.i64()?) {
        Some(item) => cx.reply.item(item),
        None => cx.reply.null(),
    }
    Ok(())
}

/// LRANGE key start stop
fn lrange(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, start, stop) = (args.key()?, args.i64()?, args.i64()?);
    let list = cx.db.list(&key)?;
    let range = list.and_then(|list| Some((list, list.resolve_range(start, stop)?)));
    let Some((list, (first, count))) = range else {
        cx.reply.array(0);
        return Ok(());
    };
    let reply = &mut cx.reply;
    reply.array(count);
    list.range(first, count, End::Front).for_each(|item| reply.item(item));
    Ok(())
}

/// LSET key index element
fn lset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let limits = cx.db.list_limits();
    // The key is looked at before the index is read.
    let list = cx.db.list_mut(&key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    if !list.set(args.i64()?, element(args)?, &limits) {
        return Err(CommandError::INDEX_OUT_OF_RANGE);
    }
    cx.db.changed(&key, Event(Class::LIST, "lset"));
    cx.reply.ok();
    Ok(())
}

/// LINSERT key BEFORE|AFTER pivot element
fn linsert(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let side = if args.word("after") {
        Side::After
    } else if args.word("before") {
        Side::Before
    } else {
        return Err(CommandError::SYNTAX);
    };
    let (pivot, value) = (args.bytes()?, element(args)?);
    let limits = cx.db.list_limits();
    let Some(list) = cx.db.list_mut(&key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    if !list.insert(side, pivot, value, &limits) {
        cx.reply.integer(-1);
        return Ok(());
    }
    let length = list.len();
    cx.db.changed(&key, Event(Class::LIST, "linsert"));
    cx.reply.integer(length as i64);
    Ok(())
}

/// LREM key count element
fn lrem(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, count, text) = (args.key()?, args.signed_count()?, args.bytes()?);
    let limits = cx.db.list_limits();
    let mut removed = 0;
    cx.db.take_from_list(&key, Event(Class::LIST, "lrem"), |list| {
        removed = list.remove(count, text, &limits) as u64;
        if removed > 0 {
            list.shrink(&limits);
        }
        removed
    })?;
    cx.reply.integer(removed as i64);
    Ok(())
}

/// LTRIM key start stop
fn ltrim(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, start, stop) = (args.key()?, args.i64()?, args.i64()?);
    let limits = cx.db.list_limits();
    if let Some(list) = cx.db.list_mut(&key)? {
        let removed = list.trim(start, stop);
        list.shrink(&limits);
        let emptied = list.is_empty();
        // An event even when nothing was cut off, as in Redis.
        cx.db.changed_times(&key, Event(Class::LIST, "ltrim"), removed as u64);
        if emptied {
            cx.db.remove_empty(&key);
        }
    }
    cx.reply.ok();
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// Where the search begins.
    from: End,
    /// Matches to pass over.
    skip: usize,
    /// Matches to report; one, and not as an array, when absent.
    count: Option<usize>,
    /// Elements to look at.
    scan: usize,
}

impl Search {
    fn parse(args: &mut Args<'_>) -> Result<Search, CommandError> {
        const NO_RANK: CommandError = CommandError::text(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        );
        let mut search = Search { from: End::Front, skip: 0, count: None, scan: usize::MAX };
        while !args.is_empty() {
            let has_value = args.len() > 1;
            if has_value && args.word("rank") {
                let rank = args.signed_count()?;
                search.from = if rank < 0 { End::Back } else { End::Front };
                search.skip = (rank.unsigned_abs() as usize).checked_sub(1).ok_or(NO_RANK)?;
            } else if has_value && args.word("count") {
                let error = CommandError::text("ERR COUNT can't be negative");
                search.count = Some(all_if_zero(args.at_least(0, error)?));
            } else if has_value && args.word("maxlen") {
                let error = CommandError::text("ERR MAXLEN can't be negative");
                search.scan = all_if_zero(args.at_least(0, error)?);
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(search)
    }
}

fn all_if_zero(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

/// LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]
fn lpos(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, text) = (args.key()?, args.bytes()?);
    let search = Search::parse(args)?;
    let limit = search.count.unwrap_or(1);
    let found = match cx.db.list(&key)? {
        Some(list) => list.positions(text, search.from, search.skip, limit, search.scan),
        None => Vec::new(),
    };
    match (search.count, found.first()) {
        (Some(_), _) => {
            cx.reply.array(found.len());
            found.iter().for_each(|&position| cx.reply.integer(position as i64));
        }
        (None, Some(&position)) => cx.reply.integer(position as i64),
        (None, None) => cx.reply.null(),
    }
    Ok(())
}
