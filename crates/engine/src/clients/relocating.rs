//! What clients hear when slots come to this node of a cluster, or leave it.
//!
//! | a client | when the slot of what it waits for leaves |
//! |---|---|
//! | that waits for a key | is told where the key is now |
//! | that waits for a change of a key, or follows its changes | is told so too |
//! | that waits for an event of the tree of [`crate::nodes`] | is told so too |
//! | that has subscribed to a shard channel | is told that the subscription is over |
//!
//! Others hear of it with their next command.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use cluster::slots::SlotRanges;
use cluster::topology::{MigrationState, Topology};
use resp::client::encode_command;
use resp::output::Output;
use resp::reply::Reply;
use store::SlotSet;
use store::gate::StoppedWorld;

use crate::cluster::view::{ClusterView, SAID_SLOTS, SaidSlots};
use crate::command::error::{CommandError, CommandResult};
use crate::engine::Engine;
use crate::nodes::kept::PREFIX;
use crate::session::Session;
use crate::session::awaited::{Awaited, Wait};
use crate::session::client::{Client, Served};
use crate::session::followers::Follower;
use crate::session::pubsub::Kind;
use config::Config;

impl Engine {
    /// The cluster is so now. Stops the world if this node serves less than before: when this
    /// returns, no command runs that it does not serve any more. The caller is inside no gate.
    ///
    /// What it serves from now on stops nobody: a script that runs for long would keep the caller
    /// from its other duties. A command by the topology before it sends its client away in vain.
    pub fn follow_topology(&self, topology: Arc<Topology>) {
        let (Some(next), Some(present)) = (self.cluster.view_of(topology), self.cluster.view())
        else {
            return;
        };
        let changes_clients = !next.serves_as(&present);
        let stopped = next.ends_any_of(&present).then(|| self.gates.stop_the_world());
        self.take_view(next);
        // Before a command runs again: keys of slots that have left are deleted by one, and clients
        // would be told that.
        if changes_clients {
            self.send_clients_away();
        }
        drop(stopped);
    }

    /// [`Engine::follow_topology`] for a caller that has stopped the world.
    pub fn follow_topology_stopped(&self, _: &StoppedWorld<'_>, topology: Arc<Topology>) {
        if let Some(next) = self.cluster.view_of(topology) {
            self.take_view(next);
            self.send_clients_away();
        }
    }

    /// Slots that come here are shown before anybody may use them.
    fn take_view(&self, view: ClusterView) {
        self.note_slots(&view);
        self.cluster.set_view(view);
    }

    /// Hides the slots of other shards, and has their keys deleted, unless they are on their way
    /// here.
    fn note_slots(&self, view: &ClusterView) {
        let set = |slots: &SlotRanges| slots.iter().collect::<SlotSet>();
        let Some(shard) = view.shard() else { return };
        let all = view.topology.migrations.values();
        let coming = all.filter(|own| own.to == shard.id && own.state != MigrationState::Aborted);
        let coming: Vec<_> =
            coming.map(|own| (own.id.as_bytes().into(), set(&own.slots))).collect();
        if view.leads() {
            let leaving = view.topology.migrations.values();
            let leaving = leaving
                .filter(|own| own.from == shard.id && own.state != MigrationState::Aborted)
                .map(|own| (&*own.id, set(&own.slots)));
            self.slot_moves.want(leaving, &set(&shard.slots), base::clock::monotonic_ms());
        } else {
            self.slot_moves.want_nothing();
        }
        let mut foreign = SlotSet::default();
        for other in view.topology.shards.values().filter(|other| other.id != shard.id) {
            let slots = other.slots.iter();
            let stays = |slot: &u16| !coming.iter().any(|(_, slots)| slots.has(*slot));
            slots.filter(stays).for_each(|slot| foreign.insert(slot));
        }
        self.slot_moves.follow(&self.keyspace.hidden, &set(&shard.slots), coming);
        let has_keys = |own: usize| self.keyspace.next_of_all(own, 0, Some(&foreign)).is_some();
        if view.leads() && (0..self.keyspace.databases()).any(has_keys) {
            self.slot_moves.empty(foreign);
        }
    }

    /// The command by which the primary of a shard tells its replicas which slots the shard has:
    /// before it deletes the keys of others, because a replica may not reach etcd and would find
    /// them missing; and now and then, because a copy of the data may lack them already.
    pub fn said_slots(&self) -> Option<Vec<u8>> {
        let view = self.cluster.view()?;
        let shard = view.shard().filter(|_| view.leads())?;
        let said = format!("{}:{}", view.topology.revision, shard.slots);
        let (word, mut command) = ([SAID_SLOTS, said.as_bytes()].concat(), Vec::new());
        encode_command([&b"REPLCONF"[..], b"capa", &word].into_iter(), &mut command);
        Some(command)
    }

    /// What the primary of this replica tells it so.
    ///
    /// # Errors
    /// It is nothing of that kind.
    pub fn take_said_slots(&self, words: &[u8]) -> CommandResult {
        let words = std::str::from_utf8(words).ok().and_then(|words| words.split_once(':'));
        let said = words.and_then(|(revision, slots)| {
            let slots: SlotRanges = slots.parse().ok()?;
            Some(SaidSlots { revision: revision.parse().ok()?, slots: slots.iter().collect() })
        });
        let unknown =
            CommandError::text("ERR cluster-slots of REPLCONF capa is no revision and slots");
        if self.cluster.heed(said.ok_or(unknown)?) {
            self.send_clients_away();
        }
        Ok(())
    }

    fn send_clients_away(&self) {
        let Some(view) = self.cluster.view() else { return };
        // Whoever is not seen to wait or to listen here sees the view: see `look_again`.
        fence(SeqCst);
        let config = self.config.snapshot();
        self.send_followers_away();
        for client in self.clients.all() {
            self.send_away(&view, &config, &client);
        }
    }

    fn send_away(&self, view: &ClusterView, config: &Config, client: &Arc<Client>) {
        let error = self.refusal_of_waiting((view, config), client);
        let error = error.filter(|(wait, _)| wait.claim());
        let has_channels = client.shard_channels.load(Relaxed) > 0;
        if error.is_none() && !has_channels {
            return;
        }
        let mut inbox = client.inbox.lock();
        inbox.slots_left |= has_channels;
        if let Some((wait, error)) = error {
            let mut reply = Output::new();
            Reply::new(&mut reply, wait.resp3).error(error.as_bytes());
            self.stats.count_error(&error.code());
            inbox.served = Some(Box::new(Served { wait, reply, write_offset: 0 }));
        }
        drop(inbox);
        self.host.wake(client);
    }

    /// Whether a client that waits or listens from now on may do so, now that others see that it
    /// does. At a replica slots leave while commands run, so the command may go by a view that has
    /// ended since.
    pub fn look_again(&self, client: &Arc<Client>) {
        fence(SeqCst);
        let Some(view) = self.cluster.view() else { return };
        if !view.leads() {
            self.send_away(&view, &self.config.snapshot(), client);
        }
    }

    /// The error for a client that waits for keys which this node does not serve any more.
    fn refusal_of_waiting(
        &self,
        (view, config): (&ClusterView, &Config),
        client: &Client,
    ) -> Option<(Arc<Wait>, CommandError)> {
        let wait = client.wait.lock().clone()?;
        let error = match &wait.awaited {
            Awaited::Key(_, row) => {
                let row = &self.commands.rows()[*row];
                self.refusal_of_wait(view, config, client, (row, &wait.keys))?
            }
            Awaited::Changes(filter) => self.refusal_of_follower(client, filter)?,
            Awaited::Event(_) => {
                let slot = base::crc::key_slot(PREFIX);
                self.refusal_of_watch((view, config), client, slot)?
            }
            Awaited::Host | Awaited::Refusal(_) | Awaited::Sync(_) => return None,
        };
        Some((wait, error))
    }

    /// Ends the streams of clients that follow a key which this node does not serve any more. They
    /// do not hear that it is deleted here: it lives on elsewhere.
    fn send_followers_away(&self) {
        let mut all = Vec::new();
        self.followers.each(|own| all.push(Arc::clone(own)));
        all.retain(|own| own.waiter.is_none());
        all.iter().for_each(|own| self.look_again_at_follower(own));
    }

    /// Ends the stream of a client if it follows a key which this node does not serve any more.
    /// Whoever adds a follower calls this too: the slot may have left before others see it.
    pub fn look_again_at_follower(&self, follower: &Arc<Follower>) {
        let refusal = self.refusal_of_follower(&follower.client, &follower.filter);
        if refusal.is_some_and(|error| self.followers.send_away(follower, error)) {
            follower.client.inbox.lock().slots_left = true;
            self.host.wake(&follower.client);
        }
    }

    /// Ends the subscriptions of a client to shard channels whose slots have left this node, and
    /// says so. The client's own worker calls this.
    pub fn leave_channels(&self, session: &mut Session, reply: &mut Reply<'_>) {
        let Some(view) = self.cluster.view() else { return };
        let Some(own) = &mut session.subscriptions else { return };
        let is_gone = |name: &&Vec<u8>| !view.has_slot(base::crc::key_slot(name));
        let gone: Vec<Vec<u8>> = own.shard_channels.iter().filter(is_gone).cloned().collect();
        for name in &gone {
            own.remove(Kind::Shard, name);
            self.pubsub.unsubscribe(Kind::Shard, name, &session.client);
            reply.push(3);
            reply.bulk(b"sunsubscribe");
            reply.bulk(name);
            reply.integer(own.shard_channels.len() as i64);
        }
        if !own.any() {
            session.subscriptions = None;
        }
        session.publish_state();
    }
}
