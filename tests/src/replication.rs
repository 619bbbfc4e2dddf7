//! Primaries and their replicas: what tests do with both, and whether they have the same data.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::{Client, Reply};
use crate::grammar::{Command, REDIS, command, may_wait};
use crate::observe::{PATIENCE, figure, number, wait_until};
use crate::random::Random;
use crate::server::Server;

/// The databases of a server, unless it is told otherwise.
const DATABASES: u32 = 16;

/// Makes a server the replica of the one at this port.
///
/// # Errors
/// It refuses.
pub fn follow(server: &Server, port: u16) -> Result<()> {
    let reply = server.connect()?.call(&["REPLICAOF", "127.0.0.1", &port.to_string()])?;
    ensure!(!reply.is_error(), "{reply:?}");
    Ok(())
}

/// Waits until a replica has all that its primary has written, which is at rest.
///
/// # Errors
/// It does not come so far.
pub fn catch_up(primary: &Server, replica: &Server) -> Result<()> {
    let (mut own, mut other) = (primary.connect()?, replica.connect()?);
    catch_up_between(&mut own, &mut other).with_context(|| replica.log_tail())
}

/// The same over connections with both.
///
/// # Errors
/// It does not come so far.
pub fn catch_up_between(own: &mut Client, other: &mut Client) -> Result<()> {
    wait_until("the replica has all", || {
        let up = figure(other, "master_link_status")? == "up";
        let offset = number(own, "master_repl_offset")?;
        Ok(up && number(other, "slave_repl_offset")? == offset)
    })
}

/// Checks that a replica has the data of its primary, which is at rest.
///
/// # Errors
/// It has not: the error says what differs.
pub fn check_alike(primary: &Server, replica: &Server) -> Result<()> {
    let (mut own, mut other) = (primary.connect()?, replica.connect()?);
    check_alike_between(&mut own, &mut other).with_context(|| replica.log_tail())
}

/// The same over connections with both. Selects database 0.
///
/// # Errors
/// It has not: the error says what differs.
pub fn check_alike_between(own: &mut Client, other: &mut Client) -> Result<()> {
    catch_up_between(own, other)?;
    // What has expired is hidden at once, and the primary says so a little later.
    let begin = Instant::now();
    loop {
        let Some(different) = first_difference(own, other)? else { return Ok(()) };
        ensure!(begin.elapsed() <= PATIENCE / 4, "{different}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn keys(client: &mut Client) -> Result<Vec<Vec<u8>>> {
    let found = client.call_text("KEYS *")?.elements().context("an array")?;
    let mut keys: Vec<_> = found.iter().filter_map(|key| key.text().map(<[u8]>::to_vec)).collect();
    keys.sort();
    Ok(keys)
}

/// Whether a key is a hash that is the same for clients: Valkey's digest leaves the times of fields
/// out.
fn are_same_hash(own: &mut Client, other: &mut Client, key: &[u8]) -> Result<bool> {
    let content = |client: &mut Client| -> Result<Vec<Vec<Reply>>> {
        let all = client.call(&[&b"HGETALL"[..], key])?.elements().unwrap_or_default();
        let mut fields = Vec::new();
        for pair in all.chunks_exact(2) {
            let name = pair[0].text().context("a name")?;
            let time = client.call(&[&b"HPEXPIRETIME"[..], key, b"FIELDS", b"1", name])?;
            fields.push(vec![pair[0].clone(), pair[1].clone(), time]);
        }
        fields.sort_by(|one, another| one[0].text().cmp(&another[0].text()));
        Ok(fields)
    };
    let fields = content(own)?;
    Ok(!fields.is_empty() && fields == content(other)?)
}

/// In words, the first thing that two servers at rest do not have alike. Selects database 0.
///
/// # Errors
/// A connection is lost.
pub fn first_difference(own: &mut Client, other: &mut Client) -> Result<Option<String>> {
    for database in 0..DATABASES {
        let select = format!("SELECT {database}");
        ensure!(!own.call_text(&select)?.is_error() && !other.call_text(&select)?.is_error());
        let (here, there) = (keys(own)?, keys(other)?);
        if here != there {
            let lone = |all: &[Vec<u8>], others: &[Vec<u8>]| -> Vec<String> {
                let lone = all.iter().filter(|key| others.binary_search(key).is_err());
                lone.take(5).map(|key| key.escape_ascii().to_string()).collect()
            };
            return Ok(Some(format!(
                "database {database}: the primary alone has {:?}, the replica alone {:?}",
                lone(&here, &there),
                lone(&there, &here)
            )));
        }
        for key in here {
            for words in [&["DEBUG", "DIGEST-VALUE"][..], &["PEXPIRETIME"]] {
                let words: Vec<_> =
                    words.iter().map(|word| word.as_bytes()).chain([&*key]).collect();
                let (one, another) = (own.call(&words)?, other.call(&words)?);
                if one != another && !are_same_hash(own, other, &key)? {
                    let dumps = [own, other].map(|client| client.call(&[b"DUMP", &*key]));
                    let text = format!(
                        "database {database}, {}: {one:?} and {another:?}, {dumps:?}",
                        key.escape_ascii()
                    );
                    return Ok(Some(text.chars().take(3000).collect()));
                }
            }
        }
    }
    for client in [&mut *own, &mut *other] {
        client.call_text("SELECT 0")?;
    }
    Ok((libraries(own)? != libraries(other)?).then(|| "the functions differ".to_owned()))
}

/// All that FUNCTION LIST tells, without the order in which it does.
fn libraries(client: &mut Client) -> Result<Vec<String>> {
    fn gather(reply: &Reply, texts: &mut Vec<String>) {
        match reply {
            Reply::Array(elements) | Reply::Set(elements) => {
                elements.iter().for_each(|element| gather(element, texts));
            }
            other => texts.push(format!("{other:?}")),
        }
    }
    let mut texts = Vec::new();
    gather(&client.call(&["FUNCTION", "LIST", "WITHCODE"])?, &mut texts);
    texts.sort();
    Ok(texts)
}

/// Random writes of all families.
pub struct Traffic {
    /// What the next command is chosen by.
    pub random: Random,
    /// Fields of hashes get times to live, which Valkey before version 9 does not know.
    pub fields_expire: bool,
    /// Databases change places, which no server of a cluster does, and are emptied whatever has
    /// become of the slots.
    pub swaps: bool,
}

/// Commands that concern connections or servers rather than data.
fn is_about_data(words: &[Vec<u8>]) -> bool {
    const OTHERS: &[&str] = &[
        "ACL",
        "AUTH",
        "BGREWRITEAOF",
        "BGSAVE",
        "CLIENT",
        "CLUSTER",
        "CONFIG",
        "DEBUG",
        "HELLO",
        "LATENCY",
        "MEMORY",
        "MONITOR",
        "PSUBSCRIBE",
        "PUNSUBSCRIBE",
        "QUIT",
        "RESET",
        "SAVE",
        "SHUTDOWN",
        "SLOWLOG",
        "SSUBSCRIBE",
        "SUBSCRIBE",
        "SUNSUBSCRIBE",
        "UNSUBSCRIBE",
        "WAIT",
        "WAITAOF",
        "SCRIPT",
        "FUNCTION",
        "SORT_RO",
        // Redis tells its replicas of an HSET, which forgets the time of the field.
        "HINCRBYFLOAT",
    ];
    let name = String::from_utf8_lossy(&words[0]).to_ascii_uppercase();
    !OTHERS.contains(&&*name) && !may_wait(words)
}

/// Commands that give fields of hashes times to live.
fn times_fields(words: &[Vec<u8>]) -> bool {
    let name = String::from_utf8_lossy(&words[0]).to_ascii_uppercase();
    name.starts_with('H') && (name.contains("EXPIRE") || ["HGETEX", "HSETEX"].contains(&&*name))
}

/// A library of functions.
const LIBRARY: &str = "#!lua name=own\nredis.register_function('push', function(keys, args) \
    for i = 1, 5 do redis.call('RPUSH', keys[1], args[1]) end return redis.call('INCR', keys[2]) end)";

impl Traffic {
    /// Writes that this number chooses.
    #[must_use]
    pub fn new(seed: u64) -> Traffic {
        Traffic { random: Random::new(seed), fields_expire: true, swaps: true }
    }

    /// Sends so many random commands that concern data.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn write(&mut self, writer: &mut Client, count: usize) -> Result<()> {
        let mut sent = 0;
        while sent < count {
            let Command { words, .. } = command(&REDIS, &mut self.random);
            // A Valkey before version 9 takes " 1" for a score, which no other server does.
            let is_odd = words.iter().any(|word| word.starts_with(b" "));
            let swaps = [&b"SWAPDB"[..], b"FLUSHALL", b"FLUSHDB"]
                .iter()
                .any(|word| words[0].eq_ignore_ascii_case(word));
            let fits = (self.swaps || !swaps) && (self.fields_expire || !times_fields(&words));
            if is_about_data(&words) && !is_odd && fits {
                writer.call(&words)?;
                sent += 1;
            }
        }
        writer.call_text("DISCARD")?;
        Ok(())
    }

    /// Sends what a random command is seldom: transactions over databases, scripts, functions, big
    /// values, databases that are emptied or change places.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses what each server does.
    pub fn write_what_is_seldom(&mut self, writer: &mut Client) -> Result<()> {
        let random = &mut self.random;
        let number = random.below(1_000_000).to_string();
        let big = "x".repeat(1 + random.below(200_000));
        let script = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[2], ARGV[1], '1') \
                  return redis.call('SPOP', KEYS[3])";
        let lines: Vec<Vec<&str>> = match random.below(12) {
            0 | 1 => vec![
                vec!["MULTI"],
                vec!["SET", "together:0", &number],
                vec!["SELECT", "9"],
                vec!["SET", "together:9", &number],
                vec!["SELECT", "0"],
                vec!["RPUSH", "together", &number],
                vec!["EXEC"],
            ],
            2 => vec![vec!["SET", "big", &big], vec!["APPEND", "big", &number]],
            3 => vec![
                vec!["SADD", "own:set", "a", "b", &number],
                vec!["EVAL", script, "3", "own:text", "own:hash", "own:set", &number],
            ],
            4 => vec![
                vec!["FUNCTION", "LOAD", "REPLACE", LIBRARY],
                vec!["FCALL", "push", "2", "own:list", "own:count", &number],
                vec!["LTRIM", "own:list", "-50", "-1"],
            ],
            5 => vec![
                vec!["XADD", "own:stream", "MAXLEN", "~", "100", "*", "f", &number],
                vec!["XGROUP", "CREATE", "own:stream", "group", "0", "MKSTREAM"],
                vec![
                    "XREADGROUP",
                    "GROUP",
                    "group",
                    "one",
                    "COUNT",
                    "3",
                    "STREAMS",
                    "own:stream",
                    ">",
                ],
            ],
            6 if self.swaps => vec![vec!["SWAPDB", "0", "9"]],
            7 => vec![vec!["SET", "moved", &number], vec!["MOVE", "moved", "3"]],
            8 => vec![vec!["SET", "short", &number, "PX", "20"], vec!["GET", "short"]],
            9 => vec![
                vec!["RPUSH", "queue", &number],
                vec!["BLPOP", "queue", "1"],
                vec!["GETEX", "own:text", "EX", "1000"],
            ],
            // A server whose slots have moved refuses the SET, and empties nothing.
            10 if !self.swaps && random.percent(20) => {
                vec![vec!["MULTI"], vec!["FLUSHALL"], vec!["SET", "alone", &number], vec!["EXEC"]]
            }
            10 if !self.swaps => vec![vec!["SET", "alone", &number]],
            10 if random.percent(20) => vec![vec!["FLUSHALL"]],
            10 if random.percent(30) => vec![vec!["FLUSHDB", "ASYNC"]],
            _ => vec![
                vec!["COPY", "together", "copy", "REPLACE"],
                vec!["RENAME", "copy", "named"],
                vec!["UNLINK", "named"],
            ],
        };
        for words in lines {
            let reply = writer.call(&words)?;
            if let Reply::Error(text) = &reply {
                let text = String::from_utf8_lossy(text);
                // The random commands beside them give keys other types.
                let is_usual = ["WRONGTYPE", "BUSYGROUP", "NOGROUP", "ERR no such key"]
                    .iter()
                    .any(|start| text.starts_with(start));
                ensure!(is_usual, "{}: {text}", words[0]);
            }
        }
        Ok(())
    }
}
