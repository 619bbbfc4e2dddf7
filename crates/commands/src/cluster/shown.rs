//! The cluster as clients ask for it: SLOTS, SHARDS, NODES and the like.

use std::fmt::Write;

use cluster::topology::{Node, Shard};

use engine::cluster::view::{ClusterView, endpoint, port};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::replication::LinkState;
use engine::session::client::flag;

use super::{known_node, view};

/// The node that has led a shard last.
fn primary<'v>(view: &'v ClusterView, shard: &Shard) -> Option<&'v Node> {
    view.topology.nodes.get(&shard.leader.or(shard.last_leader)?.node)
}

/// The other nodes of a shard, those that count for its quorum first.
fn replicas_of<'v>(view: &'v ClusterView, shard: &Shard) -> Vec<&'v Node> {
    let primary = primary(view, shard).map(|node| node.id);
    let others = shard.nodes().filter(|id| Some(*id) != primary);
    others.filter_map(|id| view.topology.nodes.get(&id)).collect()
}

/// Whether the client of a command is to get the ports of encrypted connections.
fn is_encrypted(cx: &Context<'_>) -> bool {
    cx.session.client.has_flag(flag::ENCRYPTED)
}

/// CLUSTER MYID
pub(super) fn myid(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let id = view(cx)?.own.to_string();
    cx.reply.bulk(id.as_bytes());
    Ok(())
}

/// CLUSTER MYSHARDID
pub(super) fn myshardid(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    let none = CommandError::text("ERR this node belongs to no shard yet");
    let shard = view.topology.nodes.get(&view.own).and_then(|node| node.shard).ok_or(none)?;
    cx.reply.bulk(shard.to_string().as_bytes());
    Ok(())
}

/// CLUSTER SLOTS
pub(super) fn slots(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    let mark = cx.reply.mark();
    let mut count = 0;
    for (first, last, shard) in view.topology.owners() {
        let Some(shard) = view.topology.shards.get(&shard) else { continue };
        let Some(primary) = primary(view, shard) else { continue };
        let members = |node: &&Node| node.is_alive() && shard.members.contains(&node.id);
        let replicas: Vec<_> = replicas_of(view, shard).into_iter().filter(members).collect();
        cx.reply.array(3 + replicas.len());
        cx.reply.integer(i64::from(first));
        cx.reply.integer(i64::from(last));
        reply_node(cx, primary);
        replicas.iter().for_each(|node| reply_node(cx, node));
        count += 1;
    }
    cx.reply.close_array(mark, count);
    Ok(())
}

/// A node of CLUSTER SLOTS: how clients reach it, its name, and its other addresses.
fn reply_node(cx: &mut Context<'_>, node: &Node) {
    use config::EndpointType::{Hostname, Ip};

    let preferred = cx.db.config.cluster_preferred_endpoint_type;
    let port = port(node, is_encrypted(cx));
    cx.reply.array(4);
    match endpoint(node, cx.db.config) {
        Some(endpoint) => cx.reply.bulk(endpoint.as_bytes()),
        None => cx.reply.null(),
    }
    cx.reply.integer(i64::from(port));
    cx.reply.bulk(node.id.to_string().as_bytes());
    let shows_ip = preferred != Ip;
    let shows_name = preferred != Hostname && !node.address.hostname.is_empty();
    cx.reply.map(usize::from(shows_ip) + usize::from(shows_name));
    if shows_ip {
        cx.reply.bulk(b"ip");
        cx.reply.bulk(node.address.host.as_bytes());
    }
    if shows_name {
        cx.reply.bulk(b"hostname");
        cx.reply.bulk(node.address.hostname.as_bytes());
    }
}

/// CLUSTER SHARDS
pub(super) fn shards(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    cx.reply.array(view.topology.shards.len());
    for shard in view.topology.shards.values() {
        cx.reply.map(2);
        cx.reply.bulk(b"slots");
        let ranges = shard.slots.ranges();
        cx.reply.array(2 * ranges.len());
        for (first, last) in ranges {
            cx.reply.integer(i64::from(first));
            cx.reply.integer(i64::from(last));
        }
        cx.reply.bulk(b"nodes");
        let primary = primary(view, shard);
        let replicas = replicas_of(view, shard);
        cx.reply.array(usize::from(primary.is_some()) + replicas.len());
        if let Some(primary) = primary {
            reply_member(cx, view, primary, true);
        }
        replicas.iter().for_each(|node| reply_member(cx, view, node, false));
    }
    Ok(())
}

/// A node of CLUSTER SHARDS.
fn reply_member(cx: &mut Context<'_>, view: &ClusterView, node: &Node, leads: bool) {
    let address = &node.address;
    let ports = [("port", address.port), ("tls-port", address.tls_port)];
    let ports: Vec<_> = ports.into_iter().filter(|(_, port)| *port > 0).collect();
    let has_name = !address.hostname.is_empty();
    let offset = offset_of(cx, view, node);
    let health = if node.is_alive() { "online" } else { "fail" };
    let health = if node.is_alive() && !leads && offset == Some(0) { "loading" } else { health };
    cx.reply.map(6 + ports.len() + usize::from(has_name));
    cx.reply.bulk(b"id");
    cx.reply.bulk(node.id.to_string().as_bytes());
    for (name, port) in ports {
        cx.reply.bulk(name.as_bytes());
        cx.reply.integer(i64::from(port));
    }
    cx.reply.bulk(b"ip");
    cx.reply.bulk(address.host.as_bytes());
    cx.reply.bulk(b"endpoint");
    match endpoint(node, cx.db.config) {
        Some(endpoint) => cx.reply.bulk(endpoint.as_bytes()),
        None => cx.reply.null(),
    }
    if has_name {
        cx.reply.bulk(b"hostname");
        cx.reply.bulk(address.hostname.as_bytes());
    }
    cx.reply.bulk(b"role");
    cx.reply.bulk(if leads { b"master" } else { b"replica" });
    cx.reply.bulk(b"replication-offset");
    cx.reply.integer(offset.unwrap_or_default().cast_signed());
    cx.reply.bulk(b"health");
    cx.reply.bulk(health.as_bytes());
}

/// The offset of a node in the stream of its shard, as far as this node knows it: its own, and
/// those of its replicas.
fn offset_of(cx: &Context<'_>, view: &ClusterView, node: &Node) -> Option<u64> {
    if node.id == view.own {
        return Some(cx.engine.replication_offset());
    }
    let links = cx.engine.replicas.all().into_iter();
    let links = links.filter(|own| own.introduction.node == Some(node.id));
    let replica = links.max_by_key(|own| own.client.id)?;
    Some(cx.engine.shown_offset(replica.acknowledged()))
}

/// CLUSTER NODES
pub(super) fn nodes(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    let lines = view.topology.nodes.values().map(|node| line(cx, view, node) + "\n");
    let text: String = lines.collect();
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// CLUSTER REPLICAS node-id
pub(super) fn replicas(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    args.skip(1);
    let node = known_node(view, args)?;
    let shard = view.topology.shard_of(node.id);
    let shard = shard.filter(|shard| primary(view, shard).is_some_and(|own| own.id == node.id));
    let shard = shard.ok_or(CommandError::text("ERR The specified node is not a master"))?;
    let replicas = replicas_of(view, shard);
    cx.reply.array(replicas.len());
    for node in replicas {
        let line = line(cx, view, node);
        cx.reply.bulk(line.as_bytes());
    }
    Ok(())
}

/// A node as CLUSTER NODES shows it. There is no bus of the cluster, so its port is 0.
fn line(cx: &Context<'_>, view: &ClusterView, node: &Node) -> String {
    let shard = view.topology.shard_of(node.id);
    let primary = shard.and_then(|shard| primary(view, shard));
    let leads = primary.is_some_and(|primary| primary.id == node.id);
    let port = port(node, is_encrypted(cx));
    let mut line = format!("{} {}:{port}@0", node.id, node.address.host);
    if !node.address.hostname.is_empty() {
        let _ = write!(line, ",{}", node.address.hostname);
    }
    let mut flags = Vec::new();
    if node.id == view.own {
        flags.push("myself");
    }
    // One that has not found its primary yet has no slots either.
    flags.push(if leads || primary.is_none() { "master" } else { "slave" });
    if !node.is_alive() {
        flags.push("fail");
    }
    let of = match primary.filter(|_| !leads) {
        Some(primary) => primary.id.to_string(),
        None => "-".to_owned(),
    };
    let heard = if node.id == view.own || !node.is_alive() { 0 } else { cx.db.now };
    let epoch = shard.and_then(|shard| shard.leader.or(shard.last_leader));
    let link = if node.is_alive() || node.id == view.own { "connected" } else { "disconnected" };
    let (flags, epoch) = (flags.join(","), epoch.map_or(0, |leader| leader.epoch));
    let _ = write!(line, " {flags} {of} 0 {heard} {epoch} {link}");
    for (first, last) in shard.filter(|_| leads).into_iter().flat_map(|own| own.slots.ranges()) {
        let _ = match first == last {
            true => write!(line, " {first}"),
            false => write!(line, " {first}-{last}"),
        };
    }
    line
}

/// CLUSTER INFO
pub(super) fn info(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    let topology = &view.topology;
    let assigned: usize = topology.shards.values().map(|shard| shard.slots.count()).sum();
    let served = topology.served_count();
    let now_us = cx.db.monotonic.saturating_mul(1000);
    let may_serve = cx.engine.cluster.may_serve_as(view, now_us);
    let is_up = may_serve && view.is_up(cx.db.config) && topology.revision > 0;
    let size = topology.shards.values().filter(|shard| !shard.slots.is_empty()).count();
    let own = view.shard().and_then(|shard| shard.leader.or(shard.last_leader));
    let fields = [
        ("cluster_state", if is_up { "ok" } else { "fail" }.to_owned()),
        ("cluster_slots_assigned", assigned.to_string()),
        ("cluster_slots_ok", served.to_string()),
        ("cluster_slots_pfail", 0.to_string()),
        ("cluster_slots_fail", assigned.saturating_sub(served).to_string()),
        ("cluster_known_nodes", topology.nodes.len().to_string()),
        ("cluster_size", size.to_string()),
        ("cluster_current_epoch", topology.epoch().to_string()),
        ("cluster_my_epoch", own.map_or(0, |leader| leader.epoch).to_string()),
        ("cluster_stats_messages_sent", 0.to_string()),
        ("cluster_stats_messages_received", 0.to_string()),
        ("total_cluster_links_buffer_limit_exceeded", 0.to_string()),
    ];
    let text: String = fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// CLUSTER LINKS: the connections over which replicas follow their primary. There are no others
/// between nodes.
pub(super) fn links(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    let find = |host: &[u8], port: u16| {
        view.topology.nodes.values().find(|node| {
            let ports = [node.address.port, node.address.tls_port];
            node.address.host.as_bytes() == host && ports.contains(&port)
        })
    };
    let (now, begun) = (cx.db.now, cx.db.monotonic);
    let mut links = Vec::new();
    if let Some(own) = cx.engine.replication.view().filter(|own| own.link == LinkState::Up)
        && let Some(node) = find(&own.primary.host, own.primary.port)
    {
        let since = own.heard_at.map_or(0, |at| now.saturating_sub(begun.saturating_sub(at)));
        links.push(("to", node.id, since, 0));
    }
    for replica in cx.engine.replicas.all() {
        // It may be known at another address than where it listens.
        let Some(id) = replica.introduction.node else { continue };
        let Some(node) = view.topology.nodes.get(&id) else { continue };
        let since = now.saturating_sub(begun.saturating_sub(replica.client.connected_at));
        let waiting = replica.waiting.load(std::sync::atomic::Ordering::Relaxed);
        links.push(("from", node.id, since, waiting));
    }
    cx.reply.array(links.len());
    for (direction, node, since, waiting) in links {
        cx.reply.map(6);
        cx.reply.bulk(b"direction");
        cx.reply.bulk(direction.as_bytes());
        cx.reply.bulk(b"node");
        cx.reply.bulk(node.to_string().as_bytes());
        cx.reply.bulk(b"create-time");
        cx.reply.integer(since.cast_signed());
        cx.reply.bulk(b"events");
        cx.reply.bulk(if waiting > 0 { b"rw" } else { b"r" });
        for name in ["send-buffer-allocated", "send-buffer-used"] {
            cx.reply.bulk(name.as_bytes());
            cx.reply.integer(waiting.cast_signed());
        }
    }
    Ok(())
}

/// CLUSTER COUNT-FAILURE-REPORTS node-id: etcd alone reports failures, by the end of a lease.
pub(super) fn count_failure_reports(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let view = view(cx)?;
    args.skip(1);
    let node = known_node(view, args)?;
    cx.reply.integer(i64::from(!node.is_alive()));
    Ok(())
}
