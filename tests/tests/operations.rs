//! What operators build on the figures: Prometheus collects them, its tool finds no fault with them
//! or with the alerts, and the alerts and the dashboard of Grafana ask for figures that there are.
//! Then what the dashboard of the server itself is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use regex_lite::Regex;
use tests::certificates::Certificates;
use tests::client::{Client, Reply, encode};
use tests::observe::wait_until;
use tests::peers;
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target, repository};
use tests::web::Web;

/// How long something may take that is not slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that has done a bit of everything that figures tell of. Returns its port for HTTP.
fn busy_server() -> Result<(Server, u16)> {
    let options = [("threads", "2"), ("appendonly", "yes"), ("appendfsync", "always")];
    let (server, port) = Server::start_with_http(&options)?;
    let mut client = server.connect()?;
    // Nothing has to be encrypted for the end of certificates to be shown.
    let certificates = Certificates::make()?;
    let file = |path: PathBuf| path.display().to_string();
    let (certificate, key, authority) =
        (file(certificates.server()), file(certificates.key()), file(certificates.authority()));
    let set = ["tls-cert-file", &certificate, "tls-key-file", &key, "tls-ca-cert-file", &authority];
    let set = [&["CONFIG", "SET", "tls-replication", "yes"][..], &set].concat();
    ensure!(!client.call(&set)?.is_error(), "{}", server.log_tail());
    for command in ["SET a 1 EX 1000", "GET a", "GET none", "LPUSH a 1", "NOSUCH", "RPUSH l 1 2"] {
        client.call_text(command)?;
    }
    let mut read = Vec::new();
    encode(&["GET", "ho\"t\\key\n"], &mut read);
    client.send_raw(&read.repeat(5000))?;
    for _ in 0..5000 {
        client.receive()?;
    }
    Ok((server, port))
}

fn figures(port: u16) -> Result<String> {
    Ok(Web::connect(port)?.ask("GET /metrics", &[], b"")?.text())
}

fn promtool(arguments: &[&str], input: &[u8]) -> Result<()> {
    let mut child = Command::new(peers::program("promtool"))
        .args(arguments)
        .current_dir(repository())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("standard input was piped")?.write_all(input)?;
    let output = child.wait_with_output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    Ok(())
}

#[test]
fn promtool_accepts_the_metrics() -> Result<()> {
    let (_server, port) = busy_server()?;
    promtool(&["check", "metrics"], figures(port)?.as_bytes())?;
    // The tool does find faults.
    let wrong = b"# TYPE dunlin_things counter\ndunlin_things 1\n";
    ensure!(promtool(&["check", "metrics"], wrong).is_err());
    Ok(())
}

#[test]
fn promtool_accepts_the_alerts() -> Result<()> {
    promtool(&["check", "rules", "deploy/alerts.yml"], b"")
}

/// The names of all series, each with the labels that it has.
fn series(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let label = Regex::new("([a-z_]+)=\"").expect("a pattern");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let labels = found.entry(name.to_owned()).or_default();
        labels.extend(label.captures_iter(line).map(|found| found[1].to_owned()));
    }
    found
}

/// The labels that the collecting program adds.
const ADDED: [&str; 2] = ["instance", "job"];

/// Whether an expression asks for series that there are, and for labels that one of them has.
fn ask_for_what_is_there(
    expression: &str,
    known: &BTreeMap<String, BTreeSet<String>>,
) -> Result<()> {
    let name = Regex::new("dunlin_[a-z0-9_]+").expect("a pattern");
    let mut labels: BTreeSet<&str> = ADDED.into();
    let mut names = 0;
    for found in name.find_iter(expression) {
        let own = known.get(found.as_str());
        labels
            .extend(own.with_context(|| format!("no {}", found.as_str()))?.iter().map(|it| &**it));
        names += 1;
    }
    ensure!(names > 0 || expression.starts_with("up{"), "it asks for nothing");
    let grouped = Regex::new("by \\(([a-z_, ]+)\\)").expect("a pattern");
    let asked = grouped
        .captures_iter(expression)
        .flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>());
    for label in asked {
        ensure!(labels.contains(&*label), "no series there has the label {label}");
    }
    Ok(())
}

#[test]
fn alerts_and_charts_ask_for_figures_that_there_are() -> Result<()> {
    let (_server, port) = busy_server()?;
    let known = series(&figures(port)?);
    let charts: serde_json::Value =
        serde_json::from_slice(&fs::read(repository().join("deploy/grafana.json"))?)?;
    let panels = charts["panels"].as_array().context("a dashboard has panels")?;
    let mut asked = 0;
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array()).flatten() {
        let expression = target["expr"].as_str().context("a target has an expression")?;
        ask_for_what_is_there(expression, &known).with_context(|| expression.to_owned())?;
        asked += 1;
    }
    let alerts = fs::read_to_string(repository().join("deploy/alerts.yml"))?;
    // An expression may go on in lines that are further in.
    for rule in alerts.split("- alert: ").skip(1) {
        let body = rule.split_once("expr:").context("an alert has an expression")?.1;
        let expression = body.split("\n        for:").next().unwrap_or_default();
        let expression = expression.split("\n        labels:").next().unwrap_or_default();
        let expression = expression.trim_start_matches([' ', '>', '\n']);
        ask_for_what_is_there(expression, &known).with_context(|| expression.to_owned())?;
        asked += 1;
    }
    ensure!(asked > 25, "only {asked} expressions were found");
    ensure!(ask_for_what_is_there("sum by (db) (dunlin_keys)", &known).is_err());
    Ok(())
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The values that a Prometheus answers to a query.
fn query(web: &mut Web, query: &str) -> Result<Vec<f64>> {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = web.ask(&format!("GET /api/v1/query?query={encoded}"), &[], b"")?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let results = answer["data"]["result"].as_array().with_context(|| answer.to_string())?;
    let value = |result: &serde_json::Value| result["value"][1].as_str()?.parse().ok();
    Ok(results.iter().filter_map(value).collect())
}

#[test]
fn a_prometheus_collects_the_figures() -> Result<()> {
    let (server, port) = busy_server()?;
    let directory = server.directory().join("prometheus");
    fs::create_dir(&directory)?;
    let alerts = repository().join("deploy/alerts.yml");
    let own = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let settings = format!(
        "global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\n\
         rule_files: ['{}']\n\
         scrape_configs:\n\
         - {{job_name: dunlin, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n\
         - {{job_name: own, static_configs: [{{targets: ['127.0.0.1:{own}']}}]}}\n",
        alerts.display()
    );
    fs::write(directory.join("prometheus.yml"), settings)?;
    let log = fs::File::create(directory.join("log"))?;
    let child = Command::new(peers::program("prometheus"))
        .arg(format!("--config.file={}", directory.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{own}"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let _prometheus = Ends(child);
    let begun = Instant::now();
    let mut web = loop {
        if let Ok(mut web) = Web::connect(own)
            && query(&mut web, "up{job=\"dunlin\"}").is_ok_and(|values| values == [1.0])
            && query(&mut web, "prometheus_rule_group_iterations_total > 2")
                .is_ok_and(|values| values.len() == 1)
        {
            break web;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            bail!("nothing is collected:\n{}", fs::read_to_string(directory.join("log"))?);
        }
        sleep(Duration::from_millis(100));
    };
    for (expression, expected) in [
        ("dunlin_keys{database=\"0\"}", 2.0),
        ("dunlin_command_duration_seconds_count{command=\"get\"}", 5002.0),
        ("dunlin_command_duration_seconds_bucket{command=\"get\",le=\"+Inf\"}", 5002.0),
        ("sum(prometheus_rule_evaluation_failures_total)", 0.0),
        ("count(ALERTS{alertstate=\"firing\"}) or vector(0)", 0.0),
        ("dunlin_listener_connections{listener=\"http\"}", 1.0),
        ("count(dunlin_hot_key_commands_per_second{key=\"ho\\\"t\\\\key\\n\"} > 100)", 1.0),
        (
            "count(dunlin_stage_duration_seconds_count{stage=~\"queue|execute|commit|flush\"} > 0)",
            4.0,
        ),
    ] {
        // A scrape that was too slow for its interval leaves no figures until the next one.
        let mut values = Vec::new();
        let seen = wait_until(expression, || {
            values = query(&mut web, expression)?;
            Ok(values == [expected])
        });
        seen.with_context(|| format!("{values:?}\n{}", figures(port).unwrap_or_default()))?;
    }
    Ok(())
}

/// Keys of all types, as many as a small service has.
fn fill(client: &mut Client, numbers: Range<usize>) -> Result<()> {
    for first in numbers.step_by(500) {
        let mut commands = Vec::new();
        for number in first..first + 500 {
            let key = format!("key:{number}");
            let words: &[&str] = match number % 6 {
                0 => &["SET", &key, "value"],
                1 => &["RPUSH", &key, "a", "b"],
                2 => &["SADD", &key, "a", "b"],
                3 => &["HSET", &key, "f", "v"],
                4 => &["ZADD", &key, "1", "a"],
                _ => &["XADD", &key, "*", "f", "v"],
            };
            encode(words, &mut commands);
        }
        client.send_raw(&commands)?;
        for _ in 0..500 {
            client.receive()?;
        }
    }
    Ok(())
}

/// The figures come from counters and from a sample of the keys: twenty times as many keys cost them
/// nothing more.
#[test]
fn figures_are_cheap_beside_many_keys() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "1")])?;
    let mut web = Web::connect(port)?;
    // The least of many: other processes on the same processors make the others cost more.
    let mut cost = |keys: &str| -> Result<u64> {
        let mut costs = (0..100).map(|_| {
            let begun = scheduled_nanoseconds(server.pid())?;
            let answer = web.ask("GET /metrics", &[], b"")?;
            ensure!(answer.text().contains(keys), "{}", answer.text());
            Ok(scheduled_nanoseconds(server.pid())? - begun)
        });
        costs.try_fold(u64::MAX, |least, cost: Result<u64>| Ok(least.min(cost?)))
    };
    let mut client = server.connect()?;
    fill(&mut client, 0..5000)?;
    let few = cost("dunlin_keys{database=\"0\"} 5000\n")?;
    fill(&mut client, 5000..100_000)?;
    let many = cost("dunlin_keys{database=\"0\"} 100000\n")?;
    ensure!(many < 4 * few, "{many} ns of processor time beside {few} ns");
    Ok(())
}

fn json(web: &mut Web, line: &str) -> Result<serde_json::Value> {
    let answer = web.ask(line, &[], b"")?;
    ensure!(answer.status == 200, "{line}: {answer:?}");
    Ok(serde_json::from_slice(&answer.body)?)
}

#[test]
fn memory_is_told_by_type_and_prefix() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut client = server.connect()?;
    let mut commands = Vec::new();
    for number in 0..3000 {
        encode(&["SET", &format!("user:{number}:name"), "0123456789"], &mut commands);
    }
    for number in 0..1000 {
        encode(&["SADD", &format!("tags/{number}"), "a", "b"], &mut commands);
    }
    encode(&["SET", "large", &"x".repeat(5_000_000), "EX", "100"], &mut commands);
    client.send_raw(&commands)?;
    for _ in 0..4001 {
        client.receive()?;
    }
    let mut web = Web::connect(port)?;
    // A look takes no longer than it may, and on a busy machine may not get through.
    let mut look = |line: &str, seen: fn(&serde_json::Value) -> bool| {
        let mut last = serde_json::Value::Null;
        let through = wait_until("a look that gets through", || {
            last = json(&mut web, line)?;
            Ok(seen(&last))
        });
        through.with_context(|| last.to_string()).map(|()| last)
    };
    let whole = look("GET /v1/memory?samples=10000", |seen| seen["complete"] == true)?;
    ensure!(whole["keys"] == 4001 && whole["sampled"] == 4001, "{whole}");
    let sum = |what: &str| -> i64 {
        let rows = whole[what].as_array().into_iter().flatten();
        rows.filter_map(|row| row["keys"].as_i64()).sum()
    };
    ensure!(sum("types") == 4001 && sum("sizes") == 4001 && sum("prefixes") == 4001, "{whole}");
    ensure!(whole["largest"][0]["key"] == "large" && whole["largest"][0]["elements"] == 5_000_000);
    ensure!(whole["largest"][0]["ttl"].as_i64().is_some_and(|ttl| (90..=100).contains(&ttl)));
    // A sample is near the truth, and says what it is.
    let sample = "GET /v1/memory?samples=500&separator=%2F";
    let some = look(sample, |seen| seen["sampled"].as_u64().is_some_and(|keys| keys >= 450))?;
    ensure!(some["complete"] == false && some["keys"] == 4001, "{some}");
    let tags =
        some["prefixes"].as_array().into_iter().flatten().find(|row| row["prefix"] == "tags/");
    let keys = tags.and_then(|row| row["keys"].as_i64()).context("a prefix")?;
    ensure!((700..=1300).contains(&keys), "{some}");
    ensure!(json(&mut web, "GET /v1/memory?db=5")?["keys"] == 0);
    // A walk sees every key, in steps that tell what they have seen.
    let (mut cursor, mut steps, mut keys, mut prefixes, mut largest) = (0.to_string(), 0, 0, 0, 0);
    loop {
        let step = json(&mut web, &format!("GET /v1/memory?cursor={cursor}&samples=300"))?;
        let rows = step["prefixes"].as_array().into_iter().flatten();
        prefixes += rows.filter_map(|row| row["keys"].as_i64()).sum::<i64>();
        keys += step["keys"].as_i64().context("a number")?;
        largest = step["largest"][0]["elements"].as_i64().unwrap_or(0).max(largest);
        ensure!(step["of"] == 4001 && step["keys"] == step["sampled"], "{step}");
        ensure!(step["complete"] == step["cursor"].is_null(), "{step}");
        steps += 1;
        match step["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    ensure!(
        keys == 4001 && prefixes == 4001 && largest == 5_000_000,
        "{keys} {prefixes} {largest}"
    );
    ensure!(steps >= 4001 / 400, "{steps} steps of about 300 keys");
    let none = json(&mut web, "GET /v1/memory?db=5&cursor=0")?;
    ensure!(none["keys"] == 0 && none["cursor"].is_null(), "{none}");
    for wrong in ["samples=0", "samples=10001", "separator=", "depth=9", "else=1", "cursor=x"] {
        let answer = web.ask(&format!("GET /v1/memory?{wrong}"), &[], b"")?;
        ensure!(answer.status == 400, "{wrong}: {answer:?}");
    }
    Ok(())
}

#[test]
fn hot_keys_are_told_as_they_are_named() -> Result<()> {
    let (_server, port) = busy_server()?;
    let mut web = Web::connect(port)?;
    let hot = json(&mut web, "GET /v1/hotkeys")?;
    ensure!(hot[0]["key"] == "ho\"t\\key\n" && hot[0]["db"] == 0, "{hot}");
    ensure!(hot[0]["share"].as_f64().is_some_and(|share| share > 0.9), "{hot}");
    ensure!(web.ask("GET /v1/hotkeys?limit=0", &[], b"")?.status == 400);
    Ok(())
}

/// The measures of a log's newest commands and their names, the newest first.
fn logged(client: &mut Client, kind: &str, count: usize) -> Result<Vec<(i64, String)>> {
    let reply = client.call_text(&format!("COMMANDLOG GET {count} {kind}"))?;
    let entries = reply.elements().context("no array")?;
    let entry = |entry: Reply| {
        let fields = entry.elements().context("no array")?;
        let [_, _, Reply::Integer(measure), Reply::Array(arguments), ..] = &fields[..] else {
            bail!("{fields:?}");
        };
        let name = arguments[0].text().context("no name")?;
        Ok((*measure, String::from_utf8_lossy(name).into_owned()))
    };
    entries.into_iter().map(entry).collect()
}

/// A command that a script calls was not sent by a client, and has a reply; a client that
/// suppresses replies gets none.
#[test]
fn commands_are_logged_with_their_bytes() -> Result<()> {
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let mut client = server.connect()?;
    let mut other = server.connect()?;
    client.call_text("SET a 12345")?;
    client
        .call_text("CONFIG SET commandlog-request-larger-than 0 commandlog-reply-larger-than 0")?;
    client.call_text("EVAL return(redis.call(ARGV[1],KEYS[1])) 1 a GET")?;
    let eval = "*5\r\n$4\r\nEVAL\r\n$35\r\n\r\n$1\r\n1\r\n$1\r\na\r\n$3\r\nGET\r\n".len() + 35;
    let named = |measure, name: &str| (measure, name.to_owned());
    let expected = [named(eval as i64, "EVAL"), named(0, "GET")];
    let of_request = logged(&mut other, "large-request", 2)?;
    ensure!(of_request == expected, "{of_request:?}");
    client.call_text("EVAL return(redis.call(ARGV[1],KEYS[1])) 1 a GET")?;
    let of_reply = logged(&mut other, "large-reply", 2)?;
    ensure!(of_reply == [named(11, "EVAL"), named(11, "GET")], "{of_reply:?}");

    for command in ["MULTI", "GET a", "GET none"] {
        client.call_text(command)?;
    }
    let bytes = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".len() as i64;
    client.call_text("EXEC")?;
    let expected = [named(bytes + 3, "GET"), named(bytes, "GET")];
    let of_request = logged(&mut other, "large-request", 2)?;
    ensure!(of_request == expected, "EXEC is not logged: {of_request:?}");

    client.send(&["CLIENT", "REPLY", "SKIP"])?;
    client.send(&["GET", "a"])?;
    client.call_text("PING")?;
    let of_reply = logged(&mut other, "large-reply", 2)?;
    ensure!(of_reply == [named(7, "PING"), named(0, "GET")], "{of_reply:?}");
    Ok(())
}

#[test]
fn a_transaction_may_depend_on_a_version() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2"), ("appendonly", "yes")])?;
    let mut client = server.connect()?;
    client.call_text("RPUSH list a b")?;
    let mut web = Web::connect(port)?;
    let tag = web.ask("GET /v1/keys/list", &[], b"")?.tag().to_owned();
    let condition = format!("If-Match: {tag}");
    let line = "POST /v1/transaction?key=list";
    let body = br#"[["LSET","list",0,"x"],["GET","list"]]"#;
    let first = web.ask(line, &[&condition], body)?;
    ensure!(
        first.status == 200 && first.text().starts_with(r#"[{"result":"OK"},{"error":"WRONGTYPE"#)
    );
    let again = web.ask(line, &[&condition], body)?;
    ensure!(again.status == 412 && !again.tag().is_empty() && again.tag() != tag, "{again:?}");
    ensure!(web.ask(line, &["If-None-Match: *"], body)?.status == 412);
    ensure!(web.ask("POST /v1/transaction", &[&condition], body)?.status == 422, "of which key?");
    ensure!(web.ask(line, &[&condition], b"[]")?.status == 400);
    let made = web.ask(
        "POST /v1/transaction?key=new&db=1",
        &["If-None-Match: *"],
        br#"[["SET","new","1"]]"#,
    )?;
    ensure!(made.status == 200, "{made:?}");
    // What is wrong is told, and leaves nothing behind on the connection.
    let wrong =
        web.ask("POST /v1/transaction?key=new", &["If-None-Match: *"], br#"[["NOSUCH"]]"#)?;
    ensure!(wrong.status == 400 && wrong.text().contains("EXECABORT"), "{wrong:?}");
    ensure!(web.ask("POST /v1/command", &[], br#"["PING"]"#)?.text() == r#"{"result":"PONG"}"#);
    ensure!(client.call_text("LINDEX list 0")?.text() == Some(&b"x"[..]));
    ensure!(client.call_text("EXISTS new")? == Reply::Integer(0), "it is in the other database");
    Ok(())
}

#[test]
fn of_many_conditional_transactions_one_wins_each_version() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    server.connect()?.call_text("HSET h n 0")?;
    let wins: Result<Vec<usize>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| -> Result<usize> {
                    let (mut web, mut wins) = (Web::connect(port)?, 0);
                    for _ in 0..100 {
                        let seen = web.ask("GET /v1/keys/h", &[], b"")?;
                        let condition = format!("If-Match: {}", seen.tag());
                        let seen: serde_json::Value = serde_json::from_slice(&seen.body)?;
                        let next: u64 = seen["n"].as_str().context("a number")?.parse::<u64>()? + 1;
                        let body = format!(r#"[["HSET","h","n","{next}"]]"#);
                        let line = "POST /v1/transaction?key=h";
                        let answer = web.ask(line, &[&condition], body.as_bytes())?;
                        ensure!(matches!(answer.status, 200 | 412), "{answer:?}");
                        wins += usize::from(answer.status == 200);
                    }
                    Ok(wins)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.collect()
    });
    let wins: usize = wins?.into_iter().sum();
    let seen = Web::connect(port)?.ask("GET /v1/keys/h", &[], b"")?;
    ensure!(seen.text() == format!(r#"{{"n":"{wins}"}}"#), "{wins} wins, {}", seen.text());
    ensure!(wins > 0 && wins < 800, "{wins} of 800 came through");
    Ok(())
}

#[test]
fn a_stream_is_read_in_pages() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut client = server.connect()?;
    for command in ["XADD s 1-1 a 1 b 2", "XADD s 1-2 a 3", "XADD s 2-0 a 4"] {
        client.call_text(command)?;
    }
    let mut web = Web::connect(port)?;
    let all = web.ask("GET /v1/keys/s", &[], b"")?;
    let text = concat!(
        r#"[{"id":"1-1","fields":{"a":"1","b":"2"}},"#,
        r#"{"id":"1-2","fields":{"a":"3"}},{"id":"2-0","fields":{"a":"4"}}]"#
    );
    ensure!(all.text() == text && all.header("x-type") == Some("stream") && !all.tag().is_empty());
    ensure!(all.header("x-cursor").is_none());
    let page = web.ask("GET /v1/keys/s?limit=2", &[], b"")?;
    ensure!(page.header("x-cursor") == Some("1-2"), "{page:?}");
    let rest = web.ask("GET /v1/keys/s?limit=2&cursor=1-2", &[], b"")?;
    ensure!(
        rest.text() == r#"[{"id":"2-0","fields":{"a":"4"}}]"# && rest.header("x-cursor").is_none()
    );
    for (wrong, status) in [
        ("cursor=7", 409),
        ("cursor=1-", 400),
        ("cursor=x", 400),
        ("range=0,1", 409),
        ("fields=a", 409),
    ] {
        let answer = web.ask(&format!("GET /v1/keys/s?{wrong}"), &[], b"")?;
        ensure!(answer.status == status, "{wrong}: {answer:?}");
    }
    client.call_text("RPUSH l a")?;
    ensure!(web.ask("GET /v1/keys/l?cursor=1-2", &[], b"")?.status == 409);
    Ok(())
}
