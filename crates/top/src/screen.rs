//! The screen as lines: a head with figures of the whole server, the view, and a line of keys.
//! Every line is as wide as the terminal at most, and there are as many as it has rows.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::look::Look;
use crate::numbers::{bytes, count, rate, seconds};
use crate::table::{Table, per_second};
use crate::view::{VIEWS, View};

/// What the user has chosen.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) view: View,
    /// The column of the order, if it is not the usual one of the view.
    pub(crate) order: Option<usize>,
    pub(crate) turned: bool,
    /// How many rows are above the first that is shown.
    pub(crate) scrolled: usize,
    pub(crate) paused: bool,
    pub(crate) explains: bool,
    pub(crate) interval_ms: u64,
    pub(crate) colors: bool,
}

impl Chosen {
    /// The choice at the start.
    pub(crate) fn new(view: View, interval_ms: u64, colors: bool) -> Chosen {
        Chosen {
            view,
            order: None,
            turned: false,
            scrolled: 0,
            paused: false,
            explains: false,
            interval_ms,
            colors,
        }
    }
}

/// All that is drawn.
pub(crate) struct Drawn<'a> {
    pub(crate) server: &'a str,
    pub(crate) now: &'a Look,
    pub(crate) before: Option<&'a Look>,
    pub(crate) table: &'a Table,
    /// The rates of all commands in the last looks, the newest last.
    pub(crate) rates: &'a [f64],
    /// Why the server is not asked just now.
    pub(crate) trouble: Option<&'a str>,
}

/// A style, as codes of terminals.
#[derive(Clone, Copy)]
enum Style {
    Plain,
    Bold,
    Dim,
    Turned,
    Warning,
}

fn painted(text: &str, style: Style, colors: bool) -> String {
    let code = match style {
        Style::Plain => return text.to_owned(),
        // These are no colours.
        Style::Bold => "1",
        Style::Turned => "7",
        Style::Dim if colors => "90",
        Style::Warning if colors => "31;1",
        Style::Dim | Style::Warning => return text.to_owned(),
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// A text without what a terminal would obey, cut or filled to this width.
pub(crate) fn fitted(text: &str, width: usize, right: bool) -> String {
    let mut cut = String::new();
    for letter in text.chars() {
        let letter = if letter.is_control() { '?' } else { letter };
        if cut.width() + letter.width().unwrap_or(0) > width {
            break;
        }
        cut.push(letter);
    }
    let space = " ".repeat(width.saturating_sub(cut.width()));
    if right { space + &cut } else { cut + &space }
}

/// The lines of a screen of this size.
pub(crate) fn lines(
    drawn: &Drawn<'_>,
    chosen: &Chosen,
    columns: usize,
    rows: usize,
) -> Vec<String> {
    let colors = chosen.colors;
    let mut lines = Vec::new();
    for text in head(drawn, chosen) {
        lines.push(painted(&fitted(&text, columns, false), Style::Plain, colors));
    }
    if let Some(trouble) = drawn.trouble {
        let text = fitted(&format!("{}: {trouble}; trying again", drawn.server), columns, false);
        lines.push(painted(&text, Style::Warning, colors));
    } else {
        let bars = sparks(drawn.rates, columns.saturating_sub(10));
        let text = fitted(&format!("commands  {bars}"), columns, false);
        lines.push(painted(&text, Style::Dim, colors));
    }
    lines.push(tabs(chosen, columns));
    let left = rows.saturating_sub(lines.len() + 1);
    match chosen.explains {
        true => {
            lines.extend(EXPLANATION.iter().take(left).map(|line| fitted(line, columns, false)))
        }
        false => lines.extend(body(drawn.table, chosen, columns, left)),
    }
    lines.resize(rows.saturating_sub(1), String::new());
    let keys = "q quit  1-6 view  s sort  r turn  arrows scroll  +- time  space pause  ? help";
    lines.push(painted(&fitted(keys, columns, false), Style::Dim, colors));
    lines.truncate(rows);
    lines
}

const EXPLANATION: [&str; 15] = [
    "",
    "1 to 6, Tab  the views: commands, latency, clients, memory, keys, replication",
    "s, r         sort by the next column; turn the order round",
    "Up, Down     scroll by a row; PgUp and PgDn by ten; Home goes to the first",
    "+, -         looks less often, more often",
    "Space        pauses",
    "?            back to the view",
    "q, Ctrl-C    ends",
    "",
    "Rates are those between the last two looks. Percentiles of commands are since",
    "the server's start, or since CONFIG RESETSTAT. Those of stages are of the last",
    "look, and say in which bucket of the server's histogram they are.",
    "queue: until the batch of the command runs; execute: while it runs; commit:",
    "while the reply waits for a sync; flush: while replies go to the sockets.",
    "Memory by prefix is estimated from a sample of keys, hot keys from commands.",
];

/// Figures of the whole server.
pub(crate) fn head(drawn: &Drawn<'_>, chosen: &Chosen) -> Vec<String> {
    let (now, before) = (drawn.now, drawn.before);
    let span = before.map_or(0.0, |before| now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9);
    let speed = |name: &str| {
        per_second(now.number(name), before.map_or(0.0, |look| look.number(name)), span)
    };
    let role = if now.text("role") == "slave" { "replica" } else { "primary" };
    let state = if chosen.paused {
        "paused".to_owned()
    } else {
        format!("every {} ms", chosen.interval_ms)
    };
    let cpu = 100.0 * (speed("used_cpu_user") + speed("used_cpu_sys"));
    let (hits, misses) = (speed("keyspace_hits"), speed("keyspace_misses"));
    let hit_rate = match hits + misses > 0.0 {
        true => format!("{:.1} %", 100.0 * hits / (hits + misses)),
        false => "-".to_owned(),
    };
    let most = match now.number("maxmemory") {
        most if most > 0.0 => format!(" of {}", bytes(most)),
        _ => String::new(),
    };
    let databases = now.databases();
    let keys: u64 = databases.iter().map(|(_, keys, _)| keys).sum();
    let expiring: u64 = databases.iter().map(|(_, _, expiring)| expiring).sum();
    vec![
        format!(
            "{}  {}  {role}  up {}  {state}",
            drawn.server,
            now.product(),
            seconds(now.number("uptime_in_seconds"))
        ),
        format!(
            "commands {}/s  cpu {cpu:.0} %  in {}/s  out {}/s  clients {} ({} blocked)",
            rate(speed("total_commands_processed")),
            bytes(speed("total_net_input_bytes")),
            bytes(speed("total_net_output_bytes")),
            count(now.number("connected_clients")),
            count(now.number("blocked_clients")),
        ),
        format!(
            "memory {}{most} (peak {}, resident {})",
            bytes(now.number("used_memory")),
            bytes(now.number("used_memory_peak")),
            bytes(now.number("used_memory_rss")),
        ),
        format!(
            "keys {} ({} expire)  hits {hit_rate}  expired {}/s  evicted {}/s",
            count(keys as f64),
            count(expiring as f64),
            rate(speed("expired_keys")),
            rate(speed("evicted_keys")),
        ),
    ]
}

/// Values as bars, the newest at the end.
fn sparks(values: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match most > 0.0 {
        true => BARS[((value / most * 7.0).round() as usize).min(7)],
        false => BARS[0],
    };
    shown.iter().map(bar).collect()
}

fn tabs(chosen: &Chosen, columns: usize) -> String {
    let (mut line, mut width) = (String::new(), 0);
    for (index, view) in VIEWS.into_iter().enumerate() {
        let text = format!(" {} {} ", index + 1, view.name());
        if width + text.width() > columns {
            break;
        }
        width += text.width();
        let style = if view == chosen.view { Style::Turned } else { Style::Plain };
        line.push_str(&painted(&text, style, chosen.colors));
    }
    line
}

/// The table, as far as it fits.
fn body(table: &Table, chosen: &Chosen, columns: usize, rows: usize) -> Vec<String> {
    if table.rows.is_empty() {
        return vec![String::new(), fitted(table.empty, columns, false)];
    }
    let widths = widths(table, columns);
    let order = chosen.order.unwrap_or(table.order);
    let names = table.columns.iter().enumerate().map(|(column, name)| {
        let mark = match (column == order, chosen.turned) {
            (false, _) => "",
            (true, false) => "*",
            (true, true) => "^",
        };
        format!("{name}{mark}")
    });
    let is_right = |column: usize| table.rows[0][column].value.is_some();
    let row = |texts: &mut dyn Iterator<Item = String>| {
        let cells = texts.zip(&widths).enumerate();
        let cells = cells.filter(|(_, (_, width))| **width > 0);
        let cells = cells.map(|(column, (text, width))| fitted(&text, *width, is_right(column)));
        fitted(&cells.collect::<Vec<_>>().join(" "), columns, false)
    };
    let mut lines = vec![painted(&row(&mut names.into_iter()), Style::Bold, chosen.colors)];
    let first = chosen.scrolled.min(table.rows.len() - 1);
    for cells in table.rows[first..].iter().take(rows.saturating_sub(1)) {
        lines.push(row(&mut cells.iter().map(|cell| cell.text.clone())));
    }
    lines
}

/// The width of each column; 0 for those that do not fit.
fn widths(table: &Table, columns: usize) -> Vec<usize> {
    let widest = |column: usize| {
        let cells = table.rows.iter().map(|row| row[column].text.width());
        cells.max().unwrap_or(0).max(table.columns[column].width() + 1)
    };
    let mut widths: Vec<usize> = (0..table.columns.len()).map(widest).collect();
    // The first is a name, which may be long: it takes what the others leave.
    let others = |widths: &[usize]| widths[1..].iter().map(|width| width + 1).sum::<usize>();
    while others(&widths) + 12 > columns && widths.len() > 1 {
        widths.pop();
    }
    widths[0] = widths[0].min(columns.saturating_sub(others(&widths)));
    widths.resize(table.columns.len(), 0);
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit() {
        assert_eq!(fitted("abc", 5, false), "abc  ");
        assert_eq!(fitted("abc", 5, true), "  abc");
        assert_eq!(fitted("abcdef", 3, false), "abc");
        assert_eq!(fitted("a\x1b[2Jb", 10, false), "a?[2Jb    ");
        assert_eq!(fitted("\u{4e2d}\u{4e2d}", 3, false), "\u{4e2d} ");
    }

    #[test]
    fn every_size_is_filled_and_never_exceeded() {
        let (look, table) = (Look::default(), Table::default());
        for (columns, rows) in [(80, 24), (200, 60), (20, 5), (1, 1), (80, 2)] {
            for view in VIEWS {
                let full = crate::table::table(view, &look, None);
                for table in [&table, &full] {
                    let drawn = Drawn {
                        server: "h:1",
                        now: &look,
                        before: None,
                        table,
                        rates: &[1.0, 2.0],
                        trouble: None,
                    };
                    let lines = lines(&drawn, &Chosen::new(view, 1000, false), columns, rows);
                    assert_eq!(lines.len(), rows);
                    let plain = |line: &String| {
                        line.replace("\x1b[7m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
                    };
                    assert!(lines.iter().all(|line| plain(line).width() <= columns), "{lines:?}");
                }
            }
        }
    }

    #[test]
    fn bars_show_the_newest() {
        assert_eq!(sparks(&[9.0, 0.0, 4.0, 8.0], 3), "▁▅█");
        assert_eq!(sparks(&[0.0, 0.0], 9), "▁▁");
    }
}
