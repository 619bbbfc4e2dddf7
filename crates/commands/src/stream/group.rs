//! XGROUP and XACK.

use store::stream::{Group, Stream};
use store::{Key, StreamId, Value};

use super::change::{parse_exact_id, parse_ids};
use super::read::note_group_gone;
use super::{StreamContext, event, parse_id_or_end};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

const KEY_MISSING: CommandError = CommandError::text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);

/// The words of XGROUP CREATE with each option once. With more words, an option was repeated, and
/// the command is refused.
const MOST_WORDS: usize = 8;

/// The options of CREATE and SETID.
#[derive(Default)]
struct Options {
    make_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(args: &mut Args<'_>, may_make: bool) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let subcommand = args.argv().at(1);
        while !args.is_empty() {
            if may_make && args.word("mkstream") {
                options.make_stream = true;
            } else if args.len() > 1 && args.word("entriesread") {
                options.entries_read = match args.i64()? {
                    -1 => None,
                    read => Some(u64::try_from(read).map_err(|_| {
                        CommandError::text("ERR value for ENTRIESREAD must be positive or -1")
                    })?),
                };
            } else {
                return Err(CommandError::subcommand_syntax("xgroup", subcommand));
            }
        }
        Ok(options)
    }
}

/// The stream of a command that does not create it.
fn existing<'c>(cx: &'c mut Context<'_>, key: &Key<'_>) -> Result<&'c mut Stream, CommandError> {
    cx.db.stream_mut(key)?.ok_or(KEY_MISSING)
}

/// A group that must be there.
fn existing_group<'c>(
    cx: &'c mut Context<'_>,
    key: &Key<'_>,
    group: &[u8],
) -> Result<&'c mut Group, CommandError> {
    let missing = || super::info::no_such_group(key, group);
    existing(cx, key)?.group_mut(group).ok_or_else(missing)
}

/// Reads where a group begins: after an id, or after all entries that are there.
fn parse_position(id: &[u8], last_id: StreamId) -> Result<StreamId, CommandError> {
    match id {
        b"$" => Ok(last_id),
        id => parse_exact_id(id),
    }
}

/// XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]
pub(super) fn create(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (key, name, id) = (args.key()?, args.bytes()?, args.bytes()?);
    let options = Options::parse(args, true)?;
    let last_id = cx.db.stream_mut(&key)?.map(|stream| stream.last_id());
    if last_id.is_none() && !options.make_stream {
        return Err(KEY_MISSING);
    }
    if args.argv().len() > MOST_WORDS {
        return Err(CommandError::subcommand_syntax("xgroup", args.argv().at(1)));
    }
    let position = parse_position(id, last_id.unwrap_or_default())?;
    if last_id.is_none() {
        cx.db.set(&key, Value::Stream(Stream::new()), None);
        cx.db.changed_silently(&key, 0);
    }
    let group = Group::new(position, options.entries_read);
    if !existing(cx, &key)?.add_group(name, group) {
        return Err(CommandError::text("BUSYGROUP Consumer Group name already exists"));
    }
    note_change(cx, &key, "xgroup-create");
    cx.reply.ok();
    Ok(())
}

/// A group changed. Clients that watch the key are not told.
fn note_change(cx: &mut Context<'_>, key: &Key<'_>, name: &'static str) {
    cx.db.notify(key, event(name));
    cx.add_dirty(1);
}

/// XGROUP SETID key group id|$ [ENTRIESREAD entries-read]
pub(super) fn setid(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (key, name, id) = (args.key()?, args.bytes()?, args.bytes()?);
    let options = Options::parse(args, false)?;
    let last_id = existing(cx, &key)?.last_id();
    existing_group(cx, &key, name)?;
    if args.argv().len() > MOST_WORDS - 1 {
        return Err(CommandError::subcommand_syntax("xgroup", args.argv().at(1)));
    }
    // Unlike CREATE, this accepts the smallest and the largest id by their signs.
    let position = match id {
        b"$" => last_id,
        id => parse_id_or_end(id, 0)?,
    };
    let group = existing_group(cx, &key, name)?;
    group.last_id = position;
    group.entries_read = options.entries_read;
    note_change(cx, &key, "xgroup-setid");
    cx.reply.ok();
    Ok(())
}

/// XGROUP DESTROY key group
pub(super) fn destroy(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (key, name) = (args.key()?, args.bytes()?);
    let was_there = existing(cx, &key)?.remove_group(name);
    if was_there {
        cx.add_dirty(1);
        note_group_gone(cx, &key);
    }
    cx.reply.integer(i64::from(was_there));
    Ok(())
}

/// XGROUP CREATECONSUMER key group consumer
pub(super) fn createconsumer(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (key, name, consumer) = (args.key()?, args.bytes()?, args.bytes()?);
    let now = cx.stream_now();
    let (_, is_new) = existing_group(cx, &key, name)?.add_consumer(consumer, now);
    if is_new {
        note_change(cx, &key, "xgroup-createconsumer");
    }
    cx.reply.integer(i64::from(is_new));
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer
pub(super) fn delconsumer(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (key, name, consumer) = (args.key()?, args.bytes()?, args.bytes()?);
    let pending = existing_group(cx, &key, name)?.remove_consumer(consumer);
    if pending.is_some() {
        note_change(cx, &key, "xgroup-delconsumer");
    }
    cx.reply.integer(pending.unwrap_or(0) as i64);
    Ok(())
}

/// XACK key group id [id ...]
pub(super) fn xack(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, name) = (args.key()?, args.bytes()?);
    // Counted as a read, as in Redis.
    cx.db.stream(&key)?;
    let Some(group) = cx.db.stream_mut(&key)?.and_then(|stream| stream.group_mut(name)) else {
        cx.reply.integer(0);
        return Ok(());
    };
    let ids = parse_ids(args)?;
    let acknowledged = group.acknowledge_all(&ids);
    cx.add_dirty(acknowledged as u64);
    cx.reply.integer(acknowledged as i64);
    Ok(())
}
