//! Files that the list names, and that are not there. What the list says of them is set aside: no
//! restore counts on it, and it is not forgotten, because a file may come back.

use std::collections::HashSet;
use std::mem::take;

use crate::manifest::{Manifest, Segment, StoredFile, number_of};

impl Manifest {
    /// The files that are set aside.
    pub(crate) fn missing_files(&self) -> impl Iterator<Item = &StoredFile> {
        let bases = self.missing.bases.iter().map(|base| &base.file);
        bases.chain(self.missing.segments.iter().map(|segment| &segment.file))
    }

    /// Sets aside what it says of these files.
    pub(crate) fn set_aside(&mut self, gone: &[String]) {
        let is_gone = |file: &StoredFile| gone.contains(&file.name);
        let bases = self.bases.extract_if(.., |base| is_gone(&base.file));
        self.missing.bases.extend(bases);
        let segments = self.segments.extract_if(.., |segment| is_gone(&segment.file));
        self.missing.segments.extend(segments);
        self.missing.untold.extend(gone.iter().cloned());
    }

    /// Counts on those of the files again that are there. What a line has meanwhile stays: where
    /// that is of other data, what comes back is none of its parts.
    pub(crate) fn take_back(&mut self, there: &HashSet<String>) {
        let is_there = |file: &StoredFile| there.contains(&file.name);
        for segment in take(&mut self.missing.segments) {
            let overlaps =
                |other: &Segment| other.from.offset < segment.to && segment.from.offset < other.to;
            let has_part = self.segments_of(segment.line).any(overlaps);
            match is_there(&segment.file) && !has_part {
                true => self.segments.push(segment),
                false => self.missing.segments.push(segment),
            }
        }
        self.segments.sort_by_key(|segment| (segment.line, segment.from.offset));
        for base in take(&mut self.missing.bases) {
            match is_there(&base.file) && !self.has_other_data_at(base.line, base.position) {
                true => self.bases.push(base),
                false => self.missing.bases.push(base),
            }
        }
        self.bases.sort_by_key(|base| number_of(&base.file.name));
        let mut untold = take(&mut self.missing.untold);
        untold.retain(|name| self.missing_files().any(|file| file.name == *name));
        self.missing.untold = untold;
    }
}

#[cfg(test)]
mod tests {
    use replication::id::HistoryId;

    use super::*;
    use crate::manifest::Base;
    use crate::moment::Moment;
    use crate::position::Position;

    fn at(letter: u8, offset: u64) -> Position {
        Position { history: HistoryId::parse(&[letter; 40]).unwrap(), offset }
    }

    fn file(name: &str) -> StoredFile {
        StoredFile { name: name.to_owned(), bytes: 0, sha256: String::new() }
    }

    fn base(name: &str, line: u64) -> Base {
        Base::new(file(name), line, at(b'a', 0), Moment(0))
    }

    fn segment(name: &str, from: Position, to: u64) -> Segment {
        let (first_time, last_time) = (Moment(0), Moment(0));
        Segment { file: file(name), line: 1, from, to, first_time, last_time }
    }

    fn manifest() -> Manifest {
        let mut manifest = Manifest::new();
        manifest.next = 6;
        manifest.bases = vec![base("base-00000001.rdb", 1), base("base-00000002.rdb", 2)];
        manifest.segments = vec![
            segment("stream-00000003.aof", at(b'a', 0), 10),
            segment("stream-00000004.aof", at(b'a', 10), 20),
        ];
        manifest
    }

    #[test]
    fn what_comes_back_gets_its_old_place() {
        let whole = manifest();
        let names: Vec<_> = whole.files().map(|file| file.name.clone()).collect();
        let mut manifest = manifest();
        manifest.set_aside(&[names[0].clone(), names[2].clone()]);
        assert_eq!((manifest.lines(), manifest.last_line()), (vec![2], 2));
        assert_eq!(manifest.segments_of(1).count(), 1);
        assert_eq!(manifest.missing_files().count(), 2);
        assert_eq!(Manifest::parse(&manifest.format()).unwrap(), manifest);
        manifest.take_back(&HashSet::from([names[0].clone()]));
        assert_eq!(manifest.missing_files().count(), 1);
        manifest.take_back(&names.into_iter().collect());
        assert_eq!(manifest, whole);
    }

    /// The stream went on before what was missing, under another name.
    #[test]
    fn what_is_of_other_data_does_not_come_back() {
        for (history, comes_back) in [(b'a', true), (b'b', false)] {
            let mut manifest = manifest();
            let position = at(b'a', 15);
            manifest.bases.push(Base { position, ..base("base-00000005.rdb", 1) });
            let gone = ["base-00000005.rdb", "stream-00000004.aof"].map(str::to_owned);
            manifest.set_aside(&gone);
            manifest.segments.push(segment("stream-00000006.aof", at(history, 10), 20));
            manifest.take_back(&HashSet::from(gone.clone()));
            let names: Vec<_> = manifest.missing_files().map(|file| &*file.name).collect();
            // The server has given the segment again, or something else.
            let expected = if comes_back { &gone[1..] } else { &gone[..] };
            assert_eq!(names, expected);
        }
    }
}
