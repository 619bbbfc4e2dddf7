//! One client of the crowd, and what all of them know of each other.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::random::Random;

/// Operations of each client that writes: `OPERATIONS`, or the usual number.
fn operations() -> usize {
    let wanted = std::env::var("OPERATIONS").ok().and_then(|count| count.parse().ok());
    wanted.unwrap_or(400)
}

/// What the clients know of each other.
pub(crate) struct World {
    port: u16,
    /// Writers that are not done yet; readers go on until there is none.
    pub(crate) writers: AtomicUsize,
    /// Whether a client failed, so that all others stop.
    pub(crate) failed: AtomicBool,
    /// Jobs that were given, and those that were taken.
    pub(crate) jobs_given: AtomicU64,
    pub(crate) jobs_taken: Mutex<BTreeSet<Vec<u8>>>,
    /// Receivers of all messages, as PUBLISH counted them, and messages that were received.
    pub(crate) announced: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl World {
    pub(crate) fn new(port: u16) -> World {
        World {
            port,
            writers: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            jobs_given: AtomicU64::new(0),
            jobs_taken: Mutex::default(),
            announced: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    /// Whether anyone still writes.
    pub(crate) fn goes_on(&self) -> bool {
        self.writers.load(Ordering::SeqCst) > 0 && !self.failed.load(Ordering::SeqCst)
    }
}

/// The connection was closed: no failure for one whose connections are being killed.
#[derive(Debug)]
struct Disconnected;

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server closed the connection")
    }
}

impl std::error::Error for Disconnected {}

/// One client.
pub(crate) struct Actor<'w> {
    pub(crate) world: &'w World,
    pub(crate) client: Client,
    pub(crate) random: Random,
    is_victim: bool,
}

impl<'w> Actor<'w> {
    /// Connects. Connections of a victim have a name by which they are killed.
    pub(crate) fn new(world: &'w World, seed: u64, is_victim: bool) -> Result<Actor<'w>> {
        let client = Client::connect(world.port)?;
        let mut actor = Actor { world, client, random: Random::new(seed), is_victim };
        actor.introduce()?;
        Ok(actor)
    }

    fn introduce(&mut self) -> Result<()> {
        if self.is_victim {
            self.client.call_text("CLIENT SETNAME victim")?;
        }
        Ok(())
    }

    /// Does something as often as writers do.
    pub(crate) fn times(&mut self, action: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.repeat(operations(), action)
    }

    /// Does something until all writers are done, at least once.
    pub(crate) fn meanwhile(
        &mut self,
        mut action: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        loop {
            self.repeat(1, &mut action)?;
            if !self.world.goes_on() {
                return Ok(());
            }
        }
    }

    fn repeat(
        &mut self,
        times: usize,
        mut action: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..times {
            match action(self) {
                Err(error) if self.is_victim && error.is::<Disconnected>() => {
                    self.client = Client::connect(self.world.port)?;
                    // Killed again at once: then it goes without a name, and lives.
                    let _ = self.introduce();
                }
                result => result?,
            }
            if self.world.failed.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        // A write fails when the other side has closed already: the reply to wait for says the
        // same.
        self.client.send_raw(request).map_err(|error| match self.client.receive() {
            Ok(Received::Closed) => Disconnected.into(),
            _ => error,
        })
    }

    fn receive(&mut self) -> Result<Reply> {
        match self.client.receive()? {
            Received::Reply(reply) => Ok(reply),
            Received::Closed => Err(Disconnected.into()),
        }
    }

    /// The reply to one command, written as text.
    pub(crate) fn call(&mut self, command: &str) -> Result<Reply> {
        let mut request = Vec::new();
        encode(&command.split(' ').collect::<Vec<_>>(), &mut request);
        self.send(&request)?;
        self.receive()
    }

    /// As [`Actor::call`], for commands that never fail.
    pub(crate) fn must(&mut self, command: &str) -> Result<Reply> {
        let reply = self.call(command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
        Ok(reply)
    }

    /// The replies of a transaction; `None` when a watched key had changed.
    pub(crate) fn transaction(&mut self, commands: &[&str]) -> Result<Option<Vec<Reply>>> {
        let mut request = Vec::new();
        for command in ["MULTI"].iter().chain(commands).chain(&["EXEC"]) {
            encode(&command.split(' ').collect::<Vec<_>>(), &mut request);
        }
        self.send(&request)?;
        for _ in 0..=commands.len() {
            let queued = self.receive()?;
            ensure!(!queued.is_error(), "{commands:?}: {queued:?}");
        }
        match self.receive()? {
            Reply::Array(replies) => {
                let failed = replies.iter().find(|reply| reply.is_error());
                ensure!(failed.is_none(), "{commands:?}: {failed:?}");
                Ok(Some(replies))
            }
            Reply::NilArray => Ok(None),
            other => bail!("EXEC of {commands:?}: {other:?}"),
        }
    }

    /// The replies of a transaction that watches nothing.
    pub(crate) fn must_transaction(&mut self, commands: &[&str]) -> Result<Vec<Reply>> {
        self.transaction(commands)?.context("a transaction without WATCH is not executed")
    }
}

/// A whole number out of a reply of any type.
pub(crate) fn number(reply: &Reply) -> Result<i64> {
    match reply {
        Reply::Integer(number) => Ok(*number),
        reply => {
            let text = reply.text().with_context(|| format!("{reply:?} is no number"))?;
            let text = std::str::from_utf8(text)?;
            text.parse().with_context(|| format!("{text:?} is no number"))
        }
    }
}

/// The numbers of a reply with elements.
pub(crate) fn numbers(reply: Reply) -> Result<Vec<i64>> {
    let shown = format!("{reply:?}");
    let elements = reply.elements().with_context(|| format!("{shown} has no elements"))?;
    elements.iter().map(number).collect()
}
