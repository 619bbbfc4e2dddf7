//! `dunlin lab limit`: the server that only finds where requests end.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Args;

use crate::limit::{Limit, Stall, serve};
use crate::targets::Interrupt;

/// How it listens and answers.
#[derive(Debug, Args)]
pub(super) struct LimitOptions {
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = 7100)]
    port: u16,
    /// The address.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Threads that answer.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Stop answering for a while, again and again: 100ms:1s.
    #[arg(long, value_name = "PAUSE:EVERY")]
    stall: Option<Stall>,
    /// Answers each command with a value of this length, as GET is; 0: with OK, as SET is.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    reply_bytes: u32,
}

/// Answers until it is interrupted.
pub(super) fn run(options: &LimitOptions) -> ExitCode {
    let served = Interrupt::by_signals().and_then(|interrupt| {
        let limit = Limit {
            address: SocketAddr::new(options.bind, options.port),
            threads: usize::from(options.threads),
            stall: options.stall,
            reply_bytes: options.reply_bytes as usize,
        };
        serve(&limit, interrupt.flag(), |address| {
            // A program that waits for this line reads it; nothing else needs it.
            let _ = writeln!(io::stdout(), "Ready to accept connections at {address}");
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "dunlin lab limit: {error}");
            ExitCode::FAILURE
        }
    }
}
