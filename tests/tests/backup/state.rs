//! All that a server has, so that it can be compared with what another one has later.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use tests::client::{Client, Reply};

/// Databases that the writers use.
const DATABASES: u32 = 16;

/// A key, with its database.
type Key = (u32, Vec<u8>);
/// A digest of a value, and the time at which it expires.
type Value = (Reply, i64);

/// Each key of each database.
#[derive(Debug, PartialEq)]
pub(crate) struct State {
    keys: BTreeMap<Key, Value>,
    functions: Vec<String>,
}

impl State {
    pub(crate) fn of(client: &mut Client) -> State {
        let mut keys = BTreeMap::new();
        for database in 0..DATABASES {
            client.call_text(&format!("SELECT {database}")).unwrap();
            for key in client.call_text("KEYS *").unwrap().elements().unwrap() {
                let key = key.text().unwrap().to_vec();
                let digest = client.call(&[&b"DEBUG"[..], b"DIGEST-VALUE", &key]).unwrap();
                let expires = client.call(&[&b"PEXPIRETIME"[..], &key]).unwrap();
                let Reply::Integer(expires) = expires else { panic!("{expires:?}") };
                // It may have gone meanwhile.
                if expires != -2 {
                    keys.insert((database, key), (digest, expires));
                }
            }
        }
        client.call_text("SELECT 0").unwrap();
        let mut functions = Vec::new();
        gather(&client.call(&["FUNCTION", "LIST", "WITHCODE"]).unwrap(), &mut functions);
        functions.sort();
        State { keys, functions }
    }

    /// What has expired by now is gone at one of the two, or soon will be.
    fn without_expired(&self) -> Vec<(&Key, &Value)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        let stays = |expires: i64| expires == -1 || expires > now + 2000;
        self.keys.iter().filter(|(_, (_, expires))| stays(*expires)).collect()
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// What a server has that was restored is this.
    pub(crate) fn check(&self, restored: &State, what: &str) {
        let (own, other) = (self.without_expired(), restored.without_expired());
        let differs = own.iter().zip(&other).find(|(one, another)| one != another);
        assert!(
            differs.is_none() && own.len() == other.len(),
            "{what}: {differs:?}, {} keys and {}",
            own.len(),
            other.len()
        );
        assert_eq!(self.functions, restored.functions, "{what}");
    }
}

/// All texts of a reply.
fn gather(reply: &Reply, texts: &mut Vec<String>) {
    match reply {
        Reply::Array(elements) | Reply::Set(elements) => {
            elements.iter().for_each(|element| gather(element, texts));
        }
        other => texts.push(format!("{other:?}")),
    }
}
