//! What manifests describe, as processes of this machine: it needs the right to make networks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::observe::wait_until;
use tests::peers;

use crate::network::Node;
use crate::objects::{Objects, list, number, selects, text};
use crate::pod::Pod;
use crate::volumes::{Contents, Projection, shared_directory};

/// What the pods of a cluster share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) node: Node,
    directory: TempDir,
    began: Instant,
    events: Mutex<Vec<(Instant, String)>>,
    pods: Mutex<BTreeMap<String, Arc<Pod>>>,
    services: Mutex<Vec<Value>>,
    /// Names of what is outside.
    names: Mutex<Vec<(String, Ipv4Addr)>>,
    /// Secrets and ConfigMaps.
    contents: Mutex<BTreeMap<String, Contents>>,
    versions: AtomicUsize,
    addresses: AtomicU8,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with it")
}

impl Shared {
    pub(crate) fn note(&self, what: &str) {
        held(&self.events).push((Instant::now(), what.to_owned()));
    }

    /// What a Secret has under a key.
    pub(crate) fn secret(&self, name: &str, key: &Value) -> Option<String> {
        let contents = held(&self.contents);
        let bytes = contents.get(name)?.get(key.as_str()?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        held(&self.pods).values().map(Arc::clone).collect()
    }

    /// The pods that a service leads to.
    fn behind(&self, service: &Value) -> Vec<Arc<Pod>> {
        let all = service["spec"]["publishNotReadyAddresses"] == true;
        let mut pods = self.pods();
        pods.retain(|pod| {
            selects(&service["spec"]["selector"], &pod.labels)
                && !pod.gone.load(Ordering::Acquire)
                && (all || pod.is_ready())
        });
        pods
    }

    /// Tells all pods which names there are, and which addresses they have.
    pub(crate) fn tell_names(&self) {
        let services = held(&self.services);
        let mut names = "127.0.0.1 localhost\n".to_owned();
        for (name, address) in held(&self.names).iter() {
            let _ = writeln!(names, "{address} {name}");
        }
        for service in services.iter() {
            let name = service["metadata"]["name"].as_str().unwrap_or_default();
            for pod in self.behind(service) {
                let (address, own) = (pod.address, &pod.name);
                let domain = format!("{name}.default.svc");
                // Writing to a string does not fail.
                let _ = writeln!(names, "{address} {name} {domain} {domain}.cluster.local");
                if pod.spec["subdomain"] == name {
                    let _ = writeln!(names, "{address} {own}.{name} {own}.{domain}.cluster.local");
                }
            }
        }
        for pod in self.pods() {
            // In place, since it is mounted; a reader finds old names or new ones.
            let file = OpenOptions::new().write(true).open(pod.directory.join("hosts"));
            let written = file.and_then(|mut file| {
                file.write_all(names.as_bytes())?;
                file.set_len(names.len() as u64)
            });
            if let Err(error) = written {
                self.note(&format!("{}: no names: {error}", pod.name));
            }
        }
    }
}

/// A set of pods that are alike.
#[derive(Clone, Debug)]
struct Workload {
    name: String,
    spec: Value,
    /// StatefulSet: pods have ordinals, and volumes that outlive them.
    is_stateful: bool,
}

impl Workload {
    fn of(object: &Value) -> Result<Workload> {
        Ok(Workload {
            name: text(&object["metadata"]["name"], "name")?.to_owned(),
            spec: object["spec"].clone(),
            is_stateful: object["kind"] == "StatefulSet",
        })
    }

    fn pods(&self) -> Vec<String> {
        let count = number(&self.spec["replicas"], 1);
        (0..count).map(|at| format!("{}-{at}", self.name)).collect()
    }
}

/// See the module's text. Dropping it ends all.
#[derive(Debug)]
pub(crate) struct Cluster {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    workloads: Mutex<Vec<Workload>>,
}

impl Cluster {
    /// Makes an empty one, or says that it may not.
    pub(crate) fn make() -> Result<Option<Cluster>> {
        let node = match Node::make() {
            Ok(node) => node,
            Err(error) if !rustix::process::geteuid().is_root() => {
                eprintln!("Not tried: only root may make networks: {error:#}");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // This thread, and those that it starts, are beside the pods.
        node.join()?;
        let shared = Arc::new(Shared {
            node,
            directory: tempfile::Builder::new().prefix("dunlin-cluster-").tempdir()?,
            began: Instant::now(),
            events: Mutex::default(),
            pods: Mutex::default(),
            services: Mutex::default(),
            names: Mutex::default(),
            contents: Mutex::default(),
            versions: AtomicUsize::new(0),
            addresses: AtomicU8::new(0),
        });
        Ok(Some(Cluster { shared, threads: Mutex::default(), workloads: Mutex::default() }))
    }

    /// Has a Secret, or changes it: pods that show it see that at once.
    pub(crate) fn set_secret(&self, name: &str, contents: &[(&str, &[u8])]) -> Result<()> {
        let contents = contents.iter().map(|(key, bytes)| ((*key).to_owned(), bytes.to_vec()));
        self.set_contents(name, contents.collect())
    }

    fn set_contents(&self, name: &str, contents: Contents) -> Result<()> {
        let version = self.shared.versions.fetch_add(1, Ordering::Relaxed);
        for pod in self.shared.pods() {
            for projection in pod.projections.iter().filter(|own| own.source == name) {
                projection.show(&contents, version)?;
            }
        }
        let _ = held(&self.shared.contents).insert(name.to_owned(), contents);
        Ok(())
    }

    /// Has all that the objects say, and starts their pods.
    pub(crate) fn apply(&self, objects: &Objects) -> Result<()> {
        for map in objects.of("ConfigMap") {
            let texts = map["data"].as_object().context("contents")?;
            let bytes = |value: &Value| value.as_str().unwrap_or_default().as_bytes().to_vec();
            let contents = texts.iter().map(|(key, value)| (key.clone(), bytes(value))).collect();
            self.set_contents(text(&map["metadata"]["name"], "name")?, contents)?;
        }
        *held(&self.shared.services) = objects.of("Service").cloned().collect();
        let all = objects.of("StatefulSet").chain(objects.of("Deployment"));
        let all = all.chain(objects.of("Job"));
        let workloads: Result<Vec<_>> = all.map(Workload::of).collect();
        *held(&self.workloads) = workloads?;
        for workload in held(&self.workloads).iter() {
            for name in workload.pods() {
                self.start(workload, &name)?;
            }
        }
        Ok(())
    }

    fn workload_of(&self, pod: &str) -> Result<Workload> {
        let workloads = held(&self.workloads);
        let found = workloads.iter().find(|own| own.pods().iter().any(|name| name == pod));
        found.cloned().with_context(|| format!("no pod {pod}"))
    }

    fn start(&self, workload: &Workload, name: &str) -> Result<()> {
        let (template, shared) = (&workload.spec["template"], &self.shared);
        let mut spec = template["spec"].clone();
        if workload.is_stateful {
            spec["subdomain"] = workload.spec["serviceName"].clone();
        }
        let group = number(&spec["securityContext"]["fsGroup"], 0) as u32;
        let number = shared.addresses.fetch_add(1, Ordering::Relaxed);
        let home = shared.directory.path();
        let directory = home.join("pods").join(number.to_string());
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("hosts"), "")?;
        fs::write(directory.join("nsswitch.conf"), "hosts: files\n")?;
        let mut volumes = BTreeMap::new();
        let mut projections = Vec::new();
        for claim in list(&workload.spec["volumeClaimTemplates"]) {
            let claim = text(&claim["metadata"]["name"], "name")?;
            let path = home.join("claims").join(format!("{claim}-{name}"));
            shared_directory(&path, group)?;
            let _ = volumes.insert(claim.to_owned(), path);
        }
        for volume in list(&spec["volumes"]) {
            let own = text(&volume["name"], "name")?;
            let path = directory.join("volumes").join(own);
            if volume["emptyDir"].is_object() {
                shared_directory(&path, group)?;
            } else {
                projections.push(self.project(volume, &path, group)?);
            }
            let _ = volumes.insert(own.to_owned(), path);
        }
        let pod = Arc::new(Pod {
            name: name.to_owned(),
            labels: template["metadata"]["labels"].clone(),
            spec,
            address: Node::address(number),
            directory,
            volumes,
            projections,
            pause: shared.node.connect(number)?,
            containers: OnceLock::new(),
            end: Mutex::default(),
            gone: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            shared: Arc::clone(shared),
        });
        let _ = held(&shared.pods).insert(name.to_owned(), Arc::clone(&pod));
        shared.note(&format!("{name}: is made, at {}", pod.address));
        shared.tell_names();
        held(&self.threads).push(thread::spawn(move || pod.run()));
        Ok(())
    }

    fn project(&self, volume: &Value, path: &Path, group: u32) -> Result<Projection> {
        let projection = Projection::of(volume, path, group)?;
        let contents = held(&self.shared.contents).get(&projection.source).cloned();
        let contents = contents.with_context(|| format!("there is no {}", projection.source))?;
        projection.show(&contents, self.shared.versions.fetch_add(1, Ordering::Relaxed))?;
        Ok(projection)
    }

    /// The pod of this name.
    pub(crate) fn pod(&self, name: &str) -> Result<Arc<Pod>> {
        let pods = held(&self.shared.pods);
        pods.get(name).map(Arc::clone).with_context(|| format!("no pod {name}"))
    }

    /// The names of all pods.
    pub(crate) fn pod_names(&self) -> Vec<String> {
        held(&self.shared.pods).keys().cloned().collect()
    }

    /// Gives something outside of the cluster a name, for pods that are made after this.
    pub(crate) fn set_name(&self, name: &str, address: Ipv4Addr) {
        held(&self.shared.names).push((name.to_owned(), address));
    }

    /// Starts a redis-server that is no part of the cluster, where its pods reach it.
    pub(crate) fn start_outside(&self, options: &[(&str, &str)]) -> Result<Outside> {
        self.start_program(&peers::program("redis-server"), &[&[("save", "")], options].concat())
    }

    /// Starts an etcd that is no part of the cluster, where its pods reach it. Returns its address.
    pub(crate) fn start_etcd(&self) -> Result<(Outside, String)> {
        let own = Node::own_address();
        let (url, peer) = (format!("http://{own}:2379"), format!("http://{own}:2380"));
        let members = format!("default={peer}");
        let options = [
            ("listen-client-urls", &*url),
            ("advertise-client-urls", &*url),
            ("listen-peer-urls", &*peer),
            ("initial-advertise-peer-urls", &*peer),
            ("initial-cluster", &*members),
        ];
        let outside = self.start_program(&peers::etcd("etcd"), &options)?;
        Ok((outside, url))
    }

    fn start_program(&self, program: &Path, options: &[(&str, &str)]) -> Result<Outside> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command.current_dir(directory.path()).stderr(Stdio::null());
        for (name, value) in options {
            command.arg(format!("--{name}")).arg(value);
        }
        // This thread is where the pods are, and so is what it starts.
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        Ok(Outside { child, address: Node::own_address(), _directory: directory })
    }

    /// Waits until a pod has ended.
    pub(crate) fn wait_until_gone(&self, name: &str) -> Result<()> {
        let pod = self.pod(name)?;
        self.wait(&format!("the end of {name}"), || Ok(pod.gone.load(Ordering::Acquire)))
    }

    /// Waits until all pods are ready.
    pub(crate) fn wait_until_ready(&self) -> Result<()> {
        self.wait("all pods are ready", || Ok(self.shared.pods().iter().all(|own| own.is_ready())))
    }

    /// Waits, and says on failure what has happened.
    pub(crate) fn wait(&self, what: &str, is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        wait_until(what, is_so).with_context(|| self.report())
    }

    /// Starts a pod again that is gone, as whoever keeps their number.
    pub(crate) fn replace(&self, name: &str) -> Result<()> {
        self.start(&self.workload_of(name)?, name)
    }

    /// Ends a pod in its time, and starts it again.
    pub(crate) fn delete(&self, name: &str) -> Result<()> {
        self.pod(name)?.end();
        self.wait_until_gone(name)?;
        self.replace(name)
    }

    /// Brings new versions of the pods of a StatefulSet: the last one first, each when the one
    /// before it is ready, down to the partition. Returns the pods in their order.
    pub(crate) fn upgrade(&self, objects: &Objects) -> Result<Vec<String>> {
        let new = Workload::of(objects.one("StatefulSet")?)?;
        let partition = number(&new.spec["updateStrategy"]["rollingUpdate"]["partition"], 0);
        let names = new.pods();
        let mut order = Vec::new();
        for (at, name) in names.iter().enumerate().rev() {
            if (at as u64) < partition {
                break;
            }
            if self.pod(name)?.spec["containers"] == new.spec["template"]["spec"]["containers"] {
                continue;
            }
            self.pod(name)?.end();
            self.wait_until_gone(name)?;
            self.start(&new, name)?;
            self.wait_until_ready()?;
            order.push(name.clone());
        }
        Ok(order)
    }

    /// Where the network leads a client of a service: to one of the pods that are ready.
    pub(crate) fn route(&self, service: &str) -> Option<Ipv4Addr> {
        let services = held(&self.shared.services);
        let found = services.iter().find(|own| own["metadata"]["name"] == service)?;
        self.shared.behind(found).first().map(|pod| pod.address)
    }

    /// The address of a name within the domain of a headless service.
    pub(crate) fn resolve(&self, name: &str) -> Option<Ipv4Addr> {
        let pod = name.split('.').next()?;
        let pod = self.pod(pod).ok()?;
        (!pod.gone.load(Ordering::Acquire)).then_some(pod.address)
    }

    /// The process in whose network this test is.
    pub(crate) fn node(&self) -> u32 {
        self.shared.node.id()
    }

    /// Moves this thread to where the pods are reached.
    pub(crate) fn join(&self) -> Result<()> {
        self.shared.node.join()
    }

    /// The time from one event to the next one that has this in its text, in milliseconds.
    pub(crate) fn between(&self, first: &str, then: &str) -> Result<u128> {
        let events = held(&self.shared.events);
        let at = events.iter().position(|(_, own)| own.contains(first)).context("the first")?;
        let mut later = events[at..].iter().filter(|(_, own)| own.contains(then));
        let (found, _) = later.next().context("the other")?;
        Ok(found.duration_since(events[at].0).as_millis())
    }

    /// All events with this in their text.
    pub(crate) fn events(&self, with: &str) -> Vec<String> {
        let events = held(&self.shared.events);
        let texts = events.iter().map(|(_, own)| own.clone());
        texts.filter(|own| own.contains(with)).collect()
    }

    /// What has happened, and what the containers have said last.
    pub(crate) fn report(&self) -> String {
        let mut text = String::new();
        for (at, what) in held(&self.shared.events).iter() {
            let ms = at.duration_since(self.shared.began).as_millis();
            let _ = writeln!(text, "{ms:>6} {what}");
        }
        let logs = |pod: &Arc<Pod>| fs::read_dir(&pod.directory).into_iter().flatten().flatten();
        for pod in self.shared.pods() {
            for file in logs(&pod).map(|own| own.path()).filter(|own| is_log(own)) {
                let log = fs::read_to_string(&file).unwrap_or_default();
                let mut lines: Vec<&str> = log.lines().rev().take(15).collect();
                lines.reverse();
                let _ = writeln!(text, "--- {} {}\n{}", pod.name, file.display(), lines.join("\n"));
            }
        }
        text
    }

    /// Fails if a part of this has failed by itself.
    pub(crate) fn check(&self) -> Result<()> {
        let failed = self.events("FAILED");
        ensure!(failed.is_empty(), "{failed:?}\n{}", self.report());
        Ok(())
    }
}

/// A server outside; dropping it kills it.
pub(crate) struct Outside {
    child: Child,
    pub(crate) address: Ipv4Addr,
    _directory: TempDir,
}

impl Drop for Outside {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_log(file: &Path) -> bool {
    file.extension().is_some_and(|own| own == "log")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.pods().iter().for_each(|pod| pod.lose());
        for thread in held(&self.threads).drain(..) {
            // A panic there was reported.
            let _ = thread.join();
        }
        // The pods and what they share point at each other.
        held(&self.shared.pods).clear();
    }
}
