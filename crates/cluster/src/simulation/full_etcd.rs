//! What etcd has no space for is not done, and nobody waits for it longer than for anything else.

use crate::ids::ShardId;
use crate::keys::{MigrationValue, Subject, encode};
use crate::simulation::etcd::Refusal;
use crate::simulation::handing_over::longest_gap;
use crate::simulation::scenarios::{calm, leader};
use crate::simulation::world::{World, shard_id};
use crate::slots::SlotRanges;
use crate::store::Operation;
use crate::topology::MigrationState;

fn move_slots(world: &mut World, id: &str, slots: SlotRanges, [from, to]: [ShardId; 2]) {
    let key = world.keys.of(&Subject::Migration(id.to_owned()));
    let value = encode(&MigrationValue { slots, from, to, state: MigrationState::Wanted });
    world.operate(Vec::new(), vec![Operation::Put { key, value, lease: 0 }]);
}

#[test]
fn slots_are_not_held_while_they_cannot_be_given_away() {
    for (seed, refusal) in
        (0..20).flat_map(|seed| [Refusal::Space, Refusal::Last].map(|it| (seed, it)))
    {
        let mut world = calm(seed, 2, 1);
        let between = [shard_id(0), shard_id(1)];
        let slots = world.truth.shards[&between[0]].slots.clone();
        let source = leader(&world, between[0]);
        move_slots(&mut world, "m", slots, between);
        world.run_until(world.now + seed * 5);
        world.etcd.refuses = Some(refusal);
        let end = world.now + 30_000;
        let (mut held_since, mut longest, mut held) = (None, 0, 0);
        while world.now < end {
            world.run_until(world.now + 10);
            let sends = &world.hosts[source].process.as_ref().expect("it runs").sends;
            if sends.values().any(|send| send.is_held) {
                longest = longest.max(world.now - *held_since.get_or_insert(world.now));
                held += 10;
            } else {
                held_since = None;
            }
        }
        assert!(longest < 2000 && held < 3_000, "{longest} {held} {refusal:?}: {:?}", world.plan);
        world.etcd.refuses = None;
        world.run_until(world.now + 20_000);
        assert!(world.truth.migrations.is_empty(), "{:?}", world.plan);
        world.check_end();
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// The one that joins is gone before the change can be written down.
#[test]
fn a_change_of_members_that_is_refused_is_given_up() {
    for seed in 0..40 {
        let mut world = calm(seed, 1, 2);
        let shard = shard_id(0);
        let primary = leader(&world, shard);
        let joining = 1 - primary;
        world.assign(joining, None);
        world.run_until(world.now + 2000);
        assert_eq!(world.truth.shards[&shard].members.len(), 1, "{:?}", world.plan);
        world.assign(joining, Some(shard));
        world.run_until(world.now + seed * 10);
        world.etcd.refuses = Some(Refusal::Space);
        world.run_until(world.now + 1000);
        let is_alone = world.truth.shards[&shard].members.len() == 1;
        world.kill(joining);
        world.run_until(world.now + 200);
        let gap = longest_gap(&mut world, shard, 20_000);
        assert!(!is_alone || gap < 2000, "{gap} ms: {:?}", world.plan);
        world.etcd.refuses = None;
        world.start(joining);
        world.run_until(world.now + 15_000);
        assert_eq!(world.truth.shards[&shard].members.len(), 2, "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// The others need no promise of one that only joins, and no confirmation.
#[test]
fn members_go_on_without_etcd_when_one_that_joins_is_gone() {
    let (mut served, mut waited) = (0, 0);
    for seed in 0..60 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let primary = leader(&world, shard);
        let joining = (0..3).find(|host| *host != primary).expect("another one");
        world.assign(joining, None);
        world.run_until(world.now + 2000);
        assert_eq!(world.truth.shards[&shard].members.len(), 2, "{:?}", world.plan);
        world.assign(joining, Some(shard));
        world.run_until(world.now + seed);
        world.etcd.refuses = Some(Refusal::Connections);
        world.run_until(world.now + 1000);
        let is_no_member = world.truth.shards[&shard].members.len() == 2;
        // Its process ends. So nobody hears of a lease that ends, and none does.
        world.etcd_is_up = false;
        world.kill(joining);
        world.run_until(world.now + 200);
        let gap = longest_gap(&mut world, shard, 20_000);
        served += u32::from(is_no_member && gap < 500);
        waited += u32::from(is_no_member && gap >= 500);
        (world.etcd.refuses, world.etcd_is_up) = (None, true);
        world.start(joining);
        world.run_until(world.now + 15_000);
        assert_eq!(world.truth.shards[&shard].members.len(), 3, "{:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
    // A change that was on its way when etcd ended may be done: then all have to wait.
    assert!(served > 50 && waited < 3, "{served} {waited}");
}

/// The one that joins confirms nothing, so it is tried seldom and more seldom.
#[test]
fn slots_that_move_do_not_have_a_change_in_vain_tried_anew() {
    for seed in 0..3 {
        let mut world = calm(seed, 2, 2);
        let (shard, other) = (shard_id(0), shard_id(1));
        let primary = leader(&world, shard);
        let joining = (0..2).find(|host| *host != primary).expect("another one");
        world.assign(joining, None);
        world.run_until(world.now + 2000);
        assert_eq!(world.truth.shards[&shard].members.len(), 1, "{:?}", world.plan);
        let slots: Vec<u16> = world.truth.shards[&shard].slots.iter().take(600).collect();
        world.assign(joining, Some(shard));
        world.stuck.insert(joining);
        let mut written = 0;
        let start = world.now;
        let mut last = world.clients.last[&shard];
        for number in 0..60 {
            let one = [slots[number * 10]].into_iter().collect();
            move_slots(&mut world, &format!("m{number}"), one, [shard, other]);
            let until = world.now + 3000;
            while world.now < until {
                world.run_until(world.now + 20);
                let now = world.clients.last[&shard];
                written += u64::from(now != last);
                last = now;
            }
        }
        let time = world.now - start;
        println!("{written} of {}", time / 60);
        assert!(written * 60 > time / 2, "{written} in {time} ms: {:?}", world.plan);
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}
