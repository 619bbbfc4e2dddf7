//! Load: what is sent, how fast, and where.
//!
//! A [`Plan`] is plain data; [`run`] carries it out. From the outside in: `run` starts threads and
//! adds up, `worker` is a thread's event loop, `connection` and `socket` its connections.
//! `topology` finds the node of a cluster that has a key. `template` and `render` make requests,
//! `choose` draws keys and sizes, `schedule` due times.
//! `responses` finds where answers of HTTP end, as [`resp::client`] does for RESP, `tally` counts
//! them, and `verdict` decides whether the server was measured, or the generator.

mod catalog;
mod channel;
mod check;
mod choose;
mod connection;
mod control;
pub(crate) mod descriptors;
pub(crate) mod duration;
mod error;
mod parse;
mod plan;
mod render;
mod responses;
mod run;
mod schedule;
mod sessions;
mod socket;
mod tally;
mod template;
pub(crate) mod topology;
mod usage;
pub(crate) mod verdict;
mod worker;

pub use catalog::{Opens, TESTS, Test};
pub(crate) use channel::{Channel, Encryption as SessionSettings};
pub(crate) use check::check;
pub use control::{Control, Progress};
pub use error::LoadError;
pub use parse::{Mix, ParseError, Sizes};
pub use plan::{
    Address, Encryption, HttpRequest, HttpWork, Keys, Operation, Pace, Plan, RespWork, Schedule,
    Size, Work, name_of_option,
};
pub(crate) use run::run_from;
pub use run::{idle, run};
pub(crate) use verdict::{UNSENT_COUNT, left_too_many};
