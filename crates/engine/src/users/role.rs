//! A role: rights that users have by its name, in addition to their own (Valkey 9.2, the pages of
//! ACL SETROLE, ACL GETROLE and ACL DELROLE). A role never changes: a rule makes another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::Catalog;
use super::error::RuleError;
use super::sets::{self, Sets, ShownRights};

/// Roles by their names.
pub(super) type Roles = BTreeMap<Vec<u8>, Arc<Role>>;

/// See the module's text.
#[derive(Clone)]
pub struct Role {
    /// Its name.
    pub name: Box<[u8]>,
    pub(super) rights: Sets,
}

impl Role {
    /// A role without any right.
    pub(super) fn new(name: &[u8]) -> Role {
        Role { name: name.into(), rights: Sets::none(false) }
    }

    /// Applies a rule. After an error the role is no longer of use.
    pub(super) fn apply(&mut self, catalog: &Catalog, rule: &[u8]) -> Result<(), RuleError> {
        const OF_USERS: [&[u8]; 8] = [
            b"on",
            b"off",
            b"reset",
            b"nopass",
            b"resetpass",
            b"resetroles",
            b"sanitize-payload",
            b"skip-sanitize-payload",
        ];
        let is_of_users = OF_USERS.iter().any(|own| rule.eq_ignore_ascii_case(own))
            || matches!(rule, [b'>' | b'<' | b'#' | b'!', ..])
            || named_role(rule).is_some();
        match rule {
            [] => Ok(()),
            _ if is_of_users => Err(RuleError::OfUsers),
            _ => self.rights.apply(catalog, false, rule),
        }
    }

    /// Its rules, those of its selectors after the others.
    pub fn shown_rights(&self) -> Vec<ShownRights> {
        self.rights.shown()
    }

    /// The line of ACL LIST, which is also that of a file of users.
    pub fn line(&self) -> Vec<u8> {
        sets::line(&self.words())
    }

    /// Its line in a file of the configuration.
    pub(super) fn config_line(&self) -> Vec<u8> {
        sets::config_line(self.words())
    }

    fn words(&self) -> Vec<Vec<u8>> {
        [vec![b"role".to_vec(), self.name.to_vec()], self.rights.words()].concat()
    }
}

/// The name after `role=`.
pub(super) fn named_role(rule: &[u8]) -> Option<&[u8]> {
    let (word, name) = rule.split_at_checked(5)?;
    word.eq_ignore_ascii_case(b"role=").then_some(name)
}
