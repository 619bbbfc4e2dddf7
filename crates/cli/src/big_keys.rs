//! The biggest keys of each type: by their elements, or by the memory that they take.

use resp::client::Value;

use crate::bytes::{percent, share};
use crate::connection::Words;
use crate::options::Mode;
use crate::print::{output, say};
use crate::quote::quoted;
use crate::scan::Walk;
use crate::session::{Failed, Session};

/// A type of keys.
pub(crate) struct Kind {
    pub(crate) name: String,
    /// The command that counts its elements.
    pub(crate) counts: &'static str,
    /// What it counts.
    pub(crate) unit: &'static str,
}

/// The types that all servers have, in the order of redis-cli.
const KINDS: [(&str, &str, &str); 6] = [
    ("list", "LLEN", "items"),
    ("hash", "HLEN", "fields"),
    ("stream", "XLEN", "entries"),
    ("string", "STRLEN", "bytes"),
    ("set", "SCARD", "members"),
    ("zset", "ZCARD", "members"),
];

/// These types, and those that turn up.
pub(crate) fn kinds() -> Vec<Kind> {
    let kind = |(name, counts, unit): &(&str, &'static str, &'static str)| Kind {
        name: (*name).to_owned(),
        counts,
        unit,
    };
    KINDS.iter().map(kind).collect()
}

/// The place of the type with this name; it is added if it is new.
pub(crate) fn place(name: &str, kinds: &mut Vec<Kind>) -> usize {
    if let Some(place) = kinds.iter().position(|kind| kind.name == name) {
        return place;
    }
    // The elements of types of modules cannot be counted.
    kinds.push(Kind { name: name.to_owned(), counts: "", unit: "?" });
    kinds.len() - 1
}

/// The types of keys; none of those that have gone since.
pub(crate) fn types(session: &mut Session, keys: &Words) -> Result<Vec<Option<String>>, Failed> {
    let commands: Vec<Words> = keys.iter().map(|key| vec![b"TYPE".to_vec(), key.clone()]).collect();
    let name = |reply: Value| match reply {
        Value::Simple(name) if name != b"none" => Some(String::from_utf8_lossy(&name).into_owned()),
        _ => None,
    };
    Ok(call_all(session, &commands)?.into_iter().map(name).collect())
}

/// The command that asks for the memory of a key.
pub(crate) fn memory_usage(key: &[u8], samples: Option<u64>) -> Words {
    let mut words: Words = vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.to_vec()];
    if let Some(samples) = samples {
        words.extend([b"SAMPLES".to_vec(), samples.to_string().into_bytes()]);
    }
    words
}

/// Sends commands together.
pub(crate) fn call_all(session: &mut Session, commands: &[Words]) -> Result<Vec<Value>, Failed> {
    let replies = session.connected()?.call_all(commands);
    replies.map_err(|error| session.lose(&error))
}

/// How many keys there are.
pub(crate) fn count_all(session: &mut Session) -> Result<u64, Failed> {
    Ok(number(&session.ask(&["DBSIZE"])?))
}

/// A number in a reply; 0 if there is none, as for a key that has gone.
pub(crate) fn number(reply: &Value) -> u64 {
    match reply {
        Value::Integer(number) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

#[derive(Clone, Default)]
struct Sum {
    keys: u64,
    size: u64,
    biggest: Option<(Vec<u8>, u64)>,
}

/// Looks at all keys and prints what it finds.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    let by_memory = session.options.mode == Mode::MemoryKeys;
    let all = count_all(session)?;
    output(
        b"\n# Scanning the entire keyspace to find biggest keys as well as\n\
          # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
          # per 100 SCAN commands (not usually needed).\n\n",
    );
    let mut kinds = kinds();
    let mut sums = vec![Sum::default(); kinds.len()];
    let (mut sampled, mut length) = (0, 0);
    let mut walk = Walk::new(&session.options);
    while let Some(keys) = walk.step(session)? {
        let so_far = percent(sampled, all);
        let sizes = sizes(session, &keys, by_memory, &mut kinds)?;
        sums.resize(kinds.len(), Sum::default());
        for (key, found) in keys.into_iter().zip(sizes) {
            let Some((place, size)) = found else { continue };
            let (kind, sum) = (&kinds[place], &mut sums[place]);
            sum.keys += 1;
            sum.size += size;
            length += key.len() as u64;
            sampled += 1;
            if sum.biggest.as_ref().map_or(0, |(_, biggest)| *biggest) < size {
                let (name, unit) = (&kind.name, unit(kind, by_memory));
                let shown = quoted(&key);
                say(&format!(
                    "[{so_far}] Biggest {name:<6} found so far {shown} with {size} {unit}"
                ));
                sum.biggest = Some((key, size));
            }
        }
        walk.pause(&session.options);
    }
    summary(&kinds, &sums, sampled, length, by_memory);
    Ok(())
}

fn unit(kind: &Kind, by_memory: bool) -> &'static str {
    if by_memory { "bytes" } else { kind.unit }
}

/// The type of each key and its size, if it is still there.
fn sizes(
    session: &mut Session,
    keys: &Words,
    by_memory: bool,
    kinds: &mut Vec<Kind>,
) -> Result<Vec<Option<(usize, u64)>>, Failed> {
    let types = types(session, keys)?;
    let samples = session.options.memory_samples;
    let (mut places, mut commands) = (Vec::new(), Vec::new());
    for (key, name) in keys.iter().zip(types) {
        let place = name.map(|name| place(&name, kinds));
        let counts = place.map_or("", |place| kinds[place].counts);
        let command = match by_memory {
            true => place.map(|_| memory_usage(key, samples)),
            false => (!counts.is_empty()).then(|| vec![counts.as_bytes().to_vec(), key.clone()]),
        };
        places.push((place, command.is_some()));
        commands.extend(command);
    }
    let mut replies = call_all(session, &commands)?.into_iter();
    let size = |(place, was_asked): (Option<usize>, bool)| {
        let size = if was_asked { replies.next().as_ref().map_or(0, number) } else { 0 };
        place.map(|place| (place, size))
    };
    Ok(places.into_iter().map(size).collect())
}

fn summary(kinds: &[Kind], sums: &[Sum], sampled: u64, length: u64, by_memory: bool) {
    let average = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
    let mut text = format!(
        "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\n\
         Total key length in bytes is {length} (avg len {:.2})\n\n",
        average(length, sampled)
    );
    for (kind, sum) in kinds.iter().zip(sums) {
        if let Some((key, size)) = &sum.biggest {
            let (name, key, unit) = (&kind.name, quoted(key), unit(kind, by_memory));
            text.push_str(&format!("Biggest {name:>6} found {key} has {size} {unit}\n"));
        }
    }
    text.push('\n');
    for (kind, sum) in kinds.iter().zip(sums) {
        let Sum { keys, size, .. } = sum;
        let (name, unit) = (&kind.name, unit(kind, by_memory));
        text.push_str(&format!(
            "{keys} {name}s with {size} {unit} ({:05.2}% of keys, avg size {:.2})\n",
            share(*keys, sampled),
            average(*size, *keys),
        ));
    }
    output(text.as_bytes());
}
