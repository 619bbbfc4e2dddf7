//! A cluster of servers: who owns which slots, as etcd has it, and what each server does about it.
//!
//! [`topology`] is the picture that all nodes share, [`keys`] says which keys of etcd it is made
//! of, and [`store`] is what a client of etcd is asked to do. [`control`] is the machine in each
//! node that decides: events go in, actions come out. There is no socket, no clock and no thread
//! in it, so a simulation drives the same code as a server.

pub mod control;
pub mod ids;
pub mod keys;
pub mod plan;
pub mod rebuild;
#[cfg(test)]
mod simulation;
pub mod slots;
pub mod store;
mod texts;
pub mod topology;
