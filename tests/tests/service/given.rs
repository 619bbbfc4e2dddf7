//! What the service manager gives: sockets, secrets, a stream to the journal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use tests::client::Reply;
use tests::observe::wait_until;
use tests::server::{dunlin_binary, free_port};

use crate::manager::Manager;

/// A command that a shell starts with what comes as standard streams in the place where systemd
/// puts it.
fn with_descriptors(passed: Vec<OwnedFd>, names: &str, command: &Command) -> Command {
    let count = passed.len();
    let moves = ["3<&0 </dev/null", "4<&1", "5<&2"][..count].join(" ");
    let script = format!(
        "exec {moves} >output 2>&1
        export LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES={names}
        exec \"$@\""
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let mut streams = passed.into_iter().map(Stdio::from);
    shell.stdin(streams.next().unwrap_or_else(Stdio::null));
    shell.stdout(streams.next().unwrap_or_else(Stdio::null));
    shell.stderr(streams.next().unwrap_or_else(Stdio::null));
    shell
}

fn listener() -> Result<(TcpListener, u16)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

fn answer(mut stream: impl Read + Write, request: &str) -> Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; 512];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

#[test]
fn sockets_that_are_passed_on_are_served() -> Result<()> {
    let manager = Manager::new()?;
    let ((plain, port), (http, http_port)) = (listener()?, listener()?);
    let path = manager.home().join("own.sock");
    let unix = UnixListener::bind(&path)?;
    // Clients may come before the server runs.
    let early = TcpStream::connect(("127.0.0.1", port))?;
    let unused = free_port()?.to_string();
    let command = manager.service(&["--port", &unused, "--http-port", "0"])?;
    let passed = vec![plain.into(), http.into(), unix.into()];
    let mut shell = with_descriptors(passed, "plain:http:dunlin.socket", &command);
    let mut child = shell.current_dir(manager.home()).spawn()?;
    let tried = (|| {
        manager.lines_until("READY=1")?;
        ensure!(answer(early, "PING\r\n")? == "+PONG\r\n");
        ensure!(answer(UnixStream::connect(&path)?, "PING\r\n")? == "+PONG\r\n");
        let page = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let health = answer(TcpStream::connect(("127.0.0.1", http_port))?, page)?;
        ensure!(health.starts_with("HTTP/1.1 200 "), "{health}");
        ensure!(TcpStream::connect(("127.0.0.1", unused.parse()?)).is_err(), "`port` says nothing");
        let mut client = tests::client::Client::connect(port)?;
        let shown = client.call_text("CONFIG GET *port")?.elements().context("a map")?;
        let shown: Vec<_> = shown.iter().filter_map(Reply::text).collect();
        for (name, port) in [("port", port), ("http-port", http_port)] {
            let pair = [name.as_bytes(), port.to_string().as_bytes()].map(<[u8]>::to_vec);
            ensure!(shown.chunks(2).any(|own| own == pair), "{name}");
        }
        let refused = client.call(&["CONFIG", "SET", "port", &unused])?;
        ensure!(refused.is_error(), "systemd has the socket: {refused:?}");
        ensure!(!client.call_text("CONFIG SET bind 127.0.0.1")?.is_error());
        ensure!(!client.call_text("CONFIG SET tls-port 0")?.is_error());
        ensure!(answer(TcpStream::connect(("127.0.0.1", port))?, "PING\r\n")? == "+PONG\r\n");
        Ok(())
    })();
    tests::process::ask_to_end(child.id())?;
    wait_until("the end", || Ok(child.try_wait()?.is_some()))?;
    let log = fs::read_to_string(manager.home().join("output"))?;
    tried.with_context(|| log.clone())?;
    ensure!(path.exists(), "the socket is systemd's");
    ensure!(log.contains(&format!("The service manager listens at 127.0.0.1:{port}")), "{log}");
    Ok(())
}

#[test]
fn encrypted_sockets_are_passed_on_too() -> Result<()> {
    let manager = Manager::new()?;
    let certificates = manager.home().join("tls");
    let made = Command::new(dunlin_binary()?).args(["tls", "dev"]).arg(&certificates).output()?;
    ensure!(made.status.success());
    let file = |name: &str| certificates.join(name).to_string_lossy().into_owned();
    let ((tls, port), (https, https_port)) = (listener()?, listener()?);
    let [certificate, key, authority] = ["server.crt", "server.key", "ca.crt"].map(file);
    let options = [
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-ca-cert-file", &authority],
        ["--tls-auth-clients", "no"],
        ["--port", "0"],
    ];
    let command = manager.service(&options.concat())?;
    let mut shell = with_descriptors(vec![tls.into(), https.into()], "tls:https", &command);
    let mut child = shell.current_dir(manager.home()).spawn()?;
    let tried = (|| {
        manager.lines_until("READY=1")?;
        for port in [port, https_port] {
            let shown = Command::new("openssl")
                .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-CAfile"])
                .args([&authority, "-verify_return_error"])
                .stdin(Stdio::null())
                .output()?;
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            ensure!(shown.contains("Verify return code: 0 (ok)"), "{shown}");
        }
        Ok(())
    })();
    tests::process::ask_to_end(child.id())?;
    wait_until("the end", || Ok(child.try_wait()?.is_some()))?;
    tried.with_context(|| fs::read_to_string(manager.home().join("output")).unwrap_or_default())
}

#[test]
fn a_passed_descriptor_that_cannot_be_served_ends_the_start() -> Result<()> {
    let refused = |passed: OwnedFd, name: &str| -> Result<String> {
        let manager = Manager::new()?;
        let command = manager.service(&["--port", &free_port()?.to_string()])?;
        let mut shell = with_descriptors(vec![passed], name, &command);
        let status = shell.current_dir(manager.home()).status()?;
        ensure!(status.code() == Some(1), "{name}: {status}");
        Ok(fs::read_to_string(manager.home().join("output"))?)
    };
    let directory = tempfile::tempdir()?;
    let file = File::create(directory.path().join("file"))?;
    let log = refused(file.into(), "plain")?;
    ensure!(log.contains("'plain' is no socket that listens for streams"), "{log}");
    let log = refused(listener()?.0.into(), "redis")?;
    ensure!(log.contains("'redis' is no name of one"), "{log}");
    let unix = UnixListener::bind(directory.path().join("socket"))?;
    let log = refused(unix.into(), "tls")?;
    ensure!(log.contains("'tls' is a unix socket"), "{log}");
    Ok(())
}

/// What is passed to another process says nothing here.
#[test]
fn sockets_of_another_process_are_left_alone() -> Result<()> {
    let manager = Manager::new()?;
    let mut command = manager.service(&[])?;
    command.env("LISTEN_PID", "1").env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "plain");
    let mut service = manager.start(command)?;
    manager.lines_until("READY=1")?;
    ensure!(!service.connect()?.call(&["PING"])?.is_error());
    ensure!(service.stop()?.success());
    Ok(())
}

fn run(credentials: &Path, options: &[&str]) -> Result<Output> {
    let mut command = Command::new(dunlin_binary()?);
    command.args(["serve", "--http-port", "0", "--port", "0"]).args(options);
    Ok(command.env("CREDENTIALS_DIRECTORY", credentials).stdin(Stdio::null()).output()?)
}

#[test]
fn secrets_come_as_credentials() -> Result<()> {
    let manager = Manager::new()?;
    let credentials = manager.home().join("credentials");
    fs::create_dir(&credentials)?;
    fs::write(credentials.join("requirepass"), "geheim\n")?;
    fs::write(credentials.join("masterauth"), "auch geheim\n")?;
    fs::write(credentials.join("database-password"), "x")?;
    let file = manager.home().join("own.conf");
    fs::write(&file, "# mine\nmasterauth old\nrequirepass old\n")?;
    let mut command = Command::new(dunlin_binary()?);
    command.arg("serve").arg(&file).args(["--http-port", "0", "--supervised", "systemd"]);
    command.env("CREDENTIALS_DIRECTORY", &credentials);
    let mut service = manager.start(manager.supervise(command))?;
    manager.lines_until("READY=1")?;
    let mut client = service.connect()?;
    ensure!(client.call(&["AUTH", "old"])?.is_error());
    ensure!(!client.call(&["AUTH", "geheim"])?.is_error());
    let shown = client.call_text("CONFIG GET masterauth")?.elements().context("a map")?;
    ensure!(shown[1] == Reply::Bulk(b"auch geheim".to_vec()));
    let log = service.log();
    ensure!(log.contains("The credential database-password is no setting's"), "{log}");
    ensure!(!log.contains("geheim"), "{log}");

    // Neither they nor their digests get into the file.
    ensure!(!client.call_text("ACL SETUSER ann on >ann ~* +@all")?.is_error());
    ensure!(!client.call_text("CONFIG SET timeout 77")?.is_error());
    ensure!(!client.call_text("CONFIG REWRITE")?.is_error());
    let rewritten = fs::read_to_string(&file)?;
    ensure!(rewritten.contains("timeout 77") && rewritten.contains("user ann on"), "{rewritten}");
    ensure!(rewritten.contains("requirepass old\n"), "{rewritten}");
    ensure!(rewritten.contains("masterauth old\n"), "{rewritten}");
    ensure!(!rewritten.contains("geheim") && !rewritten.contains("user default"), "{rewritten}");
    // Another value is the operator's own.
    ensure!(!client.call_text("CONFIG SET masterauth new")?.is_error());
    ensure!(!client.call_text("CONFIG REWRITE")?.is_error());
    ensure!(fs::read_to_string(&file)?.contains("masterauth \"new\"\n"));
    ensure!(service.stop()?.success());
    Ok(())
}

#[test]
fn files_come_as_credentials() -> Result<()> {
    let manager = Manager::new()?;
    let credentials = manager.home().join("credentials");
    fs::create_dir(&credentials)?;
    fs::write(credentials.join("aclfile"), "user default off\nuser ann on >ann ~* +@all\n")?;
    let mut command = manager.service(&[])?;
    command.env("CREDENTIALS_DIRECTORY", &credentials);
    let mut service = manager.start(command)?;
    manager.lines_until("READY=1")?;
    let mut client = service.connect()?;
    ensure!(client.call(&["PING"])?.is_error());
    ensure!(!client.call(&["AUTH", "ann", "ann"])?.is_error());
    ensure!(service.stop()?.success());
    Ok(())
}

#[test]
fn a_bad_credential_ends_the_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("requirepass"), "\n")?;
    let output = run(directory.path(), &[])?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1));
    ensure!(complaint.contains("requirepass\nit is empty"), "{complaint}");
    let output = run(Path::new("/nowhere"), &[])?;
    ensure!(output.status.code() == Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(complaint.contains("Reading the credential /nowhere\nNo such file"), "{complaint}");
    Ok(())
}

#[test]
fn lines_for_the_journal_say_how_important_they_are() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("journal");
    let start = |is_journal: bool, options: &[&str]| -> Result<String> {
        let file = File::create(&output)?;
        let metadata = file.metadata()?;
        let inode = if is_journal { metadata.ino() } else { metadata.ino() + 1 };
        let status = Command::new(dunlin_binary()?)
            .args(["serve", "--http-port", "0", "--port", "0"])
            .args(options)
            .env("JOURNAL_STREAM", format!("{}:{inode}", metadata.dev()))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()?;
        ensure!(status.code() == Some(1), "it listens nowhere");
        Ok(fs::read_to_string(&output)?)
    };
    let text = start(true, &["--activedefrag", "yes"])?;
    for line in text.lines() {
        let wanted = if line.contains(" # ") { "<4>" } else { "<5>" };
        ensure!(line.starts_with(wanted), "{line}");
    }
    ensure!(text.contains("<4>") && text.contains("<5>"), "{text}");
    let text = start(true, &["--no-such-option", "x"])?;
    ensure!(!text.is_empty() && text.lines().all(|line| line.starts_with("<3>")), "{text}");
    let text = start(false, &[])?;
    ensure!(!text.is_empty() && !text.contains('<'), "{text}");
    Ok(())
}
