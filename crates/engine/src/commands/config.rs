//! CONFIG: settings, read and changed while the server runs.

use crate::command::{
    ADMIN, ArgumentKind, Command, Group, LOADING, NOSCRIPT, STALE, argument, block,
};
use crate::engine::Engine;
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};
use config::{self, SetContext};

/// CONFIG GET parameter [parameter ...]
fn get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let patterns: Vec<&[u8]> = args.rest().iter().collect();
    // The turn's own copy will not do: a CONFIG SET inside the same EXEC counts already.
    let settings = config::get(&cx.engine.config.load(), &patterns);
    cx.reply.map(settings.len());
    for (name, value) in settings {
        cx.reply.bulk(&name);
        cx.reply.bulk(&value);
    }
    Ok(())
}

/// CONFIG SET parameter value [parameter value ...]
fn set(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let pairs: Vec<&[u8]> = args.rest().iter().collect();
    let loading = cx.engine.loading.is_on();
    let context = SetContext { client_is_local: cx.session.client.is_local(), loading };
    let changed = cx.engine.config.set(&pairs, context, &*cx.engine.host);
    changed.map_err(|error| CommandError::line(error.line()))?;
    cx.db.effects.settings_changed = true;
    cx.reply.ok();
    Ok(())
}

/// CONFIG RESETSTAT
fn resetstat(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.stats.reset();
    cx.engine.memory.reset_stats();
    cx.engine.scripts.cache.reset_statistics();
    cx.engine.saving.reset_stats();
    cx.engine.storage.reset_append_only_stats();
    cx.reply.ok();
    Ok(())
}

/// CONFIG REWRITE
fn rewrite(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    if cx.engine.host.process().config_file.is_empty() {
        return Err(CommandError::text("ERR The server is running without a config file"));
    }
    if !cx.may_block() {
        rewrite_file(cx.engine).map_err(CommandError::owned)?;
        cx.reply.ok();
        return Ok(());
    }
    let waiter = cx.wait_for_host();
    let errand = |engine: &Engine| match rewrite_file(engine) {
        Ok(()) => b"+OK\r\n".to_vec(),
        Err(error) => format!("-{error}\r\n").into_bytes(),
    };
    cx.engine.storage.do_aside(waiter, Box::new(errand));
    Ok(())
}

/// Writes the settings to their file. The error is the text of a reply.
fn rewrite_file(engine: &Engine) -> Result<(), String> {
    let host = &engine.host;
    let rewritten = host
        .read_config_file()
        .and_then(|old| host.write_config_file(&config::rewrite(&old, &engine.config.load())));
    rewritten.map_err(|error| format!("ERR Rewriting config file: {error}"))
}

const ADMINISTRATION: u32 = ADMIN | NOSCRIPT | LOADING | STALE;

/// A client of several servers sends these commands to all of them.
const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const SUBCOMMANDS: &[Command] = &[
    Command::sub("config", "get", get, -3, Group::Server, "2.0.0")
        .flags(ADMINISTRATION)
        .docs("O(N) for N parameters.", "Shows settings by their names or by patterns.")
        .arguments(&[argument("parameter", ArgumentKind::String).multiple()])
        .history(&[("7.0.0", "Takes several parameters.")]),
    Command::sub("config", "set", set, -4, Group::Server, "2.0.0")
        .flags(ADMINISTRATION)
        .docs(
            "O(N) for N parameters.",
            "Changes settings: all of them or, where one cannot be, none.",
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[block(
            "data",
            &[argument("parameter", ArgumentKind::String), argument("value", ArgumentKind::String)],
        )
        .multiple()])
        .history(&[("7.0.0", "Takes several parameters with their values.")]),
    Command::sub("config", "resetstat", resetstat, 2, Group::Server, "2.0.0")
        .flags(ADMINISTRATION)
        .docs("O(1)", "Resets the statistics of INFO.")
        .tips(ON_ALL_NODES),
    Command::sub("config", "rewrite", rewrite, 2, Group::Server, "2.8.0")
        .flags(ADMINISTRATION)
        .docs("O(1)", "Writes the settings into the configuration file.")
        .tips(ON_ALL_NODES),
    Command::help("config", Group::Server, "5.0.0"),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] =
    &[Command::container("config", Group::Server, "2.0.0", SUBCOMMANDS)
        .summary("Commands about settings.")];

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn settings_change_at_once_and_all_or_none() {
        let mut server = TestServer::new();
        assert_eq!(server.text("CONFIG SET hz 20 maxmemory-samples 7"), "+OK\r\n");
        assert_eq!(server.text("CONFIG GET hz"), "*2\r\n$2\r\nhz\r\n$2\r\n20\r\n");
        assert_eq!(server.turn.config.maxmemory_samples, 7, "in the same turn");
        let refused = server.text("CONFIG SET hz 30 maxmemory-samples 0");
        assert!(refused.starts_with("-ERR CONFIG SET failed (possibly related to argument"));
        assert_eq!(server.engine.config.load().hz, 20);
        assert_eq!(
            server.text("CONFIG REWRITE"),
            "-ERR The server is running without a config file\r\n"
        );
        assert!(server.text("CONFIG foo bar").starts_with("-ERR unknown subcommand 'foo'."));
        assert!(server.text("CONFIG").starts_with("-ERR wrong number of arguments for 'config'"));
    }
}
