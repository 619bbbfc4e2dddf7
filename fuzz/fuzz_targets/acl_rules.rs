//! Rules of users: no rule panics, one that is refused changes nothing, and a user is the same when
//! its line is read again.

#![no_main]

#[path = "../../crates/commands/tests/common/rules.rs"]
mod rules;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| rules::check(input));
