//! The shell in which the commands of a page run, one after the other.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long something may take that is to come soon.
const PATIENCE: Duration = Duration::from_secs(20);

/// A reader sees what redis-cli prints on a terminal. Into a pipe it prints what it prints there.
const AS_ON_A_TERMINAL: &str = "redis-cli() { if [ -p /dev/stdout ]; then command redis-cli \"$@\"; \
     else command redis-cli --no-raw \"$@\"; fi; }; echo";

/// A shell that keeps its folder and its variables.
pub(crate) struct Shell {
    _child: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
    files: PathBuf,
    commands: usize,
}

/// A command that goes on while others run.
pub(crate) struct Background {
    pid: u32,
    output: PathBuf,
}

impl Shell {
    /// Starts it in `folder`; its own files are in `files`.
    pub(crate) fn start(folder: &Path, files: &Path, variables: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new("bash")
            .arg("--norc")
            .current_dir(folder)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting bash")?;
        let input = child.stdin.take().context("an input")?;
        let answers = BufReader::new(child.stdout.take().context("an output")?);
        let mut own = Self { _child: child, input, answers, files: files.to_owned(), commands: 0 };
        own.ask(AS_ON_A_TERMINAL)?;
        Ok(own)
    }

    /// Runs a command to its end. Returns what it has printed, and its exit code.
    pub(crate) fn run(&mut self, command: &str) -> Result<(String, i32)> {
        let (script, output) = self.write(command)?;
        let (script, shown) = (script.display(), output.display());
        let answer = self.ask(&format!(". {script} >{shown} 2>&1 </dev/null; echo $?"))?;
        let code = answer.trim().parse().with_context(|| format!("{answer:?} is no exit code"))?;
        Ok((read(&output), code))
    }

    /// Starts a command that does not end by itself.
    pub(crate) fn run_on(&mut self, command: &str) -> Result<Background> {
        let (script, output) = self.write(&format!("exec {command}"))?;
        let (script, shown) = (script.display(), output.display());
        let answer = self.ask(&format!("( . {script} ) >{shown} 2>&1 </dev/null & echo $!"))?;
        Ok(Background { pid: answer.trim().parse().context("a process id")?, output })
    }

    fn write(&mut self, command: &str) -> Result<(PathBuf, PathBuf)> {
        self.commands += 1;
        let script = self.files.join(format!("{}.sh", self.commands));
        let output = self.files.join(format!("{}.out", self.commands));
        fs::write(&script, format!("{command}\n"))?;
        Ok((script, output))
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.input, "{line}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(!answer.is_empty(), "the shell has ended");
        Ok(answer)
    }
}

impl Background {
    /// What it has printed up to now.
    pub(crate) fn output(&self) -> String {
        read(&self.output)
    }

    /// Waits until its output is as wanted.
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let start = Instant::now();
        loop {
            let ended = !self.is_there();
            let output = self.output();
            if wanted(&output) {
                return Ok(());
            }
            if ended || start.elapsed() > PATIENCE {
                bail!("{what}; it {}:\n{output}", if ended { "has ended" } else { "has printed" });
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&self) -> Result<()> {
        let pid = self.pid.to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status()?;
        let start = Instant::now();
        while told.success() && self.is_there() {
            ensure!(start.elapsed() < PATIENCE, "process {pid} does not end:\n{}", self.output());
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Whether it runs. What has ended stays a zombie until the shell looks for it. Its first
    /// thread may be one while others still have its files and sockets.
    fn is_there(&self) -> bool {
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        let stat = read(&process.join("stat"));
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        let threads = fs::read_dir(process.join("task")).map_or(0, Iterator::count);
        state.is_some_and(|state| state != "Z") || threads > 1
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
