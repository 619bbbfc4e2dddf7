//! The directives by their names and by their places in the table.

use std::fmt;

use super::table::{DIRECTIVES, Directive};

/// Every directive, in the order of the documentation.
pub fn directives() -> &'static [Directive] {
    DIRECTIVES
}

/// Which directive: a position in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectiveId(usize);

impl DirectiveId {
    /// Every directive, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..DIRECTIVES.len()).map(Self)
    }

    /// The directive of this name, in any case.
    pub fn find(name: &[u8]) -> Option<Self> {
        Found::find(name).map(|found| found.id)
    }

    /// Its row.
    pub fn directive(self) -> &'static Directive {
        &DIRECTIVES[self.0]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.directive().name()
    }

    pub(super) fn index(self) -> usize {
        self.0
    }
}

impl fmt::Debug for DirectiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A directive that was asked for by one of its names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) id: DirectiveId,
    /// The name that was used, in lower case.
    pub(super) name: &'static str,
}

impl Found {
    /// Both names of every directive.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        DirectiveId::all().flat_map(|id| {
            let names = [Some(id.name()), id.directive().alias()];
            names.into_iter().flatten().map(move |name| Self { id, name })
        })
    }

    /// Looks `name` up, in any case.
    pub(super) fn find(name: &[u8]) -> Option<Self> {
        Self::all().find(|found| found.name.as_bytes().eq_ignore_ascii_case(name))
    }
}
