//! The dashboard in a browser: `clients/dashboard.js` drives Debian's Chromium through Playwright.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use tests::peers;
use tests::server::{Server, repository};
use tests::web::Web;

/// One browser at a time: it is a large program, and each look has a bound.
static BROWSER: Mutex<()> = Mutex::new(());

/// Runs a part of the script against a server.
fn play(server: &Server, port: u16, part: &str) -> Result<()> {
    let _one = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new("timeout")
        .args(["120", "node"])
        .arg(repository().join("tests/tests/clients/dashboard.js"))
        .args([&port.to_string(), part])
        .env("NODE_PATH", peers::directory().join("node/node_modules"))
        .stdin(Stdio::null())
        .output()?;
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}\n{complaints}\nthe log:\n{}", server.log_tail());
    Ok(())
}

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    Server::start_with_http(&[&[("threads", "2"), ("appendonly", "yes")], options].concat())
}

#[test]
fn every_section_shows_what_there_is() -> Result<()> {
    let (server, port) = start(&[("slowlog-log-slower-than", "0")])?;
    play(&server, port, "sections")
}

#[test]
fn keys_of_all_types_are_read_and_changed() -> Result<()> {
    let (server, port) = start(&[])?;
    play(&server, port, "keys")
}

#[test]
fn the_last_minutes_are_kept_and_what_is_gone_is_said() -> Result<()> {
    let (server, port) = start(&[])?;
    play(&server, port, "life")
}

#[test]
fn a_user_sees_what_its_rights_allow() -> Result<()> {
    let (server, port) = start(&[])?;
    play(&server, port, "rights")
}

#[test]
fn a_password_is_asked_for() -> Result<()> {
    let (server, port) = start(&[("requirepass", "a secret")])?;
    play(&server, port, "password")
}

#[test]
fn the_page_is_for_browsers_and_strict() -> Result<()> {
    let (_server, port) = start(&[("requirepass", "secret")])?;
    let mut web = Web::connect(port)?;
    let page = web.ask("GET /", &["Accept: text/html,*/*;q=0.8"], b"")?;
    ensure!(page.status == 200, "the page itself needs no password");
    ensure!(page.header("content-type") == Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap_or_default();
    ensure!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    let text = page.text();
    for way_out in ["http://", "https://", "onclick", "style=", "<script>"] {
        let inside = text.replace("http://www.w3.org/2000/svg", "");
        ensure!(!inside.contains(way_out), "{way_out}");
    }
    for file in ["/v1/dashboard.css", "/v1/dashboard.js"] {
        ensure!(text.contains(file));
        let answer = web.ask(&format!("GET {file}"), &[], b"")?;
        ensure!(answer.status == 200 && answer.header("content-security-policy") == Some(policy));
        ensure!(!answer.text().contains("innerHTML"), "markup is made of no values");
    }
    // It is the address of commands, too.
    ensure!(web.ask("GET /", &["Accept: application/json"], b"")?.status == 401);
    let link = ["Accept: text/html", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"];
    ensure!(web.ask("GET /", &link, b"")?.status == 200, "a link to the page may be followed");
    let framed = ["Accept: text/html", "Origin: https://evil.example"];
    ensure!(web.ask("GET /", &framed, b"")?.status == 403);
    let known = ["Authorization: Bearer secret"];
    let posted = web.ask("POST /", &known, br#"["SET","k","v"]"#)?;
    ensure!(posted.text() == r#"{"result":"OK"}"#, "{posted:?}");
    Ok(())
}
