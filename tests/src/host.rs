//! Where a server runs: on this machine, or in a namespace that stands for another one.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Host {
    /// At which address its servers listen.
    pub address: Ipv4Addr,
    /// A program, with its arguments, that starts another one there in its own process.
    pub wrapper: Vec<String>,
}

impl Default for Host {
    /// This machine, which nobody else reaches.
    fn default() -> Host {
        Host { address: Ipv4Addr::LOCALHOST, wrapper: Vec::new() }
    }
}

impl Host {
    /// The command that starts a program there.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let [first, rest @ ..] = &*self.wrapper else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }
}
