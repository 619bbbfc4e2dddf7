//! The lines of users and roles in files: a line for each, with the words of ACL LIST.
//!
//! Roles are read first: users may stand before the roles that they have.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::{Account, DEFAULT_USER, Terms, join_selectors};
use super::catalog::{Catalog, category};
use super::error::RuleError;
use super::rights::has_spaces;
use super::role::{Role, Roles};

/// What files say.
#[derive(Default)]
pub(super) struct Loaded {
    /// The users, by their names.
    pub(super) accounts: BTreeMap<Vec<u8>, Account>,
    /// The roles, by their names.
    pub(super) roles: Roles,
}

/// The word that begins a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Role,
    User,
}

impl Keyword {
    /// Both, in the order in which they are read.
    const ALL: [Keyword; 2] = [Keyword::Role, Keyword::User];

    fn of(word: &[u8]) -> Option<Keyword> {
        match word {
            b"role" => Some(Keyword::Role),
            b"user" => Some(Keyword::User),
            _ => None,
        }
    }
}

impl Loaded {
    /// Whether there is one of this kind and name already.
    fn has(&self, keyword: Keyword, name: &[u8]) -> bool {
        match keyword {
            Keyword::Role => self.roles.contains_key(name),
            Keyword::User => self.accounts.contains_key(name),
        }
    }

    /// Adds one, with these rules. `fail` is told the rules that are refused; it may ask to go on.
    fn add<E>(
        &mut self,
        (keyword, name): (Keyword, &[u8]),
        rules: &[Vec<u8>],
        (catalog, all_channels): (&Catalog, bool),
        mut fail: impl FnMut(&[u8], RuleError) -> Result<(), E>,
    ) -> Result<(), E> {
        match keyword {
            Keyword::Role => {
                let mut role = Role::new(name);
                for rule in rules {
                    role.apply(catalog, rule).or_else(|error| fail(rule, error))?;
                }
                self.roles.insert(name.to_vec(), Arc::new(role));
            }
            Keyword::User => {
                let mut account = Account::new(name, all_channels);
                let terms = Terms { catalog, all_channels, roles: &self.roles };
                for rule in rules {
                    account.apply(terms, rule).or_else(|error| fail(rule, error))?;
                }
                self.accounts.insert(name.to_vec(), account);
            }
        }
        Ok(())
    }
}

/// Why a line of the configuration makes no user.
#[derive(Debug, PartialEq, Eq)]
pub struct BadUser(pub String);

/// Makes users and roles of the words of lines of the configuration: `user` or `role`, a name, and
/// rules.
pub(super) fn configured(
    lines: &[Vec<Vec<u8>>],
    catalog: &Catalog,
    all_channels: bool,
) -> Result<Loaded, BadUser> {
    let mut loaded = Loaded::default();
    for keyword in Keyword::ALL {
        for line in lines {
            let [word, name, rules @ ..] = &line[..] else { continue };
            if Keyword::of(&word.to_ascii_lowercase()) != Some(keyword) {
                continue;
            }
            let shown = String::from_utf8_lossy(name);
            if has_spaces(name) {
                let text = "Usernames can't contain spaces or null characters";
                return Err(BadUser(text.to_owned()));
            }
            if keyword == Keyword::Role && is_taken(catalog, name) {
                return Err(BadUser(format!("the role '{shown}' {TAKEN}")));
            }
            if loaded.has(keyword, name) {
                let kind = if keyword == Keyword::Role { "role" } else { "user" };
                return Err(BadUser(format!("the {kind} '{shown}' is there twice")));
            }
            let words: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
            let joined = join_selectors(&words).map_err(|word| {
                let word = String::from_utf8_lossy(word);
                BadUser(format!("Unmatched parenthesis in acl selector starting at '{word}'."))
            })?;
            loaded.add((keyword, name), &joined, (catalog, all_channels), |rule, error| {
                let is_password = rule.first().is_some_and(|sign| b"><#!".contains(sign));
                let shown: &[u8] = if is_password { b"(redacted)" } else { rule };
                let rule = String::from_utf8_lossy(shown);
                Err(BadUser(format!("Error in user declaration '{rule}': {}", error.text())))
            })?;
        }
    }
    Ok(loaded)
}

/// What is wrong with the name of a role that means something else.
const TAKEN: &str = "has the name of a command or a category";

fn is_taken(catalog: &Catalog, name: &[u8]) -> bool {
    catalog.find(name).is_some() || category(name).is_some()
}

/// Reads a file of users. The error is all that is wrong with it, in one line.
pub(super) fn parse(
    path: &[u8],
    text: &[u8],
    catalog: &Catalog,
    all_channels: bool,
) -> Result<Loaded, Vec<u8>> {
    let mut reading = Reading { path, errors: Vec::new(), loaded: Loaded::default() };
    for keyword in Keyword::ALL {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if !line.is_empty() {
                reading.line((index + 1, line), keyword, (catalog, all_channels));
            }
        }
    }
    if !reading.errors.is_empty() {
        let warning =
            b"WARNING: ACL errors detected, no change to the previously active ACL rules \
                        was performed";
        reading.errors.extend_from_slice(warning);
        return Err(reading.errors);
    }
    let default = || Account::default_user(catalog);
    reading.loaded.accounts.entry(DEFAULT_USER.to_vec()).or_insert_with(default);
    Ok(reading.loaded)
}

struct Reading<'a> {
    path: &'a [u8],
    errors: Vec<u8>,
    loaded: Loaded,
}

impl Reading<'_> {
    /// Notes what is wrong with a line.
    fn fault(&mut self, line: usize, parts: &[&[u8]]) {
        self.errors.extend_from_slice(self.path);
        self.errors.extend_from_slice(format!(":{line}").as_bytes());
        self.errors.extend_from_slice(&parts.concat());
        self.errors.push(b' ');
    }

    /// Reads a line of this kind. One of no kind is a fault when users are read.
    fn line(
        &mut self,
        (number, line): (usize, &[u8]),
        keyword: Keyword,
        (catalog, all_channels): (&Catalog, bool),
    ) {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let found = words.first().and_then(|word| Keyword::of(word));
        if found.is_some_and(|own| own != keyword) || (found.is_none() && keyword == Keyword::Role)
        {
            return;
        }
        let (Some(_), Some(&name)) = (found, words.get(1)) else {
            let text = b" should start with user keyword followed by the username.";
            return self.fault(number, &[text]);
        };
        if has_spaces(name) {
            self.errors.push(b'\'');
            return self.fault(number, &[b": username '", name, b"' contains invalid characters."]);
        }
        if keyword == Keyword::Role && is_taken(catalog, name) {
            let parts = [b": the role '", name, b"' ", TAKEN.as_bytes(), b"."];
            return self.fault(number, &parts);
        }
        if self.loaded.has(keyword, name) {
            let kind: &[u8] = if keyword == Keyword::Role { b"role" } else { b"user" };
            let parts = [b"WARNING: Duplicate ", kind, b" '", name, b"' found on line "];
            self.errors.extend_from_slice(&parts.concat());
            self.errors.extend_from_slice(format!("{number}. ").as_bytes());
            return;
        }
        let rules: Vec<&[u8]> = words[2..].iter().map(|word| word.trim_ascii()).collect();
        let joined = match join_selectors(&rules) {
            Ok(joined) => joined,
            Err(_) => {
                self.fault(number, &[b": Unmatched parenthesis in selector definition."]);
                // As in Redis, no space follows.
                self.errors.pop();
                return;
            }
        };
        let mut faults: Vec<(Vec<u8>, RuleError)> = Vec::new();
        let noted = |rule: &[u8], error| {
            faults.push((rule.to_vec(), error));
            Ok::<_, std::convert::Infallible>(())
        };
        let Ok(()) = self.loaded.add((keyword, name), &joined, (catalog, all_channels), noted);
        let mut named_other = false;
        for (rule, error) in faults {
            let text = error.text().as_bytes();
            if error == RuleError::UnknownCommand {
                let parts = [b": Error in applying operation '", &*rule, b"': ", text, b"."];
                self.fault(number, &parts);
            } else if !std::mem::replace(&mut named_other, true) {
                // One of these says enough about a line.
                self.fault(number, &[b": ", text, b"."]);
            }
        }
    }
}
