//! How data is loaded, as commands see it.

use std::borrow::Cow;

use engine::persistence::loading::{Arrival, Counts, Duplicates, Expired, LoadRules, Loader};
use store::gate::Access;
use store::{StringValue, Value};

use super::server;

fn arrival(key: &str, database: usize, expire_at: Option<u64>) -> Arrival<'_> {
    let value = Value::String(StringValue::Plain(Cow::Borrowed(b"v")));
    let key = Cow::Borrowed(key.as_bytes());
    Arrival { database, key, value, expire_at, usage: None, content_type: None }
}

#[test]
fn what_has_expired_is_dropped_or_kept_as_the_rules_say() {
    let mut server = server();
    for (expired, loaded) in [(Expired::Drop, 1), (Expired::Keep, 2)] {
        let rules = LoadRules { duplicates: Duplicates::Replace, expired };
        let gate = server.engine.gates.register();
        let mut loader = Loader::new(&server.engine, rules, Access::Gate(&gate));
        let far = Some(u64::MAX / 2);
        loader.place(vec![arrival("old", 0, Some(1)), arrival("new", 0, far)]).unwrap();
        assert_eq!(loader.counts(), Counts { loaded, expired: 2 - loaded });
    }
    assert_eq!(server.text("GET new"), "$1\r\nv\r\n");
    assert_eq!(server.text("GET old"), "$-1\r\n");
}

#[test]
fn only_commands_that_say_so_run_while_data_is_loaded() {
    let mut server = server();
    server.text("MULTI");
    server.text("GET k");
    server.engine.loading.begin(0);
    let refusal = "-LOADING Redis is loading the dataset in memory\r\n";
    assert!(server.text("EXEC").contains("LOADING Redis is loading the dataset in memory"));
    assert_eq!(server.text("GET k"), refusal);
    assert!(server.text("INFO persistence").contains("loading:1"));
    server.session = server.engine.replaying_session();
    assert_eq!(server.text("SET k v"), "+OK\r\n");
}
