//! Functions of Lua that are called with an input.

use mlua::{FromLuaMulti, Function, Lua};

/// Bytes that a script may take. Nothing in an input of some kilobytes needs as many.
const MEMORY: usize = 16 << 20;

/// Replaces `pcall`, as the sandbox of scripts does: Lua's own has no room for its first result
/// when the others fill the stack, which Lua's assertions do not allow.
const PCALL: &str = "local protected = pcall
    function pcall(action, ...)
        local count, results
        local function keep(...)
            count, results = select('#', ...), {...}
        end
        local valid, error = protected(function(...) keep(action(...)) end, ...)
        if not valid then return false, error end
        return true, unpack(results, 1, count)
    end";

/// Keeps Lua's own functions of strings, most of which the libraries replace.
const ORIGINAL: &str = "original = {}
    for name, action in pairs(string) do original[name] = action end";

/// A function in an interpreter with the libraries of scripts.
#[derive(Debug)]
pub struct Script {
    lua: Lua,
    function: Function,
}

impl Script {
    /// The function that the source returns.
    pub fn new(source: &str) -> Script {
        let lua = Lua::new();
        lua.load(ORIGINAL).exec().expect("the source is right");
        lua::libraries::open(&lua).expect("there is memory for it");
        lua.load(PCALL).exec().expect("the source is right");
        lua.set_memory_limit(MEMORY).expect("there is an allocator that counts");
        let function = lua.load(source).eval().expect("the source is right");
        Script { lua, function }
    }

    /// Calls it with an input, and returns its results; an error of its own is a failure.
    pub fn run<R: FromLuaMulti>(&self, input: &[u8]) -> R {
        let input = self.lua.create_string(input).expect("there is memory for it");
        let results = self.function.call(input).unwrap_or_else(|error| panic!("{error}"));
        self.lua.gc_collect().expect("nothing in it has a finalizer");
        results
    }
}
