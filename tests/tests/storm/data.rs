//! The keys that clients work on, and how a state is read from them.
//!
//! All of it is in one database, [`HOME`]. The two beside it are swapped; the first two belong to
//! the noise, whose random commands swap and move as they like.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use tests::client::{Client, Reply};
use tests::random::Random;

use crate::history::State;

/// The database of all that is checked.
pub(crate) const HOME: usize = 2;
/// Registers with one writer each, in all types of values.
pub(crate) const REGISTERS: usize = 32;
/// Pairs of keys that transactions write; their registers have the numbers after those.
pub(crate) const PAIRS: usize = 6;
/// Bundles of keys that one transaction writes, which is longer than what a link brings at once.
pub(crate) const BUNDLES: usize = 3;
/// Keys of a bundle.
const BUNDLE: usize = 24;
/// Counters that are changed under WATCH.
pub(crate) const COUNTERS: usize = 3;
/// Queues that elements are popped from.
pub(crate) const QUEUES: usize = 4;
/// Streams whose entries are elements for a group of consumers.
pub(crate) const STREAMS: usize = 3;
/// That group.
pub(crate) const GROUP: &str = "workers";
/// The library of functions that every process has.
pub(crate) const LIBRARY: &str = "#!lua name=storm\n\
    redis.register_function('put',function(KEYS,ARGV)\n\
    return(redis.call('set',KEYS[1],ARGV[1]))\nend)\n\
    redis.register_function('put_both',function(KEYS,ARGV)\n\
    redis.call('set',KEYS[1],ARGV[1])\nreturn(redis.call('hset',ARGV[2],'f',ARGV[1]))\nend)";
/// A script that writes a pair, of whose keys it may not know the second, or both. No blank is in
/// it: that is where words are split.
const WRITE_PAIR: &str = "redis.call('set',KEYS[1]or(ARGV[2]),ARGV[1])\n\
    return(redis.call('hset',KEYS[2]or(ARGV[3]),'f',ARGV[1]))";
/// What sets the mark and brings the two databases that are swapped into their first order.
pub(crate) const FIRST_ORDER: [&str; 5] =
    ["SELECT 3", "SET side left", "SELECT 4", "SET side right", "SELECT 2"];

/// Kinds of registers that are no pairs.
const KINDS: usize = 8;
/// How many registers there are, with pairs.
pub(crate) const ALL_REGISTERS: usize = REGISTERS + PAIRS;

/// The commands that give a register a value; the reply to the last one tells whether they did.
pub(crate) fn write(register: usize, value: u64, random: &mut Random) -> Vec<String> {
    let transaction = |commands: [String; 2]| {
        let [first, second] = commands;
        vec!["MULTI".to_owned(), first, second, "EXEC".to_owned()]
    };
    if let Some(pair) = register.checked_sub(REGISTERS) {
        return write_pair(pair, value, random);
    }
    let key = format!("register:{register}");
    match register % KINDS {
        0 => vec![write_string(&key, value, random)],
        1 => vec![format!("HSET {key} f {value} g{} {value}", value % 300)],
        2 => transaction([format!("RPUSH {key} {value}"), format!("LTRIM {key} -40 -1")]),
        3 => vec![format!("ZADD {key} {value} m {value} n{}", value % 200)],
        4 => transaction([format!("DEL {key}"), format!("SADD {key} {value}")]),
        5 => vec![format!("XADD {key} MAXLEN ~ 50 * v {value}")],
        6 => {
            let script = "redis.call('del',KEYS[1])\nreturn(redis.call('set',KEYS[1],ARGV[1]))";
            vec![format!("EVAL {script} 1 {key} {value}")]
        }
        _ => vec![format!("FCALL put 1 {key} {value}")],
    }
}

/// Both keys of a pair, by a transaction, a script or a function.
fn write_pair(pair: usize, value: u64, random: &mut Random) -> Vec<String> {
    let (first, second) = (format!("pair:{pair}:a"), format!("pair:{pair}:b"));
    let by_script = |declared: &str, numbers: usize| {
        vec![format!("EVAL {WRITE_PAIR} {numbers}{declared} {value} {first} {second}")]
    };
    match random.below(8) {
        0..3 => vec![
            "MULTI".to_owned(),
            format!("SET {first} {value}"),
            format!("HSET {second} f {value}"),
            "EXEC".to_owned(),
        ],
        3 => by_script(&format!(" {first} {second}"), 2),
        4 | 5 => by_script(&format!(" {first}"), 1),
        6 => by_script("", 0),
        _ => vec![format!("FCALL put_both 1 {first} {value} {second}")],
    }
}

/// The transaction that gives all keys of a bundle a value.
pub(crate) fn write_bundle(bundle: usize, value: u64, random: &mut Random) -> Vec<String> {
    let padding = ".".repeat(random.below(2000));
    let mut commands = vec!["MULTI".to_owned()];
    commands.extend((0..BUNDLE).map(|key| format!("SET bundle:{bundle}:{key} {value}:{padding}")));
    commands.push("EXEC".to_owned());
    commands
}

/// The command that reads a bundle.
pub(crate) fn read_bundle(bundle: usize) -> String {
    let keys: Vec<String> = (0..BUNDLE).map(|key| format!("bundle:{bundle}:{key}")).collect();
    format!("MGET {}", keys.join(" "))
}

/// What is wrong with what was read of a bundle, if its keys have several values.
pub(crate) fn wrong_bundle(reply: &Reply) -> Option<String> {
    let Reply::Array(values) = reply else {
        return Some(format!("a bundle was read as {reply:?}"));
    };
    let values: Result<BTreeSet<_>> = values.iter().map(value).collect();
    match values {
        Ok(values) if values.len() <= 1 => None,
        other => Some(format!("a bundle has {other:?}")),
    }
}

fn write_string(key: &str, value: u64, random: &mut Random) -> String {
    // Mostly short, now and then long enough to be written in pieces.
    let padding = match random.below(100) {
        0 => random.below(300_000),
        1..20 => random.below(3000),
        _ => 0,
    };
    let padding = ".".repeat(padding);
    match random.below(4) {
        0 => format!("SETEX {key} 10000 {value}:{padding}"),
        1 => format!("MSET {key} {value}:{padding} {key}:twin {value}"),
        2 => format!("SET {key} {value}:{padding} PX 10000000"),
        _ => format!("SET {key} {value}:{padding}"),
    }
}

/// The command that reads a register which is no pair.
pub(crate) fn read(register: usize) -> String {
    let key = format!("register:{register}");
    match register % KINDS {
        0 | 6 | 7 => format!("GET {key}"),
        1 => format!("HGET {key} f"),
        2 => format!("LINDEX {key} -1"),
        3 => format!("ZSCORE {key} m"),
        4 => format!("SMEMBERS {key}"),
        _ => format!("XREVRANGE {key} + - COUNT 1"),
    }
}

/// The commands of the transaction that reads a pair.
pub(crate) fn read_pair(pair: usize) -> [String; 2] {
    [format!("GET pair:{pair}:a"), format!("HGET pair:{pair}:b f")]
}

/// The number at the beginning of a reply, if it is not empty.
pub(crate) fn value(reply: &Reply) -> Result<Option<u64>> {
    let text = match reply {
        Reply::Nil | Reply::NilArray => return Ok(None),
        Reply::Array(elements) | Reply::Set(elements) => match elements.as_slice() {
            [] => return Ok(None),
            [Reply::Array(entry)] => return Ok(entry_of(entry).map(|(_, value)| value)),
            [one] => one.text(),
            _ => None,
        },
        other => other.text(),
    };
    let text = text.with_context(|| format!("{reply:?} is no value"))?;
    let digits: Vec<u8> = text.iter().copied().take_while(u8::is_ascii_digit).collect();
    let number = std::str::from_utf8(&digits)?.parse();
    Ok(Some(number.with_context(|| format!("{reply:?} is no value"))?))
}

/// Of an entry of a stream with one field: its ID, and the number in the field.
fn entry_of(entry: &[Reply]) -> Option<(Vec<u8>, u64)> {
    let [id, Reply::Array(fields), ..] = entry else { return None };
    Some((id.text()?.to_vec(), value(fields.get(1)?).ok()??))
}

/// The entries in an array of some.
pub(crate) fn entries(reply: &Reply) -> Vec<(Vec<u8>, u64)> {
    let Reply::Array(entries) = reply else { return Vec::new() };
    let entry = |entry: &Reply| match entry {
        Reply::Array(entry) => entry_of(entry),
        _ => None,
    };
    entries.iter().filter_map(entry).collect()
}

/// Whether a client that reads with CLAIM got an entry that another had got before.
pub(crate) fn was_delivered(entry: &Reply) -> bool {
    matches!(entry, Reply::Array(parts) if matches!(parts.get(3), Some(Reply::Integer(1..))))
}

/// From this one on, clients give elements to streams: see [`crate::actor::Actor::fresh`].
pub(crate) const FEEDERS: usize = 32;

/// Whether an element is one of a stream.
pub(crate) fn is_of_stream(element: u64) -> bool {
    (element >> 30) & 63 >= FEEDERS as u64
}

/// An ID as two numbers.
fn numbers(id: &[u8]) -> (u64, u64) {
    let text = String::from_utf8_lossy(id);
    let (first, second) = text.split_once('-').unwrap_or((&text, "0"));
    (first.parse().unwrap_or(0), second.parse().unwrap_or(0))
}

/// What the groups of the streams have not delivered yet goes to the elements of the queues; what
/// they wait for apart.
fn read_streams(client: &mut Client, state: &mut State, wrong: &mut Vec<String>) -> Result<()> {
    for stream in 0..STREAMS {
        let key = format!("stream:{stream}");
        let all = entries(&client.call_text(&format!("XRANGE {key} - +"))?);
        let delivered = match client.call_text(&format!("XINFO GROUPS {key}"))? {
            Reply::Array(groups) => match groups.first() {
                Some(Reply::Array(fields)) => fields.get(7).and_then(Reply::text).map(numbers),
                _ => None,
            },
            _ => None,
        };
        let mut pending = BTreeSet::new();
        if delivered.is_some() {
            let list = client.call_text(&format!("XPENDING {key} {GROUP} - + 1000000"))?;
            for entry in list.elements().unwrap_or_default() {
                if let Reply::Array(fields) = entry
                    && let Some(id) = fields.first().and_then(Reply::text)
                {
                    pending.insert(id.to_vec());
                }
            }
        }
        for (id, element) in all {
            let is_delivered = delivered.is_some_and(|last| numbers(&id) <= last);
            let is_new = match (is_delivered, pending.contains(&id)) {
                (true, true) => state.pending.insert(element),
                (true, false) => true,
                (false, true) => {
                    wrong.push(format!("element {element} is pending before it was delivered"));
                    true
                }
                (false, false) => state.elements.insert(element),
            };
            if !is_new {
                wrong.push(format!("element {element} is there twice"));
            }
        }
    }
    Ok(())
}

/// Reads all checked data, from a server that nothing else uses. The texts name what cannot be true
/// of any state.
pub(crate) fn read_state(client: &mut Client) -> Result<(State, Vec<String>)> {
    let mut state = State::default();
    let mut violations = Vec::new();
    client.call_text(&format!("SELECT {HOME}"))?;
    for register in 0..REGISTERS {
        if let Some(value) = value(&client.call_text(&read(register))?)? {
            state.registers.insert(register, value);
        }
    }
    for pair in 0..PAIRS {
        let [first, second] = read_pair(pair);
        let first = value(&client.call_text(&first)?)?;
        let second = value(&client.call_text(&second)?)?;
        if first != second {
            violations.push(format!("pair {pair} is torn after the start: {first:?}, {second:?}"));
        }
        if let Some(value) = first {
            state.registers.insert(REGISTERS + pair, value);
        }
    }
    for bundle in 0..BUNDLES {
        let reply = client.call_text(&read_bundle(bundle))?;
        violations.extend(wrong_bundle(&reply).map(|wrong| format!("after the start: {wrong}")));
    }
    for counter in 0..COUNTERS {
        if let Some(value) = value(&client.call_text(&format!("GET counter:{counter}"))?)? {
            state.counters.insert(counter, value);
        }
    }
    for queue in 0..QUEUES {
        let elements = client.call_text(&format!("LRANGE queue:{queue} 0 -1"))?;
        for element in elements.elements().unwrap_or_default() {
            let element = value(&element)?.context("an element")?;
            if !state.elements.insert(element) {
                violations.push(format!("element {element} is in the queues twice"));
            }
        }
    }
    read_streams(client, &mut state, &mut violations)?;
    state.mark = value(&client.call_text("GET mark")?)?.unwrap_or(0);
    let mut sides = vec![Reply::Integer(state.mark.cast_signed())];
    for database in [3, 4] {
        client.call_text(&format!("SELECT {database}"))?;
        sides.push(client.call_text("GET side")?);
    }
    client.call_text(&format!("SELECT {HOME}"))?;
    if let Some(violation) = wrong_sides(state.mark, &sides[1], &sides[2]) {
        violations.push(format!("after the start: {violation}"));
    }
    Ok((state, violations))
}

/// Whether the databases that are swapped are in the order that the mark tells: an even mark, the
/// first.
pub(crate) fn wrong_sides(mark: u64, third: &Reply, fourth: &Reply) -> Option<String> {
    let expected: [Option<&[u8]>; 2] = match mark {
        0 => [None, None],
        mark if mark % 2 == 0 => [Some(b"left"), Some(b"right")],
        _ => [Some(b"right"), Some(b"left")],
    };
    let found = [third.text(), fourth.text()];
    let shown = || format!("mark {mark} goes with {third:?} in database 3 and {fourth:?} in 4");
    (found != expected).then(shown)
}
