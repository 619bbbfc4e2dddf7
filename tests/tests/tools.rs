//! The tools that come with the reference, against the server: redis-cli in all its modes that
//! need no more than a server, and redis-benchmark.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tests::client::{Reply, encode};
use tests::peers;
use tests::server::{Server, Target};

fn start(options: &[(&str, &str)]) -> Result<Server> {
    let mut all = vec![("threads", "4")];
    all.extend(options);
    Server::start(Target::Dunlin, &all)
}

/// What a tool said and how it ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    complaints: String,
}

impl Said {
    /// Whether this is all that was said, and without complaints.
    fn only(&self, expected: &str) -> Result<()> {
        ensure!(self.code == Some(0) && self.out == expected, "{self:?} is not {expected:?}");
        Ok(())
    }

    /// Whether all these are among what was said.
    fn with(&self, expected: &[&str]) -> Result<()> {
        for expected in expected {
            ensure!(self.out.contains(expected), "no {expected:?} in {self:#?}");
        }
        Ok(())
    }

    fn succeeded(self) -> Result<Said> {
        ensure!(self.code == Some(0), "{self:#?}");
        Ok(self)
    }
}

/// Runs a tool, for `seconds` at most, with its input and with lines put out as they come.
fn run_for(
    seconds: &str,
    server: &Server,
    tool: &str,
    arguments: &[&str],
    input: &[u8],
) -> Result<Said> {
    let mut command = Command::new("timeout");
    command.args([seconds, "stdbuf", "-oL"]).arg(peers::program(tool));
    command.arg("-p").arg(server.port().to_string());
    command.args(arguments).current_dir(server.directory());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting {tool}"))?;
    let mut stdin = child.stdin.take().context("standard input was piped")?;
    std::thread::scope(|scope| {
        // A tool that does not care for its input may end before it has taken it.
        scope.spawn(move || stdin.write_all(input));
        let output = child.wait_with_output()?;
        Ok(Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    })
}

fn cli(server: &Server, arguments: &[&str]) -> Result<Said> {
    run_for("60", server, "redis-cli", arguments, b"")
}

// ---- redis-cli ----------------------------------------------------------------------------------

/// A key of each type, and the largest of each type known.
fn fill(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    for command in ["RPUSH list 1 2 3", "HSET hash f 1 g 2", "ZADD zset 1 a", "SADD set a b"] {
        client.call_text(command)?;
    }
    for number in 0..500 {
        client.call_text(&format!("SET string:{number} {}", "x".repeat(number + 1)))?;
    }
    Ok(())
}

#[test]
fn cli_prints_replies_in_every_form() -> Result<()> {
    let server = start(&[])?;
    cli(&server, &["MSET", "a", "1", "b", "two words"])?.only("OK\n")?;
    cli(&server, &["MGET", "a", "none", "b"])?.only("1\n\ntwo words\n")?;
    let shown = cli(&server, &["--no-raw", "MGET", "a", "none", "b"])?;
    shown.only("1) \"1\"\n2) (nil)\n3) \"two words\"\n")?;
    cli(&server, &["--csv", "MGET", "a", "none", "b"])?.only("\"1\",NULL,\"two words\"\n")?;
    cli(&server, &["HSET", "h", "f", "1"])?.only("1\n")?;
    cli(&server, &["-2", "--no-raw", "HGETALL", "h"])?.only("1) \"f\"\n2) \"1\"\n")?;
    cli(&server, &["-3", "--no-raw", "HGETALL", "h"])?.only("1# \"f\" => \"1\"\n")?;
    cli(&server, &["-3", "--json", "HGETALL", "h"])?.only("{\"f\":\"1\"}\n")?;
    cli(&server, &["-r", "3", "INCR", "n"])?.only("1\n2\n3\n")?;
    cli(&server, &["-n", "5", "DBSIZE"])?.only("0\n")?;
    let failed = cli(&server, &["-e", "LPUSH", "a", "1"])?;
    ensure!(failed.code == Some(1) && failed.complaints.starts_with("WRONGTYPE "), "{failed:?}");
    Ok(())
}

#[test]
fn cli_takes_arguments_and_commands_from_its_input() -> Result<()> {
    let server = start(&[])?;
    let binary = b"line\r\n\0\xff";
    run_for("60", &server, "redis-cli", &["-x", "SET", "k"], binary)?.only("OK\n")?;
    ensure!(server.connect()?.call(&["GET", "k"])? == Reply::Bulk(binary.to_vec()));
    let tagged = ["-X", "value", "SET", "tagged", "value", "EX", "100"];
    run_for("60", &server, "redis-cli", &tagged, binary)?.only("OK\n")?;
    let script = b"SET a 'b c'\nMULTI\nGET a\nINCR n\nEXEC\nhelp zadd\n";
    let said = run_for("60", &server, "redis-cli", &[], script)?.succeeded()?;
    // The help is made of what COMMAND DOCS answers.
    said.with(&["OK\nOK\nQUEUED\nQUEUED\nb c\n1\n", "score member", "since:\u{1b}[0m 1.2.0"])
}

#[test]
fn cli_authenticates_and_connects_by_address() -> Result<()> {
    let server = start(&[("requirepass", "secret"), ("unixsocket", "socket")])?;
    cli(&server, &["PING"])?.with(&["NOAUTH Authentication required."])?;
    cli(&server, &["--no-auth-warning", "-a", "secret", "PING"])?.only("PONG\n")?;
    cli(&server, &["-a", "wrong", "PING"])?.with(&["NOAUTH"])?;
    let address = format!("redis://default:secret@127.0.0.1:{}/3", server.port());
    cli(&server, &["--no-auth-warning", "-u", &address, "CLIENT", "INFO"])?.with(&[" db=3 "])?;
    let socket = ["--no-auth-warning", "-a", "secret", "-s", "socket", "PING"];
    cli(&server, &socket)?.only("PONG\n")
}

#[test]
fn cli_finds_the_biggest_keys() -> Result<()> {
    let server = start(&[])?;
    fill(&server)?;
    cli(&server, &["--bigkeys"])?.succeeded()?.with(&[
        "Sampled 504 keys in the keyspace!",
        "Biggest string found \"string:499\" has 500 bytes",
        "Biggest   list found \"list\" has 3 items",
        "Biggest   hash found \"hash\" has 2 fields",
        "Biggest    set found \"set\" has 2 members",
        "Biggest   zset found \"zset\" has 1 members",
        "500 strings with 125250 bytes (99.21% of keys, avg size 250.50)",
    ])?;
    cli(&server, &["--memkeys"])?.succeeded()?.with(&[
        "Sampled 504 keys in the keyspace!",
        "Biggest string found \"string:4",
        "1 lists with ",
    ])
}

#[test]
fn cli_finds_the_keys_that_are_used_most() -> Result<()> {
    let server = start(&[("maxmemory-policy", "allkeys-lfu"), ("lfu-log-factor", "0")])?;
    fill(&server)?;
    let mut client = server.connect()?;
    for _ in 0..50 {
        client.call_text("GET string:7")?;
    }
    let said = cli(&server, &["--hotkeys"])?.succeeded()?;
    said.with(&["Sampled 504 keys in the keyspace!", "keyname: \"string:7\""])
}

#[test]
fn cli_walks_the_keys() -> Result<()> {
    let server = start(&[])?;
    fill(&server)?;
    let found = |arguments: &[&str]| -> Result<Vec<String>> {
        let said = cli(&server, arguments)?.succeeded()?;
        let mut names: Vec<_> = said.out.lines().map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    };
    ensure!(found(&["--scan"])?.len() == 504);
    ensure!(found(&["--scan", "--pattern", "string:49*"])?.len() == 11);
    ensure!(found(&["--scan", "--pattern", "*set"])? == ["set", "zset"]);
    Ok(())
}

#[test]
fn cli_watches_the_server() -> Result<()> {
    let server = start(&[])?;
    fill(&server)?;
    // The first ends when its time is up, the second after a second of measuring.
    let said = run_for("2", &server, "redis-cli", &["--stat", "-i", "0.1"], b"")?;
    let rows: Vec<_> = said.out.lines().skip(2).collect();
    ensure!(rows.len() > 3 && rows.iter().all(|row| row.starts_with("504 ")), "{said:#?}");
    let said = cli(&server, &["--latency"])?.succeeded()?;
    let columns: Vec<f64> = said.out.split_whitespace().flat_map(str::parse).collect();
    // Minimum, maximum, mean and how often it was measured.
    ensure!(columns.len() == 4 && columns[0] <= columns[1] && columns[3] > 10.0, "{said:?}");
    Ok(())
}

#[test]
fn cli_listens() -> Result<()> {
    let server = start(&[])?;
    let (heard, seen) = std::thread::scope(|scope| -> Result<_> {
        let heard = scope
            .spawn(|| run_for("3", &server, "redis-cli", &["SUBSCRIBE", "news", "sports"], b""));
        let seen = scope.spawn(|| run_for("3", &server, "redis-cli", &["MONITOR"], b""));
        let mut client = server.connect()?;
        while client.call_text("PUBLISH news hello")? != Reply::Integer(1) {
            std::thread::yield_now();
        }
        // Both listen for seconds; the second has surely begun when this is repeated to the end.
        while !heard.is_finished() {
            client.call_text("SET shown 1")?;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let gone = "a thread of the test is gone";
        Ok((heard.join().ok().context(gone)??, seen.join().ok().context(gone)??))
    })?;
    heard.with(&["subscribe\nnews\n1\nsubscribe\nsports\n2\n", "message\nnews\nhello\n"])?;
    seen.with(&["OK\n", "] \"SET\" \"shown\" \"1\"\n"])
}

#[test]
fn cli_inserts_in_mass() -> Result<()> {
    const COUNT: usize = 100_000;
    let server = start(&[])?;
    let mut requests = Vec::new();
    for number in 0..COUNT {
        let (name, value) = (format!("key:{number}"), "v".repeat(number % 50));
        encode(&["SET", &name, &value], &mut requests);
    }
    let said = run_for("120", &server, "redis-cli", &["--pipe"], &requests)?.succeeded()?;
    said.with(&[&format!("errors: 0, replies: {COUNT}")])?;
    ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(COUNT as i64));

    // Lines instead of arrays, one of them wrong; it is counted and the others are done.
    let lines = b"SET k 1\r\nINCR k\r\nLPUSH k x\r\nINCR k\r\n";
    let said = run_for("60", &server, "redis-cli", &["--pipe"], lines)?;
    ensure!(said.code == Some(1), "{said:?}");
    said.with(&["errors: 1, replies: 4"])?;
    ensure!(server.connect()?.call_text("GET k")? == Reply::Bulk(b"3".to_vec()));
    Ok(())
}

// ---- redis-benchmark ----------------------------------------------------------------------------

/// What redis-benchmark measures when it is told nothing, in its order.
const BENCHMARKS: [&str; 21] = [
    "PING_INLINE",
    "PING_MBULK",
    "SET",
    "GET",
    "INCR",
    "LPUSH",
    "RPUSH",
    "LPOP",
    "RPOP",
    "SADD",
    "HSET",
    "SPOP",
    "ZADD",
    "ZPOPMIN",
    "LPUSH (needed to benchmark LRANGE)",
    "LRANGE_100 (first 100 elements)",
    "LRANGE_300 (first 300 elements)",
    "LRANGE_500 (first 500 elements)",
    "LRANGE_600 (first 600 elements)",
    "MSET (10 keys)",
    "XADD",
];

/// Runs redis-benchmark and returns the names of what it measured.
fn benchmark(server: &Server, arguments: &[&str]) -> Result<Vec<String>> {
    let mut all = vec!["--csv"];
    all.extend(arguments);
    let said = run_for("120", server, "redis-benchmark", &all, b"")?.succeeded()?;
    let complaints = said.complaints.lines().filter(|line| !line.starts_with("WARNING"));
    ensure!(complaints.count() == 0, "{said:#?}");
    let mut names = Vec::new();
    for row in said.out.lines().skip(1) {
        let mut fields = row.trim_matches('"').split("\",\"");
        let (Some(name), Some(rate)) = (fields.next(), fields.next()) else { continue };
        ensure!(rate.parse::<f64>()? > 0.0, "{row}");
        names.push(name.to_owned());
    }
    Ok(names)
}

#[test]
fn benchmark_runs_its_whole_list() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    for pipeline in ["1", "16"] {
        client.call_text("FLUSHALL")?;
        let measured = benchmark(&server, &["-n", "3200", "-P", pipeline])?;
        ensure!(measured == BENCHMARKS, "{measured:?}");
        // Each was executed as often as was asked for: one LPUSH and one RPUSH, one LPOP and one
        // RPOP, and the LPUSH before the LRANGEs.
        let count = client.call_text("GET counter:__rand_int__")?;
        ensure!(count == Reply::Bulk(b"3200".to_vec()), "{count:?}");
        let length = client.call_text("LLEN mylist")?;
        ensure!(length == Reply::Integer(3200), "{length:?}");
    }
    Ok(())
}

#[test]
fn benchmark_runs_with_other_options() -> Result<()> {
    const ALL: &str = "set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,mset";
    const ONE_COMMAND: [&str; 4] = ["ZADD", "z", "__rand_int__", "m"];
    let server = start(&[])?;
    for (count, arguments) in [
        (11, &["-n", "8000", "-r", "100000", "-P", "16", "-t", ALL][..]),
        (11, &["-n", "8000", "-r", "1000", "--threads", "2", "-t", ALL]),
        (3, &["-n", "2000", "-3", "-t", "set,get,hset"]),
        (2, &["-n", "200", "-d", "200000", "-c", "5", "-t", "set,get"]),
        // A connection for each request.
        (2, &["-n", "1000", "-k", "0", "-t", "set,get"]),
        (1, &[&["-n", "1000", "-r", "100"][..], &ONE_COMMAND].concat()),
    ] {
        let measured = benchmark(&server, arguments)?;
        ensure!(measured.len() == count, "{measured:?} of {arguments:?}");
    }
    Ok(())
}
