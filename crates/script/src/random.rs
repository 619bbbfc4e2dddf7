//! `math.random`: the numbers of POSIX's `lrand48`, so that a seed gives the same numbers
//! everywhere.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::raw::c_int;

use mlua::ffi::{self, lua_State};

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0x1234_abcd_330e) };
}

/// The greatest number; numbers are taken modulo it.
const MODULUS: u64 = i32::MAX as u64;

fn next() -> u64 {
    STATE.with(|state| {
        let next = state.get().wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & 0xffff_ffff_ffff;
        state.set(next);
        next >> 17
    })
}

/// `math.random([low,] [high])`. The bounds are integers of 32 bits, as in Redis: others lose their
/// higher bits, and the size of an interval overflows.
///
/// # Safety
/// Lua calls it.
pub(crate) unsafe extern "C-unwind" fn random(l: *mut lua_State) -> c_int {
    let fraction = (next() % MODULUS) as f64 / MODULUS as f64;
    // SAFETY: the arguments are checked as Lua's own functions check them; nothing is owned here.
    unsafe {
        let (low, high) = match ffi::lua_gettop(l) {
            0 => {
                ffi::lua_pushnumber(l, fraction);
                return 1;
            }
            1 => {
                let high = ffi::luaL_checkinteger(l, 1) as i32;
                ffi::luaL_argcheck(l, c_int::from(high >= 1), 1, c"interval is empty".as_ptr());
                (1, high)
            }
            2 => {
                let low = ffi::luaL_checkinteger(l, 1) as i32;
                let high = ffi::luaL_checkinteger(l, 2) as i32;
                ffi::luaL_argcheck(l, c_int::from(low <= high), 2, c"interval is empty".as_ptr());
                (low, high)
            }
            _ => return ffi::luaL_error(l, c"wrong number of arguments".as_ptr()),
        };
        let count = f64::from(high.wrapping_sub(low).wrapping_add(1));
        ffi::lua_pushnumber(l, (fraction * count).floor() + f64::from(low));
    }
    1
}

/// `math.randomseed(seed)`
///
/// # Safety
/// Lua calls it.
pub(crate) unsafe extern "C-unwind" fn randomseed(l: *mut lua_State) -> c_int {
    // SAFETY: the argument is checked; nothing is owned here.
    let seed = unsafe { ffi::luaL_checkinteger(l, 1) };
    STATE.with(|state| state.set((u64::from(seed as u32) << 16) + 0x330e));
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_numbers_of_posix() {
        STATE.with(|state| state.set((7 << 16) + 0x330e));
        let fraction = (next() % MODULUS) as f64 / MODULUS as f64;
        assert_eq!((fraction * 100.0).floor() + 1.0, 27.0, "as the reference has it");
    }
}
