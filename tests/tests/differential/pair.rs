//! Two servers, and what is found to differ between them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tests::client::Client;
use tests::server::{Server, Target};

use crate::judge::Judge;

/// How long a connection that was closed may still be seen.
const VANISHING: Duration = Duration::from_secs(5);

/// How long a server may take for what the other has done already.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The same while a difference is shortened, when that something is missing is known.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_millis(700);

/// What was found to differ.
pub(crate) struct Difference {
    /// What several reports of one mistake have in common.
    pub(crate) signature: String,
    /// How many commands it took.
    pub(crate) length: usize,
    pub(crate) dunlin: String,
    pub(crate) reference: String,
}

/// Both servers.
pub(crate) struct Pair {
    pub(crate) dunlin: Server,
    pub(crate) reference: Server,
    /// How long one may take for what the other has done already.
    pub(crate) patience: Duration,
}

impl Pair {
    pub(crate) fn start(judge: &Judge) -> Result<Self> {
        // The reference looks at the times of blocked clients as often as its clock ticks.
        let options = [("rdbcompression", "no"), ("hz", "500")];
        Ok(Self {
            dunlin: Server::start(Target::Dunlin, &options)?,
            reference: Server::start(judge.target, &options)?,
            patience: PATIENCE,
        })
    }

    /// Fresh connections to both, which are started again if they have ended.
    pub(crate) fn connect(&mut self) -> Result<[Client; 2]> {
        for server in [&mut self.dunlin, &mut self.reference] {
            if !server.is_running() {
                server.start_again()?;
            }
        }
        Ok([self.dunlin.connect()?, self.reference.connect()?])
    }

    /// The connections besides those that [`Pair::connect`] makes.
    pub(crate) fn connect_bystanders(
        &self,
        clients: &mut [Client; 2],
        all: &[&[&str]],
    ) -> Result<Vec<Client>> {
        let mut bystanders = Vec::new();
        for (server, client) in [&self.dunlin, &self.reference].into_iter().zip(clients) {
            await_solitude(client)?;
            for commands in all {
                let mut bystander = server.connect()?;
                for command in *commands {
                    bystander.call_text(command)?;
                }
                bystanders.push(bystander);
            }
        }
        Ok(bystanders)
    }
}

/// Waits until the connections of the round before are seen no more.
pub(crate) fn await_solitude(client: &mut Client) -> Result<()> {
    let start = Instant::now();
    while client.call_text("CLIENT LIST")?.text().is_some_and(has_several_lines) {
        if start.elapsed() > VANISHING {
            bail!("connections that were closed are still there");
        }
    }
    Ok(())
}

fn has_several_lines(text: &[u8]) -> bool {
    text.iter().filter(|&&byte| byte == b'\n').count() > 1
}
