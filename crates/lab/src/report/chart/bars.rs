//! Charts of bars: figures against things that have no order of their own.

use super::Scale;
use super::canvas::{Anchor, Canvas, LINE, Swatch, WIDTH, shorten, text_width};
use crate::report::number;
use crate::results::{Summary, Unit};

/// The height of a bar.
const BAR: f64 = 15.0;
/// What is left free for the values behind the bars.
const VALUES: f64 = 74.0;
/// Wider names stand above their bars.
const WIDEST: f64 = 130.0;

/// Horizontal bars in groups, one of each series.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// What is counted.
    pub(crate) label: String,
    /// In which unit.
    pub(crate) unit: Unit,
    /// The names of the bars of a group, with their colours.
    pub(crate) series: Vec<(String, usize)>,
    /// The groups, from the top down.
    pub(crate) categories: Vec<Category>,
}

/// A group of bars.
#[derive(Clone, Debug)]
pub(crate) struct Category {
    /// Its name.
    pub(crate) label: String,
    /// One per series.
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub(crate) enum Bar {
    /// A figure with its spread.
    Value(Summary),
    /// Why there is none.
    Missing(String),
}

/// How the bars lie.
struct Layout<'a> {
    bars: &'a Bars,
    scale: Scale,
    left: f64,
    width: f64,
    /// Names stand above their bars, not before them.
    above: bool,
}

impl Layout<'_> {
    fn of(bars: &Bars) -> Layout<'_> {
        let labels = bars.categories.iter().map(|category| text_width(&category.label));
        let widest = labels.fold(0.0, f64::max);
        let above = widest > WIDEST;
        let left = if above || widest == 0.0 { 0.0 } else { widest + 8.0 };
        let values = bars.categories.iter().flat_map(|category| &category.bars);
        let highs = values.filter_map(|bar| match bar {
            Bar::Value(summary) => Some(summary.high),
            Bar::Missing(_) => None,
        });
        let scale = Scale::from_zero(highs.fold(0.0, f64::max), bars.unit);
        Layout { bars, scale, left, width: WIDTH - left - VALUES, above }
    }

    /// The height of the bars of a group.
    fn block(&self) -> f64 {
        self.bars.series.len() as f64 * (BAR + 2.0)
    }

    fn group(&self) -> f64 {
        self.block() + 10.0 + if self.above { LINE } else { 0.0 }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.scale.place(value).clamp(0.0, 1.0) * self.width
    }
}

pub(super) fn draw(bars: &Bars, canvas: &mut Canvas) {
    let entries: Vec<(String, usize, Swatch)> =
        bars.series.iter().map(|(name, colour)| (name.clone(), *colour, Swatch::Box)).collect();
    canvas.legend(&entries);
    let layout = Layout::of(bars);
    let top = canvas.y + 2.0;
    let bottom = top + layout.group() * bars.categories.len() as f64;
    for tick in layout.scale.ticks(bars.unit, 4) {
        let x = layout.x(tick.value);
        canvas.line("grid", (x, top), (x, bottom));
        let x = x.max(text_width(&tick.label) / 2.0);
        canvas.text(x, bottom + 14.0, Anchor::Middle, "muted", &tick.label);
    }
    canvas.line("axis", (layout.left, top), (layout.left, bottom));
    let mut y = top + 5.0;
    for category in &bars.categories {
        draw_group(category, &layout, y, canvas);
        y += layout.group();
    }
    let middle = layout.left + layout.width / 2.0;
    canvas.text(middle, bottom + 31.0, Anchor::Middle, "muted", &bars.label);
    canvas.y = bottom + 2.0 * LINE;
}

fn draw_group(category: &Category, layout: &Layout<'_>, mut y: f64, canvas: &mut Canvas) {
    if layout.above {
        let label = shorten(&category.label, WIDTH);
        canvas.text(layout.left + 2.0, y + 11.0, Anchor::Start, "halo", &label);
        y += LINE;
    } else {
        let middle = y + layout.block() / 2.0 + 3.0;
        canvas.text(layout.left - 8.0, middle, Anchor::End, "", &category.label);
    }
    for (bar, (name, colour)) in category.bars.iter().zip(&layout.bars.series) {
        canvas.begin(*colour, name);
        draw_bar(bar, layout, y, canvas);
        canvas.end();
        y += BAR + 2.0;
    }
}

fn draw_bar(bar: &Bar, layout: &Layout<'_>, y: f64, canvas: &mut Canvas) {
    let middle = y + BAR / 2.0;
    match bar {
        Bar::Value(summary) => {
            let end = layout.x(summary.median);
            canvas.rectangle("bar", (layout.left, y), (end - layout.left, BAR));
            let (low, high) = (layout.x(summary.low), layout.x(summary.high));
            if high > low {
                canvas.line("whisker over", (low, middle), (high, middle));
                canvas.line("whisker over", (low, middle - 3.0), (low, middle + 3.0));
                canvas.line("whisker over", (high, middle - 3.0), (high, middle + 3.0));
            }
            let value = number::show(layout.bars.unit, summary.median);
            canvas.text(end.max(high) + 5.0, middle + 4.5, Anchor::Start, "halo", &value);
        }
        Bar::Missing(reason) => {
            let reason = shorten(reason, layout.width + VALUES - 6.0);
            canvas.text(layout.left + 5.0, middle + 4.5, Anchor::Start, "warning", &reason);
        }
    }
}
