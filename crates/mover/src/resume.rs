//! A move that has ended between the promotion and the last step: the tool was killed, or has lost
//! its connections. The new server leads then, and the old one holds its writes. The same command,
//! given once more, takes the steps that are missing.

use crate::check;
use crate::options::Options;
use crate::server::{Info, Server, Writes, is_up, number};

/// What is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// The old server has to become a replica, and to let its writes go on.
    Turn,
    /// It is a replica, whose writes would be held if it led again.
    Unpause,
}

/// What is missing of a move between these servers; nothing if there was none that has come so far.
///
/// The new server was promoted out of the stream of the old one, which has written nothing since
/// and holds its writes. So the new one has everything that the old one has acknowledged.
pub(crate) fn missing(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
) -> Result<Option<Missing>, String> {
    let (old, new) = (from.info("replication")?, to.info("replication")?);
    let leads = |info: &Info| info.get("role").is_some_and(|role| role == "master");
    if !leads(&new) {
        return Ok(None);
    }
    // A replica refuses writes whether it holds them or not, so nobody can see that.
    if check::follows(&old, &options.seen_to) {
        if is_up(&old) && !check::are_of_one_stream(&old, &new) {
            // The same address is another server for it.
            return Ok(None);
        }
        return Ok(Some(Missing::Unpause));
    }
    if !leads(&old) || !check::is_promoted_from(&new, &old) {
        return Ok(None);
    }
    // Where nobody knows, the check stops.
    if !matches!(from.writes()?, Writes::Waiting) {
        return Ok(None);
    }
    // While writes are held, nothing that changes data comes after this look.
    let old = from.info("replication")?;
    let first_of_its_own = number(&new, "second_repl_offset");
    let lacking = number(&old, "master_repl_offset") + 1 - first_of_its_own;
    let name = old.get("master_replid").map(String::as_str).unwrap_or_default();
    let has_all = lacking == 0 || from.is_idle(name, first_of_its_own, lacking)?;
    Ok((has_all && leads(&old)).then_some(Missing::Turn))
}
