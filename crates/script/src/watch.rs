//! How long a script may run: the hook that looks at the clock, and what ends a script.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::c_int;

use base::clock::Ticks;
use base::limits::{SCRIPT_INSTRUCTIONS, SCRIPT_INSTRUCTIONS_FIRST, SCRIPT_INSTRUCTIONS_LATER};
use engine::script::interpreter::Ending;
use engine::script::slow::Kind;
use mlua::ffi::{self, lua_State};

use crate::current::{Current, current};
use crate::errors::raise;
use crate::memory::keep_room;

/// Has the hook called after every `instructions` instructions.
///
/// # Safety
/// The state is the calling thread's.
pub(crate) unsafe fn arm(l: *mut lua_State, instructions: c_int) {
    WATCH.set(Watch { instructions, ..WATCH.get() });
    // SAFETY: by the caller's promise.
    unsafe { ffi::lua_sethook(l, Some(look), ffi::LUA_MASKCOUNT, instructions) };
}

/// How a script is watched.
#[derive(Clone, Copy, Default)]
struct Watch {
    begun: Ticks,
    /// When it was looked at last.
    looked: Ticks,
    /// Instructions until it is looked at again.
    instructions: c_int,
}

thread_local! {
    static WATCH: Cell<Watch> = Cell::default();
    /// When the library that is being loaded has to end, in microseconds of the steady clock.
    static LOADED_BY: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Says by when the library must be loaded that is being loaded on this thread; `None` when none is.
pub(crate) fn load_by(ends: Option<u64>) {
    LOADED_BY.set(ends);
}

/// Scripts older than this are checked more often.
const YOUNG_NS: u64 = 10_000_000;
/// So are instructions that take longer together.
const LONG_NS: u64 = 1_000_000;

/// Begins to watch a script: often at first, since a few instructions may take seconds, and less often
/// as they turn out to be quick.
///
/// # Safety
/// The state is the calling thread's.
pub(crate) unsafe fn watch(l: *mut lua_State) {
    let (begun, instructions) = (Ticks::now(), SCRIPT_INSTRUCTIONS_FIRST);
    if WATCH.get().instructions != instructions {
        // SAFETY: by the caller's promise.
        unsafe { arm(l, instructions) };
    }
    WATCH.set(Watch { begun, looked: begun, instructions });
}

impl Watch {
    /// After how many instructions it is checked the next time.
    fn next(self, now: Ticks) -> c_int {
        if now.since_ns(self.looked) > LONG_NS {
            return (self.instructions / 8).max(1);
        }
        let young = now.since_ns(self.begun) < YOUNG_NS;
        let most = if young { SCRIPT_INSTRUCTIONS } else { SCRIPT_INSTRUCTIONS_LATER };
        (self.instructions * 2).min(most)
    }
}

/// Checks whether the script may go on.
///
/// # Safety
/// Lua calls it, or a function that Lua has called and that owns nothing.
pub(crate) unsafe extern "C-unwind" fn look(l: *mut lua_State, _: *mut ffi::lua_Debug) {
    let mut watch = WATCH.get();
    watch.instructions = watch.next(Ticks::now());
    // SAFETY: Lua calls it while a script runs; nothing is owned here.
    unsafe {
        if watch.instructions != WATCH.get().instructions {
            arm(l, watch.instructions);
        }
        keep_room(l);
        let Some(current) = current() else {
            if LOADED_BY.get().is_some_and(|ends| base::clock::steady_us() >= ends) {
                arm(l, 1);
                raise(l, b"ERR FUNCTION LOAD timeout");
            }
            return;
        };
        if !current.run().may_go_on() {
            end(l, current);
        }
    }
    // The time in which others were served meanwhile is not the script's.
    watch.looked = Ticks::now();
    WATCH.set(watch);
}

/// Ends the script if it has to end. For the code that has resumed a coroutine, its end is an error
/// like any other, and its own instructions are counted separately.
///
/// # Safety
/// Lua has called the caller of this, which owns nothing.
pub(crate) unsafe fn end_if_due(l: *mut lua_State) {
    // SAFETY: by the caller's promise.
    unsafe {
        if let Some(current) = current()
            && current.run().must_end().is_some()
        {
            end(l, current);
        }
    }
}

/// Ends a script, even if it catches errors: each instruction raises one from now on.
///
/// # Safety
/// The script has to end. This does not return.
pub(crate) unsafe fn end(l: *mut lua_State, current: &Current) -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        arm(l, 1);
        let run = current.run();
        raise(l, farewell(run.must_end().unwrap_or(Ending::Stopped), run.kind()))
    }
}

/// The reply to the client of a script that has to end.
pub(crate) fn farewell(ending: Ending, kind: Kind) -> &'static [u8] {
    match (ending, kind) {
        (Ending::Killed, Kind::Script) => b"ERR Script killed by user with SCRIPT KILL.",
        (Ending::Killed, Kind::Function) => b"ERR Script killed by user with FUNCTION KILL.",
        (Ending::Stopped | Ending::Again, _) => b"ERR The server is stopping.",
    }
}
