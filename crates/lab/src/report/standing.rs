//! Which target is ahead of which: a short sentence for each pair of targets, and a table with the
//! details.

use super::analysis::Analysis;
use super::columns::Columns;
use super::number;
use crate::results::{Better, Difference, Figure};

/// The figures that the table has of each pair: the most important ones.
const MOST_FIGURES: usize = 2;

/// A sentence for each pair of targets, in the most important figure: `dunlin: 0.68× the CPU time
/// of redis-server. 28 of 35 ahead, 7 level.`
pub(super) fn sentences(analysis: &Analysis<'_>, figures: &[&Figure]) -> Vec<String> {
    rivals(analysis)
        .into_iter()
        .filter_map(|(target, other)| sentence(analysis, figures, target, other))
        .collect()
}

/// The details that these sentences leave out. None when they say everything.
pub(super) fn details(analysis: &Analysis<'_>, figures: &[&Figure]) -> Option<Columns> {
    let figures = &figures[..figures.len().min(MOST_FIGURES)];
    let mut rows = Vec::new();
    for (target, other) in rivals(analysis) {
        for figure in figures {
            let standing = Standing::of(analysis, figure, target, other);
            if standing.count() > 0 {
                let names = [analysis.targets[target], analysis.targets[other]].map(str::to_owned);
                rows.push(names.into_iter().chain(standing.fields(figure)).collect());
            }
        }
    }
    let heads =
        ["target", "beside", "figure", "ratio", "ahead", "level", "behind", "ratio where behind"];
    let heads = heads.map(str::to_owned).to_vec();
    (figures.len() > 1 || analysis.points.len() > 1)
        .then_some(Columns { heads, names: 3, rows })
        .filter(|columns| !columns.rows.is_empty())
}

/// Which targets to compare: Dunlin with the baseline and then with each of the others, or, where
/// it is not measured, each target with the baseline. Several targets that are Dunlin are compared
/// with the baseline only.
fn rivals(analysis: &Analysis<'_>) -> Vec<(usize, usize)> {
    let is_measured =
        |target: &usize| analysis.points.iter().any(|point| !point.cells[*target].valid.is_empty());
    let all: Vec<usize> = (0..analysis.targets.len()).filter(is_measured).collect();
    let is_ours =
        |target: &usize| analysis.targets[*target].to_ascii_lowercase().starts_with("dunlin");
    let ours: Vec<usize> = all.iter().copied().filter(is_ours).collect();
    let baseline = analysis.baseline;
    if let [own] = ours[..]
        && own != baseline
    {
        let others = all.into_iter().filter(|other| *other != own && *other != baseline);
        return std::iter::once(baseline).chain(others).map(|other| (own, other)).collect();
    }
    let compared = if ours.len() > 1 { ours } else { all };
    let compared = compared.into_iter().filter(|target| *target != baseline);
    compared.map(|target| (target, baseline)).collect()
}

/// Who is ahead in the most important figure that both have.
fn sentence(
    analysis: &Analysis<'_>,
    figures: &[&Figure],
    target: usize,
    other: usize,
) -> Option<String> {
    let (name, other_name) = (analysis.targets[target], analysis.targets[other]);
    for figure in figures {
        let standing = Standing::of(analysis, figure, target, other);
        let (label, load) = (short_label(figure), load_note(figure));
        if standing.count() == 0 {
            // Another figure does not answer what was asked.
            let mut both = [target, other].into_iter();
            if let Some(lacking) = both.find(|one| is_invalid(analysis, figure, *one)) {
                let no_answer = no_answer(analysis, figure, lacking);
                return Some(format!("{name} and {other_name}: {no_answer}"));
            }
        } else if standing.ties == standing.count() {
            let everywhere = match standing.count() {
                1 => String::new(),
                count => format!(" at all {count} points"),
            };
            return Some(format!("{name}: level with {other_name} in {label}{load}{everywhere}."));
        } else if let Some(ratio) = standing.ratio() {
            let counts = standing.counts(figure.better);
            return Some(format!("{name}: {ratio} the {label} of {other_name}{load}. {counts}."));
        }
    }
    None
}

/// Whether no run of a target counts for a figure.
pub(super) fn is_invalid(analysis: &Analysis<'_>, figure: &Figure, target: usize) -> bool {
    analysis.points.iter().all(|point| point.cells[target].counted(figure) == 0)
}

/// Why there is no answer where [`is_invalid`].
pub(super) fn no_answer(analysis: &Analysis<'_>, figure: &Figure, target: usize) -> String {
    let (name, label) = (analysis.targets[target], short_label(figure));
    format!("no valid answer, since no run of {name} has a valid {label}{}.", load_note(figure))
}

/// The name of a figure in a sentence that has the targets' names too.
fn short_label(figure: &Figure) -> String {
    match figure.id.as_str() {
        "server_cpu_us_per_request" => "CPU time".to_owned(),
        _ => figure.label.trim_end_matches(" response time").to_owned(),
    }
}

/// ` (small)`: the load that a figure is of, where there are several.
fn load_note(figure: &Figure) -> String {
    if figure.load.is_empty() { String::new() } else { format!(" ({})", figure.load) }
}

/// Where a target stands beside another one: its multiples of the other's figure at each point.
#[derive(Default)]
struct Standing {
    /// At points where it is higher, sorted.
    higher: Vec<f64>,
    /// At points where it is lower, sorted.
    lower: Vec<f64>,
    ties: usize,
    /// The logarithms of all multiples, ties among them.
    logs: Vec<f64>,
}

impl Standing {
    fn of(analysis: &Analysis<'_>, figure: &Figure, target: usize, other: usize) -> Standing {
        let mut standing = Standing::default();
        for point in 0..analysis.points.len() {
            let Some(contrast) = analysis.contrast(figure, point, target, other) else { continue };
            match (contrast.difference, contrast.ratio) {
                (Difference::Tie, _) => standing.ties += 1,
                (Difference::Higher, Some(ratio)) => standing.higher.push(ratio),
                (Difference::Lower, Some(ratio)) => standing.lower.push(ratio),
                // Of nothing there is no multiple; the tables show it.
                (_, None) => continue,
            }
            standing.logs.extend(contrast.ratio.filter(|ratio| *ratio > 0.0).map(f64::ln));
        }
        for list in [&mut standing.higher, &mut standing.lower] {
            list.sort_by(f64::total_cmp);
        }
        standing
    }

    fn count(&self) -> usize {
        self.higher.len() + self.lower.len() + self.ties
    }

    /// The multiple over all points: the geometric mean, of which twice and half make one. Where
    /// points are opposite, a mean would say something that is true of none of them: then it is the
    /// range.
    fn ratio(&self) -> Option<String> {
        if let (Some(lowest), Some(highest)) = (self.lower.first(), self.higher.last()) {
            return Some(range(&[*lowest, *highest]));
        }
        let count = self.logs.len() as f64;
        (count > 0.0).then(|| number::ratio((self.logs.iter().sum::<f64>() / count).exp()))
    }

    /// The multiples on either side, the better side first, and what each side is called.
    fn sides(&self, better: Better) -> [(&'static str, &[f64]); 2] {
        match better {
            Better::Higher => [("ahead", &self.higher), ("behind", &self.lower)],
            Better::Lower => [("ahead", &self.lower), ("behind", &self.higher)],
            Better::Neither => [("higher", &self.higher), ("lower", &self.lower)],
        }
    }

    /// `14 of 19 ahead, 3 level, 2 behind`, `All 3 ahead`; `Ahead` when there is one point only.
    fn counts(&self, better: Better) -> String {
        let total = self.count();
        let [(first, good), (last, bad)] = self.sides(better);
        let mut parts: Vec<String> = Vec::new();
        for (word, count) in [(first, good.len()), ("level", self.ties), (last, bad.len())] {
            match count {
                0 => {}
                1 if total == 1 => {
                    let (initial, rest) = word.split_at(1);
                    return initial.to_ascii_uppercase() + rest;
                }
                all if all == total => return format!("All {all} {word}"),
                some if parts.is_empty() => parts.push(format!("{some} of {total} {word}")),
                some => parts.push(format!("{some} {word}")),
            }
        }
        parts.join(", ")
    }

    /// The fields of a row: the figure, its ratio, how often ahead, level and behind, and how far
    /// behind.
    fn fields(&self, figure: &Figure) -> [String; 6] {
        let [(_, good), (_, bad)] = self.sides(figure.better);
        let (ahead, behind) = match figure.better {
            // It is not judged.
            Better::Neither => (format!("{} higher", good.len()), format!("{} lower", bad.len())),
            _ => (good.len().to_string(), bad.len().to_string()),
        };
        let worst = if figure.better == Better::Neither { String::new() } else { range(bad) };
        let ratio = self.ratio().unwrap_or_default();
        [figure.full_label(), ratio, ahead, self.ties.to_string(), behind, worst]
    }
}

/// `1.30× to 1.45×`.
fn range(ratios: &[f64]) -> String {
    match (ratios.first().copied().map(number::ratio), ratios.last().copied().map(number::ratio)) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(only), _) => only,
        _ => String::new(),
    }
}
