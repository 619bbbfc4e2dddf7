//! etcd is set back to a backup of before a failover, with a higher revision than any before.

use crate::control::Event;
use crate::ids::ShardId;
use crate::keys::{FailoverValue, Subject, encode};
use crate::simulation::host::Message;
use crate::simulation::scenarios::{calm, epoch, leader, stop, until_written_after};
use crate::simulation::world::{World, node_id, shard_id};
use crate::store::Operation;

/// A replica becomes primary.
fn fail_over(world: &mut World, shard: ShardId, to: usize) {
    let event = Event::FailoverAsked { ticket: 1, force: false };
    world.send(to, to, Message::Event(event));
    world.run_until(world.now + 2000);
    assert_eq!(leader(world, shard), to, "{:?}", world.plan);
}

/// Nodes do not go by what etcd has, until an operator has written there what they know.
fn check_that_nothing_is_lost(world: &mut World, shard: ShardId, last: i64) {
    world.run_until(world.now + 12_000);
    assert_eq!((&world.violation, epoch(world, shard)), (&None, last), "{:?}", world.plan);
    world.lose_etcd();
    world.run_until(world.now + 20_000);
    world.check_end();
    assert_eq!(world.violation, None, "{:?}", world.plan);
}

/// The same process was primary at the time of the backup and is it now, and another one was it in
/// between. Its old key says nothing.
#[test]
fn a_primary_does_not_lead_in_an_epoch_of_before() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let first = leader(&world, shard);
        let (second, third) = ((first + 1) % 3, (first + 2) % 3);
        let saved = world.etcd.clone();
        fail_over(&mut world, shard, second);
        fail_over(&mut world, shard, first);
        stop(&mut world, third);
        let last = epoch(&world, shard);
        world.restore(saved);
        world.run_until(world.now + 8000);
        world.kill(first);
        world.start(third);
        world.run_until(world.now + 4000);
        world.start(first);
        check_that_nothing_is_lost(&mut world, shard, last);
    }
}

/// The primary of the time of the backup was away since then, and believes what it reads.
#[test]
fn a_primary_that_comes_back_is_not_the_last_one_for_certain() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let first = leader(&world, shard);
        let saved = world.etcd.clone();
        stop(&mut world, first);
        let last = epoch(&world, shard);
        world.etcd_is_up = false;
        world.run_until(world.now + 1000);
        world.start(first);
        world.run_until(world.now + 1000);
        world.restore(saved);
        check_that_nothing_is_lost(&mut world, shard, last);
    }
}

/// A node was killed right after a failover: its picture of the cluster is from before that.
#[test]
fn data_of_a_later_epoch_say_that_etcd_was_set_back() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let first = leader(&world, shard);
        let saved = world.etcd.clone();
        let kept: Vec<_> = world.hosts.iter().map(|host| host.kept.clone()).collect();
        fail_over(&mut world, shard, (first + 1) % 3);
        let last = epoch(&world, shard);
        for (host, kept) in kept.into_iter().enumerate() {
            world.kill(host);
            world.hosts[host].kept = kept;
        }
        world.restore(saved);
        (0..3).for_each(|host| world.start(host));
        world.run_until(world.now + 15_000);
        assert_eq!((&world.violation, epoch(&world, shard)), (&None, last), "{:?}", world.plan);
    }
}

/// What it finds when it reads all may be of before another one led, so it makes nothing of that.
#[test]
fn nobody_waits_for_a_replica_that_has_not_seen_that_the_primary_has_let_go() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        let replica = (primary + 1) % 3;
        let watch = world.process(replica).and_then(|own| own.watch.take()).expect("it has one");
        let (to, released) = (node_id(replica), Some(world.hosts[primary].journal.len() as u64));
        let value = encode(&FailoverValue { to, epoch: before, released, force: false });
        let put = Operation::Put { key: world.keys.of(&Subject::Failover(shard)), value, lease: 0 };
        let delete = Operation::Delete { key: world.keys.of(&Subject::Leader(shard)) };
        world.operate(Vec::new(), vec![put, delete]);
        world.tell(replica, Event::WatchEnded { watch: watch.0 });
        until_written_after(&mut world, shard, before, 1500);
    }
}
