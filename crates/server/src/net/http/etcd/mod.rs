//! What clients of etcd ask for: `/v2/keys` and what belongs to it.

pub(super) mod answer;
pub(super) mod cluster;
