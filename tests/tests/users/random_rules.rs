//! Random rules of users and random commands: the same rules are accepted, refused and shown, and
//! the same commands are allowed, as on the reference. `ROUNDS=500` compares 100 000 commands.

use std::time::Duration;

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::grammar::{self, REDIS};
use tests::random::{Random, Rounds};
use tests::server::{Server, Target};

use super::said;

/// Commands of which the reference finds no key if other arguments are wrong, or not that which
/// counts. Here a user needs the right to all keys that they may use.
const STRICTER: [&str; 8] = [
    "PFMERGE",
    "ZDIFFSTORE",
    "ZINTERSTORE",
    "ZUNIONSTORE",
    "XREAD",
    "XREADGROUP",
    "GEORADIUS",
    "GEORADIUSBYMEMBER",
];

/// Commands that are tried with each set of rules.
const COMMANDS: usize = 200;

/// Rules that are no mixture of other things.
const PLAIN: [&str; 26] = [
    "on",
    "off",
    "nopass",
    "resetpass",
    ">p",
    ">q",
    "<p",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "+@all",
    "-@all",
    "~*",
    "&*",
    "reset",
    "clearselectors",
    "sanitize-payload",
    "ON",
    "AllKeys",
    "@read",
    "nosuch",
    "()",
    "",
];
const CATEGORIES: [&str; 22] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "SCRIPTING",
    "nosuch",
];
const NAMES: [&str; 24] = [
    "get",
    "set",
    "SET",
    "mget",
    "del",
    "config",
    "config|get",
    "config|set",
    "client",
    "client|id",
    "object",
    "object|encoding",
    "xinfo",
    "xgroup|create",
    "eval",
    "sort",
    "acl",
    "acl|whoami",
    "nosuch",
    "config|nosuch",
    "get|a",
    "select|0",
    "zadd|Z",
    "set|",
];
/// Patterns that match some of the names which the grammar has.
const PATTERNS: [&str; 12] =
    ["*", "a*", "k*", "?", "k1", "s*", "z*", "l*", "h*", "[a-m]*", "\\*", "x*"];

fn rule(random: &mut Random) -> String {
    match random.below(10) {
        0 => (*random.pick(&PLAIN)).to_owned(),
        1 | 2 => {
            let sign = *random.pick(&["+", "+", "-"]);
            format!("{sign}@{}", random.pick(&CATEGORIES))
        }
        3..=5 => format!("{}{}", random.pick(&["+", "+", "-"]), random.pick(&NAMES)),
        6 => format!("&{}", random.pick(&PATTERNS)),
        _ => {
            let sign = *random.pick(&["~", "~", "%R~", "%W~", "%RW~", "%r~", "%X~", "%"]);
            format!("{sign}{}", random.pick(&PATTERNS))
        }
    }
}

/// The rules of a user, mostly acceptable ones.
fn rules(random: &mut Random) -> Vec<String> {
    let mut rules = vec!["reset".to_owned()];
    if random.percent(50) {
        rules.push((*random.pick(&["+@all", "+@read", "+@write"])).to_owned());
    }
    for _ in 0..1 + random.below(6) {
        if random.percent(15) {
            let inner: Vec<_> = (0..1 + random.below(4)).map(|_| rule(random)).collect();
            rules.push(format!("({})", inner.join(" ")));
        } else {
            rules.push(rule(random));
        }
    }
    rules
}

/// Whether it is a number in another form than the usual one. As the count of keys, it has the
/// reference look for keys in another way, which asks for no right to read or write them.
fn is_loose_number(word: &[u8]) -> bool {
    let digits = word.trim_ascii();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number && (digits.len() < word.len() || digits.len() > 1 && digits[0] == b'0')
}

/// Whether the replies differ in nothing but how all keys are written among other patterns: here
/// in a way that can be read again.
fn is_told_apart(ours: &Reply, theirs: &Reply) -> bool {
    let text = format!("{:?}", text_of(ours));
    text.contains("%RW~*") && text.replace("%RW~*", "~*") == format!("{:?}", text_of(theirs))
}

/// A reply with texts in place of bytes.
fn text_of(reply: &Reply) -> Vec<String> {
    match reply.clone().elements() {
        Some(elements) => elements.iter().flat_map(text_of).collect(),
        None => vec![said(reply)],
    }
}

/// Sends all commands, then reads all replies.
pub(crate) fn ask(client: &mut Client, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Reply>> {
    let mut request = Vec::new();
    commands.iter().for_each(|words| encode(words, &mut request));
    client.send_raw(&request)?;
    let mut replies = Vec::new();
    for _ in commands {
        match client.receive()? {
            Received::Reply(reply) => replies.push(reply),
            Received::Closed => anyhow::bail!("the connection was closed"),
        }
    }
    Ok(replies)
}

pub(crate) fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// A round: rules for a user, and commands that it may try. Returns how many were compared.
fn round(own: &mut Client, reference: &mut Client, random: &mut Random) -> Result<usize> {
    let rules = rules(random);
    let mut setuser = words(&["ACL", "SETUSER", "u"]);
    setuser.extend(rules.iter().map(|rule| rule.as_bytes().to_vec()));
    let mut commands = vec![setuser, words(&["ACL", "LIST"]), words(&["ACL", "GETUSER", "u"])];
    for _ in 0..COMMANDS {
        let mut command = words(&["ACL", "DRYRUN", "u"]);
        command.extend(grammar::command(&REDIS, random).words);
        commands.push(command);
    }
    let (ours, theirs) = (ask(own, &commands)?, ask(reference, &commands)?);
    for ((command, ours), theirs) in commands.iter().zip(&ours).zip(&theirs) {
        let shown = || {
            let words: Vec<_> =
                command.iter().map(|word| word.escape_ascii().to_string()).collect();
            words.join(" ")
        };
        let name = command.get(3).map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let may_be_stricter = STRICTER.iter().any(|own| own.as_bytes() == name)
            || command.iter().any(|word| is_loose_number(word));
        let is_stricter = may_be_stricter && said(ours).ends_with("' key");
        ensure!(
            ours == theirs || is_stricter || is_told_apart(ours, theirs),
            "after SETUSER u {}: {} answers\n  {}\nand the reference\n  {}",
            rules.join(" "),
            shown(),
            said(ours),
            said(theirs)
        );
    }
    Ok(COMMANDS)
}

#[test]
fn users_may_do_what_they_may_do_on_the_reference() -> Result<()> {
    let own = Server::start(Target::Dunlin, &[])?;
    let reference = Server::start(Target::Reference, &[])?;
    let (mut own, mut reference) = (own.connect()?, reference.connect()?);
    let mut compared = 0;
    for seed in Rounds::from_environment(Duration::from_secs(3)).seeds() {
        let mut random = Random::new(seed);
        compared += round(&mut own, &mut reference, &mut random)
            .map_err(|error| error.context(format!("SEED={seed}")))?;
    }
    ensure!(compared > 0);
    println!("{compared} commands were compared");
    Ok(())
}

#[test]
fn categories_have_the_commands_of_the_reference() -> Result<()> {
    let own = Server::start(Target::Dunlin, &[])?;
    let reference = Server::start(Target::Reference, &[])?;
    let (mut own, mut reference) = (own.connect()?, reference.connect()?);
    let names = |client: &mut Client, command: &str| -> Result<Vec<String>> {
        let mut names: Vec<_> =
            client.call_text(command)?.elements().unwrap_or_default().iter().map(said).collect();
        names.sort();
        Ok(names)
    };
    let known = names(&mut reference, "COMMAND LIST")?;
    let ours = names(&mut own, "COMMAND LIST")?;
    for category in names(&mut reference, "ACL CAT")? {
        let list = format!("ACL CAT {category}");
        let mut own = names(&mut own, &list)?;
        // Commands of our own are in categories too, and some of theirs are absent here.
        own.retain(|name| known.contains(name));
        let mut theirs = names(&mut reference, &list)?;
        theirs.retain(|name| ours.contains(name));
        ensure!(own == theirs, "{category}: {own:?} and {theirs:?}");
        ensure!(!own.is_empty(), "{category} has no command");
    }
    Ok(())
}
