//! The interpreter of Lua 5.1 scripts for the engine.
//!
//! Each thread that runs scripts has a state of its own, so that scripts run in parallel.
//! [`sandbox`] decides what a script can reach; the state itself is in C.
//!
//! An error in Lua is a jump over everything in between. So a function that Lua calls owns nothing
//! while it calls back into Lua: whatever it needs beyond numbers and borrowed bytes is in the
//! [`current::Current`] of the thread.
//!
//! | file | what it answers |
//! |---|---|
//! | [`state`] | what is a thread's state, and how does a script run in it? |
//! | [`sandbox`] | what can a script reach, and what can it not change? |
//! | [`api`] | what do `redis.call` and similar functions do? |
//! | [`library`] | how are functions registered? |
//! | [`random`] | which numbers are random? |
//! | [`from_reply`], [`to_reply`] | how do replies become values, and values replies? |
//! | [`errors`] | what does an error look like? |
//! | [`current`] | which script runs on this thread? |
//! | [`watch`], [`memory`] | how long may it run, and how much memory may it take? |
//! | [`registry`] | what does a state keep for itself? |
//! | [`protected`], [`guarded`] | which tables cannot be changed, and which functions know them? |
//! | [`stack`] | how are strings and fields reached? |

mod api;
mod coroutines;
mod current;
mod errors;
mod from_reply;
mod guarded;
mod library;
mod memory;
mod protected;
mod random;
mod registry;
mod sandbox;
mod stack;
mod state;
mod to_reply;
mod watch;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use engine::script::cache::Script;
use engine::script::functions::{Function, Identity, Library};
use engine::script::interpreter::{Allowed, Call, End, Interpreter, Running};
use parking_lot::Mutex;
use resp::reply::Reply;

use state::{Epochs, State};

/// Runs scripts in Lua.
#[derive(Default)]
pub struct Lua {
    shared: Arc<Shared>,
}

/// State that the states of all threads share.
#[derive(Default)]
struct Shared {
    /// Bytes that each state takes.
    states: Mutex<Vec<Arc<AtomicUsize>>>,
    /// See [`Epochs`].
    scripts: AtomicU64,
    libraries: AtomicU64,
}

thread_local! {
    /// The thread's state, and its owner: tests have several engines on one thread.
    static STATE: RefCell<Option<(Arc<Shared>, State)>> = const { RefCell::new(None) };
}

impl Lua {
    fn with_state<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        STATE.with_borrow_mut(|own| {
            let is_ours = own.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, &self.shared));
            if !is_ours {
                *own = None;
                let memory = Arc::<AtomicUsize>::default();
                self.shared.states.lock().push(Arc::clone(&memory));
                *own = Some((Arc::clone(&self.shared), State::new(memory)));
            }
            let (_, state) = own.as_mut().expect("it was made just now");
            state.follow(Epochs {
                scripts: self.shared.scripts.load(Relaxed),
                libraries: self.shared.libraries.load(Relaxed),
            });
            action(state)
        })
    }
}

impl Interpreter for Lua {
    fn compile(&self, script: &Script, memory: usize) -> Result<(), Vec<u8>> {
        self.with_state(|state| state.compile(script.id, script.code(), memory))
    }

    fn forget_scripts(&self) {
        self.shared.scripts.fetch_add(1, Relaxed);
    }

    fn forget_libraries(&self) {
        self.shared.libraries.fetch_add(1, Relaxed);
    }

    fn eval(
        &self,
        run: &mut dyn Running,
        script: &Script,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End {
        self.with_state(|state| state.eval(run, script, call, reply))
    }

    fn load(
        &self,
        identity: &Arc<Identity>,
        code: &[u8],
        allowed: Allowed,
    ) -> Result<Vec<Function>, Vec<u8>> {
        self.with_state(|state| state.load(identity, code, allowed, None))
    }

    fn call(
        &self,
        run: &mut dyn Running,
        library: &Library,
        function: &Function,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End {
        self.with_state(|state| state.call(run, library, function, call, reply))
    }

    fn memory(&self) -> usize {
        self.shared.states.lock().iter().map(|memory| memory.load(Relaxed)).sum()
    }

    fn states(&self) -> usize {
        self.shared.states.lock().iter().filter(|memory| Arc::strong_count(memory) > 1).count()
    }
}
