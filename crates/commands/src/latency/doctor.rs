//! LATENCY DOCTOR: says in words what took long, and what may be done about it.

use std::fmt::Write;

use config::Config;
use engine::observe::latency::Series;

/// What the samples of an event show.
struct Spikes {
    count: usize,
    average: u64,
    mean_deviation: u64,
    /// Seconds between two of them, on average.
    period: f64,
}

impl Spikes {
    fn of(series: &Series) -> Spikes {
        let samples = &series.samples;
        let count = samples.len().max(1) as u64;
        let average = samples.iter().map(|(_, duration)| duration).sum::<u64>() / count;
        let deviations = samples.iter().map(|(_, duration)| duration.abs_diff(average));
        let first = samples.front().map_or(0, |(at, _)| *at);
        let last = samples.back().map_or(0, |(at, _)| *at);
        Spikes {
            count: samples.len(),
            average,
            mean_deviation: deviations.sum::<u64>() / count,
            period: last.saturating_sub(first).max(1) as f64 / count as f64,
        }
    }
}

/// The report on these events.
pub(super) fn report(events: &[(&'static str, Series)], config: &Config) -> String {
    if config.latency_monitor_threshold == 0 {
        return "Nothing is measured: the latency monitor is off. \
                \"CONFIG SET latency-monitor-threshold <milliseconds>\" turns it on.\n"
            .to_string();
    }
    if events.is_empty() {
        return format!(
            "Nothing took {} ms or longer since the monitor was turned on or reset.\n",
            config.latency_monitor_threshold
        );
    }
    let mut text = "These events took long:\n\n".to_string();
    for (number, (event, series)) in events.iter().enumerate() {
        let spikes = Spikes::of(series);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{}. {event}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2} sec). \
             Worst all time event {}ms.",
            number + 1,
            spikes.count,
            spikes.average,
            spikes.mean_deviation,
            spikes.period,
            series.maximum
        );
    }
    let advice = advice(events, config);
    if !advice.is_empty() {
        text.push_str("\nWhat may help:\n\n");
        advice.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    text
}

fn advice(events: &[(&'static str, Series)], config: &Config) -> Vec<String> {
    let happened = |name: &str| events.iter().any(|(event, _)| *event == name);
    let mut advice = Vec::new();
    if happened("command") {
        let threshold_us = config.latency_monitor_threshold.saturating_mul(1000);
        if config.slowlog_log_slower_than < 0 {
            advice.push(format!(
                "The slow log is off and cannot tell which commands they were: \"CONFIG SET \
                 slowlog-log-slower-than {threshold_us}\" turns it on."
            ));
        } else if config.slowlog_log_slower_than > threshold_us as i64 {
            advice.push(format!(
                "The slow log notes only commands that take longer than the monitor's threshold: \
                 \"CONFIG SET slowlog-log-slower-than {threshold_us}\" shows all of these commands."
            ));
        }
        advice.push(
            "SLOWLOG GET shows which commands they were. A command over a large collection delays \
             commands that need the same slot, but no others."
                .to_string(),
        );
    }
    if happened("fast-command") {
        advice.push(
            "Commands that take constant time were slow, so the machine was: look for other load, \
             for swapping, and for a processor that the hypervisor takes away."
                .to_string(),
        );
    }
    if happened("eviction-cycle") || happened("eviction-del") {
        advice.push(
            "Evicting took long. \"CONFIG SET lazyfree-lazy-eviction yes\", smaller values or a \
             lower maxmemory-eviction-tenacity shorten it."
                .to_string(),
        );
    }
    if happened("expire-cycle") {
        advice.push(
            "Many keys expire at the same time. Spread their expiry a little at random."
                .to_string(),
        );
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(u64, u64)]) -> Series {
        Series { samples: samples.iter().copied().collect(), maximum: 90 }
    }

    #[test]
    fn the_report_follows_the_samples_and_the_settings() {
        let mut config = Config::default();
        assert!(report(&[], &config).contains("is off"));
        config.latency_monitor_threshold = 5;
        assert!(report(&[], &config).starts_with("Nothing took 5 ms"));
        let events = [("command", series(&[(10, 10), (12, 20), (20, 30)]))];
        let text = report(&events, &config);
        assert!(text.contains(
            "1. command: 3 latency spikes (average 20ms, mean deviation 6ms, period 3.33 sec). \
             Worst all time event 90ms."
        ));
        assert!(text.contains("slowlog-log-slower-than 5000"));
        assert!(!text.contains("Evicting"));
        assert!(report(&[("eviction-del", series(&[]))], &config).contains("lazyfree"));
    }
}
