//! How the libraries are put into Lua's globals.

use crate::stack::{Stack, function};
use crate::{bit, cjson, cmsgpack, packing, stack, strings, tables};

/// Sets `cjson`, `cmsgpack`, `struct` and `bit` among the globals, and replaces some of Lua's
/// functions by our own.
pub fn open(lua: &mlua::Lua) -> mlua::Result<()> {
    stack::enter(lua, |stack| {
        cjson::open(stack);
        stack.set_global(c"cjson");
        cmsgpack::open(stack);
        stack.set_global(c"cmsgpack");
        packing::open(stack);
        stack.set_global(c"struct");
        bit::open(stack);
        stack.set_global(c"bit");
        replace(stack);
    })
}

fn replace(stack: Stack<'_>) {
    stack.push_global(c"string");
    strings::open(stack);
    stack.pop(1);
    stack.push_global(c"table");
    tables::open(stack);
    stack.pop(1);
    stack.push_closure(function(tables::unpack), 0);
    stack.set_global(c"unpack");
}
