//! A cluster of etcd 3.4, whose members a test kills, stops and starts again.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::certificates::{Certificates, Identity};
use crate::host::Host;
use crate::peers;
use crate::server::free_port;

/// How long a start and an election may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module's text. Dropping it ends all members and removes their data.
#[derive(Debug)]
pub struct EtcdMembers {
    members: Vec<Member>,
    options: Vec<String>,
    encryption: Option<(Certificates, Identity)>,
    host: Host,
    directory: TempDir,
}

#[derive(Debug)]
struct Member {
    port: u16,
    peer_port: u16,
    child: Option<Child>,
}

impl EtcdMembers {
    /// Starts so many, and waits until they serve.
    ///
    /// # Errors
    /// The package is missing, or they do not start in time.
    pub fn start(count: usize) -> Result<EtcdMembers> {
        EtcdMembers::start_with(Host::default(), count, None, &[])
    }

    /// Starts one on some host.
    ///
    /// # Errors
    /// As [`EtcdMembers::start`].
    pub fn start_on(host: Host) -> Result<EtcdMembers> {
        EtcdMembers::start_with(host, 1, None, &[])
    }

    /// The same with members that also serve the first interface, `/v2`.
    ///
    /// # Errors
    /// As [`EtcdMembers::start`].
    pub fn start_with_v2(count: usize) -> Result<EtcdMembers> {
        EtcdMembers::start_with(Host::default(), count, None, &["--enable-v2"])
    }

    /// Starts one that speaks TLS alone, to clients with a certificate of the same authority.
    ///
    /// # Errors
    /// As [`EtcdMembers::start`].
    pub fn start_encrypted() -> Result<EtcdMembers> {
        let certificates = Certificates::make()?;
        // A member with users refuses certificates with a common name, since requests over HTTP
        // would not be made in that name.
        let client = certificates.issue_for("client", "/", "DNS:client", 9)?;
        EtcdMembers::start_with(Host::default(), 1, Some((certificates, client)), &[])
    }

    /// Starts one that has what this one has now, its leases included. They do not know of each
    /// other.
    ///
    /// # Errors
    /// As [`EtcdMembers::start`].
    pub fn start_copy(&self) -> Result<EtcdMembers> {
        let directory = tempfile::Builder::new().prefix("dunlin-etcd-").tempdir()?;
        let member = Member { port: free_port()?, peer_port: free_port()?, child: None };
        let peer = format!("http://127.0.0.1:{}", member.peer_port);
        let name = |file: &str| directory.path().join(file).display().to_string();
        let (saved, data) = (name("saved"), name("m0"));
        self.control(&["snapshot", "save", &saved])?;
        let all = format!("m0={peer}");
        let words = ["snapshot", "restore", &saved, "--data-dir", &data, "--name", "m0"];
        let places = ["--initial-cluster", &*all, "--initial-advertise-peer-urls", &*peer];
        self.control(&[&words[..], &places[..]].concat())?;
        let (members, options) = (vec![member], Vec::new());
        let (encryption, host) = (None, Host::default());
        let mut etcd = EtcdMembers { members, options, encryption, host, directory };
        etcd.launch(0)?;
        etcd.wait_until_served()?;
        Ok(etcd)
    }

    fn start_with(
        host: Host,
        count: usize,
        encryption: Option<(Certificates, Identity)>,
        options: &[&str],
    ) -> Result<EtcdMembers> {
        let directory = tempfile::Builder::new().prefix("dunlin-etcd-").tempdir()?;
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(Member { port: free_port()?, peer_port: free_port()?, child: None });
        }
        let mut options: Vec<String> = options.iter().map(|own| (*own).to_owned()).collect();
        if let Some((certificates, _)) = &encryption {
            let identity = certificates.identity();
            for (option, file) in [
                ("--cert-file", &identity.certificate),
                ("--key-file", &identity.key),
                ("--trusted-ca-file", &certificates.authority()),
            ] {
                options.extend([option.to_owned(), file.display().to_string()]);
            }
            options.push("--client-cert-auth".to_owned());
        }
        let mut etcd = EtcdMembers { members, options, encryption, host, directory };
        // They wait for each other.
        (0..count).try_for_each(|number| etcd.launch(number))?;
        etcd.wait_until_served()?;
        Ok(etcd)
    }

    fn launch(&mut self, number: usize) -> Result<()> {
        let places = self.members.iter().map(|member| member.peer_port).enumerate();
        let all =
            places.map(|(other, port)| format!("m{other}=http://{}:{port}", self.host.address));
        let all: Vec<_> = all.collect();
        let member = &self.members[number];
        let (url, peer) =
            (self.url(number), format!("http://{}:{}", self.host.address, member.peer_port));
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.directory.path().join(format!("m{number}.log")))?;
        let child = self
            .host
            .command(peers::etcd("etcd"))
            .args(["--name", &format!("m{number}"), "--data-dir"])
            .arg(self.directory.path().join(format!("m{number}")))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"])
            .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("scripts/install-peers brings etcd")?;
        self.members[number].child = Some(child);
        Ok(())
    }

    /// Waits until keys can be read and written through each member that runs.
    ///
    /// # Errors
    /// They cannot.
    pub fn wait_until_served(&mut self) -> Result<()> {
        for number in 0..self.members.len() {
            if self.members[number].child.is_some() {
                self.wait_for(number)?;
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, number: usize) -> Result<()> {
        let begun = Instant::now();
        loop {
            let child = self.members[number].child.as_mut().context("a member that runs")?;
            let has_ended = child.try_wait()?.is_some();
            if !has_ended {
                let answer = self.control_at(number, &["get", "any"])?;
                // One that knows users does not serve one without a name.
                let complaint = String::from_utf8_lossy(&answer.stderr);
                let refused = complaint.contains("permission denied")
                    || complaint.contains("user name is empty");
                if answer.status.success() || refused {
                    return Ok(());
                }
            }
            if has_ended || begun.elapsed() > PATIENCE {
                let log = self.directory.path().join(format!("m{number}.log"));
                bail!("etcd does not serve:\n{}", fs::read_to_string(log)?);
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// The addresses for clients of all members.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        (0..self.members.len()).map(|number| self.url(number)).collect()
    }

    /// The port for clients of one member.
    #[must_use]
    pub fn port(&self, number: usize) -> u16 {
        self.members[number].port
    }

    /// The address for clients of one member.
    #[must_use]
    pub fn url(&self, number: usize) -> String {
        let scheme = if self.encryption.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host.address, self.members[number].port)
    }

    /// The certificates that it has and believes, and those of a client, if it has any.
    #[must_use]
    pub fn encryption(&self) -> Option<(&Certificates, &Identity)> {
        self.encryption.as_ref().map(|(certificates, client)| (certificates, client))
    }

    /// Where the members keep their data and logs.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Ends a member at once.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut child) = self.members[number].child.take() {
            // Both fail only if it is gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends a member, and puts its data aside, or back in place of what it has now. It starts
    /// without any data if there are none.
    ///
    /// # Errors
    /// The system's.
    pub fn exchange_data(&mut self, number: usize) -> Result<()> {
        self.kill(number);
        let data = self.directory.path().join(format!("m{number}"));
        let aside = self.directory.path().join(format!("m{number}.aside"));
        let other = self.directory.path().join(format!("m{number}.other"));
        if aside.exists() {
            fs::rename(&aside, &other)?;
        }
        if data.exists() {
            fs::rename(&data, &aside)?;
        }
        if other.exists() {
            fs::rename(&other, &data)?;
        }
        Ok(())
    }

    /// Starts members again, and waits until they serve.
    ///
    /// # Errors
    /// They do not.
    pub fn start_again(&mut self, numbers: &[usize]) -> Result<()> {
        numbers.iter().for_each(|number| self.kill(*number));
        numbers.iter().try_for_each(|number| self.launch(*number))?;
        numbers.iter().try_for_each(|number| self.wait_for(*number))
    }

    /// Stops a member where it is.
    ///
    /// # Errors
    /// It is gone.
    pub fn stop(&self, number: usize) -> Result<()> {
        self.signal(number, Signal::STOP)
    }

    /// Lets a stopped member go on.
    ///
    /// # Errors
    /// It is gone.
    pub fn go_on(&self, number: usize) -> Result<()> {
        self.signal(number, Signal::CONT)
    }

    fn signal(&self, number: usize, signal: Signal) -> Result<()> {
        let child = self.members[number].child.as_ref().context("it does not run")?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(pid.ok_or_else(|| anyhow!("a process id out of range"))?, signal)?)
    }

    /// Runs etcdctl, and returns what it prints.
    ///
    /// # Errors
    /// It fails.
    pub fn control(&self, arguments: &[&str]) -> Result<String> {
        let number = self.members.iter().position(|member| member.child.is_some());
        let output = self.control_at(number.context("no member runs")?, arguments)?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "etcdctl {arguments:?}: {complaints}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn control_at(&self, number: usize, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(peers::etcd("etcdctl"));
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.url(number)]);
        command.args(["--command-timeout", "2s", "--dial-timeout", "2s"]);
        if let Some((certificates, client)) = &self.encryption {
            command.arg("--cacert").arg(certificates.authority());
            command.arg("--cert").arg(&client.certificate).arg("--key").arg(&client.key);
        }
        Ok(command.args(arguments).stdin(Stdio::null()).output()?)
    }
}

impl Drop for EtcdMembers {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|number| self.kill(number));
    }
}
