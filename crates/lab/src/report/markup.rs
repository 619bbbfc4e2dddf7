//! A writer of XML, which HTML and SVG both are here: every element is closed, and every text is
//! escaped, because there is no other way to write one.

use std::fmt::{Display, Write as _};

/// A document in the making.
#[derive(Default)]
pub(crate) struct Markup {
    text: String,
    open: Vec<&'static str>,
}

/// The attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// A coordinate: to a hundredth of a pixel, and never anything that is not a number.
#[derive(Clone, Copy)]
pub(crate) struct Pixels(pub(crate) f64);

impl Display for Pixels {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = if self.0.is_finite() { self.0 } else { 0.0 };
        write!(formatter, "{}", (value * 100.0).round() / 100.0 + 0.0)
    }
}

impl Markup {
    pub(crate) fn new() -> Self {
        Markup::default()
    }

    /// Begins an element, which [`Markup::close`] ends.
    pub(crate) fn open(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.tag(name, attributes);
        self.text.push('>');
        self.open.push(name);
    }

    /// Ends the element that was begun last.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = write!(self.text, "</{name}>");
            if is_block(name) {
                self.text.push('\n');
            }
        }
    }

    /// An element without content.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.tag(name, attributes);
        self.text.push_str("/>");
    }

    /// An element that holds text and nothing else.
    pub(crate) fn leaf(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        text: impl Display,
    ) {
        self.open(name, attributes);
        self.text(text);
        self.close();
    }

    /// Text.
    pub(crate) fn text(&mut self, text: impl Display) {
        escape(&mut self.text, &text.to_string());
    }

    /// What is markup already.
    pub(crate) fn markup(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// The document, with all its elements ended.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn tag(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (name, value) in attributes {
            let _ = write!(self.text, " {name}=\"");
            escape(&mut self.text, &value.to_string());
            self.text.push('"');
        }
    }
}

/// Elements that end a line in the file, for those who read it.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "tr"
            | "table"
            | "section"
            | "figure"
            | "svg"
            | "g"
            | "h1"
            | "h2"
            | "h3"
            | "li"
            | "details"
            | "style"
            | "div"
            | "header"
            | "head"
    )
}

/// Characters that XML does not allow at all become a visible mark.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_escaped_and_closed() {
        let mut markup = Markup::new();
        markup.open("div", &[("title", &"a \"b\" <c>")]);
        markup.leaf("b", &[], "1 < 2 & 'x'\u{0}");
        markup.empty("rect", &[("x", &Pixels(f64::NAN)), ("y", &Pixels(1.0 / 3.0))]);
        assert_eq!(
            markup.finish(),
            "<div title=\"a &quot;b&quot; &lt;c&gt;\"><b>1 &lt; 2 &amp; &#39;x&#39;\u{fffd}</b>\
             <rect x=\"0\" y=\"0.33\"/></div>\n"
        );
    }
}
