//! How FAILOVER changes the part of the server: of the one that hands over, and of the one that
//! leads then.

use std::sync::Arc;

use config::PrimaryAddress;
use store::gate::StoppedWorld;

use crate::command::error::CommandError;
use crate::engine::Engine;
use crate::host::LogLevel;
use crate::session::failover::Plan;
use crate::session::replicas::{GETACK, Replica};

impl Engine {
    /// The replica that is reached at an address.
    pub fn replica_at(&self, host: &[u8], port: i64) -> Option<Arc<Replica>> {
        let is_it = |own: &Replica| {
            own.introduction.listening_port == port
                && own.address().as_bytes().eq_ignore_ascii_case(host)
        };
        self.replicas.all().into_iter().find(|own| is_it(own))
    }

    /// Begins a failover: suspends writes.
    pub fn begin_failover(&self, _: &StoppedWorld<'_>, plan: Plan) {
        self.pause.set_handing_over(true);
        self.failover.begin(plan);
        self.replication.wake();
    }

    /// Has clients' writes wait, or lets them go on; those that have waited have to be notified.
    pub fn suspend_writes(&self, _: &StoppedWorld<'_>, suspends: bool) {
        self.pause.set_handing_over(suspends);
    }

    /// Has replicas say at once that they have everything, and not within a second. Nothing follows
    /// this in the stream until writes go on. Returns the offset of the journal that those have
    /// acknowledged who have all of it: an answer does not count the request itself, so that to the
    /// second one counts the first.
    pub fn ask_as_last(&self, _: &StoppedWorld<'_>) -> u64 {
        let end = self.journal.append_raw(GETACK, None);
        self.journal.append_raw(GETACK, None);
        self.journal.notify();
        end
    }

    /// Becomes the replica of the one that takes over. Writes stay suspended until it has answered.
    pub fn hand_over(&self, stopped: &StoppedWorld<'_>, target: PrimaryAddress) {
        self.failover.begin_to_ask();
        self.change_part(stopped, Some(target));
    }

    /// Ends a failover. Clients whose writes were suspended have to be notified.
    pub fn end_failover(&self, _: &StoppedWorld<'_>) {
        self.failover.end();
        self.pause.set_handing_over(false);
    }

    /// What PSYNC with FAILOVER does: a replica whose data is of this history becomes a primary.
    /// The one that asks, which the log calls `who`, has suspended writes, and follows from now on.
    /// `end` is how far that one has come: none if the takeover is forced.
    ///
    /// # Errors
    /// This is no replica, or its data is of another history, or is older: that of a replica which
    /// was restarted may be.
    pub fn lead_in_place_of(
        &self,
        stopped: &StoppedWorld<'_>,
        (history, end): (&[u8], Option<u64>),
        who: &str,
    ) -> Result<(), CommandError> {
        let shown = String::from_utf8_lossy(history);
        let line = format!("Failover request received for replid {shown}.");
        self.host.log(LogLevel::Notice, &line);
        if !self.replication.is_replica() {
            return Err(CommandError::text("ERR PSYNC FAILOVER can't be sent to a master."));
        }
        let own = self.stream();
        if !history.eq_ignore_ascii_case(own.present.as_bytes()) {
            return Err(CommandError::text("ERR PSYNC FAILOVER replid must match my replid."));
        }
        if end.is_some_and(|end| own.newest < end) {
            let text = "ERR PSYNC FAILOVER this replica lacks the end of the stream.";
            return Err(CommandError::text(text));
        }
        self.change_part(stopped, None);
        let line = format!("MASTER MODE enabled (failover request from '{who}')");
        self.host.log(LogLevel::Notice, &line);
        Ok(())
    }
}
