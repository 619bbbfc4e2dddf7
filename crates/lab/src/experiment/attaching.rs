//! A process beside the target becomes its replica, and copies all its data.

use std::time::{Duration, Instant};

use crate::targets::Interrupt;
use crate::targets::connection::{Connection, Endpoint, in_words, info_fields};

/// How long a replica may take to answer, and to copy all data.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two questions of whether the replica has all data.
const POLL: Duration = Duration::from_millis(5);

/// How the names of such events end.
pub(super) const ATTACHES: &str = " attaches";

/// Makes it a replica, and waits until it has what the primary had. Returns the seconds that this
/// took; none when it was not over in time.
///
/// # Errors
/// Why it is no replica.
pub(super) fn attach(
    replica: &Endpoint,
    primary: &Endpoint,
    halt: &Interrupt,
) -> Result<Option<f64>, String> {
    let begin = Instant::now();
    let mut connection = begin_link(replica, primary)?;
    while !halt.is_set() && begin.elapsed() < PATIENCE {
        // A replica that loads its data may answer late, or not at all.
        if is_online(&mut connection) {
            return Ok(Some(begin.elapsed().as_secs_f64()));
        }
        std::thread::sleep(POLL);
    }
    Ok(None)
}

fn begin_link(replica: &Endpoint, primary: &Endpoint) -> Result<Connection, String> {
    let mut connection = replica.connect(PATIENCE).map_err(|error| error.to_string())?;
    let port = primary.port.to_string();
    let words = ["REPLICAOF", &primary.host, &port];
    let reply = connection.call(&words).map_err(|error| error.to_string())?;
    if reply.is_error() {
        return Err(in_words(&reply));
    }
    Ok(connection)
}

fn is_online(connection: &mut Connection) -> bool {
    connection.call(&["INFO", "replication"]).is_ok_and(|reply| {
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default());
        info_fields(&text).any(|(name, value)| name == "master_link_status" && value.trim() == "up")
    })
}
