//! The commands that take members from either end, at once or when there are any.
//!
//! The journal always gets ZPOPMIN or ZPOPMAX of the one key that gave something.

use resp::reply::Reply;
use store::pack::{Element, OwnedElement};
use store::{Key, Zset};

use super::after_removal;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::{Context, Serve};
use engine::handler::elements::ReplyElements;
use engine::handler::scored::ReplyScored;
use engine::session::awaited::AwaitedValue;

/// Where members are taken out.
#[derive(Clone, Copy)]
enum Extreme {
    Lowest,
    Highest,
}

impl Extreme {
    fn parse(args: &mut Args<'_>) -> Result<Extreme, CommandError> {
        if args.word("min") {
            Ok(Extreme::Lowest)
        } else if args.word("max") {
            Ok(Extreme::Highest)
        } else {
            Err(CommandError::SYNTAX)
        }
    }

    fn pop(self, zset: &mut Zset) -> Option<(OwnedElement, f64)> {
        match self {
            Extreme::Lowest => zset.pop_min(),
            Extreme::Highest => zset.pop_max(),
        }
    }

    fn event(self) -> &'static str {
        match self {
            Extreme::Lowest => "zpopmin",
            Extreme::Highest => "zpopmax",
        }
    }

    /// The command for the journal.
    fn command(self) -> &'static [u8] {
        match self {
            Extreme::Lowest => b"ZPOPMIN",
            Extreme::Highest => b"ZPOPMAX",
        }
    }
}

/// ZPOPMIN key [count]
pub(super) fn zpopmin(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop(cx, args, Extreme::Lowest)
}

/// ZPOPMAX key [count]
pub(super) fn zpopmax(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop(cx, args, Extreme::Highest)
}

fn pop(cx: &mut Context<'_>, args: &mut Args<'_>, extreme: Extreme) -> CommandResult {
    let key = args.key()?;
    if args.len() > 1 {
        return Err(CommandError::SYNTAX);
    }
    if args.is_empty() {
        if !pop_one(cx, &key, extreme, false)? {
            cx.reply.array(0);
        }
        return Ok(());
    }
    let count = args.at_least(0, CommandError::MUST_BE_POSITIVE)?;
    let begin = |reply: &mut Reply<'_>, members| reply.scored_array(members, true);
    let show = |reply: &mut Reply<'_>, member: Element<'_>, score| {
        reply.scored(member, score, true);
    };
    if pop_many(cx, &key, extreme, count, begin, show)? == 0 {
        cx.reply.array(0);
    }
    Ok(())
}

/// Pops a member and answers it and its score, after the key's name if `with_key`. Writes nothing
/// and returns false when there is no such sorted set.
#[inline]
fn pop_one(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    extreme: Extreme,
    with_key: bool,
) -> Result<bool, CommandError> {
    let Some(zset) = cx.db.zset_mut(key)? else { return Ok(false) };
    let Some((member, score)) = extreme.pop(zset) else { return Ok(false) };
    let emptied = zset.is_empty();
    cx.reply.array(if with_key { 3 } else { 2 });
    if with_key {
        cx.reply.bulk(key.bytes);
    }
    cx.reply.element(member.as_element());
    cx.reply.double(score);
    after_removal(cx, key, extreme.event(), 1, emptied);
    Ok(true)
}

/// Pops up to `count` members and returns how many. When there are any, `begin` writes the part of
/// the reply before them, and `show` each of them.
fn pop_many(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    extreme: Extreme,
    count: usize,
    begin: impl FnOnce(&mut Reply<'_>, usize),
    show: impl Fn(&mut Reply<'_>, Element<'_>, f64),
) -> Result<usize, CommandError> {
    let Some(zset) = cx.db.zset_mut(key)? else { return Ok(0) };
    let count = count.min(zset.len());
    if count == 0 {
        return Ok(0);
    }
    begin(&mut cx.reply, count);
    for _ in 0..count {
        let (member, score) = extreme.pop(zset).expect("no more than there are");
        show(&mut cx.reply, member.as_element(), score);
    }
    let emptied = zset.is_empty();
    after_removal(cx, key, extreme.event(), count, emptied);
    Ok(count)
}

/// The arguments of ZMPOP and BZMPOP.
struct PopMany<'a> {
    keys: Vec<Key<'a>>,
    extreme: Extreme,
    count: usize,
}

impl<'a> PopMany<'a> {
    /// Reads `numkeys key [key ...] MIN|MAX [COUNT count]`.
    fn parse(args: &mut Args<'a>) -> Result<PopMany<'a>, CommandError> {
        let keys = args.at_least(1, CommandError::NO_KEYS)?;
        let keys = args.keys(keys)?;
        let extreme = Extreme::parse(args)?;
        let mut count = None;
        while !args.is_empty() {
            if count.is_some() || args.len() < 2 || !args.word("count") {
                return Err(CommandError::SYNTAX);
            }
            count = Some(args.at_least(1, CommandError::NO_COUNT)?);
        }
        Ok(PopMany { keys, extreme, count: count.unwrap_or(1) })
    }

    /// Pops from the first key that has anything. Writes nothing and returns false if none has.
    fn pop_from(&self, cx: &mut Context<'_>, key: &Key<'_>) -> Result<bool, CommandError> {
        let begin = |reply: &mut Reply<'_>, members| {
            reply.array(2);
            reply.bulk(key.bytes);
            reply.array(members);
        };
        // Pairs are arrays of their own here, in RESP2 too.
        let show = |reply: &mut Reply<'_>, member: Element<'_>, score| {
            reply.array(2);
            reply.element(member);
            reply.double(score);
        };
        let popped = pop_many(cx, key, self.extreme, self.count, begin, show)?;
        if popped > 0 {
            let digits = popped.to_string();
            cx.propagate(&[self.extreme.command(), key.bytes, digits.as_bytes()]);
        }
        Ok(popped > 0)
    }
}

/// ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]
pub(super) fn zmpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let request = PopMany::parse(args)?;
    for key in &request.keys {
        if request.pop_from(cx, key)? {
            return Ok(());
        }
    }
    cx.reply.null_array();
    Ok(())
}

/// BZPOPMIN key [key ...] timeout
pub(super) fn bzpopmin(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop_or_wait(cx, args, Extreme::Lowest)
}

/// Serves BZPOPMIN.
pub(super) const SERVE_BZPOPMIN: Serve = |cx, key, _| pop_for_waiter(cx, key, Extreme::Lowest);

/// BZPOPMAX key [key ...] timeout
pub(super) fn bzpopmax(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop_or_wait(cx, args, Extreme::Highest)
}

/// Serves BZPOPMAX.
pub(super) const SERVE_BZPOPMAX: Serve = |cx, key, _| pop_for_waiter(cx, key, Extreme::Highest);

fn pop_or_wait(cx: &mut Context<'_>, args: &mut Args<'_>, extreme: Extreme) -> CommandResult {
    let keys = args.keys(args.len() - 1)?;
    let timeout = args.timeout()?;
    let take = |cx: &mut Context<'_>, key: &Key<'_>| pop_for_waiter(cx, key, extreme);
    cx.take_or_wait((&keys, AwaitedValue::Zset), timeout, args.argv(), take)
}

/// Pops a member and answers it after its key's name; false when there is no such sorted set.
fn pop_for_waiter(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    extreme: Extreme,
) -> Result<bool, CommandError> {
    let popped = pop_one(cx, key, extreme, true)?;
    if popped {
        cx.propagate(&[extreme.command(), key.bytes]);
    }
    Ok(popped)
}

/// BZMPOP timeout numkeys key [key ...] MIN|MAX [COUNT count]
pub(super) fn bzmpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut timeout = args.clone();
    args.skip(1);
    // The arguments after the timeout are looked at before it.
    let request = PopMany::parse(args)?;
    let timeout = timeout.timeout()?;
    let take = |cx: &mut Context<'_>, key: &Key<'_>| request.pop_from(cx, key);
    cx.take_or_wait((&request.keys, AwaitedValue::Zset), timeout, args.argv(), take)
}

/// Serves BZMPOP.
pub(super) const SERVE_BZMPOP: Serve = |cx, key, argv| {
    let mut args = Args::new(argv, &[]);
    args.skip(1);
    PopMany::parse(&mut args)?.pop_from(cx, key)
};
