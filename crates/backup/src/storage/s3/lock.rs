//! The object that says which run writes to a prefix, and until when. Its owner renews it by time,
//! whatever else it does.
//!
//! The owner may stand still until the lock has run out, and go on when another run has it. So the
//! lock is compared before each change of the list, and what keeps two runs apart for sure is that
//! the list changes only as long as it is what its writer knows.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rusty_s3::S3Action;
use serde::{Deserialize, Serialize};

use super::client::{Client, Found, Method, SIGNED_FOR};
use crate::digest::sha256;
use crate::moment::Moment;

const LOCK: &str = "lock";
/// How long a lock is good after it was renewed.
const LOCKED_MS: u64 = 5 * 60 * 1000;
/// So far the clocks of two machines may differ.
const DIFFERENCE_MS: u64 = 5 * 60 * 1000;
pub(super) const RENEWED_EACH: Duration = Duration::from_secs(60);

/// Who writes to the store.
#[derive(Clone, Serialize, Deserialize)]
struct Owner {
    machine: String,
    process: u32,
    /// Where processes have numbers of their own: the machine, and the namespace. It is empty where
    /// the system does not tell.
    #[serde(default)]
    numbers: String,
    /// A number that no other run has. Earlier versions have written none.
    #[serde(default)]
    run: String,
    until: Moment,
}

impl Owner {
    fn new() -> Owner {
        Owner {
            machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            process: std::process::id(),
            numbers: numbers(),
            run: format!("{:016x}", base::rng::entropy_u64()),
            until: Moment::default(),
        }
    }

    fn of(found: &Found) -> Option<Owner> {
        serde_json::from_slice(&found.bytes).ok()
    }

    /// Whether it may be writing: nobody has said that it has ended.
    fn is_there(&self, own: &Owner) -> bool {
        let has_same_numbers = (&self.machine, &self.numbers) == (&own.machine, &own.numbers)
            && !own.numbers.is_empty();
        let is_gone = has_same_numbers && (self.process == own.process || !is_alive(self.process));
        let now = Moment::now();
        // None that is renewed is good for longer, whatever it says.
        !is_gone && self.until > now && self.until.0 <= now.0 + LOCKED_MS + DIFFERENCE_MS
    }

    /// Writes it into the lock, if that is what was found still.
    fn write(&self, client: &Arc<Client>, found: Option<&Found>) -> Result<bool, String> {
        let until = Moment(Moment::now().0 + LOCKED_MS);
        let owner = Owner { until, ..self.clone() };
        let text = serde_json::to_vec(&owner).map_err(|error| error.to_string())?;
        client.put_if(LOCK, found, &text)
    }

    /// The lock as it is, if no other run has it.
    fn own_lock(&self, client: &Arc<Client>) -> Result<Option<Found>, String> {
        let found = client.find(LOCK)?;
        match found.as_ref().and_then(Owner::of) {
            Some(other) if other.run != self.run => Err(other.in_words(client)),
            _ => Ok(found),
        }
    }

    fn in_words(&self, client: &Client) -> String {
        let Owner { machine, process, until, .. } = self;
        format!(
            "{}: another backup writes there: process {process} of {machine}, until {until} at least",
            client.name()
        )
    }
}

/// By what the numbers of processes are told from those of other machines and containers, which may
/// have the same name.
fn numbers() -> String {
    // A unit may hide the second one, and a container lack the first.
    let files = ["/etc/machine-id", "/proc/sys/kernel/random/boot_id"];
    let mut machines = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let machine = machines.find(|machine| !machine.trim().is_empty());
    let namespace = fs::read_link("/proc/self/ns/pid").ok();
    // The number of a machine is not for everybody.
    let both = machine.zip(namespace);
    both.map_or_else(String::new, |both| sha256(format!("{both:?}").as_bytes()))
}

/// Whether there is such a process. One of another user may be hidden, but is found.
fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

/// See the module's text.
pub(super) struct Lock {
    client: Arc<Client>,
    owner: Owner,
    /// The thread that renews it ends when this is dropped.
    renewing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Lock {
    /// Takes the lock, and renews it from then on.
    pub(super) fn take(client: &Arc<Client>, renewed_each: Duration) -> Result<Lock, String> {
        let owner = Owner::new();
        let found = client.find(LOCK)?;
        if let Some(other) = found.as_ref().and_then(Owner::of)
            && other.is_there(&owner)
        {
            return Err(other.in_words(client));
        }
        if !owner.write(client, found.as_ref())? {
            return Err(format!("{}: another backup begins there just now", client.name()));
        }
        // A server that knows no conditions has let the last one have it.
        owner.own_lock(client)?;
        let (stop, stopped) = channel();
        let (own, theirs) = (owner.clone(), Arc::clone(client));
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(renewed_each) == Err(RecvTimeoutError::Timeout) {
                // If this fails, the next time may do; and nothing is listed without a comparison.
                let _ = own.own_lock(&theirs).and_then(|found| own.write(&theirs, found.as_ref()));
            }
        });
        Ok(Lock { client: Arc::clone(client), owner, renewing: Some((stop, thread)) })
    }

    /// Whether no other run has taken it.
    pub(super) fn check(&self) -> Result<(), String> {
        self.owner.own_lock(&self.client).map(drop)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.renewing.take() {
            drop(stop);
            let _ = thread.join();
        }
        if self.check().is_ok() {
            let key = self.client.key(LOCK);
            let action = self.client.bucket.delete_object(self.client.credentials(), &key);
            // If this fails, the next run sees that this process is gone, or waits.
            let url = action.sign(SIGNED_FOR);
            let _ = self.client.send(&Method::Delete, url.as_str(), &[], &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_is_known_to_be_gone_is() {
        let until = Moment(Moment::now().0 + 60_000);
        let own = Owner { process: 4_000_000_000, ..Owner::new() };
        let other = |process, numbers: &str, until| Owner {
            process,
            numbers: numbers.to_owned(),
            until,
            ..Owner::new()
        };
        let numbers = &*own.numbers;
        assert!(!numbers.is_empty());
        for (other, is_there) in [
            // The first process of all is of another user, for most.
            (other(1, numbers, until), true),
            (other(3_999_999_999, numbers, until), false),
            (other(own.process, numbers, until), false),
            (other(3_999_999_999, "of another container", until), true),
            (other(3_999_999_999, "", until), true),
            (other(1, numbers, Moment(0)), false),
            (other(1, numbers, Moment(Moment::now().0 + LOCKED_MS)), true),
            (other(1, numbers, Moment::parse("2099-01-01T00:00:00Z").unwrap()), false),
        ] {
            let shown = serde_json::to_string(&other).unwrap();
            assert_eq!(other.is_there(&own), is_there, "{shown}");
        }
    }
}
