//! What clients lose when their users lose rights, or are deleted: at once, not at their next
//! command.
//!
//! | a client | when its user lost the right to that |
//! |---|---|
//! | of a user that is gone | is closed |
//! | that has subscribed to a channel, or to a pattern | is closed |
//! | that monitors others, or is a replica | is closed |
//! | that follows or waits for changes of keys, or watches nodes | is closed |
//! | that waits for a key | is refused when the key has something for it |
//! | with a transaction | is refused those commands by EXEC |

use std::sync::Arc;

use hashbrown::HashSet;

use crate::admission::may_follow;
use crate::command::{BLOCKING, FOLLOWS, RowId, Spec};
use crate::engine::Engine;
use crate::journal::filter::Filter;
use crate::nodes::kept::PREFIX;
use crate::session::awaited::Awaited;
use crate::session::client::{Client, flag};
use crate::session::pubsub::Kind;
use crate::users::{Account, Changed, Users};

impl Engine {
    /// Users have changed, while the world is stopped. Takes from clients what they have lost.
    /// Returns whether the client that has done it, `me`, must close after its reply.
    pub fn enforce_rights(&self, changed: &[Changed], me: Option<&Arc<Client>>) -> bool {
        let mut doomed: HashSet<u64> = HashSet::new();
        for Changed { before, after } in changed {
            let clients = self.clients_of(&before.name);
            match after {
                None => doomed.extend(clients.iter().map(|client| client.id)),
                Some(after) => self.find_doomed(&clients, (before, after), &mut doomed),
            }
        }
        let closes_me = me.is_some_and(|me| doomed.remove(&me.id));
        for client in doomed.iter().filter_map(|id| self.clients.get(*id)) {
            client.kill();
            self.host.wake(&client);
        }
        closes_me
    }

    fn clients_of(&self, name: &[u8]) -> Vec<Arc<Client>> {
        let mut clients = self.clients.all();
        clients.retain(|client| client.names.lock().user() == name);
        clients
    }

    fn find_doomed(
        &self,
        clients: &[Arc<Client>],
        (before, after): (&Account, &Account),
        doomed: &mut HashSet<u64>,
    ) {
        let own: HashSet<u64> = clients.iter().map(|client| client.id).collect();
        if own.is_empty() || after.is_unrestricted {
            return;
        }
        if !after.keeps_channels_of(before) {
            for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
                let hears = |name: &[u8]| after.hears(name, kind == Kind::Pattern);
                self.pubsub.each_subscriber(kind, |name, client| {
                    if own.contains(&client.id) && !hears(name) {
                        doomed.insert(client.id);
                    }
                });
            }
        }
        let row_of = |name: &str| self.commands.find(name.as_bytes()).map(|row| row.id);
        let (monitor, syncs) = (row_of("monitor"), ["psync", "sync"].map(row_of));
        let rows = || self.commands.rows().iter();
        let follows = rows().find(|row| row.command.has(FOLLOWS)).map(|row| row.id);
        let may_follow = |filter: &Filter| follows.is_some_and(|id| may_follow(after, id, filter));
        let waits_below = |own: &Spec| own.has(BLOCKING) && own.below.is_some();
        let watches = rows().find(|row| waits_below(&row.command.spec)).map(|row| row.id);
        for client in clients {
            let monitors = client.has_flag(flag::MONITOR);
            let waits = client.wait.lock().clone();
            let waits_in_vain = waits.is_some_and(|wait| match &wait.awaited {
                Awaited::Changes(filter) => !may_follow(filter),
                Awaited::Event(_) => {
                    !watches.is_some_and(|id| after.reads_keys_below(id, PREFIX, Some(0)))
                }
                _ => false,
            });
            let lacks = |id: Option<RowId>| id.is_none_or(|id| !after.may_call(id));
            let copies = client.has_flag(flag::REPLICA);
            if (monitors && lacks(monitor))
                || (copies && syncs.into_iter().all(lacks))
                || waits_in_vain
            {
                doomed.insert(client.id);
            }
        }
        self.followers.each(|follower| {
            if own.contains(&follower.client.id) && !may_follow(&follower.filter) {
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
