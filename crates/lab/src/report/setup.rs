//! How an experiment was set up: targets with versions and commands, and the loads in words.

use std::collections::BTreeMap;

use super::analysis::Analysis;
use super::markup::Markup;
use super::number;
use super::words::command_line;
use crate::load::{Keys, Pace, Plan, Schedule, Size, Work};
use crate::results::figure::load_names;

/// Different plans of one load that are spelt out; the matrix says the rest.
const MOST_PLANS: usize = 4;

/// The set-up, folded.
pub(crate) fn setup(analysis: &Analysis<'_>, page: &mut Markup) {
    page.open("details", &[]);
    page.leaf("summary", &[], "Set-up: versions, commands, loads");
    for target in &analysis.experiment.targets {
        page.open("p", &[]);
        page.leaf("b", &[], &target.name);
        page.text(format!(": {}", target.version));
        if !target.cpus.is_empty() {
            page.text(format!(", bound to processors {}", target.cpus));
        }
        if !target.limits.is_empty() {
            page.text(format!(", starved ({})", target.limits));
        }
        if target.command.is_empty() {
            page.text(", was running already");
        }
        page.close();
        if !target.command.is_empty() {
            page.leaf("pre", &[], command_line(&target.command));
        }
    }
    for name in load_names(analysis.experiment) {
        page.open("p", &[]);
        page.leaf("b", &[], format!("load {name}"));
        page.text(": ");
        page.text(plans(analysis, &name));
        page.close();
        if let Some(text) = agents(analysis, &name) {
            page.leaf("p", &[], text);
        }
    }
    page.leaf("p", &[], generator(analysis));
    page.open("details", &[]);
    page.leaf("summary", &[], "The experiment's file");
    page.leaf("pre", &[], &analysis.experiment.file);
    page.close();
    page.open("details", &[("class", &"bulk")]);
    page.leaf(
        "summary",
        &[],
        format!("Every run, with its command ({})", analysis.experiment.runs.len()),
    );
    super::table::every_run(analysis, page);
    page.close();
    page.close();
}

fn plans(analysis: &Analysis<'_>, name: &str) -> String {
    let mut different: Vec<String> = Vec::new();
    for load in analysis.experiment.runs.iter().flat_map(|run| &run.loads) {
        let text = describe(&load.recording.plan);
        if load.name == name && !different.contains(&text) {
            different.push(text);
        }
    }
    let more = different.len().saturating_sub(MOST_PLANS);
    different.truncate(MOST_PLANS);
    let mut text = different.join("; or ");
    if more > 0 {
        text.push_str(&format!("; and {more} more variants, as the matrix says"));
    }
    text + "."
}

/// Which machines sent a load in place of the lab's, and how far their clocks were off at most.
fn agents(analysis: &Analysis<'_>, name: &str) -> Option<String> {
    let mut agents: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let loads = analysis.experiment.runs.iter().flat_map(|run| &run.loads);
    for agent in loads.filter(|load| load.name == name).flat_map(|load| &load.agents) {
        let (ahead, bound) = agents.entry(&agent.address).or_default();
        if agent.ahead_ms.abs() > ahead.abs() {
            *ahead = agent.ahead_ms;
        }
        *bound = bound.max(agent.bound_ms);
    }
    let time = |ms: f64| number::duration(ms / 1e3);
    let parts: Vec<String> = agents
        .into_iter()
        .map(|(address, (ahead, bound))| {
            let way = if ahead < 0.0 { "behind" } else { "ahead" };
            format!("{address} (clock {} {way}, known to {})", time(ahead.abs()), time(bound))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!("It was sent by agents; of each run's clocks the worst: {}.", parts.join(", "))
    })
}

/// A plan in words.
fn describe(plan: &Plan) -> String {
    let mut parts =
        vec![format!("{} connections from {}", plan.connections, count(plan.threads, "thread"))];
    if plan.pipeline > 1 {
        parts.push(format!("pipelines of {}", plan.pipeline));
    }
    parts.push(match plan.pace {
        Pace::Closed { think_seconds } if think_seconds > 0.0 => {
            format!("closed loop with pauses of {}", number::duration(think_seconds))
        }
        Pace::Closed { .. } => "closed loop".to_owned(),
        Pace::Open { rate, schedule } => {
            let spread = match schedule {
                Schedule::Constant => "evenly spread",
                Schedule::Poisson => "at random times (Poisson)",
            };
            format!("open loop at {} requests a second, {spread}", number::grouped(rate))
        }
    });
    let (names, keys, sizes) = match &plan.work {
        Work::Resp(work) => {
            let names = work.operations.iter().map(|one| (one.name.as_str(), one.weight)).collect();
            (names, work.keys, &work.sizes)
        }
        Work::Http(work) => {
            let names: Vec<_> =
                work.requests.iter().map(|one| (one.name.as_str(), one.weight)).collect();
            (names, work.keys, &work.sizes)
        }
    };
    parts.push(shares(&names));
    parts.push(describe_keys(keys));
    parts.push(describe_sizes(sizes));
    let warmup = plan.warmup_seconds;
    let mut bound = Vec::new();
    bound.extend(
        plan.requests.map(|requests| format!("{} requests", number::grouped(requests as f64))),
    );
    bound.extend(plan.seconds.map(number::duration));
    let mut bound = bound.join(" or ");
    if warmup > 0.0 {
        bound.push_str(&format!(" after {} of warm-up", number::duration(warmup)));
    }
    parts.push(bound);
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn shares(names: &[(&str, f64)]) -> String {
    let all: f64 = names.iter().map(|(_, weight)| weight).sum();
    match names {
        [(only, _)] => (*only).to_owned(),
        _ => {
            let share = |weight: &f64| format!("{:.0} %", weight / all * 100.0);
            let parts: Vec<String> =
                names.iter().map(|(name, weight)| format!("{} {name}", share(weight))).collect();
            parts.join(" + ")
        }
    }
}

fn describe_keys(keys: Keys) -> String {
    let grouped = |count: u64| number::grouped(count as f64);
    match keys {
        Keys::Literal | Keys::Uniform { count: 1 } => "one key".to_owned(),
        Keys::Uniform { count } => format!("{} keys, each equally often", grouped(count)),
        Keys::Zipf { count, exponent } => {
            format!("{} keys, Zipf with exponent {exponent}", grouped(count))
        }
        Keys::Hot { count, hot, share } => format!(
            "{} keys, {} of them hot with {:.0} % of requests",
            grouped(count),
            grouped(hot),
            share * 100.0
        ),
        Keys::Sequential { count } => format!("{} keys in order", grouped(count)),
    }
}

fn describe_sizes(sizes: &[Size]) -> String {
    let named: Vec<(String, f64)> =
        sizes.iter().map(|size| (number::bytes(size.bytes as f64), size.weight)).collect();
    let named: Vec<(&str, f64)> =
        named.iter().map(|(name, weight)| (name.as_str(), *weight)).collect();
    if named.is_empty() { String::new() } else { format!("values of {}", shares(&named)) }
}

/// How the generator did at its worst.
fn generator(analysis: &Analysis<'_>) -> String {
    let all = || {
        let loads = analysis.experiment.runs.iter().flat_map(|run| &run.loads);
        loads.map(|load| &load.recording.generator)
    };
    let busiest = all().map(|generator| generator.busiest_thread).fold(0.0, f64::max);
    let late = all().map(|generator| generator.lateness.quantile_ms(0.99)).fold(0.0, f64::max);
    let errors: u64 = all().map(|generator| generator.socket_errors).sum();
    let mut text = format!(
        "The generator's busiest thread took at most {:.0} % of a processor",
        busiest * 100.0
    );
    if late > 0.0 {
        text.push_str(&format!(
            "; at most 1 % of sends left more than {} late",
            number::duration(late / 1e3)
        ));
    }
    if errors > 0 {
        text.push_str(&format!(
            "; {} connections were refused or lost",
            number::grouped(errors as f64)
        ));
    }
    text + "."
}
