//! The dashboard: one page with its style and its script, which browsers get as they are.
//!
//! The page contains no data. Its script asks for data with the same requests as any client, and
//! sends the password if there is one. So the page itself needs no password.

use http::request::Head;

use super::prepared::Prepared;

const PAGE: &str = include_str!("dashboard/page.html");
const STYLE: &str = include_str!("dashboard/page.css");
/// One script, written in a file for each part of the page.
const SCRIPT: &str = concat!(
    include_str!("dashboard/page.js"),
    include_str!("dashboard/overview.js"),
    include_str!("dashboard/memory.js"),
    include_str!("dashboard/keys.js"),
    include_str!("dashboard/sections.js"),
);

/// Only these three files run in the page, and it talks only to this server. A value of a key that
/// got into it as markup would have no effect.
const POLICY: &[u8] =
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Whether a request is for one of the files. At `/` only browsers get the page: `/` is an address
/// for commands, too.
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

/// What a program or a person finds at `/` that does not ask for the page.
pub(super) fn what_is_here() -> Vec<u8> {
    let all = serde_json::json!({
        "server": "Dunlin",
        "version": env!("CARGO_PKG_VERSION"),
        "dashboard": "open / in a browser",
        "openapi": "/v1/openapi.json",
        "keys": "/v1/keys/{key}",
        "command": "POST /v1/command",
        "changes": "/v1/changes",
        "overview": "/v1/overview",
        "metrics": "/metrics",
        "health": "/healthz",
    });
    all.to_string().into_bytes()
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
    Prepared { status: 200, headers, content_type, body: text.as_bytes().into() }
}
