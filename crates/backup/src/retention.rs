//! Which restore points are kept.

use crate::manifest::{Base, Manifest, StoredFile};
use crate::moment::Moment;

/// What the user wants to keep. What one of the two wants is kept; without any, all is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    /// So many bases, the newest ones.
    pub(crate) bases: Option<usize>,
    /// All points of so many milliseconds up to now.
    pub(crate) age_ms: Option<u64>,
}

impl Retention {
    /// Takes what nobody needs out of the list, and returns its files. The newest base stays.
    pub(crate) fn apply(&self, manifest: &mut Manifest, now: Moment) -> Vec<StoredFile> {
        if *self == Retention::default() {
            return Vec::new();
        }
        let count = manifest.bases.len();
        let newest = self.bases.unwrap_or(0).max(1);
        // The last base before the earliest point that is kept, and all after it.
        let earliest = self.age_ms.map(|age| Moment(now.0.saturating_sub(age)));
        let first_by_age = earliest.map_or(count, |earliest| {
            manifest.bases.iter().rposition(|base| base.time <= earliest).unwrap_or(0)
        });
        let first = first_by_age.min(count.saturating_sub(newest));
        let before: Vec<Base> = manifest.bases.drain(..first).collect();
        let mut files: Vec<_> = before.into_iter().map(|base| base.file).collect();
        let bases = &manifest.bases;
        let is_needed = |line: u64, to: u64| {
            bases.iter().any(|base| base.line == line && base.position.offset < to)
        };
        let last_line = manifest.last_line();
        manifest.segments.retain(|segment| {
            // A line whose first base is still being written has none yet.
            let is_kept = is_needed(segment.line, segment.to)
                || segment.line == last_line && !bases.iter().any(|base| base.line == last_line);
            if !is_kept {
                files.push(segment.file.clone());
            }
            is_kept
        });
        files
    }
}

#[cfg(test)]
mod tests {
    use replication::id::HistoryId;

    use super::*;
    use crate::manifest::Segment;
    use crate::position::Position;

    fn at(offset: u64) -> Position {
        Position { history: HistoryId::parse(&[b'b'; 40]).unwrap(), offset }
    }

    fn file(name: &str) -> StoredFile {
        StoredFile { name: name.to_owned(), bytes: 0, sha256: String::new() }
    }

    /// Two bases in the first line, one in the second.
    fn manifest() -> Manifest {
        let mut manifest = Manifest::new();
        for (name, line, offset, time) in [("b1", 1, 0, 10), ("b2", 1, 25, 20), ("b3", 2, 0, 30)] {
            manifest.bases.push(Base {
                file: file(name),
                line,
                position: at(offset),
                time: Moment(time),
                selected: None,
                keys: 0,
                server: String::new(),
            });
        }
        for (name, line, from, to) in [("s1", 1, 0, 20), ("s2", 1, 20, 40), ("s3", 2, 0, 20)] {
            manifest.segments.push(Segment {
                file: file(name),
                line,
                from: at(from),
                to,
                first_time: Moment(0),
                last_time: Moment(0),
            });
        }
        manifest
    }

    #[test]
    fn what_a_kept_point_needs_stays() {
        for (bases, age_ms, removed) in [
            (None, None, &[][..]),
            (Some(3), None, &[]),
            (Some(9), None, &[]),
            (Some(2), None, &["b1", "s1"]),
            (Some(1), None, &["b1", "b2", "s1", "s2"]),
            (Some(0), None, &["b1", "b2", "s1", "s2"]),
            // Now is 40.
            (None, Some(5), &["b1", "b2", "s1", "s2"]),
            (None, Some(10), &["b1", "b2", "s1", "s2"]),
            (None, Some(11), &["b1", "s1"]),
            (None, Some(29), &[]),
            (None, Some(99), &[]),
            (Some(2), Some(5), &["b1", "s1"]),
            (Some(1), Some(15), &["b1", "s1"]),
        ] {
            let mut manifest = manifest();
            let files = Retention { bases, age_ms }.apply(&mut manifest, Moment(40));
            let names: Vec<_> = files.iter().map(|file| &file.name[..]).collect();
            assert_eq!(names, removed, "{bases:?} {age_ms:?}");
            assert_eq!(manifest.files().count(), 6 - removed.len());
        }
    }
}
