//! The keys that clients work on, and how a state is read from them.
//!
//! All of it is in one database, [`HOME`]. The two beside it are swapped; the first two belong to
//! the noise, whose random commands swap and move as they like.

use anyhow::{Context, Result};
use tests::client::{Client, Reply};
use tests::random::Random;

use crate::history::State;

/// The database of all that is checked.
pub(crate) const HOME: usize = 2;
/// Registers with one writer each, in all types of values.
pub(crate) const REGISTERS: usize = 25;
/// Pairs of keys that transactions write; their registers have the numbers after those.
pub(crate) const PAIRS: usize = 6;
/// Counters that are changed under WATCH.
pub(crate) const COUNTERS: usize = 3;
/// Queues that elements are popped from.
pub(crate) const QUEUES: usize = 4;
/// What sets the mark and brings the two databases that are swapped into their first order.
pub(crate) const FIRST_ORDER: [&str; 5] =
    ["SELECT 3", "SET side left", "SELECT 4", "SET side right", "SELECT 2"];

/// How many registers there are, with pairs.
pub(crate) const ALL_REGISTERS: usize = REGISTERS + PAIRS;

/// The commands that give a register a value; the reply to the last one tells whether they did.
pub(crate) fn write(register: usize, value: u64, random: &mut Random) -> Vec<String> {
    let transaction = |commands: [String; 2]| {
        let [first, second] = commands;
        vec!["MULTI".to_owned(), first, second, "EXEC".to_owned()]
    };
    if let Some(pair) = register.checked_sub(REGISTERS) {
        let (first, second) =
            (format!("SET pair:{pair}:a {value}"), format!("HSET pair:{pair}:b f {value}"));
        return transaction([first, second]);
    }
    let key = format!("register:{register}");
    match register % 5 {
        0 => vec![write_string(&key, value, random)],
        1 => vec![format!("HSET {key} f {value} g{} {value}", value % 300)],
        2 => transaction([format!("RPUSH {key} {value}"), format!("LTRIM {key} -40 -1")]),
        3 => vec![format!("ZADD {key} {value} m {value} n{}", value % 200)],
        _ => transaction([format!("DEL {key}"), format!("SADD {key} {value}")]),
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
    match register % 5 {
        0 => format!("GET {key}"),
        1 => format!("HGET {key} f"),
        2 => format!("LINDEX {key} -1"),
        3 => format!("ZSCORE {key} m"),
        _ => format!("SMEMBERS {key}"),
    }
}

/// The commands of the transaction that reads a pair.
pub(crate) fn read_pair(pair: usize) -> [String; 2] {
    [format!("GET pair:{pair}:a"), format!("HGET pair:{pair}:b f")]
}

/// The number at the beginning of a reply, if it holds something.
pub(crate) fn value(reply: &Reply) -> Result<Option<u64>> {
    let text = match reply {
        Reply::Nil | Reply::NilArray => return Ok(None),
        Reply::Array(elements) | Reply::Set(elements) => match elements.as_slice() {
            [] => return Ok(None),
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

/// Reads all that is checked, from a server that nobody else uses. The texts say what cannot be true
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
