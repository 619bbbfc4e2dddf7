//! How a thread reads the data of one instant while others change it.

pub mod cut;
pub(crate) mod cut_memory;
pub mod freeze;
pub(crate) mod frozen_text;
