//! What a script can reach, and what it cannot change.
//!
//! A state outlives the script, and the next script must find it as the first did. Lua 5.1 has no
//! read-only tables, so scripts do not get the tables of the state. They get empty tables instead,
//! which look things up in the real ones through a metatable and refuse writes. Functions that
//! ignore metatables ([`guarded`]) know these stand-ins: they refuse to change them, or look
//! through them.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};

use mlua::ffi::{self, lua_State};
use mlua::{LuaOptions, StdLib};

use crate::api;
use crate::coroutines;
use crate::current::current;
use crate::errors::handler;
use crate::guarded;
use crate::protected::{prepare_protection, protect};
use crate::random;
use crate::registry::{Kept, Stock, call_stock, keep_stock};
use crate::stack::{before_zero, bytes, push, raw_field, set_raw_field};
use crate::watch::{look, must_end};

/// The globals of Lua that scripts have; all others are removed.
const GLOBALS: &[&CStr] = &[
    c"_VERSION",
    c"assert",
    c"collectgarbage",
    c"coroutine",
    c"error",
    c"gcinfo",
    c"ipairs",
    c"math",
    c"os",
    c"rawequal",
    c"select",
    c"string",
    c"table",
    c"tonumber",
    c"tostring",
    c"type",
    c"unpack",
    c"bit",
    c"cjson",
    c"cmsgpack",
    c"struct",
];

/// Tables that scripts see, and cannot change.
const LIBRARIES: &[&CStr] = &[
    c"string",
    c"table",
    c"math",
    c"os",
    c"bit",
    c"struct",
    c"cjson",
    c"cmsgpack",
    c"coroutine",
    c"redis",
    c"server",
];

/// A state with Lua's libraries and ours.
pub(crate) fn make() -> mlua::Lua {
    let options = LuaOptions::new().catch_rust_panics(true);
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
    let lua = mlua::Lua::new_with(libraries, options).expect("the libraries are Lua's own");
    lua::libraries::open(&lua).expect("there is memory for a few functions");
    lua
}

/// Removes the functions that scripts must not have, and protects everything else from changes.
///
/// # Safety
/// The state is one of [`make`], and nothing else uses it.
pub(crate) unsafe fn close(l: *mut lua_State) -> Kept {
    // SAFETY: the stack is balanced, and there is memory without bound.
    unsafe {
        keep_names(l);
        keep_stock(l);
        prepare_protection(l);
        ffi::lua_createtable(l, 0, 64);
        let globals = ffi::lua_gettop(l);
        for name in GLOBALS {
            ffi::lua_getfield_(l, ffi::LUA_GLOBALSINDEX, name.as_ptr());
            set_raw_field(l, globals, name);
        }
        shrink_os(l, globals);
        api::open(l, globals);
        replace(l, globals);
        let keep = |name| {
            raw_field(l, globals, name);
            ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX)
        };
        let (redis, server) = (keep(c"redis"), keep(c"server"));
        for name in LIBRARIES {
            raw_field(l, globals, name);
            protect(l, false);
            set_raw_field(l, globals, name);
        }
        close_strings(l, globals);
        // A missing global is an error.
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_pushcclosure(l, nonexistent, 0);
        set_raw_field(l, globals + 1, c"__index");
        ffi::lua_setmetatable(l, globals);
        ffi::lua_pushvalue(l, globals);
        protect(l, true);
        ffi::lua_pushvalue(l, -1);
        set_raw_field(l, globals, c"_G");
        ffi::lua_replace(l, ffi::LUA_GLOBALSINDEX);
        let globals = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        ffi::lua_pushcclosure(l, handler, 0);
        let handler = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        let keep = |name: &[u8]| {
            push(l, name);
            ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX)
        };
        let (keys, argv) = (keep(b"KEYS"), keep(b"ARGV"));
        let kept = Kept { globals, redis, server, handler, keys, argv };
        debug_assert!(ffi::lua_gettop(l) == 0, "the stack is as it was");
        ffi::lua_settop(l, 0);
        kept
    }
}

/// Keeps the names of fields and another text, so that pushing one never needs memory.
unsafe fn keep_names(l: *mut lua_State) {
    const NAMES: [&CStr; 13] = [
        c"err",
        c"ok",
        c"double",
        c"map",
        c"set",
        c"big_number",
        c"verbatim_string",
        c"format",
        c"string",
        c"source",
        c"line",
        c"ignore_error_stats_update",
        // Lua's own, for which it needs memory where no call is protected: after a coroutine's end.
        c"error in error handling",
    ];
    // SAFETY: the stack has room for two more.
    unsafe {
        for name in NAMES {
            push(l, name.to_bytes());
            ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        }
    }
}

unsafe fn shrink_os(l: *mut lua_State, globals: c_int) {
    // SAFETY: the stack has room.
    unsafe {
        raw_field(l, globals, c"os");
        ffi::lua_createtable(l, 0, 1);
        raw_field(l, globals + 1, c"clock");
        set_raw_field(l, globals + 2, c"clock");
        set_raw_field(l, globals, c"os");
        ffi::lua_settop(l, globals);
    }
}

/// Replaces some of Lua's functions by our own.
unsafe fn replace(l: *mut lua_State, globals: c_int) {
    let globally: [(&CStr, ffi::lua_CFunction); 13] = [
        (c"getmetatable", guarded::getmetatable),
        (c"setmetatable", guarded::setmetatable),
        (c"rawset", guarded::rawset),
        (c"rawget", guarded::rawget),
        (c"next", guarded::next),
        (c"pairs", guarded::pairs),
        (c"pcall", pcall),
        (c"xpcall", xpcall),
        (c"load", load_function),
        (c"loadstring", load_string),
        (c"collectgarbage", collectgarbage),
        (c"__redis__err__handler", handler),
        (c"__server__err__handler", handler),
    ];
    let within: [(&CStr, &CStr, ffi::lua_CFunction); 7] = [
        (c"table", c"insert", guarded::insert),
        (c"table", c"foreach", guarded::foreach),
        (c"coroutine", c"create", coroutines::create),
        (c"coroutine", c"resume", coroutines::resume),
        (c"coroutine", c"wrap", coroutines::wrap),
        (c"math", c"random", random::random),
        (c"math", c"randomseed", random::randomseed),
    ];
    // SAFETY: the stack has room.
    unsafe {
        for (name, function) in globally {
            ffi::lua_pushcclosure(l, function, 0);
            set_raw_field(l, globals, name);
        }
        for (library, name, function) in within {
            raw_field(l, globals, library);
            ffi::lua_pushcclosure(l, function, 0);
            set_raw_field(l, globals + 1, name);
            ffi::lua_settop(l, globals);
        }
    }
}

/// Strings keep Lua's own metatable; `getmetatable` shows another one.
unsafe fn close_strings(l: *mut lua_State, globals: c_int) {
    // SAFETY: the stack has room.
    unsafe {
        ffi::lua_createtable(l, 0, 1);
        raw_field(l, globals, c"string");
        set_raw_field(l, globals + 1, c"__index");
        protect(l, false);
        push(l, b"");
        ffi::lua_getmetatable(l, -1);
        ffi::lua_pushvalue(l, globals + 1);
        set_raw_field(l, globals + 3, c"__metatable");
        ffi::lua_settop(l, globals);
    }
}

/// `__index` of the globals.
unsafe extern "C-unwind" fn nonexistent(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; a number becomes a string where it lies.
    unsafe {
        let name = match ffi::lua_type(l, 2) {
            ffi::LUA_TSTRING | ffi::LUA_TNUMBER => ffi::lua_tolstring(l, 2, std::ptr::null_mut()),
            _ => c"(null)".as_ptr(),
        };
        let text = c"Script attempted to access nonexistent global variable '%s'";
        ffi::luaL_error(l, text.as_ptr(), name)
    }
}

/// Loads code as a function on top of the stack, or leaves there why it is not a function. Code
/// that was compiled before is none.
///
/// # Safety
/// There is room for two more, and the caller owns nothing.
pub(crate) unsafe fn load(l: *mut lua_State, code: &[u8], name: &'static [u8]) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        push(l, code);
        push(l, name);
        load_named(l, false)
    }
}

/// [`load`] of the two strings on top, code and name, which it takes away. If `watched`, the
/// script's time limit is checked meanwhile, so it may fail for another reason.
unsafe fn load_named(l: *mut lua_State, watched: bool) -> bool {
    // SAFETY: the strings stay on the stack while they are read.
    unsafe {
        let at = ffi::lua_gettop(l) - 1;
        let mut source = Source { blank: is_compiled(bytes(l, at)), rest: bytes(l, at), watched };
        let name = push_name(l, at + 1);
        let from = (&raw mut source).cast::<c_void>();
        let status = ffi::lua_load(l, next_piece, from, name);
        ffi::lua_replace(l, at);
        ffi::lua_settop(l, at);
        status == 0
    }
}

/// The name of code, at `index`, as Lua takes it.
unsafe fn push_name(l: *mut lua_State, index: c_int) -> *const c_char {
    // SAFETY: the string at that index stays there.
    unsafe {
        if bytes(l, index).contains(&0) {
            // Lua takes it as C has it. If that is not a string of ours, nothing keeps it alive.
            push(l, before_zero(bytes(l, index)));
            ffi::lua_replace(l, index);
        }
        ffi::lua_tolstring(l, index, std::ptr::null_mut())
    }
}

/// Whether code was compiled before. After a blank line it is not, and neither is any other code.
fn is_compiled(code: &[u8]) -> bool {
    const SIGNATURE: u8 = 0x1b;
    code.first() == Some(&SIGNATURE)
}

/// Code that is compiled in pieces.
struct Source<'s> {
    /// A blank comes first.
    blank: bool,
    rest: &'s [u8],
    watched: bool,
}

/// Bytes of code between two looks at the clock: some milliseconds.
const PIECE: usize = 1 << 16;

/// # Safety
/// `lua_load` calls it with a [`Source`].
unsafe extern "C-unwind" fn next_piece(
    l: *mut lua_State,
    source: *mut c_void,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: by the caller's promise; nothing is owned here.
    unsafe {
        let source = &mut *source.cast::<Source<'_>>();
        if std::mem::take(&mut source.blank) {
            *size = 1;
            return c" ".as_ptr();
        }
        if source.watched {
            look(l, std::ptr::null_mut());
        }
        let (piece, rest) = source.rest.split_at(source.rest.len().min(PIECE));
        source.rest = rest;
        *size = piece.len();
        piece.as_ptr().cast::<c_char>()
    }
}

/// Code that a function returns in pieces.
struct Reader {
    /// Something was returned.
    begun: bool,
    /// A blank was put before it.
    blank: bool,
}

/// The place of the function of a [`Reader`], and of its last result.
const READ: c_int = 1;
const PIECE_READ: c_int = 3;

/// # Safety
/// `lua_load` calls it with a [`Reader`], for a function that Lua has called with a stack of this
/// many values.
unsafe extern "C-unwind" fn read_piece(
    l: *mut lua_State,
    reader: *mut c_void,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: by the caller's promise; nothing is owned here.
    unsafe {
        let reader = &mut *reader.cast::<Reader>();
        if !std::mem::take(&mut reader.blank) {
            ffi::luaL_checkstack_(l, 2, c"too many nested functions".as_ptr());
            // The instructions of a function in C are not counted.
            look(l, std::ptr::null_mut());
            ffi::lua_pushvalue(l, READ);
            ffi::lua_call(l, 0, 1);
            match ffi::lua_type(l, -1) {
                ffi::LUA_TNIL => {
                    *size = 0;
                    return std::ptr::null();
                }
                ffi::LUA_TSTRING | ffi::LUA_TNUMBER => ffi::lua_replace(l, PIECE_READ),
                _ => {
                    ffi::luaL_error(l, c"reader function must return a string".as_ptr());
                }
            }
            reader.blank = !reader.begun && is_compiled(bytes(l, PIECE_READ));
            reader.begun = true;
            if reader.blank {
                *size = 1;
                return c" ".as_ptr();
            }
        }
        ffi::lua_tolstring(l, PIECE_READ, size)
    }
}

/// The results of `load` and `loadstring` for the function or the reason on top.
unsafe fn loaded(l: *mut lua_State, is_function: bool) -> c_int {
    if is_function {
        return 1;
    }
    // SAFETY: there is room for one more.
    unsafe {
        ffi::lua_pushnil(l);
        ffi::lua_insert(l, -2);
    }
    2
}

/// `loadstring(string [, chunkname])`
unsafe extern "C-unwind" fn load_string(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        ffi::luaL_checklstring(l, 1, std::ptr::null_mut());
        ffi::lua_settop(l, 2);
        match ffi::lua_type(l, 2) {
            ffi::LUA_TNIL => {
                ffi::lua_pushvalue(l, 1);
                ffi::lua_replace(l, 2);
            }
            _ => drop(ffi::luaL_checklstring(l, 2, std::ptr::null_mut())),
        }
        let is_function = load_named(l, true);
        loaded(l, is_function)
    }
}

/// `load(func [, chunkname])`
unsafe extern "C-unwind" fn load_function(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        if ffi::lua_type(l, 2) > ffi::LUA_TNIL {
            ffi::luaL_checklstring(l, 2, std::ptr::null_mut());
        }
        ffi::luaL_checktype(l, READ, ffi::LUA_TFUNCTION);
        ffi::lua_settop(l, PIECE_READ);
        if ffi::lua_type(l, 2) == ffi::LUA_TNIL {
            push(l, b"=(load)");
            ffi::lua_replace(l, 2);
        }
        let mut reader = Reader { begun: false, blank: false };
        let name = push_name(l, 2);
        let status = ffi::lua_load(l, read_piece, (&raw mut reader).cast::<c_void>(), name);
        loaded(l, status == 0)
    }
}

/// `pcall(f, ...)`. For an error that is a table it returns the field `err`, if that is a text;
/// otherwise, as in Redis, the table and that field.
unsafe extern "C-unwind" fn pcall(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        ffi::luaL_checkany(l, 1);
        // It is pushed before the results, which may fill the stack.
        ffi::lua_pushboolean(l, 1);
        ffi::lua_insert(l, 1);
        if ffi::lua_pcall(l, ffi::lua_gettop(l) - 2, ffi::LUA_MULTRET, 0) != 0 {
            if ffi::lua_type(l, -1) == ffi::LUA_TTABLE {
                ffi::lua_getfield_(l, -1, c"err".as_ptr());
                if ffi::lua_isstring(l, -1) != 0 {
                    ffi::lua_replace(l, -2);
                }
            }
            ffi::lua_pushboolean(l, 0);
            ffi::lua_replace(l, 1);
        }
        ffi::lua_gettop(l)
    }
}

/// `xpcall(f, err)`. Lua's own has no room for its first result when the others fill the stack.
unsafe extern "C-unwind" fn xpcall(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        ffi::luaL_checkany(l, 2);
        ffi::lua_settop(l, 2);
        if ffi::lua_type(l, 2) == ffi::LUA_TFUNCTION {
            ffi::lua_pushcclosure(l, handle, 1);
        }
        // The stack is now: the handler, the first result, the function.
        ffi::lua_insert(l, 1);
        ffi::lua_pushboolean(l, 1);
        ffi::lua_insert(l, 2);
        if ffi::lua_pcall(l, 0, ffi::LUA_MULTRET, 1) != 0 {
            ffi::lua_pushboolean(l, 0);
            ffi::lua_replace(l, 2);
        }
        ffi::lua_remove(l, 1);
        ffi::lua_gettop(l)
    }
}

/// Calls the handler of an `xpcall` with an error, unless the script must end. Lua calls handlers
/// where the error was raised, and the hook that ends a script raises its error where no hook is
/// called any more: a handler could go on for ever there.
unsafe extern "C-unwind" fn handle(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it with the error; nothing is owned here.
    unsafe {
        if !must_end() {
            ffi::lua_pushvalue(l, ffi::lua_upvalueindex(1));
            ffi::lua_insert(l, 1);
            ffi::lua_call(l, 1, 1);
        }
    }
    1
}

/// `collectgarbage([opt [, arg]])`; its effect ends with the script.
unsafe extern "C-unwind" fn collectgarbage(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        if let Some(current) = current()
            && !(ffi::lua_type(l, 1) == ffi::LUA_TSTRING && bytes(l, 1) == b"count")
        {
            current.told_collector = true;
        }
        // It may take as long as a million instructions.
        look(l, std::ptr::null_mut());
        call_stock(l, Stock::CollectGarbage)
    }
}
