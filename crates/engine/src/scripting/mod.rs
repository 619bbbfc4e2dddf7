//! How scripts run.
//!
//! | file | what it answers |
//! |---|---|
//! | [`run`] | how does a script call a command? |
//! | `attempt` | what is taken back when a script begins again? |
//! | `libraries` | how are libraries of functions loaded? |

mod attempt;
pub mod libraries;
pub mod run;
