//! Where etcd is, and how it is asked.

use std::time::Duration;

use tls::ClientSettings;

/// The port that etcd's members have for clients where none is named.
const USUAL_PORT: u16 = 2379;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Config {
    /// The members' addresses for clients, such as `https://etcd-1:2379`. Without a scheme it is
    /// `http`, without a port 2379.
    pub endpoints: Vec<String>,
    /// Name and password of a user of etcd.
    pub user: Option<(String, String)>,
    /// For addresses with `https`.
    pub tls: ClientSettings,
    /// How long one member may take to answer, in milliseconds.
    pub attempt_ms: u64,
    /// After how long a silent watch is opened anew, in milliseconds. A member that stands still
    /// is noticed by that.
    pub silence_ms: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            endpoints: Vec::new(),
            user: None,
            tls: ClientSettings::default(),
            attempt_ms: 1000,
            silence_ms: 3000,
        }
    }
}

impl Config {
    pub(crate) fn attempt(&self) -> Duration {
        Duration::from_millis(self.attempt_ms)
    }

    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(self.silence_ms)
    }
}

/// An address with all its parts, without a slash at its end.
///
/// # Errors
/// It is none.
pub fn endpoint(text: &str) -> Result<String, String> {
    let wrong = || {
        // A password may stand before it.
        let shown = text.rfind('@').map_or(text.to_owned(), |at| format!("...{}", &text[at..]));
        format!("'{shown}' is no address of etcd such as http://127.0.0.1:2379")
    };
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let place = rest.strip_suffix('/').unwrap_or(rest);
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]%".contains(letter);
    if !matches!(scheme, "http" | "https") || !place.chars().all(is_known) {
        return Err(wrong());
    }
    // The colons of an address of IPv6 stand in brackets.
    let (host, port) = match place.rfind(':') {
        Some(colon) if !place[colon..].contains(']') => {
            (&place[..colon], place[colon + 1..].parse::<u16>().map_err(|_| wrong())?)
        }
        _ => (place, USUAL_PORT),
    };
    let is_bare = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || port == 0 || is_bare {
        return Err(wrong());
    }
    Ok(format!("{scheme}://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (text, expected) in [
            ("http://h:1", "http://h:1"),
            ("https://h", "https://h:2379"),
            ("127.0.0.1", "http://127.0.0.1:2379"),
            ("etcd-1:2380/", "http://etcd-1:2380"),
            ("[::1]", "http://[::1]:2379"),
            ("https://[::1]:9", "https://[::1]:9"),
        ] {
            assert_eq!(endpoint(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in
            ["", "ftp://h", "h:0", "h:x", "h:70000", "::1", "h/path", "u@h", "http://", "h o"]
        {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
        for text in ["http://u:secret@h", "u:secret@h:1", "http://u:secret@h/p@q"] {
            let why = endpoint(text).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
