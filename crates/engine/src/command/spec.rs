//! What the server acts on of a command: its name, its arity, its flags and its keys.
//!
//! Dispatch, the arity check, key extraction, COMMAND INFO and statistics read specs. What people
//! read of a command is in `docs`.

use base::num;
use resp::args::Arguments;

use crate::command::effect::{ChangeForm, Countdown};
use crate::command::flags::{
    ADMIN, BLOCKING, FAST, Flags, IN_CONNECTION, IN_DANGEROUS, IN_KEYSPACE, PUBSUB, READONLY,
    SCRIPT, WRITE,
};

/// Finds keys that no key spec describes: passes the index of each, and what happens to it, to the
/// visitor.
pub type KeyFinder = fn(Arguments<'_>, &mut dyn FnMut(usize, KeyFlags));

/// Tells whether the argument at an index is a secret.
pub type SecretRule = fn(Arguments<'_>, usize) -> bool;

/// Finds the arguments that name databases: passes the index of each to the visitor; no index for
/// all databases.
pub type DatabaseFinder = fn(Arguments<'_>, &mut dyn FnMut(Option<usize>));

/// Which arguments of a command are channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamesChannels {
    /// The first.
    First,
    /// All.
    All,
    /// All, and these are patterns of channels.
    AllPatterns,
}

/// The family that a command belongs to, as COMMAND DOCS names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the name of a family")]
pub enum Group {
    String,
    Bitmap,
    Generic,
    List,
    Set,
    Hash,
    SortedSet,
    Geo,
    HyperLogLog,
    Stream,
    Transactions,
    PubSub,
    Connection,
    Scripting,
    Cluster,
    Server,
}

impl Group {
    /// The name that COMMAND DOCS answers.
    pub fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Generic => "generic",
            Group::List => "list",
            Group::Set => "set",
            Group::Hash => "hash",
            Group::SortedSet => "sorted-set",
            Group::Geo => "geo",
            Group::HyperLogLog => "hyperloglog",
            Group::Stream => "stream",
            Group::Transactions => "transactions",
            Group::PubSub => "pubsub",
            Group::Connection => "connection",
            Group::Scripting => "scripting",
            Group::Cluster => "cluster",
            Group::Server => "server",
        }
    }

    /// The ACL category that all commands of the family are in, if there is one.
    fn category(self) -> Option<&'static str> {
        match self {
            Group::SortedSet => Some("sortedset"),
            Group::Transactions => Some("transaction"),
            Group::PubSub | Group::Generic | Group::Cluster | Group::Server => None,
            other => Some(other.name()),
        }
    }
}

/// What a command does with the keys that a key spec finds: a set of bits.
pub type KeyFlags = u16;
/// Reads only.
pub const RO: KeyFlags = 1 << 0;
/// Reads and writes.
pub const RW: KeyFlags = 1 << 1;
/// Overwrites, without reading.
pub const OW: KeyFlags = 1 << 2;
/// Removes.
pub const RM: KeyFlags = 1 << 3;
/// Returns or uses the user's data.
pub const ACCESS: KeyFlags = 1 << 4;
/// Updates the user's data.
pub const UPDATE: KeyFlags = 1 << 5;
/// Adds data.
pub const INSERT: KeyFlags = 1 << 6;
/// Deletes data.
pub const DELETE: KeyFlags = 1 << 7;
/// Not a key (a channel), but routed as one.
pub const NOT_KEY: KeyFlags = 1 << 8;
/// Not all keys are found this way.
pub const INCOMPLETE: KeyFlags = 1 << 9;
/// The other flags depend on the arguments.
pub const VARIABLE_FLAGS: KeyFlags = 1 << 10;

/// The key flags in the order and words of COMMAND INFO.
pub const KEY_FLAG_NAMES: &[(KeyFlags, &str)] = &[
    (OW, "OW"),
    (RO, "RO"),
    (RW, "RW"),
    (RM, "RM"),
    (ACCESS, "access"),
    (UPDATE, "update"),
    (INSERT, "insert"),
    (DELETE, "delete"),
    (NOT_KEY, "not_key"),
    (INCOMPLETE, "incomplete"),
    (VARIABLE_FLAGS, "variable_flags"),
];

/// Where a key spec begins to look.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At this argument.
    Index(usize),
    /// After this word, which is looked for from an argument on (from the end when negative).
    Keyword(&'static str, i32),
    /// No rule tells it (SORT's BY and GET, for example).
    Unknown,
}

/// How a key spec finds keys from its beginning.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Up to `last` (relative to the first; -1: the last argument, -2: the one before), every
    /// `step`-th; a `limit` of n takes the first n-th of the arguments that are left.
    Range {
        /// See above.
        last: i32,
        /// See above.
        step: usize,
        /// See above.
        limit: usize,
    },
    /// A count at `index`, then keys from `first` (both relative to the beginning).
    Count {
        /// See above.
        index: usize,
        /// See above.
        first: usize,
        /// See above.
        step: usize,
    },
    /// It cannot be said.
    Unknown,
}

/// A rule that finds keys among the arguments. See Redis's "command key specifications".
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// What happens to the keys.
    pub flags: KeyFlags,
    /// Where to begin.
    pub begin: Begin,
    /// How to go on.
    pub find: Find,
    /// A remark for COMMAND INFO.
    pub notes: Option<&'static str>,
}

impl KeySpec {
    /// One key at an argument.
    pub const fn at(flags: KeyFlags, index: usize) -> KeySpec {
        KeySpec::range(flags, index, 0, 1)
    }

    /// Keys from an argument on: see [`Find::Range`].
    pub const fn range(flags: KeyFlags, index: usize, last: i32, step: usize) -> KeySpec {
        let find = Find::Range { last, step, limit: 0 };
        KeySpec { flags, begin: Begin::Index(index), find, notes: None }
    }

    /// A count at an argument, and this many keys after it.
    pub const fn counted(flags: KeyFlags, index: usize) -> KeySpec {
        let find = Find::Count { index: 0, first: 1, step: 1 };
        KeySpec { flags, begin: Begin::Index(index), find, notes: None }
    }

    /// One key after a word.
    pub const fn behind(flags: KeyFlags, word: &'static str, from: i32) -> KeySpec {
        let find = Find::Range { last: 0, step: 1, limit: 0 };
        KeySpec { flags, begin: Begin::Keyword(word, from), find, notes: None }
    }

    /// Keys that cannot be found by a rule.
    pub const fn unknown(flags: KeyFlags, notes: &'static str) -> KeySpec {
        KeySpec { flags, begin: Begin::Unknown, find: Find::Unknown, notes: Some(notes) }
    }

    /// Adds a remark.
    pub const fn notes(mut self, notes: &'static str) -> KeySpec {
        self.notes = Some(notes);
        self
    }

    /// The absolute first and last argument and the step, if it is a range from an index.
    fn as_range(&self) -> Option<(i64, i64, i64)> {
        let (Begin::Index(first), Find::Range { last, step, .. }) = (self.begin, self.find) else {
            return None;
        };
        let (first, last) = (first as i64, i64::from(last));
        Some((first, if last < 0 { last } else { first + last }, step as i64))
    }

    /// Calls `visit` with the index of each key. Returns false when a count is missing, negative or
    /// names more keys than there are.
    pub fn each(&self, argv: Arguments<'_>, mut visit: impl FnMut(usize)) -> bool {
        match self.begin {
            Begin::Index(index) => self.each_from(index, argv, &mut visit),
            // A word may be repeated; the handler decides which occurrence counts.
            Begin::Keyword(word, from @ 0..) => (from as usize..argv.len())
                .filter(|&index| argv.at(index).eq_ignore_ascii_case(word.as_bytes()))
                .all(|index| self.each_from(index + 1, argv, &mut visit)),
            Begin::Keyword(word, from) => match find_backwards(argv, word, from.unsigned_abs()) {
                Some(index) => self.each_from(index + 1, argv, &mut visit),
                None => true,
            },
            Begin::Unknown => true,
        }
    }

    /// Whether a number of keys is not written as Redis writes numbers, as in `+1`.
    pub fn counts_oddly(&self, argv: Arguments<'_>) -> bool {
        match (self.begin, self.find) {
            (Begin::Index(begin), Find::Count { index, .. }) => {
                argv.get(begin + index).is_some_and(|count| num::parse_i64(count).is_none())
            }
            _ => false,
        }
    }

    fn each_from(&self, begin: usize, argv: Arguments<'_>, visit: &mut impl FnMut(usize)) -> bool {
        match self.find {
            Find::Range { last, step, limit } => {
                let end = match last {
                    0.. => begin + last as usize,
                    _ if limit > 1 => begin + (argv.len() - begin.min(argv.len())) / limit - 1,
                    _ => (argv.len() as i64 + i64::from(last)).max(0) as usize,
                };
                let mut index = begin;
                while index <= end && index < argv.len() {
                    visit(index);
                    index += step;
                }
                true
            }
            Find::Count { index, first, step } => {
                let Some(count) = argv.get(begin + index).map(leading_number) else { return false };
                let first = begin + first;
                let room = argv.len().saturating_sub(first).div_ceil(step);
                if count < 0 || count > room as i64 {
                    return false;
                }
                (0..count as usize).for_each(|n| visit(first + n * step));
                true
            }
            Find::Unknown => true,
        }
    }
}

/// The number that a text begins with, 0 if with none: what C's atoi makes of it.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let append =
        |number: i64, digit: &u8| number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    let number = digits.fold(0, append);
    if text.starts_with(b"-") { -number } else { number }
}

/// The place of a word that is searched from an argument counted from the end.
fn find_backwards(argv: Arguments<'_>, word: &str, from: u32) -> Option<usize> {
    let last = argv.len().checked_sub(from as usize)?;
    (1..=last).rev().find(|&index| argv.at(index).eq_ignore_ascii_case(word.as_bytes()))
}

/// What is known of a command without its handler.
pub struct Spec {
    /// In lower case. For a subcommand, its own word alone ("set" of "config|set").
    pub name: &'static str,
    /// For a subcommand, the command it belongs to.
    pub parent: Option<&'static str>,
    /// The number of arguments, including the name. When negative, at least this many.
    pub arity: i32,
    /// See [`Flags`].
    pub flags: Flags,
    /// ACL categories beyond those that follow from flags and group, by name.
    pub categories: &'static [&'static str],
    /// How its keys are found.
    pub keys: &'static [KeySpec],
    /// Where it names members or fields of the collection under its key: the position of the first,
    /// and the distance from each to the next. It may be wrong for commands with options before
    /// them.
    pub members: Option<(u8, u8)>,
    /// Finds all keys, where specs alone would find others than the command uses.
    pub key_finder: Option<KeyFinder>,
    /// Which of [`STOPS_THE_WORLD`] and [`WHOLE_KEYSPACE`] the arguments ask for, when the flags
    /// alone do not tell.
    pub reach: Option<fn(Arguments<'_>) -> Flags>,
    /// What happens to the keys of specs whose flags depend on the arguments:
    /// [`VARIABLE_FLAGS`].
    pub key_flags: Option<fn(&Arguments<'_>) -> KeyFlags>,
    /// Which arguments are channels.
    pub channels: Option<NamesChannels>,
    /// Which arguments are databases, besides the selected one.
    pub databases: Option<DatabaseFinder>,
    /// For an internal command: the commands that it stands for. A user may run it who may run one
    /// of them.
    pub stands_for: &'static [&'static str],
    /// It may use all keys that begin with this, and what happens to these.
    pub below: Option<(&'static [u8], KeyFlags)>,
    /// Whether an argument, the one at this index, is a secret: it is shown to nobody.
    pub is_secret: Option<SecretRule>,
    /// How its effect is told.
    pub told: ChangeForm,
    /// Whether its effect depends on when it runs.
    pub countdown: Countdown,
    /// The family.
    pub group: Group,
    /// Whether it consists of its subcommands.
    pub is_container: bool,
}

impl Spec {
    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: Flags) -> bool {
        self.flags & flag != 0
    }

    /// Whether this number of arguments is right.
    #[inline]
    pub fn accepts(&self, argc: usize) -> bool {
        if self.arity >= 0 {
            argc == self.arity as usize
        } else {
            argc >= self.arity.unsigned_abs() as usize
        }
    }

    /// The ACL categories, without their `@`: those that follow from flags and group, and those of
    /// the command itself.
    pub fn all_categories(&self) -> Vec<&'static str> {
        let implied = [
            (WRITE, "write"),
            (READONLY, "read"),
            (ADMIN, "admin"),
            (ADMIN, "dangerous"),
            (PUBSUB, "pubsub"),
            (FAST, "fast"),
            (BLOCKING, "blocking"),
            (IN_KEYSPACE, "keyspace"),
            (IN_CONNECTION, "connection"),
            (IN_DANGEROUS, "dangerous"),
        ];
        // Scripts read nothing themselves.
        let holds = |flag| self.has(flag) && !(flag == READONLY && self.has(SCRIPT));
        let implied = implied.iter().filter(|(flag, _)| holds(*flag)).map(|(_, name)| *name);
        // A container belongs to no family: its subcommands do.
        let family = self.group.category().filter(|_| !self.is_container);
        let slow = (!self.has(FAST)).then_some("slow");
        let own = self.categories.iter().copied();
        let mut categories: Vec<_> =
            family.into_iter().chain(implied).chain(slow).chain(own).collect();
        categories.sort_unstable();
        categories.dedup();
        categories
    }

    /// First key, last key (counted from the end when negative) and step between keys, as far as
    /// these three numbers can express the key specs; zeros if they cannot, or if there are no
    /// keys.
    pub fn key_range(&self) -> (i64, i64, i64) {
        let ranges = self.keys.iter().filter_map(KeySpec::as_range);
        if let ([_], Some((first, last, step))) = (self.keys, ranges.clone().next()) {
            return (first, last, step);
        }
        // Several specs: those that continue each other make one range.
        let mut joined: Option<(i64, i64)> = None;
        for (first, last, step) in ranges {
            joined = match joined {
                _ if step != 1 => joined,
                None => Some((first, last)),
                Some((begin, end)) if end == first - 1 => Some((begin, last)),
                Some(_) => joined,
            };
        }
        joined.map_or((0, 0, 0), |(first, last)| (first, last, 1))
    }

    /// "get", or "config|get" for a subcommand.
    pub fn full_name(&self) -> String {
        match self.parent {
            Some(parent) => format!("{parent}|{}", self.name),
            None => self.name.to_string(),
        }
    }
}

/// The place of a command among all commands, by which statistics are kept.
pub type RowId = usize;
