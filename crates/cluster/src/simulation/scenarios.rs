//! Single troubles in calm worlds, and what clients see of them.

use crate::control::{Event, Lineage};
use crate::ids::{Epoch, ShardId};
use crate::keys::{FailoverValue, MigrationValue, Subject, encode};
use crate::simulation::host::Message;
use crate::simulation::world::{Happening, Keeping, Plan, World, node_id, shard_id};
use crate::slots::SlotRanges;
use crate::store::Operation;
use crate::topology::MigrationState;

/// The lease of the worlds here, in milliseconds.
pub(super) const LEASE_MS: u64 = 5000;

/// A world in which nothing goes wrong by itself, some time after its start.
pub(super) fn calm(seed: u64, shards: usize, members: usize) -> World {
    let write_every_ms = if shards > 2 { 1000 } else { 10 };
    let mut world = World::new(Plan {
        seed,
        shards,
        members,
        spares: 0,
        keeping: Keeping::Disk,
        trouble_ms: 0,
        reverted: None,
        has_wild_clocks: false,
        node_timeout_ms: LEASE_MS,
        trouble_every_ms: 0,
        write_every_ms,
        troubles: &[],
    });
    world.run_until(3000);
    world
}

pub(super) fn leader(world: &World, shard: ShardId) -> usize {
    let epoch = world.truth.leaders[&shard];
    (0..world.hosts.len()).find(|host| world.hosts[*host].leads() == Some(epoch)).expect("it leads")
}

pub(super) fn epoch(world: &World, shard: ShardId) -> Epoch {
    world.truth.epochs[&shard].0
}

/// Goes on until a write is acknowledged at quorum in an epoch after `before`; how long it takes.
pub(super) fn until_written_after(
    world: &mut World,
    shard: ShardId,
    before: Epoch,
    limit: u64,
) -> u64 {
    let start = world.now;
    while world.now < start + limit {
        world.run_until(world.now + 10);
        assert_eq!(world.violation, None);
        let is_new = epoch(world, shard) > before && world.truth.leaders.contains_key(&shard);
        let is_written = world.clients.last[&shard] >= world.now - 10;
        if is_new && is_written {
            return world.now - start;
        }
    }
    panic!("nothing is written after {limit} ms: {:?}", world.plan);
}

#[test]
fn a_killed_primary_is_replaced_in_less_than_a_second() {
    let mut times: Vec<u64> = (0..50)
        .map(|seed| {
            let mut world = calm(seed, 1, 3);
            let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
            let primary = leader(&world, shard);
            world.kill(primary);
            let time = until_written_after(&mut world, shard, before, 3000);
            world.start(primary);
            world.run_until(world.now + 5000);
            world.check_end();
            assert_eq!(world.violation, None);
            time
        })
        .collect();
    times.sort_unstable();
    println!("writes again after {} ms, at most {} ms", times[25], times[49]);
    assert!(times[25] < 400 && times[49] < 1000, "{times:?}");
}

/// One replica has started a moment ago, and has not had a connection to the primary yet whose end
/// it could see.
#[test]
fn a_replica_that_has_just_started_stands_for_election() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        let primary = leader(&world, shard);
        let replica = (primary + 1) % 3;
        world.kill(replica);
        world.cuts.extend([(primary, replica), (replica, primary)]);
        world.start(replica);
        world.run_until(world.now + 300);
        assert_eq!(epoch(&world, shard), before);
        world.kill(primary);
        until_written_after(&mut world, shard, before, 1500);
    }
}

#[test]
fn a_stopped_primary_is_replaced_after_its_lease() {
    for seed in 0..30 {
        let mut world = calm(seed, 1, 2);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        let primary = leader(&world, shard);
        world.hosts[primary].is_stopped = true;
        // A quorum of two needs both, so that what it looks at is the election alone.
        let start = world.now;
        while epoch(&world, shard) == before {
            world.run_until(world.now + 10);
            assert!(world.now < start + LEASE_MS + 1000, "{:?}", world.plan);
        }
        world.run_until(world.now + 2000);
        world.at(0, Happening::Resume { host: primary });
        world.run_until(world.now + 3000);
        world.check_end();
        assert_eq!(world.violation, None);
    }
}

#[test]
fn without_etcd_a_primary_goes_on_while_all_members_promise() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        world.etcd_is_up = false;
        for _ in 0..60 {
            world.run_until(world.now + 500);
            assert!(world.clients.last[&shard] + 200 > world.now, "{:?}", world.plan);
        }
        // One member is silent: it may be a candidate, for all that is known.
        let replica = (0..3).find(|host| *host != leader(&world, shard)).expect("there are two");
        world.hosts[replica].is_stopped = true;
        let silent = world.now;
        world.run_until(silent + LEASE_MS + 5000);
        let last = world.clients.last[&shard];
        assert!(last < silent + LEASE_MS, "{last} after {silent}: {:?}", world.plan);
        world.at(0, Happening::Resume { host: replica });
        world.at(100, Happening::EtcdBack);
        world.run_until(world.now + 6000);
        world.check_end();
        assert_eq!(world.violation, None);
        assert!(epoch(&world, shard) >= before);
    }
}

/// Stops a node in order, which does not come back by itself.
pub(super) fn stop(world: &mut World, host: usize) {
    world.process(host).expect("it runs").is_stopping = true;
    world.tell(host, Event::StopAsked { ticket: 7, within_ms: 10_000 });
    world.hosts[host].is_scrapped = true;
    world.run_until(world.now + 4000);
    assert!(world.hosts[host].process.is_none());
    world.hosts[host].is_scrapped = false;
}

/// Whether the primary has every write that was accepted, at quorum or not.
pub(super) fn has_all(world: &World, shard: ShardId) -> bool {
    lost(world, shard) == 0
}

/// How many of them it does not have.
fn lost(world: &World, shard: ShardId) -> u64 {
    let content = world.content_of(leader(world, shard), &SlotRanges::all());
    world.clients.in_memory - content.len() as u64
}

#[test]
fn a_wanted_failover_loses_nothing() {
    for seed in 0..30 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        let replica = (primary + 1 + seed as usize % 2) % 3;
        let event = Event::FailoverAsked { ticket: 1, force: false };
        world.send(replica, replica, Message::Event(event));
        // Nodes look at themselves each 80 to 120 ms here, and nothing else takes time.
        let end = world.now + 300;
        while world.now < end && epoch(&world, shard) == before {
            world.run_until(world.now + 10);
        }
        world.run_until(world.now + 10);
        assert_eq!(leader(&world, shard), replica, "{:?}", world.plan);
        until_written_after(&mut world, shard, before, 1500);
        assert!(has_all(&world, shard), "{:?}", world.plan);
    }
}

#[test]
fn a_primary_that_ends_lets_go_first() {
    for seed in 0..30 {
        let mut world = calm(seed, 1, 2);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        world.process(primary).expect("it runs").is_stopping = true;
        world.tell(primary, Event::StopAsked { ticket: 7, within_ms: 10_000 });
        world.run_until(world.now + 300);
        assert!(epoch(&world, shard) > before, "{:?}", world.plan);
        assert!(world.hosts[primary].process.is_none() || world.hosts[primary].runs > 1);
        assert!(has_all(&world, shard), "{:?}", world.plan);
    }
}

/// A replica is stopped in order, and the others are killed later: they have more, although only
/// the replica knows that it lacks nothing of what it has confirmed.
#[test]
fn members_that_were_killed_count_with_what_they_have() {
    for seed in 0..30 {
        let mut world = calm(seed, 1, 3);
        world.plan.keeping = Keeping::Files;
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        let behind = (primary + 1) % 3;
        world.tell(behind, Event::StopAsked { ticket: 1, within_ms: 10_000 });
        world.run_until(world.now + 100);
        world.kill(behind);
        world.hosts[behind].has_ended_in_order = true;
        world.run_until(world.now + 1000);
        let (one, other) = (primary, (primary + 2) % 3);
        world.kill(one);
        world.kill(other);
        world.run_until(world.now + 100);
        (0..3).for_each(|host| world.start(host));
        until_written_after(&mut world, shard, before, LEASE_MS + 3000);
        world.run_until(world.now + 3000);
        world.check_end();
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

/// Each is primary when it is stopped, and hears of its successor before it ends.
#[test]
fn members_that_were_stopped_one_after_the_other_lack_nothing() {
    for (seed, missing) in (0..20).flat_map(|seed| [(seed, 0), (seed, 1), (seed, 2)]) {
        let mut world = calm(seed, 1, 3);
        world.plan.keeping = Keeping::Files;
        let shard = shard_id(0);
        let order = [0; 3].map(|_| {
            let primary = leader(&world, shard);
            stop(&mut world, primary);
            primary
        });
        let before = epoch(&world, shard);
        for host in order.into_iter().filter(|host| *host != order[missing]) {
            world.start(host);
        }
        until_written_after(&mut world, shard, before, LEASE_MS + 3000);
        world.start(order[missing]);
        world.run_until(world.now + 5000);
        world.check_end();
        assert_eq!(world.violation, None, "{:?}", world.plan);
    }
}

#[test]
fn a_primary_that_does_not_end_after_all_leads_again() {
    for (seed, after) in (0..30).flat_map(|seed| [(seed, 1), (seed, 2500)]) {
        let mut world = calm(seed, 1, 1);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        world.tell(0, Event::StopAsked { ticket: 1, within_ms: 10_000 });
        world.run_until(world.now + after);
        world.tell(0, Event::StopRefused);
        until_written_after(&mut world, shard, before, 1500);
        world.run_until(world.now + 500);
        assert!(has_all(&world, shard), "{:?}", world.plan);
        assert_eq!(world.replies, [(0, 1, Ok(()))]);
    }
}

#[test]
fn a_replica_that_stays_takes_part_again() {
    for seed in 0..30 {
        let mut world = calm(seed, 1, 2);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        let primary = leader(&world, shard);
        world.tell(primary, Event::StopAsked { ticket: 1, within_ms: 10_000 });
        until_written_after(&mut world, shard, before, 1500);
        world.tell(primary, Event::StopRefused);
        world.run_until(world.now + 1000);
        let before = epoch(&world, shard);
        world.tell(primary, Event::FailoverAsked { ticket: 2, force: false });
        until_written_after(&mut world, shard, before, 1500);
        assert_eq!(leader(&world, shard), primary);
    }
}

/// A replica that has promised starts anew with a shorter timeout, while its primary goes on
/// without etcd.
#[test]
fn promises_are_kept_for_as_long_as_they_were_given() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 2);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        let primary = leader(&world, shard);
        (world.hosts[primary].is_mute, world.hosts[primary].is_deaf) = (true, true);
        world.run_until(world.now + 2 * LEASE_MS);
        assert_eq!(epoch(&world, shard), before);
        // It cannot be asked again.
        world.cuts.extend([(primary, 1 - primary), (1 - primary, primary)]);
        world.kill(1 - primary);
        world.hosts[1 - primary].node_timeout_ms = 1000;
        let promised = world.now;
        world.start(1 - primary);
        while epoch(&world, shard) == before {
            world.run_until(world.now + 10);
            assert!(world.now < promised + LEASE_MS + 1000, "{:?}", world.plan);
        }
        let clock = world.hosts[primary].clock(world.now);
        let serves_until = world.process(primary).expect("it runs").serve_until;
        assert!(clock >= serves_until, "two primaries: {:?}", world.plan);
        assert_eq!(world.violation, None);
    }
}

/// The lease of the primary ends while a replica asks for its place.
#[test]
fn a_primary_without_its_key_does_not_hand_over() {
    for seed in 0..10 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let (primary, before) = (leader(&world, shard), epoch(&world, shard));
        let to = node_id((primary + 1) % 3);
        let value = encode(&FailoverValue { to, epoch: before, released: None, force: false });
        let put = Operation::Put { key: world.keys.of(&Subject::Failover(shard)), value, lease: 0 };
        let delete = Operation::Delete { key: world.keys.of(&Subject::Leader(shard)) };
        world.operate(Vec::new(), vec![put, delete]);
        until_written_after(&mut world, shard, before, LEASE_MS + 3000);
    }
}

/// The replica is taken out of the cluster before its wish is at etcd.
#[test]
fn a_failover_that_cannot_be_is_answered() {
    for seed in 0..10 {
        let mut world = calm(seed, 1, 2);
        let replica = 1 - leader(&world, shard_id(0));
        world.hosts[replica].is_mute = true;
        for ticket in [1, 2] {
            world.tell(replica, Event::FailoverAsked { ticket, force: true });
            world.run_until(world.now + 100);
        }
        let refused = Err("A failover is already in progress".to_owned());
        assert_eq!(world.replies, [(replica, 2, refused)]);
        let subjects = [Subject::Shard(shard_id(0)), Subject::Member(node_id(replica))];
        let keys = subjects.map(|subject| world.keys.of(&subject));
        world.operate(Vec::new(), keys.map(|key| Operation::Delete { key }).into());
        world.run_until(world.now + 6000);
        let refused = Err("The failover could not be written down at etcd".to_owned());
        assert_eq!(world.replies[1..], [(replica, 1, refused)], "{:?}", world.plan);
    }
}

/// Goes on until a shard has these members, and acknowledges writes at quorum.
fn until_members_are(world: &mut World, shard: ShardId, members: &[usize]) {
    let wanted: Vec<_> = members.iter().map(|host| node_id(*host)).collect();
    let end = world.now + 5000;
    while world.truth.shards[&shard].members != wanted {
        world.run_until(world.now + 100);
        let members = &world.truth.shards[&shard].members;
        assert!(world.now < end, "{wanted:?} are not the members: {members:?}, {:?}", world.plan);
        assert_eq!(world.violation, None);
    }
    world.run_until(world.now + 200);
    assert!(world.clients.last[&shard] + 100 > world.now, "nothing is written: {:?}", world.plan);
}

/// Without the live one the dead one would be needed for the quorum.
#[test]
fn of_two_nodes_that_leave_the_dead_one_goes_first() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 3);
        let shard = shard_id(0);
        let primary = leader(&world, shard);
        let others: Vec<_> = (0..3).filter(|host| *host != primary).collect();
        let (leaving, dead) = (others[seed as usize % 2], others[1 - seed as usize % 2]);
        world.kill(dead);
        world.run_until(world.now + 500);
        world.assign(leaving, None);
        world.assign(dead, None);
        until_members_are(&mut world, shard, &[primary]);
        assert!(has_all(&world, shard), "{:?}", world.plan);
    }
}

/// None of the dead ones can leave alone: those that stay would be no quorum.
#[test]
fn dead_members_leave_at_once() {
    for (seed, members) in (0..20).map(|seed| (seed, 3 + seed as usize % 3)) {
        let mut world = calm(seed, 1, members);
        let shard = shard_id(0);
        let primary = leader(&world, shard);
        for host in (0..members).filter(|host| *host != primary) {
            world.kill(host);
            world.assign(host, None);
        }
        until_members_are(&mut world, shard, &[primary]);
        assert!(has_all(&world, shard), "{:?}", world.plan);
    }
}

/// A second node joins a shard of one, which needs both of them then, and confirms nothing.
#[test]
fn a_node_that_is_stuck_keeps_a_shard_waiting_now_and_then() {
    for seed in 0..5 {
        let plan = Plan { spares: 1, ..calm(seed, 1, 1).plan };
        let mut world = World::new(plan);
        world.run_until(3000);
        let shard = shard_id(0);
        world.stuck.insert(1);
        world.assign(1, Some(shard));
        let (mut waited, end) = (0, world.now + 120_000);
        while world.now < end {
            world.run_until(world.now + 100);
            waited += u64::from(world.now > world.clients.last[&shard] + 200);
        }
        assert!(waited < 500, "{waited} tenths of a second: {:?}", world.plan);
        world.stuck.clear();
        // The last try may have ended just now, and the next one comes two minutes later.
        world.run_until(world.now + 150_000);
        assert_eq!(world.truth.shards[&shard].members.len(), 2, "{:?}", world.plan);
    }
}

/// The replica of two leaves, and becomes primary before it is out.
#[test]
fn a_primary_that_leaves_leads_until_another_one_stays() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 2);
        let shard = shard_id(0);
        let primary = leader(&world, shard);
        let (leaving, before) = (1 - primary, epoch(&world, shard));
        world.kill(primary);
        world.assign(leaving, None);
        world.run_until(world.now + 2 * LEASE_MS);
        assert!(epoch(&world, shard) > before);
        assert_eq!(leader(&world, shard), leaving, "{:?}", world.plan);
        let lost_by_kill = lost(&world, shard);
        world.assign(primary, None);
        until_members_are(&mut world, shard, &[leaving]);
        world.start(primary);
        world.run_until(world.now + 1000);
        assert_eq!(leader(&world, shard), leaving, "{:?}", world.plan);
        world.assign(primary, Some(shard));
        until_members_are(&mut world, shard, &[primary]);
        assert_eq!(leader(&world, shard), primary, "{:?}", world.plan);
        assert_eq!(lost(&world, shard), lost_by_kill, "{:?}", world.plan);
    }
}

/// They would hand over to each other for ever.
#[test]
fn a_primary_does_not_hand_over_to_who_leaves_as_well() {
    for seed in 0..20 {
        let mut world = calm(seed, 1, 2);
        let (shard, before) = (shard_id(0), epoch(&world, shard_id(0)));
        let primary = leader(&world, shard);
        (0..2).for_each(|host| world.assign(host, None));
        until_members_are(&mut world, shard, &[primary]);
        assert_eq!(epoch(&world, shard), before, "{:?}", world.plan);
    }
}

#[test]
fn slots_move_with_all_that_was_written() {
    for seed in 0..30 {
        let mut world = calm(seed, 2, 2);
        let (from, to) = (shard_id(0), shard_id(1));
        let slots: SlotRanges = world.truth.shards[&from].slots.clone();
        let key = world.keys.of(&Subject::Migration("m".into()));
        let state = MigrationState::Wanted;
        let value = encode(&MigrationValue { slots, from, to, state });
        world.operate(Vec::new(), vec![Operation::Put { key, value, lease: 0 }]);
        world.run_until(world.now + 1000);
        assert_eq!(world.violation, None);
        assert!(world.truth.shards[&from].slots.is_empty(), "{:?}", world.plan);
        assert_eq!(world.truth.shards[&to].slots, SlotRanges::all());
        assert!(has_all(&world, to), "{:?}", world.plan);
        world.check_end();
        assert_eq!(world.violation, None);
    }
}

/// As many moves as a source has under way at once wait for the primary of their target.
#[test]
fn a_move_does_not_wait_for_those_to_a_shard_without_a_primary() {
    for seed in 0..5 {
        let mut world = calm(seed, 3, 1);
        let (from, to, dead) = (shard_id(0), shard_id(1), shard_id(2));
        let slots: Vec<u16> = world.truth.shards[&from].slots.iter().collect();
        let move_slots = |world: &mut World, number: usize, to| {
            let slots = slots.chunks(1024).nth(number).expect("it is there");
            let slots = slots.iter().copied().collect();
            let key = world.keys.of(&Subject::Migration(format!("m{number}")));
            let value = encode(&MigrationValue { slots, from, to, state: MigrationState::Wanted });
            world.operate(Vec::new(), vec![Operation::Put { key, value, lease: 0 }]);
        };
        let target = leader(&world, dead);
        (0..4).for_each(|number| move_slots(&mut world, number, dead));
        world.run_until(world.now + 15);
        world.kill(target);
        world.run_until(world.now + 10_000);
        assert_eq!(world.truth.migrations.len(), 4, "{:?}", world.plan);
        move_slots(&mut world, 4, to);
        world.run_until(world.now + 5000);
        assert_eq!(world.truth.migrations.len(), 4, "{:?}", world.plan);
        assert!(!world.truth.migrations.contains("m4"), "{:?}", world.plan);
        world.start(target);
        world.run_until(world.now + 10_000);
        assert!(world.truth.migrations.is_empty(), "{:?}", world.plan);
    }
}

#[test]
fn a_node_that_starts_says_what_a_restart_must_know() {
    let world = calm(1, 1, 1);
    // Without data it has nothing that is complete, until it leads.
    assert!(world.hosts[0].remembered.2);
    let mut world = World::new(Plan { shards: 1, ..world.plan });
    world.hosts[0].remembered = (Some(shard_id(0)), Lineage::default(), true);
    world.hosts[0].remembered.1.note(9, 0);
    world.plan.keeping = Keeping::Tail;
    world.start(0);
    world.run_until(2);
    let (_, lineage, complete) = &world.hosts[0].remembered;
    assert_eq!((lineage.last(), *complete), (9, false), "its end may be lost");
}

fn data_epoch(world: &mut World, host: usize) -> Option<Epoch> {
    world.process(host).map(|process| process.control.data_epoch())
}

/// Its epoch may be later than those of the shard that it comes to, and that one's primary away.
#[test]
fn data_of_another_shard_count_for_nothing() {
    for seed in 0..10 {
        let mut world = calm(seed, 2, 3);
        let (from, to) = (shard_id(0), shard_id(1));
        let moves = (leader(&world, from) + 1) % 3;
        let primary = leader(&world, to);
        assert_ne!(data_epoch(&mut world, moves), Some(0), "{:?}", world.plan);
        world.assign(moves, None);
        world.run_until(world.now + 3000);
        world.cuts.extend([(primary, moves), (moves, primary)]);
        // What it knows is on its disk, too.
        if seed % 2 == 0 {
            stop(&mut world, moves);
            world.start(moves);
        }
        world.assign(moves, Some(to));
        world.run_until(world.now + 1000);
        assert_eq!(data_epoch(&mut world, moves), Some(0), "{:?}", world.plan);
        let (_, lineage, complete) = &world.hosts[moves].remembered;
        assert_eq!((lineage.last(), *complete), (0, false), "{:?}", world.plan);
        world.cuts.clear();
        world.run_until(world.now + 3000);
        assert_eq!(data_epoch(&mut world, moves), Some(epoch(&world, to)), "{:?}", world.plan);
        assert_eq!(world.violation, None);
    }
}

/// What a large cluster asks of etcd. The figures of docs/scale.md come from here.
#[test]
fn large_clusters_ask_etcd_for_little() {
    let wanted = std::env::var("DUNLIN_SHARDS").ok().and_then(|text| text.parse().ok());
    for shards in wanted.map_or(vec![3, 33], |shards| vec![shards]) {
        let mut world = calm(7, shards, 3);
        world.run_until(20_000);
        let before = world.etcd.counts;
        world.run_until(50_000);
        let after = world.etcd.counts;
        let nodes = shards as u64 * 3;
        let keep_alives = after.keep_alives - before.keep_alives;
        let others = after.transactions - before.transactions + after.reads - before.reads;
        println!("{nodes} nodes, 30 s: {keep_alives} keep-alives, {others} others");
        // One renewal in a third of the lease, and nothing else while nothing happens.
        assert!(keep_alives <= nodes * 30_000 * 3 / LEASE_MS + nodes, "{keep_alives}");
        assert!(others <= nodes, "{others}");
        // A third of all machines is lost at once, with a primary in each shard.
        let elections = world.truth.elections;
        for shard in 0..shards {
            let primary = leader(&world, shard_id(shard));
            world.kill(primary);
        }
        let start = world.now;
        while world.truth.leaders.len() < shards
            || world.truth.elections < elections + shards as u64
        {
            world.run_until(world.now + 10);
            assert!(world.now < start + 3000, "{} lead", world.truth.leaders.len());
        }
        let storm = world.etcd.counts;
        println!(
            "{nodes} nodes, {shards} primaries killed: all replaced after {} ms, with {} \
             transactions ({} in vain) and {} events to watches",
            world.now - start,
            storm.transactions - after.transactions,
            storm.failed_transactions - after.failed_transactions,
            storm.events - after.events,
        );
        // Some nodes end in order and come back, one after the other.
        for host in 0..shards {
            world.start(host);
        }
        world.run_until(world.now + 5000);
        let (before, elections) = (world.etcd.counts, world.truth.elections);
        let restarted = 6;
        for host in 0..restarted {
            if let Some(process) = world.process(host) {
                process.is_stopping = true;
                world.tell(host, Event::StopAsked { ticket: 7, within_ms: 10_000 });
            }
            world.run_until(world.now + 4000);
        }
        let upgrade = world.etcd.counts;
        println!(
            "{nodes} nodes, {restarted} restarted in order: {} primaries let go, {} transactions \
             and {} events to watches",
            world.truth.elections - elections,
            upgrade.transactions - before.transactions,
            upgrade.events - before.events,
        );
        assert_eq!(world.violation, None);
    }
}
