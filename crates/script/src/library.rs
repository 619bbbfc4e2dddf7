//! Libraries of functions: how they register, and how one is called.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::{c_int, c_void};
use std::ptr;

use engine::script::functions::{Function, check_name};
use engine::script::interpreter::Running;
use engine::script::shebang::{ScriptFlags, flag};
use hashbrown::HashMap;
use mlua::ffi::{self, lua_State};

use crate::errors::raise;
use crate::memory::Bounded;
use crate::registry::Kept;
use crate::sandbox;
use crate::stack::{bytes, raw_field, set_raw_field};
use crate::watch::{end_load, watch_load};

/// Functions of a library, by name: their places in the registry.
pub(crate) type Functions = HashMap<Vec<u8>, c_int>;

/// A library that is being loaded.
struct Registration<'r> {
    code: &'r [u8],
    kept: Kept,
    functions: Vec<Function>,
    places: Functions,
    error: Option<Vec<u8>>,
}

thread_local! {
    static REGISTRATION: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// The library that is being loaded on this thread.
///
/// # Safety
/// Only one reference is used at a time, and none longer than the function that Lua called.
unsafe fn registration<'r>() -> Option<&'r mut Registration<'r>> {
    // SAFETY: it is set as long as the data behind it lives.
    unsafe { REGISTRATION.get().cast::<Registration<'r>>().as_mut() }
}

/// Loads a library, which may take this many microseconds; for a call of one of its functions, if
/// that is given.
pub(crate) fn load(
    bounded: &Bounded,
    kept: Kept,
    code: &[u8],
    time_us: u64,
    call: Option<&mut dyn Running>,
) -> Result<(Vec<Function>, Functions), Vec<u8>> {
    let mut registration =
        Registration { code, kept, functions: Vec::new(), places: Functions::new(), error: None };
    let ends = base::clock::monotonic_us().saturating_add(time_us);
    // SAFETY: the stack is empty, so it has room.
    let offer = |is_on| bounded.beyond_limit(|l| unsafe { offer(l, kept, is_on) });
    offer(true);
    // SAFETY: the function gets what it expects; what is being loaded is forgotten after the call.
    let failed = unsafe {
        REGISTRATION.set((&raw mut registration).cast::<c_void>());
        watch_load(bounded.l, ends, call);
        let failed = bounded.call(load_protected, ptr::null_mut());
        end_load();
        REGISTRATION.set(ptr::null_mut());
        failed
    };
    offer(false);
    let Registration { functions, places, error, .. } = registration;
    let error = match failed {
        true => Some(b"ERR Error registering functions: not enough memory".to_vec()),
        false => error,
    };
    match error {
        Some(line) => {
            forget(bounded, &places);
            Err(line)
        }
        None => Ok((functions, places)),
    }
}

/// Releases the functions of a library.
pub(crate) fn forget(bounded: &Bounded, places: &Functions) {
    places.values().for_each(|place| bounded.release(*place));
}

/// # Safety
/// `lua_cpcall` calls it, while there is a [`Registration`].
unsafe extern "C-unwind" fn load_protected(l: *mut lua_State) -> c_int {
    // SAFETY: nothing is owned here while Lua may raise an error.
    unsafe {
        let Some(own) = registration() else { return 0 };
        ffi::lua_settop(l, 0);
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, own.kept.handler);
        let before: &[u8] = if !sandbox::load(l, own.code, b"@user_function") {
            b"ERR Error compiling function: "
        } else if ffi::lua_pcall(l, 0, 0, 1) != 0 {
            b"ERR Error registering functions: "
        } else {
            return 0;
        };
        if ffi::lua_type(l, -1) == ffi::LUA_TTABLE {
            raw_field(l, ffi::lua_gettop(l), c"err");
        }
        let is_text = ffi::lua_type(l, -1) == ffi::LUA_TSTRING;
        own.error = Some([before, if is_text { bytes(l, -1) } else { b"" }].concat());
    }
    0
}

/// Offers `redis.register_function`, or takes it away.
unsafe fn offer(l: *mut lua_State, kept: Kept, is_on: bool) {
    // SAFETY: the stack has room.
    unsafe {
        for library in [kept.redis, kept.server] {
            ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, library);
            let table = ffi::lua_gettop(l);
            if is_on {
                ffi::lua_pushcclosure(l, register_function, 0);
            } else {
                ffi::lua_pushnil(l);
            }
            set_raw_field(l, table, c"register_function");
            ffi::lua_settop(l, table - 1);
        }
    }
}

/// `redis.register_function(name, callback)`, or with a table of named arguments
unsafe extern "C-unwind" fn register_function(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; a value is owned here only after the last function that may raise an
    // error, or while none is called.
    unsafe {
        let Some(own) = registration() else {
            // A library has kept the function for later.
            let text = b"ERR redis.register_function can only be called on FUNCTION LOAD command";
            raise(l, text)
        };
        match ffi::lua_gettop(l) {
            1 if ffi::lua_type(l, 1) != ffi::LUA_TTABLE => raise(
                l,
                b"ERR calling redis.register_function with a single argument is only applicable to \
                  Lua table (representing named arguments).",
            ),
            1 => named(l),
            2 => {
                if ffi::lua_isstring(l, 1) == 0 {
                    let text = b"ERR first argument to redis.register_function must be a string";
                    raise(l, text);
                }
                if ffi::lua_type(l, 2) != ffi::LUA_TFUNCTION {
                    let text = b"ERR second argument to redis.register_function must be a function";
                    raise(l, text);
                }
                ffi::lua_pushnil(l);
            }
            _ => raise(l, b"ERR wrong number of arguments to redis.register_function"),
        }
        // Now the stack has name, callback and description, and perhaps the flags as a number.
        let flags = ffi::lua_tonumber(l, 4) as ScriptFlags;
        let name = bytes(l, 1);
        if check_name(name).is_err() {
            raise(
                l,
                b"ERR Library names can only contain letters, numbers, or underscores(_) and must \
                  be at least one character long",
            );
        }
        if own.places.contains_key(name) {
            raise(l, b"ERR Function already exists in the library");
        }
        ffi::lua_pushvalue(l, 2);
        let place = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        let has_description = ffi::lua_type(l, 3) == ffi::LUA_TSTRING;
        own.places.insert(name.to_vec(), place);
        own.functions.push(Function {
            name: name.to_vec(),
            description: has_description.then(|| bytes(l, 3).to_vec()),
            flags,
        });
    }
    0
}

/// Leaves name, callback, description and flags on the stack, of the table that is there alone.
unsafe fn named(l: *mut lua_State) {
    // SAFETY: Lua has called the caller of this; nothing is owned here.
    unsafe {
        ffi::lua_settop(l, 1);
        for _ in 0..4 {
            ffi::lua_pushnil(l);
        }
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, 1) != 0 {
            if ffi::lua_type(l, -2) != ffi::LUA_TSTRING {
                raise(l, b"ERR unknown argument given to redis.register_function");
            }
            named_argument(l);
            // The key stays for the next one.
        }
        if ffi::lua_type(l, 2) == ffi::LUA_TNIL {
            raise(l, b"ERR redis.register_function must get a function name argument");
        }
        if ffi::lua_type(l, 3) == ffi::LUA_TNIL {
            raise(l, b"ERR redis.register_function must get a callback argument");
        }
        ffi::lua_remove(l, 1);
    }
}

/// Puts the value on top in its place, by the key beneath it, and takes it away.
unsafe fn named_argument(l: *mut lua_State) {
    // SAFETY: as `named`.
    unsafe {
        match bytes(l, -2) {
            b"function_name" => {
                if ffi::lua_isstring(l, -1) == 0 {
                    raise(
                        l,
                        b"ERR function_name argument given to redis.register_function must be a string",
                    );
                }
                ffi::lua_tolstring(l, -1, ptr::null_mut());
                ffi::lua_replace(l, 2);
            }
            b"description" => {
                if ffi::lua_isstring(l, -1) == 0 {
                    raise(
                        l,
                        b"ERR description argument given to redis.register_function must be a string",
                    );
                }
                ffi::lua_tolstring(l, -1, ptr::null_mut());
                ffi::lua_replace(l, 4);
            }
            b"callback" => {
                if ffi::lua_type(l, -1) != ffi::LUA_TFUNCTION {
                    raise(
                        l,
                        b"ERR callback argument given to redis.register_function must be a function",
                    );
                }
                ffi::lua_replace(l, 3);
            }
            b"flags" => {
                if ffi::lua_type(l, -1) != ffi::LUA_TTABLE {
                    raise(
                        l,
                        b"ERR flags argument to redis.register_function must be a table \
                          representing function flags",
                    );
                }
                let flags = flags_of(l);
                ffi::lua_settop(l, -2);
                ffi::lua_pushnumber(l, f64::from(flags));
                ffi::lua_replace(l, 5);
            }
            _ => raise(l, b"ERR unknown argument given to redis.register_function"),
        }
    }
}

/// The flags that the table on top names.
unsafe fn flags_of(l: *mut lua_State) -> ScriptFlags {
    let (mut flags, mut index) = (0, 1);
    // SAFETY: as `named`.
    unsafe {
        let table = ffi::lua_gettop(l);
        loop {
            ffi::lua_rawgeti_(l, table, index);
            match ffi::lua_type(l, -1) {
                ffi::LUA_TNIL => break,
                ffi::LUA_TSTRING => match flag(bytes(l, -1)) {
                    Some(flag) => flags |= flag,
                    None => raise(l, b"ERR unknown flag given"),
                },
                _ => raise(l, b"ERR unknown flag given"),
            }
            ffi::lua_settop(l, table);
            index += 1;
        }
        ffi::lua_settop(l, table);
    }
    flags
}

/// Pushes the handler of errors, and the function that calls a function with its two tables.
///
/// # Safety
/// The stack has room, and the caller owns nothing.
pub(crate) unsafe fn hide_words(l: *mut lua_State, kept: Kept) {
    // SAFETY: by the caller's promise.
    unsafe {
        ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, kept.globals);
        let globals = ffi::lua_gettop(l);
        for name in [kept.keys, kept.argv] {
            ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, name);
            ffi::lua_pushnil(l);
            ffi::lua_rawset(l, globals);
        }
        ffi::lua_settop(l, globals - 1);
    }
}
