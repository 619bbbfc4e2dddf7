//! Worlds with a primary and its replicas, each on a machine of its own, on a network that is slow,
//! silent and cut at times.
//!
//! A world is a row of acts (`plan.rs`). In each of them clients work on the primary and read on
//! its replicas, while links break and replicas end and start again. An act ends with the primary:
//! it goes on, starts again, hands over, or another one is promoted in its place (`conduct.rs`).
//! What clients were assured of must be there then (`../storm/judge.rs`), and when all is calm all
//! servers have the same data. `clients.rs` is what runs in the world besides the servers.

pub(crate) mod clients;
#[cfg(target_arch = "x86_64")]
mod conduct;
#[cfg(target_arch = "x86_64")]
mod plan;

#[cfg(target_arch = "x86_64")]
pub(crate) use conduct::{Told, play};
