//! A primary with replicas, and a client that writes at whichever server leads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::certificates::Encryption;
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, number, wait_until};
use tests::replication::follow;
use tests::sentinel::Sentinels;
use tests::server::{Server, Target};

/// After so long a silence a server is down. Less would be short where many tests share a
/// processor.
pub(crate) const DOWN_AFTER_MS: u64 = 1500;

/// Lets replicas attach at once.
const USUAL: &[(&str, &str)] = &[("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "16mb")];

/// Starts a server.
pub(crate) fn start(target: Target, options: &[(&str, &str)]) -> Result<Server> {
    Server::start(target, &[USUAL, options].concat())
}

/// Waits until a replica has everything that the primary has written.
pub(crate) fn wait_until_alike(primary: &Server, replica: &Server) -> Result<()> {
    let (mut own, mut other) = (primary.connect()?, replica.connect()?);
    let waited = wait_until("the replica has all", || {
        // One that has become a primary lately is no replica.
        let up = figure(&mut other, "master_link_status").is_ok_and(|link| link == "up");
        Ok(up
            && number(&mut other, "slave_repl_offset")? == number(&mut own, "master_repl_offset")?)
    });
    waited.with_context(|| format!("{}\n{}", primary.log_tail(), replica.log_tail()))
}

/// A primary, which is the first, and its replicas.
pub(crate) struct Deployment {
    pub(crate) servers: Vec<Server>,
}

impl Deployment {
    /// Starts them, and waits until all follow the first.
    pub(crate) fn start(targets: &[Target], options: &[(&str, &str)]) -> Result<Deployment> {
        Deployment::start_through(targets, None, options)
    }

    /// The same. With `encryption` their ports are those of TLS alone.
    pub(crate) fn start_through(
        targets: &[Target],
        encryption: Option<&Encryption>,
        options: &[(&str, &str)],
    ) -> Result<Deployment> {
        let mut servers = Vec::new();
        for target in targets {
            servers.push(Server::start_through(*target, encryption, &[USUAL, options].concat())?);
        }
        for server in &servers[1..] {
            follow(server, servers[0].port())?;
        }
        for server in &servers[1..] {
            wait_until_alike(&servers[0], server)?;
        }
        Ok(Deployment { servers })
    }

    /// The server at a port.
    pub(crate) fn at(&self, port: u16) -> Result<&Server> {
        self.servers.iter().find(|own| own.port() == port).context("no such server")
    }

    /// Waits until a server follows the one at a port, and has all of it.
    pub(crate) fn wait_until_follows(&self, server: usize, port: u16) -> Result<()> {
        let server = &self.servers[server];
        let mut client = server.connect()?;
        let waited = wait_until("it follows the new primary", || {
            // It may be a primary still, and close connections when it changes.
            if client.call(&["PING"]).is_err() {
                client = server.connect()?;
            }
            Ok(figure(&mut client, "master_port").is_ok_and(|own| own == port.to_string()))
        });
        waited.with_context(|| server.log_tail())?;
        wait_until_alike(self.at(port)?, server)
    }
}

/// What a client has written.
#[derive(Default)]
pub(crate) struct Written {
    /// Numbers of keys that a replica had when the client was told so.
    pub(crate) acknowledged: Vec<u64>,
    /// The longest time between two such writes.
    pub(crate) longest_pause: Duration,
}

/// A client that writes on and on, at whichever server Sentinels name.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

impl Writer {
    /// Begins to write.
    pub(crate) fn start(sentinels: &Sentinels) -> Writer {
        let stop = Arc::<AtomicBool>::default();
        let stops = Arc::clone(&stop);
        let (ports, encryption) = (sentinels.ports(), sentinels.encryption().cloned());
        let thread = thread::spawn(move || {
            let mut written = Written::default();
            let (mut next, mut last) = (0, Instant::now());
            while !stops.load(Relaxed) {
                // It asks again where the primary is.
                let _ = write_on((&ports, encryption.as_ref()), &stops, &mut next, |number| {
                    written.longest_pause = written.longest_pause.max(last.elapsed());
                    last = Instant::now();
                    written.acknowledged.push(number);
                });
                thread::sleep(Duration::from_millis(5));
            }
            written
        });
        Writer { stop, thread }
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Written {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Calls a command that has to be answered within a second.
fn call_soon(client: &mut Client, words: &[&str]) -> Result<Reply> {
    client.send(words)?;
    ensure!(client.has_input(Duration::from_secs(1))?, "no answer");
    match client.receive()? {
        Received::Reply(reply) => Ok(reply),
        Received::Closed => bail!("closed"),
    }
}

/// Writes until something goes wrong.
fn write_on(
    (sentinels, encryption): (&[u16], Option<&Encryption>),
    stop: &AtomicBool,
    next: &mut u64,
    mut acknowledge: impl FnMut(u64),
) -> Result<()> {
    let mut port = None;
    for sentinel in sentinels {
        let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", tests::sentinel::NAME];
        let connected = Client::connect_through(*sentinel, encryption);
        let Ok(reply) = connected.and_then(|mut own| call_soon(&mut own, &asked)) else {
            continue;
        };
        let words = reply.elements().unwrap_or_default();
        port = words.get(1).and_then(Reply::text).map(<[u8]>::to_vec);
        break;
    }
    let port = String::from_utf8(port.context("no primary")?)?.parse()?;
    let mut client = Client::connect_through(port, encryption)?;
    while !stop.load(Relaxed) {
        *next += 1;
        let key = format!("key:{next}");
        let reply = call_soon(&mut client, &["SET", &key, "value"])?;
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
        if matches!(call_soon(&mut client, &["WAIT", "1", "500"])?, Reply::Integer(1..)) {
            acknowledge(*next);
        }
    }
    Ok(())
}

/// Which acknowledged writes a server lacks.
pub(crate) fn lost(server: &Server, written: &Written) -> Result<Vec<u64>> {
    let mut client = server.connect()?;
    let mut lost = Vec::new();
    for number in &written.acknowledged {
        if client.call(&["GET", &format!("key:{number}")])? == Reply::Nil {
            lost.push(*number);
        }
    }
    Ok(lost)
}

/// Starts Sentinels for a deployment, and waits until they know it.
pub(crate) fn watch(program: &str, deployment: &Deployment) -> Result<Sentinels> {
    watch_by(&tests::peers::program(program), deployment, None)
}

/// The same with Sentinels of this program, which reach the servers and each other in this way.
pub(crate) fn watch_by(
    program: &Path,
    deployment: &Deployment,
    encryption: Option<&Encryption>,
) -> Result<Sentinels> {
    let primary = deployment.servers[0].port();
    let sentinels = Sentinels::start_through(program, encryption, primary, DOWN_AFTER_MS)?;
    sentinels.hurry()?;
    sentinels.wait_until_ready(deployment.servers.len() - 1)?;
    Ok(sentinels)
}
