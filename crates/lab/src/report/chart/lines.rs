//! Charts of lines: figures against a swept parameter, percentiles, seconds of a run, knees.

use super::canvas::{Anchor, Canvas, LINE, Stroke, Swatch, WIDTH, shorten, text_width};
use super::{Scale, Tick};
use crate::report::number;
use crate::results::Unit;

/// The height of the area between the axes.
const HEIGHT: f64 = 210.0;

/// Lines over an axis.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// Left to right.
    pub(crate) x: Axis,
    /// Bottom to top.
    pub(crate) y: Axis,
    /// The lines.
    pub(crate) series: Vec<Series>,
    /// Things that happened, as vertical lines.
    pub(crate) spans: Vec<Span>,
    /// Bounds, as horizontal lines.
    pub(crate) limits: Vec<Marked>,
}

/// One of the two axes.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What is counted.
    pub(crate) label: String,
    /// In which unit.
    pub(crate) unit: Unit,
    /// How values are spread.
    pub(crate) scale: Scale,
    /// The ticks, where they are not to be round numbers but the values of a parameter.
    pub(crate) ticks: Option<Vec<Tick>>,
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Which colour it has.
    pub(crate) colour: usize,
    /// How it is drawn.
    pub(crate) stroke: Stroke,
    /// Whether each point gets a mark.
    pub(crate) marks: bool,
    /// From left to right.
    pub(crate) points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Point {
    /// Where along the x axis.
    pub(crate) x: f64,
    /// The value; none interrupts the line.
    pub(crate) y: Option<f64>,
    /// The spread around the value.
    pub(crate) spread: Option<(f64, f64)>,
    /// An empty mark, for what is not as it should be.
    pub(crate) hollow: bool,
}

/// Something that happened, and how long it lasted.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// When it began.
    pub(crate) from: f64,
    /// When it was over, if it lasted.
    pub(crate) until: Option<f64>,
    /// What it was.
    pub(crate) label: String,
}

/// A value with a name.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    /// The value.
    pub(crate) at: f64,
    /// Its name.
    pub(crate) label: String,
}

/// The area between the axes.
struct Area<'a> {
    left: f64,
    top: f64,
    width: f64,
    lines: &'a Lines,
}

impl Area<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + self.lines.x.scale.place(value).clamp(0.0, 1.0) * self.width
    }

    fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.lines.y.scale.place(value).clamp(0.0, 1.0)) * HEIGHT
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }
}

pub(super) fn draw(lines: &Lines, canvas: &mut Canvas) {
    let entries: Vec<(String, usize, Swatch)> = lines
        .series
        .iter()
        .map(|series| {
            (series.name.clone(), series.colour, Swatch::Line(series.stroke, series.marks))
        })
        .collect();
    canvas.legend(&entries);
    let ticks = lines.y.scale.ticks(lines.y.unit, if is_log(&lines.y.scale) { 8 } else { 5 });
    let widest = ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
    let left = widest + 8.0;
    let mut area = Area { left, top: canvas.y, width: WIDTH - left - 14.0, lines };
    let rows = place_labels(&area);
    let label_rows = rows.iter().map(|(_, row)| row + 1).max().unwrap_or(0);
    // The topmost tick's label reaches above its line.
    area.top += 8.0 + label_rows as f64 * 15.0;
    if !lines.y.label.is_empty() {
        area.top += LINE - 2.0;
        canvas.text(0.0, canvas.y + 12.0, Anchor::Start, "muted", &lines.y.label);
    }
    draw_spans(&area, canvas);
    draw_y_axis(&area, &ticks, canvas);
    draw_x_axis(&area, canvas);
    for series in &lines.series {
        draw_series(&area, series, canvas);
    }
    draw_limits(&area, canvas);
    draw_labels(&area, &rows, canvas);
    canvas.y = area.bottom() + 2.0 * LINE + 4.0;
}

fn is_log(scale: &Scale) -> bool {
    matches!(scale, Scale::Log { .. })
}

fn draw_y_axis(area: &Area<'_>, ticks: &[Tick], canvas: &mut Canvas) {
    for tick in ticks {
        let y = area.y(tick.value);
        canvas.line("grid", (area.left, y), (area.right(), y));
        canvas.text(area.left - 6.0, y + 4.0, Anchor::End, "muted", &tick.label);
    }
}

fn draw_x_axis(area: &Area<'_>, canvas: &mut Canvas) {
    let axis = &area.lines.x;
    let bottom = area.bottom();
    canvas.line("axis", (area.left, bottom), (area.right(), bottom));
    let ticks = axis.ticks.clone().unwrap_or_else(|| axis.scale.ticks(axis.unit, 6));
    let mut free_from = f64::NEG_INFINITY;
    for tick in ticks {
        let x = area.x(tick.value);
        let label = shorten(&tick.label, 110.0);
        let width = text_width(&label);
        let middle = x.clamp(width / 2.0, WIDTH - width / 2.0);
        canvas.line("axis", (x, bottom), (x, bottom + 4.0));
        // Labels that would touch are left out; their ticks stay.
        if middle - width / 2.0 >= free_from {
            canvas.text(middle, bottom + 17.0, Anchor::Middle, "muted", &label);
            free_from = middle + width / 2.0 + 6.0;
        }
    }
    let middle = area.left + area.width / 2.0;
    canvas.text(middle, bottom + 34.0, Anchor::Middle, "muted", &axis.label);
}

fn draw_series(area: &Area<'_>, series: &Series, canvas: &mut Canvas) {
    canvas.begin(series.colour, "");
    let place = |point: &Point| {
        let y = point.y.filter(|y| y.is_finite())?;
        Some((area.x(point.x), area.y(y)))
    };
    canvas.path(series.stroke, series.points.iter().map(place));
    for point in &series.points {
        let (Some((x, y)), Some(value)) = (place(point), point.y) else { continue };
        if let Some((low, high)) = point.spread.filter(|(low, high)| high > low) {
            canvas.whisker(x, area.y(low), area.y(high));
        }
        if series.marks {
            let shown = number::show(area.lines.y.unit, value);
            canvas.begin(series.colour, &format!("{}: {shown}", series.name));
            canvas.mark(series.colour, x, y, point.hollow);
            canvas.end();
        }
    }
    canvas.end();
}

fn draw_limits(area: &Area<'_>, canvas: &mut Canvas) {
    for limit in &area.lines.limits {
        let y = area.y(limit.at);
        canvas.line("limit", (area.left, y), (area.right(), y));
        canvas.text(area.left + 4.0, y - 5.0, Anchor::Start, "limit-label halo", &limit.label);
    }
}

fn draw_spans(area: &Area<'_>, canvas: &mut Canvas) {
    for span in &area.lines.spans {
        let x = area.x(span.from);
        if let Some(until) = span.until {
            let width = (area.x(until) - x).max(1.0);
            canvas.rectangle("span", (x, area.top), (width, HEIGHT));
        }
        canvas.line("event", (x, area.top), (x, area.bottom()));
    }
}

/// A row above the area for the label of each span, counted from the bottom, such that no two
/// overlap. From right to left: the line of one further left does not pass through the label of
/// one further right.
fn place_labels(area: &Area<'_>) -> Vec<(usize, usize)> {
    let spans = &area.lines.spans;
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by(|a, b| spans[*b].from.total_cmp(&spans[*a].from));
    let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut rows = Vec::new();
    for index in order {
        let (from, to, _) = label_place(area, &spans[index]);
        let free = |row: &Vec<(f64, f64)>| row.iter().all(|other| to < other.0 || from > other.1);
        let row = taken.iter().position(free).unwrap_or(taken.len());
        if row == taken.len() {
            taken.push(Vec::new());
        }
        taken[row].push((from, to));
        rows.push((index, row));
    }
    rows
}

/// Where a label begins and ends, and at which end its line is.
fn label_place(area: &Area<'_>, span: &Span) -> (f64, f64, Anchor) {
    let x = area.x(span.from);
    let width = text_width(&shorten(&span.label, 270.0)) + 6.0;
    if x + width <= WIDTH { (x, x + width, Anchor::Start) } else { (x - width, x, Anchor::End) }
}

fn draw_labels(area: &Area<'_>, rows: &[(usize, usize)], canvas: &mut Canvas) {
    // The lines first, so that no label is crossed out.
    for (index, row) in rows {
        let x = area.x(area.lines.spans[*index].from);
        canvas.line("event", (x, area.top - 4.0 - 15.0 * *row as f64), (x, area.top));
    }
    for (index, row) in rows {
        let span = &area.lines.spans[*index];
        let (_, _, anchor) = label_place(area, span);
        let x = area.x(span.from) + if anchor == Anchor::Start { -1.0 } else { 1.0 };
        let y = area.top - 5.0 - 15.0 * *row as f64;
        canvas.text(x, y, anchor, "halo", &shorten(&span.label, 270.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_events_do_not_overlap() {
        let span = |from: f64, label: &str| Span { from, until: None, label: label.to_owned() };
        let axis = |scale| Axis { label: String::new(), unit: Unit::Seconds, scale, ticks: None };
        let lines = Lines {
            x: axis(Scale::Linear { low: 0.0, high: 60.0 }),
            y: axis(Scale::Linear { low: 0.0, high: 1.0 }),
            series: Vec::new(),
            spans: vec![
                span(1.0, "BGSAVE"),
                span(10.0, "kill -9 and restart"),
                span(11.0, "connection storm"),
                span(12.0, "FLUSHALL"),
                span(59.9, "BGREWRITEAOF"),
            ],
            limits: Vec::new(),
        };
        let area = Area { left: 40.0, top: 0.0, width: 400.0, lines: &lines };
        let rows = place_labels(&area);
        for (index, row) in &rows {
            let (from, to, _) = label_place(&area, &lines.spans[*index]);
            assert!(from >= 0.0 && to <= WIDTH, "{index} is cut off");
            for (other, other_row) in rows.iter().filter(|(other, _)| other != index) {
                let (other_from, other_to, _) = label_place(&area, &lines.spans[*other]);
                let apart = to < other_from || from > other_to;
                assert!(apart || row != other_row, "{index} and {other} overlap");
            }
        }
        let row = |span: usize| rows.iter().find(|(index, _)| *index == span).map(|(_, row)| *row);
        assert_eq!((row(3), row(0)), (Some(0), Some(0)), "those with room are lowest");
        assert_eq!(row(1), Some(2), "of three close ones the first stands highest");
    }
}
