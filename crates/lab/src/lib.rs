//! The lab: it loads a server, breaks it on purpose, records what its users would have felt, and
//! writes a report.
//!
//! In the order of their use: [`load`] defines and sends loads, and [`record`] is the recording of
//! one load. [`targets`] are the servers, [`experiment`] runs loads and breaks servers, and
//! [`check`] looks for writes that were lost meanwhile. [`results`] has the recordings of all loads
//! of all experiments, [`report`] shows them to people, and [`compare`] shows what changed since
//! the last time. [`command`] is `dunlin lab`.

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
