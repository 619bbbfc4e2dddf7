//! How families write a row, beside its handler.

use std::ops::Deref;

use resp::args::Arguments;

use crate::command::spec::{Argument, Flags, Group, KeyFinder, KeySpec, LOADING, STALE, Spec};
use crate::engine::{Command, Handler, Serve};
use crate::handler::help;

impl Deref for Command {
    type Target = Spec;

    #[inline]
    fn deref(&self) -> &Spec {
        &self.spec
    }
}

impl Command {
    /// A row with the fields that every command has.
    pub const fn new(
        name: &'static str,
        handler: Handler,
        arity: i32,
        group: Group,
        since: &'static str,
    ) -> Command {
        let spec = Spec {
            name,
            parent: None,
            arity,
            flags: 0,
            categories: &[],
            keys: &[],
            members: None,
            key_finder: None,
            reach: None,
            group,
            since,
            complexity: "",
            summary: "",
            tips: &[],
            arguments: &[],
            history: &[],
            deprecated: None,
            system: false,
            is_container: false,
        };
        Command { spec, handler, serve: None, subcommands: &[] }
    }

    /// A subcommand's row.
    pub const fn sub(
        parent: &'static str,
        name: &'static str,
        handler: Handler,
        arity: i32,
        group: Group,
        since: &'static str,
    ) -> Command {
        let mut row = Command::new(name, handler, arity, group, since);
        row.spec.parent = Some(parent);
        row
    }

    /// The row of a container: the commands are its subcommands.
    pub const fn container(
        name: &'static str,
        group: Group,
        since: &'static str,
        subcommands: &'static [Command],
    ) -> Command {
        let mut row = Command::new(name, help::unknown_subcommand, -2, group, since);
        row.spec.complexity = "Depends on subcommand.";
        row.spec.is_container = true;
        row.subcommands = subcommands;
        row
    }

    /// The row of a container's HELP.
    pub const fn help(parent: &'static str, group: Group, since: &'static str) -> Command {
        Command::sub(parent, "help", help::help, 2, group, since)
            .flags(LOADING | STALE)
            .docs("O(1)", "Lists the subcommands.")
    }

    /// Sets the flags.
    pub const fn flags(mut self, flags: Flags) -> Command {
        self.spec.flags = flags;
        self
    }

    /// Sets the key specs.
    pub const fn keys(mut self, keys: &'static [KeySpec]) -> Command {
        self.spec.keys = keys;
        self
    }

    /// Says where it names members or fields: see [`Spec::members`].
    pub const fn members(mut self, first: u8, step: u8) -> Command {
        self.spec.members = Some((first, step));
        self
    }

    /// Sets the function that finds the keys that the specs call unknown.
    pub const fn key_finder(mut self, finder: KeyFinder) -> Command {
        self.spec.key_finder = Some(finder);
        self
    }

    /// Sets the function that tells from the arguments how far the command reaches.
    pub const fn reach(mut self, reach: fn(Arguments<'_>) -> Flags) -> Command {
        self.spec.reach = Some(reach);
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

    /// Sets the summary alone, of a container.
    pub const fn summary(mut self, summary: &'static str) -> Command {
        self.spec.summary = summary;
        self
    }

    /// Sets cost and summary.
    pub const fn docs(mut self, complexity: &'static str, summary: &'static str) -> Command {
        self.spec.complexity = complexity;
        self.spec.summary = summary;
        self
    }

    /// Sets the hints for clients.
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Command {
        self.spec.tips = tips;
        self
    }

    /// Sets its arguments.
    pub const fn arguments(mut self, arguments: &'static [Argument]) -> Command {
        self.spec.arguments = arguments;
        self
    }

    /// Sets its history: what changed in which version.
    pub const fn history(mut self, history: &'static [(&'static str, &'static str)]) -> Command {
        self.spec.history = history;
        self
    }

    /// Marks it as deprecated.
    pub const fn deprecated(mut self, since: &'static str, instead: &'static str) -> Command {
        self.spec.deprecated = Some((since, instead));
        self
    }

    /// Marks it as made for tests and other servers.
    pub const fn system(mut self) -> Command {
        self.spec.system = true;
        self
    }

    /// Sets the subcommands.
    pub const fn subcommands(mut self, subcommands: &'static [Command]) -> Command {
        self.spec.is_container = !subcommands.is_empty();
        self.subcommands = subcommands;
        self
    }
}
