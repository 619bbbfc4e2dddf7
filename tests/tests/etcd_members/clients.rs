//! Clients of etcd go on with the objects that they have, while members are killed and stopped and
//! the tree moves: what they were acknowledged is there, and they have heard of each event once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tests::library::{Library, wait_for_each};
use tests::observe::wait_until;
use tests::peers;
use tests::process::{resume, stop};
use tests::server::repository;

use crate::nodes::{FIRST, Nodes, ask};

/// Lines that each client says between two troubles.
const LINES: usize = 10;

/// What the clients of python-etcd do.
const ROLES: [(&str, &str); 6] =
    [("watch", "w"), ("count", "a"), ("count", "b"), ("queue", "q"), ("lock", "l"), ("lock", "m")];

fn python(role: &str, name: &str) -> Command {
    let mut command = Command::new(peers::directory().join("python/bin/python"));
    command.arg(repository().join("tests/tests/clients/etcd/python_etcd.py")).args([role, name]);
    command
}

/// etcdctl, with the addresses of all members.
fn etcdctl(ports: &[u16]) -> Command {
    let all: Vec<_> = ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
    let mut command = Command::new(peers::etcd("etcdctl"));
    command.env("ETCDCTL_API", "2").args(["--endpoints", &all.join(",")]);
    command.args(["--total-timeout", "20s"]).stderr(Stdio::null());
    command
}

/// etcdctl, called again and again.
struct Caller {
    over: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
}

impl Caller {
    fn start(ports: Vec<u16>) -> Caller {
        let (over, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (ends, counts) = (Arc::clone(&over), Arc::clone(&acknowledged));
        let thread = thread::spawn(move || {
            for number in 1_u64.. {
                if ends.load(Relaxed) {
                    break;
                }
                let mut command = etcdctl(&ports);
                let done = command.args(["set", "/called", &number.to_string()]).output()?;
                if done.status.success() {
                    counts.store(number, Relaxed);
                }
            }
            Ok(())
        });
        Caller { over, acknowledged, thread }
    }
}

/// `etcdctl watch --forever`, and what it has said. It ends when it finds no member: each may send
/// it on to a leader that has just gone. Whoever uses it begins it anew after what was heard.
struct Listener {
    child: Arc<Mutex<Option<Child>>>,
    heard: Arc<Mutex<Vec<u64>>>,
}

fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    fn start(ports: &[u16]) -> Listener {
        let listener = Listener { child: Arc::default(), heard: Arc::default() };
        let (child, heard) = (Arc::clone(&listener.child), Arc::clone(&listener.heard));
        let ports = ports.to_vec();
        thread::spawn(move || {
            let mut after = 1;
            // The test has the other half of it until it is over.
            while Arc::strong_count(&child) > 1 {
                let mut command = etcdctl(&ports);
                command.args(["--output", "extended", "watch", "--forever"]);
                command.args(["--after-index", &after.to_string(), "/counter"]);
                let Ok(mut own) = command.stdout(Stdio::piped()).spawn() else { return };
                let output = own.stdout.take();
                *locked(&child) = Some(own);
                let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
                for line in lines.map_while(Result::ok) {
                    let mut words = line.split(' ');
                    match (words.next(), words.next().and_then(|word| word.parse().ok())) {
                        (Some("Modified-Index:"), Some(index)) => after = index,
                        (Some(value), _) => locked(&heard).extend(value.parse::<u64>()),
                        _ => {}
                    }
                }
                end(&child);
            }
        });
        listener
    }

    fn heard(&self) -> Vec<u64> {
        locked(&self.heard).clone()
    }
}

/// Ends a program. Both steps fail only if it is gone already.
fn end(child: &Mutex<Option<Child>>) {
    if let Some(mut child) = locked(child).take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// All clients.
struct Clients {
    python: Vec<Library>,
    caller: Caller,
    listener: Listener,
}

impl Clients {
    fn start(ports: &[u16]) -> Result<Clients> {
        let mut all = Vec::new();
        for (place, (role, name)) in ROLES.into_iter().enumerate() {
            // Each begins with another member.
            let mut own = ports.to_vec();
            own.rotate_left(place % ports.len());
            all.push(Library::start("python-etcd", python(role, name), &own)?);
        }
        let (caller, listener) = (Caller::start(ports.to_vec()), Listener::start(ports));
        Ok(Clients { python: all, caller, listener })
    }

    /// Waits until each has done something since.
    fn go_on(&mut self, after: &str) -> Result<()> {
        let before: Vec<usize> = self.python.iter().map(Library::count).collect();
        let (called, heard) = (self.caller.acknowledged.load(Relaxed), self.listener.heard().len());
        let what = format!("it goes on after {after}");
        wait_for_each(&mut self.python, &what, |place, library| {
            let is_slow = ROLES[place].0 == "lock";
            library.count() >= before[place] + if is_slow { 2 } else { LINES }
        })?;
        wait_until(&what, || Ok(self.caller.acknowledged.load(Relaxed) > called + 1))
            .context("etcdctl set")?;
        wait_until(&what, || Ok(self.listener.heard().len() > heard + LINES))
            .with_context(|| format!("etcdctl watch: {:?}", self.listener.heard().len()))
    }
}

impl Clients {
    /// Waits until one that writes has done much since.
    fn some_go_on(&self, after: &str) -> Result<()> {
        let counts = || self.python.iter().skip(1).map(Library::count).collect::<Vec<_>>();
        let before = counts();
        wait_until(&format!("somebody goes on after {after}"), || {
            Ok(before.iter().zip(counts()).any(|(before, now)| now > before + 5 * LINES))
        })
    }
}

/// The value of a node.
fn value_of(nodes: &Nodes, key: &str) -> Result<String> {
    let answer = ask(nodes.ports[0], &format!("GET {key}"))?;
    let body: Value = serde_json::from_slice(&answer.body)?;
    Ok(body["node"]["value"].as_str().with_context(|| answer.text())?.to_owned())
}

#[test]
fn clients_go_on_and_hear_of_each_event_once() -> Result<()> {
    let mut nodes = Nodes::start(2, &[])?;
    ensure!(ask(nodes.ports[0], "PUT /counter value=0")?.status == 201);
    let mut clients = Clients::start(&nodes.ports[FIRST])?;
    let played = trouble(&mut nodes, &mut clients);
    played.with_context(|| nodes.deployment.logs())?;
    check(&nodes, clients).with_context(|| nodes.deployment.logs())
}

fn trouble(nodes: &mut Nodes, clients: &mut Clients) -> Result<()> {
    clients.go_on("its start")?;
    let killed = nodes.leader(FIRST)?;
    nodes.deployment.nodes[killed].kill();
    clients.go_on("the death of the leader")?;
    nodes.deployment.nodes[killed].start_again()?;
    let leader = nodes.leader(FIRST)?;
    let replica = FIRST.rev().find(|node| *node != leader).context("a replica")?;
    stop(nodes.deployment.nodes[replica].pid())?;
    // Those that have just asked this one wait for it, as they do with etcd.
    let went_on = clients.some_go_on("a follower stands still");
    resume(nodes.deployment.nodes[replica].pid())?;
    went_on?;
    clients.go_on("all followers are back")?;
    nodes.move_tree("there", false)?;
    clients.go_on("the move of the tree")
}

/// Fails if something is missing, or was told twice.
fn check(nodes: &Nodes, clients: Clients) -> Result<()> {
    let Clients { mut python, caller, listener } = clients;
    caller.over.store(true, Relaxed);
    caller.thread.join().expect("no panic")?;
    let called: u64 = value_of(nodes, "/called")?.parse()?;
    ensure!(called >= caller.acknowledged.load(Relaxed), "etcdctl: {called}");
    // Those that write end first.
    let mut said = Vec::new();
    for (place, library) in python.iter_mut().enumerate().skip(1) {
        let (ended_well, complaints) = library.finish()?;
        ensure!(ended_well, "{:?}: {complaints}", ROLES[place]);
        said.extend(library.said(0));
    }
    let value = value_of(nodes, "/counter")?;
    let last: u64 = value.split(' ').next().context("a number")?.parse()?;
    let heard = wait_for_all(&mut python[0], &listener, last)?;
    // Each step of the counter is one event.
    let values: Vec<u64> = heard.values().copied().collect();
    ensure!(values == (0..=last).collect::<Vec<_>>(), "{last}: {values:?}");
    let queue = ask(nodes.ports[0], "GET /queue")?;
    let queue: Value = serde_json::from_slice(&queue.body)?;
    let there: Vec<_> = queue["node"]["nodes"].as_array().context("keys")?.iter().collect();
    for line in said {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["count", value, index] => {
                let (value, index): (u64, u64) = (value.parse()?, index.parse()?);
                ensure!(heard.get(&index) == Some(&value), "{line}: {:?}", heard.get(&index));
            }
            ["queue", key, index] => {
                let index: u64 = index.parse()?;
                let is_there =
                    there.iter().any(|node| node["key"] == key && node["createdIndex"] == index);
                ensure!(is_there, "{line}");
            }
            ["lock", _] => {}
            _ => bail!("it says {line}"),
        }
    }
    Ok(())
}

/// Waits until both that listen have heard of this value. Returns the values by their indexes.
fn wait_for_all(watch: &mut Library, listener: &Listener, last: u64) -> Result<BTreeMap<u64, u64>> {
    let is_last = |line: &String| line.split(' ').nth(1) == Some(&*last.to_string());
    wait_for_each(std::slice::from_mut(watch), "all is heard", |_, library| {
        library.said(0).last().is_some_and(is_last)
    })?;
    wait_until("all is heard", || Ok(listener.heard().last() == Some(&last)))
        .with_context(|| format!("etcdctl: {:?}, not {last}", listener.heard().last()))?;
    let all = listener.heard();
    ensure!(all.windows(2).all(|pair| pair[0] + 1 == pair[1]), "etcdctl: {all:?}");
    let mut heard = BTreeMap::new();
    for line in watch.said(0) {
        let words: Vec<_> = line.split(' ').collect();
        let ["watch", value, index] = words[..] else { bail!("it says {line}") };
        ensure!(heard.insert(index.parse()?, value.parse()?).is_none(), "{line} is told twice");
    }
    Ok(heard)
}
