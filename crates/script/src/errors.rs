//! Errors of scripts: tables with the fields `err`, `source` and `line`.
//!
//! A script may raise any value. The handler of the outermost call makes a table of it and records
//! where it was raised.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;
use std::ptr;

use mlua::ffi::{self, lua_State};

use crate::protected::is_protected;
use crate::registry::{Stock, push_stock};
use crate::stack::{before_zero, bytes, push, raw_field, set_raw_field};

/// Pushes a table with the field `err`.
///
/// # Safety
/// As [`push`].
pub(crate) unsafe fn push_error(l: *mut lua_State, line: &[u8], counted: bool) {
    // SAFETY: by the caller's promise.
    unsafe {
        ffi::luaL_checkstack_(l, 4, std::ptr::null());
        ffi::lua_createtable(l, 0, 4);
        let table = ffi::lua_gettop(l);
        push(l, line);
        set_raw_field(l, table, c"err");
        if counted {
            ffi::lua_pushboolean(l, 1);
            set_raw_field(l, table, c"ignore_error_stats_update");
        }
    }
}

/// Raises an error of the interface itself: `text` without its code.
///
/// # Safety
/// As [`push`]. It does not return.
pub(crate) unsafe fn raise(l: *mut lua_State, line: &[u8]) -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        push_error(l, line, false);
        ffi::lua_error(l)
    }
}

/// `__redis__err__handler`: makes a table of the raised value, and records where it was raised.
///
/// # Safety
/// Lua calls it.
pub(crate) unsafe extern "C-unwind" fn handler(l: *mut lua_State) -> c_int {
    // SAFETY: the stack has the room of a C function; nothing is owned here. `place` is filled
    // before it is read.
    unsafe {
        ffi::lua_settop(l, 1);
        let mut place: ffi::lua_Debug = std::mem::zeroed();
        let mut found = raised_at(l, 1, &mut place);
        if found && CStr::from_ptr(place.what) == c"C" {
            found = raised_at(l, 2, &mut place);
        }
        if ffi::lua_type(l, 1) != ffi::LUA_TTABLE {
            describe(l);
        }
        if found && !is_protected(l, 1) {
            ffi::lua_pushstring_(l, place.source);
            set_raw_field(l, 1, c"source");
            ffi::lua_pushinteger(l, ffi::lua_Integer::from(place.currentline as i32));
            set_raw_field(l, 1, c"line");
        }
    }
    1
}

/// # Safety
/// `place` is for this to be filled.
unsafe fn raised_at(l: *mut lua_State, level: c_int, place: &mut ffi::lua_Debug) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        ffi::lua_getstack(l, level, place) != 0 && ffi::lua_getinfo(l, c"nSl".as_ptr(), place) != 0
    }
}

/// Replaces the only value of the stack, which is not a table, by a table that describes it.
///
/// # Safety
/// As [`push`].
unsafe fn describe(l: *mut lua_State) {
    // SAFETY: by the caller's promise.
    unsafe {
        push(l, b"ERR ");
        push_stock(l, Stock::ToString);
        ffi::lua_pushvalue(l, 1);
        ffi::lua_call(l, 1, 1);
        ffi::lua_concat(l, 2);
        ffi::lua_createtable(l, 0, 3);
        ffi::lua_insert(l, -2);
        set_raw_field(l, 2, c"err");
        ffi::lua_replace(l, 1);
    }
}

/// The line of the reply for the error on top of the stack, and whether it is counted already.
///
/// # Safety
/// There is a value on top.
pub(crate) unsafe fn line_of(l: *mut lua_State, name: &[u8]) -> (Vec<u8>, bool) {
    // SAFETY: all fields are pushed before anything is owned here: pushing may raise an error.
    unsafe {
        let top = ffi::lua_gettop(l);
        if ffi::lua_type(l, top) != ffi::LUA_TTABLE {
            let text: &[u8] = match ffi::lua_type(l, top) {
                ffi::LUA_TSTRING => before_zero(bytes(l, top)),
                _ => b"unknown error",
            };
            return ([b"ERR ", text, b" script: ", name, b"."].concat(), false);
        }
        raw_field(l, top, c"err");
        // A number becomes a string where it lies.
        let has_text = !ffi::lua_tolstring(l, -1, ptr::null_mut()).is_null();
        let counted = raw_field(l, top, c"ignore_error_stats_update") == ffi::LUA_TBOOLEAN
            && ffi::lua_toboolean(l, -1) != 0;
        let has_place = raw_field(l, top, c"source") == ffi::LUA_TSTRING
            && raw_field(l, top, c"line") == ffi::LUA_TNUMBER;
        let mut line = match has_text {
            true => before_zero(bytes(l, top + 1)).to_vec(),
            false => b"ERR unknown error".to_vec(),
        };
        line.extend_from_slice(b" script: ");
        line.extend_from_slice(name);
        if has_place {
            line.extend_from_slice(b", on ");
            line.extend_from_slice(bytes(l, -2));
            line.push(b':');
            base::num::write_i64(&mut line, ffi::lua_tonumber(l, -1) as i64);
        }
        line.push(b'.');
        ffi::lua_settop(l, top);
        (line, counted)
    }
}
