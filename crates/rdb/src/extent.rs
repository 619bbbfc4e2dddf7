//! Passing over a value without decoding it: where does the next one begin?
//!
//! Nothing of a value is looked at but lengths, so that one thread finds the values of a file as
//! fast as it arrives, and others decode them.

use crate::layout::Layout;
use crate::module;
use crate::opcodes::score;
use crate::read::{Input, ReadError};

/// An entry's id in a stream.
const STREAM_ID_BYTES: u64 = 16;
const MILLISECONDS_BYTES: u64 = 8;

/// Skips a value of this layout.
///
/// An announced count of items costs nothing unless they are there: every item is at least a byte.
pub(crate) fn skip_value(input: &mut impl Input, layout: Layout) -> Result<(), ReadError> {
    match layout {
        Layout::String
        | Layout::ListZiplist
        | Layout::SetIntset
        | Layout::SetListpack
        | Layout::HashZipmap
        | Layout::HashZiplist
        | Layout::HashListpack
        | Layout::HashExpiringListpackEarly
        | Layout::ZsetZiplist
        | Layout::ZsetListpack => input.skip_string(),
        Layout::List | Layout::ListOfZiplists | Layout::Set => {
            skip_counted(input, Input::skip_string)
        }
        Layout::ListOfNodes => skip_counted(input, |input| {
            input.length()?;
            input.skip_string()
        }),
        Layout::Hash => skip_counted(input, skip_pair),
        Layout::HashExpiringListpack => {
            input.take(MILLISECONDS_BYTES)?;
            input.skip_string()
        }
        Layout::HashExpiring => {
            input.take(MILLISECONDS_BYTES)?;
            skip_counted(input, skip_expiring_pair)
        }
        Layout::HashExpiringEarly => skip_counted(input, skip_expiring_pair),
        Layout::HashExpiringValkey => skip_counted(input, |input| {
            skip_pair(input)?;
            input.take(MILLISECONDS_BYTES).map(drop)
        }),
        Layout::Zset => skip_counted(input, |input| {
            input.skip_string()?;
            skip_text_score(input)
        }),
        Layout::ZsetBinary => skip_counted(input, |input| {
            input.skip_string()?;
            input.array::<8>().map(drop)
        }),
        Layout::Stream1 | Layout::Stream2 | Layout::Stream3 | Layout::Stream4 | Layout::Stream5 => {
            skip_stream(input, layout)
        }
        Layout::Module => {
            input.length()?;
            module::skip(input)
        }
        Layout::ModuleEarly => Err(module::EARLY),
    }
}

fn skip_counted<I: Input>(
    input: &mut I,
    mut skip: impl FnMut(&mut I) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    (0..input.length()?).try_for_each(|_| skip(input))
}

fn skip_pair(input: &mut impl Input) -> Result<(), ReadError> {
    input.skip_string()?;
    input.skip_string()
}

fn skip_expiring_pair(input: &mut impl Input) -> Result<(), ReadError> {
    input.length()?;
    skip_pair(input)
}

fn skip_text_score(input: &mut impl Input) -> Result<(), ReadError> {
    match input.byte()? {
        score::NAN.. => Ok(()),
        length => input.take(u64::from(length)).map(drop),
    }
}

fn skip_lengths(input: &mut impl Input, count: usize) -> Result<(), ReadError> {
    (0..count).try_for_each(|_| input.length().map(drop))
}

/// Nodes by their first id; then number of entries and last id; since the second form first id,
/// largest deleted id and number of entries ever added; then the consumer groups; since the fourth
/// form the producers with the ids that each has given.
fn skip_stream(input: &mut impl Input, form: Layout) -> Result<(), ReadError> {
    skip_counted(input, skip_pair)?;
    skip_lengths(input, if form == Layout::Stream1 { 3 } else { 8 })?;
    skip_counted(input, |input| skip_group(input, form))?;
    if form < Layout::Stream4 {
        return Ok(());
    }
    skip_lengths(input, 2)?;
    skip_counted(input, |input| {
        input.skip_string()?;
        skip_counted(input, |input| {
            input.skip_string()?;
            skip_lengths(input, 2)
        })
    })?;
    skip_lengths(input, 2)
}

/// Name and last delivered id; since the second form the number of entries read; then the pending
/// entries with their delivery times and counts, and the consumers; since the fifth form the
/// pending entries that no consumer has.
fn skip_group(input: &mut impl Input, form: Layout) -> Result<(), ReadError> {
    input.skip_string()?;
    skip_lengths(input, if form == Layout::Stream1 { 2 } else { 3 })?;
    skip_counted(input, |input| {
        input.take(STREAM_ID_BYTES + MILLISECONDS_BYTES)?;
        input.length().map(drop)
    })?;
    skip_counted(input, |input| {
        input.skip_string()?;
        // When it was last seen; since the third form also when it was last active.
        let times = if form >= Layout::Stream3 { 2 } else { 1 };
        input.take(times * MILLISECONDS_BYTES)?;
        skip_counted(input, skip_id)
    })?;
    if form >= Layout::Stream5 { skip_counted(input, skip_id) } else { Ok(()) }
}

fn skip_id(input: &mut impl Input) -> Result<(), ReadError> {
    input.take(STREAM_ID_BYTES).map(drop)
}
