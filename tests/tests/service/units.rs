//! The units of systemd: `systemd-analyze` reads them, which takes no running systemd.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::peers;
use tests::server::{dunlin_binary, free_port, repository};

use crate::manager::Manager;

/// The services, with names under which templates can be looked at, and how much each is exposed
/// at most.
const SERVICES: [(&str, &str, f64); 4] = [
    ("dunlin.service", "dunlin.service", 2.0),
    ("dunlin@.service", "dunlin@one.service", 2.0),
    ("dunlin-sentinel@.service", "dunlin-sentinel@one.service", 2.0),
    ("dunlin-backup@.service", "dunlin-backup@one.service", 2.0),
];

fn unit(name: &str) -> PathBuf {
    repository().join("deploy/systemd").join(name)
}

#[test]
fn services_are_well_guarded() -> Result<()> {
    for (name, _, most) in SERVICES {
        let output = Command::new("systemd-analyze")
            .args(["security", "--offline=true"])
            .arg(unit(name))
            .output()
            .context("systemd-analyze, which scripts/install-peers installs")?;
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let level = report.lines().last().and_then(|line| line.split(": ").nth(1));
        let level = level.and_then(|rest| rest.split(' ').next()).context("an exposure level")?;
        let level: f64 = level.parse()?;
        ensure!(level < most, "{name}: {level}\n{report}");
    }
    Ok(())
}

/// The programs are where the package puts them, which is not here.
#[test]
fn units_say_what_systemd_understands() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let binary = dunlin_binary()?;
    let binary = binary.to_str().context("a path of text")?;
    let put = |name: &str, as_name: &str| -> Result<PathBuf> {
        let text = fs::read_to_string(unit(name))?;
        let text = text.replace("/usr/bin/dunlin", binary);
        let text = text.replace("/usr/bin/redis-sentinel", binary).replace("man:dunlin(1) ", "");
        let path = directory.path().join(as_name);
        fs::write(&path, text)?;
        Ok(path)
    };
    let mut paths = vec![put("dunlin.socket", "dunlin.socket")?];
    for (name, as_name, _) in SERVICES {
        paths.push(put(name, as_name)?);
    }
    let output = Command::new("systemd-analyze").arg("verify").args(&paths).output()?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let of_ours = complaints.lines().filter(|line| line.contains("dunlin")).collect::<Vec<_>>();
    ensure!(output.status.success() && of_ours.is_empty(), "{complaints}");
    Ok(())
}

/// Starts what a unit starts, with its paths in a directory of the test.
fn start_as(name: &str, program: &str, configuration: (&str, &str)) -> Result<()> {
    let manager = Manager::new()?;
    let home = manager.home().to_str().context("a path of text")?;
    let text = fs::read_to_string(unit(name))?;
    let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).context("a start")?;
    let mut words = start.split(' ').map(|word| {
        let word = word.replace("%i", "one");
        ["/etc", "/var"]
            .into_iter()
            .fold(word, |word, root| word.replacen(root, &format!("{home}{root}"), 1))
    });
    words.next();
    let directories = ["etc/dunlin", "var/lib/dunlin-one", "var/lib/dunlin-sentinel-one"];
    for directory in directories.map(|own| manager.home().join(own)) {
        fs::create_dir_all(directory)?;
    }
    let port = free_port()?;
    let (file, lines) = configuration;
    fs::write(manager.home().join(file), format!("port {port}\n{lines}"))?;
    let mut command = Command::new(program);
    command.args(words);
    let mut service = manager.spawn(manager.supervise(command), port)?;
    manager.lines_until("READY=1").with_context(|| service.log())?;
    ensure!(!service.connect()?.call(&["PING"])?.is_error());
    ensure!(service.stop()?.success());
    Ok(())
}

#[test]
fn services_start_as_their_units_say() -> Result<()> {
    let own = dunlin_binary()?;
    let own = own.to_str().context("a path of text")?;
    start_as("dunlin.service", own, ("etc/dunlin/dunlin.conf", "http-port 0\n"))?;
    start_as("dunlin@.service", own, ("etc/dunlin/one.conf", "http-port 0\n"))?;
    let sentinel = peers::program("redis-sentinel");
    let sentinel = sentinel.to_str().context("a path of text")?;
    let file = "var/lib/dunlin-sentinel-one/sentinel.conf";
    start_as("dunlin-sentinel@.service", sentinel, (file, ""))
}
