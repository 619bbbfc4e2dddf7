//! Experiments: files that define targets, loads, and events at the targets.
//!
//! In reading order: [`file`] is a file as it is written, [`definition`] makes cases of it, and
//! [`suite`] runs them one after the other, each as `run` defines.

mod attaching;
mod backing_up;
pub mod bundled;
pub mod case;
mod clustered;
pub mod definition;
pub mod error;
mod events;
mod figures;
pub mod file;
mod fill;
mod knee;
mod lag;
pub mod machine;
mod moving;
pub mod progress;
mod run;
mod running;
mod sampler;
mod scope;
mod storm;
pub mod suite;

pub use definition::{Choice, Definition};
pub use error::FileError;
pub use run::RunEnvironment;

use crate::targets::Origin;
use crate::targets::kinds::KINDS;

/// The servers that the lab knows how to start: their names in files, and where they are.
pub fn servers() -> impl Iterator<Item = (&'static str, String)> {
    KINDS.iter().map(|kind| {
        let state = match kind.origin(&std::collections::BTreeMap::new(), None) {
            Origin::Command { program, .. } => program.display().to_string(),
            Origin::Missing(reason) => reason,
            Origin::Running { .. } => String::new(),
        };
        (kind.name, state)
    })
}
