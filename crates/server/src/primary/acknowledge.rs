//! What the primary hears of how far the replica is: the offset up to which the replica has applied
//! the stream, and the one up to which its append-only file is synced.
//!
//! It hears that each second, and when it asks. A primary that asks may have a client that waits
//! for copies on disks. So when the file has not got that far, it hears once more as soon as the
//! file has. The replica syncs as its own `appendfsync` says.

use std::time::{Duration, Instant};

use config::AppendFsync;
use engine::engine::Engine;
use replication::handshake::acknowledgement;

use super::wire::{Trouble, WHILE, Wire};

/// How often the primary hears how far the replica has come.
const EVERY: Duration = Duration::from_secs(1);

/// The pause between two looks at a sync that is under way, and that the primary has asked for.
const LOOK_AT_SYNC: Duration = Duration::from_millis(1);

/// See the module's text.
pub(super) struct Acknowledger<'e> {
    engine: &'e Engine,
    /// When the primary heard last.
    said_at: Option<Instant>,
    /// It has asked at this offset, and the file was not synced up to there.
    asked: Option<u64>,
}

impl<'e> Acknowledger<'e> {
    pub(super) fn new(engine: &'e Engine) -> Acknowledger<'e> {
        Acknowledger { engine, said_at: None, asked: None }
    }

    /// Tells the primary, if it is time.
    pub(super) fn look(&mut self, wire: &mut Wire) -> Result<(), Trouble> {
        let is_synced = |asked| self.engine.synced_position().is_none_or(|synced| synced >= asked);
        let is_time = self.said_at.is_none_or(|at| at.elapsed() >= EVERY)
            || self.asked.is_some_and(is_synced);
        if is_time {
            let applied = self.engine.replication.applied();
            self.say(applied, wire)?;
            self.said_at = Some(Instant::now());
        }
        wire.wait_at_most(self.patience())
    }

    /// Tells the primary, which has asked at this offset.
    pub(super) fn answer(&mut self, offset: u64, wire: &mut Wire) -> Result<(), Trouble> {
        self.asked = Some(offset);
        self.say(offset, wire)
    }

    /// Tells the primary, which has asked at this offset, as soon as that is applied too. A primary
    /// that hands over asks last, and waits until a replica has all of its stream.
    pub(super) fn answer_behind(&mut self, offset: u64) {
        (self.asked, self.said_at) = (Some(offset), None);
    }

    fn say(&mut self, applied: u64, wire: &mut Wire) -> Result<(), Trouble> {
        // It says no more of the file than of itself.
        let synced = self.engine.synced_position().map(|synced| synced.min(applied));
        self.asked = self.asked.filter(|asked| synced.is_some_and(|synced| synced < *asked));
        wire.send(&acknowledgement(applied, synced))
    }

    /// For how long the thread may wait for bytes.
    fn patience(&self) -> Duration {
        // Under other policies a sync is a long way off.
        let is_near = || self.engine.config.load().appendfsync == AppendFsync::Always;
        if self.asked.is_some() && is_near() { LOOK_AT_SYNC } else { WHILE }
    }
}
