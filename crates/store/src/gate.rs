//! Gates: how the world is made to stand still between two commands.
//!
//! Every thread that touches the keyspace has a gate of its own and holds it while it runs a batch
//! of commands. Entering costs one uncontended lock. Who wants the world to stand closes all gates
//! in turn: from then until they are opened nobody is inside a command.
//!
//! Order of locks: the program lock, then gates, then slots.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// A gate alone on its cache lines, so that workers do not disturb each other.
#[repr(align(128))]
#[derive(Default)]
struct Padded(Mutex<()>);

/// All gates, and the program lock before them.
#[derive(Default)]
pub struct Gates {
    program: Mutex<()>,
    gates: Mutex<Vec<Arc<Padded>>>,
}

/// One thread's gate.
pub struct Gate(Arc<Padded>);

/// A thread inside its gate.
pub struct Inside<'g>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'g, ()>);

/// The right to be the one program that runs.
pub struct Program<'g>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'g, ()>);

/// All gates closed: no command runs anywhere.
pub struct Closed<'g> {
    gates: MutexGuard<'g, Vec<Arc<Padded>>>,
    #[expect(dead_code, reason = "held, not read")]
    program: Program<'g>,
}

impl Gates {
    /// No gates yet.
    pub fn new() -> Gates {
        Gates::default()
    }

    /// Makes a gate for a thread that is going to touch the keyspace.
    pub fn register(&self) -> Gate {
        let gate = Arc::new(Padded::default());
        self.gates.lock().push(Arc::clone(&gate));
        Gate(gate)
    }

    /// Takes a thread's gate out again when it ends.
    pub fn unregister(&self, gate: &Gate) {
        self.gates.lock().retain(|other| !Arc::ptr_eq(other, &gate.0));
    }

    /// Waits to be the one program. The caller is outside its gate.
    pub fn program(&self) -> Program<'_> {
        Program(self.program.lock())
    }

    /// Becomes the one program if none runs.
    pub fn try_program(&self) -> Option<Program<'_>> {
        self.program.try_lock().map(Program)
    }

    /// Whether a program is running now.
    pub fn program_runs(&self) -> bool {
        self.program.is_locked()
    }

    /// Closes all gates. The caller is outside its own and does not hold the program lock.
    pub fn close(&self) -> Closed<'_> {
        let program = self.program();
        let gates = self.gates.lock();
        for gate in gates.iter() {
            // Forgotten on purpose: `Closed::drop` releases them.
            std::mem::forget(gate.0.lock());
        }
        Closed { gates, program }
    }

    /// Returns when every thread has been outside its gate at least once.
    pub fn pass(&self) {
        let gates = self.gates.lock().clone();
        for gate in gates {
            drop(gate.0.lock());
        }
    }
}

impl Gate {
    /// Enters, waiting while the gate is closed.
    #[inline]
    pub fn enter(&self) -> Inside<'_> {
        Inside(self.0.0.lock())
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
