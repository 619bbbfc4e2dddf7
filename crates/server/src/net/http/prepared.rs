//! Answers that depend on no command.

use std::borrow::Cow;

use config::Config;
use engine::engine::Engine;
use http::answer::JSON;
use http::json;

/// An answer that depends on no command.
pub(super) struct Prepared {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, Vec<u8>)>,
    pub(super) content_type: &'static str,
    pub(super) body: Cow<'static, [u8]>,
}

impl Prepared {
    /// An error, with its reason as JSON.
    pub(super) fn error(status: u16, reason: &str) -> Prepared {
        let mut body = b"{\"error\":".to_vec();
        json::write_str(&mut body, reason);
        body.push(b'}');
        Prepared::json(status, body)
    }

    pub(super) fn json(status: u16, body: Vec<u8>) -> Prepared {
        Prepared { status, headers: Vec::new(), content_type: JSON, body: body.into() }
    }

    pub(super) fn status(status: u16, word: &str) -> Prepared {
        let mut body = b"{\"status\":".to_vec();
        json::write_str(&mut body, word);
        body.push(b'}');
        Prepared::json(status, body)
    }

    /// Whether clients should be sent here.
    pub(super) fn readiness(engine: &Engine, config: &Config) -> Prepared {
        match engine.unreadiness(config) {
            Some(reason) => Prepared::status(503, &reason),
            None => Prepared::status(200, "ready"),
        }
    }
}

/// An error of a command, as this server says it to clients of its own addresses: some have the
/// words of Redis, which clients of Redis look for.
pub(super) fn in_own_words(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(at) = memchr::memmem::find(text, b"Redis") else { return Cow::Borrowed(text) };
    let rest = in_own_words(&text[at + b"Redis".len()..]);
    Cow::Owned([&text[..at], b"Dunlin", &rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_this_server() {
        for (text, own) in [
            ("LOADING Redis is loading", "LOADING Dunlin is loading"),
            ("Redis and Redis", "Dunlin and Dunlin"),
            ("ERR no such key", "ERR no such key"),
        ] {
            assert_eq!(in_own_words(text.as_bytes()), own.as_bytes());
        }
    }
}
