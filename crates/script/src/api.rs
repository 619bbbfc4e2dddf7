//! `redis.call` and similar functions.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;

use base::num;
use engine::host::LogLevel;
use engine::script::cache::sha_of;
use engine::script::interpreter::Called;
use mlua::ffi::{self, lua_State};

use crate::current::{Current, current};
use crate::errors::{push_error, raise};
use crate::from_reply::push_reply;
use crate::memory::keep_room;
use crate::stack::{bytes, push, set_raw_field};
use crate::watch::end;

/// Adds the tables `redis` and `server` to the globals at that index.
///
/// # Safety
/// The stack has room.
pub(crate) unsafe fn open(l: *mut lua_State, globals: c_int) {
    // SAFETY: by the caller's promise.
    unsafe {
        for name in [c"redis", c"server"] {
            ffi::lua_createtable(l, 0, 32);
            fill(l, globals + 1);
            if name == c"server" {
                push(l, b"dunlin");
                set_raw_field(l, globals + 1, c"SERVER_NAME");
            }
            set_raw_field(l, globals, name);
        }
    }
}

unsafe fn fill(l: *mut lua_State, table: c_int) {
    let functions: [(&CStr, ffi::lua_CFunction); 12] = [
        (c"call", call),
        (c"pcall", pcall),
        (c"log", log),
        (c"sha1hex", sha1hex),
        (c"error_reply", error_reply),
        (c"status_reply", status_reply),
        (c"setresp", setresp),
        (c"set_repl", set_repl),
        (c"replicate_commands", replicate_commands),
        (c"acl_check_cmd", acl_check_cmd),
        (c"breakpoint", breakpoint),
        (c"debug", debug),
    ];
    let numbers: [(&CStr, u32); 10] = [
        (c"LOG_DEBUG", 0),
        (c"LOG_VERBOSE", 1),
        (c"LOG_NOTICE", 2),
        (c"LOG_WARNING", 3),
        (c"REPL_NONE", 0),
        (c"REPL_AOF", JOURNAL),
        (c"REPL_SLAVE", REPLICAS),
        (c"REPL_REPLICA", REPLICAS),
        (c"REPL_ALL", JOURNAL | REPLICAS),
        (c"REDIS_VERSION_NUM", version_number()),
    ];
    // SAFETY: the stack has room.
    unsafe {
        for (name, function) in functions {
            ffi::lua_pushcclosure(l, function, 0);
            set_raw_field(l, table, name);
        }
        for (name, number) in numbers {
            ffi::lua_pushnumber(l, f64::from(number));
            set_raw_field(l, table, name);
        }
        push(l, engine::REDIS_VERSION.as_bytes());
        set_raw_field(l, table, c"REDIS_VERSION");
    }
}

/// Where the effects of commands go, as `redis.set_repl` has it.
const JOURNAL: u32 = 1;
const REPLICAS: u32 = 2;

/// A byte for each part.
fn version_number() -> u32 {
    let parts = engine::REDIS_VERSION.split('.').map(|part| part.parse().unwrap_or(0));
    parts.fold(0, |number: u32, part: u32| number << 8 | part)
}

/// The script that runs; an error if none does, as while a library is loaded.
unsafe fn script<'c>(l: *mut lua_State) -> &'c mut Current {
    // SAFETY: Lua has called the caller of this.
    unsafe {
        match current() {
            Some(current) => current,
            None => {
                // A library that is being loaded has no commands.
                let mut place: ffi::lua_Debug = std::mem::zeroed();
                ffi::lua_getstack(l, 0, &mut place);
                ffi::lua_getinfo(l, c"n".as_ptr(), &mut place);
                let name = if place.name.is_null() { c"call".as_ptr() } else { place.name };
                let text = c"Script attempted to access nonexistent global variable '%s'";
                ffi::luaL_error(l, text.as_ptr(), name);
                unreachable!("an error was raised")
            }
        }
    }
}

/// `redis.call(command, ...)`
unsafe extern "C-unwind" fn call(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { call_command(l, true) }
}

/// `redis.pcall(command, ...)`
unsafe extern "C-unwind" fn pcall(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { call_command(l, false) }
}

/// A reply of more bytes makes room first: a few of them would fill the memory before the next look
/// at the clock.
const LONG_REPLY: usize = 1 << 16;

/// The outcome of a call, without any owned value.
enum Outcome {
    Replied,
    /// The error is in [`Current::error`]. Says whether it is counted.
    Failed(bool),
    Ended,
}

unsafe fn call_command(l: *mut lua_State, raises: bool) -> c_int {
    // SAFETY: something is owned here only while no function of Lua is called; the reply lies in
    // the script's own buffer until its next command.
    unsafe {
        let current = script(l);
        let is_error = match run_command(l, current) {
            Outcome::Replied => {
                let reply = current.run().reply();
                if reply.len() > LONG_REPLY {
                    keep_room(l);
                }
                push_reply(l, reply)
            }
            Outcome::Failed(counted) => {
                push_error(l, &current.error, counted);
                true
            }
            Outcome::Ended => end(l),
        };
        if is_error && raises {
            ffi::lua_error(l);
        }
    }
    1
}

/// Runs the command that the arguments are. Calls nothing of Lua that raises errors.
unsafe fn run_command(l: *mut lua_State, current: &mut Current) -> Outcome {
    let fail = |current: &mut Current, text: &[u8], counted| {
        current.error.clear();
        current.error.extend_from_slice(text);
        Outcome::Failed(counted)
    };
    // SAFETY: a string is not converted by reading it.
    unsafe {
        let count = ffi::lua_gettop(l);
        if count == 0 {
            let text = b"ERR Please specify at least one argument for this redis lib call";
            return fail(current, text, false);
        }
        if let Err(text) = take_words(l, count, current) {
            return fail(current, text, false);
        }
    }
    // SAFETY: no other reference to the run is in use.
    let run = unsafe { current.run() };
    match run.call(current.argv.view(), current.resp3) {
        Called::Replied => Outcome::Replied,
        Called::Refused(error) => {
            run.count_error(&error);
            fail(current, error.as_bytes(), true)
        }
        Called::Ended => Outcome::Ended,
    }
}

/// Copies the arguments as the words of a command. The error says why they cannot be words.
unsafe fn take_words(
    l: *mut lua_State,
    count: c_int,
    current: &mut Current,
) -> Result<(), &'static [u8]> {
    current.argv.clear();
    // SAFETY: a string is not converted by reading it.
    unsafe {
        // They are copied, and the copies are not in Lua's memory: one long string may be named
        // often.
        let limit = current.run().memory_limit();
        let mut size = 0usize;
        for index in 1..=count {
            let Some(text) = argument(l, index, &mut current.digits) else {
                return Err(b"ERR Lua redis lib command arguments must be strings or integers");
            };
            size = size.saturating_add(text.len());
            if limit > 0 && size > limit {
                return Err(b"ERR not enough memory for the arguments");
            }
            current.argv.push(text);
        }
    }
    Ok(())
}

/// An argument as a word of a command, if it can be one; a number is written to `digits`.
unsafe fn argument(l: *mut lua_State, index: c_int, digits: &mut Vec<u8>) -> Option<&[u8]> {
    // SAFETY: a string is not converted by reading it.
    unsafe {
        match ffi::lua_type(l, index) {
            ffi::LUA_TSTRING => Some(bytes(l, index)),
            ffi::LUA_TNUMBER => {
                digits.clear();
                write_number(digits, ffi::lua_tonumber(l, index));
                Some(digits)
            }
            _ => None,
        }
    }
}

/// A number as a command gets it.
fn write_number(output: &mut Vec<u8>, value: f64) {
    /// 2 to the 62nd. Redis writes no larger number as an integer.
    const LARGEST: f64 = 4_611_686_018_427_387_904.0;
    let whole = value as i64;
    if whole as f64 == value && value.abs() <= LARGEST {
        num::write_i64(output, whole);
    } else if value.is_nan() {
        output.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    } else {
        num::write_f64(output, value);
    }
}

/// `redis.log(level, message, ...)`
unsafe extern "C-unwind" fn log(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; the text is put together in the script's own buffer.
    unsafe {
        let count = ffi::lua_gettop(l);
        if count < 2 {
            raise(l, b"ERR redis.log() requires two arguments or more.");
        }
        if ffi::lua_isnumber(l, 1) == 0 {
            raise(l, b"ERR First argument must be a number (log level).");
        }
        let level = match ffi::lua_tonumber(l, 1) as i64 {
            0 => LogLevel::Debug,
            1 => LogLevel::Verbose,
            2 => LogLevel::Notice,
            3 => LogLevel::Warning,
            _ => raise(l, b"ERR Invalid log level."),
        };
        for index in 2..=count {
            // A number becomes a string where it lies.
            ffi::lua_tolstring(l, index, std::ptr::null_mut());
        }
        // A library that is being loaded logs nothing.
        let Some(current) = current() else { return 0 };
        current.digits.clear();
        for index in 2..=count {
            if ffi::lua_type(l, index) == ffi::LUA_TSTRING {
                if index > 2 {
                    current.digits.push(b' ');
                }
                current.digits.extend_from_slice(bytes(l, index));
            }
        }
        current.run().log(level, &String::from_utf8_lossy(&current.digits));
    }
    0
}

/// `redis.sha1hex(value)`
unsafe extern "C-unwind" fn sha1hex(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        if ffi::lua_gettop(l) != 1 {
            raise(l, b"ERR wrong number of arguments");
        }
        let sha = match ffi::lua_isstring(l, 1) {
            0 => sha_of(b""),
            _ => sha_of(bytes(l, 1)),
        };
        push(l, &sha);
    }
    1
}

/// `redis.error_reply(text)`
unsafe extern "C-unwind" fn error_reply(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; the text is put together as a string of Lua.
    unsafe {
        if !is_one_string(l) {
            return 1;
        }
        let text = bytes(l, 1);
        let text = text.strip_prefix(b"-").unwrap_or(text);
        let text = without_line_ends(text);
        ffi::lua_createtable(l, 0, 1);
        if text.contains(&b' ') {
            push(l, text);
        } else {
            push(l, b"ERR ");
            push(l, text);
            ffi::lua_concat(l, 2);
        }
        set_raw_field(l, 2, c"err");
    }
    1
}

/// `redis.status_reply(text)`
unsafe extern "C-unwind" fn status_reply(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        if !is_one_string(l) {
            return 1;
        }
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_pushvalue(l, 1);
        set_raw_field(l, 2, c"ok");
    }
    1
}

/// Whether there is exactly one argument, a string; if not, pushes an error.
unsafe fn is_one_string(l: *mut lua_State) -> bool {
    // SAFETY: Lua has called the caller of this.
    unsafe {
        if ffi::lua_gettop(l) == 1 && ffi::lua_type(l, 1) == ffi::LUA_TSTRING {
            return true;
        }
        push_error(l, b"ERR wrong number or type of arguments", false);
    }
    false
}

/// `redis.setresp(version)`
unsafe extern "C-unwind" fn setresp(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        let current = script(l);
        if ffi::lua_gettop(l) != 1 {
            raise(l, b"ERR redis.setresp() requires one argument.");
        }
        current.resp3 = match ffi::lua_tonumber(l, 1) as i64 {
            2 => false,
            3 => true,
            _ => raise(l, b"ERR RESP version must be 2 or 3."),
        };
    }
    0
}

/// `redis.set_repl(where)`
unsafe extern "C-unwind" fn set_repl(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here.
    unsafe {
        let current = script(l);
        if ffi::lua_gettop(l) != 1 {
            raise(l, b"ERR redis.set_repl() requires one argument.");
        }
        let wanted = ffi::lua_tonumber(l, 1) as i64;
        let Some(wanted) =
            u32::try_from(wanted).ok().filter(|own| own & !(JOURNAL | REPLICAS) == 0)
        else {
            raise(
                l,
                b"ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
            )
        };
        current.run().set_journals(wanted & JOURNAL != 0);
    }
    0
}

/// `redis.replicate_commands()`
unsafe extern "C-unwind" fn replicate_commands(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { ffi::lua_pushboolean(l, 1) };
    1
}

/// `redis.breakpoint()`: there is no debugger.
unsafe extern "C-unwind" fn breakpoint(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { ffi::lua_pushboolean(l, 0) };
    1
}

/// A text without line ends at its beginning and end.
fn without_line_ends(text: &[u8]) -> &[u8] {
    let inner = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    let begin = text.iter().position(inner).unwrap_or(text.len());
    let end = text.iter().rposition(inner).map_or(begin, |last| last + 1);
    &text[begin..end]
}

/// `redis.debug(...)`: there is no debugger.
unsafe extern "C-unwind" fn debug(_: *mut lua_State) -> c_int {
    0
}

/// `redis.acl_check_cmd(command, ...)`
unsafe extern "C-unwind" fn acl_check_cmd(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; nothing is owned here while an error is raised.
    unsafe {
        let current = script(l);
        let count = ffi::lua_gettop(l);
        if count == 0 {
            raise(l, b"ERR Please specify at least one argument for this redis lib call");
        }
        if let Err(text) = take_words(l, count, current) {
            raise(l, text);
        }
        let run = current.run();
        match run.check_command(current.argv.view()) {
            Ok(allowed) => ffi::lua_pushboolean(l, c_int::from(allowed)),
            Err(line) => raise(l, line.as_bytes()),
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_reference_does() {
        for (value, expected) in [
            (3.5, "3.5"),
            (1e20, "1e+20"),
            (100.0, "100"),
            (0.1, "0.1"),
            (-0.0, "0"),
            (f64::INFINITY, "inf"),
            (-f64::NAN, "-nan"),
            (12_345_678_901_234_567.0, "12345678901234568"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (4_611_686_018_427_388_928.0, "4611686018427389000"),
            (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
            (-9_223_372_036_854_775_808.0, "-9223372036854776000"),
            (9e18, "9e+18"),
        ] {
            let mut text = Vec::new();
            write_number(&mut text, value);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
        assert_eq!(version_number(), 0x08_0002);
    }
}
