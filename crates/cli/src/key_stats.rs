//! The biggest keys by memory and by elements, with distributions.

use hdrhistogram::Histogram;

use crate::big_keys::{Kind, call_all, count_all, kinds, memory_usage, number, place, types};
use crate::bytes::{human, share};
use crate::connection::Words;
use crate::print::output;
use crate::quote::quoted;
use crate::scan::Walk;
use crate::session::{Failed, Session};

/// Digits of the histograms, and the largest size in them.
const DIGITS: u8 = 4;
const SIZE_MAX: u64 = 1 << 44;

/// What is known of a type.
#[derive(Clone, Default)]
struct Sum {
    keys: u64,
    size: u64,
    elements: u64,
    largest: Option<(u64, Vec<u8>)>,
    longest: Option<(u64, Vec<u8>)>,
}

/// A key that was looked at.
struct Seen {
    key: Vec<u8>,
    place: usize,
    size: u64,
    elements: u64,
}

struct Stats {
    kinds: Vec<Kind>,
    sums: Vec<Sum>,
    /// The largest keys, the largest first: size, type and name.
    top: Vec<(u64, usize, Vec<u8>)>,
    sizes: Histogram<u64>,
    names: Histogram<u64>,
    sampled: u64,
    size: u64,
    name_length: u64,
}

/// Looks at all keys and prints what it finds.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    let all = count_all(session)?;
    output(
        b"\n# Scanning the entire keyspace to find the biggest keys and distribution information.\n\
          # Use -i 0.1 to sleep 0.1 sec per 100 SCAN commands (not usually needed).\n\
          # Use --cursor <n> to start the scan at the cursor <n> (usually after a Ctrl-C).\n\
          # Use --top <n> to display <n> top key sizes (default is 10).\n\
          # Ctrl-C to stop the scan.\n\n",
    );
    let histogram = || {
        Histogram::new_with_max(SIZE_MAX, DIGITS).expect("the bounds of the histogram are right")
    };
    let mut stats = Stats {
        kinds: kinds(),
        sums: Vec::new(),
        top: Vec::new(),
        sizes: histogram(),
        names: histogram(),
        sampled: 0,
        size: 0,
        name_length: 0,
    };
    let top = session.options.top;
    let mut walk = Walk::new(&session.options);
    while let Some(keys) = walk.step(session)? {
        for seen in look(session, keys, &mut stats.kinds)? {
            stats.add(seen, top);
        }
        walk.pause(&session.options);
    }
    output(stats.text(all, walk.cursor(), top).as_bytes());
    Ok(())
}

fn look(session: &mut Session, keys: Words, kinds: &mut Vec<Kind>) -> Result<Vec<Seen>, Failed> {
    let types = types(session, &keys)?;
    let samples = session.options.memory_samples;
    let (mut seen, mut commands) = (Vec::new(), Vec::new());
    for (key, name) in keys.into_iter().zip(types) {
        let Some(name) = name else { continue };
        let place = place(&name, kinds);
        commands.push(memory_usage(&key, samples));
        let counts = kinds[place].counts;
        let is_counted = !counts.is_empty();
        if is_counted {
            commands.push(vec![counts.as_bytes().to_vec(), key.clone()]);
        }
        seen.push((Seen { key, place, size: 0, elements: 0 }, is_counted));
    }
    let mut replies = call_all(session, &commands)?.into_iter();
    let mut next = || replies.next().as_ref().map_or(0, number);
    let filled = seen.into_iter().map(|(seen, is_counted)| {
        let size = next();
        let elements = if is_counted { next() } else { 0 };
        Seen { size, elements, ..seen }
    });
    Ok(filled.collect())
}

impl Stats {
    fn add(&mut self, seen: Seen, top: usize) {
        let Seen { key, place, size, elements } = seen;
        self.sums.resize(self.kinds.len().max(self.sums.len()), Sum::default());
        let sum = &mut self.sums[place];
        sum.keys += 1;
        sum.size += size;
        sum.elements += elements;
        if sum.largest.as_ref().is_none_or(|(largest, _)| size > *largest) {
            sum.largest = Some((size, key.clone()));
        }
        if sum.longest.as_ref().is_none_or(|(longest, _)| elements > *longest) {
            sum.longest = Some((elements, key.clone()));
        }
        self.sampled += 1;
        self.size += size;
        self.name_length += key.len() as u64;
        self.sizes.saturating_record(size);
        self.names.saturating_record(key.len() as u64);
        let at = self.top.partition_point(|(other, ..)| *other >= size);
        if at < top {
            self.top.insert(at, (size, place, key));
            self.top.truncate(top);
        }
    }

    fn text(&self, all: u64, cursor: Option<u64>, top: usize) -> String {
        let Stats { sampled, size, .. } = self;
        let mut text = format!("{:05.2}% keys scanned\n", share(*sampled, all));
        text.push_str(&format!("Keys sampled: {sampled}\nKeys size:    {}\n", human(*size)));
        if let Some(cursor) = cursor {
            text.push_str(&format!("\nThe scan goes on with --cursor {cursor}\n"));
        }
        text.push_str(&format!("\n--- Top {top} key sizes ---\n"));
        for (index, (size, place, key)) in self.top.iter().enumerate() {
            let (name, key) = (&self.kinds[*place].name, quoted(key));
            let (rank, size) = (index + 1, human(*size));
            text.push_str(&format!("{rank:>3} {size:>8} {name:<10} {key}\n"));
        }
        self.add_biggest(&mut text);
        self.add_distributions(&mut text);
        self.add_types(&mut text);
        text
    }

    fn add_biggest(&self, text: &mut String) {
        let shown = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let all = || self.kinds.iter().zip(&self.sums);
        text.push_str("\n--- Top size per type ---\n");
        for (kind, sum) in all() {
            if let Some((size, key)) = &sum.largest {
                let (key, size) = (shown(key), human(*size));
                text.push_str(&format!("{:<10} {key} is {size}\n", kind.name));
            }
        }
        text.push_str("\n--- Top length and cardinality per type ---\n");
        for (kind, sum) in all() {
            if let Some((elements, key)) = &sum.longest {
                let count = counted(kind, *elements);
                text.push_str(&format!("{:<10} {} has {count}\n", kind.name, shown(key)));
            }
        }
    }

    fn add_distributions(&self, text: &mut String) {
        text.push_str("\nKey size Percentile Total keys\n-------- ---------- -----------\n");
        add_percentiles(&self.sizes, 8, text);
        let (mean, deviation) = (self.sizes.mean() as u64, self.sizes.stdev() as u64);
        text.push_str(&format!(
            "Note: 0.01% size precision, Mean: {}, StdDeviation: {}\n",
            human(mean),
            human(deviation)
        ));
        text.push_str("\nKey name length Percentile Total keys\n");
        text.push_str("--------------- ---------- -----------\n");
        add_percentiles(&self.names, 15, text);
        let average = self.name_length.checked_div(self.sampled).unwrap_or(0);
        let (all, average) = (human(self.name_length), human(average));
        text.push_str(&format!("Total key length is {all} ({average} avg)\n"));
    }

    fn add_types(&self, text: &mut String) {
        text.push_str(
            "\nType        Total keys  Keys % Tot size Avg size  Total length/card Avg ln/card\n\
             --------- ------------ ------- -------- -------- ------------------ -----------\n",
        );
        for (kind, sum) in self.kinds.iter().zip(&self.sums) {
            let Sum { keys, size, elements, .. } = sum;
            let average = |sum: u64| if *keys == 0 { 0.0 } else { sum as f64 / *keys as f64 };
            let per_key = match kind.name.as_str() {
                "string" => human(average(*elements).round() as u64),
                _ => format!("{:.2}", average(*elements)),
            };
            text.push_str(&format!(
                "{:<10}{keys:>12} {:>6.2}% {:>8} {:>8} {:>18} {per_key:>11}\n",
                kind.name,
                share(*keys, self.sampled),
                human(*size),
                human(average(*size) as u64),
                counted(kind, *elements),
            ));
        }
    }
}

/// A number of elements with what they are.
fn counted(kind: &Kind, elements: u64) -> String {
    match kind.unit {
        "bytes" => human(elements),
        unit => format!("{elements} {unit}"),
    }
}

fn add_percentiles(histogram: &Histogram<u64>, width: usize, text: &mut String) {
    for step in histogram.iter_quantiles(1) {
        let size = human(step.value_iterated_to());
        let percentile = 100.0 * step.quantile_iterated_to();
        let keys = histogram.count_between(0, step.value_iterated_to());
        text.push_str(&format!("{size:>width$} {percentile:>9.4}% {keys:>11}\n"));
    }
}
