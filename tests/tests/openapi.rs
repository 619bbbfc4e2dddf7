//! The description of HTTP's addresses, read by schemathesis: it makes requests of it, right ones
//! and wrong ones, and compares the answers with it.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tests::peers;
use tests::server::{Server, repository};
use tests::web::Web;

const PASSWORD: &str = "a password";

struct Subject {
    server: Server,
    port: u16,
    directory: TempDir,
}

/// A server with the example of views, and something under some keys.
fn start(options: &[(&str, &str)]) -> Result<Subject> {
    let directory = tempfile::Builder::new().prefix("dunlin-openapi-").tempdir()?;
    let example = repository().join("examples/departments/views.toml");
    let database = format!("sqlite:{}", directory.path().join("departments.db").display());
    let views = fs::read_to_string(example)?.replace("sqlite:departments.db", &database);
    let file = directory.path().join("views.toml");
    fs::write(&file, views)?;
    let file = file.display().to_string();
    let own = [("threads", "2"), ("views-file", &*file)];
    let (server, port) = Server::start_with_http(&[&own, options].concat())?;
    Ok(Subject { server, port, directory })
}

/// How many requests for each address: `SECONDS` says how long random tests go on.
fn examples() -> u32 {
    let seconds: u32 =
        std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    2 * seconds.clamp(1, 500)
}

fn seed() -> String {
    std::env::var("SEED").unwrap_or_else(|_| std::process::id().to_string())
}

/// Runs schemathesis with these arguments behind the address of the document. What it says, and
/// whether it has found nothing.
fn read(subject: &Subject, document: &str, arguments: &[&str]) -> Result<(bool, String)> {
    let own = repository().join("tests/schemathesis");
    let output = Command::new(peers::directory().join("schemathesis/bin/st"))
        .arg("--config-file")
        .arg(own.join("schemathesis.toml"))
        .args(["run", document, "--seed", &seed()])
        .args(["--url", &format!("http://127.0.0.1:{}", subject.port)])
        .args(["--max-examples", &examples().to_string()])
        .args(arguments)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", own)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(subject.directory.path())
        .stdin(Stdio::null())
        .output()
        .context("schemathesis: scripts/install-peers brings it")?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// What schemathesis says when it finds nothing, with the number of its requests.
fn expect_no_fault(subject: &mut Subject, arguments: &[&str]) -> Result<()> {
    let document = format!("http://127.0.0.1:{}/v1/openapi.json", subject.port);
    let (is_good, said) = read(subject, &document, arguments)?;
    ensure!(is_good, "{said}\nthe server's log:\n{}", subject.server.log_tail());
    ensure!(subject.server.is_running(), "the server is gone:\n{}", subject.server.log_tail());
    let line = said.lines().find(|line| line.contains(" generated,")).context("a summary")?;
    let count: u32 = line.split_whitespace().next().unwrap_or_default().parse()?;
    ensure!(count > 500, "these are few requests: {said}");
    Ok(())
}

#[test]
fn requests_are_answered_as_described() -> Result<()> {
    expect_no_fault(&mut start(&[])?, &[])
}

#[test]
fn requests_are_answered_as_described_where_there_is_a_password() -> Result<()> {
    let header = format!("Authorization: Bearer {PASSWORD}");
    expect_no_fault(&mut start(&[("requirepass", PASSWORD)])?, &["--header", &header])
}

/// A description that is wrong in one place is found out.
#[test]
fn a_wrong_description_is_found_out() -> Result<()> {
    let subject = start(&[])?;
    let mut web = Web::connect(subject.port)?;
    let text = web.ask("GET /v1/openapi.json", &[], b"")?.text();
    let wrong = subject.directory.path().join("wrong.json");
    for (from, to) in
        [("\"keys\",\"cursor\"", "\"names\",\"cursor\""), ("\"minimum\":1,", "\"minimum\":0,")]
    {
        ensure!(text.contains(from), "the document has no {from}");
        fs::write(&wrong, text.replace(from, to))?;
        let only = ["--include-operation-id", "listKeys", "--phases", "coverage"];
        let (is_good, said) = read(&subject, &wrong.display().to_string(), &only)?;
        ensure!(!is_good, "nobody has noticed {to}:\n{said}");
    }
    Ok(())
}
