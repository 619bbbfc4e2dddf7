//! A load of redis-benchmark that runs beside the measured load.

use std::process::{Child, Command, Stdio};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use tests::peers;
use tests::server::Server;

/// A running load, which ends when this is dropped.
pub(crate) struct Background(Child);

impl Background {
    /// Starts an endless redis-benchmark with a lower priority than others on the same processor.
    pub(crate) fn start(server: &Server, arguments: &str) -> Result<Background> {
        let child = Command::new("nice")
            .args(["-n", "5"])
            .arg(peers::program("redis-benchmark"))
            .args(["-q", "-n", "1000000000"])
            .args(["-p", &server.port().to_string()])
            .args(arguments.split(' '))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Background(child))
    }

    /// Holds it.
    pub(crate) fn halt(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.0), Signal::STOP)?)
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.0), Signal::CONT)?)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
