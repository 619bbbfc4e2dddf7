//! The script that runs on a thread, as functions that Lua calls see it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;

use engine::script::interpreter::{End, Running};
use resp::args::OwnedArguments;

use crate::registry::Kept;

/// A script that runs.
pub(crate) struct Current {
    /// It lives as long as it is this thread's state.
    pub(crate) run: *mut (dyn Running + 'static),
    /// Where its reply goes: a [`Reply`](resp::reply::Reply).
    pub(crate) reply: *mut c_void,
    /// What it is called with: a [`Call`](engine::script::interpreter::Call).
    pub(crate) call: *const c_void,
    /// The function's place in the registry.
    pub(crate) function: c_int,
    /// What its state keeps.
    pub(crate) kept: Kept,
    /// The words of the command that is called.
    pub(crate) argv: OwnedArguments,
    /// A number of the words as it is written.
    pub(crate) digits: Vec<u8>,
    /// The line of an error that is about to be raised.
    pub(crate) error: Vec<u8>,
    /// `redis.setresp(3)`
    pub(crate) resp3: bool,
    /// Lua's collector was told something.
    pub(crate) told_collector: bool,
    /// How it ended.
    pub(crate) end: End,
}

thread_local! {
    static CURRENT: Cell<*mut Current> = const { Cell::new(ptr::null_mut()) };
}

/// The script that runs on this thread, if one does.
///
/// # Safety
/// Only one reference is used at a time, and none longer than the function that Lua called.
pub(crate) unsafe fn current<'c>() -> Option<&'c mut Current> {
    // SAFETY: it is set as long as the data behind it lives.
    unsafe { CURRENT.get().as_mut() }
}

/// Says which script runs on this thread.
///
/// # Safety
/// It is null, or lives until this is called again.
pub(crate) unsafe fn set_current(script: *mut Current) {
    CURRENT.set(script);
}

impl Current {
    /// The script's way to commands.
    ///
    /// # Safety
    /// As [`current`].
    pub(crate) unsafe fn run<'r>(&self) -> &'r mut dyn Running {
        // SAFETY: the data behind it lives as long as the script runs, and only this uses its
        // contents meanwhile.
        unsafe { &mut *self.run }
    }
}
