//! The authority with which a command uses slots.

use store::gate::{Closed, Presence};
use store::reserve::Reservation;

/// The authority with which a command runs.
#[derive(Clone, Copy)]
pub enum Authority<'g> {
    /// It locks the slots that it names.
    Ordinary(Presence<'g>),
    /// It may keep newcomers away from the slots that it needs: see [`store::reserve`].
    Program(&'g Reservation, Presence<'g>),
    /// All gates are closed: it may use every slot.
    Closed(&'g Closed<'g>),
}

impl<'g> Authority<'g> {
    /// That of a command inside a gate, with the reservation that it may use, if it has one.
    #[inline]
    pub fn reserved(reservation: Option<&'g Reservation>, presence: Presence<'g>) -> Authority<'g> {
        match reservation {
            Some(reservation) => Authority::Program(reservation, presence),
            None => Authority::Ordinary(presence),
        }
    }

    /// The proof that it may lock slots at all.
    #[inline]
    pub fn presence(self) -> Presence<'g> {
        match self {
            Authority::Ordinary(presence) | Authority::Program(_, presence) => presence,
            Authority::Closed(closed) => closed.presence(),
        }
    }

    /// The reservation that keeps other commands away, if it has one.
    pub fn reservation(self) -> Option<&'g Reservation> {
        match self {
            Authority::Program(reservation, _) => Some(reservation),
            Authority::Ordinary(_) | Authority::Closed(_) => None,
        }
    }
}
