//! Nodes of a cluster with a real etcd: who takes over when a primary is killed, stopped or told to
//! let go, and what happens to writes meanwhile. Slots move between shards.

mod announcing;
mod elsewhere;
mod failing;
mod guards;
mod keeping;
mod many;
mod moving;
mod returning;
mod without_etcd;
mod writer;
