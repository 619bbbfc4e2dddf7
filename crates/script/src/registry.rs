//! What a state keeps in its registry, where scripts do not see it.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

/// Places of a state's values in its registry.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// The table of global variables.
    pub(crate) globals: c_int,
    /// The tables `redis` and `server`.
    pub(crate) redis: c_int,
    pub(crate) server: c_int,
    /// The function that makes a table of an error.
    pub(crate) handler: c_int,
    /// The names of the tables that are passed to a script.
    pub(crate) keys: c_int,
    pub(crate) argv: c_int,
}

/// Lua's own functions that other functions here use: their places in the registry's table of them.
#[derive(Clone, Copy)]
pub(crate) enum Stock {
    ToString = 1,
    Next,
    Insert,
    ForEach,
    GetMetatable,
    SetMetatable,
    CollectGarbage,
    Create,
    Resume,
}

/// Its address stands for the table of these functions.
static STOCK: u8 = 0;

/// Keeps them, before scripts' own take their places.
///
/// # Safety
/// The globals are still Lua's own, and the stack has room.
pub(crate) unsafe fn keep_stock(l: *mut lua_State) {
    // SAFETY: the globals are still Lua's own.
    unsafe {
        ffi::lua_pushlightuserdata(l, (&raw const STOCK).cast_mut().cast());
        ffi::lua_createtable(l, 8, 0);
        let table = ffi::lua_gettop(l);
        let keep = |library: Option<&CStr>, name: &CStr, place: Stock| {
            match library {
                Some(library) => {
                    ffi::lua_getfield_(l, ffi::LUA_GLOBALSINDEX, library.as_ptr());
                    ffi::lua_getfield_(l, -1, name.as_ptr());
                    ffi::lua_remove(l, -2);
                }
                None => ffi::lua_getfield_(l, ffi::LUA_GLOBALSINDEX, name.as_ptr()),
            }
            ffi::lua_rawseti_(l, table, place as c_int);
        };
        keep(None, c"tostring", Stock::ToString);
        keep(None, c"next", Stock::Next);
        keep(None, c"getmetatable", Stock::GetMetatable);
        keep(None, c"setmetatable", Stock::SetMetatable);
        keep(None, c"collectgarbage", Stock::CollectGarbage);
        keep(Some(c"table"), c"insert", Stock::Insert);
        keep(Some(c"table"), c"foreach", Stock::ForEach);
        keep(Some(c"coroutine"), c"create", Stock::Create);
        keep(Some(c"coroutine"), c"resume", Stock::Resume);
        ffi::lua_rawset(l, ffi::LUA_REGISTRYINDEX);
    }
}

/// Pushes one of Lua's own functions.
///
/// # Safety
/// There is room for two more.
pub(crate) unsafe fn push_stock(l: *mut lua_State, which: Stock) {
    // SAFETY: by the caller's promise.
    unsafe {
        ffi::lua_pushlightuserdata(l, (&raw const STOCK).cast_mut().cast());
        ffi::lua_rawget_(l, ffi::LUA_REGISTRYINDEX);
        ffi::lua_rawgeti_(l, -1, which as c_int);
        ffi::lua_remove(l, -2);
    }
}

/// Calls one of Lua's own functions with the same arguments.
///
/// # Safety
/// Lua has called the caller of this, which owns nothing.
pub(crate) unsafe fn call_stock(l: *mut lua_State, which: Stock) -> c_int {
    // SAFETY: the function is one of C, and sees the stack as its caller's caller has made it.
    unsafe {
        push_stock(l, which);
        let function = ffi::lua_tocfunction(l, -1);
        ffi::lua_settop(l, -2);
        match function {
            Some(function) => function(l),
            None => 0,
        }
    }
}
