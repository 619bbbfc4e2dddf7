//! The lab: it loads a server, breaks it on purpose, records what its users would have felt, and
//! writes that down.
//!
//! In the order of their use: [`load`] says what is sent and sends it, [`record`] is what one load
//! saw; [`targets`] are the servers, [`experiment`] runs loads and breaks servers, and [`check`] looks for writes that were lost
//! meanwhile; [`results`] is what all loads of all experiments saw, [`report`] shows that to people,
//! and [`compare`] says what changed since the last time. [`command`] is `dunlin lab`.

pub mod agent;
pub mod bench;
pub mod check;
pub mod command;
pub mod compare;
pub mod experiment;
pub mod limit;
pub mod load;
pub mod record;
mod redact;
pub mod report;
pub mod results;
pub mod targets;
