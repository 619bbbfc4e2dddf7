//! What `dunlin cluster` says of a change that etcd has carried out, when it has said something
//! else or nothing.

use anyhow::{Result, ensure};
use tests::cluster::{Deployment, OTHER_SHARD};
use tests::proxy::Proxy;

use crate::interrupted::{in_words, tool};

/// What etcd answers when its space is used up, also after a transaction that it has carried out.
const NO_SPACE: &str = r#"{"error":"etcdserver: mvcc: database space exceeded","code":8,"message":"etcdserver: mvcc: database space exceeded"}"#;
const TRANSACTION: &[u8] = b"/v3/kv/txn";

fn answer(text: &str) -> String {
    let length = text.len();
    format!(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

#[test]
fn a_change_that_was_done_is_no_failure() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    let proxy = Proxy::start(deployment.etcd.port(0))?;
    let url = format!("http://127.0.0.1:{}", proxy.port());
    for (slots, instead) in [("0-99", answer(NO_SPACE)), ("100-199", String::new())] {
        proxy.answer(TRANSACTION, instead.as_bytes());
        let words = ["move", slots, "--shard", OTHER_SHARD, "--yes"];
        // The last one holds.
        let output = tool(&deployment, &words)?.args(["--etcd", &url]).output()?;
        ensure!(!proxy.will_lose_an_answer(), "it was asked for nothing");
        ensure!(output.status.code() == Some(0), "{slots}: {}", in_words(&output));
    }
    ensure!(deployment.slots_of(OTHER_SHARD)? == "0-199");
    Ok(())
}

#[test]
fn a_change_that_was_refused_is_one() -> Result<()> {
    let mut deployment = Deployment::start(1, &[])?;
    deployment.add_shard(1)?;
    for words in [
        "user add root:root",
        "user grant-role root root",
        "role add reader",
        "role grant-permission reader read / --prefix=true",
        "user add reader:word",
        "user grant-role reader reader",
        "auth enable",
    ] {
        deployment.etcd.control(&words.split(' ').collect::<Vec<_>>())?;
    }
    let mut command = tool(&deployment, &["move", "0-99", "--shard", OTHER_SHARD, "--yes"])?;
    command.args(["--etcd-user", "reader"]).env("DUNLIN_CLUSTER_ETCD_PASSWORD", "word");
    let output = command.output()?;
    let said = in_words(&output);
    let is_told = said.contains("nothing was done") && said.contains("permission denied");
    ensure!(output.status.code() == Some(1) && is_told, "{said}");
    Ok(())
}
