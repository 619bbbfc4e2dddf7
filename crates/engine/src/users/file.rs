//! The lines of users in files: a line for each, with the words of ACL LIST.

use std::collections::BTreeMap;

use super::account::{Account, DEFAULT_USER, join_selectors};
use super::catalog::Catalog;
use super::error::RuleError;
use super::rights::has_spaces;

/// Users by their names.
pub(super) type Accounts = BTreeMap<Vec<u8>, Account>;

/// Why a line of the configuration makes no user.
#[derive(Debug, PartialEq, Eq)]
pub struct BadUser(pub String);

/// Makes users of the words of `user` lines of the configuration: a name, and rules.
pub(super) fn configured(
    lines: &[Vec<Vec<u8>>],
    catalog: &Catalog,
    all_channels: bool,
) -> Result<Vec<Account>, BadUser> {
    let mut accounts: Vec<Account> = Vec::new();
    for line in lines {
        let Some((name, rules)) = line.split_first() else { continue };
        if has_spaces(name) {
            return Err(BadUser("Usernames can't contain spaces or null characters".to_owned()));
        }
        if accounts.iter().any(|own| *own.name == name[..]) {
            let name = String::from_utf8_lossy(name);
            return Err(BadUser(format!("the user '{name}' is there twice")));
        }
        let words: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
        let joined = join_selectors(&words).map_err(|word| {
            let word = String::from_utf8_lossy(word);
            BadUser(format!("Unmatched parenthesis in acl selector starting at '{word}'."))
        })?;
        let mut account = Account::new(name, all_channels);
        for rule in joined {
            account.apply(catalog, all_channels, &rule).map_err(|error| {
                let rule = String::from_utf8_lossy(&rule);
                BadUser(format!("Error in user declaration '{rule}': {}", error.text()))
            })?;
        }
        accounts.push(account);
    }
    Ok(accounts)
}

/// Reads a file of users. The error is all that is wrong with it, in one line.
pub(super) fn parse(
    path: &[u8],
    text: &[u8],
    catalog: &Catalog,
    all_channels: bool,
) -> Result<Accounts, Vec<u8>> {
    let mut reading = Reading { path, errors: Vec::new(), accounts: Accounts::new() };
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if !line.is_empty() {
            reading.line(index + 1, line, catalog, all_channels);
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
    reading.accounts.entry(DEFAULT_USER.to_vec()).or_insert_with(default);
    Ok(reading.accounts)
}

struct Reading<'a> {
    path: &'a [u8],
    errors: Vec<u8>,
    accounts: Accounts,
}

impl Reading<'_> {
    /// Notes what is wrong with a line.
    fn fault(&mut self, line: usize, parts: &[&[u8]]) {
        self.errors.extend_from_slice(self.path);
        self.errors.extend_from_slice(format!(":{line}").as_bytes());
        self.errors.extend_from_slice(&parts.concat());
        self.errors.push(b' ');
    }

    fn line(&mut self, number: usize, line: &[u8], catalog: &Catalog, all_channels: bool) {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let (Some(&b"user"), Some(name)) = (words.first(), words.get(1)) else {
            let text = b" should start with user keyword followed by the username.";
            return self.fault(number, &[text]);
        };
        if has_spaces(name) {
            self.errors.push(b'\'');
            return self.fault(number, &[b": username '", name, b"' contains invalid characters."]);
        }
        if self.accounts.contains_key(*name) {
            let text = [b"WARNING: Duplicate user '", *name, b"' found on line "].concat();
            self.errors.extend_from_slice(&text);
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
        let mut account = Account::new(name, all_channels);
        let mut named_other = false;
        for rule in joined {
            let Err(error) = account.apply(catalog, all_channels, &rule) else { continue };
            let text = error.text().as_bytes();
            if error == RuleError::UnknownCommand {
                let parts = [b": Error in applying operation '", &*rule, b"': ", text, b"."];
                self.fault(number, &parts);
            } else if !std::mem::replace(&mut named_other, true) {
                // One of these says enough about a line.
                self.fault(number, &[b": ", text, b"."]);
            }
        }
        self.accounts.insert(name.to_vec(), account);
    }
}
