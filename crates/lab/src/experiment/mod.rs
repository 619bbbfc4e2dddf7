//! Experiments: files that say who is measured, under which load, with what done to it meanwhile.
//!
//! In reading order: [`file`] is a file as it is written, [`definition`] makes cases of it, and
//! [`suite`] runs them one after the other, each as `run` says.

pub mod bundled;
pub mod case;
pub mod connection;
mod cpus;
pub mod definition;
pub(crate) mod directory;
pub mod error;
mod events;
mod figures;
pub mod file;
mod fill;
pub mod interrupt;
mod kinds;
mod knee;
pub mod machine;
mod process;
pub mod progress;
mod run;
mod running;
mod sampler;
mod scope;
mod server;
mod storm;
pub mod suite;
mod tree;

pub use definition::{Choice, Definition};
pub use error::FileError;
pub use interrupt::Interrupt;
pub use run::Means;

/// The servers that the lab knows how to start: what files call them, and where they are.
pub fn servers() -> impl Iterator<Item = (&'static str, String)> {
    kinds::KINDS.iter().map(|kind| {
        let state = match kind.origin(&std::collections::BTreeMap::new(), None) {
            case::Origin::Command { program, .. } => program.display().to_string(),
            case::Origin::Missing(reason) => reason,
            case::Origin::Running { .. } => String::new(),
        };
        (kind.name, state)
    })
}
