//! What happens in a world of replicas, and when: all of it from the seed.

use std::time::Duration;

use tests::random::Random;

use crate::plan::{Policy, span};

/// What is the same in all acts.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) servers: Vec<Server>,
    /// `repl-backlog-size`.
    pub(crate) backlog: u64,
    /// Whether a replica that comes back finds what it lacks, whatever clients write meanwhile.
    pub(crate) keeps_enough: bool,
    /// `repl-timeout`, in seconds.
    pub(crate) patience: u64,
    /// `durability-timeout`, in milliseconds: a sync of `everysec` comes in time, or not.
    pub(crate) durability_timeout: u64,
    /// `repl-diskless-sync` and `repl-diskless-load`.
    pub(crate) diskless: (bool, &'static str),
    /// Links speak TLS, and so do some clients.
    pub(crate) is_encrypted: bool,
}

/// One server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) appends: bool,
    pub(crate) policy: Policy,
    pub(crate) threads: usize,
}

/// What goes wrong while clients work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// The connections between two servers break.
    Cut(usize, usize),
    /// The connection from one server to another breaks within a message.
    Tear(usize, usize),
    /// Nothing comes from one to another for some time, nor back if both ways are silent.
    Silence { from: usize, to: usize, both: bool, lasts: Duration },
    /// Messages from one to another take this long at most.
    Slow(usize, usize, Duration),
    /// A replica ends, and starts again after that time.
    End { server: usize, by_power_cut: bool, back: Duration },
}

/// What becomes of the primary at the end of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It goes on.
    Calm,
    /// It ends and starts again.
    Restart(crate::plan::Ending),
    /// It ends, and the best replica is promoted.
    Death { by_power_cut: bool },
    /// A replica is promoted while it goes on, which then follows.
    Split,
    /// It hands over to a replica.
    Failover,
}

/// One act.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) seed: u64,
    /// How long clients work.
    pub(crate) busy: Duration,
    /// After which time.
    pub(crate) troubles: Vec<(Duration, Trouble)>,
    pub(crate) ending: Ending,
    /// Whether replicas follow each other afterwards, rather than all the primary.
    pub(crate) chained: bool,
    /// A primary that has ended is first a primary again for so long, before it follows.
    pub(crate) leads_first: Option<Duration>,
    /// Whether all becomes calm afterwards, so that all servers have the same.
    pub(crate) settles: bool,
}

/// Acts of a world.
const ACTS: usize = 7;

/// The plan of a world, in which clients work for so long at most at a time.
pub(crate) fn world(seed: u64, longest: Duration) -> (Setting, Vec<Act>) {
    let mut random = Random::new(seed.wrapping_mul(1_000_033).wrapping_add(29));
    let random = &mut random;
    let count = 2 + usize::from(random.percent(65));
    let server = |random: &mut Random| Server {
        appends: random.percent(75),
        policy: *random.pick(&[
            Policy::Always,
            Policy::EverySecond,
            Policy::EverySecond,
            Policy::Never,
        ]),
        threads: 1 + random.below(3),
    };
    let keeps_enough = random.percent(75);
    let setting = Setting {
        servers: (0..count).map(|_| server(random)).collect(),
        backlog: if keeps_enough { 64 << 20 } else { 16 << 10 },
        keeps_enough,
        patience: *random.pick(&[3, 5, 60]),
        durability_timeout: *random.pick(&[600, 1300]),
        diskless: (
            random.percent(60),
            *random.pick(&["disabled", "on-empty-db", "swapdb", "swapdb"]),
        ),
        is_encrypted: !seed.is_multiple_of(2),
    };
    let acts = (0..ACTS).map(|number| act(random, count, longest, number + 1 == ACTS)).collect();
    (setting, acts)
}

fn milliseconds(random: &mut Random, least: u64, most: u64) -> Duration {
    span(random, Duration::from_millis(least), Duration::from_millis(most))
}

fn act(random: &mut Random, servers: usize, longest: Duration, is_last: bool) -> Act {
    let busy = match random.below(4) {
        0 => milliseconds(random, 30, 300),
        1 | 2 => milliseconds(random, 200, 1200),
        _ => milliseconds(random, 1000, 3000),
    };
    let busy = busy.min(longest);
    let count = *random.pick(&[0, 1, 1, 2, 4]);
    let mut troubles: Vec<_> = (0..count)
        .map(|_| (span(random, Duration::ZERO, busy), trouble(random, servers)))
        .collect();
    troubles.sort_by_key(|(after, _)| *after);
    let by_power_cut = random.percent(50);
    let ending = match random.below(12) {
        0..2 => Ending::Calm,
        2 => Ending::Restart(crate::plan::Ending::Stop),
        3 => Ending::Restart(crate::plan::Ending::Kill),
        4 => Ending::Restart(crate::plan::Ending::PowerCut),
        5..9 => Ending::Death { by_power_cut },
        9..11 => Ending::Split,
        _ => Ending::Failover,
    };
    Act {
        seed: random.bits(),
        busy,
        troubles,
        ending,
        chained: random.percent(35),
        leads_first: random.percent(25).then(|| milliseconds(random, 0, 400)),
        settles: is_last || random.percent(55),
    }
}

fn trouble(random: &mut Random, servers: usize) -> Trouble {
    let from = random.below(servers);
    let to = (from + 1 + random.below(servers - 1)) % servers;
    match random.below(8) {
        0 | 1 => Trouble::Cut(from, to),
        2 => Trouble::Tear(from, to),
        3 | 4 => Trouble::Silence {
            from,
            to,
            both: random.percent(60),
            lasts: match random.below(3) {
                0 => milliseconds(random, 1000, 8000),
                _ => milliseconds(random, 10, 500),
            },
        },
        5 => Trouble::Slow(from, to, milliseconds(random, 1, 80)),
        _ => Trouble::End {
            server: from,
            by_power_cut: random.percent(50),
            back: milliseconds(random, 0, 800),
        },
    }
}
