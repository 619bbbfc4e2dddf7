//! Follows one page, inside its namespaces.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::blocks::{self, Kind, Step};
use tests::client::Client;
use tests::notation;
use tests::peers;
use tests::quoting;
use tests::server::{dunlin_binary, repository};
use tests::shown::{is_as_shown, numbers_in_place};

use crate::lists;
use crate::shell::{Background, Shell};

/// The server that is there before the first block.
const USUAL_SERVER: &str = "dunlin serve --dir .usual";

/// Hosts of examples, which are this machine in the namespaces.
const HOSTS: &str =
    "127.0.0.1 localhost redis.example.com db.example\n10.0.0.1 one\n10.0.0.2 two\n";

struct Follower<'a> {
    page: &'a str,
    shell: Shell,
    /// Servers by what their ports are.
    servers: Vec<(Vec<String>, Background)>,
    /// Streams that go on, and the step that shows what they print.
    streams: Vec<(Step, Background)>,
    clients: BTreeMap<String, Client>,
    directory: &'a Path,
    programs: usize,
    /// Tags and positions that the page shows, and those that came: later commands use them.
    numbers: Vec<(String, String)>,
}

/// Does what the page says. Returns what went wrong.
pub(crate) fn follow(page: &str, directory: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(repository().join(page))?;
    let steps = blocks::steps(&text)?;
    let runs = |step: &&Step| lists::reason_not_to_run(page, &step.text).is_none();
    let steps: Vec<Step> = steps.iter().filter(runs).cloned().collect();
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    prepare_machine(directory)?;
    let work = directory.join("work");
    let files = directory.join("files");
    fs::create_dir_all(&files)?;
    fs::create_dir_all(work.join(".usual"))?;
    let shell = start_shell(directory, &work, &files)?;
    let mut follower = Follower {
        page,
        shell,
        servers: Vec::new(),
        streams: Vec::new(),
        clients: BTreeMap::new(),
        directory: &work,
        programs: 0,
        numbers: Vec::new(),
    };
    follower.start_server(USUAL_SERVER)?;
    let name = Path::new(page).with_extension("md");
    let name = name.file_name().context("a page has a name")?;
    let prepare = repository().join("tests/tests/pages/prepare").join(name);
    if let Ok(text) = fs::read_to_string(prepare) {
        for step in blocks::steps(&text)? {
            follower.take(&step).with_context(|| format!("preparing: {}", step.text))?;
        }
    }
    let mut failures = Vec::new();
    for step in steps {
        // This is the report if the step never ends.
        fs::write(directory.join("report"), format!("{page}:{}: does not end", step.line))?;
        if let Err(error) = follower.take(&step) {
            failures.push(format!("{page}:{}: {}\n{error:#}", step.line, step.text));
        }
    }
    failures.extend(follower.finish());
    Ok(failures)
}

/// Makes the addresses and the hosts of the pages those of this machine.
fn prepare_machine(directory: &Path) -> Result<()> {
    let hosts = directory.join("hosts");
    fs::write(&hosts, HOSTS)?;
    let script = "ip link set lo up && for address in 1 2 5 6; do \
                  ip addr add 10.0.0.$address/32 dev lo || exit 1; \
                  done && mount --bind \"$1\" /etc/hosts";
    let output = Command::new("sh").args(["-c", script, "sh"]).arg(&hosts).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn start_shell(directory: &Path, work: &Path, files: &Path) -> Result<Shell> {
    // An answer of HTTP that is an error makes curl fail, and its body is shown. Progress is for
    // terminals.
    fs::write(directory.join(".curlrc"), "silent\nfail-with-body\n")?;
    let modules = peers::directory().join("node/node_modules");
    std::os::unix::fs::symlink(modules, work.join("node_modules"))?;
    std::os::unix::fs::symlink(repository().join("examples"), work.join("examples"))?;
    let binary = dunlin_binary()?;
    let programs = binary.parent().context("a directory")?;
    let python = peers::directory().join("python/bin");
    let etcd = peers::directory().join("etcd/bin");
    let usual = peers::search_path();
    let path = env::join_paths(
        [programs, &python, &etcd].into_iter().map(Path::to_owned).chain(env::split_paths(&usual)),
    )?;
    let path = path.to_string_lossy().into_owned();
    let home = directory.to_string_lossy().into_owned();
    // The build cache is the one that scripts/install-peers has filled.
    let variables = [
        ("PATH", &*path),
        ("CURL_HOME", &*home),
        ("CGO_ENABLED", "0"),
        ("GOFLAGS", "-trimpath -mod=mod"),
        ("LC_ALL", "C.UTF-8"),
    ];
    Shell::start(work, files, &variables)
}

impl Follower<'_> {
    fn take(&mut self, step: &Step) -> Result<()> {
        let mut step = step.clone();
        for (shown, came) in &self.numbers {
            step.text = step.text.replace(shown, came);
        }
        self.take_as_is(&step)
    }

    fn take_as_is(&mut self, step: &Step) -> Result<()> {
        match &step.kind {
            Kind::File(name) => Ok(fs::write(self.directory.join(name), &step.text)?),
            Kind::Redis(prompt) => self.ask(prompt, step),
            Kind::Program(language) => self.program(language, step),
            Kind::Shell => {
                let command = lists::with_stand_ins(self.page, &step.text);
                if is_server(&command) {
                    return self.start_server(&command);
                }
                if goes_on(&command) {
                    let stream = self.shell.run_on(command.trim_end_matches('&'))?;
                    // A stream begins with its position, a subscription with its confirmation.
                    let is_begun = |output: &str| !output.is_empty() || command.ends_with('&');
                    stream.wait_for("the stream does not begin", is_begun)?;
                    self.streams.push((step.clone(), stream));
                    return Ok(());
                }
                let (output, code) = self.shell.run(&command)?;
                self.compare(step, &output)?;
                ensure!(code == 0 || !step.shown.is_empty(), "exit code {code}:\n{output}");
                Ok(())
            }
        }
    }

    /// Starts a server in the place of one with the same port.
    fn start_server(&mut self, command: &str) -> Result<()> {
        let ports = ports(command);
        let (old, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.servers)
            .into_iter()
            .partition(|(own, _)| own.iter().any(|port| ports.contains(port)));
        self.servers = others;
        for (_, server) in old {
            server.end()?;
        }
        self.clients.clear();
        let server = self.shell.run_on(command)?;
        server.wait_for("the server does not become ready", |log| {
            log.contains("Ready to accept connections")
        })?;
        self.servers.push((ports, server));
        Ok(())
    }

    /// Sends a command over the connection of this prompt.
    fn ask(&mut self, prompt: &str, step: &Step) -> Result<()> {
        if !self.clients.contains_key(prompt) {
            let (host, port, password) = lists::server_of_prompt(self.page, prompt);
            let mut client = Client::connect_to(host, port)?;
            if let Some(password) = password {
                client.call(&["AUTH", password])?;
            }
            self.clients.insert(prompt.to_owned(), client);
        }
        let client = self.clients.get_mut(prompt).context("it was made above")?;
        let reply = client.call(&quoting::split(&step.text)?)?;
        let output = notation::lines(&reply).join("\n");
        self.compare(step, &output)?;
        ensure!(!reply.is_error() || !step.shown.is_empty(), "{output}");
        Ok(())
    }

    fn program(&mut self, language: &str, step: &Step) -> Result<()> {
        self.programs += 1;
        let folder = self.directory.join(format!("program-{}", self.programs));
        fs::create_dir_all(&folder)?;
        let (file, command) = match language {
            "python" => ("program.py", "python3 program.py"),
            "js" => ("program.mjs", "node program.mjs"),
            "java" => ("Program.java", "java -XX:TieredStopAtLevel=1 -cp \"$JARS/*\" Program.java"),
            _ => ("main.go", "go run ."),
        };
        fs::write(folder.join(file), &step.text)?;
        if language == "go" {
            // The modules that an example has, and that are on this machine therefore.
            for name in ["go.mod", "go.sum"] {
                fs::copy(repository().join("examples/read-api-go").join(name), folder.join(name))?;
            }
        }
        let jars = peers::directory().join("jedis");
        let (folder, jars) = (folder.display(), jars.display());
        let (output, code) =
            self.shell.run(&format!("( cd {folder} && export JARS={jars} && {command} )"))?;
        self.compare(step, &output)?;
        ensure!(code == 0, "exit code {code}:\n{output}");
        Ok(())
    }

    /// Output counts where the page shows some.
    fn compare(&mut self, step: &Step, output: &str) -> Result<()> {
        let right = step.shown.is_empty() || is_as_shown(&step.shown, output, false);
        ensure!(right, "the page shows\n{}\nand this came:\n{output}", step.shown.join("\n"));
        self.numbers.extend(numbers_in_place(&step.shown, output));
        Ok(())
    }

    /// Looks at what went on until the end.
    fn finish(self) -> Vec<String> {
        let mut failures = Vec::new();
        for (step, stream) in self.streams {
            let fits = |output: &str| is_as_shown(&step.shown, output, true);
            if let Err(error) = stream.wait_for("not as shown", fits) {
                failures.push(format!("{}:{}: {}\n{error:#}", self.page, step.line, step.text));
            }
        }
        failures
    }
}

fn is_server(command: &str) -> bool {
    let mut words = command.split_whitespace();
    match words.next() {
        Some("redis-server" | "valkey-server") => true,
        Some("dunlin") => words.next().is_none_or(|word| {
            matches!(word, "serve" | "container") || word.starts_with("--") && word != "--version"
        }),
        _ => false,
    }
}

/// Whether a command ends only with its connection.
fn goes_on(command: &str) -> bool {
    let words: Vec<String> = command.split_whitespace().map(str::to_ascii_lowercase).collect();
    let listens = |word: &String| matches!(&**word, "subscribe" | "psubscribe" | "monitor");
    match words.first().map(String::as_str) {
        Some("curl") => command.contains(" -N "),
        Some("redis-cli") => words.iter().any(listens),
        Some("dunlin") => words.iter().any(|word| word == "agent"),
        _ => command.ends_with('&'),
    }
}

/// The addresses that a server takes, as far as two servers of a page contend for them.
fn ports(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let value = |name: &str| words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
    let host = value("--bind").unwrap_or("127.0.0.1");
    let port = value("--port").unwrap_or("6379");
    let encrypted = value("--tls-port").into_iter();
    encrypted
        .chain([port])
        .filter(|port| *port != "0")
        .map(|port| format!("{host}:{port}"))
        .collect()
}
