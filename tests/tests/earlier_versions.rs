//! Files that earlier versions of Dunlin have written load for ever. `tests/golden/dunlin-VERSION`
//! has those of a version: they stay as they are.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::server::{Server, Target, repository};

/// The versions, with what DEBUG DIGEST has answered there.
const VERSIONS: [(&str, &str); 1] = [("0.1.0", "fad1c0d9e90a8ebc0423f6d67146b74fdbb6fbb9")];

fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    fs::copy(from, to).map(drop).with_context(|| from.display().to_string())
}

#[test]
fn files_of_earlier_versions_load() -> Result<()> {
    for (version, digest) in VERSIONS {
        for (part, appendonly) in [("dump.rdb", "no"), ("appendonlydir", "yes")] {
            let from = repository().join("tests/golden").join(format!("dunlin-{version}"));
            let mut server = Server::start(Target::Dunlin, &[("appendonly", appendonly)])?;
            server.kill();
            for name in ["dump.rdb", "appendonlydir"] {
                let old = server.directory().join(name);
                let _ = fs::remove_dir_all(&old).or_else(|_| fs::remove_file(&old));
            }
            copy(&from.join(part), &server.directory().join(part))?;
            server.start_again()?;
            let mut client = server.connect()?;
            let answered = client.call_text("DEBUG DIGEST")?;
            ensure!(answered == Reply::Status(digest.into()), "{version} {part}: {answered:?}");
            let answered = client.call_text("FCALL answer 0")?;
            ensure!(answered == Reply::Integer(42), "{version} {part}: {answered:?}");
            let expires = client.call_text("EXPIRETIME expires")?;
            ensure!(expires == Reply::Integer(4_102_444_800), "{version} {part}: {expires:?}");
        }
    }
    Ok(())
}
