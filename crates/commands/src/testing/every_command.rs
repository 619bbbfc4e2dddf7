//! Every command, in each form that its documentation has, inside a transaction and called by a
//! script: it gives one whole reply there, at once, whatever it would do for a client alone.

use std::sync::Arc;

use cluster::ids::{NodeId, ShardId};
use cluster::topology::{Address, Leader, Node, Shard, Topology};
use config::{Config, Permission};
use engine::command::{
    ADMIN, Argument, ArgumentKind, INTERNAL, NEVER_QUEUED, OF_CONNECTION, PUBSUB, WRITE,
};
use engine::engine::Row;
use resp::client::{ReplyParser, Value};

use super::TestServer;

type Words = Vec<String>;

/// A key of each type, and one that is not there, in one slot of the first shard.
const KEYS: [&str; 7] =
    ["{k2}string", "{k2}list", "{k2}hash", "{k2}set", "{k2}zset", "{k2}stream", "{k2}nothing"];

/// Stands for each of [`KEYS`] in a form.
const KEY: &str = "a key";

/// Forms that no documentation has: those of commands for tests and for other servers, and settings
/// and files that are there.
const MORE: &[(&str, &[&str])] = &[
    (
        "replconf",
        &[
            "ack 1",
            "getack *",
            "listening-port 1 ack 1",
            "listening-port 1",
            "cluster-promise 0303030303030303030303030303030303030303_1_1_1",
        ],
    ),
    ("config|set", &["maxmemory 0", "save 3600_1", "port 1"]),
    ("config|get", &["*"]),
    ("client|kill", &["id 1 skipme no", "type normal", "type normal skipme no"]),
    (
        "debug",
        &[
            "sleep 0",
            "object a",
            "digest",
            "reload",
            "error x",
            "log x",
            "jmap",
            "help",
            "change-repl-id",
            "set-active-expire 1",
            "stringmatch-len 10 a",
            "protocol string",
            "protocol map",
            "protocol null",
        ],
    ),
];

/// All alternatives of an argument that is there.
fn alternatives(argument: &Argument) -> Vec<Words> {
    let one = |text: &str| vec![vec![text.to_owned()]];
    let all = match argument.kind {
        ArgumentKind::PureToken => return one(argument.token.unwrap_or(argument.name)),
        ArgumentKind::OneOf => argument.arguments.iter().flat_map(alternatives).collect(),
        ArgumentKind::Block => forms(argument.arguments),
        ArgumentKind::Key => one(KEY),
        ArgumentKind::Integer | ArgumentKind::UnixTime => one("1"),
        ArgumentKind::Double => one("1.5"),
        ArgumentKind::Pattern => one("*"),
        ArgumentKind::String => one(match argument.name {
            "script" => "return 1",
            "username" => "default",
            "host" | "ip" => "127.0.0.1",
            "cursor" | "start" | "id" | "last-id" => "0",
            "min" => "-",
            "max" | "end" => "+",
            _ => "a",
        }),
    };
    let token = argument.token.map(str::to_owned);
    all.into_iter().map(|words| token.iter().cloned().chain(words).collect()).collect()
}

/// What documentation says of arguments as words: the shortest form, that with everything, and each
/// alternative in one form.
fn forms(arguments: &[Argument]) -> Vec<Words> {
    let all: Vec<Vec<Words>> = arguments.iter().map(alternatives).collect();
    let first = |index: usize| all[index].first().cloned().unwrap_or_default();
    let indexes = 0..arguments.len();
    let form = |chosen: usize, with: &Words, everything: bool| {
        let words = |index: usize| match () {
            () if index == chosen => with.clone(),
            () if arguments[index].optional && !everything => Vec::new(),
            () => first(index),
        };
        indexes.clone().flat_map(words).collect::<Words>()
    };
    let mut found = vec![form(usize::MAX, &Vec::new(), false), form(usize::MAX, &Vec::new(), true)];
    for index in indexes.clone() {
        found.extend(all[index].iter().map(|with| form(index, with, false)));
    }
    found.sort();
    found.dedup();
    found
}

/// All that is tried of a row.
fn commands(row: &Row) -> Vec<Words> {
    let name = row.command.full_name();
    let more = MORE.iter().filter(|(of, _)| *of == name).flat_map(|(_, forms)| *forms);
    let more =
        more.map(|form| form.split(' ').map(|word| word.replace('_', " ")).collect::<Words>());
    let all = forms(crate::registry().docs(row).arguments).into_iter().chain(more);
    let with_key = |form: Words| {
        let keys = if form.iter().any(|word| word == KEY) { &KEYS[..] } else { &KEYS[..1] };
        let with = |key: &&str| {
            let word = |word: &String| if word == KEY { (*key).to_owned() } else { word.clone() };
            name.split('|').map(str::to_owned).chain(form.iter().map(word)).collect()
        };
        keys.iter().map(with).collect::<Vec<Words>>()
    };
    all.flat_map(with_key).collect()
}

/// What the server is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    Alone,
    /// A replica in a cluster whose primary lives.
    ReplicaOfCluster,
}

fn server(part: Part) -> TestServer {
    let config = Config {
        cluster_enabled: part == Part::ReplicaOfCluster,
        enable_debug_command: Permission::Yes,
        enable_protected_configs: Permission::Yes,
        ..Config::default()
    };
    let mut server = super::server_with_scripts(config);
    match part {
        Part::Alone => {
            for line in [
                "SET {k2}string 1",
                "RPUSH {k2}list a b c",
                "HSET {k2}hash a 1 b 2",
                "SADD {k2}set a b",
                "ZADD {k2}zset 1 a 2 b",
                "XADD {k2}stream 1-1 a 1",
            ] {
                assert!(!server.text(line).starts_with('-'), "{line}");
            }
        }
        Part::ReplicaOfCluster => {
            let (own, primary) = (NodeId([3; 20]), NodeId([1; 20]));
            server.engine.cluster.set_own(own);
            server.engine.follow_topology(Arc::new(two_nodes(primary, own)));
        }
    }
    server
}

/// One shard.
fn two_nodes(primary: NodeId, replica: NodeId) -> Topology {
    let id = ShardId([1; 20]);
    let node = |id: NodeId, port: u16| Node {
        id,
        shard: Some(ShardId([1; 20])),
        address: Address { host: "127.0.0.1".to_owned(), port, ..Address::default() },
        zone: String::new(),
        alive: Some(1),
        version: String::new(),
        name: String::new(),
    };
    let leader = Leader { node: primary, incarnation: 1, epoch: 1, start: 0 };
    let shard = Shard {
        id,
        slots: "0-16383".parse().unwrap(),
        members: vec![primary, replica],
        joining: Vec::new(),
        leader: Some(leader),
        last_leader: Some(leader),
        is_failed: false,
        modified: 1,
    };
    Topology::new("test".to_owned(), 1, [node(primary, 7001), node(replica, 7003)], [shard], [])
}

/// The one reply that the bytes are.
fn one_reply(bytes: &[u8]) -> Option<Value> {
    let (value, length) = ReplyParser::new().next(bytes).ok()??;
    (length == bytes.len()).then_some(value)
}

/// Runs a command between two others of a transaction. Says what is wrong.
fn in_transaction(server: &mut TestServer, words: &Words) -> Option<String> {
    let mut say = |words: &[&str]| server.run(words);
    assert_eq!(say(&["MULTI"]), b"+OK\r\n");
    say(&["PING", "before"]);
    let queued = say(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let after = say(&["PING", "after"]);
    let all = say(&["EXEC"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (Some(_), Some(answer)) = (one_reply(&queued), one_reply(&all)) else {
        return Some(format!("queued: {:?}, EXEC: {:?}", text(&queued), text(&all)));
    };
    if queued != b"+QUEUED\r\n" || after != b"+QUEUED\r\n" {
        // It was refused, or it has ended the transaction.
        return None;
    }
    let Value::Array(replies) = &answer else { return Some(text(&all)) };
    let ends =
        (replies.first().and_then(Value::as_bytes), replies.last().and_then(Value::as_bytes));
    let is_whole = replies.len() == 3 && ends == (Some(b"before"), Some(b"after"));
    (!is_whole).then(|| text(&all))
}

/// Has a script call a command twice. Says what is wrong.
fn in_script(server: &mut TestServer, words: &Words) -> Option<String> {
    const SCRIPT: &str = "redis.setresp(3)
        local reply = redis.pcall(unpack(ARGV))
        if type(reply) == 'table' and reply.err then return reply.err end
        return type(reply)";
    let keys: Vec<_> =
        KEYS.iter().copied().filter(|key| words.iter().any(|own| own == key)).collect();
    let count = keys.len().to_string();
    let mut argv = vec!["EVAL", SCRIPT, &count];
    argv.extend(keys);
    argv.extend(words.iter().map(String::as_str));
    let bytes = server.run(&argv);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match one_reply(&bytes) {
        Some(_) if !text.contains("one whole reply") => None,
        _ => Some(text),
    }
}

/// Whether a command is there to change which replies its connection gets, also in Redis.
fn changes_replies(row: &Row) -> bool {
    let name = row.command.full_name();
    let subscribes = row.command.has(PUBSUB) && row.command.has(OF_CONNECTION);
    subscribes || name == "client|reply"
}

/// Whether what a command leaves behind may change what others get.
fn needs_new_server(row: &Row) -> bool {
    row.command.has(ADMIN | NEVER_QUEUED) || !row.command.has(WRITE) && row.command.keys.is_empty()
}

#[test]
fn each_command_gives_one_reply_in_a_transaction_and_in_a_script() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for part in [Part::Alone, Part::ReplicaOfCluster] {
        for row in crate::registry().rows() {
            if row.command.has(INTERNAL) || changes_replies(row) {
                continue;
            }
            let mut own = server(part);
            for (number, words) in commands(row).iter().enumerate() {
                type Try = fn(&mut TestServer, &Words) -> Option<String>;
                for (place, run) in [("MULTI", in_transaction as Try), ("EVAL", in_script as Try)] {
                    if needs_new_server(row) {
                        own = server(part);
                    }
                    own.session = own.connect();
                    own.session.resp3 = number % 2 == 1;
                    tried += 1;
                    if let Some(what) = run(&mut own, words) {
                        wrong.push(format!("{part:?}, {place}: {words:?}: {what:?}"));
                    }
                }
            }
        }
    }
    assert!(tried > 5_000, "there are more forms than {tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}
