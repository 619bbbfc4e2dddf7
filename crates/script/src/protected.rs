//! Tables that scripts see and cannot change: empty ones, which stand in for the real ones.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

use crate::stack::set_raw_field;

/// Its address stands for the registry's table of these tables.
static PROTECTED: u8 = 1;

/// Makes the registry's table of them.
///
/// # Safety
/// The stack has room for two more.
pub(crate) unsafe fn prepare_protection(l: *mut lua_State) {
    // SAFETY: by the caller's promise.
    unsafe {
        ffi::lua_pushlightuserdata(l, (&raw const PROTECTED).cast_mut().cast());
        ffi::lua_createtable(l, 0, 16);
        ffi::lua_rawset(l, ffi::LUA_REGISTRYINDEX);
    }
}

/// Replaces the table on top by one that shows it and cannot be changed. If `has_metatable`,
/// `getmetatable` shows a metatable for it.
///
/// # Safety
/// The stack has the room of a function, and there is a table on top.
pub(crate) unsafe fn protect(l: *mut lua_State, has_metatable: bool) {
    // SAFETY: the stack has the room of a function.
    unsafe {
        let real = ffi::lua_gettop(l);
        ffi::lua_createtable(l, 0, 0);
        let shown = real + 1;
        ffi::lua_createtable(l, 0, 2);
        ffi::lua_pushvalue(l, real);
        set_raw_field(l, shown + 1, c"__index");
        ffi::lua_pushcclosure(l, read_only, 0);
        set_raw_field(l, shown + 1, c"__newindex");
        ffi::lua_setmetatable(l, shown);
        ffi::lua_pushlightuserdata(l, (&raw const PROTECTED).cast_mut().cast());
        ffi::lua_rawget_(l, ffi::LUA_REGISTRYINDEX);
        // For each: the real table, and the table that is shown as its metatable.
        ffi::lua_pushvalue(l, shown);
        ffi::lua_createtable(l, 2, 0);
        ffi::lua_pushvalue(l, real);
        ffi::lua_rawseti_(l, -2, 1);
        if has_metatable && ffi::lua_getmetatable(l, real) != 0 {
            protect(l, false);
            ffi::lua_rawseti_(l, -2, 2);
        }
        ffi::lua_rawset(l, shown + 1);
        ffi::lua_settop(l, shown);
        ffi::lua_replace(l, real);
    }
}

/// Leaves the entry for the table at `index` on top, if scripts cannot change it.
///
/// # Safety
/// There is room for four more.
pub(crate) unsafe fn push_protected(l: *mut lua_State, index: c_int) -> bool {
    // SAFETY: there is room in every function that Lua calls.
    unsafe {
        // Few tables have a metatable at all.
        if ffi::lua_type(l, index) != ffi::LUA_TTABLE || ffi::lua_getmetatable(l, index) == 0 {
            return false;
        }
        ffi::lua_settop(l, -2);
        ffi::lua_pushlightuserdata(l, (&raw const PROTECTED).cast_mut().cast());
        ffi::lua_rawget_(l, ffi::LUA_REGISTRYINDEX);
        ffi::lua_pushvalue(l, index);
        ffi::lua_rawget_(l, -2);
        ffi::lua_remove(l, -2);
        if ffi::lua_type(l, -1) == ffi::LUA_TTABLE {
            return true;
        }
        ffi::lua_settop(l, -2);
        false
    }
}

/// Whether scripts cannot change the table at `index`, which is counted from the bottom.
///
/// # Safety
/// There is room for four more.
pub(crate) unsafe fn is_protected(l: *mut lua_State, index: c_int) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let is = push_protected(l, index);
        if is {
            ffi::lua_settop(l, -2);
        }
        is
    }
}

/// The error of a script that changes one.
pub(crate) const READ_ONLY: &CStr = c"Attempt to modify a readonly table";

/// `__newindex` of tables that cannot be changed.
unsafe extern "C-unwind" fn read_only(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { ffi::luaL_error(l, READ_ONLY.as_ptr()) }
}
