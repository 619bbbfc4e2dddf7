//! The type of a body, as Go reads it.

use std::collections::BTreeMap;

use crate::error::{Code, Error};

/// Whether a body of this type is a form.
///
/// # Errors
/// It is not a media type.
pub fn is_form(text: &[u8]) -> Result<bool, Error> {
    if text.is_empty() {
        return Ok(false);
    }
    let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
    let (own, parameters) = text.split_at(end);
    let own = own.trim_ascii();
    let checked = check_name(own).and_then(|()| check_parameters(parameters));
    checked.map_err(|cause| Error::of_request(Code::InvalidForm, cause))?;
    Ok(own.eq_ignore_ascii_case(b"application/x-www-form-urlencoded"))
}

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let (first, rest) = token(name);
    match (first, rest) {
        (b"", _) => Err("mime: no media type"),
        (_, b"") => Ok(()),
        (_, [b'/', rest @ ..]) => match token(rest) {
            (b"", _) => Err("mime: expected token after slash"),
            (_, b"") => Ok(()),
            _ => Err("mime: unexpected content after media subtype"),
        },
        _ => Err("mime: expected slash after first token"),
    }
}

fn check_parameters(mut text: &[u8]) -> Result<(), &'static str> {
    let mut known = BTreeMap::new();
    loop {
        text = text.trim_ascii_start();
        // The last one may be none.
        if matches!(text.trim_ascii(), b"" | b";") {
            return Ok(());
        }
        let Some((name, value, rest)) = parameter(text) else {
            return Err("mime: invalid media parameter");
        };
        let earlier = known.insert(name.to_ascii_lowercase(), value.clone());
        if earlier.is_some_and(|earlier| earlier != value) {
            return Err("mime: duplicate parameter name");
        }
        text = rest;
    }
}

/// A parameter with the semicolon before it, and the text after it.
fn parameter(text: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let (name, rest) = token(text.strip_prefix(b";")?.trim_ascii_start());
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (value, rest) = match rest.strip_prefix(b"\"") {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let (value, rest) = token(rest);
            (Some(value.to_vec()).filter(|value| !value.is_empty())?, rest)
        }
    };
    (!name.is_empty()).then_some((name, value, rest))
}

/// A text up to the quote that ends it, and the text after that.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut value, mut rest) = (Vec::new(), text);
    loop {
        match rest {
            [] | [b'\r' | b'\n', ..] => return None,
            [b'"', behind @ ..] => return Some((value, behind)),
            [b'\\', byte, behind @ ..] if is_special(*byte) => {
                value.push(*byte);
                rest = behind;
            }
            [byte, behind @ ..] => {
                value.push(*byte);
                rest = behind;
            }
        }
    }
}

/// The characters of a name at the beginning of a text, and the rest.
fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let is_of_name = |byte: &u8| byte.is_ascii_graphic() && !is_special(*byte);
    text.split_at(text.iter().position(|byte| !is_of_name(byte)).unwrap_or(text.len()))
}

fn is_special(byte: u8) -> bool {
    b"()<>@,;:\\\"/[]?=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_go_does() {
        let form = "application/x-www-form-urlencoded";
        for (text, expected) in [
            ("", Ok(false)),
            (form, Ok(true)),
            ("Application/X-WWW-Form-Urlencoded ; charset=utf-8", Ok(true)),
            (&format!("{form};"), Ok(true)),
            (&format!("{form} ; a=b;a=b;  c = \"d\\\"; e\" ; "), Ok(true)),
            (&format!("{form}; a=\"\""), Ok(true)),
            ("text/plain", Ok(false)),
            ("text", Ok(false)),
            (&format!("{form}; charset"), Err("invalid media parameter")),
            (&format!("{form}; a="), Err("invalid media parameter")),
            (&format!("{form}; a=\"b"), Err("invalid media parameter")),
            (&format!("{form};;"), Err("invalid media parameter")),
            (&format!("{form}; =b"), Err("invalid media parameter")),
            (&format!("{form}; a=b c"), Err("invalid media parameter")),
            (&format!("{form}; a=b; A=c"), Err("duplicate parameter name")),
            ("/", Err("no media type")),
            (" ; a=b", Err("no media type")),
            ("x y", Err("expected slash after first token")),
            ("x/", Err("expected token after slash")),
            ("x/y z", Err("unexpected content after media subtype")),
        ] {
            let read = is_form(text.as_bytes());
            let read = read.map_err(|error| String::from_utf8(error.cause).unwrap());
            assert_eq!(read, expected.map_err(|cause| format!("mime: {cause}")), "{text}");
        }
    }
}
