//! The types of settings that are more than a number, a flag or a text.

use std::fmt;

/// A setting that is one of a few named values.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its name in the configuration, in the order in which errors list them.
    const NAMES: &'static [(&'static str, Self)];

    /// The name of this value in the configuration.
    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, value)| *value == self);
        found.expect("every value of a choice is listed").0
    }
}

macro_rules! choices {
    ($(
        $(#[$about:meta])+
        $name:ident { $( $(#[$what:meta])+ $variant:ident = $text:literal, )+ }
    )+) => { $(
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$what])+ $variant, )+ }

        impl Choice for $name {
            const NAMES: &'static [(&'static str, Self)] = &[ $( ($text, Self::$variant), )+ ];
        }
    )+ };
}

choices! {
    /// Which keys are evicted when `maxmemory` is reached.
    MaxmemoryPolicy {
        /// The least recently used of the keys that expire.
        VolatileLru = "volatile-lru",
        /// The least often used of the keys that expire.
        VolatileLfu = "volatile-lfu",
        /// Any of the keys that expire.
        VolatileRandom = "volatile-random",
        /// The key that expires soonest.
        VolatileTtl = "volatile-ttl",
        /// The least recently used key.
        AllkeysLru = "allkeys-lru",
        /// The least often used key.
        AllkeysLfu = "allkeys-lfu",
        /// Any key.
        AllkeysRandom = "allkeys-random",
        /// Nothing: writes that need memory are refused.
        NoEviction = "noeviction",
    }

    /// When the append-only file is synced to the disk.
    AppendFsync {
        /// Once per second.
        EverySecond = "everysec",
        /// Before a write is acknowledged.
        Always = "always",
        /// When the operating system likes to.
        No = "no",
    }

    /// How much is logged.
    LogLevel {
        /// Everything, for development.
        Debug = "debug",
        /// Much, but no flood.
        Verbose = "verbose",
        /// For operators.
        Notice = "notice",
        /// Only messages that need attention.
        Warning = "warning",
        /// Not a line.
        Nothing = "nothing",
    }

    /// Which clients may do something dangerous.
    Permission {
        /// No client.
        No = "no",
        /// Every client.
        Yes = "yes",
        /// Clients on this machine.
        Local = "local",
    }

    /// Which payloads from outside are checked in full before they are used.
    SanitizePayload {
        /// None.
        No = "no",
        /// All.
        Yes = "yes",
        /// Those from clients, not those from the primary or from files.
        Clients = "clients",
    }

    /// How a replica takes in the data set that its primary streams.
    DisklessLoad {
        /// By way of a file.
        Disabled = "disabled",
        /// Straight from the socket, when there is no data.
        OnEmptyDb = "on-empty-db",
        /// Straight from the socket, keeping the old data until the new is complete.
        SwapDb = "swapdb",
    }

    /// How the score that the kernel's out-of-memory killer uses is adjusted.
    OomScoreAdj {
        /// Not at all.
        No = "no",
        /// The same as `relative`.
        Yes = "yes",
        /// Relative to the value at start.
        Relative = "relative",
        /// As given.
        Absolute = "absolute",
    }

    /// Which service manager is told that the server is ready.
    Supervised {
        /// Upstart.
        Upstart = "upstart",
        /// systemd.
        Systemd = "systemd",
        /// Whichever the environment names.
        Auto = "auto",
        /// None.
        No = "no",
    }

    /// The facility of messages to the system log.
    SyslogFacility {
        /// `LOG_USER`.
        User = "user",
        /// `LOG_LOCAL0`.
        Local0 = "local0",
        /// `LOG_LOCAL1`.
        Local1 = "local1",
        /// `LOG_LOCAL2`.
        Local2 = "local2",
        /// `LOG_LOCAL3`.
        Local3 = "local3",
        /// `LOG_LOCAL4`.
        Local4 = "local4",
        /// `LOG_LOCAL5`.
        Local5 = "local5",
        /// `LOG_LOCAL6`.
        Local6 = "local6",
        /// `LOG_LOCAL7`.
        Local7 = "local7",
    }

    /// Which channels a new user may use.
    PubsubDefault {
        /// All.
        AllChannels = "allchannels",
        /// None.
        ResetChannels = "resetchannels",
    }

    /// Whether TLS clients must show a certificate.
    TlsAuthClients {
        /// They need none.
        No = "no",
        /// They must.
        Yes = "yes",
        /// It is checked when shown.
        Optional = "optional",
    }

    /// What of a TLS client's certificate names its user.
    TlsAuthClientsUser {
        /// The common name of its subject.
        Cn = "CN",
        /// A URI among its other names.
        Uri = "URI",
        /// Nothing: a password shows who it is.
        Off = "off",
    }

    /// How a cluster node names itself in redirections.
    EndpointType {
        /// Its address.
        Ip = "ip",
        /// Its announced host name.
        Hostname = "hostname",
        /// Nothing: clients reuse the address they connected to.
        UnknownEndpoint = "unknown-endpoint",
    }

    /// How durable a write to a cluster is before it is acknowledged.
    ClusterDurability {
        /// In the memory of the primary.
        Memory = "memory",
        /// On the primary's disk.
        Fsync = "fsync",
        /// In the memory of more than half of the shard's nodes.
        Quorum = "quorum",
    }

    /// What happens when a write from the primary or the append-only file fails.
    PropagationError {
        /// It is logged and skipped.
        Ignore = "ignore",
        /// The process ends.
        Panic = "panic",
        /// The process ends when it is a replica.
        PanicOnReplicas = "panic-on-replicas",
    }
}

/// Save the data when `changes` writes have happened within `seconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveRule {
    /// The period, at least 1.
    pub seconds: u64,
    /// The number of writes, possibly 0.
    pub changes: u32,
}

/// When a client that does not read its replies is closed. Zeros mean no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes of waiting output that close the client at once.
    pub hard_bytes: u64,
    /// Bytes of waiting output that close it when they last for `soft_seconds`.
    pub soft_bytes: u64,
    /// How long `soft_bytes` may be exceeded.
    pub soft_seconds: u64,
}

/// The output limits of each class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Ordinary clients, MONITOR included.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients with subscriptions.
    pub pubsub: OutputLimit,
}

/// A bound on memory, in bytes or as a share of `maxmemory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// This many bytes; 0 means no bound.
    Bytes(u64),
    /// This many percent, 1 to 100.
    Percent(u8),
}

impl MemoryLimit {
    /// The bound in bytes, or `None` when there is none.
    pub fn bytes(self, maxmemory: u64) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Percent(percent) => {
                let share = u128::from(maxmemory) * u128::from(percent) / 100;
                Some(u64::try_from(share).expect("a share is not more than the whole"))
            }
        }
        .filter(|&bytes| bytes != 0)
    }
}

/// The server that a replica follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryAddress {
    /// Name or address.
    pub host: Vec<u8>,
    /// TCP port.
    pub port: u16,
}

/// A command that answers to another name, or to none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedCommand {
    /// The name it has in the command table.
    pub from: Vec<u8>,
    /// The name it gets; empty makes it unreachable.
    pub to: Vec<u8>,
}

/// The SHUTDOWN options for a signal. No option is written `default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownOptions {
    /// Save, even without save rules.
    pub save: bool,
    /// Do not save, even with save rules.
    pub nosave: bool,
    /// Do not wait for replicas that lag behind.
    pub now: bool,
    /// Exit even when saving fails.
    pub force: bool,
}

impl MaxmemoryPolicy {
    /// Whether it looks at how often keys are used.
    pub fn is_lfu(self) -> bool {
        matches!(self, Self::AllkeysLfu | Self::VolatileLfu)
    }

    /// Whether it looks at when keys were used last.
    pub fn is_lru(self) -> bool {
        matches!(self, Self::AllkeysLru | Self::VolatileLru)
    }

    /// Whether all keys are alike to it.
    pub fn is_random(self) -> bool {
        matches!(self, Self::AllkeysRandom | Self::VolatileRandom)
    }

    /// Whether it evicts only keys that expire.
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl
        )
    }
}

/// Which keyspace events are published, as a set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyEvents(u32);

impl NotifyEvents {
    /// `K`: publish under the key's name.
    pub const KEYSPACE: Self = Self(1 << 0);
    /// `E`: publish under the event's name.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// `g`: commands of no type, such as DEL and EXPIRE.
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`: strings.
    pub const STRING: Self = Self(1 << 3);
    /// `l`: lists.
    pub const LIST: Self = Self(1 << 4);
    /// `s`: sets.
    pub const SET: Self = Self(1 << 5);
    /// `h`: hashes.
    pub const HASH: Self = Self(1 << 6);
    /// `z`: sorted sets.
    pub const ZSET: Self = Self(1 << 7);
    /// `x`: a key expired.
    pub const EXPIRED: Self = Self(1 << 8);
    /// `e`: a key was evicted.
    pub const EVICTED: Self = Self(1 << 9);
    /// `t`: streams.
    pub const STREAM: Self = Self(1 << 10);
    /// `d`: a module's type. It is accepted, and no event has this class.
    pub const MODULE: Self = Self(1 << 11);
    /// `n`: a key came into being.
    pub const NEW: Self = Self(1 << 12);
    /// `m`: a key was asked for that is not there.
    pub const KEY_MISS: Self = Self(1 << 13);

    /// The classes by letter, in the order in which they are shown; `A` stands for those that
    /// report what happened to an existing key (neither `n` nor `m`).
    const CLASSES: [(u8, Self); 11] = [
        (b'g', Self::GENERIC),
        (b'$', Self::STRING),
        (b'l', Self::LIST),
        (b's', Self::SET),
        (b'h', Self::HASH),
        (b'z', Self::ZSET),
        (b'x', Self::EXPIRED),
        (b'e', Self::EVICTED),
        (b't', Self::STREAM),
        (b'd', Self::MODULE),
        (b'n', Self::NEW),
    ];

    /// The classes that `A` stands for.
    fn all() -> Self {
        let named = Self::CLASSES.iter().filter(|(letter, _)| *letter != b'n');
        Self(named.fold(0, |set, (_, class)| set | class.0))
    }

    /// Whether every class of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether events are published at all: some class, and at least one of `K` and `E`.
    pub fn is_active(self) -> bool {
        let targets = Self::KEYSPACE.0 | Self::KEYEVENT.0;
        self.0 & targets != 0 && self.0 & !targets != 0
    }

    /// Reads a set from its letters; `None` when a letter is unknown.
    pub fn parse(letters: &[u8]) -> Option<Self> {
        let mut set = 0;
        for &letter in letters {
            set |= match letter {
                b'A' => Self::all(),
                b'K' => Self::KEYSPACE,
                b'E' => Self::KEYEVENT,
                b'm' => Self::KEY_MISS,
                _ => Self::CLASSES.iter().find(|(known, _)| *known == letter)?.1,
            }
            .0;
        }
        Some(Self(set))
    }

    /// The letters as CONFIG GET shows them: next to `A` it leaves out `n`.
    pub fn shown(self) -> String {
        let mut text = String::new();
        if self.contains(Self::all()) {
            text.push('A');
        } else {
            text.extend(self.letters_of(&Self::CLASSES));
        }
        let targets = [(b'K', Self::KEYSPACE), (b'E', Self::KEYEVENT), (b'm', Self::KEY_MISS)];
        text.extend(self.letters_of(&targets));
        text
    }

    fn letters_of(self, classes: &[(u8, Self)]) -> impl Iterator<Item = char> {
        classes
            .iter()
            .filter(move |(_, class)| self.contains(*class))
            .map(|(letter, _)| char::from(*letter))
    }
}

impl fmt::Display for NotifyEvents {
    /// The letters in full, so that reading them gives the same set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())?;
        let hidden_new = self.contains(Self::all()) && self.contains(Self::NEW);
        f.write_str(if hidden_new { "n" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_letters_are_shown_as_the_reference_does() {
        for (given, shown) in [
            ("KEA", "AKE"),
            ("Kg", "gK"),
            ("KEg$lshzxetd", "AKE"),
            ("KEg$lshzxet", "g$lshzxetKE"),
            ("nmKE", "nKEm"),
            ("Ag$lshzxeKEtmdn", "AKEm"),
            ("KKK", "K"),
            ("", ""),
        ] {
            let events = NotifyEvents::parse(given.as_bytes()).unwrap();
            assert_eq!(events.shown(), shown, "{given}");
            assert_eq!(NotifyEvents::parse(events.to_string().as_bytes()), Some(events));
        }
        assert_eq!(NotifyEvents::parse(b"E$ "), None);
        assert!(!NotifyEvents::parse(b"KE").unwrap().is_active());
        assert!(!NotifyEvents::parse(b"A").unwrap().is_active());
        assert!(NotifyEvents::parse(b"Kg").unwrap().is_active());
    }

    #[test]
    fn a_memory_limit_in_percent_is_a_share_of_maxmemory() {
        assert_eq!(MemoryLimit::Percent(5).bytes(1000), Some(50));
        assert_eq!(MemoryLimit::Percent(100).bytes(u64::MAX), Some(u64::MAX));
        assert_eq!(MemoryLimit::Percent(5).bytes(0), None);
        assert_eq!(MemoryLimit::Bytes(0).bytes(7), None);
        assert_eq!(MemoryLimit::Bytes(9).bytes(7), Some(9));
    }
}
