//! How much memory the state of a thread takes, and when its garbage is collected.
//!
//! **Outside of protected calls, no allocation may meet the limit**: code that allocates there goes
//! through [`Bounded::beyond_limit`]. At the limit an allocation of Lua fails with an error. So may
//! a collection, which makes smaller tables before it frees larger ones. An error that no protected
//! call catches ends the process.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};

use mlua::ffi::{self, lua_State};

/// A state that uses this part of its limit collects its garbage all at once.
const WHOLE_SHARE: usize = 8;
/// The least growth between two collections, in percent.
const GROWTH_LEAST: usize = 2;

/// A state of Lua with a limit of memory.
pub(crate) struct Bounded {
    lua: mlua::Lua,
    pub(crate) l: *mut lua_State,
    limit: usize,
}

impl Bounded {
    /// Nothing else may use the state from now on.
    pub(crate) fn new(lua: mlua::Lua) -> Bounded {
        let l = lua.exec_raw_lua(|raw| raw.state());
        // SAFETY: the state is the calling thread's; the function owns nothing.
        unsafe { ffi::lua_atpanic(l, uncaught) };
        Bounded { lua, l, limit: 0 }
    }

    /// Bytes that the state may take; 0 for no bound.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Sets it.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.enforce(limit);
        MEMORY.set(Memory { limit, is_short: false });
    }

    fn enforce(&self, limit: usize) {
        // The state's allocator is the library's own, which has limits.
        let _ = self.lua.set_memory_limit(limit);
    }

    /// Calls a function protected, and leaves the stack empty. Returns whether an error ended it.
    ///
    /// # Safety
    /// The function gets the data that it expects.
    pub(crate) unsafe fn call(&self, function: ffi::lua_CFunction, data: *mut c_void) -> bool {
        // SAFETY: by the caller's promise; an error leaves its value on the stack.
        unsafe {
            let failed = ffi::lua_cpcall(self.l, function, data) != 0;
            ffi::lua_settop(self.l, 0);
            failed
        }
    }

    /// Runs `action` on the state outside of a protected call, without a limit: so nothing that it
    /// allocates raises an error.
    pub(crate) fn beyond_limit(&self, action: impl FnOnce(*mut lua_State)) {
        self.enforce(0);
        action(self.l);
        self.enforce(self.limit);
    }

    /// Collects all garbage.
    pub(crate) fn collect(&self) {
        // SAFETY: there are no finalizers that could raise an error.
        self.beyond_limit(|l| unsafe {
            ffi::lua_gc(l, ffi::LUA_GCCOLLECT, 0);
        });
    }

    /// Gives a value of the registry back, once.
    pub(crate) fn release(&self, place: c_int) {
        // SAFETY: the place is one of the registry.
        self.beyond_limit(|l| unsafe { ffi::luaL_unref(l, ffi::LUA_REGISTRYINDEX, place) });
    }
}

/// Lua calls it for an error that no protected call catches, and ends the process if it returns.
unsafe extern "C-unwind" fn uncaught(l: *mut lua_State) -> c_int {
    // SAFETY: the error is on top. A string is not converted by reading it.
    let text = unsafe {
        match ffi::lua_type(l, -1) {
            ffi::LUA_TSTRING => CStr::from_ptr(ffi::lua_tolstring(l, -1, std::ptr::null_mut())),
            _ => c"a value that is no text",
        }
    };
    panic!("Lua raised an error outside of a protected call: {}", text.to_string_lossy())
}

/// Bytes that a state takes.
///
/// # Safety
/// The state is the calling thread's.
pub(crate) unsafe fn used(l: *mut lua_State) -> usize {
    // SAFETY: nothing is changed.
    unsafe { ffi::lua_gc(l, ffi::LUA_GCCOUNT, 0) as usize * 1024 }
}

/// The memory of the thread's state.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Bytes that it may take; 0 for no bound.
    pub(crate) limit: usize,
    /// Whether the collector was told that there is little left.
    pub(crate) is_short: bool,
}

thread_local! {
    /// See there.
    pub(crate) static MEMORY: Cell<Memory> = Cell::default();
}

/// Makes the collector keep some of the memory free. By default it begins when the memory has
/// doubled, and works in small steps. So garbage would fill the memory where much is in use or
/// strings are long.
///
/// # Safety
/// The state is the calling thread's.
pub(crate) unsafe fn keep_room(l: *mut lua_State) {
    let Memory { limit, is_short } = MEMORY.get();
    // SAFETY: by the caller's promise; no finalizer raises errors.
    unsafe {
        let now = used(l);
        if limit == 0 || now <= limit / WHOLE_SHARE {
            return;
        }
        // How much the memory may grow before the collector begins, in percent. Close to its limit
        // a script would do nothing but collect if that were less.
        let more = (100 * (limit.saturating_sub(now) / 2).min(now) / now).max(GROWTH_LEAST);
        ffi::lua_gc(l, ffi::LUA_GCSETPAUSE, 100 + more as c_int);
        if !is_short {
            MEMORY.set(Memory { limit, is_short: true });
            // One step collects everything, and the first one comes with the next allocation.
            ffi::lua_gc(l, ffi::LUA_GCSETSTEPMUL, 0);
            ffi::lua_gc(l, ffi::LUA_GCRESTART, 0);
        }
    }
}
