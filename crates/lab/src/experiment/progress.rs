//! What a person sees while experiments run: a line per run, and an estimate of the remaining time.

use std::io::{self, Write};
use std::time::Instant;

use super::definition::{Definition, Point};
use crate::record::Latency;
use crate::report::grouped;
use crate::results::Run;

/// The time to start and end a server besides the load, in seconds: a first guess.
pub(super) const OVERHEAD_SECONDS: f64 = 0.15;

/// Prints to standard error.
#[derive(Debug, Default)]
pub struct Progress {
    experiment: String,
    runs: usize,
    done: usize,
    /// The estimated time for the experiments after this one, in seconds.
    later_seconds: f64,
    /// The estimate for one run of this experiment.
    run_seconds: f64,
    began: Option<Instant>,
    line: String,
    repetitions: u32,
}

impl Progress {
    /// Sets the estimated time for the experiments after the one that begins.
    pub fn set_later(&mut self, seconds: f64) {
        self.later_seconds = seconds;
    }

    /// An experiment begins.
    pub fn begin(&mut self, definition: &Definition, runs: usize, seconds_of_a_run: f64) {
        definition.name().clone_into(&mut self.experiment);
        (self.runs, self.done) = (runs, 0);
        self.repetitions = definition.repetitions();
        self.run_seconds = seconds_of_a_run + OVERHEAD_SECONDS;
        self.began = Some(Instant::now());
        let title = &definition.file().title;
        let minutes = in_words(self.left_seconds());
        say(&format!("\n{}: {title}\n  {runs} runs, about {minutes}\n", self.experiment));
    }

    /// A target cannot be measured.
    pub fn skip(&self, target: &str, reason: &str) {
        say(&format!("  {target} is skipped: {reason}\n"));
    }

    /// Something that a reader should know.
    pub fn note(&self, text: &str) {
        say(&format!("  {text}\n"));
    }

    /// A run begins.
    pub fn start(&mut self, target: &str, point: &Point, repetition: u32) {
        let number = format!("{:>width$}", self.done + 1, width = self.runs.to_string().len());
        self.line = format!("  {number}/{} {target:<14} {}", self.runs, point_in_words(point));
        if self.repetitions > 1 {
            self.line.push_str(&format!("  #{}", repetition + 1));
        }
    }

    /// A run is over.
    pub fn end(&self, run: &Run) {
        say(&format!("{}  {}\n", self.line, outcome(run)));
    }

    /// One more run is done; a target that is left out from now on shortens the rest.
    pub fn advance(&mut self, left_out: Option<&str>) {
        self.done += 1;
        if let Some(reason) = left_out.filter(|reason| reason.starts_with("stopped")) {
            self.note(reason);
        }
        let left = self.left_seconds();
        if self.done.is_multiple_of(10) && self.done < self.runs {
            say(&format!("  about {} left\n", in_words(left)));
        }
    }

    fn left_seconds(&self) -> f64 {
        let spent = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        let each = if self.done == 0 { self.run_seconds } else { spent / self.done as f64 };
        each * self.runs.saturating_sub(self.done) as f64 + self.later_seconds
    }
}

/// The result of a run, in a line.
fn outcome(run: &Run) -> String {
    let figure = |name: &str| run.figures.get(name).copied();
    let mut parts = Vec::new();
    let mut response = Latency::new();
    for load in &run.loads {
        response.merge(&load.recording.response());
    }
    if let Some(knee) = &run.knee {
        let best =
            knee.best_rate.map_or("no rate".to_owned(), |rate| format!("{}/s", grouped(rate)));
        // Where the generator gave up, the server may keep up with more.
        let bound = if knee.is_lower_bound() { "at least " } else { "" };
        parts.push(format!("keeps up with {bound}{best} within {} ms", knee.limit_ms));
    } else if !run.loads.is_empty() {
        let rate = run.loads.iter().map(|load| load.recording.rate()).sum();
        parts.push(format!("{} requests/s", grouped(rate)));
    }
    let p99 = (response.count() > 0).then(|| format!("p99 {:.2} ms", response.quantile_ms(0.99)));
    let cpu = figure("server_cpu_us_per_request").map(|cpu| format!("server CPU {cpu:.2} us"));
    let recovery = run.check.as_ref().and_then(|check| check.recovery_seconds);
    let recovery = recovery.or_else(|| figure("recovery_seconds"));
    let recovery = recovery.map(|seconds| format!("recovered in {seconds:.1} s"));
    parts.extend([p99, cpu, recovery].into_iter().flatten());
    let errors: u64 = run.loads.iter().map(|load| load.recording.errors()).sum();
    if errors > 0 {
        parts.push(format!("{errors} errors"));
    }
    if let Some(check) = &run.check {
        let words = format!("{} of {} writes lost", check.lost, check.acknowledged);
        parts.push(words);
        if check.stale_reads > 0 {
            parts.push(format!("{} stale reads", check.stale_reads));
        }
        if check.wrong > 0 {
            parts.push(format!("{} values that nobody wrote", check.wrong));
        }
    }
    let overloaded = run.loads.iter().flat_map(|load| &load.recording.generator.overloaded).next();
    parts.extend(overloaded.map(|why| format!("OVERLOADED: {why}")));
    if let Some(load) = run.loads.iter().find(|load| !load.recording.is_valid()) {
        let why = load.recording.generator.invalid.first().map_or("", String::as_str);
        parts.push(format!("INVALID: {why}"));
    }
    if let Some(why) = run.loads.iter().find_map(|load| load.recording.generator.late.first()) {
        parts.push(format!("RESPONSE TIMES INVALID: {why}"));
    }
    if let Some(reason) = &run.failure {
        parts.push(format!("FAILED: {reason}"));
    }
    parts.join("  ")
}

/// A point in a few words: `connections=50 fsync=always`.
pub fn point_in_words(point: &Point) -> String {
    point.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// A span of time for a reader.
pub fn in_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

/// Standard error may be gone; the results matter more.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_readable() {
        assert_eq!(in_words(59.7), "60 s");
        assert_eq!(in_words(600.0), "10 min");
    }
}
