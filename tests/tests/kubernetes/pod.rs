//! A pod: its containers as processes, which are probed, started again and ended as a kubelet does.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::namespace::Namespace;

use crate::cluster::Shared;
use crate::images::Image;
use crate::objects::{expanded, list, number, text};
use crate::volumes::Projection;

/// How often a container is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// A container that has ended twice waits this long before it starts again, and twice as long the
/// next time.
const BACK_OFF: Duration = Duration::from_secs(10);

/// What became of a container.
#[derive(Debug, Default)]
struct Standing {
    process: Option<u32>,
    started: bool,
    ready: bool,
    ended: bool,
}

/// A container of a pod.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    spec: Value,
    /// It starts before the others, and ends after them.
    is_sidecar: bool,
    standing: Mutex<Standing>,
    pub(crate) restarts: AtomicU32,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with it")
}

impl Container {
    fn new(spec: &Value, is_sidecar: bool) -> Result<Arc<Container>> {
        Ok(Arc::new(Container {
            name: text(&spec["name"], "name")?.to_owned(),
            spec: spec.clone(),
            is_sidecar,
            standing: Mutex::default(),
            restarts: AtomicU32::new(0),
        }))
    }

    fn stand(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut held(&self.standing));
    }

    /// The port of this name, or this number.
    fn port(&self, port: &Value) -> Result<u16> {
        let number = match port {
            Value::String(name) => {
                let found = list(&self.spec["ports"]).find(|own| own["name"] == **name);
                found.and_then(|own| own["containerPort"].as_u64())
            }
            port => port.as_u64(),
        };
        Ok(u16::try_from(number.context("a port")?)?)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) spec: Value,
    pub(crate) labels: Value,
    pub(crate) address: Ipv4Addr,
    pub(crate) directory: PathBuf,
    /// Volumes by their names, and those that show something that may change.
    pub(crate) volumes: BTreeMap<String, PathBuf>,
    pub(crate) projections: Vec<Projection>,
    pub(crate) pause: Namespace,
    pub(crate) containers: OnceLock<Vec<Arc<Container>>>,
    /// When whatever still runs is killed.
    pub(crate) end: Mutex<Option<Instant>>,
    pub(crate) gone: AtomicBool,
    /// It ends without being asked, as with its machine.
    pub(crate) is_lost: AtomicBool,
    pub(crate) shared: Arc<Shared>,
}

/// A probe of a container.
struct Probe<'c> {
    spec: &'c Value,
    due: Instant,
    successes: u64,
    failures: u64,
}

impl<'c> Probe<'c> {
    fn new(spec: &'c Value) -> Probe<'c> {
        let delay = Duration::from_secs(number(&spec["initialDelaySeconds"], 0));
        Probe { spec, due: Instant::now() + delay, successes: 0, failures: 0 }
    }

    fn is_there(&self) -> bool {
        self.spec.is_object()
    }

    /// Asks, if it is time to. Whether it has failed or succeeded often enough.
    fn look(&mut self, pod: &Pod, container: &Container, process: u32) -> Option<bool> {
        if !self.is_there() || Instant::now() < self.due {
            return None;
        }
        self.due = Instant::now() + Duration::from_secs(number(&self.spec["periodSeconds"], 10));
        let patience = Duration::from_secs(number(&self.spec["timeoutSeconds"], 1));
        match pod.ask(container, process, self.spec, patience) {
            Ok(()) => (self.successes, self.failures) = (self.successes + 1, 0),
            Err(_) => (self.successes, self.failures) = (0, self.failures + 1),
        }
        if self.successes >= number(&self.spec["successThreshold"], 1) {
            return Some(true);
        }
        (self.failures >= number(&self.spec["failureThreshold"], 3)).then_some(false)
    }
}

impl Pod {
    /// The container of this name.
    pub(crate) fn container(&self, name: &str) -> Result<&Arc<Container>> {
        let found = self.containers.get().into_iter().flatten().find(|own| own.name == name);
        found.with_context(|| format!("no container {name}"))
    }

    /// Whether it is one of a Job: it ends when its containers have succeeded.
    fn is_job(&self) -> bool {
        self.spec["restartPolicy"] == "OnFailure"
    }

    /// Whether all its containers are ready, and it is not about to end; of a Job, whether it has
    /// succeeded.
    pub(crate) fn is_ready(&self) -> bool {
        if self.is_job() {
            return self.gone.load(Ordering::Acquire);
        }
        let all = self.containers.get().map_or(&[][..], Vec::as_slice);
        !all.is_empty()
            && held(&self.end).is_none()
            && all.iter().all(|own| held(&own.standing).ready)
    }

    /// The process of a container.
    pub(crate) fn process(&self, container: &str) -> Result<u32> {
        held(&self.container(container)?.standing).process.context("it does not run")
    }

    /// Kills the process of a container.
    pub(crate) fn kill(&self, container: &str) -> Result<()> {
        let process = self.process(container)?;
        self.note(&format!("{container} is killed"));
        send(process, Signal::KILL)
    }

    /// Runs something in a container that runs. Whether it succeeds, and what it says.
    pub(crate) fn exec(&self, container: &str, words: &[&str]) -> Result<(bool, String)> {
        let (own, process) = (self.container(container)?, self.process(container)?);
        let words: Vec<Value> = words.iter().map(|word| (*word).into()).collect();
        let mut command = self.command(own, &words, Some(process))?;
        let output = command.stdin(Stdio::null()).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// What its containers have said.
    pub(crate) fn log(&self, container: &str) -> String {
        fs::read_to_string(self.log_file(container)).unwrap_or_default()
    }

    fn log_file(&self, container: &str) -> PathBuf {
        self.directory.join(format!("{container}.log"))
    }

    pub(crate) fn note(&self, what: &str) {
        self.shared.note(&format!("{}: {what}", self.name));
    }

    fn spec_of_grace(&self) -> Duration {
        Duration::from_secs(number(&self.spec["terminationGracePeriodSeconds"], 30))
    }

    /// Asks it to end, in its time.
    pub(crate) fn end(&self) {
        held(&self.end).get_or_insert(Instant::now() + self.spec_of_grace());
        self.note("shall end");
        self.shared.tell_names();
    }

    /// Its machine is gone.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
        held(&self.end).get_or_insert(Instant::now());
        self.shared.tell_names();
    }

    /// Runs it until it has ended. In a thread of its own.
    pub(crate) fn run(self: &Arc<Pod>) {
        let ran = self.shared.node.join().and_then(|()| self.run_containers());
        if let Err(error) = ran {
            self.note(&format!("FAILED: {error:#}"));
        }
        self.gone.store(true, Ordering::Release);
        self.note("is gone");
        self.shared.tell_names();
    }

    fn run_containers(self: &Arc<Pod>) -> Result<()> {
        let (mut sidecars, mut main) = (Vec::new(), Vec::new());
        let first: Vec<&Value> = list(&self.spec["initContainers"]).collect();
        if self.is_job() {
            return list(&self.spec["containers"]).try_for_each(|own| self.run_to_its_end(own));
        }
        for spec in &first {
            if spec["restartPolicy"] == "Always" {
                sidecars.push(Container::new(spec, true)?);
            }
        }
        for spec in list(&self.spec["containers"]) {
            main.push(Container::new(spec, false)?);
        }
        let all: Vec<_> = sidecars.iter().chain(&main).map(Arc::clone).collect();
        ensure!(self.containers.set(all.clone()).is_ok(), "it runs already");
        std::thread::scope(|scope| -> Result<()> {
            for spec in first {
                match sidecars.iter().find(|own| spec["name"] == *own.name) {
                    Some(sidecar) => {
                        scope.spawn(|| self.keep_running(sidecar));
                        while !held(&sidecar.standing).started && held(&self.end).is_none() {
                            sleep(LOOK);
                        }
                    }
                    None => self.run_to_its_end(spec)?,
                }
            }
            if held(&self.end).is_none() {
                for container in &main {
                    scope.spawn(|| self.keep_running(container));
                }
            } else {
                main.iter().for_each(|own| own.stand(|standing| standing.ended = true));
            }
            Ok(())
        })
    }

    /// A container that others wait for. It is tried until it succeeds.
    fn run_to_its_end(&self, spec: &Value) -> Result<()> {
        let container = Container::new(spec, false)?;
        while held(&self.end).is_none() {
            let status = self.start(&container)?.wait()?;
            if status.success() {
                return Ok(());
            }
            self.note(&format!(
                "{} ended with {status}: {}",
                container.name,
                self.log(&container.name)
            ));
            sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    fn keep_running(&self, container: &Container) {
        let name = &container.name;
        let mut pause = Duration::ZERO;
        let kept = self.shared.node.join().and_then(|()| {
            while !self.live(container)? {
                self.note(&format!("{name} waits {} s", pause.as_secs()));
                let until = Instant::now() + pause;
                while Instant::now() < until && held(&self.end).is_none() {
                    sleep(LOOK);
                }
                if held(&self.end).is_some() {
                    break;
                }
                pause = (pause * 2).max(BACK_OFF);
                container.restarts.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        if let Err(error) = kept {
            self.note(&format!("{name} FAILED: {error:#}"));
        }
        container.stand(|standing| *standing = Standing { ended: true, ..Standing::default() });
    }

    /// One life of a container. Whether it has ended because the pod shall.
    fn live(&self, container: &Container) -> Result<bool> {
        let name = &container.name;
        let mut child = self.start(container)?;
        let process = child.id();
        self.note(&format!("{name} starts"));
        container.stand(|standing| standing.process = Some(process));
        let spec = &container.spec;
        let (mut startup, mut liveness, mut readiness) = (
            Probe::new(&spec["startupProbe"]),
            Probe::new(&spec["livenessProbe"]),
            Probe::new(&spec["readinessProbe"]),
        );
        let (mut started, mut ready) = (false, false);
        let asked_to_end = loop {
            if let Some(status) = child.try_wait()? {
                self.note(&format!("{name} ended with {status}"));
                break false;
            }
            if held(&self.end).is_some() && self.may_end(container) {
                break true;
            }
            if !started {
                let answer = startup.look(self, container, process);
                if answer == Some(false) {
                    self.note(&format!("{name} does not start"));
                    self.terminate(container, &mut child, Instant::now() + self.spec_of_grace())?;
                    break false;
                }
                if answer == Some(true) || !startup.is_there() {
                    started = true;
                    container.stand(|standing| standing.started = true);
                    self.note(&format!("{name} has started"));
                }
            }
            if started {
                if liveness.look(self, container, process) == Some(false) {
                    self.note(&format!("{name} does not live"));
                    self.terminate(container, &mut child, Instant::now() + self.spec_of_grace())?;
                    break false;
                }
                let now = readiness.look(self, container, process);
                let now = now.unwrap_or(ready || !readiness.is_there());
                if now != std::mem::replace(&mut ready, now) {
                    container.stand(|standing| standing.ready = now);
                    self.note(&format!("{name} is {}", if now { "ready" } else { "not ready" }));
                    self.shared.tell_names();
                }
            }
            sleep(LOOK);
        };
        if asked_to_end {
            self.finish(container, &mut child)?;
        }
        container.stand(|standing| *standing = Standing::default());
        self.shared.tell_names();
        Ok(asked_to_end)
    }

    /// Sidecars end after the others.
    fn may_end(&self, container: &Container) -> bool {
        let mut others = self.containers.get().into_iter().flatten();
        self.is_lost.load(Ordering::Relaxed)
            || !container.is_sidecar
            || others.all(|own| own.is_sidecar || held(&own.standing).ended)
    }

    /// Ends a container of a pod that shall end: what it does before, then the signal.
    fn finish(&self, container: &Container, child: &mut Child) -> Result<()> {
        let end = held(&self.end).context("the pod shall end")?;
        if self.is_lost.load(Ordering::Relaxed) {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
        let hook = &container.spec["lifecycle"]["preStop"];
        let patience = end.saturating_duration_since(Instant::now());
        if let Some(seconds) = hook["sleep"]["seconds"].as_u64() {
            sleep(Duration::from_secs(seconds).min(patience));
        } else if hook.is_object() {
            let begun = Instant::now();
            let asked = self.ask(container, child.id(), hook, patience);
            let (name, ms) = (&container.name, begun.elapsed().as_millis());
            self.note(&format!("{name} has prepared its end in {ms} ms: {asked:?}"));
        }
        self.terminate(container, child, end)
    }

    fn terminate(&self, container: &Container, child: &mut Child, end: Instant) -> Result<()> {
        let begun = Instant::now();
        send(child.id(), Signal::TERM)?;
        loop {
            if let Some(status) = child.try_wait()? {
                let (name, ms) = (&container.name, begun.elapsed().as_millis());
                self.note(&format!("{name} ended with {status}, {ms} ms after SIGTERM"));
                return Ok(());
            }
            if Instant::now() >= end {
                self.note(&format!("{} is killed at the end of its time", container.name));
                child.kill()?;
                child.wait()?;
                return Ok(());
            }
            sleep(LOOK);
        }
    }

    /// What a probe or a hook says to be done.
    fn ask(
        &self,
        container: &Container,
        process: u32,
        what: &Value,
        patience: Duration,
    ) -> Result<()> {
        let place = |own: &Value| -> Result<SocketAddr> {
            Ok((self.address, container.port(&own["port"])?).into())
        };
        if let Some(command) = what["exec"]["command"].as_array() {
            let mut child = self.spawn(container, command, Some(process))?;
            let until = Instant::now() + patience;
            loop {
                if let Some(status) = child.try_wait()? {
                    ensure!(status.success(), "{status}");
                    return Ok(());
                }
                if Instant::now() > until {
                    child.kill()?;
                    child.wait()?;
                    bail!("it takes too long");
                }
                sleep(LOOK);
            }
        }
        if what["tcpSocket"].is_object() {
            TcpStream::connect_timeout(&place(&what["tcpSocket"])?, patience)?;
            return Ok(());
        }
        let get = &what["httpGet"];
        let (place, path) = (place(get)?, text(&get["path"], "path")?);
        if get["scheme"] == "HTTPS" {
            return ask_encrypted(&format!("https://{place}{path}"), patience);
        }
        let mut stream = TcpStream::connect_timeout(&place, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let head = "User-Agent: kube-probe/1.34\r\nAccept: */*\r\nConnection: close";
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {place}\r\n{head}\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        let status: u16 = line.split(' ').nth(1).context("a status")?.parse()?;
        ensure!((200..400).contains(&status), "{line}");
        Ok(())
    }

    fn start(&self, container: &Container) -> Result<Child> {
        let spec = &container.spec;
        let image = Image::find(text(&spec["image"], "image")?)?;
        let own = spec["command"].as_array();
        let first: Vec<Value> = match own {
            Some(command) => command.clone(),
            None => image.entry_point.iter().map(|word| word.as_str().into()).collect(),
        };
        let words: Vec<Value> = first.into_iter().chain(list(&spec["args"]).cloned()).collect();
        self.spawn(container, &words, None)
    }

    /// Starts a process in a container, or in one that runs.
    fn spawn(&self, container: &Container, words: &[Value], join: Option<u32>) -> Result<Child> {
        let log =
            OpenOptions::new().create(true).append(true).open(self.log_file(&container.name))?;
        let mut command = self.command(container, words, join)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.spawn().context("starting a container")
    }

    fn command(
        &self,
        container: &Container,
        words: &[Value],
        join: Option<u32>,
    ) -> Result<Command> {
        let spec = &container.spec;
        let image = Image::find(text(&spec["image"], "image")?)?;
        let variables = self.variables(spec, &image)?;
        let word = |word: &Value| Ok(expanded(text(word, "word")?, &variables));
        let command: Result<Vec<String>> = words.iter().map(word).collect();
        let (security, of_pod) = (&spec["securityContext"], &self.spec["securityContext"]);
        let either = |name: &str| match &security[name] {
            Value::Null => of_pod[name].clone(),
            own => own.clone(),
        };
        let user = number(&either("runAsUser"), 0);
        ensure!(user != 0 || either("runAsNonRoot") != true, "it may not be root");
        let started = json!({
            "pause": self.pause.id(),
            "join": join,
            "image": image.directories,
            "mounts": self.mounts(spec)?,
            "user": user,
            "group": number(&either("runAsGroup"), 0),
            "directory": spec["workingDir"].as_str().unwrap_or(&image.working_directory),
            "environment": variables,
            "command": command?,
            "hostname": self.name,
            "read_only": security["readOnlyRootFilesystem"] == true,
        });
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubernetes/run-container");
        let mut command = Command::new(script);
        command.arg(started.to_string()).env_clear().env("PATH", "/usr/bin:/bin");
        Ok(command)
    }

    fn variables(&self, spec: &Value, image: &Image) -> Result<BTreeMap<String, String>> {
        let mut variables = image.environment.clone();
        let _ = variables.insert("HOSTNAME".to_owned(), self.name.clone());
        for own in list(&spec["env"]) {
            let from = &own["valueFrom"];
            let value = match &from["fieldRef"]["fieldPath"] {
                Value::String(field) => match field.as_str() {
                    "metadata.name" => self.name.clone(),
                    "metadata.namespace" => "default".to_owned(),
                    "status.podIP" => self.address.to_string(),
                    other => bail!("no field {other}"),
                },
                _ if from["secretKeyRef"].is_object() => {
                    let from = &from["secretKeyRef"];
                    match self.shared.secret(text(&from["name"], "name")?, &from["key"]) {
                        Some(value) => value,
                        None if from["optional"] == true => continue,
                        None => bail!("no such secret: {own}"),
                    }
                }
                _ if from.is_object() => bail!("no such variable: {own}"),
                _ => expanded(own["value"].as_str().unwrap_or_default(), &variables),
            };
            let _ = variables.insert(text(&own["name"], "name")?.to_owned(), value);
        }
        Ok(variables)
    }

    fn mounts(&self, spec: &Value) -> Result<Vec<(PathBuf, String, bool)>> {
        let mut mounts = vec![
            (self.directory.join("hosts"), "/etc/hosts".to_owned(), true),
            (self.directory.join("nsswitch.conf"), "/etc/nsswitch.conf".to_owned(), true),
        ];
        for mount in list(&spec["volumeMounts"]) {
            let name = text(&mount["name"], "name of a volume")?;
            let volume = self.volumes.get(name).with_context(|| format!("no volume {name}"))?;
            let source = match mount["subPath"].as_str() {
                None => volume.clone(),
                Some(part) => {
                    let source = volume.join(part);
                    crate::volumes::shared_directory(&source, self.group())?;
                    source
                }
            };
            let path = text(&mount["mountPath"], "path")?.to_owned();
            mounts.push((source, path, mount["readOnly"] == true));
        }
        Ok(mounts)
    }

    fn group(&self) -> u32 {
        number(&self.spec["securityContext"]["fsGroup"], 0) as u32
    }
}

/// A kubelet does not look at certificates.
fn ask_encrypted(address: &str, patience: Duration) -> Result<()> {
    let program = "import ssl, sys, urllib.request as r\n\
                   c = ssl._create_unverified_context()\n\
                   r.urlopen(sys.argv[1], timeout=float(sys.argv[2]), context=c)";
    let seconds = patience.as_secs_f64().to_string();
    let output = Command::new("python3").args(["-c", program, address, &seconds]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn send(process: u32, signal: Signal) -> Result<()> {
    let process = Pid::from_raw(process.cast_signed()).context("a process id")?;
    Ok(kill_process(process, signal)?)
}
