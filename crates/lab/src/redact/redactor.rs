//! How secrets are recognised, and how they are hidden.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::lexer::{Token, tokens};

/// The text in place of a secret.
pub(crate) const WITHHELD: &str = "(withheld)";

/// A shorter secret is hidden where it stands and not looked for elsewhere: it would be found in
/// all kinds of words.
const SHORTEST: usize = 4;
/// A shorter secret is recognised as a whole word only.
const FOUND_ANYWHERE: usize = 8;

/// Parts of names, between hyphens, underscores and dots, that mark a secret.
const SECRET_PARTS: [&str; 18] = [
    "auth",
    "pass",
    "pwd",
    "passwd",
    "password",
    "passphrase",
    "secret",
    "token",
    "cookie",
    "session",
    "credential",
    "credentials",
    "authorization",
    "authentication",
    "signature",
    "apikey",
    "bearer",
    "jwt",
];
/// Texts that mark a secret anywhere in a name.
const SECRET_PIECES: [&str; 12] = [
    "requirepass",
    "masterauth",
    "primaryauth",
    "masteruser",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api-key",
    "api_key",
];
/// Values that reveal nothing under any name; and the schemes of headers.
const PLAIN: [&str; 10] =
    ["true", "false", "none", "null", "default", "bearer", "basic", "digest", "token", WITHHELD];

/// Hides secrets, and remembers them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    values: BTreeSet<String>,
}

/// Whether a value of this name is a secret: an option, a setting, a header, a parameter.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    let mut parts = name.split(['-', '_', '.', '$']);
    parts.any(|part| SECRET_PARTS.contains(&part))
        || SECRET_PIECES.iter().any(|piece| name.contains(piece))
}

/// Whether a text stands for a value and is not one itself.
fn is_placeholder(text: &str) -> bool {
    text.starts_with("__") || text.starts_with('{')
}

/// The kind of a text that may contain a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text: a file, a command, a path, an error.
    Text,
    /// Sentences for a reader: only addresses are looked at.
    Prose,
}

impl Redactor {
    /// Hides this wherever it is met.
    pub(crate) fn learn(&mut self, secret: &str) {
        let is_plain = PLAIN.iter().any(|plain| secret.eq_ignore_ascii_case(plain));
        if secret.chars().count() >= SHORTEST && !is_placeholder(secret) && !is_plain {
            self.values.insert(secret.to_owned());
        }
    }

    /// Hides the secrets among these wherever they appear.
    pub(crate) fn learn_words(&mut self, words: &[String]) {
        self.words(words);
    }

    /// The words of a command, without the secrets among them.
    pub(crate) fn words(&mut self, words: &[String]) -> Vec<String> {
        let tokens: Vec<Token<'_>> =
            words.iter().enumerate().map(|(place, word)| Token::word(word, place == 0)).collect();
        self.hidden(&tokens).into_iter().map(Cow::into_owned).collect()
    }

    /// A text without the secrets in it.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let tokens = tokens(text);
        let hidden = self.hidden(&tokens);
        let mut shown = String::with_capacity(text.len());
        let mut from = 0;
        for (token, hidden) in tokens.iter().zip(hidden) {
            shown.push_str(&text[from..token.at]);
            shown.push_str(&hidden);
            from = token.at + token.text.len();
        }
        shown.push_str(&text[from..]);
        shown
    }

    /// Hides what looks like a secret, and remembers it.
    pub(super) fn look(&mut self, kind: Kind, text: &mut String) {
        *text = match kind {
            Kind::Text => self.text(text),
            Kind::Prose => self.person(text),
        };
    }

    /// Hides known secrets.
    pub(super) fn replace(&self, text: &mut String) {
        for secret in &self.values {
            if text.contains(secret.as_str()) {
                *text = without(text, secret);
            }
        }
    }

    /// The text to show for each token.
    fn hidden<'a>(&mut self, tokens: &[Token<'a>]) -> Vec<Cow<'a, str>> {
        let mut shown = Vec::with_capacity(tokens.len());
        let mut command = Command::default();
        for (place, token) in tokens.iter().enumerate() {
            let before = place.checked_sub(1).and_then(|place| tokens.get(place));
            let is_hidden = command.hides(token, before);
            if is_hidden && !token.text.is_empty() {
                // As ACL SETUSER has it: with a sign before it.
                self.learn(token.text.trim_start_matches(['>', '<', '#', '!']));
                // After the scheme of a header comes the secret itself.
                if let Some((_, rest)) = token.text.split_once(' ') {
                    self.learn(rest);
                }
                shown.push(WITHHELD.into());
            } else {
                shown.push(self.inside(token));
            }
        }
        shown
    }

    /// A token that is no secret as a whole.
    fn inside<'a>(&mut self, token: &Token<'a>) -> Cow<'a, str> {
        let text = token.text;
        if token.is_quoted && text.contains([' ', '\n', '"', '\'', '{']) {
            return self.text(text).into();
        }
        if !text.contains(['=', ':', '>', '#']) {
            return text.into();
        }
        let text = self.person(text);
        // Parameters of an address or a form, settings, and headers: each a name and a value.
        let mut shown = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = rest.find(['?', '&', ';']).map_or(rest.len(), |at| at + 1);
            let (piece, behind) = rest.split_at(end);
            let value_end = piece.trim_end_matches(['?', '&', ';']).len();
            let (pair, separator) = piece.split_at(value_end);
            match pair.split_once(['=', ':']) {
                // A key such as `session:__rand_int__` is not a secret.
                Some((name, value))
                    if is_secret_name(name) && !value.is_empty() && !is_placeholder(value) =>
                {
                    self.learn(value);
                    shown.push_str(&pair[..=name.len()]);
                    shown.push_str(WITHHELD);
                }
                _ => shown.push_str(pair),
            }
            shown.push_str(separator);
            rest = behind;
        }
        shown.into()
    }

    /// Hides the person in addresses such as `redis://person:password@host`.
    fn person(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("://") {
            let (scheme, behind) = rest.split_at(at + 3);
            shown.push_str(scheme);
            let end = behind.find(['/', '?', '#', ' ', '"', '\'', '\n']).unwrap_or(behind.len());
            rest = behind;
            if let Some((person, _)) = behind[..end].rsplit_once('@') {
                self.learn(person.split_once(':').map_or(person, |(_, password)| password));
                shown.push_str(WITHHELD);
                rest = &behind[person.len()..];
            }
        }
        shown.push_str(rest);
        shown
    }
}

/// Which words of a command are secrets, determined word by word.
#[derive(Default)]
struct Command {
    /// Its name, in capitals; empty before it.
    name: String,
    /// This many of the next words are secrets.
    next: usize,
}

impl Command {
    /// Whether this word is a secret. `before` is the one before it.
    fn hides(&mut self, token: &Token<'_>, before: Option<&Token<'_>>) -> bool {
        if token.begins {
            *self = Command::default();
        }
        let is_value = before.is_some_and(|name| {
            let is_option =
                name.text == "-a" || name.text.starts_with("--") && !name.text.contains('=');
            !token.begins_line
                && (name.is_assigned || is_option)
                && (is_secret_name(name.text) || name.text == "-a")
        });
        if is_value {
            // `Authorization: Bearer word`, without quotes.
            let schemes = ["bearer", "basic", "digest", "token"];
            let scheme = token.text.to_ascii_lowercase();
            self.next = usize::from(!token.is_quoted && schemes.contains(&&*scheme));
            return true;
        }
        if self.next > 0 {
            self.next -= 1;
            return true;
        }
        let word = token.text.to_ascii_uppercase();
        if self.name.is_empty() {
            self.next = if word == "AUTH" { 2 } else { 0 };
            self.name = word;
            return false;
        }
        match (self.name.as_str(), word.as_str()) {
            ("HELLO", "AUTH") | ("MIGRATE", "AUTH2") => self.next = 2,
            ("MIGRATE", "AUTH") => self.next = 1,
            ("CONFIG", _) if is_secret_name(token.text) => self.next = 1,
            ("ACL", _) => return token.text.starts_with(['>', '<', '#', '!']),
            _ => {}
        }
        false
    }
}

/// A text with a secret hidden wherever it stands: a short one only as a whole word.
fn without(text: &str, secret: &str) -> String {
    let is_inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        let in_a_word =
            is_inner(text[..at].chars().next_back()) || is_inner(text[end..].chars().next());
        if secret.len() < FOUND_ANYWHERE && in_a_word {
            continue;
        }
        shown.push_str(&text[from..at]);
        shown.push_str(WITHHELD);
        from = end;
    }
    shown.push_str(&text[from..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Redactor::default().text(text)
    }

    #[test]
    fn names_of_secrets_are_recognised() {
        for name in [
            "requirepass",
            "masterauth",
            "primaryauth",
            "--requirepass",
            "X-Auth-Token",
            "Cookie",
            "Authorization",
            "Proxy-Authorization",
            "x-api-key",
            "access_token",
            "DB_PASSWORD",
            "REDISCLI_AUTH",
            "tls-key-file-pass",
            "client_secret",
            "Set-Cookie",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["keys", "author", "key", "Accept", "maxmemory", "seconds", "compass", "size"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn commands_are_shown_without_passwords() {
        for (text, expected) in [
            ("AUTH hunter2", "AUTH (withheld)"),
            ("auth ann hunter2", "auth (withheld) (withheld)"),
            ("HELLO 3 AUTH ann hunter2 SETNAME x", "HELLO 3 AUTH (withheld) (withheld) SETNAME x"),
            ("CONFIG SET masterauth hunter2", "CONFIG SET masterauth (withheld)"),
            (
                "config set maxmemory 1 requirepass \"a b\" save x",
                "config set maxmemory 1 requirepass \"(withheld)\" save x",
            ),
            ("ACL SETUSER ann on >hunter2 ~*", "ACL SETUSER ann on (withheld) ~*"),
            ("MIGRATE h 1 k 0 9 AUTH hunter2", "MIGRATE h 1 k 0 9 AUTH (withheld)"),
            ("server --requirepass hunter2 --port 1", "server --requirepass (withheld) --port 1"),
            ("server --requirepass=hunter2", "server --requirepass=(withheld)"),
            ("redis-cli -a hunter2", "redis-cli -a (withheld)"),
            ("SET a b", "SET a b"),
            ("GET session:__rand_int__", "GET session:__rand_int__"),
            ("CONFIG SET maxmemory 100", "CONFIG SET maxmemory 100"),
        ] {
            assert_eq!(shown(text), expected);
        }
        let words = ["CONFIG", "SET", "masterauth", "a b"].map(str::to_owned);
        assert_eq!(Redactor::default().words(&words)[3], WITHHELD);
        let words = ["s", "--primaryauth=y", "--masterauth", "", "--dir", "d"].map(str::to_owned);
        let expected = ["s", "--primaryauth=(withheld)", "--masterauth", "", "--dir", "d"];
        assert_eq!(Redactor::default().words(&words), expected);
    }

    #[test]
    fn addresses_headers_and_bodies_are_shown_without_secrets() {
        for (text, expected) in [
            ("GET /a?b=c&token=hunter2&d=e", "GET /a?b=c&token=(withheld)&d=e"),
            ("/login?password=hunter2", "/login?password=(withheld)"),
            ("redis://ann:hunter2@host:1/0", "redis://(withheld)@host:1/0"),
            ("redis://:hunter2@host", "redis://(withheld)@host"),
            ("X-Auth-Token: hunter2", "X-Auth-Token: (withheld)"),
            ("Authorization: Bearer hunter2", "Authorization: (withheld) (withheld)"),
            (r#"{"name":"ann","password":"hunter2"}"#, r#"{"name":"ann","password":"(withheld)"}"#),
            ("user=ann&password=hunter2", "user=ann&password=(withheld)"),
            ("http://host:1/a?b=c", "http://host:1/a?b=c"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn a_file_is_shown_without_secrets() {
        let file = r#"
question = "What does a password cost, and what's a token?"
[values]
word = "hunter2"
[[target]]
kind = "redis"
password = "{word}"
options = { requirepass = "hunter2", maxmemory = "1gb" }
environment = { REDISCLI_AUTH = "hunter2" }
command = ["./server", "--port", "{port}", "--masterauth", "hunter2"]
[[event]]
do = ["CONFIG", "SET", "masterauth", "hunter2"]
[[event]]
do = "AUTH hunter2"
[[load]]
mix = "get:80,AUTH hunter2:20"
keys = "uniform:10"
http = [{ path = "/a?token=hunter2", headers = { "X-Auth-Token" = "hunter2" } }]
"#;
        let mut redactor = Redactor::default();
        let mut text = redactor.text(file);
        redactor.replace(&mut text);
        assert!(!text.contains("hunter2"), "{text}");
        for kept in [
            "What does a password cost, and what's a token?",
            "maxmemory = \"1gb\"",
            "{port}",
            "keys = \"uniform:10\"",
            "kind = \"redis\"",
            "get:80",
        ] {
            assert!(text.contains(kept), "{kept} is missing in {text}");
        }
        assert!(!text.contains("\"(withheld)\"0"), "{text}");
    }

    #[test]
    fn a_secret_that_is_known_is_hidden_everywhere() {
        let mut redactor = Redactor::default();
        redactor.learn("hunter2");
        redactor.learn("long-secret");
        redactor.learn("abc");
        redactor.learn("__rand_int__");
        let mut text = "hunter2 hunter22 xlong-secretx abc __rand_int__ 'hunter2'".to_owned();
        redactor.replace(&mut text);
        assert_eq!(text, "(withheld) hunter22 x(withheld)x abc __rand_int__ '(withheld)'");
    }
}
