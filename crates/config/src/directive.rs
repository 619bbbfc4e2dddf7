//! The contents of a row of the table.

use super::kinds::{Access, Line};

/// What the rows are about: all settings, as one struct.
pub trait Configurable: Sized + 'static {
    /// The settings before any change.
    fn defaults() -> &'static Self;
}

/// Whether and how a directive changes while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// CONFIG SET changes it.
    Modifiable,
    /// It is fixed at start.
    Immutable,
    /// CONFIG SET changes it where `enable-protected-configs` allows the client to.
    Protected,
    /// The same; but any client may set it to its present value, which reads again the file that it
    /// names.
    Reread,
}

/// The effect of a directive in this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does what its documentation says.
    Full,
    /// Nothing, for the reason given; any valid value is accepted, so that files can be shared
    /// with other servers, and a note is logged when the value is not the default.
    None(&'static str),
}

/// What the server does at once when CONFIG SET changes a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: code that needs the setting reads it.
    None,
    /// It listens on other ports.
    Ports,
    /// It listens at other addresses.
    Addresses,
    /// It reads certificates and keys, and offers other things to clients of TLS.
    Tls,
    /// It makes sure that there are descriptors for this many clients.
    Descriptors,
    /// It changes to another directory.
    Directory,
    /// It shows another process title.
    Title,
    /// It syncs the append-only file at other times.
    SyncTimes,
    /// It writes times into the append-only file, or stops that.
    Timestamps,
    /// It tells the kernel how likely it is to be killed when memory is short.
    OomScore,
    /// It logs more, or less.
    LogLevel,
    /// It writes other things into the log when it crashes.
    CrashLog,
    /// It warns when more memory is in use than allowed.
    MemoryLimit,
    /// It starts or ends the append-only file.
    AppendOnly,
    /// It reads which views there are.
    Views,
    /// It makes sure that etcd can be asked there.
    Etcd,
}

impl Action {
    /// Whether it waits for the world outside: for a disk, or for a name to be resolved.
    pub fn waits(self) -> bool {
        use Action::{
            Addresses, AppendOnly, CrashLog, Descriptors, Directory, Etcd, LogLevel, MemoryLimit,
            None, OomScore, Ports, SyncTimes, Timestamps, Title, Tls, Views,
        };
        match self {
            Ports | Addresses | Tls | Directory | OomScore | AppendOnly | Views | Etcd => true,
            None | Descriptors | Title | SyncTimes | Timestamps | LogLevel | CrashLog
            | MemoryLimit => false,
        }
    }
}

/// The part of a row that concerns the directive rather than its value.
pub(super) struct Row {
    name: &'static str,
    alias: Option<&'static str>,
    change: Change,
    effect: Effect,
    action: Action,
    hidden: bool,
    secret: bool,
    denied_while_loading: bool,
    always_applied: bool,
}

/// A modifiable directive with full effect.
pub(super) const fn named(name: &'static str) -> Row {
    Row {
        name,
        alias: None,
        change: Change::Modifiable,
        effect: Effect::Full,
        action: Action::None,
        hidden: false,
        secret: false,
        denied_while_loading: false,
        always_applied: false,
    }
}

impl Row {
    /// It has an older name too.
    pub(super) const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    pub(super) const fn immutable(self) -> Self {
        Self { change: Change::Immutable, ..self }
    }

    pub(super) const fn protected(self) -> Self {
        Self { change: Change::Protected, ..self }
    }

    /// See [`Change::Reread`].
    pub(super) const fn reread(self) -> Self {
        Self { change: Change::Reread, always_applied: true, ..self }
    }

    /// See [`Effect::None`].
    pub(super) const fn without_effect(self, reason: &'static str) -> Self {
        Self { effect: Effect::None(reason), ..self }
    }

    /// See [`Action`].
    pub(super) const fn then(self, action: Action) -> Self {
        Self { action, ..self }
    }

    /// CONFIG GET shows it only when it is asked for by name, not by a pattern.
    pub(super) const fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }

    /// Its value is a secret.
    pub(super) const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// CONFIG SET does not change it while the data set is being loaded.
    pub(super) const fn denied_while_loading(self) -> Self {
        Self { denied_while_loading: true, ..self }
    }

    /// CONFIG SET to its present value is applied too: the effect may differ when the world outside
    /// has changed.
    pub(super) const fn always_applied(self) -> Self {
        Self { always_applied: true, ..self }
    }

    pub(super) const fn with<C>(
        self,
        doc: &'static str,
        setting: &'static dyn Access<C>,
    ) -> Directive<C> {
        Directive { row: self, doc, setting }
    }
}

/// A directive of the settings `C`: one row of the table.
pub struct Directive<C: 'static> {
    row: Row,
    doc: &'static str,
    setting: &'static dyn Access<C>,
}

impl<C: Configurable> Directive<C> {
    /// Its name, in lower case.
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// Its other name, kept for files and clients that use it.
    pub fn alias(&self) -> Option<&'static str> {
        self.row.alias
    }

    /// Its purpose, in a line or two.
    pub fn doc(&self) -> &'static str {
        self.doc.trim_ascii_start()
    }

    /// Its possible values, in words.
    pub fn values(&self) -> String {
        self.setting.describe()
    }

    /// Its default as CONFIG GET shows it.
    pub fn default_value(&self) -> Vec<u8> {
        self.setting.show(C::defaults())
    }

    /// The lines that state its default in a file. None if no line can.
    pub fn default_lines(&self) -> Vec<Vec<u8>> {
        self.lines(C::defaults()).into_iter().map(|line| line.text).collect()
    }

    /// Whether and how it changes at run time.
    pub fn change(&self) -> Change {
        self.row.change
    }

    /// Its effect.
    pub fn effect(&self) -> Effect {
        self.row.effect
    }

    /// What the server does at once when it changes.
    pub fn action(&self) -> Action {
        self.row.action
    }

    /// Whether patterns of CONFIG GET pass it over.
    pub fn is_hidden(&self) -> bool {
        self.row.hidden
    }

    /// Whether its value is a secret: neither logs nor other clients are shown what CONFIG SET
    /// makes of it.
    pub fn is_secret(&self) -> bool {
        self.row.secret
    }

    /// Whether CONFIG SET is denied while the data set is being loaded.
    pub fn is_denied_while_loading(&self) -> bool {
        self.row.denied_while_loading
    }

    /// Whether CONFIG SET is carried out even if it changes nothing.
    pub(super) fn is_always_applied(&self) -> bool {
        self.row.always_applied
    }

    /// Its value in `config`, as CONFIG GET shows it.
    pub fn value(&self, config: &C) -> Vec<u8> {
        self.setting.show(config)
    }

    /// Whether two configurations agree on it.
    pub fn same(&self, one: &C, other: &C) -> bool {
        self.setting.same(one, other)
    }

    /// Assigns the value that CONFIG SET gives.
    pub(super) fn set(&self, config: &mut C, value: &[u8]) -> Result<(), String> {
        self.setting.set(config, &[value])
    }

    /// Assigns or adds a value that a file gives in `words`; `first` when it is the first one.
    pub(super) fn load(&self, config: &mut C, words: &[&[u8]], first: bool) -> Result<(), String> {
        self.setting.load(config, words, first)
    }

    /// The lines that a rewritten file has for it.
    pub(super) fn lines(&self, config: &C) -> Vec<Line> {
        self.setting.lines(self.row.name, config, C::defaults())
    }

    /// Whether it has its default value in `config`.
    pub(super) fn is_default(&self, config: &C) -> bool {
        self.setting.same(config, C::defaults())
    }
}
