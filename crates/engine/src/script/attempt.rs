//! What a script leaves in statistics and news before it begins again: nothing of that has happened.

use crate::engine::{Context, Row};
use crate::observe::stats::{Counter, ThreadStats};

/// The counts before an attempt to run a script.
pub(super) struct Attempt {
    /// So many news there were.
    news: usize,
    totals: [u64; 4],
    /// Those of the commands that it has called. A script calls few commands, most of them often.
    rows: Vec<(&'static Row, [u64; 4])>,
}

impl Attempt {
    /// One that is about to begin.
    pub(super) fn new(cx: &mut Context<'_>) -> Attempt {
        let news = cx.db.effects.news.get_mut().len();
        Attempt { news, totals: totals(cx.db.stats).map(Counter::get), rows: Vec::new() }
    }

    /// It is about to call a command.
    #[inline]
    pub(super) fn note(&mut self, stats: &ThreadStats, row: &'static Row) {
        if !self.rows.iter().any(|(known, _)| known.id == row.id) {
            self.rows.push((row, of_row(stats, row).map(Counter::get)));
        }
    }

    /// It begins again. The counts are taken back if they are its own alone: when it has run for long,
    /// they are also those of the clients that were served meanwhile.
    pub(super) fn take_back(&self, cx: &mut Context<'_>, counts: bool) {
        cx.db.effects.news.get_mut().truncate(self.news);
        if counts {
            let stats = cx.db.stats;
            put_back(totals(stats), self.totals);
            self.rows.iter().for_each(|(row, before)| put_back(of_row(stats, row), *before));
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
