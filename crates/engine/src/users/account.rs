//! A user: how it logs in, and what it may do. An account never changes: a rule makes another one.

use std::sync::Arc;

use super::catalog::Catalog;
use super::error::RuleError;
use super::ordered::Ordered;
use super::password::Digest;
use super::rights::Rights;
pub use super::rights::has_spaces;
use super::role::{Role, Roles, named_role};
use super::sets::{self, Sets, ShownRights};

/// The name of the user that clients are who have not said who they are.
pub const DEFAULT_USER: &[u8] = b"default";

/// What a rule may name, and what new users have.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) catalog: &'a Catalog,
    /// Whether new users, and new selectors, may use all channels.
    pub(super) all_channels: bool,
    pub(super) roles: &'a Roles,
}

/// See the module's text.
#[derive(Clone)]
pub struct Account {
    /// Its name.
    pub name: Box<[u8]>,
    /// A user that was deleted and made again is another one.
    pub(crate) number: u64,
    /// Whether it may log in.
    pub is_on: bool,
    /// Whether any password is right.
    pub takes_any_password: bool,
    /// Whether `skip-sanitize-payload` was said of it.
    pub skips_sanitizing: bool,
    passwords: Ordered<Digest, ()>,
    /// What it may do by rules of its own.
    rights: Sets,
    /// Its roles, as they are now.
    pub(super) roles: Vec<Arc<Role>>,
    /// Whether it may do everything, so that nothing is checked.
    pub(crate) is_unrestricted: bool,
}

impl Account {
    /// A user that may do nothing and cannot log in; but use channels, if `all_channels` says so.
    pub(crate) fn new(name: &[u8], all_channels: bool) -> Account {
        Account {
            name: name.into(),
            number: 0,
            is_on: false,
            takes_any_password: false,
            skips_sanitizing: false,
            passwords: Ordered::default(),
            rights: Sets::none(all_channels),
            roles: Vec::new(),
            is_unrestricted: false,
        }
    }

    /// The user of clients that have not said who they are, as it is when nobody has set it:
    /// everything is allowed, without a password.
    pub(crate) fn default_user(catalog: &Catalog) -> Account {
        Account {
            is_on: true,
            takes_any_password: true,
            rights: Sets::all(catalog),
            is_unrestricted: true,
            ..Account::new(DEFAULT_USER, true)
        }
    }

    /// The server itself.
    pub(crate) fn of_server() -> Account {
        Account { is_unrestricted: true, ..Account::new(b"", true) }
    }

    /// Nobody at all: without any right.
    pub(crate) fn of_nobody() -> Account {
        Account::new(b"", false)
    }

    /// The same user without any right: it was deleted.
    pub(crate) fn deleted(&self) -> Account {
        Account { number: self.number, ..Account::new(&self.name, false) }
    }

    /// Applies a rule. After an error the account is no longer of use. [`Account::settle`] comes
    /// after the last rule.
    pub(super) fn apply(
        &mut self,
        Terms { catalog, all_channels, roles }: Terms<'_>,
        rule: &[u8],
    ) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("nopass") => {
                self.takes_any_password = true;
                self.passwords.clear();
            }
            _ if is("resetpass") => {
                self.takes_any_password = false;
                self.passwords.clear();
            }
            _ if is("sanitize-payload") => self.skips_sanitizing = false,
            _ if is("skip-sanitize-payload") => self.skips_sanitizing = true,
            [sign @ (b'>' | b'#' | b'<' | b'!'), rest @ ..] => {
                let digest = match sign {
                    b'>' | b'<' => Digest::of(rest),
                    _ => Digest::parse(rest).ok_or(RuleError::BadDigest)?,
                };
                match sign {
                    b'>' | b'#' => self.add_password(digest),
                    _ => self.remove_password(digest)?,
                }
            }
            _ if is("reset") => {
                *self = Account { number: self.number, ..Account::new(&self.name, all_channels) };
            }
            _ if is("resetroles") => self.roles.clear(),
            _ => match named_role(rule) {
                Some(name) => {
                    let role = roles.get(name).ok_or(RuleError::UnknownRole)?;
                    if !self.roles.iter().any(|own| *own.name == *name) {
                        self.roles.push(Arc::clone(role));
                    }
                }
                None => self.rights.apply(catalog, all_channels, rule)?,
            },
        }
        Ok(())
    }

    /// Has a role as it is now, if it has it. Whether it does.
    pub(super) fn renew_role(&mut self, role: &Arc<Role>) -> bool {
        let own = self.roles.iter_mut().find(|own| own.name == role.name);
        let has_it = own.is_some();
        own.into_iter().for_each(|own| *own = Arc::clone(role));
        has_it
    }

    /// Each set of rights that it has, by itself or by a role: each allows what it allows by
    /// itself.
    pub(super) fn all_rights(&self) -> impl Iterator<Item = &Rights> {
        self.rights.iter().chain(self.roles.iter().flat_map(|role| role.rights.iter()))
    }

    /// Makes it ready for checks after its rules.
    pub(super) fn settle(&mut self, catalog: &Catalog) {
        let is_unrestricted = self.all_rights().any(|rights| rights.is_all(catalog));
        self.is_unrestricted = is_unrestricted;
    }

    fn add_password(&mut self, digest: Digest) {
        if !self.passwords.has(&digest) {
            self.passwords.put_last(digest, ());
        }
        self.takes_any_password = false;
    }

    fn remove_password(&mut self, digest: Digest) -> Result<(), RuleError> {
        let was_there = self.passwords.remove(&digest);
        was_there.then_some(()).ok_or(RuleError::NoSuchPassword)
    }

    /// Sets `requirepass`: its only password, or none.
    pub(crate) fn set_only_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.takes_any_password = password.is_empty();
        if !password.is_empty() {
            self.passwords.put_last(Digest::of(password), ());
        }
    }

    /// Whether a password shows that a client is this user. The time shows nothing of the
    /// passwords.
    pub(crate) fn is_shown_by(&self, password: &Digest) -> bool {
        let fits = |found: bool, (own, ()): (&Digest, &())| found | own.is_same(password);
        let is_right = self.passwords.iter().fold(false, fits);
        self.is_on && (self.takes_any_password || is_right)
    }

    /// Whether a client is this user without saying so, if this is the default user.
    pub(crate) fn is_open(&self) -> bool {
        self.is_on && self.takes_any_password
    }

    /// The words of its state, as ACL GETUSER answers them.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.takes_any_password {
            flags.push("nopass");
        }
        let skips = self.skips_sanitizing;
        flags.push(if skips { "skip-sanitize-payload" } else { "sanitize-payload" });
        flags
    }

    /// The digests of its passwords, in hexadecimal digits.
    pub fn digests(&self) -> Vec<String> {
        self.passwords.iter().map(|(digest, ())| digest.hexadecimal()).collect()
    }

    /// Its rules as ACL GETUSER shows them: those of the user itself, then those of its selectors.
    pub fn shown_rights(&self) -> Vec<ShownRights> {
        self.rights.shown()
    }

    /// The names of its roles.
    pub fn role_names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.roles.iter().map(|role| &*role.name)
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
        let mut words = vec![b"user".to_vec(), self.name.to_vec()];
        words.extend(self.flags().into_iter().map(|flag| flag.as_bytes().to_vec()));
        words.extend(self.digests().iter().map(|digest| format!("#{digest}").into_bytes()));
        words.extend(self.rights.words());
        words.extend(self.role_names().map(|name| [b"role=", name].concat()));
        words
    }

    /// Whether it allows at least all channels that another account allows.
    pub(crate) fn keeps_channels_of(&self, other: &Account) -> bool {
        let keeps =
            |pattern: &[u8]| self.all_rights().any(|rights| rights.allows_channel(pattern, true));
        self.all_rights().any(|rights| rights.all_channels)
            || other
                .all_rights()
                .all(|rights| !rights.all_channels && rights.channel_patterns().all(keeps))
    }
}

/// Joins words that belong to one selector: those from `(` up to `)`. The error is the word that
/// opens a selector without an end.
pub fn join_selectors<'a>(words: &[&'a [u8]]) -> Result<Vec<Vec<u8>>, &'a [u8]> {
    let mut joined = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for word in words {
        match &mut open {
            None if word.starts_with(b"(") && !word.ends_with(b")") => {
                open = Some((word, word.to_vec()));
            }
            None => joined.push(word.to_vec()),
            Some((_, text)) => {
                text.push(b' ');
                text.extend_from_slice(word);
                if word.ends_with(b")") {
                    joined.extend(open.take().map(|(_, text)| text));
                }
            }
        }
    }
    open.map_or(Ok(joined), |(word, _)| Err(word))
}
