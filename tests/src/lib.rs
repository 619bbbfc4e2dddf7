//! Drives the real binary and the reference server.
//!
//! The tests of this crate know the server only from outside: a process, a port, bytes. The
//! client here is written apart from the product's own parser, so that a mistake in one cannot
//! hide the same mistake in the other.
//!
//! * [`server`] starts a process on a free loopback port and ends it again;
//! * [`client`] speaks RESP2 and RESP3 to it;
//! * [`quoting`] reads and writes words as redis-cli does;
//! * [`notation`] prints a reply the way redis-cli prints it;
//! * [`transcript`] reads `suite/*.t` and writes them back;
//! * [`play`] plays one section of a transcript;
//! * [`blocks`] finds the commands in a document, [`shown`] compares what it shows with what came;
//! * [`observe`] watches a server until a condition holds;
//! * [`host`] says where a server runs, and [`namespace`] makes machines for servers;
//! * [`peers`] says where the programs of Redis and Valkey are;
//! * [`etcd`] starts an etcd, and makes its answers and ours comparable;
//! * [`etcd_members`] starts a cluster of etcd, whose members it kills and stops;
//! * [`cluster`] starts nodes of a cluster, with an etcd;
//! * [`counting`] adds to counters while a cluster changes;
//! * [`library`] runs programs that write through client libraries;
//! * [`sentinel`] starts Sentinels that watch a primary;
//! * [`process`] asks the system about a process;
//! * [`proxy`] stands between two servers and cuts, delays and splits;
//! * [`false_primary`] is a primary that says to replicas what the test wants;
//! * [`replication`] has what tests do with primaries and replicas;
//! * [`volume`] mounts a disk of its own, which can be full;
//! * [`mutation`] damages files, [`allocation`] counts the memory that reading them takes;
//! * [`tmux`] is a terminal, whose keys a test presses;
//! * [`web`] is a client of HTTP that sends exactly what it is told;
//! * [`random`] and [`grammar`] make the random command sequences of the differential test.

pub mod allocation;
pub mod blocks;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod counting;
pub mod etcd;
pub mod etcd_members;
pub mod false_primary;
pub mod grammar;
pub mod host;
pub mod library;
pub mod mariadb;
pub mod mutation;
pub mod namespace;
pub mod notation;
pub mod observe;
pub mod peers;
pub mod play;
pub mod postgresql;
pub mod process;
pub mod proxy;
pub mod quoting;
pub mod random;
pub mod replication;
pub mod sentinel;
pub mod server;
pub mod shown;
pub mod tmux;
pub mod transcript;
pub mod volume;
pub mod web;
