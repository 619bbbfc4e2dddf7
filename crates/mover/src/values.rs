//! Whether keys have the same values at both servers. Values are compared as clients see them: two
//! servers, and two versions of one, may keep the same value in different bytes.
//!
//! A value with few elements is asked for as a whole, together with those of other keys. A large
//! one is compared in pieces, so that neither a server nor this tool has much to do, or to keep, at
//! once.

use resp::client::Value;

use crate::server::{ASKS_FOR_TIMES, Command, Server, call_both};

/// Elements of a collection that are asked for at once.
const PIECE: i64 = 500;
/// Bytes of a value that are asked for at once, if its elements are small enough for that: all of a
/// string, or as many elements of a collection as have so many bytes by MEMORY USAGE.
const PIECE_BYTES: i64 = 256 * 1024;
/// Bytes of values of several keys that are asked for at once.
const TOGETHER_BYTES: i64 = 4 * PIECE_BYTES;

/// So many small values are asked for at once as one piece of a large one.
const MANY_TOGETHER: i64 = 8;

/// What differs, in a word for the user.
pub(crate) type Difference = &'static str;

/// A server has answered with an error, so nobody knows.
const REFUSED: Difference = "a server refuses to show it";
const VALUE: Difference = "value";
const GROUPS: Difference = "consumer groups";

/// Whether a value is the same, of a key, with its length, by pieces of so many elements.
type ComparePieces = fn(&mut Pair<'_>, &[u8], (i64, i64)) -> Result<bool, String>;

/// A type, and how its values are asked for.
struct Kind {
    name: &'static [u8],
    length: &'static str,
    /// What shows all of a value, with `KEY` for the key.
    whole: &'static [&'static str],
    /// How long a piece is at most.
    piece: i64,
    seen: fn(Value) -> Seen,
    pieces: ComparePieces,
}

const KINDS: [Kind; 6] = [
    Kind {
        name: b"string",
        length: "STRLEN",
        whole: &["GET", "KEY"],
        piece: PIECE_BYTES,
        seen: Seen::as_it_is,
        pieces: strings,
    },
    Kind {
        name: b"list",
        length: "LLEN",
        whole: &["LRANGE", "KEY", "0", "-1"],
        piece: PIECE,
        seen: Seen::as_it_is,
        pieces: lists,
    },
    Kind {
        name: b"set",
        length: "SCARD",
        whole: &["SMEMBERS", "KEY"],
        piece: PIECE,
        seen: Seen::sorted::<1>,
        pieces: sets,
    },
    Kind {
        name: b"hash",
        length: "HLEN",
        whole: &["HGETALL", "KEY"],
        piece: PIECE,
        seen: Seen::sorted::<2>,
        pieces: hashes,
    },
    Kind {
        name: b"zset",
        length: "ZCARD",
        whole: &["ZRANGE", "KEY", "0", "-1", "WITHSCORES"],
        piece: PIECE,
        seen: Seen::scored,
        pieces: sorted_sets,
    },
    Kind {
        name: b"stream",
        length: "XLEN",
        whole: &["XRANGE", "KEY", "-", "+"],
        piece: PIECE,
        seen: Seen::as_it_is,
        pieces: streams,
    },
];

/// The commands by which a key is compared, as far as each of them is needed for every value of a
/// type.
pub(crate) fn asked(key: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let own = [vec!["SELECT", "0"], vec!["TYPE", key], vec!["PEXPIRETIME", key]];
    let of_kind = move |kind: &Kind| {
        let whole = kind.whole.iter().map(|word| if *word == "KEY" { key } else { word });
        [vec![kind.length, key], whole.collect()]
    };
    own.into_iter().chain(KINDS.iter().flat_map(of_kind))
}

/// Something that belongs to a value and is not shown with it.
struct Part {
    seen: fn(Value) -> Seen,
    /// What it is called if it differs.
    name: Difference,
}

/// A value in a form in which equal ones are equal.
#[derive(PartialEq)]
struct Seen(Vec<Value>);

impl Seen {
    fn as_it_is(value: Value) -> Seen {
        Seen(vec![value])
    }

    /// Groups of so many words, by their first.
    fn sorted<const WIDTH: usize>(value: Value) -> Seen {
        let Value::Array(words) = value else { return Seen(vec![value]) };
        let mut groups: Vec<&[Value]> = words.chunks(WIDTH).collect();
        groups.sort_by(|one, other| one[0].as_bytes().cmp(&other[0].as_bytes()));
        Seen(groups.into_iter().flatten().cloned().collect())
    }

    /// Members and their scores, which servers print in different ways.
    fn scored(value: Value) -> Seen {
        let Value::Array(mut words) = value else { return Seen(vec![value]) };
        for score in words.iter_mut().skip(1).step_by(2) {
            let text = score.as_bytes().and_then(|text| std::str::from_utf8(text).ok());
            if let Some(number) = text.and_then(|text| text.parse::<f64>().ok()) {
                *score = Value::Integer(number.to_bits().cast_signed());
            }
        }
        Seen(words)
    }
}

/// Both servers.
pub(crate) struct Pair<'s> {
    pub(crate) from: &'s mut Server,
    pub(crate) to: &'s mut Server,
    /// Both know fields of hashes that expire.
    field_times: bool,
    /// Fails when there is no more time, or somebody has interrupted: asked between two pieces.
    pub(crate) go_on: &'s dyn Fn() -> Result<(), String>,
}

/// Keys by the sizes of their values.
#[derive(Default)]
pub(crate) struct Parted {
    pub(crate) small: Vec<Vec<u8>>,
    pub(crate) large: Vec<Vec<u8>>,
}

/// How large the value of a key is.
#[derive(Clone, Copy)]
struct Size {
    /// Elements, or bytes of a string.
    length: i64,
    /// Bytes, as far as a server tells.
    bytes: i64,
}

impl Size {
    /// How many elements are asked for at once.
    fn piece(self, kind: &Kind) -> i64 {
        let each = self.bytes / self.length.max(1);
        (PIECE_BYTES / each.max(1)).clamp(1, kind.piece)
    }
}

fn command(words: &[&[u8]]) -> Command {
    words.iter().map(|word| word.to_vec()).collect()
}

fn has_failed(one: &Value, other: &Value) -> bool {
    matches!((one, other), (Value::Error(_), _) | (_, Value::Error(_)))
}

/// Whether a server that was asked for the time of a field knows such. Who may not ask would take
/// different ones for the same.
fn knows_times(reply: &Value) -> Result<bool, String> {
    match reply {
        Value::Error(text) if text.starts_with(b"ERR unknown command") => Ok(false),
        Value::Error(text) => {
            let text = String::from_utf8_lossy(text);
            Err(format!("times of fields cannot be compared: a server answers {text}"))
        }
        _ => Ok(true),
    }
}

impl<'s> Pair<'s> {
    /// Both servers, which are asked what they know.
    pub(crate) fn new(
        from: &'s mut Server,
        to: &'s mut Server,
        go_on: &'s dyn Fn() -> Result<(), String>,
    ) -> Result<Pair<'s>, String> {
        let mut pair = Pair { from, to, field_times: false, go_on };
        // What is looked at here was not used by anybody. A server of an older version does not
        // know this, and nothing else is lost there.
        pair.ask(vec![command(&[b"CLIENT", b"NO-TOUCH", b"ON"])])?;
        let asked = command(&ASKS_FOR_TIMES.map(str::as_bytes));
        let (one, other) = pair.ask(vec![asked])?;
        pair.field_times = knows_times(&one[0])? && knows_times(&other[0])?;
        Ok(pair)
    }

    /// Lets both look into a database.
    pub(crate) fn select(&mut self, database: usize) -> Result<(), String> {
        let database = database.to_string();
        for server in [&mut *self.from, &mut *self.to] {
            server.call(&["SELECT", &database])?;
        }
        Ok(())
    }

    fn ask(&mut self, commands: Vec<Command>) -> Result<(Vec<Value>, Vec<Value>), String> {
        call_both(self.from, self.to, &commands)
    }

    /// Whether both answer the same, and neither with an error.
    fn agree(&mut self, asked: Command, seen: fn(Value) -> Seen) -> Result<bool, String> {
        let (mut one, mut other) = self.ask(vec![asked])?;
        let (Some(one), Some(other)) = (one.pop(), other.pop()) else { return Ok(false) };
        Ok(!has_failed(&one, &other) && seen(one) == seen(other))
    }

    /// What differs of each of these keys of the selected database.
    pub(crate) fn differences(
        &mut self,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Difference>>, String> {
        let mut found: Vec<Option<Difference>> = vec![None; keys.len()];
        let kinds = self.kinds(keys, &mut found)?;
        let lengths = self.lengths(keys, &kinds, &mut found)?;
        let (mut whole, mut together, mut fields) = (Vec::new(), 0, Vec::new());
        for (place, size) in self.sizes(keys, &kinds, &lengths)? {
            let Some(kind) = kinds[place] else { continue };
            let piece = size.piece(kind);
            if size.length <= piece {
                if together + size.bytes > TOGETHER_BYTES {
                    fields.extend(self.wholes(keys, &kinds, &whole, &mut found)?);
                    (whole, together) = (Vec::new(), 0);
                }
                together += size.bytes;
                whole.push(place);
            } else if !(kind.pieces)(self, &keys[place], (size.length, piece))? {
                found[place] = Some(VALUE);
            }
        }
        fields.extend(self.wholes(keys, &kinds, &whole, &mut found)?);
        self.parts_beside(keys, &kinds, fields, &mut found)?;
        Ok(found)
    }

    /// The sizes of values, by their lengths.
    fn sizes(
        &mut self,
        keys: &[Vec<u8>],
        kinds: &[Option<&'static Kind>],
        lengths: &[(usize, i64)],
    ) -> Result<Vec<(usize, Size)>, String> {
        let is_string = |place: usize| kinds[place].is_some_and(|kind| kind.name == b"string");
        let collections = || lengths.iter().filter(|(place, _)| !is_string(*place));
        let asked = collections()
            .map(|(place, _)| command(&[b"MEMORY", b"USAGE", &keys[*place], b"SAMPLES", b"5"]));
        let (one, other) = self.ask(asked.collect())?;
        let mut bytes = one.iter().zip(&other).map(|both| match both {
            (Value::Integer(one), Value::Integer(other)) => *one.max(other),
            // It may not be asked, or is gone.
            _ => 0,
        });
        let sized = lengths.iter().map(|(place, length)| {
            let bytes = if is_string(*place) { *length } else { bytes.next().unwrap_or(0) };
            (*place, Size { length: *length, bytes })
        });
        Ok(sized.collect())
    }

    /// Keys of the selected database whose values are shown at once, many together, and the others.
    pub(crate) fn by_size(&mut self, keys: Vec<Vec<u8>>) -> Result<Parted, String> {
        let mut found = vec![None; keys.len()];
        let kinds = self.kinds(&keys, &mut found)?;
        let lengths = self.lengths(&keys, &kinds, &mut found)?;
        let mut is_large = vec![false; keys.len()];
        for (place, size) in self.sizes(&keys, &kinds, &lengths)? {
            is_large[place] =
                kinds[place].is_some_and(|kind| size.length > size.piece(kind) / MANY_TOGETHER);
        }
        let mut parted = Parted::default();
        for (key, is_large) in keys.into_iter().zip(is_large) {
            if is_large { parted.large.push(key) } else { parted.small.push(key) }
        }
        Ok(parted)
    }

    /// The types of keys, and whether they and the times are the same. None of what is neither here
    /// nor there, and of what differs.
    fn kinds(
        &mut self,
        keys: &[Vec<u8>],
        found: &mut [Option<Difference>],
    ) -> Result<Vec<Option<&'static Kind>>, String> {
        let asked = keys
            .iter()
            .flat_map(|key| [command(&[b"TYPE", key]), command(&[b"PEXPIRETIME", key])])
            .collect();
        let (one, other) = self.ask(asked)?;
        let pairs = one.chunks_exact(2).zip(other.chunks_exact(2));
        let look = |(place, (one, other)): (usize, (&[Value], &[Value]))| {
            let name = one[0].as_bytes().unwrap_or_default();
            let kind = KINDS.iter().find(|kind| kind.name == name);
            found[place] = if has_failed(&one[0], &other[0]) || has_failed(&one[1], &other[1]) {
                Some(REFUSED)
            } else if one[0] != other[0] {
                Some("type")
            } else if one[1] != other[1] {
                Some("time to live")
            } else if kind.is_none() && name != b"none" {
                Some("type, which this tool does not know")
            } else {
                None
            };
            kind.filter(|_| found[place].is_none())
        };
        Ok(pairs.enumerate().map(look).collect())
    }

    fn lengths(
        &mut self,
        keys: &[Vec<u8>],
        kinds: &[Option<&'static Kind>],
        found: &mut [Option<Difference>],
    ) -> Result<Vec<(usize, i64)>, String> {
        let places: Vec<usize> = (0..keys.len()).filter(|place| kinds[*place].is_some()).collect();
        let asked = places.iter().filter_map(|place| {
            kinds[*place].map(|kind| command(&[kind.length.as_bytes(), &keys[*place]]))
        });
        let (one, other) = self.ask(asked.collect())?;
        let mut lengths = Vec::new();
        for (place, (one, other)) in places.into_iter().zip(one.iter().zip(&other)) {
            match (one, other) {
                (Value::Integer(one), Value::Integer(other)) if one == other => {
                    lengths.push((place, *one));
                }
                (Value::Integer(_), Value::Integer(_)) => found[place] = Some("length"),
                _ => found[place] = Some(REFUSED),
            }
        }
        Ok(lengths)
    }

    /// Compares values that are small. Returns what is to be asked of fields of hashes, with the
    /// places of the keys.
    fn wholes(
        &mut self,
        keys: &[Vec<u8>],
        kinds: &[Option<&'static Kind>],
        places: &[usize],
        found: &mut [Option<Difference>],
    ) -> Result<Vec<(usize, Command)>, String> {
        let asked = places.iter().filter_map(|place| {
            let words = kinds[*place]?.whole.iter().map(|word| match *word {
                "KEY" => keys[*place].clone(),
                word => word.as_bytes().to_vec(),
            });
            Some(words.collect())
        });
        let (one, other) = self.ask(asked.collect())?;
        let mut fields = Vec::new();
        for (place, (one, other)) in places.iter().zip(one.into_iter().zip(other)) {
            let Some(kind) = kinds[*place] else { continue };
            if has_failed(&one, &other) {
                found[*place] = Some(REFUSED);
                continue;
            }
            let (one, other) = ((kind.seen)(one), (kind.seen)(other));
            if one != other {
                found[*place] = Some(VALUE);
            } else if kind.name == b"hash" && self.field_times && !one.0.is_empty() {
                // All fields may have expired, which nobody has removed yet.
                fields.push((*place, times_of_fields(&keys[*place], &one.0)));
            }
        }
        Ok(fields)
    }

    /// What belongs to values and is not shown with them: the times of fields, for which commands
    /// are given, the groups of streams, and the ids that streams give next.
    fn parts_beside(
        &mut self,
        keys: &[Vec<u8>],
        kinds: &[Option<&'static Kind>],
        times: Vec<(usize, Command)>,
        found: &mut [Option<Difference>],
    ) -> Result<(), String> {
        let mut parts: Vec<(usize, Part)> = Vec::new();
        let mut commands = Vec::new();
        for (place, asked) in times {
            parts.push((place, Part { seen: Seen::as_it_is, name: "times of fields" }));
            commands.push(asked);
        }
        for (place, key) in keys.iter().enumerate() {
            let is_stream = kinds[place].is_some_and(|kind| kind.name == b"stream");
            if is_stream && found[place].is_none() {
                parts.push((place, Part { seen: groups, name: GROUPS }));
                commands.push(command(&[b"XINFO", b"GROUPS", key]));
                parts.push((place, Part { seen: counters, name: "last id, or counters" }));
                commands.push(command(&[b"XINFO", b"STREAM", key]));
            }
        }
        let (one, other) = self.ask(commands)?;
        let mut with_groups = Vec::new();
        for ((place, Part { seen, name }), (one, other)) in
            parts.into_iter().zip(one.into_iter().zip(other))
        {
            if has_failed(&one, &other) {
                found[place] = Some(REFUSED);
                continue;
            }
            if name == GROUPS {
                with_groups.push((place, names_of_groups(&one)));
            }
            if seen(one) != seen(other) {
                found[place] = Some(name);
            }
        }
        for (place, names) in with_groups {
            for name in names {
                if found[place].is_none() && !self.has_same_pending(&keys[place], &name)? {
                    found[place] = Some("pending entries");
                }
            }
        }
        Ok(())
    }

    /// Whether a group has given the same entries to the same consumers. How often and when is not
    /// compared: a consumer that reads its entries again changes that, and replicas of Redis do not
    /// hear of it, nor of a consumer that has got nothing yet.
    fn has_same_pending(&mut self, key: &[u8], group: &[u8]) -> Result<bool, String> {
        let count = PIECE.to_string();
        let mut first = b"-".to_vec();
        loop {
            (self.go_on)()?;
            let asked = command(&[b"XPENDING", key, group, &first, b"+", count.as_bytes()]);
            let (one, other) = self.ask(vec![asked])?;
            if has_failed(&one[0], &other[0]) || owners(&one[0]) != owners(&other[0]) {
                return Ok(false);
            }
            let Some((last, _)) = owners(&one[0]).pop() else { return Ok(true) };
            first = [b"(", &last[..]].concat();
        }
    }

    /// Goes through a collection of the old server, and ends when `same` is not so of a page of
    /// about so many elements.
    fn pages(
        &mut self,
        scan: &[u8],
        (key, piece): (&[u8], i64),
        mut same: impl FnMut(&mut Self, &[Value]) -> Result<bool, String>,
    ) -> Result<bool, String> {
        let count = piece.to_string();
        let mut cursor = b"0".to_vec();
        loop {
            (self.go_on)()?;
            let asked = command(&[scan, key, &cursor, b"COUNT", count.as_bytes()]);
            let mut replies = self.from.call_all(&[asked])?;
            let Some(Value::Array(parts)) = replies.pop() else { return Ok(false) };
            let [next, Value::Array(page)] = &parts[..] else { return Ok(false) };
            // A small collection is one page, whatever its size.
            for part in page.chunks(2 * piece.unsigned_abs() as usize) {
                if !same(self, part)? {
                    return Ok(false);
                }
            }
            cursor = next.as_bytes().unwrap_or(b"0").to_vec();
            if cursor == b"0" {
                return Ok(true);
            }
        }
    }

    /// Goes through a value by numbers, so many at a time.
    fn ranges(
        &mut self,
        (name, last): (&[u8], &[&[u8]]),
        (key, length, piece): (&[u8], i64, i64),
        seen: fn(Value) -> Seen,
    ) -> Result<bool, String> {
        let mut at = 0;
        while at < length {
            (self.go_on)()?;
            let (first, until) = (at.to_string(), (at + piece - 1).to_string());
            let mut words = vec![name, key, first.as_bytes(), until.as_bytes()];
            words.extend(last);
            if !self.agree(command(&words), seen)? {
                return Ok(false);
            }
            at += piece;
        }
        Ok(true)
    }
}

fn strings(pair: &mut Pair<'_>, key: &[u8], (length, piece): (i64, i64)) -> Result<bool, String> {
    pair.ranges((b"GETRANGE", &[]), (key, length, piece), Seen::as_it_is)
}

fn lists(pair: &mut Pair<'_>, key: &[u8], (length, piece): (i64, i64)) -> Result<bool, String> {
    pair.ranges((b"LRANGE", &[]), (key, length, piece), Seen::as_it_is)
}

fn sorted_sets(
    pair: &mut Pair<'_>,
    key: &[u8],
    (length, piece): (i64, i64),
) -> Result<bool, String> {
    pair.ranges((b"ZRANGE", &[b"WITHSCORES"]), (key, length, piece), Seen::scored)
}

/// As many members, and each of the one is in the other.
fn sets(pair: &mut Pair<'_>, key: &[u8], (_, piece): (i64, i64)) -> Result<bool, String> {
    pair.pages(b"SSCAN", (key, piece), |pair, page| {
        let mut words: Vec<&[u8]> = vec![b"SMISMEMBER", key];
        words.extend(page.iter().filter_map(Value::as_bytes));
        let mut replies = pair.to.call_all(&[command(&words)])?;
        let Some(Value::Array(found)) = replies.pop() else { return Ok(false) };
        Ok(found.len() == page.len() && found.iter().all(|one| *one == Value::Integer(1)))
    })
}

/// What asks for the times of fields, from words that are fields and their values.
fn times_of_fields(key: &[u8], words: &[Value]) -> Command {
    let fields: Vec<&[u8]> = words.iter().step_by(2).filter_map(Value::as_bytes).collect();
    let count = fields.len().to_string();
    let start: [&[u8]; 4] = [b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()];
    command(&[&start, &fields[..]].concat())
}

fn hashes(pair: &mut Pair<'_>, key: &[u8], (_, piece): (i64, i64)) -> Result<bool, String> {
    pair.pages(b"HSCAN", (key, piece), |pair, page| {
        let (fields, values): (Vec<&Value>, Vec<&Value>) =
            page.chunks_exact(2).map(|words| (&words[0], &words[1])).unzip();
        let mut words: Vec<&[u8]> = vec![b"HMGET", key];
        words.extend(fields.into_iter().filter_map(Value::as_bytes));
        let mut replies = pair.to.call_all(&[command(&words)])?;
        let Some(Value::Array(found)) = replies.pop() else { return Ok(false) };
        if !found.iter().eq(values) {
            return Ok(false);
        }
        let asks = pair.field_times;
        Ok(!asks || pair.agree(times_of_fields(key, page), Seen::as_it_is)?)
    })
}

fn streams(pair: &mut Pair<'_>, key: &[u8], (_, piece): (i64, i64)) -> Result<bool, String> {
    let count = piece.to_string();
    let mut first = b"-".to_vec();
    loop {
        (pair.go_on)()?;
        let asked = command(&[b"XRANGE", key, &first, b"+", b"COUNT", count.as_bytes()]);
        let (one, other) = pair.ask(vec![asked])?;
        let Value::Array(entries) = &one[0] else { return Ok(false) };
        if one != other {
            return Ok(false);
        }
        let Some(Value::Array(last)) = entries.last() else { return Ok(true) };
        let id = last.first().and_then(Value::as_bytes).unwrap_or_default();
        first = [b"(", id].concat();
    }
}

/// The parts of groups that are the same at servers of all versions, and at replicas.
fn groups(value: Value) -> Seen {
    const FIELDS: [&[u8]; 3] = [b"name", b"pending", b"last-delivered-id"];
    let Value::Array(groups) = value else { return Seen(vec![value]) };
    Seen(groups.into_iter().map(|group| Value::Array(fields_of(group, &FIELDS))).collect())
}

fn names_of_groups(groups: &Value) -> Vec<Vec<u8>> {
    let Value::Array(groups) = groups else { return Vec::new() };
    let name =
        |group: &Value| fields_of(group.clone(), &[b"name"]).pop()?.as_bytes().map(Vec::from);
    groups.iter().filter_map(name).collect()
}

/// The ids of pending entries, with the names of the consumers that have got them.
fn owners(pending: &Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Value::Array(entries) = pending else { return Vec::new() };
    let owner = |entry: &Value| match entry {
        Value::Array(words) => match &words[..] {
            [id, consumer, ..] => Some((id.as_bytes()?.to_vec(), consumer.as_bytes()?.to_vec())),
            _ => None,
        },
        _ => None,
    };
    entries.iter().filter_map(owner).collect()
}

/// What a stream counts: the id that comes next is greater than the last one.
fn counters(value: Value) -> Seen {
    Seen(fields_of(value, &[b"last-generated-id", b"entries-added", b"max-deleted-entry-id"]))
}

/// Fields that are wanted of a reply that has names and values in turn, with their names.
fn fields_of(value: Value, wanted: &[&[u8]]) -> Vec<Value> {
    let Value::Array(words) = value else { return vec![value] };
    let pairs = words.chunks_exact(2);
    let known = pairs.filter(|pair| pair[0].as_bytes().is_some_and(|name| wanted.contains(&name)));
    known.flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| Value::Bulk(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn equal_values_are_equal_in_any_order_and_print() {
        let same = |seen: fn(Value) -> Seen, one: &[&str], other: &[&str]| {
            seen(words(one)) == seen(words(other))
        };
        assert!(same(Seen::sorted::<1>, &["a", "b"], &["b", "a"]));
        assert!(!same(Seen::as_it_is, &["a", "b"], &["b", "a"]), "a list has an order");
        assert!(same(Seen::sorted::<2>, &["a", "1", "b", "2"], &["b", "2", "a", "1"]));
        assert!(!same(Seen::sorted::<2>, &["a", "1", "b", "2"], &["b", "1", "a", "2"]));
        assert!(same(Seen::scored, &["a", "0.1"], &["a", "0.10000000000000001"]));
        assert!(same(Seen::scored, &["a", "inf"], &["a", "inf"]));
        assert!(!same(Seen::scored, &["a", "0.1"], &["a", "0.2"]));
        assert!(!same(Seen::scored, &["a", "1"], &["b", "1"]));
    }
}
