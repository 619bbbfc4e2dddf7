//! The section about what outlives the process.

use super::Page;
use crate::context::Context;
use crate::loading::Progress;

pub(super) fn persistence(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let last_load = engine.loading.last_outcome();
    page.field("loading", u8::from(engine.loading.is_on()));
    page.field("async_loading", 0);
    page.field("current_cow_peak", 0);
    page.field("current_cow_size", 0);
    page.field("current_cow_size_age", 0);
    page.field("current_fork_perc", "0.00");
    page.field("current_save_keys_processed", 0);
    page.field("current_save_keys_total", 0);
    page.field("rdb_changes_since_last_save", engine.dirty());
    page.field("rdb_bgsave_in_progress", 0);
    // As in Redis, a server that has not saved yet counts from its start.
    page.field("rdb_last_save_time", engine.started_at / 1000);
    page.field("rdb_last_bgsave_status", "ok");
    page.field("rdb_last_bgsave_time_sec", -1);
    page.field("rdb_current_bgsave_time_sec", -1);
    page.field("rdb_saves", 0);
    page.field("rdb_last_cow_size", 0);
    page.field("rdb_last_load_keys_expired", last_load.expired);
    page.field("rdb_last_load_keys_loaded", last_load.loaded);
    page.field("aof_enabled", 0);
    page.field("aof_rewrite_in_progress", 0);
    page.field("aof_rewrite_scheduled", 0);
    page.field("aof_last_rewrite_time_sec", -1);
    page.field("aof_current_rewrite_time_sec", -1);
    page.field("aof_last_bgrewrite_status", "ok");
    page.field("aof_rewrites", 0);
    page.field("aof_rewrites_consecutive_failures", 0);
    page.field("aof_last_write_status", "ok");
    page.field("aof_last_cow_size", 0);
    page.field("module_fork_in_progress", 0);
    page.field("module_fork_last_cow_size", 0);
    if let Some(progress) = engine.loading.progress() {
        loading(page, &progress);
    }
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
