//! ZADD and ZINCRBY.

use store::Key;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::scored::{Conditions, ScoredMembers};

/// The options of ZADD.
#[derive(Default)]
struct Options {
    conditions: Conditions,
    /// CH: the reply counts members with a changed score, too.
    count_changed: bool,
    /// INCR: the score is added to the present one, as ZINCRBY does.
    increment: bool,
}

impl Options {
    /// Takes all options that come next.
    #[inline]
    fn read(&mut self, args: &mut Args<'_>) {
        while let Some(word) = args.peek() {
            let option = match word.len() {
                2 if word.eq_ignore_ascii_case(b"nx") => &mut self.conditions.only_new,
                2 if word.eq_ignore_ascii_case(b"xx") => &mut self.conditions.only_present,
                2 if word.eq_ignore_ascii_case(b"gt") => &mut self.conditions.only_greater,
                2 if word.eq_ignore_ascii_case(b"lt") => &mut self.conditions.only_less,
                2 if word.eq_ignore_ascii_case(b"ch") => &mut self.count_changed,
                4 if word.eq_ignore_ascii_case(b"incr") => &mut self.increment,
                _ => return,
            };
            *option = true;
            args.skip(1);
        }
    }

    /// Refuses options that contradict each other, and several members to increment.
    #[inline]
    fn check(&self, members: usize) -> CommandResult {
        let Conditions { only_new, only_present, only_greater, only_less } = self.conditions;
        let text = if only_new && only_present {
            "ERR XX and NX options at the same time are not compatible"
        } else if (only_new && (only_greater || only_less)) || (only_greater && only_less) {
            "ERR GT, LT, and/or NX options at the same time are not compatible"
        } else if self.increment && members > 1 {
            "ERR INCR option supports a single increment-element pair"
        } else {
            return Ok(());
        };
        Err(CommandError::text(text))
    }
}

/// ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]
pub(super) fn zadd(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    add(cx, args, Options::default())
}

/// ZINCRBY key increment member
pub(super) fn zincrby(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    add(cx, args, Options { increment: true, ..Options::default() })
}

#[inline]
fn add(cx: &mut Context<'_>, args: &mut Args<'_>, mut options: Options) -> CommandResult {
    let key = args.key()?;
    options.read(args);
    if args.is_empty() || !args.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    options.check(args.len() / 2)?;
    let mut members = ScoredMembers::new();
    while !args.is_empty() {
        members.push((args.f64()?, args.bytes()?));
    }
    if options.increment {
        let (increment, member) = members[0];
        return increment_score(cx, &key, options.conditions, increment, member);
    }
    let additions = cx.add_scored(&key, options.conditions, &members)?;
    let updated = if options.count_changed { additions.updated } else { 0 };
    cx.reply.integer((additions.added + updated) as i64);
    Ok(())
}

/// Adds to the score of a member, which counts as 0 for a new member, and answers the new score;
/// nothing if the conditions are not met.
fn increment_score(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    conditions: Conditions,
    increment: f64,
    member: &[u8],
) -> CommandResult {
    let limits = cx.db.zset_limits();
    let Some(zset) = cx.zset_to_fill(key, conditions)? else {
        cx.reply.null();
        return Ok(());
    };
    zset.expect(1, limits);
    let present = zset.score(member);
    let score = present.map_or(increment, |present| present + increment);
    // A score that NX rules out is not even computed.
    if score.is_nan() && !conditions.only_new {
        return Err(CommandError::text("ERR resulting score is not a number (NaN)"));
    }
    if !conditions.admit(present, score) {
        cx.reply.null();
        return Ok(());
    }
    if present != Some(score) {
        zset.insert(member, score, limits);
        cx.db.changed(key, Event(Class::ZSET, "zincr"));
    }
    cx.reply.double(score);
    Ok(())
}
