//! Tests of the table as a whole, against `reference.txt` and against itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::names::Found;
use super::*;

/// Texts of which fewer are taken, because they are shown in lines.
const NARROWER: &[&str] = &["cluster-announce-ip"];

/// Directives whose default differs from the reference on purpose.
const OTHER_DEFAULT: [&str; 3] = ["bind", "cluster-node-timeout", "tls-prefer-server-ciphers"];
/// Directives that the reference lets change, and that are fixed at the start here.
const FIXED: [&str; 1] = ["cluster-node-timeout"];
/// Directives that the reference does not have, or does not list: our own, those of Valkey, and one
/// that it hides.
const OWN: [&str; 38] = [
    "availability-zone",
    "cluster-allow-cross-slot",
    "cluster-databases",
    "cluster-durability",
    "cluster-etcd",
    "cluster-etcd-ca-file",
    "cluster-etcd-cert-file",
    "cluster-etcd-key-file",
    "cluster-etcd-password",
    "cluster-etcd-user",
    "cluster-migration-bandwidth",
    "cluster-name",
    "cluster-slot-stats-enabled",
    "enable-debug-assert",
    "commandlog-execution-slower-than",
    "commandlog-slow-execution-max-len",
    "commandlog-request-larger-than",
    "commandlog-large-request-max-len",
    "commandlog-reply-larger-than",
    "commandlog-large-reply-max-len",
    "import-mode",
    "lua-memory-limit",
    "changes-backlog-size",
    "changes-backlog-ttl",
    "auth-failure-delay",
    "authentication-timeout",
    "durability-timeout",
    "rdb-version",
    "threads",
    "http-port",
    "http-cors-origins",
    "http-host-names",
    "http-require-match",
    "https-port",
    "tls-auth-clients-user",
    "tls-sni-cert-files",
    "tls-verify-names",
    "views-file",
];

/// A line of `reference.txt`.
struct Reference {
    name: &'static str,
    default: &'static str,
    kind: Vec<&'static str>,
    flags: Vec<&'static str>,
}

fn reference() -> Vec<Reference> {
    let lines = include_str!("reference.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut columns = line.split('|').chain(std::iter::repeat(""));
            let mut next = || columns.next().unwrap();
            Reference {
                name: next(),
                default: next(),
                kind: next().split(' ').collect(),
                flags: next().split_whitespace().collect(),
            }
        })
        .collect()
}

/// The answer of a directive to `value`: nothing, or its error.
fn answer(name: &str, value: &str) -> Result<(), String> {
    let directive = DirectiveId::find(name.as_bytes()).expect(name).directive();
    directive.set(&mut Config::default(), value.as_bytes())
}

#[test]
fn names_are_unique_and_lower_case() {
    let mut seen = HashSet::new();
    for found in Found::all() {
        assert!(seen.insert(found.name), "{}", found.name);
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_';
        assert!(found.name.bytes().all(allowed), "{}", found.name);
    }
}

#[test]
fn names_are_those_of_the_reference() {
    let known: HashSet<&str> = reference().iter().map(|line| line.name).chain(OWN).collect();
    let ours: HashSet<&str> = Found::all().map(|found| found.name).collect();
    assert_eq!(ours.symmetric_difference(&known).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn defaults_are_those_of_the_reference() {
    for Reference { name, default, .. } in reference() {
        let directive = DirectiveId::find(name.as_bytes()).unwrap().directive();
        let ours = String::from_utf8(directive.default_value()).unwrap();
        assert_eq!(ours == default, !OTHER_DEFAULT.contains(&name), "{name}: {ours}");
    }
}

#[test]
fn settings_can_change_where_the_reference_lets_them() {
    for Reference { name, flags, .. } in reference() {
        let directive = DirectiveId::find(name.as_bytes()).unwrap().directive();
        let change = if flags.contains(&"immutable") || FIXED.contains(&name) {
            Change::Immutable
        } else if flags.contains(&"protected") {
            Change::Protected
        } else {
            Change::Modifiable
        };
        assert_eq!(directive.change(), change, "{name}");
        assert_eq!(directive.is_hidden(), flags.contains(&"hidden"), "{name}");
    }
}

#[test]
fn values_are_bounded_as_in_the_reference() {
    for Reference { name, kind, .. } in reference() {
        let wrong = answer(name, "?");
        match kind.as_slice() {
            ["bool"] => {
                assert_eq!(wrong, Err("argument must be 'yes' or 'no'".to_owned()), "{name}");
            }
            ["one", "of", names @ ..] => {
                let names = names.join(", ");
                let expected = format!("argument(s) must be one of the following: {names}");
                assert_eq!(wrong, Err(expected), "{name}");
            }
            ["integer", min, max] => {
                let expected = "argument couldn't be parsed into an integer";
                assert_eq!(wrong, Err(expected.to_owned()), "{name}");
                check_bounds(name, min, max);
            }
            ["memory", min, max] => {
                assert_eq!(wrong, Err("argument must be a memory value".to_owned()), "{name}");
                check_bounds(name, min, max);
            }
            ["text"] => {
                assert_eq!(wrong.is_ok(), !NARROWER.contains(&name), "{name}");
            }
            ["own"] => {}
            _ => panic!("{name}: {kind:?}"),
        }
    }
}

/// Checks that the bounds are accepted and values beyond them are not.
fn check_bounds(name: &str, min: &str, max: &str) {
    let bounds: [i128; 2] = [min.parse().unwrap(), max.parse().unwrap()];
    assert_eq!(answer(name, min), Ok(()), "{name} {min}");
    assert_eq!(answer(name, max), Ok(()), "{name} {max}");
    let out_of_range = Err(format!("argument must be between {min} and {max} inclusive"));
    for beyond in [bounds[0] - 1, bounds[1] + 1] {
        let got = answer(name, &beyond.to_string());
        if i64::try_from(beyond).is_ok() && (beyond >= 0 || bounds[0] < 0 || max.len() < 20) {
            let not_a_size = Err("argument must be a memory value".to_owned());
            assert!(got == out_of_range || (beyond < 0 && got == not_a_size), "{name} {beyond}");
        } else {
            assert!(got.is_err(), "{name} {beyond}");
        }
    }
}

#[test]
fn every_default_reads_back() {
    for id in DirectiveId::all() {
        let directive = id.directive();
        let mut config = Config::default();
        let default = directive.default_value();
        if id.name() != "replicaof" {
            directive.set(&mut config, &default).unwrap();
        }
        assert_eq!(config, Config::default(), "{id:?}");
        assert_eq!(get(&config, &[id.name().as_bytes()]), [(id.name().into(), default)]);
    }
}

#[test]
fn every_row_is_documented() {
    for directive in directives() {
        let (name, doc) = (directive.name(), directive.doc());
        assert!(doc.ends_with('.') && !doc.contains("  "), "{name}: {doc}");
        assert!(!directive.values().is_empty(), "{name}");
        if let Effect::None(reason) = directive.effect() {
            assert!(!reason.is_empty() && !reason.ends_with('.'), "{name}: {reason}");
        }
    }
}

/// A row that claims an effect is read somewhere; its field is named like the directive, some in
/// the plural.
#[test]
fn every_setting_with_an_effect_is_read() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = String::new();
    read_sources(&crates, &mut sources);
    let is_identifier = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: HashSet<&str> =
        sources.split('.').map(|rest| rest.split(|c| !is_identifier(c)).next().unwrap()).collect();
    for directive in directives().iter().filter(|it| it.effect() == Effect::Full) {
        let field = directive.name().replace('-', "_");
        let is_read = words.contains(&*field) || words.contains(&*format!("{field}s"));
        assert!(is_read, "nobody reads {field}");
    }
}

/// Gathers the text of all sources but the table itself, and tests.
fn read_sources(directory: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            read_sources(&path, sources);
        } else if name.ends_with(".rs") && !name.starts_with("test") && name != "table.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let own_tests = text.find("#[cfg(test)]").unwrap_or(text.len());
            sources.push_str(&text[..own_tests]);
        }
    }
}

/// Rows that nobody changes while the server runs have no action, and what waits can be given to
/// another thread.
#[test]
fn an_action_follows_a_change() {
    for directive in directives().iter().filter(|row| row.action() != Action::None) {
        assert_ne!(directive.change(), Change::Immutable, "{}", directive.name());
        assert_eq!(directive.effect(), Effect::Full, "{}", directive.name());
    }
    let waits = directives().iter().filter(|row| row.action().waits());
    let names: Vec<_> = waits.map(|row| row.name()).collect();
    for name in ["port", "http-port", "tls-cert-file", "bind", "dir", "appendonly", "views-file"] {
        assert!(names.contains(&name), "{name}");
    }
}
