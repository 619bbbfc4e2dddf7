//! Writes the result of a script as a reply.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::raw::c_int;

use engine::command::error::CommandError;
use engine::script::interpreter::Running;
use mlua::ffi::{self, lua_State};
use resp::reply::Reply;

use crate::stack::{before_zero, bytes, raw_field};

/// Values that are written between two looks at the clock.
const VALUES_PER_LOOK: u64 = 1 << 16;

/// Where the reply of a script goes.
pub(crate) struct Writer<'w, 'r, 'o> {
    pub(crate) run: &'w mut dyn Running,
    pub(crate) reply: &'r mut Reply<'o>,
    /// `redis.setresp(3)`
    pub(crate) resp3: bool,
    /// Values written so far.
    values: u64,
    /// A reader would get no further: all else is nil. Tables may contain themselves, or each
    /// other, many times over.
    gives_up: bool,
}

impl<'w, 'r, 'o> Writer<'w, 'r, 'o> {
    pub(crate) fn new(
        run: &'w mut dyn Running,
        reply: &'r mut Reply<'o>,
        resp3: bool,
    ) -> Writer<'w, 'r, 'o> {
        Writer { run, reply, resp3, values: 0, gives_up: false }
    }

    /// Counts a value, and looks at the clock now and then: a script may be killed while its result
    /// is written.
    fn count(&mut self) {
        self.values += 1;
        if self.values.is_multiple_of(VALUES_PER_LOOK) && !self.run.may_go_on() {
            self.gives_up = true;
        }
    }
}

/// Writes the value on top of the stack, and pops it. Errors within are counted where the commands
/// that a script called have not done so.
///
/// # Safety
/// There is a value on top. Names of fields are strings that the state keeps, so that nothing here
/// needs memory, and nothing is raised.
pub(crate) unsafe fn write(l: *mut lua_State, to: &mut Writer<'_, '_, '_>) {
    to.count();
    let (reply, resp3) = (&mut *to.reply, to.resp3);
    // SAFETY: room is checked for each level; the value stays where it is while it is read.
    unsafe {
        if to.gives_up {
            reply.null();
        } else if ffi::lua_checkstack(l, 6) == 0 {
            reply.error(b"ERR reached lua stack limit");
            to.gives_up = true;
        } else {
            let at = ffi::lua_gettop(l);
            match ffi::lua_type(l, at) {
                ffi::LUA_TSTRING => reply.bulk(bytes(l, at)),
                ffi::LUA_TBOOLEAN => match ffi::lua_toboolean(l, at) != 0 {
                    value if resp3 => reply.boolean(value),
                    true => reply.integer(1),
                    false => reply.null(),
                },
                ffi::LUA_TNUMBER => reply.integer(whole(ffi::lua_tonumber(l, at))),
                ffi::LUA_TTABLE => write_table(l, at, to),
                _ => reply.null(),
            }
            ffi::lua_settop(l, at);
        }
        ffi::lua_settop(l, -2);
    }
}

/// As the reference's processor converts: a number that is not a 64-bit integer becomes the lowest
/// one.
fn whole(value: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&value) { value as i64 } else { i64::MIN }
}

/// Leaves a field of the table at `at` on top, if the field has this type.
unsafe fn has(l: *mut lua_State, at: c_int, name: &'static CStr, kind: c_int) -> bool {
    // SAFETY: `at` is a table; there is room.
    unsafe {
        ffi::lua_settop(l, at);
        raw_field(l, at, name) == kind
    }
}

unsafe fn write_table(l: *mut lua_State, at: c_int, to: &mut Writer<'_, '_, '_>) {
    // SAFETY: as in `write`.
    unsafe {
        if has(l, at, c"err", ffi::LUA_TSTRING) {
            let line = before_zero(bytes(l, -1));
            let counted = raw_field(l, at, c"ignore_error_stats_update") == ffi::LUA_TBOOLEAN;
            if !counted {
                to.run.count_error(&CommandError::line(line.to_vec()));
            }
            to.run.note_error_reply();
            to.reply.error(line);
        } else if has(l, at, c"ok", ffi::LUA_TSTRING) {
            to.reply.simple(before_zero(bytes(l, -1)));
        } else if has(l, at, c"double", ffi::LUA_TNUMBER) {
            to.reply.double(ffi::lua_tonumber(l, -1));
        } else if has(l, at, c"map", ffi::LUA_TTABLE) {
            write_map(l, to);
        } else if has(l, at, c"set", ffi::LUA_TTABLE) {
            write_set(l, to);
        } else if has(l, at, c"big_number", ffi::LUA_TSTRING) {
            write_big_number(bytes(l, -1), to.reply);
        } else if !(has(l, at, c"verbatim_string", ffi::LUA_TTABLE) && write_verbatim(l, to.reply))
        {
            ffi::lua_settop(l, at);
            write_array(l, at, to);
        }
    }
}

/// The string stays on one line, whatever it contains.
fn write_big_number(digits: &[u8], reply: &mut Reply<'_>) {
    let one_line = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
    reply.big_number(&digits.iter().map(one_line).collect::<Vec<_>>());
}

/// The table on top.
unsafe fn write_map(l: *mut lua_State, to: &mut Writer<'_, '_, '_>) {
    let (mark, mut pairs) = (to.reply.mark(), 0);
    // SAFETY: keys are those that `lua_next` returned, and not changed: a copy of each is written.
    unsafe {
        let map = ffi::lua_gettop(l);
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, map) != 0 {
            ffi::lua_pushvalue(l, -2);
            write(l, to);
            write(l, to);
            pairs += 1;
        }
    }
    to.reply.close_map(mark, pairs);
}

unsafe fn write_set(l: *mut lua_State, to: &mut Writer<'_, '_, '_>) {
    let (mark, mut count) = (to.reply.mark(), 0);
    // SAFETY: as in `write_map`.
    unsafe {
        let set = ffi::lua_gettop(l);
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, set) != 0 {
            ffi::lua_settop(l, -2);
            ffi::lua_pushvalue(l, -1);
            write(l, to);
            count += 1;
        }
    }
    to.reply.close_set(mark, count);
}

unsafe fn write_verbatim(l: *mut lua_State, reply: &mut Reply<'_>) -> bool {
    // SAFETY: the table is on top; there is room for its fields.
    unsafe {
        let inner = ffi::lua_gettop(l);
        if raw_field(l, inner, c"format") != ffi::LUA_TSTRING
            || raw_field(l, inner, c"string") != ffi::LUA_TSTRING
        {
            return false;
        }
        let (format, text) = (bytes(l, inner + 1), bytes(l, inner + 2));
        // A string that is too short is filled up.
        let mut three = *b"   ";
        for (to, from) in three.iter_mut().zip(before_zero(format)) {
            *to = *from;
        }
        reply.verbatim(&three, text);
    }
    true
}

unsafe fn write_array(l: *mut lua_State, at: c_int, to: &mut Writer<'_, '_, '_>) {
    let (mark, mut count) = (to.reply.mark(), 0);
    // SAFETY: as in `write`.
    unsafe {
        loop {
            ffi::lua_rawgeti_(l, at, count + 1);
            if ffi::lua_type(l, -1) == ffi::LUA_TNIL {
                break;
            }
            write(l, to);
            count += 1;
        }
    }
    to.reply.close_array(mark, count as usize);
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_lose_their_fractions_and_the_rest_is_the_least_integer() {
        for (value, expected) in [
            (3.99, 3),
            (-3.99, -3),
            (1e300, i64::MIN),
            (f64::NAN, i64::MIN),
            (-9_223_372_036_854_775_808.0, i64::MIN),
            (9_007_199_254_740_993.0, 9_007_199_254_740_992),
        ] {
            assert_eq!(super::whole(value), expected);
        }
    }
}
