//! HTTP/1.1, as far as a key-value server speaks it: requests in, answers and JSON out.
//!
//! Nothing here reads a socket or knows a command. [`request`] finds requests in the bytes that a
//! connection has received, [`target`] takes addresses apart, [`answer`] writes answers, [`tag`]
//! reads the conditions of conditional requests, and [`weight`] what a client takes. [`json`] reads
//! the arguments of commands, and [`reply`] and [`translation`] turn their replies into what the
//! client takes.

pub mod answer;
pub mod json;
pub mod reply;
pub mod request;
pub mod tag;
pub mod target;
pub mod translation;
pub mod weight;
