//! The rights of a user, or of a role: its own, and after that those of its selectors. Each of
//! these sets allows what it allows by itself.

use super::catalog::Catalog;
use super::error::RuleError;
use super::rights::Rights;

/// See the module's text.
#[derive(Clone)]
pub(crate) struct Sets(Vec<Rights>);

impl Sets {
    /// No rights, but for channels, if `all_channels` says so.
    pub(super) fn none(all_channels: bool) -> Sets {
        Sets(vec![Rights::none(all_channels)])
    }

    /// All rights.
    pub(super) fn all(catalog: &Catalog) -> Sets {
        Sets(vec![Rights::all(catalog)])
    }

    /// Each set, its own first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Rights> {
        self.0.iter()
    }

    /// Applies a rule about rights, or about selectors.
    pub(super) fn apply(
        &mut self,
        catalog: &Catalog,
        all_channels: bool,
        rule: &[u8],
    ) -> Result<(), RuleError> {
        match rule {
            [b'(', rules @ .., b')'] => {
                let mut rights = Rights::none(all_channels);
                let words = config::split_words(rules).ok_or(RuleError::Syntax)?;
                for rule in &words {
                    rights.apply(catalog, rule)?;
                }
                self.0.push(rights);
            }
            _ if rule.eq_ignore_ascii_case(b"clearselectors") => self.0.truncate(1),
            _ => self.0[0].apply(catalog, rule)?,
        }
        Ok(())
    }

    /// Its rules as ACL GETUSER shows them, one set after another.
    pub(super) fn shown(&self) -> Vec<ShownRights> {
        let shown = self.0.iter().map(|rights| ShownRights {
            commands: rights.shown_commands().join(&b' '),
            keys: rights.shown_keys().join(&b' '),
            channels: rights.shown_channels().join(&b' '),
            databases: rights.shown_databases(),
        });
        shown.collect()
    }

    /// Its rules as words of a line. A selector counts as one.
    pub(super) fn words(&self) -> Vec<Vec<u8>> {
        let mut words = self.0[0].shown();
        words.extend(self.0[1..].iter().map(Rights::shown_as_selector));
        words
    }
}

/// What a set of rights allows, as ACL GETUSER shows it.
pub struct ShownRights {
    /// Rules of commands.
    pub commands: Vec<u8>,
    /// Rules of keys.
    pub keys: Vec<u8>,
    /// Rules of channels.
    pub channels: Vec<u8>,
    /// The rule of databases, if not all are allowed.
    pub databases: Option<Vec<u8>>,
}

/// Words as a line of a file of users has them.
pub(super) fn line(words: &[Vec<u8>]) -> Vec<u8> {
    words.join(&b' ')
}

/// Words as a line of the configuration has them, where quotation marks mean something.
pub(super) fn config_line(words: Vec<Vec<u8>>) -> Vec<u8> {
    let is_plain = |word: &[u8]| !word.is_empty() && !word.iter().any(|byte| b"\"'".contains(byte));
    let words = words.into_iter();
    let words = words.map(|word| if is_plain(&word) { word } else { config::quote(&word) });
    words.collect::<Vec<_>>().join(&b' ')
}
