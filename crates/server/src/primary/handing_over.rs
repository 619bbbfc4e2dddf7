//! Going on with a FAILOVER: the thread that follows a primary looks how far the replica is that is
//! to lead, and says what that one has answered.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use engine::engine::Engine;
use engine::run::drive::Policy;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::{Call, Outcome, Request};
use resp::args::OwnedArguments;
use resp::output::Output;
use store::gate::Gate;

/// How often it looks.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The pause before a command is tried again that could not stop the world.
const PAUSE_OF_TRIES: Duration = Duration::from_micros(100);

/// Tries a command until the server stops.
struct Insistent<'t>(&'t AtomicBool);

impl Policy for Insistent<'_> {
    fn begin(&mut self, turn: &mut Turn, engine: &Engine) {
        turn.begin(engine);
    }

    fn wait(&mut self, _: &mut Turn, _: &Outcome) -> bool {
        std::thread::sleep(PAUSE_OF_TRIES);
        !self.0.load(Relaxed)
    }
}

/// See the module's text.
pub(super) struct HandingOver<'e> {
    engine: &'e Engine,
    gate: &'e Gate,
    stopping: &'e AtomicBool,
    turn: Turn,
    session: Session,
}

impl<'e> HandingOver<'e> {
    pub(super) fn new(engine: &'e Engine, gate: &'e Gate, stopping: &'e AtomicBool) -> Self {
        let (turn, session) = (Turn::new(engine, "failover"), Session::internal());
        HandingOver { engine, gate, stopping, turn, session }
    }

    /// Hands over if it is time.
    pub(super) fn look(&mut self) {
        self.say(b"next");
    }

    /// The other one has answered: it leads, or it does not want to.
    pub(super) fn note_answer(&mut self, leads: bool) {
        self.say(if leads { b"answered" } else { b"refused" });
    }

    /// The time is over that the user has given it, and the other one was not reached.
    pub(super) fn note_late(&mut self) {
        self.say(b"late");
    }

    fn say(&mut self, word: &[u8]) {
        let argv: OwnedArguments = [&b"handover"[..], word].iter().collect();
        let row = Some(commands::hand_over_row());
        let request = Request { argv: argv.view(), row, keys: &[], busy: None };
        let mut output = Output::new();
        let (turn, session) = (&mut self.turn, &mut self.session);
        let call = Call { turn, session, request, output: &mut output };
        self.engine.drive(call, self.gate, Insistent(self.stopping));
        self.turn.announce_appends(self.engine);
        process::memory::publish();
    }
}
