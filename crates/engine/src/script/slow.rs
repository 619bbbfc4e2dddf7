//! Scripts that have run for longer than `busy-reply-threshold`: other clients get BUSY, and may
//! end them.
//!
//! SCRIPT KILL or FUNCTION KILL can end a script that has changed nothing. One atomic exchange
//! decides whether the script is ended or goes on to write, so never both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::command::error::CommandError;

/// Which command a script runs for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// EVAL and similar commands.
    Script,
    /// FCALL.
    Function,
}

const UNDECIDED: u8 = 0;
const WROTE: u8 = 1;
const KILLED: u8 = 2;

/// A script that has run for long.
pub struct SlowScript {
    /// Which command it runs for.
    pub kind: Kind,
    /// Its name.
    pub name: Vec<u8>,
    /// The command, word by word.
    pub command: Vec<Vec<u8>>,
    /// When it began, in microseconds of the monotonic clock.
    pub begun: u64,
    /// The slots that it holds; all when absent.
    slots: Mutex<Option<Vec<u16>>>,
    fate: AtomicU8,
}

/// What a command needs while a slow script runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need<'s> {
    /// These slots.
    Slots(&'s [u16]),
    /// All slots.
    AllSlots,
    /// A stopped world, or the thread's interpreter.
    Thread,
}

impl SlowScript {
    /// A script that has run for long by now.
    pub(crate) fn new(
        kind: Kind,
        (name, command): (Vec<u8>, Vec<Vec<u8>>),
        begun: u64,
        slots: Option<Vec<u16>>,
        wrote: bool,
    ) -> SlowScript {
        let fate = AtomicU8::new(if wrote { WROTE } else { UNDECIDED });
        SlowScript { kind, name, command, begun, slots: Mutex::new(slots), fate }
    }

    /// The slots that it holds now; all when absent.
    pub(crate) fn note_slots(&self, slots: Option<Vec<u16>>) {
        *self.slots.lock() = slots;
    }

    /// Whether a command with this need has to wait for it.
    fn keeps(&self, need: Need<'_>) -> bool {
        match (&*self.slots.lock(), need) {
            (_, Need::Thread) => true,
            (None, Need::AllSlots) => true,
            (None, Need::Slots(slots)) => !slots.is_empty(),
            (Some(locked), Need::AllSlots) => !locked.is_empty(),
            (Some(locked), Need::Slots(slots)) => slots.iter().any(|slot| locked.contains(slot)),
        }
    }

    fn decide(&self, fate: u8) -> bool {
        let decided = self.fate.compare_exchange(UNDECIDED, fate, Relaxed, Relaxed);
        decided.is_ok() || decided == Err(fate)
    }

    /// It is about to write. Whether it may.
    pub(crate) fn may_write(&self) -> bool {
        self.decide(WROTE)
    }

    /// Ends it unless it has written.
    pub fn kill(&self) {
        self.decide(KILLED);
    }

    /// Whether it has written.
    fn has_written(&self) -> bool {
        self.fate.load(Relaxed) == WROTE
    }

    /// Whether it is to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.fate.load(Relaxed) == KILLED
    }
}

/// All slow scripts.
#[derive(Default)]
pub struct SlowScripts {
    count: AtomicUsize,
    scripts: Mutex<Vec<Arc<SlowScript>>>,
    /// The server stops: all scripts end.
    stopping: AtomicBool,
}

impl SlowScripts {
    /// Whether there is one.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// The one that has run for longest.
    pub fn first(&self) -> Option<Arc<SlowScript>> {
        self.scripts.lock().first().cloned()
    }

    pub(crate) fn add(&self, script: Arc<SlowScript>) {
        let mut scripts = self.scripts.lock();
        scripts.push(script);
        self.count.store(scripts.len(), Relaxed);
    }

    pub(crate) fn remove(&self, script: &Arc<SlowScript>) {
        let mut scripts = self.scripts.lock();
        scripts.retain(|other| !Arc::ptr_eq(other, script));
        self.count.store(scripts.len(), Relaxed);
    }

    /// Ends all scripts, also those that have written: the server stops.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Lets scripts run again: the server does not stop after all.
    pub fn go_on(&self) {
        self.stopping.store(false, Relaxed);
    }

    /// Whether all scripts are to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// The refusal for a command that would have to wait for such a script.
    pub fn refusal(&self, need: Need<'_>) -> Option<CommandError> {
        if !self.any() {
            return None;
        }
        let scripts = self.scripts.lock();
        scripts.iter().find(|script| script.keeps(need)).map(|script| busy(script.kind))
    }

    /// SCRIPT KILL and FUNCTION KILL: ends the scripts of a kind that have written nothing.
    pub fn kill(&self, kind: Kind) -> Result<(), CommandError> {
        let scripts = self.scripts.lock();
        let Some(first) = scripts.first() else {
            return Err(CommandError::text("NOTBUSY No scripts in execution right now."));
        };
        let mut of_kind = scripts.iter().filter(|script| script.kind == kind).peekable();
        if of_kind.peek().is_none() {
            return Err(if first.has_written() { UNKILLABLE } else { busy(first.kind) });
        }
        let mut killed = 0;
        of_kind.for_each(|script| killed += usize::from(script.decide(KILLED)));
        if killed > 0 { Ok(()) } else { Err(UNKILLABLE) }
    }
}

const UNKILLABLE: CommandError = CommandError::text(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either \
     wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
);

fn busy(kind: Kind) -> CommandError {
    CommandError::text(match kind {
        Kind::Script => {
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        }
        Kind::Function => {
            "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(kind: Kind, slots: Option<Vec<u16>>, wrote: bool) -> Arc<SlowScript> {
        Arc::new(SlowScript::new(kind, (vec![], vec![]), 0, slots, wrote))
    }

    fn code(result: Result<(), CommandError>) -> String {
        result.map_or_else(|error| error.code().to_string(), |()| "OK".to_string())
    }

    #[test]
    fn a_script_is_killed_or_writes_and_never_both() {
        let all = SlowScripts::default();
        assert_eq!(code(all.kill(Kind::Script)), "NOTBUSY");
        let (one, two) = (slow(Kind::Script, None, false), slow(Kind::Script, None, false));
        all.add(Arc::clone(&one));
        assert_eq!(code(all.kill(Kind::Function)), "BUSY");
        assert!(one.may_write() && one.may_write());
        assert_eq!(code(all.kill(Kind::Script)), "UNKILLABLE");
        assert_eq!(code(all.kill(Kind::Function)), "UNKILLABLE", "as Redis has it");
        all.add(Arc::clone(&two));
        assert_eq!(code(all.kill(Kind::Script)), "OK");
        assert_eq!(code(all.kill(Kind::Script)), "OK", "once more");
        assert!(two.is_killed() && !two.may_write() && !one.is_killed());
        all.remove(&one);
        all.remove(&two);
        assert!(!all.any());
    }

    #[test]
    fn only_commands_that_need_its_slots_or_thread_get_busy() {
        let all = SlowScripts::default();
        let is_told = |need| all.refusal(need).is_some();
        assert!(!is_told(Need::Thread) && !is_told(Need::AllSlots));
        let one = slow(Kind::Script, Some(vec![]), true);
        all.add(Arc::clone(&one));
        assert!(is_told(Need::Thread) && !is_told(Need::AllSlots) && !is_told(Need::Slots(&[3])));
        one.note_slots(Some(vec![3, 9]));
        assert!(is_told(Need::Slots(&[1, 3])) && is_told(Need::AllSlots));
        assert!(!is_told(Need::Slots(&[4])) && !is_told(Need::Slots(&[])));
        all.add(slow(Kind::Function, None, true));
        assert!(!is_told(Need::Slots(&[])), "who needs nothing");
        let told = all.refusal(Need::Slots(&[4])).unwrap().to_string();
        assert!(told.contains("FUNCTION KILL"), "{told}");
    }
}
