//! Whether a server can load what another one writes, as far as their versions tell.

use crate::server::Server;

/// A product, and the first two numbers of its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Product {
    Dunlin,
    Valkey,
    Redis(u32, u32),
}

/// Data that cannot be loaded.
pub(crate) struct Unreadable {
    pub(crate) why: String,
    /// The `rdb-version` of the server that writes it with which it could.
    pub(crate) setting: Option<u16>,
}

impl Product {
    fn of(name: &str) -> Product {
        let (name, version) = name.split_once(' ').unwrap_or((name, ""));
        let mut numbers = version.split('.').map(|text| text.parse().unwrap_or(0));
        match name {
            "Dunlin" => Product::Dunlin,
            "Valkey" => Product::Valkey,
            _ => Product::Redis(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        }
    }

    /// The version of the RDB files that it gives to a replica, at least. Dunlin writes a newer one
    /// than this only where fields expire, which is looked at elsewhere.
    fn writes(self, newest: Option<u16>) -> u16 {
        match self {
            Product::Dunlin => newest.unwrap_or(11).min(11),
            Product::Valkey => 11,
            Product::Redis(major, minor) => by_version_of_redis(major, minor).unwrap_or(12),
        }
    }

    /// The newest version that it loads; nothing if it may load all. Redis 7.4 has the first one
    /// that Valkey does not know, and numbers them on from there; Valkey refuses those numbers
    /// unless it is told otherwise.
    fn loads(self, is_relaxed: bool) -> Option<u16> {
        match self {
            Product::Dunlin => None,
            Product::Valkey => (!is_relaxed).then_some(11),
            Product::Redis(major, minor) => by_version_of_redis(major, minor),
        }
    }
}

/// What an older Redis writes, and loads at most.
fn by_version_of_redis(major: u32, minor: u32) -> Option<u16> {
    match (major, minor) {
        (..=6, _) | (7, ..2) => Some(10),
        (7, 2..4) => Some(11),
        _ => None,
    }
}

/// Why one server cannot load what another one writes.
pub(crate) fn unreadable(
    writer: &mut Server,
    reader: &mut Server,
) -> Result<Option<Unreadable>, String> {
    let (from, to) = (writer.product()?, reader.product()?);
    let newest = writer.setting("rdb-version").parse().ok();
    let is_relaxed = reader.setting("rdb-version-check") == "relaxed";
    let writes = Product::of(&from).writes(newest);
    let Some(loads) = Product::of(&to).loads(is_relaxed).filter(|loads| *loads < writes) else {
        return Ok(None);
    };
    let why =
        format!("{to} does not load the data of {from}, whose version of RDB files it refuses");
    Ok(Some(Unreadable { why, setting: (Product::of(&from) == Product::Dunlin).then_some(loads) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_version_does_not_load_is_known() {
        let loads = |from: &str, newest: Option<u16>, to: &str| {
            let writes = Product::of(from).writes(newest);
            Product::of(to).loads(false).is_none_or(|loads| writes <= loads)
        };
        assert!(loads("Redis 7.0.15", None, "Redis 7.0.15"));
        assert!(loads("Redis 7.0.15", None, "Valkey 8.1.1"));
        assert!(loads("Redis 7.2.1", None, "Valkey 8.1.1"));
        assert!(
            loads("Redis 8.0.2", None, "Redis 7.4.0") && loads("Redis 8.0.2", None, "Dunlin 1")
        );
        assert!(loads("Dunlin 0.2.0", Some(12), "Redis 7.2.4"));
        assert!(loads("Dunlin 0.2.0", Some(12), "Valkey 8.1.1"));
        assert!(loads("Dunlin 0.2.0", Some(10), "Redis 7.0.15"));
        assert!(!loads("Dunlin 0.2.0", Some(12), "Redis 7.0.15"));
        assert!(!loads("Redis 7.2.1", None, "Redis 7.0.15"));
        assert!(!loads("Redis 7.4.0", None, "Redis 7.2.4"));
        assert!(!loads("Redis 7.4.0", None, "Valkey 8.1.1"));
        assert!(!loads("Valkey 9.0.0", None, "Redis 7.0.15"));
    }
}
