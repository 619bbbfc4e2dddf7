//! LATENCY GRAPH: the samples of an event as columns of characters.
//!
//! Each column is a sample; a higher one took longer, from the shortest to the longest. Below it,
//! from top to bottom, is how long ago it was.

use engine::observe::latency::Series;

/// Samples that are drawn: the newest.
const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// The characters for the top of a column, by how much of its cell it fills; below it are bars.
const TOPS: [char; 3] = ['_', 'o', '#'];

/// The drawing, with a headline.
pub(super) fn draw(event: &str, series: &Series, now: u64) -> String {
    let skipped = series.samples.len().saturating_sub(COLUMNS);
    let samples: Vec<(u64, u64)> = series.samples.iter().skip(skipped).copied().collect();
    let durations = || samples.iter().map(|(_, milliseconds)| *milliseconds);
    let (low, high) = (durations().min().unwrap_or(0), durations().max().unwrap_or(0));
    let mut text = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        series.maximum,
        "-".repeat(COLUMNS)
    );
    let heights: Vec<usize> = durations().map(|duration| height(duration, low, high)).collect();
    for row in (0..ROWS).rev() {
        push_line(&mut text, heights.iter().map(|height| cell(*height, row)));
    }
    let ages: Vec<String> = samples.iter().map(|(at, _)| age(now.saturating_sub(*at))).collect();
    for row in 0..ages.iter().map(String::len).max().unwrap_or(0) {
        push_line(&mut text, ages.iter().map(|age| age.chars().nth(row).unwrap_or(' ')));
    }
    text
}

/// The height of a column, in parts of a cell, from 0 to the highest part of the highest row.
fn height(duration: u64, low: u64, high: u64) -> usize {
    let highest = (ROWS * TOPS.len() - 1) as u64;
    ((duration - low) * highest).checked_div(high - low).unwrap_or(0) as usize
}

fn cell(height: usize, row: usize) -> char {
    let (top, part) = (height / TOPS.len(), height % TOPS.len());
    match row.cmp(&top) {
        std::cmp::Ordering::Less => '|',
        std::cmp::Ordering::Equal => TOPS[part],
        std::cmp::Ordering::Greater => ' ',
    }
}

/// "5s", "3m", "20h", "4d".
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn push_line(text: &mut String, line: impl Iterator<Item = char>) {
    text.extend(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_as_high_as_samples_took_long() {
        let samples = [(100, 10), (160, 43), (190, 21), (200, 10)].into_iter().collect();
        let drawn = draw("command", &Series { samples, maximum: 90 }, 200);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "command - high 43 ms, low 10 ms (all time high 90 ms)");
        assert_eq!(lines[1].len(), 80);
        assert_eq!(lines[2..], [" #  ", " |  ", " |_ ", "_||_", "1410", "m00s", " ss "]);
    }

    #[test]
    fn one_sample_or_many_are_drawn() {
        let one = Series { samples: [(5, 7)].into_iter().collect(), maximum: 7 };
        assert!(draw("x", &one, 5).ends_with("\n \n \n \n_\n0\ns\n"));
        let samples = (0..160).map(|second| (second, second * second)).collect();
        let drawn = draw("x", &Series { samples, maximum: 0 }, 86_400 * 3);
        assert!(drawn.lines().skip(2).all(|line| line.len() == COLUMNS), "{drawn}");
        assert!(draw("x", &Series::default(), 0).lines().count() >= 2);
    }
}
