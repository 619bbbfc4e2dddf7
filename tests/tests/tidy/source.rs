//! The sources as the rules look at them: without comments, strings and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A file of a crate that is part of the program.
pub(crate) struct Source {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    /// The folder of the crate, which is also its name.
    pub(crate) package: String,
    /// Its module's path within the crate, empty for the root.
    pub(crate) module: Vec<String>,
    /// Its text, with spaces for comments, strings, and what is compiled for tests alone.
    pub(crate) code: String,
}

impl Source {
    /// The identifiers and punctuation of the code.
    pub(crate) fn tokens(&self) -> Vec<&str> {
        tokens(&self.code)
    }
}

/// All files under `crates/*/src` but tests.
pub(crate) fn read_all(root: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    for package in entries(&root.join("crates")) {
        let folder = package.join("src");
        let name = package.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let mut files = Vec::new();
        find_files(&folder, &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source is text");
            let inner = file.strip_prefix(&folder).expect("it was found there");
            let path = file.strip_prefix(root).expect("it lies in the repository");
            sources.push(Source {
                path: path.to_string_lossy().into_owned(),
                package: name.clone(),
                module: module_of(inner),
                code: blank(&text),
            });
        }
    }
    without_tests(sources)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

/// Adds all Rust files below a folder.
pub(crate) fn find_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            find_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `run/call.rs` and `run/mod.rs` are modules, `lib.rs` and `main.rs` the root.
fn module_of(path: &Path) -> Vec<String> {
    let stem = path.with_extension("");
    let mut words: Vec<String> =
        stem.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if matches!(words.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        words.pop();
    }
    words
}

/// Leaves out modules that are compiled for tests alone, and blanks such items in all others.
fn without_tests(sources: Vec<Source>) -> Vec<Source> {
    let mut of_tests = BTreeSet::new();
    let mut kept = Vec::new();
    for mut source in sources {
        let (code, modules) = blank_tests(&source.code);
        for module in modules {
            let path = [&source.module[..], &[module]].concat();
            of_tests.insert((source.package.clone(), path));
        }
        source.code = code;
        kept.push(source);
    }
    kept.retain(|source| {
        (1..=source.module.len()).all(|length| {
            let part = source.module[..length].to_vec();
            !of_tests.contains(&(source.package.clone(), part))
        })
    });
    kept
}

/// Spaces for the items after `#[cfg(test)]`, and the names of the modules among them.
fn blank_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut bytes = code.as_bytes().to_vec();
    let mut modules = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(MARK) {
        let start = from + at;
        let end = item_end(code, start + MARK.len());
        let words = tokens(&code[start + MARK.len()..end]);
        if let Some(at) = words.iter().position(|word| *word == "mod")
            && words.get(at + 2) == Some(&";")
        {
            modules.push(words[at + 1].to_string());
        }
        bytes[start..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        from = end;
    }
    (String::from_utf8(bytes).expect("whole items were blanked"), modules)
}

/// Where an item ends: at its semicolon or its closing brace.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth -= 1;
                if depth == 0 && byte == b'}' {
                    return at + 1;
                }
                // The list of enum variants or fields that it stands in has ended.
                if depth < 0 {
                    return at;
                }
            }
            b';' | b',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Spaces for comments and for the contents of strings and characters. Lines stay lines.
pub(crate) fn blank(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = hidden_length(rest, kept.chars().next_back());
        if length == 0 {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let hidden = &rest[..length];
            kept.extend(hidden.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    kept
}

/// Bytes of the comment or literal that the text begins with, 0 if with none.
fn hidden_length(text: &str, before: Option<char>) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment_length(text);
    }
    if text.starts_with('"') {
        return quoted_length(text, '"');
    }
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return 0;
    }
    let raw = text.strip_prefix('b').or(text.strip_prefix('c')).unwrap_or(text);
    if let Some(rest) = raw.strip_prefix('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        if rest[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = text.len() - rest.len() + hashes + 1;
            return text[open..].find(&close).map_or(text.len(), |at| open + at + close.len());
        }
    }
    if text.starts_with('\'') && is_character(text) {
        return quoted_length(text, '\'');
    }
    0
}

fn block_comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Whether a quote begins a character, not a lifetime.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

/// Identifiers, `::`, and single characters of punctuation.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

/// The sources by crate and module.
pub(crate) fn by_module(sources: &[Source]) -> BTreeMap<(&str, &[String]), usize> {
    let key = |source: &'_ Source| (source.package.clone(), source.module.clone());
    debug_assert!(sources.iter().map(key).collect::<BTreeSet<_>>().len() <= sources.len());
    let numbered = sources.iter().enumerate();
    numbered.map(|(at, source)| ((&*source.package, &*source.module), at)).collect()
}

#[test]
fn comments_strings_and_tests_are_blanked() {
    let text = "a /* b /* c */ */ d // e\n\"f\\\"\" 'g' '\\'' &'h i r#\"j\"# #[cfg(test)] mod k; l";
    let (code, modules) = blank_tests(&blank(text));
    assert_eq!(tokens(&code), ["a", "d", "&", "'", "h", "i", "l"]);
    assert_eq!(modules, ["k"]);
    assert_eq!(
        tokens(&blank_tests("#[cfg(test)]\nmod m { fn n() {} }\nfn o() {}").0)[..2],
        ["fn", "o"]
    );
}
