//! Prints a reply as redis-cli prints it on a terminal.
//!
//! Where redis-cli is ambiguous the notation here is not: a null array is `(nil array)`, a
//! verbatim string names its format, and a push message opens with a line `(push)`.

use crate::client::Reply;
use crate::quoting::quote;

/// The lines of one reply.
#[must_use]
pub fn lines(reply: &Reply) -> Vec<String> {
    let one = |line: String| vec![line];
    match reply {
        Reply::Status(text) => one(printable(text)),
        Reply::Error(text) => one(format!("(error) {}", printable(text))),
        Reply::Integer(number) => one(format!("(integer) {number}")),
        Reply::Bulk(bytes) => one(quote(bytes)),
        Reply::Nil => one("(nil)".into()),
        Reply::NilArray => one("(nil array)".into()),
        Reply::Double(digits) => one(format!("(double) {}", printable(digits))),
        Reply::Boolean(true) => one("(true)".into()),
        Reply::Boolean(false) => one("(false)".into()),
        Reply::BigNumber(digits) => one(format!("(big number) {}", printable(digits))),
        Reply::Verbatim(format, text) => {
            one(format!("(verbatim {}) {}", printable(format), quote(text)))
        }
        Reply::Array(elements) if elements.is_empty() => one("(empty array)".into()),
        Reply::Set(elements) if elements.is_empty() => one("(empty set)".into()),
        Reply::Map(pairs) if pairs.is_empty() => one("(empty hash)".into()),
        Reply::Array(elements) => numbered(elements, ')'),
        Reply::Set(elements) => numbered(elements, '~'),
        Reply::Push(elements) => {
            let mut all = one("(push)".into());
            all.extend(numbered(elements, ')'));
            all
        }
        Reply::Map(pairs) => mapped(pairs, '#'),
        Reply::Attributed(pairs, value) => {
            let mut all = mapped(pairs, '|');
            all.extend(lines(value));
            all
        }
    }
}

/// Status and error texts are one line by definition; unusual characters are made visible, and so
/// is a blank at the end.
fn printable(text: &[u8]) -> String {
    let quoted = quote(text);
    let inner = &quoted[1..quoted.len() - 1];
    let mut shown = inner.replace("\\\"", "\"").replace("\\\\", "\\");
    if shown.ends_with(' ') {
        shown.pop();
        shown.push_str("\\x20");
    }
    shown
}

/// The number in front of element `index` of `count`.
fn prefix(index: usize, count: usize, mark: char) -> String {
    let width = count.to_string().len();
    format!("{:>width$}{mark} ", index + 1)
}

/// Puts `first` before the first line and as many blanks before the others.
fn indented(first: String, inner: Vec<String>) -> impl Iterator<Item = String> {
    let blanks = " ".repeat(first.len());
    inner.into_iter().enumerate().map(move |(index, line)| {
        if index == 0 { format!("{first}{line}") } else { format!("{blanks}{line}") }
    })
}

fn numbered(elements: &[Reply], mark: char) -> Vec<String> {
    let count = elements.len();
    let each = elements.iter().enumerate();
    each.flat_map(|(index, element)| indented(prefix(index, count, mark), lines(element))).collect()
}

fn mapped(pairs: &[(Reply, Reply)], mark: char) -> Vec<String> {
    let mut all = Vec::new();
    for (index, (key, value)) in pairs.iter().enumerate() {
        let prefix = prefix(index, pairs.len(), mark);
        let mut value = lines(value);
        let mut head = lines(key);
        if let Some(last) = head.last_mut() {
            last.push_str(" =>");
            if value.len() == 1 {
                last.push_str(&format!(" {}", value.remove(0)));
            }
        }
        let blanks = " ".repeat(prefix.len() + 2);
        all.extend(indented(prefix, head));
        all.extend(value.into_iter().map(|line| format!("{blanks}{line}")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_replies_are_indented() {
        let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        let inner = Reply::Array(vec![bulk("x"), Reply::Integer(2)]);
        let reply = Reply::Array(vec![bulk("0"), inner.clone(), Reply::Nil]);
        assert_eq!(lines(&reply), ["1) \"0\"", "2) 1) \"x\"", "   2) (integer) 2", "3) (nil)"]);
        let map = Reply::Map(vec![(bulk("k"), inner), (bulk("l"), Reply::Boolean(true))]);
        let expected =
            ["1# \"k\" =>", "     1) \"x\"", "     2) (integer) 2", "2# \"l\" => (true)"];
        assert_eq!(lines(&map), expected);
    }
}
