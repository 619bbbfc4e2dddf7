//! All runs of an experiment. Targets take turns, so a machine that becomes slower or faster
//! meanwhile affects all of them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::case::Case;
use super::definition::{Definition, Point, RunContext};
use super::progress::{OVERHEAD_SECONDS, Progress};
use super::run::{self, RunEnvironment};
use crate::redact::Redactor;
use crate::results::{ExperimentResult, Run, Skipped, TargetInfo};
use crate::targets::Origin;
use crate::targets::cpus;
use crate::targets::directory::Directory;
use crate::targets::process::free_ports;
use crate::targets::server::{Server, StartError};

/// How often a start is tried: another process may take the port that was free.
const START_ATTEMPTS: u32 = 3;
/// A target that has failed to start in this many runs, and never did start, is not tried further.
const MOST_FAILED_STARTS: usize = 3;

/// One experiment while it runs.
struct Suite<'a> {
    definition: &'a Definition,
    environment: &'a RunEnvironment,
    progress: &'a mut Progress,
    /// By target: why it is not measured, or no longer measured.
    left_out: BTreeMap<usize, String>,
    infos: BTreeMap<usize, TargetInfo>,
    runs: Vec<Run>,
}

/// Runs an experiment. When the lab is told to end, returns the measurements up to then.
pub fn run_experiment(
    definition: &Definition,
    environment: &RunEnvironment,
    progress: &mut Progress,
) -> ExperimentResult {
    let mut suite = Suite {
        definition,
        environment,
        progress,
        left_out: BTreeMap::new(),
        infos: BTreeMap::new(),
        runs: Vec::new(),
    };
    suite.run_all_points();
    suite.result()
}

/// The approximate time that an experiment takes on this machine, in seconds.
pub fn estimate_seconds(definition: &Definition) -> f64 {
    let context = no_context();
    let present = |target: &usize| {
        let point = definition.points().into_iter().next().unwrap_or_default();
        let case = definition.case(*target, &point, &context);
        case.is_ok_and(|case| !matches!(case.target.origin, Origin::Missing(_)))
    };
    let targets: Vec<usize> = (0..definition.targets().count()).filter(present).collect();
    let runs = measured_points(definition, &targets) * definition.repetitions() as usize;
    runs as f64 * (seconds_of_a_run(definition) + OVERHEAD_SECONDS)
}

/// How many points these targets have in all.
fn measured_points(definition: &Definition, targets: &[usize]) -> usize {
    let (points, context) = (definition.points(), no_context());
    let measured = targets.iter().flat_map(|target| {
        let at = |point: &&Point| definition.is_measured(*target, point, &context);
        points.iter().filter(at)
    });
    measured.count()
}

fn seconds_of_a_run(definition: &Definition) -> f64 {
    let points = definition.points();
    let cases = points.iter().filter_map(|point| definition.case(0, point, &no_context()).ok());
    let seconds: f64 = cases.map(|case| case.seconds()).sum();
    seconds / points.len().max(1) as f64
}

/// For questions that do not depend on where a target runs.
fn no_context() -> RunContext {
    RunContext { ports: Vec::new(), directory: std::env::temp_dir(), repetition: 0 }
}

impl Suite<'_> {
    fn run_all_points(&mut self) {
        let start = Instant::now();
        let points = self.definition.points();
        let targets = self.definition.targets().count();
        self.leave_out_missing(targets);
        let present: Vec<usize> =
            (0..targets).filter(|target| !self.left_out.contains_key(target)).collect();
        let mut left = measured_points(self.definition, &present);
        left *= self.definition.repetitions() as usize;
        self.progress.begin(self.definition, left, seconds_of_a_run(self.definition));
        for (name, reason) in self
            .definition
            .targets()
            .zip(0..)
            .filter_map(|(name, target)| Some((name, self.left_out.get(&target)?)))
        {
            self.progress.skip(name, reason);
        }
        self.say_what_agents_leave_out();
        for repetition in 0..self.definition.repetitions() {
            for point in &points {
                // The first target finds the machine as the others left it, so targets take turns
                // to be first.
                let forward = repetition.is_multiple_of(2);
                for turn in 0..targets {
                    let target = if forward { turn } else { targets - 1 - turn };
                    let context = no_context();
                    if self.left_out.contains_key(&target)
                        || !self.definition.is_measured(target, point, &context)
                    {
                        continue;
                    }
                    let took = start.elapsed().as_secs_f64();
                    if self.environment.interrupt.is_set() || self.is_over(target, point, took) {
                        return;
                    }
                    self.run_one(target, point, repetition);
                    let left_out = self.left_out.get(&target).cloned();
                    self.progress.advance(left_out.as_deref());
                }
            }
        }
    }

    /// Processors are those of this machine, and agents are on others.
    fn say_what_agents_leave_out(&self) {
        let Some(point) = self.definition.points().into_iter().next() else { return };
        let Ok(case) = self.definition.case(0, &point, &no_context()) else { return };
        let main = case.knee.as_ref().map_or(0, |knee| knee.load);
        if self.environment.agents.is_some()
            && let Some(load) = case.loads.get(main).filter(|load| !load.cpus.is_empty())
        {
            let name = &load.name;
            self.progress.note(&format!("agents send '{name}': its cpus mean nothing to them"));
        }
    }

    /// A server that is not on this machine is not looked for again and again.
    fn leave_out_missing(&mut self, targets: usize) {
        let context = no_context();
        let Some(point) = self.definition.points().into_iter().next() else { return };
        for target in 0..targets {
            if let Ok(Case { target: spec, .. }) = self.definition.case(target, &point, &context)
                && let Origin::Missing(reason) = spec.origin
            {
                self.left_out.insert(target, reason);
            }
        }
    }

    fn is_over(&mut self, target: usize, point: &Point, took: f64) -> bool {
        let context = no_context();
        let rule = self.definition.case(target, point, &context).map(|case| case.stop);
        let Some(most) = rule.ok().and_then(|rule| rule.max_seconds) else { return false };
        if took > most {
            self.progress.note(&format!("the experiment has taken its {most} seconds"));
        }
        took > most
    }

    fn run_one(&mut self, target: usize, point: &Point, repetition: u32) {
        let name = self.definition.targets().nth(target).unwrap_or_default().to_owned();
        self.progress.start(&name, point, repetition);
        let mut result = self.attempt(target, point, repetition);
        for _ in 1..START_ATTEMPTS {
            let is_taken = |error: &StartError| error.to_string().contains("in use");
            if !result.as_ref().is_err_and(is_taken) {
                break;
            }
            result = self.attempt(target, point, repetition);
        }
        let has_started = self.infos.contains_key(&target);
        match result {
            Ok(mut run) => {
                run.target = name;
                run.parameters.clone_from(point);
                run.repetition = repetition;
                self.apply_stop_rule(target, point, &run);
                self.progress.end(&run);
                self.runs.push(run);
            }
            Err(StartError::Interrupted) => {}
            Err(StartError::Unfit(reason)) if !has_started => {
                self.progress.skip(&name, &reason);
                self.left_out.insert(target, reason);
            }
            Err(error) => {
                let reason = error.to_string();
                let run = failed(name.clone(), point, repetition, reason.clone());
                self.progress.end(&run);
                self.runs.push(run);
                let failures = self.runs.iter().filter(|run| run.target == name).count();
                if !has_started && failures >= MOST_FAILED_STARTS {
                    self.progress.skip(&name, &reason);
                    self.left_out.insert(target, reason);
                }
            }
        }
    }

    fn attempt(
        &mut self,
        target: usize,
        point: &Point,
        repetition: u32,
    ) -> Result<Run, StartError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            StartError::Failed(format!("{what}: {error}"))
        };
        let parent = self.environment.directory.as_deref();
        let directory = Directory::fresh(parent).map_err(|error| failed("no directory", &error))?;
        let ports = free_ports(self.definition.port_count(target));
        let ports = ports.map_err(|error| failed("no port", &error))?;
        let context = RunContext { ports, directory: directory.path().to_owned(), repetition };
        let case = self.definition.case(target, point, &context);
        let case = case.map_err(|error| StartError::Unfit(error.to_string()))?;
        let mut server = Server::start(&case.target, directory, &self.environment.interrupt)?;
        self.infos.entry(target).or_insert_with(|| TargetInfo {
            name: case.target.name.clone(),
            version: server.version(),
            command: server.command_line(),
            cpus: cpus::format(&case.target.cpus),
            limits: server.limits(),
        });
        let mut run = run::run_case(&case, &mut server, self.environment);
        // Warm-ups are separate loads, which are not recorded: only the case knows them.
        for load in &mut run.loads {
            let of = case.loads.iter().find(|of| of.name == load.name && of.start_seconds == 0.0);
            load.recording.plan.warmup_seconds = of.map_or(0.0, |of| of.warmup_seconds);
        }
        server.shut_down();
        Ok(run)
    }

    fn apply_stop_rule(&mut self, target: usize, point: &Point, run: &Run) {
        let context = no_context();
        let rule = self.definition.case(target, point, &context).map(|case| case.stop);
        let most = rule.ok().and_then(|rule| rule.max_p99_ms);
        let Some(most) = most else { return };
        let p99s = run.loads.iter().map(|load| load.recording.response().quantile_ms(0.99));
        let p99 = p99s.fold(0.0, f64::max);
        if p99 > most {
            let reason = format!(
                "stopped after {}: p99 of {p99:.1} ms, more than the {most} ms of the stop rule",
                super::progress::point_in_words(point)
            );
            self.left_out.insert(target, reason);
        }
    }

    /// The secrets in the file, with everything filled in: they may come from anywhere in it.
    fn secrets(&self) -> Redactor {
        let mut redactor = Redactor::default();
        let context = no_context();
        for point in self.definition.points() {
            for target in 0..self.definition.targets().count() {
                if let Ok(case) = self.definition.case(target, &point, &context) {
                    case.learn_secrets(&mut redactor);
                }
            }
        }
        redactor
    }

    fn result(self) -> ExperimentResult {
        let mut secrets = self.secrets();
        let file = self.definition.file();
        let names: Vec<&str> = self.definition.targets().collect();
        let skipped = self.left_out.iter().map(|(target, reason)| Skipped {
            name: names.get(*target).copied().unwrap_or_default().to_owned(),
            reason: reason.clone(),
        });
        let mut result = ExperimentResult {
            name: file.name.get_ref().clone(),
            title: file.title.clone(),
            question: file.question.clone(),
            answers: file.answers.clone(),
            file: self.definition.text().to_owned(),
            matrix: self.definition.matrix().to_vec(),
            skipped: skipped.collect(),
            targets: self.infos.into_values().collect(),
            runs: self.runs,
            views: file.views().to_vec(),
            columns: file.columns().to_vec(),
        };
        secrets.experiment(&mut result);
        result
    }
}

/// A run that never began.
fn failed(target: String, point: &Point, repetition: u32, reason: String) -> Run {
    Run {
        target,
        parameters: point.clone(),
        repetition,
        started_unix_ms: base::clock::now_ms(),
        command: Vec::new(),
        loads: Vec::new(),
        samples: Vec::new(),
        events: Vec::new(),
        knee: None,
        check: None,
        figures: BTreeMap::new(),
        failure: Some(reason),
    }
}
