//! The data of a cut as commands: the base of an append-only file if `aof-use-rdb-preamble` is off.
//! Each key becomes the commands that make it, with a few dozen items in each command.

use std::io;
use std::sync::Arc;

use base::num::{write_f64, write_u64};
use engine::content_types::ContentTypes;
use engine::journal::batch::ASIDE;
use store::cut::{Head, Sink};
use store::freeze::{Piece, PieceKind};
use store::pack::{Element, INTEGER_TEXT_BYTES};
use store::stream::{Group, Stream};
use store::{StreamId, ValueRef};

use super::shape::{CHUNK, Shape, Staged};

/// Items of a collection in one command.
const ITEMS_PER_COMMAND: usize = 64;
/// Bytes of items that gather for one command. An item with more is a command of its own, which
/// goes to the file without gathering.
const BYTES_PER_COMMAND: usize = CHUNK;

/// Shapes entries as commands.
pub(super) struct CommandSink<'f> {
    staged: Staged<'f>,
    /// The database of the entries before.
    database: Option<usize>,
    keys: u64,
    bytes: u64,
    /// The command that is being put together.
    command: Command,
    /// The commands after the last one of the present key: its content type, and its expiry.
    content_type_id: u8,
    expire_at: Option<u64>,
    /// When fields of the present command expire.
    times: Vec<(Vec<u8>, u64)>,
    content_types: Arc<ContentTypes>,
    /// What stands before a command that only Dunlin knows; nothing if another Dunlin gets it.
    aside: &'static [&'static [u8]],
}

/// A command that is repeated while a collection has more items.
#[derive(Default)]
struct Command {
    verb: &'static str,
    key: Vec<u8>,
    items: usize,
    /// Its further arguments, as they are sent.
    arguments: Vec<u8>,
    count: usize,
}

fn header(out: &mut Vec<u8>, sign: u8, number: usize) {
    out.push(sign);
    write_u64(out, number as u64);
    out.extend_from_slice(b"\r\n");
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

impl<'f> CommandSink<'f> {
    pub(super) fn new(staged: Staged<'f>, content_types: &Arc<ContentTypes>) -> CommandSink<'f> {
        CommandSink {
            staged,
            database: None,
            keys: 0,
            bytes: 0,
            command: Command::default(),
            content_type_id: 0,
            expire_at: None,
            times: Vec::new(),
            content_types: Arc::clone(content_types),
            aside: &ASIDE,
        }
    }

    /// Commands as a client sends them, to another Dunlin.
    pub(super) fn into_client(self) -> CommandSink<'f> {
        CommandSink { aside: &[], ..self }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.staged.gather(bytes);
    }

    /// Puts the command that makes a library of functions.
    pub(super) fn put_library(&mut self, source: &[u8]) {
        self.put_start(&[b"FUNCTION", b"LOAD"], 1);
        self.put_word(source);
    }

    /// Puts the beginning of a command, of which this many words follow.
    fn put_start(&mut self, words: &[&[u8]], more: usize) {
        let mut start = Vec::with_capacity(64);
        header(&mut start, b'*', words.len() + more);
        self.put(&start);
        words.iter().for_each(|word| self.put_word(word));
    }

    fn put_word(&mut self, word: &[u8]) {
        let mut start = Vec::with_capacity(32);
        header(&mut start, b'$', word.len());
        self.put(&start);
        self.put(word);
        self.put(b"\r\n");
    }

    fn put_element(&mut self, element: Element<'_>) {
        self.put_word(element.as_bytes(&mut [0; INTEGER_TEXT_BYTES]));
    }

    /// Puts the beginning of a command for the present key.
    fn put_verb(&mut self, verb: &str, more: usize) {
        let key = std::mem::take(&mut self.command.key);
        self.put_start(&[verb.as_bytes(), &key], more);
        self.command.key = key;
    }

    /// Puts a command with the key after its verb.
    fn put_words(&mut self, verb: &str, words: &[&[u8]]) {
        self.put_verb(verb, words.len());
        words.iter().for_each(|word| self.put_word(word));
    }

    /// Puts the command with the items that have gathered, and when its fields expire.
    fn put_items(&mut self) {
        if self.command.count > 0 {
            self.put_verb(self.command.verb, self.command.count);
            let mut arguments = std::mem::take(&mut self.command.arguments);
            self.put(&arguments);
            arguments.clear();
            self.command.arguments = arguments;
            (self.command.items, self.command.count) = (0, 0);
        }
        for (field, at) in std::mem::take(&mut self.times) {
            self.put_words("HPEXPIREAT", &[at.to_string().as_bytes(), b"FIELDS", b"1", &field]);
        }
    }

    /// Adds an item of the present collection, which consists of these words. The first one is a
    /// field if it expires.
    fn item(&mut self, words: &[&[u8]], expire_at: Option<u64>) {
        let is_large = words.iter().map(|word| word.len()).sum::<usize>() > BYTES_PER_COMMAND;
        if is_large {
            self.put_items();
            self.put_words(self.command.verb, words);
        } else {
            words.iter().for_each(|word| bulk(&mut self.command.arguments, word));
            self.command.count += words.len();
            self.command.items += 1;
        }
        self.times.extend(expire_at.map(|at| (words[0].to_vec(), at)));
        let Command { items, arguments, .. } = &self.command;
        if is_large || *items == ITEMS_PER_COMMAND || arguments.len() > BYTES_PER_COMMAND {
            self.put_items();
        }
    }

    fn member(&mut self, member: Element<'_>) {
        self.item(&[member.as_bytes(&mut [0; INTEGER_TEXT_BYTES])], None);
    }

    fn field(&mut self, field: Element<'_>, value: Element<'_>, expire_at: Option<u64>) {
        let (mut field_text, mut value_text) = ([0; INTEGER_TEXT_BYTES], [0; INTEGER_TEXT_BYTES]);
        let words = [field.as_bytes(&mut field_text), value.as_bytes(&mut value_text)];
        self.item(&words, expire_at);
    }

    fn scored(&mut self, member: Element<'_>, score: f64) {
        let mut text = Vec::with_capacity(32);
        write_f64(&mut text, score);
        self.item(&[&text, member.as_bytes(&mut [0; INTEGER_TEXT_BYTES])], None);
    }

    fn begin_key(&mut self, head: &Head<'_>, verb: &'static str) {
        if self.database != Some(head.database) {
            self.database = Some(head.database);
            self.put_start(&[b"SELECT", head.database.to_string().as_bytes()], 0);
        }
        self.keys += 1;
        self.content_type_id = head.content_type_id;
        self.expire_at = head.expire_at;
        self.command.verb = verb;
        self.command.key.clear();
        self.command.key.extend_from_slice(head.key);
    }

    fn end_key(&mut self) {
        self.put_items();
        if let Some(name) = self.content_types.name(std::mem::take(&mut self.content_type_id)) {
            let mut whole = Vec::new();
            header(&mut whole, b'*', self.aside.len() + 3);
            self.aside.iter().for_each(|word| bulk(&mut whole, word));
            let words: [&[u8]; 3] = [b"CONTENTTYPE", &self.command.key, &name];
            words.iter().for_each(|word| bulk(&mut whole, word));
            self.put(&whole);
        }
        if let Some(at) = self.expire_at.take() {
            self.put_words("PEXPIREAT", &[at.to_string().as_bytes()]);
        }
    }

    /// Puts a command of a group, with the key after the subcommand.
    fn put_group(&mut self, subcommand: &[u8], words: &[&[u8]]) {
        let key = std::mem::take(&mut self.command.key);
        self.put_start(&[b"XGROUP", subcommand, &key], words.len());
        self.command.key = key;
        words.iter().for_each(|word| self.put_word(word));
    }

    /// A stream exactly as it is, in parts that are loaded quickly. Only this program knows the
    /// command for those after the first.
    fn put_parts(&mut self, stream: &Stream) {
        let mut is_first = true;
        stream.divide(BYTES_PER_COMMAND, &mut |part| {
            let payload = rdb::dump_for_others(ValueRef::Stream(&part), false);
            match std::mem::take(&mut is_first) {
                true => self.put_words("RESTORE", &[b"0", &payload]),
                false => self.put_words("RESTOREPART", &[&payload]),
            }
        });
    }

    /// The entries one by one, then the numbers about ids, then the groups, as Redis writes them.
    /// What is pending of entries that were deleted cannot be said in this way, nor when consumers
    /// were seen.
    fn put_stream(&mut self, stream: &Stream) {
        for entry in stream.range(StreamId::MIN, StreamId::MAX) {
            self.put_verb("XADD", 1 + 2 * entry.fields.len());
            self.put_word(entry.id.to_string().as_bytes());
            for (name, value) in entry.fields {
                self.put_element(name);
                self.put_element(value);
            }
        }
        if stream.is_empty() {
            // It is made with an entry, which is deleted at once.
            self.put_words("XADD", &[b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
        }
        let numbers = stream.numbers();
        let (last, deleted) = (numbers.last_id.to_string(), numbers.max_deleted_id.to_string());
        let added = numbers.entries_added.to_string();
        let words: [&[u8]; 5] = [
            last.as_bytes(),
            b"ENTRIESADDED",
            added.as_bytes(),
            b"MAXDELETEDID",
            deleted.as_bytes(),
        ];
        self.put_words("XSETID", &words);
        stream.groups().for_each(|(name, group)| self.put_group_state(name, group));
    }

    fn put_group_state(&mut self, name: &[u8], group: &Group) {
        let last = group.last_id.to_string();
        let read = group.entries_read.map_or_else(|| "-1".to_owned(), |read| read.to_string());
        self.put_group(b"CREATE", &[name, last.as_bytes(), b"ENTRIESREAD", read.as_bytes()]);
        for consumer in group.consumers() {
            self.put_group(b"CREATECONSUMER", &[name, consumer.name()]);
        }
        for (id, pending) in group.pending_from(StreamId::MIN) {
            let Some(consumer) = group.consumer(pending.consumer) else { continue };
            let (id, time) = (id.to_string(), pending.delivered_ms.to_string());
            let count = pending.deliveries.to_string();
            let words: [&[u8]; 10] = [
                name,
                consumer.name(),
                b"0",
                id.as_bytes(),
                b"TIME",
                time.as_bytes(),
                b"RETRYCOUNT",
                count.as_bytes(),
                b"JUSTID",
                b"FORCE",
            ];
            self.put_words("XCLAIM", &words);
        }
    }
}

impl Shape for CommandSink<'_> {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn failed(&mut self) -> io::Result<()> {
        // It only fills memory.
        Ok(())
    }

    fn finish(self) -> io::Result<u64> {
        Ok(self.bytes)
    }
}

impl Sink for CommandSink<'_> {
    fn entry(&mut self, head: &Head<'_>, value: ValueRef<'_>) {
        let verb = match value {
            ValueRef::Stream(_) => "XADD",
            ValueRef::String(_) => "SET",
            ValueRef::List(_) => "RPUSH",
            ValueRef::Set(_) => "SADD",
            ValueRef::Hash(_) => "HSET",
            ValueRef::Zset(_) => "ZADD",
        };
        self.begin_key(head, verb);
        match value {
            ValueRef::Stream(stream) if self.aside.is_empty() => self.put_parts(stream),
            ValueRef::Stream(stream) => self.put_stream(stream),
            ValueRef::String(string) => self.put_words("SET", &[&string.bytes()]),
            ValueRef::List(list) => list.iter().for_each(|item| self.member(item.as_element())),
            ValueRef::Set(set) => set.iter().for_each(|member| self.member(member)),
            ValueRef::Hash(hash) => hash.iter().for_each(|(field, value, expire_at)| {
                self.field(field, value, expire_at);
            }),
            ValueRef::Zset(zset) => {
                zset.iter().for_each(|(member, score)| self.scored(member, score));
            }
        }
        self.end_key();
    }

    fn entry_at_leisure(&mut self, head: &Head<'_>, value: ValueRef<'_>) {
        self.staged.set_at_leisure(true);
        self.entry(head, value);
        self.staged.set_at_leisure(false);
    }

    fn begin_text(&mut self, head: &Head<'_>, len: usize) {
        self.begin_key(head, "SET");
        self.put_verb("SET", 1);
        let mut start = Vec::new();
        header(&mut start, b'$', len);
        self.put(&start);
    }

    fn text(&mut self, part: &[u8]) {
        self.put(part);
    }

    fn end_text(&mut self) {
        self.put(b"\r\n");
        self.end_key();
    }

    fn begin(&mut self, head: &Head<'_>, kind: PieceKind, _: usize) {
        let verb = match kind {
            PieceKind::Member => "SADD",
            PieceKind::Field(_) => "HSET",
            PieceKind::Scored => "ZADD",
        };
        self.begin_key(head, verb);
    }

    fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Member(member) => self.member(Element::Str(member)),
            Piece::Field(field, value, expire_at) => {
                self.field(Element::Str(field), Element::Str(value), expire_at);
            }
            Piece::Scored(member, score) => self.scored(Element::Str(member), score),
        }
    }

    fn piece_at_leisure(&mut self, piece: Piece<'_>) {
        self.staged.set_at_leisure(true);
        self.piece(piece);
        self.staged.set_at_leisure(false);
    }

    fn end(&mut self) {
        self.end_key();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use resp::client::{ReplyParser, Value};
    use store::list::ListLimits;
    use store::pack::End;
    use store::{Hash, List};

    use super::*;

    #[test]
    fn collections_become_commands_of_some_items_and_the_expiry_comes_last() {
        let mut file = Vec::new();
        let staged = Staged::new(&mut file, Duration::ZERO);
        let mut sink = CommandSink::new(staged.clone(), &Arc::default());
        let head =
            Head { database: 2, key: b"set", expire_at: Some(1234), clock: 0, content_type_id: 0 };
        let items = ITEMS_PER_COMMAND + 1;
        sink.begin(&head, PieceKind::Member, items);
        for item in 0..items {
            sink.piece(Piece::Member(item.to_string().as_bytes()));
        }
        sink.end();
        let (keys, bytes) = (sink.keys(), sink.finish().unwrap());
        staged.end().unwrap();
        drop(staged);
        let text = String::from_utf8(file).unwrap();
        assert_eq!((keys, bytes), (1, text.len() as u64));
        assert!(
            text.starts_with("*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n*66\r\n$4\r\nSADD\r\n$3\r\nset\r\n")
        );
        assert!(text.ends_with(
            "*3\r\n$4\r\nSADD\r\n$3\r\nset\r\n$2\r\n64\r\n\
             *3\r\n$9\r\nPEXPIREAT\r\n$3\r\nset\r\n$4\r\n1234\r\n"
        ));
    }
    /// The output of a sink, a line for each word.
    fn written(put: impl FnOnce(&mut CommandSink<'_>)) -> Vec<String> {
        let mut file = Vec::new();
        let staged = Staged::new(&mut file, Duration::ZERO);
        let mut sink = CommandSink::new(staged.clone(), &Arc::default());
        put(&mut sink);
        sink.finish().unwrap();
        staged.end().unwrap();
        drop(staged);
        let mut parser = ReplyParser::new();
        let (mut commands, mut rest) = (Vec::new(), &file[..]);
        while !rest.is_empty() {
            let (command, length) = parser.next(rest).unwrap().unwrap();
            let Value::Array(words) = command else { panic!("a command is an array") };
            let words = words.iter().map(|word| String::from_utf8_lossy(word.as_bytes().unwrap()));
            commands.push(words.collect::<Vec<_>>().join(" "));
            rest = &rest[length..];
        }
        commands
    }

    #[test]
    fn a_large_value_goes_to_the_file_while_it_is_shown() {
        let mut list = List::new();
        (0..100).for_each(|_| list.push(End::Back, &[b'v'; 20_000][..], &ListLimits::default()));
        let head = Head { database: 0, key: b"k", expire_at: None, clock: 0, content_type_id: 0 };
        let written = |at_leisure: bool| {
            let mut file = Vec::new();
            let staged = Staged::new(&mut file, Duration::ZERO);
            let mut sink = CommandSink::new(staged.clone(), &Arc::default());
            if at_leisure {
                sink.entry_at_leisure(&head, ValueRef::List(&list));
            } else {
                sink.entry(&head, ValueRef::List(&list));
            }
            drop((sink, staged));
            file.len()
        };
        assert_eq!(written(false), 0, "its slot may be locked");
        assert!(written(true) > 1_900_000);
    }

    #[test]
    fn large_items_do_not_gather() {
        let mut file = Vec::new();
        let staged = Staged::new(&mut file, Duration::ZERO);
        let mut sink = CommandSink::new(staged.clone(), &Arc::default());
        let head = Head { database: 0, key: b"h", expire_at: None, clock: 0, content_type_id: 0 };
        let large = vec![b'v'; 1 << 20];
        sink.begin(&head, PieceKind::Field(None), 20);
        for number in 0..20_u8 {
            sink.piece(Piece::Field(&[number], b"small", None));
            let before = base::passing::balance();
            sink.piece_at_leisure(Piece::Field(&[100 + number], &large, Some(5)));
            assert!(sink.command.arguments.is_empty(), "nothing waits for a further item");
            assert!(base::passing::balance() - before <= 2 * CHUNK as i64, "it goes to the file");
        }
        sink.end();
        staged.end().unwrap();
        drop((sink, staged));
        assert!(file.len() > 20 << 20);
        let place = |text: &[u8]| file.windows(text.len()).position(|at| at == text).unwrap();
        let value = place(b"$1048576\r\nvvv");
        let expiry =
            place(b"HPEXPIREAT\r\n$1\r\nh\r\n$1\r\n5\r\n$6\r\nFIELDS\r\n$1\r\n1\r\n$1\r\nd");
        assert!(place(b"small") < value && value < expiry, "in this order");
    }

    #[test]
    fn a_string_that_comes_in_parts_is_one_argument() {
        let head =
            Head { database: 3, key: b"k", expire_at: Some(99), clock: 0, content_type_id: 0 };
        let commands = written(|sink| {
            sink.begin_text(&head, 10);
            sink.text(b"12345");
            sink.text(b"6789!");
            sink.end_text();
        });
        assert_eq!(commands, ["SELECT 3", "SET k 123456789!", "PEXPIREAT k 99"]);
    }

    #[test]
    fn times_of_fields_follow_their_fields_and_come_before_the_expiry_of_the_key() {
        let limits = store::Limits { entries: 128, value: 64 };
        let mut hash = Hash::new();
        for (field, at) in [("never", None), ("late", Some(Hash::LATEST)), ("early", Some(7))] {
            hash.set_timed(field.as_bytes(), b"v", at, limits);
        }
        let head =
            Head { database: 0, key: b"h", expire_at: Some(99), clock: 0, content_type_id: 0 };
        let late = format!("HPEXPIREAT h {} FIELDS 1 late", Hash::LATEST);
        let after = ["HPEXPIREAT h 7 FIELDS 1 early", &late, "PEXPIREAT h 99"];
        let expected = [&["SELECT 0", "HSET h early v late v never v"], &after[..]].concat();
        assert_eq!(written(|sink| sink.entry(&head, ValueRef::Hash(&hash))), expected);
    }

    #[test]
    fn times_of_many_fields_follow_the_command_that_has_their_fields() {
        let head = Head { database: 0, key: b"h", expire_at: None, clock: 0, content_type_id: 0 };
        let fields = ITEMS_PER_COMMAND + 2;
        let commands = written(|sink| {
            sink.begin(&head, PieceKind::Field(Some(5)), fields);
            for number in 0..fields {
                let at = (number % ITEMS_PER_COMMAND == 1).then_some(5);
                sink.piece(Piece::Field(number.to_string().as_bytes(), b"v", at));
            }
            sink.end();
        });
        assert!(commands[1].starts_with("HSET h 0 v 1 v 2 v"));
        assert_eq!(commands[1].split(' ').count(), 2 + 2 * ITEMS_PER_COMMAND);
        assert_eq!(commands[2], "HPEXPIREAT h 5 FIELDS 1 1");
        assert_eq!(commands[3..], ["HSET h 64 v 65 v", "HPEXPIREAT h 5 FIELDS 1 65"]);
    }
}
