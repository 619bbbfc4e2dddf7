//! FAILOVER: a primary hands over to one of its replicas, without losing a write.
//!
//! Writes are suspended first, so that the stream stands still and a replica comes to its end. Then
//! the primary becomes the replica of that one, and its link asks with the word FAILOVER: the
//! replica becomes the primary when it reads that. Writes that come from then on are refused,
//! because this is a replica. Those that were suspended wait until the other one has answered, and
//! are refused then, or go on if it does not want to lead.
//!
//! The command begins and ends it here. A thread of the host looks how far the replica is, and
//! makes the link.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use config::PrimaryAddress;
use parking_lot::Mutex;

use crate::session::replicas::{Replica, Replicas};

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// A replica is to come to the end of the stream.
    WaitsForReplica,
    /// This is a replica already, and asks the other one to lead.
    Asks {
        /// The request was sent, so that the other one may lead.
        is_sent: bool,
    },
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The replica that takes over; any if none is named.
    pub target: Option<PrimaryAddress>,
    /// When the waiting ends, in milliseconds of the monotonic clock.
    pub until: Option<u64>,
    /// The target takes over then all the same.
    pub forced: bool,
}

struct State {
    plan: Plan,
    phase: Phase,
    /// The end of the stream when writes stood still, behind what has asked replicas how far they
    /// are: who has come to it lives, and this server can go on in its stream.
    end: Option<u64>,
}

/// What is to be done next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing yet.
    Wait,
    /// The replicas are to say how far they are. The command that has suspended writes is over: the
    /// same transaction may have written, and then its effects came after it.
    Ask,
    /// This one takes over: it has everything, or the time is over.
    HandOver(PrimaryAddress),
    /// The time is over.
    GiveUp,
}

/// See the module's text.
#[derive(Default)]
pub struct Failover {
    on: AtomicBool,
    state: Mutex<Option<State>>,
}

impl Failover {
    /// Whether one is under way.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Whether the other one is asked to lead.
    pub fn asks(&self) -> bool {
        self.is_on()
            && self.state.lock().as_ref().is_some_and(|own| matches!(own.phase, Phase::Asks { .. }))
    }

    /// How far it is, as INFO shows it.
    pub fn name(&self) -> &'static str {
        match self.state.lock().as_ref().map(|own| own.phase) {
            None => "no-failover",
            Some(Phase::WaitsForReplica) => "waiting-for-sync",
            Some(Phase::Asks { .. }) => "failover-in-progress",
        }
    }

    /// Begins one: writes are suspended from the next command on.
    pub(crate) fn begin(&self, plan: Plan) {
        self.set(Some(State { plan, phase: Phase::WaitsForReplica, end: None }));
    }

    /// The replicas were asked, and nothing follows in the stream, which ends here.
    pub fn note_asked(&self, end: u64) {
        if let Some(state) = &mut *self.state.lock() {
            state.end = Some(end);
        }
    }

    /// Whether the time is over within which the other one should have been asked. If its takeover
    /// is forced, there is none.
    pub fn is_late(&self, monotonic: u64) -> bool {
        let is_late = |own: &State| {
            let is_over = own.plan.until.is_some_and(|until| monotonic >= until);
            own.phase == Phase::Asks { is_sent: false } && !own.plan.forced && is_over
        };
        self.is_on() && self.state.lock().as_ref().is_some_and(is_late)
    }

    /// The other one is asked from now on.
    pub(crate) fn begin_to_ask(&self) {
        if let Some(state) = &mut *self.state.lock() {
            state.phase = Phase::Asks { is_sent: false };
        }
    }

    /// The request is about to be sent to the other one. Returns whether it may be: it may not when
    /// the failover was given up just now.
    #[must_use]
    pub fn note_sent(&self) -> bool {
        match &mut *self.state.lock() {
            Some(State { phase: Phase::Asks { is_sent }, .. }) => {
                *is_sent = true;
                true
            }
            _ => false,
        }
    }

    /// Whether the time is over after which the other one takes over even if it lacks something.
    pub fn is_forced(&self, monotonic: u64) -> bool {
        let is_over = |own: &State| own.plan.until.is_some_and(|until| monotonic >= until);
        self.state.lock().as_ref().is_some_and(|own| own.plan.forced && is_over(own))
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.set(None);
    }

    fn set(&self, state: Option<State>) {
        let mut own = self.state.lock();
        self.on.store(state.is_some(), Relaxed);
        *own = state;
    }

    /// What is to be done next while a replica is to come to the end of the stream, at this
    /// millisecond of the monotonic clock. No command is running.
    pub fn next(&self, replicas: &Replicas, monotonic: u64) -> Next {
        let (plan, end) = match &*self.state.lock() {
            Some(own) if own.phase == Phase::WaitsForReplica => match own.end {
                Some(end) => (own.plan.clone(), end),
                None => return Next::Ask,
            },
            _ => return Next::Wait,
        };
        if plan.until.is_some_and(|until| monotonic >= until) {
            return match plan.target {
                Some(target) if plan.forced => Next::HandOver(target),
                _ => Next::GiveUp,
            };
        }
        let ready = replicas.all().into_iter().find_map(|own| {
            let address = address_of(&own)?;
            let is_meant = plan.target.as_ref().is_none_or(|target| *target == address);
            (is_meant && own.is_online() && own.acknowledged() >= end).then_some(address)
        });
        ready.map_or(Next::Wait, Next::HandOver)
    }
}

/// Where others reach a replica, if it has said where it listens.
pub fn address_of(replica: &Replica) -> Option<PrimaryAddress> {
    let port = u16::try_from(replica.introduction.listening_port).ok().filter(|port| *port != 0)?;
    Some(PrimaryAddress { host: replica.address().into_bytes(), port })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::session::client::Client;
    use crate::session::replicas::Standing;
    use crate::session::replicas::introduction::Introduction;

    fn replica(port: u16) -> Arc<Replica> {
        let client = Client::new(1, 0, "127.0.0.1:5".to_owned(), String::new(), 0, 0);
        let own = Introduction { listening_port: port.into(), ..Introduction::default() };
        Arc::new(Replica::new(Arc::new(client), own, false, 0))
    }

    fn address(port: u16) -> PrimaryAddress {
        PrimaryAddress { host: b"127.0.0.1".to_vec(), port }
    }

    #[test]
    fn who_does_not_say_where_it_listens_has_no_address() {
        assert_eq!(address_of(&replica(0)), None);
        assert_eq!(address_of(&replica(7)), Some(address(7)));
    }

    #[test]
    fn the_one_that_has_everything_takes_over() {
        let (replicas, failover) = (Replicas::default(), Failover::default());
        let (one, other) = (replica(1), replica(2));
        replicas.add(&one);
        replicas.add(&other);
        assert_eq!(failover.next(&replicas, 0), Next::Wait, "none is under way");
        for (target, until, forced) in
            [(None, None, false), (Some(1), Some(5), false), (Some(2), Some(5), true)]
        {
            let plan = Plan { target: target.map(address), until, forced };
            failover.begin(plan);
            assert_eq!(failover.name(), "waiting-for-sync");
            assert_eq!(failover.next(&replicas, 0), Next::Ask);
            failover.note_asked(10);
            let late = failover.next(&replicas, 5);
            let expected = match (until, forced) {
                (None, _) => Next::Wait,
                (Some(_), false) => Next::GiveUp,
                (Some(_), true) => Next::HandOver(address(2)),
            };
            assert_eq!(late, expected);
        }
        failover.begin(Plan { target: None, until: None, forced: false });
        other.acknowledge(9, None, 0);
        assert_eq!(failover.next(&replicas, 0), Next::Ask, "the end is that of now");
        other.stand(Standing::Online);
        failover.note_asked(10);
        assert_eq!(failover.next(&replicas, 0), Next::Wait, "it lacks a byte");
        other.acknowledge(10, None, 0);
        other.stand(Standing::GetsCopy);
        assert_eq!(failover.next(&replicas, 0), Next::Wait, "it is not online");
        other.stand(Standing::Online);
        assert_eq!(failover.next(&replicas, 0), Next::HandOver(address(2)));
        failover.begin_to_ask();
        assert!(failover.asks() && failover.next(&replicas, 0) == Next::Wait);
        failover.end();
        assert_eq!((failover.name(), failover.is_on()), ("no-failover", false));
    }

    #[test]
    fn a_request_is_late_when_the_time_is_over_that_the_user_gave() {
        let failover = Failover::default();
        for (until, forced, late) in
            [(None, false, false), (Some(5), true, false), (Some(5), false, true)]
        {
            failover.begin(Plan { target: None, until, forced });
            assert!(!failover.is_late(5), "nobody was asked");
            failover.begin_to_ask();
            assert!(!failover.is_late(4));
            assert_eq!(failover.is_late(5), late, "{until:?} {forced}");
            assert!(!failover.is_forced(4));
            assert_eq!(failover.is_forced(5), forced);
            assert!(failover.note_sent());
            assert!(!failover.is_late(5), "it may lead");
        }
        failover.end();
        assert!(!failover.note_sent(), "nothing is sent any more");
        assert!(!failover.is_late(5));
    }
}
