//! Gates: how the world is made to stand still between two commands.
//!
//! Every thread that touches the keyspace has a gate of its own and holds it while it runs a batch
//! of commands. Entering costs one uncontended lock. Who wants the world to stand closes all gates
//! in turn: from then until they are opened nobody is inside a command.
//!
//! Who has closed all gates touches slots without their locks. So the lock of a slot protects from
//! others who lock it, and from nobody else: whoever locks one has to be inside a gate, or to belong
//! to those who have closed them. [`Presence`] is the proof of that. The keyspace asks for it, and
//! what it gives out does not outlive it.
//!
//! Order of locks: gates, then slots.

use std::marker::PhantomData;
use std::sync::Arc;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::sync::{AtomicBool, Mutex, MutexGuard, thread};

/// A gate alone on its cache lines, so that workers do not disturb each other.
#[repr(align(128))]
#[derive(Default)]
struct Padded(Mutex<()>);

/// The gates that there are.
type List = Mutex<Vec<Arc<Padded>>>;

/// How long the first attempt to close all gates waits for each thread that is inside its own. A batch of
/// commands takes less as a rule.
const PATIENCE_MIN: Duration = Duration::from_micros(500);
/// How long further ones wait. What takes longer is a script, or a transaction that works for long.
const PATIENCE_MAX: Duration = Duration::from_millis(4);
/// Between two attempts. Others run meanwhile.
const PAUSE: Duration = Duration::from_millis(4);
/// How long whoever closes nothing waits for a thread.
const PATIENCE_PASS: Duration = Duration::from_millis(50);

/// All gates.
#[derive(Default)]
pub struct Gates {
    gates: Arc<List>,
}

/// One thread's gate. It is among all gates for as long as it can be entered: dropping it takes it
/// out, which waits while they are closed.
pub struct Gate {
    own: Arc<Padded>,
    all: Arc<List>,
    /// Its thread is inside, and enters again.
    again: AtomicBool,
}

/// The time in which a thread that is inside its gate may enter it again: see [`Gate::again`].
pub struct Again<'g>(&'g AtomicBool);

/// A thread inside its gate. One that came by way of [`Access::Closed`] has none to hold.
pub struct Inside<'g>(#[expect(dead_code, reason = "held, not read")] Option<MutexGuard<'g, ()>>);

/// The proof that nobody closes all gates meanwhile: for as long as `'g` somebody is inside a gate,
/// or keeps all of them closed and lets the bearer take part.
#[derive(Clone, Copy)]
pub struct Presence<'g>(PhantomData<&'g ()>);

const _: () = assert!(size_of::<Presence<'_>>() == 0, "a proof costs nothing");

/// How a thread gets at the data.
#[derive(Clone, Copy)]
pub enum Access<'g> {
    /// Beside others, through a gate of its own.
    Gate(&'g Gate),
    /// With all gates closed, by the leave of who has closed them.
    Closed(&'g Closed<'g>),
}

/// All gates closed: no command runs anywhere.
pub struct Closed<'g> {
    gates: MutexGuard<'g, Vec<Arc<Padded>>>,
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
            again: AtomicBool::new(false),
        };
        self.gates.lock().push(Arc::clone(&gate.own));
        gate
    }

    /// Closes all gates. The caller is outside its own. While a thread stays inside for long, the others
    /// go on.
    pub fn close(&self) -> Closed<'_> {
        let mut patience = PATIENCE_MIN;
        loop {
            if let Some(closed) = self.try_close_within(patience) {
                return closed;
            }
            patience = PATIENCE_MAX.min(patience * 2);
            thread::sleep(PAUSE);
        }
    }

    /// Closes all gates, unless a thread is inside its own for long. The caller is outside its own.
    pub fn try_close(&self) -> Option<Closed<'_>> {
        self.try_close_within(PATIENCE_MAX)
    }

    /// Waits so long for each thread that is inside. Those that want to enter wait meanwhile.
    fn try_close_within(&self, patience: Duration) -> Option<Closed<'_>> {
        let gates = self.gates.lock();
        let mut closed = Vec::with_capacity(gates.len());
        for gate in gates.iter() {
            closed.push(gate.0.try_lock_for(patience)?);
        }
        // Forgotten on purpose: `Closed::drop` releases them.
        closed.into_iter().for_each(std::mem::forget);
        Some(Closed { gates })
    }

    /// Whether every thread has been outside its gate at least once: waits for that, but not long.
    pub fn pass(&self) -> bool {
        let gates = self.gates.lock().clone();
        gates.iter().all(|gate| gate.0.try_lock_for(PATIENCE_PASS).is_some())
    }
}

impl Gate {
    /// Enters, waiting while the gate is closed.
    #[inline]
    pub fn enter(&self) -> Inside<'_> {
        if self.again.load(Relaxed) {
            return Inside(None);
        }
        Inside(Some(self.own.0.lock()))
    }

    /// Lets the thread, which is inside by this proof, enter as if it were not: until the result is
    /// dropped.
    pub fn again<'g>(&'g self, _inside: Presence<'g>) -> Again<'g> {
        self.again.store(true, Relaxed);
        Again(&self.again)
    }

    /// Whether somebody is inside, or has closed it.
    #[cfg(test)]
    pub(crate) fn is_entered(&self) -> bool {
        self.own.0.is_locked()
    }
}

impl Drop for Again<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
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
    pub fn presence(&self) -> Presence<'_> {
        Presence(PhantomData)
    }
}

impl Closed<'_> {
    /// The proof, for as long as the gates stay closed.
    #[inline]
    pub fn presence(&self) -> Presence<'_> {
        Presence(PhantomData)
    }
}

impl<'g> Access<'g> {
    /// Enters, waiting while the thread's gate is closed by others.
    pub fn enter(self) -> Inside<'g> {
        match self {
            Access::Gate(gate) => gate.enter(),
            Access::Closed(_) => Inside(None),
        }
    }
}

impl Drop for Closed<'_> {
    #[expect(unsafe_code, reason = "releases the locks that `close` forgot")]
    fn drop(&mut self) {
        for gate in self.gates.iter() {
            // SAFETY: `close` locked each of these gates and forgot the guard; the list cannot have
            // changed since, because its own lock is held.
            unsafe { gate.0.force_unlock() };
        }
    }
}
