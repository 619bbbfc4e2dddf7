//! A sequence of commands: how it is made, played, and shortened when servers differ.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use tests::client::{Client, Received, encode};
use tests::grammar::{Command, Comparison, command};
use tests::notation;
use tests::quoting::command_line;
use tests::random::Random;

use crate::alike::{answered_alike, shown};
use crate::data::{changes_so_far, content, exchanged, is_about_the_same, statistics};
use crate::judge::Judge;
use crate::pair::{Difference, PATIENCE, Pair, SHORT_PATIENCE};
use crate::several::{self, Step};

/// Commands of a round.
const ROUND: usize = 400;
/// Commands that one client sends before it reads their replies.
const BATCH: usize = 40;
/// How long one difference may be shortened.
const SHORTENING: Duration = Duration::from_secs(15);

/// Whether a command is a BITFIELD whose operations may all fail: where it makes its key longer,
/// that is a change here, and none in the reference.
pub(crate) fn may_fail_to_overflow(command: &Command) -> bool {
    let has = |word: &[u8]| command.words.iter().any(|own| own.eq_ignore_ascii_case(word));
    has(b"bitfield") && has(b"fail")
}

/// Whether two servers may well answer it differently.
fn is_left_out(command: &Command, imports: bool) -> bool {
    match command.name().as_str() {
        // While data is imported the key stays until this millisecond ends: before the next command
        // or after.
        "EXPIRE" | "PEXPIRE" => imports && command.has(2, "0"),
        // Valkey takes several numbers of clients, and so does dunlin.
        "CLIENT" if command.has(1, "KILL") => command.words.windows(3).any(|words| {
            let is_number =
                |word: &Vec<u8>| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
            words[0].eq_ignore_ascii_case(b"ID") && words[1..].iter().all(is_number)
        }),
        // Redis cuts the index to 32 bits.
        "LSET" => command.words.get(2).is_some_and(|index| index.len() > 10),
        _ => false,
    }
}

/// What makes a client speak RESP3.
fn greeting() -> Command {
    Command { words: vec![b"HELLO".to_vec(), b"3".to_vec()], comparison: Comparison::Shape }
}

/// One sequence of commands.
#[derive(Clone)]
pub(crate) struct Round {
    judge: &'static Judge,
    resp3: bool,
    settings: Vec<Vec<Vec<u8>>>,
    steps: Vec<Step>,
}

impl Round {
    pub(crate) fn new(judge: &'static Judge, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let settings = judge.settings.iter().copied().flatten().map(|(name, values)| {
            let value: &str = random.pick::<&str>(values);
            ["CONFIG", "SET", name, value].map(|word| word.as_bytes().to_vec()).to_vec()
        });
        let settings: Vec<Vec<Vec<u8>>> = settings.collect();
        let resp3 = random.percent(50);
        let mut steps: Vec<Step> = Vec::new();
        if judge.clients > 1 {
            let chosen: Vec<_> = (0..judge.clients).filter(|_| random.percent(50)).collect();
            steps.extend(chosen.into_iter().map(|by| Step { by, command: greeting() }));
        }
        let imports = settings.iter().any(|words| words[2] == b"import-mode" && words[3] == b"yes");
        // Settings that a transaction changes have their effect after it.
        let mut is_queueing = vec![false; judge.clients];
        for _ in 0..ROUND {
            let by = random.below(judge.clients);
            let vocabulary = random.pick(judge.vocabularies);
            let mut command = command(vocabulary, &mut random);
            if is_left_out(&command, imports) {
                continue;
            }
            match command.name().as_str() {
                "MULTI" => is_queueing[by] = true,
                "EXEC" | "DISCARD" | "RESET" => is_queueing[by] = false,
                "CONFIG" if is_queueing[by] => continue,
                // Each server has as many as it has.
                "COMMAND" if command.has(1, "COUNT") => command.comparison = Comparison::Shape,
                _ => {}
            }
            steps.push(Step { by, command });
        }
        let mut round = Self { judge, resp3, settings, steps };
        let by_chance = round.sets_of_chance();
        for Step { command, .. } in &mut round.steps {
            let about = (command.name() == "OBJECT").then(|| command.words.get(2)).flatten();
            if about.is_some_and(|key| by_chance.contains(key)) {
                command.comparison = Comparison::Shape;
            }
        }
        round
    }

    /// What a report says of a difference that this round makes.
    pub(crate) fn report(&self, difference: &Difference) -> String {
        let several = self.judge.clients > 1;
        let mut text = match (several, self.resp3) {
            (true, _) => String::new(),
            (false, true) => "  (RESP3)\n".to_owned(),
            (false, false) => "  (RESP2)\n".to_owned(),
        };
        for words in &self.settings {
            text.push_str(&format!("  > {}\n", command_line(words)));
        }
        for Step { by, command } in &self.steps {
            let by = if several { by.to_string() } else { String::new() };
            text.push_str(&format!("  {by}> {}\n", command_line(&command.words)));
        }
        text.push_str(&format!("{}\ndunlin:\n{}\n", difference.signature, difference.dunlin));
        text.push_str(&format!("reference:\n{}", difference.reference));
        text
    }

    /// Plays the round; tells the first difference.
    pub(crate) fn play(&self, pair: &mut Pair) -> Result<Option<Difference>> {
        let mut clients = pair.connect()?;
        if self.resp3 {
            for client in &mut clients {
                client.call_text("HELLO 3")?;
            }
        }
        for client in &mut clients {
            for command in ["FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH"] {
                client.call_text(command)?;
            }
            for words in &self.settings {
                client.call(words)?;
            }
            client.call_text("CONFIG RESETSTAT")?;
        }
        let _bystanders = pair.connect_bystanders(&mut clients, self.judge.bystanders)?;
        let changes = clients.each_mut().map(changes_so_far);
        let found = if self.judge.clients > 1 {
            several::play(pair, &mut clients, self.judge.clients, &self.steps)?
        } else {
            self.play_alone(pair, &mut clients)?
        };
        if found.is_some() {
            return Ok(found);
        }
        if self.judge.has_our_insides()
            && self.judge.clients == 1
            && let Some(difference) = self.compare_statistics(&mut clients)?
        {
            return Ok(Some(difference));
        }
        if self.judge.has_our_insides()
            && !self.commands().any(may_fail_to_overflow)
            && let Some(difference) = self.compare_changes(&mut clients, changes)?
        {
            return Ok(Some(difference));
        }
        let found = self.compare_data(&mut clients)?;
        if found.is_none() && self.judge.has_our_insides() {
            return self.compare_digests(&mut clients);
        }
        Ok(found)
    }

    fn commands(&self) -> impl Iterator<Item = &Command> {
        self.steps.iter().map(|step| &step.command)
    }

    /// Plays the steps as those of one client, which sends many commands together.
    fn play_alone(&self, pair: &Pair, clients: &mut [Client; 2]) -> Result<Option<Difference>> {
        let mut queue = Vec::new();
        for (index, batch) in self.steps.chunks(BATCH).enumerate() {
            for client in clients.iter_mut() {
                let mut request = Vec::new();
                batch.iter().for_each(|step| encode(&step.command.words, &mut request));
                client.send_raw(&request)?;
            }
            for (within, Step { command, .. }) in batch.iter().enumerate() {
                let [dunlin, reference] = clients.each_mut().map(Client::receive);
                let (dunlin, reference) = (dunlin?, reference?);
                if !answered_alike(command, &mut queue, &dunlin, &reference) {
                    let end = match dunlin {
                        Received::Closed => format!("\n{}", pair.dunlin.log_tail()),
                        Received::Reply(_) => String::new(),
                    };
                    return Ok(Some(Difference {
                        signature: format!("{} is answered differently", command.name()),
                        length: index * BATCH + within + 1,
                        dunlin: shown(&dunlin) + &end,
                        reference: shown(&reference),
                    }));
                }
            }
        }
        for client in clients {
            client.call_text("DISCARD")?;
        }
        Ok(None)
    }

    /// Compares what is counted of commands, errors and keys.
    fn compare_statistics(&self, clients: &mut [Client; 2]) -> Result<Option<Difference>> {
        let [ours, theirs] = clients.each_mut().map(statistics);
        let (ours, theirs) = (ours?, theirs?);
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let different = names.into_iter().find(|name| ours.get(*name) != theirs.get(*name));
        let shown = |value: Option<&String>| value.cloned().unwrap_or_default();
        Ok(different.map(|name| Difference {
            signature: format!("{name} is counted differently"),
            length: self.steps.len(),
            dunlin: shown(ours.get(name)),
            reference: shown(theirs.get(name)),
        }))
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
            length: self.steps.len(),
            dunlin: dunlin.to_string(),
            reference: reference.to_string(),
        }))
    }

    /// Compares the digests of all that the commands left behind.
    fn compare_digests(&self, clients: &mut [Client; 2]) -> Result<Option<Difference>> {
        let digests = clients.each_mut().map(|client| client.call_text("DEBUG DIGEST"));
        let [dunlin, reference] = digests;
        let (dunlin, reference) = (dunlin?, reference?);
        Ok((dunlin != reference).then(|| Difference {
            signature: "digests differ where data do not".to_owned(),
            length: self.steps.len(),
            dunlin: notation::lines(&dunlin).join("\n"),
            reference: notation::lines(&reference).join("\n"),
        }))
    }

    /// Compares what the commands left behind.
    fn compare_data(&self, clients: &mut [Client; 2]) -> Result<Option<Difference>> {
        let by_chance = self.sets_of_chance();
        let different = |what: String, [dunlin, reference]: [String; 2]| {
            let length = self.steps.len();
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
                        "expiry" => !is_about_the_same(dunlin, reference),
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

    /// The keys of sets that may be a listpack or a table by chance, whatever their members are at
    /// the end: see [`has_chance_encoding`]. A set keeps the table when members go, and takes it
    /// along to another name.
    fn sets_of_chance(&self) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        let is_limited =
            |words: &Vec<Vec<u8>>| words[2] == b"set-max-intset-entries" && words[3] != b"512";
        if !self.settings.iter().any(is_limited) {
            return names;
        }
        for Command { words, .. } in self.commands() {
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
    pub(crate) fn shortened(
        &self,
        pair: &mut Pair,
        found: Difference,
    ) -> Result<(Self, Difference)> {
        let start = Instant::now();
        pair.patience = SHORT_PATIENCE;
        let mut best = self.clone();
        best.steps.truncate(found.length);
        let mut difference = found;
        let mut size = best.steps.len().div_ceil(2);
        while size > 0 && start.elapsed() < SHORTENING {
            let mut at = 0;
            while at < best.steps.len() && start.elapsed() < SHORTENING {
                let mut shorter = best.clone();
                shorter.steps.drain(at..(at + size).min(best.steps.len()));
                match shorter.play(pair) {
                    Ok(Some(again)) if again.signature == difference.signature => {
                        shorter.steps.truncate(again.length);
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
        pair.patience = PATIENCE;
        Ok((best, difference))
    }
}
