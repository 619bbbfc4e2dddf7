//! Commands that found a slot locked: when each is tried again, and with what access to slots.
//!
//! No thread waits for a slot. The connection is parked with its command. The worker serves others,
//! and tries again after a pause that grows with the time that the command has failed. After
//! [`ESCALATION`] the command queues up for a reservation, which keeps newcomers away from its
//! slots: see [`store::reserve`].

use std::time::{Duration, Instant};

use store::Keyspace;
use store::reserve::Reservation;

/// How long a command is tried beside other commands before it keeps newcomers away.
const ESCALATION: Duration = Duration::from_millis(5);
/// The shortest pause between two tries: the owner of the slots may need this very processor to go
/// on.
const PAUSE_LEAST: Duration = Duration::from_micros(20);
/// The longest pause between two tries.
const PAUSE_MOST: Duration = Duration::from_millis(1);
/// A pause is this part of the time that has passed since the first try.
const PAUSE_SHARE: u32 = 8;

/// A command that waits for slots.
pub struct Parked {
    since: Instant,
    next_try: Instant,
    /// A slot that was locked at the last try.
    slot: Option<u16>,
    /// It needs all slots, and so a reservation from the start.
    is_exclusive: bool,
    reservation: Option<Reservation>,
}

impl Parked {
    /// A command that has failed just now.
    pub(super) fn new(slot: Option<u16>, now: Instant) -> Parked {
        let next_try = now + PAUSE_LEAST;
        Parked { since: now, next_try, slot, is_exclusive: false, reservation: None }
    }

    /// A command that needs all slots, and has not been tried yet.
    pub(super) fn exclusive(now: Instant) -> Parked {
        Parked { since: now, next_try: now, slot: None, is_exclusive: true, reservation: None }
    }

    /// When to try it again.
    pub(super) fn next_try(&self) -> Instant {
        self.next_try
    }

    /// Whether trying now can succeed. If not, the next try is put off. A try always makes sense
    /// when the owner of the slots is `slow`: then the command may be refused.
    pub(super) fn may_try<X>(&mut self, space: &Keyspace<X>, now: Instant, slow: bool) -> bool {
        if now < self.next_try {
            return false;
        }
        if self.reservation.is_none()
            && (self.is_exclusive || now.saturating_duration_since(self.since) >= ESCALATION)
        {
            self.reservation = Some(space.reserve());
        }
        let reservation = self.reservation();
        let busy = self.slot.filter(|&slot| space.is_busy(slot, reservation));
        if let (Some(slot), Some(reservation)) = (busy, reservation) {
            reservation.note_locked(slot);
        }
        let is_ready = busy.is_none() && (!self.is_exclusive || reservation.is_some());
        let may_try = slow || is_ready;
        if !may_try {
            self.put_off(now);
        }
        may_try
    }

    /// The reservation that keeps newcomers away from the slots, if it is this command's turn.
    pub(super) fn reservation(&self) -> Option<&Reservation> {
        self.reservation.as_ref().filter(|own| own.is_first())
    }

    /// A slot that was locked at the last try.
    pub(super) fn slot(&self) -> Option<u16> {
        self.slot
    }

    /// Notes that a try was in vain.
    pub(super) fn note_failure(&mut self, slot: Option<u16>, now: Instant) {
        self.slot = slot;
        self.put_off(now);
    }

    fn put_off(&mut self, now: Instant) {
        let share = now.saturating_duration_since(self.since) / PAUSE_SHARE;
        self.next_try = now + share.clamp(PAUSE_LEAST, PAUSE_MOST);
    }
}
