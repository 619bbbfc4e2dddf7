//! A primary hands over, while something else happens that is in the way.

use crate::control::Event;
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{FailoverValue, Subject, decode};
use crate::simulation::etcd::Refusal;
use crate::simulation::scenarios::{LEASE_MS, calm, epoch, leader};
use crate::simulation::world::{World, node_id, shard_id};

/// Goes on for so long; the longest time without an acknowledged write.
pub(super) fn longest_gap(world: &mut World, shard: ShardId, for_ms: u64) -> u64 {
    let end = world.now + for_ms;
    let mut longest = 0;
    while world.now < end && world.violation.is_none() {
        world.run_until(world.now + 10);
        longest = longest.max(world.now - world.clients.last[&shard]);
    }
    longest
}

/// To whom the primary of an epoch gives its key within some time, if to anybody.
fn released_to(world: &mut World, shard: ShardId, epoch: Epoch, for_ms: u64) -> Option<NodeId> {
    let key = world.keys.of(&Subject::Failover(shard));
    let (mut to, end) = (None, world.now + for_ms);
    while world.now < end {
        world.run_until(world.now + 1);
        let record = world.etcd.pairs.get(&key);
        let found = record.and_then(|pair| decode::<FailoverValue>(&pair.value));
        let found = found.filter(|it| it.epoch == epoch && it.released.is_some());
        to = to.or(found.map(|it| it.to));
    }
    to
}

/// A replica leaves, and right after that `then` wants it in the primary's place, or the primary to
/// end.
fn check_with_one_that_leaves(then: impl Fn(&mut World, usize, usize)) {
    for seed in 0..300 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let primary = leader(&world, shard);
        let replica = (primary + 1 + seed as usize % 2) % 3;
        world.assign(replica, None);
        world.run_until(world.now + (seed * 7) % 400);
        then(&mut world, primary, replica);
        let (end, mut since) = (world.now + 9000, world.now);
        while world.now < end {
            world.run_until(world.now + 10);
            if world.truth.leaders.contains_key(&shard) {
                since = world.now;
            }
            assert!(world.now < since + 1000, "it has no primary: {:?}", world.plan);
        }
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// It would take the key as no member, which nobody may.
#[test]
fn nobody_hands_over_to_a_replica_that_has_left() {
    check_with_one_that_leaves(|world, _, replica| {
        world.tell(replica, Event::FailoverAsked { ticket: 1, force: false });
    });
}

#[test]
fn a_primary_does_not_end_in_favour_of_a_replica_that_has_left() {
    check_with_one_that_leaves(|world, primary, _| {
        world.process(primary).expect("it runs").is_stopping = true;
        world.tell(primary, Event::StopAsked { ticket: 7, within_ms: 10_000 });
    });
}

/// The replica that stays is linked and alive, and confirms nothing.
#[test]
fn a_primary_that_leaves_does_not_wait_all_the_time_for_a_replica_that_is_stuck() {
    for seed in 0..5 {
        let mut world = calm(seed, 1, 2);
        let primary = leader(&world, shard_id(0));
        world.stuck.insert(1 - primary);
        let written_in = |world: &mut World, time| {
            let before = world.clients.in_memory;
            world.run_until(world.now + time);
            world.clients.in_memory - before
        };
        let usual = written_in(&mut world, 60_000);
        world.assign(primary, None);
        let while_it_leaves = written_in(&mut world, 60_000);
        assert!(while_it_leaves > usual * 3 / 4, "{while_it_leaves} of {usual}");
        world.stuck.clear();
        written_in(&mut world, 60_000);
        assert_eq!(leader(&world, shard_id(0)), 1 - primary, "{:?}", world.plan);
    }
}

/// A primary that leaves goes on, because it cannot give its key away.
#[test]
fn a_primary_keeps_its_place_at_an_etcd_that_refuses() {
    for (seed, refusal) in
        (0..10).flat_map(|seed| [Refusal::Space, Refusal::Transactions].map(|it| (seed, it)))
    {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        world.assign(primary, None);
        world.etcd.refuses = Some(refusal);
        world.run_until(world.now + 200);
        let gap = longest_gap(&mut world, shard, 60_000);
        assert!(gap < 2000, "{refusal:?}: {gap} ms: {:?}", world.plan);
        assert_eq!((leader(&world, shard), epoch(&world, shard)), (primary, before));
        world.etcd.refuses = None;
        world.run_until(world.now + 60_000);
        assert_ne!(leader(&world, shard), primary, "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// A primary that leaves goes on as any other while etcd is away.
#[test]
fn a_primary_that_leaves_keeps_its_place_without_etcd() {
    let mut looked_at = 0;
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        world.assign(primary, None);
        world.run_until(world.now + seed);
        world.etcd.refuses = Some(Refusal::Connections);
        world.run_until(world.now + 200);
        let gap = longest_gap(&mut world, shard, 30_000);
        if epoch(&world, shard) == before {
            looked_at += 1;
            assert!(gap < 2500, "{gap} ms: {:?}", world.plan);
        }
        world.etcd.refuses = None;
        world.run_until(world.now + 60_000);
        assert_ne!(leader(&world, shard), primary, "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
    assert!(looked_at > 0);
}

/// The first one takes too long, and the primary gives it up.
#[test]
fn a_second_wish_for_a_failover_is_heard() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let primary = leader(&world, shard_id(0));
        let (first, second) = ((primary + 1) % 3, (primary + 2) % 3);
        world.stuck.insert(first);
        world.tell(first, Event::FailoverAsked { ticket: 1, force: false });
        world.run_until(world.now + 500);
        world.tell(second, Event::FailoverAsked { ticket: 2, force: false });
        world.run_until(world.now + 2000);
        assert_eq!(leader(&world, shard_id(0)), second, "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// The primary does not hear of its replica for minutes.
#[test]
fn an_old_wish_for_a_failover_is_forgotten() {
    for seed in 0..5 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        let replica = (primary + 1) % 3;
        world.cuts.extend([(primary, replica), (replica, primary)]);
        world.run_until(world.now + 2000);
        world.tell(replica, Event::FailoverAsked { ticket: 1, force: true });
        world.run_until(world.now + 100_000);
        assert_eq!(world.replies, [(replica, 1, Ok(()))]);
        world.cuts.clear();
        world.run_until(world.now + 2 * LEASE_MS);
        assert_eq!(epoch(&world, shard), before, "{:?}", world.plan);
        world.tell(replica, Event::FailoverAsked { ticket: 2, force: false });
        world.run_until(world.now + 1000);
        assert_eq!(leader(&world, shard), replica, "{:?}", world.plan);
    }
}

/// What the first stop has asked etcd for is answered late.
#[test]
fn a_second_stop_waits_for_its_own_end() {
    let mut looked_at = 0;
    for seed in 0..20 {
        let mut world = calm(seed, 1, 2);
        let primary = leader(&world, shard_id(0));
        let replica = 1 - primary;
        world.kill(replica);
        world.run_until(world.now + 200);
        world.hosts[primary].is_deaf = true;
        let first = world.now;
        world.tell(primary, Event::StopAsked { ticket: 1, within_ms: 10_000 });
        world.run_until(world.now + 100);
        world.tell(primary, Event::StopRefused);
        world.hosts[primary].is_deaf = false;
        world.start(replica);
        world.run_until(first + 1500);
        world.stuck.insert(replica);
        world.run_until(first + 1600);
        if world.hosts[primary].leads().is_none() {
            // The replica was elected meanwhile.
            continue;
        }
        looked_at += 1;
        world.tell(primary, Event::StopAsked { ticket: 2, within_ms: 10_000 });
        world.run_until(first + 2500);
        assert_eq!(world.replies, [(primary, 1, Ok(()))], "{:?}", world.plan);
        world.run_until(first + 5000);
        assert_eq!(world.replies[1..], [(primary, 2, Ok(()))], "{:?}", world.plan);
    }
    assert!(looked_at > 0);
}

/// It does not hear etcd in just that moment.
#[test]
fn a_primary_that_ends_waits_a_moment_for_etcd() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        world.etcd.refuses = Some(Refusal::Connections);
        let own = world.process(primary).expect("it runs");
        let (watch, _) = own.watch.take().expect("it has one");
        own.is_stopping = true;
        world.tell(primary, Event::WatchEnded { watch });
        world.tell(primary, Event::StopAsked { ticket: 1, within_ms: 10_000 });
        world.run_until(world.now + 500);
        world.etcd.refuses = None;
        let given = released_to(&mut world, shard, before, 3000);
        assert_eq!(given, Some(node_id(leader(&world, shard))), "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// Of a shard of two, so nobody else can elect one.
#[test]
fn a_primary_that_ends_waits_a_moment_for_a_replica() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 2);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        world.kill(1 - primary);
        world.run_until(world.now + 1000);
        world.start(1 - primary);
        let alive = world.keys.of(&Subject::Alive(node_id(1 - primary)));
        while !world.etcd.pairs.contains_key(&alive) {
            world.run_until(world.now + 1);
        }
        world.run_until(world.now + 5);
        world.process(primary).expect("it runs").is_stopping = true;
        world.tell(primary, Event::StopAsked { ticket: 1, within_ms: 10_000 });
        let given = released_to(&mut world, shard, before, 3000);
        assert_eq!(given, Some(node_id(1 - primary)), "{:?}", world.plan);
        assert_eq!(leader(&world, shard), 1 - primary, "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// etcd reaches the end of its space with just this transaction: it carries it out, and says that
/// it has no space.
#[test]
fn a_release_that_was_done_may_be_refused() {
    for seed in 0..100 {
        let mut world = calm(seed, 1, 3);
        let replica = (leader(&world, shard_id(0)) + 1) % 3;
        world.etcd.refuses = Some(Refusal::TooLate);
        world.tell(replica, Event::FailoverAsked { ticket: 1, force: false });
        world.run_until(world.now + 10_000);
        world.check_end();
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}
