//! The libraries that a script finds in Lua besides Lua's own: `cjson`, `cmsgpack`, `struct` and `bit`,
//! which answer byte for byte as those of Redis 8.0; and functions in the place of those of Lua's own that
//! could take a script's thread down, or outrun its time.
//!
//! They are functions of Lua's C interface rather than of `mlua`'s, which makes a reference of every
//! argument: a call costs what a function in C costs. `stack.rs` is the one file that talks to that
//! interface, and says what the others must keep to.

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
