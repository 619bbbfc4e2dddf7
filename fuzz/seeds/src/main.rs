//! Writes the inputs that the fuzzers begin with, below a directory: `seeds CORPUS`.
//!
//! They are made of the golden files that the reference server wrote, and of the files in older
//! servers' layouts that the tests of `rdb` have: whole files, and each value alone. The other
//! formats are text, for which a few lines are enough.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use base::limits::BIG_ARGUMENT;
use rdb::file::{FileReader, Item, RawEntry};
use rdb::{Dialect, Layout};
use resp::client::encode_command;

#[path = "../../../crates/rdb/tests/common/assemble.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests use more of it")]
mod assemble;

/// Larger values are left out.
const LARGEST_VALUE: usize = 2048;

/// Bytes of a payload's version and checksum.
const FOOTER: usize = 10;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A list with all that a list may have.
const MANIFEST: &[u8] = b"# comment\n\
    file appendonly.aof.2.base.rdb seq 2 type b\n\
    file appendonly.aof.1.incr.aof seq 1 type h\n\
    file \"a \\\"name\\\" \\x01\" seq 3 type i new word\n";

fn main() -> Outcome {
    let corpus = std::env::args_os().nth(1).ok_or("usage: seeds CORPUS")?;
    let corpus = Path::new(&corpus);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![("museum".to_owned(), assemble::museum())];
    for path in golden(&repository)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, fs::read(&path)?));
    }
    for (name, file) in &files {
        write(corpus, "rdb_file", name, file)?;
        write(corpus, "check", name, file)?;
        each_value(corpus, name, file)?;
    }
    // A value of a module, which no server loads, after a string of the same key.
    let twice = assemble::Assembler::new("REDIS0010").raw(b"\xfe\0").key(0, "a").string(b"1");
    let twice = twice.key(7, "a").raw(b"\x81\0\0\0\0\0\0\0\x01\x02\x05\0");
    write(corpus, "check", "twice", &twice.end())?;
    write(corpus, "aof_manifest", "manifest", MANIFEST)?;
    requests(corpus)?;
    http_requests(corpus)?;
    links(corpus)?;
    libraries(corpus)?;
    scripts(corpus)?;
    rules(corpus)?;
    commands(corpus, &files[0].1)
}

fn golden(repository: &Path) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(repository.join("tests/golden"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rdb") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Writes each value of a file as a payload without its footer, and as a file of its own.
fn each_value(corpus: &Path, name: &str, file: &[u8]) -> Outcome {
    let mut number = 0;
    for item in FileReader::open(file, true)? {
        let Item::Entries(batch) = item? else { continue };
        for raw in &batch {
            let (Some((payload, head)), key) = (payload(file, raw), raw.key()?) else { continue };
            // A fuzzer gets on faster the smaller its inputs are.
            if payload.len() <= LARGEST_VALUE {
                let name = format!("{name}-{number}");
                write(corpus, "restore", &name, &payload)?;
                let alone = assemble::Assembler::new(head).raw(&payload[..1]).string(&key);
                write(corpus, "rdb_file", &name, &alone.raw(&payload[1..]).end())?;
            }
            number += 1;
        }
    }
    Ok(())
}

/// The type and the value of an entry, as they stand in the file, and how a file begins that may
/// have them.
fn payload(file: &[u8], raw: RawEntry<'_>) -> Option<(Vec<u8>, &'static str)> {
    let heads = [(Dialect::Redis, "REDIS0012"), (Dialect::Valkey, "VALKEY080")];
    let (kind, head) = heads.into_iter().find_map(|(dialect, head)| {
        let has_layout = |byte: &u8| Layout::from_byte(*byte, dialect) == Some(raw.layout());
        Some(((0..=u8::MAX).find(has_layout)?, head))
    })?;
    let start = usize::try_from(raw.value_offset()).ok()?;
    Some(([&[kind], &file[start..start + raw.value_bytes()]].concat(), head))
}

/// Libraries of functions, as FUNCTION DUMP gives them, without the footer.
fn libraries(corpus: &Path) -> Outcome {
    let sources = [&b"#!lua name=one\n"[..], &[b'-'; 100]];
    let payload = rdb::dump_functions(sources.into_iter(), true);
    write(corpus, "restore", "libraries", &payload[..payload.len() - FOOTER])
}

/// Inputs that scripts give to the libraries that they find in Lua.
fn scripts(corpus: &Path) -> Outcome {
    let json =
        br#" {"a\u00e9\ud83d\ude00\n": [1, -2.5e3, 0x1F, true, null, {}, "b"], "c": {"d": []}}"#;
    write(corpus, "lua_json", "all", json)?;
    write(corpus, "lua_json", "invalid", b"[nan, -Infinity, +5, 0x.8p1]")?;
    let msgpack =
        b"\x92\x83\xa1a\x01\x02\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a\xa1b\xdc\0\x02\xc0\xc3\
        \xde\0\x01\xd9\x01z\xd3\xff\xff\xff\xff\xff\xff\xff\0";
    write(corpus, "lua_msgpack", "all", msgpack)?;
    write(corpus, "lua_struct", "all", b"\x0f>!4bi<I3hxfdc2s L\x01\x02\x03\x04\x05\x06\x07\x08ab")?;
    write(corpus, "lua_struct", "counted", b"\x04Bc0s\x03abcdef\0")?;
    for (name, pattern, place, text) in [
        ("classes", "^%s*([%w_]+)%s*=(.-)$", 129, " key = value"),
        ("captures", "()(a(b?))%2[^%z-\\]x]", 131, "%1%0abbc abd"),
        ("balance", "%f[%a]%b()+", 130, "f(a(b)c)) g()"),
        ("plain", "b.c", 128, "ab.c"),
    ] {
        let length = u8::try_from(pattern.len())?;
        let input = [&[length, place], pattern.as_bytes(), text.as_bytes()].concat();
        write(corpus, "lua_pattern", name, &input)?;
    }
    Ok(())
}

/// Rules of users, one in each line.
fn rules(corpus: &Path) -> Outcome {
    let all = b"on\n>p\n#0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n~a\n%R~b*\n\
        %W~*\n&c\n+@read\n-config|get\n+select|1\ndb=0,1\n(+set ~x\n\"~y)\" alldbs)\nnopass\nreset\n";
    write(corpus, "acl_rules", "all", all)
}

fn requests(corpus: &Path) -> Outcome {
    let mut pipeline = Vec::new();
    command(&mut pipeline, &["SET", "key", "\r\n"]);
    pipeline.extend_from_slice(b"*0\r\n\r\nGET \"k\\x65y\"\r\n*-1\r\nPING 'it\\'s' \n");
    command(&mut pipeline, &["ECHO", ""]);
    write(corpus, "request", "pipeline", &pipeline)?;
    // As long as an argument that is received by itself.
    let mut big = Vec::new();
    command(&mut big, &["SET", "key", &"v".repeat(BIG_ARGUMENT), "NX"]);
    write(corpus, "request", "big", &big)
}

/// Each begins with the size of the pieces in which it arrives.
fn http_requests(corpus: &Path) -> Outcome {
    let pipeline = b"\x06GET /v1/keys/a%2Fb?db=1&prefix=a+b&x HTTP/1.1\r\nHost: a\r\n\
        Accept-Encoding: br, gzip;q=0.5, *;q=0\r\nIf-Match: \"1f\", W/\"2\", *\r\n\r\n\
        PUT http://a:80/v1/keys/b HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc\r\n\
        GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n";
    write(corpus, "http_request", "pipeline", pipeline)?;
    let chunked = b"\x20POST /v1/command HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
        b;a=b\r\n[\"SET\",\"a\\n\r\n7\r\n\",-1.5]\r\n0\r\nTrailer: a\r\n\r\n";
    write(corpus, "http_request", "chunked", chunked)?;
    let commands = b"[[\"MSET\", 1e3, true], [\"GET\" ,\"\\u00e9\\ud83d\\ude00\"]]";
    let lengths = [commands.len(), BIG_ARGUMENT];
    for (name, length) in ["commands", "big"].into_iter().zip(lengths) {
        let head = format!("\x7fPOST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        let body = commands.iter().copied().chain(std::iter::repeat(b' '));
        let body: Vec<u8> = body.take(length).collect();
        write(corpus, "http_request", name, &[head.as_bytes(), &body, b"GET"].concat())?;
    }
    Ok(())
}

/// What primaries send over a link: an answer to each word of the handshake first.
fn links(corpus: &Path) -> Outcome {
    const HISTORY: &str = "0123456789abcdef0123456789abcdef01234567";
    const MARK: &str = "aabaabaabaabaabaabaabaabaabaabaabaabaabc";
    let answers = "+PONG\r\n+OK\r\n\n+OK\r\n+OK\r\n-ERR unknown\r\n";
    let mut stream = Vec::new();
    let commands: [&[&str]; 7] = [
        &["SELECT", "0"],
        &["set", "key", ""],
        &["MULTI"],
        &["SELECT", "3"],
        &["EXEC"],
        &["PING"],
        &["REPLCONF", "GETACK", "*"],
    ];
    commands.iter().for_each(|words| command(&mut stream, words));
    for (name, begin) in [
        ("marked", format!("+FULLRESYNC {HISTORY} 77\r\n\n$EOF:{MARK}\r\nREDISaab{MARK}")),
        ("counted", format!("+FULLRESYNC {HISTORY} 0\r\n$5\r\nREDIS")),
        ("old", "-ERR unknown command\r\n$0\r\n".to_owned()),
        ("rest", format!("+CONTINUE {HISTORY}\r\n")),
        ("later", "-LOADING data\r\n".to_owned()),
    ] {
        let input = [b"\x06\x01", answers.as_bytes(), begin.as_bytes(), &stream].concat();
        write(corpus, "link", name, &input)?;
    }
    Ok(())
}

fn command(output: &mut Vec<u8>, words: &[&str]) {
    encode_command(words.iter(), output);
}

fn commands(corpus: &Path, snapshot: &[u8]) -> Outcome {
    let mut file = b"#TS:1700000000\r\n".to_vec();
    let lines: [&[&str]; 6] = [
        &["SELECT", "0"],
        &["SET", "key", "value"],
        &["MULTI"],
        &["RPUSH", "list", "a", ""],
        &["EXEC"],
        &["PEXPIREAT", "key", "1700000000000"],
    ];
    for line in lines {
        command(&mut file, line);
    }
    file.extend_from_slice(b"# comment\r\n");
    for target in ["aof_file", "check"] {
        write(corpus, target, "commands", &file)?;
        write(corpus, target, "torn", &file[..file.len() - 40])?;
        write(corpus, target, "zeros", &[&file, &[0; 20][..]].concat())?;
        write(corpus, target, "rdb", &[snapshot, &file].concat())?;
    }
    Ok(())
}

fn write(corpus: &Path, target: &str, name: &str, bytes: &[u8]) -> Outcome {
    let directory = corpus.join(target);
    fs::create_dir_all(&directory)?;
    Ok(fs::write(directory.join(format!("seed-{name}")), bytes)?)
}
