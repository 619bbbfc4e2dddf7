//! What is recorded of a command that has run: its counters, and an entry of a log if its time, its
//! request or its reply exceeds the thresholds in the settings.

use config::Config;

use crate::command;
use crate::engine::{Context, Engine, Row};
use crate::handler::args::Args;
use crate::observe::command_log::{LogKind, LoggedCommand, shortened};

/// The cost of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Its time.
    pub(crate) nanoseconds: u64,
    /// Bytes of its reply.
    pub(crate) reply: u64,
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
        if cx.db.effects.settings_changed {
            // A change by CONFIG SET already applies to that command itself.
            self.note_outlier(cx, row, args, cost, &self.config.snapshot());
        } else if cost.nanoseconds >= from.nanoseconds
            || cost.reply >= from.reply
            || args.argv().wire_len_at_most() as u64 >= from.request
        {
            self.note_outlier(cx, row, args, cost, cx.db.config);
        }
    }

    #[cold]
    fn note_outlier(
        &self,
        cx: &Context<'_>,
        row: &'static Row,
        args: &Args<'_>,
        cost: Cost,
        config: &Config,
    ) {
        let microseconds = cost.nanoseconds / 1000;
        if !row.command.has(command::SKIP_SLOWLOG) {
            // A command that a script calls was not sent by a client.
            let request = if cx.session.script { 0 } else { args.argv().wire_len() as u64 };
            let reply = if cx.session.hears_replies() { cost.reply } else { 0 };
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
                    self.command_logs.of(kind).note(entry(cx, row, args, measure), keep as usize);
                }
            }
        }
        let threshold = config.latency_monitor_threshold;
        if threshold > 0 && microseconds / 1000 >= threshold {
            let event = if row.command.has(command::FAST) { "fast-command" } else { "command" };
            self.latency.note(event, cx.db.now / 1000, microseconds / 1000);
        }
    }
}

/// A command as a log keeps it.
fn entry(cx: &Context<'_>, row: &'static Row, args: &Args<'_>, measure: u64) -> LoggedCommand {
    let (client, by_script) = (&cx.session.client, cx.session.script);
    LoggedCommand {
        id: 0,
        at: cx.db.now / 1000,
        measure,
        argv: shortened(row.command, args.argv()),
        address: if by_script { String::new() } else { client.address.clone() },
        name: if by_script { Vec::new() } else { client.names.lock().name.clone() },
    }
}
