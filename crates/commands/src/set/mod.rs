//! Sets: adding, removing, looking up, drawing and moving members. Intersections, unions and
//! differences are in `algebra`.

mod algebra;
mod rows;

use base::rng;
use smallvec::SmallVec;
use store::pack::{Element, INTEGER_TEXT_BYTES, OwnedElement};
use store::{Key, Set};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::{ReplyElements, reply_repeating};
use engine::handler::scan::{self, ScanOptions, ScanStep, Scanned};

pub(crate) use rows::FAMILY;

/// Members that one command of the journal removes.
const REMOVALS_PER_EFFECT: usize = 1024;

/// When SPOP takes at least this many times the members that remain, Redis makes a new set of the
/// remaining ones. So a table of few members is then left as a listpack.
const FEW_REMAIN: usize = 5;

const POPPED: Event = Event(Class::SET, "spop");

/// SADD key member [member ...]
fn sadd(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let limits = cx.db.set_limits();
    let members = args.rest();
    let mut added = 0;
    cx.db.add_to_set(&key, Event(Class::SET, "sadd"), |set| {
        set.expect(members.get(0).unwrap_or_default(), members.len(), limits);
        added = members.iter().filter(|member| set.add(member, limits)).count() as u64;
        added
    })?;
    cx.reply.integer(added as i64);
    Ok(())
}

/// SREM key member [member ...]
fn srem(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let members = args.rest();
    let mut removed = 0;
    cx.db.take_from_set(&key, Event(Class::SET, "srem"), |set| {
        removed = members.iter().filter(|member| set.remove(member)).count() as u64;
        removed
    })?;
    cx.reply.integer(removed as i64);
    Ok(())
}

/// SCARD key
fn scard(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let count = cx.db.set_of(&key)?.map_or(0, Set::len);
    cx.reply.integer(count as i64);
    Ok(())
}

/// SISMEMBER key member
fn sismember(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, member) = (args.key()?, args.bytes()?);
    let found = cx.db.set_of(&key)?.is_some_and(|set| set.contains(member));
    cx.reply.integer(i64::from(found));
    Ok(())
}

/// SMISMEMBER key member [member ...]
fn smismember(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let set = cx.db.set_of(&key)?;
    let members = args.rest();
    cx.reply.array(members.len());
    for member in members.iter() {
        let found = set.is_some_and(|set| set.contains(member));
        cx.reply.integer(i64::from(found));
    }
    Ok(())
}

/// SMEMBERS key
fn smembers(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let Some(set) = cx.db.set_of(&key)? else {
        cx.reply.set(0);
        return Ok(());
    };
    cx.reply.set(set.len());
    set.iter().for_each(|member| cx.reply.element(member));
    Ok(())
}

/// SPOP key [count]
fn spop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    if !args.is_empty() {
        return spop_many(cx, &key, args);
    }
    let mut popped = None;
    cx.db.take_from_set(&key, POPPED, |set| {
        popped = rng::with(|rng| set.pop_random(rng));
        u64::from(popped.is_some())
    })?;
    match popped {
        Some(member) => {
            cx.reply.element(member.as_element());
            propagate_removals(cx, &key, &[member]);
        }
        None => cx.reply.null(),
    }
    Ok(())
}

/// SPOP with a count.
fn spop_many(cx: &mut Context<'_>, key: &Key<'_>, args: &mut Args<'_>) -> CommandResult {
    if args.len() > 1 {
        return Err(CommandError::SYNTAX);
    }
    let count = args.at_least(0, CommandError::MUST_BE_POSITIVE)?;
    let limits = cx.db.set_limits();
    let set = cx.db.set_mut(key)?;
    let Some(set) = set.filter(|_| count > 0) else {
        cx.reply.set(0);
        return Ok(());
    };
    if count >= set.len() {
        return spop_all(cx, key);
    }
    let remaining = set.len() - count;
    let mut drawn = Vec::with_capacity(count);
    rng::with(|rng| {
        set.random_distinct(count, rng, |member| drawn.push(member.to_owned_element()));
    });
    cx.reply.set(count);
    for member in &drawn {
        set.remove_element(member.as_element());
        cx.reply.element(member.as_element());
    }
    if remaining * FEW_REMAIN <= count {
        set.repack(limits);
    }
    cx.db.changed_times(key, POPPED, count as u64);
    propagate_removals(cx, key, &drawn);
    Ok(())
}

/// SPOP of all members: nothing is drawn, and the journal gets a DEL.
fn spop_all(cx: &mut Context<'_>, key: &Key<'_>) -> CommandResult {
    // Redis answers all members as SUNION does, which counts as a hit.
    let Some(set) = cx.db.set_of(key)? else { return Ok(()) };
    let count = set.len();
    cx.reply.set(count);
    set.iter().for_each(|member| cx.reply.element(member));
    cx.db.changed_times(key, POPPED, count as u64);
    cx.db.remove_empty(key);
    cx.propagate(&[b"DEL", key.bytes]);
    Ok(())
}

/// Members that were drawn at random are removed by name when the journal is replayed.
fn propagate_removals(cx: &mut Context<'_>, key: &Key<'_>, members: &[OwnedElement]) {
    cx.propagate_nothing();
    if !cx.is_journaling() {
        return;
    }
    for members in members.chunks(REMOVALS_PER_EFFECT) {
        let mut texts: SmallVec<[[u8; INTEGER_TEXT_BYTES]; 1]> = SmallVec::new();
        texts.resize(members.len(), [0; INTEGER_TEXT_BYTES]);
        let mut argv: SmallVec<[&[u8]; 3]> = SmallVec::from_slice(&[b"SREM", key.bytes]);
        let texts = members.iter().zip(&mut texts);
        argv.extend(texts.map(|(member, text)| member.as_element().as_bytes(text)));
        cx.propagate(&argv);
    }
}

/// SRANDMEMBER key [count]
fn srandmember(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    if !args.is_empty() {
        return srandmember_many(cx, &key, args);
    }
    let set = cx.db.set_of(&key)?;
    let reply = &mut cx.reply;
    match set.and_then(|set| rng::with(|rng| set.random(rng))) {
        Some(member) => reply.element(member),
        None => reply.null(),
    }
    Ok(())
}

/// SRANDMEMBER with a count: different members, or with repetition if it is negative.
fn srandmember_many(cx: &mut Context<'_>, key: &Key<'_>, args: &mut Args<'_>) -> CommandResult {
    if args.len() > 1 {
        return Err(CommandError::SYNTAX);
    }
    let count = args.signed_count()?;
    let set = cx.db.set_of(key)?;
    let reply = &mut cx.reply;
    let Some(set) = set.filter(|_| count != 0) else {
        reply.array(0);
        return Ok(());
    };
    if count > 0 {
        let count = set.len().min(count as usize);
        reply.array(count);
        rng::with(|rng| set.random_distinct(count, rng, |member| reply.element(member)));
        return Ok(());
    }
    let count = count.unsigned_abs() as usize;
    reply.array(count);
    reply_repeating(reply, count, |reply, draws, rng| {
        set.random_repeating(draws, rng, |member| reply.element(member));
    })
}

/// SMOVE source destination member
fn smove(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (source, destination, member) = (args.key()?, args.key()?, args.bytes()?);
    let Some(set) = cx.db.set_mut(&source)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let found = set.contains(member);
    // Whatever the result is, the destination may not have another type.
    cx.db.set_mut(&destination)?;
    if found && source.bytes != destination.bytes {
        let limits = cx.db.set_limits();
        let remove = |set: &mut Set| u64::from(set.remove(member));
        cx.db.take_from_set(&source, Event(Class::SET, "srem"), remove)?;
        let add = |set: &mut Set| {
            if set.is_empty() {
                set.expect(member, 1, limits);
            }
            u64::from(set.add(member, limits))
        };
        cx.db.add_to_set(&destination, Event(Class::SET, "sadd"), add)?;
    }
    cx.reply.integer(i64::from(found));
    Ok(())
}

/// SSCAN key cursor [MATCH pattern] [COUNT count]
fn sscan(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let cursor = scan::cursor(args)?;
    // The key is looked at before the options are read.
    let Some(set) = cx.db.set_of(&key)? else {
        scan::reply_scan(&mut cx.reply, |_| (0, 0));
        return Ok(());
    };
    let options = ScanOptions::parse(args, Scanned::Set)?;
    scan::reply_members(&mut cx.reply, cursor, options.count, |position, reply| {
        let mut step = ScanStep { seen: 0, written: 0, next: None };
        let mut text = [0; INTEGER_TEXT_BYTES];
        step.next = set.scan(position, |member: Element<'_>| {
            step.seen += 1;
            let name = member.as_bytes(&mut text);
            if options.admits(name) {
                step.written += 1;
                reply.bulk(name);
            }
        });
        step
    });
    Ok(())
}
