//! What happens in a world, and when: all of it from the seed.

use std::time::Duration;

use tests::random::Random;

/// When the server's writes are synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    EverySecond,
    Never,
}

impl Policy {
    /// Its name for the server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Policy::Always => "always",
            Policy::EverySecond => "everysec",
            Policy::Never => "no",
        }
    }
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is killed: what it has written stays.
    Kill,
    /// Its machine loses its power: what it has not synced is lost in part.
    PowerCut,
    /// It is told to stop.
    Stop,
}

/// What the end waits for when its time has come, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Any,
    /// A file is being synced.
    Sync,
    /// A directory is being synced, so that names are there and not durable.
    Naming,
    /// A file has got another name, and an earlier name of another file is not durable.
    Renaming,
}

/// The life of one process.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) policy: Policy,
    /// Some clients speak TLS.
    pub(crate) is_encrypted: bool,
    /// How long nobody uses the server before the clients come.
    pub(crate) quiet: Duration,
    /// How long the clients work.
    pub(crate) busy: Duration,
    pub(crate) ending: Ending,
    pub(crate) moment: Moment,
    /// Starts that end early, each after that time.
    pub(crate) early: Vec<(Duration, Ending)>,
}

/// Lives of a world.
const LIVES: usize = 10;

/// The lives of a world.
pub(crate) fn lives(seed: u64) -> Vec<Life> {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(17));
    let is_encrypted = |number: usize| (seed + number as u64).is_multiple_of(2);
    (0..LIVES).map(|number| life(&mut random, is_encrypted(number))).collect()
}

/// A time from `least` to `most`.
pub(crate) fn span(random: &mut Random, least: Duration, most: Duration) -> Duration {
    let nanoseconds = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let drawn = random.between(nanoseconds(least), nanoseconds(most));
    Duration::from_nanos(drawn.unsigned_abs())
}

fn life(random: &mut Random, is_encrypted: bool) -> Life {
    let policy = match random.below(10) {
        0..6 => Policy::Always,
        6..9 => Policy::EverySecond,
        _ => Policy::Never,
    };
    let quiet = match random.below(8) {
        0 => span(random, Duration::from_secs(1), Duration::from_secs(600)),
        _ => Duration::ZERO,
    };
    let (short, long) = (Duration::from_millis(30), Duration::from_millis(1500));
    let most = *random.pick(&[long / 8, long / 8, long / 3, long]);
    let early = match random.below(5) {
        0 => vec![(span(random, Duration::ZERO, long), ending(random))],
        _ => Vec::new(),
    };
    let moment = *random.pick(&[Moment::Any, Moment::Sync, Moment::Naming, Moment::Renaming]);
    Life {
        seed: random.bits(),
        threads: 1 + random.below(3),
        policy,
        is_encrypted,
        quiet,
        busy: span(random, short, most),
        ending: if moment == Moment::Renaming { Ending::PowerCut } else { ending(random) },
        moment,
        early,
    }
}

fn ending(random: &mut Random) -> Ending {
    match random.below(10) {
        0..4 => Ending::Kill,
        4..9 => Ending::PowerCut,
        _ => Ending::Stop,
    }
}
