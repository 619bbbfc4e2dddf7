//! A world of simulated machines, in which real programs run, as they were built, from one seed.
//!
//! A program's system calls come here instead of to the kernel (`hold.rs`), and the world answers
//! them: its clock, its network and its disks are models (`calls`, `disk.rs`), its threads run one
//! at a time, in an order that is drawn (`world.rs`). Time is virtual: when all threads wait, it
//! jumps to the next deadline. So hours pass within minutes, and the same seed gives the same run,
//! to the last call.
//!
//! No other thread runs between two system calls of a thread. `explore`, a workspace of its own,
//! tries orders there.
//!
//! It needs Linux on x86-64, and the right to hold processes, which users have for their own
//! processes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod calls;
mod disk;
mod hold;
mod memory;
mod objects;
mod outcome;
mod random;
mod trace;
mod ways;
mod weather;
mod world;

pub use objects::MachineNumber;
pub use weather::Weather;
pub use world::{ProcessNumber, Program, World};
