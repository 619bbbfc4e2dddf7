//! The keys that are used most often, by the counters that servers keep under a policy of LFU.

use resp::client::Value;

use crate::big_keys::{call_all, count_all};
use crate::bytes::percent;
use crate::connection::Words;
use crate::print::{complain, output, say};
use crate::quote::quoted;
use crate::scan::Walk;
use crate::session::{Failed, Session};

/// How many keys are listed.
const MOST: usize = 16;

/// Looks at all keys and prints those with the highest counters.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    let all = count_all(session)?;
    output(
        b"\n# Scanning the entire keyspace to find hot keys as well as\n\
          # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
          # per 100 SCAN commands (not usually needed).\n\n",
    );
    // The coldest is the first.
    let mut hottest: Vec<(i64, Vec<u8>)> = Vec::new();
    let mut sampled = 0;
    let mut walk = Walk::new(&session.options);
    while let Some(keys) = walk.step(session)? {
        let so_far = percent(sampled, all);
        sampled += keys.len() as u64;
        for (key, counter) in keys.iter().zip(counters(session, &keys)?) {
            let Some(counter) = counter.filter(|counter| *counter > 0) else { continue };
            let place = hottest.partition_point(|(other, _)| *other < counter);
            if place == 0 && hottest.len() == MOST {
                continue;
            }
            hottest.insert(place, (counter, key.clone()));
            if hottest.len() > MOST {
                hottest.remove(0);
            }
            let shown = quoted(key);
            say(&format!("[{so_far}] Hot key {shown} found so far with counter {counter}"));
        }
        walk.pause(&session.options);
    }
    let mut text =
        format!("\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\n");
    for (counter, key) in hottest.iter().rev() {
        let key = quoted(key);
        text.push_str(&format!("hot key found with counter: {counter}\tkeyname: {key}\n"));
    }
    output(text.as_bytes());
    Ok(())
}

fn counters(session: &mut Session, keys: &Words) -> Result<Vec<Option<i64>>, Failed> {
    let ask = |key: &Vec<u8>| vec![b"OBJECT".to_vec(), b"FREQ".to_vec(), key.clone()];
    let commands: Vec<Words> = keys.iter().map(ask).collect();
    let mut found = Vec::with_capacity(keys.len());
    for reply in call_all(session, &commands)? {
        match reply {
            Value::Integer(counter) => found.push(Some(counter)),
            Value::Error(text) if !text.starts_with(b"ERR no such key") => {
                complain(&format!("Error: {}", String::from_utf8_lossy(&text)));
                return Err(Failed);
            }
            _ => found.push(None),
        }
    }
    Ok(found)
}
