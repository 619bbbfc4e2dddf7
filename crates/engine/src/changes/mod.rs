//! Clients that follow the journal: CHANGES, and the change stream of HTTP.
//!
//! | file | what it answers |
//! |---|---|
//! | [`change`] | what is a follower told about a change? |
//! | [`reading`] | which keys did a record of the journal change? |
//! | [`filter`] | which changes does a listener listen to? |
//! | [`listeners`] | which listener listens to which keys? |
//! | [`telling`] | how do changes reach listeners, fast and slow ones? |
//!
//! [`crate::persistence::backlog`] keeps the part of the journal that followers read.

pub mod change;
pub mod filter;
pub mod listeners;
pub mod reading;
pub mod telling;
