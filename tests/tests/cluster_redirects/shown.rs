//! What clients are shown of the cluster, and where HTTP sends them.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::wait_until;
use tests::peers;
use tests::web::Web;

use crate::nodes::{Nodes, text};

/// What redis-cli says to a node, in cluster mode if `words` ask for that.
fn redis_cli(port: u16, words: &[&str]) -> Result<String> {
    let output = Command::new(peers::program("redis-cli"))
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(words)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(said + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn programs_find_their_way() -> Result<()> {
    let nodes = Nodes::start(&[])?;
    let ports: Vec<u16> = nodes.all.iter().map(tests::server::Server::port).collect();
    // It follows redirections to the node that has the key.
    for (key, port) in [("k2", ports[1]), ("k0", ports[0]), ("k0", ports[2])] {
        ensure!(redis_cli(port, &["-c", "SET", key, "there"])?.contains("OK"));
        ensure!(redis_cli(port, &["-c", "GET", key])?.contains("there"));
    }
    let first = format!("127.0.0.1:{}", ports[0]);
    let said = redis_cli(ports[0], &["--cluster", "check", &first])?;
    ensure!(said.contains("[OK] All nodes agree about slots configuration."), "{said}");
    ensure!(said.contains("1 additional replica(s)"), "{said}");
    ensure!(said.contains("[ERR] Not all 16384 slots are covered by nodes."), "{said}");
    let said = redis_cli(ports[0], &["--cluster", "info", &first])?;
    ensure!(said.contains("keys in 2 masters"), "{said}");
    let said = redis_cli(ports[0], &["--cluster", "call", &first, "PING"])?;
    ensure!(said.matches("PONG").count() == 3, "{said}");
    is_led_by_http(&nodes)?;
    http_deletes_keys_of_several_slots(&nodes)?;
    messages_reach_all_nodes(&nodes)?;
    messages_reach_all_nodes_of_a_shard(&nodes)?;
    links_between_nodes_may_be_idle(&nodes)?;
    clients_that_wait_are_served(&nodes)?;
    announces_no_lines(&nodes)
}

/// The port of HTTP of a node.
fn http_port(nodes: &Nodes, index: usize) -> Result<u16> {
    let reply = nodes.all[index].connect()?.call_text("CONFIG GET http-port")?;
    let port = reply.elements().and_then(|own| own.into_iter().nth(1)).context("a value")?;
    Ok(text(&port)?.parse()?)
}

fn is_led_by_http(nodes: &Nodes) -> Result<()> {
    let (one, other) = (http_port(nodes, 0)?, http_port(nodes, 1)?);
    let mut web = Web::connect(one)?;
    // The second request has the headers of the first.
    for _ in 0..2 {
        let answer = web.ask("GET /v1/keys/k0", &[], b"")?;
        ensure!(answer.status == 307, "{}", answer.status);
        let expected = format!("http://127.0.0.1:{other}/v1/keys/k0");
        ensure!(answer.header("location") == Some(&*expected), "{:?}", answer.header("location"));
    }
    // From the path on, if the request names a host.
    let answer = web.ask("GET http://127.0.0.1:1/v1/keys/k0", &[], b"")?;
    let expected = format!("http://127.0.0.1:{other}/v1/keys/k0");
    ensure!((answer.status, answer.header("location")) == (307, Some(&*expected)));
    let answer = web.ask("PUT /v1/keys/k0?ttl=100", &[], b"value")?;
    let expected = format!("http://127.0.0.1:{other}/v1/keys/k0?ttl=100");
    ensure!((answer.status, answer.header("location")) == (307, Some(&*expected)));
    let answer = Web::connect(other)?.ask("PUT /v1/keys/k0?ttl=100", &[], b"value")?;
    ensure!(answer.status == 204 || answer.status == 201, "{}", answer.status);
    ensure!(web.ask("PUT /v1/keys/k2", &[], b"value")?.status < 300);
    ensure!(web.ask("GET /v1/keys/k24", &[], b"")?.status == 503);
    for (address, body) in [
        ("GET /v1/changes?key=k0", &b""[..]),
        ("GET /v1/keys/k0?wait=true", b""),
        ("POST /v1/transaction", br#"[["GET","k0"],["GET","k0"]]"#),
    ] {
        let answer = Web::connect(one)?.ask(address, &[], body)?;
        let path = address.split_once(' ').context("a method")?.1;
        let expected = format!("http://127.0.0.1:{other}{path}");
        ensure!((answer.status, answer.header("location")) == (307, Some(&*expected)), "{address}");
    }
    // No node has both, so none sends the client to the other.
    let both =
        [(one, &br#"[["GET","k2"],["GET","k0"]]"#[..]), (other, br#"[["GET","k0"],["GET","k2"]]"#)];
    for (port, body) in both {
        let answer = Web::connect(port)?.ask("POST /v1/transaction", &[], body)?;
        ensure!(answer.status == 400 && answer.text().contains("CROSSSLOT"), "{}", answer.text());
    }
    // The tree of etcd is one key, of the first node's.
    let answer = Web::connect(other)?.ask("GET /v2/keys/k", &[], b"")?;
    let expected = format!("http://127.0.0.1:{one}/v2/keys/k");
    ensure!((answer.status, answer.header("location")) == (307, Some(&*expected)));
    let metrics = web.ask("GET /metrics", &[], b"")?;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    for line in [
        "dunlin_cluster_up 1",
        "dunlin_cluster_is_primary 1",
        "dunlin_cluster_slots_assigned 16001",
        "dunlin_cluster_own_slots 8001",
        "dunlin_cluster_nodes_alive 3",
        "dunlin_cluster_shards_without_primary 0",
    ] {
        ensure!(metrics.contains(&format!("{line}\n")), "{line}");
    }
    Ok(())
}

/// The keys below a key are in slots of their own. Those of the node are deleted.
fn http_deletes_keys_of_several_slots(nodes: &Nodes) -> Result<()> {
    let (mut one, mut other) = (nodes.all[0].connect()?, nodes.all[1].connect()?);
    // They are in the slots 15891, 9283 and 13410, and the last in 1025, which is the other node's.
    for (client, keys) in [(&mut other, &["t", "t/0", "t/1"][..]), (&mut one, &["t/2"])] {
        for key in keys {
            ensure!(client.call(&["SET", key, "v"])? == Reply::Status(b"OK".to_vec()), "{key}");
        }
    }
    let mut web = Web::connect(http_port(nodes, 1)?)?;
    let answer = web.ask("DELETE /v1/keys/t?recursive=true", &[], b"")?;
    ensure!(answer.text() == r#"{"deleted":3}"#, "{} {}", answer.status, answer.text());
    ensure!(one.call_text("EXISTS t/2")? == Reply::Integer(1));
    Ok(())
}

/// What others show of a node in lines and headers has no line end.
fn announces_no_lines(nodes: &Nodes) -> Result<()> {
    let mut client = nodes.all[0].connect()?;
    for (setting, value) in [
        ("cluster-announce-ip", "127.0.0.1\r\nX-Evil: 1"),
        ("cluster-announce-ip", "evil.example/x?"),
        ("cluster-announce-ip", "user@evil.example"),
        ("cluster-announce-ip", "\x1b[31m"),
        ("cluster-announce-hostname", "a\nb"),
        ("cluster-announce-human-nodename", "a\nb"),
        ("availability-zone", "a\nb"),
    ] {
        let reply = client.call(&["CONFIG", "SET", setting, value])?;
        ensure!(reply.is_error(), "{setting} takes {value:?}");
    }
    for address in ["fe80::1%eth0", "db_1.example", "127.0.0.1"] {
        let reply = client.call(&["CONFIG", "SET", "cluster-announce-ip", address])?;
        ensure!(!reply.is_error(), "{address}: {reply:?}");
    }
    Ok(())
}

fn clients_that_wait_are_served(nodes: &Nodes) -> Result<()> {
    let mut waits = nodes.all[0].connect()?;
    waits.send(&["BLPOP", "{k2}list", "0"])?;
    let mut other = nodes.all[0].connect()?;
    ensure!(other.call_text("RPUSH {k2}list a")? == Reply::Integer(1));
    let popped = text(&Reply::Bulk(b"a".to_vec()))?;
    match waits.receive()? {
        Received::Reply(Reply::Array(parts)) => {
            ensure!(text(&parts[1])? == popped);
        }
        _ => ensure!(false, "it was not served"),
    }
    Ok(())
}

/// Each message that is published at any node comes to a subscriber of each node, once.
fn messages_reach_all_nodes(nodes: &Nodes) -> Result<()> {
    let mut listeners = Vec::new();
    for node in &nodes.all {
        let mut client = node.connect()?;
        client.call(&["SUBSCRIBE", "news"])?;
        listeners.push(client);
    }
    let mut expected = Vec::new();
    for (number, node) in nodes.all.iter().enumerate() {
        let mut client = node.connect()?;
        for (way, words) in [
            ("command", vec!["PUBLISH", "news"]),
            ("script", vec!["EVAL", "return redis.call('publish', 'news', ARGV[1])", "0"]),
        ] {
            let text = format!("{way} {number}");
            let mut words = words;
            words.push(&text);
            let reply = client.call(&words)?;
            // Those of the same node alone are counted.
            ensure!(reply == Reply::Integer(1), "{text}: {reply:?}");
            expected.push(text);
        }
        client.call_text("MULTI")?;
        client.call(&["PUBLISH", "news", &format!("transaction {number}")])?;
        client.call_text("EXEC")?;
        expected.push(format!("transaction {number}"));
    }
    hear_all(&mut listeners, expected)
}

/// Each of these clients hears each of these messages, once.
fn hear_all(listeners: &mut [Client], mut expected: Vec<String>) -> Result<()> {
    expected.sort();
    for (number, listener) in listeners.iter_mut().enumerate() {
        let mut heard = Vec::new();
        for _ in &expected {
            let Received::Reply(Reply::Array(parts)) = listener.receive()? else {
                anyhow::bail!("listener {number} ends after {heard:?}");
            };
            heard.push(text(&parts[2])?);
        }
        heard.sort();
        ensure!(heard == expected, "listener {number}: {heard:?}");
        ensure!(!listener.has_input(Duration::from_millis(100))?, "listener {number} hears more");
    }
    Ok(())
}

/// The same within a shard, of messages to a channel in one of its slots.
fn messages_reach_all_nodes_of_a_shard(nodes: &Nodes) -> Result<()> {
    let shard = [&nodes.all[0], &nodes.all[2]];
    let mut listeners = Vec::new();
    for node in shard {
        let mut client = node.connect()?;
        client.call(&["SSUBSCRIBE", "k2"])?;
        listeners.push(client);
    }
    let mut expected = Vec::new();
    for (number, node) in shard.iter().enumerate() {
        let mut client = node.connect()?;
        client.call_text("READONLY")?;
        let script = "return redis.call('spublish', KEYS[1], ARGV[1])";
        for (way, mut words) in
            [("command", vec!["SPUBLISH", "k2"]), ("script", vec!["EVAL", script, "1", "k2"])]
        {
            let text = format!("{way} {number}");
            words.push(&text);
            let reply = client.call(&words)?;
            ensure!(reply == Reply::Integer(1), "{text}: {reply:?}");
            expected.push(text);
        }
        client.call_text("MULTI")?;
        client.call(&["SPUBLISH", "k2", &format!("transaction {number}")])?;
        client.call_text("EXEC")?;
        expected.push(format!("transaction {number}"));
    }
    hear_all(&mut listeners, expected)
}

/// `timeout` closes clients that say nothing, and no link of another node.
fn links_between_nodes_may_be_idle(nodes: &Nodes) -> Result<()> {
    let node = &nodes.all[1];
    nodes.all[0].connect()?.call_text("PUBLISH news idle")?;
    let list = || text(&node.connect()?.call_text("CLIENT LIST")?);
    let links = || -> Result<Vec<String>> {
        let list = list()?;
        let links = list.lines().filter(|line| line.contains(" cmd=publish "));
        Ok(links.filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect())
    };
    let before = links()?;
    ensure!(!before.is_empty(), "{}", list()?);
    let mut idle = node.connect()?;
    idle.call_text("CLIENT SETNAME idle")?;
    node.connect()?.call_text("CONFIG SET timeout 1")?;
    wait_until("an idle client is closed", || Ok(!list()?.contains(" name=idle ")))?;
    ensure!(links()? == before, "{}", list()?);
    node.connect()?.call_text("CONFIG SET timeout 0")?;
    Ok(())
}
