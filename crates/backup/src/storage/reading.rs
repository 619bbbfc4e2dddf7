//! A store that is read while a backup may go on there.

use std::io::{Cursor, Read};

use super::existing_manifest;
use super::interface::{Source, read_all};
use crate::manifest::{Manifest, Segment};

/// A segment with more bytes than this is not written anew.
const REPLACED_BYTES: u64 = 8 << 20;

/// See the module's text. The newest segment, which a backup writes anew under another name as long
/// as it is small, stays what it is in the list that was read.
pub(crate) struct Reading<'s> {
    store: &'s dyn Source,
    pub(crate) manifest: Manifest,
    newest: Option<(String, Vec<u8>)>,
}

impl<'s> Reading<'s> {
    pub(crate) fn begin(store: &'s dyn Source) -> Result<Reading<'s>, String> {
        let mut read_before = None;
        loop {
            let manifest = existing_manifest(store)?;
            let is_small = |segment: &&Segment| segment.file.bytes <= REPLACED_BYTES;
            let newest = manifest.segments.last().filter(is_small);
            let name = newest.map(|segment| segment.file.name.clone());
            let bytes =
                name.as_ref().map_or(Ok(None), |name| read_all(store, name, REPLACED_BYTES))?;
            // If it is gone, another list names what is in its place.
            let is_gone = name.is_some() && bytes.is_none();
            if !is_gone || read_before == Some(manifest.generation) {
                return Ok(Reading { store, manifest, newest: name.zip(bytes) });
            }
            read_before = Some(manifest.generation);
        }
    }
}

impl Source for Reading<'_> {
    fn name(&self) -> String {
        self.store.name()
    }

    fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        match &self.newest {
            Some((name, bytes)) if name == file => Ok(Some(Box::new(Cursor::new(bytes.clone())))),
            _ => self.store.read(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;
    use crate::manifest::{MANIFEST, StoredFile};
    use crate::moment::Moment;
    use crate::position::Position;

    /// The newest segment is written anew right after the first times that the list is read.
    struct Growing {
        replaced: AtomicU64,
        times: u64,
    }

    fn name_of(number: u64) -> String {
        format!("stream-{number:08}.aof")
    }

    impl Source for Growing {
        fn name(&self) -> String {
            "growing".to_owned()
        }

        fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
            let number = self.replaced.load(SeqCst);
            let bytes = match file {
                MANIFEST => {
                    self.replaced.fetch_add(u64::from(number < self.times), SeqCst);
                    let mut manifest = Manifest::new();
                    (manifest.generation, manifest.next) = (number, number + 1);
                    let from = Position::parse(&format!("{}:0", "a".repeat(40))).unwrap();
                    let file =
                        StoredFile { name: name_of(number), bytes: 0, sha256: String::new() };
                    let (first_time, last_time) = (Moment(0), Moment(0));
                    let segment = Segment { file, line: 1, from, to: 0, first_time, last_time };
                    manifest.segments.push(segment);
                    manifest.format()
                }
                file if file == name_of(number) => number.to_string().into_bytes(),
                _ => return Ok(None),
            };
            Ok(Some(Box::new(Cursor::new(bytes))))
        }
    }

    #[test]
    fn a_segment_that_is_written_anew_stays_what_it_was() {
        let store = Growing { replaced: AtomicU64::new(0), times: 3 };
        let reading = Reading::begin(&store).unwrap();
        store.replaced.store(9, SeqCst);
        assert_eq!(reading.manifest.generation, 3);
        let read = |number| read_all(&reading, &name_of(number), 9).unwrap();
        assert_eq!((read(3), read(9)), (Some(b"3".to_vec()), Some(b"9".to_vec())));
    }

    #[test]
    fn a_segment_that_is_missing_is_not_waited_for() {
        struct Gone(Growing);
        impl Source for Gone {
            fn name(&self) -> String {
                self.0.name()
            }

            fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
                if file == MANIFEST { self.0.read(file) } else { Ok(None) }
            }
        }
        let store = Gone(Growing { replaced: AtomicU64::new(0), times: 0 });
        let reading = Reading::begin(&store).unwrap();
        assert!(read_all(&reading, &name_of(0), 9).unwrap().is_none());
    }
}
