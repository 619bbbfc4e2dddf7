//! What replies depend on, and how data comes back from disk. The files themselves belong to the
//! host: see [`crate::engine::Storage`].
//!
//! | file | what it answers |
//! |---|---|
//! | [`durability`] | what does a reply depend on, and what stops writes? |
//! | [`chosen`] | for what do writes and reads of a client wait that has chosen so? |
//! | [`loading`] | how is data loaded? |

pub mod chosen;
pub mod durability;
pub mod loading;
