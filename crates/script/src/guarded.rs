//! Functions of Lua that ignore metatables. They know the tables that stand in for others: they
//! refuse to change them, and look through them.
#![allow(unsafe_code)]

use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

use crate::coroutines;
use crate::protected::{READ_ONLY, is_protected, push_protected};
use crate::registry::{Stock, call_stock, push_stock};
use crate::stack::push;

unsafe fn refuse(l: *mut lua_State) {
    // SAFETY: Lua has called the caller of this.
    unsafe {
        if is_protected(l, 1) {
            push(l, READ_ONLY.to_bytes());
            ffi::lua_error(l);
        }
    }
}

pub(crate) unsafe extern "C-unwind" fn setmetatable(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        refuse(l);
        call_stock(l, Stock::SetMetatable)
    }
}

pub(crate) unsafe extern "C-unwind" fn insert(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        refuse(l);
        call_stock(l, Stock::Insert)
    }
}

pub(crate) unsafe extern "C-unwind" fn rawset(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(l, 2);
        ffi::luaL_checkany(l, 3);
        ffi::lua_settop(l, 3);
        refuse(l);
        ffi::lua_rawset(l, 1);
    }
    1
}

/// Replaces the first argument by its real table, if it is one that stands in for another.
unsafe fn look_through(l: *mut lua_State) {
    // SAFETY: Lua has called the caller of this.
    unsafe {
        if push_protected(l, 1) {
            ffi::lua_rawgeti_(l, -1, 1);
            ffi::lua_replace(l, 1);
            ffi::lua_settop(l, -2);
        }
    }
}

pub(crate) unsafe extern "C-unwind" fn foreach(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        look_through(l);
        call_stock(l, Stock::ForEach)
    }
}

pub(crate) unsafe extern "C-unwind" fn rawget(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(l, 2);
        ffi::lua_settop(l, 2);
        look_through(l);
        ffi::lua_rawget_(l, 1);
    }
    1
}

pub(crate) unsafe extern "C-unwind" fn next(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
        ffi::lua_settop(l, 2);
        // When much was taken out of a table, it takes long to find the rest.
        coroutines::count(l);
        look_through(l);
        if ffi::lua_next(l, 1) != 0 {
            return 2;
        }
        ffi::lua_pushnil(l);
    }
    1
}

pub(crate) unsafe extern "C-unwind" fn pairs(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
        coroutines::count(l);
        if is_protected(l, 1) {
            ffi::lua_pushcclosure(l, next, 0);
        } else {
            push_stock(l, Stock::Next);
        }
        ffi::lua_pushvalue(l, 1);
        ffi::lua_pushnil(l);
    }
    3
}

pub(crate) unsafe extern "C-unwind" fn getmetatable(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        if push_protected(l, 1) {
            ffi::lua_rawgeti_(l, -1, 2);
            return 1;
        }
        call_stock(l, Stock::GetMetatable)
    }
}
