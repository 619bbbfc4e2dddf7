//! Our own tools as clients.

use std::process::Command;

use anyhow::{Result, ensure};
use tests::replication::check_alike;
use tests::server::{Target, dunlin_binary};

use crate::house::{House, run};

fn dunlin(house: &House, command: &str) -> Result<Command> {
    let mut dunlin = Command::new(dunlin_binary()?);
    dunlin.arg(command).arg("--cacert").arg(house.certificates.authority());
    dunlin.arg("--cert").arg(&house.client.certificate).arg("--key").arg(&house.client.key);
    Ok(dunlin)
}

#[test]
fn bench_loads_over_tls() -> Result<()> {
    let house = House::open(&[])?;
    let port = house.port.to_string();
    for target in ["-p", "-u"] {
        let mut bench = dunlin(&house, "bench")?;
        match target {
            "-p" => bench.args(["--tls", "-p", &port]),
            _ => bench.args(["-u", &format!("rediss://127.0.0.1:{port}")]),
        };
        bench.args(["-n", "2000", "-c", "8", "-P", "4", "-d", "3000", "-t", "set,get", "-q"]);
        let output = run(bench, b"")?;
        let (said, complaints) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        ensure!(output.status.success() && said.contains("GET: "), "{said}{complaints}");
    }
    // A value that takes many records, and a new connection for each request.
    house.control()?.call(&[&b"SET"[..], b"large", &vec![b'l'; 1_000_000]])?;
    let mut bench = dunlin(&house, "bench")?;
    bench.args(["--tls", "-p", &port, "-n", "60", "-c", "3", "-k", "0", "-q", "get", "large"]);
    let output = run(bench, b"")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let url = format!("https://127.0.0.1:{}/v1/keys/large", house.https);
    let mut bench = dunlin(&house, "bench")?;
    bench.args(["-n", "100", "-c", "3", "-q", "--http", &url]);
    let output = run(bench, b"")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn bench_measures_new_connections() -> Result<()> {
    let house = House::open(&[])?;
    let port = house.port.to_string();
    let measured = |options: &[&str]| {
        let mut bench = dunlin(&house, "bench")?;
        bench.args(["-p", &port, "-n", "200", "-c", "20"]).args(options);
        let output = run(bench, b"")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<_, anyhow::Error>((output.status.success(), said, complaints))
    };
    let (succeeded, said, complaints) = measured(&["--tls", "-t", "tls_connect,tls_resume"])?;
    ensure!(succeeded, "{said}{complaints}");
    ensure!(said.contains("connections: 200, 0 of them resumed"), "{said}");
    // The first ones have nothing to go on with. Each of the others has what an earlier one left.
    ensure!(said.contains("connections: 200, 180 of them resumed"), "{said}");
    let (succeeded, _, complaints) = measured(&["--tls", "-t", "ping_mbulk"])?;
    ensure!(succeeded, "{complaints}");
    let sessions = house.control()?.call_text("CONFIG SET tls-session-caching no")?;
    ensure!(!sessions.is_error(), "{sessions:?}");
    let (_, said, _) = measured(&["--tls", "-t", "tls_resume"])?;
    ensure!(said.contains("connections: 200, 0 of them resumed"), "{said}");
    let (succeeded, said, complaints) = measured(&["-t", "tls_connect"])?;
    ensure!(!succeeded, "{said}{complaints}");
    Ok(())
}

#[test]
fn bench_believes_nobody_without_reason() -> Result<()> {
    let house = House::open(&[("tls-auth-clients", "no")])?;
    let bench = |options: &[&str]| {
        let mut bench = Command::new(dunlin_binary()?);
        bench.args(["bench", "--tls", "-p", &house.port.to_string(), "-n", "10", "-c", "1"]);
        bench.args(["-q", "-t", "set"]).args(options);
        let output = run(bench, b"")?;
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<_, anyhow::Error>((output.status.success(), complaints))
    };
    let authority = house.certificates.authority().display().to_string();
    ensure!(bench(&["--cacert", &authority])?.0);
    let (believed, complaints) = bench(&[])?;
    ensure!(!believed && complaints.contains("UnknownIssuer"), "{complaints}");
    ensure!(bench(&["--insecure"])?.0);
    // The certificate is for the address, and for no name.
    let (believed, complaints) = bench(&["--cacert", &authority, "-h", "localhost"])?;
    ensure!(!believed && complaints.contains("not valid for name"), "{complaints}");
    ensure!(bench(&["--cacert", &authority, "-h", "localhost", "--sni", "127.0.0.1"])?.0);
    Ok(())
}

#[test]
fn data_moves_between_encrypted_servers() -> Result<()> {
    let from = House::of(Target::Reference, &[("repl-diskless-sync-delay", "0")])?;
    let text = |path: std::path::PathBuf| path.display().to_string();
    let (certificate, key, authority) = (
        text(from.certificates.server()),
        text(from.certificates.key()),
        text(from.certificates.authority()),
    );
    let to = House::open(&[
        ("tls-cert-file", &certificate),
        ("tls-key-file", &key),
        ("tls-ca-cert-file", &authority),
    ])?;
    from.control()?.call(&[&b"SET"[..], b"large", &vec![b'l'; 1_000_000]])?;
    let mut moves = dunlin(&from, "move")?;
    moves.args(["--from", &format!("rediss://127.0.0.1:{}", from.port)]);
    moves.args(["--to", &format!("rediss://127.0.0.1:{}", to.port), "--yes"]);
    let output = run(moves, b"")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{said}");
    // The way back is encrypted as well.
    to.control()?.call_text("SET moved yes")?;
    check_alike(&to.server, &from.server)
}
