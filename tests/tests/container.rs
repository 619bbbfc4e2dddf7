//! `dunlin container`: the entry point of the image.

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tests::client::{Client, Reply};
use tests::observe::wait_until;
use tests::server::{Server, Target, dunlin_binary, free_port};

/// A container's process, in a directory of its own.
struct Container {
    child: Child,
    port: u16,
    home: TempDir,
}

impl Container {
    /// Starts it. `PORT` stands for its port.
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Container> {
        let (home, port) = (tempfile::tempdir()?, free_port()?);
        let with_port = |text: &str| text.replace("PORT", &port.to_string());
        let mut command = Command::new(dunlin_binary()?);
        command.arg("container").args(arguments.iter().map(|own| with_port(own)));
        for (name, value) in environment {
            command.env(name, with_port(value));
        }
        let log = fs::File::create(home.path().join("log"))?;
        command.env("DUNLIN_HTTP_PORT", "0").current_dir(home.path()).stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut container = Container { child, port, home };
        wait_until("a container that serves", || {
            let ended = container.child.try_wait()?.is_some();
            ensure!(!ended, "it has ended: {}", container.log()?);
            Ok(container.log()?.contains("Ready to accept connections"))
        })?;
        Ok(container)
    }

    fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.home.path().join("log"))?)
    }

    fn connect(&self) -> Result<Client> {
        Client::connect(self.port)
    }

    fn setting(&self, client: &mut Client, name: &str) -> Result<String> {
        let pair = client.call(&["CONFIG", "GET", name])?.elements().context("a pair")?;
        let value = pair.get(1).and_then(Reply::text).context("a value")?;
        Ok(String::from_utf8_lossy(value).into_owned())
    }

    fn stop(mut self) -> Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process id")?;
        kill_process(pid, Signal::TERM)?;
        wait_until("the end", || Ok(self.child.try_wait()?.is_some()))?;
        ensure!(self.child.wait()?.success(), "{}", self.log()?);
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // It may have ended, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Output> {
    let directory = tempfile::tempdir()?;
    let mut command = Command::new(dunlin_binary()?);
    command.arg("container").args(arguments).envs(environment.iter().copied());
    Ok(command.current_dir(directory.path()).stdin(Stdio::null()).output()?)
}

#[test]
fn a_public_server_asks_for_a_password_or_a_word() -> Result<()> {
    let port = free_port()?.to_string();
    let port = [("REDIS_PORT", &*port), ("DUNLIN_HTTP_PORT", "0")];
    let output = run(&[], &port)?;
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(1), "{log}");
    for word in ["REDIS_PASSWORD", "ALLOW_EMPTY_PASSWORD=yes", "--bind 127.0.0.1"] {
        ensure!(log.contains(word), "{log}");
    }
    let word = [("REDIS_PORT", "PORT"), ("ALLOW_EMPTY_PASSWORD", "yes")];
    let container = Container::start(&[], &word)?;
    ensure!(container.log()?.contains("WARNING: there is no password"), "{}", container.log()?);
    let mut client = container.connect()?;
    ensure!(container.setting(&mut client, "bind")? == "* -::*");
    ensure!(container.setting(&mut client, "protected-mode")? == "no");
    container.stop()?;
    let container = Container::start(&["--protected-mode", "no", "--port", "PORT"], &[])?;
    container.stop()?;
    let container = Container::start(&["--bind", "127.0.0.1", "--port", "PORT"], &[])?;
    ensure!(container.setting(&mut container.connect()?, "protected-mode")? == "yes");
    container.stop()
}

#[test]
fn arguments_are_those_of_a_redis_image() -> Result<()> {
    let password = [("REDIS_PASSWORD", "geheim"), ("REDIS_PORT", "PORT")];
    for arguments in [
        &["redis-server", "--hz", "20"][..],
        &["valkey-server", "--hz", "20"],
        &["dunlin", "serve", "--hz", "20"],
        &["serve", "--hz", "20"],
        &["--hz", "20"],
    ] {
        let container = Container::start(arguments, &password)?;
        let mut client = container.connect()?;
        ensure!(client.call(&["PING"])?.is_error(), "{arguments:?}");
        ensure!(!client.call(&["AUTH", "geheim"])?.is_error(), "{arguments:?}");
        ensure!(container.setting(&mut client, "hz")? == "20", "{arguments:?}");
        container.stop()?;
    }
    let version = run(&["dunlin", "--version"], &[])?;
    ensure!(String::from_utf8_lossy(&version.stdout).starts_with("Dunlin server v="));
    let version = run(&["redis-server", "--version"], &[])?;
    ensure!(String::from_utf8_lossy(&version.stdout).starts_with("Dunlin server v="));
    let health = run(&["health", "-p", "1"], &[])?;
    ensure!(String::from_utf8_lossy(&health.stderr).contains("dunlin health: "));
    ensure!(run(&["--help"], &[])?.status.success());
    Ok(())
}

#[test]
fn options_win_over_variables_and_these_over_a_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("redis.conf");
    fs::write(&file, "requirepass of-file\nhz 30\nbind 127.0.0.1\nappendonly no\ntimeout 9\n")?;
    let file = file.to_str().context("a path of text")?;
    let container = Container::start(
        &["redis-server", file, "--timeout", "7"],
        &[
            ("REDIS_PORT", "PORT"),
            ("REDIS_PASSWORD", "of-variable"),
            ("REDIS_AOF_ENABLED", "yes"),
            ("REDIS_EXTRA_FLAGS", "--hz 40 --timeout 8"),
        ],
    )?;
    let mut client = container.connect()?;
    ensure!(client.call(&["AUTH", "of-file"])?.is_error());
    ensure!(!client.call(&["AUTH", "of-variable"])?.is_error());
    for (name, value) in
        [("bind", "127.0.0.1"), ("hz", "40"), ("timeout", "7"), ("appendonly", "yes")]
    {
        ensure!(container.setting(&mut client, name)? == value, "{name}");
    }
    // What comes from variables stays out of the file.
    ensure!(!client.call(&["CONFIG", "REWRITE"])?.is_error());
    let rewritten = fs::read_to_string(file)?;
    ensure!(rewritten.contains("requirepass of-file\n"), "{rewritten}");
    ensure!(!rewritten.contains("of-variable"), "{rewritten}");
    container.stop()
}

#[test]
fn secrets_are_read_from_files_and_a_replica_finds_its_primary() -> Result<()> {
    let primary = Server::start(Target::Reference, &[("requirepass", "geheim")])?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("password");
    fs::write(&file, "geheim\n")?;
    let file = file.to_str().context("a path of text")?;
    let container = Container::start(
        &[],
        &[
            // As Kubernetes sets it for a service called redis.
            ("REDIS_PORT", "tcp://10.0.0.1:6379"),
            ("REDIS_PORT_NUMBER", "PORT"),
            ("REDIS_PASSWORD_FILE", file),
            ("REDIS_MASTER_PASSWORD_FILE", file),
            ("REDIS_REPLICATION_MODE", "slave"),
            ("REDIS_MASTER_HOST", "127.0.0.1"),
            ("REDIS_MASTER_PORT_NUMBER", &primary.port().to_string()),
        ],
    )?;
    let mut client = container.connect()?;
    ensure!(!client.call(&["AUTH", "geheim"])?.is_error());
    wait_until("a link to the primary", || {
        let info = client.call_text("INFO replication")?;
        let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
        Ok(info.contains("role:slave") && info.contains("master_link_status:up"))
    })?;
    container.stop()
}

#[test]
fn a_variable_that_makes_no_sense_ends_the_start() -> Result<()> {
    for (variables, said) in [
        (&[("REDIS_PORT", "x")][..], "variable REDIS_PORT\n"),
        (&[("REDIS_PASSWORD", "a"), ("VALKEY_PASSWORD", "b")], "variable VALKEY_PASSWORD\n"),
        (&[("REDIS_PASSWORD_FILE", "/nowhere")], "variable REDIS_PASSWORD_FILE\n"),
    ] {
        let output = run(&[], variables)?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(1), "{complaint}");
        ensure!(complaint.contains(said), "{complaint}");
    }
    Ok(())
}
