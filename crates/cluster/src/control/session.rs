//! This node at etcd: what it reads, its lease, and the keys that say that it is there.

use crate::control::event::Action;
use crate::control::state::{Control, Purpose};
use crate::keys::{AliveValue, MemberValue, Subject, encode};
use crate::store::{Operation, Request};

/// How long a watch may report nothing before all is read anew, in milliseconds. Each node adds
/// something for each node of the cluster, so that etcd is not asked for too much by many.
const SILENCE_MS: u64 = 30_000;

/// After which time a request counts as unanswered for ever, in milliseconds.
const FORGOTTEN_MS: u64 = 60_000;

/// How soon it is looked again whether the lease is there, in milliseconds.
const AGAIN_MS: u64 = 200;

/// How often it is looked whether the process before is gone, in milliseconds.
const PROBE_MS: u64 = 500;

impl Control {
    pub(super) fn step_session(&mut self) {
        let now = self.now;
        self.requests.retain(|_, (_, asked, _)| now < *asked + FORGOTTEN_MS);
        self.step_reading();
        self.step_lease();
        let is_ending = self.stop.is_some_and(|stop| stop.is_revoking);
        if self.mirror.is_loaded() && self.watch.is_some() && !is_ending && !self.is_displaced {
            self.step_name();
            if !self.is_name_taken() {
                self.step_member();
                self.step_alive();
            }
        }
    }

    fn step_reading(&mut self) {
        let patience = SILENCE_MS + 100 * self.mirror.members.len() as u64;
        let is_silent = self.now - self.heard > patience;
        let is_wanted = self.watch.is_none() || is_silent || self.must_read;
        if is_wanted && self.may_ask(&Purpose::Load) {
            let prefix = self.keys.prefix().to_owned();
            self.ask(Purpose::Load, Request::Read { prefix });
        }
    }

    /// Whether etcd answers, as far as this node knows.
    pub(super) fn hears_etcd(&self) -> bool {
        self.watch.is_some()
            && self.lease.is_some_and(|lease| self.now < lease.renewed + lease.ttl_ms / 2)
    }

    fn step_lease(&mut self) {
        // What another process has taken the name of, it leaves to end.
        if self.stop.is_some_and(|stop| stop.is_revoking) || self.is_displaced {
            return;
        }
        let now = self.now;
        let Some(lease) = &mut self.lease else {
            // Of an etcd that is not believed it wants nothing.
            if !self.disbelieves && self.may_ask(&Purpose::Grant) {
                let ttl_s = self.setup.node_timeout_ms.div_ceil(1000).max(1) as i64;
                self.ask(Purpose::Grant, Request::Grant { ttl_s });
            }
            return;
        };
        if now >= lease.next {
            lease.next = now + lease.ttl_ms / 3;
            let lease = lease.id;
            self.ask(Purpose::KeepAlive(lease), Request::KeepAlive { lease });
        }
    }

    /// Another process may have this node's name: one that was there before, which may be gone, or
    /// one that was started with a copy of this one's files.
    fn step_name(&mut self) {
        let me = self.me();
        let own = self.setup.incarnation;
        if !self.has_registered && !self.has_shown_alive {
            let member = self.mirror.members.get(&me);
            self.found_at = member.map(|entry| entry.value.address.clone());
        }
        let entry = self.mirror.alive.get(&me);
        let entry = entry.map(|entry| (entry.value.incarnation, entry.modified));
        let alive = entry.map(|(incarnation, _)| incarnation);
        match entry {
            Some((incarnation, modified)) if incarnation == own => {
                self.has_shown_alive = true;
                self.shown_alive_at = self.shown_alive_at.max(modified);
            }
            Some((_, modified)) if self.has_shown_alive && modified > self.shown_alive_at => {
                self.is_displaced = true;
                return self.warn(format!(
                    "Another process has taken this node's name {me}: this one serves no more, and \
                     should be ended"
                ));
            }
            // An old state of etcd was restored: one that had the name before this one.
            Some((incarnation, _)) if self.has_shown_alive => {
                self.gone_predecessor = Some(incarnation);
            }
            _ => {}
        }
        // Also when its key has ended: what others have promised it is void once it is gone.
        let shard = self.shard().filter(|shard| !self.mirror.leaders.contains_key(shard));
        let last = shard.and_then(|shard| self.mirror.epochs.get(&shard)).map(|it| it.value);
        let last = last.filter(|last| last.node == me).map(|last| last.incarnation);
        let Some(before) = alive.or(last).filter(|it| *it != own) else { return };
        if self.gone_predecessor == Some(before) || self.now < self.next_probe {
            return;
        }
        if alive == Some(before) && self.next_probe == 0 {
            self.log(format!("Another process has had this node's name {me}: is it gone?"));
        }
        self.next_probe = self.now + PROBE_MS;
        if let Some(address) = self.found_at.clone() {
            self.act(Action::Probe { incarnation: before, address });
        }
    }

    /// The node writes its own record, but not its shard: that is the operator's choice.
    fn step_member(&mut self) {
        let me = self.me();
        let entry = self.mirror.members.get(&me);
        let value = MemberValue {
            shard: entry.map_or(self.home, |entry| entry.value.shard),
            address: self.setup.announced.address.clone(),
            zone: self.setup.announced.zone.clone(),
            name: self.setup.announced.name.clone(),
        };
        let modified = entry.map_or(0, |entry| entry.modified);
        match entry {
            Some(entry) if entry.value == value => self.has_registered = true,
            // An operator has taken it out of the cluster, until it starts again. A primary cannot
            // be taken out before it has let go: without its record its replicas would not find
            // it.
            None if self.has_registered && self.leading().is_none() => {}
            _ => {
                let subject = Subject::Member(me);
                let compares = vec![self.is_unchanged(&subject, modified)];
                let put =
                    Operation::Put { key: self.key(&subject), value: encode(&value), lease: 0 };
                self.transact(Purpose::Register, compares, vec![put]);
            }
        }
    }

    fn step_alive(&mut self) {
        let me = self.me();
        let Some(lease) = self.lease else { return };
        let value = AliveValue {
            incarnation: self.setup.incarnation,
            replaces: self.gone_predecessor.unwrap_or_default(),
            version: self.setup.version.clone(),
        };
        let entry = self.mirror.alive.get(&me);
        if entry.is_none() && self.has_shown_alive && self.may_ask(&Purpose::KeepAlive(lease.id)) {
            // It has ended with its lease, if nobody has deleted it.
            self.ask(Purpose::KeepAlive(lease.id), Request::KeepAlive { lease: lease.id });
            self.put_off(Purpose::KeepAlive(lease.id), AGAIN_MS);
        }
        let entry = self.mirror.alive.get(&me);
        if entry.is_some_and(|entry| entry.value == value && entry.lease == lease.id) {
            return;
        }
        let subject = Subject::Alive(me);
        let compares = vec![self.is_unchanged(&subject, entry.map_or(0, |entry| entry.modified))];
        let put =
            Operation::Put { key: self.key(&subject), value: encode(&value), lease: lease.id };
        self.transact(Purpose::ShowAlive, compares, vec![put]);
    }
}
