//! The fast path has the same results as the slow path: the same random commands run on two
//! engines. One never takes the fast path; the other takes it, also with several commands at a
//! time.

use proptest::prelude::*;
use resp::args::OwnedArguments;
use tests::grammar::{self, Comparison};
use tests::random::Random;

use super::TestServer;
use config::Config;

/// When the runs begin, in Unix milliseconds.
const START: u64 = 1_700_000_000_000;

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    /// A command of the grammar, by its seed.
    Any(u64),
    /// Commands behind each other, likewise.
    Pipeline(Vec<u64>),
    /// Time passes, in milliseconds.
    Wait(u64),
    /// Another connection sends what follows, or the first one again.
    Change,
    /// The disk prevents writes, or no longer does.
    Press,
    /// The journal fails, or works again.
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => any::<u64>().prop_map(Step::Any),
        30 => proptest::collection::vec(any::<u64>(), 2..12).prop_map(Step::Pipeline),
        4 => (1u64..400).prop_map(Step::Wait),
        3 => Just(Step::Change),
        1 => Just(Step::Press),
        1 => Just(Step::Fail),
    ]
}

/// A server, and a connection that is not the present one.
struct Side {
    server: TestServer,
    other: engine::session::Session,
}

impl Side {
    fn new(config: Config, takes_short_way: bool) -> Side {
        let mut server = crate::testing::server_with(config);
        server.now = Some(START);
        server.takes_short_way = takes_short_way;
        let other = server.connect();
        Side { server, other }
    }

    /// The results of a step, as text: the reply, the journal's entries, and all counts.
    fn take(&mut self, step: &Step) -> String {
        let server = &mut self.server;
        let mut said = String::new();
        match step {
            Step::Any(seed) => {
                if let Some(command) = command(*seed) {
                    said = run(server, &command).escape_ascii().to_string();
                }
            }
            Step::Pipeline(seeds) => {
                let commands: Vec<_> = seeds.iter().filter_map(|seed| command(*seed)).collect();
                let mut replies = Vec::new();
                let mut at = 0;
                while at < commands.len() {
                    let (ran, mut reply) = match server.takes_short_way {
                        true => server.run_together(&commands[at..]),
                        false => (0, Vec::new()),
                    };
                    if ran == 0 {
                        reply = run(server, &commands[at]);
                    }
                    replies.extend(reply);
                    at += ran.max(1);
                }
                said = replies.escape_ascii().to_string();
            }
            Step::Wait(milliseconds) => server.now = server.now.map(|now| now + milliseconds),
            Step::Change => std::mem::swap(&mut server.session, &mut self.other),
            Step::Press => flip(&server.journal.pressed),
            Step::Fail => {
                let mut failure = server.journal.failure.lock();
                *failure = if failure.is_none() { Some("full".to_owned()) } else { None };
            }
        }
        let stats = &server.turn.stats;
        let counts = [
            &stats.commands_processed,
            &stats.keyspace_hits,
            &stats.keyspace_misses,
            &stats.expired_keys,
            &stats.error_replies,
            &stats.changes,
        ];
        let counts = counts.map(|counter| counter.get());
        let calls: Vec<_> = stats
            .commands
            .iter()
            .map(|own| [own.calls.get(), own.rejected.get(), own.failed.get()])
            .collect();
        let session = &server.session;
        let client = session.client.last_command.load(std::sync::atomic::Ordering::Relaxed);
        let state = (client, session.write_offset, session.depends_on, session.paused);
        format!("{said} {:?} {state:?} {counts:?} {calls:?}", server.journal.take())
    }
}

/// The command of a seed, unless chance decides what it answers.
fn command(seed: u64) -> Option<OwnedArguments> {
    let command = grammar::command(&grammar::REDIS, &mut Random::new(seed));
    let chance =
        command.comparison != Comparison::Exact || command.words[0].eq_ignore_ascii_case(b"spop");
    (!chance).then(|| command.words.iter().collect())
}

/// Runs a command alone. Where its client waits, another one goes on in its place.
fn run(server: &mut TestServer, command: &OwnedArguments) -> Vec<u8> {
    let words: Vec<&[u8]> = command.view().iter().collect();
    let reply = server.try_run(&words);
    if reply.as_ref().is_some_and(Vec::is_empty) {
        server.session = server.connect();
    }
    reply.unwrap_or_else(|| b"(to be tried again)".to_vec())
}

fn flip(flag: &std::sync::atomic::AtomicBool) {
    flag.fetch_xor(true, std::sync::atomic::Ordering::Relaxed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_path_has_the_results_of_the_slow_path(
        steps in proptest::collection::vec(step(), 1..200),
        maxmemory in prop_oneof![Just(0u64), Just(1 << 40), Just(1)],
        holds in any::<bool>(),
    ) {
        let config = || Config { maxmemory, ..Config::default() };
        let mut sides = [Side::new(config(), true), Side::new(config(), false)];
        for side in &sides {
            side.server.journal.defers_replies.store(holds, std::sync::atomic::Ordering::Relaxed);
        }
        for (at, step) in steps.iter().enumerate() {
            let [fast_request, long] = sides.each_mut().map(|side| side.take(step));
            prop_assert_eq!(fast_request, long, "step {}", at);
        }
    }
}
