//! What is recorded of a command that has run: its counters, and an entry of a log if its time, its
//! request or its reply exceeds the thresholds in the settings.

use config::Config;
use resp::args::Arguments;

use crate::cluster::slot_stats::SlotCost;
use crate::command;
use crate::command::args::Args;
use crate::command::keys::collect_keys;
use crate::engine::{Context, Engine, Row};
use crate::observe::command_log::{Cost, LogKind, LoggedCommand, NotedFrom, shortened};
use crate::session::Session;
use crate::session::awaited::{Awaited, Wait};
use crate::turn::Turn;

impl NotedFrom {
    /// Whether a command may belong into a log.
    #[inline]
    fn concern(self, cost: Cost, argv: Arguments<'_>) -> bool {
        cost.nanoseconds >= self.nanoseconds
            || cost.reply >= self.reply
            || argv.wire_len_at_most() as u64 >= self.request
    }
}

impl Engine {
    /// Counts a command that has run, and checks whether it should be noted.
    #[inline]
    pub(crate) fn note_cost(
        &self,
        cx: &Context<'_>,
        row: &'static Row,
        args: &Args<'_>,
        cost: Cost,
    ) {
        cx.db.stats.commands_processed.add(1);
        cx.db.stats.commands[row.id].record(cost.nanoseconds, cx.db.config.latency_tracking);
        let from = cx.db.effects.noted_from;
        let (command, now) = ((row, args.argv()), cx.db.now);
        if cx.db.effects.config_changed {
            // A change by CONFIG SET already applies to that command itself.
            self.note_outlier((cx.session, now), command, cost, &self.config.snapshot());
        } else if from.concern(cost, command.1) {
            self.note_outlier((cx.session, now), command, cost, cx.db.config);
        }
    }

    /// Counts and notes a command that has waited for a key and was answered: once, as one that has
    /// run. The time for which it waited does not count.
    pub fn note_waited(&self, turn: &Turn, session: &Session, wait: &Wait) {
        let (Awaited::Key(_, row), Some(&cost)) = (&wait.awaited, wait.cost.get()) else { return };
        let row = &self.commands.rows()[*row];
        turn.stats.commands_processed.add(1);
        turn.stats.commands[row.id].record(cost.nanoseconds, turn.config.latency_tracking);
        if turn.effects.noted_from.concern(cost, wait.argv.view()) {
            let command = (row, wait.argv.view());
            self.note_outlier((session, turn.now), command, cost, &turn.config);
        }
    }

    /// Counts the cost of a command for the slot of its first key. What a script calls is a part of
    /// the script's own cost.
    #[cold]
    fn note_slot_cost(&self, session: &Session, (row, argv): (&Row, Arguments<'_>), cost: Cost) {
        if session.script {
            return;
        }
        let mut keys = Vec::new();
        collect_keys(row.command, argv, &mut keys);
        let Some(key) = keys.first() else { return };
        let bytes_in = argv.wire_len() as u64;
        let bytes_out = if session.hears_replies() { cost.reply } else { 0 };
        let cost = SlotCost { nanoseconds: cost.nanoseconds, bytes_in, bytes_out };
        self.cluster.slot_stats.add(key.slot, cost);
    }

    #[cold]
    fn note_outlier(
        &self,
        (session, now): (&Session, u64),
        (row, argv): (&Row, Arguments<'_>),
        cost: Cost,
        config: &Config,
    ) {
        if config.cluster_enabled && config.cluster_slot_stats_enabled {
            self.note_slot_cost(session, (row, argv), cost);
        }
        let microseconds = cost.nanoseconds / 1000;
        if !row.command.has(command::SKIP_SLOWLOG) {
            // A command that a script calls was not sent by a client.
            let request = if session.script { 0 } else { argv.wire_len() as u64 };
            let reply = if session.hears_replies() { cost.reply } else { 0 };
            let (slow, slow_len) = (config.slowlog_log_slower_than, config.slowlog_max_len);
            let (large_request, large_request_len) =
                (config.commandlog_request_larger_than, config.commandlog_large_request_max_len);
            let (large_reply, large_reply_len) =
                (config.commandlog_reply_larger_than, config.commandlog_large_reply_max_len);
            for (kind, measure, from, keep) in [
                (LogKind::Slow, microseconds, slow, slow_len),
                (LogKind::LargeRequest, request, large_request, large_request_len),
                (LogKind::LargeReply, reply, large_reply, large_reply_len),
            ] {
                if from >= 0 && measure >= from as u64 {
                    let entry = entry((session, now), (row, argv), measure);
                    self.command_logs.of(kind).note(entry, keep as usize);
                }
            }
        }
        let threshold = config.latency_monitor_threshold;
        if threshold > 0 && microseconds / 1000 >= threshold {
            let event = if row.command.has(command::FAST) { "fast-command" } else { "command" };
            self.latency.note(event, now / 1000, microseconds / 1000);
        }
    }
}

/// A command as a log keeps it.
fn entry(
    (session, now): (&Session, u64),
    (row, argv): (&Row, Arguments<'_>),
    measure: u64,
) -> LoggedCommand {
    let (client, by_script) = (&session.client, session.script);
    LoggedCommand {
        id: 0,
        at: now / 1000,
        measure,
        argv: shortened(row.command, argv),
        address: if by_script { String::new() } else { client.address.clone() },
        name: if by_script { Vec::new() } else { client.names.lock().name.clone() },
    }
}
