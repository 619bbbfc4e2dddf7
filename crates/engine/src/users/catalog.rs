//! The commands as rules of users name them: by name and by category, with a number for each.

use hashbrown::HashMap;

use crate::command::{INTERNAL, RowId, Spec};

/// The categories, in the order in which ACL CAT answers them.
pub const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// A category: its place in [`CATEGORIES`].
pub type Category = usize;

/// The category of this name, in any case.
pub fn category(name: &[u8]) -> Option<Category> {
    CATEGORIES.iter().position(|own| own.as_bytes().eq_ignore_ascii_case(name))
}

/// A command as rules see it.
struct Entry {
    spec: &'static Spec,
    /// Its bit for each category.
    categories: u32,
    /// How many rows behind it are its subcommands.
    subcommands: usize,
    /// The commands for which it stands, if it is internal.
    stands_for: Vec<RowId>,
}

/// All commands, by the numbers of their rows.
pub struct Catalog {
    entries: Vec<Entry>,
    /// By the names that clients give, with `|` before a subcommand. Those of internal commands are
    /// not among them.
    by_name: HashMap<Vec<u8>, RowId>,
    internals: Vec<RowId>,
}

impl Catalog {
    /// The catalog of these commands, each followed by its subcommands.
    pub(crate) fn new(specs: impl Iterator<Item = &'static Spec>) -> Catalog {
        let mut entries: Vec<Entry> = Vec::new();
        let mut by_name = HashMap::new();
        let mut container = 0;
        for spec in specs {
            let id = entries.len();
            match spec.parent {
                Some(parent)
                    if entries.get(container).is_some_and(|own| own.spec.name == parent) =>
                {
                    entries[container].subcommands += 1;
                }
                _ => container = id,
            }
            if !spec.has(INTERNAL) {
                by_name.insert(spec.full_name().into_bytes(), id);
            }
            let own = spec.all_categories();
            let bits = own.iter().filter_map(|name| category(name.as_bytes()));
            let categories = bits.fold(0, |bits, own| bits | 1 << own);
            entries.push(Entry { spec, categories, subcommands: 0, stands_for: Vec::new() });
        }
        let find = |name: &&str| by_name.get(name.as_bytes()).copied();
        for entry in &mut entries {
            entry.stands_for = entry.spec.stands_for.iter().filter_map(find).collect();
        }
        let all = entries.iter().enumerate().filter(|(_, entry)| entry.spec.has(INTERNAL));
        let internals = all.map(|(id, _)| id).collect();
        Catalog { entries, by_name, internals }
    }

    /// How many commands there are, subcommands and internal ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The command of this name ("get", "config|set"), in any case.
    pub fn find(&self, name: &[u8]) -> Option<RowId> {
        self.by_name.get(&name.to_ascii_lowercase()).copied()
    }

    /// What is known of a command.
    pub fn spec(&self, id: RowId) -> &'static Spec {
        self.entries[id].spec
    }

    /// Whether a command consists of subcommands.
    pub(crate) fn has_subcommands(&self, id: RowId) -> bool {
        self.entries[id].subcommands > 0
    }

    /// The internal commands, each with those for which it stands.
    pub(crate) fn internals(&self) -> impl Iterator<Item = (RowId, &[RowId])> {
        self.internals.iter().map(|id| (*id, &*self.entries[*id].stands_for))
    }

    /// A command with its subcommands.
    pub(crate) fn family(&self, id: RowId) -> std::ops::RangeInclusive<RowId> {
        id..=id + self.entries[id].subcommands
    }

    /// The commands in a category. All subcommands of a container that is in it count too when
    /// `with_families` says so, as they do for rules.
    pub fn members(&self, category: Category, with_families: bool) -> Vec<RowId> {
        let bit = 1 << category;
        let mut found = Vec::new();
        for (id, entry) in self.entries.iter().enumerate() {
            if entry.categories & bit == 0 {
                continue;
            }
            match with_families {
                true => found.extend(self.family(id)),
                false => found.push(id),
            }
        }
        found
    }
}
