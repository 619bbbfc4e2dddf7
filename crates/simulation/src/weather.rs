//! How fast and how reliable the disk, the network and the processors are.

use crate::random::Random;

/// The conditions of a world.
#[derive(Clone, Debug)]
pub struct Weather {
    /// Once in this many steps a thread loses its processor for a while; zero: never.
    pub stalls: usize,
    /// The nanoseconds that a message takes, the least and the most.
    pub latency: (u64, u64),
    /// The chance in percent that a message comes in two parts.
    pub splits: usize,
    /// The nanoseconds that a sync takes, the least and the most.
    pub sync: (u64, u64),
    /// Once in this many times a write to a file takes only a part; zero: never.
    pub short_writes: usize,
    /// Once in this many times a sync fails and makes nothing durable; zero: never.
    pub failing_syncs: usize,
}

impl Weather {
    pub(crate) fn draw(random: &mut Random) -> Weather {
        let network = [(5_000, 60_000), (20_000, 400_000), (100_000, 3_000_000)];
        let disk = [(20_000, 200_000), (200_000, 4_000_000), (1_000_000, 60_000_000)];
        Weather {
            stalls: [0, 20_000, 2_000][random.below(3)],
            latency: network[random.below(3)],
            splits: [0, 5, 30][random.below(3)],
            sync: disk[random.below(3)],
            short_writes: [0, 0, 50][random.below(3)],
            failing_syncs: [0, 0, 0, 0, 300][random.below(5)],
        }
    }
}
