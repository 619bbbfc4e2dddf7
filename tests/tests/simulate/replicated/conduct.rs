//! Conducts a world of replicas: starts and ends servers, breaks links, promotes, and compares.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use simulation::{MachineNumber, ProcessNumber, Program, World};

use super::clients::{ANSWER, Work, assurances, encrypted_port, port};
use super::plan::{self, Act, Ending, Setting, Trouble};
use crate::clients::RECORD;
use crate::conduct::{nanoseconds, promise};
use crate::history::{NEVER, Operation, State, Time};
use crate::judge::{self, Reason};
use crate::plan::{Ending as EndingOfProcess, Policy};
use crate::record::Record;
use crate::replicas::ALARMS;

/// How long a start may take, of the virtual time.
const START: Duration = Duration::from_secs(60);
/// How long a question may take to be answered.
const ANSWERS: Duration = Duration::from_secs(300);
/// How long clients may go on after their time.
const END: Duration = Duration::from_secs(120);
/// How long a server that is told to stop may take: it waits for its replicas.
const STOP: Duration = Duration::from_secs(60);

/// What can be told of worlds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) time: Duration,
    pub(crate) steps: u64,
    pub(crate) acts: u64,
    pub(crate) operations: usize,
    /// Operations that clients were assured of at replicas.
    pub(crate) assured: usize,
    pub(crate) promotions: u64,
    /// Times that all servers were found to have the same.
    pub(crate) comparisons: u64,
    pub(crate) hash: u64,
}

impl Told {
    /// Adds what is told of another world.
    pub(crate) fn add(&mut self, other: &Told) {
        self.time += other.time;
        self.steps += other.steps;
        self.acts += other.acts;
        self.operations += other.operations;
        self.assured += other.assured;
        self.promotions += other.promotions;
        self.comparisons += other.comparisons;
        self.hash ^= other.hash;
    }
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { time, steps, acts, operations, assured, promotions, comparisons, hash } = self;
        let time = time.as_secs_f64();
        write!(
            formatter,
            "{time:.3} s, {acts} acts, {operations} operations, {assured} assured, \
             {promotions} promotions, {comparisons} comparisons, {steps} calls, {hash:016x}"
        )
    }
}

/// Plays the world of a seed, at most this many acts of it, in which clients work for so long at
/// most.
pub(crate) fn play(seed: u64, most: usize, longest: Duration) -> Result<Told> {
    let (setting, acts) = plan::world(seed, longest);
    let mut conductor = Conductor::new(seed, setting)?;
    conductor.begin().context("before the first act")?;
    for (number, act) in acts.iter().take(most).enumerate() {
        let played = conductor.act(number as u64, act);
        played.with_context(|| conductor.report(number, act))?;
    }
    let Conductor { world, mut told, .. } = conductor;
    (told.time, told.steps, told.hash) = (world.now(), world.steps(), world.hash());
    Ok(told)
}

struct Server {
    machine: MachineNumber,
    process: Option<ProcessNumber>,
    /// Which one it follows; none if it is the primary.
    follows: Option<usize>,
    /// When it starts again, if it is to.
    back: Option<Time>,
}

/// What a server says of itself.
#[derive(Clone, Debug)]
struct Seen {
    is_replica: bool,
    history: String,
    offset: u64,
    full_syncs: u64,
    hands_over: bool,
    /// Its append-only file has all data.
    has_file: bool,
    loads: bool,
}

struct Conductor {
    world: World,
    setting: Setting,
    clients: MachineNumber,
    servers: Vec<Server>,
    dunlin: std::path::PathBuf,
    primary: usize,
    /// What the primary had when it was read last.
    state: State,
    /// Whether all servers had the same then.
    is_alike: bool,
    /// Which replicas have ended in this act, and when.
    ended: Vec<(usize, Time)>,
    told: Told,
}

impl Conductor {
    fn new(seed: u64, setting: Setting) -> Result<Conductor> {
        let mut world = World::new(seed);
        world.weather().failing_syncs = 0;
        let clients = world.add_machine();
        let mut servers = Vec::new();
        for number in 0..setting.servers.len() {
            let machine = world.add_machine();
            let follows = (number > 0).then_some(0);
            servers.push(Server { machine, process: None, follows, back: None });
        }
        let machines: Vec<_> = servers.iter().map(|server| server.machine).collect();
        for (number, to) in machines.iter().enumerate() {
            for from in machines.iter().chain([&clients]).filter(|from| *from != to) {
                world.forward(*from, port(number), *to);
                world.forward(*from, encrypted_port(number), *to);
            }
        }
        Ok(Conductor {
            world,
            setting,
            clients,
            servers,
            dunlin: tests::server::dunlin_binary()?,
            primary: 0,
            state: State::default(),
            is_alike: true,
            ended: Vec::new(),
            told: Told::default(),
        })
    }

    fn now(&self) -> Time {
        nanoseconds(self.world.now())
    }

    fn report(&self, number: usize, act: &Act) -> String {
        let mut text = format!(
            "act {number}, primary {}, followed {:?}, {:?}, {act:?}",
            self.primary,
            self.servers.iter().map(|it| it.follows).collect::<Vec<_>>(),
            self.setting
        );
        for (number, server) in self.servers.iter().enumerate() {
            let Some(process) = server.process else { continue };
            let log = self.world.output(process);
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(25)..].join("\n");
            text.push_str(&format!("\n-- server {number}, {process:?}:\n{last}"));
        }
        text
    }

    // ---- Processes ------------------------------------------------------------------------------

    /// Starts the process of a server, and repairs its files if it asks for that.
    fn start(&mut self, number: usize) -> Result<()> {
        for _ in 0..2 {
            let process = self.spawn(number)?;
            let machine = self.servers[number].machine;
            let is_there =
                |world: &World| world.listens(machine, port(number)) || !world.is_running(process);
            let in_time = self.world.run(START, is_there)?;
            self.servers[number].process = Some(process);
            self.servers[number].back = None;
            ensure!(in_time, "server {number} does not start");
            if self.world.is_running(process) {
                return Ok(());
            }
            // When the power fails while nothing is synced, it may ask for this.
            let asks = self.world.output(process).contains("`dunlin check --fix` keeps");
            ensure!(asks, "server {number} has ended at its start");
            let arguments = ["check", "/data/appendonlydir", "--fix"].map(str::to_owned).to_vec();
            let program = Program { path: self.dunlin.clone(), arguments, environment: Vec::new() };
            let check = self.world.start(machine, &program)?;
            ensure!(self.world.run(END, |world| !world.is_running(check))?, "check does not end");
            let status = self.world.status(check);
            ensure!(status == Some(0), "check: {status:?}: {}", self.world.output(check));
        }
        bail!("server {number} does not start, and repairing its files does not help")
    }

    fn spawn(&mut self, number: usize) -> Result<ProcessNumber> {
        let own = self.setting.servers[number];
        let (is_diskless, load) = self.setting.diskless;
        let text = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
        let mut options = vec![
            ("port", port(number).to_string()),
            ("bind", "127.0.0.1".to_owned()),
            ("dir", "/data".to_owned()),
            ("appendonly", text(own.appends)),
            ("appendfsync", own.policy.name().to_owned()),
            ("save", "60 1".to_owned()),
            ("enable-debug-command", "yes".to_owned()),
            ("threads", own.threads.to_string()),
            ("repl-backlog-size", self.setting.backlog.to_string()),
            ("repl-timeout", self.setting.patience.to_string()),
            ("repl-ping-replica-period", "1".to_owned()),
            ("repl-diskless-sync", text(is_diskless)),
            ("repl-diskless-sync-delay", "0".to_owned()),
            ("repl-diskless-load", load.to_owned()),
            ("durability-timeout", self.setting.durability_timeout.to_string()),
            ("shutdown-timeout", "5".to_owned()),
        ];
        if self.setting.is_encrypted {
            options.extend([
                ("tls-port", encrypted_port(number).to_string()),
                ("tls-replication", "yes".to_owned()),
                ("tls-auth-clients", "no".to_owned()),
                ("tls-cert-file", "/data/server.crt".to_owned()),
                ("tls-key-file", "/data/server.key".to_owned()),
                ("tls-ca-cert-file", "/data/ca.crt".to_owned()),
            ]);
        }
        if let Some(primary) = self.servers[number].follows {
            options.push(("replicaof", self.address(primary)));
        }
        let mut arguments = vec!["serve".to_owned()];
        for (name, value) in options {
            arguments.extend([format!("--{name}"), value]);
        }
        let program = Program { path: self.dunlin.clone(), arguments, environment: Vec::new() };
        self.world.start(self.servers[number].machine, &program)
    }

    /// Where replicas reach a server.
    fn address(&self, number: usize) -> String {
        let port = if self.setting.is_encrypted { encrypted_port(number) } else { port(number) };
        format!("127.0.0.1 {port}")
    }

    /// Whether the process of a server runs. One that has ended by itself is an error.
    fn runs(&self, number: usize) -> Result<bool> {
        let Some(process) = self.servers[number].process else { return Ok(false) };
        let status = self.world.status(process);
        ensure!(self.world.is_running(process), "server {number} ended by itself: {status:?}");
        let log = self.world.output(process);
        if let Some(line) = log.lines().find(|line| ALARMS.iter().any(|it| line.contains(it))) {
            bail!("server {number} says: {line}");
        }
        Ok(true)
    }

    fn end(&mut self, number: usize, ending: EndingOfProcess) -> Result<()> {
        if !self.runs(number)? {
            return Ok(());
        }
        let Some(process) = self.servers[number].process else { return Ok(()) };
        match ending {
            EndingOfProcess::Kill => self.world.kill(process),
            EndingOfProcess::PowerCut => drop(self.world.cut_power(self.servers[number].machine)),
            EndingOfProcess::Stop => {
                // TERM
                self.world.signal(process, 15);
                let ended = self.world.run(STOP, |world| !world.is_running(process))?;
                ensure!(ended, "server {number} does not stop");
                let status = self.world.status(process);
                ensure!(status == Some(0), "server {number} has stopped with {status:?}");
            }
        }
        self.servers[number].process = None;
        Ok(())
    }

    fn run_program(&mut self, task: &str, words: Vec<String>) -> Result<ProcessNumber> {
        let path = std::env::current_exe()?;
        let arguments = [vec![format!("replicated:{task}")], words].concat();
        self.world.start(self.clients, &Program { path, arguments, environment: Vec::new() })
    }

    /// Waits until a program has ended, and returns what it has left.
    fn left_by(&mut self, program: ProcessNumber, path: &str, most: Duration) -> Result<String> {
        let has_ended = self.world.run(most, |world| !world.is_running(program))?;
        ensure!(has_ended, "a client does not end: {}", self.world.output(program));
        let status = self.world.status(program);
        ensure!(status == Some(0), "a client: {status:?}\n{}", self.world.output(program));
        let files = self.world.files(self.clients);
        let left = files.iter().find(|(name, _)| format!("/data{name}") == path);
        let (_, text) = left.context("a client has left nothing")?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Sends a command to a server.
    fn ask(&mut self, task: &str, words: &[String]) -> Result<String> {
        let program = self.run_program(task, words.to_vec())?;
        let answer = self.left_by(program, ANSWER, ANSWERS)?;
        match answer.strip_prefix("! ") {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }

    fn tell(&mut self, server: usize, command: &str) -> Result<()> {
        let words = command.split(' ').map(str::to_owned);
        let words: Vec<String> = [server.to_string()].into_iter().chain(words).collect();
        self.ask("ask", &words)?;
        Ok(())
    }

    /// What all servers say of themselves.
    fn look(&mut self) -> Result<BTreeMap<usize, Seen>> {
        let numbers: Vec<String> = (0..self.servers.len()).map(|it| it.to_string()).collect();
        let text = self.ask("look", &numbers)?;
        let mut all = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let &[number, role, history, offset, _, failover, full, on, rewrites, waits, loads] =
                words.as_slice()
            else {
                bail!("a look has brought: {line}");
            };
            let seen = Seen {
                is_replica: role == "slave",
                history: history.to_owned(),
                offset: offset.parse().unwrap_or(0),
                full_syncs: full.parse().unwrap_or(0),
                hands_over: failover != "no-failover",
                has_file: [on, rewrites, waits] == ["1", "0", "0"],
                loads: loads != "0",
            };
            all.insert(number.parse()?, seen);
        }
        Ok(all)
    }

    fn read_record(&mut self, text: &str) -> Result<Record> {
        let record = Record::read(text, nanoseconds(World::origin()))?;
        ensure!(record.violations.is_empty(), "{}", record.violations.join("\n"));
        Ok(record)
    }

    /// The data of a server.
    fn read(&mut self, number: usize) -> Result<State> {
        let program = self.run_program("read", vec![number.to_string()])?;
        let text = self.left_by(program, RECORD, ANSWERS)?;
        let record = self.read_record(&text);
        Ok(record.with_context(|| format!("reading from server {number}"))?.state)
    }

    /// Lets time pass, and starts servers again whose time has come.
    fn pass(&mut self, until: Time, is_over: impl Fn(&World) -> bool) -> Result<()> {
        loop {
            let next = self.servers.iter().enumerate();
            let next = next.filter_map(|(number, it)| it.back.map(|at| (at, number))).min();
            let (at, starts) = match next {
                Some((at, number)) if at <= until => (at, Some(number)),
                _ => (until, None),
            };
            let left = Duration::from_nanos(at.saturating_sub(self.now()));
            if self.world.run(left, &is_over)? {
                return Ok(());
            }
            match starts {
                Some(number) => self.start(number)?,
                None => return Ok(()),
            }
        }
    }

    // ---- Acts -----------------------------------------------------------------------------------

    /// Gives all servers certificates of one authority.
    fn certify(&mut self) -> Result<()> {
        let machine = self.servers[0].machine;
        let arguments = ["tls", "dev", "/data/tls"].map(str::to_owned).to_vec();
        let program = Program { path: self.dunlin.clone(), arguments, environment: Vec::new() };
        let made = self.world.start(machine, &program)?;
        ensure!(self.world.run(END, |world| !world.is_running(made))?, "certificates take long");
        ensure!(self.world.status(made) == Some(0), "{}", self.world.output(made));
        for (name, bytes) in self.world.files(machine) {
            let Some(name) = name.strip_prefix("/tls/") else { continue };
            for server in &self.servers {
                self.world.give_file(server.machine, name, &bytes)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        if self.setting.is_encrypted {
            self.certify()?;
        }
        for number in 0..self.servers.len() {
            self.start(number)?;
        }
        Ok(())
    }

    fn act(&mut self, number: u64, act: &Act) -> Result<()> {
        for server in 0..self.servers.len() {
            if !self.runs(server)? {
                self.start(server)?;
            }
        }
        self.ended.clear();
        let look = self.look()?;
        let seen = look.get(&self.primary).context("the primary says nothing")?.clone();
        ensure!(!seen.is_replica, "the primary has become a replica");
        let direct = self.servers.iter().filter(|it| it.follows == Some(self.primary)).count();
        let work = Work {
            seed: act.seed,
            life: number,
            primary: self.primary,
            servers: self.servers.len(),
            direct,
            // Where two lead for a while, a replica may follow one and then the other.
            began_alike: self.is_alike && act.ending != Ending::Split,
            is_encrypted: self.setting.is_encrypted,
            // Most endings come earlier, and end what they do.
            lasts: act.busy.as_millis() as u64 + if act.ending == Ending::Calm { 0 } else { 600 },
        };
        // The act is judged from here on.
        self.world.write_back(self.servers[self.primary].machine);
        let clients = self.run_program("work", work.words())?;
        let begin = self.now();
        for (after, trouble) in &act.troubles {
            self.pass(begin + nanoseconds(*after), |world| !world.is_running(clients))?;
            self.trouble(*trouble)?;
        }
        self.pass(begin + nanoseconds(act.busy), |world| !world.is_running(clients))?;
        for server in 0..self.servers.len() {
            self.runs(server)?;
        }
        let began_alike = self.is_alike;
        self.finish(act, &work, clients, &seen)?;
        self.told.acts += 1;
        self.is_alike = false;
        if act.settles {
            self.settle()?;
            // Before the first act nobody has waited for the first copies.
            let began = number > 0 && began_alike;
            let was_quiet = began && self.ended.is_empty() && act.ending == Ending::Calm;
            if was_quiet && self.setting.keeps_enough {
                self.check_partial(&look)?;
            }
        }
        Ok(())
    }

    fn trouble(&mut self, trouble: Trouble) -> Result<()> {
        let machine = |number: usize| self.servers[number].machine;
        match trouble {
            Trouble::Cut(one, other) => {
                let (one, other) = (machine(one), machine(other));
                self.world.cut(one, other);
            }
            Trouble::Tear(from, to) => {
                let (from, to) = (machine(from), machine(to));
                self.world.tear(from, to);
            }
            Trouble::Silence { from, to, both, lasts } => {
                let (from, to) = (machine(from), machine(to));
                self.world.silence(from, to, lasts);
                if both {
                    self.world.silence(to, from, lasts);
                }
            }
            Trouble::Slow(from, to, most) => {
                let (from, to) = (machine(from), machine(to));
                self.world.slow(from, to, most / 4, most);
            }
            Trouble::End { server, by_power_cut, back } => {
                if server == self.primary || !self.runs(server)? {
                    return Ok(());
                }
                self.end(server, ending_of_process(by_power_cut))?;
                self.ended.push((server, self.now()));
                self.servers[server].back = Some(self.now() + nanoseconds(back));
            }
        }
        Ok(())
    }

    /// The replica that has most of the stream of the primary, and all that it had at that offset.
    /// And how many are no such replicas.
    fn best(&mut self, primary: &Seen) -> Result<(Option<usize>, usize)> {
        let look = self.look()?;
        let can_lead = |(number, seen): &(&usize, &Seen)| {
            **number != self.primary
                && seen.is_replica
                && !seen.loads
                && seen.history == primary.history
                && seen.offset >= primary.offset
        };
        let best = look.iter().filter(can_lead).max_by_key(|(_, seen)| seen.offset);
        let absent = self.servers.len() - 1 - look.iter().filter(can_lead).count();
        Ok((best.map(|(number, _)| *number), absent))
    }

    /// What clients have done.
    fn operations(&mut self, clients: ProcessNumber) -> Result<Vec<Operation>> {
        let text = self.left_by(clients, RECORD, END)?;
        let record = self.read_record(&text)?;
        self.told.operations += record.operations.len();
        self.told.assured += judge::assured(&record.operations);
        Ok(record.operations)
    }

    /// Ends an act.
    fn finish(
        &mut self,
        act: &Act,
        work: &Work,
        clients: ProcessNumber,
        seen: &Seen,
    ) -> Result<()> {
        let primary = self.primary;
        let own = self.setting.servers[primary];
        let heir = match act.ending {
            Ending::Calm | Ending::Restart(_) => None,
            Ending::Death { .. } | Ending::Split | Ending::Failover => self.best(seen)?.0,
        };
        let (operations, reason);
        match (act.ending, heir) {
            (Ending::Death { by_power_cut }, Some(_)) => {
                self.end(primary, ending_of_process(by_power_cut))?;
                operations = self.operations(clients)?;
                let (heir, absent) = self.best(seen)?;
                let heir = heir.context("no replica is left")?;
                self.promote(heir)?;
                let ended = self.ended.clone();
                let (until, reads_until) = (NEVER - 1, NEVER);
                reason = Reason::Promoted { until, reads_until, ended, absent };
                self.arrange(act, heir)?;
            }
            (Ending::Split, Some(_)) => {
                let until = self.now();
                // Another one may have got further meanwhile, or ended.
                let (heir, absent) = self.best(seen)?;
                let heir = heir.context("no replica is left")?;
                let ended = self.ended.clone();
                self.promote(heir)?;
                let reads_until = self.now();
                operations = {
                    let follows = act.leads_first.unwrap_or_default();
                    self.world.run(follows, |_| false)?;
                    self.servers[primary].follows = Some(heir);
                    self.tell(primary, &format!("REPLICAOF {}", self.address(heir)))?;
                    self.operations(clients)?
                };
                reason = Reason::Promoted { until, reads_until, ended, absent };
                self.arrange(act, heir)?;
            }
            (Ending::Failover, Some(heir)) => {
                let begin = self.now();
                let command = format!("FAILOVER TO {} TIMEOUT 4000", self.address(heir));
                let asked = self.tell(primary, &command);
                let is_refused = asked.is_err();
                operations = self.operations(clients)?;
                let leads = !is_refused && self.has_handed_over(primary, heir)?;
                reason = Reason::SameData { reads_until: if is_refused { NEVER } else { begin } };
                if leads {
                    self.primary = heir;
                    self.told.promotions += 1;
                    self.servers[heir].follows = None;
                    self.servers[primary].follows = Some(heir);
                }
            }
            (Ending::Restart(ending), _) if ending == EndingOfProcess::Stop || seen.has_file => {
                let now = self.now();
                self.end(primary, ending)?;
                operations = self.operations(clients)?;
                self.start(primary)?;
                reason = Reason::Restarted {
                    promise: promise(ending, own.policy, now),
                    readers_wait: own.policy == Policy::Always && own.appends,
                    appends: seen.has_file && own.appends,
                };
            }
            _ => {
                operations = self.operations(clients)?;
                reason = Reason::SameData { reads_until: NEVER };
            }
        }
        let after = self.read(self.primary)?;
        let assurances = assurances(work.seed, work.direct as u64);
        let wrong = judge::judge(&self.state, &operations, &after, &assurances, reason);
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        self.state = after;
        Ok(())
    }

    fn promote(&mut self, heir: usize) -> Result<()> {
        self.tell(heir, "REPLICAOF NO ONE")?;
        self.primary = heir;
        self.servers[heir].follows = None;
        self.told.promotions += 1;
        Ok(())
    }

    /// Has all others follow a new primary, one behind the other or all itself.
    fn arrange(&mut self, act: &Act, primary: usize) -> Result<()> {
        let mut above = primary;
        for number in 0..self.servers.len() {
            if number == primary {
                continue;
            }
            let is_new = self.servers[number].follows != Some(above);
            let first = self.servers[number].follows.is_none();
            if first && let Some(leads) = act.leads_first {
                // The former primary does not know yet.
                self.start(number)?;
                self.world.run(leads, |_| false)?;
            }
            self.servers[number].follows = Some(above);
            if self.runs(number)? {
                if is_new {
                    self.tell(number, &format!("REPLICAOF {}", self.address(above)))?;
                }
            } else {
                self.start(number)?;
            }
            if act.chained {
                above = number;
            }
        }
        Ok(())
    }

    /// Waits until a FAILOVER is over, and says whether the other one leads.
    fn has_handed_over(&mut self, primary: usize, heir: usize) -> Result<bool> {
        for _ in 0..100 {
            let look = self.look()?;
            if let (Some(own), Some(other)) = (look.get(&primary), look.get(&heir))
                && !own.hands_over
            {
                ensure!(own.is_replica != other.is_replica, "both have one role: {look:?}");
                return Ok(own.is_replica);
            }
            self.world.run(Duration::from_millis(200), |_| false)?;
        }
        bail!("a FAILOVER does not end")
    }

    /// Lets all become calm, and compares.
    fn settle(&mut self) -> Result<()> {
        self.world.mend_ways();
        for server in 0..self.servers.len() {
            if !self.runs(server)? {
                self.start(server)?;
            }
        }
        let others = (0..self.servers.len()).filter(|number| *number != self.primary);
        let numbers: Vec<String> =
            [self.primary].into_iter().chain(others).map(|it| it.to_string()).collect();
        self.ask("compare", &numbers)?;
        self.told.comparisons += 1;
        self.is_alike = true;
        Ok(())
    }

    /// No replica has got all data again, since none had to.
    fn check_partial(&mut self, before: &BTreeMap<usize, Seen>) -> Result<()> {
        for (number, after) in self.look()? {
            let full = before.get(&number).map_or(0, |seen| seen.full_syncs);
            ensure!(
                after.full_syncs == full,
                "server {number} has sent all data, though links broke only: {full} and {}",
                after.full_syncs
            );
        }
        Ok(())
    }
}

fn ending_of_process(by_power_cut: bool) -> EndingOfProcess {
    if by_power_cut { EndingOfProcess::PowerCut } else { EndingOfProcess::Kill }
}
