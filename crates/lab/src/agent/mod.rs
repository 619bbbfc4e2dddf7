//! Agents: the same load from several machines at once.
//!
//! An agent ([`serve`]) waits on a machine for plans. A coordinator that knows the token sends a
//! plan to several agents ([`run`]): the plan is split, the clocks are compared, all agents begin
//! at the same instant, and their recordings are added up. The token proves both sides to each
//! other without crossing the wire. Everything after that is sent in the clear, including the
//! passwords in plans: agents are for networks that you trust.

mod clock;
mod coordinator;
mod message;
mod server;
mod split;
mod token;

pub use coordinator::{AgentError, Agents, Seen, run};
pub use server::serve;
pub use token::{Token, TokenError};

#[cfg(test)]
mod tests;
