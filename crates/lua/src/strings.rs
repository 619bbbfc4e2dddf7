//! Replacements for the functions of Lua's `string` that search, and for `string.rep`: see
//! `patterns.rs`.

use std::ffi::{CStr, c_int};

use crate::output::{Output, Room};
use crate::patterns::{self, Matcher, as_in_c};
use crate::stack::{Function, Kind, Stack, function};

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"find", function(find)),
    (c"match", function(match_once)),
    (c"gmatch", function(gmatch)),
    (c"gsub", function(gsub)),
    (c"rep", function(rep)),
];

/// Bytes that are copied in one step.
const BYTES_TOGETHER: usize = 16;

/// Results of gsub up to this many bytes need no memory of Lua's. It is small, since gsub calls
/// functions of scripts, which may call gsub again.
const SUBSTITUTED_INLINE: usize = 512;

/// Puts the functions into the table on top of the stack.
pub(crate) fn open(stack: Stack<'_>) {
    stack.set_functions(FUNCTIONS, 0);
    // Its name before Lua 5.1.
    stack.push_bytes(b"gmatch");
    stack.look_up(-2);
    stack.set_field(c"gfind");
}

/// `string.find(s, pattern [, init [, plain]])`
fn find(stack: Stack<'_>) -> c_int {
    let (subject, pattern, start) = searched(stack);
    let plainly = stack.kind(4) != Kind::None && stack.boolean(4);
    if !plainly && as_in_c(pattern).iter().any(|byte| b"^$*+?.([%-".contains(byte)) {
        return search(stack, subject, pattern, start, true);
    }
    match memchr::memmem::find(&subject[start..], pattern) {
        Some(at) => {
            stack.push_number((start + at + 1) as f64);
            stack.push_number((start + at + pattern.len()) as f64);
            2
        }
        None => {
            stack.push_nil();
            1
        }
    }
}

/// `string.match(s, pattern [, init])`
fn match_once(stack: Stack<'_>) -> c_int {
    let (subject, pattern, start) = searched(stack);
    search(stack, subject, pattern, start, false)
}

/// The subject, the pattern and where to begin.
fn searched<'call>(stack: Stack<'call>) -> (&'call [u8], &'call [u8], usize) {
    let (subject, pattern) = (stack.argument_bytes(1), stack.argument_bytes(2));
    let place = stack.argument_integer_or(3, 1);
    let length = subject.len() as i64;
    // A negative position counts from the end.
    let place = if place < 0 { place.saturating_add(length + 1) } else { place };
    (subject, pattern, (place - 1).clamp(0, length) as usize)
}

/// Finds the first match: returns its place, if that is wanted, and the captures; otherwise the
/// captures, or the whole match.
fn search(
    stack: Stack<'_>,
    subject: &[u8],
    pattern: &[u8],
    from: usize,
    with_place: bool,
) -> c_int {
    let mut room = patterns::Room::new();
    stack.need(1, "no place for choices");
    stack.push_nil();
    let mut matcher = Matcher::new(stack, subject, pattern, stack.top(), &mut room);
    let begin = usize::from(pattern.first() == Some(&b'^'));
    let last = if begin == 1 { from } else { subject.len() };
    for start in from..=last {
        stack.work(1);
        let Some(end) = matcher.run(start, begin) else { continue };
        if !with_place {
            return matcher.push_captures(Some((start, end)));
        }
        stack.need(2, "too many captures");
        stack.push_number((start + 1) as f64);
        stack.push_number(end as f64);
        return 2 + matcher.push_captures(None);
    }
    stack.push_nil();
    1
}

/// `string.gmatch(s, pattern)`
fn gmatch(stack: Stack<'_>) -> c_int {
    stack.argument_bytes(1);
    stack.argument_bytes(2);
    stack.set_top(2);
    stack.push_number(0.0);
    stack.push_closure(function(gmatch_next), 3);
    1
}

/// The next match of those that gmatch finds.
fn gmatch_next(stack: Stack<'_>) -> c_int {
    stack.set_top(0);
    stack.push_upvalue(1);
    stack.push_upvalue(2);
    stack.push_upvalue(3);
    let (subject, pattern) = (stack.bytes(1), stack.bytes(2));
    let from = stack.number(3) as usize;
    let mut room = patterns::Room::new();
    stack.push_nil();
    let mut matcher = Matcher::new(stack, subject, pattern, 4, &mut room);
    for start in from..=subject.len() {
        stack.work(1);
        if let Some(end) = matcher.run(start, 0) {
            // One that is empty is not found again.
            let next = if end == start { end + 1 } else { end };
            stack.push_number(next as f64);
            stack.replace_upvalue(3);
            return matcher.push_captures(Some((start, end)));
        }
    }
    0
}

/// `string.gsub(s, pattern, repl [, n])`
fn gsub(stack: Stack<'_>) -> c_int {
    let (subject, pattern) = (stack.argument_bytes(1), stack.argument_bytes(2));
    let by = stack.kind(3);
    let most = stack.argument_integer_or(4, subject.len() as i64 + 1) as i32;
    // Functions are of no type that a library takes.
    let is_function = by == Kind::Other && stack.is_function(3);
    if !is_function && !matches!(by, Kind::Number | Kind::String | Kind::Table) {
        stack.fail_argument(3, format_args!("string/function/table expected"));
    }
    stack.set_top(4);
    stack.push_nil();
    stack.push_nil();
    let mut room = Room::<SUBSTITUTED_INLINE>::sized();
    let mut output = Output::new(stack, 5, &mut room);
    let mut choices = patterns::Room::new();
    let mut matcher = Matcher::new(stack, subject, pattern, 6, &mut choices);
    let begin = usize::from(pattern.first() == Some(&b'^'));
    let (mut place, mut count) = (0, 0);
    while count < most {
        stack.work(1);
        let end = matcher.run(place, begin);
        if let Some(end) = end {
            count += 1;
            match by {
                Kind::Number | Kind::String => fill_in(stack, &matcher, &mut output, place, end),
                _ => {
                    ask(stack, &matcher, by, place, end);
                    put_answer(stack, &mut output, &subject[place..end]);
                }
            }
        }
        match end {
            Some(end) if end > place => place = end,
            _ if place < subject.len() => {
                output.push(subject[place]);
                place += 1;
            }
            _ => break,
        }
        if begin == 1 {
            break;
        }
    }
    output.extend(&subject[place..]);
    output.push_string();
    stack.push_number(f64::from(count));
    2
}

/// Adds the text that replaces a match, in which `%1` stands for a capture.
fn fill_in(
    stack: Stack<'_>,
    matcher: &Matcher<'_, '_>,
    output: &mut Output<'_, '_>,
    start: usize,
    end: usize,
) {
    let text = stack.argument_bytes(3);
    stack.work(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            output.push(*byte);
            continue;
        }
        // After the end is the zero byte that ends a string in C.
        match rest.next().copied().unwrap_or_default() {
            digit @ b'0'..=b'9' => match digit.checked_sub(b'1') {
                Some(index) => {
                    matcher.push_capture(usize::from(index), start, end);
                    output.extend(stack.text(-1));
                    stack.pop(1);
                }
                None => output.extend(matcher.text(start, end)),
            },
            byte => output.push(byte),
        }
    }
}

/// Pushes the value of a function or a table for a match.
fn ask(stack: Stack<'_>, matcher: &Matcher<'_, '_>, by: Kind, start: usize, end: usize) {
    if by == Kind::Table {
        matcher.push_capture(0, start, end);
        stack.look_up(3);
    } else {
        stack.push_copy(3);
        let count = matcher.push_captures(Some((start, end)));
        stack.call(count);
    }
}

/// Pops that, and adds it; adds the match itself if there is nothing.
fn put_answer(stack: Stack<'_>, output: &mut Output<'_, '_>, found: &[u8]) {
    match stack.kind(-1) {
        Kind::String | Kind::Number => output.extend(stack.text(-1)),
        // Nil and false.
        _ if !stack.boolean(-1) => output.extend(found),
        _ => {
            let kind = stack.kind_name(-1);
            stack.fail(format_args!("invalid replacement value (a {kind})"))
        }
    }
    stack.pop(1);
}

/// `string.rep(s, n)`
fn rep(stack: Stack<'_>) -> c_int {
    let text = stack.argument_bytes(1);
    let count = stack.argument_integer(2) as i32;
    let size = text.len().saturating_mul(usize::try_from(count).unwrap_or(0));
    if size == 0 {
        stack.push_bytes(b"");
        return 1;
    }
    stack.work(size / BYTES_TOGETHER);
    stack.need(2, "no place for a string");
    let room = stack.push_room(size);
    let mut filled = text.len();
    room[..filled].copy_from_slice(text);
    // The present text is doubled.
    while filled < size {
        let more = filled.min(size - filled);
        room.copy_within(..more, filled);
        filled += more;
    }
    stack.push_bytes(room);
    1
}
