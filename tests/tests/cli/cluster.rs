//! A cluster of two nodes: commands go where they belong.

use anyhow::{Result, ensure};
use tests::client::Reply;
use tests::observe::wait_until;
use tests::server::Server;

use crate::{Client, reference};

/// The slots of two nodes.
const HALVES: [&str; 2] = ["0 8191", "8192 16383"];

fn start() -> Result<[Server; 2]> {
    let options = [("cluster-enabled", "yes"), ("cluster-node-timeout", "2000")];
    let nodes = [reference(&options)?, reference(&options)?];
    for (node, half) in nodes.iter().zip(HALVES) {
        node.connect()?.call_text(&format!("CLUSTER ADDSLOTSRANGE {half}"))?;
    }
    nodes[1].connect()?.call_text("CLUSTER SET-CONFIG-EPOCH 2")?;
    nodes[0].connect()?.call_text(&format!("CLUSTER MEET 127.0.0.1 {}", nodes[1].port()))?;
    for node in &nodes {
        let mut client = node.connect()?;
        wait_until("the cluster works", || {
            let state = client.call_text("CLUSTER INFO")?;
            let text = String::from_utf8_lossy(state.text().unwrap_or_default()).into_owned();
            Ok(text.contains("cluster_state:ok") && text.contains("cluster_known_nodes:2"))
        })?;
    }
    Ok(nodes)
}

#[test]
fn commands_go_where_they_belong() -> Result<()> {
    let nodes = start()?;
    // The slots of foo and bar are 12182 and 5061.
    let refused = Client::Dunlin.at(&nodes[0], &["SET", "foo", "1"], b"")?;
    ensure!(refused.out.starts_with("MOVED 12182"), "{refused:?}");
    for client in [Client::Redis, Client::Dunlin] {
        for (key, value) in [("foo", "1"), ("bar", "2")] {
            let said = client.at(&nodes[0], &["-c", "SET", key, value], b"")?.succeeded()?;
            ensure!(said.out == "OK\n" && said.complaints.is_empty(), "{said:?}");
        }
        let lines = b"GET foo\nGET bar\nGET foo\n";
        let said = client.at(&nodes[0], &["-c"], lines)?.succeeded()?;
        let [first, second] = nodes.each_ref().map(|node| node.port());
        let to =
            |slot, port| format!("-> Redirected to slot [{slot}] located at 127.0.0.1:{port}\n");
        let there = to(12182, second);
        let back = to(5061, first);
        ensure!(said.out == format!("{there}1\n{back}2\n{there}1\n"), "{client:?}: {said:?}");
    }
    asked(&nodes)
}

/// A slot that is on its way: the old node asks its clients to ask the new one.
fn asked(nodes: &[Server; 2]) -> Result<()> {
    let (mut old, mut new) = (nodes[1].connect()?, nodes[0].connect()?);
    let ids = [&mut new, &mut old].map(|client| client.call_text("CLUSTER MYID"));
    let [new_id, old_id] = ids.map(|id| match id {
        Ok(Reply::Bulk(id)) => String::from_utf8_lossy(&id).into_owned(),
        other => format!("{other:?}"),
    });
    new.call_text(&format!("CLUSTER SETSLOT 12182 IMPORTING {old_id}"))?;
    old.call_text(&format!("CLUSTER SETSLOT 12182 MIGRATING {new_id}"))?;
    let key = "another{foo}";
    let said = Client::Dunlin.at(&nodes[1], &["-c", "SET", key, "there"], b"")?.succeeded()?;
    ensure!(said.out == "OK\n", "{said:?}");
    new.call_text("ASKING")?;
    let value = new.call(&["GET", key])?;
    ensure!(value.text() == Some(b"there"), "{value:?}");
    Ok(())
}
