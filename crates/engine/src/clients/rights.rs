//! What clients lose when their users lose rights, or are deleted: at once, not at their next
//! command.
//!
//! | a client | when its user lost the right to that |
//! |---|---|
//! | of a user that is gone | is closed |
//! | that has subscribed to a channel, or to a pattern | is closed |
//! | that monitors others, is a replica, or speaks for a node of the cluster | is closed |
//! | that brings slots, also when its user is off | is closed |
//! | that follows or waits for changes of keys, or watches nodes | is closed |
//! | that waits for a key | is refused when the key has something for it |
//! | with a transaction | is refused those commands by EXEC |

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::admission::may_follow;
use crate::command::{BLOCKING, FOLLOWS, RowId, Spec};
use crate::engine::Engine;
use crate::journal::filter::Filter;
use crate::nodes::kept::PREFIX;
use crate::session::awaited::Awaited;
use crate::session::client::{Client, flag};
use crate::session::pubsub::Kind;
use crate::session::replicas::Replica;
use crate::session::replicas::introduction::Introduction;
use crate::users::{Account, Changed, OF_NODES, Users};

impl Engine {
    /// Users have changed, while the world is stopped. Takes from clients what they have lost.
    /// Returns whether the client that has done it, `me`, must close after its reply.
    pub fn enforce_rights(&self, changed: &[Changed], me: Option<&Arc<Client>>) -> bool {
        // A role may be that of thousands of users, and each may have as many clients. So all
        // clients and all subscriptions are looked at once, not once for each user.
        let by_name: HashMap<&[u8], &Changed> =
            changed.iter().map(|own| (&*own.before.name, own)).collect();
        let mut doomed: HashSet<u64> = HashSet::new();
        let mut concerned: HashMap<u64, (Arc<Client>, &Changed, &Account)> = HashMap::new();
        let importers = self.slot_moves.importers();
        for client in self.clients.all() {
            let Some(change) = by_name.get(client.names.lock().user()) else { continue };
            match &change.after {
                None => {
                    doomed.insert(client.id);
                }
                Some(after)
                    if importers.contains(&client.id)
                        && !(after.is_on && self.is_of_nodes(after)) =>
                {
                    doomed.insert(client.id);
                }
                Some(after) if after.is_unrestricted => {}
                Some(after) => {
                    concerned.insert(client.id, (client, *change, after));
                }
            }
        }
        if !concerned.is_empty() {
            self.find_doomed(&concerned, &mut doomed);
        }
        let closes_me = me.is_some_and(|me| doomed.remove(&me.id));
        for client in doomed.iter().filter_map(|id| self.clients.get(*id)) {
            client.kill();
            self.host.wake(&client);
        }
        closes_me
    }

    /// Whether a user may speak for a node of the cluster.
    pub fn is_of_nodes(&self, account: &Account) -> bool {
        self.commands.find(OF_NODES.as_bytes()).is_some_and(|row| account.may_call(row.id))
    }

    /// Whether this server is what a replica takes it for. A node of a cluster wants the primary of
    /// an epoch, and the address may be another node's by now. Who has taken its key anew without
    /// a break has the journal of an earlier epoch.
    pub fn is_primary_of(&self, replica: &Introduction) -> bool {
        let Some((node, epoch)) = replica.primary else { return true };
        self.cluster.view().is_some_and(|view| view.own == node)
            && !self.replication.is_replica()
            && self.replicas.quorum.epoch() <= epoch
    }

    /// Whether a replica speaks for a node of the cluster without the right to that, or takes this
    /// server for another one: either may have come about before others could see the replica.
    pub fn is_wrong_here(&self, replica: &Replica) -> bool {
        let account = self.users.find(replica.client.names.lock().user());
        let may = account.is_some_and(|account| self.is_of_nodes(&account));
        let speaks_for_nobody = replica.introduction.node.is_some() && !may;
        speaks_for_nobody || !self.is_primary_of(&replica.introduction)
    }

    /// Adds clients that do what their users may do no more.
    fn find_doomed(
        &self,
        concerned: &HashMap<u64, (Arc<Client>, &Changed, &Account)>,
        doomed: &mut HashSet<u64>,
    ) {
        let mut losers: HashMap<&[u8], bool> = HashMap::new();
        let listening: HashMap<u64, &Account> = concerned
            .iter()
            .filter(|(_, (_, change, after))| {
                let loses = || !after.keeps_channels_of(&change.before);
                *losers.entry(&after.name).or_insert_with(loses)
            })
            .map(|(id, (_, _, after))| (*id, *after))
            .collect();
        if !listening.is_empty() {
            for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
                self.pubsub.each_subscriber(kind, |name, client| {
                    let after = listening.get(&client.id);
                    if after.is_some_and(|after| !after.hears(name, kind == Kind::Pattern)) {
                        doomed.insert(client.id);
                    }
                });
            }
        }
        let row_of = |name: &str| self.commands.find(name.as_bytes()).map(|row| row.id);
        let (monitor, syncs) = (row_of("monitor"), ["psync", "sync"].map(row_of));
        let rows = || self.commands.rows().iter();
        let follows = rows().find(|row| row.command.has(FOLLOWS)).map(|row| row.id);
        let may_follow = |after: &Account, filter: &Filter| {
            follows.is_some_and(|id| may_follow(after, id, filter))
        };
        let waits_below = |own: &Spec| own.has(BLOCKING) && own.below.is_some();
        let watches = rows().find(|row| waits_below(&row.command.spec)).map(|row| row.id);
        for (client, _, after) in concerned.values() {
            let monitors = client.has_flag(flag::MONITOR);
            let waits = client.wait.lock().clone();
            let waits_in_vain = waits.is_some_and(|wait| {
                let waits_below = matches!(wait.awaited, Awaited::Event(_));
                waits_below
                    && !watches.is_some_and(|id| after.reads_keys_below(id, PREFIX, Some(0)))
            });
            let lacks = |id: Option<RowId>| id.is_none_or(|id| !after.may_call(id));
            let copies = client.has_flag(flag::REPLICA);
            let speaks = client.has_flag(flag::SPEAKS_FOR_NODE);
            if (monitors && lacks(monitor))
                || (copies && syncs.into_iter().all(lacks))
                || (speaks && !self.is_of_nodes(after))
                || waits_in_vain
            {
                doomed.insert(client.id);
            }
        }
        // Those that wait for a change are among them.
        self.followers.each(|follower| {
            let own = concerned.get(&follower.client.id);
            if own.is_some_and(|(_, _, after)| !may_follow(after, &follower.filter)) {
                doomed.insert(follower.client.id);
            }
        });
    }

    /// Puts the users of a file with this text in place of all users. The caller is inside no gate.
    /// `me` is the client that waits for it, if one does: it gets its reply in any case.
    ///
    /// # Errors
    /// All that is wrong with the text, in one line. Nothing has changed then.
    pub fn load_users(&self, text: &[u8], me: Option<&Arc<Client>>) -> Result<(), Vec<u8>> {
        let _stopped = self.gates.stop_the_world();
        let changed = self.replace_users(text)?;
        let closes_me = self.enforce_rights(&changed, me);
        if let Some(me) = me.filter(|_| closes_me) {
            me.end_with_reply();
        }
        Ok(())
    }

    /// The same for a caller that has stopped the world, and takes from clients what they have
    /// lost.
    ///
    /// # Errors
    /// As [`Engine::load_users`].
    pub fn replace_users(&self, text: &[u8]) -> Result<Vec<Changed>, Vec<u8>> {
        let config = self.config.snapshot();
        self.users.load(&config.aclfile, text, Users::gives_all_channels(&config))
    }
}
