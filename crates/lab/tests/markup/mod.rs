//! A small reader of XML, for pages and charts: it accepts what is well-formed and nothing else.

/// Elements in the order in which they begin, with their attributes; panics at the first mistake.
pub(crate) fn elements(document: &str) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = document.strip_prefix("<!DOCTYPE html>\n").unwrap_or(document);
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at], open.last().map_or("", String::as_str));
        assert!(!open.is_empty() || rest[..at].trim().is_empty(), "text outside of the document");
        rest = &rest[at + 1..];
        let (tag, after) = tag(rest);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in order");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let element = element(tag);
        if !is_empty {
            open.push(element.name.clone());
        }
        elements.push(element);
        if let Some(name @ ("style" | "script")) = open.last().map(String::as_str) {
            // The contents of these are not markup.
            let end = rest.find(&format!("</{name}>")).expect("it is closed");
            assert!(!rest[..end].contains(['<', '&']), "XML would read this otherwise");
            rest = &rest[end..];
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(rest.trim().is_empty(), "text after the document");
    elements
}

/// An element's name and attributes.
#[derive(Debug)]
pub(crate) struct Element {
    /// `rect`.
    pub(crate) name: String,
    /// In order, as written.
    pub(crate) attributes: Vec<(String, String)>,
}

/// A tag's text and the rest; `>` may stand in quotes.
fn tag(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (index, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return (&text[..index], &text[index + 1..]),
            '<' => panic!("a tag in a tag: {}", &text[..index]),
            _ => {}
        }
    }
    panic!("a tag has no end: {text}");
}

fn element(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "name {name:?}");
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (name, after) = rest.split_once("=\"").expect("an attribute has a quoted value");
        let (value, after) = after.split_once('"').expect("the quote is closed");
        check_text(value, "");
        let name = name.trim();
        assert!(attributes.iter().all(|(other, _)| other != name), "{name} twice in {tag}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "attribute {name:?}");
        attributes.push((name.to_owned(), value.to_owned()));
        rest = after;
    }
    Element { name: name.to_owned(), attributes }
}

/// Text has no characters that XML forbids, and `&` only where it begins one of five names.
fn check_text(text: &str, within: &str) {
    for (index, c) in text.char_indices() {
        assert!(!c.is_control() || matches!(c, '\n' | '\t'), "{c:?} in {within}");
        if c == '&' {
            let names = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            let known = names.iter().any(|name| text[index..].starts_with(name));
            assert!(known, "a bare & in {within}: {text}");
        }
    }
}
