//! Whole clusters in one thread, from one seed: the machine of each node is the real one, and
//! etcd, clocks, links, processes and data are models that go wrong.

mod data;
mod etcd;
mod full_etcd;
mod handing_over;
mod host;
mod restoring;
mod scenarios;
mod tests;
mod trouble;
mod twins;
mod world;
