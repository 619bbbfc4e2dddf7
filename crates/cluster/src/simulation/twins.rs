//! Processes of one node that are told one thing after the other: one that was there before and one
//! with a copy of its files, and one whose etcd loses what it had.

use std::sync::Arc;

use crate::control::{Action, Announced, Control, Event, Recovered, RequestId, Setup};
use crate::ids::{Epoch, Incarnation};
use crate::keys::{
    AliveValue, Keys, LeaderValue, MemberValue, RebuiltValue, ShardValue, Subject, decode, encode,
};
use crate::rebuild::{Rebuild, plan};
use crate::simulation::etcd::Etcd;
use crate::simulation::world::{address, node_id, shard_id};
use crate::slots::SlotRanges;
use crate::store::{Failure, Operation, Pair, Request, Revision, Transaction};
use crate::topology::Topology;

const LEASE_MS: u64 = 2000;

struct Process {
    control: Control,
    watch: Option<(RequestId, Revision)>,
    serve_until: u64,
    /// How often it has become primary.
    led: usize,
    warnings: usize,
    is_stopped: bool,
}

/// A shard of one, whose only node has several processes.
struct Shard {
    now: u64,
    etcd: Etcd,
    /// What another address has that is named, and how often it was changed to the other one.
    other: Option<Etcd>,
    passes: usize,
    keys: Keys,
    processes: Vec<Process>,
    /// The first one's process is gone, as others can see.
    is_first_gone: bool,
    /// etcd answers nobody who reads.
    is_unreadable: bool,
}

impl Shard {
    fn new() -> Shard {
        let mut etcd = Etcd::new();
        let keys = Keys::new("twins");
        let (node, slots) = (node_id(0), SlotRanges::all());
        let member = MemberValue {
            shard: Some(shard_id(0)),
            address: address(0),
            zone: String::new(),
            name: String::new(),
        };
        let shard = ShardValue { slots, members: vec![node] };
        let put = |subject, value| Operation::Put { key: keys.of(&subject), value, lease: 0 };
        let operations = vec![
            put(Subject::Member(node), encode(&member)),
            put(Subject::Shard(shard_id(0)), encode(&shard)),
        ];
        let compares = Vec::new();
        let found = Request::Transaction(Transaction { compares, operations });
        etcd.carry_out(0, &found).expect("it is up");
        let mut all = Shard {
            now: 1000,
            etcd,
            other: None,
            passes: 0,
            keys,
            processes: Vec::new(),
            is_first_gone: false,
            is_unreadable: false,
        };
        all.start();
        all.run(500);
        assert!(all.serves(0));
        all
    }

    /// Starts a process at an address of its own.
    fn start(&mut self) {
        self.start_with(None);
    }

    /// Starts one that knows a topology.
    fn start_with(&mut self, cached: Option<Arc<Topology>>) {
        let number = self.processes.len();
        let setup = Setup {
            cluster: "twins".into(),
            node: node_id(0),
            incarnation: number as Incarnation + 1,
            announced: Announced {
                address: address(number),
                zone: String::new(),
                name: String::new(),
            },
            version: "1".into(),
            node_timeout_ms: LEASE_MS,
            promised_ms: 0,
            recovered: Recovered::default(),
            cached,
        };
        self.processes.push(Process {
            control: Control::new(setup, number as u64),
            watch: None,
            serve_until: 0,
            led: 0,
            warnings: 0,
            is_stopped: false,
        });
    }

    fn serves(&self, process: usize) -> bool {
        self.now < self.processes[process].serve_until
    }

    /// The epoch, and where etcd says that the node is.
    fn record(&self) -> (Epoch, u16) {
        let pair = |subject| &self.etcd.pairs[&self.keys.of(&subject)];
        let member: MemberValue =
            decode(&pair(Subject::Member(node_id(0))).value).expect("a member");
        (pair(Subject::Epoch(shard_id(0))).modified, member.address.port)
    }

    fn run(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now += 20;
            self.etcd.expire(self.now);
            for process in 0..self.processes.len() {
                if !self.processes[process].is_stopped {
                    self.tell_changes(process);
                    self.tell(process, Event::Tick);
                }
            }
            let serving = (0..self.processes.len()).filter(|process| self.serves(*process));
            assert!(serving.count() < 2, "two serve at {}", self.now);
        }
    }

    fn tell_changes(&mut self, process: usize) {
        let Some((watch, from)) = self.processes[process].watch else { return };
        let revision = self.etcd.revision;
        let events = self.etcd.changes_after(from).expect("all of them");
        self.processes[process].watch = Some((watch, revision));
        self.tell(process, Event::Watched { watch, revision, events });
    }

    fn tell(&mut self, process: usize, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut actions = Vec::new();
            let own = &mut self.processes[process];
            own.control.handle(self.now, event, &mut actions);
            for action in actions {
                match action {
                    Action::Ask { request, what } => {
                        let is_read = matches!(what, Request::Read { .. });
                        let result = match self.is_unreadable && is_read {
                            true => Err(Failure::Unknown("no answer".into())),
                            false => self.etcd.carry_out(self.now, &what),
                        };
                        events.insert(0, Event::Answered { request, result });
                    }
                    Action::Watch { watch, from, .. } => own.watch = Some((watch, from - 1)),
                    Action::PassOver => {
                        self.passes += 1;
                        if let Some(other) = &mut self.other {
                            std::mem::swap(&mut self.etcd, other);
                        }
                    }
                    Action::Detach => events.insert(0, Event::Detached { offset: 0 }),
                    Action::Lead { .. } => own.led += 1,
                    Action::ServeUntil { until, .. } => own.serve_until = until,
                    Action::Probe { incarnation, .. } if self.is_first_gone => {
                        events.insert(0, Event::PredecessorGone { incarnation });
                    }
                    Action::Log { is_warning: true, .. } => own.warnings += 1,
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_copy_of_a_node_waits_until_the_node_is_gone() {
    let mut shard = Shard::new();
    let before = shard.record();
    shard.start();
    shard.run(10_000);
    assert_eq!(shard.record(), before);
    assert!(shard.serves(0) && shard.processes[1].led == 0);
    // Its lease ends without it.
    shard.processes[0].is_stopped = true;
    shard.run(2 * LEASE_MS + 500);
    assert!(shard.serves(1) && shard.record().1 == address(1).port);
}

#[test]
fn a_node_that_goes_on_after_another_has_its_name_stands_apart() {
    let mut shard = Shard::new();
    shard.processes[0].is_stopped = true;
    shard.start();
    shard.run(2 * LEASE_MS + 500);
    assert!(shard.serves(1));
    let before = shard.record();
    shard.processes[0].is_stopped = false;
    shard.run(10_000);
    assert_eq!(shard.record(), before);
    assert!(shard.serves(1) && !shard.serves(0));
    assert_eq!((shard.processes[0].led, shard.processes[1].led), (1, 1));
    assert_eq!((shard.processes[0].warnings, shard.processes[1].warnings), (2, 0));
    // Nor does it take the name back.
    shard.processes[1].is_stopped = true;
    shard.run(10_000);
    assert_eq!(shard.record(), before);
}

#[test]
fn a_node_that_is_known_to_be_gone_is_replaced_at_once() {
    let mut shard = Shard::new();
    (shard.processes[0].is_stopped, shard.processes[0].serve_until) = (true, 0);
    shard.is_first_gone = true;
    shard.start();
    shard.run(200);
    assert_eq!(shard.processes[1].led, 1);
    assert!(shard.serves(1));
}

/// What etcd says of a lease counts while its changes are watched alone.
#[test]
fn a_lease_is_renewed_as_soon_as_changes_are_watched_again() {
    for silence in (0..=600).step_by(100) {
        let mut shard = Shard::new();
        shard.run(silence);
        let (watch, _) = shard.processes[0].watch.take().expect("it has one");
        shard.is_unreadable = true;
        shard.tell(0, Event::WatchEnded { watch });
        shard.run(LEASE_MS / 2);
        shard.is_unreadable = false;
        let mut before = 0;
        while shard.processes[0].watch.is_none() {
            before = shard.etcd.counts.keep_alives;
            shard.run(20);
        }
        assert!(shard.etcd.counts.keep_alives > before, "after {silence} ms");
    }
}

/// All keys, as they were written.
fn delete_all(shard: &mut Shard) -> Vec<Operation> {
    let pairs: Vec<_> = shard.etcd.pairs.values().cloned().collect();
    let deletes = pairs.iter().map(|pair| Operation::Delete { key: pair.key.clone() });
    let operations = deletes.collect();
    let deletion = Request::Transaction(Transaction { compares: Vec::new(), operations });
    shard.etcd.carry_out(shard.now, &deletion).expect("it is up");
    let put = |pair: Pair| Operation::Put { key: pair.key, value: pair.value, lease: 0 };
    pairs.into_iter().filter(|pair| pair.lease == 0).map(put).collect()
}

fn write(shard: &mut Shard, operations: Vec<Operation>) {
    let transaction = Request::Transaction(Transaction { compares: Vec::new(), operations });
    shard.etcd.carry_out(shard.now, &transaction).expect("it is up");
}

#[test]
fn keys_that_are_all_deleted_are_not_believed_to_be_gone() {
    let mut shard = Shard::new();
    let saved = delete_all(&mut shard);
    shard.run(10_000);
    assert!(shard.serves(0), "it has promised itself to go on");
    assert_eq!(shard.processes[0].warnings, 1);
    assert!(shard.etcd.pairs.is_empty(), "{:?}", shard.etcd.pairs);
    write(&mut shard, saved);
    shard.run(10_000);
    assert!(shard.serves(0));
    assert!(shard.etcd.pairs.contains_key(&shard.keys.of(&Subject::Leader(shard_id(0)))));
}

#[test]
fn another_etcd_without_the_cluster_is_not_believed() {
    for revision in [1, 1000] {
        let mut shard = Shard::new();
        let before = std::mem::replace(&mut shard.etcd, Etcd::new());
        shard.etcd.revision = revision;
        shard.run(40_000);
        assert!(shard.serves(0), "it has promised itself to go on");
        assert!(shard.etcd.pairs.is_empty(), "{:?}", shard.etcd.pairs);
        // One that starts knows what the one before it knew.
        shard.processes[0].is_stopped = true;
        shard.processes[0].serve_until = 0;
        let known = Arc::clone(shard.processes[0].control.topology());
        shard.start_with(Some(known));
        shard.run(10_000);
        assert!(!shard.serves(1) && shard.processes[1].led == 0);
        assert!(shard.etcd.pairs.is_empty(), "{:?}", shard.etcd.pairs);
        let lost = shard.processes[1].warnings;
        // The one that was lost comes back.
        shard.etcd = before;
        shard.is_first_gone = true;
        shard.run(10_000);
        assert!(shard.serves(1), "revision {revision}");
        assert_eq!((lost, shard.processes[1].warnings), (1, 1));
    }
}

/// An etcd with another cluster of the same name, at some revision.
fn foreign(shard: &Shard, revision: Revision) -> Etcd {
    let mut etcd = Etcd::new();
    etcd.revision = revision;
    let value = encode(&ShardValue { slots: SlotRanges::all(), members: vec![node_id(7)] });
    let key = shard.keys.of(&Subject::Shard(shard_id(7)));
    let operations = vec![Operation::Put { key, value, lease: 0 }];
    let founded = Request::Transaction(Transaction { compares: Vec::new(), operations });
    etcd.carry_out(0, &founded).expect("it is up");
    etcd
}

#[test]
fn another_cluster_of_the_same_name_is_not_believed() {
    for is_restarted in [false, true] {
        let mut shard = Shard::new();
        let known = Arc::clone(shard.processes[0].control.topology());
        let other = foreign(&shard, 1000);
        let before = std::mem::replace(&mut shard.etcd, other);
        let process = usize::from(is_restarted);
        if is_restarted {
            (shard.processes[0].is_stopped, shard.processes[0].serve_until) = (true, 0);
            shard.is_first_gone = true;
            shard.start_with(Some(Arc::clone(&known)));
        } else {
            let (watch, _) = shard.processes[0].watch.take().expect("it has one");
            shard.tell(0, Event::WatchEnded { watch });
        }
        shard.run(20_000);
        assert_eq!(shard.processes[process].control.topology().shards, known.shards);
        assert_eq!((shard.etcd.pairs.len(), shard.processes[process].warnings), (1, 1));
        shard.etcd = before;
        shard.run(10_000);
        assert!(shard.serves(process), "restarted: {is_restarted}");
    }
}

#[test]
fn a_shard_that_comes_as_the_last_one_goes_makes_another_cluster() {
    let mut shard = Shard::new();
    let [own, other] = [0, 7].map(|of| shard.keys.of(&Subject::Shard(shard_id(of))));
    let value = encode(&ShardValue { slots: SlotRanges::all(), members: vec![node_id(7)] });
    let put = Operation::Put { key: other, value, lease: 0 };
    write(&mut shard, vec![put, Operation::Delete { key: own }]);
    shard.run(10_000);
    assert!(shard.serves(0) && shard.processes[0].warnings == 1);
}

#[test]
fn a_member_that_is_another_etcd_is_passed_over() {
    let mut shard = Shard::new();
    let known = Arc::clone(shard.processes[0].control.topology());
    (shard.processes[0].is_stopped, shard.processes[0].serve_until) = (true, 0);
    shard.is_first_gone = true;
    for mut wrong in [Etcd::new(), foreign(&shard, 1000)] {
        let pairs = wrong.pairs.len();
        std::mem::swap(&mut shard.etcd, &mut wrong);
        shard.other = Some(wrong);
        let process = shard.processes.len();
        shard.start_with(Some(Arc::clone(&known)));
        shard.passes = 0;
        shard.run(4000);
        assert!(shard.serves(process));
        assert_eq!((shard.passes, shard.processes[process].warnings), (1, 1));
        assert_eq!(shard.other.as_ref().expect("it is there").pairs.len(), pairs);
        (shard.processes[process].is_stopped, shard.processes[process].serve_until) = (true, 0);
        // The next one may take its place at once.
        shard.run(2 * LEASE_MS);
    }
}

#[test]
fn members_of_one_etcd_that_is_not_believed_are_passed_over_at_leisure() {
    let mut shard = Shard::new();
    (shard.etcd, shard.other) = (Etcd::new(), Some(Etcd::new()));
    let (watch, _) = shard.processes[0].watch.take().expect("it has one");
    shard.tell(0, Event::WatchEnded { watch });
    shard.run(30_000);
    let reads = shard.etcd.counts.reads + shard.other.as_ref().expect("it is there").counts.reads;
    assert!((5..=30).contains(&shard.passes), "{}", shard.passes);
    assert_eq!(reads as usize, shard.passes);
    assert!(shard.serves(0) && shard.processes[0].warnings == 1);
}

/// The copy has the lease of the same number, and nobody has given it to this node.
#[test]
fn a_copy_of_etcd_that_is_asked_instead_makes_a_primary_anew() {
    for is_behind in [true, false] {
        let mut shard = Shard::new();
        let leader = shard.keys.of(&Subject::Leader(shard_id(0)));
        let (before, epoch) = (shard.etcd.pairs[&leader].lease, shard.record().0);
        let copy = shard.etcd.clone();
        // What was decided since is not known there.
        let key = shard.keys.of(&Subject::Change);
        write(&mut shard, vec![Operation::Put { key, value: Vec::new(), lease: 0 }]);
        shard.run(100);
        shard.etcd = copy;
        shard.processes[0].watch = None;
        if !is_behind {
            shard.etcd.revision += 20;
        }
        shard.tell(0, Event::OtherEtcd);
        if is_behind {
            shard.run(1000);
            assert_eq!(shard.etcd.pairs[&leader].lease, before);
            assert_eq!(shard.record().0, epoch, "it is not believed, so nothing is written");
            shard.etcd.revision += 20;
            shard.etcd.renew_all(shard.now);
        }
        shard.run(5000);
        assert!(shard.serves(0));
        assert!(shard.etcd.pairs[&leader].lease != before && shard.record().0 > epoch);
        let own = &shard.processes[0];
        assert_eq!((own.led, own.warnings), (2, usize::from(is_behind)));
    }
}

#[test]
fn a_node_that_was_in_no_cluster_yet_believes_another_etcd() {
    let mut shard = Shard::new();
    shard.processes[0].is_stopped = true;
    shard.etcd = Etcd::new();
    let mut known = Topology::default();
    known.revision = 1000;
    shard.start_with(Some(Arc::new(known)));
    shard.run(10_000);
    assert_eq!(shard.processes[1].warnings, 0);
    assert!(!shard.etcd.pairs.is_empty(), "it has registered itself");
}

/// Another process of the same node has followed the first one since `etcd` was as it is returned.
fn restarted_since() -> (Shard, Etcd) {
    let mut shard = Shard::new();
    let saved = shard.etcd.clone();
    (shard.processes[0].is_stopped, shard.processes[0].serve_until) = (true, 0);
    shard.is_first_gone = true;
    shard.start();
    shard.run(1000);
    assert!(shard.serves(1));
    (shard, saved)
}

/// etcd starts as it was, at a higher revision than it is now, and its leases begin anew.
fn restore(shard: &mut Shard, saved: Etcd) {
    let revision = shard.etcd.revision + 20;
    shard.etcd = saved;
    shard.etcd.revision = revision;
    shard.etcd.renew_all(shard.now);
    let (watch, _) = shard.processes[1].watch.take().expect("it has one");
    shard.tell(1, Event::WatchEnded { watch });
}

#[test]
fn a_restored_etcd_that_has_the_process_before_displaces_nobody() {
    let (mut shard, before) = restarted_since();
    // As if the process had become primary before the backup was made.
    let mut saved = shard.etcd.clone();
    let key = shard.keys.of(&Subject::Alive(node_id(0)));
    saved.pairs.insert(key.clone(), before.pairs[&key].clone());
    restore(&mut shard, saved);
    shard.run(20_000);
    assert!(shard.serves(1));
    let pair = |subject| &shard.etcd.pairs[&shard.keys.of(&subject)];
    let alive: AliveValue = decode(&pair(Subject::Alive(node_id(0))).value).expect("it is");
    let leader: LeaderValue = decode(&pair(Subject::Leader(shard_id(0))).value).expect("it is");
    assert_eq!((alive.incarnation, leader.incarnation), (2, 2));
}

#[test]
fn an_etcd_that_was_set_back_is_not_believed_because_others_have_written_to_it() {
    let (mut shard, saved) = restarted_since();
    let key = shard.keys.of(&Subject::Shard(shard_id(0)));
    let value = shard.etcd.pairs[&key].value.clone();
    write(&mut shard, vec![Operation::Put { key, value, lease: 0 }]);
    shard.run(100);
    restore(&mut shard, saved);
    shard.run(20_000);
    assert!(shard.serves(1), "it has promised itself to go on");
    for subject in [Subject::Alive(node_id(0)), Subject::Leader(shard_id(0))] {
        assert!(!shard.etcd.pairs.contains_key(&shard.keys.of(&subject)), "it writes nothing");
    }
}

/// What is to be written by what a process knows.
fn rebuild_of(shard: &Shard, process: usize) -> Rebuild {
    plan("twins", &[shard.processes[process].control.witness()], None, 0)
        .expect("it can be decided")
}

/// Writes the cluster anew, or a part of it.
fn write_anew(shard: &mut Shard, rebuild: &Rebuild, is_complete: bool) {
    let put = |(key, value)| Operation::Put { key, value, lease: 0 };
    let mut operations: Vec<_> = rebuild.values(&shard.keys).into_iter().map(put).collect();
    let key = shard.keys.of(&Subject::Rebuilt);
    operations.push(put((key, rebuild.mark("1", is_complete))));
    write(shard, operations);
}

/// The epoch of the primary's key, if there is one.
fn leads_in(shard: &Shard) -> Option<Epoch> {
    let pair = |subject| shard.etcd.pairs.get(&shard.keys.of(&subject));
    let rebuilt: RebuiltValue = decode(&pair(Subject::Rebuilt)?.value).expect("it says so");
    Some(pair(Subject::Leader(shard_id(0)))?.created + rebuilt.ahead)
}

#[test]
fn a_primary_goes_on_in_an_etcd_that_was_written_anew() {
    let mut shard = Shard::new();
    let mut before = shard.record().0;
    for times in 1..4 {
        shard.etcd.lose();
        shard.run(5000);
        let rebuild = rebuild_of(&shard, 0);
        write_anew(&mut shard, &rebuild, false);
        shard.run(10_000);
        assert_eq!(leads_in(&shard), None, "a part is not believed");
        assert!(shard.serves(0), "it has promised itself to go on");
        write_anew(&mut shard, &rebuild, true);
        let led = shard.processes[0].led;
        for _ in 0..200 {
            shard.run(20);
            assert!(shard.serves(0), "it never stops");
        }
        let epoch = leads_in(&shard).expect("it leads");
        assert!(epoch >= before + 1_000_000_000, "{epoch} after {before}");
        assert_eq!(shard.processes[0].control.topology().epoch(), epoch);
        assert_eq!((shard.processes[0].led, led), (times + 1, times));
        before = epoch;
    }
}

#[test]
fn a_node_that_has_started_without_etcd_waits_for_a_lease_of_before() {
    let mut shard = Shard::new();
    let known = Arc::clone(shard.processes[0].control.topology());
    (shard.processes[0].is_stopped, shard.processes[0].serve_until) = (true, 0);
    shard.is_first_gone = true;
    shard.etcd.lose();
    shard.start_with(Some(known));
    shard.run(3000);
    let rebuild = rebuild_of(&shard, 1);
    write_anew(&mut shard, &rebuild, true);
    // It looks again within three seconds, and then waits for as long as a lease lasts.
    shard.run(LEASE_MS);
    assert_eq!(shard.processes[1].led, 0);
    shard.run(3000 + LEASE_MS);
    assert!(shard.serves(1));
    assert!(leads_in(&shard).is_some_and(|epoch| epoch > rebuild.ahead));
}
