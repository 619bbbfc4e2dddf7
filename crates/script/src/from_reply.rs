//! Replies of commands as values of Lua.
//!
//! A reply is read where the command wrote it, and each part becomes a value at once.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

use crate::errors::push_error;
use crate::stack::{push, set_raw_field};

/// What a script gets in place of a reply that is not there, or not as a whole: no command of its
/// own makes one.
const NO_REPLY: &[u8] = b"ERR the command has not given one whole reply";

/// Pushes the value of a reply. Returns whether it is an error.
///
/// # Safety
/// The caller owns nothing: this may not return.
pub(crate) unsafe fn push_reply(l: *mut lua_State, reply: &[u8]) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let top = ffi::lua_gettop(l);
        if push_value(l, reply) == Some(reply.len()) {
            return reply.first() == Some(&b'-');
        }
        ffi::lua_settop(l, top);
        push_error(l, NO_REPLY, false);
    }
    true
}

/// Pushes the value of the reply at the front of `reply`. Returns the length of that reply; nothing
/// if it is not there as a whole. Then there may be some values on the stack.
///
/// # Safety
/// The caller owns nothing: this may not return.
unsafe fn push_value(l: *mut lua_State, reply: &[u8]) -> Option<usize> {
    let end = reply.iter().position(|byte| *byte == b'\r')?;
    let (kind, after) = (*reply.first()?, end + 2);
    let line = reply.get(1..end)?;
    // SAFETY: the stack is checked for each level of nesting; only borrowed bytes live here.
    unsafe {
        ffi::luaL_checkstack_(l, 6, c"too deep a reply".as_ptr());
        match kind {
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
    Some(after)
}

/// The text of so many bytes, and where what follows it begins.
fn text(reply: &[u8], length: i64, after: usize) -> Option<(&[u8], usize)> {
    let end = after.checked_add(usize::try_from(length).ok()?)?;
    Some((reply.get(after..end)?, end + 2))
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

unsafe fn push_bulk(l: *mut lua_State, reply: &[u8], line: &[u8], after: usize) -> Option<usize> {
    let length = number(line);
    // SAFETY: there is room.
    unsafe {
        if length < 0 {
            ffi::lua_pushboolean(l, 0);
            return Some(after);
        }
        let (text, after) = text(reply, length, after)?;
        push(l, text);
        Some(after)
    }
}

unsafe fn push_array(l: *mut lua_State, reply: &[u8], line: &[u8], after: usize) -> Option<usize> {
    let (count, mut at) = (number(line), after);
    // SAFETY: there is room; each element is popped into the table.
    unsafe {
        if count < 0 {
            ffi::lua_pushboolean(l, 0);
            return Some(at);
        }
        ffi::lua_createtable(l, c_int::try_from(count).unwrap_or(0), 0);
        for index in 1..=count {
            at += push_value(l, reply.get(at..)?)?;
            ffi::lua_rawseti_(l, -2, index as c_int);
        }
    }
    Some(at)
}

/// A table within a table, under a name.
unsafe fn push_pairs(
    l: *mut lua_State,
    name: &'static CStr,
    reply: &[u8],
    count: i64,
    after: usize,
) -> Option<usize> {
    let mut at = after;
    // SAFETY: there is room; a key that is nil or no number would be an error of Lua, which is
    // raised as any other.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        // It does not get its final size at once: scripts see the order that comes from growing.
        ffi::lua_createtable(l, 0, 0);
        for _ in 0..count {
            at += push_value(l, reply.get(at..)?)?;
            at += push_value(l, reply.get(at..)?)?;
            ffi::lua_rawset(l, -3);
        }
        set_raw_field(l, ffi::lua_gettop(l) - 1, name);
    }
    Some(at)
}

unsafe fn push_set(l: *mut lua_State, reply: &[u8], count: i64, after: usize) -> Option<usize> {
    let mut at = after;
    // SAFETY: as in `push_pairs`.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_createtable(l, 0, 0);
        for _ in 0..count {
            at += push_value(l, reply.get(at..)?)?;
            ffi::lua_pushboolean(l, 1);
            ffi::lua_rawset(l, -3);
        }
        set_raw_field(l, ffi::lua_gettop(l) - 1, c"set");
    }
    Some(at)
}

unsafe fn push_verbatim(
    l: *mut lua_State,
    reply: &[u8],
    length: i64,
    after: usize,
) -> Option<usize> {
    let (text, after) = text(reply, length, after)?;
    let (format, string) = (text.get(..3)?, text.get(4..)?);
    // SAFETY: there is room.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_createtable(l, 0, 2);
        let inner = ffi::lua_gettop(l);
        push(l, format);
        set_raw_field(l, inner, c"format");
        push(l, string);
        set_raw_field(l, inner, c"string");
        set_raw_field(l, inner - 1, c"verbatim_string");
    }
    Some(after)
}
