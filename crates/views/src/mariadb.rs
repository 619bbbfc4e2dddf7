//! MariaDB and MySQL.

use std::time::Duration;

use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, SslOpts};

use crate::address;
use crate::definition::{Call, Database};
use crate::driver::{Cell, Driver, Failure, Rows};
use crate::encryption::{Encryption, Trust};
use crate::parameter::Value;

/// How long the database may take to accept a connection, and to report that a statement took too
/// long.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Mariadb(Conn);

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Failure {
        // An error of the server leaves the connection usable.
        let lost = !matches!(error, mysql::Error::MySqlError(_));
        // Classes of codes: data that do not fit, and violated constraints.
        let refused = match &error {
            mysql::Error::MySqlError(own) => {
                own.state.starts_with("22") || own.state.starts_with("23")
            }
            _ => false,
        };
        Failure { reason: error.to_string(), lost, refused }
    }
}

impl Mariadb {
    pub(crate) fn open(database: &Database) -> Result<Mariadb, Failure> {
        let Database { url, encryption, begin, timeout, .. } = database;
        let options = address::mariadb(url).map_err(mysql::Error::from)?;
        // Its library would go on over a socket of this machine, which is not encrypted.
        let prefers_socket = encryption.is_none() && options.get_prefer_socket();
        let options = OptsBuilder::from_opts(options)
            .ssl_opts(encryption.as_ref().map(encrypted))
            .prefer_socket(prefers_socket)
            .tcp_connect_timeout(Some(PATIENCE))
            .read_timeout(Some(*timeout + PATIENCE))
            .write_timeout(Some(*timeout + PATIENCE));
        let mut connection = Conn::new(options)?;
        limit(&mut connection, *timeout)?;
        for statement in begin {
            connection.query_drop(statement)?;
        }
        Ok(Mariadb(connection))
    }
}

fn encrypted(encryption: &Encryption) -> SslOpts {
    SslOpts::default()
        .with_root_cert_path(encryption.authorities.clone())
        .with_danger_accept_invalid_certs(encryption.trust == Trust::Anybody)
        // Its library looks for an error that rustls has given another name, so the name counts all
        // the same.
        .with_danger_skip_domain_validation(encryption.trust != Trust::Host)
}

/// Has the database end statements that take too long. MySQL does so with SELECT alone; its other
/// statements end with the connection.
fn limit(connection: &mut Conn, timeout: Duration) -> Result<(), mysql::Error> {
    let seconds = timeout.as_secs_f64();
    let set = connection.query_drop(format!("SET SESSION max_statement_time = {seconds}"));
    match set {
        Err(mysql::Error::MySqlError(error)) if error.code == UNKNOWN_VARIABLE => {
            let milliseconds = timeout.as_millis();
            connection.query_drop(format!("SET SESSION max_execution_time = {milliseconds}"))
        }
        other => other,
    }
}

/// The database's error for a setting that it does not have.
const UNKNOWN_VARIABLE: u16 = 1193;

fn parameters(call: &Call<'_>) -> Params {
    let value = |value: &Value| match value {
        Value::Null => mysql::Value::NULL,
        Value::Integer(number) => mysql::Value::Int(*number),
        Value::Number(number) => mysql::Value::Double(*number),
        Value::Text(text) => mysql::Value::Bytes(text.clone().into_bytes()),
        Value::Boolean(value) => mysql::Value::Int(i64::from(*value)),
    };
    match call.values.as_slice() {
        [] => Params::Empty,
        values => Params::Positional(values.iter().map(value).collect()),
    }
}

/// A column: how its values are written depends on its type, which they themselves do not tell.
struct Column {
    name: String,
    kind: ColumnType,
    /// Digits of a second's fraction.
    decimals: usize,
}

impl Column {
    fn new(own: &mysql::Column) -> Column {
        let decimals = usize::from(own.decimals());
        Column { name: own.name_str().into_owned(), kind: own.column_type(), decimals }
    }

    /// A date or a time as the database writes it.
    fn written(&self, value: &mysql::Value) -> Option<String> {
        Some(match *value {
            mysql::Value::Date(year, month, day, hour, minute, second, micros) => {
                let date = format!("{year:04}-{month:02}-{day:02}");
                match self.kind {
                    ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => date,
                    _ => {
                        let fraction = self.fraction(micros);
                        format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}")
                    }
                }
            }
            mysql::Value::Time(negative, days, hours, minutes, seconds, micros) => {
                let sign = if negative { "-" } else { "" };
                let hours = days * 24 + u32::from(hours);
                let fraction = self.fraction(micros);
                format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
            }
            _ => return None,
        })
    }

    fn fraction(&self, micros: u32) -> String {
        match self.decimals {
            decimals @ 1..=6 => format!(".{micros:06}")[..=decimals].to_owned(),
            // The database does not say how many there are.
            _ if micros > 0 => format!(".{micros:06}"),
            _ => String::new(),
        }
    }
}

/// The number of double precision with the fewest digits that is this one of single precision, as
/// the database writes it: 0.1, and not 0.10000000149011612.
fn widened(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

impl Driver for Mariadb {
    fn query(&mut self, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        let result = self.0.exec_iter(call.sql, parameters(call))?;
        let columns: Vec<Column> = result.columns().as_ref().iter().map(Column::new).collect();
        let mut told = Rows::new(columns.iter().map(|column| column.name.as_str()));
        for row in result {
            let values = row?.unwrap();
            let dates: Vec<Option<String>> =
                columns.iter().zip(&values).map(|(column, value)| column.written(value)).collect();
            told.add(values.iter().zip(&dates).map(|(value, date)| match value {
                mysql::Value::NULL => Cell::Null,
                mysql::Value::Int(number) => Cell::Integer(*number),
                mysql::Value::UInt(number) => Cell::Unsigned(*number),
                mysql::Value::Float(number) => Cell::Number(widened(*number)),
                mysql::Value::Double(number) => Cell::Number(*number),
                mysql::Value::Bytes(bytes) => Cell::Bytes(bytes),
                mysql::Value::Date(..) | mysql::Value::Time(..) => {
                    Cell::Bytes(date.as_deref().unwrap_or_default().as_bytes())
                }
            }));
        }
        Ok(told.finish())
    }

    fn execute(&mut self, call: &Call<'_>) -> Result<u64, Failure> {
        self.0.exec_drop(call.sql, parameters(call))?;
        Ok(self.0.affected_rows())
    }

    fn is_alive(&mut self) -> bool {
        self.0.ping().is_ok()
    }
}
