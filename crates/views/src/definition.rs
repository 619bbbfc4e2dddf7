//! The file that names databases and views.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::address;
use crate::encryption::{self, Encryption};
use crate::kind::Kind;
use crate::parameter::{Parameter, Value};
use crate::statement::{Marks, Statement, marked};

/// Keys of views begin with this.
const KEY_PREFIX: &str = "view:";
/// Bytes of a definition's hash that a key shows.
const DIGEST_BYTES: usize = 8;
/// Longest name of a view.
const LONGEST_NAME: usize = 64;
/// Default threads, and so connections, of a database.
const CONNECTIONS: usize = 4;
/// The most threads.
const MOST_CONNECTIONS: usize = 64;
/// Default seconds that a statement may take.
const TIMEOUT: f64 = 60.0;
/// The longest time, in seconds: about thirty years.
const LONGEST: f64 = 1e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    databases: BTreeMap<String, DatabaseEntry>,
    #[serde(default)]
    views: BTreeMap<String, ViewEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DatabaseEntry {
    url: String,
    connections: Option<usize>,
    /// Seconds that a statement may take.
    timeout: Option<f64>,
    /// Statements that every new connection begins with.
    #[serde(default)]
    begin: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ViewEntry {
    database: Option<String>,
    select: String,
    write: Option<String>,
    ttl: f64,
    #[serde(default)]
    stale: f64,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
    #[serde(default)]
    write_parameters: BTreeMap<String, Parameter>,
}

/// A database.
#[derive(Clone, PartialEq, Debug)]
pub struct Database {
    /// Its name in the file.
    pub name: String,
    /// How many connections it has.
    pub connections: usize,
    pub(crate) url: String,
    pub(crate) encryption: Option<Encryption>,
    pub(crate) kind: Kind,
    pub(crate) begin: Vec<String>,
    /// How long a statement may take.
    pub(crate) timeout: Duration,
}

/// A view.
#[derive(PartialEq, Debug)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Its database, by its number.
    pub database: usize,
    /// For how long a result is fresh.
    pub ttl: Duration,
    /// For how long after that a stale result is served while a new one is fetched.
    pub stale: Duration,
    /// The tags that invalidate it: its own name among them.
    pub tags: BTreeSet<String>,
    select: Statement,
    parameters: Vec<(String, Parameter)>,
    write: Option<(Statement, Vec<(String, Parameter)>)>,
    /// A hash of all that its results depend on, in hexadecimal. It is a part of their keys, so
    /// that a view never answers with a result of an earlier definition.
    digest: String,
}

/// A statement with its bound values.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'v> {
    pub(crate) sql: &'v str,
    pub(crate) values: Vec<Value>,
}

/// The contents of the file.
#[derive(Debug, Default)]
pub struct Views {
    /// The databases.
    pub databases: Vec<Database>,
    /// The views, by their names.
    pub views: BTreeMap<String, View>,
}

/// What a key names.
struct ViewCall<'v, 'k> {
    view: &'v View,
    /// The definition that it was made for.
    digest: &'k str,
    /// The parameters.
    given: Vec<(String, String)>,
}

impl Views {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it, for the operator.
    pub fn parse(text: &str) -> Result<Views, String> {
        let file: File = toml::from_str(text).map_err(|error| explained(text, &error))?;
        let mut databases = Vec::new();
        for (name, entry) in file.databases {
            databases
                .push(entry.checked(&name).map_err(|error| format!("database {name}: {error}"))?);
        }
        if databases.is_empty() && !file.views.is_empty() {
            return Err("there are views, and no database".to_owned());
        }
        let mut views = BTreeMap::new();
        for (name, entry) in file.views {
            let view = entry.checked(&name, &databases);
            views.insert(name.clone(), view.map_err(|error| format!("view {name}: {error}"))?);
        }
        Ok(Views { databases, views })
    }

    /// The views of an earlier file whose results are not those of this one's.
    #[must_use]
    pub fn changed_since(&self, earlier: &Views) -> BTreeSet<String> {
        let changed = earlier.views.iter().filter(|(name, before)| {
            self.views.get(*name).is_none_or(|now| before.digest != now.digest)
        });
        changed.map(|(name, _)| name.clone()).collect()
    }

    /// The view whose result is kept under this key, and its statement.
    ///
    /// # Errors
    /// There is none.
    pub fn at_key(&self, key: &[u8]) -> Result<(&View, Call<'_>), String> {
        let ViewCall { view, digest, given } = self.asked_for(key)?;
        if view.digest != digest {
            return Err("there is no such view".to_owned());
        }
        Ok((view, view.select(&view.values(&given)?)))
    }

    /// The key of these views for the result that a key of an earlier file asks for.
    ///
    /// # Errors
    /// There is no such view, or it does not have these parameters.
    pub fn present_key(&self, key: &[u8]) -> Result<String, String> {
        let ViewCall { view, given, .. } = self.asked_for(key)?;
        view.key(&given)
    }

    fn asked_for<'k>(&self, key: &'k [u8]) -> Result<ViewCall<'_, 'k>, String> {
        let text = std::str::from_utf8(key).map_err(|_| "the key is no text")?;
        let text = text.strip_prefix(KEY_PREFIX).ok_or("it is no key of a view")?;
        let (head, query) = text.split_once('?').unwrap_or((text, ""));
        let (name, digest) = head.split_once('@').unwrap_or((head, ""));
        let view = self.views.get(name).ok_or("there is no such view")?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((name.to_owned(), decoded(value).ok_or("the key is not encoded")?))
        });
        let given = pairs.collect::<Result<Vec<_>, String>>()?;
        Ok(ViewCall { view, digest, given })
    }
}

impl DatabaseEntry {
    fn checked(self, name: &str) -> Result<Database, String> {
        let connections = self.connections.unwrap_or(CONNECTIONS);
        if !(1..=MOST_CONNECTIONS).contains(&connections) {
            return Err(format!("connections are 1 to {MOST_CONNECTIONS}"));
        }
        let kind = Kind::of(&self.url)
            .ok_or("its url begins with sqlite:, mariadb:, mysql: or postgres:")?;
        let (url, encryption) = encryption::split(&self.url, kind)?;
        address::check(&url, kind).map_err(|reason| format!("its url is wrong: {reason}"))?;
        let timeout = seconds("timeout", self.timeout.unwrap_or(TIMEOUT), 0.001)?;
        let (name, begin) = (name.to_owned(), self.begin);
        Ok(Database { name, connections, url, encryption, kind, begin, timeout })
    }
}

/// What is wrong with the text, and in which line. It does not show the line, which may have a
/// password.
fn explained(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("TOML parse error at line {line}: {}", error.message())
}

fn seconds(what: &str, value: f64, least: f64) -> Result<Duration, String> {
    if (least..=LONGEST).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(format!("{what} is a number of seconds"))
}

fn statement(
    sql: &str,
    parameters: &[(String, Parameter)],
    marks: Marks,
) -> Result<Statement, String> {
    for (name, parameter) in parameters {
        parameter.check().map_err(|error| format!("parameter {name}: {error}"))?;
    }
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    marked(sql, &names, marks)
}

impl ViewEntry {
    fn checked(self, name: &str, databases: &[Database]) -> Result<View, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err("a name is of letters, digits, dashes, dots and underscores".to_owned());
        }
        let database = match &self.database {
            None => 0,
            Some(wanted) => databases
                .iter()
                .position(|database| database.name == *wanted)
                .ok_or("there is no such database")?,
        };
        let marks = databases[database].kind.marks();
        let parameters: Vec<_> = self.parameters.into_iter().collect();
        let select =
            statement(&self.select, &parameters, marks).map_err(|e| format!("select: {e}"))?;
        let written: Vec<_> = self.write_parameters.into_iter().collect();
        let write = match &self.write {
            None => None,
            Some(sql) => {
                let write = statement(sql, &written, marks).map_err(|e| format!("write: {e}"))?;
                Some((write, written))
            }
        };
        let mut tags: BTreeSet<String> = self.tags.into_iter().collect();
        tags.insert(name.to_owned());
        let mut view = View {
            name: name.to_owned(),
            database,
            ttl: seconds("ttl", self.ttl, 0.001)?,
            stale: seconds("stale", self.stale, 0.0)?,
            tags,
            select,
            parameters,
            write,
            digest: String::new(),
        };
        view.digest = view.digest_with(&databases[database]);
        Ok(view)
    }
}

impl View {
    /// A hash of the definition: the statement and its parameters, where it runs, for how long
    /// results are kept, and what forgets them. Keys show it to every client, so the password of
    /// the address is no part of it.
    fn digest_with(&self, database: &Database) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            // With its length, so that no two lists of parts are the same text.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        match database.kind {
            Kind::Sqlite => add(&database.url),
            Kind::Mariadb | Kind::Postgres => add(&without_password(&database.url)),
        }
        add(&self.select.text);
        self.select.places.iter().for_each(|place| add(&self.parameters[*place].0));
        for (name, parameter) in &self.parameters {
            add(name);
            add(&parameter.schema().to_string());
        }
        add(&format!("{:?} {:?}", self.ttl, self.stale));
        for part in self.tags.iter().chain(&database.begin) {
            add(part);
        }
        let hash = hash.finalize();
        hash[..DIGEST_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The key that the result for these parameters is kept under. Those that are missing have
    /// their defaults, and the order does not matter.
    ///
    /// # Errors
    /// A parameter is wrong, unknown or missing.
    pub fn key(&self, given: &[(String, String)]) -> Result<String, String> {
        let values = self.values(given)?;
        let mut key = format!("{KEY_PREFIX}{}@{}", self.name, self.digest);
        for (at, ((name, _), value)) in self.parameters.iter().zip(&values).enumerate() {
            key.push(if at == 0 { '?' } else { '&' });
            key.push_str(name);
            key.push('=');
            match value {
                Value::Null => {}
                Value::Integer(number) => key.push_str(&number.to_string()),
                Value::Number(number) => key.push_str(&number.to_string()),
                Value::Boolean(value) => key.push_str(&value.to_string()),
                Value::Text(text) => encode(text, &mut key),
            }
        }
        Ok(key)
    }

    fn values(&self, given: &[(String, String)]) -> Result<Vec<Value>, String> {
        for (at, (name, _)) in given.iter().enumerate() {
            if !self.parameters.iter().any(|(own, _)| own == name) {
                return Err(format!("there is no parameter {name}"));
            }
            if given[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("{name} is there twice"));
            }
        }
        let read = |(name, parameter): &(String, Parameter)| {
            let text = given.iter().find(|(own, _)| own == name);
            let value = text.map_or_else(|| parameter.default(), |(_, text)| parameter.read(text));
            value.map_err(|error| format!("{name}: {error}"))
        };
        self.parameters.iter().map(read).collect()
    }

    fn select(&self, values: &[Value]) -> Call<'_> {
        bound(&self.select, values)
    }

    /// The statement that writes the values of a JSON object.
    ///
    /// # Errors
    /// There is none, or a parameter is wrong, unknown or missing.
    pub fn write(&self, body: &[u8]) -> Result<Call<'_>, String> {
        let (statement, parameters) = self.write.as_ref().ok_or("the view is not written to")?;
        let body: serde_json::Value =
            serde_json::from_slice(body).map_err(|_| "the body is not JSON")?;
        let given = body.as_object().ok_or("the body is an object")?;
        if let Some(name) =
            given.keys().find(|name| !parameters.iter().any(|(own, _)| own == *name))
        {
            return Err(format!("there is no parameter {name}"));
        }
        let read = |(name, parameter): &(String, Parameter)| {
            let value = given.get(name);
            let value =
                value.map_or_else(|| parameter.default(), |value| parameter.read_json(value));
            value.map_err(|error| format!("{name}: {error}"))
        };
        let values = parameters.iter().map(read).collect::<Result<Vec<_>, String>>()?;
        Ok(bound(statement, &values))
    }

    /// The parameters of its results: their names, and their JSON Schemas.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, serde_json::Value)> {
        described(&self.parameters)
    }

    /// The parameters of its `write` statement, if it has one.
    pub fn write_parameters(&self) -> Option<impl Iterator<Item = (&str, serde_json::Value)>> {
        self.write.as_ref().map(|(_, parameters)| described(parameters))
    }

    /// Whether it is written to.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.write.is_some()
    }
}

/// An address without the password that it may have before its host or among its parameters.
fn without_password(url: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let (before, host) = address.rsplit_once('@').unwrap_or(("", address));
    // The first colon is that of the scheme.
    let user = before.match_indices(':').nth(1).map_or(before, |(at, _)| &before[..at]);
    let is_secret = |pair: &&str| pair.split('=').next() == Some("password");
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_secret(pair)).collect();
    format!("{user}@{host}?{}", rest.join("&"))
}

fn described(
    parameters: &[(String, Parameter)],
) -> impl Iterator<Item = (&str, serde_json::Value)> {
    parameters.iter().map(|(name, parameter)| (name.as_str(), parameter.schema()))
}

fn bound<'v>(statement: &'v Statement, values: &[Value]) -> Call<'v> {
    let values = statement.places.iter().map(|place| values[*place].clone()).collect();
    Call { sql: &statement.text, values }
}

fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            into.push(char::from(byte));
        } else {
            into.push_str(&format!("%{byte:02X}"));
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [databases.main]
        url = "sqlite::memory:"
        [views.departments]
        select = "SELECT dept_no FROM departments WHERE name <> :name ORDER BY 1 LIMIT :rows"
        write = "INSERT INTO departments VALUES (:dept_no, :dept_name)"
        ttl = 60
        stale = 30
        tags = ["staff"]
        [views.departments.parameters]
        rows = { type = "integer", default = 10, min = 1, max = 1000 }
        name = { type = "text", default = "", max_length = 10 }
        [views.departments.write_parameters]
        dept_no = { type = "text", max_length = 4 }
        dept_name = { type = "text", default = "none" }
    "#;

    fn pairs(text: &[(&str, &str)]) -> Vec<(String, String)> {
        text.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_key_contains_all_parameters_of_a_request() {
        let views = Views::parse(FILE).unwrap();
        let view = &views.views["departments"];
        let digest = &view.digest;
        assert_eq!(digest.len(), 2 * DIGEST_BYTES);
        assert_eq!(view.key(&[]).unwrap(), format!("view:departments@{digest}?name=&rows=10"));
        let given = pairs(&[("rows", "20"), ("name", "a&b=\u{e9}")]);
        let key = view.key(&given).unwrap();
        assert_eq!(key, format!("view:departments@{digest}?name=a%26b%3D%C3%A9&rows=20"));
        let (same, call) = views.at_key(key.as_bytes()).unwrap();
        assert_eq!(same.name, "departments");
        assert_eq!(call.values, [Value::Text("a&b=\u{e9}".into()), Value::Integer(20)]);
        assert_eq!(call.sql, "SELECT dept_no FROM departments WHERE name <> ? ORDER BY 1 LIMIT ?");
        for wrong in [
            pairs(&[("rows", "0")]),
            pairs(&[("rows", "1001")]),
            pairs(&[("rows", "1 OR 1=1")]),
            pairs(&[("name", "12345678901")]),
            pairs(&[("other", "1")]),
            pairs(&[("rows", "1"), ("rows", "2")]),
        ] {
            assert!(view.key(&wrong).is_err(), "{wrong:?}");
        }
        let own = format!("view:departments@{digest}");
        for wrong in [
            "view:other",
            "departments",
            &own.replace("view:", ""),
            &format!("{own}?rows=x"),
            &format!("{own}?name=%f"),
            // Of another definition, or of a time when keys did not say which.
            "view:departments@0123456789abcdef?name=&rows=10",
            "view:departments?name=&rows=10",
        ] {
            assert!(views.at_key(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let present = views.present_key(b"view:departments@0123456789abcdef?name=&rows=10");
        assert_eq!(present, view.key(&[]));
        assert!(views.present_key(b"view:departments@0123456789abcdef?rows=x").is_err());
    }

    #[test]
    fn what_is_written_comes_as_an_object() {
        let views = Views::parse(FILE).unwrap();
        let view = &views.views["departments"];
        let call = view.write(br#"{"dept_no":"d1'; --"}"#);
        assert!(call.is_err(), "that is too long");
        let call = view.write(br#"{"dept_no":"d'--"}"#).unwrap();
        assert_eq!(call.values, [Value::Text("d'--".into()), Value::Text("none".into())]);
        assert_eq!(call.sql, "INSERT INTO departments VALUES (?, ?)");
        for wrong in ["", "[]", "{}", r#"{"dept_no":1}"#, r#"{"dept_no":"d1","x":1}"#] {
            assert!(view.write(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_view_has_changed_when_its_results_may_differ() {
        let before = Views::parse(FILE).unwrap();
        let changed = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            Views::parse(&FILE.replace(from, to)).unwrap().changed_since(&before)
        };
        let own = BTreeSet::from(["departments".to_owned()]);
        for (from, to) in [
            ("dept_no FROM", "dept_name FROM"),
            ("ttl = 60", "ttl = 61"),
            ("stale = 30", "stale = 31"),
            ("\"staff\"", "\"stuff\""),
            ("default = 10", "default = 11"),
            (":memory:\"", ":memory:\"\nbegin = [\"SELECT 1\"]"),
            ("::memory:", ":other.db"),
            ("views.departments", "views.others"),
        ] {
            assert_eq!(changed(from, to), own, "{to}");
        }
        for (from, to) in [
            ("INSERT INTO", "REPLACE INTO"),
            (":memory:\"", ":memory:\"\ntimeout = 5\nconnections = 9"),
            ("databases.main", "databases.other"),
            ("[databases.main]", "[views.more]\nselect = \"SELECT 1\"\nttl = 1\n[databases.main]"),
        ] {
            assert_eq!(changed(from, to), BTreeSet::new(), "{to}");
        }
    }

    #[test]
    fn a_key_shows_nothing_of_a_password() {
        let key = |url: &str| {
            let views = Views::parse(&FILE.replace("sqlite::memory:", url)).unwrap();
            views.views["departments"].key(&[]).unwrap()
        };
        assert_eq!(key("mysql://u:one@h/d"), key("mysql://u:t:w@o@h/d"));
        assert_eq!(key("postgres://u@h/d?password=one"), key("postgres://u@h/d?password=two"));
        for (one, other) in [
            ("mysql://u:one@h/d", "mysql://v:one@h/d"),
            ("mysql://u:one@h/d", "mysql://u:one@i/d"),
            ("mysql://u:one@h/d", "mysql://u:one@h/e"),
            ("postgres://u@h/d?options=a", "postgres://u@h/d?options=b"),
            ("sqlite:a:b@c", "sqlite:a:d@c"),
        ] {
            assert_ne!(key(one), key(other));
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_reason() {
        let with = |from: &str, to: &str| Views::parse(&FILE.replace(from, to)).unwrap_err();
        assert!(with("sqlite::memory:", "oracle:x").contains("database main"));
        assert!(with(":rows\"", ":lines\"").contains("no parameter lines"));
        let error = with("sqlite::memory:", "mysql://h/d?require_ssl=true");
        assert!(error.contains("database main: its url says require_ssl=true"), "{error}");
        assert!(with("ttl = 60", "ttl = 0").contains("ttl"));
        assert!(with(":memory:\"", ":memory:\"\ntimeout = 0").contains("timeout"));
        assert!(with("default = 10", "default = 0").contains("out of range"));
        assert!(with("default = 10", "default = \"x\"").contains("another type"));
        assert!(with("ttl = 60", "tttl = 60").contains("tttl"));
        let url = "url = \"sqlite::memory:\"";
        let error = with(url, "url = \"mysql://u:secret@h/d\" x");
        assert!(error.contains("line 3") && !error.contains("secret"), "{error}");
        assert!(
            with("[databases.main]\n        url = \"sqlite::memory:\"", "").contains("no database")
        );
    }
}
