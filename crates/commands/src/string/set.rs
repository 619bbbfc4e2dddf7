//! SET and GET in all their forms.

use base::num::parse_i64;
use resp::args::Arguments;
use store::{Key, StringValue};

use super::{DEL, SET, value};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{ACCESS, KeyFlags, OW, RW, UPDATE};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

const EXPIRE: Event = Event(Class::GENERIC, "expire");
const PERSIST: Event = Event(Class::GENERIC, "persist");

/// How an expiry is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Milliseconds,
    /// EXAT: seconds of Unix time.
    UnixSeconds,
    /// PXAT: milliseconds of Unix time.
    UnixMilliseconds,
}

/// The options about the expiry.
#[derive(Clone, Copy)]
enum Expiration<'a> {
    Unsaid,
    /// KEEPTTL
    Keep,
    /// PERSIST
    Remove,
    /// EX, PX, EXAT or PXAT with its number, which is read when all options are known.
    At(Clock, &'a [u8]),
}

impl<'a> Expiration<'a> {
    /// Takes one of the options that SET and GETEX share. Returns whether there was one.
    fn parse(&mut self, args: &mut Args<'a>) -> Result<bool, CommandError> {
        let clocks = [
            ("EX", Clock::Seconds),
            ("PX", Clock::Milliseconds),
            ("EXAT", Clock::UnixSeconds),
            ("PXAT", Clock::UnixMilliseconds),
        ];
        for (word, clock) in clocks {
            if args.word(word) {
                self.say(Expiration::At(clock, args.bytes()?))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same option may be repeated; a different one contradicts it.
    fn say(&mut self, option: Expiration<'a>) -> CommandResult {
        use Expiration::{At, Keep, Remove, Unsaid};
        *self = match (*self, option) {
            (Unsaid, option) | (Keep, option @ Keep) | (Remove, option @ Remove) => option,
            (At(before, _), option @ At(clock, _)) if before == clock => option,
            _ => return Err(CommandError::SYNTAX),
        };
        Ok(())
    }

    /// The time that was given, in milliseconds of Unix time.
    fn time(self, cx: &Context<'_>) -> Result<Option<u64>, CommandError> {
        match self {
            Expiration::At(clock, number) => expire_at(cx, clock, number).map(Some),
            _ => Ok(None),
        }
    }
}

/// Reads an expiry and returns it in milliseconds of Unix time. It may lie in the past, but not
/// before the beginning of time.
fn expire_at(cx: &Context<'_>, clock: Clock, number: &[u8]) -> Result<u64, CommandError> {
    let number = parse_i64(number).ok_or(CommandError::NOT_AN_INTEGER)?;
    let milliseconds = match clock {
        Clock::Seconds | Clock::UnixSeconds => number.checked_mul(1000),
        Clock::Milliseconds | Clock::UnixMilliseconds => Some(number),
    };
    let base = match clock {
        Clock::Seconds | Clock::Milliseconds => cx.db.now.cast_signed(),
        Clock::UnixSeconds | Clock::UnixMilliseconds => 0,
    };
    milliseconds
        .filter(|&milliseconds| milliseconds > 0)
        .and_then(|milliseconds| milliseconds.checked_add(base))
        .map(i64::cast_unsigned)
        .ok_or_else(|| CommandError::invalid_expire(cx.row.command.name))
}

/// The condition of SET.
#[derive(Clone, Copy)]
enum Condition<'a> {
    None,
    /// NX: there is no such key.
    Absent,
    /// XX: there is one.
    Present,
    /// IFEQ: the key exists, and its value is this string. A condition of Valkey 8.1.
    Equal(&'a [u8]),
}

impl Condition<'_> {
    fn is_met(self, cx: &mut Context<'_>, key: &Key<'_>) -> Result<bool, CommandError> {
        Ok(match self {
            Condition::None => true,
            Condition::Absent => cx.db.find_mut(key).is_none(),
            Condition::Present => cx.db.find_mut(key).is_some(),
            Condition::Equal(expected) => match cx.db.find_mut(key) {
                None => false,
                Some(entry) => {
                    let string = entry.as_ref().value().as_string();
                    *string.ok_or(CommandError::WRONG_TYPE)?.bytes() == *expected
                }
            },
        })
    }
}

/// The options of SET.
struct SetOptions<'a> {
    condition: Condition<'a>,
    get: bool,
    expiration: Expiration<'a>,
}

impl<'a> SetOptions<'a> {
    fn parse(args: &mut Args<'a>) -> Result<SetOptions<'a>, CommandError> {
        let mut options =
            SetOptions { condition: Condition::None, get: false, expiration: Expiration::Unsaid };
        while !args.is_empty() {
            if options.expiration.parse(args)? || options.parse_condition(args)? {
                continue;
            }
            if args.word("GET") {
                options.get = true;
            } else if args.word("KEEPTTL") {
                options.expiration.say(Expiration::Keep)?;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }

    /// Takes a condition. Returns whether there was one; a second one must be the same, and there
    /// is only one IFEQ.
    fn parse_condition(&mut self, args: &mut Args<'a>) -> Result<bool, CommandError> {
        use Condition::{Absent, Equal, None, Present};
        let condition = if args.word("NX") {
            Absent
        } else if args.word("XX") {
            Present
        } else if args.word("IFEQ") {
            Equal(args.bytes()?)
        } else {
            return Ok(false);
        };
        self.condition = match (self.condition, condition) {
            (None, condition) => condition,
            (Absent, Absent) | (Present, Present) => condition,
            _ => return Err(CommandError::SYNTAX),
        };
        Ok(true)
    }
}

/// SET key value [NX | XX | IFEQ comparison-value] [GET]
///     [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]
pub(super) fn set(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, value) = (args.key()?, value(args)?);
    if args.is_empty() {
        cx.db.set_string(&key, value, None, SET);
        cx.reply.ok();
        return Ok(());
    }
    let options = SetOptions::parse(args)?;
    set_with_options(cx, &key, value, &options, args)
}

fn set_with_options(
    cx: &mut Context<'_>,
    key: &Key<'_>,
    value: StringValue<'_>,
    options: &SetOptions<'_>,
    args: &Args<'_>,
) -> CommandResult {
    let time = options.expiration.time(cx)?;
    if options.get {
        // This is the reply in any case; an error takes it back.
        reply_with_string(cx, key)?;
    }
    if !options.condition.is_met(cx, key)? {
        if !options.get {
            cx.reply.null();
        }
        return Ok(());
    }
    if let Some(time) = time {
        set_until(cx, key, value, time, args.argv().at(2));
    } else {
        let keeps = matches!(options.expiration, Expiration::Keep);
        let expire_at = if keeps { cx.db.expire_at(key) } else { None };
        cx.db.set_string(key, value, expire_at, SET);
        if options.get || matches!(options.condition, Condition::Equal(_)) {
            // The condition was met: a replay need not check it again, nor know the newer words.
            let tail: &[&[u8]] = if keeps { &[b"KEEPTTL"] } else { &[] };
            journal_set(cx, key, args.argv().at(2), tail);
        }
    }
    if !options.get {
        cx.reply.ok();
    }
    Ok(())
}

/// Stores a string with an expiry.
fn set_until(cx: &mut Context<'_>, key: &Key<'_>, value: StringValue<'_>, time: u64, bytes: &[u8]) {
    cx.db.set_string(key, value, Some(time), SET);
    cx.db.notify(key, EXPIRE);
    if cx.is_journaling() {
        journal_set(cx, key, bytes, &[b"PXAT", time.to_string().as_bytes()]);
    }
}

/// The journal's form of a command that is not a plain SET, or whose time was relative.
fn journal_set(cx: &mut Context<'_>, key: &Key<'_>, value: &[u8], tail: &[&[u8]]) {
    if cx.is_journaling() {
        cx.propagate(&[&[b"SET", key.bytes, value], tail].concat());
    }
}

/// Writes the string under a key, or nothing when there is none. Returns whether there is one.
#[inline]
fn reply_with_string(cx: &mut Context<'_>, key: &Key<'_>) -> Result<bool, CommandError> {
    let string = cx.db.string(key)?;
    match string {
        Some(string) => cx.reply.string(string),
        None => cx.reply.null(),
    }
    Ok(string.is_some())
}

/// GET key
pub(super) fn get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    reply_with_string(cx, &key)?;
    Ok(())
}

/// SETNX key value
pub(super) fn setnx(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, value) = (args.key()?, value(args)?);
    let absent = cx.db.find_mut(&key).is_none();
    if absent {
        cx.db.set_string(&key, value, None, SET);
    }
    cx.reply.integer(i64::from(absent));
    Ok(())
}

/// SETEX key seconds value
pub(super) fn setex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_for(cx, args, Clock::Seconds)
}

/// PSETEX key milliseconds value
pub(super) fn psetex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    set_for(cx, args, Clock::Milliseconds)
}

fn set_for(cx: &mut Context<'_>, args: &mut Args<'_>, clock: Clock) -> CommandResult {
    let key = args.key()?;
    let time = expire_at(cx, clock, args.bytes()?)?;
    let value = value(args)?;
    set_until(cx, &key, value, time, args.argv().at(3));
    cx.reply.ok();
    Ok(())
}

/// GETSET key value
pub(super) fn getset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, value) = (args.key()?, value(args)?);
    reply_with_string(cx, &key)?;
    cx.db.set_string(&key, value, None, SET);
    journal_set(cx, &key, args.argv().at(2), &[]);
    Ok(())
}

/// GETDEL key
pub(super) fn getdel(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    if reply_with_string(cx, &key)? {
        let lazily = cx.db.config.lazyfree_lazy_user_del;
        delete(cx, &key, lazily);
    }
    Ok(())
}

/// DELIFEQ key value
pub(super) fn delifeq(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, expected) = (args.key()?, args.bytes()?);
    let equal = Condition::Equal(expected).is_met(cx, &key)?;
    if equal {
        let lazily = cx.db.config.lazyfree_lazy_user_del;
        delete(cx, &key, lazily);
    }
    cx.reply.integer(i64::from(equal));
    Ok(())
}

fn delete(cx: &mut Context<'_>, key: &Key<'_>, lazily: bool) {
    cx.db.remove(key);
    cx.db.changed(key, DEL);
    cx.propagate(&[if lazily { b"UNLINK" } else { b"DEL" }, key.bytes]);
}

/// GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]
pub(super) fn getex(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let mut expiration = Expiration::Unsaid;
    while !args.is_empty() {
        if expiration.parse(args)? {
            continue;
        }
        if !args.word("PERSIST") {
            return Err(CommandError::SYNTAX);
        }
        expiration.say(Expiration::Remove)?;
    }
    if !reply_with_string(cx, &key)? {
        return Ok(());
    }
    // The number is read only if there is a key.
    let time = expiration.time(cx)?;
    match (expiration, time) {
        (Expiration::At(clock, _), Some(time)) => expire(cx, &key, clock, time),
        (Expiration::Remove, _) if cx.db.expire_at(&key).is_some() => {
            cx.db.set_expire_at(&key, None);
            cx.db.changed(&key, PERSIST);
            cx.propagate(&[b"PERSIST", key.bytes]);
        }
        _ => {}
    }
    Ok(())
}

/// Gives a key an expiry, or removes the key if that time has passed already.
fn expire(cx: &mut Context<'_>, key: &Key<'_>, clock: Clock, time: u64) {
    let absolute = matches!(clock, Clock::UnixSeconds | Clock::UnixMilliseconds);
    if absolute && cx.db.ends_at_once(time) {
        let lazily = cx.db.config.lazyfree_lazy_expire;
        return delete(cx, key, lazily);
    }
    cx.db.set_expire_at(key, Some(time));
    cx.db.changed(key, EXPIRE);
    if cx.is_journaling() {
        cx.propagate(&[b"PEXPIREAT", key.bytes, time.to_string().as_bytes()]);
    }
}

/// MGET key [key ...]
pub(super) fn mget(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    cx.reply.array(args.len());
    while !args.is_empty() {
        let key = args.key()?;
        match cx.db.find(&key).and_then(|entry| entry.value().as_string()) {
            Some(string) => cx.reply.string(string),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// MSET key value [key value ...]
pub(super) fn mset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    in_pairs(cx, args)?;
    set_all(cx, args)?;
    cx.reply.ok();
    Ok(())
}

/// MSETNX key value [key value ...]
pub(super) fn msetnx(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    in_pairs(cx, args)?;
    let mut pairs = args.clone();
    let mut absent = true;
    while absent && !pairs.is_empty() {
        let key = pairs.key()?;
        pairs.skip(1);
        absent = cx.db.find_mut(&key).is_none();
    }
    if absent {
        set_all(cx, args)?;
    }
    cx.reply.integer(i64::from(absent));
    Ok(())
}

fn in_pairs(cx: &Context<'_>, args: &Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(CommandError::wrong_arity(cx.row.command.name))
}

/// Stores all pairs; the caller has seen that they are pairs.
fn set_all(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    while !args.is_empty() {
        let (key, value) = (args.key()?, value(args)?);
        cx.db.set_string(&key, value, None, SET);
    }
    Ok(())
}

/// What SET does with its key: without GET the old value does not matter.
pub(super) fn key_flags(argv: &Arguments<'_>) -> KeyFlags {
    let gets = argv.skip(3).iter().any(|word| word.eq_ignore_ascii_case(b"get"));
    if gets { RW | ACCESS | UPDATE } else { OW | UPDATE }
}
