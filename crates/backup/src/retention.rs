//! Which restore points are kept.

use crate::manifest::{Base, Manifest, Segment, StoredFile};
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
    /// Takes what nobody needs out of the list, and returns its files. The newest base of a server
    /// and the plain file that was taken in last stay.
    pub(crate) fn apply(&self, manifest: &mut Manifest, now: Moment) -> Vec<StoredFile> {
        if *self == Retention::default() {
            return Vec::new();
        }
        // A plain file stands for none of a server's points: each kind counts by itself.
        let is_import = |base: &Base| base.imported.is_some();
        let mut old = [false, true].map(|kind| {
            let bases = manifest.bases.iter().filter(|base| is_import(base) == kind);
            self.count_old(bases, now)
        });
        let mut files = Vec::new();
        manifest.bases.retain(|base| {
            let old = &mut old[usize::from(is_import(base))];
            let is_old = *old > 0;
            if is_old {
                *old -= 1;
                files.push(base.file.clone());
            }
            !is_old
        });
        // What is missing is waited for as long as it would be kept beside these.
        let is_forgotten = |gone: &Base| {
            let bases = manifest.bases.iter().filter(|base| is_import(base) == is_import(gone));
            let mut bases: Vec<_> = bases.chain([gone]).collect();
            bases.sort_by_key(|base| age_of(base));
            let old = self.count_old(bases.iter().copied(), now);
            bases[..old].contains(&gone)
        };
        let forgotten = manifest.missing.bases.extract_if(.., |base| is_forgotten(base));
        files.extend(forgotten.map(|base| base.file));
        let bases: Vec<_> = manifest.bases.iter().chain(&manifest.missing.bases).collect();
        let is_needed = |line: u64, to: u64| {
            bases.iter().any(|base| base.line == line && base.position.offset < to)
        };
        let last_line = manifest.last_line();
        let is_old = |segment: &mut Segment| {
            // A line whose first base is still being written has none yet.
            let begins =
                segment.line == last_line && !bases.iter().any(|base| base.line == last_line);
            !begins && !is_needed(segment.line, segment.to)
        };
        for segments in [&mut manifest.segments, &mut manifest.missing.segments] {
            files.extend(segments.extract_if(.., is_old).map(|segment| segment.file));
        }
        files
    }

    /// How many of these, the oldest ones, need not be kept.
    fn count_old<'b>(&self, bases: impl Iterator<Item = &'b Base>, now: Moment) -> usize {
        let times: Vec<_> = bases.map(age_of).collect();
        let count = times.len();
        let newest = self.bases.unwrap_or(0).max(1);
        // The last one before the earliest point that is kept, and all after it.
        let earliest = self.age_ms.map(|age| Moment(now.0.saturating_sub(age)));
        let first_by_age = earliest.map_or(count, |earliest| {
            times.iter().rposition(|time| *time <= earliest).unwrap_or(0)
        });
        first_by_age.min(count.saturating_sub(newest))
    }
}

/// Since when the store has a base, by the clock. The own time of a plain file may be any, and that
/// of a stream does not go back when a clock does that was ahead.
pub(crate) fn age_of(base: &Base) -> Moment {
    base.imported.or(base.taken).unwrap_or(base.time)
}

#[cfg(test)]
mod tests {
    use replication::id::HistoryId;

    use super::*;
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
            manifest.bases.push(Base::new(file(name), line, at(offset), Moment(time)));
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

    #[test]
    fn what_is_missing_is_waited_for_as_long_as_it_would_be_kept() {
        for (bases, removed) in [(3, &[][..]), (2, &["b1", "s1"]), (1, &["b2", "b1", "s2", "s1"])] {
            let mut manifest = manifest();
            manifest.set_aside(&["b1", "s1"].map(str::to_owned));
            let retention = Retention { bases: Some(bases), age_ms: None };
            let files = retention.apply(&mut manifest, Moment(40));
            let names: Vec<_> = files.iter().map(|file| &file.name[..]).collect();
            assert_eq!(names, removed, "{bases}");
        }
    }

    #[test]
    fn plain_files_neither_keep_nor_remove_points_of_a_server() {
        for (bases, age_ms, removed) in [
            (Some(1), None, &["b1", "b2", "i1", "s1", "s2"][..]),
            (Some(2), None, &["b1", "s1"]),
            (None, Some(11), &["b1", "s1"]),
            (None, Some(5), &["b1", "b2", "i1", "s1", "s2"]),
        ] {
            let mut manifest = manifest();
            let b3 = manifest.bases.pop().unwrap();
            for (name, line, time, imported) in [("i1", 3, 40, 32), ("i2", 4, 0, 34)] {
                let (time, imported) = (Moment(time), Some(Moment(imported)));
                manifest.bases.push(Base { file: file(name), line, time, imported, ..b3.clone() });
            }
            manifest.bases.insert(3, b3);
            let files = Retention { bases, age_ms }.apply(&mut manifest, Moment(40));
            let names: Vec<_> = files.iter().map(|file| &file.name[..]).collect();
            assert_eq!(names, removed, "{bases:?} {age_ms:?}");
        }
    }
}
