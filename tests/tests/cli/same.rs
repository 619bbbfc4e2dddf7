//! The same bytes as redis-cli, of the same server.

use anyhow::{Result, bail, ensure};
use tests::server::Server;

use crate::{Client, Said, reference};

/// Commands whose replies have all kinds and shapes. Both clients get them line by line, each at a
/// server of its own.
const LINES: &str = r#"
PING
PING "a b\n\x00\xff\"\\ \a\b\t"
ECHO 'it\'s'
SET k v
SET k v NX
GET k
GET nothing
INCR n
5 INCR n
INCR k
INCRBYFLOAT f 3.25
NOSUCH a b
SET k
APPEND k "\xc3\xa9 and more"
GET k
STRLEN k
MGET k nothing n
RPUSH l a b c d e f g h i j k
LRANGE l 0 -1
LRANGE nothing 0 -1
LPOS l c
HSET h f v g "w x"
HGETALL h
HGETALL nothing
HMGET h f x
HRANDFIELD h 0
SADD s 1 2 3
SMEMBERS s
SMEMBERS nothing
SMISMEMBER s 1 9
ZADD z 1 a 2.5 b inf c -inf d
ZRANGE z 0 -1 WITHSCORES
ZSCORE z b
ZSCORE z nothing
ZPOPMIN z
ZRANK z b WITHSCORE
ZMSCORE z a b nothing
XADD x 1-1 f v g w
XADD x 2-1 f "a\nb"
XRANGE x - +
XREAD COUNT 1 STREAMS x 0
XINFO STREAM x
XGROUP CREATE x g 0
XREADGROUP GROUP g c COUNT 1 STREAMS x >
XPENDING x g
XINFO GROUPS x
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEODIST geo Palermo Catania
GEOPOS geo Palermo nothing
GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 200 km WITHCOORD WITHDIST ASC
PFADD p a b c
PFCOUNT p
BITFIELD b SET u8 0 255 GET u4 0
EXISTS k nothing
EXPIRE k 1000
PERSIST k
TYPE k
OBJECT ENCODING l
SCAN 0 MATCH l COUNT 100
HSCAN h 0
DBSIZE
COPY k k2
CONFIG GET maxmemory
CONFIG GET maxmemory-samples
CONFIG SET maxmemory-policy nosuch
COMMAND COUNT
COMMAND INFO get
COMMAND INFO nosuch get
COMMAND GETKEYS SET a b
COMMAND DOCS get
ACL WHOAMI
ACL GETUSER default
CLIENT GETNAME
CLIENT SETNAME me
CLIENT GETNAME
CLIENT TRACKINGINFO
EVAL "return {1,2.5,'x',{3,{4,'y'}},false,redis.status_reply('FINE')}" 0
EVAL "return {err='X broken'}" 0
EVAL "return {1,{err='inner'},{}}" 0
EVAL "return redis.error_reply('My Err')" 0
SCRIPT EXISTS abc
FUNCTION LIST
MULTI
SET t 1
INCR t
GET t
NOSUCH
EXEC
MULTI
INCR t
LRANGE l 0 1
HGETALL h
INCR k
EXEC
MULTI
DISCARD
EXEC
WATCH k
UNWATCH
SELECT 3
SET three 3
DBSIZE
SELECT 99
SELECT 0
PUBLISH c m
PUBSUB CHANNELS
PUBSUB NUMSUB a
LATENCY LATEST
LATENCY HISTORY command
SLOWLOG GET 0
MEMORY DOCTOR
LOLWUT VERSION 1
WAIT 0 0
TIME x
DEBUG SLEEP 0
OBJECT HELP
ZADD z nan x
get "unbalanced
get 'x'y
0 PING
-3 PING
help nosuch
help @nosuch
:unknown
"#;

/// Kinds that only RESP3 has, and what RESP2 makes of them. Big numbers and attributes are missing:
/// redis-cli 8.0 ends with an error where it meets one.
const KINDS: [&str; 10] =
    ["string", "integer", "double", "null", "array", "set", "map", "verbatim", "true", "false"];

fn normal(text: &str) -> String {
    // The one line in which the tools call themselves by name.
    let own = text.replace("unknown redis-cli internal command", "unknown internal command");
    own.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn compare(what: &str, theirs: &Said, ours: &Said) -> Result<()> {
    if normal(&theirs.out) == normal(&ours.out) && theirs.code == ours.code {
        return Ok(());
    }
    let (theirs_lines, ours_lines): (Vec<&str>, Vec<&str>) =
        (theirs.out.lines().collect(), ours.out.lines().collect());
    let differs = theirs_lines.iter().zip(&ours_lines).position(|(one, other)| one != other);
    let at = differs.unwrap_or(theirs_lines.len().min(ours_lines.len()));
    let near = |lines: &[&str]| {
        lines[at.saturating_sub(3).min(lines.len())..]
            .iter()
            .take(8)
            .copied()
            .collect::<Vec<_>>()
            .join("\n")
    };
    bail!(
        "{what}: line {at}, exit codes {:?} and {:?}\nredis-cli:\n{}\n{}\ndunlin cli:\n{}\n{}",
        theirs.code,
        ours.code,
        near(&theirs_lines),
        theirs.complaints,
        near(&ours_lines),
        ours.complaints,
    );
}

#[test]
fn lines_are_answered_with_the_same_bytes() -> Result<()> {
    let options = [("enable-debug-command", "yes")];
    let servers = [reference(&options)?, reference(&options)?];
    let kinds = KINDS.map(|kind| format!("DEBUG PROTOCOL {kind}\n")).concat();
    let input = format!("FLUSHALL\n{LINES}{kinds}");
    for form in ["--raw", "--no-raw", "--csv", "--json", "--quoted-json"] {
        for protocol in ["-2", "-3"] {
            let arguments = [form, protocol];
            let theirs = Client::Redis.at(&servers[0], &arguments, input.as_bytes())?;
            let ours = Client::Dunlin.at(&servers[1], &arguments, input.as_bytes())?;
            ensure!(theirs.out.len() > 2000, "{theirs:?}");
            compare(&format!("{arguments:?}"), &theirs, &ours)?;
            for server in &servers {
                server.connect()?.call_text("CONFIG RESETSTAT")?;
            }
        }
    }
    Ok(())
}

/// Arguments with what standard input has.
const SINGLE: &[(&[&str], &str)] = &[
    (&["PING"], ""),
    (&["--raw", "GET", "nothing"], ""),
    (&["NOSUCH", "a"], ""),
    (&["-e", "NOSUCH", "a"], ""),
    (&["-e", "PING"], ""),
    (&["-r", "3", "INCR", "c"], ""),
    (&["-r", "2", "-i", "0.01", "INCR", "c"], ""),
    (&["-r", "0", "INCR", "c"], ""),
    (&["-n", "2", "SET", "two", "2"], ""),
    (&["-n", "2", "GET", "two"], ""),
    (&["-n", "99", "PING"], ""),
    (&["-x", "SET", "x"], "from\nstdin\n"),
    (&["-x", "APPEND", "x"], ""),
    (&["GET", "x"], ""),
    (&["-X", "TAG", "SET", "x", "TAG", "XX"], "by tag"),
    (&["-X", "TAG", "SET", "x", "other"], "by tag"),
    (&["GET", "x"], ""),
    (&["-x", "-X", "t", "PING"], ""),
    (&["--quoted-input", "SET", "\"a\\x01b\"", "'v w'"], ""),
    (&["--quoted-input", "GET", "\"a\\x01b\""], ""),
    (&["--quoted-input", "GET", "\"a"], ""),
    (&["--no-raw", "KEYS", "a*"], ""),
    (&["-d", ",", "MGET", "two", "x", "c"], ""),
    (&["-D", "|", "MGET", "two", "x", "c"], ""),
    (&["-D", "", "--raw", "GET", "x"], ""),
    (&["--csv", "MGET", "x", "nothing"], ""),
    (&["--json", "CONFIG", "GET", "maxmemory"], ""),
    (&["--json", "-2", "CONFIG", "GET", "maxmemory"], ""),
    (&["-3", "--no-raw", "CONFIG", "GET", "maxmemory"], ""),
    (&["--user", "nobody", "PING"], ""),
    (&["--user", "nobody", "--pass", "wrong", "PING"], ""),
    (&["-a", "wrong", "--no-auth-warning", "PING"], ""),
    (&["--nonsense"], ""),
    (&["-t", "x", "PING"], ""),
    (&["-t", "2.5", "PING"], ""),
    (&["-c", "-s", "/nowhere", "PING"], ""),
    (&["-s", "/nowhere", "PING"], ""),
    (&["-h", "name.invalid", "PING"], ""),
    (&["--eval", "/nowhere.lua", "k"], ""),
    (&["--quoted-pattern", "\"a", "--scan"], ""),
    (&["--pipe"], "SET a 1\r\nINCR a\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n"),
    (&["--pipe"], "SET a x\r\nINCR a\r\nNOSUCH\r\n"),
    (&["--pipe"], ""),
    (&["SUBSCRIBE"], ""),
    (&["SHUTDOWN", "NOWHERE"], ""),
    (&["QUIT"], ""),
    (&["HELP", "GET"], ""),
    (&["help", "@geo"], ""),
    (&["help", "xgroup", "create"], ""),
];

#[test]
fn options_mean_the_same() -> Result<()> {
    let servers = [reference(&[])?, reference(&[])?];
    for (arguments, input) in SINGLE {
        let theirs = Client::Redis.at(&servers[0], arguments, input.as_bytes())?;
        let ours = Client::Dunlin.at(&servers[1], arguments, input.as_bytes())?;
        compare(&format!("{arguments:?}"), &theirs, &ours)?;
        let ports = servers.each_ref().map(|server| server.port().to_string());
        let complaints = theirs.complaints.replace(&ports[0], &ports[1]);
        // Where one is refused, the words may be ours; where a server complains, they are its own.
        let is_refused = ours.code == Some(1) && !ours.complaints.contains("ERR");
        ensure!(
            is_refused && !ours.complaints.is_empty() && !complaints.is_empty()
                || complaints == ours.complaints
                || theirs.complaints.is_empty() && ours.code == Some(1),
            "{arguments:?}: {complaints:?} and {:?}",
            ours.complaints
        );
    }
    Ok(())
}

/// All commands that the reference documents: their syntax is put together from COMMAND DOCS.
#[test]
fn help_shows_the_same_syntax() -> Result<()> {
    let server = reference(&[])?;
    for group in
        ["string", "list", "set", "sorted-set", "hash", "stream", "generic", "server", "connection"]
    {
        let group = format!("@{group}");
        let theirs = Client::Redis.at(&server, &["help", &group], b"")?;
        // It prints this for a command without arguments.
        let out = theirs.out.replace("(null)", "");
        let ours = Client::Dunlin.at(&server, &["help", &group], b"")?;
        ensure!(ours.out.lines().count() > 20, "{group}: {ours:?}");
        compare(&group, &Said { out, ..theirs }, &ours)?;
    }
    Ok(())
}

#[test]
fn the_password_comes_from_the_environment() -> Result<()> {
    let server: Server = reference(&[("requirepass", "secret")])?;
    let port = server.port().to_string();
    for client in [Client::Redis, Client::Dunlin] {
        let refused = client.at(&server, &["PING"], b"")?;
        ensure!(refused.out.starts_with("NOAUTH"), "{refused:?}");
        let mut command = client.command()?;
        command.env("REDISCLI_AUTH", "secret").args(["-p", &port, "PING"]);
        let let_in = crate::run(command, b"")?;
        ensure!(let_in.out == "PONG\n" && let_in.complaints.is_empty(), "{let_in:?}");
        let warned = client.at(&server, &["-a", "secret", "PING"], b"")?;
        ensure!(warned.out == "PONG\n" && warned.complaints.starts_with("Warning:"), "{warned:?}");
        let uri = format!("redis://default:secret@127.0.0.1:{port}/2");
        let client_line = client.run(&["-u", &uri, "--no-auth-warning", "CLIENT", "INFO"], b"")?;
        ensure!(client_line.out.contains(" db=2 "), "{client_line:?}");
        ensure!(client_line.complaints.is_empty(), "{client_line:?}");
    }
    Ok(())
}
