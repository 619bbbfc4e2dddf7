//! What nodes of a cluster answer about keys of other nodes: as redis-server does in cluster mode,
//! with the same slots.

mod alike;
mod nodes;
mod shown;
