//! `supervised` has the same effect as in Redis.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use rustix::process::Signal;
use tests::observe::wait_until;
use tests::peers;
use tests::server::dunlin_binary;

use crate::manager::{Manager, Service};

/// What a service manager sees of a server.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stops_itself: bool,
    told: Vec<String>,
    supervised: String,
    complains: bool,
}

fn state(service: &Service) -> Result<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", service.pid()))?;
    let (_, rest) = stat.rsplit_once(") ").unwrap_or_default();
    Ok(rest.split(' ').next().unwrap_or_default().to_owned())
}

fn see(of_redis: bool, mode: &str, socket: bool, job: bool) -> Result<Seen> {
    let manager = Manager::new()?;
    let mut command = match of_redis {
        true => Command::new(peers::program("redis-server")),
        false => {
            let mut command = Command::new(dunlin_binary()?);
            command.args(["serve", "--http-port", "0"]);
            command
        }
    };
    command.args(["--supervised", mode, "--save", ""]);
    let mut command = manager.supervise(command);
    if !socket {
        command.env_remove("NOTIFY_SOCKET");
    }
    if job {
        command.env("UPSTART_JOB", "a job");
    }
    let mut service = manager.start(command)?;
    let mut stops_itself = false;
    wait_until("a server that serves, or has stopped", || {
        stops_itself = state(&service)? == "T";
        Ok(stops_itself || service.log().contains("Ready to accept connections"))
    })?;
    if stops_itself {
        ensure!(service.connect().is_err(), "Redis stops before it listens");
        service.signal(Signal::CONT)?;
        wait_until("a server that serves", || Ok(service.connect().is_ok()))?;
    }
    let info = service.connect()?.call_text("INFO server")?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let supervised = info.lines().find_map(|line| line.strip_prefix("process_supervised:"));
    ensure!(service.stop()?.success());
    let told = manager.lines_so_far()?;
    let told = told.into_iter().filter(|line| !line.starts_with("STATUS=") && !is_ours(line));
    let log = service.log();
    Ok(Seen {
        stops_itself,
        told: told.collect(),
        supervised: supervised.unwrap_or_default().to_owned(),
        complains: log.contains("NOTIFY_SOCKET not found!")
            || log.contains("UPSTART_JOB not found!"),
    })
}

/// What Redis does not say.
fn is_ours(line: &str) -> bool {
    line.starts_with("EXTEND_TIMEOUT_USEC=")
}

#[test]
fn each_word_means_what_it_means_to_redis() -> Result<()> {
    for mode in ["no", "systemd", "upstart", "auto"] {
        for (socket, job) in [(false, false), (true, false), (false, true), (true, true)] {
            let [own, redis] = [false, true].map(|of_redis| see(of_redis, mode, socket, job));
            let (own, redis) = (own?, redis?);
            ensure!(own == redis, "{mode} {socket} {job}: {own:?}, of Redis: {redis:?}");
        }
    }
    Ok(())
}
