//! `dunlin health`, against servers in all states in which it may find them.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use anyhow::{Result, ensure};
use tests::observe::wait_until;
use tests::server::{Server, Target, dunlin_binary, free_port};

fn health(options: &[&str], environment: &[(&str, &str)]) -> Result<Output> {
    let mut command = Command::new(dunlin_binary()?);
    command.arg("health").args(options).envs(environment.iter().copied());
    Ok(command.env_remove("REDISCLI_AUTH").stdin(Stdio::null()).output()?)
}

fn expect(options: &[&str], environment: &[(&str, &str)], code: i32, said: &str) -> Result<()> {
    let output = health(options, environment)?;
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    ensure!(output.status.code() == Some(code), "{options:?}: {}: {text}", output.status);
    ensure!(text.contains(said), "{options:?}: {text:?} has no {said:?}");
    Ok(())
}

#[test]
fn a_server_that_serves_is_healthy() -> Result<()> {
    let (server, http) = Server::start_with_http(&[])?;
    let [port, http] = [server.port(), http].map(|port| port.to_string());
    expect(&["-p", &port], &[], 0, "PONG\n")?;
    expect(&["-p", &port, "-a", "needless"], &[], 0, "PONG\n")?;
    expect(&["-u", &format!("redis://localhost:{port}")], &[], 0, "PONG\n")?;
    expect(&["-p", &http, "--http"], &[], 0, "HTTP/1.1 200")?;
    expect(&["-p", &http, "--http", "--live"], &[], 0, "HTTP/1.1 200")?;
    let quiet = health(&["-p", &port, "-q"], &[])?;
    ensure!(quiet.status.success() && quiet.stdout.is_empty() && quiet.stderr.is_empty());
    // Those of the other protocol.
    expect(&["-p", &http], &[], 1, "dunlin health: 127.0.0.1:")?;
    expect(&["-p", &port, "--http"], &[], 1, "")?;
    Ok(())
}

#[test]
fn a_password_is_needed_to_know_more_than_that_it_lives() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("requirepass", "geheim")])?;
    let port = server.port().to_string();
    expect(&["-p", &port], &[], 1, "NOAUTH")?;
    expect(&["-p", &port, "--live"], &[], 0, "NOAUTH")?;
    expect(&["-p", &port, "-a", "wrong"], &[], 1, "WRONGPASS")?;
    expect(&["-p", &port, "-a", "geheim"], &[], 0, "PONG")?;
    expect(&["-p", &port, "--user", "default", "-a", "geheim"], &[], 0, "PONG")?;
    expect(&["-u", &format!("redis://default:geheim@127.0.0.1:{port}")], &[], 0, "PONG")?;
    // The variables of a container.
    expect(&[], &[("REDIS_PORT", &port), ("REDIS_PASSWORD", "geheim")], 0, "PONG")?;
    expect(&[], &[("REDIS_PORT", &port), ("REDIS_PASSWORD", "wrong")], 1, "WRONGPASS")?;
    let output = Command::new(dunlin_binary()?)
        .args(["health", "-p", &port])
        .env("REDISCLI_AUTH", "geheim")
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

#[test]
fn a_server_that_loads_lives_and_is_not_ready() -> Result<()> {
    let (mut server, http) = Server::start_with_http(&[])?;
    let mut client = server.connect()?;
    client.call(&["EVAL", "for i = 1, 3000 do redis.call('SET', i, i) end", "0"])?;
    ensure!(!client.call(&["SAVE"])?.is_error());
    server.kill();
    let [port, http] = [server.port(), http].map(|port| port.to_string());
    expect(&["-p", &port], &[], 1, "refused")?;
    expect(&["-p", &port, "--live"], &[], 1, "refused")?;
    let mut child = Command::new(dunlin_binary()?)
        .args(["serve", "--port", &port, "--http-port", &http, "--key-load-delay", "3000"])
        .current_dir(server.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let tried = (|| {
        wait_until("a server that loads", || {
            Ok(health(&["-p", &port, "--live"], &[])?.status.success())
        })?;
        expect(&["-p", &port], &[], 1, "LOADING")?;
        expect(&["-p", &http, "--http"], &[], 1, "/readyz answers HTTP/1.1 503")?;
        expect(&["-p", &http, "--http", "--live"], &[], 0, "200")
    })();
    child.kill()?;
    child.wait()?;
    tried
}

#[test]
fn encrypted_servers_are_asked_too() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let made =
        Command::new(dunlin_binary()?).args(["tls", "dev"]).arg(directory.path()).output()?;
    ensure!(made.status.success());
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let [certificate, key, authority] = ["server.crt", "server.key", "ca.crt"].map(file);
    let [own_certificate, own_key] = ["client.crt", "client.key"].map(file);
    let [tls, https] = [free_port()?, free_port()?].map(|port| port.to_string());
    let _server = Server::start(
        Target::Dunlin,
        &[
            ("tls-port", &tls),
            ("https-port", &https),
            ("tls-cert-file", &certificate),
            ("tls-key-file", &key),
            ("tls-ca-cert-file", &authority),
        ],
    )?;
    let trust = ["--tls", "--cacert", &authority];
    let own = ["--cert", &own_certificate, "--key", &own_key];
    let with = |place: &[&'static str], port: &str, own: &[&str]| -> Vec<String> {
        let words = [place, &trust, own, &["-p", port]].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    let expect_words = |words: Vec<String>, code, said: &str| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        expect(&words, &[], code, said)
    };
    expect_words(with(&[], &tls, &own), 0, "PONG")?;
    expect_words(with(&["--http"], &https, &own), 0, "HTTP/1.1 200")?;
    // Without a certificate of its own.
    expect_words(with(&[], &tls, &[]), 1, "")?;
    // An authority that nobody has heard of.
    expect(&["--tls", "-p", &tls, "--cert", &own_certificate, "--key", &own_key], &[], 1, "")?;
    let environment = [
        ("REDIS_TLS_ENABLED", "yes"),
        ("REDIS_TLS_PORT", &tls),
        ("REDIS_PORT", &tls),
        ("REDIS_TLS_CERT_FILE", &certificate),
        ("REDIS_TLS_KEY_FILE", &key),
        ("REDIS_TLS_CA_FILE", &authority),
    ];
    expect(&[], &environment, 0, "PONG")
}

/// Something listens that says nothing.
#[test]
fn a_container_opens_its_own_key() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let made =
        Command::new(dunlin_binary()?).args(["tls", "dev"]).arg(directory.path()).output()?;
    ensure!(made.status.success());
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let [certificate, plain, key, authority] =
        ["server.crt", "server.key", "locked.key", "ca.crt"].map(file);
    let lock = ["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", "pass:secret"];
    let locked = Command::new("openssl").args(lock).args(["-in", &plain, "-out", &key]).output()?;
    ensure!(locked.status.success(), "{locked:?}");
    let port = free_port()?.to_string();
    let _server = Server::start(
        Target::Dunlin,
        &[
            ("tls-port", &port),
            ("tls-cert-file", &certificate),
            ("tls-key-file", &key),
            ("tls-key-file-pass", "secret"),
            ("tls-ca-cert-file", &authority),
        ],
    )?;
    let environment = [
        ("DUNLIN_TLS_ENABLED", "yes"),
        ("DUNLIN_PORT", &port),
        ("DUNLIN_TLS_CERT_FILE", &certificate),
        ("DUNLIN_TLS_KEY_FILE", &key),
        ("DUNLIN_TLS_CA_FILE", &authority),
    ];
    let with = |password| [&environment[..], &[("DUNLIN_TLS_KEY_FILE_PASS", password)]].concat();
    expect(&[], &with("secret"), 0, "PONG")?;
    expect(&[], &with("wrong"), 1, "")
}

#[test]
fn a_silent_server_is_not_waited_for() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port().to_string();
    let accepting = thread::spawn(move || [listener.accept(), listener.accept()]);
    expect(&["-p", &port, "--timeout", "0.2"], &[], 1, "dunlin health: 127.0.0.1:")?;
    expect(&["-p", &port, "--timeout", "0.2", "--http"], &[], 1, "dunlin health: 127.0.0.1:")?;
    ensure!(accepting.join().is_ok());
    Ok(())
}

#[test]
fn mistakes_are_told_apart_from_bad_health() -> Result<()> {
    for (options, said) in [
        (&["--bogus"][..], "there is no option --bogus\n"),
        (&["--a=secret"], "there is no option --a\n"),
        (&["-p"], "-p: what?"),
        (&["-p", "x"], "-p takes a port"),
        (&["--timeout", "0"], "--timeout takes seconds"),
        (&["--cacert", "x"], "certificates are for --tls"),
    ] {
        expect(options, &[], 2, said)?;
    }
    expect(&[], &[("REDIS_TLS_ENABLED", "perhaps")], 2, "REDIS_TLS_ENABLED")?;
    expect(&["--help"], &[], 0, "Usage: dunlin health")
}
