//! How clients wait for a key or for the host, and watch keys. What they wait for, and what they
//! leave at slots, is in [`crate::session`].
//!
//! | file | what it answers |
//! |---|---|
//! | `blocking` | how does a client begin to wait for a key, and how is it served? |
//! | `watch` | what does a watch notice, and how does it end? |
//! | `cleaning` | how are waiters and watchers removed when no client needs them? |
//! | [`host`] | which clients wait for a file, or for a background job? |

pub(crate) mod blocking;
mod cleaning;
pub mod host;
mod watch;
