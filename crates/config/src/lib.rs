//! The configuration, as one table of directives.
//!
//! A row says everything about a directive: its names, type, default, range, whether it changes at
//! run time, whether it has any effect here, and its documentation. Loading, CONFIG GET, SET and
//! REWRITE and the generated documentation all derive from the rows. A new directive is a new row.
//! If a change of the setting has a further effect, the row names an `Action`, which the server
//! carries out.
//!
//! | file | what it answers |
//! |---|---|
//! | `table` | which directives are there? |
//! | `directive` | what is there to know of a directive? |
//! | `names` | which directive has this name? |
//! | `kinds`, `special` | how is a value read, shown and written? |
//! | `values`, `title`, `words` | which types do values have? |
//! | `load` | what do files, standard input and command line say together? |
//! | `change` | what do CONFIG GET and CONFIG SET do? |
//! | `rewrite` | what does CONFIG REWRITE write? |
//!
//! Names, defaults, ranges, texts and formats are those of Redis 8.0, whose files can be used as
//! they are. These differ on purpose: `bind` defaults to the loopback interface, TLS goes by the
//! server's order of ciphers, `threads` is added, and a size beyond 64 bits is refused instead of
//! wrapped around. A missing feature (modules) is refused when ignoring it would mislead, and noted
//! in the log when ignoring it loses nothing. `docs/COMPATIBILITY.md` lists them
//! all.

mod change;
mod directive;
mod kinds;
mod load;
mod names;
mod rewrite;
mod special;
mod spelling;
mod table;
mod title;
mod values;
mod words;

pub use change::{Apply, ApplyError, Changed, SetContext, SetError, SharedConfig, get, set};
pub use directive::{Action, Change, Configurable, Effect};
pub use load::{
    Invocation, LoadEnvironment, LoadError, Location, Note, Origin, Provided, check, load, notes,
};
pub use names::{DirectiveId, directives};
pub use rewrite::{is_provided, rewrite};
pub use spelling::nearest;
pub use table::{Config, Directive};
pub use title::{TitleVariables, expand_title};
pub use values::{
    AppendFsync, Choice, ClusterDurability, DisklessLoad, EndpointType, LogLevel, MaxmemoryPolicy,
    MemoryLimit, NotifyEvents, OomScoreAdj, OutputLimit, OutputLimits, Permission, PrimaryAddress,
    PropagationError, PubsubDefault, RenamedCommand, SanitizePayload, SaveRule, ShutdownOptions,
    Supervised, SyslogFacility, TlsAuthClients, TlsAuthClientsUser,
};
pub use words::{quote, split_words};

impl Config {
    /// How many databases there are.
    pub fn database_count(&self) -> usize {
        if self.cluster_enabled { self.cluster_databases } else { self.databases }
    }

    /// Whether a replica's clients may write nothing: those of a cluster never, because a replica
    /// whose data is not its primary's must not be elected.
    pub fn replicas_are_read_only(&self) -> bool {
        self.replica_read_only || self.cluster_enabled
    }
}

#[cfg(test)]
mod tests;
