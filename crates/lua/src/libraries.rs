//! Where the libraries are put.

use crate::{bit, cjson, cmsgpack, packing, stack};

/// Sets `cjson`, `cmsgpack`, `struct` and `bit` among the globals.
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
    })
}
