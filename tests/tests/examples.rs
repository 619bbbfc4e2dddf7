//! The programs in `examples` do what their READMEs say, and hold when something breaks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use tests::blocks::{Kind, steps};
use tests::client::{Client, Reply};
use tests::mariadb::Mariadb;
use tests::observe::wait_until;
use tests::peers;
use tests::server::{Server, Target, dunlin_binary, free_port, repository};
use tests::shown::is_as_shown;
use tests::web::Web;

/// The options of servers that are killed and come back with all that they have acknowledged.
const KEPT: &[(&str, &str)] = &[("threads", "2"), ("appendonly", "yes")];

fn folder(example: &str) -> PathBuf {
    repository().join("examples").join(example)
}

/// A command in the folder of an example, with all programs that are needed in its path.
fn command(example: &str, program: &str) -> Result<Command> {
    let binary = dunlin_binary()?;
    let mut path = peers::directory().join("python/bin").into_os_string();
    path.push(":");
    path.push(binary.parent().context("a directory")?);
    path.push(":");
    path.push(peers::search_path());
    let mut command = Command::new("timeout");
    command.args(["--foreground", "300", program]).current_dir(folder(example));
    command.env("PATH", path).env("DUNLIN_BIN", binary).env("LC_ALL", "C.UTF-8");
    command.env("CARGO_TARGET_DIR", peers::directory().parent().context("a directory")?);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs a command to its end, and returns what it prints.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {complaints}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The first command of a README prints what stands below it there.
fn does_as_it_says(example: &str) -> Result<()> {
    let readme = fs::read_to_string(folder(example).join("README.md"))?;
    let steps = steps(&readme)?;
    let first = steps.iter().find(|step| step.kind == Kind::Shell).context("a command")?;
    let calls = first.text.contains(&format!("examples/{example}/run"));
    ensure!(calls && !first.shown.is_empty(), "{first:?}");
    let mut command = command(example, "bash")?;
    command.args(["-c", &first.text]).current_dir(repository());
    for name in ["PORT", "HTTP_PORT"] {
        command.env(name, free_port()?.to_string());
    }
    let printed = run(&mut command)?;
    ensure!(is_as_shown(&first.shown, &printed, false), "{}\n{printed}", first.text);
    Ok(())
}

/// A program that goes on until it is killed.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Result<Self> {
        Ok(Self(command.stdout(Stdio::piped()).spawn()?))
    }

    fn kill(mut self) -> Result<()> {
        // It is a child of the program that bounds its time, and that ends when its child has.
        let pid = self.0.id().to_string();
        Command::new("pkill").args(["-KILL", "-P", &pid]).status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("pkill").args(["-KILL", "-P", &pid]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_example_has_a_page_and_a_script() -> Result<()> {
    let list = fs::read_to_string(repository().join("examples/README.md"))?;
    for entry in fs::read_dir(repository().join("examples"))? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        if path.is_dir() {
            ensure!(list.contains(&format!("[{name}]({name})")), "{name} is not in the list");
            ensure!(path.join("README.md").exists(), "{name} has no README.md");
            // That one takes a MariaDB.
            ensure!(path.join("run").exists() || name == "departments-api-go", "{name}/run");
        }
    }
    Ok(())
}

#[test]
fn the_small_ones_do_as_they_say() -> Result<()> {
    ["python", "javascript", "go"].into_iter().try_for_each(does_as_it_says)
}

#[test]
fn the_repository_does_as_it_says() -> Result<()> {
    does_as_it_says("repository-java")
}

/// The rows that are kept are those of before the server was killed, until somebody writes.
#[test]
fn views_outlive_the_server() -> Result<()> {
    does_as_it_says("departments")?;
    let file = folder("departments").join("views.toml").display().to_string();
    let options = [KEPT, &[("views-file", &*file)]].concat();
    let (mut server, http) = Server::start_with_http(&options)?;
    server.set_options(&[&options[..], &[("http-port", &*http.to_string())]].concat());
    let path = "/v1/views/departments";
    let ask = || -> Result<(String, String)> {
        let answer = Web::connect(http)?.ask(&format!("GET {path}?rows=1"), &[], b"")?;
        Ok((answer.header("x-cache").unwrap_or_default().to_owned(), answer.text()))
    };
    let (first, rows) = ask()?;
    ensure!(first == "miss" && rows.contains("d1"), "{first} {rows}");
    server.kill();
    server.start_again()?;
    ensure!(ask()? == ("hit".to_owned(), rows));
    let body = br#"{"dept_no":"a1","dept_name":"Archive"}"#;
    let written = Web::connect(http)?.ask(&format!("POST {path}"), &[], body)?;
    ensure!(written.status < 300, "{written:?}");
    let (then, rows) = ask()?;
    ensure!(then == "miss" && rows.contains("Archive"), "{then} {rows}");
    Ok(())
}

/// Who reads from the replica beside it goes on when the central store is gone.
#[test]
fn a_read_api_beside_a_replica_outlives_the_central_store() -> Result<()> {
    does_as_it_says("read-api-go")?;
    let mut central = Server::start(Target::Dunlin, &[("threads", "2")])?;
    central.connect()?.call_text("SET greeting hello")?;
    let primary = format!("127.0.0.1 {}", central.port());
    let replica = Server::start(Target::Dunlin, &[("threads", "2"), ("replicaof", &primary)])?;
    let mut apis = Vec::new();
    for store in [central.port(), replica.port()] {
        let port = free_port()?;
        let mut api = command("read-api-go", "read-api")?;
        api.args(["-listen", &format!("127.0.0.1:{port}")]);
        api.args(["-redis", &format!("127.0.0.1:{store}")]);
        apis.push((port, Running::start(&mut api)?));
    }
    let read = |port: u16| -> Result<(u16, String)> {
        let answer = Web::connect(port)?.ask("GET /v1/keys/greeting", &[], b"")?;
        Ok((answer.status, answer.text()))
    };
    let reads = |port: u16| Ok(read(port).is_ok_and(|answer| answer == (200, "hello".to_owned())));
    for (port, _) in &apis {
        wait_until("the service reads", || reads(*port))?;
    }
    central.kill();
    ensure!(read(apis[0].0)?.0 >= 500);
    ensure!(reads(apis[1].0)?);
    Ok(())
}

/// Rows that the store has are answered without the database.
#[test]
fn a_service_keeps_rows_of_a_database() -> Result<()> {
    let mut database = Mariadb::start()?;
    let store = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let port = free_port()?;
    let mut api = command("departments-api-go", "departments-api")?;
    api.args(["-listen", &format!("127.0.0.1:{port}")]);
    api.args(["-redis", &format!("127.0.0.1:{}", store.port())]);
    let address = format!("dunlin:secret@tcp(127.0.0.1:{})/company", database.port());
    api.args(["-database", &address]);
    let _api = Running::start(api.stderr(Stdio::null()))?;
    let ask = |rows: u16| -> Result<(u16, String)> {
        let line = format!("GET /v1/views/departments?rows={rows}");
        let answer = Web::connect(port)?.ask(&line, &[], b"")?;
        Ok((answer.status, answer.text()))
    };
    wait_until("the service answers", || Ok(ask(1).is_ok_and(|answer| answer.0 == 200)))?;
    let (_, rows) = ask(1)?;
    ensure!(rows.contains(r#""dept_no":"d1""#), "{rows}");
    database.kill();
    ensure!(ask(1)? == (200, rows));
    ensure!(ask(2)?.0 == 502);
    Ok(())
}

#[test]
fn jobs_outlive_workers_and_the_server() -> Result<()> {
    does_as_it_says("job-queue")?;
    let mut server = Server::start(Target::Dunlin, KEPT)?;
    let port = server.port().to_string();
    let jobs = |arguments: &[&str]| -> Result<Command> {
        let mut command = command("job-queue", "python3")?;
        command.arg("jobs.py").args(arguments).env("PORT", &port).env("LEASE_MS", "500");
        Ok(command)
    };
    let mut added = BTreeMap::new();
    // The first one keeps its worker for longer than that lives.
    for argument in ["60", "0.01", "0.02", "0.03"] {
        added.insert(run(&mut jobs(&["add", "wait", argument])?)?.trim().to_owned(), argument);
    }
    let worker = Running::start(&mut jobs(&["work", "one"])?)?;
    let mut client = server.connect()?;
    wait_until("a worker has a job", || {
        let pending = client.call_text("XPENDING {jobs} workers - + 10 one")?;
        Ok(matches!(pending, Reply::Array(jobs) if !jobs.is_empty()))
    })?;
    // It says that it still works, so nobody takes its job.
    let second = Running::start(&mut jobs(&["work", "two"])?)?;
    wait_until("the others are done", || Ok(length(&mut client, "{jobs}:done")? == 3))?;
    server.kill();
    server.start_again()?;
    let mut client = server.connect()?;
    let first = added.keys().next().context("a job")?;
    wait_until("the first worker goes on", || {
        let pending = client.call_text("XPENDING {jobs} workers IDLE 0 - + 10")?;
        let owner = pending.elements().and_then(|all| all.into_iter().next()?.elements());
        Ok(owner.is_some_and(|job| job[1].text() == Some(b"one")))
    })?;
    // When it is killed, another one takes its job. Meanwhile there is one that cannot be done.
    run(&mut jobs(&["add", "square", "x"])?)?;
    worker.kill()?;
    let taken = || -> Result<bool> {
        let mut client = Client::connect(port.parse()?)?;
        let pending = client.call(&["XPENDING", "{jobs}", "workers", first, first, "1"])?;
        let owner = pending.elements().and_then(|all| all.into_iter().next()?.elements());
        Ok(owner.is_some_and(|job| job[1].text() == Some(b"two")))
    };
    wait_until("the job is taken over", taken)?;
    let third = Running::start(&mut jobs(&["work", "three"])?)?;
    wait_until("the job that cannot be done is given up", || {
        Ok(length(&mut client, "{jobs}:dead")? == 1)
    })?;
    second.kill()?;
    third.kill()?;
    // No job was reported twice, and the long one is still there.
    ensure!(length(&mut client, "{jobs}:done")? == 3);
    ensure!(length(&mut client, "{jobs}")? == 1);
    Ok(())
}

fn length(client: &mut Client, stream: &str) -> Result<i64> {
    match client.call(&["XLEN", stream])? {
        Reply::Integer(length) => Ok(length),
        other => anyhow::bail!("{other:?}"),
    }
}

#[test]
fn a_limit_holds_over_all_gates_and_a_restart() -> Result<()> {
    const LIMIT: usize = 20;
    does_as_it_says("rate-limiter")?;
    let mut server = Server::start(Target::Dunlin, KEPT)?;
    let mut ports: Vec<u16> = Vec::new();
    let mut gates = Vec::new();
    for _ in 0..2 {
        let mut command = command("rate-limiter", "node")?;
        command.arg("gate.mjs").env("PORT", server.port().to_string());
        command.env("LIMIT", LIMIT.to_string()).env("WINDOW_MS", "3600000");
        let mut gate = Running::start(command.stderr(Stdio::null()))?;
        let mut line = String::new();
        BufReader::new(gate.0.stdout.take().context("an output")?).read_line(&mut line)?;
        ports.push(line.trim().parse()?);
        gates.push(gate);
    }
    let ask = |port: u16| -> Result<u16> {
        Ok(Web::connect(port)?.ask("GET /", &["X-Client: ada"], b"")?.status)
    };
    let passed: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let port = ports[number % 2];
                scope.spawn(move || (0..10).filter(|_| matches!(ask(port), Ok(200))).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(usize::MAX)).sum()
    });
    ensure!(passed == LIMIT, "{passed} requests have passed");
    server.kill();
    // Without its store a gate lets everybody pass, and soon refuses again when the store is back.
    ensure!(ask(ports[0])? == 200);
    server.start_again()?;
    for port in ports {
        wait_until("the gate refuses again", || Ok(ask(port)? == 429))?;
    }
    Ok(())
}

#[test]
fn a_page_of_the_board_is_of_one_instant() -> Result<()> {
    does_as_it_says("leaderboard")?;
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let program = server.directory().join("leaderboard");
    let mut build = command("leaderboard", "go")?;
    build.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    run(build.env("CGO_ENABLED", "0"))?;
    let port = server.port();
    let mut client = server.connect()?;
    for player in 0..40 {
        client.call(&["ZADD", "{board}", &(player / 3).to_string(), &format!("p{player}")])?;
    }
    let board = |arguments: &[&str]| -> Result<Vec<(u64, String, u64)>> {
        let mut command = command("leaderboard", &program.display().to_string())?;
        let printed = run(command.args(arguments).env("PORT", port.to_string()))?;
        let lines = printed.lines().map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            Ok((words[0].parse()?, words[1].to_owned(), words[2].parse()?))
        });
        lines.collect()
    };
    let writer = thread::spawn(move || -> Result<()> {
        let mut client = Client::connect(port)?;
        for turn in 0..3000_u32 {
            client.call(&["ZINCRBY", "{board}", "1", &format!("p{}", turn * 7 % 40)])?;
        }
        Ok(())
    });
    for turn in 0..15 {
        let player = format!("p{}", turn * 3 % 40);
        let page = board(&["around", &player, "3"])?;
        ensure!(page.iter().any(|(_, name, _)| *name == player), "{page:?}");
        for pair in page.windows(2) {
            let ((rank, name, points), (next_rank, next, fewer)) = (&pair[0], &pair[1]);
            let fits = if points == fewer { rank == next_rank } else { rank < next_rank };
            ensure!(name != next && points >= fewer && fits, "{page:?}");
        }
    }
    ensure!(board(&["top", "3"])?.len() == 3 && board(&["around", "nobody", "3"]).is_err());
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?
}

/// The sessions in one process, asked line by line.
struct Sessions {
    _process: Running,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Sessions {
    fn start(port: u16) -> Result<Self> {
        let mut java = command("session-store", "java")?;
        let jars = peers::directory().join("jedis/*");
        java.args(["-XX:TieredStopAtLevel=1", "-cp"]).arg(jars).arg("Sessions.java");
        java.env("PORT", port.to_string()).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut process = Running::start(&mut java)?;
        let input = process.0.stdin.take().context("an input")?;
        let answers = BufReader::new(process.0.stdout.take().context("an output")?);
        Ok(Self { _process: process, input, answers })
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.input, "{line}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    }
}

#[test]
fn sessions_slide_end_and_survive() -> Result<()> {
    let mut server = Server::start(Target::Dunlin, KEPT)?;
    let mut sessions = Sessions::start(server.port())?;
    let id = sessions.ask("create ada")?;
    let key = format!("session:{id}");
    let mut client = server.connect()?;
    client.call(&["PEXPIRE", &key, "60000"])?;
    ensure!(sessions.ask(&format!("use {id}"))? == "{user=ada}");
    let left = client.call(&["PTTL", &key])?;
    ensure!(matches!(left, Reply::Integer(left) if left > 60_000), "{left:?}");
    ensure!(sessions.ask(&format!("put {id} confirmed yes 3600000"))? == "ok");
    server.kill();
    server.start_again()?;
    let mut client = server.connect()?;
    let used = format!("use {id}");
    wait_until("the session is there again", || {
        Ok(sessions.ask(&used)? == "{confirmed=yes, user=ada}")
    })?;
    // A field ends, and the session does not.
    client.call(&["HPEXPIRE", &key, "1", "FIELDS", "1", "confirmed"])?;
    wait_until("the field ends", || Ok(sessions.ask(&used)? == "{user=ada}"))?;
    let other = sessions.ask(&format!("renew {id}"))?;
    ensure!(sessions.ask(&used)? == "over");
    ensure!(sessions.ask(&format!("put {id} confirmed yes 1000"))? == "over");
    ensure!(client.call(&["EXISTS", &key])? == Reply::Integer(0));
    // However often it is used, it ends with its longest life.
    let (used, key) = (format!("use {other}"), format!("session:{other}"));
    ensure!(sessions.ask(&used)? == "{user=ada}");
    client.call(&["HPEXPIRE", &key, "1", "FIELDS", "1", "life"])?;
    wait_until("the session ends", || Ok(sessions.ask(&used)? == "over"))?;
    ensure!(client.call(&["EXISTS", &key])? == Reply::Integer(0));
    Ok(())
}

#[test]
fn a_consumer_loses_and_repeats_nothing() -> Result<()> {
    const WRITES: usize = 120;
    does_as_it_says("change-consumer")?;
    let (mut server, http) = Server::start_with_http(KEPT)?;
    server.set_options(&[KEPT, &[("http-port", &*http.to_string())]].concat());
    let file = server.directory().join("copy.db").display().to_string();
    let consumer = |rest: &[&str]| -> Result<Command> {
        let mut command = command("change-consumer", "python3")?;
        command.args(["consumer.py", &file]).args(rest).env("HTTP_PORT", http.to_string());
        command.stderr(Stdio::null());
        Ok(command)
    };
    let shown = || -> Result<(Vec<String>, usize)> {
        let printed = run(&mut consumer(&["--show"])?)?;
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        let last = lines.pop().context("a number of effects")?;
        Ok((lines, last.split(' ').next().context("a number")?.parse()?))
    };
    let mut running = Running::start(&mut consumer(&[])?)?;
    wait_until("the consumer has begun", || Ok(shown()?.1 == 1))?;
    let mut client = server.connect()?;
    for write in 0..WRITES {
        // Two keys at once, of which only the second has a position.
        let [key, value] = [format!("order:{}", write % 10), write.to_string()];
        client.call(&["MSET", &key, &value, &format!("{key}b"), &value])?;
        if write % 40 == 20 {
            running.kill()?;
            running = Running::start(&mut consumer(&[])?)?;
        }
        if write == 110 {
            server.kill();
            server.start_again()?;
            client = server.connect()?;
        }
    }
    wait_until("all changes have come", || Ok(shown()?.1 > WRITES * 2))?;
    client.call_text("SET order:last end")?;
    wait_until("the last change has come", || {
        Ok(shown()?.0.iter().any(|line| line == "order:last end"))
    })?;
    let (copy, effects) = shown()?;
    // Those of the first copy, which was empty, of each write, and of the last one.
    ensure!(effects == 1 + WRITES * 2 + 1, "{effects} effects");
    ensure!(copy.len() == 21, "{copy:?}");
    for line in copy.iter().filter(|line| !line.starts_with("order:last")) {
        let (key, value) = line.split_once(' ').context("a key and a value")?;
        ensure!(client.call(&["GET", key])?.text() == Some(value.as_bytes()), "{line}");
    }
    running.kill()
}

#[test]
fn readers_have_a_replica_beside_them() -> Result<()> {
    let mut sidecar = command("sidecar", "bash")?;
    let printed = run(sidecar.arg(Path::new("run")).arg("2"))?;
    let seen = [
        "reader 1 reads tea 3",
        "reader 2 reads tea 3",
        "reader 1 reads its own write 1",
        "reader 2 reads its own write 2",
        "reader 1 has seen 20 writes",
        "reader 2 has seen 20 writes",
    ];
    let lines: Vec<&str> = printed.lines().collect();
    ensure!(lines.len() == seen.len(), "{printed}");
    ensure!(lines.iter().zip(seen).all(|(line, seen)| line.starts_with(seen)), "{printed}");
    Ok(())
}
