//! The commands that change users.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::users::account::{has_spaces, join_selectors};
use engine::users::{Changed, DEFAULT_USER, Users};

/// ACL SETUSER username [rule [rule ...]]
pub(super) fn setuser(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let name = args.bytes()?;
    if has_spaces(name) {
        return Err(CommandError::text("ERR Usernames can't contain spaces or null characters"));
    }
    let words: Vec<&[u8]> = args.rest().iter().collect();
    let rules = join_selectors(&words).map_err(|word| {
        CommandError::quoting("ERR Unmatched parenthesis in acl selector starting at '", word, "'.")
    })?;
    let all_channels = Users::gives_all_channels(cx.db.config);
    let changed = cx.engine.users.set(name, &rules, all_channels).map_err(|bad| {
        let text = format!("': {}", bad.error.text());
        CommandError::quoting("ERR Error in ACL SETUSER modifier '", &bad.rule, &text)
    })?;
    enforce(cx, changed.as_slice());
    cx.reply.ok();
    Ok(())
}

/// ACL DELUSER username [username ...]
pub(super) fn deluser(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let names = args.rest();
    if names.iter().any(|name| name == DEFAULT_USER) {
        return Err(CommandError::text("ERR The 'default' user cannot be removed"));
    }
    let changed: Vec<Changed> =
        names.iter().filter_map(|name| cx.engine.users.delete(name)).collect();
    enforce(cx, &changed);
    cx.reply.integer(changed.len() as i64);
    Ok(())
}

/// Takes from clients what their users have lost. The connection that does it closes after the
/// reply.
fn enforce(cx: &mut Context<'_>, changed: &[Changed]) {
    if cx.engine.enforce_rights(changed, Some(&cx.session.client)) {
        cx.session.close = true;
    }
}

/// The name of the user is nobody's business, and its rules may contain passwords.
pub(super) fn is_secret(_argv: resp::args::Arguments<'_>, index: usize) -> bool {
    index >= 2
}
