//! How a request becomes the words of commands in the batch: parts of the connection's buffer, and
//! copies.

use std::sync::Arc;

use commands::http::rows::HttpRows;
use engine::admission;
use engine::engine::Row;
use http::request::range_in;
use http::target::{self, Target};
use resp::args::{ArgRange, Arguments};

use super::{Body, Refused, Route, Routed, TOKEN, UNKNOWN_PARAMETER, query_part, takes_token};
use crate::net::http::prepared::Prepared;

impl Route<'_> {
    /// Visits the parameters except `db`, whose value is returned. `visit` returns whether it knows
    /// one.
    pub(super) fn parameters(
        &mut self,
        target: &Target<'_>,
        mut visit: impl FnMut(&mut Self, &[u8], &[u8]) -> Routed<bool>,
    ) -> Routed<usize> {
        let mut database = 0;
        for (name, value) in target.parameters() {
            if name == TOKEN && takes_token(target.path) {
                continue;
            }
            if name == b"db" {
                let number = base::num::parse_i64(value).and_then(|number| number.try_into().ok());
                let known = number.filter(|number| *number < self.intake.config.databases);
                database = known.ok_or((400, "ERR DB index is out of range"))?;
            } else if !visit(self, name, value)? {
                return Err(UNKNOWN_PARAMETER.into());
            }
        }
        Ok(database)
    }

    pub(super) fn database_alone(&mut self, target: &Target<'_>) -> Routed<usize> {
        self.parameters(target, |_, _, _| Ok(false))
    }

    pub(super) fn rows(&self) -> &'static HttpRows {
        commands::http_rows()
    }

    pub(super) fn begin(&self) -> usize {
        self.batch.args.len()
    }

    pub(super) fn arguments(&self, first: usize) -> Arguments<'_> {
        Arguments::new(&self.batch.args[first..], self.buffer, self.side, self.big)
    }

    /// Adds the command whose arguments begin at `first`.
    pub(super) fn add(&mut self, first: usize, row: &'static Row) {
        self.add_row(first, Some(row));
    }

    pub(super) fn add_row(&mut self, first: usize, row: Option<&'static Row>) {
        let keys = self.batch.keys.len();
        if let Some(row) = row {
            let arguments =
                Arguments::new(&self.batch.args[first..], self.buffer, self.side, self.big);
            self.intake.engine.find_keys(row, arguments, &mut self.batch.keys);
        }
        self.batch.add(self.intake.connection_index, row, first, keys);
    }

    /// Adds a command by its own name.
    pub(super) fn add_named(&mut self, first: usize) -> Routed<()> {
        let row = self.intake.engine.commands.resolve(self.arguments(first));
        self.add_public(first, row)
    }

    /// Adds a command by the name by which clients call it.
    pub(super) fn add_called(&mut self, first: usize) -> Routed<()> {
        let row = self.intake.engine.client_names.resolve(self.arguments(first));
        self.add_public(first, row)
    }

    fn add_public(&mut self, first: usize, row: Option<&'static Row>) -> Routed<()> {
        if let Some(row) = row
            && admission::is_about_connection(row.command)
        {
            let name = row.command.full_name();
            let reason = format!("ERR {name} is about a connection, and HTTP requests share none");
            return Err(Refused(Prepared::error(400, &reason)));
        }
        self.add_row(first, row);
        Ok(())
    }

    pub(super) fn bytes<'b>(&'b self, body: Body<'b>) -> &'b [u8] {
        match body {
            Body::Here(bytes) => bytes,
            Body::Apart(number) => &self.big[number],
        }
    }

    /// The body, apart from the buffers to which arguments are added.
    pub(super) fn body_of_its_own(&self, body: Body<'_>) -> Arc<Vec<u8>> {
        match body {
            Body::Here(bytes) => Arc::new(bytes.to_vec()),
            Body::Apart(number) => Arc::clone(&self.big[number]),
        }
    }

    /// Adds the body as an argument.
    pub(super) fn body(&mut self, body: Body<'_>) {
        match body {
            Body::Here(bytes) => self.here(bytes),
            Body::Apart(number) => self.batch.args.push(ArgRange::in_big(number)),
        }
    }

    /// Adds a part of the connection's buffer.
    pub(super) fn here(&mut self, part: &[u8]) {
        self.batch.args.push(range_in(self.buffer, part));
    }

    /// Adds a copy.
    pub(super) fn word(&mut self, word: &[u8]) {
        let from = self.side.len();
        self.side.extend_from_slice(word);
        self.side_from(from);
    }

    pub(super) fn pair(&mut self, name: &[u8], value: &[u8]) -> Routed<()> {
        let value = query_part(value)?;
        self.word(name);
        self.word(&value);
        Ok(())
    }

    pub(super) fn side_from(&mut self, from: usize) {
        self.batch.args.push(ArgRange::in_side(from, self.side.len() - from));
    }

    pub(super) fn path_part(&mut self, part: &[u8]) -> Routed<()> {
        if !target::is_encoded(part) {
            self.here(part);
            return Ok(());
        }
        let from = self.side.len();
        target::decode(part, self.side)?;
        self.side_from(from);
        Ok(())
    }
}
