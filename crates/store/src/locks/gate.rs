//! Gates: how one thread stops the world, so that all others stand still between two commands.
//!
//! Every thread that uses the keyspace has a gate of its own and holds it while it runs a batch of
//! commands. Entering costs one uncontended lock. A thread stops the world by locking the gates of
//! all others in turn: from then until it unlocks them, no other thread is inside a command.
//!
//! A thread that has stopped the world uses slots without locking them. So the lock of a slot
//! protects only against threads that lock it too: a thread that locks a slot must be inside its
//! gate, or work in a stopped world. [`Pinned`] is the proof of that. The keyspace asks for it, and
//! the locks that it gives out do not outlive the proof.
//!
//! Order of locks: gates, then slots.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::time::Duration;

use crate::locks::sync::{AtomicBool, Mutex, MutexGuard, thread};

/// A gate alone on its cache lines, so that workers do not disturb each other; and how often its
/// thread has said that it is as good as outside: see [`Gate::note_quiet`].
#[repr(align(128))]
#[derive(Default)]
struct Padded(Mutex<()>, AtomicUsize);

/// The gates that there are.
type List = Mutex<Vec<Arc<Padded>>>;

/// How long the first attempt to stop the world waits for each thread that is inside its own. A
/// batch of commands usually takes less.
const PATIENCE_MIN: Duration = Duration::from_micros(500);
/// How long further attempts wait. Only a script, or a transaction that works for long, takes
/// longer.
const PATIENCE_MAX: Duration = Duration::from_millis(4);
/// Between two attempts. Others run meanwhile.
const PAUSE: Duration = Duration::from_millis(4);
/// How often [`Gates::pass`] looks at all threads, and how long it waits each time for one of them.
const LOOKS_OF_PASS: usize = 10;
const PATIENCE_PASS: Duration = Duration::from_millis(5);

/// All gates.
#[derive(Default)]
pub struct Gates {
    gates: Arc<List>,
    /// The gate whose thread stayed inside for too long at the last attempt to stop the world, by
    /// its address; 0 for none.
    stubborn: AtomicUsize,
}

/// One thread's gate. It is among all gates for as long as it can be entered: dropping it takes it
/// out, which waits while they are closed.
pub struct Gate {
    own: Arc<Padded>,
    all: Arc<List>,
    /// A number of the thread that is inside and may enter again; 0 for none.
    again: AtomicUsize,
    /// How often it has entered again.
    entered_again: AtomicUsize,
}

/// A thread inside its gate.
pub struct Inside<'g>(#[expect(dead_code, reason = "held, not read")] How<'g>);

#[expect(dead_code, reason = "held, not read")]
enum How<'g> {
    First(MutexGuard<'g, ()>),
    Again(EnteredAgain<'g>),
    /// By way of [`Access::Stopped`].
    Stopped,
}

/// Counts how often a thread has entered its gate again.
struct EnteredAgain<'g>(&'g AtomicUsize);

/// The proof that no other thread stops the world: for `'g`, the bearer is inside a gate, or the
/// world is stopped and the thread that stopped it lets the bearer take part.
#[derive(Clone, Copy)]
pub struct Pinned<'g>(PhantomData<&'g ()>);

const _: () = assert!(size_of::<Pinned<'_>>() == 0, "a proof costs nothing");

/// How a thread gets at the data.
#[derive(Clone, Copy)]
pub enum Access<'g> {
    /// Beside other threads, through a gate of its own.
    Gate(&'g Gate),
    /// In a stopped world, with the permission of the thread that has stopped it.
    Stopped(&'g StoppedWorld<'g>),
}

/// The world is stopped, all gates are locked: no command runs anywhere. Until
/// [`StoppedWorld::resume_others`].
pub struct StoppedWorld<'g> {
    /// The gate of the thread that has closed them, if it has one.
    own: Option<Arc<Padded>>,
    /// The gates that are closed.
    gates: Mutex<Vec<Arc<Padded>>>,
    /// All gates. Their list is locked, so that none comes or goes.
    all: &'g Gates,
    /// Others have been let in.
    open: AtomicBool,
}

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number that no other running thread has.
fn this_thread() -> usize {
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl Gates {
    /// No gates yet.
    pub fn new() -> Gates {
        Gates::default()
    }

    /// Makes a gate for a thread that is going to touch the keyspace.
    pub fn register(&self) -> Gate {
        let gate = Gate {
            own: Arc::default(),
            all: Arc::clone(&self.gates),
            again: AtomicUsize::new(0),
            entered_again: AtomicUsize::new(0),
        };
        self.gates.lock().push(Arc::clone(&gate.own));
        gate
    }

    /// Closes all gates. The caller is outside its own. When a thread stays inside for long, the
    /// others go on meanwhile.
    pub fn stop_the_world(&self) -> StoppedWorld<'_> {
        self.close_meanwhile(|| ())
    }

    /// Likewise, but gives up when a thread has stayed inside for so long.
    pub fn stop_the_world_within(&self, limit: Duration) -> Option<StoppedWorld<'_>> {
        let (mut waited, mut patience) = (Duration::ZERO, PATIENCE_MIN);
        loop {
            let stopped = self.try_stop_within(patience, None);
            if stopped.is_some() || waited > limit {
                return stopped;
            }
            waited += patience + PAUSE;
            patience = PATIENCE_MAX.min(patience * 2);
            thread::sleep(PAUSE);
        }
    }

    /// [`Gates::close`], which does something between two attempts.
    pub fn close_meanwhile(&self, mut between: impl FnMut()) -> StoppedWorld<'_> {
        let mut patience = PATIENCE_MIN;
        loop {
            if let Some(stopped) = self.try_stop_within(patience, None) {
                return stopped;
            }
            patience = PATIENCE_MAX.min(patience * 2);
            between();
            thread::sleep(PAUSE);
        }
    }

    /// Closes all gates, unless a thread stays inside its own gate for long. The caller is outside
    /// its own gate, which is `own`.
    pub fn try_stop_the_world(&self, own: &Gate) -> Option<StoppedWorld<'_>> {
        self.try_stop_within(PATIENCE_MAX, Some(Arc::clone(&own.own)))
    }

    /// Waits at most this long for each thread that is inside. Threads that want to enter wait
    /// meanwhile.
    fn try_stop_within(
        &self,
        patience: Duration,
        own: Option<Arc<Padded>>,
    ) -> Option<StoppedWorld<'_>> {
        let gates = self.gates.lock();
        let own = own.filter(|own| gates.iter().any(|gate| Arc::ptr_eq(gate, own)));
        let list = gates.clone();
        if !self.lock_each(list.iter().collect(), patience) {
            return None;
        }
        std::mem::forget(gates);
        Some(StoppedWorld { own, gates: Mutex::new(list), all: self, open: AtomicBool::new(false) })
    }

    /// Locks these gates, or none of them when a thread stays inside its own for long.
    /// [`StoppedWorld`] releases them.
    fn lock_each(&self, gates: Vec<&Arc<Padded>>, patience: Duration) -> bool {
        // The thread that stayed inside for long comes first: the others are not kept out while it
        // is waited for.
        let address = |gate: &Arc<Padded>| Arc::as_ptr(gate).addr();
        let stubborn = self.stubborn.swap(0, Relaxed);
        let (first, others): (Vec<_>, Vec<_>) =
            gates.into_iter().partition(|gate| address(gate) == stubborn);
        let mut locked = Vec::with_capacity(first.len() + others.len());
        for gate in first.into_iter().chain(others) {
            let Some(guard) = gate.0.try_lock_for(patience) else {
                self.stubborn.store(address(gate), Relaxed);
                return false;
            };
            locked.push(guard);
        }
        locked.into_iter().for_each(std::mem::forget);
        true
    }

    /// Whether every thread has been outside its gate at least once, or quiet inside it: waits for
    /// that, but not long. A thread for which it waits in vain keeps it from no other.
    pub fn pass(&self) -> bool {
        let gates = self.gates.lock().clone();
        // Both sides write, and so learn from each other: a thread that was quiet after this sees
        // what was done before it, and what the thread had looked at until then, it has looked at.
        let quiet = |gate: &Arc<Padded>| gate.1.fetch_add(0, AcqRel);
        let mut left: Vec<(&Arc<Padded>, usize)> =
            gates.iter().map(|gate| (gate, quiet(gate))).collect();
        for look in 0..LOOKS_OF_PASS {
            let (mut at, waited_for) = (0, look % left.len().max(1));
            left.retain(|(gate, before)| {
                let patience = if at == waited_for { PATIENCE_PASS } else { Duration::ZERO };
                at += 1;
                gate.0.try_lock_for(patience).is_none() && quiet(gate) == *before
            });
            if left.is_empty() {
                return true;
            }
        }
        false
    }
}

impl Gate {
    /// Enters, waiting while the gate is closed.
    #[inline]
    pub fn enter(&self) -> Inside<'_> {
        let again = self.again.load(Relaxed);
        if again != 0 && again == this_thread() {
            self.entered_again.fetch_add(1, Relaxed);
            return Inside(How::Again(EnteredAgain(&self.entered_again)));
        }
        Inside(How::First(self.own.0.lock()))
    }

    /// Lets this thread, which by this proof is inside, enter as if it were not: for as long as
    /// `action` runs.
    pub fn within<T>(&self, _inside: Pinned<'_>, action: impl FnOnce() -> T) -> T {
        struct End<'g>(&'g Gate, usize);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.again.store(self.1, Relaxed);
                if self.1 == 0 && self.0.entered_again.load(Relaxed) != 0 {
                    // Some code still keeps a proof that should have ended with this one.
                    std::process::abort();
                }
            }
        }
        // The proof lasts as long as this function runs, and nothing takes more from it: an entry
        // through it is over when it ends. Other threads enter as before.
        let end = End(self, self.again.load(Relaxed));
        self.again.store(this_thread(), Relaxed);
        let result = action();
        drop(end);
        result
    }

    /// Says that the thread, which by this proof is inside, looks at nothing that it has found
    /// without a lock: it might as well leave and enter again. A script that runs for long does so
    /// now and then.
    pub fn note_quiet(&self, _inside: Pinned<'_>) {
        self.own.1.fetch_add(1, AcqRel);
    }

    /// Whether a thread is inside, or another has closed it.
    #[cfg(test)]
    pub(crate) fn is_entered(&self) -> bool {
        self.own.0.is_locked()
    }
}

impl Drop for EnteredAgain<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.all.lock().retain(|other| !Arc::ptr_eq(other, &self.own));
    }
}

impl Inside<'_> {
    /// The proof, for as long as the thread stays inside.
    #[inline]
    pub fn pinned(&self) -> Pinned<'_> {
        Pinned(PhantomData)
    }
}

impl StoppedWorld<'_> {
    /// The proof, for as long as the gates stay closed.
    #[inline]
    pub fn pinned(&self) -> Pinned<'_> {
        Pinned(PhantomData)
    }

    /// Must be called by code that relies on no other thread being inside.
    ///
    /// # Panics
    /// If other threads have been let in.
    pub(crate) fn check(&self) {
        assert!(!self.open.load(Relaxed), "the gates were opened for others");
    }

    /// Opens all gates except that of the closer, which is inside its own from now on, beside
    /// others. Returns whether it has one.
    pub(crate) fn resume_others(&self) -> bool {
        let Some(own) = &self.own else { return false };
        if !self.open.swap(true, Relaxed) {
            self.release(|gate| !Arc::ptr_eq(gate, own));
            self.release_list();
        }
        true
    }

    /// Closes the gates again that [`StoppedWorld::resume_others`] has opened, unless a thread
    /// stays inside its own for long. Returns whether they are closed.
    pub(crate) fn stop_others(&self) -> bool {
        let Some(own) = self.own.as_ref().filter(|_| self.open.load(Relaxed)) else { return true };
        // Some may have come or gone meanwhile.
        let list = self.all.gates.lock();
        let others = list.iter().filter(|gate| !Arc::ptr_eq(gate, own)).collect();
        if !self.all.lock_each(others, PATIENCE_MAX) {
            return false;
        }
        self.gates.lock().clone_from(&list);
        std::mem::forget(list);
        self.open.store(false, Relaxed);
        true
    }

    #[expect(unsafe_code, reason = "releases the locks that closing forgot")]
    fn release(&self, which: impl Fn(&Arc<Padded>) -> bool) {
        for gate in self.gates.lock().iter().filter(|gate| which(gate)) {
            // SAFETY: `lock_each` locked each of these gates and forgot the guard. This runs once
            // for each such time: what `resume_others` leaves is released at the end, and what it
            // opens is locked again by `stop_others` alone, which says so in `open`.
            unsafe { gate.0.force_unlock() };
        }
    }

    #[expect(unsafe_code, reason = "releases the lock that closing forgot")]
    fn release_list(&self) {
        // SAFETY: as above; `resume_others` calls this once for each time that it opens gates.
        unsafe { self.all.gates.force_unlock() };
    }
}

impl<'g> Access<'g> {
    /// Enters, waiting while the thread's gate is closed by others.
    pub fn enter(self) -> Inside<'g> {
        match self {
            Access::Gate(gate) => gate.enter(),
            Access::Stopped(_) => Inside(How::Stopped),
        }
    }
}

impl Drop for StoppedWorld<'_> {
    fn drop(&mut self) {
        match &self.own {
            Some(own) if self.open.load(Relaxed) => self.release(|gate| Arc::ptr_eq(gate, own)),
            _ => {
                self.release(|_| true);
                self.release_list();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_enters_again_and_others_wait_all_the_same() {
        let gates = Gates::new();
        let (gate, other) = (gates.register(), gates.register());
        let first = gate.enter();
        std::thread::scope(|scope| {
            let entering = gate.within(first.pinned(), || {
                drop(gate.enter());
                let _again = gate.enter();
                assert!(gates.try_stop_the_world(&other).is_none(), "somebody is inside");
                let entering = scope.spawn(|| drop(gate.enter()));
                std::thread::sleep(Duration::from_millis(20));
                assert!(!entering.is_finished(), "another thread is not let in");
                entering
            });
            drop(first);
            entering.join().unwrap();
        });
        assert!(gates.try_stop_the_world(&other).is_some());
    }

    #[test]
    fn a_thread_that_is_quiet_inside_is_passed() {
        let gates = Gates::new();
        let gate = gates.register();
        let inside = gate.enter();
        gate.note_quiet(inside.pinned());
        assert!(!gates.pass(), "it was quiet before");
        std::thread::scope(|scope| {
            let passing = scope.spawn(|| gates.pass());
            while !passing.is_finished() {
                gate.note_quiet(inside.pinned());
                std::thread::yield_now();
            }
            assert!(passing.join().unwrap());
        });
    }

    #[test]
    fn a_thread_that_stays_inside_does_not_keep_others_out() {
        let gates = Gates::new();
        let (one, other, own) = (gates.register(), gates.register(), gates.register());
        let inside = other.enter();
        assert!(gates.try_stop_the_world(&own).is_none());
        let kept_out = std::thread::scope(|scope| {
            let closing = scope.spawn(|| {
                (0..20).for_each(|_| {
                    assert!(gates.try_stop_the_world(&own).is_none(), "it is inside")
                });
            });
            let mut kept_out = 0;
            while !closing.is_finished() {
                kept_out += usize::from(one.is_entered());
                std::thread::yield_now();
            }
            kept_out
        });
        assert_eq!(kept_out, 0, "nobody has closed its gate");
        drop(inside);
        assert!(gates.try_stop_the_world(&own).is_some());
    }

    #[test]
    fn a_thread_that_has_stopped_the_world_may_stay_inside_its_gate_alone() {
        let gates = Gates::new();
        let (gate, other) = (gates.register(), gates.register());
        let stopped = gates.try_stop_the_world(&gate).unwrap();
        stopped.check();
        assert!(gate.is_entered() && other.is_entered());
        assert!(stopped.resume_others() && stopped.resume_others());
        assert!(gate.is_entered() && !other.is_entered());
        drop((other.enter(), gates.register()));
        assert!(gates.try_stop_the_world(&other).is_none(), "it is inside");
        // It closes them again when no thread is inside, whichever gates have come and gone
        // meanwhile.
        let newcomer = gates.register();
        drop(other);
        let inside = newcomer.enter();
        assert!(!stopped.stop_others() && gate.is_entered());
        drop(inside);
        assert!(stopped.stop_others() && stopped.stop_others());
        stopped.check();
        assert!(gate.is_entered() && newcomer.is_entered());
        assert!(stopped.resume_others() && !newcomer.is_entered());
        assert!(stopped.stop_others());
        drop(stopped);
        assert!(!gate.is_entered() && !newcomer.is_entered());
        let other = gates.register();
        let stopped = gates.try_stop_the_world(&gate).unwrap();
        assert!(stopped.resume_others());
        drop(other.enter());
        drop(stopped);
        assert!(!gate.is_entered());
        let stopped = gates.stop_the_world();
        assert!(!stopped.resume_others(), "it has no gate to be in");
        stopped.check();
    }
}
