//! How long a script may run: the hook that looks at the clock, and what ends a script.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::c_int;

use base::clock::Ticks;
use base::limits::{SCRIPT_INSTRUCTIONS, SCRIPT_INSTRUCTIONS_FIRST, SCRIPT_INSTRUCTIONS_LATER};
use engine::script::interpreter::{Ending, Running};
use engine::script::slow::Kind;
use mlua::ffi::{self, lua_State};

use crate::current::current;
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
    static LOADING: Cell<Option<Loading>> = const { Cell::new(None) };
}

/// A library that is being loaded.
#[derive(Clone, Copy)]
struct Loading {
    /// When it has to end, in microseconds of the monotonic clock.
    ends: u64,
    /// The call of one of its functions that it is loaded for. It lives as long as this is set.
    call: Option<*mut (dyn Running + 'static)>,
}

/// Begins to watch a library that is loaded on this thread.
///
/// # Safety
/// As [`watch`], and `call` is used by nothing else until [`end_load`].
pub(crate) unsafe fn watch_load(l: *mut lua_State, ends: u64, call: Option<&mut dyn Running>) {
    let call = call.map(|call| {
        // SAFETY: the lifetime alone changes, and it is not used after `end_load`.
        unsafe {
            std::mem::transmute::<*mut (dyn Running + '_), *mut (dyn Running + 'static)>(call)
        }
    });
    LOADING.set(Some(Loading { ends, call }));
    // SAFETY: by the caller's promise.
    unsafe { watch(l) };
}

/// The library is loaded.
pub(crate) fn end_load() {
    LOADING.set(None);
}

/// What runs on this thread, if anything does: a script, or the call that a library is loaded for.
///
/// # Safety
/// As [`current`].
unsafe fn running<'r>() -> Option<&'r mut dyn Running> {
    // SAFETY: both live as long as they are set.
    unsafe {
        match LOADING.get() {
            Some(loading) => match loading.call {
                Some(call) => Some(&mut *call),
                None => None,
            },
            None => current().map(|current| current.run()),
        }
    }
}

/// Whether a library is being loaded that has taken too long.
fn is_late() -> bool {
    LOADING.get().is_some_and(|loading| base::clock::monotonic_us() >= loading.ends)
}

/// Whether what runs on this thread must end. Once it must, this remains so.
///
/// # Safety
/// As [`current`].
pub(crate) unsafe fn must_end() -> bool {
    // SAFETY: by the caller's promise.
    is_late() || unsafe { running() }.is_some_and(|run| run.must_end().is_some())
}

/// Scripts older than this are checked more often.
const YOUNG_NS: u64 = 10_000_000;
/// So are instructions that take longer together.
const LONG_NS: u64 = 1_000_000;

/// Begins to watch a script: often at first, since a few instructions may take seconds, and less
/// often as they turn out to be quick.
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
        let may_go_on = running().is_none_or(|run| run.may_go_on());
        if !may_go_on || is_late() {
            end(l);
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
pub(crate) unsafe fn end_if_expired(l: *mut lua_State) {
    // SAFETY: by the caller's promise.
    unsafe {
        if must_end() {
            end(l);
        }
    }
}

/// Ends a script, even if it catches errors: each instruction raises one from now on.
///
/// # Safety
/// The script has to end. This does not return.
pub(crate) unsafe fn end(l: *mut lua_State) -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        arm(l, 1);
        let ending = running().and_then(|run| Some((run.must_end()?, run.kind())));
        raise(l, ending.map_or(LATE, |(ending, kind)| farewell(ending, kind)))
    }
}

/// The error of a library that takes too long.
const LATE: &[u8] = b"ERR FUNCTION LOAD timeout";

/// The reply to the client of a script that has to end.
pub(crate) fn farewell(ending: Ending, kind: Kind) -> &'static [u8] {
    match (ending, kind) {
        (Ending::Killed, Kind::Script) => b"ERR Script killed by user with SCRIPT KILL.",
        (Ending::Killed, Kind::Function) => b"ERR Script killed by user with FUNCTION KILL.",
        (Ending::Stopped | Ending::Again, _) => b"ERR The server is stopping.",
    }
}
