//! Sentinels: where they say that the primary is, and whether they know enough to fail over.

use std::io;
use std::time::{Duration, Instant};

use resp::client::Value;

use crate::targets::Interrupt;
use crate::targets::connection::{Connection, Endpoint, info_fields};

/// The name under which they have to know the primary.
const NAME: &str = "main";

/// How long they may take to know each other and all replicas.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at what they know.
const POLL: Duration = Duration::from_millis(50);

/// Lets them look for replicas and for each other often, and less so while it is measured. How soon
/// they see a failure is not changed. A primary that comes back hears sooner that it was replaced:
/// after two seconds, in place of eight.
const HURRY: [&str; 6] = ["SENTINEL", "DEBUG", "INFO-PERIOD", "300", "PUBLISH-PERIOD", "300"];
const MEASURED: [&str; 6] = ["SENTINEL", "DEBUG", "INFO-PERIOD", "1000", "PUBLISH-PERIOD", "500"];

/// The port of the primary, from the first Sentinel that answers.
///
/// # Errors
/// None does.
pub(super) fn primary(sentinels: &[Endpoint], patience: Duration) -> io::Result<u16> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for sentinel in sentinels {
        let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
        let reply = sentinel.connect(patience).and_then(|mut own| own.call(&asked));
        match reply {
            Ok(Value::Array(words)) => {
                let port = words.get(1).and_then(Value::as_bytes);
                let port = port.and_then(|port| std::str::from_utf8(port).ok()?.parse().ok());
                return port.ok_or_else(|| io::ErrorKind::InvalidData.into());
            }
            Ok(_) => failure = io::Error::other("a Sentinel does not know the primary"),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Waits until each Sentinel knows the others and all replicas of this primary, and until these can
/// take over. Before that a failure would show how soon they find each other.
///
/// # Errors
/// It does not come so far.
pub fn wait_until_ready(
    sentinels: &[Endpoint],
    primary: &Endpoint,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("a Sentinel: {error}");
    let begun = Instant::now();
    let mut own = Vec::new();
    for sentinel in sentinels {
        let mut connection = sentinel.connect(PATIENCE).map_err(failed)?;
        // One that does not know this takes longer.
        connection.call(&HURRY).map_err(failed)?;
        own.push(connection);
    }
    let mut server = primary.connect(PATIENCE).map_err(|error| error.to_string())?;
    loop {
        let replicas = replicas(&mut server).map_err(|error| error.to_string())?;
        let mut are_ready = replicas > 0;
        for sentinel in &mut own {
            are_ready &= knows_all(sentinel, sentinels.len() - 1, replicas).map_err(failed)?;
        }
        if are_ready {
            break;
        }
        if begun.elapsed() > PATIENCE {
            return Err("the Sentinels never knew each other and all replicas".to_owned());
        }
        if interrupt.is_set() {
            return Err("interrupted".to_owned());
        }
        std::thread::sleep(POLL);
    }
    for sentinel in &mut own {
        sentinel.call(&MEASURED).map_err(failed)?;
    }
    Ok(())
}

/// How many replicas a primary has.
fn replicas(server: &mut Connection) -> io::Result<usize> {
    let reply = server.call(&["INFO", "replication"])?;
    let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
    let count = info_fields(&text).find(|(name, _)| *name == "connected_slaves");
    Ok(count.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0))
}

fn knows_all(sentinel: &mut Connection, others: usize, replicas: usize) -> io::Result<bool> {
    let known = sentinel.call(&["SENTINEL", "MASTER", NAME])?;
    if field(&known, "num-other-sentinels") != others.to_string()
        || field(&known, "flags") != "master"
    {
        return Ok(false);
    }
    let Value::Array(all) = sentinel.call(&["SENTINEL", "REPLICAS", NAME])? else {
        return Ok(false);
    };
    let can_lead =
        |one: &Value| field(one, "flags") == "slave" && field(one, "master-link-status") == "ok";
    Ok(all.len() == replicas && all.iter().all(can_lead))
}

/// The value of a field of a reply that has fields and values in turn; empty if there is none.
fn field(reply: &Value, name: &str) -> String {
    let Value::Array(words) = reply else { return String::new() };
    let mut pairs = words.chunks_exact(2);
    let found = pairs.find(|pair| pair[0].as_bytes() == Some(name.as_bytes()));
    let value = found.and_then(|pair| pair[1].as_bytes()).unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}
