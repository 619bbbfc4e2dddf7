//! An experiment laid out for a reader: its runs by point of the matrix and by target, and which
//! target the others are compared with.

use std::collections::BTreeMap;

use crate::results::figure::figures;
use crate::results::{Contrast, ExperimentResult, Figure, Run, Summary};

/// An experiment, laid out.
pub(crate) struct Analysis<'a> {
    /// The experiment.
    pub(crate) experiment: &'a ExperimentResult,
    /// The points of the matrix that were run, in its order.
    pub(crate) points: Vec<Point<'a>>,
    /// The names of the targets: those of the experiment, then any that only runs name.
    pub(crate) targets: Vec<&'a str>,
    /// The target that the others are compared with, as an index into the targets.
    pub(crate) baseline: usize,
    /// All figures that runs have.
    pub(crate) figures: Vec<Figure>,
}

/// A point of the matrix.
pub(crate) struct Point<'a> {
    /// A value per swept parameter.
    pub(crate) parameters: &'a BTreeMap<String, String>,
    /// By target.
    pub(crate) cells: Vec<Cell<'a>>,
}

/// The runs of one target at one point.
#[derive(Default)]
pub(crate) struct Cell<'a> {
    /// Runs that say something about the target.
    pub(crate) valid: Vec<&'a Run>,
    /// Runs in which the generator was the limit.
    pub(crate) invalid: Vec<&'a Run>,
    /// Runs that failed.
    pub(crate) failed: Vec<&'a Run>,
}

/// Why a run says nothing about the server: what the generators of its loads found. A knee that was
/// found is good whatever became of the rates above it; without one, the lowest rate that was tried
/// decides whether it was too much for the server or for the generator.
pub(crate) fn invalid_reasons(run: &Run) -> Vec<&str> {
    if run.knee.as_ref().is_some_and(|knee| knee.best_rate.is_some()) {
        return Vec::new();
    }
    let loads = run.loads.iter().flat_map(|load| &load.recording.generator.invalid);
    let steps = run.knee.iter().flat_map(|knee| &knee.steps);
    let lowest = steps.min_by(|a, b| a.offered_rate.total_cmp(&b.offered_rate));
    without_repeats(loads.chain(lowest.iter().flat_map(|step| &step.invalid)))
}

/// Why the server could not keep up with what was sent, as the generators of its loads saw it. Such
/// a run counts: it is a bad result, and no missing one.
pub(crate) fn overloaded_reasons(run: &Run) -> Vec<&str> {
    without_repeats(run.loads.iter().flat_map(|load| &load.recording.generator.overloaded))
}

/// Why response times of a run do not count though all else does, and from which percentile on, as
/// the generators of its loads saw it.
pub(crate) fn late_reasons(run: &Run) -> Vec<&str> {
    without_repeats(run.loads.iter().flat_map(|load| &load.recording.generator.late))
}

fn without_repeats<'a>(reasons: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut different: Vec<&str> = Vec::new();
    for reason in reasons {
        if !different.contains(&reason.as_str()) {
            different.push(reason);
        }
    }
    different
}

impl<'a> Cell<'a> {
    /// All runs: what a checker found is so in each of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Run> {
        self.valid.iter().chain(&self.invalid).chain(&self.failed).copied()
    }

    /// How many runs there are in all.
    pub(crate) fn count(&self) -> usize {
        self.valid.len() + self.invalid.len() + self.failed.len()
    }

    /// In how many of the valid runs the server could not keep up with what was sent.
    pub(crate) fn overloaded(&self) -> usize {
        self.valid.iter().filter(|run| !overloaded_reasons(run).is_empty()).count()
    }

    /// What to say of the valid runs that looked for a figure and did not find it, and how many
    /// these are.
    pub(crate) fn missed(&self, figure: &Figure) -> Option<(&'static str, usize)> {
        let mut words = self.valid.iter().filter_map(|run| figure.missed(run));
        let first = words.next()?;
        Some((first, 1 + words.count()))
    }

    /// The valid runs whose response times count.
    pub(crate) fn in_time(&self) -> impl Iterator<Item = &'a Run> {
        self.valid.iter().copied().filter(|run| late_reasons(run).is_empty())
    }

    /// How many of the runs count for a figure.
    pub(crate) fn counted(&self, figure: &Figure) -> usize {
        self.valid.iter().filter(|run| !figure.is_late(run)).count()
    }

    /// What to say in place of a figure that no run has.
    pub(crate) fn without(&self, figure: &Figure) -> &'static str {
        match self.missed(figure) {
            Some((words, _)) => words,
            None if self.valid.is_empty() => self.missing(),
            None if self.counted(figure) == 0 => "INVALID",
            None => "–",
        }
    }

    /// What to say in place of a figure, when no run is valid.
    pub(crate) fn missing(&self) -> &'static str {
        if !self.invalid.is_empty() {
            "INVALID"
        } else if !self.failed.is_empty() {
            "failed"
        } else {
            "not run"
        }
    }
}

impl<'a> Analysis<'a> {
    /// Lays out an experiment.
    pub(crate) fn of(experiment: &'a ExperimentResult) -> Analysis<'a> {
        let mut targets: Vec<&str> =
            experiment.targets.iter().map(|target| target.name.as_str()).collect();
        for run in &experiment.runs {
            if !targets.contains(&run.target.as_str()) {
                targets.push(&run.target);
            }
        }
        let points = points(experiment, &targets);
        let baseline = baseline(&targets, &points);
        Analysis { experiment, points, targets, baseline, figures: figures(experiment) }
    }

    /// A figure over the valid repetitions.
    pub(crate) fn summary(&self, figure: &Figure, point: usize, target: usize) -> Option<Summary> {
        figure.summary(self.points[point].cells[target].valid.iter().copied())
    }

    /// How a target's figure lies to another target's: their runs are pairs, since targets took
    /// turns.
    pub(crate) fn contrast(
        &self,
        figure: &Figure,
        point: usize,
        target: usize,
        other: usize,
    ) -> Option<Contrast> {
        let observations = |target: usize| {
            figure.observations(self.points[point].cells[target].valid.iter().copied())
        };
        Contrast::paired(&observations(target), &observations(other))
    }

    /// How a target's figure lies to the baseline's.
    pub(crate) fn against_baseline(
        &self,
        figure: &Figure,
        point: usize,
        target: usize,
    ) -> Option<Contrast> {
        self.contrast(figure, point, target, self.baseline)
    }

    /// The first figure of this name.
    pub(crate) fn figure(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// What tells a point from the others: `fsync always, connections 50`.
    pub(crate) fn point_label(&self, point: usize) -> String {
        self.label_without(self.points[point].parameters, "")
    }

    /// The same without one parameter, which the reader sees on an axis.
    pub(crate) fn label_without(
        &self,
        parameters: &BTreeMap<String, String>,
        left_out: &str,
    ) -> String {
        let mut parts: Vec<String> = Vec::new();
        for name in self.parameter_names() {
            if name != left_out
                && let Some(value) = parameters.get(name)
            {
                parts.push(format!("{name} {value}"));
            }
        }
        parts.join(", ")
    }

    /// The parameters that differ between points, in the order of the matrix.
    pub(crate) fn parameter_names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> =
            self.experiment.matrix.iter().map(|(name, _)| name.as_str()).collect();
        for name in self.points.iter().flat_map(|point| point.parameters.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let distinct = |name: &&str| {
            let first = self.points.first().and_then(|point| point.parameters.get(*name));
            self.points.iter().any(|point| point.parameters.get(*name) != first)
        };
        names.retain(distinct);
        names
    }

    /// The values of a parameter, in the order in which points have them.
    pub(crate) fn values(&self, parameter: &str) -> Vec<&'a str> {
        let mut values: Vec<&str> = Vec::new();
        for value in self.points.iter().filter_map(|point| point.parameters.get(parameter)) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        values
    }

    /// Whether any run says something.
    pub(crate) fn has_valid_runs(&self) -> bool {
        self.points.iter().flat_map(|point| &point.cells).any(|cell| !cell.valid.is_empty())
    }
}

fn points<'a>(experiment: &'a ExperimentResult, targets: &[&str]) -> Vec<Point<'a>> {
    let mut points: Vec<Point<'a>> = Vec::new();
    for run in &experiment.runs {
        let found = points.iter().position(|point| *point.parameters == run.parameters);
        let index = found.unwrap_or_else(|| {
            let cells = targets.iter().map(|_| Cell::default()).collect();
            points.push(Point { parameters: &run.parameters, cells });
            points.len() - 1
        });
        let Some(target) = targets.iter().position(|name| *name == run.target) else { continue };
        let cell = &mut points[index].cells[target];
        if run.failure.is_some() {
            cell.failed.push(run);
        } else if !invalid_reasons(run).is_empty() {
            cell.invalid.push(run);
        } else {
            cell.valid.push(run);
        }
    }
    // In the order of the matrix; what it does not name comes last, in the order of the runs.
    points.sort_by_key(|point| {
        let place = |(name, values): &(String, Vec<String>)| {
            let value = point.parameters.get(name)?;
            values.iter().position(|other| other == value)
        };
        let places = experiment.matrix.iter().map(place);
        places.map(|place| place.unwrap_or(usize::MAX)).collect::<Vec<usize>>()
    });
    points
}

/// The target that the others are compared with: the first peer, so that ratios describe Dunlin in
/// terms of the server that a reader knows. A peer is neither Dunlin nor the limit, which is no
/// server. When there is none, or it has no valid run, it is the first target that has one.
fn baseline(targets: &[&str], points: &[Point<'_>]) -> usize {
    let measured = |index: &usize| points.iter().any(|point| !point.cells[*index].valid.is_empty());
    let is_peer = |index: &usize| {
        let name = targets[*index].to_ascii_lowercase();
        !name.starts_with("dunlin") && !name.starts_with("limit")
    };
    let all = 0..targets.len();
    let peer = all.clone().filter(is_peer).find(measured);
    peer.or_else(|| all.clone().find(measured)).unwrap_or(0)
}
