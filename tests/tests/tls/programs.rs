//! Programs of others as clients.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tests::certificates::{Certificates, Identity};
use tests::client::{Reply, encode};
use tests::observe::wait_until;
use tests::peers;

use crate::house::{House, run};

#[test]
fn openssl_is_a_client() -> Result<()> {
    let house = House::open(&[])?;
    for version in ["-tls1_2", "-tls1_3"] {
        let client = house.openssl(&["-quiet", version]);
        let output = run(client, b"SET from openssl\r\nGET from\r\nQUIT\r\n")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(text == "+OK\r\n$7\r\nopenssl\r\n+OK\r\n", "{version}: {text:?} {complaints}");
    }
    for version in ["-tls1", "-tls1_1"] {
        let output = run(house.openssl(&["-quiet", version]), b"PING\r\n")?;
        ensure!(!output.status.success() && output.stdout.is_empty(), "{version}");
    }
    Ok(())
}

#[test]
fn the_command_lines_of_redis_and_valkey_are_clients() -> Result<()> {
    let house = House::open(&[])?;
    let large = vec![b'v'; 3_000_000];
    for program in ["redis-cli", "valkey-cli"] {
        let mut set = house.tool(program);
        set.args(["-x", "SET", program]);
        ensure!(run(set, &large)?.stdout == b"OK\n", "{program}");
        let mut get = house.tool(program);
        get.args(["GET", program]);
        let got = run(get, b"")?.stdout;
        ensure!(got.strip_suffix(b"\n") == Some(&large[..]), "{program}: {} bytes", got.len());
        let mut eval = house.tool(program);
        eval.args(["EVAL", "return redis.call('STRLEN', KEYS[1])", "1", program]);
        ensure!(run(eval, b"")?.stdout == b"3000000\n");
    }
    Ok(())
}

#[test]
fn curl_is_a_client() -> Result<()> {
    let house = House::open(&[])?;
    let curl = |path: &str, options: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60"]).args(options);
        curl.arg("--cacert").arg(house.certificates.authority());
        curl.arg("--cert").arg(&house.client.certificate).arg("--key").arg(&house.client.key);
        curl.arg(format!("https://127.0.0.1:{}{path}", house.https));
        run(curl, b"")
    };
    let put = curl("/v1/keys/greeting", &["-X", "PUT", "--data-binary", "hello"])?;
    ensure!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    let got = curl("/v1/keys/greeting", &["--include", "--verbose"])?;
    let (text, said) = (String::from_utf8_lossy(&got.stdout), String::from_utf8_lossy(&got.stderr));
    ensure!(text.ends_with("\r\n\r\nhello"), "{text}\n{said}");
    ensure!(said.contains("server accepted http/1.1"), "{said}");
    // More than the socket takes at once.
    let mut control = house.control()?;
    control.call(&[&b"SET"[..], b"large", &[b'x'; 20_000_000]])?;
    let large = curl("/v1/keys/large", &[])?.stdout;
    ensure!(large.len() == 20_000_000 && large.iter().all(|byte| *byte == b'x'));
    // One that speaks no HTTP/1.1 is told so.
    let own = house.https.to_string();
    let mut client = house.openssl(&["-alpn", "h2", "-connect", &format!("127.0.0.1:{own}")]);
    client.arg("-brief");
    let output = run(client, b"")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("no application protocol"), "{said}");
    Ok(())
}

#[test]
fn the_command_lines_pipe_and_subscribe() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    for program in ["redis-cli", "valkey-cli"] {
        let mut commands = Vec::new();
        for index in 0..20_000 {
            encode(&["SADD", program, &format!("member-{index}")], &mut commands);
        }
        let mut pipe = house.tool(program);
        pipe.arg("--pipe");
        let said = run(pipe, &commands)?.stdout;
        let said = String::from_utf8_lossy(&said);
        ensure!(said.contains("errors: 0, replies: 20000"), "{program}: {said}");
        ensure!(control.call(&["SCARD", program])? == Reply::Integer(20_000));

        let mut subscriber = house.tool(program);
        subscriber.args(["SUBSCRIBE", "news"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut subscriber = subscriber.spawn()?;
        let lines = BufReader::new(subscriber.stdout.take().context("a pipe")?).lines();
        let large = "x".repeat(100_000);
        wait_until("it hears", || {
            Ok(control.call(&["PUBLISH", "news", &large])? != Reply::Integer(0))
        })?;
        let heard: std::io::Result<Vec<String>> = lines.take(6).collect();
        subscriber.kill()?;
        subscriber.wait()?;
        let heard = heard?;
        ensure!(heard[..5] == ["subscribe", "news", "1", "message", "news"], "{:?}", &heard[..5]);
        ensure!(heard[5] == large, "{program}: {} bytes", heard[5].len());
    }
    Ok(())
}

/// Whether a program is served as a client that believes this authority, and shows a certificate or
/// none.
fn is_served(
    program: &str,
    house: &House,
    authority: &Path,
    shown: Option<&Identity>,
) -> Result<bool> {
    let (place, port) = (format!("127.0.0.1:{}", house.port), house.port.to_string());
    let url = format!("https://127.0.0.1:{}/healthz", house.https);
    let mut command = Command::new(match program {
        "curl" | "openssl" => program.into(),
        tool => peers::program(tool),
    });
    let [of_authority, of_certificate, of_key] = match program {
        "openssl" => ["-CAfile", "-cert", "-key"],
        _ => ["--cacert", "--cert", "--key"],
    };
    match program {
        "curl" => command.args(["--silent", "--include", "--max-time", "60", &url]),
        "openssl" => {
            command.args(["s_client", "-quiet", "-verify_return_error", "-connect", &place])
        }
        _ => command.args(["--tls", "-p", &port]),
    };
    command.arg(of_authority).arg(authority);
    if let Some(Identity { certificate, key }) = shown {
        command.arg(of_certificate).arg(certificate).arg(of_key).arg(key);
    }
    let output = run(command, b"PING\r\nQUIT\r\n")?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.contains("PONG") || said.contains("HTTP/1.1 200"))
}

#[test]
fn programs_get_nowhere_without_the_right_certificates() -> Result<()> {
    let (house, other) = (House::open(&[])?, Certificates::make()?);
    let (own, shown) = (house.certificates.authority(), Some(&house.client));
    for program in ["redis-cli", "valkey-cli", "curl", "openssl"] {
        ensure!(is_served(program, &house, &own, shown)?, "{program}\n{}", house.server.log_tail());
        ensure!(!is_served(program, &house, &other.authority(), shown)?, "{program} believes");
        ensure!(!is_served(program, &house, &own, None)?, "{program} shows nothing");
    }
    Ok(())
}
