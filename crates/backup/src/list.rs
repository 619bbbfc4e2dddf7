//! What a store has, for people and for programs.

use serde_json::json;

use crate::manifest::{Base, Manifest};
use crate::print::give;

/// Shows the restore points.
pub(crate) fn show(manifest: &Manifest, as_json: bool) -> Result<(), String> {
    let text = match as_json {
        true => all_in_json(manifest),
        false => in_lines(manifest).join("\n"),
    };
    give(&text).map_err(|error| format!("the list cannot be shown: {error}"))
}

fn all_in_json(manifest: &Manifest) -> String {
    let lines: Vec<_> = manifest.lines().iter().map(|line| in_json(manifest, *line)).collect();
    let missing: Vec<_> = manifest.missing_files().map(|file| &file.name).collect();
    json!({ "lines": lines, "missing": missing }).to_string()
}

fn in_lines(manifest: &Manifest) -> Vec<String> {
    let mut lines = match manifest.bases.is_empty() {
        true => vec!["there is no base yet".to_owned()],
        false => table(manifest),
    };
    lines.extend(manifest.missing_files().map(|file| format!("{} is missing", file.name)));
    for line in manifest.lines() {
        lines.extend(manifest.gaps_of(line).iter().map(ToString::to_string));
    }
    lines
}

/// Each base in a row.
fn table(manifest: &Manifest) -> Vec<String> {
    let head = ["BASE", "TAKEN", "KEYS", "SIZE", "STREAM", "RESTORES UP TO", "OF"];
    let mut rows = vec![head.map(str::to_owned)];
    for line in manifest.lines() {
        for base in manifest.bases_of(line) {
            let behind = stream_behind(manifest, base);
            let (end, time) = manifest.reach_of(base);
            rows.push([
                base.file.name.clone(),
                base.time.to_string(),
                base.keys.to_string(),
                size(base.file.bytes),
                base.imported.map_or_else(|| size(behind), |_| "imported".to_owned()),
                end.to_string(),
                time.to_string(),
            ]);
        }
    }
    let widths: Vec<usize> =
        (0..head.len()).map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0)).collect();
    let in_line = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    in_line.collect()
}

/// The bytes of the files of the stream behind a base.
fn stream_behind(manifest: &Manifest, base: &Base) -> u64 {
    let behind = manifest.segments_of(base.line);
    let behind = behind.filter(|segment| segment.to > base.position.offset);
    behind.fold(0, |sum: u64, segment| sum.saturating_add(segment.file.bytes))
}

fn in_json(manifest: &Manifest, line: u64) -> serde_json::Value {
    let bases: Vec<_> = manifest.bases_of(line);
    let bases: Vec<_> = bases
        .into_iter()
        .map(|base| {
            json!({
                "file": base.file.name,
                "time": base.time,
                "position": base.position,
                "keys": base.keys,
                "bytes": base.file.bytes,
                "server": base.server,
                "imported": base.imported,
                "stream_bytes": stream_behind(manifest, base),
            })
        })
        .collect();
    let end = manifest.end_of(line);
    let gaps = manifest.gaps_of(line);
    let gaps: Vec<_> = gaps
        .iter()
        .map(|gap| json!({ "from": gap.from, "to": gap.to, "file": gap.file }))
        .collect();
    json!({
        "bases": bases,
        "segments": manifest.segments_of(line).count(),
        "gaps": gaps,
        "end": end.map(|(position, _)| position),
        "end_time": end.map(|(_, time)| time),
    })
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}
