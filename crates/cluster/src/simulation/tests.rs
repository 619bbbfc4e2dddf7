//! Worlds that are gone through, and safety rules whose absence they must show.

use base::rng::Rng;

use crate::control::Rule;
use crate::simulation::trouble::ALL;
use crate::simulation::trouble::Trouble::{
    self, Abort, Cut, CutOff, End, EtcdDown, EtcdLost, Failover, Kill, KillPrimaries, Members,
    Migrate, PartFromEtcd, PartPrimariesFromEtcd, Restore, Save, Scrap, Spike, Stop,
};
use crate::simulation::world::{Keeping, Plan, World};

/// The plan of a world with trouble, drawn from its seed.
fn plan(seed: u64) -> Plan {
    let mut rng = Rng::from_seed(seed ^ 0x5eed);
    let keeping = match rng.below(5) {
        0 => Keeping::Memory,
        1 => Keeping::Tail,
        2 => Keeping::Files,
        _ => Keeping::Disk,
    };
    Plan {
        seed,
        shards: 1 + rng.index(2),
        members: 1 + rng.index(4),
        spares: rng.index(2),
        keeping,
        trouble_ms: 6_000 + rng.below(10_000),
        reverted: None,
        has_wild_clocks: false,
        node_timeout_ms: 2000,
        trouble_every_ms: 200 + rng.below(1500),
        write_every_ms: 60,
        troubles: ALL,
    }
}

/// Goes through a world: what has gone wrong that must not.
fn run(plan: Plan) -> (World, Option<String>) {
    let mut world = World::new(plan);
    world.run_until(world.plan.trouble_ms);
    world.make_peace();
    world.run_until(world.now + 5_000 + 2 * world.plan.node_timeout_ms);
    if world.violation.is_none() {
        world.check_end();
    }
    let violation = world.violation.clone();
    (world, violation)
}

/// A number that the environment may set.
fn wanted(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Goes through `count` worlds from a seed on.
fn run_all(first: u64, count: u64, plan: impl Fn(u64) -> Plan) {
    let mut acknowledged = 0;
    let (mut elections, mut rebuilds) = (0, 0);
    for seed in first..first + count {
        let (world, violation) = run(plan(seed));
        if let Some(violation) = violation {
            panic!("seed {seed}: {violation}; {:?}", world.plan);
        }
        acknowledged += world.clients.acknowledged.len();
        elections += world.truth.elections;
        rebuilds += world.rebuilds;
    }
    println!(
        "{acknowledged} writes were acknowledged at quorum, {elections} primaries elected, \
         {rebuilds} times etcd was written anew"
    );
}

#[test]
fn nothing_goes_wrong() {
    run_all(wanted("DUNLIN_SEED", 1), wanted("DUNLIN_RUNS", 100), plan);
}

/// Nodes leave shards of which others are gone for good.
fn scrapping(seed: u64) -> Plan {
    let troubles = &[Members, Members, Members, Scrap, Kill, Cut, CutOff, Failover, Stop];
    let (shards, members, spares, keeping) = (1, 3 + (seed % 2) as usize, 1, Keeping::Disk);
    Plan { shards, members, spares, keeping, troubles, trouble_every_ms: 400, ..plan(seed) }
}

#[test]
fn nodes_leave_shards_of_which_others_are_gone() {
    run_all(wanted("DUNLIN_SEED", 1), wanted("DUNLIN_RUNS", 100), scrapping);
}

/// Without clocks that can be trusted there may be two primaries, but no write at quorum is lost.
fn wild(seed: u64) -> Plan {
    Plan { has_wild_clocks: true, ..plan(seed) }
}

#[test]
fn a_quorum_keeps_writes_even_when_clocks_lie() {
    run_all(wanted("DUNLIN_SEED", 1), wanted("DUNLIN_RUNS", 100) / 2, wild);
}

/// What goes wrong where etcd is lost: that, and all that may come with it.
const WITH_LOSSES: &[Trouble] = &[
    EtcdLost,
    EtcdLost,
    EtcdLost,
    EtcdLost,
    Kill,
    KillPrimaries,
    Stop,
    PartFromEtcd,
    PartPrimariesFromEtcd,
    Cut,
    CutOff,
    EtcdDown,
    Spike,
    Failover,
    End,
    Migrate,
    Migrate,
    Abort,
    Members,
];

/// etcd loses everything once and again, and is written anew from what the nodes know.
fn losing(seed: u64) -> Plan {
    Plan { troubles: WITH_LOSSES, ..plan(seed) }
}

#[test]
fn a_cluster_that_is_written_anew_loses_nothing() {
    run_all(wanted("DUNLIN_SEED", 1), wanted("DUNLIN_RUNS", 100) / 2, losing);
}

/// etcd is set back to backups once and again.
fn restoring(seed: u64) -> Plan {
    let troubles = &[
        Save,
        Save,
        Save,
        Restore,
        Restore,
        Restore,
        Kill,
        Stop,
        PartFromEtcd,
        PartPrimariesFromEtcd,
        Cut,
        CutOff,
        Spike,
        Failover,
        End,
    ];
    Plan { troubles, ..plan(seed) }
}

#[test]
fn a_cluster_whose_etcd_is_restored_loses_nothing() {
    run_all(wanted("DUNLIN_SEED", 1), wanted("DUNLIN_RUNS", 100) / 2, restoring);
}

/// Takes a safety rule away: some world must show it, from this seed on, which has been a good
/// one.
fn must_be_noticed(rule: Rule, first: u64, plan: impl Fn(u64) -> Plan) {
    for seed in first..first + wanted("DUNLIN_SEARCH", 1000) {
        let reverted = Some(rule);
        if let (_, Some(violation)) = run(Plan { reverted, ..plan(seed) }) {
            println!("{rule:?}: seed {seed}: {violation}");
            return;
        }
    }
    panic!("{rule:?} can be left out, and nobody notices");
}

/// A test for each rule.
macro_rules! rules {
    ($($name:ident: $rule:ident from $first:literal with $plan:expr;)*) => {
        $(
            #[test]
            fn $name() {
                must_be_noticed(Rule::$rule, $first, $plan);
            }
        )*
    };
}

/// One shard with the troubles that matter.
fn one_shard(seed: u64, members: usize, troubles: &'static [Trouble]) -> Plan {
    let (shards, spares, keeping) = (1, 0, Keeping::Disk);
    let write_every_ms = 30;
    Plan { shards, members, spares, keeping, troubles, write_every_ms, ..plan(seed) }
}

/// The same with leases that last longer than it takes to write a cluster anew.
fn long_leases(seed: u64, troubles: &'static [Trouble]) -> Plan {
    Plan { node_timeout_ms: 5000, trouble_every_ms: 500, ..one_shard(seed, 3, troubles) }
}

#[test]
fn a_cluster_with_long_leases_is_written_anew_as_well() {
    run_all(1, wanted("DUNLIN_RUNS", 100) / 4, |seed| long_leases(seed, &[EtcdLost, Stop, Stop]));
}

/// Two shards between which slots move.
fn two_shards(seed: u64, troubles: &'static [Trouble]) -> Plan {
    let (shards, members, spares, keeping) = (2, 2, 0, Keeping::Disk);
    let trouble_every_ms = 250;
    Plan { shards, members, spares, keeping, troubles, trouble_every_ms, ..plan(seed) }
}

rules! {
    the_margin_is_needed: Margin from 36 with
        |seed| Plan { trouble_every_ms: 300, ..one_shard(seed, 2, &[Spike, Spike, Stop]) };
    promises_are_needed: Promise from 45 with |seed| one_shard(seed, 3, ALL);
    promises_of_every_member_are_needed: EveryMember from 1 with
        |seed| one_shard(seed, 2, &[Cut, PartPrimariesFromEtcd]);
    promises_outlive_a_restart: PromiseBeforeRestart from 9 with
        |seed| one_shard(seed, 2, &[Kill, PartPrimariesFromEtcd, PartPrimariesFromEtcd]);
    taking_the_key_must_compare: CompareLeader from 202 with |seed| one_shard(seed, 3, ALL);
    candidates_must_be_enough: CandidateQuorum from 59 with |seed| one_shard(seed, 3, ALL);
    candidates_must_let_go_first: DetachFirst from 2 with
        |seed| Plan { has_wild_clocks: true, ..one_shard(seed, 3, ALL) };
    the_epoch_of_data_counts_first: EpochFirst from 540 with
        |seed| one_shard(seed, 3, &[CutOff, KillPrimaries, Stop, PartFromEtcd]);
    data_must_reach_the_start_of_their_epoch: StartOfEpoch from 437 with
        |seed| one_shard(seed, 3, &[Cut, KillPrimaries, Kill, CutOff]);
    data_must_be_whole_again: WholeAgain from 11798 with |seed| Plan {
        keeping: Keeping::Tail,
        trouble_every_ms: 300,
        ..one_shard(seed, 2, &[Kill, CutOff, PartPrimariesFromEtcd])
    };
    what_a_try_has_sent_counts_for_that_try: ThisTry from 17942 with |seed| {
        two_shards(
            seed,
            &[Migrate, Migrate, KillPrimaries, Spike, Failover, PartPrimariesFromEtcd, Stop],
        )
    };
    giving_slots_away_must_compare: CompareHandOver from 146 with
        |seed| two_shards(seed, &[Migrate, Migrate, KillPrimaries, Spike, Failover]);
    slots_are_held_until_it_is_known: HoldUntilKnown from 9 with
        |seed| two_shards(seed, &[Migrate, Migrate, PartFromEtcd, Spike, EtcdDown]);
    a_node_without_its_data_is_no_candidate: Completeness from 103 with
        |seed| Plan { keeping: Keeping::Memory, ..one_shard(seed, 3, ALL) };
    the_furthest_candidate_is_elected: Furthest from 1 with
        |seed| Plan { keeping: Keeping::Files, ..one_shard(seed, 3, &[Kill, KillPrimaries, End]) };
    members_change_under_both_quorums: JointQuorum from 163 with
        |seed| Plan { spares: 1, ..one_shard(seed, 3, &[Members, Members, Kill, CutOff, Cut]) };
    transactions_of_before_must_not_count_anew: CompareRebuilt from 815 with
        |seed| one_shard(seed, 3, &[EtcdLost, EtcdLost, Spike, Kill, PartFromEtcd]);
}
