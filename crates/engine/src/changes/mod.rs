//! Those who follow the journal: CHANGES, and the change stream of HTTP.
//!
//! | file | what it answers |
//! |---|---|
//! | [`change`] | what is told of a change? |
//! | [`reading`] | what has a record of the journal changed? |
//! | [`listeners`] | who listens to which keys? |
//! | [`telling`] | how do changes reach those who listen, fast and slow ones? |
//!
//! What is kept of the journal for them is [`crate::persistence::backlog`]'s.

pub mod change;
pub mod listeners;
pub mod reading;
pub mod telling;
