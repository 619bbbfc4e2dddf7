//! The ways between machines: how long messages take on each, and what is done to them.

use std::time::Duration;

use crate::objects::{Kind, MachineNumber, ObjectNumber};
use crate::world::{Happening, World};

/// Shorter messages do not break off.
const TORN_LEAST: usize = 40;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2)
}

impl World {
    /// Messages from one machine to another take this long from now on, from the least to the most.
    pub fn slow(
        &mut self,
        from: MachineNumber,
        to: MachineNumber,
        least: Duration,
        most: Duration,
    ) {
        let latency = (nanoseconds(least), nanoseconds(most).max(nanoseconds(least)));
        self.trace.say(self.now, &format!("from {from} to {to} messages take {latency:?} ns"));
        self.ways.entry((from, to)).or_default().latency = Some(latency);
    }

    /// What one machine sends to another from now on arrives after this time. Nothing is lost: the
    /// sender sends it again.
    pub fn silence(&mut self, from: MachineNumber, to: MachineNumber, lasts: Duration) {
        self.trace.say(self.now, &format!("nothing comes from {from} to {to} for {lasts:?}"));
        let until = self.now + nanoseconds(lasts);
        let way = self.ways.entry((from, to)).or_default();
        way.silent_until = way.silent_until.max(until);
    }

    /// All connections between two machines break, in both directions. What arrives later than the
    /// news of that is lost.
    pub fn cut(&mut self, one: MachineNumber, other: MachineNumber) {
        self.trace.say(self.now, &format!("the connections between {one} and {other} break"));
        let ends: Vec<ObjectNumber> = self
            .objects
            .iter()
            .filter(|(_, object)| match &object.kind {
                Kind::End(end) => {
                    [(one, other), (other, one)].contains(&(object.machine, end.peer_machine))
                }
                _ => false,
            })
            .map(|(number, _)| *number)
            .collect();
        for end in ends {
            let (least, most) = self.weather.latency;
            let at = self.now + self.random.between(least, most);
            self.at(at, Happening::Reset(end));
        }
    }

    /// The connection that one machine uses next to send more than a few bytes to another one
    /// breaks meanwhile: a part of them arrives, which ends at any byte.
    pub fn tear(&mut self, from: MachineNumber, to: MachineNumber) {
        self.trace.say(self.now, &format!("a message from {from} to {to} will break off"));
        self.ways.entry((from, to)).or_default().tears = true;
    }

    /// Whether a message of that length breaks off, and after how many bytes.
    pub(crate) fn torn(
        &mut self,
        from: MachineNumber,
        to: MachineNumber,
        length: usize,
    ) -> Option<usize> {
        let way = self.ways.get_mut(&(from, to)).filter(|way| way.tears && length >= TORN_LEAST)?;
        way.tears = false;
        self.trace.say(self.now, &format!("a message from {from} to {to} breaks off"));
        Some(1 + self.random.below(length - 1))
    }

    /// All ways are as the weather has them again. What was sent in silence arrives as late as
    /// before.
    pub fn mend_ways(&mut self) {
        self.trace.say(self.now, "all ways are open");
        self.ways.clear();
    }

    /// When a message arrives that one machine sends to another now.
    pub(crate) fn passage(&mut self, from: MachineNumber, to: MachineNumber) -> u64 {
        let way = self.ways.get(&(from, to)).copied().unwrap_or_default();
        let (least, most) = way.latency.unwrap_or(self.weather.latency);
        let latency = self.random.between(least, most);
        self.now.max(way.silent_until) + latency
    }
}
