//! Clients that wait for a key, for a sync or for the host, and clients that watch a key.
//!
//! | file | what it answers |
//! |---|---|
//! | [`awaited`] | what does a client wait for, and who ends that? |
//! | [`waiting`], `watcher` | what do clients leave at a slot? |
//! | `blocking` | how does a client begin to wait for a key, and how is it served? |
//! | `watching` | what does a watch notice, and how does it end? |
//! | `left_behind`, `cleaning` | how are waiters and watchers removed that no client needs any more? |
//! | [`sync`] | when have writes become durable for which a client waits? |
//! | [`host`] | which clients wait for a file, or for an errand? |

pub mod awaited;
pub(crate) mod blocking;
mod cleaning;
pub mod host;
pub(crate) mod left_behind;
pub mod sync;
pub mod waiting;
pub(crate) mod watcher;
mod watching;
