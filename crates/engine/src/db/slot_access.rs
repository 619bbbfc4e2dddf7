//! How a command reaches slots: the locks that it takes, or a stopped world.

use store::gate::{Pinned, StoppedWorld};
use store::reserve::Reservation;

/// How a command reaches slots.
#[derive(Clone, Copy)]
pub enum SlotAccess<'g> {
    /// It locks the slots that it names.
    Ordinary(Pinned<'g>),
    /// It may keep newcomers away from the slots that it needs: see [`store::reserve`].
    Reserved(&'g Reservation, Pinned<'g>),
    /// The world is stopped: it may use every slot.
    Stopped(&'g StoppedWorld<'g>),
}

impl<'g> SlotAccess<'g> {
    /// The access of a command inside a gate, with its reservation if it has one.
    #[inline]
    pub fn reserved(reservation: Option<&'g Reservation>, pinned: Pinned<'g>) -> SlotAccess<'g> {
        match reservation {
            Some(reservation) => SlotAccess::Reserved(reservation, pinned),
            None => SlotAccess::Ordinary(pinned),
        }
    }

    /// The proof that it may lock slots at all.
    #[inline]
    pub fn pinned(self) -> Pinned<'g> {
        match self {
            SlotAccess::Ordinary(pinned) | SlotAccess::Reserved(_, pinned) => pinned,
            SlotAccess::Stopped(stopped) => stopped.pinned(),
        }
    }

    /// The reservation that keeps other commands away, if it has one.
    pub fn reservation(self) -> Option<&'g Reservation> {
        match self {
            SlotAccess::Reserved(reservation, _) => Some(reservation),
            SlotAccess::Ordinary(_) | SlotAccess::Stopped(_) => None,
        }
    }
}
