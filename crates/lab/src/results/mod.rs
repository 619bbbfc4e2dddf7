//! What experiments saw: the file that reports and comparisons are made from, the figures that are
//! read out of it, and when two of them differ.

mod difference;
pub mod figure;
mod file;
mod finite;
mod model;
mod summary;

pub(crate) use difference::least_share;
pub use difference::{Contrast, Difference, ENOUGH_RUNS, FEW_RUNS_SHARE, LEAST_SHARE, Observation};
pub use figure::{Better, Figure, Unit};
pub use file::{FORMAT, FileError};
pub use model::{
    AgentClock, Check, Event, ExperimentResult, Knee, KneeStep, LoadRecording, Machine, Results,
    Run, Sample, Skipped, TargetInfo,
};
pub use summary::Summary;
