//! The way of a command: the checks, the locks, the handler, and what follows from it.
//!
//! | file | what it answers |
//! |---|---|
//! | `call` | what happens to a command, from its arrival to its last effect? |
//! | `plain` | what is the short way of most commands? |
//! | `admission` | may it run, and when? |
//! | `consists`, `slots` | which commands is it made of, and which slots do they name? |
//! | [`authority`] | by what right does it touch slots? |
//! | [`request`], [`turn`] | what is brought to it, and what becomes of it? |
//! | [`busy`] | who is to know that a thread is busy? |
//! | [`effects`] | what has it done besides its reply? |
//! | `pause` | what holds it back? |
//! | `noting` | what is noted of it when it has run? |
//!
//! `call`, `plain` and `admission` import every other room: this is where they meet. The other files import
//! no more than what they are made of.

mod admission;
pub mod authority;
pub mod busy;
pub(crate) mod call;
pub mod consists;
pub mod effects;
pub(crate) mod noting;
pub(crate) mod pause;
pub(crate) mod plain;
pub mod request;
pub(crate) mod slots;
pub mod turn;
