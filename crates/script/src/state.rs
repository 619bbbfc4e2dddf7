//! The state of one thread, and how a script runs in it.
//!
//! Everything that may raise an error happens inside a protected call. Around it are functions of Rust
//! that own their values; within it are functions that own nothing.
#![allow(unsafe_code)]

use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::limits::{
    COMPILED_SCRIPTS, LIBRARY_RELOAD_US, SCRIPT_INSTRUCTIONS_FIRST, SCRIPT_WORDS_KEPT,
};
use engine::script::cache::Script;
use engine::script::functions::{Function, Library};
use engine::script::interpreter::{Allowed, Call, End, Ending, Running};
use hashbrown::HashMap;
use mlua::ffi::{self, lua_State};
use resp::args::OwnedArguments;
use resp::reply::Reply;

use crate::current::{Current, set_current};
use crate::errors::line_of;
use crate::library::{self, Places};
use crate::memory::{MEMORY, Memory, used};
use crate::registry::Kept;
use crate::sandbox;
use crate::stack::{bytes, push};
use crate::to_reply::{self, Writer};
use crate::watch::{arm, farewell, watch};

/// A state above this part of its limit is cleaned up when a script ends.
const CLEANING_SHARE: usize = 2;
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
        if self.epoch != epoch || count > COMPILED_SCRIPTS {
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
        // SAFETY: the data behind `current` outlives the call, and nothing else uses it meanwhile; an
        // error leaves its value on the stack.
        let failed = unsafe {
            set_current(at);
            watch(self.l);
            let failed = ffi::lua_cpcall(self.l, by, at.cast::<c_void>()) != 0;
            ffi::lua_settop(self.l, 0);
            set_current(ptr::null_mut());
            failed
        };
        self.argv = std::mem::take(&mut current.argv);
        self.argv.clear();
        if self.argv.memory() > SCRIPT_WORDS_KEPT {
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
            compiling.error = bytes(l, -1).to_vec();
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
