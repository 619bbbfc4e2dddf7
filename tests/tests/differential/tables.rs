//! How the servers describe themselves: COMMAND INFO, COMMAND DOCS and CONFIG GET.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use tests::client::{Client, Reply};
use tests::notation;
use tests::play::sorted;

use crate::judge::{REDIS, VALKEY};
use crate::pair::Pair;

/// What is not of Redis 8.0: commands and options of our own, of newer versions and of Valkey, by
/// the names that COMMAND DOCS gives them.
const FROM_ELSEWHERE: [&str; 57] = [
    "acl|delrole",
    "acl|digest",
    "acl|getrole",
    "acl|roles",
    "acl|setrole",
    "cluster|slot-stats",
    "cluster|topology",
    "clusterscan",
    "commandlog",
    "commandlog|get",
    "commandlog|help",
    "commandlog|len",
    "commandlog|reset",
    "delifeq",
    "client|import-source",
    "client|durability",
    "client|position",
    "client|readafter",
    "script|show",
    "changes",
    "xadd condition",
    "xtrim condition",
    "xreadgroup min-idle-time",
    "contenttype",
    "restorepart",
    "slotmove",
    "xackdel",
    "xdelex",
    "client|capa",
    "comparison-value",
    "name",
    "idle",
    "flags",
    "lib-name",
    "lib-ver",
    "db",
    "capa",
    "ip",
    "not-client-type",
    "not-client-id",
    "not-username",
    "not-addr",
    "not-laddr",
    "not-name",
    "not-flags",
    "not-lib-name",
    "not-lib-ver",
    "not-db",
    "not-capa",
    "not-ip",
    // Of CLIENT LIST; CLIENT KILL's are Redis's own.
    "client|list username",
    "client|list addr",
    "client|list laddr",
    "client|list skipme",
    "client|list maxage",
    "polygon",
    "zscan noscores",
];

/// Compares COMMAND INFO and COMMAND DOCS of each command that both servers know.
pub(crate) fn command_tables() -> Result<()> {
    let mut pair = Pair::start(&REDIS)?;
    let mut clients = pair.connect()?;
    let mut names = |of: usize| -> Result<BTreeSet<String>> {
        let names = clients[of].call_text("COMMAND LIST")?.elements().unwrap_or_default();
        Ok(names.iter().map(text_of).collect())
    };
    let (ours, theirs) = (names(0)?, names(1)?);
    let mut differences = Vec::new();
    for name in ours.difference(&theirs).filter(|name| !FROM_ELSEWHERE.contains(&name.as_str())) {
        differences.push(format!("{name}: the reference does not know it"));
    }
    for name in ours.intersection(&theirs) {
        compare_command(&mut clients, name, &mut differences)?;
    }
    if differences.is_empty() { Ok(()) } else { bail!("{}", differences.join("\n")) }
}

/// Compares what the commands that Valkey alone has say of themselves.
pub(crate) fn valkey_commands() -> Result<()> {
    const COMMANDS: [&str; 9] = [
        "client|capa",
        "client|import-source",
        "commandlog",
        "commandlog|get",
        "commandlog|help",
        "commandlog|len",
        "commandlog|reset",
        "delifeq",
        "script|show",
    ];
    let mut pair = Pair::start(&VALKEY)?;
    let mut clients = pair.connect()?;
    let mut differences = Vec::new();
    for name in COMMANDS {
        compare_command(&mut clients, name, &mut differences)?;
    }
    if differences.is_empty() { Ok(()) } else { bail!("{}", differences.join("\n")) }
}

/// Compares COMMAND INFO and COMMAND DOCS of a command.
fn compare_command(
    clients: &mut [Client; 2],
    name: &str,
    differences: &mut Vec<String>,
) -> Result<()> {
    let mut ask = |what: &str| -> Result<[Reply; 2]> {
        let [ours, theirs] = clients.each_mut().map(|client| client.call(&["COMMAND", what, name]));
        let last = |reply: Reply| reply.elements().and_then(|mut it| it.pop());
        Ok([ours?, theirs?].map(|reply| last(reply).unwrap_or(Reply::Nil)))
    };
    let [ours, theirs] = ask("INFO")?;
    describe(name, &ours, &theirs, differences);
    let [ours, theirs] = ask("DOCS")?;
    compare_docs(name, &ours, &theirs, differences);
    Ok(())
}

fn text_of(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// Compares two descriptions of a command.
fn describe(name: &str, ours: &Reply, theirs: &Reply, differences: &mut Vec<String>) {
    const NAMES: [&str; 9] =
        ["name", "arity", "flags", "first", "last", "step", "categories", "tips", "keys"];
    let fields = |reply: &Reply| reply.clone().elements().unwrap_or_default();
    let (ours, theirs) = (fields(ours), fields(theirs));
    for (index, what) in NAMES.iter().enumerate() {
        let of = |fields: &[Reply]| {
            let field = fields.get(index).cloned().unwrap_or(Reply::Nil);
            notation::lines(&sorted(without_notes(field), 1)).join(" ")
        };
        // Here it waits off the thread that runs commands, so transactions and scripts refuse it.
        let is_known = name == "migrate" && *what == "flags";
        if of(&ours) != of(&theirs) && !is_known {
            differences.push(format!("{name}: {what}: {} but {}", of(&ours), of(&theirs)));
        }
    }
}

/// The fields of a map in RESP2.
fn fields_of(reply: &Reply) -> BTreeMap<String, Reply> {
    let elements = reply.clone().elements().unwrap_or_default();
    elements.chunks_exact(2).map(|pair| (text_of(&pair[0]), pair[1].clone())).collect()
}

/// Compares two entries of COMMAND DOCS: all but the prose.
fn compare_docs(name: &str, ours: &Reply, theirs: &Reply, differences: &mut Vec<String>) {
    const PROSE: [&str; 5] = ["summary", "complexity", "history", "replaced_by", "subcommands"];
    let (ours, theirs) = (fields_of(ours), fields_of(theirs));
    let all: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for field in all {
        let [our, their] = [ours.get(field), theirs.get(field)];
        let different = match field.as_str() {
            "arguments" => {
                let shown = |reply: Option<&Reply>| {
                    reply.map(|it| arguments(name, it)).unwrap_or_default().join("\n")
                };
                let (our, their) = (shown(our), shown(their));
                (our != their).then(|| format!("{our}\nbut\n{their}"))
            }
            "history" if our.is_some() && their.is_some() => {
                let later = ["set", "geosearch", "geosearchstore"].contains(&name);
                let (our, their) = (versions(our), versions(their));
                (our != their && !later).then(|| format!("{our:?} but {their:?}"))
            }
            // Redis does not say how long XREAD takes.
            "complexity" if name == "xread" => None,
            field if PROSE.contains(&field) => (our.is_some() != their.is_some())
                .then(|| format!("{} but {}", our.is_some(), their.is_some())),
            _ => (our != their).then(|| format!("{our:?} but {their:?}")),
        };
        if let Some(difference) = different {
            differences.push(format!("{name}: {field}: {difference}"));
        }
    }
}

/// The versions that a history names.
fn versions(history: Option<&Reply>) -> Vec<String> {
    let entries = history.and_then(|it| it.clone().elements()).unwrap_or_default();
    let version = |entry: &Reply| entry.clone().elements().map(|it| text_of(&it[0]));
    let mut versions: Vec<_> = entries.iter().filter_map(version).collect();
    versions.sort();
    versions
}

/// The arguments of a command as lines, without what is Valkey's.
fn arguments(command: &str, reply: &Reply) -> Vec<String> {
    let mut lines = Vec::new();
    for argument in reply.clone().elements().unwrap_or_default() {
        let mut fields = fields_of(&argument);
        let name = fields.get("name").map(text_of).unwrap_or_default();
        let known = |name: &str| FROM_ELSEWHERE.contains(&name);
        let is_filter = command.starts_with("client|")
            || ["comparison-value", "polygon"].contains(&name.as_str());
        if is_filter && known(&name) || known(&format!("{command} {name}")) {
            continue;
        }
        let inner = fields.remove("arguments");
        let shown = |(name, value): (&String, &Reply)| {
            format!("{name}={}", notation::lines(&sorted(value.clone(), 1)).join(" "))
        };
        lines.push(fields.iter().map(shown).collect::<Vec<_>>().join(", "));
        let inner = inner.map(|inner| arguments(command, &inner)).unwrap_or_default();
        lines.extend(inner.into_iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Settings that are other ones by intent, or by how the test starts its servers.
const OTHER_SETTINGS: [&str; 47] = [
    "bind",
    "tls-prefer-server-ciphers",
    "port",
    "dir",
    "logfile",
    "pidfile",
    "unixsocket",
    "save",
    "enable-debug-command",
    // Valkey's.
    "availability-zone",
    "commandlog-execution-slower-than",
    "commandlog-large-reply-max-len",
    "commandlog-large-request-max-len",
    "commandlog-reply-larger-than",
    "commandlog-request-larger-than",
    "commandlog-slow-execution-max-len",
    "import-mode",
    // Our own.
    "auth-failure-delay",
    "authentication-timeout",
    "changes-backlog-size",
    "changes-backlog-ttl",
    "cluster-allow-cross-slot",
    "cluster-databases",
    "cluster-durability",
    "cluster-etcd",
    "cluster-etcd-ca-file",
    "cluster-etcd-cert-file",
    "cluster-etcd-key-file",
    "cluster-etcd-password",
    "cluster-etcd-user",
    "cluster-migration-bandwidth",
    "cluster-name",
    "cluster-node-timeout",
    "cluster-slot-stats-enabled",
    "durability-timeout",
    "threads",
    "http-cors-origins",
    "http-host-names",
    "http-port",
    "http-require-match",
    "https-port",
    "tls-auth-clients-user",
    "tls-sni-cert-files",
    "tls-verify-names",
    "lua-memory-limit",
    "rdb-version",
    "views-file",
];

/// Compares CONFIG GET of all settings.
pub(crate) fn settings() -> Result<()> {
    let mut pair = Pair::start(&REDIS)?;
    let mut clients = pair.connect()?;
    let mut all = |of: usize| -> Result<BTreeMap<String, Reply>> {
        Ok(fields_of(&clients[of].call_text("CONFIG GET *")?))
    };
    let (ours, theirs) = (all(0)?, all(1)?);
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let names = names.into_iter().filter(|name| !OTHER_SETTINGS.contains(&name.as_str()));
    let shown = |value: Option<&Reply>| value.map_or("missing".to_owned(), text_of);
    let differences: Vec<String> = names
        .filter(|name| ours.get(*name) != theirs.get(*name))
        .map(|name| format!("{name}: {} but {}", shown(ours.get(name)), shown(theirs.get(name))))
        .collect();
    if differences.is_empty() { Ok(()) } else { bail!("{}", differences.join("\n")) }
}

/// Key specifications without the remarks that some carry: prose is each server's own.
///
/// Nor whether a key spec finds all keys: later corrections of a version say it of more commands.
fn without_notes(reply: Reply) -> Reply {
    match reply {
        Reply::Array(elements) => {
            let mut kept = Vec::new();
            let mut elements = elements.into_iter();
            while let Some(element) = elements.next() {
                if element.text() == Some(b"notes") {
                    elements.next();
                } else if element.text() != Some(b"incomplete") {
                    kept.push(without_notes(element));
                }
            }
            Reply::Array(kept)
        }
        other => other,
    }
}
