//! The commands that change users.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::users::account::{has_spaces, join_selectors};
use engine::users::{BadRule, Changed, DEFAULT_USER, Users};

/// ACL SETUSER username [rule [rule ...]]
pub(super) fn setuser(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let name = args.bytes()?;
    if has_spaces(name) {
        return Err(CommandError::text("ERR Usernames can't contain spaces or null characters"));
    }
    let rules = joined(args)?;
    let all_channels = Users::gives_all_channels(cx.db.config);
    let changed = cx.engine.users.set(name, &rules, all_channels);
    let changed = changed.map_err(|bad| refused("SETUSER", &bad))?;
    enforce(cx, changed.as_slice());
    cx.reply.ok();
    Ok(())
}

/// ACL SETROLE rolename [rule [rule ...]]
pub(super) fn setrole(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let name = args.bytes()?;
    if has_spaces(name) {
        return Err(CommandError::text("ERR Role names can't contain spaces or null characters"));
    }
    if !cx.engine.users.may_name_role(name) {
        return Err(CommandError::quoting(
            "ERR '",
            name,
            "' is the name of a command or a category, and cannot be that of a role",
        ));
    }
    let rules = joined(args)?;
    let changed = cx.engine.users.set_role(name, &rules).map_err(|bad| refused("SETROLE", &bad))?;
    enforce(cx, &changed);
    cx.reply.ok();
    Ok(())
}

/// ACL DELROLE rolename [rolename ...]
pub(super) fn delrole(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let names: Vec<&[u8]> = args.rest().iter().collect();
    let deleted = cx.engine.users.delete_roles(&names).map_err(|assigned| {
        let text = "' is assigned to one or more users. Remove it from them first.";
        CommandError::quoting("ERR Role '", assigned, text)
    })?;
    cx.reply.integer(deleted as i64);
    Ok(())
}

/// The rules that are the rest of the arguments.
fn joined(args: &mut Args<'_>) -> Result<Vec<Vec<u8>>, CommandError> {
    let words: Vec<&[u8]> = args.rest().iter().collect();
    join_selectors(&words).map_err(|word| {
        CommandError::quoting("ERR Unmatched parenthesis in acl selector starting at '", word, "'.")
    })
}

fn refused(command: &str, bad: &BadRule) -> CommandError {
    let before = format!("ERR Error in ACL {command} modifier '");
    CommandError::quoting(&before, &bad.rule, &format!("': {}", bad.error.text()))
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
pub(super) fn enforce(cx: &mut Context<'_>, changed: &[Changed]) {
    if cx.engine.enforce_rights(changed, Some(&cx.session.client)) {
        cx.session.close = true;
    }
}

/// The name of the user is nobody's business, and its rules, or the command that is tried, may
/// contain passwords.
pub(super) fn is_secret(_argv: resp::args::Arguments<'_>, index: usize) -> bool {
    index >= 2
}
