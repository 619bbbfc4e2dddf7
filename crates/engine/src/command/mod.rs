//! What is known of a command without running it.
//!
//! `spec` has what the server acts on. Beside it are `flags`, what is true of a command or not,
//! `key_lists`, where its keys are, and `effect`, what it does to data. `docs` has what people
//! read. A row ([`crate::engine::row`]) adds the functions that run it.

pub mod args;
mod docs;
mod effect;
pub mod error;
mod flags;
mod key_lists;
pub mod keys;
pub(crate) mod names;
mod spec;

pub use docs::*;
pub use effect::{ChangeForm, Countdown};
pub use flags::*;
pub use key_lists::*;
pub use spec::*;
