//! The results as text, in the lines of redis-benchmark, so that programs that read those can read
//! these.

use std::fmt::Write as _;

use super::plans::Measurement;
use crate::load::{Pace, Schedule, Work};
use crate::record::{Generator, Latency, OperationRecord, Recording};

/// The head of the table with commas.
pub(super) const CSV_HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
                                   \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\
                                   \"max_latency_ms\"\n";

/// Up to here the table of latencies has a line per 0.1 ms, from here on one per ms.
const FINE_STEPS_UNTIL_MS: f64 = 2.0;

/// The server's settings of persistence: `save` and `appendonly`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelParameters {
    pub(super) save: String,
    pub(super) append_only: String,
}

/// A row of the table with commas, and one for each operation if there are several. There is no
/// column for the validity, nor for a load that was ended early: they stand after its name.
pub(super) fn csv(title: &str, recording: &Recording, digits: usize) -> String {
    let generator = &recording.generator;
    let counts = generator.invalid.is_empty() && generator.late.is_empty();
    let mark = match (counts, generator.overloaded.is_empty()) {
        (false, _) => " INVALID",
        (true, false) => " OVERLOADED",
        (true, true) => "",
    };
    let ended = if recording.interrupted.is_some() { " INTERRUPTED" } else { "" };
    let title = &format!("{title}{mark}{ended}");
    let mut text = csv_row(title, recording.rate(), &recording.response(), digits);
    for (operation, rate) in parts(recording) {
        text.push_str(&csv_row(&operation.name, rate, &operation.response, digits));
    }
    text
}

fn csv_row(title: &str, rate: f64, latency: &Latency, digits: usize) -> String {
    let mut text = format!("\"{}\",\"{rate:.2}\"", title.replace('"', "\"\""));
    for value in [
        latency.mean_ms(),
        latency.min_ms(),
        latency.quantile_ms(0.5),
        latency.quantile_ms(0.95),
        latency.quantile_ms(0.99),
        latency.max_ms(),
    ] {
        let _ = write!(text, ",\"{value:.digits$}\"");
    }
    text.push('\n');
    text
}

/// One line, and one for each operation of several.
pub(super) fn quiet(title: &str, recording: &Recording, digits: usize) -> String {
    let line = |title: &str, rate: f64, latency: &Latency| {
        let median = latency.quantile_ms(0.5);
        format!("{title}: {rate:.2} requests per second, p50={median:.digits$} msec\n")
    };
    let mut text = line(title, recording.rate(), &recording.response());
    if recording.interrupted.is_some() {
        text = format!("{} (interrupted)\n", text.trim_end());
    }
    for (operation, rate) in parts(recording) {
        text.push_str(&line(&operation.name, rate, &operation.response));
    }
    text
}

/// The operations with their rates, if there are several.
fn parts(recording: &Recording) -> impl Iterator<Item = (&OperationRecord, f64)> {
    let shown = if recording.operations.len() > 1 { &recording.operations[..] } else { &[] };
    let seconds = recording.seconds.max(f64::MIN_POSITIVE);
    shown.iter().map(move |operation| (operation, operation.successes() as f64 / seconds))
}

/// The whole report.
pub(super) fn full(
    measurement: &Measurement,
    recording: &Recording,
    settings: &KernelParameters,
    digits: usize,
) -> String {
    let mut text = head(measurement, recording, settings);
    let response = recording.response();
    if response.count() > 0 {
        text.push_str(&percentiles(&response, digits));
        text.push_str(&cumulative(&response, digits));
        text.push_str(&summary(recording, &response, digits));
    }
    text.push_str(&beyond(recording, digits));
    text
}

fn head(measurement: &Measurement, recording: &Recording, settings: &KernelParameters) -> String {
    let Measurement { title, payload, plan } = measurement;
    let (requests, seconds) = (recording.requests(), recording.seconds);
    let mut text = format!("====== {title} ======\n");
    let _ = writeln!(text, "  {requests} requests completed in {seconds:.2} seconds");
    if let Some(reason) = &recording.interrupted {
        let _ = writeln!(text, "  interrupted: it ended early ({reason})");
    }
    let _ = writeln!(text, "  {} parallel clients", plan.connections);
    let _ = writeln!(text, "  {payload} bytes payload");
    let keep_alive = match &plan.work {
        Work::Resp(work) => work.keep_alive,
        Work::Http(work) => work.keep_alive,
    };
    let _ = writeln!(text, "  keep alive: {}", i32::from(keep_alive));
    if plan.address.encryption.is_some() && !keep_alive {
        let Generator { connects, resumed, .. } = recording.generator;
        let _ = writeln!(text, "  connections: {connects}, {resumed} of them resumed a session");
    }
    if matches!(plan.work, Work::Resp(_)) {
        let _ = writeln!(text, "  host configuration \"save\": {}", settings.save);
        let _ = writeln!(text, "  host configuration \"appendonly\": {}", settings.append_only);
    }
    if plan.cluster {
        let redirects = recording.generator.redirects;
        let _ = writeln!(text, "  cluster mode: yes, {redirects} requests were sent on");
    }
    if plan.threads > 1 {
        let _ = writeln!(text, "  multi-thread: yes\n  threads: {}", plan.threads);
    } else {
        text.push_str("  multi-thread: no\n");
    }
    match plan.pace {
        Pace::Open { rate, schedule } => {
            let schedule = match schedule {
                Schedule::Constant => "constant",
                Schedule::Poisson => "poisson",
            };
            let _ = writeln!(
                text,
                "  open loop: {rate} requests per second are due ({schedule} schedule); \
                 latencies count from then"
            );
        }
        Pace::Closed { think_seconds } if think_seconds > 0.0 => {
            let _ = writeln!(text, "  pause between requests: {think_seconds} seconds");
        }
        Pace::Closed { .. } => {}
    }
    text.push('\n');
    text
}

/// The latencies that the next half of all requests, the next quarter and so on do not exceed.
fn percentiles(latency: &Latency, digits: usize) -> String {
    let mut text = String::from("Latency by percentile distribution:\n");
    let mut cumulative = 0;
    for step in latency.histogram().iter_quantiles(1) {
        cumulative += step.count_since_last_iteration();
        let _ = writeln!(
            text,
            "{:.3}% <= {:.digits$} milliseconds (cumulative count {cumulative})",
            step.quantile_iterated_to() * 100.0,
            step.value_iterated_to() as f64 / 1e6
        );
    }
    text.push('\n');
    text
}

/// How many requests took no longer than 0.1 ms, 0.2 ms and so on.
fn cumulative(latency: &Latency, digits: usize) -> String {
    let mut text = String::from("Cumulative distribution of latencies:\n");
    let total = latency.count();
    let (mut count, mut told) = (0u64, None);
    let mut step = 1u64;
    let bound = |step: u64| {
        let fine_steps = (FINE_STEPS_UNTIL_MS * 10.0) as u64;
        let fine = step.min(fine_steps) as f64 / 10.0;
        fine + step.saturating_sub(fine_steps) as f64
    };
    let mut tell = |step: u64, count: u64| {
        if told.replace(count) != Some(count) {
            let share = count as f64 / total.max(1) as f64 * 100.0;
            let bound = bound(step);
            let _ = writeln!(
                text,
                "{share:.3}% <= {bound:.digits$} milliseconds (cumulative count {count})"
            );
        }
    };
    for value in latency.histogram().iter_recorded() {
        while value.value_iterated_to() as f64 / 1e6 > bound(step) {
            tell(step, count);
            step += 1;
        }
        count += value.count_since_last_iteration();
    }
    tell(step, count);
    text.push('\n');
    text
}

fn summary(recording: &Recording, latency: &Latency, digits: usize) -> String {
    let mut text = String::from("Summary:\n");
    let _ = writeln!(text, "  throughput summary: {:.2} requests per second", recording.rate());
    text.push_str("  latency summary (msec):\n");
    row(&mut text, ["avg", "min", "p50", "p95", "p99", "max"].map(str::to_owned));
    let values = [
        latency.mean_ms(),
        latency.min_ms(),
        latency.quantile_ms(0.5),
        latency.quantile_ms(0.95),
        latency.quantile_ms(0.99),
        latency.max_ms(),
    ];
    row(&mut text, values.map(|value| format!("{value:.digits$}")));
    text
}

fn row(text: &mut String, cells: [String; 6]) {
    let _ = write!(text, "   ");
    for cell in cells {
        let _ = write!(text, " {cell:>9}");
    }
    text.push('\n');
}

/// Lines that redis-benchmark does not print: only when there is something to report.
fn beyond(recording: &Recording, digits: usize) -> String {
    let mut text = String::new();
    let is_open = matches!(recording.plan.pace, Pace::Open { .. });
    if is_open {
        let line = |name: &str, latency: &Latency| {
            let quantiles = [0.5, 0.9, 0.99, 0.999, 0.9999].map(|share| latency.quantile_ms(share));
            let [p50, p90, p99, p999, p9999] = quantiles;
            format!(
                "  {name}: p50={p50:.digits$} p90={p90:.digits$} p99={p99:.digits$} \
                 p99.9={p999:.digits$} p99.99={p9999:.digits$} max={:.digits$}\n",
                latency.max_ms()
            )
        };
        text.push_str("  times (msec):\n");
        text.push_str(&line("  response, from when a request was due", &recording.response()));
        text.push_str(&line("  service, from when it was sent", &recording.service()));
        text.push_str(&line("  lateness of sending", &recording.generator.lateness));
    }
    if recording.operations.len() > 1 {
        text.push_str("  operations:\n");
        for (operation, rate) in parts(recording) {
            let latency = &operation.response;
            let _ = writeln!(
                text,
                "    {}: {rate:.2} requests per second, p50={:.digits$} p99={:.digits$} \
                 p99.9={:.digits$} max={:.digits$} msec",
                operation.name,
                latency.quantile_ms(0.5),
                latency.quantile_ms(0.99),
                latency.quantile_ms(0.999),
                latency.max_ms()
            );
        }
    }
    if is_open || recording.operations.len() > 1 {
        let generator = &recording.generator;
        let _ = writeln!(
            text,
            "  generator: {:.0} % of a processor in its busiest thread, {} requests unsent",
            generator.busiest_thread * 100.0,
            generator.unsent
        );
    }
    text
}

/// The percentiles from a share on, in words.
pub(super) fn percentile(share: f64) -> String {
    if share >= 1.0 {
        return "the longest time".to_owned();
    }
    format!("p{} and above", (share * 1e6).round() / 1e4)
}

/// Errors by operation and kind: `SET: errors: 12 ERR, 3 connection`, each with what the server
/// said first. Empty if there were none.
pub(super) fn errors(recording: &Recording) -> String {
    let mut text = String::new();
    for operation in recording.operations.iter().filter(|operation| !operation.errors.is_empty()) {
        let kinds: Vec<String> =
            operation.errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let _ = writeln!(text, "{}: errors: {}", operation.name, kinds.join(", "));
        for said in operation.error_texts.values() {
            let _ = writeln!(text, "  the server said: {said}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Plan;
    use crate::record::Generator;

    fn recording(latencies_us: &[u64]) -> Recording {
        let mut operation = OperationRecord { name: "SET".to_owned(), ..Default::default() };
        for latency in latencies_us {
            operation.response.record(latency * 1000);
            operation.requests += 1;
        }
        Recording {
            plan: Plan::default(),
            started_unix_ms: 0,
            seconds: 2.0,
            operations: vec![operation],
            timeline: Vec::new(),
            generator: Generator::default(),
            interrupted: None,
        }
    }

    #[test]
    fn the_cumulative_table_steps_by_tenths_and_then_by_whole_milliseconds() {
        let text = cumulative(&recording(&[150, 160, 250, 1_950, 3_500]).response(), 3);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "0.000% <= 0.100 milliseconds (cumulative count 0)",
                "40.000% <= 0.200 milliseconds (cumulative count 2)",
                "60.000% <= 0.300 milliseconds (cumulative count 3)",
                "80.000% <= 2.000 milliseconds (cumulative count 4)",
                "100.000% <= 4.000 milliseconds (cumulative count 5)",
                "",
            ]
        );
    }

    #[test]
    fn percentiles_halve_what_remains() {
        let latencies: Vec<u64> = (1..=1000).map(|n| n * 100).collect();
        let text = percentiles(&recording(&latencies).response(), 3);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("0.000% <= 0.100 "), "{text}");
        assert!(lines[2].starts_with("50.000% <= 50.0"), "{text}");
        assert!(lines[2].ends_with("(cumulative count 500)"), "{text}");
        assert!(lines.iter().rev().nth(1).is_some_and(|line| line.starts_with("100.000% <= 100.")));
    }

    #[test]
    fn rows_have_the_columns_of_their_head() {
        let row = csv("a \"b\"", &recording(&[1000]), 3);
        assert!(row.starts_with("\"a \"\"b\"\"\",\"0.50\",\"1.0"), "{row}");
        assert_eq!(row.matches("\",\"").count(), CSV_HEAD.matches("\",\"").count());
        let mut bad = recording(&[1000]);
        bad.generator.overloaded.push("It was lost.".to_owned());
        assert!(csv("SET", &bad, 3).starts_with("\"SET OVERLOADED\","));
        bad.generator.invalid.push("It was late.".to_owned());
        assert!(csv("SET", &bad, 3).starts_with("\"SET INVALID\","));
    }

    #[test]
    fn percentiles_have_names() {
        assert_eq!(percentile(0.999), "p99.9 and above");
        assert_eq!(percentile(0.9999), "p99.99 and above");
        assert_eq!(percentile(1.0), "the longest time");
    }

    #[test]
    fn errors_are_listed_by_kind() {
        let mut recording = recording(&[1]);
        assert_eq!(errors(&recording), "");
        recording.operations[0].errors.insert("ERR".to_owned(), 2);
        recording.operations[0].errors.insert("connection".to_owned(), 1);
        assert_eq!(errors(&recording), "SET: errors: 2 ERR, 1 connection\n");
        recording.operations[0].error_texts.insert("ERR".to_owned(), "ERR no such".to_owned());
        assert!(errors(&recording).ends_with("\n  the server said: ERR no such\n"));
    }

    #[test]
    fn an_early_end_is_told_in_every_form() {
        let mut recording = recording(&[1000]);
        recording.interrupted = Some("stopped".to_owned());
        assert!(csv("SET", &recording, 3).starts_with("\"SET INTERRUPTED\","));
        assert!(quiet("SET", &recording, 3).ends_with(" msec (interrupted)\n"));
        let plan = Plan::default();
        let measurement = Measurement { title: "SET".to_owned(), payload: 3, plan };
        let full = full(&measurement, &recording, &KernelParameters::default(), 3);
        assert!(full.contains("\n  interrupted: it ended early (stopped)\n"), "{full}");
    }
}
