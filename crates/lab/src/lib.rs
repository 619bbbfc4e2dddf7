//! The lab: it loads a server, breaks it on purpose, records what its users would have felt, and
//! writes that down.
//!
//! In the order of their use: [`load`] says what is sent and sends it, [`record`] is what one load
//! saw, [`results`] what all loads of all experiments saw; [`experiment`] runs them, and [`check`] looks
//! for writes that were lost meanwhile.

pub mod agent;
pub mod bench;
pub mod check;
pub mod command;
pub mod experiment;
pub mod limit;
pub mod load;
pub mod record;
pub mod report;
pub mod results;
