//! Replies as text, as redis-cli 8.0 prints them.

use resp::client::Value;

use crate::quote::repr;

/// A form of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people: numbered elements, quoted strings, kinds in parentheses.
    Standard,
    /// The bytes as they are.
    Raw,
    /// Comma-separated values.
    Csv,
    /// JSON, with bytes from 0x80 on as they are.
    Json,
    /// JSON in ASCII alone.
    QuotedJson,
}

/// What separates raw replies.
#[derive(Clone, Debug)]
pub(crate) struct Delimiters {
    /// The elements of a reply.
    pub(crate) elements: Vec<u8>,
    /// Replies.
    pub(crate) replies: Vec<u8>,
}

/// The colours of a reply: nothing, or codes for a terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Colors(pub(crate) bool);

impl Colors {
    fn paint(self, code: &str, text: &[u8], output: &mut Vec<u8>) {
        if self.0 {
            output.extend_from_slice(format!("\x1b[{code}m").as_bytes());
            output.extend_from_slice(text);
            output.extend_from_slice(b"\x1b[0m");
        } else {
            output.extend_from_slice(text);
        }
    }
}

const ERROR: &str = "31";
const NUMBER: &str = "36";
const STRING: &str = "32";
const NOTHING: &str = "90";

/// A whole reply with what ends it. A reply that is `verbatim` is a page to be read, such as that
/// of INFO: it is printed as it is in each form.
pub(crate) fn reply(
    value: &Value,
    form: Form,
    verbatim: bool,
    delimiters: &Delimiters,
    colors: Colors,
) -> Vec<u8> {
    let mut output = Vec::new();
    match form {
        _ if verbatim => raw(value, &delimiters.elements, &mut output),
        Form::Standard => standard(value, "", colors, &mut output),
        Form::Raw => {
            raw(value, &delimiters.elements, &mut output);
            output.extend_from_slice(&delimiters.replies);
        }
        Form::Csv => {
            csv(value, &mut output);
            output.push(b'\n');
        }
        Form::Json | Form::QuotedJson => {
            json(value, form, &mut output);
            output.push(b'\n');
        }
    }
    output
}

/// The elements of a collection; a map gives its keys and values in turn.
fn elements(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) | Value::Set(list) | Value::Push(list) => list.iter().collect(),
        Value::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
        _ => Vec::new(),
    }
}

fn standard(value: &Value, prefix: &str, colors: Colors, output: &mut Vec<u8>) {
    let typed = |kind: &str, text: &[u8]| [kind.as_bytes(), text].concat();
    match value {
        Value::Error(text) => colors.paint(ERROR, &typed("(error) ", text), output),
        Value::Simple(text) => output.extend_from_slice(text),
        Value::Integer(number) => {
            colors.paint(NUMBER, format!("(integer) {number}").as_bytes(), output);
        }
        Value::Double(text) => colors.paint(NUMBER, &typed("(double) ", text), output),
        Value::BigNumber(text) => colors.paint(NUMBER, &typed("(big number) ", text), output),
        Value::Boolean(truth) => {
            colors.paint(NUMBER, if *truth { b"(true)" } else { b"(false)" }, output);
        }
        Value::Bulk(text) => {
            let mut shown = Vec::new();
            repr(text, &mut shown);
            colors.paint(STRING, &shown, output);
        }
        Value::Verbatim(_, text) => output.extend_from_slice(text),
        Value::Null | Value::NullArray => colors.paint(NOTHING, b"(nil)", output),
        Value::Attributed(_, value) => return standard(value, prefix, colors, output),
        Value::Array(list) if list.is_empty() => colors.paint(NOTHING, b"(empty array)", output),
        Value::Map(pairs) if pairs.is_empty() => colors.paint(NOTHING, b"(empty hash)", output),
        Value::Set(list) if list.is_empty() => colors.paint(NOTHING, b"(empty set)", output),
        Value::Push(list) if list.is_empty() => colors.paint(NOTHING, b"(empty push)", output),
        Value::Map(pairs) => {
            let width = pairs.len().to_string().len();
            let inner = format!("{prefix}{:1$}", "", width + 2);
            for (index, (key, value)) in pairs.iter().enumerate() {
                number(index, width, '#', prefix, colors, output);
                standard(key, &inner, colors, output);
                output.pop();
                output.extend_from_slice(b" => ");
                let start = output.len();
                standard(value, &inner, colors, output);
                let lines = output[start..].iter().filter(|byte| **byte == b'\n').count();
                if lines > 1 && !elements(value).is_empty() {
                    // A collection of several lines begins in a line of its own.
                    let line = format!("\n{inner}").into_bytes();
                    drop(output.splice(start..start, line));
                }
            }
            return;
        }
        Value::Array(list) | Value::Set(list) | Value::Push(list) => {
            let width = list.len().to_string().len();
            let inner = format!("{prefix}{:1$}", "", width + 2);
            let sign = if matches!(value, Value::Set(_)) { '~' } else { ')' };
            for (index, value) in list.iter().enumerate() {
                number(index, width, sign, prefix, colors, output);
                standard(value, &inner, colors, output);
            }
            return;
        }
    }
    output.push(b'\n');
}

/// The number of an element. What stands before that of the first has been written already.
fn number(
    index: usize,
    width: usize,
    sign: char,
    prefix: &str,
    colors: Colors,
    output: &mut Vec<u8>,
) {
    if index > 0 {
        output.extend_from_slice(prefix.as_bytes());
    }
    let text = format!("{:width$}{sign}", index + 1);
    colors.paint(NOTHING, text.as_bytes(), output);
    output.push(b' ');
}

fn raw(value: &Value, delimiter: &[u8], output: &mut Vec<u8>) {
    match value {
        Value::Null | Value::NullArray => {}
        Value::Error(text) => {
            output.extend_from_slice(text);
            output.push(b'\n');
        }
        Value::Simple(text)
        | Value::Bulk(text)
        | Value::Verbatim(_, text)
        | Value::Double(text)
        | Value::BigNumber(text) => output.extend_from_slice(text),
        Value::Integer(number) => output.extend_from_slice(number.to_string().as_bytes()),
        Value::Boolean(truth) => {
            output.extend_from_slice(if *truth { b"(true)" } else { b"(false)" });
        }
        Value::Attributed(_, value) => raw(value, delimiter, output),
        Value::Array(list) | Value::Set(list) | Value::Push(list) => {
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    output.extend_from_slice(delimiter);
                }
                raw(value, delimiter, output);
            }
        }
        Value::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    output.extend_from_slice(delimiter);
                }
                raw(key, delimiter, output);
                output.push(b' ');
                raw(value, delimiter, output);
            }
        }
    }
}

fn csv(value: &Value, output: &mut Vec<u8>) {
    match value {
        Value::Error(text) => {
            output.extend_from_slice(b"ERROR,");
            repr(text, output);
        }
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim(_, text) => repr(text, output),
        Value::Integer(number) => output.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(text) | Value::BigNumber(text) => output.extend_from_slice(text),
        Value::Null | Value::NullArray => output.extend_from_slice(b"NULL"),
        Value::Boolean(truth) => output.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Attributed(_, value) => csv(value, output),
        Value::Array(_) | Value::Set(_) | Value::Push(_) | Value::Map(_) => {
            for (index, value) in elements(value).into_iter().enumerate() {
                if index > 0 {
                    output.push(b',');
                }
                csv(value, output);
            }
        }
    }
}

fn json(value: &Value, form: Form, output: &mut Vec<u8>) {
    match value {
        Value::Error(text) => {
            output.extend_from_slice(b"error:");
            json_string(text, form, output);
        }
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim(_, text) => {
            json_string(text, form, output);
        }
        Value::Integer(number) => output.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(text) | Value::BigNumber(text) => output.extend_from_slice(text),
        Value::Null | Value::NullArray => output.extend_from_slice(b"null"),
        Value::Boolean(truth) => output.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Attributed(_, value) => json(value, form, output),
        Value::Array(list) | Value::Set(list) | Value::Push(list) => {
            output.push(b'[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    output.push(b',');
                }
                json(value, form, output);
            }
            output.push(b']');
        }
        Value::Map(pairs) => {
            output.push(b'{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    output.push(b',');
                }
                // A name is a string, whatever the key is.
                let mut name = Vec::new();
                json(key, form, &mut name);
                match name.first() {
                    Some(b'"' | b'e') => output.append(&mut name),
                    _ => output.extend([&b"\""[..], &name, b"\""].concat()),
                }
                output.push(b':');
                json(value, form, output);
            }
            output.push(b'}');
        }
    }
}

fn json_string(text: &[u8], form: Form, output: &mut Vec<u8>) {
    if form == Form::QuotedJson {
        let mut shown = Vec::new();
        repr(text, &mut shown);
        for byte in shown {
            if byte == b'\\' {
                output.push(b'\\');
            }
            output.push(byte);
        }
        return;
    }
    output.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => output.extend_from_slice(&[b'\\', *byte]),
            b'\n' => output.extend_from_slice(b"\\n"),
            b'\r' => output.extend_from_slice(b"\\r"),
            b'\t' => output.extend_from_slice(b"\\t"),
            8 => output.extend_from_slice(b"\\b"),
            12 => output.extend_from_slice(b"\\f"),
            0..=0x1f => output.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            other => output.push(*other),
        }
    }
    output.push(b'"');
}

/// What the server says of keys that have changed, as [`Form::Standard`] shows it; `None` for other
/// messages.
pub(crate) fn invalidation(value: &Value) -> Option<Vec<u8>> {
    let Value::Push(parts) = value else { return None };
    let [Value::Bulk(kind), Value::Array(keys)] = &parts[..] else { return None };
    if !kind.starts_with(b"invalidate") {
        return None;
    }
    let keys = keys.iter().filter_map(Value::as_bytes);
    let shown: Vec<Vec<u8>> = keys.map(|key| [b"'", key, b"'"].concat()).collect();
    Some([b"-> invalidate: ", &shown.join(&b", "[..])[..], b"\n"].concat())
}
