//! The clients: a process in the simulated world. Its time, its network and its disk are simulated
//! as well.

use std::fs;
use std::process::ExitCode;
use std::thread::{self, sleep};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use tests::client::Client;
use tls::ClientSettings;
use tls::client::Verification;

use crate::actor::World;
use crate::data;
use crate::history::Clock;
use crate::record::Record;
use crate::roles;

/// The port of the server.
pub(crate) const PORT: u16 = 6379;
/// Where the server speaks TLS, if it does.
pub(crate) const ENCRYPTED_PORT: u16 = 6390;
/// Where the record is left.
pub(crate) const RECORD: &str = "/data/record";
/// How often somebody looks whether the server is still there.
const LOOK: Duration = Duration::from_millis(25);

/// Does what the world has started this process for.
pub(crate) fn run(task: &str, words: &[String]) -> ExitCode {
    let words: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let done = match (task, words.as_slice()) {
        ("work", &[seed, life, is_encrypted]) => {
            let ready = if is_encrypted == 1 { speak_tls(PORT, ENCRYPTED_PORT) } else { Ok(()) };
            ready.and_then(|()| work(seed, life))
        }
        ("read", _) => read(),
        _ => Err(anyhow::anyhow!("no such task")),
    };
    let record = done.unwrap_or_else(|error| Record {
        violations: vec![format!("{error:#}")],
        ..Record::default()
    });
    match fs::write(RECORD, record.text()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Has every second connection to a port go to another one, and speak TLS there. The authority of
/// the server is one that nobody knows.
pub(crate) fn speak_tls(port: u16, encrypted_port: u16) -> Result<()> {
    let settings = ClientSettings { verification: Verification::None, ..ClientSettings::default() };
    let config = settings.read().map_err(anyhow::Error::msg)?.config;
    Client::encrypt_every_second(port, encrypted_port, config);
    Ok(())
}

/// Works until the server is gone.
fn work(seed: u64, life: u64) -> Result<Record> {
    let loaded = Client::connect(PORT)
        .and_then(|mut client| client.call(&["FUNCTION", "LOAD", "REPLACE", data::LIBRARY]));
    if let Ok(loaded) = loaded {
        ensure!(!loaded.is_error() || crate::actor::is_refusal(&loaded), "{loaded:?}");
    }
    let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let (began, clock) = (u64::try_from(wall_clock.as_nanos())?, Clock::new());
    let world = World::new(PORT, clock, life + 1);
    let mut record = Record { began, ..Record::default() };
    thread::scope(|scope| {
        let players: Vec<_> = roles::cast(&world, seed, roles::OF_ONE)
            .into_iter()
            .map(|play| scope.spawn(play))
            .collect();
        while Client::connect(PORT).is_ok() {
            sleep(LOOK);
        }
        world.stop.store(true, std::sync::atomic::Ordering::SeqCst);
        for player in players {
            record.operations.extend(player.join().expect("clients do not panic"));
        }
    });
    record.violations = world.violations.into_inner().expect("no client panics");
    Ok(record)
}

/// Reads what is there.
fn read() -> Result<Record> {
    let mut client = loaded()?;
    let (state, violations) = data::read_state(&mut client).context("reading the state")?;
    Ok(Record { state, violations, ..Record::default() })
}

/// A connection to a server that has loaded its data.
fn loaded() -> Result<Client> {
    for _ in 0..2000 {
        let mut client = Client::connect(PORT)?;
        match client.call_text("PING")? {
            reply if !reply.is_error() => return Ok(client),
            _ => sleep(Duration::from_millis(5)),
        }
    }
    bail!("the server does not end loading")
}
