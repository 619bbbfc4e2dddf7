//! The commands that show users, and what they were refused.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::users::sets::ShownRights;
use resp::reply::Reply;

/// Entries that ACL LOG shows when nobody says how many.
const SHOWN_ENTRIES: i64 = 10;

/// ACL GETUSER username
pub(super) fn getuser(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let Some(account) = cx.engine.users.find(args.bytes()?) else {
        cx.reply.null();
        return Ok(());
    };
    let rights = account.shown_rights();
    let roles = account.role_names();
    let reply = &mut cx.reply;
    reply.map(2 + all_fields(&rights) + usize::from(roles.len() > 0));
    reply.bulk(b"flags");
    let flags = account.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    let digests = account.digests();
    reply.array(digests.len());
    digests.iter().for_each(|digest| reply.bulk(digest.as_bytes()));
    reply_all_rights(reply, &rights);
    if roles.len() > 0 {
        reply.bulk(b"roles");
        reply.array(roles.len());
        roles.for_each(|name| reply.bulk(name));
    }
    Ok(())
}

/// ACL GETROLE rolename
pub(super) fn getrole(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let name = args.bytes()?;
    let Some(role) = cx.engine.users.role(name) else {
        cx.reply.null();
        return Ok(());
    };
    let rights = role.shown_rights();
    let users = cx.engine.users.users_with(name);
    let reply = &mut cx.reply;
    reply.map(1 + all_fields(&rights));
    reply_all_rights(reply, &rights);
    reply.bulk(b"users");
    reply.array(users.len());
    users.iter().for_each(|account| reply.bulk(&account.name));
    Ok(())
}

/// ACL ROLES
pub(super) fn roles(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let all = cx.engine.users.roles();
    cx.reply.array(all.len());
    all.iter().for_each(|role| cx.reply.bulk(&role.name));
    Ok(())
}

/// How many fields [`reply_all_rights`] writes.
fn all_fields(rights: &[ShownRights]) -> usize {
    rights.first().map_or(0, fields) + 1
}

/// Writes the fields of a user's or a role's own rights, and its selectors.
fn reply_all_rights(reply: &mut Reply<'_>, rights: &[ShownRights]) {
    let [own, selectors @ ..] = rights else { unreachable!("each has rights of its own") };
    reply_rights(reply, own);
    reply.bulk(b"selectors");
    reply.array(selectors.len());
    for own in selectors {
        reply.map(fields(own));
        reply_rights(reply, own);
    }
}

/// How many fields [`reply_rights`] writes.
fn fields(rights: &ShownRights) -> usize {
    3 + usize::from(rights.databases.is_some())
}

fn reply_rights(reply: &mut Reply<'_>, rights: &ShownRights) {
    let ShownRights { commands, keys, channels, databases } = rights;
    let all = [("commands", Some(commands)), ("keys", Some(keys)), ("channels", Some(channels))];
    for (name, rules) in all.into_iter().chain([("databases", databases.as_ref())]) {
        if let Some(rules) = rules {
            reply.bulk(name.as_bytes());
            reply.bulk(rules);
        }
    }
}

/// ACL LIST
pub(super) fn list(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let lines = cx.engine.users.lines();
    cx.reply.array(lines.len());
    lines.iter().for_each(|line| cx.reply.bulk(line));
    Ok(())
}

/// ACL DIGEST
pub(super) fn digest(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.bulk(cx.engine.users.fingerprint().as_bytes());
    Ok(())
}

/// ACL USERS
pub(super) fn users(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let all = cx.engine.users.all();
    cx.reply.array(all.len());
    all.iter().for_each(|account| cx.reply.bulk(&account.name));
    Ok(())
}

/// ACL LOG [count | RESET]
pub(super) fn log(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.len() > 1 {
        return Err(CommandError::subcommand_syntax("acl", args.argv().at(1)));
    }
    if args.word("reset") {
        cx.engine.users.clear_log();
        cx.reply.ok();
        return Ok(());
    }
    let count = if args.is_empty() { SHOWN_ENTRIES } else { args.i64()? };
    let entries = cx.engine.users.log(usize::try_from(count).unwrap_or(0));
    let reply = &mut cx.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.map(10);
        reply.bulk(b"count");
        reply.integer(entry.count as i64);
        let texts: [(&str, &[u8]); 4] = [
            ("reason", entry.refusal.reason.name().as_bytes()),
            ("context", entry.refusal.context.name().as_bytes()),
            ("object", &entry.refusal.object),
            ("username", &entry.refusal.user),
        ];
        for (name, text) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        reply.double(cx.db.now.saturating_sub(entry.updated) as f64 / 1000.0);
        reply.bulk(b"client-info");
        reply.bulk(&entry.client);
        for (name, number) in [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created),
            ("timestamp-last-updated", entry.updated),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(number as i64);
        }
    }
    Ok(())
}
