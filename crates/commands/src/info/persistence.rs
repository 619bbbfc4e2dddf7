//! The section about data on disk.

use super::Page;
use engine::engine::Context;
use engine::files::append_only::{Metrics, Rewrites, Writing};
use engine::observe::stats::Durations;
use engine::persistence::loading::Progress;

pub(super) fn persistence(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let last_load = engine.loading.last_outcome();
    let saving = engine.saving.metrics(cx.db.monotonic / 1000);
    let current = saving.current_seconds;
    page.field("loading", u8::from(engine.loading.is_on()));
    page.field("async_loading", 0);
    page.field("current_cow_peak", 0);
    page.field("current_cow_size", 0);
    page.field("current_cow_size_age", 0);
    page.field("current_fork_perc", "0.00");
    page.field("current_save_keys_processed", saving.keys_written);
    page.field("current_save_keys_total", saving.keys_total);
    page.field("rdb_changes_since_last_save", engine.dirty());
    page.field("rdb_bgsave_in_progress", u8::from(saving.in_progress));
    page.field("rdb_last_save_time", saving.last_save);
    page.field("rdb_last_bgsave_status", if saving.last_failed { "err" } else { "ok" });
    page.field("rdb_last_bgsave_time_sec", saving.last_seconds);
    page.field("rdb_current_bgsave_time_sec", current.map_or(-1, u64::cast_signed));
    page.field("rdb_saves", saving.saves);
    page.field("rdb_last_cow_size", 0);
    page.field("rdb_last_load_keys_expired", last_load.expired);
    page.field("rdb_last_load_keys_loaded", last_load.loaded);
    let file = engine.storage.append_only();
    append_only(page, &file);
    page.field("module_fork_in_progress", 0);
    page.field("module_fork_last_cow_size", 0);
    if let Some(writing) = &file.writing {
        append_only_writing(page, writing, file.rewrites.scheduled);
    }
    if let Some(progress) = engine.loading.progress() {
        loading(page, &progress);
    }
}

fn append_only(page: &mut Page, file: &Metrics) {
    let Rewrites { current_seconds, scheduled, last_seconds, .. } = file.rewrites;
    let seconds = |seconds: Option<u64>| seconds.map_or(-1, u64::cast_signed);
    page.field("aof_enabled", u8::from(file.writing.is_some()));
    page.field("aof_rewrite_in_progress", u8::from(current_seconds.is_some()));
    page.field("aof_rewrite_scheduled", u8::from(scheduled));
    page.field("aof_last_rewrite_time_sec", seconds(last_seconds));
    page.field("aof_current_rewrite_time_sec", seconds(current_seconds));
    page.field("aof_last_bgrewrite_status", file.rewrites.last_status.word());
    page.field("aof_rewrites", file.rewrites.begun);
    page.field("aof_rewrites_consecutive_failures", file.rewrites.failures);
    page.field("aof_last_write_status", file.last_write.word());
    page.field("aof_last_cow_size", 0);
}

/// Shown only while there is an append-only file.
fn append_only_writing(page: &mut Page, writing: &Writing, rewrite_scheduled: bool) {
    page.field("aof_current_size", writing.size);
    page.field("aof_base_size", writing.base_size);
    page.field("aof_pending_rewrite", u8::from(rewrite_scheduled));
    page.field("aof_buffer_length", writing.pending);
    page.field("aof_pending_bio_fsync", u8::from(writing.pending_sync));
    page.field("aof_delayed_fsync", writing.delayed_syncs);
    let Durations { count, p50, p99, p99_9, max } = writing.syncs;
    let [p50, p99, p99_9, max] = [p50, p99, p99_9, max].map(|duration| duration as f64 / 1000.0);
    page.field(
        "aof_fsync_latency_usec",
        format_args!("p50={p50:.3},p99={p99:.3},p99.9={p99_9:.3},max={max:.3},count={count}"),
    );
}

/// Shown only while data is being loaded.
fn loading(page: &mut Page, progress: &Progress) {
    let now = base::clock::now_ms() / 1000;
    page.field("loading_start_time", progress.started_at);
    page.field("loading_total_bytes", progress.total_bytes);
    page.field("loading_rdb_used_mem", progress.writer_memory);
    page.field("loading_loaded_bytes", progress.loaded_bytes);
    page.field("loading_loaded_perc", format_args!("{:.2}", progress.percentage()));
    page.field("loading_eta_seconds", progress.remaining_seconds(now));
}
