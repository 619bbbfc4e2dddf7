//! Patterns of Lua, matched without recursion.
//!
//! Lua's own matcher calls itself for each part of a pattern, and never looks at the clock. So a
//! script could exhaust the thread's stack, or outrun every time limit. Here a list keeps the
//! alternatives that are still to be tried. Lua owns its memory, which counts as memory of the
//! script, and the script's time limit is checked now and then. Matches and errors are the same as
//! Lua's.
//!
//! As in C, a pattern ends at its first zero byte.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::stack::{Kind, Stack};

/// Captures that a pattern may have.
const CAPTURES_MAX: usize = 32;
/// Choices that are kept without memory of Lua's: hardly any pattern has more.
const CHOICES_INLINE: usize = 16;

/// Steps of a match that are counted together.
const STEPS_TOGETHER: usize = 64;
/// Steps of one item that are counted separately.
const STEPS_OF_ITEM: usize = 256;

/// How much of the subject a capture has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// It was not closed yet.
    Open,
    /// It is a place, and no text.
    Position,
    Bytes(usize),
}

#[derive(Clone, Copy)]
struct Capture {
    start: usize,
    extent: Extent,
}

/// The alternative to try when the rest of the pattern does not match.
#[derive(Clone, Copy)]
enum Choice {
    /// `?`: the rest is tried without the item.
    Without { place: usize, next: usize },
    /// `*` and `+`: the next attempt has one repetition less.
    Fewer { start: usize, count: usize, next: usize },
    /// `-`: with one more.
    More { place: usize, item: usize, end: usize },
    /// The capture that was opened last is undone.
    Opened,
    /// This one is open again.
    Closed(usize),
}

/// Where the first choices lie.
pub(crate) struct Room([MaybeUninit<Choice>; CHOICES_INLINE]);

impl Room {
    pub(crate) fn new() -> Room {
        Room([MaybeUninit::uninit(); CHOICES_INLINE])
    }
}

/// Alternatives still to be tried, the last first.
struct Choices<'room, 'call> {
    stack: Stack<'call>,
    /// The place on the stack that keeps the memory, nil before there is any.
    place: c_int,
    start: *mut Choice,
    count: usize,
    capacity: usize,
    room: PhantomData<&'room mut Room>,
}

impl Choices<'_, '_> {
    fn push(&mut self, choice: Choice) {
        if self.count == self.capacity {
            self.grow();
        }
        // SAFETY: there is room for one more.
        unsafe { self.start.add(self.count).write(choice) };
        self.count += 1;
    }

    fn pop(&mut self) -> Option<Choice> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: this many were written.
        Some(unsafe { self.start.add(self.count).read() })
    }

    #[cold]
    fn grow(&mut self) {
        const { assert!(align_of::<Choice>() <= 8, "Lua's memory is aligned for a number") };
        self.stack.need(1, "no place for choices");
        let capacity = self.capacity * 2;
        let start: *mut Choice = self.stack.push_memory(capacity * size_of::<Choice>()).cast();
        // SAFETY: the new memory is larger than the written part of the old, which is kept until
        // here.
        unsafe { ptr::copy_nonoverlapping(self.start, start, self.count) };
        self.stack.replace(self.place);
        self.start = start;
        self.capacity = capacity;
    }
}

/// The result of one part of the pattern.
enum Step {
    /// It matches so far: the places in the subject and in the pattern to go on from.
    On(usize, usize),
    /// It does not.
    Fail,
    /// All of it matches, up to here.
    End(usize),
}

/// A pattern and the text that is searched.
pub(crate) struct Matcher<'room, 'call> {
    stack: Stack<'call>,
    subject: &'call [u8],
    pattern: &'call [u8],
    captures: [Capture; CAPTURES_MAX],
    count: usize,
    choices: Choices<'room, 'call>,
}

impl<'room, 'call> Matcher<'room, 'call> {
    /// A matcher that takes a place on the stack which is nil, and does not move.
    pub(crate) fn new(
        stack: Stack<'call>,
        subject: &'call [u8],
        pattern: &'call [u8],
        place: c_int,
        room: &'room mut Room,
    ) -> Self {
        debug_assert!(stack.kind(place) == Kind::Nil);
        let start = room.0.as_mut_ptr().cast();
        let choices =
            Choices { stack, place, start, count: 0, capacity: CHOICES_INLINE, room: PhantomData };
        let captures = [Capture { start: 0, extent: Extent::Open }; CAPTURES_MAX];
        Matcher { stack, subject, pattern: as_in_c(pattern), captures, count: 0, choices }
    }

    /// Matches at one place of the subject, from a place in the pattern on. Returns the end.
    pub(crate) fn run(&mut self, start: usize, from: usize) -> Option<usize> {
        self.count = 0;
        self.choices.count = 0;
        let (mut place, mut part) = (start, from);
        loop {
            // Counted now and then; most matches end before that.
            for _ in 0..STEPS_TOGETHER {
                (place, part) = match self.step(place, part) {
                    Step::On(place, part) => (place, part),
                    Step::End(end) => return Some(end),
                    Step::Fail => self.retry()?,
                };
            }
            self.stack.work(STEPS_TOGETHER);
        }
    }

    /// A byte of the pattern, zero at its end.
    fn at(&self, part: usize) -> u8 {
        self.pattern.get(part).copied().unwrap_or_default()
    }

    fn step(&mut self, place: usize, part: usize) -> Step {
        match (self.at(part), self.at(part + 1)) {
            (b'(', b')') => self.open(place, Extent::Position, part + 2),
            (b'(', _) => self.open(place, Extent::Open, part + 1),
            (b')', _) => self.close(place, part + 1),
            (b'%', b'b') => self.balance(place, part + 2),
            (b'%', b'f') => self.frontier(place, part + 2),
            (b'%', digit @ b'0'..=b'9') => self.repeat_capture(place, digit, part + 2),
            (0, _) => Step::End(place),
            (b'$', 0) if place == self.subject.len() => Step::End(place),
            (b'$', 0) => Step::Fail,
            _ => self.item(place, part),
        }
    }

    /// A class, with its quantifier.
    fn item(&mut self, place: usize, part: usize) -> Step {
        let end = self.class_end(part);
        self.count_set(part, end);
        let matches = self.is_single(place, part, end);
        match self.at(end) {
            b'?' if matches => {
                self.choices.push(Choice::Without { place, next: end + 1 });
                Step::On(place + 1, end + 1)
            }
            b'?' => Step::On(place, end + 1),
            b'*' => self.expand(place, part, end),
            b'+' if matches => self.expand(place + 1, part, end),
            b'-' => {
                self.choices.push(Choice::More { place, item: part, end });
                Step::On(place, end + 1)
            }
            b'+' => Step::Fail,
            _ if matches => Step::On(place + 1, end),
            _ => Step::Fail,
        }
    }

    /// Counts the steps of a search in a set, which may be as long as the subject.
    fn count_set(&self, part: usize, end: usize) {
        if end - part >= STEPS_OF_ITEM {
            self.stack.work(end - part);
        }
    }

    /// As many repetitions as there are.
    fn expand(&mut self, start: usize, part: usize, end: usize) -> Step {
        let (mut count, mut steps) = (0, 0);
        while self.is_single(start + count, part, end) {
            count += 1;
            // A set is searched for each byte.
            steps += end - part;
            if steps >= STEPS_OF_ITEM {
                self.stack.work(steps);
                steps = 0;
            }
        }
        self.stack.work(steps);
        if count > 0 {
            self.choices.push(Choice::Fewer { start, count, next: end + 1 });
        }
        Step::On(start + count, end + 1)
    }

    /// The next alternative to try.
    fn retry(&mut self) -> Option<(usize, usize)> {
        loop {
            match self.choices.pop()? {
                Choice::Without { place, next } => return Some((place, next)),
                Choice::Fewer { start, count, next } => {
                    let count = count - 1;
                    if count > 0 {
                        self.choices.push(Choice::Fewer { start, count, next });
                    }
                    return Some((start + count, next));
                }
                Choice::More { place, item, end } if self.is_single(place, item, end) => {
                    self.count_set(item, end);
                    self.choices.push(Choice::More { place: place + 1, item, end });
                    return Some((place + 1, end + 1));
                }
                Choice::More { .. } => {}
                Choice::Opened => self.count -= 1,
                Choice::Closed(index) => self.captures[index].extent = Extent::Open,
            }
        }
    }

    fn open(&mut self, start: usize, extent: Extent, next: usize) -> Step {
        if self.count == CAPTURES_MAX {
            self.stack.fail(format_args!("too many captures"));
        }
        self.captures[self.count] = Capture { start, extent };
        self.count += 1;
        self.choices.push(Choice::Opened);
        Step::On(start, next)
    }

    fn close(&mut self, place: usize, next: usize) -> Step {
        let open = |capture: &Capture| capture.extent == Extent::Open;
        let Some(index) = self.captures[..self.count].iter().rposition(open) else {
            self.stack.fail(format_args!("invalid pattern capture"))
        };
        let capture = &mut self.captures[index];
        capture.extent = Extent::Bytes(place - capture.start);
        self.choices.push(Choice::Closed(index));
        Step::On(place, next)
    }

    /// Matches the text of a capture once more.
    fn repeat_capture(&mut self, place: usize, digit: u8, next: usize) -> Step {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let capture = self.captures[..self.count].get(index);
        match capture {
            Some(Capture { start, extent: Extent::Bytes(length) }) => {
                let text = &self.subject[*start..][..*length];
                self.stack.work(length / STEPS_TOGETHER);
                match self.subject[place..].starts_with(text) {
                    true => Step::On(place + length, next),
                    false => Step::Fail,
                }
            }
            Some(Capture { extent: Extent::Position, .. }) => Step::Fail,
            _ => self.stack.fail(format_args!("invalid capture index")),
        }
    }

    /// Text between two bytes that occur equally often.
    fn balance(&mut self, place: usize, part: usize) -> Step {
        let (begin, end) = (self.at(part), self.at(part + 1));
        if begin == 0 || end == 0 {
            self.stack.fail(format_args!("unbalanced pattern"));
        }
        if self.subject.get(place) != Some(&begin) {
            return Step::Fail;
        }
        let mut open = 1usize;
        let rest = &self.subject[place + 1..];
        for (offset, byte) in rest.iter().enumerate() {
            if *byte == end {
                open -= 1;
                if open == 0 {
                    self.stack.work(offset);
                    return Step::On(place + offset + 2, part + 2);
                }
            } else if *byte == begin {
                open += 1;
            }
        }
        self.stack.work(rest.len());
        Step::Fail
    }

    /// A place between a byte that is not in a set and one that is.
    fn frontier(&mut self, place: usize, part: usize) -> Step {
        if self.at(part) != b'[' {
            self.stack.fail(format_args!("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(part);
        self.count_set(part, end);
        let byte = |place: usize| self.subject.get(place).copied().unwrap_or_default();
        let before = if place == 0 { 0 } else { byte(place - 1) };
        if self.is_in_set(before, part, end - 1) || !self.is_in_set(byte(place), part, end - 1) {
            return Step::Fail;
        }
        Step::On(place, end)
    }

    /// Where the class that begins at `part` ends.
    fn class_end(&self, part: usize) -> usize {
        match self.at(part) {
            b'%' if self.at(part + 1) == 0 => {
                self.stack.fail(format_args!("malformed pattern (ends with '%')"))
            }
            b'%' => part + 2,
            b'[' => {
                let mut end = part + 1;
                if self.at(end) == b'^' {
                    end += 1;
                }
                // A bracket right at the beginning is a byte of the set.
                loop {
                    match self.at(end) {
                        0 => self.stack.fail(format_args!("malformed pattern (missing ']')")),
                        b'%' if self.at(end + 1) != 0 => end += 2,
                        _ => end += 1,
                    }
                    if self.at(end) == b']' {
                        return end + 1;
                    }
                }
            }
            _ => part + 1,
        }
    }

    /// Whether the byte at a place is of the class.
    fn is_single(&self, place: usize, part: usize, end: usize) -> bool {
        let Some(&byte) = self.subject.get(place) else { return false };
        match self.at(part) {
            b'.' => true,
            b'%' => is_in_class(byte, self.at(part + 1)),
            b'[' => self.is_in_set(byte, part, end - 1),
            own => own == byte,
        }
    }

    /// Whether a byte is in the set between the brackets at two places.
    fn is_in_set(&self, byte: u8, begin: usize, end: usize) -> bool {
        let negated = self.at(begin + 1) == b'^';
        let mut part = begin + 1 + usize::from(negated);
        while part < end {
            let own = self.at(part);
            let found = if own == b'%' {
                part += 1;
                is_in_class(byte, self.at(part))
            } else if self.at(part + 1) == b'-' && part + 2 < end {
                part += 2;
                (own..=self.at(part)).contains(&byte)
            } else {
                own == byte
            };
            if found {
                return !negated;
            }
            part += 1;
        }
        negated
    }

    /// A part of the subject.
    pub(crate) fn text(&self, start: usize, end: usize) -> &'call [u8] {
        &self.subject[start..end]
    }

    /// Pushes a capture; the whole match, from `start` to `end`, if the pattern has none.
    pub(crate) fn push_capture(&self, index: usize, start: usize, end: usize) {
        match self.captures[..self.count].get(index) {
            None if index == 0 => self.stack.push_bytes(&self.subject[start..end]),
            None => self.stack.fail(format_args!("invalid capture index")),
            Some(Capture { extent: Extent::Open, .. }) => {
                self.stack.fail(format_args!("unfinished capture"))
            }
            Some(Capture { start, extent: Extent::Position }) => {
                self.stack.push_number((start + 1) as f64);
            }
            Some(Capture { start, extent: Extent::Bytes(length) }) => {
                self.stack.push_bytes(&self.subject[*start..][..*length]);
            }
        }
    }

    /// Pushes all captures. Without captures it pushes the whole match, if that is wanted. Returns
    /// how many.
    pub(crate) fn push_captures(&self, whole: Option<(usize, usize)>) -> c_int {
        let count = if self.count == 0 && whole.is_some() { 1 } else { self.count };
        self.stack.need(count as c_int, "too many captures");
        let (start, end) = whole.unwrap_or_default();
        for index in 0..count {
            self.push_capture(index, start, end);
        }
        count as c_int
    }
}

/// Text up to its first zero byte.
pub(crate) fn as_in_c(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether a byte is of the class that a letter stands for; for a capital, whether it is not.
fn is_in_class(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // With the vertical tab, which Rust leaves out.
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is == class.is_ascii_lowercase()
}
