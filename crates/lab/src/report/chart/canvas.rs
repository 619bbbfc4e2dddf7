//! What all charts draw with: text of estimated width, a title, a legend, marks.

use crate::report::markup::{Markup, Pixels};

/// How many colours there are before they come round again.
pub(crate) const COLOURS: usize = 8;

/// The colours of paper, ink and series, for light and dark.
pub(crate) const COLOUR_SHEET: &str = include_str!("colours.css");

/// How the parts of a chart are drawn.
pub(crate) const CHART_SHEET: &str = include_str!("chart.css");

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// Strong.
    Solid,
    /// In dashes.
    Dashed,
    /// In dots.
    Dotted,
}

impl Stroke {
    pub(super) fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "line",
            Stroke::Dashed => "line dashed",
            Stroke::Dotted => "line dotted",
        }
    }
}

/// The width of every chart. On a phone it shrinks to four fifths, and text with it.
pub(super) const WIDTH: f64 = 450.0;
/// The height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// The size of text.
const TEXT: f64 = 12.5;

/// Where text stands in relation to its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A chart in the making. Elements are drawn from the top down: `y` is how far it got.
pub(super) struct Canvas {
    title: String,
    body: Markup,
    pub(super) y: f64,
}

impl Canvas {
    /// Begins with the title.
    pub(super) fn new(title: &str) -> Canvas {
        let mut canvas = Canvas { title: title.to_owned(), body: Markup::new(), y: 4.0 };
        for line in wrap(title, WIDTH * TEXT / 15.0) {
            canvas.y += LINE;
            canvas.text(0.0, canvas.y - 4.0, Anchor::Start, "title", &line);
        }
        canvas.y += 2.0;
        canvas
    }

    /// The drawing. One that stands alone brings its colours and its paper.
    pub(super) fn finish(self, alone: bool) -> String {
        let margin = if alone { 12.0 } else { 0.0 };
        let (width, height) = (WIDTH + 2.0 * margin, self.y + 2.0 * margin);
        let view = format!("{} {} {} {}", -margin, -margin, Pixels(width), Pixels(height));
        let mut svg = Markup::new();
        if alone {
            svg.open(
                "svg",
                &[
                    ("xmlns", &"http://www.w3.org/2000/svg"),
                    ("class", &"chart"),
                    ("viewBox", &view),
                    ("width", &Pixels(width)),
                    ("height", &Pixels(height)),
                    ("role", &"img"),
                ],
            );
        } else {
            svg.open(
                "svg",
                &[
                    ("class", &"chart"),
                    ("viewBox", &view),
                    ("role", &"img"),
                    ("aria-label", &self.title),
                ],
            );
        }
        if alone {
            svg.leaf("title", &[], &self.title);
            svg.open("style", &[]);
            svg.markup(COLOUR_SHEET);
            svg.markup(CHART_SHEET);
            svg.close();
            svg.empty(
                "rect",
                &[
                    ("class", &"paper"),
                    ("x", &-margin),
                    ("y", &-margin),
                    ("width", &Pixels(width)),
                    ("height", &Pixels(height)),
                ],
            );
        }
        svg.markup(&self.body.finish());
        svg.finish()
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body.leaf(
            "text",
            &[("x", &Pixels(x)), ("y", &Pixels(y)), ("text-anchor", &anchor), ("class", &class)],
            text,
        );
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.body.empty(
            "line",
            &[
                ("class", &class),
                ("x1", &Pixels(from.0)),
                ("y1", &Pixels(from.1)),
                ("x2", &Pixels(to.0)),
                ("y2", &Pixels(to.1)),
            ],
        );
    }

    pub(super) fn rectangle(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        self.body.empty(
            "rect",
            &[
                ("class", &class),
                ("x", &Pixels(corner.0)),
                ("y", &Pixels(corner.1)),
                ("width", &Pixels(size.0.max(0.0))),
                ("height", &Pixels(size.1.max(0.0))),
            ],
        );
    }

    /// What follows has a series' colour, until [`Canvas::end`]; pointing at it shows `title`.
    pub(super) fn begin(&mut self, colour: usize, title: &str) {
        let class = format!("s{}", colour % COLOURS);
        self.body.open("g", &[("class", &class)]);
        if !title.is_empty() {
            self.body.leaf("title", &[], title);
        }
    }

    pub(super) fn end(&mut self) {
        self.body.close();
    }

    /// A line through points; it is interrupted where there is none.
    pub(super) fn path(
        &mut self,
        stroke: Stroke,
        points: impl Iterator<Item = Option<(f64, f64)>>,
    ) {
        let mut path = String::new();
        let mut drawing = false;
        for point in points {
            let Some((x, y)) = point else {
                drawing = false;
                continue;
            };
            path.push_str(if drawing { "L" } else { "M" });
            path.push_str(&format!("{} {}", Pixels(x), Pixels(y)));
            if !drawing {
                // A point that stands alone becomes visible through the round end of its line.
                path.push_str("h0");
            }
            drawing = true;
        }
        if !path.is_empty() {
            self.body.empty("path", &[("class", &stroke.class()), ("d", &path)]);
        }
    }

    /// A mark, of a form that goes with the colour for those who do not see colours.
    pub(super) fn mark(&mut self, colour: usize, x: f64, y: f64, hollow: bool) {
        let class = if hollow { "hollow" } else { "mark" };
        let corners = |offsets: &[(f64, f64)]| {
            let corners: Vec<String> = offsets
                .iter()
                .map(|(dx, dy)| format!("{},{}", Pixels(x + dx), Pixels(y + dy)))
                .collect();
            corners.join(" ")
        };
        let polygon = match colour % 4 {
            0 => {
                self.body.empty(
                    "circle",
                    &[("class", &class), ("cx", &Pixels(x)), ("cy", &Pixels(y)), ("r", &4)],
                );
                return;
            }
            1 => corners(&[(-3.7, -3.7), (3.7, -3.7), (3.7, 3.7), (-3.7, 3.7)]),
            2 => corners(&[(0.0, -5.0), (4.8, 3.6), (-4.8, 3.6)]),
            _ => corners(&[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)]),
        };
        self.body.empty("polygon", &[("class", &class), ("points", &polygon)]);
    }

    /// The spread around a point: a line between the smallest and the largest, with ends.
    pub(super) fn whisker(&mut self, x: f64, low: f64, high: f64) {
        for y in [low, high] {
            self.line("whisker", (x - 4.0, y), (x + 4.0, y));
        }
        self.line("whisker", (x, low), (x, high));
    }

    /// Names and how each is drawn, in as many rows as they take.
    pub(super) fn legend(&mut self, entries: &[(String, usize, Swatch)]) {
        let mut x = 0.0;
        let mut rows = 0;
        for (name, colour, swatch) in entries {
            let name = shorten(name, WIDTH - 40.0);
            let width = 28.0 + text_width(&name);
            if rows == 0 || x + width > WIDTH {
                self.y += LINE;
                rows += 1;
                x = 0.0;
            }
            let middle = self.y - 8.0;
            self.begin(*colour, "");
            match swatch {
                Swatch::Box => self.rectangle("bar", (x + 4.0, middle - 5.0), (14.0, 10.0)),
                Swatch::Line(stroke, marks) => {
                    self.path(*stroke, [Some((x, middle)), Some((x + 22.0, middle))].into_iter());
                    if *marks {
                        self.mark(*colour, x + 11.0, middle, false);
                    }
                }
            }
            self.end();
            self.text(x + 28.0, self.y - 4.0, Anchor::Start, "", &name);
            x += width + 16.0;
        }
        if rows > 0 {
            self.y += 4.0;
        }
    }
}

/// How a legend shows a series.
#[derive(Clone, Copy)]
pub(super) enum Swatch {
    Box,
    Line(Stroke, bool),
}

/// About how wide a text is; fonts differ, so it is rather too much than too little.
pub(super) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'm' | 'w' | 'M' | 'W' | '…' => 0.96,
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!'
        | '(' | ')' | '[' | ']' | ' ' | '\u{202f}' => 0.38,
        'A'..='Z' => 0.72,
        _ => 0.63,
    };
    text.chars().map(|c| TEXT * width(c)).sum()
}

/// As much of a text as fits.
pub(super) fn shorten(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if text_width(&short) + text_width("n…") > width {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

/// Two lines at most, broken between words.
fn wrap(text: &str, width: f64) -> Vec<String> {
    if text_width(text) <= width {
        return vec![text.to_owned()];
    }
    let mut first = String::new();
    let mut rest = String::new();
    for word in text.split(' ') {
        let line = if rest.is_empty()
            && (first.is_empty() || text_width(&first) + text_width(word) + 5.0 <= width)
        {
            &mut first
        } else {
            &mut rest
        };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let mut lines = vec![shorten(&first, width)];
    if !rest.is_empty() {
        lines.push(shorten(&rest, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_shortened_or_wrapped() {
        assert_eq!(shorten("redis-server", 200.0), "redis-server");
        let short = shorten("a very long name of a target indeed", 100.0);
        assert!(short.ends_with('…') && text_width(&short) <= 100.0, "{short}");
        let lines = wrap("throughput in requests a second against connections", 200.0);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], "throughput in requests a");
    }
}
