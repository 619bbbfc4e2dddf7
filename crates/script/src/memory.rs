//! How much memory the state of a thread takes, and when its garbage is collected.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

/// A state that uses this part of its limit collects its garbage all at once.
const WHOLE_SHARE: usize = 8;
/// The least growth between two collections, in percent.
const GROWTH_LEAST: usize = 2;

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

/// Makes the collector keep some of the memory free. By default it begins when the memory has doubled,
/// and works in small steps. So garbage would fill the memory where much is in use or strings are long.
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
        // How much the memory may grow before the collector begins, in percent. Close to its limit a script
        // would do nothing but collect if that were less.
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
