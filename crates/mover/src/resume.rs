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
pub(crate) fn missing(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
) -> Result<Option<Missing>, String> {
    let (old, new) = (from.info("replication")?, to.info("replication")?);
    // A replica refuses writes whether it holds them or not, so nobody can see that.
    if leads(&new) && check::follows(&old, &options.seen_to) {
        // The same address may be another server for it, or one that was started anew, without
        // data. Before its link is up, it may still be where the new one has left its stream.
        let is_of_it = check::are_of_one_stream(&old, &new)
            || (!is_up(&old) && check::is_promoted_from(&new, &old));
        return Ok(is_of_it.then_some(Missing::Unpause));
    }
    if !has_left(&new, &old) {
        return Ok(None);
    }
    // Where nobody knows, the check stops. While writes are held, nothing changes what comes next.
    let is_held = matches!(from.writes()?, Writes::Waiting);
    Ok((is_held && has_all(from, to)?).then_some(Missing::Turn))
}

/// Whether the new server was promoted out of the stream of the old one, which has written nothing
/// since. So it has everything that the old one has acknowledged. To be asked while the old one
/// holds its writes, since nothing that changes data comes after this look then.
pub(crate) fn has_all(from: &mut Server, to: &mut Server) -> Result<bool, String> {
    let (old, new) = (from.info("replication")?, to.info("replication")?);
    if !has_left(&new, &old) {
        return Ok(false);
    }
    let first_of_its_own = number(&new, "second_repl_offset");
    let lacking = number(&old, "master_repl_offset") + 1 - first_of_its_own;
    let name = old.get("master_replid").map(String::as_str).unwrap_or_default();
    Ok(lacking == 0 || from.is_idle(name, first_of_its_own, lacking)?)
}

/// Whether a server leads that has left the stream of another one, which leads too.
fn has_left(new: &Info, old: &Info) -> bool {
    leads(new) && leads(old) && check::is_promoted_from(new, old)
}

fn leads(info: &Info) -> bool {
    info.get("role").is_some_and(|role| role == "master")
}
