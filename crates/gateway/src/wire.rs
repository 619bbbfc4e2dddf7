//! Requests and answers as JSON: bytes are in base64, and whole numbers of 64 bits are texts.
//! <https://github.com/etcd-io/etcd/blob/release-3.4/etcdserver/etcdserverpb/rpc.proto>

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster::store::{Answer, Compare, Operation, Pair, Request, Transaction, WatchEvent};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::member::Problem;

/// The address and the body of a request.
pub(crate) fn request(request: &Request) -> (&'static str, String) {
    match request {
        Request::Read { prefix } => ("/v3/kv/range", of_prefix(prefix).to_string()),
        Request::Transaction(own) => ("/v3/kv/txn", transaction(own).to_string()),
        Request::Grant { ttl_s } => ("/v3/lease/grant", json!({ "TTL": text(*ttl_s) }).to_string()),
        Request::KeepAlive { lease } => {
            ("/v3/lease/keepalive", json!({ "ID": text(*lease) }).to_string())
        }
        Request::Revoke { lease } => {
            ("/v3/lease/revoke", json!({ "ID": text(*lease) }).to_string())
        }
    }
}

/// The body of a request to watch from a revision on.
pub(crate) fn watch(prefix: &str, from_revision: i64) -> String {
    let mut create = of_prefix(prefix);
    create["start_revision"] = text(from_revision).into();
    create["progress_notify"] = true.into();
    json!({ "create_request": create }).to_string()
}

/// The body of a request for a token.
pub(crate) fn login(name: &str, password: &str) -> String {
    json!({ "name": name, "password": password }).to_string()
}

fn text(number: i64) -> String {
    number.to_string()
}

fn bytes(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn of_prefix(prefix: &str) -> Value {
    json!({ "key": bytes(prefix), "range_end": bytes(behind(prefix.as_bytes())) })
}

/// The first key behind all that begin with a prefix; a zero byte where there is none.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

fn transaction(transaction: &Transaction) -> Value {
    let compares: Vec<_> = transaction.compares.iter().map(compare).collect();
    let operations: Vec<_> = transaction.operations.iter().map(operation).collect();
    json!({ "compare": compares, "success": operations })
}

fn compare(compare: &Compare) -> Value {
    let (target, field, value) = match compare {
        Compare::Created { revision, .. } => ("CREATE", "create_revision", text(*revision)),
        Compare::Modified { revision, .. } => ("MOD", "mod_revision", text(*revision)),
        Compare::Value { value, .. } => ("VALUE", "value", bytes(value)),
    };
    json!({ "key": bytes(compare.key()), "target": target, "result": "EQUAL", field: value })
}

fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Put { key, value, lease } => json!({
            "request_put": { "key": bytes(key), "value": bytes(value), "lease": text(*lease) },
        }),
        Operation::Delete { key } => json!({ "request_delete_range": { "key": bytes(key) } }),
    }
}

/// A whole number, which comes as a text; zero is left out.
fn number<'d, D: Deserializer<'d>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64(),
        _ => None,
    };
    number.ok_or_else(|| serde::de::Error::custom("no whole number"))
}

/// The number of an etcd. It may need all 64 bits.
fn unsigned<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    };
    number.ok_or_else(|| serde::de::Error::custom("no number of an etcd"))
}

/// Bytes in base64; an empty value is left out.
fn decoded<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    #[serde(deserialize_with = "unsigned")]
    cluster_id: u64,
    #[serde(deserialize_with = "number")]
    revision: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyValue {
    #[serde(deserialize_with = "decoded")]
    key: Vec<u8>,
    #[serde(deserialize_with = "decoded")]
    value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    create_revision: i64,
    #[serde(deserialize_with = "number")]
    mod_revision: i64,
    #[serde(deserialize_with = "number")]
    lease: i64,
}

impl KeyValue {
    /// A key that is no text is nobody's here; it must not keep the others from being read.
    fn key(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }

    fn pair(self) -> Pair {
        Pair {
            key: self.key(),
            value: self.value,
            created: self.create_revision,
            modified: self.mod_revision,
            lease: self.lease,
        }
    }
}

/// All fields of the answers to requests, and of the messages of a watch. Each has some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    header: Header,
    kvs: Vec<KeyValue>,
    succeeded: bool,
    #[serde(rename = "ID", deserialize_with = "number")]
    id: i64,
    #[serde(rename = "TTL", deserialize_with = "number")]
    ttl: i64,
    token: String,
    events: Vec<Event>,
    created: bool,
    canceled: bool,
    cancel_reason: String,
    #[serde(deserialize_with = "number")]
    compact_revision: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    kv: KeyValue,
}

fn fields(answer: &[u8]) -> Result<Fields, String> {
    serde_json::from_slice(answer).map_err(|error| format!("etcd's answer is not clear: {error}"))
}

/// An answer that is a stream: what it has, or what etcd says instead.
#[derive(Deserialize)]
struct Streamed {
    result: Option<Fields>,
    error: Option<Problem>,
}

fn streamed(answer: &[u8]) -> Result<Result<Fields, Problem>, String> {
    let parsed: Streamed = serde_json::from_slice(answer)
        .map_err(|error| format!("etcd's answer is not clear: {error}"))?;
    match (parsed.error, parsed.result) {
        (Some(problem), _) => Ok(Err(problem)),
        (None, Some(result)) => Ok(Ok(result)),
        (None, None) => Err("etcd's answer has no result".to_owned()),
    }
}

/// What etcd has answered to a request: its answer and the number of the etcd, or a problem that
/// it names in it.
pub(crate) fn answer(
    request: &Request,
    body: &[u8],
) -> Result<Result<(Answer, u64), Problem>, String> {
    let own = match request {
        // A stream of one answer.
        Request::KeepAlive { .. } => match streamed(body)? {
            Ok(own) => own,
            Err(problem) => return Ok(Err(problem)),
        },
        _ => fields(body)?,
    };
    let (etcd, revision) = (own.header.cluster_id, own.header.revision);
    let answer = match request {
        Request::Read { .. } => {
            Answer::Pairs { revision, pairs: own.kvs.into_iter().map(KeyValue::pair).collect() }
        }
        Request::Transaction(_) => Answer::Transaction { succeeded: own.succeeded, revision },
        Request::Grant { .. } if own.id == 0 => {
            return Err("etcd's answer names no lease".to_owned());
        }
        Request::Grant { .. } => Answer::Granted { lease: own.id, ttl_s: own.ttl },
        Request::KeepAlive { .. } => Answer::KeptAlive { ttl_s: own.ttl },
        Request::Revoke { .. } => Answer::Revoked,
    };
    Ok(Ok((answer, etcd)))
}

/// The token in an answer to a name and a password.
pub(crate) fn token(body: &[u8]) -> Result<String, String> {
    let token = fields(body)?.token;
    if token.is_empty() { Err("etcd's answer has no token".to_owned()) } else { Ok(token) }
}

/// A message of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Created { etcd: u64 },
    Events { revision: i64, events: Vec<WatchEvent> },
    Progress { revision: i64 },
    Compacted { revision: i64 },
    Cancelled { reason: String },
}

/// What a message of a watch says.
pub(crate) fn message(line: &[u8]) -> Result<Result<Message, Problem>, String> {
    let own = match streamed(line)? {
        Ok(own) => own,
        Err(problem) => return Ok(Err(problem)),
    };
    // One that may not watch is told that it is created and cancelled at once.
    let message = if own.canceled {
        match own.compact_revision {
            0 => Message::Cancelled { reason: own.cancel_reason },
            revision => Message::Compacted { revision },
        }
    } else if own.created {
        Message::Created { etcd: own.header.cluster_id }
    } else if own.events.is_empty() {
        Message::Progress { revision: own.header.revision }
    } else {
        let event = |Event { kind, kv }| match &kind[..] {
            "DELETE" => WatchEvent::Delete { key: kv.key(), revision: kv.mod_revision },
            _ => WatchEvent::Put(kv.pair()),
        };
        let events: Vec<_> = own.events.into_iter().map(event).collect();
        // The header may be ahead: other messages come for the revisions between.
        let revision = events.last().map_or(0, WatchEvent::revision);
        Message::Events { revision, events }
    };
    Ok(Ok(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(behind(b"/dunlin/a/"), b"/dunlin/a0");
        assert_eq!(behind(b"a\xff\xff"), b"b");
        assert_eq!(behind(b"\xff"), [0]);
    }

    #[test]
    fn an_answer_says_which_etcd_has_given_it() {
        let of = |request, body: &str| answer(&request, body.as_bytes()).unwrap().unwrap();
        let read = Request::Read { prefix: "a".to_owned() };
        let body = r#"{"header":{"cluster_id":"17237436991929493444","revision":"4"}}"#;
        let pairs = Answer::Pairs { revision: 4, pairs: Vec::new() };
        assert_eq!(of(read, body), (pairs, 17_237_436_991_929_493_444));
        let body = r#"{"result":{"header":{"cluster_id":"7"},"ID":"9","TTL":"5"}}"#;
        let kept = Answer::KeptAlive { ttl_s: 5 };
        assert_eq!(of(Request::KeepAlive { lease: 9 }, body), (kept, 7));
        assert_eq!(of(Request::Revoke { lease: 9 }, "{}"), (Answer::Revoked, 0));
    }

    #[test]
    fn messages_of_a_watch_are_understood() {
        let of = |line: &str| message(line.as_bytes()).unwrap().unwrap();
        assert_eq!(
            of(r#"{"result":{"header":{"cluster_id":"14841639068965178418"},"created":true}}"#),
            Message::Created { etcd: 14_841_639_068_965_178_418 }
        );
        let compacted = r#"{"result":{"header":{},"canceled":true,"compact_revision":"3"}}"#;
        assert_eq!(of(compacted), Message::Compacted { revision: 3 });
        let refused = r#"{"result":{"created":true,"canceled":true,"cancel_reason":"no"}}"#;
        assert_eq!(of(refused), Message::Cancelled { reason: "no".to_owned() });
        let progress = r#"{"result":{"header":{"revision":"9"}}}"#;
        assert_eq!(of(progress), Message::Progress { revision: 9 });
        let events = r#"{"result":{"header":{"revision":"9"},"events":[
            {"kv":{"key":"YQ==","create_revision":"2","mod_revision":"5","value":"MQ==","lease":"7"}},
            {"type":"DELETE","kv":{"key":"YQ==","mod_revision":"6"}}]}}"#;
        let pair =
            Pair { key: "a".to_owned(), value: b"1".to_vec(), created: 2, modified: 5, lease: 7 };
        let delete = WatchEvent::Delete { key: "a".to_owned(), revision: 6 };
        let events_expected = vec![WatchEvent::Put(pair), delete];
        assert_eq!(of(events), Message::Events { revision: 6, events: events_expected });
        for unclear in ["", "{}", "[]", r#"{"result":{"events":[{"kv":{"key":"?"}}]}}"#] {
            assert!(message(unclear.as_bytes()).is_err(), "{unclear}");
        }
        let problem = r#"{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}"#;
        assert!(message(problem.as_bytes()).unwrap().is_err());
    }
}
