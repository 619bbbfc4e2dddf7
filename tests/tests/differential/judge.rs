//! The server to compare with, and the commands to compare.

use std::time::Duration;

use tests::grammar::{self, Vocabulary};
use tests::server::Target;

/// The server to compare with, and the commands to compare.
pub(crate) struct Judge {
    pub(crate) target: Target,
    /// What commands are made of: each of one of these.
    pub(crate) vocabularies: &'static [&'static Vocabulary],
    /// How many clients send them. One alone sends many at a time.
    pub(crate) clients: usize,
    /// How long rounds are played by default.
    pub(crate) usual_time: Duration,
    /// Settings that rounds choose.
    pub(crate) settings: &'static [&'static [Setting]],
    /// Commands by which other connections become what filters of clients may look for.
    pub(crate) bystanders: &'static [&'static [&'static str]],
}

/// A setting with the values to choose from: the first is the default.
pub(crate) type Setting = (&'static str, &'static [&'static str]);

/// What decides in which form a value is kept.
const FORMS: &[Setting] = &[
    ("hash-max-listpack-entries", &["512", "4", "0"]),
    ("hash-max-listpack-value", &["64", "5"]),
    ("zset-max-listpack-entries", &["128", "4", "0"]),
    ("zset-max-listpack-value", &["64", "5"]),
    ("set-max-intset-entries", &["512", "3", "0"]),
    ("set-max-listpack-entries", &["128", "4", "0"]),
    ("set-max-listpack-value", &["64", "5"]),
    ("list-max-listpack-size", &["-2", "-1", "2", "5"]),
    ("list-compress-depth", &["0", "1"]),
    ("hll-sparse-max-bytes", &["3000", "20"]),
    ("stream-node-max-entries", &["100", "3", "1"]),
    ("stream-node-max-bytes", &["4096", "100"]),
];

const EVENTS: &[Setting] =
    &[("notify-keyspace-events", &["", "KEA", "KEA", "KEAnm", "El$", "Kzsht"])];

pub(crate) const REDIS: Judge = Judge {
    target: Target::Reference,
    vocabularies: &[&grammar::REDIS],
    clients: 1,
    usual_time: Duration::from_secs(25),
    settings: &[FORMS],
    bystanders: &[],
};

/// What happens between clients: messages, events, waiting and serving, closing.
pub(crate) const SEVERAL: Judge = Judge {
    target: Target::Reference,
    vocabularies: &[&grammar::REDIS, &grammar::SEVERAL],
    clients: 3,
    usual_time: Duration::from_secs(10),
    settings: &[FORMS, EVENTS],
    bystanders: &[],
};

pub(crate) const VALKEY: Judge = Judge {
    target: Target::NewestValkey,
    vocabularies: &[&grammar::VALKEY],
    clients: 1,
    usual_time: Duration::from_secs(25),
    settings: &[&[("import-mode", &["no", "no", "yes"])]],
    bystanders: &[
        &["CLIENT SETNAME one", "CLIENT SETINFO LIB-NAME lib", "CLIENT CAPA redirect", "SELECT 3"],
        &["CLIENT SETNAME two", "CLIENT SETINFO LIB-VER 1.0", "SUBSCRIBE news"],
        &["CLIENT SETNAME three", "CLIENT NO-TOUCH ON", "MULTI"],
    ],
};

impl Judge {
    /// Whether keys look the same from within: Valkey has other encodings and payloads.
    pub(crate) fn has_our_insides(&self) -> bool {
        self.target == Target::Reference
    }

    /// The default of a setting that rounds choose.
    pub(crate) fn usual(&self, name: &[u8]) -> Vec<u8> {
        let setting =
            self.settings.iter().copied().flatten().find(|(own, _)| own.as_bytes() == name);
        setting.map(|(_, values)| values[0].as_bytes().to_vec()).unwrap_or_default()
    }
}
