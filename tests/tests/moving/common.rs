//! How the tests run `dunlin move`, and what they ask.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tests::client::{Client, Reply};
use tests::observe::wait_for;
use tests::proxy::Proxy;
use tests::replication::{catch_up, follow};
use tests::server::{Server, Target, dunlin_binary};

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

/// Where one server finds another.
pub(crate) fn place(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

pub(crate) fn through(way: &Proxy) -> String {
    format!("redis://127.0.0.1:{}", way.port())
}

/// Servers that begin to copy at once, of which the first one has a key.
pub(crate) fn pair<const COUNT: usize>(targets: [Target; COUNT]) -> [Server; COUNT] {
    let options = [("repl-diskless-sync-delay", "0")];
    let servers = targets.map(|target| Server::start(target, &options).unwrap());
    assert_eq!(said(&mut servers[0].connect().unwrap(), "SET k v"), "OK");
    servers
}

pub(crate) fn is_replica(server: &Server) -> bool {
    said(&mut server.connect().unwrap(), "INFO replication").contains("role:slave")
}

pub(crate) fn begin(from: &str, to: &str, rest: &[&str]) -> Child {
    let mut command = Command::new(dunlin_binary().unwrap());
    command.args(["move", "--from", from, "--to", to]).args(rest);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
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
pub(crate) fn follow_and_lead(old: &Server, new: &Server) {
    follow(new, old.port()).unwrap();
    catch_up(old, new).unwrap();
    promote(&mut old.connect().unwrap(), &mut new.connect().unwrap());
}

/// The last steps of that.
pub(crate) fn promote(old: &mut Client, new: &mut Client) {
    assert_eq!(said(old, "CLIENT PAUSE 3600000 WRITE"), "OK");
    assert_eq!(said(new, "REPLICAOF NO ONE"), "OK");
}

/// Whether a server holds a write: it does not answer for a while.
pub(crate) fn holds_writes(server: &Server) -> bool {
    let mut client = server.connect().unwrap();
    client.send(&["UNLINK", "a key that nobody has"]).unwrap();
    !client.has_input(Duration::from_millis(200)).unwrap()
}

/// The name that the tool says for the data of the new server.
pub(crate) fn name_of_data(text: &str) -> &str {
    let (_, rest) = text.split_once("--replace ").unwrap_or_else(|| panic!("{text}"));
    rest.split_whitespace().next().unwrap()
}

/// Begins a move, and waits until it says this. The lines after it are read meanwhile, and
/// returned as a whole.
pub(crate) fn begin_until(
    from: &str,
    to: &str,
    rest: &[&str],
    expected: &str,
) -> (Child, JoinHandle<String>) {
    let mut child = begin(from, to, rest);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains(expected)) {
        seen.push(lines.next().unwrap_or_else(|| panic!("it does not say '{expected}': {seen:?}")));
    }
    (child, thread::spawn(move || lines.collect::<Vec<_>>().join("\n")))
}

/// Begins a move whose new server does not find the old one, and waits until that is told.
pub(crate) fn begin_in_vain(from: &str, to: &str, place: &str, rest: &[&str]) -> Child {
    let rest = [&["--yes", "--from-address", place], rest].concat();
    begin_until(from, to, &rest, "waiting for the copy").0
}

/// Begins a move through a proxy of the old server, which keeps it back when it begins to compare
/// all keys.
pub(crate) fn begin_to_compare(way: &Proxy, old: &Server, new: &Server, rest: &[&str]) -> Child {
    way.keep_back(b"SCAN\r\n$1\r\n0\r\n$5\r\nCOUNT\r\n$3\r\n100\r\n");
    let place = place(old);
    let child =
        begin(&through(way), &url(new), &[&["--yes", "--from-address", &place], rest].concat());
    wait_for("it compares keys", || way.keeps_one_back());
    child
}

pub(crate) fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

pub(crate) fn interrupt(child: &Child) {
    signal(child, "-INT");
}

/// Answers the tool's question.
pub(crate) fn agree(child: &mut Child) {
    child.stdin.take().unwrap().write_all(b"y\n").unwrap();
}

/// The exit code, and what was said of the problem.
pub(crate) fn ended(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}
