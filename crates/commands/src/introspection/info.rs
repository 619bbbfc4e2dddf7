//! COMMAND INFO: a row in the form that client libraries read.

use resp::reply::Reply;

use engine::command::{Begin, FLAG_NAMES, Find, KEY_FLAG_NAMES, KeyFlags, KeySpec};
use engine::engine::{Registry, Row};

/// Answers one command: ten fields in the order that clients know.
pub(super) fn reply(reply: &mut Reply<'_>, commands: &Registry, row: &Row) {
    let command = row.command;
    reply.array(10);
    reply.bulk(command.full_name().as_bytes());
    reply.integer(i64::from(command.arity));
    let flags = FLAG_NAMES.iter().filter(|(flag, _)| command.has(*flag));
    reply_words(reply, flags.map(|(_, name)| *name));
    let (first, last, step) = command.key_range();
    [first, last, step].into_iter().for_each(|number| reply.integer(number));
    let categories = command.all_categories();
    reply.set(categories.len());
    for category in categories {
        reply.simple(format!("@{category}").as_bytes());
    }
    let tips = commands.docs(row).tips;
    reply.set(tips.len());
    tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(command.keys.len());
    command.keys.iter().for_each(|spec| reply_key_spec(reply, spec));
    // An array, but an empty set when there is nothing: Redis does so.
    match commands.subcommands(row) {
        [] => reply.set(0),
        rows => {
            reply.array(rows.len());
            rows.iter().for_each(|row| self::reply(reply, commands, row));
        }
    }
}

/// Answers the names of key flags.
pub(super) fn reply_key_flags(reply: &mut Reply<'_>, flags: KeyFlags) {
    let names = KEY_FLAG_NAMES.iter().filter(|(flag, _)| flags & flag != 0);
    reply_words(reply, names.map(|(_, name)| *name));
}

fn reply_words<'w>(reply: &mut Reply<'_>, words: impl Iterator<Item = &'w str> + Clone) {
    reply.set(words.clone().count());
    words.for_each(|word| reply.simple(word.as_bytes()));
}

fn reply_key_spec(reply: &mut Reply<'_>, spec: &KeySpec) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    reply_key_flags(reply, spec.flags);
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Index(index) => reply_step(reply, "index", &[("index", index as i64)]),
        Begin::Keyword(word, from) => {
            reply_type(reply, "keyword");
            reply.map(2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(i64::from(from));
        }
        Begin::Unknown => reply_step(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        Find::Range { last, step, limit } => {
            let (last, step, limit) = (i64::from(last), step as i64, limit as i64);
            reply_step(reply, "range", &[("lastkey", last), ("keystep", step), ("limit", limit)]);
        }
        Find::Count { index, first, step } => {
            let (index, first, step) = (index as i64, first as i64, step as i64);
            let fields = [("keynumidx", index), ("firstkey", first), ("keystep", step)];
            reply_step(reply, "keynum", &fields);
        }
        Find::Unknown => reply_step(reply, "unknown", &[]),
    }
}

/// A half of a key spec: its type, and numbers by name.
fn reply_step(reply: &mut Reply<'_>, kind: &str, fields: &[(&str, i64)]) {
    reply_type(reply, kind);
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

/// The type of a half of a key spec, and the name of the field that follows.
fn reply_type(reply: &mut Reply<'_>, kind: &str) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
}
