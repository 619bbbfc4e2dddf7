//! Pending commands of a connection: why they cannot run yet, and how they run in the end.
//!
//! The first pending command is the one for which the connection waits, if it has to run again; the
//! commands that came after it queue up behind it. No thread waits inside a gate: a command that
//! finds a slot locked leaves the gate, and is tried again when [`Parked`] says so.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::limits;
use engine::db::slot_access::SlotAccess;
use engine::engine::{Registry, Row};
use engine::session::awaited::Wait;
use engine::turn::request::Outcome;
use resp::args::OwnedArguments;
use store::Keyspace;
use store::gate::{Gate, Gates};

use super::parked::Parked;

/// How long commands of one connection may take together, before the last of them.
const TIME_PER_TURN: Duration = Duration::from_millis(limits::COMMANDS_MS_PER_TURN);

/// Between two attempts to stop the world.
const PAUSE_FOR_GATES: Duration = Duration::from_millis(4);

/// Why a connection's next command does not run now.
#[derive(Default)]
pub enum WaitsFor {
    /// Nothing: it can run.
    #[default]
    Nothing,
    /// It is blocked in a command until it is served.
    Blocked(Arc<Wait>),
    /// A slot was locked, or the command needs all slots: it is tried again.
    Contended(Box<Parked>),
    /// It has to run with the world stopped: it is not tried before this instant.
    NeedsStoppedWorld(Instant),
    /// CLIENT PAUSE or a slow disk, until this millisecond of the monotonic clock.
    Paused(u64),
}

/// A command that was parsed and is pending.
pub struct PendingCommand {
    /// Its row, if the command exists.
    pub row: Option<&'static Row>,
    /// Its words.
    pub argv: OwnedArguments,
}

impl PendingCommand {
    /// A command that no client has sent.
    pub fn new(commands: &Registry, argv: OwnedArguments) -> PendingCommand {
        PendingCommand { row: commands.resolve(argv.view()), argv }
    }
}

/// What came of running a command, in either protocol.
pub struct Executed {
    /// The engine's outcome.
    pub outcome: Outcome,
    /// The command that has to run next, if a request consists of several.
    pub next: Option<PendingCommand>,
    /// The position in the stream of all output from which its own part comes.
    pub from: u64,
    /// Whether it has replied, even if its client has to wait.
    pub replied: bool,
}

/// The outcome of a pending command.
pub struct Ran {
    /// The engine's outcome.
    pub outcome: Outcome,
    /// The command, if it must run again, or the one that follows from it.
    pub command: Option<PendingCommand>,
    /// The commands that run in its place.
    pub parts: Vec<OwnedArguments>,
    /// A slot that was locked, if that is why.
    pub slot: Option<u16>,
    /// Whether its connection stays, and the commands after it may run now.
    pub open: bool,
}

/// See the module's text.
#[derive(Default)]
pub struct PendingCommands {
    commands: VecDeque<PendingCommand>,
    /// Why the first command does not run now.
    pub waits_for: WaitsFor,
}

impl PendingCommands {
    /// Whether a new command may run at once.
    #[inline]
    pub fn runs(&self) -> bool {
        matches!(self.waits_for, WaitsFor::Nothing)
    }

    /// The wait for a sync, if that is why: its own worker ends it.
    #[inline]
    pub fn sync_wait(&self) -> Option<&Arc<Wait>> {
        match &self.waits_for {
            WaitsFor::Blocked(wait) if wait.awaits_sync() => Some(wait),
            _ => None,
        }
    }

    /// Whether no command waits to run.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Bytes that the commands take.
    pub fn memory(&self) -> usize {
        self.commands.iter().map(|command| command.argv.memory()).sum()
    }

    /// Bytes of their arguments.
    pub fn length(&self) -> usize {
        self.commands.iter().map(|command| command.argv.length()).sum()
    }

    /// Puts a command after the other pending ones.
    pub fn push(&mut self, command: PendingCommand) {
        self.commands.push_back(command);
    }

    /// Puts a command before those that wait.
    pub fn push_first(&mut self, command: PendingCommand) {
        self.commands.push_front(command);
    }

    /// Puts the parts of a command before those that wait.
    pub fn push_parts_first(&mut self, row: Option<&'static Row>, parts: Vec<OwnedArguments>) {
        for argv in parts.into_iter().rev() {
            self.push_first(PendingCommand { row, argv });
        }
    }

    /// Remembers why a command did not run to its end, and the command if it must run again.
    ///
    /// `slot` is the locked slot, if that is the reason.
    pub fn wait_for(
        &mut self,
        outcome: Outcome,
        command: Option<PendingCommand>,
        slot: Option<u16>,
        now: Instant,
    ) {
        if let Some(command) = command {
            self.commands.push_front(command);
        }
        self.waits_for = match outcome {
            Outcome::Done => WaitsFor::Nothing,
            Outcome::Blocked(wait) => WaitsFor::Blocked(wait),
            Outcome::Contended => WaitsFor::Contended(Box::new(Parked::new(slot, now))),
            Outcome::NeedsAllSlots => WaitsFor::Contended(Box::new(Parked::exclusive(now))),
            Outcome::NeedsStoppedWorld => WaitsFor::NeedsStoppedWorld(now),
            Outcome::Paused(until) => WaitsFor::Paused(until),
        };
    }

    /// When its waiting ends by itself, in milliseconds of the monotonic clock.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        match &self.waits_for {
            WaitsFor::Nothing | WaitsFor::Contended(_) | WaitsFor::NeedsStoppedWorld(_) => None,
            WaitsFor::Blocked(wait) => wait.deadline.into_iter().chain(wait.again_at).min(),
            WaitsFor::Paused(until) => Some(*until),
        }
    }

    /// When to try a command again that waits for slots, or for a stopped world.
    pub fn next_try(&self) -> Option<Instant> {
        match &self.waits_for {
            WaitsFor::Contended(parked) => Some(parked.next_try()),
            WaitsFor::NeedsStoppedWorld(next) => Some(*next),
            _ => None,
        }
    }

    /// Runs the command for which the connection waits, if it needs slots that were locked, closed
    /// gates, or just another attempt; then the commands after it.
    ///
    /// Must be called outside the gate, or where the thread may enter it again ([`Gate::within`]):
    /// then without stopping the world, because it cannot close its own. `run` runs a command and
    /// returns its outcome. While a script has run for long (`slow`), commands are also tried that
    /// would otherwise wait in vain: they are refused.
    pub fn run<X>(
        &mut self,
        space: &Keyspace<X>,
        gates: Option<&Gates>,
        (gate, slow): (&Gate, bool),
        now: impl Fn() -> Instant,
        mut run: impl FnMut(PendingCommand, SlotAccess<'_>) -> Ran,
    ) {
        let open = match &self.waits_for {
            WaitsFor::Nothing | WaitsFor::Blocked(_) => true,
            // Even before the time has come: UNPAUSE may have ended the pause.
            WaitsFor::Paused(_) => {
                self.waits_for = WaitsFor::Nothing;
                true
            }
            WaitsFor::Contended(_) => self.try_again(space, (gate, slow), &now, &mut run),
            WaitsFor::NeedsStoppedWorld(next) => {
                *next <= now() && self.try_alone(gates, gate, &now, &mut run)
            }
        };
        if open && self.runs() && !self.is_empty() {
            let inside = gate.enter();
            let slot_access = SlotAccess::Ordinary(inside.pinned());
            let begun = now();
            for _ in 0..limits::COMMANDS_PER_TURN {
                if !self.runs() || self.is_empty() || !self.run_first(slot_access, &now, &mut run) {
                    break;
                }
                if now().saturating_duration_since(begun) > TIME_PER_TURN {
                    break;
                }
            }
        }
    }

    /// Runs a command again that found a slot locked, or needs all of them, if that can succeed.
    /// Returns whether its connection stays.
    fn try_again<X>(
        &mut self,
        space: &Keyspace<X>,
        (gate, slow): (&Gate, bool),
        now: &impl Fn() -> Instant,
        run: &mut impl FnMut(PendingCommand, SlotAccess<'_>) -> Ran,
    ) -> bool {
        let WaitsFor::Contended(parked) = &mut self.waits_for else { return true };
        if !parked.may_try(space, now(), slow) {
            return true;
        }
        let WaitsFor::Contended(mut parked) = std::mem::take(&mut self.waits_for) else {
            return true;
        };
        let inside = gate.enter();
        let slot_access = SlotAccess::reserved(parked.reservation(), inside.pinned());
        let open = self.run_first(slot_access, now, run);
        if let WaitsFor::Contended(failed) = &mut self.waits_for {
            // It goes on waiting where it was, with its reservation.
            parked.note_failure(failed.slot(), now());
            *failed = parked;
        }
        open
    }

    /// Runs a command that needs the world stopped. When a thread stays inside its gate for long,
    /// the command is run without closing them: it may then be refused. Returns whether its
    /// connection stays.
    fn try_alone(
        &mut self,
        gates: Option<&Gates>,
        gate: &Gate,
        now: &impl Fn() -> Instant,
        run: &mut impl FnMut(PendingCommand, SlotAccess<'_>) -> Ran,
    ) -> bool {
        self.waits_for = WaitsFor::Nothing;
        if let Some(stopped) = gates.and_then(|gates| gates.try_stop_the_world(gate)) {
            return self.run_first(SlotAccess::Stopped(&stopped), now, run);
        }
        let inside = gate.enter();
        let open = self.run_first(SlotAccess::Ordinary(inside.pinned()), now, run);
        if let WaitsFor::NeedsStoppedWorld(next) = &mut self.waits_for {
            *next = now() + PAUSE_FOR_GATES;
        }
        open
    }

    /// Runs the first command. Whether its connection stays.
    fn run_first(
        &mut self,
        slot_access: SlotAccess<'_>,
        now: &impl Fn() -> Instant,
        run: &mut impl FnMut(PendingCommand, SlotAccess<'_>) -> Ran,
    ) -> bool {
        let first = self.commands.pop_front().expect("what waits is here");
        let row = first.row;
        let Ran { outcome, command, parts, slot, open } = run(first, slot_access);
        self.push_parts_first(row, parts);
        match outcome {
            Outcome::Done => command.into_iter().for_each(|next| self.push_first(next)),
            outcome => self.wait_for(outcome, command, slot, now()),
        }
        open
    }
}
