//! A cluster on this machine: an etcd and nodes, for as long as this program runs.

use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use base::clock::monotonic_ms;
use lab::targets::Interrupt;
use lab::targets::process::Process;

use crate::members;
use crate::options::{Dev, Options};
use crate::print::say;
use crate::record::Store;
use crate::trouble::Trouble;

/// etcd's ports are so far behind the first node's.
const ETCD_OFFSET: u16 = 1000;
/// How long processes may take to end when they are asked to.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often this program looks whether all of them run.
const TICK: Duration = Duration::from_millis(100);
/// How long a process that has ended stays away, so that the cluster is seen without it.
const AWAY_TICKS: u32 = 30;

/// In a node's directory: how it reaches an etcd that was there before.
const SETTINGS_FILE: &str = "etcd.conf";

/// One of the programs.
struct Own {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    directory: PathBuf,
    /// What its [`SETTINGS_FILE`] says, if it has one.
    settings: Vec<u8>,
    process: Option<Process>,
    /// For how many ticks it has been away.
    away: u32,
}

impl Own {
    fn start(&mut self) -> Result<(), Trouble> {
        let failed = |error: io::Error| format!("{}: {error}", self.name);
        fs::create_dir_all(&self.directory).map_err(failed)?;
        if !self.settings.is_empty() {
            write_secret(&self.directory.join(SETTINGS_FILE), &self.settings).map_err(failed)?;
        }
        let process = Process::start(&self.program, &self.arguments, &self.directory);
        self.process = Some(process.map_err(failed)?);
        self.away = 0;
        Ok(())
    }

    /// What is said of it, if it has ended by itself.
    fn has_ended(&mut self) -> Option<String> {
        let ending = self.process.as_mut()?.ending()?;
        Some(format!("{} has ended: {ending}; {}", self.name, self.log()))
    }

    fn log(&self) -> String {
        self.directory.join("server.log").display().to_string()
    }
}

/// Writes a file that nobody else may read, nor go on reading who has opened the one before.
fn write_secret(path: &Path, text: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text)
}

/// Carries out `dunlin cluster dev`.
pub(crate) fn run(options: &Options, dev: &Dev) -> Result<(), Trouble> {
    let count = dev.shards.saturating_mul(dev.replicas.saturating_add(1));
    let last = u16::try_from(count).ok().and_then(|count| dev.port.checked_add(count - 1));
    let etcd_port = dev.port.checked_add(ETCD_OFFSET);
    let ports = last.zip(etcd_port).filter(|(last, etcd)| last < etcd && *etcd < u16::MAX);
    let (last, etcd_port) = ports.ok_or_else(|| {
        format!("there are no {count} ports for nodes behind {}, and two for etcd", dev.port)
    })?;
    let mut options = options.clone();
    let program = if dev.has_etcd { None } else { Some(etcd_program(dev)?) };
    if program.is_some() {
        options.etcd.endpoints = vec![format!("http://127.0.0.1:{etcd_port}")];
    }
    let all = plan(&options, dev, program.as_deref(), (last, etcd_port))?;
    if options.dry_run {
        for own in &all {
            say(&format!("{} {}", own.program.display(), own.arguments.join(" ")));
        }
        return Ok(());
    }
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut ports =
        (dev.port..=last).chain(program.iter().flat_map(|_| [etcd_port, etcd_port + 1]));
    if let Some(port) = ports.find(|port| !free(*port)) {
        return Err(Trouble::Failed(format!("port {port} is in use: choose others with --port")));
    }
    let interrupt = Interrupt::by_signals().map_err(|error| error.to_string())?;
    let mut all = all;
    let served = serve(&options, dev, &mut all, &interrupt);
    end(&mut all);
    served
}

/// The programs and how they are started, etcd first.
fn plan(
    options: &Options,
    dev: &Dev,
    etcd: Option<&Path>,
    (last, etcd_port): (u16, u16),
) -> Result<Vec<Own>, Trouble> {
    let directory = std::path::absolute(&dev.directory)
        .map_err(|error| format!("{}: {error}", dev.directory.display()))?;
    let mut all = Vec::new();
    let mut add = |name: String, program: &Path, arguments: &[String], settings: Vec<u8>| {
        all.push(Own {
            directory: directory.join(&name),
            name,
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            settings,
            process: None,
            away: 0,
        });
    };
    if let Some(program) = etcd {
        let client = format!("http://127.0.0.1:{etcd_port}");
        let peer = format!("http://127.0.0.1:{}", etcd_port + 1);
        let arguments = [
            ("--name", "dev".to_owned()),
            ("--data-dir", directory.join("etcd/data").display().to_string()),
            ("--listen-client-urls", client.clone()),
            ("--advertise-client-urls", client),
            ("--listen-peer-urls", peer.clone()),
            ("--initial-advertise-peer-urls", peer.clone()),
            ("--initial-cluster", format!("dev={peer}")),
        ];
        let arguments: Vec<_> =
            arguments.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect();
        add("etcd".to_owned(), program, &arguments, Vec::new());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    for port in dev.port..=last {
        let name = format!("node-{port}");
        let settings = if etcd.is_none() { settings_of_etcd(options) } else { Vec::new() };
        let mut arguments = vec!["serve".to_owned()];
        if !settings.is_empty() {
            arguments.push(directory.join(&name).join(SETTINGS_FILE).display().to_string());
        }
        for (option, value) in [
            ("--bind", "127.0.0.1".to_owned()),
            ("--port", port.to_string()),
            ("--http-port", "0".to_owned()),
            ("--dir", directory.join(&name).display().to_string()),
            ("--appendonly", "yes".to_owned()),
            ("--cluster-enabled", "yes".to_owned()),
            ("--cluster-name", options.name.clone()),
            ("--cluster-etcd", options.etcd.endpoints.join(",")),
            ("--cluster-announce-ip", "127.0.0.1".to_owned()),
        ] {
            arguments.extend([option.to_owned(), value]);
        }
        arguments.extend(dev.options.iter().cloned());
        add(name, &own, &arguments, settings);
    }
    Ok(all)
}

/// How nodes reach an etcd that runs, as lines of a file: a command line can be read by all.
fn settings_of_etcd(options: &Options) -> Vec<u8> {
    let own = &options.etcd;
    let path = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.as_os_str().as_bytes().to_vec()
    };
    let mut all = Vec::new();
    if let Some((name, password)) = &own.user {
        all.push(("user", name.clone().into_bytes()));
        all.push(("password", password.clone().into_bytes()));
    }
    let trust = &own.tls.trust;
    all.extend(trust.file.as_ref().or(trust.directory.as_ref()).map(|at| ("ca-file", path(at))));
    if let Some(identity) = &own.tls.identity {
        all.push(("cert-file", path(&identity.certificate)));
        all.push(("key-file", path(&identity.key)));
    }
    let mut lines = Vec::new();
    for (name, value) in all {
        lines.extend(format!("cluster-etcd-{name} ").into_bytes());
        lines.extend(config::quote(&value));
        lines.push(b'\n');
    }
    lines
}

/// Where etcd is.
fn etcd_program(dev: &Dev) -> Result<PathBuf, Trouble> {
    let is_program = |path: &PathBuf| path.is_file();
    if let Some(path) = &dev.etcd_program {
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        return match is_program(&path) {
            true => Ok(path),
            false => Err(Trouble::Failed(format!("{}: there is no such program", path.display()))),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(is_program);
    found.ok_or_else(|| {
        let text = "there is no etcd in PATH: install it (Debian: apt install etcd-server), or \
                    name it with --etcd-program, or one that runs with --etcd";
        Trouble::Failed(text.to_owned())
    })
}

fn serve(
    options: &Options,
    dev: &Dev,
    all: &mut [Own],
    interrupt: &Interrupt,
) -> Result<(), Trouble> {
    for own in all.iter_mut() {
        own.start()?;
    }
    let store = Store::open(options)?;
    // An etcd that has just begun answers nobody yet.
    let until = monotonic_ms() + PATIENCE.as_millis() as u64;
    while let Err(trouble) = store.read() {
        if interrupt.is_set() {
            return Ok(());
        }
        if monotonic_ms() >= until {
            return Err(trouble);
        }
        sleep(TICK);
    }
    let sure = Options { yes: true, ..options.clone() };
    let nodes: Vec<String> = all
        .iter()
        .filter_map(|own| own.name.strip_prefix("node-"))
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let created = std::thread::scope(|scope| {
        let creating = scope.spawn(|| members::create(&store, &sure, &nodes, dev.replicas));
        let mut ended = None;
        while !creating.is_finished() {
            ended = ended.or_else(|| all.iter_mut().find_map(Own::has_ended));
            if ended.is_some() || interrupt.is_set() {
                store.give_up();
            }
            sleep(TICK);
        }
        let created = creating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map_or(created, |text| Err(Trouble::Failed(text)))
    });
    if interrupt.is_set() {
        return Ok(());
    }
    created?;
    tell(options, dev, all);
    while !interrupt.is_set() {
        sleep(TICK);
        for own in all.iter_mut() {
            look_after(own)?;
        }
    }
    Ok(())
}

fn tell(options: &Options, dev: &Dev, all: &[Own]) {
    let (port, etcd) = (dev.port, options.etcd.endpoints.join(","));
    for own in all {
        let id = own.process.as_ref().map(|process| process.id().to_string());
        say(&format!("{} runs as process {}", own.name, id.unwrap_or_default()));
    }
    say(&format!(
        "\nData and logs are in {}. To look at it and to use it:\n\n  \
         dunlin cli -c -p {port}\n  redis-cli -c -p {port}\n  \
         dunlin cluster status --etcd {etcd} --name {}\n\n\
         Kill a node to see another one take over; it is started again after some seconds. Ctrl-C \
         ends all of them.",
        dev.directory.display(),
        options.name
    ));
}

/// Starts a program again that has ended, a while later.
fn look_after(own: &mut Own) -> Result<(), Trouble> {
    match &own.process {
        Some(_) => {
            if let Some(text) = own.has_ended() {
                say(&text);
                own.process = None;
            }
        }
        None => {
            own.away += 1;
            if own.away >= AWAY_TICKS {
                own.start()?;
                let id = own.process.as_ref().map(Process::id).unwrap_or_default();
                say(&format!("{} runs again, as process {id}", own.name));
            }
        }
    }
    Ok(())
}

/// Ends all nodes at once, and then etcd, in which they tell each other that they go.
fn end(all: &mut [Own]) {
    let (etcd, nodes): (Vec<_>, Vec<_>) = all.iter_mut().partition(|own| own.name == "etcd");
    std::thread::scope(|scope| {
        for own in nodes {
            scope.spawn(move || {
                if let Some(process) = &mut own.process {
                    process.terminate(PATIENCE);
                }
            });
        }
    });
    for own in etcd {
        if let Some(process) = &mut own.process {
            process.terminate(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_reads_the_password_of_etcd_where_a_file_was_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(SETTINGS_FILE);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::File::open(&path).unwrap();
        let mut own = Own {
            name: "node-1".to_owned(),
            program: "/bin/true".into(),
            arguments: Vec::new(),
            directory: directory.path().to_owned(),
            settings: b"secret".to_vec(),
            process: None,
            away: 0,
        };
        own.start().unwrap();
        let rights = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        assert_eq!((rights, io::read_to_string(before).unwrap().as_str()), (0o600, ""));
    }
}
