//! Three real Sentinels that watch a primary, and ask each other before they fail over.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::certificates::Encryption;
use crate::client::{Client, Received, Reply};
use crate::observe::wait_until;

/// The name under which they know the primary.
pub const NAME: &str = "main";

/// How many there are. Two of them have to agree.
const COUNT: usize = 3;

/// How long an answer of one of them may take that others ask in a loop.
const SOON: Duration = Duration::from_secs(1);

struct Sentinel {
    child: Child,
    port: u16,
}

/// Names and values.
type Fields = Vec<(String, String)>;

/// See the module's text. Dropping them ends the processes.
pub struct Sentinels {
    all: Vec<Sentinel>,
    /// How they and the servers are reached, if not in the open.
    encryption: Option<Encryption>,
    directory: TempDir,
}

impl Sentinels {
    /// Starts them. They watch the primary at this port, and take it for dead after so many
    /// milliseconds of silence.
    ///
    /// # Errors
    /// The program is missing, or does not start.
    pub fn start(program: &Path, primary: u16, down_after_ms: u64) -> Result<Sentinels> {
        Self::start_through(program, None, primary, down_after_ms)
    }

    /// The same. With `encryption` they and the servers listen at ports of TLS alone.
    ///
    /// # Errors
    /// As [`Sentinels::start`].
    pub fn start_through(
        program: &Path,
        encryption: Option<&Encryption>,
        primary: u16,
        down_after_ms: u64,
    ) -> Result<Sentinels> {
        let directory = tempfile::Builder::new().prefix("dunlin-sentinel-").tempdir()?;
        let encryption = encryption.cloned();
        let mut sentinels = Sentinels { all: Vec::new(), encryption, directory };
        for _ in 0..COUNT {
            sentinels.add(program, primary, down_after_ms)?;
        }
        Ok(sentinels)
    }

    fn add(&mut self, program: &Path, primary: u16, down_after_ms: u64) -> Result<()> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let own = self.directory.path().join(port.to_string());
        fs::create_dir(&own)?;
        let config = own.join("sentinel.conf");
        let listens = match &self.encryption {
            None => format!("port {port}\n"),
            Some(own) => {
                let lines = own.settings(port).into_iter();
                lines.map(|(name, value)| format!("{name} {value}\n")).collect()
            }
        };
        let text = format!(
            "{listens}bind 127.0.0.1\ndir {}\n\
             sentinel monitor {NAME} 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds {NAME} {down_after_ms}\n\
             sentinel failover-timeout {NAME} 5000\n\
             sentinel parallel-syncs {NAME} 2\n",
            own.display()
        );
        fs::write(&config, text)?;
        let log = File::create(own.join("log"))?;
        let mut command = Command::new(program);
        command.arg(&config).arg("--sentinel").current_dir(&own);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        self.all.push(Sentinel { child, port });
        wait_until("the Sentinel listens", || Ok(self.connect(port).is_ok()))
    }

    /// Lets them look, and tell each other, more often than the usual ten times in a minute, so
    /// that a test takes seconds.
    ///
    /// # Errors
    /// One of them refuses.
    pub fn hurry(&self) -> Result<()> {
        for own in &self.all {
            let mut command = vec!["SENTINEL", "DEBUG"];
            command.extend(["INFO-PERIOD", "500", "PING-PERIOD", "200", "PUBLISH-PERIOD", "300"]);
            command.extend(["ASK-PERIOD", "300", "MIN-LINK-RECONNECT-PERIOD", "500"]);
            let reply = self.connect(own.port)?.call(&command)?;
            ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
        }
        Ok(())
    }

    /// Tells all of them a setting of the primary.
    ///
    /// # Errors
    /// One of them refuses.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        for own in &self.all {
            let reply = self.connect(own.port)?.call(&["SENTINEL", "SET", NAME, name, value])?;
            ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
        }
        Ok(())
    }

    /// Waits until all of them know these values of a field, one of each replica.
    ///
    /// # Errors
    /// It does not come to that.
    pub fn wait_until_known(&self, name: &str, values: &[&str]) -> Result<()> {
        let mut wanted = values.to_vec();
        wanted.sort_unstable();
        let waited = wait_until("the Sentinels know the values", || {
            let slaves = self.fields(&["SENTINEL", "REPLICAS", NAME])?;
            Ok(slaves.iter().all(|own| {
                let mut known: Vec<_> = own.iter().map(|fields| field(fields, name)).collect();
                known.sort_unstable();
                known == wanted
            }))
        });
        waited.with_context(|| self.log())
    }

    fn connect(&self, port: u16) -> Result<Client> {
        Client::connect_through(port, self.encryption.as_ref())
    }

    /// How they and the servers are reached, if not in the open.
    #[must_use]
    pub fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }

    /// Their ports.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.all.iter().map(|own| own.port).collect()
    }

    /// Where they say that the primary is. None may know more than others for a moment.
    ///
    /// # Errors
    /// None answers.
    pub fn primary(&self) -> Result<u16> {
        let mut client = self.connect(self.all[0].port)?;
        client.send(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
        ensure!(client.has_input(SOON)?, "a Sentinel does not answer");
        let Received::Reply(reply) = client.receive()? else { bail!("a Sentinel is gone") };
        let words = reply.elements().context("an address")?;
        let port = words.get(1).and_then(Reply::text).context("a port")?;
        Ok(String::from_utf8_lossy(port).parse()?)
    }

    /// Fields that each of them shows of the primary, or of one of its replicas.
    fn fields(&self, command: &[&str]) -> Result<Vec<Vec<Fields>>> {
        let mut all = Vec::new();
        for own in &self.all {
            let reply = self.connect(own.port)?.call(command)?;
            let tables = match command[1] {
                "MASTER" => vec![reply],
                _ => reply.elements().unwrap_or_default(),
            };
            all.push(tables.into_iter().map(pairs).collect());
        }
        Ok(all)
    }

    /// Waits until each knows the others and so many replicas that can take over.
    ///
    /// # Errors
    /// It does not come to that.
    pub fn wait_until_ready(&self, replicas: usize) -> Result<()> {
        let waited = wait_until("the Sentinels know everybody", || {
            let masters = self.fields(&["SENTINEL", "MASTER", NAME])?;
            let knows = masters.iter().flatten().all(|fields| {
                field(fields, "num-other-sentinels") == (COUNT - 1).to_string()
                    && field(fields, "flags") == "master"
            });
            let slaves = self.fields(&["SENTINEL", "REPLICAS", NAME])?;
            let can = |fields: &Vec<(String, String)>| {
                field(fields, "flags") == "slave" && field(fields, "master-link-status") == "ok"
            };
            let enough = slaves
                .iter()
                .all(|own| own.iter().filter(|fields| can(fields)).count() == replicas);
            Ok(knows && enough)
        });
        waited.with_context(|| self.log())
    }

    /// Waits until all of them know a primary other than this one. Returns it.
    ///
    /// # Errors
    /// There is none.
    pub fn wait_for_another(&self, than: u16) -> Result<u16> {
        let mut new = than;
        let waited = wait_until("another primary", || {
            // One that is busy is asked again.
            new = self.primary().unwrap_or(than);
            Ok(new != than)
        });
        waited.with_context(|| self.log())?;
        Ok(new)
    }

    /// What they have logged.
    #[must_use]
    pub fn log(&self) -> String {
        let read = |own: &Sentinel| {
            let path = self.directory.path().join(own.port.to_string()).join("log");
            let text = fs::read_to_string(path).unwrap_or_default();
            let events = text.lines().filter(|line| line.contains(" # ") || line.contains(" * "));
            let mut lines: Vec<_> = events.rev().take(40).collect();
            lines.reverse();
            format!("Sentinel {}:\n{}\n", own.port, lines.join("\n"))
        };
        self.all.iter().map(read).collect()
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for own in &mut self.all {
            // Both fail only if the process is gone already.
            let _ = own.child.kill();
            let _ = own.child.wait();
        }
    }
}

fn pairs(reply: Reply) -> Fields {
    let words = reply.elements().unwrap_or_default();
    let text =
        |reply: &Reply| String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    words.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

fn field<'f>(fields: &'f [(String, String)], name: &str) -> &'f str {
    fields.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
}
