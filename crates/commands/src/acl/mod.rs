//! ACL: users, what they may do, and what they were refused.
//!
//! What a user is and may do is in [`engine::users`]. These commands change and show it. A command
//! that changes users runs with the world stopped, so that no other command runs meanwhile, and
//! clients that lose a right lose it at once: [`engine::clients::rights`].

mod changing;
mod files;
mod rows;
mod showing;

pub(crate) use rows::FAMILY;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::users::catalog::{CATEGORIES, category};
use engine::users::refusing;
use engine::users::verdict::CheckedCommand;

/// Bits of a random password when nobody says how many.
const PASSWORD_BITS: usize = 256;

/// ACL WHOAMI
fn whoami(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.bulk(cx.session.user.name());
    Ok(())
}

/// ACL CAT [category]
fn cat(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let Ok(name) = args.bytes() else {
        cx.reply.array(CATEGORIES.len());
        CATEGORIES.iter().for_each(|name| cx.reply.bulk(name.as_bytes()));
        return Ok(());
    };
    if !args.is_empty() {
        return Err(CommandError::subcommand_syntax("acl", args.argv().at(1)));
    }
    let category =
        category(name).ok_or_else(|| CommandError::quoting("ERR Unknown category '", name, "'"))?;
    let catalog = cx.engine.users.catalog();
    let mut members = catalog.members(category, false);
    members.retain(|id| !catalog.spec(*id).has(engine::command::INTERNAL));
    cx.reply.array(members.len());
    members.iter().for_each(|id| cx.reply.bulk(catalog.spec(*id).full_name().as_bytes()));
    Ok(())
}

/// How many bits of a random password are asked for, if there may be so many.
fn password_bits(text: &[u8]) -> Result<Option<usize>, CommandError> {
    let bits = base::num::parse_i64(text).ok_or(CommandError::NOT_AN_INTEGER)?;
    Ok((1..=4096).contains(&bits).then_some(bits as usize))
}

/// ACL GENPASS [bits]
fn genpass(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let bits = match args.bytes() {
        Err(_) => PASSWORD_BITS,
        Ok(text) if args.is_empty() => password_bits(text)?.ok_or(CommandError::text(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to 4096",
        ))?,
        Ok(_) => return Err(CommandError::subcommand_syntax("acl", args.argv().at(1))),
    };
    let mut bytes = vec![0; bits.div_ceil(8)];
    base::rng::entropy(&mut bytes)
        .map_err(|error| CommandError::owned(format!("ERR no random numbers: {error}")))?;
    let mut digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(bits.div_ceil(4));
    cx.reply.bulk(digits.as_bytes());
    Ok(())
}

/// ACL DRYRUN username command [arg [arg ...]]
fn dryrun(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let name = args.bytes()?;
    let account = cx.engine.users.find(name);
    let account =
        account.ok_or_else(|| CommandError::quoting("ERR User '", name, "' not found"))?;
    let argv = args.rest();
    let row = cx.engine.client_names.resolve(argv);
    let row = row.filter(|row| row.command.subcommands.is_empty() || argv.len() < 2);
    let row =
        row.ok_or_else(|| CommandError::quoting("ERR Command '", argv.at(0), "' not found"))?;
    if !row.command.accepts(argv.len()) {
        return Err(CommandError::wrong_arity(&row.command.full_name()));
    }
    let database = cx.session.database;
    let asked = CheckedCommand { id: row.id, spec: &row.command.spec, argv, database };
    match account.check(asked) {
        Ok(()) => cx.reply.ok(),
        Err(lack) => cx.reply.bulk(&refusing::text(&account, asked, lack, true)),
    }
    Ok(())
}
