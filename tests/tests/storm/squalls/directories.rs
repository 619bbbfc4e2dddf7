//! Two servers, and a directory that is moved while one of them uses it: neither destroys what the
//! other has acknowledged.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::observe::{figure, wait_until};
use tests::server::{Server, Target};

use super::{Gust, done};

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let mut rounds = 0;
    while rounds < 2 || gust.goes_on() {
        if rounds % 2 == 0 {
            start_twice().context("two servers on one directory")?;
        } else {
            let rewrites = gust.random.between(1, 3);
            move_away(rewrites)
                .context("the directory was moved away, and another server began")?;
        }
        rounds += 1;
    }
    Ok(())
}

fn start(directory: &Path, name: &str) -> Result<Server> {
    let directory = directory.to_string_lossy();
    let options = [
        ("dir", &*directory),
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("appenddirname", name),
        ("threads", "2"),
    ];
    Server::start(Target::Dunlin, &options)
}

fn write(server: &Server, name: &str, count: usize) -> Result<()> {
    let mut client = server.connect()?;
    for index in 0..count {
        done(&mut client, &["SET", &format!("{name}:{index}"), name])?;
    }
    Ok(())
}

/// All keys of this kind are there.
fn judge(server: &Server, name: &str, count: usize) -> Result<()> {
    let mut client = server.connect()?;
    for index in 0..count {
        let reply = client.call(&["GET", &format!("{name}:{index}")])?;
        ensure!(
            reply == Reply::Bulk(name.as_bytes().to_vec()),
            "{name}:{index} was acknowledged, and is {reply:?}"
        );
    }
    Ok(())
}

/// A rewrite, whether it succeeds or not.
fn rewrite(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    client.call_text("BGREWRITEAOF")?;
    wait_until("the end of a rewrite", || {
        Ok(figure(&mut client, "aof_rewrite_in_progress")? == "0"
            && figure(&mut client, "aof_rewrite_scheduled")? == "0")
    })
}

/// The second one does not start.
fn start_twice() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut first = start(home.path(), "appendonlydir")?;
    write(&first, "first", 20)?;
    ensure!(start(home.path(), "appendonlydir").is_err(), "a second server has started");
    rewrite(&first)?;
    write(&first, "more", 20)?;
    first.kill();
    let again = start(home.path(), "appendonlydir")?;
    judge(&again, "first", 20)?;
    judge(&again, "more", 20)
}

/// What was moved away is the first server's, and what is there now the second one's.
fn move_away(rewrites: i64) -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut first = start(home.path(), "appendonlydir")?;
    write(&first, "first", 20)?;
    fs::rename(home.path().join("appendonlydir"), home.path().join("old"))?;
    // It may refuse, which destroys nothing either.
    if let Ok(mut second) = start(home.path(), "appendonlydir") {
        write(&second, "second", 20)?;
        for _ in 0..rewrites {
            rewrite(&first)?;
        }
        write(&second, "later", 20)?;
        second.kill();
        first.kill();
        let again = start(home.path(), "appendonlydir").context("the second one's files")?;
        judge(&again, "second", 20)?;
        judge(&again, "later", 20)?;
    }
    first.kill();
    let old = start(home.path(), "old").context("the first one's files")?;
    judge(&old, "first", 20)
}
