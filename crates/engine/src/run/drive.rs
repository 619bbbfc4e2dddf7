//! Runs a command to its end on a thread that may wait: replay, threads with commands of their own, tests.
//!
//! The command is tried beside other commands first, with a reservation when it turns out to be a
//! program, and with all gates closed when it needs that. The thread's [`Policy`] says how it waits
//! between two tries, and when it gives up. A worker has other connections to serve, so it does not wait
//! here: it parks the connection, and tries the command again in a later turn.

use store::gate::{Access, Gate, Inside};
use store::reserve::Reservation;

use crate::engine::Engine;
use crate::run::authority::Authority;
use crate::run::request::{Call, Outcome};
use crate::run::turn::Turn;

/// How a thread tries a command.
pub trait Policy {
    /// Prepares the turn. Called before each try, inside the gate. A turn whose writes go to the journal
    /// must look at the journal here: see [`Turn::enter`].
    fn begin(&mut self, turn: &mut Turn, engine: &Engine) {
        turn.begin(engine);
    }

    /// Called outside the gate after each try that has touched nothing, with its outcome. Waits if need
    /// be, and returns whether to try again, with the authority that the outcome asks for.
    fn wait(&mut self, turn: &mut Turn, outcome: &Outcome) -> bool;
}

impl Engine {
    /// Runs a command to its end, or until the policy gives up. See the module's text.
    pub fn drive(&self, call: Call<'_>, gate: &Gate, policy: impl Policy) -> Outcome {
        self.drive_from(call, Access::Gate(gate), gate.enter(), policy).0
    }

    /// [`Engine::drive`] for a thread that is inside its gate, or takes part where all gates are closed.
    /// It is inside again at the end.
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
            let authority = match access {
                Access::Gate(_) => Authority::reserved(first, inside.presence()),
                Access::Closed(closed) => Authority::Closed(closed),
            };
            let outcome = self.attempt(&mut call, authority, &mut policy);
            if !outcome.runs_again() {
                return (outcome, inside);
            }
            // No thread waits inside its gate: the one that has the slot may want to close all gates next.
            drop(inside);
            if !policy.wait(call.turn, &outcome) {
                return (outcome, access.enter());
            }
            match outcome {
                Outcome::NeedsGates => {
                    let closed = self.gates.close();
                    let outcome = self.attempt(&mut call, Authority::Closed(&closed), &mut policy);
                    drop(closed);
                    return (outcome, access.enter());
                }
                Outcome::NeedsProgram => {
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
        authority: Authority<'_>,
        policy: &mut impl Policy,
    ) -> Outcome {
        policy.begin(call.turn, self);
        self.execute(call.turn, call.session, call.request, authority, call.output)
    }
}
