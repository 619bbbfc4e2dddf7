//! What is done to the server, and when: all of it from the seed.

use tests::random::Random;

/// One thing that is done while the clients work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A command, whose answer may be a refusal.
    Command(String),
    Save,
    BackgroundSave,
    Rewrite,
    /// The append-only file is turned on, and the event is over when it is complete.
    TurnOn,
    /// It is turned on, and no client waits for that.
    BeginTurningOn,
    TurnOff,
    Policy(&'static str),
    Reload,
    /// Clients wait for this many milliseconds: all commands, or those that write.
    Pause {
        milliseconds: u64,
        all: bool,
    },
    KillVictims,
    /// The disk is full from now on except for this many kilobytes.
    FillDisk(u64),
    MakeRoom,
}

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Kill,
    /// Killed this many milliseconds after a rewrite, a snapshot, or turning on has begun.
    KillDuringRewrite(u64),
    KillDuringSave(u64),
    KillWhileTurningOn(u64),
    Terminate,
    Interrupt,
    Shutdown(&'static str),
    /// SHUTDOWN SAVE, and a client lets the others go on meanwhile.
    ShutdownAndUnpause,
    /// The clients leave, everything is flushed, and the memory must come back.
    Idle,
}

/// What is wrong with the disk all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    Healthy,
    /// Each sync takes this many milliseconds more.
    Slow(u64),
    /// Some syncs of each thread fail, from this one on.
    Failing(u64),
}

/// The life of one process.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) threads: u64,
    /// After how many milliseconds a script is slow.
    pub(crate) slow: u64,
    pub(crate) disk: Disk,
    /// The milliseconds before each event.
    pub(crate) events: Vec<(u64, Event)>,
    pub(crate) ending: Ending,
    /// The milliseconds before the end.
    pub(crate) rest: u64,
}

fn milliseconds(random: &mut Random, first: i64, last: i64) -> u64 {
    random.between(first, last).unsigned_abs()
}

impl Plan {
    /// The life of this number, in the storm of this seed.
    pub(crate) fn new(seed: u64, life: u64) -> Plan {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(life));
        let disk = match random.below(10) {
            // The first file that keeps data needs some nine syncs in a row. Under `always`
            // replies wait for all of them, and clients for ten seconds.
            0 | 1 => Disk::Slow(milliseconds(&mut random, 20, 700)),
            2 => Disk::Failing(milliseconds(&mut random, 3, 30)),
            _ => Disk::Healthy,
        };
        let mut events = Vec::new();
        if life == 0 || random.percent(60) {
            events.push((0, Event::TurnOn));
        }
        events.push((0, Event::Policy(policy(&mut random))));
        for _ in 0..random.below(9) {
            let before = milliseconds(&mut random, 0, 300);
            let event = event(&mut random);
            let fills = matches!(event, Event::FillDisk(_));
            events.push((before, event));
            if fills && random.percent(70) {
                events.push((milliseconds(&mut random, 50, 600), Event::MakeRoom));
            }
        }
        let ending = if life % 12 == 11 { Ending::Idle } else { ending(&mut random) };
        let threads = random.between(1, 3).unsigned_abs();
        let slow = *random.pick(&[1, 5, 25, 25]);
        let rest = milliseconds(&mut random, 10, 900);
        Plan { seed: random.bits(), threads, slow, disk, events, ending, rest }
    }
}

fn policy(random: &mut Random) -> &'static str {
    ["always", "everysec", "no"][random.below(3)]
}

fn event(random: &mut Random) -> Event {
    match random.below(22) {
        0 => Event::Save,
        1 | 2 => Event::BackgroundSave,
        3..6 => Event::Rewrite,
        6 => Event::TurnOn,
        7 => Event::BeginTurningOn,
        8 => Event::TurnOff,
        9..11 => Event::Policy(policy(random)),
        11 | 12 => Event::Reload,
        13 | 14 => {
            Event::Pause { milliseconds: milliseconds(random, 5, 150), all: random.percent(30) }
        }
        15 => Event::Command("CLIENT UNPAUSE".to_owned()),
        16 | 17 => Event::KillVictims,
        18 => Event::FillDisk(milliseconds(random, 0, 400)),
        19 => Event::MakeRoom,
        20 => Event::Command(format!("CONFIG SET hash-max-listpack-entries {}", random.below(300))),
        _ => Event::Command(
            (*random.pick(&[
                "INFO everything",
                "CLIENT LIST",
                "DEBUG DIGEST",
                "MEMORY PURGE",
                "KEYS x*",
            ]))
            .to_owned(),
        ),
    }
}

fn ending(random: &mut Random) -> Ending {
    let after = milliseconds(random, 0, 60);
    match random.below(16) {
        0..4 => Ending::Kill,
        4..7 => Ending::KillDuringRewrite(after),
        7 => Ending::KillDuringSave(after),
        8 => Ending::KillWhileTurningOn(after),
        9 | 10 => Ending::Terminate,
        11 => Ending::Interrupt,
        12 => Ending::Shutdown("SHUTDOWN"),
        13 => Ending::Shutdown("SHUTDOWN SAVE"),
        14 => Ending::Shutdown("SHUTDOWN NOSAVE"),
        _ => Ending::ShutdownAndUnpause,
    }
}
