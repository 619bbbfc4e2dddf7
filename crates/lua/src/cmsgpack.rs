//! `cmsgpack`: MessagePack. Numbers take the shortest form that keeps them, and strings of any
//! bytes are written as strings.

use std::ffi::CStr;

use crate::stack::{Function, Stack, function};

mod pack;
mod unpack;

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"pack", function(pack::pack)),
    (c"unpack", function(unpack::unpack)),
    (c"unpack_one", function(unpack::unpack_one)),
    (c"unpack_limit", function(unpack::unpack_limit)),
];

/// Pushes the library.
pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table();
    stack.set_functions(FUNCTIONS, 0);
    for (name, text) in [
        (c"_NAME", "cmsgpack"),
        (c"_VERSION", "lua-cmsgpack 0.4.0"),
        (c"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        (c"_DESCRIPTION", "MessagePack C implementation for Lua"),
    ] {
        stack.set_text(name, text);
    }
}
