//! What a view shows, as a table: the difference between two looks.

use serde_json::Value as Json;

use crate::look::{Look, StageSum, number};
use crate::numbers::{bytes, count, rate, seconds};
use crate::view::View;

/// A value with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// By what it is sorted, if it is a number.
    pub(crate) value: Option<f64>,
}

impl Cell {
    fn of(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: None }
    }

    fn number(value: f64, text: impl Fn(f64) -> String) -> Cell {
        Cell { text: text(value), value: Some(value) }
    }

    fn unknown() -> Cell {
        Cell { text: "-".to_owned(), value: Some(-1.0) }
    }
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The column by which it is sorted, if the user has chosen none; the largest is the first.
    pub(crate) order: usize,
    /// What is said where there is nothing to show.
    pub(crate) empty: &'static str,
}

impl Table {
    fn new(columns: &[&'static str], order: usize, empty: &'static str) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new(), order, empty }
    }

    /// Sorts the rows: numbers from the largest on and texts from A on, or the other way round.
    pub(crate) fn sort(&mut self, column: usize, turned: bool) {
        let column = column.min(self.columns.len().saturating_sub(1));
        self.rows.sort_by(|one, other| {
            let (one, other) = (&one[column], &other[column]);
            let order = match (one.value, other.value) {
                (Some(one), Some(other)) => other.total_cmp(&one),
                _ => one.text.cmp(&other.text),
            };
            if turned { order.reverse() } else { order }
        });
    }
}

/// What a view shows of a server, since the look before if there was one.
pub(crate) fn table(view: View, now: &Look, before: Option<&Look>) -> Table {
    let span = before.map_or(0.0, |before| now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9);
    match view {
        View::Commands => commands(now, before, span),
        View::Latency => latency(now, before),
        View::Clients => clients(now),
        View::Memory => memory(now),
        View::Keys => keys(now),
        View::Replication => replication(now),
    }
}

/// How often a second something that is counted happened.
pub(crate) fn per_second(now: f64, before: f64, span: f64) -> f64 {
    if span > 0.0 { ((now - before) / span).max(0.0) } else { 0.0 }
}

fn commands(now: &Look, before: Option<&Look>, span: f64) -> Table {
    let columns =
        ["command", "per second", "usec/call", "% of time", "p50", "p99", "calls", "failed"];
    let mut table = Table::new(&columns, 1, "no commands yet");
    let new = |name: &str, now: f64, of: fn(&crate::look::CommandSum) -> f64| {
        let before = before.and_then(|before| before.commands.get(name)).map_or(0.0, of);
        (now - before).max(0.0)
    };
    let times = now.commands.iter().map(|(name, sum)| new(name, sum.us, |sum| sum.us));
    let all_time: f64 = times.sum();
    for (name, sum) in &now.commands {
        let calls = new(name, sum.calls as f64, |sum| sum.calls as f64);
        let us = new(name, sum.us, |sum| sum.us);
        let each = if calls > 0.0 { us / calls } else { 0.0 };
        let share = if all_time > 0.0 { 100.0 * us / all_time } else { 0.0 };
        let percentile = |index: usize| {
            sum.percentiles.map_or_else(Cell::unknown, |all| Cell::number(all[index], micro))
        };
        table.rows.push(vec![
            Cell::of(name.as_str()),
            Cell::number(per_second(calls, 0.0, span), rate),
            Cell::number(each, |each| format!("{each:.2}")),
            Cell::number(share, |share| format!("{share:.1}")),
            percentile(0),
            percentile(1),
            Cell::number(sum.calls as f64, count),
            Cell::number((sum.failed + sum.rejected) as f64, count),
        ]);
    }
    table
}

fn micro(us: f64) -> String {
    seconds(us / 1e6)
}

fn latency(now: &Look, before: Option<&Look>) -> Table {
    let columns = ["stage", "per look", "mean", "p50", "p99", "p99.9", "of all"];
    let empty = "the server does not say over HTTP how long commands wait, run and are sent";
    let mut table = Table::new(&columns, usize::MAX, empty);
    let stages: Vec<(String, StageSum)> = now
        .stages
        .iter()
        .map(|(name, sum)| {
            let earlier =
                before.and_then(|look| look.stages.iter().find(|(other, _)| other == name));
            (name.clone(), earlier.map_or_else(|| sum.clone(), |(_, earlier)| less(sum, earlier)))
        })
        .collect();
    let all: f64 = stages.iter().map(|(_, sum)| sum.seconds).sum();
    for (name, sum) in stages {
        let mean = if sum.count > 0.0 { sum.seconds / sum.count } else { 0.0 };
        let share = if all > 0.0 { 100.0 * sum.seconds / all } else { 0.0 };
        let quantile = |share: f64| match quantile(&sum, share) {
            Some(most) => Cell::number(most, |most| format!("<{}", seconds(most))),
            None => Cell::unknown(),
        };
        table.rows.push(vec![
            Cell::of(name),
            Cell::number(sum.count, count),
            Cell::number(mean, seconds),
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            Cell::number(share, |share| format!("{share:.1} %")),
        ]);
    }
    table
}

/// What has come since.
fn less(now: &StageSum, before: &StageSum) -> StageSum {
    let earlier = |most: f64| before.buckets.iter().find(|(other, _)| *other == most);
    let bucket = |(most, count): &(f64, f64)| {
        (*most, (count - earlier(*most).map_or(0.0, |(_, count)| *count)).max(0.0))
    };
    StageSum {
        count: (now.count - before.count).max(0.0),
        seconds: (now.seconds - before.seconds).max(0.0),
        buckets: now.buckets.iter().map(bucket).collect(),
    }
}

/// The end of the first bucket that has this share with those before it.
fn quantile(sum: &StageSum, share: f64) -> Option<f64> {
    let wanted = sum.count * share;
    let found = sum.buckets.iter().find(|(_, up_to)| *up_to >= wanted && *up_to > 0.0)?;
    Some(found.0).filter(|most| most.is_finite())
}

fn clients(now: &Look) -> Table {
    let columns =
        ["address", "name", "user", "db", "command", "age", "idle", "memory", "output", "flags"];
    let mut table = Table::new(&columns, 7, "the server shows no clients");
    for client in &now.clients {
        let text = |name: &str| Cell::of(client.get(name).map_or("", String::as_str));
        let figure =
            |name: &str, shown: fn(f64) -> String| Cell::number(number(client, name), shown);
        table.rows.push(vec![
            text("addr"),
            text("name"),
            text("user"),
            text("db"),
            text("cmd"),
            figure("age", seconds),
            figure("idle", seconds),
            figure("tot-mem", bytes),
            figure("omem", bytes),
            text("flags"),
        ]);
    }
    table
}

fn memory(now: &Look) -> Table {
    let columns = ["prefix", "memory", "share", "keys", "bytes/key"];
    let empty = "the server does not say over HTTP what takes its memory; see the databases above";
    let mut table = Table::new(&columns, 1, empty);
    let all = now.memory["bytes"].as_f64().unwrap_or(0.0);
    for prefix in list(&now.memory["prefixes"]) {
        let (size, keys) =
            (prefix["bytes"].as_f64().unwrap_or(0.0), prefix["keys"].as_f64().unwrap_or(0.0));
        let share = if all > 0.0 { 100.0 * size / all } else { 0.0 };
        table.rows.push(vec![
            Cell::of(prefix["prefix"].as_str().filter(|name| !name.is_empty()).unwrap_or("(none)")),
            Cell::number(size, bytes),
            Cell::number(share, |share| format!("{share:.1} %")),
            Cell::number(keys, count),
            Cell::number(if keys > 0.0 { size / keys } else { 0.0 }, bytes),
        ]);
    }
    table
}

fn keys(now: &Look) -> Table {
    let columns = ["key", "kind", "per second", "memory", "type", "elements"];
    let empty = "the server does not say over HTTP which keys are hot or large: dunlin cli --hotkeys \
                 and --bigkeys look at all keys";
    let mut table = Table::new(&columns, 2, empty);
    for key in list(&now.hot_keys) {
        table.rows.push(vec![
            Cell::of(key["key"].as_str().unwrap_or_default()),
            Cell::of("hot"),
            key["commands_per_second"]
                .as_f64()
                .map_or_else(Cell::unknown, |value| Cell::number(value, rate)),
            Cell::unknown(),
            Cell::of(""),
            Cell::unknown(),
        ]);
    }
    for key in list(&now.memory["largest"]) {
        let figure = |name: &str, shown: fn(f64) -> String| {
            key[name].as_f64().map_or_else(Cell::unknown, |value| Cell::number(value, shown))
        };
        table.rows.push(vec![
            Cell::of(key["key"].as_str().unwrap_or_default()),
            Cell::of("large"),
            Cell::unknown(),
            figure("bytes", bytes),
            Cell::of(key["type"].as_str().unwrap_or_default()),
            figure("elements", count),
        ]);
    }
    table
}

fn replication(now: &Look) -> Table {
    let columns = ["server", "part", "state", "offset", "behind", "lag"];
    let mut table = Table::new(&columns, usize::MAX, "neither a primary nor replicas");
    let own = now.number("master_repl_offset");
    if !now.text("master_host").is_empty() {
        let offset = now.number("slave_repl_offset");
        table.rows.push(vec![
            Cell::of(format!("{}:{}", now.text("master_host"), now.text("master_port"))),
            Cell::of("primary"),
            Cell::of(now.text("master_link_status")),
            Cell::number(offset, |offset| format!("{offset:.0}")),
            Cell::unknown(),
            Cell::number(now.number("master_last_io_seconds_ago"), seconds),
        ]);
    }
    for replica in now.replicas() {
        let text = |name: &str| replica.get(name).map_or("", String::as_str);
        let offset = number(&replica, "offset");
        table.rows.push(vec![
            Cell::of(format!("{}:{}", text("ip"), text("port"))),
            Cell::of("replica"),
            Cell::of(text("state")),
            Cell::number(offset, |offset| format!("{offset:.0}")),
            Cell::number((own - offset).max(0.0), bytes),
            Cell::number(number(&replica, "lag"), seconds),
        ]);
    }
    table
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::CommandSum;

    fn look(at_ns: u64, calls: u64) -> Look {
        let get = CommandSum { calls, us: 2.0 * calls as f64, ..CommandSum::default() };
        let set = CommandSum { calls: 10, us: 10.0, ..CommandSum::default() };
        let commands = [("get".to_owned(), get), ("set".to_owned(), set)].into();
        Look { at_ns, commands, ..Look::default() }
    }

    #[test]
    fn rates_come_from_two_looks() {
        let (before, now) = (look(0, 100), look(2_000_000_000, 300));
        let mut table = table(View::Commands, &now, Some(&before));
        table.sort(table.order, false);
        let row: Vec<&str> = table.rows[0].iter().map(|cell| &*cell.text).collect();
        assert_eq!(row, ["get", "100", "2.00", "100.0", "-", "-", "300", "0"]);
        table.sort(0, true);
        assert_eq!(table.rows[0][0].text, "set");
    }

    #[test]
    fn quantiles_come_from_what_is_new() {
        let sum = |counts: [f64; 3]| StageSum {
            count: counts[2],
            seconds: 1.0,
            buckets: [0.001, 0.01, f64::INFINITY].into_iter().zip(counts).collect(),
        };
        let new = less(&sum([90.0, 110.0, 110.0]), &sum([0.0, 10.0, 10.0]));
        assert_eq!(quantile(&new, 0.5), Some(0.001));
        assert_eq!(quantile(&new, 0.99), Some(0.01));
        assert_eq!(quantile(&sum([0.0, 0.0, 0.0]), 0.5), None);
        assert_eq!(quantile(&sum([0.0, 0.0, 5.0]), 0.5), None, "it took longer than all bounds");
    }
}
