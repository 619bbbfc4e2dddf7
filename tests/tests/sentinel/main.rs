//! Servers that take over from each other: under real Sentinels, which tell each other of
//! themselves by messages that replicas pass on, and by FAILOVER.

mod clients;
mod deployment;
mod failing_over;
mod handing_over;
mod many;
mod messages;
mod settings;
