//! What will not move, or not work afterwards.

use std::net::IpAddr;

use crate::findings::{Finding, Findings};
use crate::options::{After, LENGTH_OF_NAME, Options};
use crate::rights;
use crate::server::{ASKS_FOR_TIMES, Info, Server, Writes, is_up, number, text};
use crate::versions::{Unreadable, unreadable};
use resp::client::Value;

/// Settings that belong to a machine, or to one server: they differ on purpose. Directives whose
/// name begins so.
const OF_THE_SERVER: &[&str] = &[
    "bind",
    "dir",
    "dbfilename",
    "logfile",
    "pidfile",
    "port",
    "unixsocket",
    "tls-",
    "replicaof",
    "slaveof",
    "daemonize",
    "supervised",
    "syslog",
    "io-threads",
    "server_cpulist",
    "bio_cpulist",
    "aof_rewrite_cpulist",
    "bgsave_cpulist",
    "proc-title",
    "replica-announce",
    "slave-announce",
    "cluster-",
    "always-show-logo",
    "oom-score",
    "locale",
    "enable-",
    "appenddirname",
    "workers",
    "http-",
    "https-",
    "maxmemory-clients",
    "hz",
    "dynamic-hz",
    "crash-",
    "jemalloc",
    "watchdog",
    "rdb-version",
    "save",
    "appendfilename",
    "socket-mark",
    "set-proc",
    "loglevel",
    "slave-",
];

/// What a server is asked for, and asks others for: it differs on purpose, under both names.
const OF_LINKS: &[&str] =
    &["requirepass", "masterauth", "masteruser", "primaryauth", "primaryuser"];

/// Parts of the names of settings whose values nobody is shown.
const SECRETS: &[&str] = &["auth", "pass", "secret"];

/// Unknown directives are named up to this many.
const NAMED: usize = 30;

/// Looks at everything.
pub(crate) fn all(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
) -> Result<Vec<Finding>, String> {
    let mut findings = Findings::default();
    parts(from, to, options, &mut findings)?;
    addresses(options, &mut findings);
    rights::look(from, to, options, &mut findings);
    sentinels(from, to, &mut findings);
    formats(from, to, options, &mut findings)?;
    writes(from, to, options, &mut findings)?;
    data(from, to, &mut findings)?;
    users(from, to, &mut findings);
    settings(from, to, &mut findings);
    Ok(findings.0)
}

/// The parts of both servers, and whether they can do what is asked of them.
fn parts(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    found: &mut Findings,
) -> Result<(), String> {
    let (server, replication) = (from.info("server")?, from.info("replication")?);
    if server.get("redis_mode").is_some_and(|mode| mode != "standalone") {
        found.stop("the old server is part of a cluster, or no server with data");
    }
    let version = server.get("redis_version").map(String::as_str).unwrap_or_default();
    if major(version) < 7 {
        found.stop(format!("the old server is of version {version}, and only 7.0 and later move"));
    }
    if replication.get("role").is_some_and(|role| role != "master") {
        found.stop("the old server is itself a replica: name its primary");
    }
    let replicas = number(&replication, "connected_slaves");
    let is_own = follows(&to.info("replication")?, &options.seen_from);
    if replicas > i64::from(is_own) {
        let text = match options.after {
            After::Replica => "they will follow it as replicas of a replica, if it serves them",
            After::Paused => "they stay with it, and have to be told of the new server",
        };
        found.note(format!("the old server has {replicas} replicas: {text}"));
    }
    let there = to.info("replication")?;
    let follows = follows(&there, &options.seen_from);
    if follows {
        found.note("the new server is a replica of the old one already");
    }
    if number(&there, "connected_slaves") > 0 {
        found.note("the new server has replicas: they get all data too");
    }
    if to.info("server")?.get("redis_mode").is_some_and(|mode| mode != "standalone") {
        found.stop("the new server is part of a cluster, or no server with data");
    }
    if server.get("run_id") == to.info("server")?.get("run_id") {
        found.stop("both are the same server");
    }
    if is_promoted_from(&there, &replication) && !follows {
        found.note(
            "the new server has left the old one's stream, and the old one has taken writes since, \
             or takes them: what clients have written at the new one since would be lost",
        );
    }
    if options.after == After::Replica && from.setting("replica-read-only") == "no" {
        found.note("replica-read-only becomes 'yes' at the old server, so that it refuses writes");
    }
    if to.setting("replica-read-only") == "no" {
        found.note("replica-read-only is 'yes' at the new server while it follows");
    }
    if let Some(problem) = unnamed_loss(from, to, options)? {
        found.stop(problem);
    }
    let clients = number(&from.info("clients")?, "pubsub_clients");
    if clients > 0 {
        found.note(format!("{clients} clients have subscribed to channels of the old server"));
    }
    Ok(())
}

/// What is in the way of a new server that becomes a replica: it follows another one, or has data
/// that nobody has named.
pub(crate) fn unnamed_loss(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
) -> Result<Option<String>, String> {
    let (old, new) = (from.info("replication")?, to.info("replication")?);
    if follows(&new, &options.seen_from) {
        return Ok(None);
    }
    if new.get("role").is_some_and(|role| role != "master") {
        return Ok(Some(
            "the new server is a replica of another server: REPLICAOF NO ONE first".to_owned(),
        ));
    }
    let keys: u64 = to.sizes()?.values().sum();
    let name = name_of_data(&new);
    let is_named = options.replace.as_deref() == Some(name);
    let has_some = keys > 0 || is_promoted_from(&new, &old);
    Ok((has_some && !is_named).then(|| {
        format!(
            "the new server has {keys} keys, which would be lost, with all that clients have \
             written there if a move has promoted it: --replace {name} says that they may be"
        )
    }))
}

/// What is in the way of ending a pause that the old server has, which is not this run's. A new one
/// that is in its stream may have been about to be promoted by a move that was killed. Nobody knows
/// that: it may as well be any replica, and the pause may be there because another server leads. So
/// somebody has to read the note and agree, or say it beforehand. In any other case it has to be
/// said.
pub(crate) fn pause_of_others(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    has_agreed: bool,
) -> Result<Option<String>, String> {
    let (old, new) = (from.info("replication")?, to.info("replication")?);
    let is_own = follows(&new, &options.seen_from) && is_up(&new) && are_of_one_stream(&old, &new);
    let may_end = options.unpause || is_own && has_agreed;
    Ok((!may_end).then(|| {
        "writes are held at the old server, as after a move to another one with --after paused: \
         --unpause says that no other server leads instead, so that they may go on"
            .to_owned()
    }))
}

/// Whether both take writes.
fn writes(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    found: &mut Findings,
) -> Result<(), String> {
    match from.writes()? {
        Writes::Taken => {}
        // A question follows the note, and a check changes nothing.
        Writes::Waiting => match pause_of_others(from, to, options, !options.yes)? {
            Some(problem) => found.stop(problem),
            None => found.note_pause(
                "writes are held at the old server, as a move leaves them that was killed right \
                 before the promotion, or somebody else: they go on when this one begins. Where no \
                 question is asked, --unpause has to say that no other server leads",
            ),
        },
        Writes::Unknown(answer) => found.stop(format!(
            "the old server does not tell whether it holds writes, as a move does that has ended \
             after the promotion: it answers {answer}"
        )),
    }
    let is_replica = to.info("replication")?.get("role").is_some_and(|role| role != "master");
    match to.writes()? {
        Writes::Taken => {}
        Writes::Waiting => found.note(
            "writes are held at the new server, as an earlier move has left them, or somebody \
             else: it refuses them while it is a replica, and takes them after that",
        ),
        // It says why it would refuse them if it led only then.
        Writes::Unknown(_) if is_replica => {}
        Writes::Unknown(answer)
            if answer.starts_with("NOREPLICAS") && options.after == After::Replica =>
        {
            found.note(format!(
                "the new server takes no writes, unless the old one is all that it waits for: it \
                 answers {answer}"
            ));
        }
        Writes::Unknown(answer) => {
            found.stop(format!("the new server takes no writes: it answers {answer}"));
        }
    }
    Ok(())
}

/// Whether each can load what the other one writes.
fn formats(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    found: &mut Findings,
) -> Result<(), String> {
    if let Some(Unreadable { why, setting }) = unreadable(from, to)? {
        found.stop(match setting {
            Some(version) => format!("{why}: CONFIG SET rdb-version {version} at the old server"),
            None => format!("{why}: move to Dunlin, and from there to the new server"),
        });
    }
    if options.after == After::Replica
        && let Some(Unreadable { why, setting }) = unreadable(to, from)?
    {
        let help = setting.map(|own| format!(": CONFIG SET rdb-version {own} at the new server"));
        let help = help.unwrap_or_default();
        found.note(format!(
            "the old server cannot follow the new one if it needs all data for that: {why}{help}"
        ));
    }
    Ok(())
}

/// Whether a server is a replica of the one at this address, by its INFO.
pub(crate) fn follows(replication: &Info, (host, port): &(String, u16)) -> bool {
    let is = |field: &str, value: &str| replication.get(field).is_some_and(|own| own == value);
    is("role", "slave") && is("master_host", host) && is("master_port", &port.to_string())
}

/// Whether two servers are in the same stream, by their INFO.
pub(crate) fn are_of_one_stream(one: &Info, other: &Info) -> bool {
    let name = one.get("master_replid");
    name.is_some() && name == other.get("master_replid")
}

/// Whether a server has left the stream of another one, by their INFO.
pub(crate) fn is_promoted_from(new: &Info, old: &Info) -> bool {
    let name = old.get("master_replid");
    name.is_some() && name == new.get("master_replid2")
}

/// A name of the data that a primary has. It is another one after each promotion and each restart,
/// so it never stands for what clients have written since.
fn name_of_data(replication: &Info) -> &str {
    let history = replication.get("master_replid").map_or("", String::as_str);
    history.get(..LENGTH_OF_NAME).unwrap_or(history)
}

fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Where the servers look for each other: an address of this machine is another server there.
fn addresses(options: &Options, found: &mut Findings) {
    address(options, "new", found);
    if options.after == After::Replica {
        address(options, "old", found);
    }
}

/// Where this one looks for the other one.
pub(crate) fn address(options: &Options, part: &str, found: &mut Findings) {
    let (option, seen, other) = match part {
        "new" => ("--from-address", &options.seen_from, &options.from),
        _ => ("--to-address", &options.seen_to, &options.to),
    };
    let (host, port) = seen;
    let are_both_here = is_loopback(&options.from.host) && is_loopback(&options.to.host);
    if are_both_here || !is_loopback(host) {
        return;
    }
    let text = format!("the {part} server looks for the other one at {host}:{port}, on its own");
    // There may be a tunnel to it, of which the user knows.
    match (host, *port) == (&other.host, other.port) {
        true => found.stop(format!("{text} machine: {option} says another address")),
        false => found.note(format!("{text} machine")),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Sentinels see the old server lead no more, and choose another of its replicas.
fn sentinels(from: &mut Server, to: &mut Server, found: &mut Findings) {
    for (part, server) in [("old", from), ("new", to)] {
        // Who sees no clients is told so.
        if let Some(address) = server.sentinels().unwrap_or_default().first() {
            found.stop(format!(
                "a Sentinel watches the {part} server, from {address}, and would undo the move: \
                 SENTINEL REMOVE first, at each of them"
            ));
        }
    }
}

/// The data: types, databases, memory, functions.
fn data(from: &mut Server, to: &mut Server, found: &mut Findings) -> Result<(), String> {
    let sizes = from.sizes()?;
    if let Ok(Value::Array(modules)) = from.call(&["MODULE", "LIST"]) {
        for module in &modules {
            let name = module_name(module);
            // The engine of scripts in Valkey 9.1.
            if name == "lua" {
                continue;
            }
            if name != "vectorset" {
                found.stop(format!("the old server has loaded the module {name}"));
                continue;
            }
            // Part of Redis 8, and in the way only if it is used.
            for database in sizes.keys() {
                let count = count_of_type(from, *database, "vectorset")?;
                if count > 0 {
                    found.stop(format!(
                        "database {database} has {count} vector sets, which do not move"
                    ));
                }
            }
        }
    }
    if let Some(problem) = lost_times(from, to)? {
        found.stop(problem);
    }
    let room: usize = to.setting("databases").parse().unwrap_or(16);
    if let Some(last) = sizes.keys().next_back().filter(|last| **last >= room) {
        found.stop(format!("database {last} has keys, and the new server has {room} databases"));
    }
    let used = number(&from.info("memory")?, "used_memory");
    let limit: i64 = to.setting("maxmemory").parse().unwrap_or(0);
    if limit > 0 && used > limit {
        found.stop(format!(
            "the old server uses {used} bytes, and maxmemory of the new one is {limit}"
        ));
    }
    if let Ok(Value::Array(libraries)) = from.call(&["FUNCTION", "LIST"])
        && !libraries.is_empty()
    {
        found.note(format!("{} libraries of functions move with the data", libraries.len()));
    }
    if number(&from.info("memory")?, "number_of_cached_scripts") > 0 {
        found.note("scripts of EVALSHA do not move: clients send them again after NOSCRIPT");
    }
    Ok(())
}

/// Why times of fields would be lost: hashes have some, and the new server knows none.
pub(crate) fn lost_times(from: &mut Server, to: &mut Server) -> Result<Option<String>, String> {
    let timed = from.timed_hashes()?;
    if timed == 0 || to.call(&ASKS_FOR_TIMES).is_ok() {
        return Ok(None);
    }
    Ok(Some(format!("{timed} hashes have fields that expire, and the new server knows none")))
}

/// The name of a module, from its pairs of names and values.
fn module_name(module: &Value) -> String {
    let Value::Array(words) = module else { return "unknown".to_owned() };
    let mut pairs = words.chunks_exact(2);
    let name = pairs.find(|pair| text(&pair[0]) == "name");
    name.map_or_else(|| "unknown".to_owned(), |pair| text(&pair[1]))
}

/// How many keys of a type a database has.
fn count_of_type(server: &mut Server, database: usize, name: &str) -> Result<usize, String> {
    server.call(&["SELECT", &database.to_string()])?;
    let (mut cursor, mut count) = ("0".to_owned(), 0);
    loop {
        let reply = server.call(&["SCAN", &cursor, "COUNT", "1000", "TYPE", name])?;
        let Value::Array(parts) = reply else { break };
        if let [next, Value::Array(keys)] = &parts[..] {
            (cursor, count) = (text(next), count + keys.len());
        }
        if cursor == "0" {
            break;
        }
    }
    server.call(&["SELECT", "0"])?;
    Ok(count)
}

/// Who may log in.
fn users(from: &mut Server, to: &mut Server, found: &mut Findings) {
    if let Ok(Value::Array(users)) = from.call(&["ACL", "LIST"]) {
        let others = users.iter().map(text).filter(|line| !line.starts_with("user default "));
        let names: Vec<String> =
            others.filter_map(|line| line.split(' ').nth(1).map(str::to_owned)).collect();
        if !names.is_empty() {
            found.note(format!("users of the ACL do not move: {}", names.join(", ")));
        }
    }
    match (from.address.password.is_some(), to.address.password.is_some()) {
        (true, false) => found.note("the new server asks for no password, and the old one does"),
        (false, true) => found.note("the new server asks for a password, and the old one does not"),
        _ => {}
    }
}

/// The directives of both servers.
fn settings(from: &mut Server, to: &mut Server, found: &mut Findings) {
    let (here, there) = (from.settings("*"), to.settings("*"));
    if here.is_empty() || there.is_empty() {
        return found.note("CONFIG GET is not allowed: settings were not compared");
    }
    let concerns_data = |name: &&String| {
        !OF_THE_SERVER.iter().any(|own| name.starts_with(own)) && !OF_LINKS.contains(&name.as_str())
    };
    let names = || here.keys().filter(concerns_data);
    let unknown: Vec<&str> =
        names().filter(|name| !there.contains_key(*name)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let shown = unknown[..unknown.len().min(NAMED)].join(", ");
        found.note(format!("the new server does not know these directives: {shown}"));
    }
    for name in names() {
        if let (Some(old), Some(new)) = (here.get(name), there.get(name))
            && old != new
        {
            if is_secret(name) {
                found.note(format!("{name} is not the same at both servers"));
                continue;
            }
            found.note(format!("{name} is '{old}' at the old server, and '{new}' at the new one"));
        }
    }
}

/// Whether nobody is shown the value of a setting: a word of its name may end as "key" does, and
/// "keyspace" does not.
fn is_secret(name: &str) -> bool {
    SECRETS.iter().any(|part| name.contains(part))
        || name.split('-').any(|word| word.ends_with("key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_known_by_their_names() {
        for name in ["primaryauth", "tls-key-file-pass", "s3-secret", "s3-access-key", "apikey"] {
            assert!(is_secret(name), "{name}");
        }
        assert!(!is_secret("notify-keyspace-events") && !is_secret("maxmemory-policy"));
    }

    #[test]
    fn an_address_of_this_machine_is_told_before_another_machine_looks_for_it() {
        let found = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let options = Options::parse(&words).expect("it is right");
            let mut found = Findings::default();
            addresses(&options, &mut found);
            found.0.into_iter().map(|own| own.prevents).collect::<Vec<_>>()
        };
        let none: [bool; 0] = [];
        assert_eq!(found("--from redis://127.0.0.1:1 --to redis://localhost:2"), none);
        assert_eq!(found("--from redis://old --to redis://new"), none);
        assert_eq!(found("--from redis://localhost --to redis://new"), [true]);
        assert_eq!(found("--from redis://old --to redis://[::1]"), [true]);
        assert_eq!(found("--from redis://old --to redis://[::1] --after paused"), none);
        let tunnel = "--from redis://localhost --to redis://new --from-address localhost:7000";
        assert_eq!(found(tunnel), [false], "the user says so");
        let named = "--from redis://localhost --to redis://new --from-address old:6379";
        assert_eq!(found(named), none);
    }
}
