//! Periodic work: eviction and expiry `hz` times a second, and at least ten times; samples and the
//! collection of retired tables ten times.
#![expect(unsafe_code, reason = "the collection of retired tables has a contract")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::engine::Engine;
use engine::observe::history::ThreadSeconds;
use engine::reclaim::expire::ExpireCycle;
use engine::turn::Turn;
use store::gate::Gate;

use persist::aof::append_only::AppendOnly;
use persist::rdb::saver::Saver;
use process::{system, thread};

/// The longest pause between two rounds, and the time between two samples.
const ROUND_MAX: Duration = Duration::from_millis(100);

/// No server has this many workers.
const WORKERS: usize = 1 << 10;

/// How often eviction gets its share of time in one round. Between them the gate is open.
const EVICTION_STEPS: usize = 16;

/// The running thread.
pub struct Cron {
    /// Dropped to stop it.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Cron {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        engine: Arc<Engine>,
        saver: Arc<Saver>,
        append_only: Arc<AppendOnly>,
    ) -> io::Result<Cron> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::start("cron", move || {
            let mut rounds = Rounds::new(&engine);
            while stopped.recv_timeout(pause(&engine)) == Err(RecvTimeoutError::Timeout) {
                rounds.round(&engine, &saver, &append_only);
            }
        })?;
        Ok(Cron { stop, thread })
    }

    /// Ends the thread after its present round.
    pub fn stop(self) {
        drop(self.stop);
        // A panic has ended the process already.
        let _ = self.thread.join();
    }
}

fn pause(engine: &Engine) -> Duration {
    let hz = engine.config.load().hz.max(1);
    (Duration::from_secs(1) / hz).min(ROUND_MAX)
}

struct Rounds {
    gate: Gate,
    turn: Turn,
    expiry: ExpireCycle,
    last_sample: Instant,
}

impl Rounds {
    fn new(engine: &Engine) -> Rounds {
        Rounds {
            gate: engine.gates.register(),
            turn: Turn::new(engine, "cron"),
            expiry: ExpireCycle::default(),
            last_sample: Instant::now(),
        }
    }

    fn round(&mut self, engine: &Engine, saver: &Arc<Saver>, append_only: &Arc<AppendOnly>) {
        // Data that is being loaded must not be deleted meanwhile: see
        // `engine::persistence::loading`.
        if !engine.debug.pause_cron.load(Relaxed) && !engine.loading.is_on() {
            self.make_room(engine);
            self.expiry.round(engine, &mut self.turn, &self.gate);
            engine.expire_nodes(&mut self.turn, &self.gate);
        }
        self.turn.announce_appends(engine);
        if self.last_sample.elapsed() >= ROUND_MAX {
            self.last_sample = Instant::now();
            engine.sample_rates();
            engine.sample_history(thread_seconds);
            saver.tick(engine, saver);
            append_only.tick(engine);
            collect_retired_tables(engine);
        }
        process::memory::publish();
    }

    /// Evicts what commands have left over, so that a server without commands gets below
    /// `maxmemory` too.
    fn make_room(&mut self, engine: &Engine) {
        for _ in 0..EVICTION_STEPS {
            self.turn.begin(engine);
            let inside = self.gate.enter();
            let more = engine.evict(inside.pinned(), &mut self.turn);
            drop(inside);
            process::memory::publish();
            if !more {
                return;
            }
        }
    }
}

/// Processor time of the workers and of all other threads.
fn thread_seconds() -> Option<ThreadSeconds> {
    let mut seconds = ThreadSeconds::default();
    for (name, used) in system::thread_seconds() {
        let number = name.strip_prefix("worker-").and_then(|number| number.parse().ok());
        match number.filter(|number: &usize| *number < WORKERS) {
            Some(number) => {
                let length = seconds.workers.len().max(number + 1);
                seconds.workers.resize(length, 0.0);
                seconds.workers[number] += used;
            }
            None => seconds.others += used,
        }
    }
    (!seconds.workers.is_empty()).then_some(seconds)
}

fn collect_retired_tables(engine: &Engine) {
    // SAFETY: only threads inside a gate read tables without a lock, and the keyspace makes its
    // readers prove that. `pass` says whether every gate was open once, or its thread quiet: it
    // keeps nothing of what it has read then. This thread is outside its own.
    let freed = unsafe { store::table::retire::collect(|| engine.gates.pass()) };
    process::memory::publish();
    drop(freed);
}
