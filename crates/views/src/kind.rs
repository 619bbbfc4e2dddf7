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

    pub(crate) fn marks(self) -> Marks {
        match self {
            Kind::Sqlite | Kind::Mariadb => Marks::Question,
            Kind::Postgres => Marks::Numbered,
        }
    }
}
