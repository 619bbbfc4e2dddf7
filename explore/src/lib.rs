//! Runs a few threads at a keyspace in many orders: `make explore` for long, `make test` for seconds.
//!
//! Threads are coroutines, and whichever goes on at each lock and each atomic of the store is drawn.
//! So an order that a busy machine shows once in years comes within seconds, and comes again: what
//! fails prints a schedule, which `shuttle::replay` plays again. Memory is sequentially consistent
//! here; orderings that are too weak are for Miri (`make miri`).

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

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

/// Runs `scenario` in many orders: in some the next thread is drawn at each step, in others threads
/// have priorities that change a few times, which finds what needs long runs of one of them.
pub fn explore(scenario: impl Fn() + Send + Sync + Copy + 'static) {
    let scenario = move || {
        store::sync::set_point(shuttle::thread::yield_now);
        scenario();
    };
    let mut config = Config::default();
    config.stack_size = 256 * 1024;
    let random = RandomScheduler::new_from_seed(seed(), schedules());
    Runner::new(random, config.clone()).run(scenario);
    let by_priorities = PctScheduler::new_from_seed(seed(), 3, schedules());
    Runner::new(by_priorities, config).run(scenario);
}
