//! The libraries that a script finds in Lua besides Lua's own: `cjson`, `cmsgpack`, `struct` and
//! `bit`, which answer byte for byte as those of Redis 8.0. This crate also replaces functions of
//! Lua that could crash a script's thread or outrun its time limit.
//!
//! The functions use Lua's C interface, so a call costs as much as a call of a C function. `mlua`
//! would make a reference of every argument. Only `stack.rs` talks to that interface; it states the
//! rules for the other files.

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
