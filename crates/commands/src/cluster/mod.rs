//! CLUSTER, READONLY, READWRITE, ASKING and CLUSTERSCAN: what a node tells clients of a cluster.
//!
//! | file | what it answers |
//! |---|---|
//! | `shown` | which nodes are there, and which slots has each? |
//! | `slots` | what is in a slot? |
//! | `scan` | which keys are there, slot by slot? |
//! | `rows` | which commands are these? |
//!
//! A server that is no node answers so: programs send some of these commands before they know what
//! they talk to, and go on when they get this error. They give up when the command is unknown.

mod rows;
mod scan;
mod shown;
mod slots;

use cluster::ids::NodeId;
use cluster::topology::Node;

use engine::cluster::view::ClusterView;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::help::answer_help;
use engine::host::ClusterRequest;

pub(crate) use rows::FAMILY;

const NO_CLUSTER: CommandError =
    CommandError::text("ERR This instance has cluster support disabled");

/// The cluster as this node sees it.
fn view<'a>(cx: &Context<'a>) -> Result<&'a ClusterView, CommandError> {
    cx.db.cluster.ok_or(NO_CLUSTER)
}

/// The next argument as the name of a node of the cluster.
fn known_node<'a>(view: &'a ClusterView, args: &mut Args<'_>) -> Result<&'a Node, CommandError> {
    let word = args.bytes()?;
    let id = std::str::from_utf8(word).ok().and_then(|word| word.parse::<NodeId>().ok());
    let node = id.and_then(|id| view.topology.nodes.get(&id));
    node.ok_or_else(|| CommandError::quoting("ERR Unknown node ", word, ""))
}

/// ASKING: a slot moves in one instant, so no node ever sends a client to ask elsewhere once. A
/// client that asks nevertheless is answered as any other.
fn asking(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    cx.reply.ok();
    Ok(())
}

/// READONLY
fn readonly(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    cx.session.set_reads_from_replica(true);
    cx.reply.ok();
    Ok(())
}

/// READWRITE
fn readwrite(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    cx.session.set_reads_from_replica(false);
    cx.reply.ok();
    Ok(())
}

/// CLUSTER HELP
fn help(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    answer_help(cx, args)
}

/// What changes the cluster in Redis by way of the connections between its nodes.
fn not_here(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    let name = cx.row.command.name;
    let instead = match name {
        "meet" | "replicate" => "dunlin cluster add",
        "addslots" | "addslotsrange" => "dunlin cluster create",
        "forget" | "reset" => "dunlin cluster remove",
        "delslots" | "delslotsrange" | "flushslots" | "setslot" => "dunlin cluster move",
        _ => "dunlin cluster status",
    };
    Err(CommandError::owned(format!(
        "ERR CLUSTER {} is not offered: this cluster is kept in etcd. See `{instead}`",
        name.to_ascii_uppercase()
    )))
}

/// CLUSTER FAILOVER [FORCE | TAKEOVER]
fn failover(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    args.skip(1);
    if args.len() > 1 {
        return Err(CommandError::subcommand_syntax("cluster", cx.row.command.name.as_bytes()));
    }
    let force = args.word("force");
    let takes_over = args.word("takeover");
    args.end()?;
    if view.leads() {
        let text = "ERR You should send CLUSTER FAILOVER to a replica";
        return Err(CommandError::text(text));
    }
    if view.shard().is_none() {
        let text = "ERR I'm a replica but my master is unknown to me";
        return Err(CommandError::text(text));
    }
    if takes_over {
        return Err(CommandError::text(
            "ERR CLUSTER FAILOVER TAKEOVER is not offered: it would lose writes. A node becomes \
             primary by etcd alone; see CLUSTER FAILOVER FORCE",
        ));
    }
    let primary = view.shard().and_then(|shard| view.topology.primary_of(shard.id));
    if !force && !primary.is_some_and(Node::is_alive) {
        let text = "ERR Master is down or failed, please use CLUSTER FAILOVER FORCE";
        return Err(CommandError::text(text));
    }
    ask(cx, ClusterRequest::Failover { force })
}

/// CLUSTER TOPOLOGY
fn topology(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    view(cx)?;
    ask(cx, ClusterRequest::Topology)
}

/// Asks the cluster for something, and lets the client wait for the answer. A script or a
/// transaction does not wait: it hears that the cluster was asked, which is all that Redis ever
/// says.
fn ask(cx: &mut Context<'_>, request: ClusterRequest) -> CommandResult {
    if cx.may_block() {
        let waiter = cx.wait_for_host();
        cx.engine.host.ask_cluster(request, waiter);
    } else {
        cx.engine.host.ask_cluster(request, cx.waiter_of_nobody());
        cx.reply.ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
