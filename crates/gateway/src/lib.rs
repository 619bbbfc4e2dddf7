//! A client of etcd's third version, over the JSON gateway that every member has: what the cluster
//! stores, and what it hears of others' changes.
//! <https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/>
//!
//! | file | what it answers |
//! |---|---|
//! | `place` | where is etcd, and how is it asked? |
//! | `failure` | what is known of a request that failed? |
//! | `encryption` | how is a connection made? |
//! | `lookup` | which address has a name? |
//! | `login` | what shows who asks? |
//! | `member` | how is one member asked? |
//! | `wire` | what do requests and answers look like? |
//! | `gateway` | which member is asked, and when is a call made again? |
//! | `watch`, `stop` | how are changes heard, over all breaks, and until when? |
//!
//! Calls block, each with a limit of its own. Any thread may call.

mod encryption;
mod failure;
mod gateway;
mod login;
mod lookup;
mod member;
mod place;
mod stop;
mod watch;
mod wire;

pub use gateway::Gateway;
pub use place::{Config, endpoint};
pub use stop::Stop;
pub use watch::{WatchEnd, Watched};
