//! Connections to nodes.

use std::time::Duration;

use cluster::rebuild::Witness;
use cluster::topology::Node;
use lab::targets::connection::{Connection, Endpoint, in_words, info_fields};
use resp::client::Value;

use crate::options::Access;
use crate::print::word;
use crate::record::place;

/// How long a node may take to connect, and to answer a command wholly.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longer answers are not read: who is there may be no node.
const LONGEST_ANSWER: usize = 16 << 20;

/// The address of a node that this program uses, as people write it.
pub(crate) fn place_of(node: &Node) -> String {
    let port = if node.address.port == 0 { node.address.tls_port } else { node.address.port };
    word(&place(&node.address.host, port))
}

/// Connects to a node and enters.
pub(crate) fn connect(node: &Node, access: &Access) -> Result<Connection, String> {
    let port = match access.encryption {
        Some(_) => node.address.tls_port,
        None => node.address.port,
    };
    let own = place(&node.address.host, port);
    if port == 0 {
        let kind = if access.encryption.is_some() { "encrypted" } else { "plain" };
        return Err(format!("{}: it has no port for {kind} connections", place_of(node)));
    }
    let endpoint = Endpoint {
        host: node.address.host.clone(),
        port,
        password: None,
        encryption: access.encryption.clone(),
    };
    let failed = |error: std::io::Error| format!("{own}: {error}");
    let mut connection =
        endpoint.connect(PATIENCE).map_err(failed)?.bounded(PATIENCE, LONGEST_ANSWER);
    if let Some(password) = &access.password {
        let words = match &access.user {
            Some(user) => vec!["AUTH", user, password],
            None => vec!["AUTH", password],
        };
        let answer = connection.call(&words).map_err(failed)?;
        // A node without a password says that it needs none.
        if answer.is_error() && access.user.is_some() {
            return Err(format!("{own}: {}", in_words(&answer)));
        }
    }
    Ok(connection)
}

/// Sends a command to a node, and returns its answer unless it is an error.
pub(crate) fn call<A: AsRef<[u8]>>(
    node: &Node,
    access: &Access,
    words: &[A],
) -> Result<Value, String> {
    let mut connection = connect(node, access)?;
    match connection.call(words).map_err(|error| format!("{}: {error}", place_of(node)))? {
        error @ Value::Error(_) => Err(format!("{}: {}", place_of(node), in_words(&error))),
        value => Ok(value),
    }
}

/// What a node knows of its cluster and of itself.
pub(crate) fn witness(node: &Node, access: &Access) -> Result<Witness, String> {
    let answer = call(node, access, &["CLUSTER", "TOPOLOGY"])?;
    let unclear = |what: String| format!("{}: {what}", place_of(node));
    let Value::Bulk(text) = &answer else { return Err(unclear(in_words(&answer))) };
    serde_json::from_slice(text).map_err(|error| unclear(error.to_string()))
}

/// Sections of what a node says of itself.
fn info(node: &Node, access: &Access, sections: &[&str]) -> Result<String, String> {
    match call(node, access, &[&["INFO"], sections].concat())? {
        Value::Bulk(page) | Value::Verbatim(_, page) => {
            Ok(String::from_utf8_lossy(&page).into_owned())
        }
        other => Err(format!("{}: {}", place_of(node), in_words(&other))),
    }
}

/// Whether a node has keys in any database.
pub(crate) fn has_keys(node: &Node, access: &Access) -> Result<bool, String> {
    Ok(info_fields(&info(node, access, &["keyspace"])?).any(|(name, _)| name.starts_with("db")))
}

/// How far a node is, as it says itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeReport {
    /// The offset of the stream that it has.
    pub(crate) offset: Option<u64>,
    /// Whether its link to the primary is up; none for a primary.
    pub(crate) link: Option<bool>,
    /// The moves of slots that it carries out as their source.
    pub(crate) moves: Vec<MoveReport>,
}

/// How far a move of slots is, as its source says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MoveReport {
    pub(crate) id: String,
    /// What the source does: connecting, waiting, copying, following or holding.
    pub(crate) state: String,
    /// How often the copy was begun.
    pub(crate) tries: u64,
    /// Keys in the slots when it was begun, and those of them that were sent.
    pub(crate) keys: u64,
    pub(crate) keys_sent: u64,
    /// Bytes of the copy that were sent, and how many in a second.
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_per_second: u64,
    /// Bytes that were sent of what is written meanwhile.
    pub(crate) journal_bytes_sent: u64,
    pub(crate) seconds: u64,
    /// Why it has last begun anew; empty if it has not.
    pub(crate) trouble: String,
}

impl MoveReport {
    /// Reads a line of INFO.
    fn parse(line: &str) -> MoveReport {
        let word = |name: &str| {
            let mut fields = line.trim().split(',').filter_map(|field| field.split_once('='));
            fields.find(|(own, _)| *own == name).map(|(_, value)| value.to_owned())
        };
        let number = |name: &str| word(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        MoveReport {
            id: word("id").unwrap_or_default(),
            state: word("state").unwrap_or_default(),
            tries: number("tries"),
            keys: number("keys"),
            keys_sent: number("keys_sent"),
            bytes_sent: number("bytes_sent"),
            bytes_per_second: number("bytes_per_second"),
            journal_bytes_sent: number("journal_bytes_sent"),
            seconds: number("seconds"),
            trouble: word("trouble").unwrap_or_default(),
        }
    }
}

/// Asks a node how far it is.
pub(crate) fn ask(node: &Node, access: &Access) -> Result<NodeReport, String> {
    let page = info(node, access, &["replication", "cluster"])?;
    let field = |name: &str| {
        info_fields(&page).find(|(own, _)| *own == name).map(|(_, value)| value.trim().to_owned())
    };
    let number = |name: &str| field(name).and_then(|text| text.parse().ok());
    let offset = match field("role").as_deref() {
        Some("slave") => number("slave_repl_offset"),
        _ => number("master_repl_offset"),
    };
    let link = field("master_link_status").map(|status| status == "up");
    let moves = info_fields(&page).filter(|(name, _)| {
        name.strip_prefix("slot_move").is_some_and(|number| number.parse::<u32>().is_ok())
    });
    let moves = moves.map(|(_, line)| MoveReport::parse(line)).collect();
    Ok(NodeReport { offset, link, moves })
}

/// How many keys a primary has in each slot of a range, as far as it has the slot.
pub(crate) fn count_keys(
    node: &Node,
    access: &Access,
    (first, last): (u16, u16),
) -> Result<Vec<(u16, u64)>, String> {
    let (first, last) = (first.to_string(), last.to_string());
    let words = ["CLUSTER", "SLOT-STATS", "SLOTSRANGE", &first, &last];
    let answer = call(node, access, &words)?;
    let unclear = || format!("{}: {}", place_of(node), in_words(&answer));
    let Value::Array(rows) = &answer else { return Err(unclear()) };
    let number = |value: &Value| match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let read = |row: &Value| {
        let Value::Array(parts) = row else { return None };
        let [slot, Value::Array(measures)] = &parts[..] else { return None };
        let is_count =
            |pair: &&[Value]| matches!(&pair[0], Value::Bulk(own) if own == b"key-count");
        let count = measures.chunks_exact(2).find(is_count)?;
        Some((u16::try_from(number(slot)?).ok()?, number(&count[1])?))
    };
    rows.iter().map(|row| read(row).ok_or_else(unclear)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_says_how_far_it_is() {
        let line = "id=ab,slots=3,to=h:1,state=copying,tries=2,keys=9,keys_sent=4,bytes_sent=70,\
                    bytes_per_second=7,journal_bytes_sent=1,seconds=10,trouble=it is gone\r";
        let report = MoveReport {
            id: "ab".to_owned(),
            state: "copying".to_owned(),
            tries: 2,
            keys: 9,
            keys_sent: 4,
            bytes_sent: 70,
            bytes_per_second: 7,
            journal_bytes_sent: 1,
            seconds: 10,
            trouble: "it is gone".to_owned(),
        };
        assert_eq!(MoveReport::parse(line), report);
        assert_eq!(MoveReport::parse("nothing"), MoveReport::default());
    }
}
