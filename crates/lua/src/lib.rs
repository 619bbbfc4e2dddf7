//! The libraries that a script finds in Lua besides Lua's own: `cjson`, `cmsgpack`, `struct` and `bit`,
//! which answer byte for byte as those of Redis 8.0. And replacements for those of Lua's own functions
//! that could crash a script's thread, or outrun its time limit.
//!
//! They are functions of Lua's C interface rather than of `mlua`'s, which makes a reference of every
//! argument: a call costs as much as that of a function in C. `stack.rs` is the one file that talks to
//! that interface; it states the rules for the others.

mod bit;
mod cjson;
mod cmsgpack;
mod levels;
pub mod libraries;
mod number;
mod output;
mod packing;
mod patterns;
mod sort;
mod stack;
mod strings;
mod tables;
