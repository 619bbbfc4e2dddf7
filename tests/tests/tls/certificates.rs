//! Certificates of all kinds, at both ends.

use std::fs;

use anyhow::{Context, Result, ensure};
use resp::client::Value;
use rustix::process::{Pid, Signal, kill_process};
use rustls::HandshakeKind;
use tests::certificates::Certificates;
use tests::observe::{figure, number, wait_until};
use tests::server::Target;
use tls::Stream;
use tls::client::Verification;

use crate::house::{Caller, House, is_served, read, simple};

#[test]
fn clients_are_believed_by_their_certificates() -> Result<()> {
    for target in [Target::Dunlin, Target::Reference] {
        let house = House::of(target, &[])?;
        let expired = house.certificates.issue("expired", "DNS:expired", -1)?;
        let other = Certificates::make()?;
        let foreign = other.issue("foreign", "DNS:foreign", 9)?;
        for (mode, own, foreigner, late, nobody) in [
            ("yes", true, false, false, false),
            ("optional", true, false, false, true),
            ("no", true, true, true, true),
        ] {
            let set = house.control()?.call(&["CONFIG", "SET", "tls-auth-clients", mode])?;
            ensure!(!set.is_error(), "{set:?}");
            let name = target.name();
            ensure!(is_served(house.connect()) == own, "{name} {mode}: its own");
            ensure!(
                is_served(house.connect_as(Some(&foreign))) == foreigner,
                "{name} {mode}: foreign"
            );
            ensure!(is_served(house.connect_as(Some(&expired))) == late, "{name} {mode}: expired");
            ensure!(is_served(house.connect_as(None)) == nobody, "{name} {mode}: none");
        }
    }
    Ok(())
}

#[test]
fn authorities_may_lie_in_a_directory() -> Result<()> {
    let house = House::open(&[])?;
    let directory = house.server.directory().join("authorities");
    fs::create_dir(&directory)?;
    let other = Certificates::make()?;
    fs::copy(house.certificates.authority(), directory.join("own.pem"))?;
    fs::copy(other.authority(), directory.join("other.crt"))?;
    fs::write(directory.join("README"), "no certificate")?;
    let foreign = other.issue("foreign", "DNS:foreign", 9)?;
    ensure!(!is_served(house.connect_as(Some(&foreign))));
    let name = directory.display().to_string();
    let set = ["CONFIG", "SET", "tls-ca-cert-dir", &name, "tls-ca-cert-file", ""];
    ensure!(!house.control()?.call(&set)?.is_error(), "{}", house.server.log_tail());
    ensure!(is_served(house.connect()) && is_served(house.connect_as(Some(&foreign))));
    Ok(())
}

/// Whether a client that looks this closely takes the server for what it says to be.
fn believes(house: &House, verification: Verification, authority: &Certificates) -> bool {
    let mut settings = house.settings(Some(&house.client));
    settings.verification = verification;
    settings.trust.file = Some(authority.authority());
    is_served(read(&settings).and_then(|config| Caller::connect(house.port, config)))
}

#[test]
fn servers_are_believed_by_their_certificates() -> Result<()> {
    let house = House::open(&[])?;
    let other = Certificates::make()?;
    ensure!(believes(&house, Verification::Name, &house.certificates));
    ensure!(!believes(&house, Verification::Name, &other));
    ensure!(!believes(&house, Verification::Authority, &other));
    ensure!(believes(&house, Verification::None, &other));
    let wrong = house.certificates.issue("elsewhere", "DNS:elsewhere", 9)?;
    let expired = house.certificates.issue("old", "IP:127.0.0.1", -1)?;
    let mut control = house.control()?;
    for (own, by_name, by_authority) in [(&wrong, false, true), (&expired, false, false)] {
        let files = [own.certificate.display().to_string(), own.key.display().to_string()];
        let set = ["CONFIG", "SET", "tls-cert-file", &files[0], "tls-key-file", &files[1]];
        ensure!(!control.call(&set)?.is_error(), "{}", house.server.log_tail());
        ensure!(believes(&house, Verification::Name, &house.certificates) == by_name);
        ensure!(believes(&house, Verification::Authority, &house.certificates) == by_authority);
        ensure!(believes(&house, Verification::None, &house.certificates));
    }
    Ok(())
}

/// The number of the server's certificate that new clients see, in hexadecimal digits.
fn shown(house: &House, caller: &Caller) -> Result<String> {
    let Stream::Encrypted(own) = &caller.stream else { unreachable!("it is encrypted") };
    let chain = own.conn.peer_certificates().context("a server has a certificate")?;
    let path = house.server.directory().join("shown.der");
    fs::write(&path, &chain[0])?;
    let arguments = ["x509", "-inform", "DER", "-noout", "-serial", "-in"];
    let output = std::process::Command::new("openssl").args(arguments).arg(path).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let digits = text.strip_prefix("serial=").context("a number")?;
    Ok(digits.trim_start_matches('0').to_owned())
}

/// The number that INFO shows.
fn stated(house: &House, name: &str) -> Result<String> {
    Ok(figure(&mut house.control()?, name)?.trim_start_matches('0').to_owned())
}

#[test]
fn files_are_read_again_while_clients_are_connected() -> Result<()> {
    let house = House::open(&[])?;
    let mut early = house.connect()?;
    let first = shown(&house, &early)?;
    ensure!(stated(&house, "tls_server_cert_serial")? == first);
    let left = number(&mut house.control()?, "tls_server_cert_expires_in_seconds")?;
    ensure!((8 * 86_400..=9 * 86_400).contains(&left), "{left}");
    // A new certificate in the same files, which CONFIG SET with the same name reads.
    let next = house.certificates.issue("next", "IP:127.0.0.1", 3)?;
    fs::copy(&next.certificate, house.certificates.server())?;
    fs::copy(&next.key, house.certificates.key())?;
    ensure!(shown(&house, &house.connect()?)? == first, "nobody has asked for it yet");
    let path = house.certificates.server().display().to_string();
    ensure!(!house.control()?.call(&["CONFIG", "SET", "tls-cert-file", &path])?.is_error());
    let second = shown(&house, &house.connect()?)?;
    ensure!(second != first && stated(&house, "tls_server_cert_serial")? == second);
    let left = number(&mut house.control()?, "tls_server_cert_expires_in_seconds")?;
    ensure!((2 * 86_400..=3 * 86_400).contains(&left), "{left}");
    ensure!(early.call("PING")? == simple("PONG"));
    // And by a signal.
    let third = house.certificates.issue("third", "IP:127.0.0.1", 9)?;
    fs::copy(&third.certificate, house.certificates.server())?;
    fs::copy(&third.key, house.certificates.key())?;
    let pid = Pid::from_raw(i32::try_from(house.server.pid())?).context("a process")?;
    kill_process(pid, Signal::HUP)?;
    wait_until("the third is shown", || Ok(shown(&house, &house.connect()?)? != second))?;
    ensure!(early.call("PING")? == simple("PONG"));
    // One that is damaged changes nothing, whichever way it is asked for.
    let third = stated(&house, "tls_server_cert_serial")?;
    fs::write(house.certificates.server(), "no certificate")?;
    kill_process(pid, Signal::HUP)?;
    house.logs("keys are unchanged")?;
    let refused = house.control()?.call(&["CONFIG", "SET", "tls-cert-file", &path])?;
    ensure!(refused.is_error(), "{refused:?}");
    ensure!(shown(&house, &house.connect()?)? == third);
    ensure!(stated(&house, "tls_server_cert_serial")? == third);
    ensure!(early.call("PING")? == simple("PONG"));
    Ok(())
}

#[test]
fn a_name_has_its_own_certificate() -> Result<()> {
    let certificates = Certificates::make()?;
    let others: Vec<_> = ["one.example", "two.example"]
        .into_iter()
        .map(|name| certificates.issue(name, &format!("DNS:{name},DNS:*.{name}"), 9))
        .collect::<Result<_>>()?;
    let words: Vec<String> = others
        .iter()
        .flat_map(|own| [own.certificate.display().to_string(), own.key.display().to_string()])
        .collect();
    let house =
        House::with(Target::Dunlin, certificates, &[("tls-sni-cert-files", &words.join(" "))])?;
    for (asked, subject) in [
        ("one.example", "CN = one.example"),
        ("deep.two.example", "CN = two.example"),
        ("three.example", "CN = server"),
        ("", "CN = server"),
    ] {
        let name = match asked {
            "" => vec!["-noservername"],
            asked => vec!["-servername", asked],
        };
        let mut client = house.openssl(&name);
        client.args(["-brief"]);
        let output = crate::house::run(client, b"")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.starts_with("Peer certificate:"));
        ensure!(line.is_some_and(|line| line.contains(subject)), "{asked}: {said}");
    }
    let odd = house.control()?.call(&["CONFIG", "SET", "tls-sni-cert-files", &words[0]])?;
    ensure!(odd.is_error(), "{odd:?}");
    Ok(())
}

#[test]
fn a_key_may_be_encrypted() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    let form = "pkcs8 -topk8 -v2 aes-256-cbc";
    let key = house.certificates.encrypt(&house.certificates.key(), "secret word", form);
    // The words of a command line are split at spaces.
    ensure!(key.is_err());
    let key = house.certificates.encrypt(&house.certificates.key(), "secret", form)?;
    let key = key.display().to_string();
    let mut set = |words: &[&str]| control.call(&[&["CONFIG", "SET"], words].concat());
    ensure!(set(&["tls-key-file", &key])?.is_error(), "there is no password");
    house.logs("there is no password for it")?;
    ensure!(set(&["tls-key-file", &key, "tls-key-file-pass", "wrong"])?.is_error());
    ensure!(!set(&["tls-key-file", &key, "tls-key-file-pass", "secret"])?.is_error());
    ensure!(is_served(house.connect()));
    ensure!(!house.server.log().contains("secret"), "{}", house.server.log());
    let old = house.certificates.encrypt(&house.certificates.key(), "secret", "ec -aes256")?;
    ensure!(set(&["tls-key-file", &old.display().to_string()])?.is_error());
    house.logs("`openssl pkcs8 -topk8` writes")?;
    Ok(())
}

/// How the handshakes of several connections in turn were made, by one client.
fn handshakes(
    house: &House,
    config: &std::sync::Arc<rustls::ClientConfig>,
) -> Result<Vec<HandshakeKind>> {
    (0..3)
        .map(|_| {
            let mut caller = Caller::connect(house.port, std::sync::Arc::clone(config))?;
            // The ticket comes with the first reply, at the latest.
            ensure!(caller.call("PING")? == simple("PONG"));
            let Stream::Encrypted(own) = &caller.stream else { unreachable!("it is encrypted") };
            own.conn.handshake_kind().context("the handshake has ended")
        })
        .collect()
}

#[test]
fn sessions_are_resumed_until_the_settings_change() -> Result<()> {
    use HandshakeKind::{Full, Resumed};
    let house = House::open(&[])?;
    let mut control = house.control()?;
    for version in ["TLSv1.2", "TLSv1.3"] {
        control.call(&["CONFIG", "SET", "tls-protocols", version])?;
        let config = house.config()?;
        let kinds = handshakes(&house, &config)?;
        ensure!(kinds == [Full, Resumed, Resumed], "{version}: {kinds:?}");
        // A client that is not believed any more does not come in by an old session.
        let other = Certificates::make()?;
        let authority = other.authority().display().to_string();
        control.call(&["CONFIG", "SET", "tls-ca-cert-file", &authority])?;
        let refused = Caller::connect(house.port, std::sync::Arc::clone(&config));
        ensure!(!is_served(refused), "{version}");
        let authority = house.certificates.authority().display().to_string();
        control.call(&["CONFIG", "SET", "tls-ca-cert-file", &authority])?;
        control.call(&["CONFIG", "SET", "tls-session-caching", "no"])?;
        let kinds = handshakes(&house, &config)?;
        ensure!(kinds == [Full, Full, Full], "{version}: {kinds:?}");
        control.call(&["CONFIG", "SET", "tls-session-caching", "yes"])?;
        control.call(&["CONFIG", "SET", "tls-session-cache-timeout", "0"])?;
        let kinds = handshakes(&house, &config)?;
        ensure!(kinds == [Full, Full, Full], "{version}: {kinds:?}");
        control.call(&["CONFIG", "SET", "tls-session-cache-timeout", "300"])?;
    }
    Ok(())
}

#[test]
fn the_end_of_certificates_is_shown_only_where_there_are_some() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    for name in ["tls_client_cert_expires_in_seconds", "tls_ca_cert_expires_in_seconds"] {
        ensure!(number(&mut control, name)? > 8 * 86_400);
    }
    let section = control.call_text("INFO tls")?;
    ensure!(
        section.text().is_some_and(|text| text.starts_with(b"# TLS\r\ntls_server_cert_serial:"))
    );
    control.call_text("CONFIG SET tls-port 0 https-port 0")?;
    control.call_text("CONFIG SET tls-replication no tls-cert-file \"\"")?;
    ensure!(control.call_text("INFO tls")?.text() == Some(b""), "{}", house.server.log_tail());
    Ok(())
}

#[test]
fn a_client_is_told_of_what_it_is_refused_for() -> Result<()> {
    let house = House::open(&[])?;
    let said = |value: Result<Value>| value.err().map(|error| format!("{error:#}"));
    let refused = house.connect_as(None).and_then(|mut caller| caller.call("PING"));
    ensure!(said(refused).is_some_and(|text| text.contains("CertificateRequired")));
    house.logs("Error accepting a client connection: peer sent no")
}
