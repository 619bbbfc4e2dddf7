//! Takes back the statistics and publications of a script that begins again, except those of keys
//! that it has found expired.

use crate::command::error::CommandError;
use crate::engine::{Context, Row};
use crate::observe::stats::{Counter, Recorded, ThreadStats};

/// The counts before an attempt to run a script.
pub(super) struct Attempt {
    /// The number of publications before the attempt.
    publications: usize,
    totals: [u64; 4],
    /// The counts of the commands that it has called. A script calls few commands, most of them
    /// often.
    rows: Vec<(&'static Row, [u64; 4])>,
    durations: Recorded,
    /// The codes of errors, and how often they were counted.
    errors: Vec<(String, u64)>,
}

/// The counts of a command before a call.
#[derive(Clone, Copy)]
pub(super) struct BeforeCall([u64; 4]);

impl BeforeCall {
    pub(super) fn new(stats: &ThreadStats, row: &Row) -> BeforeCall {
        BeforeCall(of_row(stats, row).map(Counter::get))
    }
}

impl Attempt {
    /// An attempt that is about to begin.
    pub(super) fn new(cx: &mut Context<'_>) -> Attempt {
        let publications = cx.db.effects.publications.get_mut().len();
        Attempt {
            publications,
            totals: totals(cx.db.stats).map(Counter::get),
            rows: Vec::new(),
            durations: Recorded::default(),
            errors: Vec::new(),
        }
    }

    /// It is about to call a command.
    #[inline]
    pub(super) fn note(&mut self, stats: &ThreadStats, row: &'static Row) {
        if !self.rows.iter().any(|(known, _)| known.id == row.id) {
            self.rows.push((row, of_row(stats, row).map(Counter::get)));
        }
    }

    /// It has called a command, with this reply.
    #[inline]
    pub(super) fn note_called(&mut self, cx: &mut Context<'_>, row: &Row, before: BeforeCall) {
        let BeforeCall([calls, nanoseconds, failed, _]) = before;
        let own = &cx.db.stats.commands[row.id];
        if cx.db.config.latency_tracking && own.calls.get() > calls {
            self.durations.note(row.id, own.nanoseconds.get().wrapping_sub(nanoseconds));
        }
        if own.failed.get() > failed {
            let error = cx.reply.output().unsent().strip_prefix(b"-").unwrap_or_default();
            self.note_error(&CommandError::line(error.to_vec()));
        }
    }

    /// An error was counted.
    pub(super) fn note_error(&mut self, error: &CommandError) {
        let code = error.code();
        match self.errors.iter_mut().find(|(other, _)| *other == code) {
            Some((_, count)) => *count += 1,
            None => self.errors.push((code, 1)),
        }
    }

    /// It begins again. The counts are taken back if they are its own alone: when it has run for
    /// long, they are also those of the clients that were served meanwhile.
    pub(super) fn take_back(&self, cx: &mut Context<'_>, counts: bool) {
        cx.db.effects.publications.get_mut().take_back(self.publications);
        if counts {
            let stats = cx.db.stats;
            put_back(totals(stats), self.totals);
            self.rows.iter().for_each(|(row, before)| put_back(of_row(stats, row), *before));
            self.durations.take_back(stats);
            let errors = &cx.engine.stats;
            self.errors.iter().for_each(|(code, count)| errors.take_back_errors(code, *count));
        }
    }
}

fn totals(stats: &ThreadStats) -> [&Counter; 4] {
    [&stats.commands_processed, &stats.keyspace_hits, &stats.keyspace_misses, &stats.error_replies]
}

fn of_row<'s>(stats: &'s ThreadStats, row: &Row) -> [&'s Counter; 4] {
    let own = &stats.commands[row.id];
    [&own.calls, &own.nanoseconds, &own.failed, &own.rejected]
}

fn put_back(counters: [&Counter; 4], before: [u64; 4]) {
    counters.into_iter().zip(before).for_each(|(counter, before)| counter.put_back(before));
}
