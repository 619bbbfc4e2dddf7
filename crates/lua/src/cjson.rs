//! `cjson`: JSON, with settings of its own in each copy of the library.

use std::ffi::{CStr, c_int};

use config::{CjsonConfig, Invalid, USUAL};

use crate::stack::{Function, Kind, Stack, function};

mod config;
mod decode;
mod encode;

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"encode", function(encode::encode)),
    (c"decode", function(decode::decode)),
    (c"encode_sparse_array", function(encode_sparse_array)),
    (c"encode_max_depth", function(encode_max_depth)),
    (c"decode_max_depth", function(decode_max_depth)),
    (c"encode_number_precision", function(encode_number_precision)),
    (c"encode_keep_buffer", function(encode_keep_buffer)),
    (c"encode_invalid_numbers", function(encode_invalid_numbers)),
    (c"decode_invalid_numbers", function(decode_invalid_numbers)),
    (c"new", function(new)),
];

/// Pushes a copy of the library with the usual settings.
pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table();
    stack.push_shared(USUAL);
    stack.set_functions(FUNCTIONS, 1);
    stack.push_null();
    stack.set_field(c"null");
    stack.set_text(c"_NAME", "cjson");
    stack.set_text(c"_VERSION", "2.1.0");
}

fn new(stack: Stack<'_>) -> c_int {
    open(stack);
    1
}

/// The settings, for a function that takes at most this many of them; missing ones become nil.
fn config(stack: Stack<'_>, most: c_int) -> CjsonConfig {
    if stack.top() > most {
        stack.fail_argument(most + 1, format_args!("found too many arguments"));
    }
    stack.set_top(most);
    stack.shared()
}

/// A number among the arguments, if it is not nil.
fn integer(stack: Stack<'_>, index: c_int, (least, most): (i32, i32)) -> Option<i32> {
    if stack.kind(index) == Kind::Nil {
        return None;
    }
    // As C does it: bits beyond 32 are cut off.
    let value = stack.argument_integer(index) as i32;
    if value < least || value > most {
        // The error names the first argument, whichever is wrong.
        stack.fail_argument(1, format_args!("expected integer between {least} and {most}"));
    }
    Some(value)
}

/// A choice among the arguments, if it is not nil: false and true are the first two words.
fn choice(stack: Stack<'_>, index: c_int, words: &[&str]) -> Option<usize> {
    match stack.kind(index) {
        Kind::Nil => None,
        Kind::Boolean => Some(usize::from(stack.boolean(index))),
        _ => {
            let word = stack.argument_bytes(index);
            let word = word.split(|byte| *byte == 0).next().unwrap_or_default();
            let found = words.iter().position(|known| known.as_bytes() == word);
            if found.is_none() {
                stack.fail_option(index, word);
            }
            found
        }
    }
}

fn encode_sparse_array(stack: Stack<'_>) -> c_int {
    let mut config = config(stack, 3);
    if let Some(convert) = choice(stack, 1, &["off", "on"]) {
        config.sparse_convert = convert == 1;
        stack.set_shared(config);
    }
    if let Some(ratio) = integer(stack, 2, (0, i32::MAX)) {
        config.sparse_ratio = ratio;
        stack.set_shared(config);
    }
    if let Some(safe) = integer(stack, 3, (0, i32::MAX)) {
        config.sparse_safe = safe;
        stack.set_shared(config);
    }
    stack.push_boolean(config.sparse_convert);
    stack.push_number(f64::from(config.sparse_ratio));
    stack.push_number(f64::from(config.sparse_safe));
    3
}

/// A setting that is a number: an argument changes it; the result is its value.
fn number(stack: Stack<'_>, range: (i32, i32), of: fn(&mut CjsonConfig) -> &mut i32) -> c_int {
    let mut config = config(stack, 1);
    if let Some(value) = integer(stack, 1, range) {
        *of(&mut config) = value;
        stack.set_shared(config);
    }
    stack.push_number(f64::from(*of(&mut config)));
    1
}

fn encode_max_depth(stack: Stack<'_>) -> c_int {
    number(stack, (1, i32::MAX), |config| &mut config.encode_depth)
}

fn decode_max_depth(stack: Stack<'_>) -> c_int {
    number(stack, (1, i32::MAX), |config| &mut config.decode_depth)
}

fn encode_number_precision(stack: Stack<'_>) -> c_int {
    number(stack, (1, 14), |config| &mut config.precision)
}

/// A setting that is on or off: an argument changes it; the result is its value.
fn switch(stack: Stack<'_>, of: fn(&mut CjsonConfig) -> &mut bool) -> c_int {
    let mut config = config(stack, 1);
    if let Some(on) = choice(stack, 1, &["off", "on"]) {
        *of(&mut config) = on == 1;
        stack.set_shared(config);
    }
    stack.push_boolean(*of(&mut config));
    1
}

fn encode_keep_buffer(stack: Stack<'_>) -> c_int {
    switch(stack, |config| &mut config.keep_buffer)
}

fn decode_invalid_numbers(stack: Stack<'_>) -> c_int {
    switch(stack, |config| &mut config.decode_invalid)
}

fn encode_invalid_numbers(stack: Stack<'_>) -> c_int {
    let mut config = config(stack, 1);
    if let Some(choice) = choice(stack, 1, &["off", "on", "null"]) {
        config.encode_invalid = [Invalid::Refuse, Invalid::Print, Invalid::Null][choice];
        stack.set_shared(config);
    }
    match config.encode_invalid {
        Invalid::Refuse => stack.push_boolean(false),
        Invalid::Print => stack.push_boolean(true),
        Invalid::Null => stack.push_bytes(b"null"),
    }
    1
}
