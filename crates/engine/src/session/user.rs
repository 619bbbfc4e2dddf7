//! Who a session acts for. What that user may do is in [`crate::users`].

use std::sync::{Arc, LazyLock};

use crate::users::verdict::{CheckedCommand, Lack};
use crate::users::{Account, Users};

/// How it is known who a session acts for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// The client has not shown who it is. It is the default user, if that takes any password.
    Unknown,
    /// The client has shown who it is, or did not have to when it came.
    Shown,
    /// It is the server itself.
    Server,
}

/// Who a session acts for, with what it may do as of the last look.
#[derive(Clone)]
pub struct User {
    account: Arc<Account>,
    standing: Standing,
    /// Whether more is open to it than to show who it is.
    admitted: bool,
    /// Which users those of the last look were: see [`Users::generation`].
    seen: u64,
}

impl User {
    /// The user of a client that has said nothing yet.
    pub fn at_first(users: &Users) -> User {
        let seen = users.generation();
        let is_open = users.is_open();
        let standing = if is_open { Standing::Shown } else { Standing::Unknown };
        User { account: users.default_user(), standing, admitted: is_open, seen }
    }

    /// The user of a client that has yet to show who it is, if that is asked for now.
    pub fn unknown(users: &Users) -> User {
        User { standing: Standing::Unknown, ..User::at_first(users) }
    }

    /// The user that a name and a password show, if they are right.
    pub fn log_in(users: &Users, name: &[u8], password: &[u8]) -> Option<User> {
        let seen = users.generation();
        let account = users.log_in(name, password)?;
        Some(User { account, standing: Standing::Shown, admitted: true, seen })
    }

    /// The user whom a certificate names, if one of its names is that of a user who may log in.
    pub fn by_certificate(users: &Users, names: &[Vec<u8>]) -> Option<User> {
        let seen = users.generation();
        let account = users.named(names)?;
        Some(User { account, standing: Standing::Shown, admitted: true, seen })
    }

    /// The server itself, which may do everything.
    pub fn server() -> User {
        static SERVER: LazyLock<Arc<Account>> = LazyLock::new(|| Arc::new(Account::of_server()));
        let account = Arc::clone(&SERVER);
        User { account, standing: Standing::Server, admitted: true, seen: u64::MAX }
    }

    /// A user without any right.
    pub fn nobody() -> User {
        static NOBODY: LazyLock<Arc<Account>> = LazyLock::new(|| Arc::new(Account::of_nobody()));
        let account = Arc::clone(&NOBODY);
        User { account, standing: Standing::Shown, admitted: true, seen: u64::MAX }
    }

    /// Whether it is the server itself.
    #[inline]
    pub fn is_server(&self) -> bool {
        self.standing == Standing::Server
    }

    /// Whether it is known who it is.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.standing != Standing::Unknown
    }

    /// Whether more is open to it than to show who it is, as of the last look.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.account.name
    }

    /// What it may do, as of the last look.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Whether the last look was at the users of this generation, and it is known who it is.
    #[inline]
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        (self.seen == generation && self.is_known()) || self.is_server()
    }

    /// Whether it is another one's user, as both have looked at it.
    #[inline]
    pub fn is_same(&self, other: &Option<User>) -> bool {
        let is_same =
            |own: &User| Arc::ptr_eq(&own.account, &self.account) && own.standing == self.standing;
        other.as_ref().is_some_and(is_same)
    }

    /// Whether there is anything that it may not do.
    #[inline]
    pub fn is_restricted(&self) -> bool {
        !self.account.is_unrestricted
    }

    /// What it may do, if not everything.
    #[inline]
    pub(crate) fn restricted(&self) -> Option<&Arc<Account>> {
        (!self.account.is_unrestricted).then_some(&self.account)
    }

    /// Looks again at what it may do, if a user has changed since the last look.
    #[inline]
    pub fn look(&mut self, users: &Users) {
        if self.seen != users.generation() && !self.is_server() {
            self.look_again(users);
        }
    }

    #[cold]
    fn look_again(&mut self, users: &Users) {
        self.seen = users.generation();
        match self.is_known() {
            true => self.account = users.refreshed(&self.account),
            false => {
                self.account = users.default_user();
                self.admitted = users.is_open();
            }
        }
    }

    /// Whether it may run a command; if not, what it lacks.
    #[inline]
    pub fn check(&self, asked: CheckedCommand<'_>) -> Result<(), Lack> {
        if self.account.is_unrestricted { Ok(()) } else { self.account.check(asked) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::DEFAULT_USER;
    use crate::users::catalog::Catalog;

    fn users(password: &[u8]) -> Users {
        Users::new(Box::leak(Box::new(Catalog::new(std::iter::empty()))), password)
    }

    #[test]
    fn an_unknown_user_is_restricted_while_there_is_a_password() {
        let (open, protected) = (users(b""), users(b"p"));
        assert!(User::at_first(&open).is_known() && User::at_first(&open).is_admitted());
        let mut unknown = User::at_first(&protected);
        assert!(!unknown.is_known() && !unknown.is_admitted());
        assert!(User::server().is_admitted());
        assert!(User::log_in(&protected, DEFAULT_USER, b"p").is_some_and(|own| own.is_admitted()));
        assert!(User::log_in(&open, DEFAULT_USER, b"any").is_some());
        for (name, password) in [(DEFAULT_USER, &b"P"[..]), (DEFAULT_USER, b""), (b"other", b"p")] {
            assert!(User::log_in(&protected, name, password).is_none());
        }
        protected.set_default_password(b"");
        assert!(!unknown.is_admitted(), "before it looks");
        unknown.look(&protected);
        assert!(unknown.is_admitted() && !unknown.is_known());
    }

    #[test]
    fn a_client_whose_user_is_gone_has_no_rights() {
        let users = users(b"");
        let rules = [b"on".to_vec(), b"nopass".to_vec(), b"allkeys".to_vec()];
        assert!(users.set(b"u", &rules, false).is_ok());
        let mut user = User::log_in(&users, b"u", b"").expect("it takes any password");
        let has_keys = |user: &User| user.account().shown_rights()[0].keys == b"~*";
        assert!(has_keys(&user));
        assert!(users.delete(b"u").is_some());
        user.look(&users);
        assert!(user.is_known() && !has_keys(&user));
        assert!(users.set(b"u", &rules, false).is_ok());
        user.look(&users);
        assert!(!has_keys(&user), "another user has the name now");
    }
}
