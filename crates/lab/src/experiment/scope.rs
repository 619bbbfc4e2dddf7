//! The values of placeholders, and how a field's text becomes a value.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::error::{FileError, guess};
use super::file::Field;
use crate::load::Encryption;

/// The text of a file, its name in messages, and the values of its placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'a> {
    /// The file's name in messages.
    pub(crate) path: &'a str,
    /// The text, for the numbers of lines.
    pub(crate) text: &'a str,
    /// The value of each placeholder.
    pub(crate) values: BTreeMap<String, String>,
    /// How connections are encrypted where the file does not say, if the command line does.
    pub(crate) encryption: Option<&'a Encryption>,
}

/// No time, rate or share is larger: longer times overflow clocks.
const LARGEST: f64 = 1e9;

impl Scope<'_> {
    /// The same for a process beside a target, which has ports and a directory of its own.
    pub(crate) fn beside(&self, name: &str) -> Self {
        let mut own = self.clone();
        for what in ["port", "http_port", "link_port", "directory"] {
            if let Some(value) = self.values.get(&format!("{name}.{what}")) {
                own.values.insert(what.to_owned(), value.clone());
            }
        }
        own
    }

    /// A field's text with all placeholders filled in.
    ///
    /// # Errors
    /// It names an unknown placeholder, or does not close one.
    pub(crate) fn text(&self, field: &Field) -> Result<String, FileError> {
        self.fill(&field.get_ref().0).map_err(|message| self.error(field, message))
    }

    /// A field's value.
    ///
    /// # Errors
    /// As [`Scope::text`], or its text is not such a value.
    pub(crate) fn value<T: FromStr>(&self, field: &Field, what: &str) -> Result<T, FileError> {
        let text = self.text(field)?;
        text.parse().map_err(|_| self.error(field, format!("'{text}' is not {what}")))
    }

    /// A field's value; `default` when there is no field.
    ///
    /// # Errors
    /// As [`Scope::value`].
    pub(crate) fn value_or<T: FromStr>(
        &self,
        field: Option<&Field>,
        what: &str,
        default: T,
    ) -> Result<T, FileError> {
        field.map_or(Ok(default), |field| self.value(field, what))
    }

    /// A number that is neither negative nor infinite; `default` when there is no field.
    ///
    /// # Errors
    /// As [`Scope::value`].
    pub(crate) fn number_or(&self, field: Option<&Field>, default: f64) -> Result<f64, FileError> {
        self.number(field).map(|value| value.unwrap_or(default))
    }

    /// A number that is neither negative nor infinite, if there is a field.
    ///
    /// # Errors
    /// As [`Scope::value`].
    pub(crate) fn number(&self, field: Option<&Field>) -> Result<Option<f64>, FileError> {
        let Some(field) = field else { return Ok(None) };
        let value: f64 = self.value(field, "a number")?;
        if (0.0..=LARGEST).contains(&value) {
            Ok(Some(value))
        } else if value > LARGEST {
            Err(self.error(field, format!("{value} is more than {LARGEST}")))
        } else {
            Err(self.error(field, format!("{value} is not a number from 0 up")))
        }
    }

    /// A number larger than 0; `default` when there is no field.
    ///
    /// # Errors
    /// As [`Scope::value`].
    pub(crate) fn positive_or<T: FromStr + PartialOrd + Default>(
        &self,
        field: Option<&Field>,
        default: T,
    ) -> Result<T, FileError> {
        let Some(field) = field else { return Ok(default) };
        let value: T = self.value(field, "a whole number")?;
        if value > T::default() {
            Ok(value)
        } else {
            Err(self.error(field, "it must be more than 0"))
        }
    }

    /// A mistake in a field.
    pub(crate) fn error(&self, field: &Field, message: impl Into<String>) -> FileError {
        self.error_at(field.span().start, message)
    }

    /// A mistake at a byte of the text.
    pub(crate) fn error_at(&self, offset: usize, message: impl Into<String>) -> FileError {
        FileError::at(self.path, self.text, offset, message)
    }

    /// Fills in placeholders; `{{` and `}}` are braces.
    fn fill(&self, template: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(behind) = rest.strip_prefix("{{") {
                filled.push('{');
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix("}}") {
                filled.push('}');
                rest = behind;
            } else if let Some((name, behind)) =
                rest.strip_prefix('{').and_then(|rest| rest.split_once('}'))
            {
                let value = self.values.get(name).ok_or_else(|| {
                    let known = self.values.keys().map(String::as_str);
                    format!("nothing is called {{{name}}}{}", guess(name, known))
                })?;
                filled.push_str(value);
                rest = behind;
            } else {
                return Err("a brace that belongs to no placeholder; double it".to_owned());
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope<'static> {
        let values = [("size", "100"), ("fsync", "always")];
        Scope {
            path: "a.toml",
            text: "",
            encryption: None,
            values: values.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    #[test]
    fn placeholders_are_filled_in_anywhere() {
        assert_eq!(scope().fill("x{size}y{fsync}").as_deref(), Ok("x100yalways"));
        assert_eq!(scope().fill("{{tag}}:{size}").as_deref(), Ok("{tag}:100"));
        assert_eq!(scope().fill("plain").as_deref(), Ok("plain"));
    }

    #[test]
    fn an_unknown_placeholder_is_named_with_a_guess() {
        let message = scope().fill("{fsink}").expect_err("there is none");
        assert_eq!(message, "nothing is called {fsink}; did you mean 'fsync'?");
        assert!(scope().fill("{size").is_err());
        assert!(scope().fill("size}").is_err());
    }
}
