//! Slots that go to other servers, and slots whose keys are deleted because another server has
//! them.
//!
//! A thread for each move sends a cut of the slots and then what the journal has of them, as
//! commands, over one connection: see `source`. The target runs them as writes of its own, in slots
//! that it hides until they are its own ([`engine::session::slot_moves`]). One further thread
//! deletes the keys of slots that are hidden.
//!
//! | file | what it answers |
//! |---|---|
//! | `job` | what is a move, and what is it told? |
//! | `source` | how does a move go, from the first byte to the hand-over? |

mod job;
mod source;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use engine::engine::{Engine, random_id};
use engine::host::{LogLevel, SlotMove};
use engine::session::attachment::Waiter;
use engine::turn::Turn;
pub use job::{Move, MoveEvent, Notify};
use job::{Order, Said, Shared};
use parking_lot::{Condvar, Mutex};
use persist::cuts::Cuts;
use process::thread;

/// How long the thread that deletes rests before it looks again, unless it is woken.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How often it looks whether periodic work goes on.
const PAUSE_OF_CRON: Duration = Duration::from_millis(10);

/// See the module's text. The threads begin when they are needed.
#[derive(Clone)]
pub struct SlotMovers {
    shared: Arc<Shared>,
}

impl SlotMovers {
    /// No threads yet.
    pub fn new(cuts: &Arc<Cuts>, active: &Arc<tls::Active>) -> SlotMovers {
        let shared = Shared {
            engine: OnceLock::new(),
            cuts: Arc::clone(cuts),
            active: Arc::clone(active),
            orders: Mutex::default(),
            number: AtomicU64::new(1),
            emptying: Mutex::default(),
            more: Condvar::new(),
            is_stopped: AtomicBool::new(false),
        };
        SlotMovers { shared: Arc::new(shared) }
    }

    /// Connects it with the engine whose slots it moves.
    pub fn connect(&self, engine: &Arc<Engine>) {
        self.shared.engine.get_or_init(|| Arc::downgrade(engine));
        let shared = Arc::downgrade(&self.shared);
        engine.slot_moves.connect(Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                wake_emptying(&shared);
            }
        }));
    }

    /// Begins a move, unless one of this name is under way.
    pub fn start(&self, job: Move, notify: Notify) {
        let Some(engine) = self.shared.engine.get().and_then(Weak::upgrade) else { return };
        let order = Arc::<Order>::default();
        let before = {
            let mut orders = self.shared.orders.lock();
            let present = orders.get(&job.id);
            if present.is_some_and(|present| present.said().end.is_none()) {
                return;
            }
            orders.insert(job.id.clone(), Arc::clone(&order))
        };
        let shared = Arc::clone(&self.shared);
        let (id, notify) = (job.id.clone(), Arc::new(notify));
        let told = Arc::clone(&notify);
        let started = thread::start("slot-move", move || {
            // Two threads that bring the same slots would get in each other's way.
            before.inspect(|before| before.wait_until_over());
            let end = source::run(&shared, &engine, &job, &order, &told);
            shared.forget(&job.id, &order);
            order.say(|said| said.is_over = true);
            told(end);
            process::memory::publish();
        });
        if let Err(error) = started {
            self.shared.orders.lock().remove(&id);
            notify(MoveEvent::Failed(error.to_string()));
        }
    }

    /// Has a move hold its slots and bring the rest across.
    pub fn hold(&self, id: &str) {
        self.tell(id, |said| said.hold = true);
    }

    /// Ends a move. `moved` says whether the target owns the slots now; then the caller has
    /// published that already.
    pub fn finish(&self, id: &str, moved: bool) {
        self.tell(id, |said| said.end = Some(moved));
    }

    fn tell(&self, id: &str, change: impl FnOnce(&mut Said)) {
        let order = self.shared.orders.lock().get(id).cloned();
        if let Some(order) = order {
            order.say(change);
        }
    }

    /// Moves slots without a cluster, and answers the waiter.
    pub fn move_alone(&self, wanted: SlotMove, waiter: Waiter) {
        let SlotMove { slots, host, port, rate } = wanted;
        let id = random_id();
        let (rate, needs_file, epoch, alone) = (Some(rate), false, 0, true);
        let ports = (port, port);
        let job = Move { id, slots, host, ports, rate, needs_file, epoch, alone };
        let Some(engine) = self.shared.engine.get().cloned() else { return };
        let notify = move |event: MoveEvent| {
            let Some(engine) = engine.upgrade() else { return };
            match event {
                MoveEvent::CaughtUp
                | MoveEvent::Holds
                | MoveEvent::LetGo
                | MoveEvent::BeginsAnew
                | MoveEvent::Delivered => {}
                MoveEvent::Done(true) => engine.answer(&waiter, b"+OK\r\n"),
                MoveEvent::Done(false) => engine.answer(&waiter, b"-ERR the move was ended\r\n"),
                MoveEvent::Failed(why) => {
                    let line: String = why.chars().filter(|own| !own.is_control()).collect();
                    engine.answer(
                        &waiter,
                        format!("-ERR the move has failed: {line}\r\n").as_bytes(),
                    );
                }
            }
        };
        self.start(job, Box::new(notify));
    }

    /// Nothing moves and nothing is deleted any more.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Relaxed);
        self.shared.more.notify_all();
    }
}

/// Wakes the thread that deletes, and starts it first if need be.
fn wake_emptying(shared: &Arc<Shared>) {
    let mut woken = shared.emptying.lock();
    if woken.replace(true).is_none() {
        let own = Arc::clone(shared);
        if thread::start("slots", move || run_emptying(&own)).is_err() {
            // The next wish tries again.
            *woken = None;
        }
    }
    shared.more.notify_all();
}

/// The thread that deletes the keys of slots.
fn run_emptying(shared: &Shared) {
    base::time_slice::give_way();
    let Some(engine) = shared.engine.get().and_then(Weak::upgrade) else { return };
    let (mut turn, gate) = (Turn::new(&engine, "slots"), engine.gates.register());
    while !shared.is_stopped() {
        for job in engine.slot_moves.take_emptying() {
            // DEBUG PAUSE-CRON: a test looks at what is there.
            while engine.debug.pause_cron.load(Relaxed) && !shared.is_stopped() {
                std::thread::sleep(PAUSE_OF_CRON);
            }
            let goes_on = || !shared.is_stopped();
            let part = (&job.slots, job.database);
            let keyspace = &engine.keyspace;
            let in_database = |own: usize| job.slots.iter().map(move |slot| (own, slot));
            let keys: usize = (0..keyspace.databases())
                .flat_map(in_database)
                .map(|(own, slot)| keyspace.slot_len(own, slot))
                .sum();
            if keys > 0 && job.waiter.is_none() {
                let line = format!("Deleting {keys} keys of slots that are not served here");
                engine.host.log(LogLevel::Notice, &line);
            }
            let is_done = engine.empty_slots(&mut turn, &gate, part, &goes_on);
            if is_done && job.database.is_none() {
                engine.slot_moves.note_empty(&engine.keyspace.hidden, &job.slots);
            }
            if let Some(import) = &job.import {
                // What was deleted here is to be as durable as what arrives after it: a replica
                // that lacks it would bring the keys back.
                import.note_emptied(engine.journal.end());
            }
            let reply: &[u8] = match is_done {
                true => b"+OK\r\n",
                false => b"-ERR the slots could not be emptied\r\n",
            };
            job.waiter.inspect(|waiter| engine.answer(waiter, reply));
            process::memory::publish();
        }
        let mut woken = shared.emptying.lock();
        if *woken == Some(false) {
            shared.more.wait_for(&mut woken, LOOK_AGAIN);
        }
        *woken = Some(false);
    }
}
