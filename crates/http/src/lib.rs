//! HTTP/1.1, as far as a key-value server speaks it: requests in, answers and JSON out.
//!
//! Nothing here reads a socket or knows a command. [`request`] finds requests in the bytes that a
//! connection has received, [`target`] takes addresses apart, [`answer`] writes answers, [`tag`]
//! reads the conditions of conditional requests, [`weight`] what a client takes, and [`json`] and [`reply`] translate between JSON
//! and the arguments and replies of commands.

pub mod answer;
pub mod json;
pub mod reply;
pub mod request;
pub mod tag;
pub mod target;
pub mod weight;
