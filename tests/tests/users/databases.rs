//! Rules of databases: the same commands are allowed as on Valkey 9.1, where that is installed.

use std::time::Duration;

use anyhow::{Result, ensure};
use tests::client::{Client, Reply};
use tests::grammar;
use tests::peers;
use tests::random::{Random, Rounds};
use tests::server::{Server, Target};

use super::random_rules::{ask, words};
use super::said;

/// Commands that are tried in each round.
const COMMANDS: usize = 200;

/// Commands that touch databases.
const SHAPES: [&str; 24] = [
    "SELECT ( 0 | 1 | 2 | 3 | 15 | 01 | x )",
    "SELECT ( 0 | 1 | 2 | 3 )",
    "MOVE <key> ( 0 | 1 | 2 | 3 )",
    "COPY <key> <key>",
    "COPY <key> <key> DB ( 0 | 1 | 2 | 3 )",
    "COPY <key> <key> DB ( 0 | 1 | 2 ) REPLACE",
    "COPY <key> <key> REPLACE DB ( 0 | 1 | 2 )",
    "COPY <key> <key> DB ( 0 | 1 ) DB ( 0 | 1 )",
    "SWAPDB ( 0 | 1 | 2 ) ( 0 | 1 | 2 | 3 )",
    "FLUSHALL",
    "FLUSHALL ( ASYNC | SYNC )",
    "FLUSHDB",
    "DBSIZE",
    "KEYS *",
    "SCAN 0",
    "RANDOMKEY",
    "SCRIPT ( FLUSH | EXISTS x )",
    "EVAL x 1 <key>",
    "EVAL_RO x 1 <key>",
    "FCALL x 1 <key>",
    "WATCH <key>",
    "OBJECT ENCODING <key>",
    "MEMORY USAGE <key>",
    "( PING | TIME | INFO | UNWATCH | MULTI | EXEC | DISCARD | ACL WHOAMI | CLIENT ID )",
];

/// Rules of databases, of which some are refused.
const RULES: [&str; 14] = [
    "alldbs", "resetdbs", "db=0", "db=1", "db=2", "db=0,1", "db=1,2,3", "db=16", "db=1,1", "DB=2",
    "db=", "db=x", "db=-1", "db=1,",
];

fn rule(random: &mut Random) -> String {
    let others =
        ["+@all", "-@all", "+@read", "+@write", "~*", "~k*", "%R~*", "+select", "-flushall"];
    (*if random.percent(60) { random.pick(&RULES) } else { random.pick(&others) }).to_owned()
}

fn rules(random: &mut Random) -> Vec<String> {
    let mut rules = vec!["reset".to_owned(), "on".to_owned(), "nopass".to_owned()];
    if random.percent(70) {
        rules.extend(["+@all", "~*"].map(str::to_owned));
    }
    for _ in 0..1 + random.below(3) {
        if random.percent(25) {
            let inner: Vec<_> = (0..1 + random.below(4)).map(|_| rule(random)).collect();
            rules.push(format!("({})", inner.join(" ")));
        } else {
            rules.push(rule(random));
        }
    }
    rules
}

fn shown(command: &[Vec<u8>]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.escape_ascii().to_string()).collect();
    words.join(" ")
}

/// A round of ACL DRYRUN, each time from a selected database.
fn dry_round(own: &mut Client, reference: &mut Client, random: &mut Random) -> Result<usize> {
    let rules = rules(random);
    let mut setuser = words(&["ACL", "SETUSER", "u"]);
    setuser.extend(rules.iter().map(|rule| rule.as_bytes().to_vec()));
    let mut commands = vec![setuser];
    for _ in 0..COMMANDS {
        if random.percent(10) {
            let number = *random.pick(&["0", "1", "2"]);
            commands.push(words(&["SELECT", number]));
        }
        let mut command = words(&["ACL", "DRYRUN", "u"]);
        let shape = *random.pick(&SHAPES);
        command.extend(grammar::of_shape(shape, random));
        commands.push(command);
    }
    let (ours, theirs) = (ask(own, &commands)?, ask(reference, &commands)?);
    let mut compared = 0;
    for ((command, ours), theirs) in commands.iter().zip(&ours).zip(&theirs) {
        let differ = format!("answers\n  {}\nand Valkey\n  {}", said(ours), said(theirs));
        ensure!(ours == theirs, "after {}: {} {differ}", rules.join(" "), shown(command));
        compared += 1;
    }
    Ok(compared)
}

#[test]
fn databases_are_allowed_as_by_valkey() -> Result<()> {
    if !peers::newest("valkey-server").exists() {
        return Ok(());
    }
    let own = Server::start(Target::Dunlin, &[])?;
    let reference = Server::start(Target::NewestValkey, &[])?;
    let (mut own, mut reference) = (own.connect()?, reference.connect()?);
    let mut compared = 0;
    for seed in Rounds::from_environment(Duration::from_secs(2)).seeds() {
        let mut random = Random::new(seed);
        compared += dry_round(&mut own, &mut reference, &mut random)
            .map_err(|error| error.context(format!("SEED={seed}")))?;
    }
    ensure!(compared > 0);
    println!("{compared} commands were compared");
    Ok(())
}

/// What a user does: it selects databases, in transactions too, and moves keys between them.
fn step(random: &mut Random) -> Vec<Vec<u8>> {
    const STEPS: [&str; 16] = [
        "SELECT ( 0 | 1 | 2 | 3 | 01 | x )",
        "SELECT ( 0 | 1 | 2 )",
        "MULTI",
        "MULTI",
        "EXEC",
        "EXEC",
        "DISCARD",
        "SET ( a | b ) ( 1 | 2 )",
        "GET ( a | b )",
        "MOVE ( a | b ) ( 0 | 1 | 2 | 3 | x )",
        "COPY ( a | b ) ( a | b ) DB ( 0 | 1 | 2 | 3 )",
        "COPY ( a | b ) ( a | b ) REPLACE",
        "SWAPDB ( 0 | 1 | 2 ) ( 0 | 1 | 2 | 3 )",
        "DBSIZE",
        "( FLUSHALL | FLUSHDB | RESET | PING )",
        "EXISTS a b",
    ];
    let shape = *random.pick(&STEPS);
    grammar::of_shape(shape, random)
}

fn is_refusal(replies: &[Reply]) -> bool {
    replies.iter().any(|reply| said(reply).contains("NOPERM"))
}

/// A round of a user that acts, whose rules change meanwhile.
fn lived_round(pairs: &mut [(Client, Client); 2], random: &mut Random) -> Result<usize> {
    const STEPS: usize = 60;
    let mut done: Vec<String> = Vec::new();
    let [admins, users] = pairs;
    let mut both = |is_admin: bool, command: &[Vec<u8>]| -> Result<()> {
        let (own, reference) = if is_admin { &mut *admins } else { &mut *users };
        done.push(format!("{}: {}", if is_admin { "admin" } else { "user" }, shown(command)));
        let commands = [command.to_vec()];
        let (ours, theirs) = (ask(own, &commands)?, ask(reference, &commands)?);
        // Some errors that do not concern rights have other words.
        let are_errors = ours[0].is_error() && theirs[0].is_error();
        let is_same = ours == theirs || (are_errors && !is_refusal(&ours) && !is_refusal(&theirs));
        ensure!(is_same, "{}\n{ours:?}, and Valkey {theirs:?}", done.join("\n"));
        Ok(())
    };
    let set = |random: &mut Random| {
        let mut setuser = words(&["ACL", "SETUSER", "u", "reset", "on", "nopass", "+@all", "~*"]);
        setuser.push(random.pick(&RULES[2..7]).as_bytes().to_vec());
        if random.percent(20) {
            let selector = format!("(+@all ~* {})", random.pick(&RULES[2..7]));
            setuser.push(selector.into_bytes());
        }
        setuser
    };
    both(true, &words(&["FLUSHALL"]))?;
    both(true, &set(random))?;
    both(false, &words(&["RESET"]))?;
    both(false, &words(&["AUTH", "u", "x"]))?;
    let mut is_in_multi = false;
    for _ in 0..STEPS {
        if random.percent(4) {
            both(true, &set(random))?;
        }
        let command = step(random);
        let word = command[0].to_ascii_uppercase();
        // Valkey gives up a transaction for a MULTI within it.
        if is_in_multi && word == b"MULTI" {
            continue;
        }
        is_in_multi = match &word[..] {
            b"MULTI" => true,
            b"EXEC" | b"DISCARD" | b"RESET" => false,
            _ => is_in_multi,
        };
        both(false, &command)?;
        if word == b"RESET" {
            both(false, &words(&["AUTH", "u", "x"]))?;
        }
    }
    Ok(STEPS)
}

#[test]
fn who_may_use_some_databases_lives_as_on_valkey() -> Result<()> {
    if !peers::newest("valkey-server").exists() {
        return Ok(());
    }
    let own = Server::start(Target::Dunlin, &[])?;
    let reference = Server::start(Target::NewestValkey, &[])?;
    let pair = || Ok::<_, anyhow::Error>((own.connect()?, reference.connect()?));
    let mut pairs = [pair()?, pair()?];
    let mut compared = 0;
    for seed in Rounds::from_environment(Duration::from_secs(2)).seeds() {
        let mut random = Random::new(seed);
        compared += lived_round(&mut pairs, &mut random)
            .map_err(|error| error.context(format!("SEED={seed}")))?;
    }
    ensure!(compared > 0);
    println!("{compared} commands were compared");
    Ok(())
}
