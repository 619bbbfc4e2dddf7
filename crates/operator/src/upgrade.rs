//! How all nodes are restarted while the cluster serves.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use base::clock::monotonic_ms;

use cluster::ids::{Incarnation, NodeId, ShardId};
use cluster::topology::Node;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::claim::{self, Claim};
use crate::failover;
use crate::link::{self, place_of};
use crate::options::Options;
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;

/// How often it is looked whether the command to restart has ended.
const TICK: Duration = Duration::from_millis(20);
/// How long that command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Restarts one node after the other, the replicas of each shard before its primary. Before that,
/// a primary hands over.
pub(crate) fn run(
    store: &Store,
    options: &Options,
    restart: &str,
    version: Option<&str>,
) -> Result<(), Trouble> {
    let upgrade = Upgrade { store, options, restart, version, claim: None };
    if options.dry_run {
        return all(&upgrade);
    }
    claim::alone(store, "upgrade", |claim| all(&Upgrade { claim: Some(claim), ..upgrade }))
}

/// What is to be done, and the right to do it.
struct Upgrade<'u> {
    store: &'u Store,
    options: &'u Options,
    /// The command that restarts a node.
    restart: &'u str,
    /// The version that nodes have afterwards, if it is said.
    version: Option<&'u str>,
    /// None where nothing is done.
    claim: Option<&'u Claim>,
}

fn all(upgrade: &Upgrade<'_>) -> Result<(), Trouble> {
    let Upgrade { store, options, version, .. } = *upgrade;
    let reading = store.read()?;
    let nodes = order(&reading, version);
    if nodes.is_empty() {
        say("no node is left to be restarted");
        return Ok(());
    }
    if let Some(node) = nodes.iter().find(|node| !node.is_alive()) {
        let text = format!("node {} at {} is not alive", short(node.id), place_of(node));
        return Err(Trouble::Failed(text));
    }
    nodes.iter().try_for_each(|node| check_words(node))?;
    let rows: Vec<_> = nodes
        .iter()
        .map(|node| {
            let role = match reading.topology.shard_of(node.id) {
                None => "none",
                Some(_) if reading.topology.is_primary(node.id) => "primary",
                Some(_) => "replica",
            };
            vec![short(node.id), place_of(node), role.to_owned(), node.version.clone()]
        })
        .collect();
    say(table(&["NODE", "ADDRESS", "ROLE", "VERSION"], &rows).trim_end());
    if !agreed(options)? {
        return Ok(());
    }
    let count = nodes.len();
    let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
    for (number, id) in ids.into_iter().enumerate() {
        say(&format!("{} of {count}: node {}", number + 1, short(id)));
        restart_one(upgrade, id)?;
    }
    say("all nodes were restarted");
    Ok(())
}

fn order<'r>(reading: &'r Reading, version: Option<&str>) -> Vec<&'r Node> {
    let topology = &reading.topology;
    let mut nodes = Vec::new();
    for shard in topology.shards.values() {
        let mut own: Vec<_> = shard.nodes().filter_map(|id| topology.nodes.get(&id)).collect();
        own.sort_by_key(|node| topology.is_primary(node.id));
        nodes.extend(own);
    }
    let spare = |node: &&Node| topology.shard_of(node.id).is_none() && node.is_alive();
    nodes.extend(topology.nodes.values().filter(spare));
    nodes.retain(|node| version.is_none_or(|version| node.version != version));
    nodes
}

fn restart_one(upgrade: &Upgrade<'_>, id: NodeId) -> Result<(), Trouble> {
    let Upgrade { store, options, restart, version, claim } = *upgrade;
    let mut reading = wait_until_spared(store, options, id)?;
    if let Some(shard) = led_shard(&reading, id) {
        failover::to_best(store, options, &reading, shard, &BTreeSet::new())?;
        // Something may have happened to the others meanwhile.
        reading = wait_until_spared(store, options, id)?;
        if led_shard(&reading, id).is_some() {
            let text = format!("node {} is the primary again, and was not restarted", short(id));
            return Err(Trouble::Failed(text));
        }
    }
    let node = reading.topology.nodes.get(&id);
    let node = node.ok_or_else(|| format!("node {} is gone", short(id)))?;
    check_words(node)?;
    claim.map_or(Ok(()), Claim::check)?;
    let before = node.alive;
    let child = command(restart, node).spawn().map_err(|error| format!("sh: {error}"))?;
    let runs_again = |reading: &Reading| {
        is_new_run(before, reading.topology.nodes.get(&id).and_then(|node| node.alive))
    };
    match wait_for(child, options.timeout, || Ok(runs_again(&store.read()?)))? {
        Some(status) if !status.success() => {
            return Err(Trouble::Failed(format!("the command to restart ended with {status}")));
        }
        Some(_) => {}
        None => {
            say("the command to restart has not ended; the node runs again, so it is left alone")
        }
    }
    let reading = store.wait(options.timeout, &mut |reading| {
        if !runs_again(reading) {
            return Some(format!("node {} has not come back", short(id)));
        }
        let text = format!("node {} catches up", short(id));
        (!is_well(reading, options, id)).then_some(text)
    })?;
    let runs = reading.topology.nodes.get(&id).map(|node| node.version.as_str());
    match (version, runs) {
        (Some(wanted), Some(runs)) if runs != wanted => Err(Trouble::Failed(format!(
            "node {} was restarted and has version {runs}, not {wanted}",
            short(id)
        ))),
        _ => Ok(()),
    }
}

/// Waits until the other members of a node's shard are well: it is not restarted while its shard
/// could not spare it.
fn wait_until_spared(store: &Store, options: &Options, id: NodeId) -> Result<Reading, Trouble> {
    store.wait(options.timeout, &mut |reading| {
        let shard = reading.topology.shard_of(id)?;
        let others = shard.members.iter().filter(|member| **member != id);
        let missing = others.filter(|member| !is_well(reading, options, **member)).count();
        (missing > 0).then(|| format!("{missing} other members of the shard are not well"))
    })
}

/// The shard of which a node is the primary, if it has others.
fn led_shard(reading: &Reading, id: NodeId) -> Option<ShardId> {
    let shard = reading.topology.shard_of(id)?;
    (reading.topology.is_primary(id) && shard.members.len() > 1).then_some(shard.id)
}

/// The command to restart is the operator's, and what a node calls itself is not: `ssh
/// $DUNLIN_NODE_HOST` would take one that begins with a hyphen for an option.
fn check_words(node: &Node) -> Result<(), Trouble> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_' | '-');
    let is_word = |word: &str| !word.starts_with('-') && word.chars().all(is_plain);
    let (host, name) = (&node.address.host, &node.name);
    if host.is_empty() || !is_word(host) {
        let text = format!("node {} has no address that can be used: {host:?}", short(node.id));
        return Err(Trouble::Failed(text));
    }
    if !is_word(name) {
        let text = format!("node {} has a name that cannot be used: {name:?}", short(node.id));
        return Err(Trouble::Failed(text));
    }
    Ok(())
}

/// What restarts a node. It needs none of this program's passwords.
fn command(restart: &str, node: &Node) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", restart])
        .env_remove("DUNLIN_CLUSTER_ETCD_PASSWORD")
        .env_remove("REDISCLI_AUTH")
        .env("DUNLIN_NODE", node.id.to_string())
        .env("DUNLIN_NODE_HOST", &node.address.host)
        .env("DUNLIN_NODE_PORT", node.address.port.to_string())
        .env("DUNLIN_NODE_NAME", &node.name)
        .stdin(Stdio::null());
    command
}

/// Waits for the end of a command, and ends it if that takes too long. But the node may be a part
/// of what it has started: if that `runs_again`, all of it is left alone, and there is no status.
fn wait_for(
    mut child: Child,
    timeout: Duration,
    runs_again: impl FnOnce() -> Result<bool, Trouble>,
) -> Result<Option<ExitStatus>, Trouble> {
    let begun = monotonic_ms();
    while u128::from(monotonic_ms() - begun) <= timeout.as_millis() {
        let ended = child.try_wait().map_err(|error| format!("sh: {error}"))?;
        if ended.is_some() {
            return Ok(ended);
        }
        sleep(TICK);
    }
    let is_left = runs_again().map_err(|trouble| {
        Trouble::Failed(format!("the command to restart has not ended, and goes on: {trouble}"))
    });
    if is_left? {
        return Ok(None);
    }
    end_all(Pid::from_child(&child), PATIENCE);
    // It may have ended meanwhile, or the system may not let this program hold on to processes.
    let _ = child.kill();
    let _ = child.wait();
    let text = "the command to restart has not ended, and was ended with what it had started";
    Err(Trouble::NotYet(text.to_owned()))
}

/// Ends a process and what it has started: asks all of them to, for a node that comes just now ends
/// in order then, and kills those that are left. That is no group of its own: the terminal would
/// stop a command that asks for a password, and Ctrl-C would end this program alone.
fn end_all(first: Pid, patience: Duration) {
    let (mut found, mut all) = (vec![first], Vec::new());
    while let Some(pid) = found.pop() {
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // One that stands still starts nothing more, and the numbers of its children stay theirs.
        let _ = pidfd_send_signal(&process, Signal::STOP);
        found.extend(children(pid));
        all.push(process);
    }
    let send = |signal| {
        for process in &all {
            let _ = pidfd_send_signal(process, signal);
        }
    };
    send(Signal::TERM);
    send(Signal::CONT);
    let until = monotonic_ms() + patience.as_millis() as u64;
    while monotonic_ms() < until && !all.iter().all(has_ended) {
        sleep(TICK);
    }
    send(Signal::KILL);
}

fn has_ended(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)).is_ok_and(|count| count > 0)
}

fn children(of: Pid) -> Vec<Pid> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |entry: &fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Behind the name, which is whatever the process says: the state, and the parent.
        let parent = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parent.and_then(|parent| parent.parse().ok()) == Some(of.as_raw_nonzero().get())
    };
    let number = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    all.filter(is_child).filter_map(number).collect()
}

fn is_new_run(before: Option<Incarnation>, now: Option<Incarnation>) -> bool {
    now.is_some() && now != before
}

/// Whether a node is alive, and follows its primary if it has another one.
fn is_well(reading: &Reading, options: &Options, id: NodeId) -> bool {
    let Some(node) = reading.topology.nodes.get(&id).filter(|node| node.is_alive()) else {
        return false;
    };
    if reading.topology.is_primary(id) || reading.topology.shard_of(id).is_none() {
        return true;
    }
    link::ask(node, &options.access).is_ok_and(|told| told.link == Some(true))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use cluster::topology::{Address, Topology};

    use super::*;

    fn node(host: &str, name: &str) -> Node {
        Node {
            id: NodeId([1; 20]),
            shard: None,
            address: Address { host: host.to_owned(), port: 7, ..Address::default() },
            zone: String::new(),
            alive: Some(1),
            version: String::new(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_shell_finds_nothing_but_words_in_what_a_node_calls_itself() {
        let is_right = |host: &str, name: &str| check_words(&node(host, name)).is_ok();
        for (host, name) in [("10.0.0.1", ""), ("::1", "cache-1"), ("a.example", "a_b.c")] {
            assert!(is_right(host, name), "{host} {name}");
        }
        for wrong in ["-oProxyCommand=x", "`touch x`", "$(x)", "a b", "a;b", "a'b", "\u{e4}"] {
            assert!(!is_right(wrong, "") && !is_right("h", wrong), "{wrong}");
        }
        assert!(!is_right("", "a"));
    }

    /// What a command says when this is done with it after its first line.
    fn says(line: &str, act: impl FnOnce(Child)) -> String {
        let mut child = command(line, &node("h", "")).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        said.read_line(&mut text).unwrap();
        act(child);
        said.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_what_it_has_started() {
        let text = says("(echo begun; sleep 2; echo late) & wait", |child| {
            let hangs = wait_for(child, Duration::ZERO, || Ok(false));
            assert!(matches!(hangs, Err(Trouble::NotYet(_))), "{hangs:?}");
        });
        assert_eq!(text, "begun\n");
        let ends = command("exit 3", &node("h", "")).spawn().unwrap();
        let status = wait_for(ends, Duration::from_secs(60), || Ok(false)).unwrap();
        assert_eq!(status.unwrap().code(), Some(3));
    }

    #[test]
    fn a_command_by_which_the_node_runs_again_is_left_alone() {
        let text = says("echo begun; sleep 0.2; echo late", |child| {
            let left = wait_for(child, Duration::ZERO, || Ok(true));
            assert!(matches!(left, Ok(None)), "{left:?}");
        });
        assert_eq!(text, "begun\nlate\n");
        // So is one of which nobody knows whether it is that.
        let text = says("echo begun; sleep 0.2; echo late", |child| {
            let unclear = wait_for(child, Duration::ZERO, || Err("no etcd".to_owned().into()));
            assert!(matches!(unclear, Err(Trouble::Failed(_))), "{unclear:?}");
        });
        assert_eq!(text, "begun\nlate\n");
    }

    #[test]
    fn a_command_is_asked_to_end_before_it_is_killed() {
        let end = |patience| move |child: Child| end_all(Pid::from_child(&child), patience);
        let line = "trap 'echo asked; exit' TERM; echo begun; while :; do sleep 0.02; done";
        assert_eq!(says(line, end(Duration::from_secs(60))), "begun\nasked\n");
        let line = "trap '' TERM; echo begun; while :; do sleep 0.02; done";
        assert_eq!(says(line, end(Duration::ZERO)), "begun\n");
    }

    #[test]
    fn a_command_is_told_no_password() {
        let told = command("", &node("h", ""));
        for name in ["DUNLIN_CLUSTER_ETCD_PASSWORD", "REDISCLI_AUTH"] {
            assert!(told.get_envs().any(|own| own == (name.as_ref(), None)), "{name}");
        }
    }

    #[test]
    fn nodes_without_a_shard_are_restarted_too() {
        let of_gone = Node { shard: Some(ShardId([9; 20])), id: NodeId([2; 20]), ..node("h", "") };
        let dead = Node { alive: None, id: NodeId([3; 20]), ..node("h", "") };
        let topology = Topology::new("c".to_owned(), 1, [node("h", ""), of_gone, dead], [], []);
        let reading = Reading::of(topology);
        let ids: Vec<_> = order(&reading, None).iter().map(|node| node.id.0[0]).collect();
        assert_eq!(ids, [1, 2], "one that is gone needs no restart");
    }
}
