//! What the settings of TLS take, refuse and change.

use std::process::Command;

use anyhow::{Result, ensure};
use resp::client::Value;
use tests::certificates::Certificates;
use tests::client::Reply;
use tests::observe::wait_until;
use tests::server::{Server, Target, dunlin_binary, free_port};

use crate::house::{Caller, House, files, is_served, run};

/// An error's text.
fn refusal(reply: &Reply) -> String {
    match reply {
        Reply::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

/// What both servers answer alike, each line a CONFIG SET.
const ALIKE: &[&str] = &[
    "tls-cert-file nofile.pem",
    "tls-key-file nofile.key",
    "tls-ca-cert-file nofile.pem",
    "tls-protocols x",
    "tls-protocols TLSv1.3",
    "tls-protocols tlsv1.2",
    "tls-ciphers nonsense",
    "tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
    "tls-ciphers DEFAULT:!MEDIUM",
    "tls-ciphersuites none",
    "tls-ciphersuites TLS_AES_256_GCM_SHA384",
    "tls-auth-clients maybe",
    "tls-auth-clients optional",
    "tls-ca-cert-file ",
    "tls-session-cache-size -1",
    "tls-session-cache-size 10",
    "tls-session-cache-timeout 20",
    "tls-session-caching no",
    "tls-prefer-server-ciphers yes",
    "tls-prefer-server-ciphers maybe",
    "tls-replication maybe",
    "tls-port 70000",
];

#[test]
fn settings_are_taken_and_refused_as_in_redis() -> Result<()> {
    let (ours, theirs) = (House::open(&[])?, House::of(Target::Reference, &[])?);
    for line in ALIKE {
        let (name, value) = line.split_once(' ').expect("two words");
        let answer = |house: &House| house.control()?.call(&["CONFIG", "SET", name, value]);
        let (ours, theirs) = (answer(&ours)?, answer(&theirs)?);
        ensure!(ours == theirs, "{line}: {} but {}", refusal(&ours), refusal(&theirs));
    }
    // What is set is shown, and nothing else has changed. Files and ports are each server's own.
    let shown = |house: &House| -> Result<Vec<String>> {
        let all = house.control()?.call_text("CONFIG GET tls-*")?.elements().unwrap_or_default();
        let texts: Vec<String> = all
            .iter()
            .map(|own| String::from_utf8_lossy(own.text().unwrap_or_default()).into_owned())
            .collect();
        let pairs = texts.chunks(2).filter(|pair| {
            !matches!(
                &pair[0][..],
                "tls-port" | "tls-auth-clients-user" | "tls-sni-cert-files" | "tls-verify-names"
            ) && !pair[1].contains("dunlin-")
        });
        let mut pairs: Vec<String> = pairs.map(|pair| pair.join("=")).collect();
        pairs.sort();
        Ok(pairs)
    };
    let (of_ours, of_theirs) = (shown(&ours)?, shown(&theirs)?);
    ensure!(of_ours.len() > 15 && of_ours == of_theirs, "{of_ours:?} {of_theirs:?}");
    ensure!(is_served(ours.connect()) && is_served(theirs.connect()));
    Ok(())
}

/// OpenSSL's clients ask for AES with 256 bits first.
#[test]
fn whose_order_of_ciphers_counts_is_a_setting() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    for (setting, chosen) in [
        (None, "TLS_AES_128_GCM_SHA256"),
        (Some(("tls-prefer-server-ciphers", "no")), "TLS_AES_256_GCM_SHA384"),
        (Some(("tls-prefer-server-ciphers", "yes")), "TLS_AES_128_GCM_SHA256"),
        (
            Some(("tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256")),
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
    ] {
        if let Some((name, value)) = setting {
            let reply = control.call(&["CONFIG", "SET", name, value])?;
            ensure!(!reply.is_error(), "{}", refusal(&reply));
        }
        let output = run(house.openssl(&["-brief", "-tls1_3"]), b"")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(said.contains(chosen), "{setting:?}: {said}");
    }
    Ok(())
}

#[test]
fn what_is_not_offered_is_refused() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    for (name, value, reason) in [
        ("tls-protocols", "TLSv1.1 TLSv1.2", "TLSv1.1 is broken and not offered"),
        ("tls-ciphers", "AES128-SHA", "'AES128-SHA' is not offered"),
        ("tls-ciphersuites", "TLS_AES_128_CCM_SHA256", "'TLS_AES_128_CCM_SHA256' is not offered"),
    ] {
        let reply = control.call(&["CONFIG", "SET", name, value])?;
        let text = refusal(&reply);
        ensure!(text.ends_with("Unable to update TLS configuration. Check server logs."), "{text}");
        house.logs(reason)?;
    }
    control.call(&["CONFIG", "SET", "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"])?;
    let output = run(house.openssl(&["-brief", "-tls1_3"]), b"")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(said.contains("TLS_CHACHA20_POLY1305_SHA256"), "{said}");
    control.call(&["CONFIG", "SET", "tls-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"])?;
    let output = run(house.openssl(&["-brief", "-tls1_2"]), b"")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(said.contains("ECDHE-ECDSA-AES128-GCM-SHA256"), "{said}");
    control.call(&["CONFIG", "SET", "tls-protocols", "TLSv1.3"])?;
    ensure!(!run(house.openssl(&["-brief", "-tls1_2"]), b"")?.status.success());
    Ok(())
}

#[test]
fn ports_open_and_close_while_it_runs() -> Result<()> {
    let certificates = Certificates::make()?;
    let server = Server::start(Target::Dunlin, &[])?;
    let mut control = server.connect()?;
    let port = free_port()?.to_string();
    let reply = control.call(&["CONFIG", "SET", "tls-port", &port])?;
    let text = refusal(&reply);
    ensure!(text.ends_with("Unable to update TLS configuration. Check server logs."), "{text}");
    wait_until("it says why", || Ok(server.log().contains("No tls-cert-file configured!")))?;
    // Nor behind another setting that has the server listen anew.
    let reply = control.call(&["CONFIG", "SET", "bind", "127.0.0.1 -::1", "tls-port", &port])?;
    let text = refusal(&reply);
    ensure!(text.ends_with("Unable to update TLS configuration. Check server logs."), "{text}");
    ensure!(
        control.call_text("CONFIG GET tls-port")?.elements().unwrap()[1].text() == Some(&b"0"[..])
    );
    // In any order, and all together.
    let named = files(&certificates);
    let mut words = vec!["CONFIG", "SET", "tls-port", &port];
    for (name, value) in &named {
        words.extend([name, value.as_str()]);
    }
    let reply = control.call(&words)?;
    ensure!(!reply.is_error(), "{} {}", refusal(&reply), server.log_tail());
    let client = certificates.issue("client", "DNS:client", 9)?;
    let house = House { port: port.parse()?, https: 0, client, certificates, server };
    let mut early = house.connect()?;
    // The open port goes, and comes back by the other one.
    let own = house.server.port().to_string();
    ensure!(early.call("CONFIG SET port 0")? == Value::Simple(b"OK".to_vec()));
    ensure!(house.server.connect().and_then(|mut client| client.call_text("PING")).is_err());
    let page = early.call("INFO server")?;
    let Value::Bulk(page) = page else { panic!("{page:?}") };
    let page = String::from_utf8_lossy(&page);
    ensure!(page.contains(&format!("tcp_port:{port}\r\n")), "{page}");
    ensure!(page.contains(&format!("listener2:name=tls,bind=127.0.0.1,port={port}\r\n")), "{page}");
    ensure!(early.call(&format!("CONFIG SET port {own}"))? == Value::Simple(b"OK".to_vec()));
    // A port that is taken changes nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let taken = taken.local_addr()?.port();
    let refused = early.call(&format!("CONFIG SET tls-port {taken}"))?;
    ensure!(
        matches!(&refused, Value::Error(text) if text.ends_with(b"Unable to listen on this port. Check server logs.")),
        "{refused:?}"
    );
    ensure!(is_served(house.connect()));
    ensure!(early.call("CONFIG SET tls-port 0")? == Value::Simple(b"OK".to_vec()));
    ensure!(!is_served(house.connect()));
    ensure!(early.call("PING")? == Value::Simple(b"PONG".to_vec()), "who is there stays");
    Ok(())
}

#[test]
fn only_the_encrypted_port_may_be_open() -> Result<()> {
    let house = House::open(&[("port", "0")])?;
    ensure!(house.server.connect().is_err());
    let mut caller = house.connect()?;
    ensure!(caller.call("SET a 1")? == Value::Simple(b"OK".to_vec()));
    let log = house.server.log();
    ensure!(log.contains("The Redis protocol over TLS is served at 127.0.0.1"), "{log}");
    ensure!(log.contains("dashboard: https://127.0.0.1:"), "{log}");
    Ok(())
}

#[test]
fn a_server_without_its_files_does_not_start() -> Result<()> {
    let certificates = Certificates::make()?;
    let named = files(&certificates);
    let other = Certificates::make()?;
    let foreign_key = other.key().display().to_string();
    let port = free_port()?.to_string();
    let all: Vec<(&str, &str)> =
        named.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let cases: [(Vec<(&str, &str)>, &str); 5] = [
        (vec![], "No tls-cert-file configured!"),
        (vec![all[0]], "No tls-key-file configured!"),
        (vec![all[0], all[1]], "Either tls-ca-cert-file or tls-ca-cert-dir must be specified"),
        (
            vec![all[0], ("tls-key-file", &foreign_key), all[2]],
            "it is not the key of the certificate",
        ),
        (
            vec![all[0], all[1], ("tls-ca-cert-file", "/nowhere")],
            "Failed to configure ca certificate(s)",
        ),
    ];
    for (options, reason) in cases {
        let mut options = options;
        options.push(("tls-port", &port));
        let error = Server::start(Target::Dunlin, &options).expect_err("it cannot start");
        let text = format!("{error:#}");
        ensure!(text.contains(reason), "{reason}: {text}");
        ensure!(text.contains("Failed to configure TLS. Check logs for more info."), "{text}");
    }
    Ok(())
}

#[test]
fn certificates_for_trials_are_made() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let own = directory.path().join("tls");
    let make_for = |name: &str| {
        let mut command = Command::new(dunlin_binary()?);
        command.args(["tls", "dev"]).arg(&own).arg(name);
        run(command, b"")
    };
    let wrong = make_for("bücher.example")?;
    ensure!(!wrong.status.success() && !own.exists(), "a name that is none leaves nothing behind");
    let make = || make_for("db.example");
    let made = make()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let again = make()?;
    ensure!(!again.status.success(), "nothing is replaced");
    ensure!(String::from_utf8_lossy(&again.stderr).contains("is there already"));
    let file = |name: &str| own.join(name).display().to_string();
    let port = free_port()?;
    let text = port.to_string();
    let (certificate, key, authority) = (file("server.crt"), file("server.key"), file("ca.crt"));
    let _server = Server::start(
        Target::Dunlin,
        &[
            ("tls-port", &text),
            ("tls-cert-file", &certificate),
            ("tls-key-file", &key),
            ("tls-ca-cert-file", &authority),
        ],
    )?;
    let settings = tls::ClientSettings::of_options(
        Some(&authority),
        Some((&file("client.crt"), &file("client.key"))),
    );
    ensure!(is_served(Caller::connect(port, crate::house::read(&settings)?)));
    let mut openssl = Command::new("openssl");
    openssl.args(["verify", "-CAfile", &authority, "-verify_hostname", "db.example", &certificate]);
    ensure!(run(openssl, b"")?.status.success());
    Ok(())
}
