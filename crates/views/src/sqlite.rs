//! SQLite, in this process.

use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql, params_from_iter};

use crate::definition::{Call, Database};
use crate::driver::{Cell, Driver, Failure, Rows};
use crate::parameter::Value;

/// How long a statement waits for another connection's transaction.
const PATIENCE: Duration = Duration::from_secs(5);

/// Instructions of its machine between two looks at the clock: some ten microseconds.
const INSTRUCTIONS: i32 = 1000;

pub(crate) struct Sqlite {
    connection: Connection,
    timeout: Duration,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        let lost = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
        );
        let reason = match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => "the statement took too long".to_owned(),
            _ => error.to_string(),
        };
        let refused = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        );
        Failure { reason, lost, refused }
    }
}

impl Sqlite {
    /// `sqlite:path`, or `sqlite::memory:`; every connection has its own memory.
    pub(crate) fn open(database: &Database) -> Result<Sqlite, Failure> {
        let Database { url, begin, timeout, .. } = database;
        let connection = Connection::open(url.strip_prefix("sqlite:").unwrap_or(url))?;
        connection.busy_timeout(PATIENCE.min(*timeout))?;
        for statement in begin {
            connection.execute_batch(statement)?;
        }
        Ok(Sqlite { connection, timeout: *timeout })
    }

    /// Has the next statement end when its time is up.
    fn limit(&self) {
        let begun = Instant::now();
        let timeout = self.timeout;
        self.connection.progress_handler(INSTRUCTIONS, Some(move || begun.elapsed() > timeout));
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Number(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Boolean(value) => ValueRef::Integer(i64::from(*value)),
        }))
    }
}

impl Driver for Sqlite {
    fn query(&mut self, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        self.limit();
        let mut statement = self.connection.prepare(call.sql)?;
        let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut told = Rows::new(names.iter().map(String::as_str));
        let mut rows = statement.query(params_from_iter(&call.values))?;
        while let Some(row) = rows.next()? {
            let cells = (0..names.len()).map(|column| match row.get_ref(column) {
                Ok(ValueRef::Integer(number)) => Cell::Integer(number),
                Ok(ValueRef::Real(number)) => Cell::Number(number),
                Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Cell::Bytes(bytes),
                Ok(ValueRef::Null) | Err(_) => Cell::Null,
            });
            told.add(cells);
        }
        Ok(told.finish())
    }

    fn execute(&mut self, call: &Call<'_>) -> Result<u64, Failure> {
        self.limit();
        Ok(self.connection.execute(call.sql, params_from_iter(&call.values))? as u64)
    }

    fn is_alive(&mut self) -> bool {
        true
    }
}
