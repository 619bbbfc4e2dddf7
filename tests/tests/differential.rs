//! The same random commands to dunlin and to the reference: replies and all that is left at the
//! end must be the same.
//!
//! A round is a few hundred commands over few keys, from an empty server, with random settings, in
//! RESP2 or RESP3. What differs is shortened to a minimal sequence before it is reported. `SEED=n`
//! replays the round that a report names; `SECONDS=n` runs longer. What Valkey alone has is compared
//! with Valkey 9.1, where that is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use libtest_mimic::{Arguments, Failed, Trial};
use tests::client::{Client, Received, Reply};
use tests::grammar::{self, Command, Comparison, Vocabulary, command};
use tests::notation;
use tests::peers;
use tests::play::sorted;
use tests::quoting::command_line;
use tests::random::{Random, Rounds};
use tests::server::{Server, Target};

/// Commands of a round.
const ROUND: usize = 400;
/// Commands that are sent before their replies are read.
const BATCH: usize = 40;
/// Differences that are reported before the run gives up.
const ENOUGH: usize = 8;
/// How long one difference may be shortened.
const SHORTENING: Duration = Duration::from_secs(15);
/// How long a connection that was closed may still be seen.
const VANISHING: Duration = Duration::from_secs(5);
/// How long rounds are played if nobody says otherwise.
const USUAL_TIME: Duration = Duration::from_secs(25);

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let wrap =
        |run: fn() -> Result<()>| move || run().map_err(|error| Failed::from(format!("{error:#}")));
    let valkey_is_there = peers::newest("valkey-server").exists();
    let trials = vec![
        Trial::test("random commands are answered alike", wrap(|| random_rounds(&REDIS))),
        Trial::test("what Valkey alone has is answered alike", wrap(|| random_rounds(&VALKEY)))
            .with_ignored_flag(!valkey_is_there),
        Trial::test("commands describe themselves alike", wrap(command_tables)),
        Trial::test("settings are alike", wrap(settings)),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Who judges, and what is asked.
struct Judge {
    target: Target,
    vocabulary: &'static Vocabulary,
    /// Settings that rounds choose, with the values to choose from: the first is the default.
    settings: &'static [(&'static str, &'static [&'static str])],
    /// Commands by which other connections become what filters of clients may look for.
    bystanders: &'static [&'static [&'static str]],
}

const REDIS: Judge = Judge {
    target: Target::Reference,
    vocabulary: &grammar::REDIS,
    settings: &[
        ("hash-max-listpack-entries", &["512", "4", "0"]),
        ("hash-max-listpack-value", &["64", "5"]),
        ("zset-max-listpack-entries", &["128", "4", "0"]),
        ("zset-max-listpack-value", &["64", "5"]),
        ("set-max-intset-entries", &["512", "3", "0"]),
        ("list-max-listpack-size", &["-2", "-1", "2", "5"]),
        ("list-compress-depth", &["0", "1"]),
        ("hll-sparse-max-bytes", &["3000", "20"]),
        ("stream-node-max-entries", &["100", "3", "1"]),
        ("stream-node-max-bytes", &["4096", "100"]),
    ],
    bystanders: &[],
};

const VALKEY: Judge = Judge {
    target: Target::NewestValkey,
    vocabulary: &grammar::VALKEY,
    settings: &[("import-mode", &["no", "no", "yes"])],
    bystanders: &[
        &["CLIENT SETNAME one", "CLIENT SETINFO LIB-NAME lib", "CLIENT CAPA redirect", "SELECT 3"],
        &["CLIENT SETNAME two", "CLIENT SETINFO LIB-VER 1.0", "SUBSCRIBE news"],
        &["CLIENT SETNAME three", "CLIENT NO-TOUCH ON", "MULTI"],
    ],
};

impl Judge {
    /// Whether keys look the same from within: Valkey has other encodings and payloads.
    fn has_our_insides(&self) -> bool {
        self.target == Target::Reference
    }

    /// The default of a setting that rounds choose.
    fn usual(&self, name: &[u8]) -> Vec<u8> {
        let setting = self.settings.iter().find(|(own, _)| own.as_bytes() == name);
        setting.map(|(_, values)| values[0].as_bytes().to_vec()).unwrap_or_default()
    }
}

fn random_rounds(judge: &'static Judge) -> Result<()> {
    let rounds = Rounds::from_environment(USUAL_TIME);
    let mut pair = Pair::start(judge)?;
    let mut reports = BTreeMap::new();
    let mut played = 0;
    for seed in rounds.seeds() {
        let round = Round::new(judge, seed);
        let outcome = round.play(&mut pair).with_context(|| format!("SEED={seed}"))?;
        played += 1;
        if let Some(difference) = outcome {
            let (round, difference) = round.shortened(&mut pair, difference)?;
            let report = format!("SEED={seed}\n{}", difference.shown(&round));
            reports.entry(difference.signature).or_insert(report);
        }
        if reports.len() >= ENOUGH {
            break;
        }
    }
    if reports.is_empty() {
        return Ok(());
    }
    let reports: Vec<_> = reports.into_values().collect();
    bail!("{} differences in {played} rounds\n\n{}", reports.len(), reports.join("\n\n"))
}

/// Both servers.
struct Pair {
    dunlin: Server,
    reference: Server,
}

impl Pair {
    fn start(judge: &Judge) -> Result<Self> {
        // The reference looks at the times of blocked clients as often as its clock ticks.
        let options = [("rdbcompression", "no"), ("hz", "500")];
        Ok(Self {
            dunlin: Server::start(Target::Dunlin, &options)?,
            reference: Server::start(judge.target, &options)?,
        })
    }

    /// Fresh connections to both, which are started again if they have ended.
    fn connect(&mut self) -> Result<[Client; 2]> {
        for server in [&mut self.dunlin, &mut self.reference] {
            if !server.is_running() {
                server.start_again()?;
            }
        }
        Ok([self.dunlin.connect()?, self.reference.connect()?])
    }

    /// The connections besides those that [`Pair::connect`] makes.
    fn connect_bystanders(
        &self,
        clients: &mut [Client; 2],
        all: &[&[&str]],
    ) -> Result<Vec<Client>> {
        let mut bystanders = Vec::new();
        for (server, client) in [&self.dunlin, &self.reference].into_iter().zip(clients) {
            // Those of the round before may still be seen.
            let start = Instant::now();
            while client.call_text("CLIENT LIST")?.text().is_some_and(has_several_lines) {
                if start.elapsed() > VANISHING {
                    bail!("connections that were closed are still there");
                }
            }
            for commands in all {
                let mut bystander = server.connect()?;
                for command in *commands {
                    bystander.call_text(command)?;
                }
                bystanders.push(bystander);
            }
        }
        Ok(bystanders)
    }
}

fn has_several_lines(text: &[u8]) -> bool {
    text.iter().filter(|&&byte| byte == b'\n').count() > 1
}

/// What was found to differ.
struct Difference {
    /// What several reports of one mistake have in common.
    signature: String,
    /// How many commands it took.
    length: usize,
    dunlin: String,
    reference: String,
}

impl Difference {
    fn shown(&self, round: &Round) -> String {
        let mut text = format!("  (RESP{})\n", if round.resp3 { 3 } else { 2 });
        for words in &round.settings {
            text.push_str(&format!("  > {}\n", command_line(words)));
        }
        for command in &round.commands {
            text.push_str(&format!("  > {}\n", command_line(&command.words)));
        }
        text.push_str(&format!("{}\ndunlin:\n{}\n", self.signature, self.dunlin));
        text.push_str(&format!("reference:\n{}", self.reference));
        text
    }
}

/// Whether a command is a BITFIELD whose operations may all fail: where it makes its key longer, that is a
/// change here, and none in the reference.
fn may_fail_to_overflow(command: &Command) -> bool {
    let has = |word: &[u8]| command.words.iter().any(|own| own.eq_ignore_ascii_case(word));
    has(b"bitfield") && has(b"fail")
}

/// One sequence of commands.
#[derive(Clone)]
struct Round {
    judge: &'static Judge,
    resp3: bool,
    settings: Vec<Vec<Vec<u8>>>,
    commands: Vec<Command>,
}

impl Round {
    fn new(judge: &'static Judge, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let settings = judge.settings.iter().map(|(name, values)| {
            let value: &str = random.pick::<&str>(values);
            ["CONFIG", "SET", name, value].map(|word| word.as_bytes().to_vec()).to_vec()
        });
        let settings = settings.collect();
        Self {
            judge,
            resp3: random.percent(50),
            settings,
            commands: (0..ROUND).map(|_| command(judge.vocabulary, &mut random)).collect(),
        }
    }

    /// Plays the round; tells the first difference.
    fn play(&self, pair: &mut Pair) -> Result<Option<Difference>> {
        let mut clients = pair.connect()?;
        if self.resp3 {
            for client in &mut clients {
                client.call_text("HELLO 3")?;
            }
        }
        for client in &mut clients {
            client.call_text("FLUSHALL")?;
            for words in &self.settings {
                client.call(words)?;
            }
        }
        let _bystanders = pair.connect_bystanders(&mut clients, self.judge.bystanders)?;
        let changes = clients.each_mut().map(changes_so_far);
        let mut queue = Vec::new();
        for (index, batch) in self.commands.chunks(BATCH).enumerate() {
            for client in &mut clients {
                let mut request = Vec::new();
                batch.iter().for_each(|it| tests::client::encode(&it.words, &mut request));
                client.send_raw(&request)?;
            }
            for (within, command) in batch.iter().enumerate() {
                let [dunlin, reference] = clients.each_mut().map(Client::receive);
                let (dunlin, reference) = (dunlin?, reference?);
                if !answered_alike(command, &mut queue, &dunlin, &reference) {
                    let end = match dunlin {
                        Received::Closed => format!("\n{}", pair.dunlin.log_tail()),
                        Received::Reply(_) => String::new(),
                    };
                    let name = String::from_utf8_lossy(&command.words[0]).to_uppercase();
                    return Ok(Some(Difference {
                        signature: format!("{name} is answered differently"),
                        length: index * BATCH + within + 1,
                        dunlin: shown(&dunlin) + &end,
                        reference: shown(&reference),
                    }));
                }
            }
        }
        for client in &mut clients {
            client.call_text("DISCARD")?;
        }
        if self.judge.has_our_insides()
            && !self.commands.iter().any(may_fail_to_overflow)
            && let Some(difference) = self.compare_changes(&mut clients, changes)?
        {
            return Ok(Some(difference));
        }
        self.compare_data(&mut clients)
    }

    /// Compares how many changes `save` rules have counted since they were so many.
    fn compare_changes(
        &self,
        clients: &mut [Client; 2],
        before: [Result<i64>; 2],
    ) -> Result<Option<Difference>> {
        let [ours, theirs] = clients.each_mut().map(changes_so_far);
        let [our_begin, their_begin] = before;
        let (dunlin, reference) = (ours? - our_begin?, theirs? - their_begin?);
        Ok((dunlin != reference).then(|| Difference {
            signature: "changes are counted differently".to_owned(),
            length: self.commands.len(),
            dunlin: dunlin.to_string(),
            reference: reference.to_string(),
        }))
    }

    /// Compares what the commands left behind.
    fn compare_data(&self, clients: &mut [Client; 2]) -> Result<Option<Difference>> {
        let by_chance = self.sets_of_chance();
        let different = |what: String, [dunlin, reference]: [String; 2]| {
            let length = self.commands.len();
            Ok(Some(Difference { signature: what, length, dunlin, reference }))
        };
        for client in clients.iter_mut() {
            // What was given only to be seen in another mode.
            if !self.judge.has_our_insides() {
                client.call_text("CONFIG SET import-mode no")?;
            }
        }
        for database in ["0", "1"] {
            let mut keys = Vec::new();
            for client in clients.iter_mut() {
                client.call(&["SELECT", database])?;
                let found = client.call_text("KEYS *")?.elements().unwrap_or_default();
                let found = found.iter().filter_map(|key| key.text().map(<[u8]>::to_vec));
                keys.push(found.collect::<BTreeSet<_>>());
            }
            if keys[0] != keys[1] {
                let of = |keys: &BTreeSet<Vec<u8>>| {
                    command_line(&keys.iter().cloned().collect::<Vec<_>>())
                };
                let shown = [of(&keys[0]), of(&keys[1])];
                return different("other keys are left".to_owned(), shown);
            }
            for key in &keys[0] {
                let [dunlin, reference] = clients.each_mut().map(|client| content(client, key));
                let (dunlin, reference) = (dunlin?, reference?);
                let name = String::from_utf8_lossy(key).into_owned();
                for ((what, dunlin), (_, reference)) in dunlin.iter().zip(&reference) {
                    // What has no definite payload on one server is compared by value alone: a list
                    // that SORT stored is cut into nodes by no setting on the reference.
                    let comparable = match *what {
                        "payload" => {
                            self.judge.has_our_insides()
                                && !dunlin.is_empty()
                                && !reference.is_empty()
                        }
                        "encoding" => self.judge.has_our_insides() && !by_chance.contains(key),
                        _ => true,
                    };
                    if dunlin != reference && comparable {
                        let shown = [dunlin.clone(), reference.clone()];
                        return different(format!("{what} of {name} differs"), shown);
                    }
                }
                if let Some(what) = exchanged(self.judge, clients, key)? {
                    return different(format!("{name} {what}"), [String::new(), String::new()]);
                }
            }
        }
        Ok(None)
    }

    /// The keys of sets that may be a listpack or a table by chance, whatever their members are at the
    /// end: see [`has_chance_encoding`]. A set keeps the table when members go, and takes it along to
    /// another name.
    fn sets_of_chance(&self) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        let is_limited =
            |words: &Vec<Vec<u8>>| words[2] == b"set-max-intset-entries" && words[3] != b"512";
        if !self.settings.iter().any(is_limited) {
            return names;
        }
        for Command { words, .. } in &self.commands {
            let name = words[0].to_ascii_uppercase();
            let from = words.get(2..).unwrap_or_default().iter().any(|key| names.contains(key));
            match (&name[..], words.get(1), words.get(2)) {
                (b"SUNIONSTORE" | b"SDIFFSTORE", Some(to), _) => _ = names.insert(to.clone()),
                (b"SINTERSTORE", Some(to), _) if from => _ = names.insert(to.clone()),
                (b"RENAME" | b"RENAMENX" | b"COPY", Some(from), Some(to))
                    if names.contains(from) =>
                {
                    names.insert(to.clone());
                }
                _ => {}
            }
        }
        names
    }

    /// Leaves out whatever is not needed for a difference of the same signature.
    fn shortened(&self, pair: &mut Pair, found: Difference) -> Result<(Self, Difference)> {
        let start = Instant::now();
        let mut best = self.clone();
        best.commands.truncate(found.length);
        let mut difference = found;
        let mut size = best.commands.len().div_ceil(2);
        while size > 0 && start.elapsed() < SHORTENING {
            let mut at = 0;
            while at < best.commands.len() && start.elapsed() < SHORTENING {
                let mut shorter = best.clone();
                shorter.commands.drain(at..(at + size).min(best.commands.len()));
                match shorter.play(pair) {
                    Ok(Some(again)) if again.signature == difference.signature => {
                        shorter.commands.truncate(again.length);
                        best = shorter;
                        difference = again;
                    }
                    // Another difference, or none, or a server that is gone: not this way.
                    _ => at += size,
                }
            }
            size /= 2;
        }
        for index in (0..best.settings.len()).rev() {
            let mut simpler = best.clone();
            simpler.settings[index][3] = self.judge.usual(&simpler.settings[index][2]);
            if let Ok(Some(again)) = simpler.play(pair)
                && again.signature == difference.signature
            {
                best = simpler;
                difference = again;
            }
        }
        best.settings.retain(|words| words[3] != self.judge.usual(&words[2]));
        Ok((best, difference))
    }
}

fn shown(received: &Received) -> String {
    match received {
        Received::Closed => "(closed)".to_owned(),
        Received::Reply(reply) => notation::lines(reply).join("\n"),
    }
}

/// Compares two answers. `queue` holds the comparisons of the commands that wait for EXEC.
fn answered_alike(
    command: &Command,
    queue: &mut Vec<Comparison>,
    dunlin: &Received,
    reference: &Received,
) -> bool {
    let (Received::Reply(dunlin), Received::Reply(reference)) = (dunlin, reference) else {
        return false;
    };
    let is = |name: &[u8]| command.words[0].eq_ignore_ascii_case(name);
    if *reference == Reply::Status(b"QUEUED".to_vec()) {
        queue.push(command.comparison);
    } else if is(b"EXEC") {
        let comparisons = std::mem::take(queue);
        if let (Reply::Array(ours), Reply::Array(theirs)) = (dunlin, reference) {
            return ours.len() == theirs.len()
                && comparisons.len() == ours.len()
                && comparisons.iter().zip(ours).zip(theirs).all(|((by, a), b)| alike(*by, a, b));
        }
    } else if !reference.is_error() && (is(b"MULTI") || is(b"DISCARD")) {
        queue.clear();
    }
    alike(command.comparison, dunlin, reference)
}

fn alike(comparison: Comparison, dunlin: &Reply, reference: &Reply) -> bool {
    let unordered = |group| sorted(dunlin.clone(), group) == sorted(reference.clone(), group);
    dunlin == reference
        || match comparison {
            Comparison::Exact => false,
            Comparison::Unordered => unordered(1),
            Comparison::Pairs => unordered(2),
            Comparison::Time => near(dunlin, reference),
            Comparison::Shape => same_shape(dunlin, reference),
            Comparison::Clients => same_clients(dunlin, reference),
        }
}

/// Whether two replies to CLIENT LIST describe the same clients, by what is alike on two servers.
fn same_clients(dunlin: &Reply, reference: &Reply) -> bool {
    const COMPARED: [&str; 9] =
        ["name", "flags", "db", "sub", "psub", "ssub", "resp", "lib-name", "lib-ver"];
    let clients = |reply: &Reply| -> Option<Vec<String>> {
        let text = reply.text().filter(|_| !reply.is_error())?;
        let text = String::from_utf8_lossy(text).into_owned();
        let line = |line: &str| {
            let fields = line.split(' ').filter(|field| {
                field.split_once('=').is_some_and(|(name, _)| COMPARED.contains(&name))
            });
            fields.collect::<Vec<_>>().join(" ")
        };
        let mut lines: Vec<_> = text.lines().map(line).collect();
        lines.sort();
        Some(lines)
    };
    let ours = clients(dunlin);
    ours.is_some() && ours == clients(reference)
}

/// Whether two times are as near as the clocks of two servers.
fn near(dunlin: &Reply, reference: &Reply) -> bool {
    match (dunlin, reference) {
        (Reply::Integer(ours), Reply::Integer(theirs)) => {
            *ours > 0 && *theirs > 0 && ours.abs_diff(*theirs) < 5000
        }
        _ => false,
    }
}

/// Whether two replies have one type and as many elements.
fn same_shape(dunlin: &Reply, reference: &Reply) -> bool {
    let size = |reply: &Reply| reply.clone().elements().map(|elements| elements.len());
    discriminant(dunlin) == discriminant(reference) && size(dunlin) == size(reference)
}

/// Changes since the last save, as INFO has them.
fn changes_so_far(client: &mut Client) -> Result<i64> {
    let info = client.call_text("INFO persistence")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    line.context("INFO counts no changes")?.trim().parse().context("no number of changes")
}

/// What a key holds, as texts that must be the same on both servers.
fn content(client: &mut Client, key: &[u8]) -> Result<Vec<(&'static str, String)>> {
    let call = |client: &mut Client, words: &[&[u8]]| -> Result<Reply> { client.call(words) };
    let show = |reply: &Reply| notation::lines(reply).join("\n");
    let kind = call(client, &[b"TYPE", key])?;
    let encoding = call(client, &[b"OBJECT", b"ENCODING", key])?;
    let expiry = match call(client, &[b"PEXPIRETIME", key])? {
        // Minutes, because relative times were given to two clocks.
        Reply::Integer(time) if time > 0 => format!("about {}", (time + 30_000) / 60_000),
        other => show(&other),
    };
    let value = match kind.text().unwrap_or_default() {
        b"string" => call(client, &[b"GET", key])?,
        b"list" => call(client, &[b"LRANGE", key, b"0", b"-1"])?,
        b"set" => sorted(call(client, &[b"SMEMBERS", key])?, 1),
        b"hash" => sorted(call(client, &[b"HGETALL", key])?, 2),
        b"zset" => call(client, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])?,
        b"stream" => stream_content(client, key)?,
        other => bail!("a key of type {}", String::from_utf8_lossy(other)),
    };
    let times = if kind.text() == Some(b"hash") { field_times(client, key)? } else { Reply::Nil };
    let payload = call(client, &[b"DUMP", key])?;
    let is_ordered = match kind.text().unwrap_or_default() {
        // The times of deliveries are those of two clocks.
        b"stream" => false,
        // Where a list is cut into nodes is each server's own affair; its elements were compared.
        b"list" => false,
        b"string" | b"zset" => true,
        // A set that was stored from a table has the order of that table.
        b"set" => encoding.text() == Some(b"intset"),
        // One of which no field expires any more is written like any other here.
        b"hash" if encoding.text() == Some(b"listpackex") => has_times(&times),
        _ => encoding.text() != Some(b"hashtable"),
    };
    let payload = if is_ordered { show(&comparable(payload)) } else { String::new() };
    let shown_encoding = if kind.text() == Some(b"set") && has_chance_encoding(client, &value)? {
        "listpack or hashtable".to_owned()
    } else {
        show(&encoding)
    };
    Ok(vec![
        ("type", show(&kind)),
        ("value", show(&value)),
        ("times of fields", show(&times)),
        ("encoding", shown_encoding),
        ("expiry", expiry),
        ("payload", payload),
    ])
}

/// Whether a set may be a listpack or a table by chance: what SUNIONSTORE and SDIFFSTORE store is a table
/// if more integers than an intset may hold come before the first text, and they come in the order of the
/// tables that they are taken from.
fn has_chance_encoding(client: &mut Client, members: &Reply) -> Result<bool> {
    let limit = client.call(&[b"CONFIG".as_slice(), b"GET", b"set-max-intset-entries"])?;
    let limit = limit.elements().unwrap_or_default().pop();
    let limit: usize =
        std::str::from_utf8(limit.as_ref().and_then(Reply::text).unwrap_or_default())?.parse()?;
    let members = members.clone().elements().unwrap_or_default();
    let is_integer = |member: &&Reply| {
        let text = std::str::from_utf8(member.text().unwrap_or_default());
        text.is_ok_and(|text| text.parse::<i64>().is_ok())
    };
    let integers = members.iter().filter(is_integer).count();
    Ok(integers > limit && integers < members.len())
}

/// Whether one of these fields with their times expires.
fn has_times(times: &Reply) -> bool {
    let times = times.clone().elements().unwrap_or_default();
    times.iter().any(|time| matches!(time, Reply::Integer(1..)))
}

/// A payload without what is each server's own: of a packed hash of which fields expire the reference
/// does not always know any more when the first one does, and with that the checksum is another.
fn comparable(payload: Reply) -> Reply {
    match payload.text() {
        Some([25, _, _, _, _, _, _, _, _, block @ .., _, _, _, _, _, _, _, _]) => {
            Reply::Bulk(block.to_vec())
        }
        _ => payload,
    }
}

/// The fields of a hash with the times at which they expire.
fn field_times(client: &mut Client, key: &[u8]) -> Result<Reply> {
    let mut fields = client.call(&[b"HKEYS", key])?.elements().unwrap_or_default();
    fields.sort_by(|one, other| one.text().cmp(&other.text()));
    let count = fields.len().to_string();
    let mut words: Vec<&[u8]> = vec![b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()];
    words.extend(fields.iter().filter_map(Reply::text));
    let times = client.call(&words)?.elements().unwrap_or_default();
    Ok(Reply::Array(fields.into_iter().chain(times).collect()))
}

/// All of a stream but times, and nodes of the index of its blocks.
fn stream_content(client: &mut Client, key: &[u8]) -> Result<Reply> {
    let mut parts = vec![client.call(&[b"XRANGE", key, b"-", b"+"])?];
    let about = client.call(&[b"XINFO".as_slice(), b"STREAM", key])?.elements().unwrap_or_default();
    let named = |pair: &[Reply]| pair[0].text() != Some(b"radix-tree-nodes");
    parts.extend(about.chunks(2).filter(|pair| named(pair)).flatten().cloned());
    let groups = client.call(&[b"XINFO".as_slice(), b"GROUPS", key])?;
    parts.push(groups.clone());
    for group in groups.elements().unwrap_or_default() {
        let fields = group.elements().unwrap_or_default();
        let name = fields.get(1).and_then(Reply::text).unwrap_or_default().to_vec();
        parts.push(client.call(&[b"XPENDING", key, &name])?);
        let pending = client.call(&[b"XPENDING", key, &name, b"-", b"+", b"1000"])?;
        for own in pending.elements().unwrap_or_default() {
            let mut own = own.elements().unwrap_or_default();
            // Without how long ago it was delivered.
            own.drain(2..own.len().min(3));
            parts.extend(own);
        }
        let consumers = client.call(&[b"XINFO".as_slice(), b"CONSUMERS", key, &name])?;
        for consumer in consumers.elements().unwrap_or_default() {
            parts.extend(consumer.elements().unwrap_or_default().into_iter().take(4));
        }
    }
    Ok(Reply::Array(parts))
}

/// Hands a key's payload from each server to the other; says what went wrong.
fn exchanged(judge: &Judge, clients: &mut [Client; 2], key: &[u8]) -> Result<Option<&'static str>> {
    const GUEST: &[u8] = b"from the other server";
    let routes = [(0, 1, "of dunlin is not restored"), (1, 0, "of the reference is not restored")];
    for (from, to, failure) in routes {
        // Valkey refuses the version of what dunlin and Redis write.
        if to == 1 && !judge.has_our_insides() {
            continue;
        }
        let payload = clients[from].call(&[b"DUMP", key])?;
        let payload = payload.text().unwrap_or_default();
        let words: [&[u8]; 5] = [b"RESTORE", GUEST, b"0", payload, b"REPLACE"];
        let restored = clients[to].call(&words)?;
        let (guest, host) = (content(&mut clients[to], GUEST), content(&mut clients[to], key)?);
        if restored.is_error() || guest?[..3] != host[..3] {
            return Ok(Some(failure));
        }
        clients[to].call(&[b"DEL", GUEST])?;
    }
    Ok(None)
}

/// What is not of Redis 8.0: commands and options of our own, of newer versions and of Valkey, by the names
/// that COMMAND DOCS gives them.
const FROM_ELSEWHERE: [&str; 37] = [
    "delifeq",
    "client|import-source",
    "script|show",
    "changes",
    "xadd condition",
    "xtrim condition",
    "xreadgroup min-idle-time",
    "contenttype",
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
];

/// Compares COMMAND INFO and COMMAND DOCS of each command that both servers know.
fn command_tables() -> Result<()> {
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
        let mut ask = |what: &str| -> Result<[Reply; 2]> {
            let [ours, theirs] =
                clients.each_mut().map(|client| client.call(&["COMMAND", what, name.as_str()]));
            Ok([ours?, theirs?])
        };
        let last = |reply: Reply| reply.elements().and_then(|mut it| it.pop());
        let [ours, theirs] = ask("INFO")?.map(|reply| last(reply).unwrap_or(Reply::Nil));
        describe(name, &ours, &theirs, &mut differences);
        let [ours, theirs] = ask("DOCS")?.map(|reply| last(reply).unwrap_or(Reply::Nil));
        compare_docs(name, &ours, &theirs, &mut differences);
    }
    if differences.is_empty() { Ok(()) } else { bail!("{}", differences.join("\n")) }
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
        if of(&ours) != of(&theirs) {
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
                let later = name == "set";
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
        let is_filter = command.starts_with("client|") || name == "comparison-value";
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
const OTHER_SETTINGS: [&str; 19] = [
    "bind",
    "port",
    "dir",
    "logfile",
    "pidfile",
    "unixsocket",
    "save",
    "enable-debug-command",
    // Valkey's.
    "import-mode",
    // Our own.
    "changes-backlog-size",
    "changes-backlog-ttl",
    "threads",
    "http-cors-origins",
    "http-host-names",
    "http-port",
    "http-require-match",
    "lua-memory-limit",
    "rdb-version",
    "views-file",
];

/// Compares CONFIG GET of all settings.
fn settings() -> Result<()> {
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
