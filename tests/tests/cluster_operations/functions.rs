//! What `dunlin cluster add` does with the functions of a cluster that gets a new shard.

use anyhow::{Result, ensure};
use tests::client::Reply;
use tests::cluster::Deployment;
use tests::observe::wait_until;

use crate::interrupted::{in_words, tool};

/// Loads a library with one function, which has the name of the library and returns a number.
fn load(deployment: &Deployment, node: usize, name: &str, number: i64) -> Result<()> {
    let code = format!(
        "#!lua name={name}\nredis.register_function('{name}', function() return {number} end)"
    );
    let loaded = deployment.nodes[node].connect()?.call(&["FUNCTION", "LOAD", &code])?;
    ensure!(loaded.text() == Some(name.as_bytes()) && !loaded.is_error(), "{loaded:?}");
    Ok(())
}

/// What a function returns; nothing if the node has none of this name.
fn returned(deployment: &Deployment, node: usize, name: &str) -> Result<Option<i64>> {
    match deployment.nodes[node].connect()?.call(&["FCALL", name, "0"])? {
        Reply::Integer(number) => Ok(Some(number)),
        Reply::Error(text) if text.ends_with(b"Function not found") => Ok(None),
        other => anyhow::bail!("{other:?}"),
    }
}

/// Adds a node as a new shard. Returns the exit code, and what is said.
fn add(deployment: &Deployment, node: usize, more: &[&str]) -> Result<(Option<i32>, String)> {
    let place = format!("127.0.0.1:{}", deployment.nodes[node].port());
    let words = [&["add", &place, "--new-shard"], more].concat();
    let output = tool(deployment, &words)?.output()?;
    Ok((output.status.code(), in_words(&output)))
}

#[test]
fn a_new_shard_gets_the_functions_that_the_others_have() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    let first = deployment.wait_until_whole()?;
    load(&deployment, first, "one", 1)?;
    load(&deployment, first, "two", 2)?;
    deployment.start_nodes(2, &[])?;
    let (code, said) = add(&deployment, 2, &["--dry-run"])?;
    ensure!(code == Some(0) && said.contains("one, two"), "{said}");
    ensure!(returned(&deployment, 2, "one")?.is_none(), "it was only to be said");
    let (code, said) = add(&deployment, 2, &["--yes"])?;
    ensure!(code == Some(0), "{said}\n{}", deployment.logs());
    let both = |node| -> Result<_> {
        Ok((returned(&deployment, node, "one")?, returned(&deployment, node, "two")?))
    };
    ensure!(both(2)? == (Some(1), Some(2)), "{said}");
    // A shard that has none, because somebody has added it so, gets them by the same command.
    deployment.nodes[2].connect()?.call_text("FUNCTION FLUSH")?;
    wait_until("it is primary", || Ok(deployment.is_primary(2)))?;
    let (code, said) = add(&deployment, 2, &["--yes"])?;
    ensure!(code == Some(0) && both(2)? == (Some(1), Some(2)), "{said}");
    let (code, said) = add(&deployment, 2, &["--yes"])?;
    ensure!(code == Some(0) && !said.contains("gets the functions"), "{said}");
    // Libraries are not mixed.
    deployment.nodes[2].connect()?.call_text("FUNCTION FLUSH")?;
    load(&deployment, 2, "own", 3)?;
    let (code, said) = add(&deployment, 2, &["--yes"])?;
    ensure!(code == Some(1) && said.contains("has other functions than the cluster"), "{said}");
    deployment.nodes[2].connect()?.call_text("FUNCTION FLUSH")?;
    let (code, said) = add(&deployment, 2, &["--yes"])?;
    ensure!(code == Some(0), "{said}");
    load(&deployment, 2, "three", 3)?;
    let (code, said) = add(&deployment, 3, &["--yes"])?;
    ensure!(code == Some(1) && said.contains("have different functions (three)"), "{said}");
    let (code, said) = add(&deployment, 3, &["--yes", "--without-functions"])?;
    ensure!(code == Some(0) && both(3)? == (None, None), "{said}");
    Ok(())
}
