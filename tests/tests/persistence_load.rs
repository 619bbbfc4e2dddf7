//! How the process loads the files that it finds: files of the reference, its own, and damaged
//! ones.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tests::client::{Client, Reply};
use tests::grammar;
use tests::peers;
use tests::random::Random;
use tests::server::{Server, Target, dunlin_binary, repository};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("dunlin-test-").tempdir()?)
}

/// Starts a server on files that are in `directory` already.
fn start(target: Target, directory: &Path, options: &[(&str, &str)]) -> Result<Server> {
    let mut all = vec![("dir", directory.to_str().context("a path in UTF-8")?)];
    all.extend(options);
    Server::start(target, &all)
}

/// Starts Dunlin where it is not going to serve, and returns what it said.
fn refused(directory: &Path, options: &[&str]) -> Result<String> {
    let Output { status, stdout, .. } = Command::new(dunlin_binary()?)
        .args([
            "serve",
            "--http-port",
            "0",
            "--port",
            "0",
            "--unixsocket",
            "socket",
            "--save",
            "",
            "--dir",
        ])
        .arg(directory)
        .args(options)
        .stdin(Stdio::null())
        .output()?;
    ensure!(status.code() == Some(1), "{status}");
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

fn digest(server: &Server) -> Result<Reply> {
    server.connect()?.call(&["DEBUG", "DIGEST"])
}

fn text(reply: Reply) -> Result<String> {
    match reply {
        Reply::Bulk(bytes) | Reply::Status(bytes) | Reply::Error(bytes) => {
            Ok(String::from_utf8(bytes)?)
        }
        other => anyhow::bail!("no text: {other:?}"),
    }
}

fn info(client: &mut Client, section: &str) -> Result<String> {
    text(client.call(&["INFO", section])?)
}

/// Runs commands of the grammar.
fn fill(client: &mut Client, seed: u64, commands: usize) -> Result<()> {
    let mut random = Random::new(seed);
    for shape in [
        "SET <string> <value>",
        "RPUSH <list> ( <member> )+",
        "SADD <set> ( <member> )+",
        "HSET <hash> <field> <value>",
        "ZADD <zset> ( <score> <member> )+",
        "XADD <stream> 5-* ( <field> <value> )+",
        "XGROUP CREATE <stream> <group> ( 0 | $ )",
        "XREADGROUP GROUP <group> <consumer> COUNT <count> STREAMS <stream> >",
        "XACK <stream> <group> ( <id> )+",
        "XDEL <stream> <id>",
        "XADD <stream> MAXLEN ~ 20 * f1 <value>",
        "PEXPIRE <key> 5000000",
        "INCR counter",
        "SPOP <set>",
        "LPOP <list>",
        "DEL <key>",
        "SELECT ( 0 | 1 )",
        "SWAPDB 0 1",
    ]
    .iter()
    .cycle()
    .take(commands)
    {
        let words = grammar::of_shape(shape, &mut random);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        client.call(&words)?;
    }
    Ok(())
}

#[test]
fn files_of_the_reference_hold_the_same_here() -> Result<()> {
    let of_redis = [
        "types",
        "plain",
        "lru",
        "lfu",
        "stream",
        "types-redis-8.0",
        "plain-redis-8.0",
        "fields-redis-8.0",
    ];
    let of_valkey = ["types-valkey-9.1", "plain-valkey-9.1"];
    let of_redis = of_redis.map(|name| (name, Target::Reference));
    let of_valkey = of_valkey.map(|name| (name, Target::NewestValkey));
    let has_valkey = peers::newest("valkey-server").exists();
    for (name, target) in of_redis.into_iter().chain(of_valkey.into_iter().filter(|_| has_valkey)) {
        let directory = directory()?;
        let file = repository().join("tests/golden").join(format!("{name}.rdb"));
        fs::copy(file, directory.path().join("dump.rdb"))?;
        let dunlin = start(Target::Dunlin, directory.path(), &[])?;
        let reference = start(target, directory.path(), &[])?;
        ensure!(digest(&dunlin)? == digest(&reference)?, "{name}");
        let line = |server: &Server| {
            let log = server.log();
            let line = log.lines().find(|line| line.contains("Done loading RDB"));
            let line = line.and_then(|line| line.split_once("* ")).map(|(_, line)| line);
            // Valkey 9.1 says more.
            line.map(|line| line.split([',', '.']).take(3).map(str::to_owned).collect::<Vec<_>>())
        };
        ensure!(line(&dunlin).is_some() && line(&dunlin) == line(&reference), "{name}");
        ensure!(dunlin.log().contains("DB loaded from disk: "));
    }
    Ok(())
}

/// Has the append-only file written anew, and waits for it.
fn rewrite(client: &mut Client) -> Result<()> {
    client.call(&["BGREWRITEAOF"])?;
    let begun = Instant::now();
    while info(client, "persistence")?.contains("aof_rewrite_in_progress:1") {
        ensure!(begun.elapsed() < PATIENCE, "the rewrite does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn files_go_both_ways_with_other_servers() -> Result<()> {
    let mut others = vec![(31, Target::Reference), (32, Target::Valkey)];
    if peers::newest("valkey-server").exists() {
        others.push((33, Target::NewestValkey));
    }
    for (seed, other) in others {
        for appendonly in ["no", "yes"] {
            for (writer, reader) in [(other, Target::Dunlin), (Target::Dunlin, other)] {
                let directory = directory()?;
                let options = [("appendonly", appendonly)];
                let mut server = start(writer, directory.path(), &options)?;
                let mut client = server.connect()?;
                fill(&mut client, seed, 1500)?;
                client.call(&["SADD", "texts", "a", "b", "1"])?;
                if appendonly == "yes" {
                    rewrite(&mut client)?;
                }
                fill(&mut client, seed + 10, 500)?;
                // Journalled in the form of the server, as what it came to.
                client.call(&["HINCRBYFLOAT", "floats", "field", "2.5"])?;
                client.call(&["INCRBYFLOAT", "float", "0.5"])?;
                if appendonly == "no" {
                    client.call(&["SAVE"])?;
                }
                let expected = digest(&server)?;
                server.terminate()?;
                let server = start(reader, directory.path(), &options)?;
                let read = digest(&server)?;
                ensure!(
                    read == expected,
                    "{} to {}, appendonly {appendonly}: {read:?} for {expected:?}",
                    writer.name(),
                    reader.name()
                );
            }
        }
    }
    Ok(())
}

#[test]
fn times_of_fields_go_both_ways_with_the_reference() -> Result<()> {
    for (writer, reader) in
        [(Target::Reference, Target::Dunlin), (Target::Dunlin, Target::Reference)]
    {
        let directory = directory()?;
        let mut server = start(writer, directory.path(), &[])?;
        let mut client = server.connect()?;
        for number in 0..600 {
            let field = number.to_string();
            let at = (9_999_999_000_000_u64 + number).to_string();
            for key in if number < 10 { &["small", "large"][..] } else { &["large"] } {
                client.call(&["HSETEX", key, "PXAT", &at, "FIELDS", "1", &field, "value"])?;
            }
            client.call(&["HSET", "large", &format!("for ever {number}"), "value"])?;
        }
        client.call(&["SAVE"])?;
        let expected = digest(&server)?;
        server.terminate()?;
        let server = start(reader, directory.path(), &[])?;
        ensure!(digest(&server)? == expected, "{} to {}", writer.name(), reader.name());
    }
    Ok(())
}

#[test]
fn a_value_that_the_version_of_files_cannot_hold_is_refused_by_name() -> Result<()> {
    let directory = directory()?;
    let file = directory.path().join("dump.rdb");
    let mut server = start(Target::Dunlin, directory.path(), &[("rdb-version", "11")])?;
    let mut client = server.connect()?;
    fill(&mut client, 41, 500)?;
    client.call(&["SAVE"])?;
    ensure!(fs::read(&file)?.starts_with(b"REDIS0011"));
    client.call(&["HSET", "named", "field", "value"])?;
    client.call(&["HEXPIRE", "named", "1000", "FIELDS", "1", "field"])?;
    let saved = client.call(&["SAVE"])?;
    ensure!(saved.is_error(), "{saved:?}");
    let reason = "fields of the hash \"named\" expire, which needs version 12 of the format";
    ensure!(server.log().contains(reason), "{}", server.log());
    // The file from before is still there.
    ensure!(fs::read(&file)?.starts_with(b"REDIS0011"));
    client.call(&["CONFIG", "SET", "rdb-version", "12"])?;
    client.call(&["SAVE"])?;
    ensure!(fs::read(&file)?.starts_with(b"REDIS0012"));
    // Redis 7.0 reads nothing newer than this.
    client.call(&["DEL", "named"])?;
    client.call(&["CONFIG", "SET", "rdb-version", "10"])?;
    client.call(&["SAVE"])?;
    ensure!(fs::read(&file)?.starts_with(b"REDIS0010"));
    let sizes = |server: &Server| -> Result<[Reply; 2]> {
        let mut client = server.connect()?;
        let first = client.call(&["DBSIZE"])?;
        client.call(&["SELECT", "1"])?;
        Ok([first, client.call(&["DBSIZE"])?])
    };
    let expected = sizes(&server)?;
    server.terminate()?;
    if peers::oldest("redis-server").exists() {
        let oldest = start(Target::Oldest, directory.path(), &[])?;
        ensure!(sizes(&oldest)? == expected);
    }
    Ok(())
}

#[test]
fn random_data_of_the_reference_survives_in_all_forms() -> Result<()> {
    for (seed, preamble) in [(1, "yes"), (2, "no")] {
        let directory = directory()?;
        let options = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble)];
        let mut reference = start(Target::Reference, directory.path(), &options)?;
        let mut client = reference.connect()?;
        fill(&mut client, seed, 3000)?;
        rewrite(&mut client)?;
        fill(&mut client, seed + 10, 3000)?;
        for words in
            [&["MULTI"][..], &["INCR", "n"], &["SELECT", "5"], &["SET", "a", "b"], &["EXEC"]]
        {
            client.call(words)?;
        }
        client.call(&["SAVE"])?;
        let expected = digest(&reference)?;
        reference.terminate()?;
        for appendonly in ["yes", "no"] {
            let dunlin = start(Target::Dunlin, directory.path(), &[("appendonly", appendonly)])?;
            ensure!(digest(&dunlin)? == expected, "seed {seed}, appendonly {appendonly}");
            let mut client = dunlin.connect()?;
            let again = if appendonly == "yes" {
                client.call(&["DEBUG", "LOADAOF"])?
            } else {
                client.call(&["DEBUG", "RELOAD", "NOSAVE"])?
            };
            ensure!(again == Reply::Status(b"OK".to_vec()), "{again:?}");
            ensure!(digest(&dunlin)? == expected, "anew: seed {seed}, appendonly {appendonly}");
        }
    }
    Ok(())
}

#[test]
fn reloading_says_what_becomes_of_keys_that_are_there() -> Result<()> {
    let directory = directory()?;
    fs::copy(repository().join("tests/golden/lru.rdb"), directory.path().join("dump.rdb"))?;
    let server = start(Target::Dunlin, directory.path(), &[])?;
    let loaded = digest(&server)?;
    let mut client = server.connect()?;
    let reply = text(client.call(&["DEBUG", "RELOAD", "NOSAVE", "NOFLUSH"])?)?;
    ensure!(reply.starts_with("ERR Error trying to load the RDB dump"), "{reply}");
    ensure!(server.log_tail().contains("the key is there already"));
    client.call(&["SET", "other", "x"])?;
    let ok = Reply::Status(b"OK".to_vec());
    ensure!(client.call(&["DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE"])? == ok);
    ensure!(client.call(&["DEL", "other"])? == Reply::Integer(1));
    ensure!(digest(&server)? == loaded);
    client.call(&["SET", "other", "x"])?;
    ensure!(client.call(&["DEBUG", "RELOAD", "NOSAVE"])? == ok);
    ensure!(digest(&server)? == loaded);
    Ok(())
}

#[test]
fn damaged_snapshots_are_refused() -> Result<()> {
    let good = fs::read(repository().join("tests/golden/types.rdb"))?;
    let directory = directory()?;
    let file = directory.path().join("dump.rdb");
    let mut wrong_checksum = good.clone();
    *wrong_checksum.last_mut().context("a file")? ^= 1;
    let stated = |file: &[u8]| file.last_chunk().map(|sum| u64::from_le_bytes(*sum));
    let computed = stated(&good).context("a file")?;
    let got = stated(&wrong_checksum).context("a file")?;
    let crc_error =
        format!("RDB CRC error. Wrong RDB checksum expected: ({computed:x}) but got ({got:x})");
    for (content, expected) in [
        (&good[..good.len() / 2], "Short read or OOM loading DB: "),
        (&wrong_checksum, &crc_error),
        (
            &b"hello, world"[..],
            "offset 0, the first bytes: Wrong signature trying to load DB from file",
        ),
        (&b"REDIS0999\xff"[..], "Can't handle RDB format version 999"),
        (&b"REDIS0009\x77"[..], "Unknown RDB encoding type 119"),
    ] {
        fs::write(&file, content)?;
        let log = refused(directory.path(), &[])?;
        ensure!(
            log.contains("Fatal error loading the DB: dump.rdb: ") && log.contains(expected),
            "{log}"
        );
        ensure!(!log.contains("Ready to accept connections"), "{log}");
    }
    fs::copy(repository().join("tests/golden/types.rdb"), &file)?;
    let log = refused(directory.path(), &["--databases", "1"])?;
    ensure!(log.contains("is beyond those that `databases` allows"), "{log}");
    Ok(())
}

#[test]
fn a_wrong_checksum_is_passed_over_on_request() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        let directory = directory()?;
        let server = start(target, directory.path(), &[])?;
        let mut client = server.connect()?;
        client.call_text("SET key value")?;
        client.call_text("SAVE")?;
        // The checksum of a file is its last eight bytes.
        let file = directory.path().join("dump.rdb");
        let mut bytes = fs::read(&file)?;
        *bytes.last_mut().context("a byte")? ^= 1;
        fs::write(&file, bytes)?;
        let mut answers = vec![
            ("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1", "OK"),
            ("DEBUG RELOAD NOSAVE", "OK"),
            ("GET key", "value"),
        ];
        if target == Target::Dunlin {
            // The reference ends here.
            answers.push(("DEBUG SET-SKIP-CHECKSUM-VALIDATION 0", "OK"));
            let refusal = "ERR Error trying to load the RDB dump, check server logs.";
            answers.push(("DEBUG RELOAD NOSAVE", refusal));
        }
        for (line, expected) in answers {
            let answer = text(client.call_text(line)?)?;
            ensure!(answer == expected, "{target:?}, {line}: {answer}");
        }
    }
    Ok(())
}

/// Writes an append-only directory with these increments.
fn write_increments(directory: &Path, increments: &[&[u8]]) -> Result<()> {
    let home = directory.join("appendonlydir");
    fs::create_dir_all(&home)?;
    let mut manifest = String::new();
    for (index, content) in increments.iter().enumerate() {
        let number = index + 1;
        let name = format!("appendonly.aof.{number}.incr.aof");
        fs::write(home.join(&name), content)?;
        manifest += &format!("file {name} seq {number} type i\n");
    }
    Ok(fs::write(home.join("appendonly.aof.manifest"), manifest)?)
}

const SET_A: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";

#[test]
fn a_torn_tail_is_cut_off_where_that_is_allowed() -> Result<()> {
    for tail in [&SET_A[..SET_A.len() - 3], &[MULTI, SET_A].concat()] {
        let directory = directory()?;
        let content = [SET_A, tail].concat();
        write_increments(directory.path(), &[SET_A, &content])?;
        let strict = ["--appendonly", "yes", "--aof-load-truncated", "no"];
        let log = refused(directory.path(), &strict)?;
        let expected = format!("good up to offset {}", SET_A.len());
        ensure!(log.contains("Unexpected end of file") && log.contains(&expected), "{log}");
        let last = directory.path().join("appendonlydir/appendonly.aof.2.incr.aof");
        ensure!(fs::read(&last)? == content, "nothing was changed");
        let server = start(Target::Dunlin, directory.path(), &[("appendonly", "yes")])?;
        ensure!(text(server.connect()?.call(&["GET", "a"])?)? == "1");
        let kept = fs::read(&last)?;
        // The server says there that the file before it is durable.
        let rest = kept.strip_prefix(SET_A).context("the first command is there")?;
        ensure!(rest.is_empty() || rest == b"#BEFORE:durable\r\n", "{}", rest.escape_ascii());
        let expected = format!("offset {} !!! {} bytes are cut off", SET_A.len(), tail.len());
        ensure!(server.log().contains(&expected), "{}", server.log());
        let reverted =
            server.log().contains("Revert incomplete MULTI/EXEC transaction in AOF file");
        ensure!(reverted == tail.starts_with(MULTI), "{}", server.log());
        // The files are this server's until it ends.
        drop(server);
        // Only the last file of all may break off.
        write_increments(directory.path(), &[&content, SET_A])?;
        let log = refused(directory.path(), &["--appendonly", "yes"])?;
        let expected = "Unexpected end of file reading the append only file \
                        appendonlydir/appendonly.aof.1.incr.aof";
        ensure!(log.contains(expected), "{log}");
    }
    Ok(())
}

#[test]
fn damaged_commands_are_refused() -> Result<()> {
    let unknown = b"*1\r\n$5\r\nBOGUS\r\n";
    let beyond = b"*2\r\n$6\r\nSELECT\r\n$2\r\n16\r\n";
    for (damage, expected) in [
        (
            &b"*1\r\n$x\r\nPING\r\n"[..],
            "Bad file format reading the append only file FILE at offset 27",
        ),
        (unknown, "Unknown command 'BOGUS' reading the append only file FILE at offset 27"),
        (beyond, "FILE: the command at offset 27: ERR DB index is out of range"),
    ] {
        let directory = directory()?;
        write_increments(directory.path(), &[&[SET_A, damage, SET_A].concat()])?;
        let log = refused(directory.path(), &["--appendonly", "yes"])?;
        let expected = expected.replace("FILE", "appendonlydir/appendonly.aof.1.incr.aof");
        ensure!(log.contains(&expected), "{log}");
    }
    Ok(())
}

#[test]
fn nothing_expires_while_commands_are_replayed() -> Result<()> {
    let directory = directory()?;
    let mut content =
        b"*5\r\n$3\r\nSET\r\n$1\r\nn\r\n$1\r\n5\r\n$4\r\nPXAT\r\n$4\r\n1000\r\n".to_vec();
    content.extend_from_slice(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n");
    content.extend_from_slice(b"*4\r\n$5\r\nSETEX\r\n$1\r\ns\r\n$4\r\n1000\r\n$1\r\nv\r\n");
    write_increments(directory.path(), &[&content])?;
    let server = start(Target::Dunlin, directory.path(), &[("appendonly", "yes")])?;
    let mut client = server.connect()?;
    ensure!(client.call(&["GET", "n"])? == Reply::Nil, "INCR has not made it immortal");
    let Reply::Integer(ttl) = client.call(&["TTL", "s"])? else { anyhow::bail!("no number") };
    ensure!((900..=1000).contains(&ttl), "{ttl}");
    Ok(())
}

#[test]
fn an_old_append_only_file_is_taken_over() -> Result<()> {
    let directory = directory()?;
    let mut content = fs::read(repository().join("tests/golden/lru.rdb"))?;
    content.extend_from_slice(SET_A);
    fs::write(directory.path().join("appendonly.aof"), content)?;
    let server = start(Target::Dunlin, directory.path(), &[("appendonly", "yes")])?;
    ensure!(text(server.connect()?.call(&["GET", "a"])?)? == "1");
    ensure!(server.connect()?.call(&["DBSIZE"])? == Reply::Integer(2));
    ensure!(directory.path().join("appendonlydir/appendonly.aof").exists());
    Ok(())
}

#[test]
fn clients_are_told_to_wait_while_data_is_loaded() -> Result<()> {
    let directory = directory()?;
    let mut content = Vec::new();
    for number in 0..10_000 {
        let member = format!("{number:08}");
        content.extend_from_slice(b"*3\r\n$4\r\nSADD\r\n$1\r\ns\r\n$8\r\n");
        content.extend_from_slice(member.as_bytes());
        content.extend_from_slice(b"\r\n");
    }
    write_increments(directory.path(), &[&content])?;
    let socket = directory.path().join("socket");
    // Longer than any test may take, until it is told otherwise.
    let mut child = serve_on_socket(directory.path(), &["--key-load-delay", "1000000"])?;
    let looked = look_while_loading(&socket);
    // It may have ended, which `looked` tells.
    let _ = child.kill();
    child.wait()?;
    looked
}

/// Starts Dunlin without waiting until it serves: with an append-only file that loses nothing, on
/// the socket of that name in `directory`, and with these options besides.
fn serve_on_socket(directory: &Path, options: &[&str]) -> Result<Child> {
    Ok(Command::new(dunlin_binary()?)
        .args([
            "serve",
            "--http-port",
            "0",
            "--port",
            "0",
            "--unixsocket",
            "socket",
            "--save",
            "",
            "--appendonly",
        ])
        .args(["yes", "--appendfsync", "always", "--logfile", "log", "--dir"])
        .arg(directory)
        .args(options)
        .stdin(Stdio::null())
        .spawn()?)
}

/// The first connection that a server takes.
fn connect_at_once(socket: &Path) -> Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) => ensure!(begun.elapsed() < PATIENCE, "no socket: {error}"),
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Writes a key as soon as that is accepted.
fn write_at_once(socket: &Path, key: &str) -> Result<()> {
    let begun = Instant::now();
    let mut stream = connect_at_once(socket)?;
    let mut reply = [0; 256];
    loop {
        stream.write_all(format!("SET {key} value\r\n").as_bytes())?;
        let count = stream.read(&mut reply)?;
        if reply[..count] == *b"+OK\r\n" {
            return Ok(());
        }
        ensure!(reply.starts_with(b"-LOADING"), "{}", String::from_utf8_lossy(&reply[..count]));
        ensure!(begun.elapsed() < PATIENCE, "the load does not end");
    }
}

#[test]
fn the_first_write_that_is_accepted_is_kept() -> Result<()> {
    let directory = directory()?;
    // In the way of older versions, so that the first start has to make a directory of it.
    fs::write(
        directory.path().join("appendonly.aof"),
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
    )?;
    for run in 0..8 {
        let mut child = serve_on_socket(directory.path(), &[])?;
        let written = write_at_once(&directory.path().join("socket"), &format!("key{run}"));
        // It may have ended, which `written` tells.
        let _ = child.kill();
        child.wait()?;
        written?;
    }
    let server = start(Target::Dunlin, directory.path(), &[("appendonly", "yes")])?;
    ensure!(server.connect()?.call(&["DBSIZE"])? == Reply::Integer(9));
    Ok(())
}

/// Asks a server that loads, over its socket.
fn look_while_loading(socket: &Path) -> Result<()> {
    let begun = Instant::now();
    let mut stream = connect_at_once(socket)?;
    let mut ask = |line: &str| -> Result<String> {
        stream.write_all(line.as_bytes())?;
        let mut reply = vec![0; 64 * 1024];
        let count = stream.read(&mut reply)?;
        Ok(String::from_utf8_lossy(&reply[..count]).into_owned())
    };
    let refusal = "-LOADING Redis is loading the dataset in memory\r\n";
    for command in ["GET s\r\n", "PING\r\n", "CONFIG SET appendonly no\r\n"] {
        let reply = ask(command)?;
        ensure!(reply.contains(refusal.trim_start_matches('-').trim_end()), "{command}: {reply}");
    }
    let info = loop {
        let info = ask("INFO persistence\r\n")?;
        if !info.contains("loading_total_bytes:0\r\n") {
            break info;
        }
    };
    for field in
        ["loading:1", "loading_start_time:", "loading_loaded_perc:", "loading_eta_seconds:"]
    {
        ensure!(info.contains(&format!("\r\n{field}")), "{info}");
    }
    ensure!(ask("CONFIG SET key-load-delay 0\r\n")? == "+OK\r\n");
    while ask("SCARD s\r\n")? == refusal {
        ensure!(begun.elapsed() < PATIENCE, "the load does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    ensure!(ask("SCARD s\r\n")? == ":10000\r\n");
    ensure!(ask("INFO persistence\r\n")?.contains("loading:0\r\n"));
    Ok(())
}

/// What a client hears that connects as soon as the port is open.
fn first_answer(port: u16) -> Result<Vec<u8>> {
    let begun = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => ensure!(begun.elapsed() < PATIENCE, "nobody listens: {error}"),
        }
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET k\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    Ok(answer.to_vec())
}

#[test]
fn nobody_has_to_try_again_while_little_is_loaded() -> Result<()> {
    let mut server = Server::start(Target::Dunlin, &[("save", "")])?;
    let mut client = server.connect()?;
    for command in ["SET k v", "SAVE"] {
        ensure!(!client.call_text(command)?.is_error());
    }
    drop(client);
    for _ in 0..5 {
        server.terminate()?;
        let port = server.port();
        let early = std::thread::spawn(move || first_answer(port));
        server.start_again()?;
        let answer = early.join().expect("the early client panicked")?;
        ensure!(answer == b"$1\r\nv\r\n", "{}", answer.escape_ascii());
    }
    Ok(())
}
