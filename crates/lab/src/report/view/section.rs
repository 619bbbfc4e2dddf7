//! What views are made of, and what they have in common.

use std::collections::{BTreeMap, BTreeSet};

use base::crc::crc16;

use crate::report::analysis::Analysis;
use crate::report::chart::{COLOURS, Chart};
use crate::results::figure::load_names;
use crate::results::{Results, Run, Unit};

/// The most points of a matrix that each get charts of their own; of larger ones the first and the
/// last do.
const MOST_POINTS: usize = 4;

/// Charts that belong together.
pub(crate) struct Section {
    /// Sections of one kind that have a single chart each are shown as one.
    pub(super) kind: Kind,
    /// What they show.
    pub(crate) heading: String,
    /// How to read them.
    pub(crate) note: String,
    /// The charts, the most important first.
    pub(crate) charts: Vec<Chart>,
}

/// What sections are about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Figure,
    OverTime,
    Other,
}

/// The colour of each target: the same in all charts of all reports, as far as there are colours.
pub(crate) struct Colours {
    /// Those that are not among [`FIXED`], with their colours.
    others: BTreeMap<String, usize>,
}

/// The colours of the servers that the lab knows. The last one is the built-in limit's, which is no
/// server.
const FIXED: [(&str, usize); 5] =
    [("dunlin", 0), ("redis-server", 1), ("valkey-server", 2), ("etcd", 3), ("limit", 6)];
/// Colours that are free for targets of other names.
const FREE: [usize; 3] = [4, 5, 7];

impl Colours {
    /// The colours of all targets of some results. A name leads to its colour, whoever stands
    /// beside it; of several that would share one, those that come later in the alphabet get the
    /// next that is free.
    pub(crate) fn of(results: &Results) -> Colours {
        let targets = results.experiments.iter().flat_map(|experiment| &experiment.targets);
        let names: BTreeSet<&str> = targets.map(|target| target.name.as_str()).collect();
        let is_fixed = |name: &str| FIXED.iter().find(|(fixed, _)| *fixed == name);
        let mut taken: BTreeSet<usize> =
            names.iter().filter_map(|name| is_fixed(name)).map(|(_, colour)| *colour).collect();
        let mut others = BTreeMap::new();
        for name in names.into_iter().filter(|name| is_fixed(name).is_none()) {
            let own = usize::from(crc16(name.as_bytes())) % FREE.len();
            let mut free = (0..FREE.len()).map(|step| FREE[(own + step) % FREE.len()]);
            let others_free = (0..COLOURS).filter(|colour| !FREE.contains(colour));
            let colour = free.by_ref().chain(others_free).find(|colour| !taken.contains(colour));
            // There are more targets than colours.
            let colour = colour.unwrap_or(FREE[own]);
            taken.insert(colour);
            others.insert(name.to_owned(), colour);
        }
        Colours { others }
    }

    /// The colour of a target.
    pub(crate) fn colour(&self, target: &str) -> usize {
        let fixed = FIXED.iter().find(|(name, _)| *name == target).map(|(_, colour)| *colour);
        fixed.or_else(|| self.others.get(target).copied()).unwrap_or(COLOURS - 1)
    }
}

/// What all views have at hand.
pub(crate) struct Context<'a> {
    /// The experiment.
    pub(crate) analysis: &'a Analysis<'a>,
    /// The targets' colours.
    pub(crate) colours: &'a Colours,
}

/// The points that get charts of their own.
pub(super) fn chosen_points(analysis: &Analysis<'_>) -> Vec<usize> {
    let with_runs =
        |point: &usize| analysis.points[*point].cells.iter().any(|cell| !cell.valid.is_empty());
    let all: Vec<usize> = (0..analysis.points.len()).filter(with_runs).collect();
    match all[..] {
        [first, .., last] if all.len() > MOST_POINTS => vec![first, last],
        _ => all,
    }
}

/// What a reader of few points must know.
pub(super) fn choice_note(analysis: &Analysis<'_>) -> String {
    if analysis.points.len() > MOST_POINTS {
        " Shown at the first and the last point of the matrix.".to_owned()
    } else {
        String::new()
    }
}

/// The run that stands for its repetitions: the one with the median throughput.
pub(super) fn typical<'a>(analysis: &Analysis<'a>, point: usize, target: usize) -> Option<&'a Run> {
    middle(analysis.points[point].cells[target].valid.clone())
}

/// The same of those whose response times count.
pub(super) fn typical_in_time<'a>(
    analysis: &Analysis<'a>,
    point: usize,
    target: usize,
) -> Option<&'a Run> {
    middle(analysis.points[point].cells[target].in_time().collect())
}

fn middle(mut runs: Vec<&Run>) -> Option<&Run> {
    let rate = |run: &Run| run.loads.iter().map(|load| load.recording.rate()).sum::<f64>();
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    runs.get(runs.len().saturating_sub(1) / 2).copied()
}

/// The loads' names with how they are told apart in titles: not at all when there is only one.
pub(super) fn loads(analysis: &Analysis<'_>) -> Vec<(String, String)> {
    let names = load_names(analysis.experiment);
    let several = names.len() > 1;
    names
        .into_iter()
        .map(|name| {
            let shown = if several { name.clone() } else { String::new() };
            (name, shown)
        })
        .collect()
}

/// A title with what tells the chart from its neighbours.
pub(super) fn title(what: &str, details: &[&str]) -> String {
    let details: Vec<&str> = details.iter().copied().filter(|part| !part.is_empty()).collect();
    if details.is_empty() { what.to_owned() } else { format!("{what}: {}", details.join(", ")) }
}

/// A name for a file: the words of all parts in small letters and digits, with hyphens.
pub(crate) fn slug(parts: &[&str]) -> String {
    let mut slug = String::new();
    for c in parts.join("-").chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    // File systems take 255 bytes, and a suffix must still fit.
    slug.truncate(120);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

/// What stands beside an axis of this unit: nothing where its ticks and the title say it.
pub(super) fn axis_label(unit: Unit) -> String {
    let label = match unit {
        Unit::PerSecond => "requests a second",
        Unit::Seconds => "seconds",
        Unit::Processors => "processors kept busy",
        _ => "",
    };
    label.to_owned()
}

/// A label at the beginning of a line; p99 stays as it is.
pub(crate) fn capital(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_ascii_digit() => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_harmless() {
        assert_eq!(
            slug(&["value-size", "p99", "op GET, size 2mb"]),
            "value-size-p99-op-get-size-2mb"
        );
        assert_eq!(slug(&["../../etc/passwd"]), "etc-passwd");
        assert_eq!(slug(&["", "ü"]), "unnamed");
        assert!(slug(&[&"x".repeat(500)]).len() <= 120);
    }
}
