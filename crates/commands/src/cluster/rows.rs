//! The rows of this family, and what people read of them.

use engine::command::{
    ADMIN, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, FAST, Group, IN_CONNECTION, IN_KEYSPACE,
    KeySpec, LOADING, NO_ASYNC_LOADING, NO_KEYS, NO_MULTI, NOSCRIPT, NOT_KEY, READONLY, STALE,
    argument, block, docs, one_of, word,
};
use engine::engine::{Command, Family, row};
use engine::handler::help::container;

use super::scan::clusterscan;
use super::shown::{
    count_failure_reports, info, links, myid, myshardid, nodes, replicas, shards, slots,
};
use super::slots::{countkeysinslot, getkeysinslot, keyslot, slot_stats};
use super::{asking, failover, help, not_here, readonly, readwrite, topology};

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

/// The cursor of CLUSTERSCAN, which names a slot as a key does.
const CURSOR: &[KeySpec] = &[KeySpec::at(NOT_KEY, 1)];

const COMMANDS: &[Command] = &Group::Cluster.rows([
    row("asking", asking, 1, FAST | IN_CONNECTION, NO_KEYS),
    row("readonly", readonly, 1, LOADING | STALE | FAST | IN_CONNECTION, NO_KEYS),
    row("readwrite", readwrite, 1, LOADING | STALE | FAST | IN_CONNECTION, NO_KEYS),
    row("clusterscan", clusterscan, -2, READONLY | IN_KEYSPACE, CURSOR),
    container("cluster", SUBCOMMANDS),
]);

const SUBCOMMANDS: &[Command] = &Group::Cluster.under("cluster").rows([
    row("addslots", not_here, -3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("addslotsrange", not_here, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("bumpepoch", not_here, 2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("count-failure-reports", count_failure_reports, 3, ADMIN | STALE, NO_KEYS),
    row("countkeysinslot", countkeysinslot, 3, STALE, NO_KEYS),
    row("delslots", not_here, -3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("delslotsrange", not_here, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("failover", failover, -2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("flushslots", not_here, 2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("forget", not_here, 3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("getkeysinslot", getkeysinslot, 4, STALE, NO_KEYS),
    row("help", help, 2, LOADING | STALE, NO_KEYS),
    row("info", info, 2, STALE, NO_KEYS),
    row("keyslot", keyslot, 3, STALE, NO_KEYS),
    row("links", links, 2, STALE, NO_KEYS),
    row("meet", not_here, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("myid", myid, 2, STALE, NO_KEYS),
    row("myshardid", myshardid, 2, STALE, NO_KEYS),
    row("nodes", nodes, 2, STALE, NO_KEYS),
    row("replicas", replicas, 3, ADMIN | STALE, NO_KEYS),
    row("replicate", not_here, 3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("reset", not_here, -2, ADMIN | NOSCRIPT | STALE, NO_KEYS),
    row("saveconfig", not_here, 2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("set-config-epoch", not_here, 3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("setslot", not_here, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("shards", shards, 2, LOADING | STALE, NO_KEYS),
    row("slaves", replicas, 3, ADMIN | STALE, NO_KEYS),
    row("slot-stats", slot_stats, -4, LOADING | STALE, NO_KEYS),
    row("slots", slots, 2, LOADING | STALE, NO_KEYS),
    row("topology", topology, 2, ADMIN | NOSCRIPT | NO_MULTI | STALE, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("asking", "3.0.0", "Follows a redirection to another node.").cost("O(1)"),
    docs("readonly", "3.0.0", "Lets the connection read from a replica.").cost("O(1)"),
    docs("readwrite", "3.0.0", "Ends what READONLY has begun.").cost("O(1)"),
    docs("clusterscan", "9.1.0", "Lists the keys of a cluster step by step, slot after slot.")
        .cost("O(N) where N is the number of elements returned.")
        .arguments(&[
            argument("cursor", ArgumentKind::String),
            argument("match-pattern", ArgumentKind::Pattern).token("MATCH").optional(),
            argument("count", ArgumentKind::Integer).token("COUNT").optional(),
            argument("type", ArgumentKind::String).token("TYPE").optional(),
            argument("slot", ArgumentKind::Integer).token("SLOT").optional(),
        ])
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"]),
    docs("cluster", "3.0.0", "Commands about the nodes of a cluster.")
        .cost(DEPENDS_ON_SUBCOMMAND),
    docs("cluster|addslots", "3.0.0", "Gives slots to a node.")
        .cost("O(N)")
        .arguments(&[argument("slot", ArgumentKind::Integer).multiple()]),
    docs("cluster|addslotsrange", "7.0.0", "Gives ranges of slots to a node.")
        .cost("O(N)")
        .arguments(&[block(
            "range",
            &[
                argument("start-slot", ArgumentKind::Integer),
                argument("end-slot", ArgumentKind::Integer),
            ],
        )
        .multiple()]),
    docs("cluster|bumpepoch", "3.0.0", "Advances the cluster's epoch.")
        .cost("O(1)")
        .tips(&["nondeterministic_output"]),
    docs("cluster|count-failure-reports", "3.0.0", "Counts the reports that a node has failed.")
        .cost("O(N)")
        .arguments(&[argument("node-id", ArgumentKind::String)])
        .tips(&["nondeterministic_output"]),
    docs("cluster|countkeysinslot", "3.0.0", "Counts the keys of a slot.")
        .cost("O(1)")
        .arguments(&[argument("slot", ArgumentKind::Integer)]),
    docs("cluster|delslots", "3.0.0", "Takes slots from a node.")
        .cost("O(N)")
        .arguments(&[argument("slot", ArgumentKind::Integer).multiple()]),
    docs("cluster|delslotsrange", "7.0.0", "Takes ranges of slots from a node.")
        .cost("O(N)")
        .arguments(&[block(
            "range",
            &[
                argument("start-slot", ArgumentKind::Integer),
                argument("end-slot", ArgumentKind::Integer),
            ],
        )
        .multiple()]),
    docs("cluster|failover", "3.0.0", "Makes a replica the primary.").cost("O(1)").arguments(&[
        one_of("options", &[word("force", "FORCE"), word("takeover", "TAKEOVER")]).optional(),
    ]),
    docs("cluster|flushslots", "3.0.0", "Takes all slots from a node.").cost("O(1)"),
    docs("cluster|forget", "3.0.0", "Removes a node.")
        .cost("O(1)")
        .arguments(&[argument("node-id", ArgumentKind::String)]),
    docs("cluster|getkeysinslot", "3.0.0", "Lists keys of a slot.")
        .cost("O(N)")
        .arguments(&[
            argument("slot", ArgumentKind::Integer),
            argument("count", ArgumentKind::Integer),
        ])
        .tips(&["nondeterministic_output"]),
    docs("cluster|help", "5.0.0", "Lists the subcommands.").cost("O(1)"),
    docs("cluster|info", "3.0.0", "Tells the state of the cluster.")
        .cost("O(1)")
        .tips(&["nondeterministic_output"]),
    docs("cluster|keyslot", "3.0.0", "Tells the slot of a key.")
        .cost("O(N)")
        .arguments(&[argument("key", ArgumentKind::String)]),
    docs("cluster|links", "7.0.0", "Lists the links between nodes.")
        .cost("O(N)")
        .tips(&["nondeterministic_output"]),
    docs("cluster|meet", "3.0.0", "Joins two nodes.")
        .cost("O(1)")
        .arguments(&[
            argument("ip", ArgumentKind::String),
            argument("port", ArgumentKind::Integer),
            argument("cluster-bus-port", ArgumentKind::Integer).since("4.0.0").optional(),
        ])
        .history(&[("4.0.0", "Takes the port of the bus.")]),
    docs("cluster|myid", "3.0.0", "Tells the id of the node.").cost("O(1)"),
    docs("cluster|myshardid", "7.2.0", "Tells the id of the shard.")
        .cost("O(1)")
        .tips(&["nondeterministic_output"]),
    docs("cluster|nodes", "3.0.0", "Lists the nodes.")
        .cost("O(N)")
        .tips(&["nondeterministic_output"]),
    docs("cluster|replicas", "5.0.0", "Lists the replicas of a node.")
        .cost("O(N)")
        .arguments(&[argument("node-id", ArgumentKind::String)])
        .tips(&["nondeterministic_output"]),
    docs("cluster|replicate", "3.0.0", "Makes a node a replica.")
        .cost("O(1)")
        .arguments(&[argument("node-id", ArgumentKind::String)]),
    docs("cluster|reset", "3.0.0", "Resets a node.").cost("O(N)").arguments(&[one_of(
        "reset-type",
        &[word("hard", "HARD"), word("soft", "SOFT")],
    )
    .optional()]),
    docs("cluster|saveconfig", "3.0.0", "Writes the node's file.").cost("O(1)"),
    docs("cluster|set-config-epoch", "3.0.0", "Sets a node's epoch.")
        .cost("O(1)")
        .arguments(&[argument("config-epoch", ArgumentKind::Integer)]),
    docs("cluster|setslot", "3.0.0", "Assigns a slot.").cost("O(1)").arguments(&[
        argument("slot", ArgumentKind::Integer),
        one_of(
            "subcommand",
            &[
                argument("importing", ArgumentKind::String).token("IMPORTING").shown("node-id"),
                argument("migrating", ArgumentKind::String).token("MIGRATING").shown("node-id"),
                argument("node", ArgumentKind::String).token("NODE").shown("node-id"),
                word("stable", "STABLE"),
            ],
        ),
    ]),
    docs("cluster|shards", "7.0.0", "Lists the shards.")
        .cost("O(N)")
        .tips(&["nondeterministic_output"]),
    docs("cluster|slaves", "3.0.0", "Lists the replicas of a node.")
        .cost("O(N)")
        .arguments(&[argument("node-id", ArgumentKind::String)])
        .deprecated("5.0.0", "CLUSTER REPLICAS")
        .tips(&["nondeterministic_output"]),
    docs("cluster|slot-stats", "8.2.0", "Tells what slots of this node have and cost.")
        .cost("O(N) where N is the total number of slots based on arguments. O(N*log(N)) with ORDERBY subcommand.")
        .arguments(&[one_of(
            "filter",
            &[
                block(
                    "slotsrange",
                    &[
                        argument("start-slot", ArgumentKind::Integer),
                        argument("end-slot", ArgumentKind::Integer),
                    ],
                )
                .token("SLOTSRANGE"),
                block(
                    "orderby",
                    &[
                        argument("metric", ArgumentKind::String),
                        argument("limit", ArgumentKind::Integer).token("LIMIT").optional(),
                        one_of("order", &[word("asc", "ASC"), word("desc", "DESC")]).optional(),
                    ],
                )
                .token("ORDERBY"),
            ],
        )])
        .tips(&["nondeterministic_output", "request_policy:all_shards"]),
    docs("cluster|slots", "3.0.0", "Lists ranges of slots with their nodes.")
        .cost("O(N)")
        .history(&[("4.0.0", "Names the ids of the nodes."), ("7.0.0", "Names further addresses.")])
        .deprecated("7.0.0", "CLUSTER SHARDS")
        .tips(&["nondeterministic_output"]),
    docs("cluster|topology", "8.0.0", "Tells as JSON what the node knows of the cluster and of itself.")
        .cost("O(N)")
        .tips(&["nondeterministic_output"]),
];
