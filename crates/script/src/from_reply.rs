//! Replies of commands as values of Lua.
//!
//! A reply is read where the command wrote it, and each part becomes a value at once.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

use crate::errors::push_error;
use crate::stack::{push, set_raw_field};

/// Pushes the value of the reply at the front of `reply`. Returns the length of that reply.
///
/// # Safety
/// `reply` is the complete output of commands. The caller owns nothing: this may not return.
pub(crate) unsafe fn push_value(l: *mut lua_State, reply: &[u8]) -> usize {
    let end = line_end(reply);
    let (line, after) = (&reply[1..end], end + 2);
    // SAFETY: the stack is checked for each level of nesting; only borrowed bytes live here.
    unsafe {
        ffi::luaL_checkstack_(l, 6, c"too deep a reply".as_ptr());
        match reply[0] {
            b':' => ffi::lua_pushnumber(l, number(line) as f64),
            b'$' => return push_bulk(l, reply, line, after),
            b'+' => push_field(l, c"ok", line),
            b'-' => push_error(l, line, true),
            b'*' => return push_array(l, reply, line, after),
            b'%' => return push_pairs(l, c"map", reply, number(line), after),
            b'~' => return push_set(l, reply, number(line), after),
            b'_' => ffi::lua_pushnil(l),
            b'#' => ffi::lua_pushboolean(l, c_int::from(line == b"t")),
            b',' => {
                ffi::lua_createtable(l, 0, 1);
                ffi::lua_pushnumber(l, base::num::parse_f64(line).unwrap_or(f64::NAN));
                set_raw_field(l, ffi::lua_gettop(l) - 1, c"double");
            }
            b'(' => push_field(l, c"big_number", line),
            b'=' => return push_verbatim(l, reply, number(line), after),
            _ => ffi::lua_pushnil(l),
        }
    }
    after
}

/// Where the first line ends.
fn line_end(reply: &[u8]) -> usize {
    let end = reply.iter().position(|byte| *byte == b'\r');
    end.unwrap_or(reply.len().saturating_sub(2))
}

fn number(line: &[u8]) -> i64 {
    base::num::parse_i64(line).unwrap_or(0)
}

unsafe fn push_field(l: *mut lua_State, name: &'static CStr, text: &[u8]) {
    // SAFETY: there is room, as `push_value` has seen to.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        push(l, text);
        set_raw_field(l, ffi::lua_gettop(l) - 1, name);
    }
}

unsafe fn push_bulk(l: *mut lua_State, reply: &[u8], line: &[u8], after: usize) -> usize {
    let length = number(line);
    // SAFETY: there is room.
    unsafe {
        if length < 0 {
            ffi::lua_pushboolean(l, 0);
            return after;
        }
        let end = after + length as usize;
        push(l, &reply[after..end]);
        end + 2
    }
}

unsafe fn push_array(l: *mut lua_State, reply: &[u8], line: &[u8], after: usize) -> usize {
    let (count, mut at) = (number(line), after);
    // SAFETY: there is room; each element is popped into the table.
    unsafe {
        if count < 0 {
            ffi::lua_pushboolean(l, 0);
            return at;
        }
        ffi::lua_createtable(l, c_int::try_from(count).unwrap_or(0), 0);
        for index in 1..=count {
            at += push_value(l, &reply[at..]);
            ffi::lua_rawseti_(l, -2, index as c_int);
        }
    }
    at
}

/// A table within a table, under a name.
unsafe fn push_pairs(
    l: *mut lua_State,
    name: &'static CStr,
    reply: &[u8],
    count: i64,
    after: usize,
) -> usize {
    let mut at = after;
    // SAFETY: there is room; a key that is nil or no number would be an error of Lua, which is
    // raised as any other.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        // It does not get its final size at once: scripts see the order that comes from growing.
        ffi::lua_createtable(l, 0, 0);
        for _ in 0..count {
            at += push_value(l, &reply[at..]);
            at += push_value(l, &reply[at..]);
            ffi::lua_rawset(l, -3);
        }
        set_raw_field(l, ffi::lua_gettop(l) - 1, name);
    }
    at
}

unsafe fn push_set(l: *mut lua_State, reply: &[u8], count: i64, after: usize) -> usize {
    let mut at = after;
    // SAFETY: as in `push_pairs`.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_createtable(l, 0, 0);
        for _ in 0..count {
            at += push_value(l, &reply[at..]);
            ffi::lua_pushboolean(l, 1);
            ffi::lua_rawset(l, -3);
        }
        set_raw_field(l, ffi::lua_gettop(l) - 1, c"set");
    }
    at
}

unsafe fn push_verbatim(l: *mut lua_State, reply: &[u8], length: i64, after: usize) -> usize {
    let end = after + length as usize;
    let text = &reply[after..end];
    // SAFETY: there is room.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_createtable(l, 0, 2);
        let inner = ffi::lua_gettop(l);
        push(l, &text[..3]);
        set_raw_field(l, inner, c"format");
        push(l, &text[4..]);
        set_raw_field(l, inner, c"string");
        set_raw_field(l, inner - 1, c"verbatim_string");
    }
    end + 2
}
