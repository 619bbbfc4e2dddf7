//! Load: what is sent, how fast, to whom.

mod plan;

pub use plan::{
    Address, HttpRequest, HttpWork, Keys, Operation, Pace, Plan, RespWork, Schedule, Size, Work,
};
