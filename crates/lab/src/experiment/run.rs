//! One run: a target is started, filled, loaded, sampled, broken, and ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use base::clock;

use super::case::{Case, Followed, KneeRule, Load};
use super::events::{Events, Turn};
use super::figures::{self, Measured};
use super::knee;
use super::lag::Lag;
use super::running::{ActiveLoad, address};
use super::sampler::Sampler;
use crate::agent::Agents;
use crate::check::place::Place;
use crate::check::{Checker, sentinels};
use crate::load::{Pace, Work};
use crate::results::{Knee, LoadRecording, Run};
use crate::targets::Interrupt;
use crate::targets::server::Server;

/// How often the run checks its loads, its target and its events.
const TICK: Duration = Duration::from_millis(5);
/// How long a run may wait for an event that is not over when the loads are.
const EVENT_PATIENCE: Duration = Duration::from_secs(60);
/// A run that takes this many times as long as it should, plus a minute, is ended.
const OVERTIME: f64 = 4.0;

/// The parts of a run besides its case.
#[derive(Clone, Debug, Default)]
pub struct RunEnvironment {
    /// Ends it in order.
    pub interrupt: Interrupt,
    /// The agents that send the stepped load, or else the first, in place of this machine.
    pub agents: Option<Arc<Agents>>,
    /// Where the directories of targets are made; by default the system's directory for temporary
    /// files.
    pub directory: Option<PathBuf>,
}

/// What a target spent while loads ran.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    /// Processor seconds, if known.
    cpu_seconds: Option<f64>,
    /// Those of its store, if that is a process beside it.
    store_cpu_seconds: Option<f64>,
    /// How long it took, in seconds.
    seconds: f64,
}

/// A run in progress.
struct ActiveRun<'a> {
    case: &'a Case,
    server: &'a mut Server,
    interrupt: &'a Interrupt,
    agents: Option<Arc<Agents>>,
    run: Run,
}

/// Loads a target that is ready. The returned run has no target's name, point and repetition yet.
pub(crate) fn run_case(case: &Case, server: &mut Server, environment: &RunEnvironment) -> Run {
    let run = Run {
        target: String::new(),
        parameters: BTreeMap::new(),
        repetition: 0,
        started_unix_ms: clock::now_ms(),
        command: server.command_line(),
        loads: Vec::new(),
        samples: Vec::new(),
        events: Vec::new(),
        knee: None,
        check: None,
        figures: BTreeMap::new(),
        failure: None,
    };
    let (interrupt, agents) = (&environment.interrupt, environment.agents.clone());
    let mut stage = ActiveRun { case, server, interrupt, agents, run };
    if let Err(reason) = stage.run_phases() {
        stage.run.failure = Some(reason);
    } else if interrupt.is_set() {
        stage.run.failure = Some("interrupted".to_owned());
    }
    stage.run
}

impl ActiveRun<'_> {
    fn run_phases(&mut self) -> Result<(), String> {
        let place = self.place();
        if let Some(Place::Sentinels(all, _)) = &place {
            sentinels::wait_until_ready(all, self.server.endpoint(), self.interrupt)?;
        }
        self.prefill()?;
        self.warm_up()?;
        let zero = Instant::now();
        self.run.started_unix_ms = clock::now_ms();
        let endpoint = self.server.endpoint().clone();
        let pids = if self.case.sampling.is_of_store {
            vec![self.server.store_pid()]
        } else {
            self.server.pids()
        };
        let sampler = Sampler::start(zero, pids, endpoint.clone(), self.case.sampling.clone());
        let rule = self.case.check.as_ref();
        let checker = rule.zip(place).map(|(rule, place)| Checker::start(rule, place, zero));
        let lag = self.case.lag.as_ref().map(|rule| {
            Lag::start(rule, endpoint.clone(), self.server.endpoint_at(rule.replica).clone())
        });
        let turn = checker.as_ref().map_or_else(|| Arc::new(|| {}) as Turn, Checker::turner);
        let mut events = Events::new(self.case, zero, turn);
        let (spent, mut outcome) = match &self.case.knee {
            Some(rule) => self.find_knee(rule, &mut events),
            None => self.timed(|stage| stage.measure(&mut events, zero)),
        };
        let lag = lag.map(Lag::finish).transpose();
        self.wait_for_events(&mut events);
        // Loads that lost their server end too, a moment before it is seen to be gone.
        outcome = outcome.and(self.server.unexpected_end().map_or(Ok(()), Err));
        self.run.samples = sampler.finish();
        let (faults, emptied) = (events.faults().to_vec(), events.emptied());
        let (done, bursts) = events.finish(self.server);
        self.run.events = done;
        self.run.loads.extend(bursts);
        if let Some(checker) = checker {
            outcome = outcome.and(self.read_back(checker, &faults, &emptied));
        }
        let lag = match lag {
            Ok(seen) => seen,
            Err(reason) => {
                outcome = outcome.and(Err(reason));
                None
            }
        };
        let Spent { cpu_seconds, store_cpu_seconds, seconds } = spent;
        let measured = Measured { cpu_seconds, store_cpu_seconds, seconds, faults, lag };
        self.run.figures = figures::of(&self.run, &measured);
        outcome
    }

    /// Where the checker's clients write, if it takes part.
    fn place(&self) -> Option<Place> {
        let endpoints = |places: &[usize]| {
            places.iter().map(|place| self.server.endpoint_at(*place).clone()).collect()
        };
        Some(match &self.case.check.as_ref()?.followed {
            Followed::Store => Place::Fixed(self.server.endpoint().clone()),
            Followed::Sentinels(all) => Place::Sentinels(endpoints(all), self.server.links()),
            Followed::Servers(all) => Place::Servers(endpoints(all), AtomicUsize::new(0)),
            Followed::Cluster => {
                let nodes = self.server.cluster()?.nodes().to_vec();
                Place::Cluster(nodes, AtomicUsize::new(0))
            }
        })
    }

    /// Does something, and measures what the target spends meanwhile.
    fn timed<T>(&mut self, action: impl FnOnce(&mut Self) -> T) -> (Spent, T) {
        let begin = Instant::now();
        let before = (self.server.cpu_seconds(), self.server.store_cpu_seconds());
        let result = action(self);
        let after = (self.server.cpu_seconds(), self.server.store_cpu_seconds());
        let between = |(after, before)| after - before;
        let spent = Spent {
            cpu_seconds: after.0.zip(before.0).map(between),
            store_cpu_seconds: after.1.zip(before.1).map(between),
            seconds: begin.elapsed().as_secs_f64(),
        };
        (spent, result)
    }

    /// Lets the checker judge. A server that is gone for good is not waited for.
    fn read_back(
        &mut self,
        checker: Checker,
        faults: &[f64],
        emptied: &[f64],
    ) -> Result<(), String> {
        let mut ending = None;
        let leaves = checker.leaves();
        let check = checker.finish(faults, emptied, &mut || {
            ending = self.server.unexpected_end();
            self.interrupt.is_set() || (!leaves && self.server.is_gone())
        });
        match (check, ending) {
            (Ok(check), ending) => {
                self.run.check = Some(check);
                ending.map_or(Ok(()), Err)
            }
            (Err(_), Some(ending)) => Err(ending),
            (Err(error), None) => Err(format!("what was written cannot be read back: {error}")),
        }
    }

    /// Writes the initial data, one load after the other.
    fn prefill(&mut self) -> Result<(), String> {
        for load in &self.case.prefill {
            let recording = self.fly(vec![self.start(load, None)], &mut |_| {})?;
            let errors: u64 = recording.iter().map(|load| load.recording.errors()).sum();
            if errors > 0 {
                let first = recording.iter().flat_map(|load| &load.recording.operations);
                let first = first.flat_map(|operation| operation.errors.keys()).next();
                let first = first.map_or("", String::as_str);
                return Err(format!("prefill '{}' met {errors} errors ({first})", load.name));
            }
            if self.interrupt.is_set() {
                return Err("interrupted".to_owned());
            }
            // Otherwise half of the data would be measured as if it were all.
            if let Some(why) = recording.iter().find_map(|one| one.recording.interrupted.clone()) {
                return Err(format!("prefill '{}' ended early: {why}", load.name));
            }
            let sent: u64 = recording.iter().map(|one| one.recording.requests()).sum();
            if let Some(wanted) = load.plan.requests.filter(|wanted| sent < *wanted) {
                let name = &load.name;
                return Err(format!("prefill '{name}' had only {sent} of {wanted} requests"));
            }
        }
        if self.case.prefill.is_empty() {
            return Ok(());
        }
        // Otherwise the first reads would be those of data that is not there yet.
        self.server.wait_for_replicas(self.interrupt)
    }

    /// The loads that are to warm up, all at once and without being recorded.
    fn warm_up(&mut self) -> Result<(), String> {
        let loads = self.case.loads.iter().filter(|load| load.warmup_seconds > 0.0);
        let active_loads: Vec<ActiveLoad> = loads
            .filter(|load| load.start_seconds == 0.0)
            .map(|load| {
                let mut load = load.clone();
                load.plan.seconds = Some(load.warmup_seconds);
                load.plan.requests = None;
                self.start(&load, None)
            })
            .collect();
        self.fly(active_loads, &mut |_| {}).map(drop)
    }

    fn measure(&mut self, events: &mut Events, zero: Instant) -> Result<(), String> {
        let active_loads: Vec<ActiveLoad> =
            self.case.loads.iter().map(|load| self.start(load, None)).collect();
        let check = self.case.check.as_ref().and_then(|check| check.seconds).unwrap_or(0.0);
        let recordings = self.fly(active_loads, &mut |server| events.tick(server));
        self.run.loads = recordings?;
        // The checker may want to go on after the loads.
        while zero.elapsed().as_secs_f64() < check && !self.interrupt.is_set() {
            events.tick(self.server);
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    /// Returns what was spent at the largest good rate, to which the recordings belong.
    fn find_knee(&mut self, rule: &KneeRule, events: &mut Events) -> (Spent, Result<(), String>) {
        let mut failure = None;
        let mut best: Option<(f64, Spent, Vec<LoadRecording>)> = None;
        let found: Knee = knee::find(rule, |rate| {
            if self.interrupt.is_set() {
                return None;
            }
            let active_loads = self.case.loads.iter().enumerate();
            let active_loads = active_loads
                .map(|(at, load)| self.start(load, Some((rule, rate)).filter(|_| at == rule.load)));
            let active_loads: Vec<ActiveLoad> = active_loads.collect();
            let (spent, flown) =
                self.timed(|stage| stage.fly(active_loads, &mut |server| events.tick(server)));
            let recordings = match flown {
                Ok(recordings) => recordings,
                Err(reason) => {
                    failure = Some(reason);
                    return None;
                }
            };
            let step = knee::step(rule, rate, &recordings.get(rule.load)?.recording);
            if step.good && best.as_ref().is_none_or(|(best, ..)| *best < rate) {
                best = Some((rate, spent, recordings));
            }
            Some(step)
        });
        self.run.knee = Some(found);
        // The report shows the latencies at the largest good rate.
        let spent = best.map(|(_, spent, recordings)| {
            self.run.loads = recordings;
            spent
        });
        (spent.unwrap_or_default(), failure.map_or(Ok(()), Err))
    }

    fn start(&self, load: &Load, step: Option<(&KneeRule, f64)>) -> ActiveLoad {
        let mut plan = load.plan.clone();
        let endpoint = match plan.work {
            Work::Resp(_) => self.server.endpoint_of(load.to),
            Work::Http(_) => self.server.web_of(load.to),
        };
        plan.address = address(endpoint);
        let place = |member: &usize| {
            let endpoint = self.server.web_of(Some(*member));
            format!("{}:{}", endpoint.host, endpoint.port)
        };
        plan.members = load.members.iter().map(place).collect();
        let mut delay = load.start_seconds;
        if let Some(rule) = &self.case.knee
            && self.case.loads.iter().any(|measured| std::ptr::eq(measured, load))
        {
            // All loads of a step last as long as the step.
            plan.seconds = Some(rule.seconds);
            plan.requests = None;
            delay = 0.0;
        }
        if let Some((_, rate)) = step {
            let schedule = match plan.pace {
                Pace::Open { schedule, .. } => schedule,
                Pace::Closed { .. } => crate::load::Schedule::Poisson,
            };
            plan.pace = Pace::Open { rate, schedule };
        }
        let agents = self.agents.clone().filter(|_| self.is_main(load));
        // A load that is written before another one is what the experiment is about: it does not
        // wait for that one, nor for an event's burst, where they share a processor.
        let place = self.case.loads.iter().position(|other| other.name == load.name);
        let priority = place.map_or(1, |place| (self.case.loads.len() - place) as i32 + 1);
        ActiveLoad::start(load.name.clone(), plan, load.cpus.clone(), priority, delay, agents)
    }

    /// Whether this is the load that agents send: they carry out one at a time.
    fn is_main(&self, load: &Load) -> bool {
        let main = self.case.knee.as_ref().map_or(0, |knee| knee.load);
        self.case.loads.get(main).is_some_and(|main| main.name == load.name)
    }

    /// Waits for loads, and looks after everything meanwhile.
    fn fly(
        &mut self,
        active_loads: Vec<ActiveLoad>,
        meanwhile: &mut dyn FnMut(&mut Server),
    ) -> Result<Vec<LoadRecording>, String> {
        let start = Instant::now();
        let longest = OVERTIME * self.case.seconds() + 60.0;
        let mut failure = None;
        while !active_loads.iter().all(ActiveLoad::is_finished) {
            meanwhile(self.server);
            let reason = self.reason_to_end(&active_loads, start.elapsed().as_secs_f64() > longest);
            if reason.is_some() || self.interrupt.is_set() {
                failure = failure.or(reason);
                active_loads.iter().for_each(ActiveLoad::stop);
            }
            std::thread::sleep(TICK);
        }
        let mut loads = Vec::new();
        for flown in active_loads.into_iter().map(ActiveLoad::finish) {
            match flown {
                Ok(load) => loads.push(load),
                Err(reason) => failure = failure.or(Some(reason)),
            }
        }
        match failure {
            // Recordings until then, and of other loads, are worth keeping.
            Some(reason) => {
                self.run.loads = loads;
                Err(reason)
            }
            None => Ok(loads),
        }
    }

    fn reason_to_end(&mut self, active_loads: &[ActiveLoad], is_late: bool) -> Option<String> {
        if let Some(reason) = self.server.unexpected_end() {
            return Some(reason);
        }
        let errors: u64 =
            active_loads.iter().map(|active_load| active_load.progress().errors).sum();
        match self.case.stop.max_errors {
            Some(most) if errors > most => {
                Some(format!("{errors} errors, more than the {most} that the stop rule allows"))
            }
            _ => is_late.then(|| "the run took far longer than it should".to_owned()),
        }
    }

    /// A save may take longer than the load, a killed server may be on its way back.
    fn wait_for_events(&mut self, events: &mut Events) {
        let start = Instant::now();
        while events.is_busy() && start.elapsed() < EVENT_PATIENCE && !self.interrupt.is_set() {
            events.tick(self.server);
            if !self.server.is_gone() && self.server.unexpected_end().is_some() {
                break;
            }
            std::thread::sleep(TICK);
        }
    }
}
