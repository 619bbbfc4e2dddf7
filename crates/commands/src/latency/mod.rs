//! LATENCY: which events took long, and how long commands take.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Group, LOADING, NO_KEYS, NOSCRIPT, STALE,
    argument, docs, docs_of_help,
};
use engine::engine::{Command, Context, Engine, Family, Row, row};
use engine::handler::help::{container, help};
use engine::observe::latency::Series;

mod doctor;
mod graph;

/// The name of an event; plain text if it is a known event.
fn event_name(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// LATENCY LATEST
fn latest(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let events = cx.engine.latency.all();
    cx.reply.array(events.len());
    for (event, series) in &events {
        let (second, milliseconds) = series.samples.back().copied().unwrap_or_default();
        cx.reply.array(4);
        cx.reply.bulk(event.as_bytes());
        cx.reply.integer(second as i64);
        cx.reply.integer(milliseconds as i64);
        cx.reply.integer(series.maximum as i64);
    }
    Ok(())
}

/// LATENCY HISTORY event
fn history(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let Series { samples, .. } =
        cx.engine.latency.series(event_name(args.bytes()?)).unwrap_or_default();
    cx.reply.array(samples.len());
    for (second, milliseconds) in samples {
        cx.reply.array(2);
        cx.reply.integer(second as i64);
        cx.reply.integer(milliseconds as i64);
    }
    Ok(())
}

/// LATENCY GRAPH event
fn graph(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let event = args.bytes()?;
    let Some(series) = cx.engine.latency.series(event_name(event)) else {
        return Err(CommandError::quoting("ERR No samples available for event '", event, "'"));
    };
    let text = graph::draw(event_name(event), &series, cx.db.now / 1000);
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// LATENCY RESET [event ...]
fn reset(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let latency = &cx.engine.latency;
    let forgotten: usize = match args.is_empty() {
        true => latency.reset(None),
        false => args.rest().iter().map(|event| latency.reset(Some(event_name(event)))).sum(),
    };
    cx.reply.integer(forgotten as i64);
    Ok(())
}

/// LATENCY DOCTOR
fn doctor(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let config = cx.engine.config.load();
    let text = doctor::report(&cx.engine.latency.all(), &config);
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// LATENCY HISTOGRAM [command ...]
fn histogram(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let rows: Vec<&Row> = match args.is_empty() {
        true => cx.engine.commands.rows().iter().collect(),
        false => {
            let names = args.rest().iter();
            names.flat_map(|name| named_rows(cx.engine, name)).collect()
        }
    };
    let mark = cx.reply.mark();
    let mut shown = 0;
    for row in rows {
        let counts = cx.engine.stats.histogram(row.id);
        if !counts.is_empty() {
            cx.reply.bulk(row.command.full_name().as_bytes());
            reply_histogram(cx, &counts);
            shown += 1;
        }
    }
    cx.reply.close_map(mark, shown);
    Ok(())
}

/// The rows that a name stands for: a command and its subcommands, or one subcommand
/// ("config|set").
fn named_rows(engine: &Engine, name: &[u8]) -> Vec<&'static Row> {
    let commands = engine.commands;
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let row = words.next().and_then(|name| engine.client_names.find(name));
    match (row, words.next()) {
        (None, _) => Vec::new(),
        (Some(row), Some(name)) => commands.find_subcommand(row, name).into_iter().collect(),
        (Some(row), None) => {
            let rows = &commands.rows()[row.id..=row.id + row.command.subcommands.len()];
            rows.iter().collect()
        }
    }
}

/// Writes how many calls took no longer than each power of two of 1.024 microseconds: from the
/// first power that covers any call to the first that covers all.
fn reply_histogram(cx: &mut Context<'_>, counts: &[(u64, u64)]) {
    let calls: u64 = counts.iter().map(|(_, count)| count).sum();
    cx.reply.map(2);
    cx.reply.bulk(b"calls");
    cx.reply.integer(calls as i64);
    cx.reply.bulk(b"histogram_usec");
    let mark = cx.reply.mark();
    let (mut pairs, mut before, mut power) = (0, 0, 1024);
    while before < calls {
        let upto: u64 =
            counts.iter().take_while(|(bound, _)| *bound < power).map(|(_, count)| count).sum();
        if upto > before {
            // Redis counts by 128ths of a power of two. As in Redis, the bound shown is the end of
            // the part that the power itself lies in.
            cx.reply.integer(((power + power / 128 - 1) / 1000) as i64);
            cx.reply.integer(upto as i64);
            (pairs, before) = (pairs + 1, upto);
        }
        power *= 2;
    }
    cx.reply.close_map(mark, pairs);
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([container("latency", SUBCOMMANDS)]);

const SUBCOMMANDS: &[Command] = &Group::Server.under("latency").rows([
    row("latest", latest, 2, ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
    row("history", history, 3, ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
    row("graph", graph, 3, ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
    row("doctor", doctor, 2, ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
    row("histogram", histogram, -2, ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
    row("reset", reset, -2, ADMIN | NOSCRIPT | LOADING | STALE, NO_KEYS),
    help(),
]);

// ---- Documentation ------------------------------------------------------------------------------

const OBSERVING: &[&str] =
    &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];

const DOCS: &[Docs] = &[
    docs("latency", "2.8.13", "Commands about events that took long.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("latency|latest", "2.8.13", "Shows each event with its newest and its longest duration.")
        .cost("O(1)")
        .tips(OBSERVING),
    docs("latency|history", "2.8.13", "Shows when an event took how long.")
        .cost("O(1)")
        .arguments(&[argument("event", ArgumentKind::String)])
        .tips(OBSERVING),
    docs("latency|graph", "2.8.13", "Draws how long an event took.")
        .cost("O(1)")
        .arguments(&[argument("event", ArgumentKind::String)])
        .tips(OBSERVING),
    docs("latency|doctor", "2.8.13", "Reports what took long, and what may be done about it.")
        .cost("O(1)")
        .tips(OBSERVING),
    docs("latency|histogram", "7.0.0", "Shows how many calls of commands took how long.")
        .cost("O(N) for N commands that are shown.")
        .arguments(&[argument("command", ArgumentKind::String).optional().multiple()])
        .tips(OBSERVING),
    docs("latency|reset", "2.8.13", "Forgets the samples of events, or of all.")
        .cost("O(1)")
        .arguments(&[argument("event", ArgumentKind::String).optional().multiple()])
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum"]),
    docs_of_help("latency|help", "2.8.13"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_shown_and_forgotten() {
        let mut server = crate::testing::server();
        server.engine.latency.note("command", 1000, 7);
        server.engine.latency.note("command", 1001, 5);
        server.engine.latency.note("fast-command", 1001, 1);
        assert_eq!(
            server.text("LATENCY LATEST"),
            "*2\r\n*4\r\n$7\r\ncommand\r\n:1001\r\n:5\r\n:7\r\n\
             *4\r\n$12\r\nfast-command\r\n:1001\r\n:1\r\n:1\r\n"
        );
        assert_eq!(
            server.text("LATENCY HISTORY command"),
            "*2\r\n*2\r\n:1000\r\n:7\r\n*2\r\n:1001\r\n:5\r\n"
        );
        assert_eq!(server.text("LATENCY HISTORY nosuch"), "*0\r\n");
        assert_eq!(server.text("LATENCY RESET nosuch command"), ":1\r\n");
        assert_eq!(server.text("LATENCY RESET"), ":1\r\n");
        let error = "-ERR No samples available for event 'command'\r\n";
        assert_eq!(server.text("LATENCY GRAPH command"), error);
    }

    #[test]
    fn histograms_are_cumulative() {
        let mut server = crate::testing::server();
        let row =
            server.engine.commands.find(b"lolwut").map(|row| row.id).expect("LOLWUT is a command");
        for microseconds in [1, 3, 3, 30, 1000] {
            server.turn.stats.commands[row].record(microseconds * 1000, true);
        }
        server.turn.stats.commands[row].record(900, false);
        assert_eq!(
            server.text("LATENCY HISTOGRAM lolwut nosuch config|nosuch"),
            "*2\r\n$6\r\nlolwut\r\n*4\r\n$5\r\ncalls\r\n:5\r\n$14\r\nhistogram_usec\r\n\
             *8\r\n:1\r\n:1\r\n:4\r\n:3\r\n:33\r\n:4\r\n:1056\r\n:5\r\n"
        );
        assert_eq!(named_rows(&server.engine, b"CONFIG").len(), 6);
        assert_eq!(named_rows(&server.engine, b"config|SET").len(), 1);
    }
}
