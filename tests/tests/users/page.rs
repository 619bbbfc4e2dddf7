//! docs/security.md is followed, command by command.

use std::fs;

use anyhow::{Context, Result, ensure};
use tests::server::{Server, Target, repository};

use super::{NO_KEY, expect, said};

#[test]
fn the_users_of_the_page_may_do_what_it_says() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/security.md"))?;
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    ensure!(commands.len() >= 4, "{commands:?}");
    let server = Server::start(Target::Dunlin, &[])?;
    let (mut admin, mut client) = (server.connect()?, server.connect()?);
    expect(&mut admin, "SET secret s", "OK")?;
    for command in commands {
        expect(&mut admin, command, "OK")?;
    }
    ensure!(said(&admin.call_text("ACL DRYRUN shop GET secret")?).contains("'secret' key"));
    expect(&mut client, "AUTH shop shop-password", "OK")?;
    expect(&mut client, "SET shop:1 x", "OK")?;
    expect(&mut client, "GET secret", NO_KEY)?;
    expect(&mut client, "CONFIG GET port", "-NOPERM User shop has no permissions to run")?;
    expect(&mut client, "AUTH reports reports-password", "OK")?;
    expect(&mut client, "GET shop:1", "x")?;
    expect(&mut client, "SET shop:1 y", "-NOPERM User reports has no permissions to run")?;
    expect(&mut client, "KEYS *", "-NOPERM User reports has no permissions to run")?;
    expect(&mut client, "SCAN 0", "Array")?;
    expect(&mut client, "AUTH operator operator-password", "OK")?;
    expect(&mut client, "GET secret", "s")?;
    let mut stranger = server.connect()?;
    expect(&mut stranger, "GET shop:1", "-NOAUTH")?;
    expect(&mut stranger, "AUTH shop wrong", "-WRONGPASS")
}

#[test]
fn the_rules_of_the_page_take_the_names_of_keys_away() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/security.md"))?.replace('\n', " ");
    let (_, rules) = page.split_once("count them. `").context("the rules for names")?;
    let (names, rest) = rules.split_once("` takes the names away").context("their end")?;
    let (_, rest) = rest.split_once('`').context("the rules for numbers")?;
    let (numbers, _) = rest.split_once("` the numbers").context("their end")?;
    let server = Server::start(Target::Dunlin, &[])?;
    let (mut admin, mut client) = (server.connect()?, server.connect()?);
    expect(&mut admin, &format!("ACL SETUSER u on nopass ~shop:* +@all {names} {numbers}"), "OK")?;
    expect(&mut client, "AUTH u x", "OK")?;
    for command in [
        "KEYS *",
        "SCAN 0",
        "RANDOMKEY",
        "CLUSTERSCAN 0",
        "CLUSTER GETKEYSINSLOT 0 9",
        "DBSIZE",
        "CLUSTER COUNTKEYSINSLOT 0",
    ] {
        expect(&mut client, command, "-NOPERM User u has no permissions to run")?;
    }
    Ok(())
}
