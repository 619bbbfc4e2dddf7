//! READONLY, READWRITE, ASKING and CLUSTER, which answer that there is no cluster.
//!
//! Programs send them before they know what they talk to, and go on when they get this error. They
//! give up when the command is unknown.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ADMIN, ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, FAST, Group, IN_CONNECTION, LOADING,
    NO_ASYNC_LOADING, NO_KEYS, NOSCRIPT, STALE, argument, block, docs, one_of, word,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::help::container;

/// Each of these commands, whatever its arguments.
fn no_cluster(_: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    Err(CommandError::text("ERR This instance has cluster support disabled"))
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Cluster.rows([
    row("asking", no_cluster, 1, FAST | IN_CONNECTION, NO_KEYS),
    row("readonly", no_cluster, 1, LOADING | STALE | FAST | IN_CONNECTION, NO_KEYS),
    row("readwrite", no_cluster, 1, LOADING | STALE | FAST | IN_CONNECTION, NO_KEYS),
    container("cluster", SUBCOMMANDS),
]);

const SUBCOMMANDS: &[Command] = &Group::Cluster.under("cluster").rows([
    row("addslots", no_cluster, -3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("addslotsrange", no_cluster, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("bumpepoch", no_cluster, 2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("count-failure-reports", no_cluster, 3, ADMIN | STALE, NO_KEYS),
    row("countkeysinslot", no_cluster, 3, STALE, NO_KEYS),
    row("delslots", no_cluster, -3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("delslotsrange", no_cluster, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("failover", no_cluster, -2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("flushslots", no_cluster, 2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("forget", no_cluster, 3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("getkeysinslot", no_cluster, 4, STALE, NO_KEYS),
    row("help", no_cluster, 2, LOADING | STALE, NO_KEYS),
    row("info", no_cluster, 2, STALE, NO_KEYS),
    row("keyslot", no_cluster, 3, STALE, NO_KEYS),
    row("links", no_cluster, 2, STALE, NO_KEYS),
    row("meet", no_cluster, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("myid", no_cluster, 2, STALE, NO_KEYS),
    row("myshardid", no_cluster, 2, STALE, NO_KEYS),
    row("nodes", no_cluster, 2, STALE, NO_KEYS),
    row("replicas", no_cluster, 3, ADMIN | STALE, NO_KEYS),
    row("replicate", no_cluster, 3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("reset", no_cluster, -2, ADMIN | NOSCRIPT | STALE, NO_KEYS),
    row("saveconfig", no_cluster, 2, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("set-config-epoch", no_cluster, 3, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("setslot", no_cluster, -4, ADMIN | STALE | NO_ASYNC_LOADING, NO_KEYS),
    row("shards", no_cluster, 2, LOADING | STALE, NO_KEYS),
    row("slaves", no_cluster, 3, ADMIN | STALE, NO_KEYS),
    row("slots", no_cluster, 2, LOADING | STALE, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("asking", "3.0.0", "Follows a redirection to another node.").cost("O(1)"),
    docs("readonly", "3.0.0", "Lets the connection read from a replica.").cost("O(1)"),
    docs("readwrite", "3.0.0", "Ends what READONLY has begun.").cost("O(1)"),
    docs("cluster", "3.0.0", "Commands about the nodes of a cluster. There is none.")
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
    docs("cluster|slots", "3.0.0", "Lists ranges of slots with their nodes.")
        .cost("O(N)")
        .history(&[("4.0.0", "Names the ids of the nodes."), ("7.0.0", "Names further addresses.")])
        .deprecated("7.0.0", "CLUSTER SHARDS")
        .tips(&["nondeterministic_output"]),
];

#[cfg(test)]
mod tests {

    #[test]
    fn programs_hear_that_there_is_no_cluster_no_replica_and_no_module() {
        let mut server = crate::testing::server();
        for line in
            ["READONLY", "READWRITE", "ASKING", "CLUSTER INFO", "CLUSTER HELP", "CLUSTER MEET a 1"]
        {
            let error = "-ERR This instance has cluster support disabled\r\n";
            assert_eq!(server.text(line), error, "{line}");
        }
        assert_eq!(server.text("MODULE LIST"), "*0\r\n");
        assert!(server.text("MODULE LOAD x").starts_with("-ERR MODULE command not allowed."));
        assert_eq!(server.text("WAIT 0 0"), ":0\r\n");
        assert_eq!(server.text("WAIT -1 0"), ":0\r\n");
        assert_eq!(server.text("WAIT 1 0"), "", "it waits");
    }
}
