//! The kinds of databases, which their addresses name.

use crate::statement::Marks;

/// The kinds of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Mariadb,
    Postgres,
}

impl Kind {
    pub(crate) fn of(url: &str) -> Option<Kind> {
        Some(match url.split_once(':')?.0 {
            "sqlite" => Kind::Sqlite,
            "mariadb" | "mysql" => Kind::Mariadb,
            "postgres" | "postgresql" => Kind::Postgres,
            _ => return None,
        })
    }

    /// Looks for options of an address that are not supported.
    ///
    /// # Errors
    /// It asks for encryption, and connections are not encrypted. Without this check that would show
    /// only when a client asks for a view, or never.
    pub(crate) fn check(self, url: &str) -> Result<(), String> {
        if self == Kind::Sqlite {
            return Ok(());
        }
        let query = url.split_once('?').map_or("", |(_, query)| query);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], "");
            let (name, value) = (plain(name), plain(value));
            let is_about_it = ["ssl", "tls", "requiressl", "usessl", "verifyca", "verifyidentity"]
                .iter()
                .any(|own| name.starts_with(own));
            let is_off = match self {
                // An option that only prefers encryption works without it when the other side has none.
                Kind::Postgres => matches!(&*value, "disable" | "allow" | "prefer"),
                _ => matches!(&*value, "disabled" | "preferred" | "false" | "0"),
            };
            if is_about_it && !is_off {
                return Err(format!(
                    "its url asks for encryption ({name}): connections to databases are not encrypted"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn marks(self) -> Marks {
        match self {
            Kind::Sqlite | Kind::Mariadb => Marks::Question,
            Kind::Postgres => Marks::Numbered,
        }
    }
}
