//! Runs a command to its end on a thread that may wait: replay, threads with commands of their own,
//! tests.
//!
//! The command is tried beside other commands first, with a reservation when it turns out to be an
//! exclusive command, and with the world stopped when it needs that. The thread's [`Policy`] says
//! how it waits between two tries, and when it gives up. A worker has other connections to serve,
//! so it does not wait here: it parks the connection, and tries the command again in a later turn.

use store::gate::{Access, Gate, Inside};
use store::reserve::Reservation;

use crate::db::slot_access::SlotAccess;
use crate::engine::Engine;
use crate::session::Session;
use crate::turn::Turn;
use crate::turn::request::{Call, Outcome};

/// How a thread tries a command.
pub trait Policy {
    /// Prepares the turn. Called before each try, inside the gate. A turn whose writes go to the
    /// journal must look at the journal here: see [`Turn::enter`].
    fn begin(&mut self, turn: &mut Turn, engine: &Engine) {
        turn.begin(engine);
    }

    /// Called after each try, before the thread leaves its gate or lets the world go on. The
    /// session is as the command has left it.
    fn note_try(
        &mut self,
        _turn: &mut Turn,
        _session: &Session,
        _outcome: &Outcome,
        _world_is_stopped: bool,
    ) {
    }

    /// Called outside the gate after each try that has touched nothing, with its outcome. Waits if
    /// need be, and returns whether to try again, with the access to slots that the outcome asks
    /// for.
    fn wait(&mut self, turn: &mut Turn, outcome: &Outcome) -> bool;
}

impl Engine {
    /// Runs a command to its end, or until the policy gives up. See the module's text.
    pub fn drive(&self, call: Call<'_>, gate: &Gate, policy: impl Policy) -> Outcome {
        self.drive_from(call, Access::Gate(gate), gate.enter(), policy).0
    }

    /// [`Engine::drive`] for a thread that is inside its gate, or takes part where the world is
    /// stopped. It is inside again at the end.
    pub fn drive_from<'g>(
        &self,
        mut call: Call<'_>,
        access: Access<'g>,
        mut inside: Inside<'g>,
        mut policy: impl Policy,
    ) -> (Outcome, Inside<'g>) {
        let mut reservation: Option<Reservation> = None;
        loop {
            let first = reservation.as_ref().filter(|own| own.is_first());
            let slot_access = match access {
                Access::Gate(_) => SlotAccess::reserved(first, inside.pinned()),
                Access::Stopped(stopped) => SlotAccess::Stopped(stopped),
            };
            let outcome = self.attempt(&mut call, slot_access, &mut policy);
            if !outcome.runs_again() {
                return (outcome, inside);
            }
            // No thread waits inside its gate: the one that has the slot may want to stop the world
            // next.
            drop(inside);
            if !policy.wait(call.turn, &outcome) {
                return (outcome, access.enter());
            }
            match outcome {
                Outcome::NeedsStoppedWorld => {
                    let stopped = self.gates.stop_the_world();
                    let outcome =
                        self.attempt(&mut call, SlotAccess::Stopped(&stopped), &mut policy);
                    drop(stopped);
                    return (outcome, access.enter());
                }
                Outcome::NeedsAllSlots => {
                    reservation.get_or_insert_with(|| self.keyspace.reserve());
                }
                _ => {}
            }
            inside = access.enter();
        }
    }

    fn attempt(
        &self,
        call: &mut Call<'_>,
        slot_access: SlotAccess<'_>,
        policy: &mut impl Policy,
    ) -> Outcome {
        policy.begin(call.turn, self);
        let outcome = self.execute(call.turn, call.session, call.request, slot_access, call.output);
        let stopped = matches!(slot_access, SlotAccess::Stopped(_));
        policy.note_try(call.turn, call.session, &outcome, stopped);
        outcome
    }
}
