//! What the engine knows of data that outlives it: the journal as a trait, what replies wait for,
//! and how saving, the append-only file and loading stand. The files themselves are the host's.

pub mod append_only;
pub mod durability;
pub mod journal;
pub mod loading;
pub mod saving;
