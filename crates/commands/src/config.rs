//! CONFIG: settings, read and changed while the server runs.

use std::sync::Arc;

use resp::args::{Arguments, OwnedArguments};
use resp::output::Output;
use resp::reply::Reply;

use config::{self, Config, DirectiveId, SetContext};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, Flags, Group, LOADING, NO_KEYS, NOSCRIPT,
    STALE, argument, block, docs, docs_of_help,
};
use engine::engine::{Command, Context, Engine, Family, row};
use engine::handler::help::{container, help};

/// CONFIG GET parameter [parameter ...]
fn get(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let patterns: Vec<&[u8]> = args.rest().iter().collect();
    // The turn's own copy will not do: a CONFIG SET inside the same EXEC counts already.
    let settings = config::get(&present(cx.engine), &patterns);
    cx.reply.map(settings.len());
    for (name, value) in settings {
        cx.reply.bulk(&name);
        cx.reply.bulk(&value);
    }
    Ok(())
}

/// The settings as they are. REPLICAOF changes what the server follows, and not the setting.
fn present(engine: &Engine) -> Arc<Config> {
    let config = engine.config.snapshot();
    // A node of a cluster learns each time whom it is to follow.
    let replicaof = engine.replication.primary().filter(|_| !config.cluster_enabled);
    match config.replicaof == replicaof {
        true => config,
        false => Arc::new(Config { replicaof, ..Config::clone(&config) }),
    }
}

/// CONFIG SET parameter value [parameter value ...]
fn set(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let pairs: Vec<&[u8]> = args.rest().iter().collect();
    let loading = cx.engine.loading.is_on();
    let context = SetContext { client_is_local: cx.session.client.is_local(), loading };
    let (settings, host) = (&cx.engine.config, &*cx.engine.host);
    let changed = match settings.set_at_once(&pairs, context, host) {
        Some(changed) => changed,
        None if cx.may_block() => {
            set_aside(cx, &pairs, context);
            return Ok(());
        }
        None => settings.set(&pairs, context, host),
    };
    let changed = changed.map_err(|error| CommandError::line(error.line()))?;
    note_password(cx.engine, &changed);
    cx.db.effects.config_changed = true;
    cx.reply.ok();
    Ok(())
}

/// `requirepass` is the password of the default user.
fn note_password(engine: &Engine, changed: &[DirectiveId]) {
    if changed.iter().any(|id| id.name() == "requirepass") {
        engine.users.set_default_password(&engine.config.load().requirepass);
    }
}

/// Has another thread change settings: it may have to wait for a disk, or for a name to be
/// resolved.
fn set_aside(cx: &mut Context<'_>, pairs: &[&[u8]], context: SetContext) {
    let waiter = cx.wait_for_host();
    let pairs: OwnedArguments = pairs.iter().collect();
    let job = move |engine: &Engine| {
        let pairs: Vec<&[u8]> = pairs.view().iter().collect();
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, false);
        match engine.config.set(&pairs, context, &*engine.host) {
            Ok(changed) => {
                note_password(engine, &changed);
                reply.ok();
            }
            Err(error) => {
                let error = CommandError::line(error.line());
                engine.stats.count_error(&error.code());
                reply.error(error.as_bytes());
            }
        }
        output.to_vec()
    };
    cx.engine.storage.run_in_background(waiter, Box::new(job));
}

/// After CONFIG SET, names and values alternate: the values of settings that are secrets.
fn is_secret_of_set(argv: Arguments<'_>, index: usize) -> bool {
    let is_value = index >= 3 && index % 2 == 1;
    is_value
        && config::DirectiveId::find(argv.at(index - 1))
            .is_some_and(|setting| setting.directive().is_secret())
}

/// CONFIG RESETSTAT
fn resetstat(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.stats.reset();
    cx.engine.memory.reset_stats();
    cx.engine.cluster.slot_stats.reset();
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
    let job = |engine: &Engine| match rewrite_file(engine) {
        Ok(()) => b"+OK\r\n".to_vec(),
        Err(error) => format!("-{error}\r\n").into_bytes(),
    };
    cx.engine.storage.run_in_background(waiter, Box::new(job));
    Ok(())
}

/// Writes the settings to their file. The error is the text of a reply.
fn rewrite_file(engine: &Engine) -> Result<(), String> {
    let host = &engine.host;
    let users = engine.users.config_lines(&engine.config.snapshot());
    let rewritten = host
        .read_config_file()
        .and_then(|old| host.write_config_file(&config::rewrite(&old, &present(engine), &users)));
    rewritten.map_err(|error| format!("ERR Rewriting config file: {error}"))
}

const ADMINISTRATION: Flags = ADMIN | NOSCRIPT | LOADING | STALE;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Server.rows([container("config", SUBCOMMANDS)]);

const SUBCOMMANDS: &[Command] = &Group::Server.under("config").rows([
    row("get", get, -3, ADMINISTRATION, NO_KEYS),
    row("set", set, -4, ADMINISTRATION, NO_KEYS).secrets(is_secret_of_set),
    row("resetstat", resetstat, 2, ADMINISTRATION, NO_KEYS),
    row("rewrite", rewrite, 2, ADMINISTRATION, NO_KEYS),
    help(),
]);

// ---- Documentation ------------------------------------------------------------------------------

/// A client of several servers sends these commands to all of them.
const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const DOCS: &[Docs] = &[
    docs("config", "2.0.0", "Commands about settings.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("config|get", "2.0.0", "Shows settings by their names or by patterns.")
        .cost("O(N) for N parameters.")
        .arguments(&[argument("parameter", ArgumentKind::String).multiple()])
        .history(&[("7.0.0", "Takes several parameters.")]),
    docs("config|set", "2.0.0", "Changes settings: all of them or, where one cannot be, none.")
        .cost("O(N) for N parameters.")
        .arguments(&[block(
            "data",
            &[argument("parameter", ArgumentKind::String), argument("value", ArgumentKind::String)],
        )
        .multiple()])
        .history(&[("7.0.0", "Takes several parameters with their values.")])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    docs("config|resetstat", "2.0.0", "Resets the statistics of INFO.")
        .cost("O(1)")
        .tips(ON_ALL_NODES),
    docs("config|rewrite", "2.8.0", "Writes the settings into the configuration file.")
        .cost("O(1)")
        .tips(ON_ALL_NODES),
    docs_of_help("config|help", "5.0.0"),
];

#[cfg(test)]
mod tests {

    #[test]
    fn settings_change_at_once_and_all_or_none() {
        let mut server = crate::testing::server();
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
