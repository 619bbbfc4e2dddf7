//! A [`TestServer`] with all commands, and tests that drive the engine through commands.

mod changes;
mod client_eviction;
mod durability;
mod every_command;
mod eviction;
mod expire;
mod expiry;
mod fast_path;
mod fields;
mod loading;
mod redaction;
mod replay;
mod users;
mod watch;

use std::sync::Arc;

use config::Config;

pub(crate) use engine::testing::{Effect, TestServer, messages};

/// An empty server with the default settings.
pub(crate) fn server() -> TestServer {
    server_with(Config::default())
}

/// An empty server.
pub(crate) fn server_with(config: Config) -> TestServer {
    TestServer::with(crate::registry(), config)
}

/// An empty server that runs scripts.
pub(crate) fn server_with_scripts(config: Config) -> TestServer {
    let mut server = server_with(config);
    let engine = Arc::get_mut(&mut server.engine).expect("no other thread has it");
    engine.scripts.interpreter = Arc::new(script::Lua::default());
    server
}

#[test]
fn a_command_is_answered_and_journaled() {
    let mut server = server();
    assert_eq!(server.text("MULTI"), "+OK\r\n");
    assert_eq!(server.text("EXEC"), "*0\r\n");
    assert!(server.journal.take().is_empty());
    server.journal.set_listening(false);
    server.session = server.connect();
    assert!(server.text("NOSUCHCOMMAND x").starts_with("-ERR unknown command 'NOSUCHCOMMAND'"));
}
