//! Users and their rights: against the reference, at every way in, and when they change.

mod bypasses;
mod changing;
mod databases;
mod files;
mod page;
mod random_rules;
mod roles;
mod secrets;
mod web;

use anyhow::{Result, ensure};
use tests::client::{Client, Reply};
use tests::server::Server;

/// The text of a reply, errors with a dash before them.
pub(crate) fn said(reply: &Reply) -> String {
    match reply {
        Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Reply::Integer(number) => number.to_string(),
        other => match other.text() {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => format!("{other:?}"),
        },
    }
}

/// Runs a command and checks the beginning of its reply.
pub(crate) fn expect(client: &mut Client, command: &str, beginning: &str) -> Result<()> {
    let reply = said(&client.call_text(command)?);
    ensure!(reply.starts_with(beginning), "{command} answers {reply} and not {beginning}");
    Ok(())
}

/// A connection of a user who takes any password.
pub(crate) fn connect_as(server: &Server, user: &str) -> Result<Client> {
    let mut client = server.connect()?;
    expect(&mut client, &format!("AUTH {user} any"), "OK")?;
    Ok(client)
}

/// What a user is told who lacks the right to a key.
pub(crate) const NO_KEY: &str = "-NOPERM No permissions to access a key";
