//! Clients that follow the journal: CHANGES, and the change stream of HTTP.
//!
//! | file | what it answers |
//! |---|---|
//! | [`reading`] | which keys did a record of the journal change? |
//! | [`delivery`] | how do changes reach followers, fast and slow ones? |
//! | [`slots`] | what is a record to a server that takes some slots over? |
//!
//! [`crate::journal::backlog`] keeps the part of the journal that followers read, and
//! [`crate::session::followers`] knows which client follows which keys.

pub mod delivery;
pub mod reading;
pub mod slots;
