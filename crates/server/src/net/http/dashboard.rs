//! The dashboard: one page with its style and its script, which a browser is given as they are.
//!
//! The page holds no data. Its script asks for that with the requests that any client has, and shows
//! the password where there is one. So the page itself is for everybody.

use http::request::Head;

use super::prepared::Prepared;

const PAGE: &str = include_str!("dashboard/page.html");
const STYLE: &str = include_str!("dashboard/page.css");
const SCRIPT: &str = include_str!("dashboard/page.js");

/// Nothing but these three files runs in the page, and it talks to nobody but this server. Where a value
/// of a key got into it as markup, it would stay without effect.
const POLICY: &[u8] =
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Whether a request is for one of the files. At `/` only browsers get the page: it is an address of
/// commands, too.
pub(super) fn is_asked_for(head: &Head<'_>, path: &[u8]) -> bool {
    if !matches!(head.method, "GET" | "HEAD") {
        return false;
    }
    match path {
        b"/" => {
            let accept = head.header("accept").unwrap_or_default();
            memchr::memmem::find(accept, b"text/html").is_some()
        }
        b"/v1/dashboard.css" | b"/v1/dashboard.js" => true,
        _ => false,
    }
}

/// The file at one of these addresses.
pub(super) fn file(path: &[u8]) -> Prepared {
    let (content_type, text) = match path {
        b"/v1/dashboard.css" => ("text/css; charset=utf-8", STYLE),
        b"/v1/dashboard.js" => ("text/javascript; charset=utf-8", SCRIPT),
        _ => ("text/html; charset=utf-8", PAGE),
    };
    let headers: Vec<(&'static str, Vec<u8>)> = vec![
        ("Content-Security-Policy", POLICY.to_vec()),
        ("X-Content-Type-Options", b"nosniff".to_vec()),
        ("Referrer-Policy", b"no-referrer".to_vec()),
        ("Cross-Origin-Opener-Policy", b"same-origin".to_vec()),
        ("Cache-Control", b"no-cache".to_vec()),
    ];
    Prepared { status: 200, headers, content_type, body: text.into() }
}
