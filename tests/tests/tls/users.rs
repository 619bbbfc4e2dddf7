//! Clients that are the users whom their certificates name.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use resp::client::Value;
use rustls::HandshakeKind;
use tests::certificates::Identity;
use tests::client::{Client, Reply};
use tests::observe::number;
use tls::Stream;

use crate::house::{Caller, House, bulk, read, read_some, simple};

/// A server with users, and a certificate with a common name and two URIs.
fn open(options: &[(&str, &str)]) -> Result<(House, Identity, Client)> {
    let house = House::open(options)?;
    let names = "URI:urn:trial:first,DNS:alice.example,URI:urn:trial:second";
    let alice = house.certificates.issue("alice", names, 9)?;
    let control = house.control()?;
    Ok((house, alice, control))
}

fn set(control: &mut Client, line: &str) -> Result<()> {
    let reply = control.call_text(line)?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{line}: {reply:?}");
    Ok(())
}

/// Who a client with this certificate is.
fn who(house: &House, own: Option<&Identity>) -> Result<Value> {
    house.connect_as(own)?.call("ACL WHOAMI")
}

/// The reason, the object and the user of the newest entry of ACL LOG, and how many there are.
fn refusal(control: &mut Client) -> Result<(usize, Vec<String>)> {
    let log = control.call_text("ACL LOG")?.elements().context("a list")?;
    let count = log.len();
    let fields = log.into_iter().next().and_then(Reply::elements).unwrap_or_default();
    let texts: Vec<String> = fields
        .iter()
        .map(|own| String::from_utf8_lossy(own.text().unwrap_or_default()).into_owned())
        .collect();
    let named = ["reason", "context", "object", "username"].map(|name| {
        let found = texts.chunks(2).find(|pair| pair[0] == name);
        found.map(|pair| pair[1].clone()).unwrap_or_default()
    });
    Ok((count, named.to_vec()))
}

#[test]
fn a_common_name_is_that_of_a_user() -> Result<()> {
    let (house, alice, mut control) = open(&[("requirepass", "secret"), ("loglevel", "verbose")])?;
    set(&mut control, "AUTH secret")?;
    set(&mut control, "ACL SETUSER alice on ~own:* +@all")?;
    let refused = house.connect_as(Some(&alice))?.call("PING")?;
    ensure!(matches!(&refused, Value::Error(text) if text.starts_with(b"NOAUTH")), "{refused:?}");
    set(&mut control, "CONFIG SET tls-auth-clients-user CN")?;
    // No password is needed, and the rights are those of the user.
    let mut caller = house.connect_as(Some(&alice))?;
    ensure!(caller.call("ACL WHOAMI")? == bulk(b"alice"));
    ensure!(caller.call("SET own:a 1")? == simple("OK"));
    let refused = caller.call("SET other 1")?;
    ensure!(matches!(&refused, Value::Error(text) if text.starts_with(b"NOPERM")), "{refused:?}");
    let Value::Bulk(line) = caller.call("CLIENT INFO")? else { panic!("a text") };
    ensure!(String::from_utf8_lossy(&line).contains(" user=alice "));
    house.logs("TLS: Auto-authenticated client as alice (addr=127.0.0.1:")?;
    // A user may still log in as another one.
    ensure!(caller.call("AUTH secret")? == simple("OK"));
    ensure!(caller.call("ACL WHOAMI")? == bulk(b"default"));
    // Who is deleted is thrown out, whoever has vouched for it.
    let mut caller = house.connect_as(Some(&alice))?;
    ensure!(caller.call("PING")? == simple("PONG"));
    ensure!(control.call_text("ACL DELUSER alice")? == Reply::Integer(1));
    ensure!(caller.is_ended());
    Ok(())
}

#[test]
fn a_session_that_is_resumed_is_of_the_same_user() -> Result<()> {
    let (house, alice, mut control) = open(&[("tls-auth-clients-user", "cn")])?;
    let shown = control.call_text("CONFIG GET tls-auth-clients-user")?.elements();
    ensure!(shown.context("a pair")?[1].text() == Some(&b"CN"[..]));
    set(&mut control, "ACL SETUSER alice on ~* +@all")?;
    for version in ["TLSv1.2", "TLSv1.3"] {
        set(&mut control, &format!("CONFIG SET tls-protocols {version}"))?;
        let config = read(&house.settings(Some(&alice)))?;
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let mut caller = Caller::connect(house.port, std::sync::Arc::clone(&config))?;
            ensure!(caller.call("ACL WHOAMI")? == bulk(b"alice"), "{version}");
            let Stream::Encrypted(own) = &caller.stream else { unreachable!("it is encrypted") };
            kinds.extend(own.conn.handshake_kind());
        }
        ensure!(kinds == [HandshakeKind::Full, HandshakeKind::Resumed], "{version}: {kinds:?}");
    }
    Ok(())
}

#[test]
fn a_name_that_no_user_has_is_noted() -> Result<()> {
    let (house, alice, mut control) =
        open(&[("tls-auth-clients-user", "CN"), ("loglevel", "verbose")])?;
    for rules in ["", "ACL SETUSER alice off >password ~* +@all"] {
        if !rules.is_empty() {
            set(&mut control, rules)?;
        }
        set(&mut control, "ACL LOG RESET")?;
        let before = number(&mut control, "acl_access_denied_tls_cert")?;
        ensure!(who(&house, Some(&alice))? == bulk(b"default"));
        ensure!(number(&mut control, "acl_access_denied_tls_cert")? == before + 1);
        let (count, fields) = refusal(&mut control)?;
        house.logs("TLS: No matching user found for certificate CN alice")?;
        ensure!(count == 1 && fields == ["tls-cert", "toplevel", "", "alice"], "{fields:?}");
    }
    // A client without a certificate, where that is allowed, has no name.
    set(&mut control, "CONFIG SET tls-auth-clients optional")?;
    set(&mut control, "ACL LOG RESET")?;
    ensure!(who(&house, None)? == bulk(b"default"));
    ensure!(refusal(&mut control)?.0 == 0);
    Ok(())
}

#[test]
fn the_first_uri_that_a_user_has_counts() -> Result<()> {
    let (house, alice, mut control) =
        open(&[("tls-auth-clients-user", "URI"), ("loglevel", "verbose")])?;
    for name in ["alice", "urn:trial:first", "urn:trial:second", "alice.example"] {
        set(&mut control, &format!("ACL SETUSER {name} on ~* +@all"))?;
    }
    ensure!(who(&house, Some(&alice))? == bulk(b"urn:trial:first"));
    set(&mut control, "ACL SETUSER urn:trial:first off")?;
    ensure!(who(&house, Some(&alice))? == bulk(b"urn:trial:second"));
    set(&mut control, "ACL SETUSER urn:trial:second off")?;
    ensure!(who(&house, Some(&alice))? == bulk(b"default"));
    let (count, fields) = refusal(&mut control)?;
    ensure!(count == 1 && fields[3] == "urn:trial:second", "{fields:?}");
    house.logs("TLS: No matching user found in certificate SAN URI fields")?;
    set(&mut control, "CONFIG SET tls-auth-clients-user off")?;
    ensure!(who(&house, Some(&alice))? == bulk(b"default"));
    Ok(())
}

/// The status and the rest of the answer to a request without a body, of a client with this
/// certificate.
fn asked(
    house: &House,
    own: Option<&Identity>,
    line: &str,
    headers: &str,
) -> Result<(u16, String)> {
    let mut caller = Caller::connect(house.https, read(&house.settings(own))?)?;
    let request =
        format!("{line} HTTP/1.1\r\nHost: db.example\r\nConnection: close\r\n{headers}\r\n");
    caller.stream.write_all(request.as_bytes())?;
    caller.stream.flush()?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count) = read_some(&mut caller.stream, &mut piece)
        && count > 0
    {
        answer.extend_from_slice(&piece[..count]);
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.get(9..12).and_then(|status| status.parse().ok());
    Ok((status.with_context(|| text.clone())?, text))
}

#[test]
fn requests_of_a_client_with_a_certificate_are_its_users() -> Result<()> {
    let (house, alice, mut control) =
        open(&[("requirepass", "secret"), ("tls-auth-clients", "optional")])?;
    set(&mut control, "AUTH secret")?;
    set(&mut control, "ACL SETUSER alice on ~own:* +@all")?;
    set(&mut control, "ACL SETUSER bob on >password ~other:* +@all")?;
    set(&mut control, "SET own:a 1")?;
    set(&mut control, "SET other:a 2")?;
    let own = "GET /v1/keys/own:a";
    let other = "GET /v1/keys/other:a";
    ensure!(asked(&house, Some(&alice), own, "")?.0 == 421, "it has no user yet");
    set(&mut control, "CONFIG SET tls-auth-clients-user CN")?;
    let by_bob = "Authorization: Bearer bob:password\r\n";
    let page = "Origin: https://page.example\r\n";
    for (line, headers, status) in [
        (own, "", 200),
        (other, "", 403),
        ("PUT /v1/keys/other:a", "Content-Length: 0\r\n", 403),
        // Credentials say more than a certificate.
        (own, by_bob, 403),
        (other, by_bob, 200),
        (own, "Authorization: Bearer wrong\r\n", 421),
        // A browser sends the certificate for any page.
        (own, page, 403),
        (own, "Sec-Fetch-Site: cross-site\r\n", 403),
    ] {
        let (got, text) = asked(&house, Some(&alice), line, headers)?;
        ensure!(got == status, "{line} {headers}: {text}");
    }
    set(&mut control, "CONFIG SET http-cors-origins *")?;
    ensure!(asked(&house, Some(&alice), own, page)?.0 == 403, "nobody has named the page");
    set(&mut control, "CONFIG SET http-cors-origins https://page.example")?;
    ensure!(asked(&house, Some(&alice), own, page)?.0 == 200);
    // Nobody without a certificate, and nobody who is off or gone.
    ensure!(asked(&house, None, own, "")?.0 != 200);
    set(&mut control, "ACL SETUSER alice off")?;
    let before = number(&mut control, "acl_access_denied_tls_cert")?;
    ensure!(asked(&house, Some(&alice), own, "")?.0 != 200);
    ensure!(number(&mut control, "acl_access_denied_tls_cert")? == before + 1);
    Ok(())
}

#[test]
fn a_connection_of_http_asks_anew_whose_certificate_it_has() -> Result<()> {
    let (house, alice, mut control) =
        open(&[("requirepass", "secret"), ("tls-auth-clients-user", "CN")])?;
    set(&mut control, "AUTH secret")?;
    set(&mut control, "ACL SETUSER alice on ~own:* +@all")?;
    set(&mut control, "SET own:a 1")?;
    let mut caller = Caller::connect(house.https, read(&house.settings(Some(&alice)))?)?;
    let mut ask = |status: &str| -> Result<()> {
        let request = b"GET /v1/keys/own:a HTTP/1.1\r\nHost: db.example\r\n\r\n";
        caller.stream.write_all(request)?;
        caller.stream.flush()?;
        let mut piece = [0; 4096];
        let count = read_some(&mut caller.stream, &mut piece)?;
        let text = String::from_utf8_lossy(&piece[..count]).into_owned();
        ensure!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {text}");
        Ok(())
    };
    for _ in 0..3 {
        // The second one has the headers of the first.
        ask("200")?;
        ask("200")?;
        set(&mut control, "ACL SETUSER alice resetkeys ~another")?;
        ask("403")?;
        set(&mut control, "ACL SETUSER alice ~own:*")?;
    }
    Ok(())
}
