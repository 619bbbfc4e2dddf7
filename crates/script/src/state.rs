//! The state of one thread, and how a script runs in it.
//!
//! Everything that may raise an error happens inside a protected call. Around it are functions of Rust
//! that own their values; within it are functions that own nothing.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::clock::Ticks;
use base::limits::{
    LIBRARY_RELOAD_US, SCRIPT_INSTRUCTIONS, SCRIPT_INSTRUCTIONS_FIRST, SCRIPT_INSTRUCTIONS_LATER,
};
use engine::script::cache::Script;
use engine::script::functions::{Function, Library};
use engine::script::interpreter::{Allowed, Call, End, Ending, Running};
use engine::script::slow::Kind;
use hashbrown::HashMap;
use mlua::ffi::{self, lua_State};
use resp::args::OwnedArguments;
use resp::reply::Reply;

use crate::errors::{line_of, push, raise};
use crate::library::{self, Places};
use crate::sandbox::{self, Kept};
use crate::to_reply::{self, Writer};

/// Compiled scripts that a state keeps; beyond that it compiles them anew.
const COMPILED_MAX: usize = 4096;
/// A state above this part of its limit is cleaned up when a script ends.
const CLEANING_SHARE: usize = 2;
/// A state that uses this part of its limit collects its garbage all at once.
const WHOLE_SHARE: usize = 8;
/// Bytes of room for the words of commands that a state keeps for the next script.
const WORDS_KEPT: usize = 64 * 1024;
/// The least growth between two collections, in percent.
const GROWTH_LEAST: usize = 2;
/// The defaults of Lua's collector: it begins when the memory has doubled, and works twice as fast as
/// the script allocates.
const COLLECTOR_PAUSE: c_int = 200;
const COLLECTOR_SPEED: c_int = 200;

/// A thread's state.
pub(crate) struct State {
    lua: mlua::Lua,
    l: *mut lua_State,
    kept: Kept,
    compiled: HashMap<u64, c_int>,
    libraries: HashMap<u64, Places>,
    epoch: u64,
    memory: Arc<AtomicUsize>,
    memory_limit: usize,
    argv: OwnedArguments,
}

/// A script that runs.
pub(crate) struct Current {
    /// It lives as long as it is this thread's state.
    run: *mut (dyn Running + 'static),
    reply: *mut c_void,
    call: *const c_void,
    /// The function's place in the registry.
    function: c_int,
    kept: Kept,
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
    end: End,
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

impl Current {
    /// The script's way to commands.
    ///
    /// # Safety
    /// As [`current`].
    pub(crate) unsafe fn run<'r>(&self) -> &'r mut dyn Running {
        // SAFETY: the data behind it lives as long as the script runs, and only this uses its contents
        // meanwhile.
        unsafe { &mut *self.run }
    }
}

impl State {
    pub(crate) fn new(memory: Arc<AtomicUsize>) -> State {
        let lua = sandbox::make();
        let l = lua.exec_raw_lua(|raw| raw.state());
        MEMORY.set(Memory::default());
        // SAFETY: nothing else uses the state, and there is no limit of memory yet.
        let kept = unsafe {
            arm(l, SCRIPT_INSTRUCTIONS_FIRST);
            sandbox::close(l)
        };
        State {
            lua,
            l,
            kept,
            compiled: HashMap::new(),
            libraries: HashMap::new(),
            epoch: 0,
            memory,
            memory_limit: 0,
            argv: OwnedArguments::new(),
        }
    }

    /// Forgets compiled scripts, if the epoch has changed.
    pub(crate) fn follow(&mut self, epoch: u64) {
        let count = self.compiled.len() + self.libraries.len();
        if self.epoch != epoch || count > COMPILED_MAX {
            self.epoch = epoch;
            self.forget_compiled();
        }
    }

    fn forget_compiled(&mut self) {
        self.libraries.drain().for_each(|(_, places)| library::forget(self.l, &places));
        for (_, place) in self.compiled.drain() {
            // SAFETY: the place is one of the registry, which is given back once.
            unsafe { ffi::luaL_unref(self.l, ffi::LUA_REGISTRYINDEX, place) };
        }
    }

    /// Compiles a script, and remembers it by its number.
    pub(crate) fn compile(&mut self, id: u64, code: &[u8]) -> Result<(), Vec<u8>> {
        let mut compiling = Compiling { code, place: 0, error: Vec::new() };
        if !self.try_to_compile(&mut compiling) {
            // Others may fill the memory.
            self.forget_compiled();
            // SAFETY: finalizers there are none that raise errors.
            unsafe { ffi::lua_gc(self.l, ffi::LUA_GCCOLLECT, 0) };
            if !self.try_to_compile(&mut compiling) {
                return Err(b"not enough memory".to_vec());
            }
        }
        if !compiling.error.is_empty() {
            return Err(compiling.error);
        }
        self.compiled.insert(id, compiling.place);
        Ok(())
    }

    /// Whether there is memory for it.
    fn try_to_compile(&mut self, compiling: &mut Compiling<'_>) -> bool {
        // SAFETY: the function gets what it expects; an error leaves its value on the stack.
        unsafe {
            let to = ptr::from_mut(compiling).cast::<c_void>();
            let failed = ffi::lua_cpcall(self.l, compile, to) != 0;
            ffi::lua_settop(self.l, 0);
            !failed
        }
    }

    /// Loads a library, and remembers it by its number.
    pub(crate) fn load(
        &mut self,
        id: u64,
        code: &[u8],
        allowed: Allowed,
    ) -> Result<Vec<Function>, Vec<u8>> {
        self.limit_memory(allowed.memory);
        self.clean_up(false);
        let loaded = library::load(self.l, self.kept, code, allowed.time_us);
        self.clean_up(loaded.is_err());
        let (functions, places) = loaded?;
        self.libraries.insert(id, places);
        Ok(functions)
    }

    /// Calls a function.
    pub(crate) fn call(
        &mut self,
        run: &mut dyn Running,
        library: &Library,
        function: &Function,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End {
        let allowed = Allowed { memory: run.memory_limit(), time_us: LIBRARY_RELOAD_US };
        if !self.libraries.contains_key(&library.id)
            && let Err(line) = self.load(library.id, library.code(), allowed)
        {
            return End::Failed { line, counted: false };
        }
        match self.libraries[&library.id].get(&function.name) {
            Some(&place) => self.run(run, place, call, reply, call_function),
            None => End::Failed { line: b"ERR Function not found".to_vec(), counted: false },
        }
    }

    /// Runs a script.
    pub(crate) fn eval(
        &mut self,
        run: &mut dyn Running,
        script: &Script,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End {
        if !self.compiled.contains_key(&script.id)
            && let Err(reason) = self.compile(script.id, script.code())
        {
            return End::Failed { line: [b"ERR ", &*reason].concat(), counted: false };
        }
        let function = self.compiled[&script.id];
        self.run(run, function, call, reply, call_script)
    }

    fn run(
        &mut self,
        run: &mut dyn Running,
        function: c_int,
        call: Call<'_>,
        reply: &mut Reply<'_>,
        by: ffi::lua_CFunction,
    ) -> End {
        self.limit_memory(run.memory_limit());
        let mark = reply.mark();
        let mut current = Current {
            // SAFETY: the lifetime alone changes; it is used no longer than this function runs.
            run: unsafe {
                std::mem::transmute::<*mut (dyn Running + '_), *mut (dyn Running + 'static)>(
                    ptr::from_mut(run),
                )
            },
            reply: ptr::from_mut(reply).cast::<c_void>(),
            call: ptr::from_ref(&call).cast::<c_void>(),
            function,
            kept: self.kept,
            argv: std::mem::take(&mut self.argv),
            digits: Vec::new(),
            error: Vec::new(),
            resp3: false,
            told_collector: false,
            end: End::Returned,
        };
        let at = &raw mut current;
        CURRENT.set(at);
        // SAFETY: the data behind `current` outlives the call, and nothing else uses it meanwhile; an
        // error leaves its value on the stack.
        let failed = unsafe {
            watch(self.l);
            let failed = ffi::lua_cpcall(self.l, by, at.cast::<c_void>()) != 0;
            ffi::lua_settop(self.l, 0);
            failed
        };
        CURRENT.set(ptr::null_mut());
        self.argv = std::mem::take(&mut current.argv);
        self.argv.clear();
        if self.argv.memory() > WORDS_KEPT {
            self.argv = OwnedArguments::new();
        }
        let ending = run.must_end();
        if failed {
            let text = [b"ERR not enough memory script: ", run.name(), b"."].concat();
            current.end = End::Failed { line: text, counted: false };
        }
        if ending == Some(Ending::Again) {
            current.end = End::Again;
        }
        self.clean_up(current.told_collector || failed);
        if current.end != End::Returned {
            reply.rollback(mark);
        }
        current.end
    }

    fn limit_memory(&mut self, limit: usize) {
        if self.memory_limit != limit {
            self.memory_limit = limit;
            MEMORY.set(Memory { limit, is_short: false });
            // The state's allocator is the library's own, which has limits.
            let _ = self.lua.set_memory_limit(limit);
        }
    }

    /// Collects the remains of a script if they are large, and records how much memory the state takes.
    fn clean_up(&mut self, at_once: bool) {
        // SAFETY: finalizers there are none that raise errors.
        unsafe {
            let l = self.l;
            let used = || used(l);
            let much = self.memory_limit > 0 && used() > self.memory_limit / CLEANING_SHARE;
            if at_once || MEMORY.get().is_short {
                ffi::lua_gc(l, ffi::LUA_GCSETPAUSE, COLLECTOR_PAUSE);
                ffi::lua_gc(l, ffi::LUA_GCSETSTEPMUL, COLLECTOR_SPEED);
                ffi::lua_gc(l, ffi::LUA_GCRESTART, 0);
                MEMORY.set(Memory { is_short: false, ..MEMORY.get() });
            }
            if at_once || much {
                ffi::lua_gc(l, ffi::LUA_GCCOLLECT, 0);
            }
            if self.memory_limit > 0 && used() > self.memory_limit / CLEANING_SHARE {
                // The remains are compiled scripts, and that of this script is made again.
                self.forget_compiled();
                ffi::lua_gc(l, ffi::LUA_GCCOLLECT, 0);
            }
            self.memory.store(used(), Relaxed);
        }
    }
}

/// The input and output of [`compile`].
struct Compiling<'c> {
    code: &'c [u8],
    place: c_int,
    error: Vec<u8>,
}

/// # Safety
/// `lua_cpcall` calls it with a [`Compiling`].
unsafe extern "C-unwind" fn compile(l: *mut lua_State) -> c_int {
    // SAFETY: by the caller's promise; nothing is owned here.
    unsafe {
        let compiling = &mut *ffi::lua_touserdata(l, 1).cast::<Compiling<'_>>();
        if sandbox::load(l, compiling.code, b"@user_script") {
            compiling.place = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        } else {
            compiling.error = crate::errors::bytes(l, -1).to_vec();
        }
    }
    0
}

/// # Safety
/// `lua_cpcall` calls it with a [`Current`].
unsafe extern "C-unwind" fn call_script(l: *mut lua_State) -> c_int {
    // SAFETY: by the caller's promise; nothing is owned here while Lua may raise an error.
    unsafe {
        let current = &mut *ffi::lua_touserdata(l, 1).cast::<Current>();
        let call = *current.call.cast::<Call<'_>>();
        ffi::lua_settop(l, 0);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.kept.globals);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.kept.keys);
        push_words(l, call, 0..call.keys);
        ffi::lua_rawset(l, 1);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.kept.argv);
        push_words(l, call, call.keys..call.argv.len());
        ffi::lua_rawset(l, 1);
        ffi::lua_settop(l, 0);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.kept.handler);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.function);
        let status = ffi::lua_pcall(l, 0, 1, 1);
        conclude(l, current, status);
    }
    0
}

/// # Safety
/// `lua_cpcall` calls it with a [`Current`].
unsafe extern "C-unwind" fn call_function(l: *mut lua_State) -> c_int {
    // SAFETY: as `call_script`.
    unsafe {
        let current = &mut *ffi::lua_touserdata(l, 1).cast::<Current>();
        let call = *current.call.cast::<Call<'_>>();
        ffi::lua_settop(l, 0);
        library::hide_words(l, current.kept);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.kept.handler);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, current.function);
        push_words(l, call, 0..call.keys);
        push_words(l, call, call.keys..call.argv.len());
        let status = ffi::lua_pcall(l, 2, 1, 1);
        conclude(l, current, status);
    }
    0
}

/// Pushes a table of some of the words that a script is called with.
unsafe fn push_words(l: *mut lua_State, call: Call<'_>, range: std::ops::Range<usize>) {
    // SAFETY: nothing is owned here; the stack of a fresh call has room.
    unsafe {
        ffi::lua_createtable(l, c_int::try_from(range.len()).unwrap_or(0), 0);
        for (number, index) in (1..).zip(range) {
            push(l, call.argv.at(index));
            ffi::lua_rawseti_(l, -2, number);
        }
    }
}

/// Handles the value that a script left on the stack.
unsafe fn conclude(l: *mut lua_State, current: &mut Current, status: c_int) {
    // SAFETY: there is a value on top. Writing it raises nothing: see there.
    unsafe {
        let run = current.run();
        if status == 0 {
            let reply = &mut *current.reply.cast::<Reply<'static>>();
            to_reply::write(l, &mut Writer::new(run, reply, current.resp3));
            if let Some(ending) = run.must_end() {
                let line = farewell(ending, run.kind()).to_vec();
                current.end = End::Failed { line, counted: false };
            }
        } else {
            let (line, counted) = line_of(l, run.name());
            current.end = End::Failed { line, counted };
        }
    }
}

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

/// Bytes that a state takes.
unsafe fn used(l: *mut lua_State) -> usize {
    // SAFETY: nothing is changed.
    unsafe { ffi::lua_gc(l, ffi::LUA_GCCOUNT, 0) as usize * 1024 }
}

/// The memory of the thread's state.
#[derive(Clone, Copy, Default)]
struct Memory {
    limit: usize,
    /// Whether the collector was told that there is little left.
    is_short: bool,
}

thread_local! {
    static MEMORY: Cell<Memory> = Cell::default();
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
            if library::may_go_on() == Some(false) {
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
fn farewell(ending: Ending, kind: Kind) -> &'static [u8] {
    match (ending, kind) {
        (Ending::Killed, Kind::Script) => b"ERR Script killed by user with SCRIPT KILL.",
        (Ending::Killed, Kind::Function) => b"ERR Script killed by user with FUNCTION KILL.",
        (Ending::Stopped | Ending::Again, _) => b"ERR The server is stopping.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_loaded_again_may_take_its_time() {
        let mut state = State::new(Arc::default());
        let code = b"for i = 1, 100000 do end redis.register_function('f', function() end)";
        let mut load = |time_us| state.load(1, code, Allowed { memory: 0, time_us });
        let late = b"ERR Error registering functions: ERR FUNCTION LOAD timeout".to_vec();
        assert_eq!(load(0), Err(late));
        assert_eq!(load(LIBRARY_RELOAD_US).map(|functions| functions.len()), Ok(1));
    }
}
