//! The arguments of one command, and where they lie.
//!
//! Most arguments are never copied on their way to the engine: the parser records where in the read
//! buffer each one lies ([`ArgRange`]), and [`Arguments`] turns these records into slices on
//! demand. Two kinds lie elsewhere: arguments that had to be unquoted or moved, in a side buffer,
//! and big ones, each in an allocation of its own that the store may keep.

use std::sync::Arc;

/// Where one argument lies. Only the [`Arguments`] made with the same sources can resolve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgRange {
    /// Offset in its buffer, or index among the big arguments.
    start: u32,
    /// Length, below 2^30, and the kind of place in the two highest bits.
    length_and_place: u32,
}

const PLACE_SHIFT: u32 = 30;
const IN_BUFFER: u32 = 0;
/// As [`IN_BUFFER`], of a command's first argument: around all arguments lie the headers and line
/// ends of the protocol and nothing else.
const IN_BUFFER_PLAIN: u32 = 1;
/// From this value on an argument lies elsewhere, so that one comparison tells.
const IN_SIDE: u32 = 2;
const IN_BIG: u32 = 3;

/// Longest argument that may lie in a buffer; a longer one must have its own allocation.
pub(crate) const MAX_IN_BUFFER: usize = (1 << PLACE_SHIFT) - 1;

/// Offsets in a buffer must stay below this.
pub(crate) const MAX_OFFSET: usize = u32::MAX as usize;

impl ArgRange {
    #[inline]
    fn new(start: usize, length: usize, place: u32) -> Self {
        debug_assert!(start <= MAX_OFFSET && length <= MAX_IN_BUFFER);
        ArgRange { start: start as u32, length_and_place: length as u32 | place << PLACE_SHIFT }
    }

    /// This many bytes of the read buffer.
    #[inline]
    pub fn in_buffer(start: usize, length: usize) -> Self {
        ArgRange::new(start, length, IN_BUFFER)
    }

    /// This many bytes of the side buffer.
    pub fn in_side(start: usize, length: usize) -> Self {
        ArgRange::new(start, length, IN_SIDE)
    }

    /// One of the big arguments.
    pub fn in_big(index: usize) -> Self {
        ArgRange::new(index, 0, IN_BIG)
    }

    /// Notes that this begins a command which lies in the buffer in its shortest form.
    #[inline]
    pub fn begins_plain_command(&mut self) {
        debug_assert!(self.place() == IN_BUFFER);
        self.length_and_place |= IN_BUFFER_PLAIN << PLACE_SHIFT;
    }

    #[inline]
    fn place(self) -> u32 {
        self.length_and_place >> PLACE_SHIFT
    }

    #[inline]
    fn span(self) -> std::ops::Range<usize> {
        let start = self.start as usize;
        start..start + (self.length_and_place & MAX_IN_BUFFER as u32) as usize
    }

    /// If this lies in the read buffer: where.
    pub(crate) fn buffer_span(self) -> Option<std::ops::Range<usize>> {
        (self.place() == IN_BUFFER).then(|| self.span())
    }

    /// Adjusts for bytes that were removed from the front of each place.
    pub(crate) fn rebase(&mut self, buffer: usize, side: usize, big: usize) {
        let removed = match self.place() {
            IN_BUFFER => buffer,
            IN_SIDE => side,
            _ => big,
        };
        self.start -= removed as u32;
    }
}

/// The arguments of one command, the command's name first: a cheap view, to be copied freely.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    ranges: &'a [ArgRange],
    buffer: &'a [u8],
    side: &'a [u8],
    big: &'a [Arc<Vec<u8>>],
}

impl<'a> Arguments<'a> {
    /// The arguments at `ranges`, in the places to which these refer.
    #[inline]
    pub fn new(
        ranges: &'a [ArgRange],
        buffer: &'a [u8],
        side: &'a [u8],
        big: &'a [Arc<Vec<u8>>],
    ) -> Self {
        Arguments { ranges, buffer, side, big }
    }

    /// The number of arguments, counting the command's name.
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is no argument at all. Never true for a command from the parser.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The argument at `index`, if there are that many.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.ranges.get(index).map(|range| self.resolve(*range))
    }

    /// The argument at `index`.
    ///
    /// # Panics
    /// If there are not that many: for callers that have checked the number of arguments.
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.resolve(self.ranges[index])
    }

    /// The argument at `index` as something that can be kept without copying it: only for big
    /// arguments, which were received into their own allocation.
    #[inline]
    pub fn shared(&self, index: usize) -> Option<&'a Arc<Vec<u8>>> {
        let range = self.ranges.get(index)?;
        if range.place() == IN_BIG { self.big.get(range.start as usize) } else { None }
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone + use<'a> {
        let arguments = *self;
        self.ranges.iter().map(move |range| arguments.resolve(*range))
    }

    /// The arguments from `first` on; none if there are not that many.
    #[inline]
    #[must_use]
    pub fn skip(&self, first: usize) -> Self {
        Arguments { ranges: self.ranges.get(first..).unwrap_or(&[]), ..*self }
    }

    /// The bytes of the whole command as it was received, if they lie in one piece and in the form
    /// that a command has in the journal: then they need not be put together.
    #[inline]
    pub fn as_received(&self) -> Option<&'a [u8]> {
        let (name, last) = (self.ranges.first()?, self.ranges.last()?);
        if name.place() != IN_BUFFER_PLAIN {
            return None;
        }
        let name = name.span();
        let headers = header_length(self.ranges.len()) + header_length(name.len());
        self.buffer.get(name.start - headers..last.span().end + LINE_END.len())
    }

    /// Bytes of the command as an array of bulk strings, the form in which clients send it.
    pub fn wire_len(&self) -> usize {
        let strings = self
            .iter()
            .map(|argument| header_length(argument.len()) + argument.len() + LINE_END.len());
        header_length(self.len()) + strings.sum::<usize>()
    }

    /// A number at least as large as [`Arguments::wire_len`], without a look at each argument.
    #[inline]
    pub fn wire_len_at_most(&self) -> usize {
        if !self.big.is_empty() {
            return usize::MAX;
        }
        self.buffer.len() + self.side.len() + (self.ranges.len() + 1) * AROUND_ARGUMENT_MAX
    }

    #[inline]
    fn resolve(&self, range: ArgRange) -> &'a [u8] {
        if range.place() < IN_SIDE { &self.buffer[range.span()] } else { self.resolve_apart(range) }
    }

    #[inline(never)]
    fn resolve_apart(&self, range: ArgRange) -> &'a [u8] {
        match range.place() {
            IN_SIDE => &self.side[range.span()],
            _ => self.big[range.start as usize].as_slice(),
        }
    }
}

const LINE_END: &[u8] = b"\r\n";

/// The most bytes of protocol around an argument in a buffer: its header and its line end.
const AROUND_ARGUMENT_MAX: usize = "$1073741823\r\n\r\n".len();

/// The length of `*number` or `$number` with its line end.
#[inline]
fn header_length(number: usize) -> usize {
    let digits = match number {
        0..=9 => 1,
        10..=99 => 2,
        _ => number.ilog10() as usize + 1,
    };
    1 + digits + LINE_END.len()
}

/// The arguments of one command on their own, for commands that wait: queued by MULTI, parked at a
/// locked slot, made by a script or read from a file. Big arguments are shared, not copied.
#[derive(Clone, Debug, Default)]
pub struct OwnedArguments {
    ranges: Vec<ArgRange>,
    bytes: Vec<u8>,
    big: Vec<Arc<Vec<u8>>>,
}

impl OwnedArguments {
    /// No arguments yet.
    pub fn new() -> Self {
        OwnedArguments::default()
    }

    /// Appends a copy of `argument`.
    pub fn push(&mut self, argument: &[u8]) {
        let start = self.bytes.len();
        if argument.len() > MAX_IN_BUFFER || start + argument.len() > MAX_OFFSET {
            return self.push_shared(Arc::new(argument.to_vec()));
        }
        self.bytes.extend_from_slice(argument);
        self.ranges.push(ArgRange::in_side(start, argument.len()));
    }

    /// Appends `argument` without copying its bytes.
    pub fn push_shared(&mut self, argument: Arc<Vec<u8>>) {
        self.ranges.push(ArgRange::in_big(self.big.len()));
        self.big.push(argument);
    }

    /// Appends copies of all of these; big arguments are shared.
    pub fn extend(&mut self, arguments: Arguments<'_>) {
        for (index, argument) in arguments.iter().enumerate() {
            match arguments.shared(index) {
                Some(shared) => self.push_shared(Arc::clone(shared)),
                None => self.push(argument),
            }
        }
    }

    /// How many arguments there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The arguments, to be read.
    pub fn view(&self) -> Arguments<'_> {
        Arguments::new(&self.ranges, &[], &self.bytes, &self.big)
    }

    /// Some of the arguments, for callers that keep several commands, one after the other.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn part(&self, range: std::ops::Range<usize>) -> Arguments<'_> {
        Arguments::new(&self.ranges[range], &[], &self.bytes, &self.big)
    }

    /// Forgets all arguments and keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.bytes.clear();
        self.big.clear();
    }

    /// Bytes of all arguments, counting shared ones in full.
    pub fn length(&self) -> usize {
        self.bytes.len() + self.big.iter().map(|argument| argument.len()).sum::<usize>()
    }

    /// Bytes of memory in use, counting shared arguments in full.
    pub fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<ArgRange>()
            + self.bytes.capacity()
            + self.big.iter().map(|argument| argument.capacity()).sum::<usize>()
    }
}

impl From<Arguments<'_>> for OwnedArguments {
    fn from(arguments: Arguments<'_>) -> Self {
        let mut owned = OwnedArguments::new();
        owned.ranges.reserve_exact(arguments.len());
        let is_copied = |index: &usize| arguments.shared(*index).is_none();
        let copied = (0..arguments.len()).filter(is_copied).map(|index| arguments.at(index).len());
        // Longer ones get allocations of their own.
        owned.bytes.reserve_exact(copied.filter(|length| *length <= MAX_IN_BUFFER).sum());
        owned.extend(arguments);
        owned
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for OwnedArguments {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> Self {
        let mut owned = OwnedArguments::new();
        arguments.into_iter().for_each(|argument| owned.push(argument.as_ref()));
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(size_of::<ArgRange>() == 8);

    #[test]
    fn a_view_reads_all_three_places() {
        let big = [Arc::new(b"big".to_vec())];
        let ranges = [ArgRange::in_buffer(1, 2), ArgRange::in_side(0, 3), ArgRange::in_big(0)];
        let view = Arguments::new(&ranges, b"xabx", b"cde", &big);
        assert_eq!(view.iter().collect::<Vec<_>>(), [&b"ab"[..], b"cde", b"big"]);
        assert_eq!((view.len(), view.is_empty()), (3, false));
        assert_eq!(view.get(3), None);
        assert_eq!(view.skip(1).at(0), b"cde");
        assert!(view.skip(7).is_empty());
        assert!(view.shared(0).is_none() && view.shared(3).is_none());
        assert!(view.shared(2).is_some_and(|shared| Arc::ptr_eq(shared, &big[0])));
    }

    #[test]
    fn owned_arguments_outlive_the_buffer_and_share_what_is_big() {
        let big = [Arc::new(vec![7; 100_000])];
        let ranges = [ArgRange::in_buffer(0, 3), ArgRange::in_big(0)];
        let mut owned = OwnedArguments::from(Arguments::new(&ranges, b"SET", &[], &big));
        assert_eq!(owned.view().at(0), b"SET");
        assert!(owned.view().shared(1).is_some_and(|shared| Arc::ptr_eq(shared, &big[0])));
        assert!(owned.memory() >= 100_003);
        owned.clear();
        assert!(owned.view().is_empty());
        let words: OwnedArguments = ["GET", ""].iter().collect();
        assert_eq!(words.view().iter().collect::<Vec<_>>(), [&b"GET"[..], b""]);
        owned.extend(words.view());
        owned.extend(Arguments::new(&ranges, b"SET", &[], &big));
        assert_eq!((owned.len(), owned.is_empty()), (4, false));
        assert_eq!(owned.part(0..2).at(1), b"");
        assert_eq!(owned.part(2..4).at(0), b"SET");
        assert!(owned.part(2..4).shared(1).is_some_and(|shared| Arc::ptr_eq(shared, &big[0])));
    }
}
