//! Users: who may log in, and what each may do.
//!
//! | file | what it answers |
//! |---|---|
//! | [`account`] | what is known of a user? |
//! | [`role`] | which rights does a user have by the name of a role? |
//! | [`sets`] | what do a user or a role and their selectors allow? |
//! | `rights` | what does one selector allow? |
//! | `patterns` | which names match some pattern? |
//! | `ordered` | in which order are rules shown? |
//! | [`verdict`] | may it run a command? |
//! | [`catalog`] | which commands and categories can rules name? |
//! | `password` | how are passwords kept and compared? |
//! | [`log`] | what were users refused? |
//! | [`refusing`] | what are clients told that lack a right? |
//! | `file` | how are users read from files? |
//! | [`error`] | why is a rule refused? |
//!
//! Accounts are changed while the world is stopped, or by CONFIG SET. Each change raises the
//! [`Users::generation`]. A session keeps its account with the generation of its last look, and a
//! thread looks at the generation whenever it enters its gate. So a check takes no lock, and after
//! a command has changed a user no other command runs by the rights of before.

pub mod account;
pub mod catalog;
pub mod error;
mod file;
pub mod log;
mod ordered;
mod password;
mod patterns;
pub mod refusing;
mod rights;
pub mod role;
pub mod sets;
pub mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use config::{Config, PubsubDefault};
use hashbrown::HashSet;
use parking_lot::Mutex;

pub use account::{Account, DEFAULT_USER};
pub use file::BadUser;
pub(crate) use patterns::Access;

/// The command that nodes of a cluster need and nobody else: whoever may run it is one of them. A
/// user that may only copy data, as for backups, may not speak for a node.
pub const OF_NODES: &str = "slotmove";

use account::Terms;
use catalog::Catalog;
use error::RuleError;
use file::Loaded;
use log::{Log, LogEntry, Reason, Refusal};
use password::Digest;
use role::{Role, Roles};

/// All users and roles, by their names.
#[derive(Default)]
struct Present {
    accounts: BTreeMap<Vec<u8>, Arc<Account>>,
    roles: Roles,
}

/// See the module's text.
pub struct Users {
    catalog: &'static Catalog,
    present: Mutex<Present>,
    generation: AtomicU64,
    next_number: AtomicU64,
    /// Whether clients are the default user without saying so.
    is_open: AtomicBool,
    log: Mutex<Log>,
    refused: [AtomicU64; 6],
}

/// Why ACL SETUSER or ACL SETROLE fails. Nothing has changed then.
pub struct BadRule {
    /// The rule.
    pub rule: Vec<u8>,
    /// What is wrong with it.
    pub error: RuleError,
}

/// Whom a change of users concerns.
pub struct Changed {
    /// The account before it.
    pub before: Arc<Account>,
    /// The account after it; none if the user is gone.
    pub after: Option<Arc<Account>>,
}

impl Users {
    /// The default user alone, with everything allowed and this password, if it is not empty.
    pub fn new(catalog: &'static Catalog, password: &[u8]) -> Users {
        let mut default = Account::default_user(catalog);
        default.set_only_password(password);
        let users = Users {
            catalog,
            present: Mutex::default(),
            generation: AtomicU64::new(1),
            next_number: AtomicU64::new(1),
            is_open: AtomicBool::new(true),
            log: Mutex::default(),
            refused: Default::default(),
        };
        users.put(&mut users.present.lock(), default);
        users
    }

    /// Whether new users may use all channels.
    pub fn gives_all_channels(config: &Config) -> bool {
        config.acl_pubsub_default == PubsubDefault::AllChannels
    }

    /// The users as lines of the configuration; none if they are what they are without any.
    pub fn config_lines(&self, config: &Config) -> Vec<Vec<u8>> {
        let (roles, all) = self.roles_and_users();
        let mut plain = Account::default_user(self.catalog);
        plain.set_only_password(&config.requirepass);
        let is_plain = roles.is_empty() && all.len() == 1 && all[0].line() == plain.line();
        if is_plain || !config.aclfile.is_empty() {
            return Vec::new();
        }
        // A password that stays out of the file stays out as a hash, too.
        let is_provided = config::DirectiveId::find(b"requirepass")
            .is_some_and(|own| config::is_provided(config, own.directive()));
        let is_left_out = |line: &Vec<u8>| is_provided && *line == plain.config_line();
        let roles = roles.iter().map(|role| role.config_line());
        let accounts = all.iter().map(|account| account.config_line());
        roles.chain(accounts.filter(|line| !is_left_out(line))).collect()
    }

    /// All commands, as rules name them.
    pub fn catalog(&self) -> &'static Catalog {
        self.catalog
    }

    /// Rises with each change of a user.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// Whether clients are the default user without saying so.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Relaxed)
    }

    /// The user of this name.
    pub fn find(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.present.lock().accounts.get(name).cloned()
    }

    /// The user that clients are who have said nothing.
    pub fn default_user(&self) -> Arc<Account> {
        let found = self.find(DEFAULT_USER);
        found.unwrap_or_else(|| Arc::new(Account::new(DEFAULT_USER, false)))
    }

    /// All users, sorted by their names.
    pub fn all(&self) -> Vec<Arc<Account>> {
        self.present.lock().accounts.values().cloned().collect()
    }

    /// All roles, sorted by their names.
    pub fn roles(&self) -> Vec<Arc<Role>> {
        self.present.lock().roles.values().cloned().collect()
    }

    /// The role of this name.
    pub fn role(&self, name: &[u8]) -> Option<Arc<Role>> {
        self.present.lock().roles.get(name).cloned()
    }

    /// All of them at one instant: no user has a role then that is not there.
    fn roles_and_users(&self) -> (Vec<Arc<Role>>, Vec<Arc<Account>>) {
        let present = self.present.lock();
        let (roles, accounts) = (present.roles.values(), present.accounts.values());
        (roles.cloned().collect(), accounts.cloned().collect())
    }

    /// The lines of ACL LIST: those of roles, then those of users.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        let (roles, users) = self.roles_and_users();
        let roles = roles.iter().map(|role| role.line());
        roles.chain(users.iter().map(|account| account.line())).collect()
    }

    /// A fingerprint of all rules: the SHA-256 of each line of ACL LIST, put together by XOR, in
    /// hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        let digests = self.lines().into_iter().map(|line| Digest::of(&line));
        digests.reduce(Digest::xor).map(|digest| digest.hexadecimal()).unwrap_or_default()
    }

    /// The user whose name and password these are, if it may log in.
    pub fn log_in(&self, name: &[u8], password: &[u8]) -> Option<Arc<Account>> {
        // The time does not show whether there is such a user.
        let digest = Digest::of(password);
        self.find(name).filter(|account| account.is_shown_by(&digest))
    }

    /// The first user of these names that may log in, because a certificate has shown the name.
    pub fn named(&self, names: &[Vec<u8>]) -> Option<Arc<Account>> {
        names.iter().find_map(|name| self.find(name).filter(|account| account.is_on))
    }

    /// The present account of a user that a session knows; one without rights if it is gone.
    pub fn refreshed(&self, known: &Arc<Account>) -> Arc<Account> {
        let found = self.find(&known.name).filter(|own| own.number == known.number);
        found.unwrap_or_else(|| Arc::new(known.deleted()))
    }

    /// Applies rules to a user, all of them or none. The user is made if there is none.
    pub fn set(
        &self,
        name: &[u8],
        rules: &[Vec<u8>],
        all_channels: bool,
    ) -> Result<Option<Changed>, BadRule> {
        let mut present = self.present.lock();
        let before = present.accounts.get(name).cloned();
        let mut account = match &before {
            Some(account) => Account::clone(account),
            None => Account::new(name, all_channels),
        };
        let terms = Terms { catalog: self.catalog, all_channels, roles: &present.roles };
        for rule in rules {
            account.apply(terms, rule).map_err(|error| BadRule { rule: rule.clone(), error })?;
        }
        let after = Some(self.put(&mut present, account));
        Ok(before.map(|before| Changed { before, after }))
    }

    /// Deletes a user.
    pub fn delete(&self, name: &[u8]) -> Option<Changed> {
        let before = self.present.lock().accounts.remove(name)?;
        self.note_change();
        Some(Changed { before, after: None })
    }

    /// Whether a role may have this name: those of commands and categories mean something else.
    pub fn may_name_role(&self, name: &[u8]) -> bool {
        self.catalog.find(name).is_none() && catalog::category(name).is_none()
    }

    /// Applies rules to a role, all of them or none. The role is made if there is none. Returns the
    /// users who have it.
    pub fn set_role(&self, name: &[u8], rules: &[Vec<u8>]) -> Result<Vec<Changed>, BadRule> {
        let mut present = self.present.lock();
        let before = present.roles.get(name);
        let mut role = before.map_or_else(|| Role::new(name), |role| Role::clone(role));
        for rule in rules {
            role.apply(self.catalog, rule)
                .map_err(|error| BadRule { rule: rule.clone(), error })?;
        }
        let role = Arc::new(role);
        present.roles.insert(name.to_vec(), Arc::clone(&role));
        let mut changed = Vec::new();
        for before in present.accounts.values().cloned().collect::<Vec<_>>() {
            let mut account = Account::clone(&before);
            if account.renew_role(&role) {
                let after = Some(self.put(&mut present, account));
                changed.push(Changed { before, after });
            }
        }
        Ok(changed)
    }

    /// The users who have a role.
    pub fn users_with(&self, role: &[u8]) -> Vec<Arc<Account>> {
        let mut all = self.all();
        all.retain(|account| account.role_names().any(|own| own == role));
        all
    }

    /// Deletes roles, and returns how many there were. The error is a role that a user has: then
    /// none is deleted.
    pub fn delete_roles<'n>(&self, names: &[&'n [u8]]) -> Result<usize, &'n [u8]> {
        let mut present = self.present.lock();
        let Present { accounts, roles } = &mut *present;
        let assigned: HashSet<&[u8]> =
            accounts.values().flat_map(|account| account.role_names()).collect();
        if let Some(name) = names.iter().find(|name| assigned.contains(**name)) {
            return Err(*name);
        }
        Ok(names.iter().filter(|name| roles.remove(**name).is_some()).count())
    }

    /// Sets `requirepass`.
    pub fn set_default_password(&self, password: &[u8]) {
        let mut present = self.present.lock();
        let Some(default) = present.accounts.get(DEFAULT_USER) else { return };
        let mut account = Account::clone(default);
        account.set_only_password(password);
        self.put(&mut present, account);
    }

    /// Sets the users and roles of the configuration: the words of its lines, each `user` or
    /// `role`, a name, and rules.
    pub fn configure(&self, lines: &[Vec<Vec<u8>>], all_channels: bool) -> Result<(), BadUser> {
        let Loaded { accounts, roles } = file::configured(lines, self.catalog, all_channels)?;
        let mut present = self.present.lock();
        present.roles.extend(roles);
        for account in accounts.into_values() {
            self.put(&mut present, account);
        }
        Ok(())
    }

    /// Puts the users and roles of a file in place of all. The error is all that is wrong with it,
    /// in one line; nothing has changed then.
    pub fn load(
        &self,
        path: &[u8],
        text: &[u8],
        all_channels: bool,
    ) -> Result<Vec<Changed>, Vec<u8>> {
        let loaded = file::parse(path, text, self.catalog, all_channels)?;
        Ok(self.replace(loaded))
    }

    fn replace(&self, loaded: Loaded) -> Vec<Changed> {
        let Loaded { accounts: mut loaded, roles } = loaded;
        let mut present = self.present.lock();
        present.roles = roles;
        let mut changed = Vec::new();
        for before in present.accounts.values().cloned().collect::<Vec<_>>() {
            let after = match loaded.remove(&*before.name) {
                // It stays the user that it is.
                Some(mut account) => {
                    account.number = before.number;
                    Some(self.put(&mut present, account))
                }
                None => {
                    present.accounts.remove(&*before.name);
                    self.note_change();
                    None
                }
            };
            changed.push(Changed { before, after });
        }
        for account in loaded.into_values() {
            self.put(&mut present, account);
        }
        changed
    }

    /// The users and roles as the text of a file.
    pub fn text(&self) -> Vec<u8> {
        let lines = self.lines();
        lines.into_iter().flat_map(|line| [line, b"\n".to_vec()].concat()).collect()
    }

    /// Puts a user among all of them. No account comes there in another way.
    fn put(&self, present: &mut Present, mut account: Account) -> Arc<Account> {
        if account.number == 0 {
            account.number = match present.accounts.get(&*account.name) {
                Some(before) => before.number,
                None => self.next_number.fetch_add(1, Relaxed),
            };
        }
        account.settle(self.catalog);
        let account = Arc::new(account);
        if *account.name == *DEFAULT_USER {
            self.is_open.store(account.is_open(), Relaxed);
        }
        present.accounts.insert(account.name.to_vec(), Arc::clone(&account));
        self.note_change();
        account
    }

    fn note_change(&self) {
        self.generation.fetch_add(1, Release);
    }
}

/// What users were refused.
impl Users {
    /// Notes and counts a refusal at this millisecond of Unix time. `client` makes the line of the
    /// client. At most so many entries are kept.
    pub fn note_refusal(&self, refusal: Refusal, client: Vec<u8>, now: u64, most: usize) {
        self.refused[place_of(refusal.reason)].fetch_add(1, Relaxed);
        self.log.lock().note(refusal, client, now, most);
    }

    /// How often this was the reason.
    pub fn refused(&self, reason: Reason) -> u64 {
        self.refused[place_of(reason)].load(Relaxed)
    }

    /// The newest entries of the log.
    pub fn log(&self, count: usize) -> Vec<LogEntry> {
        self.log.lock().newest(count)
    }

    /// Empties the log.
    pub fn clear_log(&self) {
        self.log.lock().clear();
    }
}

fn place_of(reason: Reason) -> usize {
    match reason {
        Reason::Login => 0,
        Reason::Command => 1,
        Reason::Key => 2,
        Reason::Channel => 3,
        Reason::Database => 4,
        Reason::Certificate => 5,
    }
}

#[cfg(test)]
mod tests {
    use std::thread::scope;

    use super::*;

    fn users() -> Users {
        Users::new(Box::leak(Box::new(Catalog::new(std::iter::empty()))), b"")
    }

    #[test]
    fn a_file_is_of_one_instant() {
        let (own, done) = (users(), AtomicBool::new(false));
        let rules = |text: &str| vec![b"on".to_vec(), text.as_bytes().to_vec()];
        scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    assert!(own.set_role(b"r", &[b"~a".to_vec()]).is_ok());
                    assert!(own.set(b"u", &rules("role=r"), false).is_ok());
                    assert!(own.set(b"u", &rules("resetroles"), false).is_ok());
                    assert_eq!(own.delete_roles(&[b"r"]), Ok(1));
                }
            });
            let mut with_role = 0;
            while with_role < 500 {
                let text = own.text();
                with_role += usize::from(text.ends_with(b"role=r\n"));
                let loaded = users().load(b"file", &text, false);
                if let Err(problem) = loaded {
                    done.store(true, Relaxed);
                    panic!("{}: {}", text.escape_ascii(), problem.escape_ascii());
                }
            }
            done.store(true, Relaxed);
        });
    }
}
