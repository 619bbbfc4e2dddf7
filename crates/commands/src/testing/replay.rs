//! Replaying the journal leads to the same data: random commands of all families run on one engine,
//! with a clock that moves, and the entries of its journal run on another one whose clock stands
//! still.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proptest::prelude::*;
use resp::client::{ReplyParser, Value};
use store::{StreamId, ValueRef};
use tests::grammar;
use tests::random::Random;

use super::{Effect, TestServer};
use config::{Config, RenamedCommand};

/// When the runs begin: before all times in the future that the grammar knows, in Unix
/// milliseconds.
const START: u64 = 1_700_000_000_000;

/// Commands whose effects differ from the commands themselves, or depend on chance, the clock or
/// other clients: more often than the grammar makes them, if it makes them at all.
const SHAPES: &[&str] = &[
    "SET <string> <value> ( PX ( 5 | 50 | 500 ) | EX 1 )",
    "SET <string> <value> KEEPTTL",
    "SETEX <string> 1 <value>",
    "GETEX <string> PX ( 5 | 50 | 500 )",
    "PEXPIRE <key> ( 5 | 50 | 500 ) [ ( NX | XX | GT | LT ) ]",
    "PEXPIRE <key> ( 5 | 50 | 500 )",
    "EXPIRE <key> 1",
    "INCRBYFLOAT <string> <float>",
    "HINCRBYFLOAT <hash> <field> <float>",
    "HPEXPIRE <hash> ( 5 | 50 | 500 ) FIELDS 2 <field> <field>",
    "HEXPIRE <hash> 1 [ ( NX | XX | GT | LT ) ] FIELDS 3 <field> <field> <field>",
    "HGETEX <hash> ( PX ( 5 | 50 ) | PERSIST ) FIELDS 2 <field> <field>",
    "HSETEX <hash> [ ( FNX | FXX ) ] [ ( PX ( 5 | 50 | 500 ) | KEEPTTL ) ] FIELDS 2 <field> <value> <field> <value>",
    "HPERSIST <hash> FIELDS 2 <field> <field>",
    "HMGET <hash> <field> <field> <field>",
    "HSETNX <hash> <field> <value>",
    "SPOP <set> [ <count> ]",
    "SORT <set> BY nosort GET # STORE <list>",
    "SORT <list> [ BY ( s* | h*->f1 | nosort ) ] ( GET ( # | s* | h*->f1 ) )+ [ ALPHA ] STORE <list>",
    "BLPOP <list> <list> 0",
    "BRPOP <list> 0",
    "BLMOVE <list> <list> ( LEFT | RIGHT ) ( LEFT | RIGHT ) 0",
    "BLMPOP 0 2 <list> <list> LEFT [ COUNT <count> ]",
    "BZPOPMIN <zset> <zset> 0",
    "BZMPOP 0 2 <zset> <zset> MAX [ COUNT <count> ]",
    "RPUSH <list> ( <member> )+",
    "ZADD <zset> ( <score> <member> )+",
    "RENAME <key> <key>",
    "COPY <key> <key> [ DB ( 0 | 1 ) ] [ REPLACE ]",
    "MOVE <key> ( 0 | 1 )",
    "SWAPDB 0 1",
    "FLUSHDB",
    "XADD <stream> [ MAXLEN [ ( = | ~ ) ] <count> ] ( * | 5-* ) ( <field> <value> )+",
    "XADD <stream> MINID ~ <id> LIMIT 0 * f1 <value>",
    "XTRIM <stream> ( MAXLEN | MINID ) ~ <count> LIMIT <count>",
    "XGROUP CREATE <stream> <group> ( 0 | $ ) MKSTREAM",
    "XREADGROUP GROUP <group> <consumer> [ COUNT <count> ] [ NOACK ] BLOCK 0 STREAMS <stream> >",
    "XREADGROUP GROUP <group> <consumer> BLOCK 0 STREAMS <stream> <stream> > >",
    "XREAD BLOCK 0 STREAMS <stream> <stream> $ $",
    "XCLAIM <stream> <group> <consumer> 0 ( <id> )+ [ FORCE ] [ JUSTID ]",
    "XAUTOCLAIM <stream> <group> <consumer> 0 0",
    "XDEL <stream> ( <id> )+",
];

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    /// A command of the grammar, by its seed.
    Any(u64),
    /// A command of one of [`SHAPES`].
    Special(usize, u64),
    /// A value is dumped and restored, with an expiry.
    Restore(u64),
    /// Time passes, in milliseconds.
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => any::<u64>().prop_map(Step::Any),
        30 => (0..SHAPES.len(), any::<u64>()).prop_map(|(shape, seed)| Step::Special(shape, seed)),
        4 => any::<u64>().prop_map(Step::Restore),
        6 => (1u64..400).prop_map(Step::Wait),
    ]
}

/// What stands before the names of commands where clients have other names for all of them.
const BEFORE_NAMES: &str = "client-";

fn config(packed: usize, renames: bool) -> Config {
    let rows = crate::registry().public_rows().filter(|row| row.command.parent.is_none());
    let renamed = rows.map(|row| RenamedCommand {
        from: row.command.name.into(),
        to: [BEFORE_NAMES, row.command.name].concat().into(),
    });
    Config {
        renamed_commands: if renames { renamed.collect() } else { Vec::new() },
        hash_max_listpack_entries: packed,
        set_max_intset_entries: packed,
        set_max_listpack_entries: packed,
        zset_max_listpack_entries: packed,
        list_max_listpack_size: 3,
        stream_node_max_entries: 3,
        ..Config::default()
    }
}

fn take(server: &mut TestServer, step: &Step) {
    match *step {
        Step::Any(seed) => {
            let command = grammar::command(&grammar::REDIS, &mut Random::new(seed));
            let is_left_out = match command.name().as_str() {
                // Settings are not journalled, and both sides have the same ones.
                "CONFIG" => true,
                // A long value that is over at once leaves a table, and nothing to replay.
                "HSETEX" => {
                    command.words.iter().any(|word| word.to_ascii_uppercase().ends_with(b"XAT"))
                }
                _ => false,
            };
            if !is_left_out {
                run(server, &command.words);
            }
        }
        Step::Special(shape, seed) => {
            run(server, &grammar::of_shape(SHAPES[shape], &mut Random::new(seed)));
        }
        Step::Restore(seed) => restore(server, &mut Random::new(seed)),
        Step::Wait(milliseconds) => server.now = server.now.map(|now| now + milliseconds),
    }
}

/// Runs a command. A connection that has to wait stays waiting, and another one goes on.
fn run(server: &mut TestServer, words: &[Vec<u8>]) {
    if call(server, words).is_empty() {
        server.session = server.connect();
    }
}

/// Runs a command by the name that clients have for it.
fn call(server: &mut TestServer, words: &[Vec<u8>]) -> Vec<u8> {
    let mut words = words.to_vec();
    if !server.engine.config.load().renamed_commands.is_empty() {
        words[0].splice(..0, BEFORE_NAMES.bytes());
    }
    server.run(&words)
}

fn restore(server: &mut TestServer, random: &mut Random) {
    if server.session.transaction.is_some() {
        return;
    }
    let from = grammar::of_shape("DUMP <key>", random);
    let reply = call(server, &from);
    let (value, _) = ReplyParser::new().next(&reply).unwrap().unwrap();
    let Some(payload) = value.as_bytes() else { return };
    let mut words = grammar::of_shape("RESTORE <key> ( 0 | 50 | 5000 ) payload", random);
    words[3] = payload.to_vec();
    words.extend(grammar::of_shape("REPLACE [ IDLETIME 10 ]", random));
    run(server, &words);
}

/// Runs the entries of another server's journal.
fn replay(server: &mut TestServer, effects: &[Effect]) {
    let mut selected = 0;
    for effect in effects {
        if effect.database != selected {
            selected = effect.database;
            server.text(&format!("SELECT {selected}"));
        }
        let reply = server.run(&effect.argv);
        let (value, length) = ReplyParser::new().next(&reply).unwrap().unwrap();
        assert_eq!(length, reply.len());
        assert!(!fails(&value), "{} answers {}", Shown(effect), reply.escape_ascii());
    }
    assert!(server.session.transaction.is_none(), "transactions of the journal are complete");
}

fn fails(value: &Value) -> bool {
    match value {
        Value::Array(parts) => parts.iter().any(fails),
        other => other.is_error(),
    }
}

/// The value of a key, without the order that only a table's history explains.
#[derive(Debug, PartialEq)]
enum Contents {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    /// Fields with their values and times.
    Hash(BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>),
    /// Scores as bits: zero has a sign.
    Zset(Vec<(Vec<u8>, u64)>),
    /// All that it has, as text.
    Stream(String),
}

impl Contents {
    fn of(value: ValueRef<'_>) -> Contents {
        match value {
            ValueRef::String(string) => Contents::String(string.bytes().to_vec()),
            ValueRef::List(list) => {
                Contents::List(list.iter().map(|item| item.as_element().to_vec()).collect())
            }
            ValueRef::Set(set) => Contents::Set(set.iter().map(|member| member.to_vec()).collect()),
            ValueRef::Hash(hash) => {
                let fields =
                    hash.iter().map(|(field, value, at)| (field.to_vec(), (value.to_vec(), at)));
                Contents::Hash(fields.collect())
            }
            ValueRef::Stream(stream) => {
                let mut text = format!("{:?}", stream.numbers());
                for entry in stream.range(StreamId::MIN, StreamId::MAX) {
                    let fields: Vec<_> = entry.fields.collect();
                    text.push_str(&format!(" {} {fields:?}", entry.id));
                }
                for (name, group) in stream.groups() {
                    let place = (name, group.last_id, group.entries_read);
                    text.push_str(&format!(" {place:?}"));
                    for consumer in group.consumers() {
                        let ids: Vec<_> = consumer.pending_from(StreamId::MIN).collect();
                        text.push_str(&format!(" {:?} {ids:?}", consumer.name()));
                    }
                    for (id, pending) in group.pending_from(StreamId::MIN) {
                        // Not when: the other engine's clock stands still.
                        text.push_str(&format!(" {id} {}", pending.deliveries));
                    }
                }
                Contents::Stream(text)
            }
            ValueRef::Zset(zset) => {
                let pairs = zset.iter();
                Contents::Zset(
                    pairs.map(|(name, score)| (name.to_vec(), score.to_bits())).collect(),
                )
            }
        }
    }
}

/// All live keys by database and name: contents, encoding and expiry.
type Data = BTreeMap<(usize, String), (Contents, &'static str, Option<u64>)>;

fn data(server: &TestServer, now: u64) -> Data {
    let keyspace = &server.engine.keyspace;
    let mut data = Data::new();
    let inside = server.gate.enter();
    for database in 0..keyspace.databases() {
        for slot in keyspace.occupied(database) {
            let locked = server.engine.lock_slot(inside.pinned(), slot);
            let table = locked.table(database, slot).expect("the slot is occupied");
            let mut position = Some(0);
            while let Some(at) = position {
                position = table.walk(at, |entry| {
                    if entry.expire_at().is_some_and(|at| at < now) {
                        return;
                    }
                    let (key, value) = (entry.key().escape_ascii().to_string(), entry.value());
                    let encoding = match value {
                        // A float that was added to is a text; SET, in its place, sees an integer.
                        ValueRef::String(_) => "any",
                        // SORT leaves a sorted set in its large encoding, and nothing to replay.
                        ValueRef::Zset(_) => "any",
                        // LINSERT makes room before it searches for a pivot that may be missing.
                        ValueRef::List(_) => "any",
                        // Fields that once had times leave a mark, and nothing to replay.
                        ValueRef::Hash(_) if value.encoding() == "listpackex" => "listpack",
                        _ => value.encoding(),
                    };
                    let known = (Contents::of(value), encoding, entry.expire_at());
                    data.insert((database, key), known);
                });
            }
        }
    }
    data
}

/// An effect as a line of text.
struct Shown<'e>(&'e Effect);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.database)?;
        self.0.argv.iter().try_for_each(|word| write!(f, " {}", word.escape_ascii()))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_replayed_journal_leads_to_the_same_data(
        steps in proptest::collection::vec(step(), 1..200),
        packed in prop_oneof![Just(4usize), Just(512)],
        renames in any::<bool>(),
    ) {
        let mut server = crate::testing::server_with(config(packed, renames));
        server.now = Some(START);
        let mut effects = Vec::new();
        let mut lines = Vec::new();
        for step in &steps {
            take(&mut server, step);
            let new = server.journal.take();
            lines.extend(new.iter().map(|effect| Shown(effect).to_string()));
            effects.extend(new);
        }
        let now = server.now.unwrap_or(START);
        // It knows commands by their own names alone.
        let mut replica = crate::testing::server_with(config(packed, false));
        replica.now = Some(START);
        replay(&mut replica, &effects);
        prop_assert_eq!(data(&replica, now), data(&server, now), "journal:\n{}", lines.join("\n"));
    }
}
