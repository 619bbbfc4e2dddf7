//! Files that the list names, and that are not there. What the list says of them is set aside: no
//! restore counts on it, and it is not forgotten, because a file may come back.

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
    }

    /// Counts on those of the files again that are there.
    pub(crate) fn take_back(&mut self, there: &[String]) {
        let is_there = |file: &StoredFile| there.contains(&file.name);
        let bases = self.missing.bases.extract_if(.., |base| is_there(&base.file));
        self.bases.extend(bases);
        self.bases.sort_by_key(|base| number_of(&base.file.name));
        for segment in take(&mut self.missing.segments) {
            let overlaps =
                |other: &Segment| other.from.offset < segment.to && segment.from.offset < other.to;
            let has_part = self.segments_of(segment.line).any(overlaps);
            if is_there(&segment.file) && !has_part {
                self.segments.push(segment);
            } else if !self.has_all_of(&segment) {
                self.missing.segments.push(segment);
            }
        }
        self.segments.sort_by_key(|segment| (segment.line, segment.from.offset));
    }

    /// Whether a server has given once more what was in a segment.
    fn has_all_of(&self, gone: &Segment) -> bool {
        let mut reached = gone.from;
        for segment in self.segments_of(gone.line) {
            if segment.from.history == reached.history && segment.from.offset <= reached.offset {
                reached.offset = reached.offset.max(segment.to);
            }
        }
        reached.offset >= gone.to
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
        let (time, server) = (Moment(0), String::new());
        let (file, position) = (file(name), at(b'a', 0));
        Base { file, line, position, time, selected: None, keys: 0, server, imported: None }
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
        manifest.take_back(&names[..1]);
        assert_eq!(manifest.missing_files().count(), 1);
        manifest.take_back(&names);
        assert_eq!(manifest, whole);
    }

    /// The line went on before what was missing, as the server had that still.
    #[test]
    fn what_was_given_again_does_not_come_back() {
        for (history, to, waits) in [(b'a', 15, true), (b'a', 25, false), (b'b', 25, true)] {
            let mut manifest = manifest();
            let gone = [manifest.segments[1].file.name.clone()];
            manifest.set_aside(&gone);
            manifest.segments.push(segment("stream-00000005.aof", at(history, 10), to));
            manifest.take_back(&gone);
            assert_eq!(manifest.segments.len(), 2);
            assert_eq!(manifest.missing_files().count() == 1, waits, "{to}");
        }
    }
}
