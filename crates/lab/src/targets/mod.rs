//! The servers that are measured: what they are, how they start and end, and what they use.
//!
//! | file | what it answers |
//! |---|---|
//! | `target`, `kinds` | what is a target, and which servers does the lab know? |
//! | `server`, `member` | how does a target start, answer, restart and end, and each process of it? |
//! | [`process`], `tree` | what is its process, and what do it and its children use? |
//! | [`connection`] | how does the lab talk to it beside the load? |
//! | `directory`, `cpus` | where does it keep its data, and on which processors does it run? |
//! | `copied` | do its replicas have what was written? |
//! | `shards` | how do processes become a cluster, and who is primary in it? |
//! | `tool` | how does the lab use tools as a user would? |
//! | `proxy` | how is the way to it cut? |
//! | `cgroup` | how is it limited to less than the machine has? |
//! | [`interrupt`] | how does all of this end when a user interrupts the lab? |
//!
//! It imports nothing of the experiments, the load or the report.

pub(crate) mod cgroup;
pub mod connection;
mod copied;
pub(crate) mod cpus;
pub(crate) mod directory;
pub mod interrupt;
pub(crate) mod kinds;
mod member;
pub mod process;
pub(crate) mod proxy;
pub(crate) mod server;
pub(crate) mod shards;
pub mod target;
pub(crate) mod tool;
pub(crate) mod tree;

pub use interrupt::Interrupt;
pub use target::{Limits, Origin, Probe, Target};
