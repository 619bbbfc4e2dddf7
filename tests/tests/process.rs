//! The process as an operator meets it: command line, configuration, log, signals, sockets, files.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, FileType};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, wait_until};
use tests::server::{Server, Target, dunlin_binary};
use tests::web::Web;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the binary to its end.
fn run(arguments: &[&str]) -> Result<Output> {
    let directory = directory()?;
    let mut command = Command::new(dunlin_binary()?);
    command.args(arguments).current_dir(directory.path()).stdin(Stdio::null());
    Ok(command.output()?)
}

fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("dunlin-test-").tempdir()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until `attempt` gives something.
fn wait_for<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(result) = attempt() {
            return Ok(result);
        }
        ensure!(start.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_end(child: &mut Child) -> Result<ExitStatus> {
    wait_for("the end of the process", || child.try_wait().ok().flatten())
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a process id")?;
    Ok(kill_process(pid, signal)?)
}

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, options)
}

fn ping(client: &mut Client) -> Result<()> {
    ensure!(client.call(&["PING"])? == Reply::Status(b"PONG".to_vec()));
    Ok(())
}

// ---- Command line -------------------------------------------------------------------------------

#[test]
fn the_binary_explains_itself() -> Result<()> {
    for arguments in [&["--help"][..], &["-h"], &["serve", "--help"]] {
        let output = run(arguments)?;
        ensure!(output.status.success() && text(&output.stdout).contains("Usage: dunlin"));
    }
    for arguments in [&["--version"][..], &["-v"], &["serve", "-v"]] {
        let output = run(arguments)?;
        ensure!(output.status.success() && text(&output.stdout).starts_with("Dunlin server v="));
    }
    let output = run(&["swim"])?;
    ensure!(output.status.code() == Some(1));
    ensure!(text(&output.stderr).contains("there is no command 'swim'"));
    ensure!(text(&run(&["chekc"])?.stderr).contains("; did you mean 'check'?"));
    let options = text(&run(&["serve", "--help"])?.stdout);
    for part in ["--maxmemory 0\n", "--port 6379\n", "Which keys are evicted"] {
        ensure!(options.contains(part), "{options}");
    }
    ensure!(!options.contains("--cluster-port"), "that has no effect");
    Ok(())
}

#[test]
fn a_file_of_settings_is_checked_as_a_whole() -> Result<()> {
    let directory = directory()?;
    let file = directory.path().join("some.conf");
    let check = |lines: &str| -> Result<(bool, String)> {
        fs::write(&file, lines)?;
        let output = run(&["check", file.to_str().context("a path of text")?])?;
        Ok((output.status.success(), text(&output.stdout)))
    };
    let (good, report) = check("maxmemroy 1gb\nport 6380\nport x\nactivedefrag yes\n")?;
    ensure!(!good);
    for part in [
        "some.conf:1: maxmemroy 1gb\n",
        "Did you mean 'maxmemory'?\n",
        "some.conf:3: port x\n",
        "note: activedefrag has no effect",
        "2 problems\n",
    ] {
        ensure!(report.contains(part), "{report}");
    }
    // As Valkey's own file has them.
    let (good, report) = check("rdb-version-check strict\ndual-channel-replication-enabled no\n")?;
    ensure!(good && report.contains("accepts the file"), "{report}");
    Ok(())
}

#[test]
fn the_first_word_may_be_a_file_or_an_option() -> Result<()> {
    let directory = directory()?;
    for by_file in [true, false] {
        let port = free_port()?.to_string();
        let settings = [("port", &*port), ("http-port", "0"), ("save", "\"\"")];
        let mut command = Command::new(dunlin_binary()?);
        if by_file {
            let lines = settings.map(|(name, value)| format!("{name} {value}\n"));
            fs::write(directory.path().join("own"), lines.concat())?;
            command.arg("own");
        } else {
            settings.iter().for_each(|(name, value)| {
                let value = if *name == "save" { "" } else { value };
                command.arg(format!("--{name}")).arg(value);
            });
        }
        let mut child = command.current_dir(directory.path()).stdout(Stdio::null()).spawn()?;
        let port = port.parse()?;
        let served = wait_for("a connection", || Client::connect(port).ok());
        let served = served.and_then(|mut client| ping(&mut client));
        // It may have ended because of an error.
        let _ = signal(child.id(), Signal::TERM);
        let status = wait_for_end(&mut child)?;
        served?;
        ensure!(status.success());
    }
    Ok(())
}

#[test]
fn the_log_says_where_the_server_is_reached_and_what_is_dangerous() -> Result<()> {
    let http = free_port()?.to_string();
    for (protected, warning) in
        [("yes", "clients of other machines are refused"), ("no", "WARNING: there is no password")]
    {
        let options = [("bind", "0.0.0.0"), ("http-port", &*http), ("protected-mode", protected)];
        let mut server = start(&options)?;
        ping(&mut server.connect()?)?;
        let port = server.port();
        ensure!(server.end_by(Signal::TERM)? == Some(0));
        let log = server.log();
        for part in [
            format!("The Redis protocol is served at 0.0.0.0:{port}"),
            format!("HTTP is served at 0.0.0.0:{http}; dashboard: http://localhost:{http}/"),
            "Data directory: /".to_owned(),
            warning.to_owned(),
        ] {
            ensure!(log.contains(&part), "{log}");
        }
    }
    Ok(())
}

#[test]
fn a_change_of_several_settings_that_fails_changes_nothing() -> Result<()> {
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let taken = taken.local_addr()?.port();
    let (own_http, other) = (free_port()?, free_port()?);
    let server = start(&[
        ("http-port", &own_http.to_string()),
        ("enable-protected-configs", "yes"),
        ("appendonly", "yes"),
    ])?;
    let mut client = server.connect()?;
    let directory = directory()?;
    let elsewhere = directory.path().to_str().context("a path of text")?;
    let values = "CONFIG GET port http-port dir maxmemory appendonly appendfsync loglevel";
    let before = client.call_text(values)?;
    for change in [
        format!("port {other} http-port {taken}"),
        format!("http-port {other} port {taken}"),
        format!("dir {elsewhere} maxmemory 1gb appendfsync always port {taken}"),
        format!("appendonly no loglevel warning port {other} bind \"127.0.0.1 192.0.2.1\""),
        format!("port {taken} appendonly no dir {elsewhere}"),
    ] {
        let answer = client.call_text(&format!("CONFIG SET {change}"))?;
        ensure!(answer.is_error(), "{change}: {answer:?}");
        ensure!(client.call_text(values)? == before, "{change}");
        for port in [server.port(), own_http] {
            ensure!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "{change}: {port}");
        }
        ensure!(TcpStream::connect(("127.0.0.1", other)).is_err(), "{change}: both are served");
        let now = fs::read_link(format!("/proc/{}/cwd", server.pid()))?;
        ensure!(now != directory.path(), "{change}: the server works elsewhere");
    }
    Ok(())
}

/// A worker waits for no file inside its gate: the thread for errands reads it.
#[test]
fn a_setting_that_waits_for_a_file_holds_up_only_other_changes() -> Result<()> {
    let directory = directory()?;
    let pipe = directory.path().join("views.toml");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0)?;
    let path = pipe.to_str().context("a path of text")?;
    let server = start(&[("threads", "1"), ("enable-protected-configs", "yes")])?;
    let mut client = server.connect()?;
    let changes = [["views-file", path], ["hz", "20"]];
    let mut changers = Vec::new();
    for [name, value] in changes {
        let mut changer = server.connect()?;
        changer.send(&["CONFIG", "SET", name, value])?;
        changers.push(changer);
        wait_for("a change that waits", || {
            let clients = client.call(&["CLIENT", "LIST"]).ok()?;
            let blocked = text(clients.text()?).matches("flags=b").count();
            (blocked == changers.len()).then_some(())
        })?;
    }
    for changer in &mut changers {
        ensure!(!changer.has_input(Duration::from_millis(20))?);
    }
    ping(&mut client)?;
    fs::OpenOptions::new().write(true).open(&pipe)?.write_all(b"# no views\n")?;
    for (mut changer, [name, value]) in changers.into_iter().zip(changes) {
        ensure!(matches!(changer.receive()?, Received::Reply(reply) if is_ok(&reply)), "{name}");
        let shown = changer.call(&["CONFIG", "GET", name])?.elements().context("a map")?;
        ensure!(shown[1].text() == Some(value.as_bytes()), "{name}: {shown:?}");
    }
    Ok(())
}

#[test]
fn mistakes_in_the_configuration_end_the_start() -> Result<()> {
    for (arguments, expected) in [
        (
            &["serve", "--port", "7", "--bogus", "1"][..],
            ">>> 'bogus \"1\"'\nBad directive or wrong number of arguments\n",
        ),
        (&["serve", "--port", "x"], "argument couldn't be parsed into an integer\n"),
        (
            &["serve", "--cluster-enabled", "yes"],
            "cluster-enabled needs cluster-etcd, the addresses of etcd's members\n",
        ),
        (&["serve", "--include", "none.conf"], "can't open config file 'none.conf': No such file"),
        (&["serve", "none.conf"], "can't open config file 'none.conf': No such file"),
        (&["serve", "--dir", "/nowhere"], "No such file or directory\n"),
        (&["serve", "--logfile", "/nowhere/x.log"], "Can't open the log file: No such file"),
    ] {
        let output = run(arguments)?;
        let complaint = text(&output.stderr);
        ensure!(output.status.code() == Some(1), "{arguments:?}: {}", output.status);
        ensure!(complaint.contains("*** FATAL CONFIG FILE ERROR ("), "{complaint}");
        ensure!(complaint.contains(expected), "{arguments:?}: {complaint}");
        ensure!(output.stdout.is_empty());
    }
    Ok(())
}

#[test]
fn files_and_standard_input_configure_as_well() -> Result<()> {
    let directory = directory()?;
    let port = free_port()?;
    fs::write(directory.path().join("main.conf"), "include part-*.conf\nloglevel warning\n")?;
    fs::write(directory.path().join("part-1.conf"), format!("port {port}\nmaxclients 77\n"))?;
    fs::write(directory.path().join("part-2.conf"), "requirepass one\n")?;
    let mut child = Command::new(dunlin_binary()?)
        .args(["serve", "main.conf", "--http-port", "0", "--save", "", "-"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().context("standard input is a pipe")?;
    stdin.write_all(b"requirepass two\n")?;
    drop(stdin);
    let connected = wait_for("a connection", || Client::connect(port).ok());
    let answers = connected.and_then(|mut client| {
        let wrong = client.call(&["AUTH", "one"])?;
        Ok((wrong, client.call(&["AUTH", "two"])?))
    });
    signal(child.id(), Signal::TERM)?;
    let status = wait_for_end(&mut child)?;
    let (wrong, right) = answers?;
    ensure!(wrong.is_error() && right == Reply::Status(b"OK".to_vec()), "{wrong:?} {right:?}");
    ensure!(status.success());
    Ok(())
}

// ---- Start and stop -----------------------------------------------------------------------------

#[test]
fn the_log_tells_the_way_from_start_to_stop() -> Result<()> {
    for (sent, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let mut server = start(&[])?;
        let (pid, port) = (server.pid(), server.port());
        ping(&mut server.connect()?)?;
        ensure!(server.end_by(sent)? == Some(0));
        let log = server.log();
        let mut rest = log.as_str();
        for expected in [
            "Dunlin is starting".to_owned(),
            "Dunlin version=".to_owned(),
            "Configuration loaded".to_owned(),
            format!("Running mode=standalone, port={port}."),
            format!("Port: {port}, PID: {pid}"),
            "Server initialized".to_owned(),
            "Ready to accept connections".to_owned(),
            format!("Received {name} scheduling shutdown..."),
            "User requested shutdown...".to_owned(),
            "is now ready to exit, bye bye...".to_owned(),
        ] {
            let (_, behind) = rest.split_once(&expected).with_context(|| log.clone())?;
            rest = behind;
        }
        for line in log.lines() {
            ensure!(is_log_line(line, pid), "{line}");
        }
    }
    Ok(())
}

/// `PID:M DD Mon YYYY HH:MM:SS.mmm LEVEL message`
fn is_log_line(line: &str, pid: u32) -> bool {
    let date =
        r"\d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d\.\d{3}";
    let pattern = format!(r"^{pid}:M {date} [.\-*#] .+$");
    regex_lite::Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(line))
}

#[test]
fn a_stop_sends_what_was_answered() -> Result<()> {
    let mut server = start(&[])?;
    let mut client = server.connect()?;
    client.send_raw(&[&b"PING\r\n".repeat(1000)[..], b"SHUTDOWN NOSAVE\r\nPING\r\n"].concat())?;
    let (answers, closed) = client.receive_raw(usize::MAX, PATIENCE)?;
    // The last one may be answered or not.
    ensure!(closed && text(&answers).starts_with(&"+PONG\r\n".repeat(1000)));
    wait_for("the end", || (!server.is_running()).then_some(()))
}

#[test]
fn hangups_are_ignored() -> Result<()> {
    let mut server = start(&[])?;
    signal(server.pid(), Signal::HUP)?;
    signal(server.pid(), Signal::PIPE)?;
    ping(&mut server.connect()?)?;
    ensure!(server.terminate()? == Some(0));
    Ok(())
}

/// Only a signal that comes while the server stops insists.
#[test]
fn a_stop_that_was_refused_is_over() -> Result<()> {
    let mut server = start(&[("save", "3600 1")])?;
    let obstacle = server.directory().join("dump.rdb");
    fs::create_dir_all(obstacle.join("inside"))?;
    let mut client = server.connect()?;
    ensure!(is_ok(&client.call(&["SET", "a", "1"])?));
    signal(server.pid(), Signal::TERM)?;
    let refused = "Errors trying to shut down the server.";
    wait_for("the refusal", || server.log().contains(refused).then_some(()))?;
    fs::remove_dir_all(&obstacle)?;
    ensure!(server.end_by(Signal::INT)? == Some(0), "{}", server.log_tail());
    ensure!(fs::metadata(&obstacle)?.len() > 0);
    Ok(())
}

#[test]
fn the_level_decides_what_is_logged() -> Result<()> {
    let directory = directory()?;
    let log = directory.path().join("server.log");
    let path = log.to_str().context("a path in UTF-8")?;
    // Only standard output is looked at for the line that says that the server is ready.
    let port = free_port()?.to_string();
    let mut child = Command::new(dunlin_binary()?)
        .args([
            "serve",
            "--http-port",
            "0",
            "--port",
            &port,
            "--loglevel",
            "warning",
            "--logfile",
            path,
        ])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let initialized = wait_for("a log", || {
        fs::read_to_string(&log).ok().filter(|log| log.contains("initialized"))
    });
    signal(child.id(), Signal::TERM)?;
    wait_for_end(&mut child)?;
    initialized?;
    let text = fs::read_to_string(&log)?;
    ensure!(text.contains(" # Server initialized") && !text.contains(" * "), "{text}");
    let mut output = String::new();
    child.stdout.take().context("standard output is a pipe")?.read_to_string(&mut output)?;
    ensure!(output.is_empty(), "{output}");
    Ok(())
}

#[test]
fn directives_without_effect_are_mentioned() -> Result<()> {
    let server = start(&[("io-threads", "4")])?;
    ensure!(server.log().contains("io-threads has no effect: "), "{}", server.log());
    ensure!(!server.log().contains("WARNING"), "{}", server.log());
    let mut client = server.connect()?;
    ensure!(is_ok(&set(&mut client, &["list-compress-depth", "1"])?));
    ensure!(server.log().contains("list-compress-depth has no effect: "), "{}", server.log());
    Ok(())
}

// ---- Sockets ------------------------------------------------------------------------------------

#[test]
fn a_port_in_use_ends_the_start() -> Result<()> {
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port().to_string();
    let output = run(&["serve", "--port", &port])?;
    let log = text(&output.stdout);
    ensure!(output.status.code() == Some(1));
    ensure!(
        log.contains(&format!(
            "Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already \
             in use"
        )),
        "{log}"
    );
    ensure!(log.contains(&format!("Failed listening on port {port} (TCP), aborting.")), "{log}");
    let output = run(&["serve", "--port", "0", "--http-port", "0"])?;
    ensure!(text(&output.stdout).contains("Configured to not listen anywhere, exiting."));
    ensure!(output.status.code() == Some(1));
    Ok(())
}

#[test]
fn a_unix_socket_serves_beside_the_port() -> Result<()> {
    let directory = directory()?;
    let path = directory.path().join("d.sock");
    // What an earlier process left behind.
    drop(std::os::unix::net::UnixListener::bind(&path)?);
    let name = path.to_str().context("a path in UTF-8")?;
    let mut server = start(&[("unixsocket", name), ("unixsocketperm", "700")])?;
    ensure!(server.log().contains(&format!("ready to accept connections at {name}")));
    ensure!(fs::metadata(&path)?.permissions().mode() & 0o777 == 0o700);
    let mut socket = UnixStream::connect(&path)?;
    socket.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    socket.read_exact(&mut answer)?;
    ensure!(&answer == b"+PONG\r\n");
    ping(&mut server.connect()?)?;
    ensure!(server.terminate()? == Some(0));
    ensure!(!path.exists());
    Ok(())
}

#[test]
fn a_file_in_place_of_the_unix_socket_is_not_deleted() -> Result<()> {
    let directory = directory()?;
    let path = directory.path().join("d.sock");
    let name = path.to_str().context("a path in UTF-8")?;
    fs::write(&path, "precious")?;
    let output = run(&["serve", "--http-port", "0", "--port", "0", "--unixsocket", name])?;
    ensure!(text(&output.stdout).contains(&format!("{name} exists and is not a socket")));
    ensure!(output.status.code() == Some(1));
    ensure!(fs::read(&path)? == b"precious");
    fs::remove_file(&path)?;
    // What has taken the socket's place while the server ran is not its own either.
    let mut server = start(&[("unixsocket", name)])?;
    fs::remove_file(&path)?;
    fs::write(&path, "precious")?;
    ensure!(server.terminate()? == Some(0));
    ensure!(fs::read(&path)? == b"precious");
    Ok(())
}

#[test]
fn the_log_reports_allocations_that_failed() -> Result<()> {
    let (directory, port) = (directory()?, free_port()?);
    let mut child = Command::new(dunlin_binary()?)
        .args([
            "serve",
            "--http-port",
            "0",
            "--port",
            &port.to_string(),
            "--threads",
            "2",
            "--logfile",
            "own.log",
        ])
        .current_dir(directory.path())
        .stderr(Stdio::null())
        .spawn()?;
    // It listens before it is ready.
    let mut client = wait_for("the start", || {
        let mut client = Client::connect(port).ok()?;
        ping(&mut client).ok()?;
        Some(client)
    })?;
    let statm = fs::read_to_string(format!("/proc/{}/statm", child.id()))?;
    let pages: u64 = statm.split(' ').next().context("statm is empty")?.parse()?;
    // What that leaves is enough for everything else.
    let most = Some(pages * rustix::param::page_size() as u64 + 256 * 1024 * 1024);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::As, Rlimit { current: most, maximum: most })?;
    client.send(&["SETRANGE", "k", "536870000", "x"])?;
    ensure!(!wait_for_end(&mut child)?.success());
    let log = fs::read_to_string(directory.path().join("own.log"))?;
    ensure!(log.contains("# Out Of Memory allocating 53687"), "{log}");
    Ok(())
}

#[test]
fn clients_beyond_the_limit_are_refused() -> Result<()> {
    let server = start(&[("maxclients", "2")])?;
    let mut first = server.connect()?;
    let mut second = server.connect()?;
    ping(&mut first)?;
    ping(&mut second)?;
    let mut refused = TcpStream::connect(("127.0.0.1", server.port()))?;
    let mut answer = String::new();
    refused.read_to_string(&mut answer)?;
    ensure!(answer == "-ERR max number of clients reached\r\n", "{answer}");
    drop(first);
    wait_for("room for another", || {
        let mut another = server.connect().ok()?;
        ping(&mut another).ok()
    })
}

#[test]
fn few_descriptors_mean_few_clients() -> Result<()> {
    let directory = directory()?;
    let port = free_port()?.to_string();
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""])
        .arg(dunlin_binary()?)
        .args(["serve", "--http-port", "0", "--port", &port, "--threads", "2"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = child.stdout.take().context("standard output is a pipe")?;
    let mut log = Vec::new();
    while !text(&log).contains("Ready to accept") {
        let mut piece = [0; 512];
        let received = output.read(&mut piece)?;
        ensure!(received > 0, "{}", text(&log));
        log.extend_from_slice(&piece[..received]);
    }
    signal(child.id(), Signal::TERM)?;
    wait_for_end(&mut child)?;
    let log = text(&log);
    for expected in [
        "You requested maxclients of 10000 requiring at least 10032 max file descriptors.",
        "Server can't set maximum open files to 10032 because of OS error: ",
        "Current maximum open files is 100. maxclients has been reduced to 68 to compensate",
    ] {
        ensure!(log.contains(expected), "{log}");
    }
    Ok(())
}

// ---- Settings that change -----------------------------------------------------------------------

fn set(client: &mut Client, pairs: &[&str]) -> Result<Reply> {
    client.call(&[&["CONFIG", "SET"], pairs].concat())
}

fn is_ok(reply: &Reply) -> bool {
    *reply == Reply::Status(b"OK".to_vec())
}

#[test]
fn port_and_addresses_change_while_serving() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    let port = free_port()?;
    let name = port.to_string();
    ensure!(is_ok(&set(&mut client, &["port", &name])?));
    ping(&mut Client::connect(port)?)?;
    ensure!(server.connect().is_err(), "the old port still serves");
    ensure!(is_ok(&set(&mut client, &["bind", "* -::1"])?));
    ping(&mut Client::connect(port)?)?;

    // No machine has an address that is reserved for documentation.
    let refusal = set(&mut client, &["maxmemory", "1gb", "bind", "127.0.0.1 192.0.2.1"])?;
    let expected = "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind \
                    to specified addresses.";
    ensure!(refusal == Reply::Error(expected.into()), "{refusal:?}");
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let other = taken.local_addr()?.port().to_string();
    let refusal = set(&mut client, &["port", &other])?;
    let expected = "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen \
                    on this port. Check server logs.";
    ensure!(refusal == Reply::Error(expected.into()), "{refusal:?}");
    ping(&mut Client::connect(port)?)?;
    let settings = client.call(&["CONFIG", "GET", "port", "bind", "maxmemory"])?;
    let settings: Vec<_> = settings.elements().context("pairs")?;
    let values: Vec<_> = settings.iter().filter_map(Reply::text).map(text).collect();
    ensure!(values == ["port", &name, "bind", "* -::1", "maxmemory", "0"], "{values:?}");
    let shown = text(&fs::read(format!("/proc/{}/cmdline", server.pid()))?);
    ensure!(shown.contains(&format!("dunlin *:{name}")), "{shown}");
    Ok(())
}

#[test]
fn more_clients_than_the_system_allows_are_refused() -> Result<()> {
    let server = start(&[("maxclients", "10")])?;
    let mut client = server.connect()?;
    ensure!(is_ok(&set(&mut client, &["maxclients", "20"])?));
    let refusal = set(&mut client, &["maxclients", "4000000000"])?;
    let refusal = refusal.text().map(text).unwrap_or_default();
    let expected = "The operating system is not able to handle the specified number of clients, \
                    try with ";
    ensure!(refusal.contains(expected), "{refusal}");
    Ok(())
}

#[test]
fn rewriting_keeps_the_file_and_what_changed() -> Result<()> {
    let directory = directory()?;
    let file = directory.path().join("d.conf");
    let port = free_port()?;
    fs::write(&file, format!("# mine\nport {port}\nhz 20\nsave \"\"\n"))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    // The file is found again though the server goes to another directory.
    let mut child = Command::new(dunlin_binary()?)
        .args(["serve", "d.conf", "--dir", "/tmp"])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .spawn()?;
    let connected = wait_for("a connection", || Client::connect(port).ok());
    let answers = connected.and_then(|mut client| {
        let set = set(&mut client, &["hz", "30", "maxmemory-policy", "allkeys-lru"])?;
        Ok([set, client.call(&["CONFIG", "REWRITE"])?])
    });
    signal(child.id(), Signal::TERM)?;
    wait_for_end(&mut child)?;
    ensure!(answers?.iter().all(is_ok));
    let rewritten = fs::read_to_string(&file)?;
    let lines: Vec<_> = rewritten.lines().collect();
    ensure!(lines[..3] == ["# mine", &format!("port {port}"), "hz 30"], "{rewritten}");
    ensure!(lines.contains(&"maxmemory-policy allkeys-lru"), "{rewritten}");
    ensure!(fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600);
    ensure!(fs::read_dir(directory.path())?.count() == 1);
    Ok(())
}

/// The disk is slow while the file is opened: the client that asked waits, and no other.
#[test]
fn nobody_waits_for_another_ones_rewriting() -> Result<()> {
    let directory = directory()?;
    let port = free_port()?;
    fs::write(directory.path().join("d.conf"), format!("port {port}\nthreads 1\nsave \"\"\n"))?;
    let mut child = Command::new(dunlin_binary()?)
        .args(["serve", "d.conf"])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .spawn()?;
    let outcome = wait_for("a connection", || Client::connect(port).ok()).and_then(|mut client| {
        let pipe = directory.path().join(format!("d.conf.{}.tmp", child.id()));
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0)?;
        let mut rewriter = Client::connect(port)?;
        rewriter.send(&["CONFIG", "REWRITE"])?;
        let mut blocked = 0;
        while blocked == 0 {
            let clients = client.call(&["CLIENT", "LIST"])?;
            blocked = text(clients.text().unwrap_or_default()).matches("flags=b").count();
        }
        ensure!(!rewriter.has_input(Duration::from_millis(20))?);
        // What is written and synced is no file here, which the system refuses.
        drop(fs::File::open(&pipe)?);
        let Received::Reply(Reply::Error(error)) = rewriter.receive()? else { bail!("no error") };
        ensure!(error.starts_with(b"ERR Rewriting config file: "), "{}", text(&error));
        ensure!(is_ok(&client.call(&["CONFIG", "REWRITE"])?));
        client.call(&["MULTI"])?;
        client.call(&["CONFIG", "REWRITE"])?;
        let all = client.call(&["EXEC"])?.elements();
        ensure!(all.is_some_and(|all| all.iter().all(is_ok)), "in a transaction");
        Ok(())
    });
    signal(child.id(), Signal::TERM)?;
    wait_for_end(&mut child)?;
    outcome
}

#[test]
fn there_may_be_no_file_to_rewrite() -> Result<()> {
    let server = start(&[])?;
    let reply = server.connect()?.call(&["CONFIG", "REWRITE"])?;
    let expected = "ERR The server is running without a config file";
    ensure!(reply == Reply::Error(expected.into()), "{reply:?}");
    Ok(())
}

#[test]
fn the_title_and_the_log_follow_the_settings() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    ensure!(is_ok(&set(&mut client, &["proc-title-template", "{title} of tests {port}"])?));
    let shown = text(&fs::read(format!("/proc/{}/cmdline", server.pid()))?);
    let expected = format!("dunlin of tests {}", server.port());
    ensure!(shown.trim_end_matches('\0').ends_with(&expected), "{shown}");
    ensure!(is_ok(&set(&mut client, &["loglevel", "warning"])?));
    ensure!(is_ok(&set(&mut client, &["maxmemory", "1"])?));
    ensure!(is_ok(&set(&mut client, &["maxmemory", "0", "loglevel", "notice"])?));
    ensure!(server.log().contains("# WARNING: the new maxmemory value set via CONFIG SET (1)"));
    Ok(())
}

// ---- The process among others -------------------------------------------------------------------

#[test]
fn a_daemon_leaves_its_process_id() -> Result<()> {
    let directory = directory()?;
    let port = free_port()?;
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
        .args(["--port", &port.to_string()])
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output()?;
    ensure!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let file = directory.path().join("d.pid");
    let pid: u32 = wait_for("a pid file", || fs::read_to_string(&file).ok()?.trim().parse().ok())?;
    // Before it has loaded its data it answers otherwise.
    let answered = wait_for("an answer", || ping(&mut Client::connect(port).ok()?).ok());
    signal(pid, Signal::TERM)?;
    wait_for("the end", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()))?;
    answered?;
    ensure!(!file.exists());
    let log = fs::read_to_string(directory.path().join("d.log"))?;
    ensure!(log.contains("Dunlin is starting") && log.contains("bye bye"), "{log}");
    ensure!(log.lines().all(|line| is_log_line(line, pid)), "{log}");
    Ok(())
}

#[test]
fn the_title_names_the_address() -> Result<()> {
    let server = start(&[])?;
    let shown = fs::read(format!("/proc/{}/cmdline", server.pid()))?;
    let shown = text(&shown);
    let expected = format!("dunlin 127.0.0.1:{}", server.port());
    ensure!(shown.trim_end_matches('\0').ends_with(&expected), "{shown}");
    drop(server);
    let server = start(&[("set-proc-title", "no")])?;
    let shown = text(&fs::read(format!("/proc/{}/cmdline", server.pid()))?);
    ensure!(shown.contains("\0serve\0--dir\0"), "{shown}");
    Ok(())
}

#[test]
fn a_crash_leaves_a_report() -> Result<()> {
    for (signal, name) in [(Signal::SEGV, "SIGSEGV"), (Signal::ABORT, "SIGABRT")] {
        let mut server = start(&[])?;
        ensure!(server.end_by(signal)?.is_none(), "it ended by itself");
        let log = server.log();
        ensure!(log.contains(&format!("Reason: crashed by signal {name}")), "{log}");
        ensure!(log.contains("STACK TRACE") && log.contains("REPORT END"), "{log}");
    }
    let mut server = start(&[])?;
    server.connect()?.send(&["DEBUG", "PANIC"])?;
    wait_for("the end", || (!server.is_running()).then_some(()))?;
    ensure!(server.log().matches("REPORT END").count() == 1, "{}", server.log());
    let mut server = start(&[("crash-log-enabled", "no")])?;
    ensure!(server.end_by(Signal::SEGV)?.is_none(), "it ended by itself");
    ensure!(!server.log().contains("REPORT"), "{}", server.log());
    Ok(())
}

#[test]
fn the_log_hides_data_where_the_settings_ask_for_that() -> Result<()> {
    let options = [("enable-debug-command", "yes"), ("hide-user-data-from-log", "yes")];
    let server = Server::start(Target::Dunlin, &options)?;
    let mut client = server.connect()?;
    client.call_text("HSET h secret value")?;
    client.call_text("DEBUG LISTPACK h")?;
    // Lines are written in their order, a moment later.
    client.call_text("DEBUG LOG next")?;
    wait_until("the next line", || Ok(server.log().contains("DEBUG LOG: next")))?;
    ensure!(!server.log().contains("secret"), "{}", server.log_tail());
    client.call_text("CONFIG SET hide-user-data-from-log no")?;
    client.call_text("DEBUG LISTPACK h")?;
    wait_until("the data", || Ok(server.log().contains("secret")))?;
    Ok(())
}

/// Its owner may have forgotten the pipe, or its reader may hang.
#[test]
fn a_log_that_nobody_reads_holds_up_nobody() -> Result<()> {
    for panics in [false, true] {
        let (directory, port) = (directory()?, free_port()?);
        let mut child = Command::new(dunlin_binary()?)
            .args(["serve", "--http-port", "0", "--enable-debug-command", "yes", "--save", ""])
            .args(["--port", &port.to_string()])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .spawn()?;
        let ended = fill_log_and_end(&mut child, port, panics);
        let _ = child.kill();
        ensure!(ended?.success() != panics);
    }
    Ok(())
}

fn fill_log_and_end(child: &mut Child, port: u16, panics: bool) -> Result<ExitStatus> {
    wait_for("an answer", || ping(&mut Client::connect(port).ok()?).ok())?;
    let mut client = Client::connect(port)?;
    let long = "x".repeat(1000);
    for _ in 0..200 {
        ensure!(is_ok(&client.call(&["DEBUG", "LOG", &long])?));
    }
    // This warns; and what waits for all threads has to wait for none that waits for the log.
    ensure!(is_ok(&set(&mut client, &["maxmemory", "1"])?));
    ensure!(is_ok(&Client::connect(port)?.call(&["SWAPDB", "0", "1"])?));
    match panics {
        true => client.send(&["DEBUG", "PANIC"])?,
        false => signal(child.id(), Signal::TERM)?,
    }
    wait_for_end(child)
}

/// What a server says of commands that have other names, or none.
const RENAMED: &[&str] = &[
    "STORE k value",
    // Right after STORE the reference takes SET for the same command.
    "PING",
    "SET k other",
    "get k",
    "FETCH k",
    "REPLICAOF NO ONE",
    "FETCH",
    "COMMAND INFO set replicaof",
    "COMMAND LIST FILTERBY PATTERN replicaof",
    "COMMAND LIST FILTERBY PATTERN set",
    "COMMAND GETKEYS store a b",
    "COMMAND GETKEYS set a b",
    "EVAL return(redis.call('STORE',KEYS[1],'scripted')) 1 s",
    "EVAL return(redis.pcall('SET',KEYS[1],'lost')) 1 s",
    "FETCH s",
    "ACL SETUSER ann on nopass ~* +set -get",
    "ACL DRYRUN ann store a b",
    "ACL DRYRUN ann set a b",
    "ACL DRYRUN ann fetch a",
    "MULTI",
    "PING",
    "SET k lost",
    "EXEC",
    "MULTI",
    "STORE k later",
    "FETCH k",
    "EXEC",
    "TRAITS SET hz 20",
    "CONFIG SET hz 30",
    "TRAITS BOGUS x",
    "WAITFOR k BLOCK 1 GROUP",
];

/// Files and replicas know commands by their own names, so both of them need no such line.
#[test]
fn commands_have_the_names_that_the_settings_give_them() -> Result<()> {
    let directory = directory()?;
    let file = directory.path().join("names.conf");
    let lines = "rename-command SET store\nrename-command get FETCH\n\
                 rename-command REPLICAOF \"\"\nrename-command CONFIG TRAITS\n\
                 rename-command xreadgroup WAITFOR\nrename-command BLPOP first\n\
                 rename-command RESTORE load\nrename-command FLUSHDB wipe\n";
    std::fs::write(&file, lines)?;
    let file = file.to_str().context("a path")?;
    let mut answers = Vec::new();
    for target in [Target::Reference, Target::Dunlin] {
        let server = Server::start(target, &[("include", file)])?;
        let mut client = server.connect()?;
        let said = |line: &&str| -> Result<String> {
            Ok(format!("{line}: {:?}", client.call_text(line)?))
        };
        answers.push(RENAMED.iter().map(said).collect::<Result<Vec<String>>>()?);
    }
    ensure!(answers[0] == answers[1], "{:#?}\n{:#?}", answers[0], answers[1]);
    // Over HTTP, from a client that waits, in the file, and at a replica.
    let options = [
        ("include", file),
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("repl-diskless-sync-delay", "0"),
    ];
    let (mut server, port) = Server::start_with_http(&options)?;
    let replica = Server::start(Target::Dunlin, &[])?;
    replica.connect()?.call(&["REPLICAOF", "127.0.0.1", &server.port().to_string()])?;
    let mut web = Web::connect(port)?;
    let refused = web.ask("POST /v1/command", &[], br#"["SET","a","1"]"#)?;
    ensure!(refused.status == 400 && refused.text().contains("unknown command"), "{refused:?}");
    ensure!(web.ask("POST /v1/command", &[], br#"["STORE","a","1"]"#)?.status == 200);
    let mut client = server.connect()?;
    // Who says that it is a node of a cluster calls messages by their own names, and nothing else.
    let mut node = server.connect()?;
    node.call_text(&format!("REPLCONF cluster-node {}:1", "07".repeat(20)))?;
    let refused = node.call_text("CONFIG GET dir")?;
    ensure!(refused.is_error(), "{refused:?}");
    client.call_text("XGROUP CREATE stream group $ MKSTREAM")?;
    let waits = ["WAITFOR", "GROUP", "group", "me", "BLOCK", "0", "STREAMS", "stream", ">"];
    let mut reader = server.connect()?;
    reader.send(&waits)?;
    let mut popper = server.connect()?;
    popper.send(&["FIRST", "list", "0"])?;
    wait_until("both wait", || Ok(figure(&mut client, "blocked_clients")? == "2"))?;
    client.call_text("XADD stream 1-1 f v")?;
    client.call_text("RPUSH list x y")?;
    let dump = client.call_text("DUMP a")?;
    let restored = [&b"LOAD"[..], b"timed", b"1000000", dump.text().context("a payload")?];
    ensure!(client.call(&restored)? == Reply::Status(b"OK".to_vec()));
    for line in ["SELECT 1", "STORE gone 1", "MULTI", "WIPE", "STORE kept 1", "EXEC"] {
        ensure!(!client.call_text(line)?.is_error(), "{line}");
    }
    for waiting in [&mut reader, &mut popper] {
        ensure!(matches!(waiting.receive()?, Received::Reply(reply) if !reply.is_error()));
    }
    ensure!(client.call_text("WAIT 1 60000")? == Reply::Integer(1));
    server.kill();
    server.start_again()?;
    for (own, get) in [(&server, "FETCH"), (&replica, "GET")] {
        let mut client = own.connect()?;
        ensure!(client.call_text(&format!("{get} a"))?.text() == Some(b"1"), "{get}");
        let pending = client.call_text("XPENDING stream group")?.elements().context("a list")?;
        ensure!(pending[0] == Reply::Integer(1), "{pending:?}");
        ensure!(client.call_text("EXISTS timed")? == Reply::Integer(1), "{get}");
        client.call_text("SELECT 1")?;
        ensure!(client.call_text("DBSIZE")? == Reply::Integer(1), "{get}");
        ensure!(client.call_text("EXISTS kept")? == Reply::Integer(1), "{get}");
    }
    Ok(())
}
