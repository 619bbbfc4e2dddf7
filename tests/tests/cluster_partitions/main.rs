//! Nodes of a cluster that are cut off from each other, from etcd and from clients, both ways or
//! one, slowed down, stopped and killed: no write is lost that was acknowledged at quorum, one copy
//! of the data explains what clients have seen, and no two primaries acknowledge at a time.
//!
//! The ways between them are those of proxies in one world, and of a network with a machine for
//! each in another, where the system allows that.
//!
//! `make cluster-partitions COUNT=200 SEED=7` does more of it.

mod clients;
mod history;
mod judging;
mod machines;
mod network;
mod partitions;
mod proxies;
mod silence;
