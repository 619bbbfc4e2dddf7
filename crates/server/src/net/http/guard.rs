//! Who sends a request, and whether it may come from there.
//!
//! A web page can make a browser send requests to any address. So a browser's request is accepted
//! only from pages that `http-cors-origins` names or that came from this server. A request to a
//! host name is accepted only if that name is known: otherwise a page could make its own name point
//! at this server.

use config::Config;
use engine::session::User;
use engine::users::{DEFAULT_USER, Users};
use http::request::Head;
use http::target::Target;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longest credentials that are looked at.
const LONGEST_CREDENTIALS: usize = 4096;

/// Who sends a request.
#[derive(Clone)]
pub(super) struct Sender {
    /// The user.
    pub(super) user: User,
    /// How it has shown that.
    pub(super) proof: Proof,
}

/// How a request shows who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Not at all: the default user takes any password.
    None,
    /// By a certificate with which the connection was opened. A browser has sent it without being
    /// asked, for whichever page.
    Certificate,
    /// By a password.
    Password,
}

impl Sender {
    /// Whether it has shown that it is that user.
    pub(super) fn has_proof(&self) -> bool {
        self.proof != Proof::None
    }
}

/// What a request shows of its sender.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    /// The name of the user.
    pub(super) name: Vec<u8>,
    password: Vec<u8>,
}

impl Credentials {
    /// Those of a request, if it has any. A token is the password of the default user, or the name
    /// of a user and its password with a colon between them; `token` is one that the address
    /// contains. `None` in place of credentials that cannot be read.
    pub(super) fn of(head: &Head<'_>, token: Option<&[u8]>, users: &Users) -> Option<Option<Self>> {
        let Some(credentials) = head.header("authorization") else {
            let token = token?;
            let fits = token.len() <= LONGEST_CREDENTIALS;
            return Some(fits.then(|| Credentials::of_token(token, users)));
        };
        let space = credentials.iter().position(|byte| *byte == b' ');
        let (scheme, rest) = credentials.split_at(space.unwrap_or(credentials.len()));
        let rest = rest.trim_ascii();
        if space.is_none() || rest.len() > LONGEST_CREDENTIALS {
            return Some(None);
        }
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(Some(Credentials::of_token(rest, users)));
        }
        let is_basic = scheme.eq_ignore_ascii_case(b"basic");
        let pair = is_basic.then(|| STANDARD.decode(rest).ok()).flatten();
        Some(pair.and_then(|pair| {
            let colon = pair.iter().position(|byte| *byte == b':')?;
            Some(Credentials::new(&pair[..colon], &pair[colon + 1..]))
        }))
    }

    fn new(name: &[u8], password: &[u8]) -> Credentials {
        let name = if name.is_empty() { DEFAULT_USER } else { name };
        Credentials { name: name.to_vec(), password: password.to_vec() }
    }

    fn of_token(token: &[u8], users: &Users) -> Credentials {
        let named = token.iter().position(|byte| *byte == b':').filter(|colon| {
            let name = &token[..*colon];
            name != DEFAULT_USER && users.find(name).is_some()
        });
        match named {
            Some(colon) => Credentials::new(&token[..colon], &token[colon + 1..]),
            None => Credentials::new(DEFAULT_USER, token),
        }
    }
}

/// The sender of a request with these credentials: the one place where HTTP finds that out. Without
/// any it is the user whom the client's certificate names, by one of these names. `None` when they
/// are wrong, or missing although they are needed.
pub(super) fn sender(
    credentials: Option<&Option<Credentials>>,
    certificate_names: &[Vec<u8>],
    users: &Users,
) -> Option<Sender> {
    let anybody =
        || users.is_open().then(|| Sender { user: User::at_first(users), proof: Proof::None });
    if credentials.is_none()
        && let Some(user) = User::by_certificate(users, certificate_names)
    {
        return Some(Sender { user, proof: Proof::Certificate });
    }
    let Some(Some(Credentials { name, password })) = credentials else { return anybody() };
    let is_default = name == DEFAULT_USER;
    if is_default && users.is_open() {
        return anybody();
    }
    let user = User::log_in(users, name, password)?;
    Some(Sender { user, proof: Proof::Password })
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
    user: Option<&Sender>,
) -> Result<Option<&'h [u8]>, RejectedOrigin> {
    let mut hosts = head.all("host");
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => Some(host),
        (None, _) if head.is_1_0 => None,
        _ => return Err(RejectedOrigin::NoHost),
    };
    let host = target.authority.or(host);
    let has_proof = user.is_some_and(Sender::has_proof);
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
    // Pages that nobody has named must not act as the user whose certificate the browser has.
    let takes_all = user.is_none_or(|user| user.proof != Proof::Certificate);
    let is_taken = |own: &Vec<u8>| own == origin || (own == b"*" && takes_all);
    let allowed = config.http_cors_origins.iter().any(is_taken);
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
pub(super) fn may_see_keys(
    head: &Head<'_>,
    target: &Target<'_>,
    config: &Config,
    has_proof: bool,
) -> bool {
    // A password proves more.
    has_proof || knows_host(target.authority.or(head.header("host")), config)
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

    fn users(password: &str) -> Users {
        Users::new(commands::registry().catalog(), password.as_bytes())
    }

    /// Who a request with such a header is: the name, and whether it has shown a password.
    fn sent_by(lines: &str, token: Option<&[u8]>, users: &Users) -> Option<(Vec<u8>, bool)> {
        let credentials = with(lines, |head| Credentials::of(head, token, users));
        let sender = sender(credentials.as_ref(), &[], users)?;
        Some((sender.user.name().to_vec(), sender.has_proof()))
    }

    #[test]
    fn the_password_comes_as_a_token_or_with_a_name() {
        let by = |header: &str, password: &str| {
            let line = format!("Authorization: {header}\r\n");
            sent_by(&line, Some(b"se:cret"), &users(password))
        };
        let proof = Some((b"default".to_vec(), true));
        assert_eq!(by("Bearer secret", "secret"), proof);
        assert_eq!(by("bearer  secret", "secret"), proof);
        assert_eq!(by("Basic ZGVmYXVsdDpzZTpjcmV0", "se:cret"), proof);
        assert_eq!(by("Basic OnNlOmNyZXQ=", "se:cret"), proof);
        for wrong in ["Bearer secret2", "Bearer", "Basic secret", "Basic cm9vdDpzZTpjcmV0", "x", ""]
        {
            assert_eq!(by(wrong, "se:cret"), None, "{wrong}");
        }
        assert_eq!(by("Bearer any", ""), Some((b"default".to_vec(), false)));
        let by_token = |token| sent_by("", token, &users("secret"));
        assert_eq!(by_token(None), None);
        assert_eq!(by_token(Some(&b"wrong"[..])), None);
        assert_eq!(by_token(Some(&b"secret"[..])), proof);
    }

    #[test]
    fn a_token_may_have_the_name_of_a_user() {
        let users = users("p:w");
        let rules = [b"on".to_vec(), b">se:cret".to_vec()];
        assert!(users.set(b"app", &rules, false).is_ok());
        let by = |token: &str| sent_by(&format!("Authorization: Bearer {token}\r\n"), None, &users);
        assert_eq!(by("app:se:cret"), Some((b"app".to_vec(), true)));
        assert_eq!(by("app:cret"), None);
        assert_eq!(by("se:cret"), None);
        assert_eq!(by("p:w"), Some((b"default".to_vec(), true)), "there is no user p");
    }

    fn origin_of(
        lines: &str,
        config: &Config,
        proof: bool,
    ) -> Result<Option<String>, RejectedOrigin> {
        let target = Target::split(b"/").unwrap();
        let proof = if proof { Proof::Password } else { Proof::None };
        let sender = Sender { user: User::nobody(), proof };
        let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        with(lines, |head| {
            origin(head, &target, config, Some(&sender)).map(|origin| origin.map(text))
        })
    }

    #[test]
    fn only_known_host_names_are_answered() {
        let mut config = Config::default();
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
        let sees = |host: &str, proof: bool| {
            let lines = format!("Host: {host}\r\n");
            with(&lines, |head| may_see_keys(head, &target, &Config::default(), proof))
        };
        assert!(sees("localhost", false) && sees("dunlin", true) && !sees("dunlin", false));
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
        let mut config = Config::default();
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

    #[test]
    fn a_certificate_names_the_sender_unless_credentials_do() {
        let users = users("secret");
        for (name, rules) in [("app", vec![b"on".to_vec()]), ("gone", Vec::new())] {
            assert!(users.set(name.as_bytes(), &rules, false).is_ok());
        }
        let by = |lines: &str, names: &[&str]| {
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let credentials = with(lines, |head| Credentials::of(head, None, &users));
            let sender = sender(credentials.as_ref(), &names, &users)?;
            Some((String::from_utf8_lossy(sender.user.name()).into_owned(), sender.proof))
        };
        assert_eq!(by("", &["gone", "app"]), Some(("app".into(), Proof::Certificate)));
        for names in [&["gone"][..], &["nobody"], &[]] {
            assert_eq!(by("", names), None, "{names:?}");
        }
        let given = "Authorization: Bearer secret\r\n";
        assert_eq!(by(given, &["app"]), Some(("default".into(), Proof::Password)));
        for wrong in ["Authorization: Bearer wrong\r\n", "Authorization: what\r\n"] {
            assert_eq!(by(wrong, &["app"]), None, "{wrong}");
        }
    }

    #[test]
    fn only_pages_that_are_named_act_with_the_certificate_of_a_browser() {
        let target = Target::split(b"/").unwrap();
        let sender = Sender { user: User::nobody(), proof: Proof::Certificate };
        let mut config = Config::default();
        let comes = |lines: &str, config: &Config| {
            with(lines, |head| origin(head, &target, config, Some(&sender)).is_ok())
        };
        let page = "Host: db.example\r\nOrigin: https://page.example\r\n";
        assert!(comes("Host: db.example\r\n", &config), "the client has looked at the name");
        assert!(comes("Host: db.example\r\nOrigin: https://db.example\r\n", &config));
        assert!(!comes(page, &config));
        assert!(!comes("Host: db.example\r\nSec-Fetch-Site: cross-site\r\n", &config));
        config.http_cors_origins = vec![b"*".to_vec()];
        assert!(!comes(page, &config));
        config.http_cors_origins.push(b"https://page.example".to_vec());
        assert!(comes(page, &config));
    }
}
