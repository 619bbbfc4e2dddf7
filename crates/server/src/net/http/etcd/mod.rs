//! Requests of clients of etcd: `/v2/keys` and the addresses that belong to it.

pub(super) mod answer;
pub(super) mod cluster;
