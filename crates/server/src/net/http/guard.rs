//! Who sends a request, and whether it may come from there.
//!
//! A web page can make a browser send requests to any address. So a browser's request is accepted
//! only from pages that `http-cors-origins` names or that came from this server. A request to a
//! host name is accepted only if that name is known: otherwise a page could make its own name point
//! at this server.

use config::Config;
use engine::session::{DEFAULT_USER, User};
use http::request::Head;
use http::target::Target;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longest credentials that are looked at.
const LONGEST_CREDENTIALS: usize = 4096;

/// Who sends a request. There is one user, with all rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    /// It has shown the password.
    pub(super) has_proof: bool,
}

/// The sender of a request: the one place where HTTP finds that out. `None` when the credentials
/// are wrong, or missing although there is a password. `token` is a password that the address
/// contains.
pub(super) fn user(head: &Head<'_>, token: Option<&[u8]>, config: &Config) -> Option<Sender> {
    if config.requirepass.is_empty() {
        return Some(Sender { has_proof: false });
    }
    let Some(credentials) = head.header("authorization") else {
        let token = token.filter(|token| token.len() <= LONGEST_CREDENTIALS)?;
        return is_password(config, token).then_some(Sender { has_proof: true });
    };
    let (scheme, rest) = credentials.split_at(credentials.iter().position(|byte| *byte == b' ')?);
    let rest = rest.trim_ascii();
    if rest.len() > LONGEST_CREDENTIALS {
        return None;
    }
    let right = if scheme.eq_ignore_ascii_case(b"bearer") {
        is_password(config, rest)
    } else if scheme.eq_ignore_ascii_case(b"basic") {
        let pair = STANDARD.decode(rest).ok()?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        (colon == 0 || &pair[..colon] == DEFAULT_USER) && is_password(config, &pair[colon + 1..])
    } else {
        false
    };
    right.then_some(Sender { has_proof: true })
}

fn is_password(config: &Config, password: &[u8]) -> bool {
    User::log_in(config, DEFAULT_USER, password).is_some()
}

/// Why a request may not come from where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectedOrigin {
    /// Its host name is not known here.
    Host,
    /// HTTP/1.1 asks for exactly one host.
    NoHost,
    /// It comes from a web page of another site.
    Page,
}

/// Where a request comes from: the page that may read the answer, if a page has sent it.
pub(super) fn origin<'h>(
    head: &Head<'h>,
    target: &Target<'_>,
    config: &Config,
    user: Option<Sender>,
) -> Result<Option<&'h [u8]>, RejectedOrigin> {
    let mut hosts = head.all("host");
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => Some(host),
        (None, _) if head.is_1_0 => None,
        _ => return Err(RejectedOrigin::NoHost),
    };
    let host = target.authority.or(host);
    let has_proof = user.is_some_and(|user| user.has_proof);
    if !has_proof && !knows_host(host, config) {
        return Err(RejectedOrigin::Host);
    }
    let Some(origin) = head.header("origin") else {
        // Without an origin, a browser at least says that another site has sent it.
        let site = head.header("sec-fetch-site");
        return match site {
            Some(b"cross-site" | b"same-site") => Err(RejectedOrigin::Page),
            _ => Ok(None),
        };
    };
    let allowed = config.http_cors_origins.iter().any(|own| own == b"*" || own == origin);
    let own = host.is_some_and(|host| {
        let page = origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://"));
        page == Some(host)
    });
    if allowed || own { Ok(Some(origin)) } else { Err(RejectedOrigin::Page) }
}

fn knows_host(host: Option<&[u8]>, config: &Config) -> bool {
    host.is_none_or(|host| is_known(name_of(host), config))
}

/// Whether a request by an unknown host name may be that of a program that looks after the server:
/// it asks how the server is. Docker and Kubernetes give the server names that its settings do not
/// have. A page that has made its own name point at this server may ask the same, so the answers
/// contain no data: [`may_see_keys`].
pub(super) fn is_of_a_probe(head: &Head<'_>, path: &[u8]) -> bool {
    matches!(path, b"/healthz" | b"/readyz" | b"/health" | b"/metrics")
        && matches!(head.method, "GET" | "HEAD")
        && head.header("origin").is_none()
        && head.header("sec-fetch-site").is_none()
}

/// Whether metrics for this request may name keys: not if it is let in only as [`is_of_a_probe`].
pub(super) fn may_see_keys(head: &Head<'_>, target: &Target<'_>, config: &Config) -> bool {
    // With a password, the request has shown it.
    !config.requirepass.is_empty() || knows_host(target.authority.or(head.header("host")), config)
}

/// Whether a browser has sent a GET without saying for which page. Browsers say so only to
/// `localhost` and over TLS: to the address of another machine, any page can make a browser send
/// one, as an image's address. But no page can add a token.
pub(super) fn may_be_of_any_page(head: &Head<'_>) -> bool {
    let begins = |name: &str, text: &[u8]| {
        let value = head.header(name).and_then(|value| value.get(..text.len()));
        value.is_some_and(|value| value.eq_ignore_ascii_case(text))
    };
    begins("user-agent", b"Mozilla/")
        && !begins("authorization", b"Bearer ")
        && head.header("origin").is_none()
        && head.header("sec-fetch-site").is_none()
}

/// The name in a host, without its port.
fn name_of(host: &[u8]) -> &[u8] {
    if host.starts_with(b"[") {
        let end = host.iter().position(|byte| *byte == b']');
        return &host[..end.map_or(host.len(), |end| end + 1)];
    }
    host.split(|byte| *byte == b':').next().unwrap_or_default()
}

/// Whether a host name can only be this server's: an address is no page's name, `localhost` is
/// every machine's own, and the others are those in the settings.
fn is_known(name: &[u8], config: &Config) -> bool {
    // No public name ends in a number, so this is an address.
    let is_address = !name.is_empty() && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    is_address
        || name.eq_ignore_ascii_case(b"localhost")
        || (name.starts_with(b"[") && name.ends_with(b"]"))
        || config.http_host_names.iter().any(|own| own == b"*" || own.eq_ignore_ascii_case(name))
}

/// The answer to a connection that is refused before anything was read.
pub(in crate::net) fn refuse(status: u16, error: &[u8]) -> resp::output::Output {
    let text = error.strip_prefix(b"-").unwrap_or(error).trim_ascii_end();
    let now = base::clock::now_us() / 1000;
    let mut output = resp::output::Output::new();
    let envelope = http::answer::Envelope { close: true, ..Default::default() };
    http::answer::Answer::begin(&mut output, &envelope, status, now).error(text);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(lines: &str, action: impl FnOnce(&Head<'_>) -> T) -> T {
        let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        http::request::with_head(text.as_bytes(), action).unwrap()
    }

    fn config(password: &str) -> Config {
        Config { requirepass: password.into(), ..Config::default() }
    }

    #[test]
    fn the_password_comes_as_a_token_or_with_a_name() {
        let user = |header: &str, password: &str| {
            with(&format!("Authorization: {header}\r\n"), |head| {
                user(head, Some(b"se:cret"), &config(password))
            })
        };
        let proof = Some(Sender { has_proof: true });
        assert_eq!(user("Bearer secret", "secret"), proof);
        assert_eq!(user("bearer  secret", "secret"), proof);
        assert_eq!(user("Basic ZGVmYXVsdDpzZTpjcmV0", "se:cret"), proof);
        assert_eq!(user("Basic OnNlOmNyZXQ=", "se:cret"), proof);
        for wrong in ["Bearer secret2", "Bearer", "Basic secret", "Basic cm9vdDpzZTpjcmV0", "x", ""]
        {
            assert_eq!(user(wrong, "se:cret"), None, "{wrong}");
        }
        assert_eq!(user("Bearer any", ""), Some(Sender { has_proof: false }));
        let by_token = |token| with("", |head| super::user(head, token, &config("secret")));
        assert_eq!(by_token(None), None);
        assert_eq!(by_token(Some(&b"wrong"[..])), None);
        assert_eq!(by_token(Some(&b"secret"[..])), proof);
    }

    fn origin_of(
        lines: &str,
        config: &Config,
        proof: bool,
    ) -> Result<Option<String>, RejectedOrigin> {
        let target = Target::split(b"/").unwrap();
        let user = Some(Sender { has_proof: proof });
        let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        with(lines, |head| origin(head, &target, config, user).map(|origin| origin.map(text)))
    }

    #[test]
    fn only_known_host_names_are_answered() {
        let mut config = config("");
        for known in ["127.0.0.1:8379", "localhost", "LOCALHOST:1", "[::1]:8379", "10.0.0.1"] {
            assert_eq!(origin_of(&format!("Host: {known}\r\n"), &config, false), Ok(None));
        }
        for name in ["evil.example", "localhost.evil.example:8379", "127.0.0.1.evil.example", ""] {
            let lines = format!("Host: {name}\r\n");
            assert_eq!(origin_of(&lines, &config, false), Err(RejectedOrigin::Host), "{name}");
            assert_eq!(origin_of(&lines, &config, true), Ok(None), "a password proves more");
        }
        config.http_host_names = vec![b"cache.example".to_vec()];
        assert_eq!(origin_of("Host: Cache.example:1\r\n", &config, false), Ok(None));
        assert_eq!(origin_of("", &config, false), Err(RejectedOrigin::NoHost));
        let twice = "Host: localhost\r\nHost: localhost\r\n";
        assert_eq!(origin_of(twice, &config, false), Err(RejectedOrigin::NoHost));
    }

    #[test]
    fn probes_may_use_any_host_name() {
        let is_probe = |lines: &str, path: &[u8]| with(lines, |head| is_of_a_probe(head, path));
        for path in [&b"/healthz"[..], b"/readyz", b"/health", b"/metrics"] {
            assert!(is_probe("Host: dunlin:8379\r\n", path));
            assert!(!is_probe("Origin: http://dunlin:8379\r\n", path));
            assert!(!is_probe("Sec-Fetch-Site: same-origin\r\n", path));
        }
        for path in [&b"/v1/keys/k"[..], b"/", b"/v1/hotkeys", b"/get/k"] {
            assert!(!is_probe("Host: dunlin:8379\r\n", path));
        }
        let target = Target::split(b"/metrics").unwrap();
        let sees = |host: &str, password: &str| {
            let lines = format!("Host: {host}\r\n");
            with(&lines, |head| may_see_keys(head, &target, &config(password)))
        };
        assert!(sees("localhost", "") && sees("dunlin", "secret") && !sees("dunlin", ""));
    }

    #[test]
    fn a_browser_that_names_no_page_may_have_been_sent_by_any() {
        let browser = "User-Agent: Mozilla/5.0 (X11; Linux) Gecko\r\n";
        let may = |lines: &str| with(&format!("{browser}{lines}"), may_be_of_any_page);
        assert!(may(""));
        assert!(may("Authorization: Basic OnNlY3JldA==\r\n"), "browsers send that by themselves");
        for known in ["Sec-Fetch-Site: none", "Origin: http://a", "Authorization: bearer any"] {
            assert!(!may(&format!("{known}\r\n")), "{known}");
        }
        assert!(!with("User-Agent: curl/8.0\r\n", may_be_of_any_page));
        assert!(!with("", may_be_of_any_page));
    }

    #[test]
    fn pages_of_others_are_refused() {
        let mut config = config("");
        let lines = "Host: localhost:8379\r\nOrigin: https://page.example\r\n";
        assert_eq!(origin_of(lines, &config, false), Err(RejectedOrigin::Page));
        assert_eq!(origin_of(lines, &config, true), Err(RejectedOrigin::Page));
        let image = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n";
        assert_eq!(origin_of(image, &config, false), Err(RejectedOrigin::Page));
        let own = "Host: localhost:8379\r\nOrigin: http://localhost:8379\r\n";
        assert_eq!(origin_of(own, &config, false), Ok(Some("http://localhost:8379".into())));
        config.http_cors_origins = vec![b"https://page.example".to_vec()];
        assert_eq!(origin_of(lines, &config, false), Ok(Some("https://page.example".into())));
    }
}
