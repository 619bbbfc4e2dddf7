//! Files belong to one process at a time: no two servers write to the same ones, and what a process
//! has left unfinished is removed.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::client::Reply;
use tests::observe::wait_until;
use tests::server::{Server, Target, dunlin_binary};

const KEEPS: &[(&str, &str)] = &[("appendonly", "yes"), ("appendfsync", "always")];

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, options)
}

/// A server in the directory of another.
fn beside(server: &Server, options: &[(&str, &str)]) -> Result<Server> {
    let directory = server.directory().to_string_lossy();
    start(&[&[("dir", &*directory)], options].concat())
}

/// That the server does not start, since another one uses the files.
fn is_refused(started: Result<Server>) -> bool {
    started.is_err_and(|error| error.to_string().contains("another server uses it"))
}

fn fix(path: &Path) -> Result<Output> {
    let mut check = Command::new(dunlin_binary()?);
    Ok(check.arg("check").arg(path).arg("--fix").stdin(Stdio::null()).output()?)
}

#[test]
fn an_append_only_file_has_one_server() -> Result<()> {
    let mut server = start(KEEPS)?;
    let mut client = server.connect()?;
    ensure!(client.call_text("SET key value")? == ok());
    ensure!(is_refused(beside(&server, KEEPS)));
    // One that keeps nothing may be there, and may not begin to keep what it has.
    let other = beside(&server, &[])?;
    let mut intruder = other.connect()?;
    let told = intruder.call_text("CONFIG SET appendonly yes")?;
    let text = String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned();
    ensure!(told.is_error() && text.contains("another server uses it"), "{text}");
    intruder.call_text("BGREWRITEAOF")?;
    let failed = || Ok(other.log().contains("Background AOF rewrite failed: "));
    wait_until("the rewrite to be refused", failed)?;
    for path in ["", "appendonlydir", "appendonlydir/appendonly.aof.manifest"] {
        let output = fix(&server.directory().join(path))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && said.contains("a server uses it"), "{path}: {said}");
    }
    ensure!(client.call_text("SET key other")? == ok());
    // The right ends with the process, however that ends.
    server.start_again()?;
    ensure!(server.connect()?.call_text("GET key")? == Reply::Bulk(b"other".to_vec()));
    server.kill();
    ensure!(fix(server.directory())?.status.success());
    Ok(())
}

/// Another server may use the path of a directory that was renamed. The first one leaves it alone.
#[test]
fn a_directory_that_was_renamed_leaves_its_path_to_others() -> Result<()> {
    let server = start(KEEPS)?;
    let mut client = server.connect()?;
    ensure!(client.call_text("SET key value")? == ok());
    let home = server.directory();
    fs::rename(home.join("appendonlydir"), home.join("old"))?;
    let mut other = beside(&server, KEEPS)?;
    ensure!(other.connect()?.call_text("SET own 1")? == ok());
    client.call_text("BGREWRITEAOF")?;
    let failed = "Background AOF rewrite failed: ";
    wait_until("the rewrite to be refused", || Ok(server.log().contains(failed)))?;
    ensure!(server.log().contains("another server uses it"), "{}", server.log_tail());
    ensure!(client.call_text("SET key other")? == ok());
    other.kill();
    other.start_again()?;
    ensure!(other.connect()?.call_text("GET own")? == Reply::Bulk(b"1".to_vec()));
    Ok(())
}

/// The file that is locked for an RDB file was removed: the first server to come has the right.
#[test]
fn a_lock_that_was_removed_is_no_right_any_more() -> Result<()> {
    let saves = [("save", "3600 1")];
    let server = start(&saves)?;
    ensure!(server.connect()?.call_text("SAVE")? == ok());
    let lock = server.directory().join(".dump.rdb.lock");
    fs::remove_file(&lock)?;
    ensure!(server.connect()?.call_text("SAVE")? == ok(), "it takes the right again");
    ensure!(is_refused(beside(&server, &saves)));
    fs::remove_file(&lock)?;
    let other = beside(&server, &saves)?;
    ensure!(other.connect()?.call_text("SAVE")? == ok());
    ensure!(server.connect()?.call_text("SAVE")?.is_error());
    ensure!(server.log().contains("another server uses it"), "{}", server.log_tail());
    Ok(())
}

/// A file that is being written is claimed until it is written, whatever is saved beside it.
#[test]
fn a_file_that_is_being_written_stays_claimed() -> Result<()> {
    let server = start(&[("save", "3600 1"), ("enable-protected-configs", "yes")])?;
    let (mut client, mut saving) = (server.connect()?, server.connect()?);
    client.call_text("DEBUG POPULATE 1000 key 10")?;
    client.call_text("CONFIG SET rdb-key-save-delay 100000")?;
    saving.send(&["SAVE"])?;
    let text = |client: &mut tests::client::Client| client.call_text("INFO persistence");
    wait_until("the save", || {
        let page = text(&mut client)?;
        let page = String::from_utf8_lossy(page.text().unwrap_or_default()).into_owned();
        Ok(page.contains("rdb_bgsave_in_progress:1")
            || page.contains("current_save_keys_total:1000"))
    })?;
    ensure!(client.call_text("CONFIG SET dbfilename other.rdb")? == ok());
    ensure!(client.call_text("FLUSHALL")? == ok());
    wait_until("the other file", || Ok(server.directory().join("other.rdb").exists()))?;
    ensure!(is_refused(beside(&server, &[("save", "3600 1")])), "{}", server.log_tail());
    Ok(())
}

#[test]
fn a_server_without_the_right_leaves_the_pid_file() -> Result<()> {
    let home = tempfile::tempdir()?;
    let file = home.path().join("pid");
    let path = file.to_string_lossy();
    let keeps = [KEEPS, &[("pidfile", &*path)]].concat();
    let server = start(&keeps)?;
    wait_until("the pid file", || Ok(file.exists()))?;
    ensure!(is_refused(beside(&server, &keeps)));
    ensure!(fs::read_to_string(&file)?.trim() == server.pid().to_string());
    Ok(())
}

#[test]
fn an_rdb_file_has_one_server() -> Result<()> {
    let saves = [("save", "3600 1")];
    let mut server = start(&saves)?;
    ensure!(is_refused(beside(&server, &saves)));
    let own = beside(&server, &[("save", "3600 1"), ("dbfilename", "other.rdb")])?;
    ensure!(own.connect()?.call_text("SAVE")? == ok());
    let other = beside(&server, &[])?;
    ensure!(other.connect()?.call_text("SAVE")?.is_error());
    wait_until("a line of the log", || Ok(other.log().contains("another server uses it")))?;
    ensure!(!server.directory().join("dump.rdb").exists());
    ensure!(server.connect()?.call_text("SAVE")? == ok());
    let file = server.directory().join("dump.rdb");
    ensure!(!fix(&file)?.status.success());
    server.start_again()?;
    server.kill();
    ensure!(fix(&file)?.status.success());
    ensure!(other.connect()?.call_text("SAVE")? == ok());
    Ok(())
}

#[test]
fn a_daemon_keeps_its_right() -> Result<()> {
    let server = start(&[])?;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let output = Command::new(dunlin_binary()?)
        .args([
            "serve",
            "--http-port",
            "0",
            "--daemonize",
            "yes",
            "--pidfile",
            "d.pid",
            "--logfile",
            "d.log",
        ])
        .args(["--save", "", "--appendonly", "yes", "--port", &port.to_string()])
        .current_dir(server.directory())
        .stdin(Stdio::null())
        .output()?;
    ensure!(output.status.success());
    let read = |name: &str| fs::read_to_string(server.directory().join(name)).unwrap_or_default();
    let ready = || Ok(read("d.log").contains("Ready to accept connections"));
    let is_ready = wait_until("the daemon", ready);
    let refused = is_refused(beside(&server, KEEPS));
    let pid = Pid::from_raw(read("d.pid").trim().parse()?);
    kill_process(pid.ok_or_else(|| anyhow::anyhow!("no process"))?, Signal::KILL)?;
    is_ready?;
    ensure!(refused);
    Ok(())
}

/// Names in a directory that begin as those of unfinished files.
fn unfinished(directory: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<Result<Vec<_>>>()?;
    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with("temp-")).collect())
}

#[test]
fn what_processes_left_unfinished_is_removed_at_the_start() -> Result<()> {
    let mut server = start(KEEPS)?;
    server.kill();
    let home = server.directory().to_owned();
    let files = home.join("appendonlydir");
    for name in ["temp-4194999-dump.rdb", "temp-1-dump.rdb", "temp-4194999-other.rdb"] {
        fs::write(home.join(name), "half")?;
    }
    // The name of the file was another one before.
    for name in [".former-dump.rdb.lock", "temp-emptied-4194999-former-dump.rdb"] {
        fs::write(home.join(name), "")?;
    }
    for name in ["temp-rewriteaof-bg-12345.aof", "temp-appendonly.aof.incr", "temp-other.aof.incr"]
    {
        fs::write(files.join(name), "half")?;
    }
    server.start_again()?;
    // Process 1 is there, whatever it does, and no server seems ever to have written the other
    // file.
    let mut left = unfinished(&home)?;
    left.sort();
    ensure!(left == ["temp-1-dump.rdb", "temp-4194999-other.rdb"]);
    ensure!(unfinished(&files)? == ["temp-other.aof.incr"]);
    Ok(())
}

/// Servers in containers of their own do not see each other's processes.
#[test]
fn what_another_server_writes_stays_whoever_starts_beside_it() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let home = server.directory().to_owned();
    let names = ["temp-4194999-dump.rdb", "temp-emptied-4194999-dump.rdb"];
    names.iter().try_for_each(|name| fs::write(home.join(name), "half"))?;
    for options in [&[][..], KEEPS, &[("save", "3600 1"), ("dbfilename", "other.rdb")]] {
        let mut other = beside(&server, options)?;
        ensure!(unfinished(&home)?.len() == 2, "{options:?}: {}", other.log_tail());
        other.kill();
    }
    server.kill();
    beside(&server, &[("dbfilename", "other.rdb")])?.kill();
    ensure!(unfinished(&home)?.is_empty(), "there is no other server any more");
    Ok(())
}

#[test]
fn a_second_signal_leaves_no_unfinished_file() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 10000 key 20")?;
    ensure!(client.call_text("CONFIG SET rdb-key-save-delay 1000")? == ok());
    let pid = Pid::from_raw(i32::try_from(server.pid())?);
    kill_process(pid.ok_or_else(|| anyhow::anyhow!("no process"))?, Signal::INT)?;
    let home = server.directory().to_owned();
    wait_until("the save", || Ok(!unfinished(&home)?.is_empty()))?;
    ensure!(server.end_by(Signal::INT)? == Some(1), "{}", server.log_tail());
    ensure!(unfinished(&home)?.is_empty());
    Ok(())
}

/// A supervisor waits for the process that it has started.
#[test]
fn a_supervised_server_stays_where_it_is() -> Result<()> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("notify");
    let manager = UnixDatagram::bind(&path)?;
    manager.set_read_timeout(Some(Duration::from_secs(60)))?;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut child = Command::new(dunlin_binary()?)
        .args([
            "serve",
            "--http-port",
            "0",
            "--supervised",
            "systemd",
            "--daemonize",
            "yes",
            "--save",
            "",
        ])
        .args(["--pidfile", "d.pid", "--logfile", "d.log", "--port", &port.to_string()])
        .env("NOTIFY_SOCKET", &path)
        .current_dir(home.path())
        .stdin(Stdio::null())
        .spawn()?;
    let mut buffer = [0; 512];
    let mut told = manager.recv(&mut buffer);
    while let Ok(length) = told
        && !buffer[..length].ends_with(b"READY=1\n")
    {
        told = manager.recv(&mut buffer);
    }
    let pid = fs::read_to_string(home.path().join("d.pid")).unwrap_or_default();
    let runs = child.try_wait()?.is_none();
    let own = child.id().to_string();
    // The daemon that it should not be would be left otherwise.
    if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM)?;
    }
    child.wait()?;
    told?;
    ensure!(runs && pid.trim() == own, "{pid} is not {own}");
    Ok(())
}
