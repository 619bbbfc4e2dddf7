//! Sections about what happened.

use std::sync::atomic::Ordering::Relaxed;

use super::Page;
use config::TlsAuthClientsUser;
use engine::engine::{Context, Engine};
use engine::observe::stats::{Totals, at_percentile};
use engine::session::pubsub::Kind;
use engine::users::log::Reason;

pub(super) fn stats(page: &mut Page, cx: &Context<'_>) {
    let engine = cx.engine;
    let totals = engine.stats.totals();
    let [commands, input, output] = engine.stats.rates();
    page.field("total_connections_received", totals.connections_received);
    page.field("total_commands_processed", totals.commands_processed);
    page.field("instantaneous_ops_per_sec", commands as u64);
    page.field("total_net_input_bytes", totals.net_input_bytes);
    page.field("total_net_output_bytes", totals.net_output_bytes);
    page.field("total_net_repl_input_bytes", 0);
    let sent = engine.replicas.counts.sent_bytes.load(Relaxed);
    page.field("total_net_repl_output_bytes", sent);
    page.field("instantaneous_input_kbps", format_args!("{:.2}", input / 1024.0));
    page.field("instantaneous_output_kbps", format_args!("{:.2}", output / 1024.0));
    page.field("instantaneous_input_repl_kbps", "0.00");
    page.field("instantaneous_output_repl_kbps", "0.00");
    page.field("rejected_connections", totals.rejected_connections);
    let counts = &engine.replicas.counts;
    page.field("sync_full", counts.full.load(Relaxed));
    page.field("sync_partial_ok", counts.partial.load(Relaxed));
    page.field("sync_partial_err", counts.refused_partial.load(Relaxed));
    page.field("expired_subkeys", totals.expired_subkeys);
    page.field("expired_keys", totals.expired_keys);
    page.field("expired_stale_perc", format_args!("{:.2}", engine.stats.stale_percentage()));
    page.field("expired_time_cap_reached_count", totals.expired_time_cap_reached);
    page.field("expire_cycle_cpu_milliseconds", totals.expire_cycle_nanoseconds / 1_000_000);
    page.field("evicted_keys", totals.evicted_keys);
    page.field("evicted_clients", totals.evicted_clients);
    page.field("evicted_scripts", engine.scripts.cache.evicted());
    let (exceeded, exceeded_now) = engine.memory.exceeded(base::clock::monotonic_us());
    page.field("total_eviction_exceeded_time", exceeded / 1000);
    page.field("current_eviction_exceeded_time", exceeded_now / 1000);
    page.field("keyspace_hits", totals.keyspace_hits);
    page.field("keyspace_misses", totals.keyspace_misses);
    page.field("pubsub_channels", engine.pubsub.len(Kind::Channel));
    page.field("pubsub_patterns", engine.pubsub.len(Kind::Pattern));
    page.field("pubsubshard_channels", engine.pubsub.len(Kind::Shard));
    what_never_happens(page);
    page.field("total_error_replies", totals.error_replies);
    page.field("dump_payload_sanitizations", 0);
    page.field("total_reads_processed", totals.reads_processed);
    page.field("total_writes_processed", totals.writes_processed);
    page.field("io_threaded_reads_processed", 0);
    page.field("io_threaded_writes_processed", 0);
    let (queries, outputs) =
        (totals.query_buffer_limit_disconnections, totals.output_buffer_limit_disconnections);
    page.field("client_query_buffer_limit_disconnections", queries);
    page.field("client_output_buffer_limit_disconnections", outputs);
    page.field("reply_buffer_shrinks", 0);
    page.field("reply_buffer_expands", 0);
    turns(page, &totals, engine);
    let users = &engine.users;
    page.field("acl_access_denied_auth", users.refused(Reason::Login));
    page.field("acl_access_denied_cmd", users.refused(Reason::Command));
    page.field("acl_access_denied_key", users.refused(Reason::Key));
    page.field("acl_access_denied_channel", users.refused(Reason::Channel));
    // Where there is nothing to count, the page is that of Redis 8.0.
    let (databases, certificates) =
        (users.refused(Reason::Database), users.refused(Reason::Certificate));
    if certificates > 0 || engine.config.load().tls_auth_clients_user != TlsAuthClientsUser::Off {
        page.field("acl_access_denied_tls_cert", certificates);
    }
    if databases > 0 {
        page.field("acl_access_denied_db", databases);
    }
}

/// What the workers' loops did, summed over all workers.
fn turns(page: &mut Page, totals: &Totals, engine: &Engine) {
    let (turns, nanoseconds) = engine.stats.turn_rates();
    page.field("eventloop_cycles", totals.turns);
    page.field("eventloop_duration_sum", totals.turn_nanoseconds / 1000);
    page.field("eventloop_duration_cmd_sum", engine.stats.command_nanoseconds() / 1000);
    page.field("instantaneous_eventloop_cycles_per_sec", turns as u64);
    page.field("instantaneous_eventloop_duration_usec", (nanoseconds / 1000.0) as u64);
}

/// Counts of things that the server never does: it does not fork and does not defragment.
fn what_never_happens(page: &mut Page) {
    for name in [
        "latest_fork_usec",
        "total_forks",
        "migrate_cached_sockets",
        "slave_expires_tracked_keys",
        "active_defrag_hits",
        "active_defrag_misses",
        "active_defrag_key_hits",
        "active_defrag_key_misses",
        "total_active_defrag_time",
        "current_active_defrag_time",
        "tracking_total_keys",
        "tracking_total_items",
        "tracking_total_prefixes",
        "unexpected_error_replies",
    ] {
        page.field(name, 0);
    }
}

/// What each thread that runs commands did.
pub(super) fn threads(page: &mut Page, cx: &Context<'_>) {
    for (number, thread) in cx.engine.stats.threads().iter().enumerate() {
        page.field(
            &format!("thread{number}"),
            format_args!(
                "name={},commands={},contended={},input_bytes={},output_bytes={},reads={},writes={}",
                thread.thread,
                thread.commands_processed.get(),
                thread.contended.get(),
                thread.net_input_bytes.get(),
                thread.net_output_bytes.get(),
                thread.reads_processed.get(),
                thread.writes_processed.get()
            ),
        );
    }
}

pub(super) fn commands(page: &mut Page, cx: &Context<'_>) {
    for row in cx.engine.commands.rows() {
        let [calls, nanoseconds, rejected, failed] = cx.engine.stats.command(row.id);
        if calls == 0 && rejected == 0 && failed == 0 {
            continue;
        }
        let usec = nanoseconds / 1000;
        let per_call = if calls == 0 { 0.0 } else { usec as f64 / calls as f64 };
        page.field(
            &format!("cmdstat_{}", row.command.full_name()),
            format_args!(
                "calls={calls},usec={usec},usec_per_call={per_call:.2},rejected_calls={rejected},\
                 failed_calls={failed}"
            ),
        );
    }
}

pub(super) fn errors(page: &mut Page, cx: &Context<'_>) {
    let mut errors = cx.engine.stats.errors();
    errors.sort_unstable();
    for (code, count) in errors {
        page.field(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

pub(super) fn latencies(page: &mut Page, cx: &Context<'_>) {
    if !cx.db.config.latency_tracking {
        return;
    }
    for row in cx.engine.commands.rows() {
        let counts = cx.engine.stats.histogram(row.id);
        if counts.is_empty() {
            continue;
        }
        let mut text = String::new();
        for &percentile in &cx.db.config.latency_tracking_info_percentiles {
            if !text.is_empty() {
                text.push(',');
            }
            let microseconds = at_percentile(&counts, percentile) as f64 / 1000.0;
            text.push_str(&format!("p{}={microseconds:.3}", trimmed(percentile)));
        }
        page.field(&format!("latency_percentiles_usec_{}", row.command.full_name()), text);
    }
}

/// A number with six decimals at most and no zeros at its end.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_shown_without_idle_zeros() {
        assert_eq!(["50", "99.9", "0"].map(String::from), [50.0, 99.9, 0.0].map(trimmed));
    }
}
