//! `dunlin lab agent`: waits for loads that are spread over machines.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::agent::{Token, serve};
use crate::targets::Interrupt;

/// Where the agent listens, and its secret.
#[derive(Debug, Args)]
pub(super) struct AgentOptions {
    /// The address and port: 10.0.0.5:7200. Port 0 for any that is free.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The file with the secret; without it, DUNLIN_LAB_TOKEN.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Serves until it is interrupted.
pub(super) fn run(options: &AgentOptions) -> ExitCode {
    let failed = |error: &dyn std::fmt::Display| {
        let _ = writeln!(io::stderr(), "dunlin lab agent: {error}");
        ExitCode::FAILURE
    };
    let token = match Token::find(options.token_file.as_deref()) {
        Ok(token) => token,
        Err(error) => return failed(&error),
    };
    let served = Interrupt::by_signals().and_then(|interrupt| {
        serve(options.listen, &token, interrupt.flag(), |address| {
            // A program that waits for this line reads it; nothing else needs it.
            let _ = writeln!(io::stdout(), "Ready to accept connections at {address}");
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}
