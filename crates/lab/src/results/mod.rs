//! What experiments saw: the file that reports and comparisons are made from.

mod model;

pub use model::{
    Check, Event, ExperimentResult, Knee, KneeStep, LoadRecording, Machine, Results, Run, Sample,
    Skipped, TargetInfo,
};
