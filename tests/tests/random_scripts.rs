//! The same random scripts to dunlin and to the reference: what they return, how they fail, and
//! what they see of the replies of commands must be the same, in RESP2 and RESP3.
//!
//! A script is one of six kinds: a call of a library on random arguments, a search with a random
//! pattern, or a similar call, a call of the rest of `string` and `table`, a command whose reply is
//! looked at from Lua, a value that becomes a reply, or a mistake. `SEED=n` begins with the scripts
//! that a report names; `SECONDS=n` runs longer.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::notation;
use tests::random::{Random, Rounds};
use tests::server::{Server, Target};

#[path = "random_scripts/libraries.rs"]
mod libraries;
#[path = "random_scripts/patterns.rs"]
mod patterns;
#[path = "random_scripts/replies.rs"]
mod replies;
#[path = "random_scripts/strings.rs"]
mod strings;

/// Scripts that are sent before their replies are read.
const BATCH: usize = 40;
/// Differences that are reported before the run gives up.
const ENOUGH: usize = 8;
/// How long scripts are made by default.
const USUAL_TIME: Duration = Duration::from_secs(10);

/// Shows values with their types, and tables in the order in which Lua walks them, unless a key is
/// one that has its place by its address.
const SHOW: &str = "\
local function show(v, d) \
if type(v) == 'table' then \
if d > 20 then return '...' end \
local o, s = {}, false for k, x in pairs(v) do s = s or type(k) == 'table' \
o[#o + 1] = '[' .. show(k, d + 1) .. ']=' .. show(x, d + 1) end \
if s then table.sort(o) end return '{' .. table.concat(o, ',') .. '}' \
elseif type(v) == 'string' then return string.format('%q', v) \
elseif type(v) == 'number' then return string.format('%.17g', v) \
elseif type(v) == 'userdata' then return 'NULL' \
elseif type(v) == 'function' then return 'FUNCTION' \
elseif type(v) == 'thread' then return 'THREAD' \
else return tostring(v) end end \
local function all(...) \
local o = {} for i = 1, select('#', ...) do o[i] = show((select(i, ...)), 0) end \
return table.concat(o, ' ; ') end ";

/// A script that shows what an expression is, or how it fails.
fn shown(expression: &str) -> Vec<u8> {
    format!("{SHOW} return all(pcall(function() return {expression} end))").into_bytes()
}

/// The words of a random script.
fn script(random: &mut Random) -> Vec<Vec<u8>> {
    let (command, body, rest) = match random.below(10) {
        0..3 => ("EVAL", shown(&libraries::call(random)), replies::KEYS_AND_ARGUMENTS),
        3..4 => ("EVAL", shown(&patterns::call(random)), replies::KEYS_AND_ARGUMENTS),
        4..5 => ("EVAL", shown(&strings::call(random)), replies::KEYS_AND_ARGUMENTS),
        5..7 => ("EVAL", shown(&replies::call(random)), replies::KEYS_AND_ARGUMENTS),
        7..9 => ("EVAL", replies::returned(random).into_bytes(), replies::KEYS_AND_ARGUMENTS),
        _ => replies::mistaken(random),
    };
    let mut words = vec![command.as_bytes().to_vec(), body];
    words.extend(rest.iter().map(|word| word.as_bytes().to_vec()));
    words
}

/// The data that scripts look at.
fn prepare(client: &mut Client) -> Result<()> {
    for command in replies::DATA {
        let reply = client.call_text(command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
    }
    Ok(())
}

#[test]
fn random_scripts_are_answered_alike() -> Result<()> {
    let rounds = Rounds::from_environment(USUAL_TIME);
    let servers = [Server::start(Target::Dunlin, &[])?, Server::start(Target::Reference, &[])?];
    let mut found = BTreeMap::new();
    let mut played = 0;
    for seed in rounds.seeds() {
        let mut random = Random::new(seed);
        let mut clients = [servers[0].connect()?, servers[1].connect()?];
        let version = *random.pick(&["2", "3"]);
        for client in &mut clients {
            client.call(&["HELLO", version])?;
            prepare(client)?;
        }
        let scripts: Vec<_> = (0..BATCH).map(|_| script(&mut random)).collect();
        for client in &mut clients {
            for words in &scripts {
                client.send(words)?;
            }
        }
        for words in &scripts {
            let [ours, theirs] = [clients[0].receive()?, clients[1].receive()?];
            played += 1;
            for (client, received) in [&ours, &theirs].into_iter().enumerate() {
                ensure!(
                    *received != Received::Closed,
                    "SEED={seed} in RESP{version}: {} ends the connection\n{}",
                    String::from_utf8_lossy(&words[1]).replace(SHOW, ""),
                    servers[client].log_tail()
                );
            }
            if ours != theirs {
                let body = String::from_utf8_lossy(&words[1]).replace(SHOW, "");
                let lines = [ours, theirs].map(|received| match received {
                    Received::Reply(reply) => notation::lines(&reply).join("\n"),
                    closed => format!("{closed:?}"),
                });
                let [ours, theirs] = lines;
                let report = format!(
                    "SEED={seed} in RESP{version}: {} {body}\ndunlin:\n{ours}\nreference:\n{theirs}",
                    String::from_utf8_lossy(&words[0])
                );
                // The shortest of those that differ in the same way.
                let kind = kind(&ours, &theirs);
                let known = found.entry(kind).or_insert_with(|| report.clone());
                if report.len() < known.len() {
                    *known = report;
                }
            }
        }
        // Later replies depend on the data, and a script that is right on one side only leaves
        // other.
        let data: Vec<Reply> = clients
            .iter_mut()
            .map(|client| client.call(&["DEBUG", "DIGEST"]))
            .collect::<Result<_>>()?;
        if data[0] != data[1] {
            found.insert("data".into(), format!("SEED={seed}: {data:?}"));
        }
        if found.len() >= ENOUGH {
            break;
        }
    }
    let reports: Vec<_> = found.into_values().collect();
    ensure!(
        reports.is_empty(),
        "{} differences in {played} scripts\n\n{}",
        reports.len(),
        reports.join("\n\n")
    );
    ensure!(played >= BATCH, "only {played} scripts were played");
    Ok(())
}

/// What two replies differ in, roughly: the first characters that do, without digits.
fn kind(ours: &str, theirs: &str) -> String {
    let same = ours.chars().zip(theirs.chars()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| {
        text.chars().skip(same).filter(|c| !c.is_ascii_digit()).take(12).collect::<String>()
    };
    format!("{} {}", rest(ours), rest(theirs))
}
