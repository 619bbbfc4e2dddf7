//! PostgreSQL. It makes the JSON itself.

use std::error::Error;
use std::time::Duration;

use postgres::config::SslMode;
use postgres::types::private::BytesMut;
use postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls};

use crate::definition::{Call, Database};
use crate::driver::{Driver, Failure};
use crate::parameter::Value;
use crate::postgresql_tls::Connector;

/// How long the database may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Postgres(Client);

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Failure {
        let reason = match error.as_db_error() {
            Some(own) => own.to_string(),
            // The cause says what is wrong with an encrypted connection.
            None => match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        };
        // Classes of codes: data that do not fit, and violated constraints.
        let code = error.code().map(|code| code.code());
        let refused = code.is_some_and(|code| code.starts_with("22") || code.starts_with("23"));
        Failure { reason, lost: error.as_db_error().is_none(), refused }
    }
}

impl Postgres {
    pub(crate) fn open(database: &Database) -> Result<Postgres, Failure> {
        let Database { url, encryption, begin, timeout, .. } = database;
        let mut config: Config = url.parse()?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        // The database enforces the timeout of statements; for a machine that is gone, the system does.
        config.tcp_user_timeout(*timeout + PATIENCE).keepalives_idle(*timeout + PATIENCE);
        let mut client = match encryption {
            None => config.ssl_mode(SslMode::Disable).connect(NoTls)?,
            Some(encryption) => {
                let wrong = |reason| Failure { reason, lost: true, refused: false };
                let connector = Connector::new(encryption).map_err(wrong)?;
                config.ssl_mode(SslMode::Require).connect(connector)?
            }
        };
        // In milliseconds; 0 would mean no timeout, and the most is that of 32 bits.
        let most = timeout.as_millis().clamp(1, i32::MAX as u128);
        client.batch_execute(&format!("SET statement_timeout = {most}"))?;
        for statement in begin {
            client.batch_execute(statement)?;
        }
        Ok(Postgres(client))
    }
}

/// A value as text, which the database reads as the type that the statement asks for.
#[derive(Debug)]
struct AsText(Option<String>);

impl From<&Value> for AsText {
    fn from(value: &Value) -> AsText {
        AsText(match value {
            Value::Null => None,
            Value::Integer(number) => Some(number.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Text(text) => Some(text.clone()),
            Value::Boolean(value) => Some(value.to_string()),
        })
    }
}

impl ToSql for AsText {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

fn parameters(call: &Call<'_>) -> Vec<AsText> {
    call.values.iter().map(AsText::from).collect()
}

fn borrowed(values: &[AsText]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl Driver for Postgres {
    fn query(&mut self, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        // The statement is in lines of its own, because it may end with a comment.
        let rows = "'[' || coalesce(string_agg(row_to_json(v)::text, ','), '') || ']'";
        let sql = format!("SELECT {rows} FROM (\n{}\n) v", call.sql);
        let values = parameters(call);
        let row = self.0.query_one(&sql, &borrowed(&values))?;
        let text: String = row.try_get(0)?;
        Ok(text.into_bytes())
    }

    fn execute(&mut self, call: &Call<'_>) -> Result<u64, Failure> {
        let values = parameters(call);
        Ok(self.0.execute(call.sql, &borrowed(&values))?)
    }

    fn is_alive(&mut self) -> bool {
        self.0.is_valid(PATIENCE).is_ok()
    }
}
