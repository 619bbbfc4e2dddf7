//! Lua's stack as the functions of a library see it.
//!
//! Lua ends a function that fails by a jump to the code that catches the error, past everything in
//! between. Nearly every call may fail: any allocation does when memory is short. Nothing is
//! dropped on that jump. So the rule of this crate: **a function that has a [`Stack`] has nothing
//! that must be dropped**, no vector, no box, no lock. Data that grows lies in memory of Lua's, see
//! `output.rs`. The ABI `C-unwind` allows a jump over frames without destructors.
//!
//! The other rules are Lua's own: an index names a value that is there (checked when debug
//! assertions are on), and a function has twenty free places besides its arguments,
//! [`Stack::reserve`] more.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::{self, Write};
use std::marker::PhantomData;
use std::ptr;

use mlua::ffi;

/// The most values on Lua's stack for one function in C.
pub(crate) const VALUES_MAX: usize = 8000;

/// Steps of work after which the script's watcher is asked: about a millisecond.
const WORK_UNWATCHED: usize = 1 << 17;

thread_local! {
    /// Steps of this thread since then.
    static WORK: Cell<usize> = const { Cell::new(0) };
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No value at all: after the last argument.
    None,
    Nil,
    Boolean,
    /// A bare pointer. JSON's null is the null pointer.
    Pointer,
    Number,
    String,
    Table,
    /// Functions, threads and userdata, which no library takes.
    Other,
}

/// Lua's stack during one call of a function.
#[derive(Clone, Copy)]
pub(crate) struct Stack<'call> {
    state: *mut ffi::lua_State,
    call: PhantomData<&'call ()>,
}

/// A function of a library: takes arguments from the stack, and returns how many results are on its
/// top.
pub(crate) type Function = ffi::lua_CFunction;

/// The function that Lua calls for `function`, which must be a plain function.
pub(crate) const fn function<F>(_: F) -> Function
where
    F: Fn(Stack<'_>) -> c_int + Copy,
{
    const { assert!(size_of::<F>() == 0, "the function is known by its type alone") };
    called_by_lua::<F>
}

unsafe extern "C-unwind" fn called_by_lua<F>(state: *mut ffi::lua_State) -> c_int
where
    F: Fn(Stack<'_>) -> c_int + Copy,
{
    // SAFETY: the type has no size, so there is nothing to read, and `function` was given a value
    // of it.
    let function = unsafe { ptr::read(ptr::dangling::<F>()) };
    function(Stack { state, call: PhantomData })
}

/// Runs `action` with the stack of an interpreter, as if Lua had called it.
pub(crate) fn enter(lua: &mlua::Lua, action: fn(Stack<'_>)) -> mlua::Result<()> {
    // SAFETY: it runs protected, and owns nothing: it is a plain function.
    unsafe { lua.exec_raw((), |state| action(Stack { state, call: PhantomData })) }
}

impl<'call> Stack<'call> {
    /// Whether an index names a value, or the place of an argument.
    fn is_there(self, index: c_int) -> bool {
        let top = self.top();
        index > 0 && index <= top || index < 0 && -index <= top
    }

    /// How many values are on the stack.
    pub(crate) fn top(self) -> c_int {
        // SAFETY: the state is that of a running call.
        unsafe { ffi::lua_gettop(self.state) }
    }

    /// Leaves `top` values, or fills up to that many with nil.
    pub(crate) fn set_top(self, top: c_int) {
        debug_assert!(top >= 0 && top - self.top() < 20);
        // SAFETY: as said.
        unsafe { ffi::lua_settop(self.state, top) }
    }

    /// Makes sure of `count` free places, if Lua has them.
    #[must_use]
    pub(crate) fn reserve(self, count: c_int) -> bool {
        // SAFETY: any number may be asked for.
        unsafe { ffi::lua_checkstack(self.state, count) != 0 }
    }

    /// Makes sure of `count` free places, or fails.
    pub(crate) fn need(self, count: c_int, why: &str) {
        if !self.reserve(count) {
            self.fail(format_args!("stack overflow ({why})"))
        }
    }

    pub(crate) fn pop(self, count: c_int) {
        debug_assert!(count <= self.top());
        // SAFETY: that many are there.
        unsafe { ffi::lua_settop(self.state, -count - 1) }
    }

    /// The type of a value, or of an argument that may be missing.
    pub(crate) fn kind(self, index: c_int) -> Kind {
        debug_assert!(index > 0 || self.is_there(index));
        // SAFETY: a positive index may be past the top, others are checked.
        match unsafe { ffi::lua_type(self.state, index) } {
            ffi::LUA_TNONE => Kind::None,
            ffi::LUA_TNIL => Kind::Nil,
            ffi::LUA_TBOOLEAN => Kind::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Kind::Pointer,
            ffi::LUA_TNUMBER => Kind::Number,
            ffi::LUA_TSTRING => Kind::String,
            ffi::LUA_TTABLE => Kind::Table,
            _ => Kind::Other,
        }
    }

    /// Lua's name for the type of a value.
    pub(crate) fn kind_name(self, index: c_int) -> &'static str {
        debug_assert!(self.is_there(index));
        // SAFETY: the names are constants of Lua's, in ASCII.
        unsafe {
            let name = ffi::lua_typename(self.state, ffi::lua_type(self.state, index));
            CStr::from_ptr(name).to_str().unwrap_or_default()
        }
    }

    /// The number that a value is, or that a string spells; 0 if it is neither.
    pub(crate) fn number(self, index: c_int) -> f64 {
        // SAFETY: a missing value has no number.
        unsafe { ffi::lua_tonumber(self.state, index) }
    }

    /// Whether a value is a number, or a string that spells one.
    pub(crate) fn is_number(self, index: c_int) -> bool {
        // SAFETY: a missing value is not a number.
        unsafe { ffi::lua_isnumber(self.state, index) != 0 }
    }

    pub(crate) fn boolean(self, index: c_int) -> bool {
        debug_assert!(self.is_there(index));
        // SAFETY: the value is there.
        unsafe { ffi::lua_toboolean(self.state, index) != 0 }
    }

    pub(crate) fn is_null(self, index: c_int) -> bool {
        debug_assert!(self.kind(index) == Kind::Pointer);
        // SAFETY: the value is there.
        unsafe { ffi::lua_touserdata(self.state, index).is_null() }
    }

    /// The bytes of a string. They live as long as the string is on the stack.
    pub(crate) fn bytes(self, index: c_int) -> &'call [u8] {
        // A number would be replaced by a string, which confuses a walk over a table.
        debug_assert!(self.kind(index) == Kind::String);
        let mut length = 0;
        // SAFETY: a string is there, and has that many bytes.
        unsafe {
            let start = ffi::lua_tolstring(self.state, index, &mut length);
            std::slice::from_raw_parts(start.cast(), length)
        }
    }

    /// The bytes of a string or a number, which becomes a string where it lies. They live as long
    /// as it is on the stack.
    pub(crate) fn text(self, index: c_int) -> &'call [u8] {
        debug_assert!(matches!(self.kind(index), Kind::String | Kind::Number));
        let mut length = 0;
        // SAFETY: the result is a string of that many bytes.
        unsafe {
            let start = ffi::lua_tolstring(self.state, index, &mut length);
            std::slice::from_raw_parts(start.cast(), length)
        }
    }

    /// The `#` of a table or a string.
    pub(crate) fn length(self, index: c_int) -> usize {
        debug_assert!(self.is_there(index));
        // SAFETY: the value is there.
        unsafe { ffi::lua_objlen(self.state, index) }
    }

    // Arguments. Errors are like those of Lua's own libraries.

    /// An argument that is a string or a number. It becomes a string, which stays on the stack.
    pub(crate) fn argument_bytes(self, index: c_int) -> &'call [u8] {
        let mut length = 0;
        // SAFETY: the result is a string of that many bytes.
        unsafe {
            let start = ffi::luaL_checklstring(self.state, index, &mut length);
            std::slice::from_raw_parts(start.cast(), length)
        }
    }

    pub(crate) fn argument_number(self, index: c_int) -> f64 {
        // SAFETY: arguments may be missing.
        unsafe { ffi::luaL_checknumber(self.state, index) }
    }

    pub(crate) fn argument_integer(self, index: c_int) -> i64 {
        // SAFETY: arguments may be missing.
        unsafe { ffi::luaL_checkinteger(self.state, index) as i64 }
    }

    pub(crate) fn argument_integer_or(self, index: c_int, usual: i64) -> i64 {
        // SAFETY: arguments may be missing.
        unsafe { ffi::luaL_optinteger(self.state, index, usual as ffi::lua_Integer) as i64 }
    }

    /// An argument that has to be a table.
    pub(crate) fn argument_table(self, index: c_int) {
        if self.kind(index) != Kind::Table {
            self.fail_type(index, c"table");
        }
    }

    /// An argument that has to be a function.
    pub(crate) fn argument_function(self, index: c_int) {
        if !self.is_function(index) {
            self.fail_type(index, c"function");
        }
    }

    // Calling.

    /// Notes that this many steps of work were done. After many of them the script's watcher is
    /// asked whether it may go on, as between instructions: one call may be the work of minutes.
    #[inline]
    pub(crate) fn work(self, steps: usize) {
        let done = WORK.get().saturating_add(steps);
        WORK.set(done);
        if done >= WORK_UNWATCHED {
            self.ask();
        }
    }

    /// Asks the script's watcher whether it may go on.
    #[cold]
    pub(crate) fn ask(self) {
        WORK.set(0);
        // SAFETY: the hook is one that Lua calls, which looks at nothing but the state.
        unsafe {
            if let Some(hook) = ffi::lua_gethook(self.state) {
                let mut about = std::mem::MaybeUninit::<ffi::lua_Debug>::zeroed();
                hook(self.state, about.as_mut_ptr());
            }
        }
    }

    /// Whether a value is a function.
    pub(crate) fn is_function(self, index: c_int) -> bool {
        // SAFETY: a positive index may be past the top, others are checked.
        unsafe { ffi::lua_type(self.state, index) == ffi::LUA_TFUNCTION }
    }

    /// Pops a function and `count` arguments above it, and pushes the one result of the call.
    pub(crate) fn call(self, count: c_int) {
        debug_assert!(count < self.top());
        // SAFETY: they are there.
        unsafe {
            // The instructions of a function in C are not counted, and it may be called a million
            // times.
            if ffi::lua_iscfunction(self.state, -1 - count) != 0 {
                self.ask();
            }
            ffi::lua_call(self.state, count, 1);
        }
    }

    /// Pops a key, and pushes its value in a table, or in its metatable.
    pub(crate) fn look_up(self, table: c_int) {
        debug_assert!(self.kind(table) == Kind::Table);
        // SAFETY: the table and the key are there, and a place is free.
        unsafe {
            if ffi::lua_getmetatable(self.state, table) != 0 {
                // It may have such a function.
                self.pop(1);
                self.ask();
            }
            ffi::lua_gettable_(self.state, table);
        }
    }

    /// Whether a value is less than another, as `<` compares.
    pub(crate) fn is_less(self, one: c_int, other: c_int) -> bool {
        debug_assert!(self.is_there(one) && self.is_there(other));
        // SAFETY: both are there.
        unsafe { ffi::lua_lessthan(self.state, one, other) != 0 }
    }

    // Failing.

    /// Raises an error, with the place in the script before it.
    pub(crate) fn fail(self, message: fmt::Arguments<'_>) -> ! {
        let mut text = Text::default();
        // Text that does not fit is left out.
        let _cut = text.write_fmt(message);
        // SAFETY: the text ends with a zero byte, since one is always left of the room. Lua makes
        // the places that it needs for a message itself.
        unsafe {
            ffi::luaL_error(self.state, c"%s".as_ptr(), text.bytes.as_ptr().cast::<c_char>());
            ffi::lua_error(self.state)
        }
    }

    /// Raises the error that an argument is wrong.
    pub(crate) fn fail_argument(self, index: c_int, message: fmt::Arguments<'_>) -> ! {
        let mut text = Text::default();
        let _cut = text.write_fmt(message);
        // SAFETY: the text ends with a zero byte, since one is always left of the room.
        unsafe {
            ffi::luaL_argerror(self.state, index, text.bytes.as_ptr().cast());
            ffi::lua_error(self.state)
        }
    }

    /// Raises the error that an argument is not one of its possible words.
    pub(crate) fn fail_option(self, index: c_int, word: &[u8]) -> ! {
        // SAFETY: there are places for the message, which a format of Lua's makes of bytes.
        unsafe {
            self.push_bytes(word);
            let word = ffi::lua_tolstring(self.state, -1, ptr::null_mut());
            let message = ffi::lua_pushfstring(self.state, c"invalid option '%s'".as_ptr(), word);
            ffi::luaL_argerror(self.state, index, message);
            ffi::lua_error(self.state)
        }
    }

    /// Raises the error that there is something wrong with a letter in an argument. The format has
    /// one `%c` in it.
    pub(crate) fn fail_letter(self, index: c_int, format: &'static CStr, letter: u8) -> ! {
        // SAFETY: there is a place for the message, which Lua makes of the format and the letter.
        unsafe {
            let letter = c_int::from(letter);
            let message = ffi::lua_pushfstring(self.state, format.as_ptr(), letter);
            ffi::luaL_argerror(self.state, index, message);
            ffi::lua_error(self.state)
        }
    }

    /// Raises the error that an argument is of another type.
    pub(crate) fn fail_type(self, index: c_int, expected: &CStr) -> ! {
        // SAFETY: the name is a C string.
        unsafe {
            ffi::luaL_typerror(self.state, index, expected.as_ptr());
            ffi::lua_error(self.state)
        }
    }

    // Pushing.

    pub(crate) fn push_nil(self) {
        // SAFETY: a place is free, as for all that follow.
        unsafe { ffi::lua_pushnil(self.state) }
    }

    pub(crate) fn push_boolean(self, value: bool) {
        // SAFETY: see `push_nil`.
        unsafe { ffi::lua_pushboolean(self.state, c_int::from(value)) }
    }

    pub(crate) fn push_number(self, value: f64) {
        // SAFETY: see `push_nil`.
        unsafe { ffi::lua_pushnumber(self.state, value) }
    }

    pub(crate) fn push_null(self) {
        // SAFETY: see `push_nil`.
        unsafe { ffi::lua_pushlightuserdata(self.state, ptr::null_mut()) }
    }

    pub(crate) fn push_bytes(self, bytes: &[u8]) {
        // SAFETY: see `push_nil`; Lua copies the bytes.
        unsafe {
            ffi::lua_pushlstring_(self.state, bytes.as_ptr().cast(), bytes.len());
        }
    }

    pub(crate) fn push_table(self) {
        // SAFETY: see `push_nil`.
        unsafe { ffi::lua_createtable(self.state, 0, 0) }
    }

    /// Pushes a copy of a value.
    pub(crate) fn push_copy(self, index: c_int) {
        debug_assert!(self.is_there(index));
        // SAFETY: the value is there; see `push_nil`.
        unsafe { ffi::lua_pushvalue(self.state, index) }
    }

    /// Pushes `size` bytes of Lua's memory, which are not initialised, and live while they are on
    /// the stack.
    pub(crate) fn push_memory(self, size: usize) -> *mut u8 {
        // SAFETY: see `push_nil`.
        unsafe { ffi::lua_newuserdata(self.state, size).cast() }
    }

    /// Pushes `size` zero bytes of Lua's memory to write to. They live while they are on the stack.
    pub(crate) fn push_room(self, size: usize) -> &'call mut [u8] {
        let start = self.push_memory(size);
        // SAFETY: the memory has this size, is new, and is initialised here; Lua never looks into
        // it.
        unsafe {
            ptr::write_bytes(start, 0, size);
            std::slice::from_raw_parts_mut(start, size)
        }
    }

    /// Removes a value, and moves those above it one down.
    pub(crate) fn remove(self, index: c_int) {
        debug_assert!(self.is_there(index));
        // SAFETY: the value is there.
        unsafe { ffi::lua_remove(self.state, index) }
    }

    /// Replaces the value at an index by the one on top.
    pub(crate) fn replace(self, index: c_int) {
        debug_assert!(self.is_there(index));
        // SAFETY: both are there.
        unsafe { ffi::lua_replace(self.state, index) }
    }

    /// Moves the value on top to an index, and those from there one up.
    pub(crate) fn insert(self, index: c_int) {
        debug_assert!(self.is_there(index));
        // SAFETY: both are there.
        unsafe { ffi::lua_insert(self.state, index) }
    }

    // Tables. No metamethod is called.

    /// Pops a key, and pushes the next one and its value, or nothing at the end.
    pub(crate) fn next(self, table: c_int) -> bool {
        debug_assert!(self.kind(table) == Kind::Table);
        // SAFETY: the table and the key are there, and a place is free.
        unsafe { ffi::lua_next(self.state, table) != 0 }
    }

    /// Pushes an element of a table.
    pub(crate) fn push_element(self, table: c_int, index: c_int) {
        debug_assert!(self.kind(table) == Kind::Table);
        // SAFETY: the table is there, and a place is free.
        unsafe {
            ffi::lua_rawgeti_(self.state, table, index);
        }
    }

    /// Pops a value, and sets an element of a table to it.
    pub(crate) fn set_element(self, table: c_int, index: c_int) {
        debug_assert!(self.kind(table) == Kind::Table);
        // SAFETY: the table and the value are there.
        unsafe { ffi::lua_rawseti_(self.state, table, index) }
    }

    /// Pops a key and a value above it, and sets the field of a table.
    pub(crate) fn set(self, table: c_int) {
        debug_assert!(self.kind(table) == Kind::Table);
        // SAFETY: the table, the key and the value are there.
        unsafe { ffi::lua_rawset(self.state, table) }
    }

    /// Pushes a global.
    pub(crate) fn push_global(self, name: &CStr) {
        // SAFETY: a place is free, and the name is a C string.
        unsafe { ffi::lua_getfield_(self.state, ffi::LUA_GLOBALSINDEX, name.as_ptr()) }
    }

    /// Pops a value, and sets the global of that name to it.
    pub(crate) fn set_global(self, name: &CStr) {
        // SAFETY: the value is there, and the name is a C string.
        unsafe { ffi::lua_setfield(self.state, ffi::LUA_GLOBALSINDEX, name.as_ptr()) }
    }

    /// Puts functions into the table on top of the stack. Each shares the `shared` values above it,
    /// which are popped.
    pub(crate) fn set_functions(self, functions: &[(&CStr, Function)], shared: c_int) {
        debug_assert!(self.kind(-1 - shared) == Kind::Table);
        for (name, function) in functions {
            for _ in 0..shared {
                self.push_copy(-shared);
            }
            // SAFETY: that many values are on top, and the table is below the shared ones.
            unsafe {
                ffi::lua_pushcclosure(self.state, *function, shared);
                ffi::lua_setfield(self.state, -2 - shared, name.as_ptr());
            }
        }
        self.pop(shared);
    }

    /// Pops a value, and sets a field of the table below it.
    pub(crate) fn set_field(self, name: &CStr) {
        debug_assert!(self.kind(-2) == Kind::Table);
        // SAFETY: the table and the value are there.
        unsafe { ffi::lua_setfield(self.state, -2, name.as_ptr()) }
    }

    /// Sets a field of the table on top of the stack to a string.
    pub(crate) fn set_text(self, name: &CStr, text: &str) {
        self.push_bytes(text.as_bytes());
        self.set_field(name);
    }

    // A value that a function keeps.

    /// Pops `count` values, and pushes a function that keeps them.
    pub(crate) fn push_closure(self, function: Function, count: c_int) {
        debug_assert!(count <= self.top());
        // SAFETY: the values are there.
        unsafe { ffi::lua_pushcclosure(self.state, function, count) }
    }

    /// Pushes a copy of a value that the running function keeps.
    pub(crate) fn push_upvalue(self, number: c_int) {
        // SAFETY: a missing value is nil; see `push_nil`.
        unsafe { ffi::lua_pushvalue(self.state, ffi::lua_upvalueindex(number)) }
    }

    /// Pops a value, which the running function keeps from now on in place of another.
    pub(crate) fn replace_upvalue(self, number: c_int) {
        debug_assert!(self.top() > 0);
        // SAFETY: the value is there, and the function keeps that many.
        unsafe { ffi::lua_replace(self.state, ffi::lua_upvalueindex(number)) }
    }

    // Data that functions of one library share.

    /// Pushes a value that functions share, see [`Stack::set_functions`].
    pub(crate) fn push_shared<T: Copy>(self, value: T) {
        const { assert!(align_of::<T>() <= 8, "Lua's memory is aligned for a number") };
        let place = self.push_memory(size_of::<T>()).cast::<T>();
        // SAFETY: the memory is as large as the value, and aligned.
        unsafe { place.write(value) }
    }

    /// A copy of the value that was shared first with the running function. It must be a `T`.
    pub(crate) fn shared<T: Copy>(self) -> T {
        // SAFETY: `push_shared` has written it, and scripts cannot reach data that functions share.
        unsafe { self.shared_index().cast::<T>().read() }
    }

    /// Changes the shared value.
    pub(crate) fn set_shared<T: Copy>(self, value: T) {
        // SAFETY: see `shared`.
        unsafe { self.shared_index().cast::<T>().write(value) }
    }

    fn shared_index(self) -> *mut std::ffi::c_void {
        // SAFETY: an index that names nothing gives the null pointer, which is refused.
        let place = unsafe { ffi::lua_touserdata(self.state, ffi::lua_upvalueindex(1)) };
        assert!(!place.is_null(), "the function shares nothing");
        place
    }
}

/// Text for an error, cut where the room ends.
struct Text {
    bytes: [u8; 256],
    length: usize,
}

impl Default for Text {
    fn default() -> Text {
        Text { bytes: [0; 256], length: 0 }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.length;
        let size = text.len().min(room);
        self.bytes[self.length..][..size].copy_from_slice(&text.as_bytes()[..size]);
        self.length += size;
        if size < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
