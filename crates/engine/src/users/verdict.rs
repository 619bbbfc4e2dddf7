//! Whether a user may run a command: the one place that decides it.
//!
//! The keys are those that the command itself uses, found by the same function, and what happens to
//! each is what its key spec says.

use resp::args::Arguments;

use super::account::Account;
use super::patterns::{Access, Beginning, READ, WRITE};
use super::rights::Rights;
use crate::command;
use crate::command::args::KeyAt;
use crate::command::keys::each_key;
use crate::command::{
    ACCESS, DELETE, INSERT, KeyFlags, NO_AUTH, NOT_KEY, NamesChannels, RowId, Spec, UPDATE,
};

/// A command that asks whether it may run.
#[derive(Clone, Copy)]
pub struct CheckedCommand<'a> {
    /// The number of its row.
    pub id: RowId,
    /// Its spec.
    pub spec: &'static Spec,
    /// Its arguments.
    pub argv: Arguments<'a>,
    /// The selected database.
    pub database: usize,
}

/// What a user lacks, in the order in which it is looked for: as by Valkey.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lack {
    /// The right to the database at this argument; to the selected one if it is the name.
    Database(usize),
    /// The right to run the command.
    Command,
    /// The right to the key at this argument.
    Key(usize),
    /// The right to the channel at this argument.
    Channel(usize),
}

impl Lack {
    /// The argument that is not allowed.
    pub fn argument(self) -> usize {
        match self {
            Lack::Command => 0,
            Lack::Key(index) | Lack::Channel(index) | Lack::Database(index) => index,
        }
    }
}

/// What a user was found to be allowed with one key, which holds for other keys as well.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    id: RowId,
    access: Access,
    keys: Beginning,
}

impl Known {
    /// Whether it was found for a command with this key, too.
    #[inline]
    pub(crate) fn covers(&self, id: RowId, access: Access, key: &[u8]) -> bool {
        self.id == id && self.access == access && self.keys.begins(key)
    }
}

/// What is needed of the rights to a key, by the flags of its spec.
pub(crate) fn access_of(flags: KeyFlags) -> Access {
    let reads = if flags & ACCESS != 0 { READ } else { 0 };
    let writes = if flags & (INSERT | DELETE | UPDATE) != 0 { WRITE } else { 0 };
    reads | writes
}

impl Account {
    /// Whether it may run a command; if not, what it lacks. With several selectors, that is what
    /// the selector lacks that comes furthest.
    #[inline(never)]
    pub fn check(&self, asked: CheckedCommand<'_>) -> Result<(), Lack> {
        if self.is_unrestricted {
            return Ok(());
        }
        let mut worst = Lack::Database(0);
        for rights in self.all_rights() {
            match rights.check(asked) {
                Ok(()) => return Ok(()),
                Err(lack) => worst = worst.max(lack),
            }
        }
        Err(worst)
    }

    /// Whether it surely may run a command that needs nothing but the selected database and this
    /// access to each of its keys. It may still do so where this is not sure.
    #[inline]
    pub(crate) fn surely_allows(
        &self,
        asked: CheckedCommand<'_>,
        access: Access,
        keys: &[KeyAt],
    ) -> bool {
        let CheckedCommand { id, argv, database, .. } = asked;
        self.all_rights().any(|rights| {
            let mut names = keys.iter().map(|key| argv.at(key.index as usize));
            rights.commands.has(id)
                && names.all(|name| rights.allows_key(name, access))
                && rights.allows_database(database as u64)
        })
    }

    /// [`Account::surely_allows`] of one key. Also what that shows of other keys.
    #[inline(never)]
    pub(crate) fn surely_allows_key(
        &self,
        asked: CheckedCommand<'_>,
        access: Access,
        key: &[u8],
    ) -> (bool, Option<Known>) {
        let CheckedCommand { id, database, .. } = asked;
        let length = self.all_rights().find_map(|rights| {
            let allows = rights.commands.has(id) && rights.allows_database(database as u64);
            if allows { rights.allows_keys_like(key, access) } else { None }
        });
        let keys = length.and_then(|length| Beginning::of(key, length));
        (length.is_some(), keys.map(|keys| Known { id, access, keys }))
    }

    /// Whether it may run a command that also reads keys which it does not name: a selector must
    /// allow both.
    pub fn may_read_unnamed(&self, asked: CheckedCommand<'_>) -> bool {
        self.is_unrestricted
            || self
                .all_rights()
                .any(|rights| rights.allows_keys_below(b"", READ) && rights.check(asked).is_ok())
    }

    /// Whether it may run a command with some arguments.
    pub fn may_call(&self, id: RowId) -> bool {
        self.is_unrestricted || self.all_rights().any(|rights| rights.commands.has(id))
    }

    /// Whether it may read all keys with a command, whatever their names are.
    pub fn reads_all_keys(&self, id: RowId) -> bool {
        self.reads_keys_below(id, b"", None)
    }

    /// Whether it may read all keys of a database that begin with this, with a command; of all
    /// databases, if none is named. A selector must allow both.
    pub fn reads_keys_below(&self, id: RowId, prefix: &[u8], database: Option<usize>) -> bool {
        self.is_unrestricted
            || self.all_rights().any(|rights| {
                rights.commands.has(id)
                    && rights.allows_keys_below(prefix, READ)
                    && rights.allows_databases(database)
            })
    }

    /// Whether it may read a key of a database with a command; of all databases, if none is named.
    /// A selector must allow both.
    pub fn reads_key(&self, id: RowId, key: &[u8], database: Option<usize>) -> bool {
        self.is_unrestricted
            || self.all_rights().any(|rights| {
                rights.commands.has(id)
                    && rights.allows_key(key, READ)
                    && rights.allows_databases(database)
            })
    }

    /// Whether it may listen to a channel, or to a pattern of channels.
    pub(crate) fn hears(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.is_unrestricted
            || self.all_rights().any(|rights| rights.allows_channel(channel, is_pattern))
    }
}

impl Rights {
    fn check(&self, asked: CheckedCommand<'_>) -> Result<(), Lack> {
        let CheckedCommand { id, spec, argv, database } = asked;
        if self.databases.is_some() {
            self.check_databases(spec, argv, database)?;
        }
        if !spec.has(NO_AUTH) && !self.allows_command(id, argv) {
            return Err(Lack::Command);
        }
        if !self.all_keys {
            let mut lacks = None;
            each_key(spec, argv, &mut |index, flags| {
                let key = argv.get(index).unwrap_or_default();
                if lacks.is_none() && !self.allows_key(key, access_of(flags)) {
                    lacks = Some(Lack::Key(index));
                }
            });
            if let Some(lack) = lacks {
                return Err(lack);
            }
            if let Some((prefix, flags)) = spec.below
                && !self.allows_keys_below(prefix, access_of(flags))
            {
                return Err(Lack::Key(1));
            }
        }
        if !self.all_channels
            && let Some(names) = spec.channels
        {
            let is_pattern = names == NamesChannels::AllPatterns;
            let last = if names == NamesChannels::First { 2 } else { argv.len() };
            for index in 1..last.min(argv.len()) {
                if !self.allows_channel(argv.at(index), is_pattern) {
                    return Err(Lack::Channel(index));
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn check_databases(
        &self,
        spec: &Spec,
        argv: Arguments<'_>,
        selected: usize,
    ) -> Result<(), Lack> {
        // Whatever is selected, another database may be. A command without keys that names
        // databases uses no others.
        let uses_data = spec.has(command::READONLY | command::WRITE | command::WHOLE_KEYSPACE);
        let has_keys = spec.keys.iter().any(|own| own.flags & NOT_KEY == 0);
        let uses_selected = has_keys || (uses_data && spec.databases.is_none());
        let mut lack = None;
        let mut check = |index: Option<usize>| {
            let allowed = match index {
                None => false,
                // The command refuses what is no number.
                Some(index) => {
                    argv.get(index).and_then(base::num::parse_i64).is_none_or(|number| {
                        u64::try_from(number).is_ok_and(|number| self.allows_database(number))
                    })
                }
            };
            if !allowed && lack.is_none() {
                lack = Some(Lack::Database(index.unwrap_or(0)));
            }
        };
        // Those that it names are told first, as by Valkey.
        if let Some(finder) = spec.databases {
            finder(argv, &mut check);
        }
        if uses_selected && lack.is_none() && !self.allows_database(selected as u64) {
            lack = Some(Lack::Database(0));
        }
        lack.map_or(Ok(()), Err)
    }

    fn allows_databases(&self, database: Option<usize>) -> bool {
        match database {
            Some(database) => self.allows_database(database as u64),
            None => self.databases.is_none(),
        }
    }
}
