//! What state the files of data are in, as the host reports it: saving, the append-only file, and
//! loading.

pub mod append_only;
pub(crate) mod progress;
pub mod saving;
