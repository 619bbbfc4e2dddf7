//! `dunlin backup` takes all data of a target and the stream behind it, as a user would, and checks
//! what it has.

use crate::load::Encryption;
use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;
use crate::targets::directory::Directory;
use crate::targets::tool;

/// The name of such events.
pub(super) const BACKUP: &str = "backup";

/// Takes a backup, which is thrown away afterwards. Returns what the tool said last: up to where it
/// reaches.
///
/// # Errors
/// The tool's words when it has failed.
pub(super) fn back_up(server: &Endpoint, halt: &Interrupt) -> Result<String, String> {
    let directory = Directory::fresh(None).map_err(|error| error.to_string())?;
    let (url, to) = (tool::url(server), directory.path().to_str().ok_or("a path of text")?);
    let mut words = vec!["backup", "--from", &url, "--to", to];
    words.extend(server.encryption.as_ref().map(Encryption::options).unwrap_or_default());
    let said = tool::run(&words, server.password.as_deref(), halt)?;
    Ok(said.lines().last().unwrap_or_default().to_owned())
}
