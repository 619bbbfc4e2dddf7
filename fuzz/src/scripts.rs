//! Functions of Lua that are called with an input.

use mlua::{Function, Lua};

/// Bytes that a script may take. Nothing in an input of some kilobytes needs as many.
const MEMORY: usize = 16 << 20;

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
        lua::libraries::open(&lua).expect("there is memory for it");
        lua.set_memory_limit(MEMORY).expect("there is an allocator that counts");
        let function = lua.load(source).eval().expect("the source is right");
        Script { lua, function }
    }

    /// Calls it with an input; an error of its own is a failure.
    pub fn run(&self, input: &[u8]) {
        let input = self.lua.create_string(input).expect("there is memory for it");
        self.function.call::<()>(input).unwrap_or_else(|error| panic!("{error}"));
        self.lua.gc_collect().expect("nothing in it has a finalizer");
    }
}
