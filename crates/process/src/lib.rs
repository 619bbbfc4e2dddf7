//! The process and its system: what surrounds a running server.
//!
//! | file | what it answers |
//! |---|---|
//! | [`announce`] | what does the log say when a server starts? |
//! | [`daemon`] | how does the process go into the background, and what does it leave there? |
//! | [`supervisor`] | what does the service manager give to the process, and what is it told? |
//! | [`permissions`] | who may read the files that the process makes? |
//! | [`signal`] | what may an operator ask by signal? |
//! | [`log`], [`crash`] | what does an operator read, while all is well and at the end? |
//! | [`title`] | what does `ps` show? |
//! | [`descriptors`] | how many clients may the process have? |
//! | [`paths`] | how do configurations name files, and what do errors say? |
//! | [`thread`] | how does a thread begin? |
//! | [`memory`] | how much memory is in use? |
//! | [`system`] | which system calls have no safe wrapper? |
//!
//! Every room of the server may import this crate.

pub mod announce;
pub mod crash;
pub mod daemon;
pub mod descriptors;
pub mod log;
pub mod memory;
pub mod paths;
pub mod permissions;
pub mod signal;
pub mod supervisor;
pub mod system;
pub mod thread;
pub mod title;
