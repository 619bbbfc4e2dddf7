//! How long a PING takes, again and again.

use std::thread::sleep;
use std::time::Duration;

use base::clock::{monotonic_ms, monotonic_us};
use hdrhistogram::Histogram;

use crate::format::Form;
use crate::interrupt;
use crate::options::Mode;
use crate::print::{complain, output, say};
use crate::session::{Failed, Session};

/// The pause between two samples.
const PAUSE: Duration = Duration::from_millis(10);
/// How long one sample for a script lasts, and each span of the history, if nobody has said it.
const USUAL: Duration = Duration::from_secs(1);
const USUAL_HISTORY: Duration = Duration::from_secs(15);
/// How long a server that is away is waited for before it is tried again.
const AWAY: Duration = Duration::from_secs(1);
/// Digits of the histogram; and its upper end, an hour.
const DIGITS: u8 = 3;
const MOST_US: u64 = 3_600_000_000;
/// The percentiles that are shown.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// What was measured since the last time that it was shown.
struct Samples {
    microseconds: Histogram<u64>,
    /// Of whole milliseconds, as redis-cli counts them.
    least: u64,
    most: u64,
    sum: u64,
    count: u64,
    begun_ms: u64,
}

impl Samples {
    fn new() -> Samples {
        let microseconds = Histogram::new_with_max(MOST_US, DIGITS);
        Samples {
            microseconds: microseconds.expect("the bounds of the histogram are right"),
            least: 0,
            most: 0,
            sum: 0,
            count: 0,
            begun_ms: monotonic_ms(),
        }
    }

    fn add(&mut self, us: u64) {
        self.microseconds.saturating_record(us);
        let ms = us / 1000;
        self.least = if self.count == 0 { ms } else { self.least.min(ms) };
        self.most = self.most.max(ms);
        self.sum += ms;
        self.count += 1;
    }

    fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    fn line(&self, form: Form) -> String {
        let Samples { least, most, count, .. } = self;
        let average = self.average();
        match form {
            Form::Standard => {
                format!("min: {least}, max: {most}, avg: {average:.2} ({count} samples)")
            }
            Form::Raw => format!("{least} {most} {average:.2} {count}"),
            Form::Csv => format!("{least},{most},{average:.2},{count}"),
            Form::Json | Form::QuotedJson => format!(
                "{{\"min\": {least}, \"max\": {most}, \"avg\": {average:.2}, \"count\": {count}}}"
            ),
        }
    }

    /// A table of percentiles, and how many samples lie between them.
    fn percentiles(&self) -> String {
        let mut text = String::from("\npercentile   milliseconds    samples\n");
        let mut before = 0;
        for percentile in PERCENTILES {
            let us = self.microseconds.value_at_percentile(percentile);
            let up_to = self.microseconds.count_between(0, us);
            let bar = "#".repeat(((up_to - before) * 30).div_ceil(self.count.max(1)) as usize);
            let ms = us as f64 / 1000.0;
            text.push_str(&format!("{percentile:>9.2}% {ms:>14.3} {up_to:>10} {bar}\n"));
            before = up_to;
        }
        text
    }
}

/// See the module's text. In a terminal it goes on until Ctrl-C.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    if session.options.mode == Mode::LatencySpectrum {
        return spectrum(session);
    }
    let form = session.options.form;
    let has_history = session.options.mode == Mode::LatencyHistory;
    let usual = if has_history { USUAL_HISTORY } else { USUAL };
    let span = Some(session.options.interval).filter(|span| !span.is_zero()).unwrap_or(usual);
    session.connected()?;
    let mut samples = Samples::new();
    while !interrupt::is_asked() {
        let Some(us) = sample(session)? else { continue };
        samples.add(us);
        let passed = monotonic_ms() - samples.begun_ms;
        let is_over = passed > span.as_millis() as u64;
        if form == Form::Standard {
            output(format!("\x1b[0G\x1b[2K{}", samples.line(form)).as_bytes());
            if has_history && is_over {
                say(&format!(" -- {:.2} seconds range", passed as f64 / 1000.0));
                samples = Samples::new();
            }
        } else if is_over {
            say(&samples.line(form));
            if !has_history {
                return Ok(());
            }
            samples = Samples::new();
        }
        sleep(PAUSE);
    }
    if form == Form::Standard {
        output(format!("\n{}", samples.percentiles()).as_bytes());
    }
    Ok(())
}

/// One sample in microseconds; none while the server is away.
fn sample(session: &mut Session) -> Result<Option<u64>, Failed> {
    let Ok(connection) = session.connected() else {
        sleep(AWAY);
        return Ok(None);
    };
    let begun = monotonic_us();
    match connection.call(&["PING"]) {
        Ok(reply) if reply.is_error() => {
            complain(&format!("Error: {}", crate::print::error_text(&reply)));
            Err(Failed)
        }
        Ok(_) => Ok(Some(monotonic_us() - begun)),
        Err(error) => {
            session.lose(&error);
            Ok(None)
        }
    }
}

/// The spans of the spectrum: up to so many microseconds, with a name, and a colour of 256.
const SPANS: [(u64, &str, u8); 12] = [
    (125, "125 us", 233),
    (250, "250 us", 235),
    (500, "500 us", 238),
    (1_000, "1 ms", 24),
    (2_000, "2 ms", 30),
    (5_000, "5 ms", 36),
    (10_000, "10 ms", 40),
    (50_000, "50 ms", 184),
    (100_000, "100 ms", 208),
    (500_000, "500 ms", 202),
    (1_000_000, "1 s", 196),
    (u64::MAX, "more", 199),
];

/// A line of coloured boxes for each span of time: the share of the samples that took as long.
fn spectrum(session: &mut Session) -> Result<(), Failed> {
    let span = Some(session.options.interval).filter(|span| !span.is_zero()).unwrap_or(USUAL);
    session.connected()?;
    let mut lines = 0;
    while !interrupt::is_asked() {
        let (mut counts, mut all) = ([0u64; SPANS.len()], 0u64);
        let end = monotonic_ms() + span.as_millis() as u64;
        while monotonic_ms() < end && !interrupt::is_asked() {
            let Some(us) = sample(session)? else { continue };
            let place = SPANS.iter().position(|(most, ..)| us <= *most).unwrap_or(0);
            counts[place] += 1;
            all += 1;
            sleep(PAUSE);
        }
        if lines % 20 == 0 {
            let legend =
                SPANS.map(|(_, name, color)| format!("\x1b[48;5;{color}m  \x1b[0m {name}"));
            say(&format!("up to: {}", legend.join("  ")));
        }
        lines += 1;
        let mut line = String::new();
        for ((_, _, color), count) in SPANS.iter().zip(counts) {
            let share = crate::bytes::share(count, all);
            let text = if count == 0 { "     .".to_owned() } else { format!("{share:>5.1}%") };
            line.push_str(&format!("\x1b[48;5;{color}m{text}\x1b[0m "));
        }
        say(&format!("{line} {all} samples"));
    }
    Ok(())
}
