//! What a client says of itself before it becomes a replica (REPLCONF), and what it then asks for
//! (PSYNC, SYNC).

use cluster::ids::{Epoch, NodeId};

/// The words of `capa` that matter here: bits of [`Introduction::capabilities`]. Others are
/// ignored.
pub mod capability {
    /// It finds the end of a copy whose length it is not told.
    pub const END_MARK: u8 = 1 << 0;
    /// It understands a history's name after `+CONTINUE`.
    pub const NAMED_CONTINUE: u8 = 1 << 1;
    /// It is a Redis of version 8 or later: none before says this word.
    pub const REDIS_8: u8 = 1 << 2;
    /// It understands the end of the stream after that name. Nodes of a cluster say this word.
    pub const NAMED_END: u8 = 1 << 3;
    /// It asks a replica to lead only if that one has everything.
    pub const SUCCESSOR_HAS_ALL: u8 = 1 << 4;
}

/// The first version of Valkey that loads fields that expire, as [`parse_version`] has it.
const VALKEY_9: u32 = 9 << 16;

/// See the module's text.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Introduction {
    /// The port that it listens at, as it says.
    pub listening_port: i64,
    /// The address at which it is to be reached, if that is not the one it connects from.
    pub address: Vec<u8>,
    /// Its name as a node of a cluster, if it is one.
    pub node: Option<NodeId>,
    /// In which epoch it follows, as a node of a cluster.
    pub epoch: Epoch,
    /// The primary that it takes this server for, as a node of a cluster, and that one's epoch.
    pub primary: Option<(NodeId, Epoch)>,
    /// See [`capability`].
    pub capabilities: u8,
    /// The version of a Valkey, as [`parse_version`] has it.
    pub valkey: Option<u32>,
    /// It wants a copy, and nothing after that.
    pub copy_alone: bool,
    /// The copy has no keys.
    pub without_data: bool,
    /// The copy has no functions.
    pub without_functions: bool,
}

/// The files that a replica can load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loads {
    /// Up to version 11: that of Redis 7.2 and of Valkey before 9.
    Common,
    /// Up to version 12 of Redis: fields of hashes may expire.
    Redis12,
    /// Those of Valkey 9, in which fields of hashes may expire, and version 11.
    Valkey80,
}

impl Introduction {
    /// Whether it has said this word.
    pub fn has(&self, capability: u8) -> bool {
        self.capabilities & capability != 0
    }

    /// Notes a word of `capa`.
    pub fn note_capability(&mut self, word: &[u8]) {
        let known: [(&[u8], u8); 5] = [
            (b"eof", capability::END_MARK),
            (b"psync2", capability::NAMED_CONTINUE),
            (b"rdb-channel-repl", capability::REDIS_8),
            (b"continue-end", capability::NAMED_END),
            (b"successor-has-all", capability::SUCCESSOR_HAS_ALL),
        ];
        let found = known.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
        self.capabilities |= found.map_or(0, |(_, bit)| bit);
    }

    /// The files that it can load, as far as it has said.
    pub fn loads(&self) -> Loads {
        match self.valkey {
            Some(version) if version >= VALKEY_9 => Loads::Valkey80,
            None if self.has(capability::REDIS_8) => Loads::Redis12,
            _ => Loads::Common,
        }
    }

    /// Whether the copy leaves something out.
    pub fn filters(&self) -> bool {
        self.without_data || self.without_functions
    }
}

/// Reads a version such as `9.1.2`: a byte for each number.
pub fn parse_version(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let mut version = 0;
    let mut parts = text.split('.');
    for _ in 0..3 {
        version = version << 8 | u32::from(parts.next()?.parse::<u8>().ok()?);
    }
    parts.next().is_none().then_some(version)
}

/// What a client wants that becomes a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncRequest {
    /// The history that it knows, and the offset of the first byte that it lacks, counted from 1.
    /// Absent for SYNC.
    pub from: Option<(Vec<u8>, i64)>,
    /// Who it is.
    pub introduction: Introduction,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_three_numbers() {
        assert_eq!(parse_version(b"9.1.2"), Some(0x0009_0102));
        for junk in [&b"junk"[..], b"9.1", b"9.1.2.3", b"9.1.x", b"", b"9.1.256"] {
            assert_eq!(parse_version(junk), None);
        }
    }

    #[test]
    fn what_a_replica_says_shows_what_it_loads() {
        let mut redis = Introduction::default();
        assert_eq!(redis.loads(), Loads::Common);
        for word in [&b"eof"[..], b"PSYNC2", b"unknown"] {
            redis.note_capability(word);
        }
        assert_eq!(redis.capabilities, capability::END_MARK | capability::NAMED_CONTINUE);
        assert_eq!(redis.loads(), Loads::Common);
        redis.note_capability(b"rdb-channel-repl");
        assert_eq!(redis.loads(), Loads::Redis12);
        for (version, loads) in [(&b"8.1.1"[..], Loads::Common), (b"9.0.0", Loads::Valkey80)] {
            let valkey = Introduction { valkey: parse_version(version), ..redis.clone() };
            assert_eq!(valkey.loads(), loads);
        }
    }
}
