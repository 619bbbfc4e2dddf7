//! Whether both servers have the same data.
//!
//! All keys are compared while clients go on: the old server is scanned, and each key is looked at
//! in both. Keys that change between the two looks seem to differ, so they are looked at again, and
//! what is still different then is settled while writes are held. That is short: a few keys, some
//! more that are drawn at random, the numbers of keys, and the libraries of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lab::targets::Interrupt;
use resp::client::Value;

use crate::check::lost_times;
use crate::copy::{copies, wait_for_copy};
use crate::options::{Compared, Options};
use crate::print::say;
use crate::server::Server;
use crate::values::{Difference, Pair, Parted};

/// Keys that are looked at together.
const BATCH: usize = 100;
/// Keys of each database that are drawn at random.
const SAMPLE: usize = 200;
/// How often keys that differ are looked at again before writes are held.
const ROUNDS: usize = 5;
/// With more keys that differ, the data is not the same, or changes faster than anybody can look.
const MOST_SUSPECTS: usize = 20_000;
/// How many keys a message names.
const NAMED: usize = 3;
/// The longest part of a key in a message, in bytes.
const SHOWN: usize = 60;
/// How often progress is shown.
const SHOWN_EACH: Duration = Duration::from_secs(1);

/// Keys that were different at the last look, by their databases.
#[derive(Default)]
struct Suspects(BTreeMap<(usize, Vec<u8>), Difference>);

/// Waits until the new server follows: it may have old data while it does not, or show none.
type Follows<'f> = &'f dyn Fn(&mut Pair<'_>) -> Result<(), String>;

/// What was compared before writes are held.
pub(crate) struct Comparison {
    /// What is to be looked at while they are.
    suspects: Suspects,
    /// How often the old server had given somebody all its data.
    copies: i64,
}

impl Comparison {
    /// Looks at what was asked for, while clients go on.
    pub(crate) fn before(
        from: &mut Server,
        to: &mut Server,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Comparison, String> {
        let copies = copies(from)?;
        let not_interrupted = || match interrupt.is_set() {
            true => Err("interrupted".to_owned()),
            false => Ok(()),
        };
        let mut pair = Pair::new(from, to, &not_interrupted)?;
        let mut suspects = Suspects::default();
        let follows =
            |pair: &mut Pair<'_>| wait_for_copy(pair.from, pair.to, options, interrupt).map(drop);
        if options.compared == Compared::All {
            suspects.walk(&mut pair, &follows)?;
        }
        // What goes wrong from here on is looked for in some keys.
        suspects.draw(&mut pair, options.compared, &follows)?;
        Ok(Comparison { suspects, copies })
    }

    /// Whether the new server may have got other data since then.
    pub(crate) fn is_outdated(&self, from: &mut Server) -> Result<bool, String> {
        Ok(copies(from)? != self.copies)
    }

    /// Why the servers differ while writes are held; nothing if they do not. `go_on` fails when
    /// they have been held for too long.
    pub(crate) fn difference(
        &self,
        from: &mut Server,
        to: &mut Server,
        go_on: &dyn Fn() -> Result<(), String>,
    ) -> Result<Option<String>, String> {
        let mut problems = Vec::new();
        let (here, there) = (from.sizes()?, to.sizes()?);
        if here != there {
            problems.push(format!("the databases have {here:?} keys here and {there:?} there"));
        }
        if libraries(from)? != libraries(to)? {
            problems.push("their libraries of functions are not the same".to_owned());
        }
        problems.extend(lost_times(from, to)?);
        let left = self.suspects.look_again(&mut Pair::new(from, to, go_on)?)?;
        if !left.0.is_empty() {
            problems.push(left.in_words());
        }
        Ok((!problems.is_empty()).then(|| problems.join("; ")))
    }
}

/// The libraries of functions, with their code.
fn libraries(server: &mut Server) -> Result<BTreeSet<Vec<Vec<u8>>>, String> {
    let words = ["FUNCTION", "LIST", "WITHCODE"].map(|word| word.as_bytes().to_vec());
    let mut replies = server.call_all(&[words.to_vec()])?;
    let Some(Value::Array(libraries)) = replies.pop() else {
        return Err("a server does not show its libraries of functions".to_owned());
    };
    let parts = |library: &Value| {
        let Value::Array(words) = library else { return Vec::new() };
        let is_told = |name: &[u8]| name == b"library_name" || name == b"library_code";
        let pairs = words.chunks_exact(2);
        let told = pairs.filter(|pair| pair[0].as_bytes().is_some_and(is_told));
        told.filter_map(|pair| pair[1].as_bytes().map(<[u8]>::to_vec)).collect()
    };
    Ok(libraries.iter().map(parts).collect())
}

impl Suspects {
    fn check(
        &mut self,
        pair: &mut Pair<'_>,
        database: usize,
        keys: &[Vec<u8>],
    ) -> Result<(), String> {
        for (key, difference) in keys.iter().zip(pair.differences(keys)?) {
            if let Some(difference) = difference {
                self.0.insert((database, key.clone()), difference);
            }
        }
        Ok(())
    }

    /// Looks at these keys again. Returns those that are still different.
    fn look_again(&self, pair: &mut Pair<'_>) -> Result<Suspects, String> {
        let mut left = Suspects::default();
        let keys: Vec<&(usize, Vec<u8>)> = self.0.keys().collect();
        for own in keys.chunk_by(|one, other| one.0 == other.0) {
            let Some((database, _)) = own.first() else { continue };
            pair.select(*database)?;
            for batch in own.chunks(BATCH) {
                (pair.go_on)()?;
                let batch: Vec<Vec<u8>> = batch.iter().map(|(_, key)| key.clone()).collect();
                left.check(pair, *database, &batch)?;
            }
        }
        Ok(left)
    }

    /// Looks at all keys of the old server.
    fn walk(&mut self, pair: &mut Pair<'_>, follows: Follows<'_>) -> Result<(), String> {
        let sizes = pair.from.sizes()?;
        let total: u64 = sizes.values().sum();
        let (mut seen, mut shown) = (0_u64, Instant::now());
        for database in sizes.into_keys() {
            let mut cursor = b"0".to_vec();
            loop {
                (pair.go_on)()?;
                pair.select(database)?;
                let (next, keys) = scan(pair.from, &cursor)?;
                for batch in keys.chunks(BATCH) {
                    self.check(pair, database, batch)?;
                }
                seen += keys.len() as u64;
                if self.0.len() > MOST_SUSPECTS {
                    self.settle(pair, follows)?;
                }
                if shown.elapsed() >= SHOWN_EACH {
                    shown = Instant::now();
                    let differ = self.0.len();
                    say(&format!("compared {seen} of {total} keys; {differ} to look at again"));
                }
                cursor = next;
                if cursor == b"0" {
                    break;
                }
            }
        }
        self.settle(pair, follows)?;
        let differ = self.0.len();
        say(&format!("compared {seen} keys; {differ} to look at while writes are held"));
        Ok(())
    }

    /// Keys that clients write are different at some looks, and not at others.
    fn settle(&mut self, pair: &mut Pair<'_>, follows: Follows<'_>) -> Result<(), String> {
        for _ in 0..ROUNDS {
            if self.0.is_empty() {
                break;
            }
            follows(pair)?;
            *self = self.look_again(pair)?;
        }
        match self.0.len() > MOST_SUSPECTS / 2 {
            true => Err(format!("the servers differ: {}", self.in_words())),
            false => Ok(()),
        }
    }

    /// Adds keys of each database, at random. Large values would take too long while writes are
    /// held: they are looked at now, if they were not yet.
    fn draw(
        &mut self,
        pair: &mut Pair<'_>,
        compared: Compared,
        follows: Follows<'_>,
    ) -> Result<(), String> {
        let mut of_large = Suspects::default();
        for database in pair.from.sizes()?.into_keys() {
            pair.select(database)?;
            let replies = pair.from.call_all(&vec![vec![b"RANDOMKEY".to_vec()]; SAMPLE])?;
            // Who gets no key would compare none.
            for reply in &replies {
                if let Value::Error(text) = reply {
                    let text = String::from_utf8_lossy(text);
                    return Err(format!("the old server answers to RANDOMKEY: {text}"));
                }
            }
            let keys: BTreeSet<Vec<u8>> =
                replies.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec)).collect();
            let Parted { small, large } = pair.by_size(keys.into_iter().collect())?;
            for key in small {
                self.0.entry((database, key)).or_insert("");
            }
            if compared == Compared::Sample {
                of_large.check(pair, database, &large)?;
            }
        }
        of_large.settle(pair, follows)?;
        self.0.extend(of_large.0);
        Ok(())
    }

    fn in_words(&self) -> String {
        let name = |((database, key), difference): (&(usize, Vec<u8>), &Difference)| {
            let cut = if key.len() > SHOWN { ".." } else { "" };
            let key = key[..key.len().min(SHOWN)].escape_ascii();
            format!("\"{key}{cut}\" of database {database} ({difference})")
        };
        let named: Vec<String> = self.0.iter().take(NAMED).map(name).collect();
        let all = self.0.len();
        let more =
            if all > NAMED { format!(", and {} more keys", all - NAMED) } else { String::new() };
        format!("{}{more}", named.join(", "))
    }
}

/// Keys of the selected database, and where to go on.
fn scan(server: &mut Server, cursor: &[u8]) -> Result<(Vec<u8>, Vec<Vec<u8>>), String> {
    let count = BATCH.to_string();
    let words: [&[u8]; 4] = [b"SCAN", cursor, b"COUNT", count.as_bytes()];
    let mut replies = server.call_all(&[words.map(<[u8]>::to_vec).to_vec()])?;
    match replies.pop() {
        Some(Value::Array(parts)) => match &parts[..] {
            [next, Value::Array(keys)] => {
                let keys = keys.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec));
                Ok((next.as_bytes().unwrap_or(b"0").to_vec(), keys.collect()))
            }
            _ => Err("the old server does not understand SCAN".to_owned()),
        },
        Some(Value::Error(text)) => {
            Err(format!("the old server answers to SCAN: {}", String::from_utf8_lossy(&text)))
        }
        _ => Err("the old server does not understand SCAN".to_owned()),
    }
}
