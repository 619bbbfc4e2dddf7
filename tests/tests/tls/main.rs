//! Encrypted connections: programs of others as clients, certificates of all kinds, and streams
//! that are slow, broken or cut off.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod certificates;
mod floods;
mod house;
mod libraries;
mod links;
mod programs;
mod settings;
mod streams;
mod tools;
mod users;
mod wrong_ports;
