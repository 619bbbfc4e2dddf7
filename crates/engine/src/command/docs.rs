//! The documentation of a command: what people and their tools read of it, and the server does not
//! act on.
//!
//! COMMAND DOCS, the tips of COMMAND INFO, HELP of the containers and the compatibility page read
//! it. A family writes it in a table below its rows, in the same order: see
//! [`crate::engine::registry::Family`].
//!
//! ```text
//! docs("get", "1.0.0", "Returns the string under a key.").cost("O(1)").arguments(&[KEY]),
//! ```

/// The cost of a command that consists of its subcommands.
pub const DEPENDS_ON_SUBCOMMAND: &str = "Depends on subcommand.";

/// What people read of a command.
#[derive(Clone, Copy, Debug)]
pub struct Docs {
    /// Which command it is about: "get", or "config|get" for a subcommand.
    pub name: &'static str,
    /// The first Redis version that has it.
    pub since: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its cost, which COMMAND DOCS calls complexity; empty if it has none.
    pub cost: &'static str,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// Changes in later versions: (version, change).
    pub history: &'static [(&'static str, &'static str)],
    /// Deprecated since a version, in favour of something.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Hints for clients, as COMMAND INFO has them.
    pub tips: &'static [&'static str],
    /// For tests and for other servers rather than for users.
    pub system: bool,
}

/// The documentation of a command: its name, its first version and what it does.
pub const fn docs(name: &'static str, since: &'static str, summary: &'static str) -> Docs {
    Docs {
        name,
        since,
        summary,
        cost: "",
        arguments: &[],
        history: &[],
        deprecated: None,
        tips: &[],
        system: false,
    }
}

/// The documentation of a container's HELP.
pub const fn docs_of_help(name: &'static str, since: &'static str) -> Docs {
    docs(name, since, "Lists the subcommands.").cost("O(1)")
}

impl Docs {
    /// Sets its cost.
    pub const fn cost(mut self, cost: &'static str) -> Docs {
        self.cost = cost;
        self
    }

    /// Sets its arguments.
    pub const fn arguments(mut self, arguments: &'static [Argument]) -> Docs {
        self.arguments = arguments;
        self
    }

    /// Sets its history: what changed in which version.
    pub const fn history(mut self, history: &'static [(&'static str, &'static str)]) -> Docs {
        self.history = history;
        self
    }

    /// Marks it as deprecated.
    pub const fn deprecated(mut self, since: &'static str, instead: &'static str) -> Docs {
        self.deprecated = Some((since, instead));
        self
    }

    /// Sets the hints for clients.
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Docs {
        self.tips = tips;
        self
    }

    /// Marks it as made for tests and other servers.
    pub const fn system(mut self) -> Docs {
        self.system = true;
        self
    }
}

/// The kind of an argument, as COMMAND DOCS describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the kinds are those of COMMAND DOCS")]
pub enum ArgumentKind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

/// One argument as COMMAND DOCS describes it.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Its name in a line that shows the syntax of the command.
    pub shown: &'static str,
    /// Its kind.
    pub kind: ArgumentKind,
    /// The word before it, or the word that it consists of.
    pub token: Option<&'static str>,
    /// For keys: which key spec finds it.
    pub key_spec: Option<u8>,
    /// It may be absent.
    pub optional: bool,
    /// It may be repeated.
    pub multiple: bool,
    /// The word is repeated with it.
    pub multiple_token: bool,
    /// The version that added it, if later than the command's.
    pub since: Option<&'static str>,
    /// The version from which on it is deprecated.
    pub deprecated_since: Option<&'static str>,
    /// The parts of a choice or block.
    pub arguments: &'static [Argument],
}

/// An argument of a kind; the methods of [`Argument`] refine it.
pub const fn argument(name: &'static str, kind: ArgumentKind) -> Argument {
    Argument {
        name,
        shown: name,
        kind,
        token: None,
        key_spec: None,
        optional: false,
        multiple: false,
        multiple_token: false,
        since: None,
        deprecated_since: None,
        arguments: &[],
    }
}

/// A key, found by the key spec of this index.
pub const fn key(name: &'static str, spec: u8) -> Argument {
    let mut argument = argument(name, ArgumentKind::Key);
    argument.key_spec = Some(spec);
    argument
}

/// A word that stands for itself.
pub const fn word(name: &'static str, token: &'static str) -> Argument {
    argument(name, ArgumentKind::PureToken).token(token)
}

/// One of several.
pub const fn one_of(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut argument = argument(name, ArgumentKind::OneOf);
    argument.arguments = arguments;
    argument
}

/// Several in a row.
pub const fn block(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut argument = argument(name, ArgumentKind::Block);
    argument.arguments = arguments;
    argument
}

impl Argument {
    /// Puts a word before it.
    pub const fn token(mut self, token: &'static str) -> Argument {
        self.token = Some(token);
        self
    }

    /// May be absent.
    pub const fn optional(mut self) -> Argument {
        self.optional = true;
        self
    }

    /// Has another name than its own where the form of the command is shown.
    pub const fn shown(mut self, text: &'static str) -> Argument {
        self.shown = text;
        self
    }

    /// May be repeated.
    pub const fn multiple(mut self) -> Argument {
        self.multiple = true;
        self
    }

    /// May be repeated, its word with it.
    pub const fn multiple_token(mut self) -> Argument {
        self.multiple = true;
        self.multiple_token = true;
        self
    }

    /// Came later than the command.
    pub const fn since(mut self, version: &'static str) -> Argument {
        self.since = Some(version);
        self
    }

    /// Is deprecated from a version on.
    pub const fn deprecated_since(mut self, version: &'static str) -> Argument {
        self.deprecated_since = Some(version);
        self
    }
}
