//! The state of one thread, and how a script runs in it.
//!
//! Everything that may raise an error happens inside a protected call. Around it are functions of
//! Rust that own their values; within it are functions that own nothing.
#![allow(unsafe_code)]

use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use base::limits::{
    COMPILED_SCRIPTS, LIBRARY_RELOAD_US, SCRIPT_INSTRUCTIONS_FIRST, SCRIPT_WORDS_KEPT,
};
use engine::script::cache::Script;
use engine::script::functions::{Function, Identity, Library};
use engine::script::interpreter::{Allowed, Call, End, Ending, Running};
use hashbrown::HashMap;
use mlua::ffi::{self, lua_State};
use resp::args::OwnedArguments;
use resp::reply::Reply;

use crate::current::{Current, set_current};
use crate::errors::line_of;
use crate::library::{self, Functions};
use crate::memory::{Bounded, MEMORY, Memory, used};
use crate::registry::Kept;
use crate::sandbox;
use crate::stack::{bytes, push};
use crate::to_reply::{self, Writer};
use crate::watch::{arm, farewell, watch};

/// A state above this part of its limit is cleaned up when a script ends.
const CLEANING_SHARE: usize = 2;
/// The defaults of Lua's collector: it begins when the memory has doubled, and works twice as fast
/// as the script allocates.
const COLLECTOR_PAUSE: c_int = 200;
const COLLECTOR_SPEED: c_int = 200;

/// A library as a state has it.
struct Loaded {
    /// It is gone when nobody else has it any more.
    identity: Weak<Identity>,
    places: Functions,
}

/// They grow when all threads must forget scripts, or libraries that are gone.
#[derive(Clone, Copy, Default)]
pub(crate) struct Epochs {
    pub(crate) scripts: u64,
    pub(crate) libraries: u64,
}

/// A thread's state.
pub(crate) struct State {
    bounded: Bounded,
    kept: Kept,
    /// Scripts by their numbers: their places in the registry.
    compiled: HashMap<u64, c_int>,
    libraries: HashMap<u64, Loaded>,
    epochs: Epochs,
    memory: Arc<AtomicUsize>,
    argv: OwnedArguments,
}

impl State {
    pub(crate) fn new(memory: Arc<AtomicUsize>) -> State {
        MEMORY.set(Memory::default());
        let bounded = Bounded::new(sandbox::make());
        // SAFETY: nothing else uses the state, and there is no limit of memory yet.
        let kept = unsafe {
            arm(bounded.l, SCRIPT_INSTRUCTIONS_FIRST);
            sandbox::close(bounded.l)
        };
        State {
            bounded,
            kept,
            compiled: HashMap::new(),
            libraries: HashMap::new(),
            epochs: Epochs::default(),
            memory,
            argv: OwnedArguments::new(),
        }
    }

    /// Forgets compiled scripts if their epoch has changed, and libraries that are gone if theirs
    /// has.
    pub(crate) fn follow(&mut self, epochs: Epochs) {
        let is_full = self.compiled.len() + self.libraries.len() > COMPILED_SCRIPTS;
        if self.epochs.scripts != epochs.scripts || is_full {
            self.forget_scripts();
        }
        if self.epochs.libraries != epochs.libraries {
            self.forget_libraries(|library| library.strong_count() == 0);
        }
        if self.libraries.len() > COMPILED_SCRIPTS {
            self.forget_libraries(|_| true);
        }
        self.epochs = epochs;
    }

    fn forget_scripts(&mut self) {
        self.compiled.drain().for_each(|(_, place)| self.bounded.release(place));
    }

    fn forget_libraries(&mut self, is_gone: impl Fn(&Weak<Identity>) -> bool) {
        for (_, loaded) in self.libraries.extract_if(|_, loaded| is_gone(&loaded.identity)) {
            library::forget(&self.bounded, &loaded.places);
        }
    }

    /// Compiles a script, and remembers it by its number.
    pub(crate) fn compile(&mut self, id: u64, code: &[u8], memory: usize) -> Result<(), Vec<u8>> {
        self.limit_memory(memory);
        let mut compiling = Compiling { code, place: 0, error: Vec::new() };
        if !self.try_to_compile(&mut compiling) {
            // Others may fill the memory.
            self.forget_scripts();
            self.forget_libraries(|_| true);
            self.bounded.collect();
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
        // SAFETY: the function gets what it expects.
        unsafe { !self.bounded.call(compile, ptr::from_mut(compiling).cast::<c_void>()) }
    }

    /// Loads a library, and remembers it by its identity. When that is done for a call of one of
    /// its functions, the call is watched meanwhile.
    pub(crate) fn load(
        &mut self,
        identity: &Arc<Identity>,
        code: &[u8],
        allowed: Allowed,
        call: Option<&mut dyn Running>,
    ) -> Result<Vec<Function>, Vec<u8>> {
        self.limit_memory(allowed.memory);
        self.clean_up(false);
        let loaded = library::load(&self.bounded, self.kept, code, allowed.time_us, call);
        self.clean_up(loaded.is_err());
        let (functions, places) = loaded?;
        let loaded = Loaded { identity: Arc::downgrade(identity), places };
        self.libraries.insert(identity.number, loaded);
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
        self.limit_memory(run.memory_limit());
        let number = library.identity.number;
        if !self.libraries.contains_key(&number) {
            let allowed = Allowed { memory: run.memory_limit(), time_us: LIBRARY_RELOAD_US };
            let loaded = self.load(&library.identity, library.code(), allowed, Some(run));
            if let Some(ending) = run.must_end() {
                return ended(ending, run);
            }
            if let Err(line) = loaded {
                return End::Failed { line, counted: false };
            }
        }
        match self.libraries[&number].places.get(&function.name) {
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
        // First of all: this may forget what is compiled.
        self.limit_memory(run.memory_limit());
        if !self.compiled.contains_key(&script.id)
            && let Err(reason) = self.compile(script.id, script.code(), run.memory_limit())
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
        // SAFETY: the data behind `current` outlives the call, and nothing else uses it meanwhile.
        let failed = unsafe {
            set_current(at);
            watch(self.bounded.l);
            let failed = self.bounded.call(by, at.cast::<c_void>());
            set_current(ptr::null_mut());
            failed
        };
        self.argv = std::mem::take(&mut current.argv);
        self.argv.clear();
        if self.argv.memory() > SCRIPT_WORDS_KEPT {
            self.argv = OwnedArguments::new();
        }
        match run.must_end() {
            Some(ending) if failed || ending == Ending::Again => current.end = ended(ending, run),
            None if failed => {
                let line = [b"ERR not enough memory script: ", run.name(), b"."].concat();
                current.end = End::Failed { line, counted: false };
            }
            _ => {}
        }
        self.clean_up(current.told_collector || failed);
        if current.end != End::Returned {
            reply.rollback(mark);
        }
        current.end
    }

    fn limit_memory(&mut self, limit: usize) {
        if self.bounded.limit() != limit {
            self.bounded.set_limit(limit);
            // What was garbage below another limit may be more than this one allows.
            self.clean_up(true);
        }
    }

    /// Collects the remains of a script if they are large, and records how much memory the state
    /// takes.
    fn clean_up(&mut self, at_once: bool) {
        let (l, limit) = (self.bounded.l, self.bounded.limit());
        // SAFETY: nothing is changed.
        let used = || unsafe { used(l) };
        let is_much = || limit > 0 && used() > limit / CLEANING_SHARE;
        if at_once || MEMORY.get().is_short {
            // SAFETY: this sets numbers.
            unsafe {
                ffi::lua_gc(l, ffi::LUA_GCSETPAUSE, COLLECTOR_PAUSE);
                ffi::lua_gc(l, ffi::LUA_GCSETSTEPMUL, COLLECTOR_SPEED);
                ffi::lua_gc(l, ffi::LUA_GCRESTART, 0);
            }
            MEMORY.set(Memory { is_short: false, ..MEMORY.get() });
        }
        if at_once || is_much() {
            self.bounded.collect();
            // What remains are compiled scripts, which are made again, and at last libraries.
            if is_much() {
                self.forget_scripts();
                self.bounded.collect();
            }
            if is_much() {
                self.forget_libraries(|_| true);
                self.bounded.collect();
            }
        }
        self.memory.store(used(), Relaxed);
    }
}

/// How a script ends that has to.
fn ended(ending: Ending, run: &dyn Running) -> End {
    if ending == Ending::Again {
        return End::Again;
    }
    let line = [farewell(ending, run.kind()), b" script: ", run.name(), b"."].concat();
    End::Failed { line, counted: false }
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
                current.end = ended(ending, run);
            }
        } else {
            let (line, counted) = line_of(l, run.name());
            current.end = End::Failed { line, counted };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::from_reply::push_reply;

    use super::*;

    #[test]
    fn a_library_that_is_loaded_again_may_take_its_time() {
        let mut state = State::new(Arc::default());
        let code = b"for i = 1, 100000 do end redis.register_function('f', function() end)";
        let identity = Arc::new(Identity { number: 1 });
        let mut load = |time_us| state.load(&identity, code, Allowed { memory: 0, time_us }, None);
        let late = b"ERR Error registering functions: ERR FUNCTION LOAD timeout".to_vec();
        assert_eq!(load(0), Err(late));
        assert_eq!(load(LIBRARY_RELOAD_US).map(|functions| functions.len()), Ok(1));
    }

    #[test]
    #[should_panic(expected = "Lua raised an error outside of a protected call: lost")]
    fn an_error_that_nothing_catches_is_a_panic() {
        let state = State::new(Arc::default());
        // SAFETY: the error is on top, and nothing is owned between here and the panic but what it
        // drops.
        unsafe {
            push(state.bounded.l, b"lost");
            ffi::lua_error(state.bounded.l);
        }
    }

    #[test]
    fn a_reply_that_is_not_there_as_a_whole_is_an_error() {
        let state = State::new(Arc::default());
        let l = state.bounded.l;
        for whole in [
            "+OK\r\n",
            ":1\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(12\r\n",
            "$3\r\nabc\r\n",
            "=7\r\ntxt:abc\r\n",
            "*2\r\n:1\r\n$-1\r\n",
            "%1\r\n+a\r\n*1\r\n:2\r\n",
            "~2\r\n:1\r\n:2\r\n",
        ] {
            let is_error = |reply: &str| {
                // SAFETY: nothing is owned here, and memory is not bounded.
                unsafe {
                    let is_error = push_reply(l, reply.as_bytes());
                    assert_eq!(ffi::lua_gettop(l), 1, "{reply:?}: one value");
                    ffi::lua_settop(l, 0);
                    is_error
                }
            };
            assert!(!is_error(whole), "{whole:?}");
            assert!((0..whole.len()).all(|length| is_error(&whole[..length])), "{whole:?} cut");
            assert!(is_error(&[whole, whole].concat()), "two of {whole:?}");
        }
    }
}
