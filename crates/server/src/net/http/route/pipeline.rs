//! Commands in the body of a request, or in its address.

use std::sync::Arc;

use engine::admission;
use http::json::{self, Malformed, Word};
use http::request::Head;
use http::target::Target;

use super::{Body, Route, Routed, TOKEN, query_part};
use crate::net::http::exchange::{Condition, Kind, Style};
use crate::net::http::guard;
use crate::net::http::prepared::Prepared;

impl Route<'_> {
    /// Commands as one transaction, perhaps on the condition that a key has a version: `?key=` and
    /// If-Match.
    pub(super) fn transaction(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        body: Body<'_>,
        style: Style,
    ) -> Routed<(Kind, usize)> {
        let mut key = None;
        let database = self.parameters(target, |_, name, value| {
            Ok(name == b"key" && {
                key = Some(query_part(value)?.into_owned());
                true
            })
        })?;
        let is_conditional = head.header("if-match").or(head.header("if-none-match")).is_some();
        if is_conditional && key.is_none() {
            return Err((422, "the parameter key names the key that the condition is about").into());
        }
        let condition = match &key {
            None => Condition::None,
            Some(key) => {
                let first = self.begin();
                self.word(b"WATCH");
                self.word(key);
                self.conditions(head);
                self.add(first, self.rows().watch);
                Condition::Open
            }
        };
        Ok((self.commands(body, (style, head.is_1_0), Some(condition))?, database))
    }

    /// Commands in a row; as one transaction if `transaction` is given.
    pub(super) fn commands(
        &mut self,
        body: Body<'_>,
        (style, is_1_0): (Style, bool),
        transaction: Option<Condition>,
    ) -> Routed<Kind> {
        let text = self.body_of_its_own(body);
        let mut commands = Vec::new();
        let mut words = Vec::new();
        json::read_commands(&text, |word| match word {
            Some(word) => words.push(word),
            None => commands.push(std::mem::take(&mut words)),
        })?;
        let left = commands.len();
        for words in commands {
            let first = self.begin();
            for word in words {
                self.json_part(&text, word, None)?;
            }
            self.add_called(first)?;
        }
        if transaction.is_some() && left > 0 {
            let first = self.begin();
            self.word(b"EXEC");
            let row = self.intake.engine.commands.resolve(self.arguments(first));
            self.add_row(first, row);
        }
        Ok(match (left, transaction) {
            (0, Some(Condition::Open)) => {
                return Err((400, "a transaction with a condition has commands").into());
            }
            (0, _) => Kind::ready(Prepared::json(200, b"[]".to_vec())),
            (_, Some(condition)) => {
                Kind::Transaction { style, left: left + 1, begun: false, condition }
            }
            (_, None) => Kind::pipeline(style, left, !is_1_0),
        })
    }

    /// Adds the words of an array that is the whole body.
    pub(super) fn words_of(
        &mut self,
        body: Body<'_>,
        read: impl Fn(&[u8], &mut dyn FnMut(Word)) -> Result<(), Malformed>,
    ) -> Routed<()> {
        match body {
            Body::Here(text) => {
                let mut words = Vec::new();
                read(text, &mut |word| words.push(word))?;
                words.into_iter().try_for_each(|word| self.json_part(text, word, Some(text)))
            }
            Body::Apart(number) => {
                let text = Arc::clone(&self.big[number]);
                let mut words = Vec::new();
                read(&text, &mut |word| words.push(word))?;
                words.into_iter().try_for_each(|word| self.json_part(&text, word, None))
            }
        }
    }

    /// Adds a word of a JSON text; `here` is the text at its place in the buffer.
    fn json_part(&mut self, text: &[u8], word: Word, here: Option<&[u8]>) -> Routed<()> {
        match (word, here) {
            (Word::Plain(range), Some(here)) => self.here(&here[range]),
            (Word::Plain(range), None) => self.word(&text[range]),
            (Word::Escaped(range), _) => {
                let from = self.side.len();
                json::unescape(&text[range], self.side)?;
                self.side_from(from);
            }
        }
        Ok(())
    }

    /// A command whose words are the segments of a path, the last one perhaps the body.
    pub(super) fn words(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        (path, body): (&[u8], Body<'_>),
        style: Style,
    ) -> Routed<Kind> {
        let first = self.begin();
        for segment in path.split(|byte| *byte == b'/') {
            self.path_part(segment)?;
        }
        let row = self.intake.engine.client_names.resolve(self.arguments(first));
        let is_harmless = row.is_none_or(|row| admission::may_be_sent_by_any_page(row.command));
        if matches!(head.method, "GET" | "HEAD") && !is_harmless && guard::may_be_of_any_page(head)
        {
            let reason = "a browser's GET only reads, runs no script and does not wait: send POST, \
                          or a bearer token";
            return Err((403, reason).into());
        }
        if !self.bytes(body).is_empty() {
            self.body(body);
        }
        for (name, value) in target.parameters().filter(|(name, _)| *name != TOKEN) {
            for part in [name, value] {
                if !part.is_empty() {
                    let part = query_part(part)?;
                    self.word(&part);
                }
            }
        }
        self.add_called(first)?;
        Ok(Kind::One(style))
    }
}
