//! REPLCONF, PSYNC and SYNC: what replicas say before they follow the stream of writes. Then a
//! thread of the server has their connections, and takes their REPLCONF ACKs.

use cluster::ids::{Epoch, NodeId};
use engine::cluster::view::SAID_SLOTS;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ALLOW_BUSY, ArgumentKind, Docs, FOLLOWS, Flags, Group, IN_DANGEROUS, IN_STREAM, LOADING,
    NO_ASYNC_LOADING, NO_KEYS, NO_MULTI, NOSCRIPT, OF_CONNECTION, STALE, STOPS_THE_WORLD, argument,
    docs,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::flush::stopped_world;
use engine::host::ClusterRequest;
use engine::session::client::flag;
use engine::session::replicas::introduction::{
    Introduction, SyncRequest, capability, parse_version,
};

/// An address that a replica announces is shorter than this, as in Redis.
const LONGEST_ADDRESS: usize = 256;

const IN_A_TRANSACTION: CommandError =
    CommandError::text("ERR this option of REPLCONF is not allowed in transactions");

/// REPLCONF [option value ...]
fn replconf(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    while !args.is_empty() {
        let option = args.bytes()?;
        let is_one_of =
            |words: &[&[u8]]| words.iter().any(|word| option.eq_ignore_ascii_case(word));
        if is_one_of(&[b"ack", b"getack", b"cluster-promise"]) && !cx.may_block() {
            // A transaction has one answer for each of its commands, and has it at once.
            return Err(IN_A_TRANSACTION);
        }
        // Only a replica says how far it is, and it says that to another thread. Nobody is
        // answered.
        if is_one_of(&[b"ack", b"getack"]) {
            return Ok(());
        }
        if cx.session.link.is_some()
            && is_one_of(&[b"capa"])
            && let Some(said) = args.peek().and_then(|word| word.strip_prefix(SAID_SLOTS))
        {
            cx.engine.take_said_slots(said)?;
            args.skip(1);
            continue;
        }
        if is_one_of(&[b"cluster-promise"]) {
            cx.may_speak_for_nodes("cluster-promise")?;
            return ask_for_promise(cx, args.bytes()?);
        }
        for word in ["cluster-node", "cluster-primary"] {
            if is_one_of(&[word.as_bytes()]) {
                cx.may_speak_for_nodes(word)?;
            }
        }
        let introduction = cx.session.introduction.get_or_insert_default();
        introduce(introduction, option, args)?;
        // Its user may lose the right to that.
        let speaks_for_node = cx.session.speaks_for_node();
        cx.session.client.set_flag(flag::SPEAKS_FOR_NODE, speaks_for_node);
    }
    cx.reply.ok();
    Ok(())
}

/// REPLCONF cluster-promise "node epoch round milliseconds to": the primary of the shard, which
/// cannot reach etcd, asks the node `to` not to stand for election for so long.
fn ask_for_promise(cx: &mut Context<'_>, words: &[u8]) -> CommandResult {
    let no_question = || CommandError::text("ERR REPLCONF cluster-promise is no question");
    if !cx.engine.cluster.is_enabled() {
        return Err(CommandError::text("ERR This instance has cluster support disabled"));
    }
    let text = std::str::from_utf8(words).map_err(|_| no_question())?;
    let words: Vec<_> = text.split(' ').collect();
    let [from, epoch, round, duration_ms, to] = words[..] else { return Err(no_question()) };
    let to = to.parse::<NodeId>().map_err(|_| no_question())?;
    if cx.engine.cluster.view().is_none_or(|view| view.own != to) {
        // The answer would count for that node.
        return Err(CommandError::text("ERR REPLCONF cluster-promise is for another node"));
    }
    let number = |word: &str| word.parse::<u64>().map_err(|_| no_question());
    let from = from.parse().map_err(|_| no_question())?;
    let epoch = number(epoch)?.cast_signed();
    let (round, duration_ms) = (number(round)?, number(duration_ms)?);
    let request = ClusterRequest::Promise { from, epoch, round, duration_ms };
    let waiter = cx.wait_for_host();
    cx.engine.host.ask_cluster(request, waiter);
    Ok(())
}

/// Notes what a replica says of itself.
fn introduce(own: &mut Introduction, option: &[u8], args: &mut Args<'_>) -> CommandResult {
    match option.to_ascii_lowercase().as_slice() {
        b"listening-port" => own.listening_port = args.i64()?,
        b"ip-address" => {
            let address = args.bytes()?;
            if address.len() >= LONGEST_ADDRESS {
                return Err(CommandError::owned(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    address.len()
                )));
            }
            // It is shown in lines of INFO and of the log.
            if !address.iter().all(u8::is_ascii_graphic) {
                return Err(CommandError::text("ERR REPLCONF ip-address is no address"));
            }
            own.address = address.to_vec();
        }
        b"capa" => own.note_capability(args.bytes()?),
        b"cluster-node" => {
            let text = "ERR REPLCONF cluster-node is no node and epoch";
            let (node, epoch) = node_and_epoch(args.bytes()?, text)?;
            (own.node, own.epoch) = (Some(node), epoch);
        }
        b"cluster-primary" => {
            let text = "ERR REPLCONF cluster-primary is no node and epoch";
            own.primary = Some(node_and_epoch(args.bytes()?, text)?);
        }
        b"version" => {
            let text = args.bytes()?;
            let version = parse_version(text);
            let unknown = || CommandError::quoting("ERR Unrecognized version format: ", text, "");
            own.valkey = Some(version.ok_or_else(unknown)?);
        }
        b"rdb-only" => {
            let out_of_range =
                CommandError::text("ERR value is out of range, value must between 0 and 1");
            own.copy_alone = match args.i64()? {
                0 => false,
                1 => true,
                _ => return Err(out_of_range),
            };
        }
        b"rdb-filter-only" => filter(own, args.bytes()?)?,
        _ => {
            let text = "ERR Unrecognized REPLCONF option: ";
            return Err(CommandError::quoting(text, option, ""));
        }
    }
    Ok(())
}

/// Reads `node:epoch`.
fn node_and_epoch(words: &[u8], text: &'static str) -> Result<(NodeId, Epoch), CommandError> {
    let words = std::str::from_utf8(words).ok().and_then(|words| words.split_once(':'));
    let read = words.and_then(|(node, epoch)| Some((node.parse().ok()?, epoch.parse().ok()?)));
    read.ok_or(CommandError::text(text))
}

/// Notes what alone is to be in the copy.
fn filter(own: &mut Introduction, words: &[u8]) -> CommandResult {
    (own.without_data, own.without_functions) = (true, true);
    for word in words.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if !word.eq_ignore_ascii_case(b"functions") {
            (own.without_data, own.without_functions) = (false, false);
            let text = "ERR Unsupported rdb-filter-only option: ";
            return Err(CommandError::quoting(text, word, ""));
        }
        own.without_functions = false;
    }
    Ok(())
}

/// PSYNC replicationid offset [FAILOVER]
fn psync(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let history = args.bytes()?;
    let offset = args.peek().unwrap_or_default().to_vec();
    args.skip(1);
    if args.word("failover") {
        if cx.db.cluster.is_some() {
            let text = "ERR PSYNC FAILOVER is not for nodes of a cluster: etcd says who leads";
            return Err(CommandError::text(text));
        }
        let client = &cx.session.client;
        let who = format!("id={} addr={}", client.id, client.address);
        let has_all = |own: &Introduction| own.has(capability::SUCCESSOR_HAS_ALL);
        let end = cx.session.introduction.as_deref().is_some_and(has_all);
        let first = base::num::parse_i64(&offset).and_then(|own| u64::try_from(own).ok());
        let end = first.filter(|_| end).map(|first| first.saturating_sub(1));
        cx.engine.lead_in_place_of(stopped_world(cx), (history, end), &who)?;
        cx.db.effects.config_changed = true;
    }
    sync_with(cx, Some((history, &offset)))
}

/// SYNC
fn sync(cx: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    sync_with(cx, None)
}

fn sync_with(cx: &mut Context<'_>, from: Option<(&[u8], &[u8])>) -> CommandResult {
    // A connection that monitors others is a replica already, to Redis.
    if cx.session.monitor {
        return Ok(());
    }
    if cx.engine.failover.is_on() {
        return Err(CommandError::text("NOMASTERLINK Can't SYNC while failing over"));
    }
    if cx.engine.replication.is_stale() {
        let text = "NOMASTERLINK Can't SYNC while not connected with my master";
        return Err(CommandError::text(text));
    }
    if !cx.reply.output().is_empty() || cx.session.holds_replies {
        return Err(CommandError::text("ERR SYNC and PSYNC are invalid with pending output"));
    }
    let introduction = cx.session.introduction.as_deref().cloned().unwrap_or_default();
    if introduction.filters() && !introduction.has(capability::END_MARK) {
        return Err(CommandError::text("ERR Filtered replica requires EOF capability"));
    }
    if introduction.node.is_some() {
        // The right may be gone since.
        cx.may_speak_for_nodes("of a cluster-node")?;
    }
    if !cx.engine.is_primary_of(&introduction) {
        let text = "NOMASTERLINK This is not the primary of that epoch";
        return Err(CommandError::text(text));
    }
    let from = match from {
        Some((history, offset)) => {
            let offset = base::num::parse_i64(offset).ok_or(CommandError::NOT_AN_INTEGER)?;
            Some((history.to_vec(), offset))
        }
        None => None,
    };
    cx.session.sync_request = Some(Box::new(SyncRequest { from, introduction }));
    // Nothing more runs here: the connection is about to be taken over.
    cx.wait_for_host();
    Ok(())
}

/// The commands of replicas.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const INTRODUCING: Flags =
    ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY | OF_CONNECTION | IN_DANGEROUS | IN_STREAM;

const SYNCING: Flags =
    ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI | FOLLOWS | OF_CONNECTION | IN_DANGEROUS;

const COMMANDS: &[Command] = &Group::Server.rows([
    row("replconf", replconf, -1, INTRODUCING, NO_KEYS),
    // Its FAILOVER changes the server's part.
    row("psync", psync, -3, SYNCING | STOPS_THE_WORLD, NO_KEYS),
    row("sync", sync, 1, SYNCING, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("replconf", "3.0.0", "Tells a primary about its replica.").cost("O(1)").system(),
    docs(
        "psync",
        "2.8.0",
        "Makes the connection a replica, which goes on where it was if that is kept.",
    )
    .arguments(&[
        argument("replicationid", ArgumentKind::String),
        argument("offset", ArgumentKind::Integer),
    ]),
    docs("sync", "1.0.0", "Makes the connection a replica that gets all data."),
];

#[cfg(test)]
mod tests {
    #[test]
    fn options_get_one_answer_and_those_before_a_wrong_one_count() {
        let mut server = crate::testing::server();
        for (command, reply) in [
            ("REPLCONF", "+OK\r\n"),
            ("REPLCONF listening-port", "-ERR syntax error\r\n"),
            ("REPLCONF listening-port x", "-ERR value is not an integer or out of range\r\n"),
            ("REPLCONF listening-port 6380 capa eof capa unknown", "+OK\r\n"),
            ("REPLCONF capa psync2 foo 1", "-ERR Unrecognized REPLCONF option: foo\r\n"),
            ("REPLCONF version 9.1.2", "+OK\r\n"),
            ("REPLCONF ip-address 10.0.0.1\u{7}", "-ERR REPLCONF ip-address is no address\r\n"),
            ("REPLCONF version junk", "-ERR Unrecognized version format: junk\r\n"),
            ("REPLCONF rdb-only 2", "-ERR value is out of range, value must between 0 and 1\r\n"),
            ("REPLCONF rdb-only 1", "+OK\r\n"),
            ("REPLCONF rdb-filter-only x", "-ERR Unsupported rdb-filter-only option: x\r\n"),
            ("REPLCONF rdb-filter-only functions", "+OK\r\n"),
            ("REPLCONF ack 1", ""),
            ("REPLCONF GETACK *", ""),
        ] {
            assert_eq!(server.text(command), reply, "{command}");
        }
        let own = server.session.introduction.as_ref().expect("it has introduced itself");
        assert_eq!((own.listening_port, own.valkey), (6380, Some(0x0009_0102)));
        assert!(own.copy_alone && own.without_data && !own.without_functions);
        assert_eq!(own.capabilities, 0b11);
    }

    #[test]
    fn a_sync_is_refused_in_redis_order() {
        let mut server = crate::testing::server();
        for (command, reply) in [
            ("PSYNC ? x", "-ERR value is not an integer or out of range\r\n"),
            ("PSYNC ? 1 FAILOVER", "-ERR PSYNC FAILOVER can't be sent to a master.\r\n"),
            ("SYNC x", "-ERR wrong number of arguments for 'sync' command\r\n"),
            ("REPLCONF rdb-filter-only functions", "+OK\r\n"),
            ("PSYNC ? x", "-ERR Filtered replica requires EOF capability\r\n"),
        ] {
            assert_eq!(server.text(command), reply, "{command}");
        }
    }
}
