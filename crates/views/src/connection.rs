//! The databases, each with its own library, as one kind of connection.

use crate::definition::{Call, Database};
use crate::driver::{Driver, Failure};
use crate::kind::Kind;
use crate::mariadb::Mariadb;
use crate::postgresql::Postgres;
use crate::sqlite::Sqlite;

/// A connection to a database.
pub struct Connection(Box<dyn Driver>);

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// The database cannot be reached, or refuses.
    pub fn open(database: &Database) -> Result<Connection, Failure> {
        let driver: Box<dyn Driver> = match database.kind {
            Kind::Sqlite => Box::new(Sqlite::open(database)?),
            Kind::Mariadb => Box::new(Mariadb::open(database)?),
            Kind::Postgres => Box::new(Postgres::open(database)?),
        };
        Ok(Connection(driver))
    }

    /// The rows that a statement answers: a JSON array of objects.
    ///
    /// # Errors
    /// The database refuses, or is gone.
    pub fn query(&mut self, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        self.0.query(call)
    }

    /// Whether the database is still at the other end, as it says itself.
    pub fn is_alive(&mut self) -> bool {
        self.0.is_alive()
    }

    /// Runs a statement that changes rows, as a transaction of its own. Returns how many.
    ///
    /// # Errors
    /// The database refuses, or is gone.
    pub fn execute(&mut self, call: &Call<'_>) -> Result<u64, Failure> {
        self.0.execute(call)
    }
}
