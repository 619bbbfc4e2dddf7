//! Coroutines. Lua counts the instructions of each coroutine separately, so a script of many short
//! coroutines could outrun its time limit. So the clock is also looked at when coroutines are made
//! and resumed.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

use crate::registry::{Stock, call_stock};
use crate::watch::{end_if_expired, look};

/// Calls between two checks. A coroutine may run for as many instructions as there are between two
/// checks in a script without coroutines.
const PER_LOOK: u32 = 16;

thread_local! {
    static SINCE_LOOK: Cell<u32> = const { Cell::new(0) };
}

/// Counts a call of a function that may take long as one instruction, and looks at the clock now
/// and then.
///
/// # Safety
/// Lua has called the caller of this, which owns nothing.
pub(crate) unsafe fn count(l: *mut lua_State) {
    let count = SINCE_LOOK.get() + 1;
    SINCE_LOOK.set(count % PER_LOOK);
    if count == PER_LOOK {
        // SAFETY: by the caller's promise; the hook does not use what Lua reports of the place.
        unsafe { look(l, std::ptr::null_mut()) };
    }
}

/// `coroutine.create(f)`
pub(crate) unsafe extern "C-unwind" fn create(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        count(l);
        call_stock(l, Stock::Create)
    }
}

/// `coroutine.resume(co, ...)`
pub(crate) unsafe extern "C-unwind" fn resume(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        count(l);
        let results = call_stock(l, Stock::Resume);
        end_if_expired(l);
        results
    }
}

/// `coroutine.wrap(f)`
pub(crate) unsafe extern "C-unwind" fn wrap(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; the coroutine is on top.
    unsafe {
        create(l);
        ffi::lua_pushcclosure(l, call_wrapped, 1);
    }
    1
}

/// The function that `coroutine.wrap` returns.
unsafe extern "C-unwind" fn call_wrapped(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it. The flag of success is followed by this many results, or by one error.
    unsafe {
        count(l);
        ffi::luaL_checkstack_(l, 4, c"too many arguments to resume".as_ptr());
        ffi::lua_pushvalue(l, ffi::lua_upvalueindex(1));
        ffi::lua_insert(l, 1);
        let results = call_stock(l, Stock::Resume);
        end_if_expired(l);
        if ffi::lua_toboolean(l, -results) != 0 {
            return results - 1;
        }
        if ffi::lua_isstring(l, -1) != 0 {
            ffi::luaL_where(l, 1);
            ffi::lua_insert(l, -2);
            ffi::lua_concat(l, 2);
        }
        ffi::lua_error(l)
    }
}
