//! An answer that is written piece by piece, as its client takes it.

use base::limits;
use http::answer::{Answer, chunk, last_chunk};
use http::reply::Pieces;
use http::translation::{Progress, Translation};
use resp::output::Output;

/// See the module's text.
pub(in crate::net::http) struct Streaming {
    /// What is still to be translated. Large strings in it are shared with the data.
    source: Output,
    translation: Translation,
    /// The client reads chunks.
    chunked: bool,
}

impl Streaming {
    /// An answer to which replies are to be added.
    pub(in crate::net::http) fn new(translation: Translation, chunked: bool) -> Streaming {
        Streaming { source: Output::new(), translation, chunked }
    }

    /// Adds a reply. One that is large is taken away.
    pub(super) fn add(&mut self, reply: &mut Output) {
        if self.source.is_empty() && reply.len() > limits::OUTPUT_KEPT {
            std::mem::swap(&mut self.source, reply);
            self.source.set_limit(usize::MAX);
        } else {
            self.source.append(reply);
        }
    }

    /// Bytes that are still to be translated.
    pub(super) fn len(&self) -> usize {
        self.source.len()
    }

    /// Bytes of memory that these keep alive.
    pub(super) fn memory(&self) -> usize {
        self.source.memory()
    }

    /// Translates everything at once. Nothing if it is not complete.
    pub(super) fn whole(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        self.translation.write(&mut Pieces::of(&self.source), &mut text)?;
        Some(text)
    }

    /// Writes the end of the answer's head.
    pub(super) fn end_head(&self, answer: Answer<'_>, content_type: &str) {
        match self.chunked {
            true => answer.chunked_body(content_type),
            false => answer.endless_body(content_type),
        }
    }

    /// Writes the next piece.
    pub(super) fn write(&mut self, output: &mut Output) -> Progress {
        let mut part = Vec::with_capacity(limits::HTTP_PIECE);
        let mut pieces = Pieces::of(&self.source);
        let progress = self.translation.advance(&mut pieces, limits::HTTP_PIECE, &mut part);
        let taken = pieces.taken();
        self.source.advance(taken);
        match self.chunked {
            true if !part.is_empty() => chunk(output, &part),
            _ => output.push(&part),
        }
        if progress == Progress::Complete && self.chunked {
            last_chunk(output);
        }
        progress
    }
}
