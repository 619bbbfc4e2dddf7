//! The common parts of the lab's commands: options, and messages about mistakes.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::load::Encryption;

/// The exit code for a file or an option that is wrong: nothing was started.
pub(super) const MISTAKE: u8 = 2;

/// The experiments to run, and how.
#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// Names of bundled experiments, paths of files, or `all`.
    #[arg(required = true)]
    pub(super) experiments: Vec<String>,
    /// The size for publication: longer runs, more of them.
    #[arg(long)]
    pub(super) full: bool,
    /// Where results and report go; by default a new directory here. One with the results of
    /// another run is refused.
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) out: Option<PathBuf>,
    /// Where servers keep their data while they run, and with it the file system whose fsync is
    /// measured; by default TMPDIR, or /tmp.
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) directory: Option<PathBuf>,
    /// Only these targets.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) targets: Vec<String>,
    /// How often each point is measured.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repetitions: Option<u32>,
    /// Replaces a value of the file, or the values of a swept parameter: connections=1,50.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Starts servers so that they speak TLS alone, with certificates that the lab makes, and
    /// encrypts connections to servers that are running.
    #[arg(long)]
    pub(super) tls: bool,
    /// The authorities that are believed of servers that are running; without it, those of the
    /// public.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(super) cacert: Option<String>,
    /// The lab's own certificate for servers that are running.
    #[arg(long, value_name = "FILE", requires = "tls", requires = "key")]
    pub(super) cert: Option<String>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<String>,
    /// The name that their certificates are for, if it is not the host's.
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(super) sni: Option<String>,
    /// Does not look at their certificates.
    #[arg(long, requires = "tls")]
    pub(super) insecure: bool,
    /// Machines that send the load in place of this one, each with `dunlin lab agent`.
    #[arg(long, value_delimiter = ',', value_name = "ADDRESSES")]
    pub(super) agents: Vec<String>,
    /// The file with the agents' secret; without it, DUNLIN_LAB_TOKEN.
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub(super) token_file: Option<PathBuf>,
}

impl RunOptions {
    /// How connections are encrypted, if they are.
    pub(super) fn encryption(&self) -> Option<Encryption> {
        self.tls.then(|| Encryption {
            authority: self.cacert.clone(),
            certificate: self.cert.clone(),
            key: self.key.clone(),
            name: self.sni.clone(),
            insecure: self.insecure,
            ..Encryption::default()
        })
    }
}

/// Prints to standard output; a reader that has closed it is not our error.
pub(super) fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Reports a mistake in the command line.
pub(super) fn mistake(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "dunlin lab: {message}");
    ExitCode::from(MISTAKE)
}
