//! What operators build on the figures: Prometheus collects them, its tool finds no fault with them or
//! with the alerts, and the alerts and the dashboard of Grafana ask for figures that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use regex_lite::Regex;
use tests::client::encode;
use tests::peers;
use tests::server::{Server, repository};
use tests::web::Web;

/// A server that has done a bit of everything that figures tell of. Returns its port for HTTP.
fn busy_server() -> Result<(Server, u16)> {
    let options = [("threads", "2"), ("appendonly", "yes"), ("appendfsync", "always")];
    let (server, port) = Server::start_with_http(&options)?;
    let mut client = server.connect()?;
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
fn promtool_finds_no_fault_with_the_figures() -> Result<()> {
    let (_server, port) = busy_server()?;
    promtool(&["check", "metrics"], figures(port)?.as_bytes())?;
    // The tool does find faults.
    let wrong = b"# TYPE dunlin_things counter\ndunlin_things 1\n";
    ensure!(promtool(&["check", "metrics"], wrong).is_err());
    Ok(())
}

#[test]
fn promtool_finds_no_fault_with_the_alerts() -> Result<()> {
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

/// The labels that whoever collects the figures adds.
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
        let values = query(&mut web, expression)?;
        ensure!(values == [expected], "{expression}: {values:?}\n{}", figures(port)?);
    }
    Ok(())
}

/// As many keys of all types as a small service has: the figures stay cheap.
#[test]
fn figures_are_cheap_beside_many_keys() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "1")])?;
    let mut client = server.connect()?;
    for first in (0..100_000).step_by(500) {
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
    let mut web = Web::connect(port)?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        let answer = web.ask("GET /metrics", &[], b"")?;
        times.push(begun.elapsed());
        ensure!(answer.text().contains("dunlin_keys{database=\"0\"} 100000\n"));
    }
    times.sort();
    ensure!(times[25] < Duration::from_millis(5), "{times:?}");
    Ok(())
}
