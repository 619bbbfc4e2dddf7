//! The manifests of `deploy/`: what the chart says with which values, whether Kubernetes would take
//! it, and what happens when what they say runs, is killed, upgraded and given other secrets.
//!
//! `cluster` plays the part of Kubernetes: each pod has a network of its own, each container a root
//! directory of its own, the user, the arguments, the volumes and the probes that the manifest
//! says. What it does not have is limits of processor and memory, and policies of the network.
#![allow(clippy::print_stderr, reason = "a test")]

mod clients;
mod cluster;
mod images;
mod network;
mod objects;
mod pod;
mod rendered;
mod sentinel;
mod sharded;
mod sidecar;
mod single;
mod volumes;
