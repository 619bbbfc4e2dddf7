//! Runs a few threads in many orders: `make explore` for long, `make test` for seconds.
//!
//! Threads are coroutines. At each lock and each atomic of the store, and of other code that is
//! built with [`store::sync`], the thread that goes on is drawn. So an order that a busy machine
//! shows once in years comes within seconds, and comes again: a failure prints a schedule, which
//! `shuttle::replay` plays again. A wait without an end shows as a schedule without an end. Memory
//! is sequentially consistent here, but the explorer notes which orderings the code asks for. A
//! thread that finds a table's block without a lock fails if these orderings do not promise that it
//! sees the block as it was made. Miri looks for all other orderings that are too weak (`make
//! miri`).

pub mod world;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::{Config, Runner};
use store::sync::Hooks;

/// How many orders are tried, of each kind.
fn schedules() -> usize {
    let wanted = std::env::var("DUNLIN_SCHEDULES").ok();
    wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or(300)
}

/// The same orders each time, unless another seed is given.
fn seed() -> u64 {
    let wanted = std::env::var("DUNLIN_SEED").ok();
    wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or(1)
}

/// Lets another thread go on, or this one. A thread that yields instead says that it can do
/// nothing: where threads have priorities, it goes after all others.
fn point() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

fn spawn(run: Box<dyn FnOnce() + Send>) {
    drop(shuttle::thread::spawn(run));
}

fn number() -> usize {
    shuttle::current::me().into()
}

/// Runs `scenario` in many orders: in some the next thread is drawn at each step, in others threads
/// have priorities that change a few times, which finds what needs long runs of one of them.
pub fn explore(scenario: impl Fn() + Send + Sync + Copy + 'static) {
    let scenario = move || {
        store::sync::set_hooks(Hooks { point, wait: shuttle::thread::yield_now, spawn, number });
        scenario();
    };
    let mut config = Config::default();
    config.stack_size = 256 * 1024;
    let random = RandomScheduler::new_from_seed(seed(), schedules());
    Runner::new(random, config.clone()).run(scenario);
    let by_priorities = PctScheduler::new_from_seed(seed(), 3, schedules());
    Runner::new(by_priorities, config).run(scenario);
}
