//! Addresses of databases, as their libraries read them.

use std::error::Error;

use mysql::{Opts, UrlError};
use tokio_postgres::Config;

use crate::kind::Kind;

/// The options in an address of MariaDB or MySQL.
pub(crate) fn mariadb(url: &str) -> Result<Opts, UrlError> {
    match url.strip_prefix("mariadb:") {
        Some(rest) => Opts::from_url(&format!("mysql:{rest}")),
        None => Opts::from_url(url),
    }
}

/// Checks an address as far as that is possible without the database.
///
/// # Errors
/// What is wrong with it, without its password.
pub(crate) fn check(url: &str, kind: Kind) -> Result<(), String> {
    let names_host = match kind {
        Kind::Sqlite if url == "sqlite:" => return Err("it names no file".to_owned()),
        Kind::Sqlite => true,
        Kind::Mariadb => {
            mariadb(url).map_err(|error| error.to_string())?;
            // Its library would go to this machine.
            let (_, rest) = url.split_once("//").unwrap_or_default();
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            authority.rsplit('@').next().is_some_and(|host| !host.is_empty())
        }
        Kind::Postgres => {
            let config: Config = url.parse().map_err(|error| explained(&error))?;
            !config.get_hosts().is_empty() || !config.get_hostaddrs().is_empty()
        }
    };
    if names_host { Ok(()) } else { Err("it names no host".to_owned()) }
}

fn explained(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_no_connection_can_have_are_refused() {
        for wrong in [
            "sqlite:",
            "mysql:departments",
            "mysql://",
            "mysql:///d",
            "mariadb://h:99999/d",
            "mysql://u:secret@h/d?pool_min=x",
            "mysql://u:secret@h/d?nonsense=1",
            "postgres:departments",
            "postgres://",
            "postgres:///d",
            "postgres://u:secret@h:99999/d",
            "postgres://u:secret@h/d?nonsense=1",
        ] {
            let checked = Kind::of(wrong).map(|kind| check(wrong, kind));
            let Some(Err(reason)) = checked else { panic!("{wrong}: {checked:?}") };
            assert!(!reason.contains("secret"), "{wrong}: {reason}");
        }
        for right in [
            "sqlite:departments.db",
            "sqlite::memory:",
            "mysql://u:p@h:3306/d",
            "mariadb://h/d",
            "mysql://[::1]/d",
            "postgres://u:p@h:5432,i:5433/d?connect_timeout=3",
            "postgresql:///d?host=/run/postgresql",
        ] {
            assert_eq!(Kind::of(right).map(|kind| check(right, kind)), Some(Ok(())), "{right}");
        }
    }
}
