//! Whether this node of a cluster serves the slots that a command names: the checks of Redis
//! Cluster, in its order.
//!
//! | the keys of a command are | answer |
//! |---|---|
//! | first of a slot that no shard owns | `CLUSTERDOWN Hash slot not served` |
//! | of several slots, and the settings or the slots do not allow that | `CROSSSLOT` |
//! | of one slot, and the node may not serve now, or another slot is not served at all | `CLUSTERDOWN` |
//! | of another node's slot | `MOVED`, with that node |
//! | of a slot of this replica, whose client has not sent READONLY, or wants to write | `MOVED`, with the primary |
//!
//! Channels of SSUBSCRIBE and the like have slots as keys do. Replicas serve them too.

use cluster::topology::Node;
use resp::args::Arguments;
use smallvec::SmallVec;

use crate::cluster::view::{ClusterView, Owner, endpoint, port};
use crate::command::args::KeyAt;
use crate::command::error::{CommandError, CommandResult};
use crate::command::keys::collect_keys;
use crate::command::{self, NOT_KEY, OF_TREE, PUBSUB, Spec};
use crate::engine::{Context, Engine, Row};
use crate::journal::filter::{Filter, Keys};
use crate::script::shebang::{ALLOW_CROSS_SLOT, COMPATIBLE, NO_WRITES, ScriptFlags};
use crate::session::Session;
use crate::session::client::{Client, flag};
use crate::session::slot_moves::Passage;
use crate::turn::Turn;
use crate::turn::expansion::{any_has, each_request, queued};
use config::Config;

/// Milliseconds after which a request that waits for a primary tries again.
const PAUSE_OF_ELECTION: u64 = 10;
/// Milliseconds for which a primary counts as lost after the link of its replica has broken, though
/// nobody else says so.
const LOST_FOR: u64 = 2000;

/// Slots in the order in which a request names them, which may repeat.
type NamedSlots = SmallVec<[u16; 8]>;

/// Why this node does not serve a command.
#[derive(Debug)]
enum Misplaced<'v> {
    /// Its keys are of several slots.
    CrossSlot,
    /// No node serves the slot.
    NotServed,
    /// The cluster is down, or this node may not serve now.
    Down,
    /// The same, but reads are served.
    TakesReadsOnly,
    /// This node serves the slot.
    Moved(u16, &'v Node),
}

impl Misplaced<'_> {
    /// The error for a client.
    fn error(&self, config: &Config, client: &Client) -> CommandError {
        match self {
            Misplaced::CrossSlot => CommandError::CROSS_SLOT,
            Misplaced::NotServed => CommandError::SLOT_NOT_SERVED,
            Misplaced::Down => CommandError::CLUSTER_DOWN,
            Misplaced::TakesReadsOnly => CommandError::CLUSTER_TAKES_READS_ONLY,
            Misplaced::Moved(slot, node) => {
                let host = endpoint(node, config).unwrap_or_default();
                let port = port(node, client.has_flag(flag::ENCRYPTED));
                CommandError::owned(format!("MOVED {slot} {host}:{port}"))
            }
        }
    }

    /// The error for a script that calls a command.
    fn error_in_script(&self, command: &Spec) -> CommandError {
        CommandError::text(match self {
            Misplaced::CrossSlot => {
                return CommandError::owned(format!(
                    "ERR Command '{}' in script attempted to access keys that don't hash to the same \
                     slot",
                    command.full_name()
                ));
            }
            Misplaced::NotServed => "ERR Script attempted to access a slot not served",
            Misplaced::Down => {
                "ERR Script attempted to execute a command while the cluster is down"
            }
            Misplaced::TakesReadsOnly => {
                "ERR Script attempted to execute a write command while the cluster is down and \
                 readonly"
            }
            Misplaced::Moved(..) => {
                "ERR Script attempted to access a non local key in a cluster node"
            }
        })
    }
}

/// What a request does with the slots that it names.
#[derive(Clone, Copy)]
struct Purpose {
    writes: bool,
    /// Its client reads from replicas: READONLY.
    reads_here: bool,
    /// It names shard channels.
    has_channels: bool,
}

/// Looks whether this node serves a request. Returns the first slot that it names. `is_up` says
/// whether this node may serve now what is its own. For a client that waits it always may: what is
/// down for a moment does not end the wait.
fn locate<'v>(
    view: &'v ClusterView,
    (config, is_up): (&Config, bool),
    purpose: Purpose,
    slots: &[u16],
) -> Result<Option<u16>, Misplaced<'v>> {
    let Some((&first, others)) = slots.split_first() else { return Ok(None) };
    if view.topology.owner_of_slot(first).is_none() {
        return Err(Misplaced::NotServed);
    }
    let is_one = others.iter().all(|slot| *slot == first);
    if !is_one && !config.cluster_allow_cross_slot {
        return Err(Misplaced::CrossSlot);
    }
    let Purpose { writes, reads_here, has_channels } = purpose;
    if !is_up {
        match has_channels {
            true if config.cluster_allow_pubsubshard_when_down => {}
            false if config.cluster_allow_reads_when_down && !writes => {}
            false if config.cluster_allow_reads_when_down => return Err(Misplaced::TakesReadsOnly),
            _ => return Err(Misplaced::Down),
        }
    }
    let serves = |slot: u16| match view.owner(slot) {
        Owner::Own => true,
        // It was the last primary, so it has the data, but it may be behind the next one.
        Owner::Primary(node) if node.id == view.own => {
            !writes && (reads_here || config.cluster_allow_reads_when_down)
        }
        Owner::Primary(_) => !writes && (reads_here || has_channels),
        Owner::Other(_) | Owner::Nobody => false,
    };
    if serves(first) {
        let serves_all = is_one || others.iter().all(|slot| serves(*slot));
        return if serves_all { Ok(Some(first)) } else { Err(Misplaced::CrossSlot) };
    }
    match view.owner(first) {
        Owner::Primary(node) | Owner::Other(node) if node.id != view.own => {
            Err(Misplaced::Moved(first, node))
        }
        _ => Err(Misplaced::NotServed),
    }
}

/// The error for a client that waits for something in slots which this node does not serve any
/// more. While the cluster is down, who waits for what is here waits on. That says nothing of what
/// is elsewhere: nobody looks at clients again when the cluster is up.
fn refusal_of_waiting(
    (view, config): (&ClusterView, &Config),
    client: &Client,
    (writes, reads_here): (bool, bool),
    slots: &[u16],
) -> Option<CommandError> {
    let purpose = Purpose { writes, reads_here, has_channels: false };
    let located = locate(view, (config, true), purpose, slots);
    located.err().map(|own| own.error(config, client))
}

/// Appends the slots of the shard channels that a command names, and returns whether it subscribes
/// or publishes. As in Redis, one that ends subscriptions is no such command.
fn add_channels(command: &Spec, argv: Arguments<'_>, slots: &mut NamedSlots) -> bool {
    if !command.has(PUBSUB) {
        return false;
    }
    for spec in command.keys.iter().filter(|spec| spec.flags & NOT_KEY != 0) {
        spec.each(argv, |index| slots.push(base::crc::key_slot(argv.at(index))));
    }
    command.channels.is_some()
}

impl Engine {
    /// Whether this server, if it is a node of a cluster, serves the slots that a request of a
    /// client names.
    pub(super) fn serves_slots(
        &self,
        turn: &Turn,
        session: &Session,
        (command, argv, keys): (&Spec, Arguments<'_>, &[KeyAt]),
    ) -> CommandResult {
        let Some(view) = turn.cluster.as_deref() else { return Ok(()) };
        let is_own = session.user.is_server() && !command.has(OF_TREE);
        if session.replays || session.import.is_some() || is_own {
            return Ok(());
        }
        // A message that another node brings goes to whoever listens here. An error would end the
        // link, with messages that are on their way behind it.
        if session.speaks_for_node() && command.has(PUBSUB) {
            return Ok(());
        }
        let mut slots: NamedSlots = keys.iter().map(|key| key.slot).collect();
        let mut has_channels = add_channels(command, argv, &mut slots);
        for own in queued(command, session) {
            let (command, argv) = (own.command, own.argv.view());
            let mut keys = Vec::new();
            collect_keys(command, argv, &mut keys);
            slots.extend(keys.iter().map(|key| key.slot));
            has_channels |= add_channels(command, argv, &mut slots);
        }
        if slots.is_empty() {
            return Ok(());
        }
        let writes = any_has(command, session, command::WRITE)
            || each_request(command, argv, session)
                .any(|(own, argv)| self.says_it_writes(own, argv));
        let purpose = Purpose { writes, reads_here: session.reads_from_replica, has_channels };
        let may_serve = self.cluster.may_serve_as(view, turn.monotonic_us);
        let state = (&*turn.config, may_serve && view.is_up(&turn.config));
        let located = locate(view, state, purpose, &slots);
        located.map(drop).map_err(|misplaced| misplaced.error(&turn.config, &session.client))
    }

    /// Whether a command runs a script that says of itself that it may write.
    pub(super) fn says_it_writes(&self, command: &Spec, argv: Arguments<'_>) -> bool {
        let flags = self.script_flags(command, argv);
        flags.is_some_and(|flags| flags & (COMPATIBLE | NO_WRITES) == 0)
    }

    /// The error for a client that waits in a command for keys, if this node does not serve them
    /// any more.
    pub(crate) fn refusal_of_wait(
        &self,
        view: &ClusterView,
        config: &Config,
        client: &Client,
        (row, keys): (&Row, &[Box<[u8]>]),
    ) -> Option<CommandError> {
        let slots: NamedSlots = keys.iter().map(|key| base::crc::key_slot(key)).collect();
        let reads_here = client.has_flag(flag::READS_FROM_REPLICA);
        let does = (row.command.has(command::WRITE), reads_here);
        refusal_of_waiting((view, config), client, does, &slots)
    }

    /// The error for a client that waits for an event in a slot, if this node does not serve it any
    /// more.
    pub(crate) fn refusal_of_watch(
        &self,
        (view, config): (&ClusterView, &Config),
        client: &Client,
        slot: u16,
    ) -> Option<CommandError> {
        refusal_of_waiting((view, config), client, (false, false), &[slot])
    }

    /// A request waits for the next primary of its first key's slot if the last one is lost and the
    /// request has time for that ([`Session::primary_awaited_until`]): until when it pauses.
    ///
    /// # Errors
    /// The refusal of the command, or that the time is over.
    pub(super) fn await_primary(
        &self,
        turn: &Turn,
        session: &Session,
        keys: &[KeyAt],
        refusal: CommandError,
    ) -> Result<u64, CommandError> {
        let Some(until) = session.primary_awaited_until else { return Err(refusal) };
        let (Some(view), Some(key)) = (turn.cluster.as_deref(), keys.first()) else {
            return Err(refusal);
        };
        let topology = &view.topology;
        let Some(shard) = topology.owner_of_slot(key.slot) else { return Err(refusal) };
        // A node that loads has not heard of elections yet: it sends on as it last knew.
        if self.loading.is_on() && !view.has_slot(key.slot) {
            return Err(refusal);
        }
        let primary = topology.primary_of(shard.id).filter(|node| node.is_alive());
        let is_over = turn.monotonic >= until;
        let waits = match primary {
            None if is_over => return Err(CommandError::NO_PRIMARY),
            None => true,
            // Its lease is in doubt.
            Some(node) if node.id == view.own => !self.cluster.may_serve(turn.monotonic_us),
            // Where it is only this node that does not reach it, the client may.
            Some(_) => {
                let is_lost = || self.replication.has_lost_primary(turn.monotonic, LOST_FOR);
                view.has_slot(key.slot) && is_lost()
            }
        };
        if waits && !is_over { Ok(turn.monotonic + PAUSE_OF_ELECTION) } else { Err(refusal) }
    }

    /// The error for a client that follows changes of one key, if this node does not serve it.
    pub(crate) fn refusal_of_follower(
        &self,
        client: &Client,
        filter: &Filter,
    ) -> Option<CommandError> {
        let view = self.cluster.view()?;
        let Keys::One(key) = &filter.keys else { return None };
        let config = self.config.snapshot();
        let does = (false, client.has_flag(flag::READS_FROM_REPLICA));
        refusal_of_waiting((&view, &config), client, does, &[base::crc::key_slot(key)])
    }
}

/// Whether commands that a client has queued name keys.
pub fn has_queued_keys(session: &Session) -> bool {
    let queued = session.transaction.iter().flat_map(|own| &own.commands);
    queued.into_iter().any(|own| {
        let mut keys = Vec::new();
        collect_keys(own.command, own.argv.view(), &mut keys);
        !keys.is_empty()
    })
}

/// Whether this node serves the slots of a command that a script calls. `known` is the slot of the
/// script's keys, as far as it has named any.
pub(crate) fn serves_called(
    cx: &Context<'_>,
    (command, argv, keys): (&Spec, Arguments<'_>, &[KeyAt]),
    flags: ScriptFlags,
    known: &mut Option<u16>,
) -> CommandResult {
    let Some(view) = cx.db.cluster else { return Ok(()) };
    let session = &*cx.session;
    if session.replays || session.link.is_some() || session.user.is_server() {
        return Ok(());
    }
    let mut slots: NamedSlots = keys.iter().map(|key| key.slot).collect();
    let has_channels = add_channels(command, argv, &mut slots);
    let writes = command.has(command::WRITE);
    let purpose = Purpose { writes, reads_here: session.reads_from_replica, has_channels };
    let located = locate(view, (cx.db.config, is_up(cx, view)), purpose, &slots);
    let slot = located.map_err(|misplaced| misplaced.error_in_script(command))?;
    let may_cross = flags & (COMPATIBLE | ALLOW_CROSS_SLOT) != 0;
    if let Some(slot) = slot.filter(|_| !(may_cross || cx.db.config.cluster_allow_cross_slot))
        && *known.get_or_insert(slot) != slot
    {
        let text = "ERR Script attempted to access keys that do not hash to the same slot";
        return Err(CommandError::text(text));
    }
    Ok(())
}

/// Whether the cluster is up, and this node may serve now.
fn is_up(cx: &Context<'_>, view: &ClusterView) -> bool {
    let now_us = cx.db.monotonic.saturating_mul(1000);
    cx.engine.cluster.may_serve_as(view, now_us) && view.is_up(cx.db.config)
}

/// Whether this server serves the slots of all keys that a client's command names which has waited
/// for one of them. Where the others are may have changed meanwhile, and so may what the settings
/// allow. The command that serves the client does not wait for the slots of these keys.
pub(super) fn serves_waiter(
    cx: &Context<'_>,
    command: &Spec,
    argv: Arguments<'_>,
) -> CommandResult {
    let moves = &cx.engine.slot_moves;
    if cx.db.cluster.is_none() && !moves.are_any() {
        return Ok(());
    }
    let mut keys = Vec::new();
    collect_keys(command, argv, &mut keys);
    let slots: NamedSlots = keys.iter().map(|key| key.slot).collect();
    let client = &cx.session.client;
    if let Some(view) = cx.db.cluster {
        let does = (command.has(command::WRITE), client.has_flag(flag::READS_FROM_REPLICA));
        refusal_of_waiting((view, cx.db.config), client, does, &slots).map_or(Ok(()), Err)?;
    }
    if !moves.are_any() {
        return Ok(());
    }
    match moves.passage(slots.iter().copied()) {
        Passage::Free => Ok(()),
        // A script may have begun before the settings allowed that.
        Passage::Waits => Err(CommandError::TRY_AGAIN),
        Passage::Moved(slot, to) => Err(CommandError::owned(format!("MOVED {slot} {to}"))),
    }
}

/// Whether a slot is this server's own, also while the cluster is down. What the server itself does
/// with a key on behalf of a client looks here: it comes later than the checks of the client's
/// command, and a key in a slot of another node is old, and about to be deleted.
///
/// # Errors
/// Where the client should go.
pub fn owns_slot(cx: &Context<'_>, slot: u16) -> CommandResult {
    let Some(view) = cx.db.cluster else { return Ok(()) };
    let client = &cx.session.client;
    refusal_of_waiting((view, cx.db.config), client, (true, false), &[slot]).map_or(Ok(()), Err)
}

/// Whether this node serves a read of a slot that a command names in a way of its own.
///
/// # Errors
/// Where the client should go.
pub fn serves_slot(cx: &Context<'_>, slot: u16) -> CommandResult {
    let Some(view) = cx.db.cluster else { return Ok(()) };
    let reads_here = cx.session.reads_from_replica;
    let purpose = Purpose { writes: false, reads_here, has_channels: false };
    let located = locate(view, (cx.db.config, is_up(cx, view)), purpose, &[slot]);
    located.map(drop).map_err(|misplaced| misplaced.error(cx.db.config, &cx.session.client))
}
