//! ACL LOAD and ACL SAVE: the file of users.
//!
//! Another thread reads and writes the file while the client waits; in a transaction, its worker
//! does.

use std::sync::Arc;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::{Context, Engine};
use engine::host::LogLevel;

const NO_FILE: CommandError = CommandError::text(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via \
     the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis \
     configuration file set) in order to store users in the Redis configuration.",
);

/// ACL LOAD
pub(super) fn load(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.db.config.aclfile.is_empty() {
        return Err(NO_FILE);
    }
    if !cx.may_block() {
        // The world is stopped for the transaction.
        let changed = read(cx.engine)
            .and_then(|text| cx.engine.replace_users(&text).map_err(in_a_reply))
            .map_err(CommandError::line)?;
        super::changing::enforce(cx, &changed);
        cx.reply.ok();
        return Ok(());
    }
    let waiter = cx.wait_for_host();
    let me = Arc::clone(&cx.session.client);
    let job = move |engine: &Engine| {
        let loaded =
            read(engine).and_then(|text| engine.load_users(&text, Some(&me)).map_err(in_a_reply));
        answer(loaded)
    };
    cx.engine.storage.run_in_background(waiter, Box::new(job));
    Ok(())
}

/// ACL SAVE
pub(super) fn save(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.db.config.aclfile.is_empty() {
        return Err(NO_FILE);
    }
    if !cx.may_block() {
        write(cx.engine).map_err(CommandError::line)?;
        cx.reply.ok();
        return Ok(());
    }
    let waiter = cx.wait_for_host();
    cx.engine.storage.run_in_background(waiter, Box::new(|engine: &Engine| answer(write(engine))));
    Ok(())
}

fn answer(result: Result<(), Vec<u8>>) -> Vec<u8> {
    match result {
        Ok(()) => b"+OK\r\n".to_vec(),
        Err(line) => [b"-", &*line, b"\r\n"].concat(),
    }
}

/// The text of the file. The error is a line of a reply.
fn read(engine: &Engine) -> Result<Vec<u8>, Vec<u8>> {
    let config = engine.config.snapshot();
    engine.host.read_users(&config.aclfile).map_err(|reason| {
        let path = String::from_utf8_lossy(&config.aclfile);
        in_a_reply(format!("Error loading ACLs, opening file '{path}': {reason}").into_bytes())
    })
}

/// An error as a line of a reply.
fn in_a_reply(error: Vec<u8>) -> Vec<u8> {
    [b"ERR ", &*error].concat()
}

fn write(engine: &Engine) -> Result<(), Vec<u8>> {
    let config = engine.config.snapshot();
    engine.host.write_users(&config.aclfile, &engine.users.text()).map_err(|reason| {
        let line = format!("The file of users cannot be written: {reason}");
        engine.host.log(LogLevel::Warning, &line);
        b"ERR There was an error trying to save the ACLs. Please check the server logs for more \
          information"
            .to_vec()
    })
}
