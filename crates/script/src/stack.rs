//! Strings and fields of tables on the stack of a state.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::{c_char, c_int};

use mlua::ffi::{self, lua_State};

/// The bytes of the string at `index`, which is one.
///
/// # Safety
/// There is a string at `index`, and it stays there for as long as the bytes are used.
pub(crate) unsafe fn bytes<'s>(l: *mut lua_State, index: c_int) -> &'s [u8] {
    let mut length = 0;
    // SAFETY: a string is not changed by this, and its bytes lie where they are while it is
    // reached.
    unsafe {
        let start = ffi::lua_tolstring(l, index, &mut length);
        std::slice::from_raw_parts(start.cast::<u8>(), length)
    }
}

/// The part of a string that C sees: all before its first zero byte.
pub(crate) fn before_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Pushes a string.
///
/// # Safety
/// There is room for it, and the caller owns nothing: this may not return.
pub(crate) unsafe fn push(l: *mut lua_State, text: &[u8]) {
    // SAFETY: the bytes are copied.
    unsafe { ffi::lua_pushlstring_(l, text.as_ptr().cast::<c_char>(), text.len()) };
}

/// The name of a field, for [`raw_field`] and [`set_raw_field`].
type Name = &'static CStr;

/// Pushes a field of the table at `index`, without its metatable.
///
/// # Safety
/// There is a table at `index`, which is counted from the bottom.
pub(crate) unsafe fn raw_field(l: *mut lua_State, index: c_int, name: Name) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        push(l, name.to_bytes());
        ffi::lua_rawget_(l, index);
        ffi::lua_type(l, -1)
    }
}

/// Sets a field of the table at `index` to the value on top, which it pops.
///
/// # Safety
/// As [`raw_field`].
pub(crate) unsafe fn set_raw_field(l: *mut lua_State, index: c_int, name: Name) {
    // SAFETY: by the caller's promise.
    unsafe {
        push(l, name.to_bytes());
        ffi::lua_insert(l, -2);
        ffi::lua_rawset(l, index);
    }
}
