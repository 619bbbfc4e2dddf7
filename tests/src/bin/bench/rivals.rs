//! The servers that Dunlin is compared with in one row.

use anyhow::Result;
use tests::peers;
use tests::server::{Server, Target};

use crate::pinning::Places;
use crate::{Options, line, median};

/// The servers to compare, in the order of columns: Dunlin, Redis 7.0 if it is there, Redis 8.0,
/// Valkey.
pub(crate) fn all() -> Vec<Target> {
    let mut targets = vec![Target::Dunlin, Target::Reference, Target::Valkey];
    if peers::oldest("redis-server").exists() {
        targets.insert(1, Target::Oldest);
    }
    targets
}

/// What a column is called.
pub(crate) fn title(target: Target) -> &'static str {
    match target {
        Target::Dunlin => "dunlin",
        Target::Oldest => "redis 7.0",
        Target::Reference => "redis 8.0",
        Target::Valkey | Target::NewestValkey => "valkey",
    }
}

/// An upper bound for a row's figure, divided by that of other servers.
#[derive(Clone, Copy)]
pub(crate) struct Bars {
    /// Beside Redis 7.0.
    pub(crate) oldest: f64,
    /// The bound beside the better one of Redis 8.0 and Valkey, if the project has set one.
    pub(crate) better: Option<f64>,
}

/// The first lines of a table.
pub(crate) fn heading(heading: &str, targets: &[Target]) -> Result<()> {
    let columns: String = targets.iter().map(|of| format!(" {:>10}", title(*of))).collect();
    let (old, new) = ("of 7.0 (bar)", "of better (bar)");
    line(&format!("\n{heading}\n{:28}{columns} {old:>16} {new:>16}", ""))
}

/// One row: a figure for each of `targets`, less is better.
pub(crate) fn row(name: &str, targets: &[Target], figures: &[f64], bars: Bars) -> Result<()> {
    let of = |wanted: Target| {
        let at = targets.iter().position(|target| *target == wanted)?;
        figures.get(at).copied()
    };
    let ours = of(Target::Dunlin).unwrap_or(f64::NAN);
    let better = [Target::Reference, Target::Valkey].into_iter().filter_map(of).reduce(f64::min);
    let columns: String = figures.iter().map(|figure| format!(" {figure:>10.3}")).collect();
    let beside = |theirs: Option<f64>, bar: Option<f64>| match (theirs, bar) {
        (None, _) => String::new(),
        (Some(theirs), None) => format!("{:.2}       ", ours / theirs),
        (Some(theirs), Some(bar)) => {
            let ratio = ours / theirs;
            let mark = if ratio <= bar { ' ' } else { '!' };
            format!("{ratio:.2} ({bar:.2}){mark}")
        }
    };
    line(&format!(
        "{name:28}{columns} {:>16} {:>16}",
        beside(of(Target::Oldest), Some(bars.oldest)),
        beside(better, bars.better)
    ))
}

/// Starts each of them, with one thread.
pub(crate) fn start(places: &Places, targets: &[Target]) -> Result<Vec<Server>> {
    targets.iter().map(|target| places.start(*target, 1)).collect()
}

/// Measures each server in turn, as often as requested. Returns the medians.
pub(crate) fn in_turn(
    options: &Options,
    servers: &[Server],
    mut measure: impl FnMut(&Server) -> Result<f64>,
) -> Result<Vec<f64>> {
    let mut figures = vec![Vec::new(); servers.len()];
    for _ in 0..options.repetitions {
        for (server, figures) in servers.iter().zip(&mut figures) {
            figures.push(measure(server)?);
        }
    }
    Ok(figures.into_iter().map(median).collect())
}
