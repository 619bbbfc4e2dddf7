//! SORT and SORT_RO.
//!
//! Elements are borrowed from the collection, and weights from the keys to which BY leads: nothing
//! is copied before the result is known. With BY or GET the command reads keys that it does not
//! name. It locks their slots as it meets them, and begins again later when another thread has
//! locked one of them.

mod order;
mod pattern;

use resp::args::Arguments;
use store::list::List;
use store::pack::{Element, End};
use store::{Entry, Key, Value, ValueRef};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ACCESS, Argument, ArgumentKind, DENYOOM, Docs, Flags, Group, IN_DANGEROUS, KeyFlags, KeySpec,
    MOVABLE_KEYS, OW, READONLY, READS_BY_PATTERN, RO, UPDATE, WRITE, argument, block, docs, key,
    one_of, word,
};
use engine::db::Db;
use engine::db::notify::{Class, Event};
use engine::engine::{Command, Context, Family, row};
use engine::handler::elements::ReplyElements;
use order::Order;
use pattern::Pattern;

const BY_DENIED: CommandError =
    CommandError::text("ERR BY option of SORT denied due to insufficient ACL permissions.");
const GET_DENIED: CommandError =
    CommandError::text("ERR GET option of SORT denied due to insufficient ACL permissions.");

const BY_ELSEWHERE: CommandError = CommandError::text(
    "ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in \
     different slots.",
);
const GET_ELSEWHERE: CommandError = CommandError::text(
    "ERR GET option of SORT denied in Cluster mode when keys formed by the pattern may be in \
     different slots.",
);

/// Which keys a client may read that no argument names.
#[derive(Clone, Copy)]
struct Reach {
    /// Its user may read them.
    any: bool,
    /// In a cluster, those of this slot alone.
    slot: Option<u16>,
}

impl Reach {
    fn of(cx: &Context<'_>, argv: Arguments<'_>, key: &Key<'_>) -> Reach {
        Reach { any: cx.may_read_unnamed(argv), slot: cx.db.cluster.map(|_| key.slot) }
    }

    /// Whether all keys of a pattern are in a slot where it reaches.
    fn has(self, pattern: &[u8]) -> bool {
        self.slot.is_none_or(|slot| pattern::slot(pattern) == Some(slot))
    }
}

/// The options of SORT.
struct Options<'a> {
    order: Order<'a>,
    /// The patterns of the values to return for each element; without any, the element itself.
    get: Vec<Pattern<'a>>,
    /// Where the result goes instead of to the client.
    store: Option<Key<'a>>,
}

impl<'a> Options<'a> {
    /// Reads them.
    fn parse(
        args: &mut Args<'a>,
        may_store: bool,
        reach: Reach,
    ) -> Result<Options<'a>, CommandError> {
        let mut options = Options { order: Order::default(), get: Vec::new(), store: None };
        let order = &mut options.order;
        while !args.is_empty() {
            if args.word("asc") {
                order.descending = false;
            } else if args.word("desc") {
                order.descending = true;
            } else if args.word("alpha") {
                order.alpha = true;
            } else if args.len() >= 3 && args.word("limit") {
                (order.offset, order.count) = (args.i64()?, args.i64()?);
            } else if may_store && args.len() >= 2 && args.word("store") {
                options.store = Some(args.key()?);
            } else if args.len() >= 2 && args.word("by") {
                let pattern = args.bytes()?;
                if pattern.contains(&b'*') && !reach.has(pattern) {
                    return Err(BY_ELSEWHERE);
                }
                if !reach.any && pattern.contains(&b'*') {
                    return Err(BY_DENIED);
                }
                order.by = Some(Pattern::new(pattern));
            } else if args.len() >= 2 && args.word("get") {
                let pattern = args.bytes()?;
                if pattern != b"#" && !reach.has(pattern) {
                    return Err(GET_ELSEWHERE);
                }
                if !reach.any {
                    return Err(GET_DENIED);
                }
                options.get.push(Pattern::new(pattern));
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }

    /// Shows what is returned of an element.
    fn each<'e>(
        &self,
        db: &'e Db<'_>,
        element: Element<'e>,
        show: &mut impl FnMut(Option<Element<'e>>),
    ) {
        if self.get.is_empty() {
            return show(Some(element));
        }
        self.get.iter().for_each(|pattern| show(pattern.look_up(db, element)));
    }
}

/// Finds the destination of SORT: STORE may stand anywhere after the key, and the last one counts.
fn find_keys(argv: Arguments<'_>, visit: &mut dyn FnMut(usize, KeyFlags)) {
    let (mut index, mut destination) = (2, None);
    while index < argv.len() {
        let is = |word: &str| argv.at(index).eq_ignore_ascii_case(word.as_bytes());
        let left = argv.len() - index - 1;
        if is("limit") && left >= 2 {
            index += 2;
        } else if (is("by") || is("get")) && left >= 1 {
            index += 1;
        } else if is("store") && left >= 1 {
            index += 1;
            destination = Some(index);
        }
        index += 1;
    }
    visit(1, RO | ACCESS);
    if let Some(index) = destination {
        visit(index, OW | UPDATE);
    }
}

/// SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA] [STORE key]
fn sort(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let reach = Reach::of(cx, args.argv(), &key);
    let mut options = Options::parse(args, true, reach)?;
    let Some(destination) = options.store else {
        return reply_sorted(cx, &key, &options);
    };
    unpack_zset(cx, &key);
    let source = sortable(&cx.db, &key)?;
    if matches!(source, Some(ValueRef::Set(_))) {
        options.order.settle();
    }
    let elements = options.order.apply(&cx.db, source)?;
    let (mut list, limits) = (List::new(), cx.db.list_limits());
    for element in elements {
        options.each(&cx.db, element, &mut |found| {
            list.push(End::Back, found.unwrap_or(Element::Str(b"")), &limits);
        });
    }
    list.choose_encoding(&limits);
    has_missed_none(&cx.db)?;
    cx.reply.integer(list.len() as i64);
    store(cx, &destination, list);
    Ok(())
}

/// SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA]
fn sort_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let reach = Reach::of(cx, args.argv(), &key);
    let options = Options::parse(args, false, reach)?;
    reply_sorted(cx, &key, &options)
}

fn reply_sorted(cx: &mut Context<'_>, key: &Key<'_>, options: &Options<'_>) -> CommandResult {
    unpack_zset(cx, key);
    let source = sortable(&cx.db, key)?;
    let elements = options.order.apply(&cx.db, source)?;
    let reply = &mut cx.reply;
    reply.array(elements.len() * options.get.len().max(1));
    for element in elements {
        options.each(&cx.db, element, &mut |found| match found {
            Some(found) => reply.element(found),
            None => reply.null(),
        });
    }
    has_missed_none(&cx.db)
}

/// Values in locked slots could not be looked up, so the result means nothing.
fn has_missed_none(db: &Db<'_>) -> CommandResult {
    if db.locked.missed().is_some() { Err(CommandError::MISSED_SLOT) } else { Ok(()) }
}

/// Sorting leaves a sorted set in its large encoding, as the reference does.
fn unpack_zset(cx: &mut Context<'_>, key: &Key<'_>) {
    let packed =
        |entry: Entry<'_>| matches!(entry.value(), ValueRef::Zset(zset) if zset.is_packed());
    if cx.db.peek(key).is_some_and(packed)
        && let Ok(Some(zset)) = cx.db.zset_mut(key)
    {
        zset.unpack();
    }
}

fn sortable<'e>(db: &'e Db<'_>, key: &Key<'_>) -> Result<Option<ValueRef<'e>>, CommandError> {
    match db.find(key).map(Entry::value) {
        Some(ValueRef::String(_) | ValueRef::Hash(_) | ValueRef::Stream(_)) => {
            Err(CommandError::WRONG_TYPE)
        }
        found => Ok(found),
    }
}

/// Replaces the destination with the result. The journal gets the result, so that replaying it
/// needs none of the keys that led to it.
fn store(cx: &mut Context<'_>, destination: &Key<'_>, list: List) {
    if cx.db.find_mut(destination).is_some() {
        cx.propagate(&[b"DEL", destination.bytes]);
    } else if list.is_empty() {
        return;
    }
    if list.is_empty() {
        cx.db.remove(destination);
        cx.db.changed(destination, Event(Class::GENERIC, "del"));
        return;
    }
    if cx.is_journaling() {
        let elements: Vec<_> = list.iter().map(|item| item.as_element().to_vec()).collect();
        let mut push = vec![&b"RPUSH"[..], destination.bytes];
        push.extend(elements.iter().map(Vec::as_slice));
        cx.propagate(&push);
    }
    let count = list.len() as u64;
    cx.db.set(destination, Value::List(list), None);
    cx.db.changed_times(destination, Event(Class::LIST, "sortstore"), count);
}

const BY_PATTERN: KeySpec = KeySpec::unknown(
    RO | ACCESS,
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the \
     content of the key we sort",
);
const DESTINATION: KeySpec = KeySpec::unknown(
    OW | UPDATE,
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere \
     in the argument array",
);
const SORTS: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1), BY_PATTERN, DESTINATION];
const SORTS_RO: &[KeySpec] = &[KeySpec::at(RO | ACCESS, 1), BY_PATTERN];

/// Flags of both.
const SORTING: Flags = MOVABLE_KEYS | READS_BY_PATTERN | IN_DANGEROUS;
/// The types of the values that are sorted.
const CATEGORIES: &[&str] = &["set", "sortedset", "list"];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Generic.rows([
    row("sort", sort, -2, WRITE | DENYOOM | SORTING, SORTS)
        .key_finder(find_keys)
        .categories(CATEGORIES),
    row("sort_ro", sort_ro, -2, READONLY | SORTING, SORTS_RO).categories(CATEGORIES),
]);

// ---- Documentation ------------------------------------------------------------------------------

const LIMIT: &[Argument] =
    &[argument("offset", ArgumentKind::Integer), argument("count", ArgumentKind::Integer)];

const READ_ARGUMENTS: [Argument; 6] = [
    key("key", 0),
    pattern_behind("by-pattern", "BY").optional(),
    block("limit", LIMIT).token("LIMIT").optional(),
    pattern_behind("get-pattern", "GET").optional().multiple_token(),
    one_of("order", &[word("asc", "ASC"), word("desc", "DESC")]).optional(),
    word("sorting", "ALPHA").optional(),
];

const COST: &str =
    "O(N+M*log(M)) where N is the number of elements and M that of the returned ones.";

/// A pattern that names keys which are found by the second key spec.
const fn pattern_behind(name: &'static str, token: &'static str) -> Argument {
    let mut pattern = argument(name, ArgumentKind::Pattern).shown("pattern").token(token);
    pattern.key_spec = Some(1);
    pattern
}

const DOCS: &[Docs] = &[
    docs("sort", "1.0.0", "Sorts a list, set or sorted set, and returns or stores the result.")
        .cost(COST)
        .arguments(&[
            READ_ARGUMENTS[0],
            READ_ARGUMENTS[1],
            READ_ARGUMENTS[2],
            READ_ARGUMENTS[3],
            READ_ARGUMENTS[4],
            READ_ARGUMENTS[5],
            key("destination", 2).token("STORE").optional(),
        ]),
    docs("sort_ro", "7.0.0", "Sorts a list, set or sorted set, and returns the result.")
        .cost(COST)
        .arguments(&READ_ARGUMENTS),
];

#[cfg(test)]
mod tests {
    use resp::args::OwnedArguments;

    use super::find_keys;

    fn destination(command: &str) -> Option<usize> {
        let argv: OwnedArguments = command.split(' ').collect();
        let mut found = Vec::new();
        find_keys(argv.view(), &mut |index, _| found.push(index));
        assert_eq!(found[0], 1);
        found.get(1).copied()
    }

    #[test]
    fn the_destination_is_where_the_options_have_it() {
        assert_eq!(destination("sort l"), None);
        assert_eq!(destination("sort l store"), None);
        assert_eq!(destination("sort store store d"), Some(3));
        assert_eq!(destination("sort l by store store d"), Some(5));
        assert_eq!(destination("sort l limit store get STORE d"), Some(6));
        assert_eq!(destination("sort l store store store d"), Some(5));
        assert_eq!(destination("sort l get store alpha"), None);
    }
}
