//! The process as a service of systemd: what it is given, what it tells, and the files it leaves.
//!
//! The tests are the service manager: they have a socket for messages, pass listening sockets on,
//! and put secrets into a directory.

mod files;
mod given;
mod manager;
mod supervised;
mod told;
mod units;
