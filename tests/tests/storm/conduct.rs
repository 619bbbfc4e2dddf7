//! Carries out a plan on one process, and knows what has to survive its end.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::client::{Client, Reply};
use tests::observe::figure;
use tests::server::Server;
use tests::volume::Volume;

use crate::actor::{World, is_refusal};
use crate::history::{Promise, Time};
use crate::plan::{Disk, Ending, Event, Plan};

/// How long a stop may take, and turning on.
const PATIENCE: Duration = Duration::from_secs(60);

/// What of the data is on the disk, as far as it is known.
pub(crate) struct Conductor<'s> {
    pub(crate) server: &'s mut Server,
    world: &'s World,
    volume: Option<&'s Volume>,
    plan: &'s Plan,
    control: Option<Client>,
    /// When the append-only file was known to be complete; it is what the next start loads.
    complete_since: Option<Time>,
    policy: &'static str,
    policy_since: Time,
    /// Spans of `always` that are over.
    always: Vec<(Time, Time)>,
    /// When the last snapshot that succeeded was asked for.
    saved: Option<Time>,
    /// Since when the disk has failed, as far as nothing shows that all is written since.
    failing_since: Option<Time>,
}

impl<'s> Conductor<'s> {
    /// For a process that has just started, with the append-only file or without.
    pub(crate) fn new(
        server: &'s mut Server,
        world: &'s World,
        volume: Option<&'s Volume>,
        plan: &'s Plan,
        appends: bool,
    ) -> Conductor<'s> {
        let now = world.clock.now();
        let complete_since = appends.then_some(now);
        let failing_since = matches!(plan.disk, Disk::Failing(_)).then_some(now);
        Conductor {
            server,
            world,
            volume,
            plan,
            control: None,
            complete_since,
            policy: "everysec",
            policy_since: now,
            always: Vec::new(),
            // What was loaded without an append-only file came from a snapshot. Otherwise there may
            // be none, or one of a life before this one.
            saved: (!appends).then_some(now),
            failing_since,
        }
    }

    /// Whether the next start is to load the append-only file.
    pub(crate) fn appends(&self) -> bool {
        self.complete_since.is_some()
    }

    fn control(&mut self) -> Result<&mut Client> {
        if self.control.is_none() {
            let mut client = self.server.connect()?;
            client.call_text("CLIENT SETNAME conductor")?;
            self.control = Some(client);
        }
        self.control.as_mut().context("it was just made")
    }

    /// The answer to a command; none when the connection broke.
    fn call(&mut self, command: &str) -> Option<Reply> {
        let answer = self.control().and_then(|client| client.call_text(command));
        match answer {
            Ok(reply) => Some(reply),
            Err(_) => {
                self.control = None;
                None
            }
        }
    }

    /// Whether a command was executed.
    fn is_done(&mut self, command: &str) -> bool {
        self.call(command).is_some_and(|reply| !reply.is_error())
    }

    fn figure(&mut self, name: &str) -> Option<String> {
        let value = self.control().and_then(|client| figure(client, name));
        if value.is_err() {
            self.control = None;
        }
        value.ok()
    }

    /// Waits until a figure of INFO says so.
    fn wait_for(&mut self, name: &str, wanted: &str) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE && self.server.is_running() {
            if self.figure(name).as_deref() == Some(wanted) {
                return true;
            }
            sleep(Duration::from_millis(5));
        }
        false
    }

    /// Does one thing, and notes it for the watchdog. A mark of exclamation tells it that clients
    /// have to wait meanwhile.
    pub(crate) fn perform(&mut self, event: &Event) {
        let begin = self.world.clock.now();
        let stops = matches!(event, Event::Save | Event::Reload | Event::Pause { .. })
            || matches!(event, Event::Command(text) if text == "DEBUG DIGEST");
        match event {
            Event::Command(command) => {
                self.call(command);
            }
            Event::Save => {
                if self.is_done("SAVE") {
                    self.saved = Some(begin);
                }
            }
            Event::BackgroundSave => self.save_in_background(begin),
            Event::Rewrite => self.rewrite(),
            Event::TurnOn => self.turn_on(),
            Event::BeginTurningOn => {
                self.call("CONFIG SET appendonly yes");
            }
            Event::TurnOff => {
                self.turn_off();
            }
            Event::Policy(policy) => self.set_policy(policy),
            Event::Reload => {
                if self.is_done("DEBUG RELOAD") {
                    self.saved = Some(begin);
                }
            }
            Event::Pause { milliseconds, all } => {
                let kind = if *all { "ALL" } else { "WRITE" };
                self.call(&format!("CLIENT PAUSE {milliseconds} {kind}"));
                sleep(Duration::from_millis(*milliseconds));
            }
            Event::KillVictims => self.kill_victims(),
            Event::FillDisk(left) => self.fill_disk(*left),
            Event::MakeRoom => self.make_room(),
        }
        let mark = if stops { "!" } else { "" };
        self.world.note(&format!("{mark}{event:?}"), begin);
    }

    fn save_in_background(&mut self, begin: Time) {
        if self.is_done("BGSAVE")
            && self.wait_for("rdb_bgsave_in_progress", "0")
            && self.figure("rdb_last_bgsave_status").as_deref() == Some("ok")
        {
            self.saved = Some(begin);
        }
    }

    fn rewrite(&mut self) {
        let full_since = self.failing_since;
        if self.is_done("BGREWRITEAOF")
            && self.wait_for("aof_rewrite_scheduled", "0")
            && self.wait_for("aof_rewrite_in_progress", "0")
            && self.figure("aof_last_bgrewrite_status").as_deref() == Some("ok")
            && self.figure("aof_last_write_status").as_deref() == Some("ok")
            && full_since.is_some()
            && !self.is_full()
            && !matches!(self.plan.disk, Disk::Failing(_))
        {
            self.failing_since = None;
        }
    }

    fn turn_on(&mut self) {
        if !self.is_done("CONFIG SET appendonly yes") || self.complete_since.is_some() {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE && self.server.is_running() {
            let names = ["aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled"];
            let figures = names.map(|name| self.figure(name).unwrap_or_default());
            let status = self.figure("aof_last_bgrewrite_status");
            if figures == ["1", "0", "0"] && status.as_deref() == Some("ok") {
                let now = self.world.clock.now();
                self.complete_since = Some(now);
                self.policy_since = self.policy_since.max(now);
                return;
            }
            if self.failing_since.is_some() && begin.elapsed() > Duration::from_secs(1) {
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Turns the append-only file off, where a snapshot is there to start from without it.
    fn turn_off(&mut self) -> bool {
        if self.saved.is_none() {
            self.perform(&Event::Save);
        }
        if self.saved.is_none() {
            return false;
        }
        // From before it is known to be off, the file may not be what the data is.
        self.complete_since = None;
        self.always.clear();
        self.call("CONFIG SET appendonly no");
        true
    }

    fn set_policy(&mut self, policy: &'static str) {
        let begin = self.world.clock.now();
        if self.is_done(&format!("CONFIG SET appendfsync {policy}")) {
            if self.policy == "always" && self.complete_since.is_some() {
                self.always.push((self.policy_since, begin));
            }
            self.policy = policy;
            self.policy_since = self.world.clock.now();
        }
    }

    fn kill_victims(&mut self) {
        let Some(list) = self.call("CLIENT LIST") else { return };
        let list = String::from_utf8_lossy(list.text().unwrap_or_default()).into_owned();
        let victims = list.lines().filter(|line| line.contains(" name=victim "));
        let ids = victims.filter_map(|line| line.split(' ').next()?.strip_prefix("id="));
        let ids: Vec<String> = ids.step_by(3).map(str::to_owned).collect();
        for id in ids {
            self.call(&format!("CLIENT KILL ID {id}"));
        }
    }

    fn is_full(&self) -> bool {
        self.volume.is_some_and(|volume| volume.path().join("ballast").exists())
    }

    fn fill_disk(&mut self, kilobytes: u64) {
        let Some(volume) = self.volume else { return };
        let now = self.world.clock.now();
        self.failing_since = Some(self.failing_since.unwrap_or(now));
        // What cannot be filled is not full, which is no failure of the server.
        let _ = fill(volume, kilobytes * 1024);
    }

    fn make_room(&mut self) {
        let Some(volume) = self.volume else { return };
        let _ = fs::remove_file(volume.path().join("ballast"));
        self.rewrite();
    }

    /// Ends the process. Returns what has to survive that.
    pub(crate) fn end(&mut self) -> Result<Promise> {
        let ending = self.plan.ending;
        let killed = match ending {
            Ending::Kill | Ending::Idle => false,
            Ending::KillDuringRewrite(after) => {
                self.call("BGREWRITEAOF");
                sleep(Duration::from_millis(after));
                false
            }
            Ending::KillDuringSave(after) => {
                self.call("BGSAVE");
                sleep(Duration::from_millis(after));
                false
            }
            Ending::KillWhileTurningOn(after) => {
                if self.turn_off() {
                    self.call("CONFIG SET appendonly yes");
                    sleep(Duration::from_millis(after));
                }
                false
            }
            Ending::Terminate => self.stop_by(Signal::TERM)?,
            Ending::Interrupt => self.stop_by(Signal::INT)?,
            Ending::Shutdown(command) => self.shut_down(command, false)?,
            Ending::ShutdownAndUnpause => self.shut_down("SHUTDOWN SAVE", true)?,
        };
        let nosave = ending == Ending::Shutdown("SHUTDOWN NOSAVE");
        if killed && (self.appends() || !nosave) {
            let reason = format!("the server had stopped by itself ({ending:?})");
            return Ok(Promise::of_all(vec![(0, Time::MAX - 1)], reason));
        }
        ensure!(
            killed || self.server.is_running(),
            "the process has ended by itself:\n{}",
            self.server.log_tail()
        );
        let now = self.world.clock.now();
        self.server.kill();
        Ok(self.promise(now))
    }

    /// What survives a kill at that time.
    fn promise(&self, killed: Time) -> Promise {
        if self.complete_since.is_none() {
            let reason = "without an append-only file, a snapshot had begun after that".to_owned();
            return Promise::of_all(vec![(0, self.saved.unwrap_or(0))], reason);
        }
        let mut spans = self.always.clone();
        if self.policy == "always" {
            spans.push((self.policy_since, Time::MAX - 1));
        }
        let of_what_is_seen = spans.clone();
        // A write's reply leaves when the system has the write, which survives the process.
        spans.push((0, killed.min(self.failing_since.unwrap_or(killed))));
        let reason = format!("the append-only file was written under {}", self.policy);
        Promise { spans, of_what_is_seen, reason }
    }

    fn stop_by(&mut self, signal: Signal) -> Result<bool> {
        let pid = i32::try_from(self.server.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.context("a process id")?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let refusals = self.refused_stops();
            kill_process(pid, signal)?;
            let sent = Instant::now();
            // While the first append-only file is written, a stop is refused.
            while self.refused_stops() == refusals {
                if !self.server.is_running() || sent.elapsed() > Duration::from_secs(2) {
                    return self.wait_for_end();
                }
                sleep(Duration::from_millis(20));
            }
        }
        bail!("the process refuses to stop:\n{}", self.server.log_tail())
    }

    fn refused_stops(&self) -> usize {
        self.server.log().matches("Writing initial AOF, can't exit").count()
    }

    fn shut_down(&mut self, command: &str, unpause: bool) -> Result<bool> {
        let begin = Instant::now();
        // A refusal is an answer; nothing else is.
        while let Some(reply) = self.ask_to_stop(command, unpause)? {
            // Beside a script that is slow, a stop is refused. Short ones may be on a busy machine.
            if reply.text().unwrap_or_default().starts_with(b"BUSY ") && begin.elapsed() < PATIENCE
            {
                sleep(Duration::from_millis(2));
                continue;
            }
            ensure!(is_refusal(&reply) || reply.is_error(), "{command} was answered {reply:?}");
            ensure!(
                self.failing_since.is_some() || self.refused_stops() > 0,
                "{command} was refused on a healthy disk: {reply:?}\n{}",
                self.server.log_tail()
            );
            return Ok(false);
        }
        self.wait_for_end()
    }

    /// The answer to a command that stops the process, if there is one.
    fn ask_to_stop(&mut self, command: &str, unpause: bool) -> Result<Option<Reply>> {
        let mut other = self.server.connect()?;
        let mut client = self.server.connect()?;
        client.send(&command.split(' ').collect::<Vec<_>>())?;
        if unpause {
            for _ in 0..20 {
                if other.call_text("CLIENT UNPAUSE").is_err() {
                    break;
                }
                sleep(Duration::from_millis(1));
            }
        }
        match client.receive() {
            Ok(tests::client::Received::Reply(reply)) => Ok(Some(reply)),
            _ => Ok(None),
        }
    }

    /// Whether the process has ended, as it was told to. It may refuse while the disk fails.
    fn wait_for_end(&mut self) -> Result<bool> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.server.ended()? {
                ensure!(status.success(), "the stop ended with {status}");
                return Ok(true);
            }
            if self.failing_since.is_some() && begin.elapsed() > Duration::from_secs(4) {
                return Ok(false);
            }
            sleep(Duration::from_millis(5));
        }
        bail!("the process does not stop:\n{}", self.server.log_tail())
    }
}

/// Takes all room except this many bytes.
fn fill(volume: &Volume, left: u64) -> Result<()> {
    let statistics = rustix::fs::statvfs(volume.path())?;
    let free = (statistics.f_bavail * statistics.f_frsize).saturating_sub(left);
    let ballast =
        fs::File::options().create(true).append(true).open(volume.path().join("ballast"))?;
    let size = ballast.metadata()?.len();
    rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), size, free.max(1))?;
    Ok(())
}
