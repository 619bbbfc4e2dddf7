//! One point of an experiment with everything filled in: all that a run needs, as plain data.

use std::time::Duration;

use crate::load::{Plan, Work};
use crate::redact::{self, Redactor};
use crate::targets::{Origin, Target};

/// One target at one point of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The target to measure.
    pub target: Target,
    /// Whether the target is measured at this point at all.
    pub is_measured: bool,
    /// The loads that run before, one after the other.
    pub prefill: Vec<Load>,
    /// The measured loads, all at the same time.
    pub loads: Vec<Load>,
    /// The events at the target meanwhile, by time.
    pub events: Vec<Event>,
    /// What is read from the target meanwhile.
    pub sampling: Sampling,
    /// When to give up.
    pub stop: StopRule,
    /// How the largest good rate is searched, if it is.
    pub knee: Option<KneeRule>,
    /// How writes are checked, if they are.
    pub check: Option<CheckRule>,
    /// How the lag of a replica is measured, if it is.
    pub lag: Option<LagRule>,
}

/// A load and when it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Its name in tables.
    pub name: String,
    /// What it sends; the address is the target's.
    pub plan: Plan,
    /// Seconds of the same load before anything is recorded.
    pub warmup_seconds: f64,
    /// The processors that its threads may use; empty: any.
    pub cpus: Vec<usize>,
    /// Begins this many seconds after the run.
    pub start_seconds: f64,
    /// The process beside the target that it goes to, if it does not go to the target.
    pub to: Option<usize>,
    /// The places of processes that serve the same as the one that it goes to.
    pub members: Vec<usize>,
}

/// Something that is done to the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds after the loads began.
    pub at: f64,
    /// The action.
    pub action: Action,
    /// The process that is killed, stopped or continued, by its place; none: the store, or in a
    /// cluster the primary of slot 0.
    pub of: Option<usize>,
}

/// An action on a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A command over a connection of its own.
    Command(Vec<String>),
    /// SIGKILL. The machine keeps running, so this says nothing about a loss of power.
    Kill {
        /// It is started again this many seconds later.
        restart_after: Option<f64>,
    },
    /// SIGSTOP.
    Stop {
        /// SIGCONT follows this many seconds later.
        seconds: Option<f64>,
    },
    /// SIGCONT.
    Continue,
    /// Others do not reach the store over its link, while its clients do.
    Cut {
        /// The link is mended this many seconds later.
        seconds: Option<f64>,
    },
    /// All data of the store moves to the target itself.
    Move,
    /// Slots of a cluster, from slot 0 on, move to another shard.
    MoveSlots(u16),
    /// A backup is taken of the store.
    Backup,
    /// Many connections that all come at once, ask once, and stay for a while.
    ConnectionStorm {
        /// How many.
        connections: usize,
        /// How long they stay.
        seconds: f64,
    },
    /// A process beside the target becomes its replica.
    Attach {
        /// Which process.
        replica: usize,
        /// Its name.
        name: String,
    },
    /// A load on a single key.
    HotKeyBurst(Box<Load>),
}

/// What is read from a target while it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Seconds between two samples.
    pub every: f64,
    /// Fields of INFO whose values are numbers.
    pub info: Vec<String>,
    /// Processor time and memory are those of the store alone.
    pub is_of_store: bool,
}

/// When to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopRule {
    /// A run ends after more errors than this.
    pub max_errors: Option<u64>,
    /// A target whose 99th percentile was longer than this, in milliseconds, is not measured
    /// further.
    pub max_p99_ms: Option<f64>,
    /// No further run begins after the experiment has taken this many seconds.
    pub max_seconds: Option<f64>,
}

/// How the largest good rate is looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct KneeRule {
    /// Which of the loads is stepped.
    pub load: usize,
    /// The longest response time that is good, in milliseconds.
    pub limit_ms: f64,
    /// The share of requests that must be within the limit.
    pub quantile: f64,
    /// The first rate, in requests a second.
    pub start: f64,
    /// By how much each rate is larger than the last.
    pub factor: f64,
    /// How long a rate is tried.
    pub seconds: f64,
    /// How often the interval between good and bad is halved.
    pub bisections: u32,
}

/// How writes are checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRule {
    /// Connections that write.
    pub writers: usize,
    /// Connections that read.
    pub readers: usize,
    /// Keys of each writer.
    pub keys: usize,
    /// How long it writes, when no load decides that.
    pub seconds: Option<f64>,
    /// After so many seconds without a reply a connection is given up.
    pub timeout: f64,
    /// Where clients write.
    pub followed: Followed,
    /// The words with which a writer's connection begins, if any.
    pub greeting: Vec<String>,
    /// The words that follow each write, if any: it counts if the answer is 1 or more.
    pub confirmation: Vec<String>,
}

/// Where clients of the checker write. Processes are named by their places: those beside the target
/// come first, and then the target itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// At the store.
    Store,
    /// Where these Sentinels say.
    Sentinels(Vec<usize>),
    /// At the first of these that does not refuse.
    Servers(Vec<usize>),
    /// At the node of a cluster that has slot 0.
    Cluster,
}

/// How the lag of a replica is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LagRule {
    /// The place of the replica; the store is its primary.
    pub replica: usize,
    /// The time from one marker to the next.
    pub every: Duration,
    /// The processors of the thread that looks; empty: any.
    pub cpus: Vec<usize>,
}

impl Case {
    /// Adds its secrets, which must not be published.
    pub(crate) fn learn_secrets(&self, redactor: &mut Redactor) {
        for process in self.target.beside.iter().chain([&self.target]) {
            process.password.iter().for_each(|password| redactor.learn(password));
            if let Origin::Command { arguments, .. } = &process.origin {
                redactor.learn_words(arguments);
            }
            for (name, value) in &process.environment {
                if redact::is_secret_name(name) {
                    redactor.learn(value);
                }
            }
            for text in process.files.values() {
                redactor.text(text);
            }
        }
        for load in self.prefill.iter().chain(&self.loads) {
            redactor.learn_plan(&load.plan);
        }
        if let Some(check) = &self.check {
            redactor.learn_words(&check.greeting);
            redactor.learn_words(&check.confirmation);
        }
        for event in &self.events {
            match &event.action {
                Action::Command(words) => redactor.learn_words(words),
                Action::HotKeyBurst(load) => redactor.learn_plan(&load.plan),
                _ => {}
            }
        }
    }

    /// How long a run takes at most, in seconds, without starting and stopping the target; an
    /// estimate when a load is bounded by its requests.
    pub fn seconds(&self) -> f64 {
        const USUAL_RATE: f64 = 50_000.0;
        const HIGHEST_RATE: f64 = 1_000_000.0;
        const BYTES_PER_SECOND: f64 = 300e6;
        let by_requests = |load: &Load| {
            let rate = (USUAL_RATE * load.plan.pipeline as f64).min(HIGHEST_RATE);
            let seconds_each = (1.0 / rate).max(data_bytes(&load.plan) / BYTES_PER_SECOND);
            load.plan.requests.unwrap_or(0) as f64 * seconds_each
        };
        let length = |load: &Load| load.plan.seconds.unwrap_or_else(|| by_requests(load));
        let prefill: f64 = self.prefill.iter().map(length).sum();
        let warmup = self.loads.iter().map(|load| load.warmup_seconds).fold(0.0, f64::max);
        let measured = match &self.knee {
            // From the first rate up to a typical one, then the halvings.
            Some(knee) => knee.seconds * (6.0 + f64::from(knee.bisections)),
            None => {
                let loads = self.loads.iter().map(|load| load.start_seconds + length(load));
                loads.chain(self.check.as_ref().and_then(|check| check.seconds)).fold(0.0, f64::max)
            }
        };
        prefill + warmup + measured
    }
}

/// How many bytes of values a request carries, on average.
fn data_bytes(plan: &Plan) -> f64 {
    let Work::Resp(work) = &plan.work else { return 0.0 };
    let weights: f64 = work.sizes.iter().map(|size| size.weight).sum();
    let bytes: f64 = work.sizes.iter().map(|size| size.bytes as f64 * size.weight).sum();
    let words = work.operations.iter().flat_map(|operation| &operation.arguments);
    let values = words.filter(|word| word.contains("__data__")).count();
    values as f64 / work.operations.len().max(1) as f64 * bytes / weights.max(f64::MIN_POSITIVE)
}
