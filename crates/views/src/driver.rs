//! The interface of each database's library, and how rows become JSON.

use std::fmt;

use crate::definition::Call;

/// Why a statement has no result, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The words of the database or its library.
    pub reason: String,
    /// The connection is of no further use.
    pub lost: bool,
    /// It is the request's fault: its values do not fit the data, such as a number that is taken.
    pub refused: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// A connection as its library has it.
pub(crate) trait Driver: Send {
    /// The rows as a JSON array of objects.
    fn query(&mut self, call: &Call<'_>) -> Result<Vec<u8>, Failure>;

    /// Rows that a statement has changed.
    fn execute(&mut self, call: &Call<'_>) -> Result<u64, Failure>;

    /// Whether the database is still at the other end.
    fn is_alive(&mut self) -> bool;
}

/// Rows on their way to JSON.
pub(crate) struct Rows {
    text: Vec<u8>,
    /// The names of the columns, as JSON with the colon.
    names: Vec<Vec<u8>>,
    rows: usize,
}

/// A value of a row.
pub(crate) enum Cell<'c> {
    Null,
    Integer(i64),
    Unsigned(u64),
    Number(f64),
    /// Text, or bytes that are no text.
    Bytes(&'c [u8]),
}

impl Rows {
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Rows {
        let names = names.map(|name| [json(name), b":".to_vec()].concat()).collect();
        Rows { text: b"[".to_vec(), names, rows: 0 }
    }

    pub(crate) fn add<'c>(&mut self, cells: impl Iterator<Item = Cell<'c>>) {
        self.text.extend_from_slice(if self.rows == 0 { b"{" } else { b",{" });
        self.rows += 1;
        for (at, (name, cell)) in self.names.iter().zip(cells).enumerate() {
            if at > 0 {
                self.text.push(b',');
            }
            self.text.extend_from_slice(name);
            write_cell(&mut self.text, &cell);
        }
        self.text.push(b'}');
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.text.push(b']');
        self.text
    }
}

fn json(text: &str) -> Vec<u8> {
    // A string is always JSON.
    serde_json::to_vec(text).unwrap_or_default()
}

fn write_cell(text: &mut Vec<u8>, cell: &Cell<'_>) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    match cell {
        Cell::Null => text.extend_from_slice(b"null"),
        Cell::Integer(number) => text.extend_from_slice(number.to_string().as_bytes()),
        Cell::Unsigned(number) => text.extend_from_slice(number.to_string().as_bytes()),
        // A value that is not a number in JSON is null there.
        Cell::Number(number) => {
            text.extend_from_slice(serde_json::Value::from(*number).to_string().as_bytes());
        }
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(string) => text.extend_from_slice(&json(string)),
            Err(_) => {
                text.extend_from_slice(b"{\"base64\":\"");
                text.extend_from_slice(STANDARD.encode(bytes).as_bytes());
                text.extend_from_slice(b"\"}");
            }
        },
    }
}
