//! The modes that look at all keys, measure, copy and watch.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tests::certificates::Encryption;
use tests::server::{Server, Target};

use crate::{Client, reference};

/// Keys of all types, of sizes that are all different.
fn fill(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    for index in 1..=30 {
        let value = "v".repeat(index * 3);
        client.call(&["SET", &format!("user:{index}"), &value])?;
    }
    for (size, key) in [(5, "l:1"), (9, "l:2")] {
        for index in 0..size {
            client.call(&["RPUSH", key, &index.to_string()])?;
            client.call(&["HSET", &format!("h:{key}"), &index.to_string(), "v"])?;
            client.call(&["SADD", &format!("s:{key}"), &index.to_string()])?;
            client.call(&["ZADD", &format!("z:{key}"), "1", &index.to_string()])?;
            client.call(&["XADD", &format!("x:{key}"), "*", "f", "v"])?;
        }
    }
    client.call(&[&b"SET"[..], b"odd \x00 key", b"v"])?;
    Ok(())
}

/// The lines that do not depend on the order in which keys are found.
fn summary(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('['));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn keys_are_found_as_by_redis_cli() -> Result<()> {
    let server = reference(&[("maxmemory-policy", "allkeys-lfu")])?;
    fill(&server)?;
    for arguments in [
        &["--bigkeys"][..],
        &["--memkeys"],
        &["--memkeys-samples", "0"],
        &["--scan"],
        &["--no-raw", "--scan", "--pattern", "*odd*"],
        &["--scan", "--pattern", "user:1*", "--count", "3"],
        &["--scan", "--quoted-pattern", "\"odd \\x00*\""],
        &["--scan", "--pattern", "nothing*"],
        &["--bigkeys", "--pattern", "l:*"],
    ] {
        let theirs = Client::Redis.at(&server, arguments, b"")?.succeeded()?;
        let ours = Client::Dunlin.at(&server, arguments, b"")?.succeeded()?;
        // In a pipe redis-cli ends a name at its first zero byte.
        let theirs_out = match arguments[0] {
            "--scan" => theirs.out.replace("odd \n", "odd \0 key\n"),
            _ => theirs.out,
        };
        ensure!(
            summary(&theirs_out) == summary(&ours.out),
            "{arguments:?}\n{theirs_out}\n{}",
            ours.out
        );
    }
    let hot = Client::Dunlin.at(&server, &["--hotkeys"], b"")?.succeeded()?;
    ensure!(hot.out.matches("hot key found with counter").count() == 16, "{hot:?}");
    let stats = Client::Dunlin.at(&server, &["--keystats", "--top", "3"], b"")?.succeeded()?;
    for part in
        ["100.00% keys scanned", "Keys sampled: 41", "--- Top 3 key sizes ---", "l:2 has 9 items"]
    {
        ensure!(stats.out.contains(part), "no {part:?} in\n{}", stats.out);
    }
    server.connect()?.call_text("CONFIG SET maxmemory-policy noeviction")?;
    let refused = Client::Dunlin.at(&server, &["--hotkeys"], b"")?;
    ensure!(refused.code == Some(1) && refused.complaints.contains("LFU"), "{refused:?}");
    Ok(())
}

#[test]
fn data_is_copied_as_a_file() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let server = Server::start(target, &[("repl-diskless-sync-delay", "0")])?;
        fill(&server)?;
        let file = server.directory().join("copy.rdb");
        let name = file.to_str().context("a path is text")?;
        let said = Client::Dunlin.at(&server, &["--rdb", name], b"")?.succeeded()?;
        ensure!(said.complaints.contains("Transfer finished with success"), "{said:?}");
        let bytes = std::fs::read(&file)?;
        ensure!(bytes.starts_with(b"REDIS0"), "{} bytes", bytes.len());
        // The file is whole.
        let mut checked = std::process::Command::new(tests::server::dunlin_binary()?);
        let checked = checked.arg("check").arg(&file).output()?;
        ensure!(checked.status.success(), "{checked:?}");
        let missing = Client::Dunlin.at(&server, &["--rdb", "/nowhere/x.rdb"], b"")?;
        ensure!(
            missing.code == Some(1) && missing.complaints.contains("No such file"),
            "{missing:?}"
        );
        let left = std::fs::read_dir(server.directory())?.filter_map(Result::ok);
        let left = left.filter(|entry| entry.file_name().to_string_lossy().ends_with(".part"));
        ensure!(left.count() == 0, "a part of a file was left behind");
    }
    Ok(())
}

#[test]
fn scripts_and_many_commands() -> Result<()> {
    let server = reference(&[])?;
    let script = server.directory().join("script.lua");
    std::fs::write(&script, "return {KEYS[1], ARGV[1], #KEYS, #ARGV}")?;
    let name = script.to_str().context("a path is text")?;
    for words in [&["k", ",", "a", "b"][..], &["k", "a", "b"], &[]] {
        let arguments = [&["--eval", name], words].concat();
        let theirs = Client::Redis.at(&server, &arguments, b"")?;
        let ours = Client::Dunlin.at(&server, &arguments, b"")?;
        ensure!(theirs == ours, "{theirs:?} {ours:?}");
    }
    let mut input = Vec::new();
    for index in 0..50_000 {
        input.extend(format!("SET key:{index} {}\r\n", "v".repeat(1 + index % 50)).into_bytes());
    }
    let said = Client::Dunlin.at(&server, &["--pipe"], &input)?.succeeded()?;
    ensure!(said.out.ends_with("errors: 0, replies: 50000\n"), "{said:?}");
    let counted = Client::Dunlin.at(&server, &["DBSIZE"], b"")?;
    ensure!(counted.out == "50000\n", "{counted:?}");
    Ok(())
}

#[test]
fn latencies_are_measured() -> Result<()> {
    let server = reference(&[])?;
    for (form, separator) in [("--raw", ' '), ("--csv", ',')] {
        let said = Client::Dunlin.at(&server, &[form, "--latency", "-i", "0.2"], b"")?;
        let said = said.succeeded()?;
        let numbers: Vec<f64> =
            said.out.trim_end().split(separator).filter_map(|word| word.parse().ok()).collect();
        ensure!(numbers.len() == 4 && numbers[3] >= 1.0 && numbers[0] <= numbers[1], "{said:?}");
    }
    Ok(())
}

#[test]
fn other_clients_are_watched() -> Result<()> {
    let server = reference(&[])?;
    let port = server.port().to_string();
    let mut command = Client::Dunlin.command()?;
    command.args(["-p", &port, "--monitor", "user:*", "!set"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    ensure!(lines.next().context("a line")?? == "OK");
    let mut client = server.connect()?;
    for words in [&["GET", "other"][..], &["SET", "user:1", "v"], &["GET", "user:1"]] {
        client.call(words)?;
    }
    let line = lines.next().context("a line")??;
    ensure!(line.ends_with("\"GET\" \"user:1\""), "{line}");
    tests::process::ask_to_end(child.id())?;
    child.wait()?;
    Ok(())
}

#[test]
fn connections_are_encrypted() -> Result<()> {
    let encryption = Encryption::make()?;
    let server =
        Server::start_through(Target::Dunlin, Some(&encryption), &[("tls-auth-clients", "no")])?;
    let authority = encryption.certificates().authority();
    let authority = authority.to_str().context("a path is text")?;
    let said = Client::Dunlin.at(&server, &["--tls", "--cacert", authority, "PING"], b"")?;
    ensure!(said.out == "PONG\n", "{said:?}");
    let uri = format!("rediss://127.0.0.1:{}", server.port());
    let said =
        Client::Dunlin.run(&["-u", &uri, "--cacert", authority, "--pipe"], b"SET a 1\r\n")?;
    ensure!(said.out.ends_with("errors: 0, replies: 1\n"), "{said:?}");
    let refused = Client::Dunlin.at(&server, &["--tls", "PING"], b"")?;
    ensure!(refused.code == Some(1) && refused.complaints.contains("certificate"), "{refused:?}");
    let said = Client::Dunlin.at(&server, &["--tls", "--insecure", "GET", "a"], b"")?;
    ensure!(said.out == "1\n", "{said:?}");
    Ok(())
}

#[test]
fn a_replicas_commands_are_printed() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let server = Server::start(target, &[("repl-diskless-sync-delay", "0")])?;
        let port = server.port().to_string();
        let mut command = Client::Dunlin.command()?;
        command.args(["-p", &port, "--replica"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut client = server.connect()?;
        tests::observe::wait_until("the replica is there", || {
            Ok(tests::observe::figure(&mut client, "slave0").is_ok_and(|it| it.contains("online")))
        })?;
        client.call(&["SET", "copied", "to it"])?;
        let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
        let is_there =
            lines.any(|line| line.is_ok_and(|line| line == "\"SET\",\"copied\",\"to it\""));
        ensure!(is_there, "{target:?}");
        tests::process::ask_to_end(child.id())?;
        child.wait()?;
    }
    Ok(())
}
