//! A user: how it logs in, and what it may do. An account never changes: a rule makes another one.

use super::catalog::Catalog;
use super::error::RuleError;
use super::password::Digest;
use super::rights::Rights;
pub use super::rights::has_spaces;

/// The name of the user that clients are who have not said who they are.
pub const DEFAULT_USER: &[u8] = b"default";

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
    pub(crate) passwords: Vec<Digest>,
    /// What it may do, and after that its selectors: each allows what it allows by itself.
    pub(crate) rights: Vec<Rights>,
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
            passwords: Vec::new(),
            rights: vec![Rights::none(all_channels)],
            is_unrestricted: false,
        }
    }

    /// The user of clients that have not said who they are, as it is when nobody has set it:
    /// everything is allowed, without a password.
    pub(crate) fn default_user(catalog: &Catalog) -> Account {
        Account {
            is_on: true,
            takes_any_password: true,
            rights: vec![Rights::all(catalog)],
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

    /// Applies a rule. After an error the account is no longer of use.
    pub(crate) fn apply(
        &mut self,
        catalog: &Catalog,
        all_channels: bool,
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
            [b'(', rules @ .., b')'] => {
                let mut rights = Rights::none(all_channels);
                let words = config::split_words(rules).ok_or(RuleError::Syntax)?;
                for rule in &words {
                    rights.apply(catalog, rule)?;
                }
                self.rights.push(rights);
            }
            _ if is("clearselectors") => self.rights.truncate(1),
            _ if is("reset") => {
                *self = Account { number: self.number, ..Account::new(&self.name, all_channels) };
            }
            _ => self.rights[0].apply(catalog, rule)?,
        }
        self.is_unrestricted = self.rights.iter().any(|rights| rights.is_all(catalog));
        Ok(())
    }

    fn add_password(&mut self, digest: Digest) {
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
        self.takes_any_password = false;
    }

    fn remove_password(&mut self, digest: Digest) -> Result<(), RuleError> {
        let found = self.passwords.iter().position(|own| *own == digest);
        self.passwords.remove(found.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// Sets `requirepass`: its only password, or none.
    pub(crate) fn set_only_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.takes_any_password = password.is_empty();
        if !password.is_empty() {
            self.passwords.push(Digest::of(password));
        }
    }

    /// Whether a password shows that a client is this user. The time shows nothing of the
    /// passwords.
    pub(crate) fn is_shown_by(&self, password: &Digest) -> bool {
        let fits = |found: bool, own: &Digest| found | own.is_same(password);
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
        self.passwords.iter().map(Digest::hexadecimal).collect()
    }

    /// Its rules as ACL GETUSER shows them: those of the user itself, then those of its selectors.
    pub fn shown_rights(&self) -> Vec<ShownRights> {
        let shown = self.rights.iter().map(|rights| ShownRights {
            commands: rights.shown_commands(),
            keys: rights.shown_keys(),
            channels: rights.shown_channels(),
            databases: rights.shown_databases(),
        });
        shown.collect()
    }

    /// The line of ACL LIST, which is also that of a file.
    pub fn line(&self) -> Vec<u8> {
        let mut line = [b"user ", &*self.name].concat();
        for flag in self.flags() {
            line.push(b' ');
            line.extend_from_slice(flag.as_bytes());
        }
        for digest in self.digests() {
            line.extend_from_slice(format!(" #{digest}").as_bytes());
        }
        for (index, rights) in self.rights.iter().enumerate() {
            let (open, close): (&[u8], &[u8]) =
                if index == 0 { (b" ", b"") } else { (b" (", b")") };
            line.extend_from_slice(&[open, &rights.shown(), close].concat());
        }
        line
    }

    /// Whether it allows at least all channels that another account allows.
    pub(crate) fn keeps_channels_of(&self, other: &Account) -> bool {
        let own = |text: &[u8]| {
            self.rights.iter().any(|rights| rights.all_channels || rights.channels.has(text))
        };
        let has_all = self.rights.iter().any(|rights| rights.all_channels);
        has_all
            || other.rights.iter().all(|rights| {
                !rights.all_channels && rights.channels.iter().all(|channel| own(&channel.text))
            })
    }
}

/// What a selector allows, as ACL GETUSER shows it.
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
