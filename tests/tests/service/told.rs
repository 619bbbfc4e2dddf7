//! What the service manager is told.

use std::fs;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use tests::client::Reply;

use crate::manager::Manager;

fn has(lines: &[String], line: &str) -> bool {
    lines.iter().any(|own| own == line)
}

#[test]
fn a_start_a_reload_and_a_stop_are_told() -> Result<()> {
    let manager = Manager::new()?;
    let mut service = manager.start(manager.service(&[])?)?;
    let lines = manager.lines_until("READY=1")?;
    ensure!(has(&lines, "STATUS=Loading data"), "{lines:?}");
    ensure!(has(&lines, "STATUS=Ready to accept connections"), "{lines:?}");
    let reply = service.connect()?.call(&["PING"])?;
    ensure!(reply == Reply::Status(b"PONG".to_vec()), "{reply:?}");
    ensure!(service.connect()?.call_text("INFO server")?.text().is_some_and(|info| {
        String::from_utf8_lossy(info).contains("process_supervised:systemd")
    }));

    let now = clock_gettime(ClockId::Monotonic);
    service.signal(Signal::HUP)?;
    let lines = manager.lines_until("RELOADING=1")?;
    let since = lines.iter().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    let since: i64 = since.with_context(|| format!("{lines:?}"))?.parse()?;
    let before = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
    let after = clock_gettime(ClockId::Monotonic).tv_sec * 1_000_000 + 1_000_000;
    ensure!(before <= since && since <= after, "{before} {since} {after}");
    manager.lines_until("READY=1")?;

    ensure!(service.stop()?.success(), "{}", service.log());
    let lines = manager.lines_until("STOPPING=1")?;
    ensure!(!has(&lines, "READY=1"), "{lines:?}");
    Ok(())
}

/// What is saved or loaded slowly.
fn fill(service: &crate::manager::Service) -> Result<()> {
    let mut client = service.connect()?;
    let filled = client.call(&["EVAL", "for i = 1, 3000 do redis.call('SET', i, i) end", "0"])?;
    ensure!(!filled.is_error(), "{filled:?}");
    Ok(())
}

#[test]
fn slow_loads_and_saves_get_more_time() -> Result<()> {
    let manager = Manager::new()?;
    let slow = ["--rdb-key-save-delay", "1000", "--key-load-delay", "1000", "--save", "3600 1"];
    let mut service = manager.start(manager.service(&slow)?)?;
    manager.lines_until("READY=1")?;
    fill(&service)?;
    service.signal(Signal::TERM)?;
    manager.lines_until("STOPPING=1")?;
    ensure!(!manager.home().join("dump.rdb").exists(), "a stop is told when it begins");
    let mut lines = manager.lines_until("STATUS=Saving data: ")?;
    if !has(&lines, "EXTEND_TIMEOUT_USEC=60000000") {
        lines = manager.lines_until("EXTEND_TIMEOUT_USEC=60000000")?;
    }
    ensure!(!has(&lines, "READY=1"));
    ensure!(service.ended()?.success(), "{}", service.log());
    manager.lines_so_far()?;

    let mut service = manager.start(manager.service(&slow)?)?;
    manager.lines_until("EXTEND_TIMEOUT_USEC=60000000")?;
    let loading = service.connect()?.call(&["GET", "1"])?;
    ensure!(loading.is_error(), "it is still loading: {loading:?}");
    // A reload would end by saying that the server is ready.
    service.signal(Signal::HUP)?;
    let lines = manager.lines_until("READY=1")?;
    ensure!(!has(&lines, "RELOADING=1"), "{lines:?}");
    ensure!(service.connect()?.call(&["GET", "1"])? == Reply::Bulk(b"1".to_vec()));
    ensure!(service.log().contains("no certificates to be read again"), "{}", service.log());
    ensure!(service.stop()?.success());
    Ok(())
}

/// systemd kills a service that has said that it stops, and does not.
#[test]
fn a_stop_that_a_client_asks_for_is_told_when_it_is_certain() -> Result<()> {
    let manager = Manager::new()?;
    let mut service = manager.start(manager.service(&[])?)?;
    manager.lines_until("READY=1")?;
    fs::create_dir_all(manager.home().join("dump.rdb/inside"))?;
    let refused = service.connect()?.call_text("SHUTDOWN SAVE")?;
    ensure!(refused.is_error(), "{refused:?}");
    let lines = manager.lines_so_far()?;
    ensure!(!has(&lines, "STOPPING=1"), "{lines:?}");
    service.connect()?.send(&["SHUTDOWN", "NOSAVE"])?;
    manager.lines_until("STOPPING=1")?;
    ensure!(service.ended()?.success());
    Ok(())
}

/// DEBUG SLEEP keeps one worker of two from turning.
#[test]
fn a_worker_that_does_not_turn_ends_the_signs_of_life() -> Result<()> {
    let manager = Manager::new()?;
    let mut command = manager.service(&["--threads", "2", "--enable-debug-command", "yes"])?;
    command.env("WATCHDOG_USEC", "1200000").env_remove("WATCHDOG_PID");
    let mut service = manager.start(command)?;
    manager.lines_until("READY=1")?;
    for _ in 0..3 {
        manager.lines_until("WATCHDOG=1")?;
    }
    let mut client = service.connect()?;
    client.send(&["DEBUG", "SLEEP", "6"])?;
    client.receive()?;
    // It would have given twenty.
    let signs = manager.lines_so_far()?.iter().filter(|line| *line == "WATCHDOG=1").count();
    ensure!(signs <= 5, "{signs} signs of life while a worker stood still");
    for _ in 0..3 {
        manager.lines_until("WATCHDOG=1")?;
    }
    // A script that runs for long is none: its worker serves others meanwhile.
    ensure!(!client.call_text("CONFIG SET busy-reply-threshold 10")?.is_error());
    client.send(&["EVAL", "while true do end", "0"])?;
    manager.lines_so_far()?;
    for _ in 0..6 {
        manager.lines_until("WATCHDOG=1")?;
    }
    ensure!(!service.connect()?.call(&["SCRIPT", "KILL"])?.is_error());
    ensure!(service.stop()?.success());
    Ok(())
}
