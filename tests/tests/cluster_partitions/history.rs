//! What clients have done and seen, and whether that can be.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tests::peers;

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Set,
    Get,
    Push,
    List,
}

/// Something that a client has done.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: usize,
    pub(crate) key: String,
    pub(crate) kind: Kind,
    /// What was written, or seen: elements have commas between them.
    pub(crate) value: Option<String>,
    /// How long the list was after a push.
    pub(crate) length: Option<i64>,
    /// When it began, and when its answer came, in nanoseconds. One without an answer may be done
    /// or not.
    pub(crate) call: u64,
    pub(crate) returned: Option<u64>,
    /// Who has answered, of which shard, and in which epoch, if that is known.
    pub(crate) node: usize,
    pub(crate) shard: usize,
    pub(crate) epoch: Option<u64>,
}

impl Operation {
    /// As the judge reads it.
    fn line(&self) -> String {
        let kind = match self.kind {
            Kind::Set => "set",
            Kind::Get => "get",
            Kind::Push => "push",
            Kind::List => "list",
        };
        let mut line = json!({
            "client": self.client, "key": self.key, "kind": kind, "value": self.value,
            "length": self.length, "call": self.call,
        });
        if let Some(returned) = self.returned {
            line["return"] = json!(returned);
        }
        line.to_string()
    }
}

/// Fails if no order of the operations on some key explains what was seen of it. The files of such
/// a history are kept.
pub(crate) fn judge(history: &[Operation]) -> Result<String> {
    let directory = tempfile::Builder::new().prefix("dunlin-history-").tempdir()?;
    let (file, picture) = (directory.path().join("history"), directory.path().join("wrong.html"));
    let mut written = BufWriter::new(File::create(&file)?);
    for operation in history {
        writeln!(written, "{}", operation.line())?;
    }
    written.into_inner()?;
    let output = Command::new(peers::directory().join("go/bin/history-judge"))
        .arg(&file)
        .arg(&picture)
        .output()
        .context("scripts/install-peers brings the judge")?;
    if !output.status.success() {
        let place = directory.keep();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{complaint}The history is in {}", place.display());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Fails if two nodes have acknowledged writes in one epoch, or one has after another that is
/// primary by a later one.
pub(crate) fn one_primary_at_a_time(history: &[Operation]) -> Result<()> {
    let mut nodes: HashMap<u64, usize> = HashMap::new();
    let mut events = Vec::new();
    for operation in history {
        let (Some(epoch), Some(returned)) = (operation.epoch, operation.returned) else { continue };
        let node = *nodes.entry(epoch).or_insert(operation.node);
        ensure!(node == operation.node, "in epoch {epoch} {node} acknowledges, and {operation:?}");
        events.push((operation.call, None, operation));
        events.push((returned, Some(epoch), operation));
    }
    events.sort_by_key(|(time, epoch, _)| (*time, epoch.is_some()));
    let mut latest: HashMap<usize, u64> = HashMap::new();
    for (_, acknowledged, operation) in events {
        let latest = latest.entry(operation.shard).or_default();
        match acknowledged {
            Some(epoch) => *latest = (*latest).max(epoch),
            None => ensure!(
                operation.epoch >= Some(*latest),
                "epoch {latest} has begun before {operation:?}"
            ),
        }
    }
    Ok(())
}
