//! The reference server loads the files that we write, with the same contents.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use common::sample::{Sample, sample};
use common::{Found, options, read};
use rdb::file::{
    Checksum, FileReader, FileWriter, Function, Head, Item, RawEntry, Usage, WriteOptions,
};
use tests::client::Reply;
use tests::peers;
use tests::random::{Random, Rounds};
use tests::server::{Server, Target};

/// How long the random test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(4);

/// The name under which a server looks for its file.
const FILE_NAME: &str = "dump.rdb";

/// Starts the reference on a file. If it refuses the file, only its log says why.
fn loaded(file: &[u8]) -> Result<Server> {
    let mut server = Server::start(Target::Reference, &[])?;
    server.kill();
    fs::write(server.directory().join(FILE_NAME), file)?;
    server.start_again().context("the reference refuses the file")?;
    Ok(server)
}

/// The digest of all data of a server.
fn digest(server: &Server) -> Result<Vec<u8>> {
    match server.connect()?.call_text("DEBUG DIGEST")? {
        Reply::Status(digest) => Ok(digest),
        other => anyhow::bail!("no digest: {other:?}"),
    }
}

/// The file that the reference saves of the data that it loaded.
fn saved_again(server: &Server) -> Result<Found> {
    ensure!(matches!(server.connect()?.call_text("SAVE")?, Reply::Status(_)));
    let file = fs::File::open(server.directory().join(FILE_NAME))?;
    let found = read(file, &options())?;
    ensure!(found.checksum == Checksum::Correct);
    Ok(found)
}

fn accepted_by_its_checker(file: &[u8]) -> Result<()> {
    let place = tempfile::NamedTempFile::new()?;
    fs::write(place.path(), file)?;
    let output = Command::new(peers::program("redis-check-rdb")).arg(place.path()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

#[test]
fn random_files_come_back_as_they_were() -> Result<()> {
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        let Sample { file, keys } = sample(&mut Random::new(seed), 120);
        accepted_by_its_checker(&file).with_context(|| format!("SEED={seed}"))?;
        let found = saved_again(&loaded(&file)?).with_context(|| format!("SEED={seed}"))?;
        let expected: BTreeSet<String> = keys.into_iter().map(|(line, _)| line).collect();
        let lines: BTreeSet<String> = found.listing().into_iter().collect();
        assert_eq!(lines, expected, "SEED={seed}");
    }
    Ok(())
}

/// Reads a golden file and writes it again with our writer.
fn rewritten(file: &[u8], options: WriteOptions) -> Vec<u8> {
    let mut writer = FileWriter::new(Vec::new(), options).unwrap();
    let mut database = None;
    for item in FileReader::open(file, true).unwrap() {
        match item.unwrap() {
            Item::Function(Function::Library(source)) => writer.function(&source).unwrap(),
            Item::Entries(batch) => {
                for raw in &batch {
                    if database.replace(raw.database()) != Some(raw.database()) {
                        writer.select(raw.database()).unwrap();
                    }
                    rewrite(&mut writer, &raw);
                }
            }
            _ => {}
        }
    }
    writer.finish().unwrap().sink
}

fn rewrite(writer: &mut FileWriter<Vec<u8>>, raw: &RawEntry<'_>) {
    let entry = raw.decode(&options()).unwrap();
    let head = Head { key: &entry.key, expire_at_ms: raw.expire_at_ms(), usage: raw.usage() };
    common::with_entry(entry.value.unwrap(), |value| writer.entry(&head, value).unwrap());
}

#[test]
fn golden_files_written_again_have_the_same_digest() -> Result<()> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    for name in ["types.rdb", "plain.rdb", "lru.rdb", "lfu.rdb", "stream.rdb"] {
        let original = fs::read(golden.join(name))?;
        for compress in [false, true] {
            let ours = rewritten(&original, WriteOptions { compress, checksum: true, version: 10 });
            accepted_by_its_checker(&ours)?;
            assert_eq!(digest(&loaded(&ours)?)?, digest(&loaded(&original)?)?, "{name}");
        }
    }
    Ok(())
}

#[test]
fn hints_for_eviction_and_functions_arrive() -> Result<()> {
    let mut writer = FileWriter::new(Vec::new(), WriteOptions::default())?;
    let library = b"#!lua name=ours\nredis.register_function('answer', function() return 42 end)";
    writer.function(library)?;
    writer.select(0)?;
    let usage = Some(Usage::IdleSeconds(5000));
    let mut value = Vec::new();
    common::with_entry(store::Value::String(store::StringValue::Int(1)), |number| {
        rdb::serialize(number, true, &mut value);
    });
    writer.serialized(&Head { key: b"idle", expire_at_ms: None, usage }, &value)?;
    let file = writer.finish()?.sink;
    let mut server = Server::start(Target::Reference, &[("maxmemory-policy", "allkeys-lru")])?;
    server.kill();
    fs::write(server.directory().join(FILE_NAME), file)?;
    server.start_again()?;
    let mut client = server.connect()?;
    let idle = client.call_text("OBJECT IDLETIME idle")?;
    assert!(matches!(idle, Reply::Integer(5000..5100)), "{idle:?}");
    assert_eq!(client.call_text("FCALL answer 0")?, Reply::Integer(42));
    Ok(())
}
