//! Servers that connect to servers: replicas, and keys that move.

use anyhow::{Result, ensure};
use tests::client::Reply;
use tests::observe::{figure, wait_until};
use tests::replication::{catch_up, check_alike, follow};
use tests::server::{Server, Target, free_port};

use crate::house::House;

const FOLLOWS: &[(&str, &str)] =
    &[("tls-replication", "yes"), ("repl-diskless-sync-delay", "0"), ("repl-timeout", "20")];

/// A primary and a replica with the same authority.
fn two(of_primary: Target, of_replica: Target) -> Result<(House, House)> {
    let primary = House::of(of_primary, FOLLOWS)?;
    let text = |path: std::path::PathBuf| path.display().to_string();
    let (certificate, key, authority) = (
        text(primary.certificates.server()),
        text(primary.certificates.key()),
        text(primary.certificates.authority()),
    );
    let own = [
        ("tls-cert-file", certificate.as_str()),
        ("tls-key-file", key.as_str()),
        ("tls-ca-cert-file", authority.as_str()),
    ];
    let replica = House::of(of_replica, &[FOLLOWS, &own].concat())?;
    Ok((primary, replica))
}

fn fill(house: &House) -> Result<()> {
    let mut control = house.control()?;
    let script = "for i = 1, 3000 do redis.call('SET', KEYS[1] .. i, string.rep('x', i)) \
                  redis.call('HSET', 'hash', i, i * i) redis.call('ZADD', 'zset', i, i) end";
    let filled = control.call(&["EVAL", script, "1", "key:"])?;
    ensure!(!filled.is_error(), "{filled:?}");
    control.call(&[&b"SET"[..], b"large", &vec![b'l'; 5_000_000]])?;
    Ok(())
}

#[test]
fn replicas_follow_over_encrypted_links() -> Result<()> {
    for (of_primary, of_replica) in [
        (Target::Dunlin, Target::Dunlin),
        (Target::Reference, Target::Dunlin),
        (Target::Dunlin, Target::Reference),
        (Target::Valkey, Target::Dunlin),
        (Target::Dunlin, Target::Valkey),
    ] {
        let names = format!("{} of {}", of_replica.name(), of_primary.name());
        let (primary, replica) = two(of_primary, of_replica)?;
        fill(&primary)?;
        follow(&replica.server, primary.port)?;
        catch_up(&primary.server, &replica.server)?;
        check_alike(&primary.server, &replica.server)?;
        // The stream, with writes that are large.
        let mut control = primary.control()?;
        for index in 0..50 {
            let value = vec![b'a' + (index % 26) as u8; 100_000];
            control.call(&[&b"SET"[..], format!("late:{index}").as_bytes(), &value])?;
        }
        check_alike(&primary.server, &replica.server)?;
        // The primary knows the port at which its replica is served.
        let role = figure(&mut control, "slave0")?;
        ensure!(role.contains(&format!("port={},", replica.port)), "{names}: {role}");
        // A link that is cut goes on where it was.
        let before = figure(&mut control, "sync_full")?;
        control.call_text("CLIENT KILL TYPE replica")?;
        control.call_text("SET after cut")?;
        wait_until("it has the write", || {
            Ok(replica.control()?.call_text("GET after")?.text() == Some(b"cut"))
        })?;
        check_alike(&primary.server, &replica.server)?;
        ensure!(figure(&mut control, "sync_full")? == before, "{names}: a full sync again");
    }
    Ok(())
}

#[test]
fn a_primary_that_is_not_believed_is_not_followed() -> Result<()> {
    let primary = House::open(&[])?;
    let replica = House::open(FOLLOWS)?;
    follow(&replica.server, primary.port)?;
    replica.logs("invalid peer certificate")?;
    ensure!(figure(&mut replica.control()?, "master_link_status")? == "down");
    Ok(())
}

#[test]
fn a_replica_needs_no_certificate_where_none_is_asked_for() -> Result<()> {
    let primary = House::open(&[("tls-auth-clients", "no")])?;
    let authority = primary.certificates.authority().display().to_string();
    let options = [("tls-replication", "yes"), ("tls-ca-cert-file", &authority)];
    let replica = Server::start(Target::Dunlin, &options)?;
    follow(&replica, primary.port)?;
    catch_up(&primary.server, &replica)?;
    // A port for clients needs one.
    let port = free_port()?.to_string();
    let mut control = replica.connect()?;
    ensure!(control.call(&["CONFIG", "SET", "tls-port", &port])?.is_error());
    ensure!(figure(&mut control, "tls_ca_cert_serial").is_ok());
    Ok(())
}

#[test]
fn the_name_of_a_primary_is_looked_at_if_that_is_asked_for() -> Result<()> {
    let (primary, replica) = two(Target::Dunlin, Target::Dunlin)?;
    let elsewhere = primary.certificates.issue("elsewhere", "DNS:elsewhere", 9)?;
    let files = [elsewhere.certificate.display().to_string(), elsewhere.key.display().to_string()];
    let set = ["CONFIG", "SET", "tls-cert-file", &files[0], "tls-key-file", &files[1]];
    ensure!(!primary.control()?.call(&set)?.is_error());
    let mut control = replica.control()?;
    control.call_text("CONFIG SET tls-verify-names yes")?;
    follow(&replica.server, primary.port)?;
    replica.logs("not valid for name")?;
    ensure!(figure(&mut control, "master_link_status")? == "down");
    control.call_text("CONFIG SET tls-verify-names no")?;
    catch_up(&primary.server, &replica.server)
}

#[test]
fn an_open_port_is_no_primary_for_an_encrypted_link() -> Result<()> {
    let (primary, replica) = two(Target::Dunlin, Target::Dunlin)?;
    follow(&replica.server, primary.server.port())?;
    replica.logs("No link to MASTER")?;
    ensure!(figure(&mut replica.control()?, "master_link_status")? == "down");
    follow(&replica.server, primary.port)?;
    catch_up(&primary.server, &replica.server)
}

#[test]
fn keys_move_over_encrypted_connections() -> Result<()> {
    for (of_source, of_target) in [
        (Target::Dunlin, Target::Reference),
        (Target::Reference, Target::Dunlin),
        (Target::Dunlin, Target::Dunlin),
    ] {
        let (source, target) = two(of_source, of_target)?;
        for house in [&source, &target] {
            // Redis goes by this one for keys that move.
            let set = house.control()?.call_text("CONFIG SET tls-cluster yes")?;
            ensure!(!set.is_error(), "{set:?}");
        }
        fill(&source)?;
        let mut control = source.control()?;
        let port = target.port.to_string();
        let migrate = |control: &mut tests::client::Client, keys: &[&str]| {
            let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "REPLACE", "KEYS"];
            control.call(&[&words, keys].concat())
        };
        for keys in [&["large"][..], &["hash", "zset", "key:1", "key:3000"], &["key:2", "nothing"]]
        {
            let moved = migrate(&mut control, keys)?;
            ensure!(
                moved == Reply::Status(b"OK".to_vec()),
                "{moved:?}\n{}",
                source.server.log_tail()
            );
        }
        let mut there = target.control()?;
        ensure!(there.call_text("STRLEN large")? == Reply::Integer(5_000_000));
        ensure!(there.call_text("EXISTS hash zset key:1 key:2 key:3000")? == Reply::Integer(5));
        ensure!(control.call_text("EXISTS large hash zset key:1 key:2")? == Reply::Integer(0));
        // A target that speaks no TLS there takes nothing, and nothing is lost.
        let open = target.server.port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &open, "key:5", "0", "2000"];
        ensure!(control.call(&words)?.is_error());
        ensure!(control.call_text("EXISTS key:5")? == Reply::Integer(1));
    }
    Ok(())
}

#[test]
fn roles_change_over_encrypted_links() -> Result<()> {
    let (primary, replica) = two(Target::Dunlin, Target::Dunlin)?;
    fill(&primary)?;
    follow(&replica.server, primary.port)?;
    catch_up(&primary.server, &replica.server)?;
    // The roles change, and the link goes the other way.
    replica.control()?.call_text("REPLICAOF NO ONE")?;
    follow(&primary.server, replica.port)?;
    replica.control()?.call_text("SET new leader")?;
    check_alike(&replica.server, &primary.server)?;
    Ok(())
}
