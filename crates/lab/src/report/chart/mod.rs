//! Charts as SVG: lines and bars. A chart fits a phone, and two charts fit side by side on a
//! desktop screen. Colours are names that the page (or the file itself, when a chart stands alone)
//! fills in, so the same drawing suits light and dark backgrounds.

mod bars;
mod canvas;
mod lines;
mod scale;

pub(crate) use bars::{Bar, Bars, Category};
pub(crate) use canvas::{CHART_SHEET, COLOUR_SHEET, COLOURS, Stroke};
pub(crate) use lines::{Axis, Lines, Marked, Point, Series, Span};
pub(crate) use scale::{Scale, Tick};

use canvas::Canvas;

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What the file is called, without `.svg`: letters, digits and hyphens.
    pub(crate) name: String,
    /// What it shows.
    pub(crate) title: String,
    /// Which kind it is, with its data.
    pub(crate) body: Body,
}

/// The kinds of charts.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Lines over an axis.
    Lines(Lines),
    /// Horizontal bars, in groups.
    Bars(Bars),
}

impl Chart {
    /// The chart as an element of a page, which brings the two sheets.
    pub(crate) fn inline(&self) -> String {
        self.draw(false)
    }

    /// The chart as a file.
    pub(crate) fn alone(&self) -> String {
        self.draw(true)
    }

    fn draw(&self, alone: bool) -> String {
        let mut canvas = Canvas::new(&self.title);
        match &self.body {
            Body::Lines(lines) => lines::draw(lines, &mut canvas),
            Body::Bars(bars) => bars::draw(bars, &mut canvas),
        }
        canvas.finish(alone)
    }
}
