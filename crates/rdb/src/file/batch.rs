//! Entries of a file as raw bytes, which any thread may decode.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use store::Value;

use super::Usage;
use super::error::{FileError, shown_key};
use crate::layout::Layout;
use crate::read::{ReadError, Reader};
use crate::value::ValueLimits;

/// Some consecutive entries of a file, in its bytes.
#[derive(Debug)]
pub struct EntryBatch {
    /// Where the bytes begin in the file.
    offset: u64,
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// One entry of a batch.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) database: usize,
    pub(super) expire_at_ms: Option<u64>,
    pub(super) usage: Option<Usage>,
    pub(super) content_type: Option<Arc<[u8]>>,
    pub(super) layout: Layout,
    /// The key, encoded as a string.
    pub(super) key: Range<usize>,
    /// The value lies between key and this.
    pub(super) end: usize,
}

impl EntryBatch {
    pub(super) fn new(offset: u64, bytes: Vec<u8>, spans: Vec<Span>) -> EntryBatch {
        EntryBatch { offset, bytes, spans }
    }

    /// Number of entries; one at least.
    #[expect(clippy::len_without_is_empty, reason = "no batch is empty")]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes of the file that the entries take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The entries in the order of the file.
    pub fn entries(&self) -> Entries<'_> {
        Entries { batch: self, spans: self.spans.iter() }
    }
}

impl<'b> IntoIterator for &'b EntryBatch {
    type Item = RawEntry<'b>;
    type IntoIter = Entries<'b>;

    fn into_iter(self) -> Entries<'b> {
        self.entries()
    }
}

/// The entries of a [`EntryBatch`].
#[derive(Debug, Clone)]
pub struct Entries<'b> {
    batch: &'b EntryBatch,
    spans: std::slice::Iter<'b, Span>,
}

impl<'b> Iterator for Entries<'b> {
    type Item = RawEntry<'b>;

    fn next(&mut self) -> Option<RawEntry<'b>> {
        self.spans.next().map(|span| RawEntry { batch: self.batch, span })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// A key and its value, still encoded.
#[derive(Debug, Clone, Copy)]
pub struct RawEntry<'b> {
    batch: &'b EntryBatch,
    span: &'b Span,
}

/// The settings on which decoding depends.
#[derive(Debug, Clone, Copy)]
pub struct DecodeOptions {
    /// How large values may be in their packed encodings.
    pub limits: ValueLimits,
    /// Fields of hashes that expired before are left out: milliseconds since 1970, 0 to keep all.
    pub now_ms: u64,
}

/// A key with its value.
#[derive(Debug)]
pub struct Entry<'b> {
    /// The key.
    pub key: Cow<'b, [u8]>,
    /// The value. `None` if nothing is left of it: it is a collection that was saved empty, as some
    /// old servers did, or a hash whose fields have all expired.
    pub value: Option<Value<'b>>,
}

impl<'b> RawEntry<'b> {
    /// The number of its database.
    pub fn database(&self) -> usize {
        self.span.database
    }

    /// When it expires, in milliseconds since 1970; 0 for an expiry before 1970.
    pub fn expire_at_ms(&self) -> Option<u64> {
        self.span.expire_at_ms
    }

    /// How it was used.
    pub fn usage(&self) -> Option<Usage> {
        self.span.usage
    }

    /// The content type of its value, if the file says it.
    pub fn content_type(&self) -> Option<&'b [u8]> {
        self.span.content_type.as_deref()
    }

    /// How its value is laid out.
    pub fn layout(&self) -> Layout {
        self.span.layout
    }

    /// Where the value begins in the file.
    pub fn value_offset(&self) -> u64 {
        self.batch.offset + self.span.key.end as u64
    }

    /// Bytes of the value in the file.
    pub fn value_bytes(&self) -> usize {
        self.span.end - self.span.key.end
    }

    /// The key.
    ///
    /// # Errors
    /// When it was compressed and is damaged.
    pub fn key(&self) -> Result<Cow<'b, [u8]>, FileError> {
        let key = &self.batch.bytes[self.span.key.clone()];
        Reader::new(key).string().map_err(|cause| FileError {
            offset: self.batch.offset + self.span.key.start as u64,
            reading: "a key".to_owned(),
            cause,
        })
    }

    /// Decodes key and value.
    ///
    /// # Errors
    /// When they are damaged; [`ReadError::Unsupported`] for types that we do not know. All of the
    /// bytes are checked.
    pub fn decode(&self, options: &DecodeOptions) -> Result<Entry<'b>, FileError> {
        let key = self.key()?;
        let bytes = &self.batch.bytes[self.span.key.end..self.span.end];
        let mut reader = Reader::new(bytes);
        let decoded = reader.value(self.span.layout, &options.limits, options.now_ms);
        let decoded = match decoded {
            Ok(_) if reader.position() < bytes.len() => {
                Err(ReadError::Malformed("a value is shorter than its length"))
            }
            decoded => decoded,
        };
        match decoded {
            Ok(value) => Ok(Entry { key, value }),
            Err(cause) => Err(FileError {
                offset: self.value_offset() + reader.position() as u64,
                reading: format!("{}, a {}", shown_key(&key), self.span.layout.name()),
                cause,
            }),
        }
    }
}
