//! Damaged data from outside, given to the real process: payloads of RESTORE, RDB files and
//! append-only files. Whatever they contain, the server answers, goes on, and takes memory in
//! proportion to them. A value that it accepts works with all commands.
//!
//! Checksums are not verified, so that damage gets as far as it can.

use std::fs;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::grammar;
use tests::mutation::mutated;
use tests::process::resident_bytes;
use tests::random::{Random, Rounds};
use tests::server::{Server, Target, repository};

/// How long each test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(5);

/// Bytes that the process may have resident: all that is tried is small.
const MOST_MEMORY: u64 = 400 << 20;

/// Bytes of version and checksum at the end of a payload.
const FOOTER: usize = 10;

fn start() -> Result<(Server, Client)> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut client = server.connect()?;
    for line in ["CONFIG SET loglevel warning", "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1"] {
        let reply = client.call_text(line)?;
        ensure!(!reply.is_error(), "{line}: {reply:?}");
    }
    Ok((server, client))
}

/// Runs rounds; a failure names its seed and shows what the server said last.
fn rounds(
    server: &mut Server,
    mut round: impl FnMut(&mut Server, &mut Random) -> Result<()>,
) -> Result<()> {
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        let done = round(server, &mut Random::new(seed)).and_then(|()| {
            let taken = resident_bytes(server.pid())?;
            ensure!(taken < MOST_MEMORY, "{taken} bytes are resident");
            Ok(())
        });
        done.with_context(|| format!("SEED={seed}\n{}", server.log_tail()))?;
    }
    Ok(())
}

/// Sends all and waits for as many replies.
fn pipeline(client: &mut Client, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Reply>> {
    for words in commands {
        client.send(words)?;
    }
    commands
        .iter()
        .map(|words| match client.receive() {
            Ok(Received::Reply(reply)) => Ok(reply),
            other => {
                let shown: Vec<_> = words.iter().map(|word| word.escape_ascii()).collect();
                bail!("no reply to {shown:?}: {other:?}")
            }
        })
        .collect()
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Commands that make one value of every type in every encoding.
fn values(random: &mut Random) -> Vec<Vec<Vec<u8>>> {
    let mut commands = Vec::new();
    let long = "long".repeat(40);
    for line in ["SET string text", "SET number -70000", "PFADD loglog a b c d e f"] {
        commands.push(words(line));
    }
    commands.push(words(&format!("SET long {long}")));
    for (suffix, count) in [("small", 5), ("large", 150)] {
        for number in 0..count {
            let member = random.between(-70_000, 70_000);
            for shape in [
                format!("RPUSH list-{suffix} {member} m{number}"),
                format!("SADD ints-{suffix} {member}"),
                format!("SADD set-{suffix} m{member}"),
                format!("HSET hash-{suffix} f{number} {member}"),
                format!("ZADD zset-{suffix} {member}.5 m{number}"),
            ] {
                commands.push(words(&shape));
            }
        }
    }
    commands.push(words(&format!("RPUSH list-long {long} x {long}")));
    commands.push(words(&format!("HSET hash-long f {long} g x")));
    commands.push(words(&format!("SADD set-long {long} x y")));
    commands.push(words(&format!("ZADD zset-long 1 {long} 2 x")));
    commands
}

/// What is tried with a value, whatever its type is: most answers are errors of type.
const TRIALS: &[&str] = &[
    "TYPE k",
    "OBJECT ENCODING k",
    "MEMORY USAGE k SAMPLES 0",
    "DEBUG DIGEST-VALUE k",
    "DUMP k",
    "STRLEN k",
    "GETRANGE k 0 -1",
    "APPEND k x",
    "SETBIT k 100 1",
    "BITCOUNT k",
    "PFCOUNT k",
    "INCR k",
    "LLEN k",
    "LRANGE k 0 -1",
    "LINDEX k -1",
    "LINSERT k BEFORE 1 new",
    "LSET k 0 changed",
    "LREM k 1 1",
    "LPUSH k head",
    "RPOP k",
    "LTRIM k 1 -2",
    "SCARD k",
    "SMEMBERS k",
    "SADD k 1 new 99999999999",
    "SRANDMEMBER k -5",
    "SREM k 1 a",
    "SPOP k",
    "SUNIONSTORE l k k",
    "HLEN k",
    "HGETALL k",
    "HSET k f 1 new 2",
    "HINCRBY k f 1",
    "HRANDFIELD k -5 WITHVALUES",
    "HDEL k f",
    "ZCARD k",
    "ZRANGE k 0 -1 WITHSCORES",
    "ZRANGEBYSCORE k -inf +inf",
    "ZRANGEBYLEX k - +",
    "ZADD k 5 new 6 m1",
    "ZINCRBY k 1 new",
    "ZRANK k new",
    "ZPOPMIN k",
    "ZREMRANGEBYRANK k 0 0",
    "SORT k ALPHA",
    "SSCAN k 0 COUNT 10",
    "HSCAN k 0 COUNT 10",
    "ZSCAN k 0 COUNT 10",
    "COPY k l REPLACE",
    "DEBUG DIGEST-VALUE k l",
    "DUMP l",
];

#[test]
fn damaged_payloads_are_refused_or_values_to_all_commands() -> Result<()> {
    let (mut server, mut client) = start()?;
    let (mut taken, mut refused) = (0, 0);
    rounds(&mut server, |_, random| {
        client.call_text("FLUSHALL")?;
        pipeline(&mut client, &values(random))?;
        let keys = client.call_text("KEYS *")?.elements().context("keys")?;
        let dump = |key: &Reply| vec![b"DUMP".to_vec(), key.text().unwrap_or_default().to_vec()];
        let dumps: Vec<_> = keys.iter().map(dump).collect();
        let payloads = pipeline(&mut client, &dumps)?;
        let payloads: Vec<_> = payloads.iter().filter_map(Reply::text).collect();
        let mut commands = Vec::new();
        for payload in &payloads {
            let (body, footer) = payload.split_at(payload.len() - FOOTER);
            let mut damaged = mutated(body, random.pick::<&[u8]>(&payloads), random);
            damaged.extend_from_slice(footer);
            let restore = [&b"RESTORE"[..], b"k", b"0", &damaged, b"REPLACE"];
            commands.push(words("DEL k l"));
            commands.push(restore.iter().map(|word| word.to_vec()).collect());
            let first = random.below(TRIALS.len());
            commands.extend(TRIALS.iter().cycle().skip(first).take(12).map(|line| words(line)));
        }
        for (words, reply) in commands.iter().zip(pipeline(&mut client, &commands)?) {
            if words[0] == b"RESTORE" {
                *if reply.is_error() { &mut refused } else { &mut taken } += 1;
            }
        }
        Ok(())
    })?;
    ensure!(taken > 0 && refused > 0, "{taken} were taken, {refused} refused");
    Ok(())
}

/// Reads all that there is, in every way that walks over it.
fn look_around(client: &mut Client) -> Result<()> {
    let lines = ["PING", "DEBUG DIGEST", "DBSIZE", "SCAN 0 COUNT 1000", "RANDOMKEY"];
    let replies = pipeline(client, &lines.map(words))?;
    ensure!(!replies[1].is_error(), "{replies:?}");
    Ok(())
}

#[test]
fn damaged_snapshots_are_refused_or_loaded() -> Result<()> {
    let (mut server, mut client) = start()?;
    pipeline(&mut client, &values(&mut Random::new(1)))?;
    client.call_text("SAVE")?;
    let file = server.directory().join("dump.rdb");
    let mut files = vec![fs::read(&file)?];
    for name in ["types", "plain", "stream", "lru", "lfu"] {
        files.push(fs::read(repository().join("tests/golden").join(format!("{name}.rdb")))?);
    }
    rounds(&mut server, |_, random| {
        let (whole, other) = (random.pick::<Vec<u8>>(&files), random.pick::<Vec<u8>>(&files));
        fs::write(&file, mutated(whole, other, random))?;
        client.call_text("DEBUG RELOAD NOSAVE")?;
        look_around(&mut client)
    })
}

/// An append-only file of random commands.
fn commands(random: &mut Random) -> Vec<u8> {
    const SHAPES: &[&str] = &[
        "SET <string> <value>",
        "RPUSH <list> ( <member> )+",
        "SADD <set> ( <member> )+",
        "HSET <hash> <field> <value>",
        "ZADD <zset> ( <score> <member> )+",
        "PEXPIREAT <key> 5000000000000",
        "INCR counter",
        "LPOP <list>",
        "DEL <key>",
        "SELECT ( 0 | 1 )",
        "MULTI",
        "EXEC",
        "SWAPDB 0 1",
        "RENAME <key> <key>",
    ];
    let mut file = Vec::new();
    for _ in 0..random.below(60) {
        let words = grammar::of_shape(random.pick::<&str>(SHAPES), random);
        // Writing into memory cannot fail.
        let _ = write!(file, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(file, "${}\r\n", word.len());
            file.extend_from_slice(&word);
            file.extend_from_slice(b"\r\n");
        }
    }
    file
}

#[test]
fn damaged_commands_are_refused_cut_off_or_replayed() -> Result<()> {
    let (mut server, mut client) = start()?;
    pipeline(&mut client, &values(&mut Random::new(1)))?;
    client.call_text("SAVE")?;
    let base = fs::read(server.directory().join("dump.rdb"))?;
    let directory = server.directory().join("appendonlydir");
    fs::create_dir(&directory)?;
    let list = "file base.rdb seq 1 type b\nfile incr.aof seq 1 type i\n";
    rounds(&mut server, |_, random| {
        let (whole, other) = (commands(random), commands(random));
        let list = match random.percent(10) {
            true => mutated(list.as_bytes(), &whole, random),
            false => list.as_bytes().to_vec(),
        };
        let base = if random.percent(30) { mutated(&base, &whole, random) } else { base.clone() };
        fs::write(directory.join("appendonly.aof.manifest"), list)?;
        fs::write(directory.join("base.rdb"), base)?;
        fs::write(directory.join("incr.aof"), mutated(&whole, &other, random))?;
        client.call_text("DEBUG LOADAOF")?;
        look_around(&mut client)
    })
}
