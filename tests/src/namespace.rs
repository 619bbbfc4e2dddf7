//! Network namespaces: each stands for a machine. They end with the test, however that ends, and
//! the machine's own network has nothing of them.

use std::env;
use std::fs::{self, File};
use std::io::{Write, stderr};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::host::Host;
use crate::observe::wait_until;
use crate::server::dunlin_binary;

/// A process in a network of its own, which ends with it.
#[derive(Debug)]
pub struct Namespace(Child);

impl Namespace {
    /// Makes one.
    ///
    /// # Errors
    /// The right to do so is missing.
    pub fn make() -> Result<Namespace> {
        let mut command = Command::new("unshare");
        // It ends when this process does, with which the other end of its pipe is gone.
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let namespace = Namespace(command.spawn().context("starting unshare")?);
        // It begins in that of this thread, which may not be that of the process.
        let own = fs::read_link("/proc/thread-self/ns/net")?;
        wait_until("a network", || Ok(fs::read_link(namespace.file())? != own))?;
        Ok(namespace)
    }

    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.id())
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Runs a script there, up to the first command that fails.
    ///
    /// # Errors
    /// One does.
    pub fn run(&self, script: &str) -> Result<()> {
        let id = self.id().to_string();
        let mut command = Command::new("nsenter");
        let output = command.args(["-t", &id, "-n", "sh", "-ec", script]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Moves this thread there.
    ///
    /// # Errors
    /// The right to do so is missing.
    pub fn join(&self) -> Result<()> {
        let file = File::open(self.file())?;
        Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// It as a host of servers, which end with the thread that has started them.
    #[must_use]
    pub fn host(&self, address: Ipv4Addr) -> Host {
        let id = self.id().to_string();
        let words = ["nsenter", "-t", &id, "-n", "setpriv", "--pdeathsig", "KILL"];
        Host { address, wrapper: words.map(str::to_owned).into() }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tells a test that its program was started again, in a network of its own.
const INSIDE: &str = "DUNLIN_TEST_NAMESPACE";

/// What tests do in such a network: to one command of it, what it needs is forbidden.
const TRIAL: &str = "unshare --net true; ip link add name trial type veth peer name other
    ip rule add iif trial blackhole; echo 1 >/proc/sys/net/ipv4/ip_forward";

/// Runs a test of this program in a network of its own: as root, or with a namespace of users. Says
/// so on standard error, where neither is allowed.
///
/// # Errors
/// Those of the test.
pub fn within(test: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    if env::var_os(INSIDE).is_some() {
        return run();
    }
    let mut complaints = Vec::new();
    for ways in [&["--net"][..], &["--map-root-user", "--net"]] {
        let mut trial = Command::new("unshare");
        match trial.args(ways).args(["sh", "-ec", TRIAL]).stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => return run_again(test, ways),
            Ok(output) => complaints.push(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => complaints.push(format!("{error}\n")),
        }
    }
    let _ = write!(stderr(), "SKIPPED {test}: no network of its own: {}", complaints.concat());
    Ok(())
}

fn run_again(test: &str, ways: &[&str]) -> Result<()> {
    let inside = Command::new("unshare")
        .args(ways)
        .args(["setpriv", "--pdeathsig", "KILL"])
        .arg(env::current_exe()?)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "yes")
        .env("DUNLIN_BIN", dunlin_binary()?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let told = String::from_utf8_lossy(&inside.stdout);
    ensure!(inside.status.success() && told.contains("1 passed"), "{}: {told}", inside.status);
    Ok(())
}
