//! How the tests run `dunlin move`, and what they ask.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use tests::client::{Client, Reply};
use tests::server::{Server, dunlin_binary};

pub(crate) fn said(client: &mut Client, command: &str) -> String {
    let reply = client.call_text(command).unwrap();
    match &reply {
        Reply::Integer(number) => number.to_string(),
        reply => String::from_utf8_lossy(reply.text().unwrap_or(b"nil")).into_owned(),
    }
}

pub(crate) fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

pub(crate) fn begin(from: &str, to: &str, rest: &[&str]) -> Child {
    let mut command = Command::new(dunlin_binary().unwrap());
    command.args(["move", "--from", from, "--to", to]).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The exit code, and what was printed.
pub(crate) fn move_all(from: &str, to: &str, rest: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = begin(from, to, rest).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    (status.code(), text)
}

/// What the check says of two servers.
pub(crate) fn checked(old: &Server, new: &Server, expected: &[&str]) {
    let (code, text) = move_all(&url(old), &url(new), &["--check"]);
    for part in expected {
        assert!(text.contains(part), "{part}: {text}");
    }
    let stops = expected.iter().any(|part| part.starts_with("STOP"));
    assert_eq!(code, Some(if stops { 3 } else { 0 }), "{text}");
}

/// What the tool does up to the promotion.
pub(crate) fn promote(old: &mut Client, new: &mut Client) {
    assert_eq!(said(old, "CLIENT PAUSE 3600000 WRITE"), "OK");
    assert_eq!(said(new, "REPLICAOF NO ONE"), "OK");
}

/// The name that the tool says for the data of the new server.
pub(crate) fn name_of_data(text: &str) -> &str {
    let (_, rest) = text.split_once("--replace ").unwrap_or_else(|| panic!("{text}"));
    rest.split_whitespace().next().unwrap()
}

/// Begins a move whose new server does not find the old one, and waits until that is told.
pub(crate) fn begin_in_vain(from: &str, to: &str, place: &str, rest: &[&str]) -> Child {
    let mut child = begin(from, to, &[&["--yes", "--from-address", place], rest].concat());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("waiting for the copy")));
    // Who reads no further would be in its way at most when it says that the move is done.
    thread::spawn(move || lines.count());
    child
}

/// The exit code, and what was said of the problem.
pub(crate) fn ended(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}
