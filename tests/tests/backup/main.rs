//! `dunlin backup` and `dunlin restore` with real servers: what is restored at a position is
//! exactly what the server had there, whatever was killed, cut, full or damaged meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod program;
mod state;

mod damage;
mod life;
mod positions;
mod s3;
mod store;
