//! What the engine does with connected clients.
//!
//! | file | what it answers |
//! |---|---|
//! | `describe` | what does CLIENT LIST show, and how much memory does a client take? |
//! | `publishing`, [`monitor`] | how do messages and lines of MONITOR get to clients? |
//! | `eviction` | which client is closed when clients take too much memory? |
//! | `handing_over` | how does FAILOVER change the part of the server? |
//! | `ending` | what is done when a connection ends? |
//! | `relocating` | what do clients hear when slots leave this node of a cluster? |
//! | [`rights`] | what do clients lose when their users lose rights? |

mod describe;
mod ending;
mod eviction;
mod handing_over;
pub mod monitor;
mod publishing;
mod relocating;
pub mod rights;

pub use eviction::memory_limit;
