//! READONLY, READWRITE, ASKING and CLUSTER, which answer that there is no cluster.
//!
//! Programs send them before they know what they talk to, and go on when they get this error. They
//! give up when the command is unknown.

use crate::command::{
    ADMIN, ArgumentKind, Command, FAST, Group, LOADING, NO_ASYNC_LOADING, NOSCRIPT, STALE,
    argument, block, one_of, word,
};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};

/// Each of these commands, whatever its arguments.
fn no_cluster(_: &mut Context<'_>, _: &mut Args<'_>) -> CommandResult {
    Err(CommandError::text("ERR This instance has cluster support disabled"))
}

const SUBCOMMANDS: &[Command] = &[
    sub("addslots", -3, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(N)", "Gives slots to a node.")
        .arguments(&[argument("slot", ArgumentKind::Integer).multiple()]),
    sub("addslotsrange", -4, "7.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(N)", "Gives ranges of slots to a node.")
        .arguments(&[block(
            "range",
            &[
                argument("start-slot", ArgumentKind::Integer),
                argument("end-slot", ArgumentKind::Integer),
            ],
        )
        .multiple()]),
    sub("bumpepoch", 2, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Advances the cluster's epoch.")
        .tips(&["nondeterministic_output"]),
    sub("count-failure-reports", 3, "3.0.0")
        .flags(ADMIN | STALE)
        .docs("O(N)", "Counts the reports that a node has failed.")
        .tips(&["nondeterministic_output"])
        .arguments(&[argument("node-id", ArgumentKind::String)]),
    sub("countkeysinslot", 3, "3.0.0")
        .flags(STALE)
        .docs("O(1)", "Counts the keys of a slot.")
        .arguments(&[argument("slot", ArgumentKind::Integer)]),
    sub("delslots", -3, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(N)", "Takes slots from a node.")
        .arguments(&[argument("slot", ArgumentKind::Integer).multiple()]),
    sub("delslotsrange", -4, "7.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(N)", "Takes ranges of slots from a node.")
        .arguments(&[block(
            "range",
            &[
                argument("start-slot", ArgumentKind::Integer),
                argument("end-slot", ArgumentKind::Integer),
            ],
        )
        .multiple()]),
    sub("failover", -2, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Makes a replica the primary.")
        .arguments(&[
            one_of("options", &[word("force", "FORCE"), word("takeover", "TAKEOVER")]).optional()
        ]),
    sub("flushslots", 2, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Takes all slots from a node."),
    sub("forget", 3, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Removes a node.")
        .arguments(&[argument("node-id", ArgumentKind::String)]),
    sub("getkeysinslot", 4, "3.0.0")
        .flags(STALE)
        .docs("O(N)", "Lists keys of a slot.")
        .tips(&["nondeterministic_output"])
        .arguments(&[
            argument("slot", ArgumentKind::Integer),
            argument("count", ArgumentKind::Integer),
        ]),
    sub("help", 2, "5.0.0").flags(LOADING | STALE).docs("O(1)", "Lists the subcommands."),
    sub("info", 2, "3.0.0")
        .flags(STALE)
        .docs("O(1)", "Tells the state of the cluster.")
        .tips(&["nondeterministic_output"]),
    sub("keyslot", 3, "3.0.0")
        .flags(STALE)
        .docs("O(N)", "Tells the slot of a key.")
        .arguments(&[argument("key", ArgumentKind::String)]),
    sub("links", 2, "7.0.0")
        .flags(STALE)
        .docs("O(N)", "Lists the links between nodes.")
        .tips(&["nondeterministic_output"]),
    sub("meet", -4, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Joins two nodes.")
        .arguments(&[
            argument("ip", ArgumentKind::String),
            argument("port", ArgumentKind::Integer),
            argument("cluster-bus-port", ArgumentKind::Integer).since("4.0.0").optional(),
        ])
        .history(&[("4.0.0", "Takes the port of the bus.")]),
    sub("myid", 2, "3.0.0").flags(STALE).docs("O(1)", "Tells the id of the node."),
    sub("myshardid", 2, "7.2.0")
        .flags(STALE)
        .docs("O(1)", "Tells the id of the shard.")
        .tips(&["nondeterministic_output"]),
    sub("nodes", 2, "3.0.0")
        .flags(STALE)
        .docs("O(N)", "Lists the nodes.")
        .tips(&["nondeterministic_output"]),
    sub("replicas", 3, "5.0.0")
        .flags(ADMIN | STALE)
        .docs("O(N)", "Lists the replicas of a node.")
        .tips(&["nondeterministic_output"])
        .arguments(&[argument("node-id", ArgumentKind::String)]),
    sub("replicate", 3, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Makes a node a replica.")
        .arguments(&[argument("node-id", ArgumentKind::String)]),
    sub("reset", -2, "3.0.0")
        .flags(ADMIN | NOSCRIPT | STALE)
        .docs("O(N)", "Resets a node.")
        .arguments(&[
            one_of("reset-type", &[word("hard", "HARD"), word("soft", "SOFT")]).optional()
        ]),
    sub("saveconfig", 2, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Writes the node's file."),
    sub("set-config-epoch", 3, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Sets a node's epoch.")
        .arguments(&[argument("config-epoch", ArgumentKind::Integer)]),
    sub("setslot", -4, "3.0.0")
        .flags(ADMIN | STALE | NO_ASYNC_LOADING)
        .docs("O(1)", "Assigns a slot.")
        .arguments(&[
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
    sub("shards", 2, "7.0.0")
        .flags(LOADING | STALE)
        .docs("O(N)", "Lists the shards.")
        .tips(&["nondeterministic_output"]),
    sub("slaves", 3, "3.0.0")
        .flags(ADMIN | STALE)
        .docs("O(N)", "Lists the replicas of a node.")
        .tips(&["nondeterministic_output"])
        .arguments(&[argument("node-id", ArgumentKind::String)])
        .deprecated("5.0.0", "CLUSTER REPLICAS"),
    sub("slots", 2, "3.0.0")
        .flags(LOADING | STALE)
        .docs("O(N)", "Lists ranges of slots with their nodes.")
        .tips(&["nondeterministic_output"])
        .history(&[("4.0.0", "Names the ids of the nodes."), ("7.0.0", "Names further addresses.")])
        .deprecated("7.0.0", "CLUSTER SHARDS"),
];

const fn sub(name: &'static str, arity: i32, since: &'static str) -> Command {
    Command::sub("cluster", name, no_cluster, arity, Group::Cluster, since)
}

const fn connection(name: &'static str) -> Command {
    Command::new(name, no_cluster, 1, Group::Cluster, "3.0.0").categories(&["connection"])
}

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    connection("asking").flags(FAST).docs("O(1)", "Follows a redirection to another node."),
    connection("readonly")
        .flags(LOADING | STALE | FAST)
        .docs("O(1)", "Lets the connection read from a replica."),
    connection("readwrite")
        .flags(LOADING | STALE | FAST)
        .docs("O(1)", "Ends what READONLY has begun."),
    Command::container("cluster", Group::Cluster, "3.0.0", SUBCOMMANDS)
        .summary("Commands about the nodes of a cluster. There is none."),
];

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn programs_hear_that_there_is_no_cluster_no_replica_and_no_module() {
        let mut server = TestServer::new();
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
