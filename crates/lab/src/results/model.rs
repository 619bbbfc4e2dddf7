//! The model of a results file. A report shows nothing else, so reports and comparisons can be made
//! again from the file alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Recording;

/// All that one `lab run` saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of this format: 1.
    pub format: u32,
    /// When the first experiment began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// Where it ran.
    pub machine: Machine,
    /// `quick` or `full`.
    pub size: String,
    /// One per experiment, in the order they ran.
    pub experiments: Vec<ExperimentResult>,
}

impl Results {
    /// Adds what was measured later, in place of what there was of the same experiments.
    ///
    /// # Errors
    /// Another machine saw it.
    pub fn join(&mut self, later: Results) -> Result<(), String> {
        if self.machine != later.machine {
            return Err("another machine measured it than what comes before".to_owned());
        }
        self.started_unix_ms = later.started_unix_ms;
        if self.size != later.size {
            self.size = format!("{} and {}", self.size, later.size);
        }
        for experiment in later.experiments {
            match self.experiments.iter_mut().find(|known| known.name == experiment.name) {
                Some(known) => *known = experiment,
                None => self.experiments.push(experiment),
            }
        }
        Ok(())
    }
}

/// The machine that everything ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that may be used.
    pub processors: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel's name and release.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// The kind of the file system where servers kept their data; empty: unknown.
    #[serde(default)]
    pub file_system: String,
}

/// What one experiment saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// `persistence`.
    pub name: String,
    /// One line.
    pub title: String,
    /// The question that it answers, in a sentence or two.
    pub question: String,
    /// The published experiment it answers: `E2`.
    pub answers: Option<String>,
    /// The experiment's file, as it ran.
    pub file: String,
    /// The parameters that were swept, with the values of each in order.
    pub matrix: Vec<(String, Vec<String>)>,
    /// Who was measured, in the order of the file; the first is what the others are compared with.
    pub targets: Vec<TargetInfo>,
    /// Who was named and could not be measured.
    pub skipped: Vec<Skipped>,
    /// Every single run, in the order they took place.
    pub runs: Vec<Run>,
    /// The views that the file asks for, in order; empty: those that fit the data.
    pub views: Vec<String>,
    /// The figures that the file wants side by side; empty: the most important one alone.
    #[serde(default)]
    pub columns: Vec<String>,
}

/// A server that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// Its name in the file.
    pub name: String,
    /// What it says of itself: `redis-server 7.0.15`.
    pub version: String,
    /// The exact command that started it; empty for one that was running.
    pub command: Vec<String>,
    /// The processors it was bound to, as of taskset; empty: any.
    pub cpus: String,
    /// What its processes got less of than the machine has; empty: nothing.
    #[serde(default)]
    pub limits: String,
}

/// A target that was named and not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name in the file.
    pub name: String,
    /// Why, for a reader.
    pub reason: String,
}

/// One run: one target, one point of the matrix, one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The target's name.
    pub target: String,
    /// The point of the matrix: a value per swept parameter.
    pub parameters: BTreeMap<String, String>,
    /// From 0.
    pub repetition: u32,
    /// When it began, in milliseconds of Unix time; the zero of all times below.
    pub started_unix_ms: u64,
    /// The exact command that started the target for this run.
    pub command: Vec<String>,
    /// What each load saw.
    pub loads: Vec<LoadRecording>,
    /// The target, some times a second.
    pub samples: Vec<Sample>,
    /// What was done to the target.
    pub events: Vec<Event>,
    /// What the knee finder found, when it looked.
    pub knee: Option<Knee>,
    /// What the checker found, when it looked.
    pub check: Option<Check>,
    /// Single figures: `server_cpu_us_per_request`, `peak_memory_ratio`, ...; names end in their
    /// unit.
    #[serde(with = "super::finite")]
    pub figures: BTreeMap<String, f64>,
    /// Why it failed, when it did.
    pub failure: Option<String>,
}

/// What one of the loads of a run saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRecording {
    /// The load's name in the file.
    pub name: String,
    /// What it saw. Its start says how it lies to the others.
    pub recording: Recording,
    /// Who sent it in place of the lab's own machine, and how well their clocks were known.
    #[serde(default)]
    pub agents: Vec<AgentClock>,
}

/// A machine that sent a share of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentClock {
    /// `host:port`.
    pub address: String,
    /// By how many milliseconds its clock was ahead of the lab's.
    pub ahead_ms: f64,
    /// By how many milliseconds that may be wrong: half of the shortest round trip.
    pub bound_ms: f64,
}

/// The target's process tree at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds from the run's start.
    pub at: f64,
    /// User processor time since the process began, in seconds.
    pub cpu_user_seconds: f64,
    /// System processor time since the process began, in seconds.
    pub cpu_system_seconds: f64,
    /// Resident bytes, summed over the tree: shared pages count in each process.
    pub rss_bytes: u64,
    /// Proportional bytes: a page shared by two counts half in each.
    pub pss_bytes: u64,
    /// Fields of INFO that were asked for.
    #[serde(with = "super::finite")]
    pub info: BTreeMap<String, f64>,
}

/// Something that was done to the target on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds from the run's start.
    pub at: f64,
    /// When it was over, for one that lasts: a save, a restart.
    pub until: Option<f64>,
    /// `BGSAVE`, `kill -9`, ...
    pub name: String,
    /// What came of it: a reply, an error, a process id; of what was not done, why.
    pub outcome: String,
    /// Whether it was done at all.
    #[serde(default = "yes")]
    pub done: bool,
    /// It lasts and was not over when the run was: a stop without a continuation, a server that did
    /// not come back, a save.
    #[serde(default)]
    pub unfinished: bool,
}

impl Event {
    /// An event that was done, and is over if it lasts.
    pub fn new(at: f64, until: Option<f64>, name: impl Into<String>, outcome: &str) -> Self {
        Event {
            at,
            until,
            name: name.into(),
            outcome: outcome.to_owned(),
            done: true,
            unfinished: false,
        }
    }

    /// From when until when it lasted, if it did.
    pub fn span(&self) -> Option<(f64, f64)> {
        let until = self.until.or(self.unfinished.then_some(f64::INFINITY))?;
        self.done.then_some((self.at, until))
    }
}

/// Files of before say nothing of what was done.
fn yes() -> bool {
    true
}

/// The highest rate that a target keeps up with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The bound on the percentile below, in milliseconds.
    pub limit_ms: f64,
    /// The share of requests that must stay below the limit: 0.99.
    pub quantile: f64,
    /// Each rate that was tried, in the order of trying.
    pub steps: Vec<KneeStep>,
    /// The largest rate that was good, in requests a second.
    pub best_rate: Option<f64>,
    /// The search ended at a rate that the generator could not offer: the server keeps up with at
    /// least the best rate, and nobody knows how much more.
    #[serde(default)]
    pub limited_by_generator: bool,
    /// The search ended before any rate was bad: it ran out of steps, or was interrupted.
    #[serde(default)]
    pub ended_early: bool,
}

impl Knee {
    /// Whether the server may keep up with more than the best rate.
    pub fn is_lower_bound(&self) -> bool {
        self.limited_by_generator || self.ended_early
    }
}

/// One rate that the knee finder tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeStep {
    /// What was offered, in requests a second.
    pub offered_rate: f64,
    /// What was answered, in requests a second.
    pub answered_rate: f64,
    /// Response times in milliseconds.
    pub p50_ms: f64,
    /// Response times in milliseconds.
    pub p99_ms: f64,
    /// Response times in milliseconds.
    pub p999_ms: f64,
    /// Errors.
    pub errors: u64,
    /// Whether it was within the limit, without errors, and on schedule.
    pub good: bool,
    /// Why the generator could not offer it, if so.
    pub invalid: Vec<String>,
}

/// What became of what was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes that were sent and neither acknowledged nor refused.
    pub unknown: u64,
    /// Acknowledged writes that were gone in the end.
    pub lost: u64,
    /// How long before the fault the oldest of the lost ones was acknowledged, in seconds.
    pub oldest_lost_seconds: Option<f64>,
    /// Reads that showed a value older than one acknowledged before.
    pub stale_reads: u64,
    /// Values that nobody wrote.
    pub wrong: u64,
    /// From the fault until 90 % of the throughput before it was reached again, in seconds.
    pub recovery_seconds: Option<f64>,
    /// Writes that were answered with an error.
    #[serde(default)]
    pub refused: u64,
    /// The longest time without an acknowledged write, in seconds.
    #[serde(default)]
    pub longest_gap_seconds: Option<f64>,
    /// The median, over the faults, of the longest time without an acknowledged write after each.
    #[serde(default)]
    pub usual_gap_seconds: Option<f64>,
    /// Some of the losses, for a reader.
    pub examples: Vec<String>,
}
