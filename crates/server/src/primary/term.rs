//! The term in which a link is made, and what the thread that follows works with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::engine::Engine;
use engine::replication::{LinkState, LinkTrouble};
use persist::aof::append_only::AppendOnly;
use persist::cuts::Cuts;
use persist::disk::Disk;
use process::log::Log;
use replication::line::Lines;

use super::wire::{Trouble, Wire};

/// What the thread works with.
pub struct Means {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The log.
    pub log: Arc<Log>,
    /// Who may read a cut.
    pub cuts: Arc<Cuts>,
    /// The append-only file.
    pub append_only: Arc<AppendOnly>,
    /// What encrypts the link.
    pub active: Arc<tls::Active>,
    /// The disk.
    pub disk: Arc<dyn Disk>,
}

/// The term in which a link is made: while it lasts, the link does.
pub(super) struct Term<'t> {
    pub(super) means: &'t Means,
    pub(super) number: u64,
    pub(super) stopping: &'t AtomicBool,
}

impl Term<'_> {
    /// Whether the link is still wanted.
    pub(super) fn lasts(&self) -> bool {
        !self.stopping.load(Relaxed) && self.means.engine.replication.term() == self.number
    }

    /// Whether it is the link of a FAILOVER whose time is over before the other one was asked.
    pub(super) fn is_late(&self) -> bool {
        let failover = &self.means.engine.failover;
        failover.is_on() && failover.is_late(base::clock::monotonic_ms())
    }

    /// An error if it is not wanted any more.
    pub(super) fn go_on(&self) -> Result<(), Trouble> {
        match () {
            () if !self.lasts() => Err(Trouble::Over),
            () if self.is_late() => Err(Trouble::Silent),
            () => Ok(()),
        }
    }

    pub(super) fn notice(&self, line: impl AsRef<str>) {
        self.means.log.notice(line.as_ref());
    }

    /// The link has come so far.
    pub(super) fn set_link(&self, link: LinkState) {
        let now = base::clock::monotonic_ms();
        self.means.engine.replication.set_link(self.number, link, now);
    }

    /// The link has ended, for this reason.
    pub(super) fn note_trouble(&self, trouble: &Trouble) {
        let lasts = matches!(trouble, Trouble::Data { lasting: true, .. });
        let reason = trouble.to_string().replace(char::is_control, " ");
        self.means.engine.replication.note_trouble(self.number, LinkTrouble { reason, lasts });
    }

    /// Bytes have come.
    pub(super) fn note_heard(&self) {
        let now = base::clock::monotonic_ms();
        self.means.engine.replication.note_heard(self.number, now);
    }
}

/// Waits for the next line, which may be empty.
pub(super) fn next_line(
    term: &Term<'_>,
    wire: &mut Wire,
    lines: &mut Lines,
) -> Result<Vec<u8>, Trouble> {
    loop {
        term.go_on()?;
        let arrived = wire.look()?;
        let mut rest = arrived;
        let line = lines.next(&mut rest)?;
        let taken = arrived.len() - rest.len();
        wire.take(taken);
        if taken > 0 {
            term.note_heard();
        }
        if let Some(line) = line {
            return Ok(line);
        }
    }
}
