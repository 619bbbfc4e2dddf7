//! PostgreSQL. It makes the JSON itself.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, Socket};

use crate::definition::{Call, Database};
use crate::driver::{Driver, Failure};
use crate::parameter::Value;
use crate::postgresql_tls::Connector;

/// How long the database may take to accept a connection, and to report that a statement took too
/// long.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection. Every wait for the database has an end: one that hangs as a whole, or a machine
/// that is gone, must not keep a thread.
pub(crate) struct Postgres {
    client: Client,
    /// Where the connection's other half runs, while a thread waits for an answer.
    runtime: Runtime,
    /// How long an answer to a statement may take. The database ends statements earlier, if it can.
    patience: Duration,
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
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

/// Waits for an answer, but not for longer than this. Without one, the connection is of no further
/// use.
fn wait<T>(
    runtime: &Runtime,
    patience: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    // The timer belongs to the runtime, so it is made inside.
    match runtime.block_on(async { timeout(patience, answer).await }) {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            let reason = format!("no answer within {} seconds", patience.as_secs_f64());
            Err(Failure { reason, lost: true, refused: false })
        }
    }
}

/// Connects, and leaves the half of the connection that needs no orders to the runtime.
async fn connect<T>(config: &Config, tls: T) -> Result<Client, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // The thread that waits for an answer gets its errors.
    tokio::spawn(async { drop(connection.await) });
    Ok(client)
}

impl Postgres {
    pub(crate) fn open(database: &Database) -> Result<Postgres, Failure> {
        let wrong = |reason| Failure { reason, lost: true, refused: false };
        let Database { url, encryption, begin, timeout, .. } = database;
        let mut config: Config = url.parse()?;
        let each = *config.get_connect_timeout().unwrap_or(&PATIENCE);
        config.connect_timeout(each);
        // For a machine that is gone, the system knows earlier that it is.
        config.tcp_user_timeout(*timeout + PATIENCE).keepalives_idle(*timeout + PATIENCE);
        // Each host may take that long to be reached, and one of them to begin the connection.
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
        let accepts = each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX) + 1);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| wrong(error.to_string()))?;
        let connected = match encryption {
            None => {
                config.ssl_mode(SslMode::Disable);
                wait(&runtime, accepts, connect(&config, NoTls))
            }
            Some(encryption) => {
                let connector = Connector::new(encryption).map_err(wrong)?;
                config.ssl_mode(SslMode::Require);
                wait(&runtime, accepts, connect(&config, connector))
            }
        };
        let client = match connected {
            Ok(client) => client,
            Err(failure) => {
                // A search for the host's address may go on, and is not waited for.
                runtime.shutdown_background();
                return Err(failure);
            }
        };
        let own = Postgres { client, runtime, patience: timeout.saturating_add(PATIENCE) };
        // In milliseconds; 0 would mean no timeout, and the most is that of 32 bits.
        let most = timeout.as_millis().clamp(1, i32::MAX as u128);
        own.wait(own.client.batch_execute(&format!("SET statement_timeout = {most}")))?;
        for statement in begin {
            own.wait(own.client.batch_execute(statement))?;
        }
        Ok(own)
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        wait(&self.runtime, self.patience, answer)
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
        let row = self.wait(self.client.query_one(&sql, &borrowed(&values)))?;
        let text: String = row.try_get(0)?;
        Ok(text.into_bytes())
    }

    fn execute(&mut self, call: &Call<'_>) -> Result<u64, Failure> {
        let values = parameters(call);
        self.wait(self.client.execute(call.sql, &borrowed(&values)))
    }

    fn is_alive(&mut self) -> bool {
        // An empty request, which the database answers at once.
        wait(&self.runtime, PATIENCE, self.client.batch_execute("")).is_ok()
    }
}
