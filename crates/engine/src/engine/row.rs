//! A command: its spec and its functions, as a row that its family writes beside its handler.
//!
//! A row is built with `const fn`s, so that the rows of a family are a table that one reads down: a
//! line for each command, with what the server acts on. What only few commands have is set by the
//! methods of [`Command`], behind it. What people read of the same commands is in a second table:
//! [`crate::command::Docs`].
//!
//! ```text
//! const COMMANDS: &[Command] = &Group::String.rows([
//!     row("get", get, 2, READONLY | FAST, READS),
//!     row("setnx", setnx, 3, WRITE | DENYOOM | FAST, CREATES).told(ChangeForm::Set),
//! ]);
//! ```

use std::ops::Deref;

use resp::args::Arguments;
use store::Key;

use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::{
    BLOCKING, Begin, ChangeForm, Countdown, DatabaseFinder, FOLLOWS, Find, Flags, GOES_SHORT,
    Group, INTERNAL, KeyFinder, KeyFlags, KeySpec, NEEDS_MODULES, NOT_KEY, NamesChannels,
    OF_CONNECTION, PROTECTED, READS_BY_PATTERN, RowId, SCRIPT, SET_ASIDE, STOPS_THE_WORLD,
    SecretRule, Spec, VARIABLE_FLAGS, WHOLE_KEYSPACE,
};
use crate::engine::context::Context;
use crate::users::Access;
use crate::users::verdict::access_of;

/// Runs a command whose checks have passed and whose slots are locked.
pub type Handler = fn(&mut Context<'_>, &mut Args<'_>) -> CommandResult;

/// Tries to serve a blocking command from one of its keys, with the command's arguments. Writes
/// the reply and returns true, or returns false when the key has nothing for it.
pub type Serve = fn(&mut Context<'_>, &Key<'_>, Arguments<'_>) -> Result<bool, CommandError>;

/// A command: its spec and its handler.
pub struct Command {
    /// What is known of it.
    pub spec: Spec,
    /// The function that runs it.
    pub handler: Handler,
    /// Serves a client that waits in it for a key.
    pub serve: Option<Serve>,
    /// Subcommands.
    pub subcommands: &'static [Command],
}

/// A row with its place.
pub struct Row {
    /// Its place in [`Registry::rows`].
    pub id: RowId,
    /// The row.
    pub command: &'static Command,
    /// Its only key, if it has one, is the argument after its name, as for most commands.
    pub(crate) one_key: bool,
    /// It may take the fast path: see `run/fast_path.rs`.
    pub(crate) fast_path: bool,
    /// What a user needs to be allowed with each of its keys, if that is the same for all of them,
    /// and if it needs nothing else but the selected database.
    pub(crate) access: Option<AccessRule>,
}

impl Deref for Command {
    type Target = Spec;

    #[inline]
    fn deref(&self) -> &Spec {
        &self.spec
    }
}

/// A command as a line of its family's table: name, handler, arity, flags and keys. Its group comes
/// from the table: [`Group::rows`].
pub const fn row(
    name: &'static str,
    handler: Handler,
    arity: i32,
    flags: Flags,
    keys: &'static [KeySpec],
) -> Command {
    let spec = Spec {
        name,
        parent: None,
        arity,
        flags,
        categories: &[],
        keys,
        members: None,
        key_finder: None,
        reach: None,
        key_flags: None,
        channels: None,
        databases: None,
        stands_for: &[],
        below: None,
        is_secret: None,
        told: ChangeForm::Keys,
        countdown: Countdown::Never,
        group: Group::Generic,
        is_container: false,
    };
    Command { spec, handler, serve: None, subcommands: &[] }
}

impl Group {
    /// The rows of commands of this group.
    pub const fn rows<const N: usize>(self, mut rows: [Command; N]) -> [Command; N] {
        let mut index = 0;
        while index < N {
            rows[index].spec.group = self;
            index += 1;
        }
        rows
    }

    /// For the rows of a command's subcommands.
    pub const fn under(self, parent: &'static str) -> Under {
        Under { group: self, parent }
    }
}

/// What the rows of a command's subcommands have in common.
pub struct Under {
    group: Group,
    parent: &'static str,
}

impl Under {
    /// The rows of these subcommands.
    pub const fn rows<const N: usize>(self, rows: [Command; N]) -> [Command; N] {
        let mut rows = self.group.rows(rows);
        let mut index = 0;
        while index < N {
            rows[index].spec.parent = Some(self.parent);
            index += 1;
        }
        rows
    }
}

/// What few commands have.
impl Command {
    /// Says where it names members or fields: see [`Spec::members`].
    pub const fn members(mut self, first: u8, step: u8) -> Command {
        self.spec.members = Some((first, step));
        self
    }

    /// Sets the function that finds the keys in place of the specs, which are only shown then.
    pub const fn key_finder(mut self, finder: KeyFinder) -> Command {
        self.spec.key_finder = Some(finder);
        self
    }

    /// Sets the function that tells from the arguments how far the command reaches.
    pub const fn reach(mut self, reach: fn(Arguments<'_>) -> Flags) -> Command {
        self.spec.reach = Some(reach);
        self
    }

    /// Sets the function that tells from the arguments what happens to the keys.
    pub const fn key_flags(mut self, flags: fn(&Arguments<'_>) -> KeyFlags) -> Command {
        self.spec.key_flags = Some(flags);
        self
    }

    /// Says which arguments are channels.
    pub const fn channels(mut self, channels: NamesChannels) -> Command {
        self.spec.channels = Some(channels);
        self
    }

    /// Sets the function that tells which arguments are databases.
    pub const fn databases(mut self, finder: DatabaseFinder) -> Command {
        self.spec.databases = Some(finder);
        self
    }

    /// Says for which commands an internal one stands.
    pub const fn stands_for(mut self, names: &'static [&'static str]) -> Command {
        self.spec.stands_for = names;
        self
    }

    /// Says that it may use all keys that begin with this, and what happens to these.
    pub const fn below(mut self, prefix: &'static [u8], flags: KeyFlags) -> Command {
        self.spec.below = Some((prefix, flags));
        self
    }

    /// Sets the function that tells which arguments are secrets.
    pub const fn secrets(mut self, rule: SecretRule) -> Command {
        self.spec.is_secret = Some(rule);
        self
    }

    /// Says how its effect is told.
    pub const fn told(mut self, told: ChangeForm) -> Command {
        self.spec.told = told;
        self
    }

    /// Says when its effect depends on the time.
    pub const fn countdown(mut self, countdown: Countdown) -> Command {
        self.spec.countdown = countdown;
        self
    }

    /// Sets the function that serves a client which waits in the command for a key.
    pub const fn serve(mut self, serve: Serve) -> Command {
        self.serve = Some(serve);
        self
    }

    /// Sets further ACL categories.
    pub const fn categories(mut self, categories: &'static [&'static str]) -> Command {
        self.spec.categories = categories;
        self
    }

    /// Sets the subcommands.
    pub const fn subcommands(mut self, subcommands: &'static [Command]) -> Command {
        self.spec.is_container = !subcommands.is_empty();
        self.subcommands = subcommands;
        self
    }
}

/// Flags of commands that wait, reach further than the key that they name, change their connection,
/// or may be refused.
const UNUSUAL: Flags = BLOCKING
    | STOPS_THE_WORLD
    | FOLLOWS
    | INTERNAL
    | NEEDS_MODULES
    | OF_CONNECTION
    | PROTECTED
    | READS_BY_PATTERN
    | SCRIPT
    | SET_ASIDE
    | WHOLE_KEYSPACE;

/// Whether a command may take the fast path; `has_keys` says that it has keys, or none where its
/// arguments are too few.
fn qualifies(command: &Command, has_keys: bool) -> bool {
    if command.has(GOES_SHORT) {
        return has_keys;
    }
    let has_subcommands = command.parent.is_some() || !command.subcommands.is_empty();
    has_keys && !has_subcommands && command.reach.is_none() && !command.has(UNUSUAL)
}

/// What a user needs to be allowed with a key.
#[derive(Clone, Copy)]
pub(crate) enum AccessRule {
    /// This, whatever the arguments are.
    Fixed(Access),
    /// What the arguments say.
    ByArguments(fn(&Arguments<'_>) -> KeyFlags),
}

impl AccessRule {
    /// See [`Row::access`].
    fn of(command: &Command) -> Option<AccessRule> {
        let [first, others @ ..] = command.keys else { return None };
        let is_plain = command.key_finder.is_none()
            && command.channels.is_none()
            && command.databases.is_none()
            && command.below.is_none()
            && command.keys.iter().all(|spec| spec.flags & NOT_KEY == 0);
        let is_variable = |spec: &KeySpec| spec.flags & VARIABLE_FLAGS != 0;
        match command.key_flags {
            _ if !is_plain => None,
            Some(of) if command.keys.iter().all(is_variable) => Some(AccessRule::ByArguments(of)),
            _ if command.keys.iter().any(is_variable) => None,
            _ => {
                let access = access_of(first.flags);
                let is_same = others.iter().all(|spec| access_of(spec.flags) == access);
                is_same.then_some(AccessRule::Fixed(access))
            }
        }
    }

    /// What it is for these arguments.
    #[inline]
    pub(crate) fn access(self, argv: &Arguments<'_>) -> Access {
        match self {
            AccessRule::Fixed(access) => access,
            AccessRule::ByArguments(of) => access_of(of(argv)),
        }
    }
}

impl Row {
    pub(crate) fn new(id: RowId, command: &'static Command) -> Row {
        let one_key = match command.keys {
            [spec] => {
                let first = matches!(spec.begin, Begin::Index(1))
                    && matches!(spec.find, Find::Range { last: 0, .. });
                first && spec.flags & NOT_KEY == 0 && command.key_finder.is_none()
            }
            _ => false,
        };
        let finds_keys =
            |spec: &KeySpec| spec.flags & NOT_KEY == 0 && !matches!(spec.begin, Begin::Unknown);
        let has_keys = !command.keys.is_empty()
            && command.keys.iter().all(finds_keys)
            && command.key_finder.is_none();
        let fast_path = qualifies(command, has_keys);
        Row { id, command, one_key, fast_path, access: AccessRule::of(command) }
    }

    /// Whether it takes the fast path where nothing is the matter: see
    /// [`crate::engine::Engine::execute_fast`].
    #[inline]
    pub fn may_take_fast_path(&self) -> bool {
        self.fast_path
    }

    /// Whether each command with the same first word has this row: no container, and no subcommand.
    #[inline]
    pub fn is_found_by_name(&self) -> bool {
        self.command.parent.is_none() && self.command.subcommands.is_empty()
    }
}
