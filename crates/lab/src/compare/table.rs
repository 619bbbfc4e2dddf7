//! A comparison as text: the changes, worst first, and a count of the figures without change.

use std::fmt::{Display, Formatter, Result};

use super::comparison::{Change, Comparison, Row};
use crate::report::show_figure;

/// This many lines at most name things that are on one side only; the rest are counted.
const MOST_MISSING: usize = 20;

impl Display for Comparison {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        for caution in &self.cautions {
            writeln!(formatter, "note: {caution}")?;
        }
        for missing in self.missing.iter().take(MOST_MISSING) {
            writeln!(formatter, "not compared: {missing}")?;
        }
        if self.missing.len() > MOST_MISSING {
            writeln!(formatter, "not compared: {} more", self.missing.len() - MOST_MISSING)?;
        }
        for failure in &self.failures {
            writeln!(formatter, "FAILURE: {failure}")?;
        }
        let groups = [
            (Change::Worse, "worse"),
            (Change::Better, "better"),
            (Change::Different, "different"),
        ];
        for (change, word) in groups {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.change == change).collect();
            if !rows.is_empty() {
                writeln!(formatter, "\n{} {word} beyond noise:", rows.len())?;
                table(&rows, formatter)?;
            }
        }
        let same = self.rows.iter().filter(|row| row.change == Change::WithinNoise).count();
        writeln!(formatter, "\n{same} of {} figures are the same within noise.", self.rows.len())
    }
}

const HEADS: [&str; 7] = ["experiment", "target", "point", "figure", "before", "after", "change"];
/// Columns from here on have numbers and are aligned to the right.
const NUMBERS: usize = 4;

fn table(rows: &[&Row], formatter: &mut Formatter<'_>) -> Result {
    let mut rows = rows.to_vec();
    let size = |row: &Row| row.share().map_or(f64::INFINITY, f64::abs);
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines.extend(rows.into_iter().map(fields));
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    for line in &lines {
        let mut text = String::from(" ");
        for (column, (field, width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - field.chars().count());
            text.push(' ');
            if column < NUMBERS {
                text.push_str(field);
                text.push_str(&padding);
            } else {
                text.push_str(&padding);
                text.push_str(field);
            }
            text.push(' ');
        }
        writeln!(formatter, "{}", text.trim_end())?;
    }
    Ok(())
}

fn fields(row: &Row) -> [String; 7] {
    let side = |summary: &crate::results::Summary| {
        if row.by_worst && summary.high > summary.median {
            let [middle, most] =
                [summary.median, summary.high].map(|one| show_figure(row.unit, one));
            return format!("{middle}, up to {most}");
        }
        let half = summary.half_width().map(|half| format!(" ±{:.0} %", half * 100.0));
        show_figure(row.unit, summary.median) + &half.unwrap_or_default()
    };
    let change = match row.share() {
        Some(share) => format!("{:+.0} %", share * 100.0),
        None => "from 0".to_owned(),
    };
    [
        row.experiment.clone(),
        row.target.clone(),
        row.point.clone(),
        row.figure.clone(),
        side(&row.before),
        side(&row.after),
        change,
    ]
}
