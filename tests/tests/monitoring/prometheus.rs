//! A real Prometheus, and its tool.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::observe::wait_until;
use tests::peers;
use tests::server::{free_port, repository};
use tests::web::Web;

/// Runs promtool in the root of the repository.
pub(crate) fn promtool(arguments: &[&str], input: &[u8]) -> Result<()> {
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

/// What a server answers to a Prometheus.
pub(crate) fn metrics(port: u16) -> Result<String> {
    Ok(Web::connect(port)?.ask("GET /metrics", &[], b"")?.text())
}

/// A file of the repository in YAML, as JSON.
pub(crate) fn yaml(path: &str) -> Result<Value> {
    let script = repository().join("scripts/render-kubernetes");
    let output = Command::new(script).args(["json", path]).current_dir(repository()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents: Value = serde_json::from_slice(&output.stdout)?;
    Ok(documents[0].clone())
}

/// All rules of a file in `deploy`.
pub(crate) fn rules(path: &str) -> Result<Vec<Value>> {
    let file = yaml(path)?;
    let groups = file["groups"].as_array().context("groups")?;
    let rules = groups.iter().flat_map(|group| group["rules"].as_array()).flatten();
    let rules: Vec<Value> = rules.cloned().collect();
    ensure!(!rules.is_empty(), "{path} has no rules");
    Ok(rules)
}

/// A Prometheus that runs; dropping it ends it.
pub(crate) struct Prometheus {
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Prometheus {
    /// Starts one that collects five times a second, from the places that `collected` says in the
    /// words of its configuration.
    pub(crate) fn start(rules: &[&Path], collected: &str) -> Result<Prometheus> {
        let directory = tempfile::Builder::new().prefix("dunlin-prometheus-").tempdir()?;
        let files: Vec<String> = rules.iter().map(|own| own.display().to_string()).collect();
        let settings = format!(
            "global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\n\
             rule_files: {files:?}\nscrape_configs:\n{collected}"
        );
        let file = directory.path().join("prometheus.yml");
        fs::write(&file, settings)?;
        let port = free_port()?;
        let log = fs::File::create(directory.path().join("log"))?;
        let child = Command::new(peers::program("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let prometheus = Prometheus { child, port, directory };
        let ready = wait_until("a Prometheus", || {
            let answer = Web::connect(port).and_then(|mut web| web.ask("GET /-/ready", &[], b""));
            Ok(answer.is_ok_and(|answer| answer.status == 200))
        });
        ready.with_context(|| prometheus.log())?;
        Ok(prometheus)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// The results of a query, each with its labels and its value.
    pub(crate) fn query(&self, query: &str) -> Result<Vec<(Value, f64)>> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = Web::connect(self.port)?.ask_whole(
            &format!("GET /api/v1/query?query={encoded}"),
            &[],
            b"",
        )?;
        let answer: Value = serde_json::from_slice(&answer.body)?;
        let results = answer["data"]["result"].as_array().with_context(|| answer.to_string())?;
        let value = |result: &Value| result["value"][1].as_str()?.parse().ok();
        let result = |own: &Value| Some((own["metric"].clone(), value(own)?));
        Ok(results.iter().filter_map(result).collect())
    }

    /// The values of the results of a query.
    pub(crate) fn values(&self, query: &str) -> Result<Vec<f64>> {
        Ok(self.query(query)?.into_iter().map(|(_, value)| value).collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place that is collected from.
pub(crate) fn target(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// The path of a file of the repository.
pub(crate) fn path(name: &str) -> PathBuf {
    repository().join(name)
}
