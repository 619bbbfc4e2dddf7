//! The package on a system that runs: its units under a real systemd, in namespaces of their own.
//!
//! Only root may boot such a system, and `scripts/install-peers` brings it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, Write, stderr};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use tests::client::{Client, Reply};
use tests::observe::wait_until;
use tests::peers;
use tests::server::repository;

use crate::{SKIPPED, make_package, succeeded, text};

/// What boots the system in a directory.
fn boot_root(root: &Path) -> Command {
    let mut command = Command::new(repository().join("tests/tests/packages/boot-root"));
    command.arg(root);
    command
}

/// Says that this test boots nothing, past the capture of its output: a reader must not take it for
/// having run.
fn skip(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    let _ = writeln!(stderr(), "SKIPPED {test}: no system was booted: {}", reason.trim_end());
}

/// A system whose first process is systemd; dropping it ends all of its processes.
struct Booted {
    boot: Child,
    first: u32,
}

impl Booted {
    /// `None` where there is none to be had, for the reason that was printed.
    fn new() -> Result<Option<Booted>> {
        let made = peers::directory().join("booted");
        if !made.exists() {
            skip("there is no system to boot: scripts/install-peers makes one, for root");
            return Ok(None);
        }
        let mut command = boot_root(&made);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut said = tempfile::tempfile()?;
        let mut boot = command.stderr(said.try_clone()?).spawn()?;
        let mut line = String::new();
        BufReader::new(boot.stdout.take().context("an output")?).read_line(&mut line)?;
        let Ok(first) = line.trim().parse() else {
            let (status, mut reason) = (boot.wait()?, String::new());
            said.rewind()?;
            said.read_to_string(&mut reason)?;
            ensure!(status.code() == Some(SKIPPED), "{status}: {reason}");
            skip(&reason);
            return Ok(None);
        };
        let booted = Booted { boot, first };
        wait_until("a system that runs", || {
            let state = booted.command(&["systemctl", "is-system-running"]).output()?;
            Ok(matches!(text(&state.stdout).trim(), "running" | "degraded"))
        })?;
        Ok(Some(booted))
    }

    /// A file of the system.
    fn path(&self, inner: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inner}", self.first))
    }

    fn put(&self, file: &str, content: &str) -> Result<()> {
        let path = self.path(file);
        fs::create_dir_all(path.parent().context("a directory")?)?;
        fs::write(&path, content).with_context(|| file.to_owned())
    }

    /// A file that the service may write to, as the administrator makes it.
    fn put_own(&self, file: &str, content: &str) -> Result<()> {
        self.put(file, content)?;
        self.run(&["chown", "dunlin:dunlin", file])?;
        self.run(&["chmod", "0640", file]).map(drop)
    }

    /// Adds lines to the configuration that the package has installed.
    fn configure(&self, lines: &str) -> Result<()> {
        let path = self.path("/etc/dunlin/dunlin.conf");
        Ok(fs::OpenOptions::new().append(true).open(path)?.write_all(lines.as_bytes())?)
    }

    fn drop_in(&self, lines: &str) -> Result<()> {
        let file = "/etc/systemd/system/dunlin.service.d/own.conf";
        self.put(file, &format!("[Service]\n{lines}"))?;
        self.systemctl("daemon-reload").map(drop)
    }

    /// Owner, group and mode, as names and a number.
    fn owner(&self, file: &str) -> Result<String> {
        Ok(self.run(&["stat", "-c", "%U:%G %a", file])?.trim().to_owned())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first.to_string(), "--all", "--root", "--wd"]);
        command.args(["env", "-i", "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        command.arg("DEBIAN_FRONTEND=noninteractive").args(words).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        succeeded(self.command(words).output()?).with_context(|| format!("{words:?}"))
    }

    fn systemctl(&self, words: &str) -> Result<String> {
        let words: Vec<&str> = ["systemctl"].into_iter().chain(words.split(' ')).collect();
        self.run(&words)
    }

    fn show(&self, unit: &str, property: &str) -> Result<String> {
        Ok(self.run(&["systemctl", "show", "-P", property, unit])?.trim().to_owned())
    }

    fn is_active(&self, unit: &str) -> Result<bool> {
        Ok(self.show(unit, "ActiveState")? == "active")
    }

    /// What the processes of a unit have said, of this priority and above, without what systemd
    /// says about them.
    fn said(&self, unit: &str, priority: &str) -> Result<String> {
        self.run(&["journalctl", "--sync"])?;
        let unit = format!("_SYSTEMD_UNIT={unit}.service");
        self.run(&["journalctl", "-q", "--no-pager", "-o", "cat", "-p", priority, &unit])
    }

    fn install(&self, package: &Path) -> Result<()> {
        fs::copy(package, self.path("/package.deb"))?;
        self.run(&["dpkg", "--force-unsafe-io", "-i", "/package.deb"]).map(drop)
    }

    /// Waits until systemd has started the server again, so many times in all.
    fn wait_for_restart(&self, number: u32) -> Result<()> {
        wait_until("a server that was started again", || {
            let restarts: u32 = self.show("dunlin", "NRestarts")?.parse()?;
            Ok(restarts >= number && self.is_active("dunlin")?)
        })
    }

    /// Moves this thread into the network of the system.
    fn join(&self) -> Result<()> {
        let file = fs::File::open(format!("/proc/{}/ns/net", self.first))?;
        Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        // The end of its input ends it, and it ends by itself in any case.
        drop(self.boot.stdin.take());
        let _ = self.boot.wait();
    }
}

/// Boots a system, and tries something from within its network.
fn boot(attempt: impl FnOnce(&Booted) -> Result<()> + Send) -> Result<()> {
    let Some(booted) = Booted::new()? else { return Ok(()) };
    let tried = thread::scope(|scope| {
        let inside = scope.spawn(|| {
            booted.join()?;
            attempt(&booted)
        });
        inside.join()
    });
    let Ok(tried) = tried else { bail!("a panic") };
    tried.with_context(|| booted.run(&["journalctl", "--no-pager", "-n", "60"]).unwrap_or_default())
}

/// The same on one on which the package is installed, and the service stopped.
fn boot_installed(attempt: impl FnOnce(&Booted) -> Result<()> + Send) -> Result<()> {
    static PACKAGE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let make = || -> Result<PathBuf> {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = tempfile::tempdir_in(place)?;
        let (made, package) = (make_package(directory.path(), "7.0.0")?, place.join("dunlin.deb"));
        fs::rename(made, &package)?;
        Ok(package)
    };
    // Made before a system runs, whose time is limited.
    let package = match PACKAGE.get_or_init(|| make().map_err(|error| error.to_string())) {
        Ok(package) => package,
        Err(error) => bail!("{error}"),
    };
    boot(|system| {
        system.install(package)?;
        system.systemctl("stop dunlin")?;
        attempt(system)
    })
}

/// Sends commands to a server that serves, none of which may fail.
fn succeed(port: u16, commands: &[&str]) -> Result<()> {
    let mut client = Client::connect(port)?;
    for command in commands {
        let reply = client.call_text(command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
    }
    Ok(())
}

fn get(port: u16, key: &str) -> Result<String> {
    let reply = Client::connect(port)?.call(&["GET", key])?;
    ensure!(!reply.is_error(), "{reply:?}");
    Ok(text(reply.text().unwrap_or_default()))
}

/// Whether a server proves by a certificate of this authority who it is.
fn is_proved(port: u16, authority: &Path) -> Result<bool> {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &format!("127.0.0.1:{port}")]);
    command.arg("-CAfile").arg(authority).arg("-verify_return_error");
    let output = command.stdin(Stdio::null()).output()?;
    Ok(text(&output.stdout).contains("Verify return code: 0 (ok)"))
}

/// Only missing rights are a reason to boot nothing.
#[test]
fn a_system_that_does_not_start_is_a_failure() -> Result<()> {
    let root = tempfile::tempdir()?;
    fs::create_dir(root.path().join("mnt"))?;
    let output = boot_root(root.path()).stdin(Stdio::null()).output()?;
    let reason = text(&output.stderr);
    if output.status.code() == Some(SKIPPED) {
        ensure!(reason.contains("can be made") || reason.contains("there are no"), "{reason}");
        skip(&reason);
        return Ok(());
    }
    ensure!(output.status.code() == Some(1), "{}: {reason}", output.status);
    ensure!(reason.contains("proc") && reason.contains("the system has not started"), "{reason}");
    Ok(())
}

#[test]
fn a_running_system_starts_what_is_installed_and_stops_what_is_removed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let [first, second] = ["7.0.0", "7.1.0"].map(|own| make_package(directory.path(), own));
    let (first, second) = (first?, second?);
    boot(|system| {
        system.install(&first)?;
        ensure!(system.is_active("dunlin")? && system.systemctl("is-enabled dunlin").is_ok());
        succeed(6379, &["SET key value"])?;
        let before = system.show("dunlin", "MainPID")?;
        system.install(&second)?;
        ensure!(system.is_active("dunlin")? && system.show("dunlin", "MainPID")? != before);
        ensure!(get(6379, "key")? == "value", "an upgrade keeps the data");

        system.put_own("/etc/dunlin/one.conf", "port 6400\nhttp-port 0\n")?;
        // As docs/backup.md says.
        system.run(&["install", "-d", "-o", "dunlin", "-g", "dunlin", "-m", "0750", "/backup"])?;
        let environment = "DUNLIN_BACKUP_FROM=redis://127.0.0.1:6379\n\
            DUNLIN_BACKUP_TO=/backup\nDUNLIN_BACKUP_OPTIONS=--base-every 1d --keep-days 7\n";
        system.put("/etc/dunlin/backup-main.env", environment)?;
        system.systemctl("start dunlin@one dunlin-backup@main")?;
        ensure!(Client::connect(6400)?.call(&["PING"])? == Reply::Status(b"PONG".to_vec()));
        wait_until("a base", || {
            let list = ["dunlin", "backup", "--to", "/backup", "--list", "--json"];
            let output = system.command(&list).output()?;
            let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            Ok(listed["lines"][0]["bases"].as_array().is_some_and(|bases| !bases.is_empty()))
        })?;
        let services = ["dunlin", "dunlin@one", "dunlin-backup@main"];
        for service in services {
            ensure!(system.is_active(service)?, "{service}");
        }
        system.run(&["dpkg", "-r", "dunlin"])?;
        for service in services {
            ensure!(!system.is_active(service)?, "{service} runs without its program");
        }
        ensure!(system.owner("/var/lib/dunlin/dump.rdb").is_ok(), "the data stays");
        Ok(())
    })
}

/// `systemctl` returns when the server is ready, or has saved. systemd gives up a service that has
/// not started or stopped in time, and time is given to one that loads or saves.
#[test]
fn starts_and_stops_take_the_time_that_the_data_needs() -> Result<()> {
    boot_installed(|system| {
        system.configure("\nkey-load-delay 1000\nrdb-key-save-delay 1000\n")?;
        system.drop_in("TimeoutStartSec=3\nTimeoutStopSec=3\n")?;
        system.systemctl("start dunlin")?;
        ensure!(system.show("dunlin", "StatusText")? == "Ready to accept connections");
        let fill = "for i = 1, 5000 do redis.call('SET', i, 'value') end";
        let filled = Client::connect(6379)?.call(&["EVAL", fill, "0"])?;
        ensure!(!filled.is_error(), "{filled:?}");
        system.systemctl("stop dunlin")?;
        ensure!(system.show("dunlin", "ActiveState")? == "inactive");
        ensure!(system.show("dunlin", "Result")? == "success");
        ensure!(system.owner("/var/lib/dunlin")? == "dunlin:dunlin 750");
        ensure!(system.owner("/var/lib/dunlin/dump.rdb")? == "dunlin:dunlin 640");

        let start = system.command(&["systemctl", "start", "dunlin"]).spawn()?;
        wait_until("a load", || {
            Ok(system.show("dunlin", "StatusText")?.starts_with("Loading data: "))
        })?;
        ensure!(system.show("dunlin", "ActiveState")? == "activating");
        succeeded(start.wait_with_output()?)?;
        // Not even for a moment is it refused because data is loaded.
        ensure!(get(6379, "5000")? == "value");
        ensure!(system.is_active("dunlin")? && system.show("dunlin", "NRestarts")? == "0");
        Ok(())
    })
}

#[test]
fn a_server_that_dies_or_hangs_is_started_again() -> Result<()> {
    boot_installed(|system| {
        system.drop_in("WatchdogSec=4\n")?;
        system.systemctl("start dunlin")?;
        succeed(6379, &["SET key value", "SAVE"])?;
        system.systemctl("kill --signal=KILL dunlin")?;
        system.wait_for_restart(1)?;
        ensure!(get(6379, "key")? == "value");
        let errors = system.said("dunlin", "err")?;
        ensure!(errors.is_empty(), "nothing went wrong with it: {errors}");
        let warnings = system.said("dunlin", "warning")?;
        let all = system.said("dunlin", "notice")?;
        ensure!(warnings.lines().count() > 0 && warnings.lines().all(|line| line.contains(" # ")));
        ensure!(all.lines().count() > warnings.lines().count(), "{all}");

        system.systemctl("kill --signal=STOP dunlin")?;
        system.wait_for_restart(2)?;
        ensure!(get(6379, "key")? == "value");
        let told = system.run(&["journalctl", "-q", "--no-pager", "-u", "dunlin"])?;
        ensure!(told.contains("Watchdog timeout"), "{told}");
        let report = system.said("dunlin", "crit")?;
        ensure!(report.contains("BUG REPORT") && report.contains("SIGABRT"), "{report}");

        system.configure("\nno-such-directive yes\n")?;
        ensure!(system.systemctl("restart dunlin").is_err());
        let errors = system.said("dunlin", "err")?;
        ensure!(errors.contains("no-such-directive"), "{errors}");
        ensure!(!errors.contains(" # ") && !errors.contains(" * "), "{errors}");
        Ok(())
    })
}

#[test]
fn a_reload_reads_certificates_again() -> Result<()> {
    let renew = |system: &Booted, to: &str| -> Result<()> {
        system.run(&["dunlin", "tls", "dev", to])?;
        system.run(&["mkdir", "-p", "/etc/dunlin/tls"])?;
        for file in ["server.crt", "server.key", "ca.crt"] {
            let (from, to) = (format!("{to}/{file}"), format!("/etc/dunlin/tls/{file}"));
            system.run(&["install", "-o", "dunlin", "-g", "dunlin", "-m", "0640", &from, &to])?;
        }
        Ok(())
    };
    boot_installed(|system| {
        let authority = |name: &str| system.path(&format!("/root/{name}/ca.crt"));
        renew(system, "/root/first")?;
        system.configure(
            "\ntls-port 6380\ntls-auth-clients no\ntls-cert-file /etc/dunlin/tls/server.crt\n\
             tls-key-file /etc/dunlin/tls/server.key\ntls-ca-cert-file /etc/dunlin/tls/ca.crt\n",
        )?;
        system.systemctl("start dunlin")?;
        ensure!(is_proved(6380, &authority("first"))?);
        renew(system, "/root/second")?;
        ensure!(!is_proved(6380, &authority("second"))?);
        system.systemctl("reload dunlin")?;
        wait_until("a new certificate", || is_proved(6380, &authority("second")))?;
        wait_until("the end of a reload", || system.is_active("dunlin"))?;
        ensure!(system.show("dunlin", "StatusText")? == "Ready to accept connections");
        Ok(())
    })
}

/// Secrets as docs/systemd.md shows them.
fn give_secrets(system: &Booted) -> Result<()> {
    let secret = "/etc/dunlin/secrets/requirepass";
    system.put(secret, "geheim\n")?;
    system.run(&["chmod", "0700", "/etc/dunlin/secrets"])?;
    system.run(&["chmod", "0600", secret])?;
    system.run(&["dunlin", "tls", "dev", "/root/tls"])?;
    let encrypted = "/etc/credstore.encrypted/dunlin.key";
    system.run(&["mkdir", "-p", "/etc/credstore.encrypted"])?;
    let encrypt = ["systemd-creds", "encrypt", "--with-key=host", "--name=tls-key-file"];
    system.run(&[&encrypt[..], &["/root/tls/server.key", encrypted]].concat())?;
    system.run(&["rm", "/root/tls/server.key"])?;
    system.drop_in(&format!(
        "LoadCredential=requirepass:{secret}\n\
         LoadCredentialEncrypted=tls-key-file:{encrypted}\n\
         LoadCredential=tls-cert-file:/root/tls/server.crt\n\
         LoadCredential=tls-ca-cert-file:/root/tls/ca.crt\n",
    ))
}

/// Sockets as the example says that they are made.
fn give_sockets(system: &Booted) -> Result<()> {
    let example = system.path("/usr/share/doc/dunlin/examples/dunlin.socket");
    let example = fs::read_to_string(example)?;
    for (unit, port, name) in
        [("dunlin", 6379, "plain"), ("dunlin-http", 80, "http"), ("dunlin-tls", 6380, "tls")]
    {
        let socket = example
            .replace("127.0.0.1:6379", &format!("127.0.0.1:{port}"))
            .replace("=plain", &format!("={name}"))
            .replace("[Socket]\n", "[Socket]\nService=dunlin.service\n");
        system.put(&format!("/etc/systemd/system/{unit}.socket"), &socket)?;
    }
    system.systemctl("daemon-reload").map(drop)
}

/// A client that knows the password.
fn known() -> Result<Client> {
    let mut client = Client::connect(6379)?;
    ensure!(!client.call(&["AUTH", "geheim"])?.is_error());
    Ok(client)
}

#[test]
fn systemd_gives_secrets_and_sockets() -> Result<()> {
    boot_installed(|system| {
        system.configure("\ntls-auth-clients no\n")?;
        give_secrets(system)?;
        give_sockets(system)?;
        system.systemctl("start dunlin.socket dunlin-http.socket dunlin-tls.socket")?;
        ensure!(!system.is_active("dunlin")?);
        // The first client starts the server.
        ensure!(Client::connect(6379)?.call(&["PING"])?.is_error(), "it wants a password");
        ensure!(!known()?.call(&["SET", "key", "value"])?.is_error());
        ensure!(system.is_active("dunlin")?);
        ensure!(is_proved(6380, &system.path("/root/tls/ca.crt"))?);
        let mut page = TcpStream::connect(("127.0.0.1", 80))?;
        page.write_all(b"GET /healthz HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        page.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

        // No client is refused while the server starts again.
        let is_over = AtomicBool::new(false);
        let connected = thread::scope(|scope| {
            let clients = scope.spawn(|| -> Result<usize> {
                let mut connected = 0;
                while !is_over.load(Ordering::Relaxed) {
                    TcpStream::connect(("127.0.0.1", 6379))?;
                    connected += 1;
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(connected)
            });
            let restarted = system.systemctl("restart dunlin");
            is_over.store(true, Ordering::Relaxed);
            restarted.map(|_| clients.join())
        })?;
        let Ok(connected) = connected else { bail!("a panic") };
        ensure!(connected? > 0);
        ensure!(known()?.call(&["GET", "key"])? == Reply::Bulk(b"value".to_vec()));
        // A stop lasts until the next client comes.
        system.systemctl("stop dunlin")?;
        ensure!(!system.is_active("dunlin")?);
        ensure!(known()?.call(&["GET", "key"])? == Reply::Bulk(b"value".to_vec()));
        Ok(())
    })
}

fn exposure(output: &Output) -> Result<f64> {
    let report = text(&output.stdout);
    let level = report.lines().last().and_then(|line| line.split(": ").nth(1));
    let level = level.and_then(|rest| rest.split(' ').next()).with_context(|| report.clone())?;
    Ok(level.parse()?)
}

/// A Sentinel that runs as a service promotes a replica that runs as one, which takes note of it in
/// its configuration: its guards let it.
#[test]
fn a_second_server_and_a_sentinel_are_services_too() -> Result<()> {
    boot_installed(|system| {
        let replica = "port 6400\nhttp-port 0\nreplicaof 127.0.0.1 6379\n\
            logfile /var/log/dunlin-one/own.log\nunixsocket /run/dunlin-one/own.sock\n";
        system.put_own("/etc/dunlin/one.conf", replica)?;
        let sentinel = "port 26379\nsentinel monitor it 127.0.0.1 6379 1\n\
            sentinel down-after-milliseconds it 1000\nsentinel failover-timeout it 5000\n";
        system.put_own("/var/lib/dunlin-sentinel-one/sentinel.conf", sentinel)?;
        system.run(&["chown", "dunlin:dunlin", "/var/lib/dunlin-sentinel-one"])?;
        system.systemctl("start dunlin dunlin@one")?;
        succeed(6379, &["SET key value"])?;
        wait_until("a replica", || Ok(get(6400, "key")? == "value"))?;
        for (file, owner) in [
            ("/var/lib/dunlin-one", "dunlin:dunlin 750"),
            ("/var/log/dunlin-one", "dunlin:dunlin 750"),
            ("/var/log/dunlin-one/own.log", "dunlin:dunlin 640"),
        ] {
            let found = system.owner(file)?;
            ensure!(found == owner, "{file}: {found}");
        }
        system.run(&["test", "-S", "/run/dunlin-one/own.sock"])?;
        system.systemctl("start dunlin-sentinel@one")?;
        wait_until("a Sentinel that knows the replica", || {
            let known = Client::connect(26379)?.call(&["SENTINEL", "REPLICAS", "it"])?;
            Ok(known.elements().is_some_and(|known| !known.is_empty()))
        })?;
        for service in ["dunlin", "dunlin@one", "dunlin-sentinel@one"] {
            let unit = format!("{service}.service");
            let output = system.command(&["systemd-analyze", "security", &unit]).output()?;
            let level = exposure(&output)?;
            ensure!(level < 2.0, "{unit}: {level}");
        }
        system.systemctl("stop dunlin")?;
        let file = system.path("/etc/dunlin/one.conf");
        wait_until("a new primary that has taken note of it", || {
            Ok(!fs::read_to_string(&file)?.contains("replicaof"))
        })?;
        ensure!(system.owner("/etc/dunlin/one.conf")? == "dunlin:dunlin 640");
        succeed(6400, &["SET key other"])?;
        system.systemctl("stop dunlin@one dunlin-sentinel@one")?;
        for service in ["dunlin@one", "dunlin-sentinel@one"] {
            ensure!(system.show(service, "Result")? == "success", "{service}");
        }
        Ok(())
    })
}
