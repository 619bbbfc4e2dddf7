//! What etcd is asked: two threads carry requests out, one for leases and one for all else, so that
//! no lease waits for a transaction; and a thread for each watch.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use cluster::control::{Event, RequestId};
use cluster::store::{Failure, Request, Revision};
use gateway::{Gateway, Stop, WatchEnd, Watched};
use parking_lot::Mutex;
use process::log::Log;
use process::thread;

use super::message::Message;

/// A request that has waited this long for its thread is not sent any more: what it was to be
/// compared with may be old.
const STALE: Duration = Duration::from_secs(1);
/// How long a watch that was lost rests before it says so.
const REST: Duration = Duration::from_millis(100);

/// So many texts of failures are told apart: each member has its own.
const TEXTS: usize = 16;

/// A request, and since when it waits.
type Waiting = (RequestId, Request, Instant);

/// See the module's text.
pub(super) struct Etcd {
    gateway: Arc<Gateway>,
    tell: Sender<Message>,
    leases: Sender<Waiting>,
    others: Sender<Waiting>,
    watch: Arc<Stop>,
    complaints: Arc<Complaints>,
}

/// What the log says of failures of one kind: each text once, until something succeeds.
struct Complaints {
    log: Arc<Log>,
    /// How lines begin.
    about: &'static str,
    said: Arc<Said>,
}

/// What was said of all kinds: the text, of what it was said first, and of what else it is true.
type Said = Mutex<BTreeMap<String, Vec<&'static str>>>;

impl Complaints {
    fn new(log: &Arc<Log>, about: &'static str, said: &Arc<Said>) -> Arc<Complaints> {
        Arc::new(Complaints { log: Arc::clone(log), about, said: Arc::clone(said) })
    }

    fn say(&self, text: &str) {
        let mut said = self.said.lock();
        if said.len() < TEXTS || said.contains_key(text) {
            let about = said.entry(text.to_owned()).or_default();
            if about.is_empty() {
                self.log.warning(format!("{}: {text}", self.about));
            }
            if !about.contains(&self.about) {
                about.push(self.about);
            }
        }
    }

    fn end(&self) {
        let mut said = self.said.lock();
        let mut was_said = false;
        said.retain(|_, about| {
            was_said |= about.first() == Some(&self.about);
            about.retain(|own| *own != self.about);
            !about.is_empty()
        });
        if was_said {
            self.log.notice(format!("{}: that is over", self.about));
        }
    }
}

impl Etcd {
    /// Starts the threads. Each request is answered within `limit`, once it is sent.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub(super) fn start(
        gateway: Gateway,
        limit: Duration,
        tell: &Sender<Message>,
        log: &Arc<Log>,
    ) -> io::Result<Etcd> {
        let gateway = Arc::new(gateway);
        let said = Arc::<Said>::default();
        let of_leases = Complaints::new(log, "etcd does nothing for the lease", &said);
        let leases = worker("cluster-leases", &gateway, limit, tell, of_leases)?;
        let of_others = Complaints::new(log, "etcd does not do what it is asked", &said);
        let others = worker("cluster-etcd", &gateway, limit, tell, of_others)?;
        let complaints = Complaints::new(log, "etcd cannot be watched", &said);
        Ok(Etcd { gateway, tell: tell.clone(), leases, others, watch: Arc::default(), complaints })
    }

    /// By which it is asked.
    pub(super) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Asks it. The answer comes as an event.
    pub(super) fn ask(&self, request: RequestId, what: Request) {
        let is_of_lease = !matches!(what, Request::Read { .. } | Request::Transaction(_));
        let to = if is_of_lease { &self.leases } else { &self.others };
        // A thread ends with this side alone.
        let _ = to.send((request, what, Instant::now()));
    }

    /// Watches, in place of the watch before.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(super) fn watch(
        &mut self,
        watch: RequestId,
        prefix: String,
        from: Revision,
    ) -> io::Result<()> {
        self.watch.stop();
        let stop = Arc::<Stop>::default();
        self.watch = Arc::clone(&stop);
        let (gateway, tell) = (Arc::clone(&self.gateway), self.tell.clone());
        let complaints = Arc::clone(&self.complaints);
        let hear = move || {
            let say = |event| {
                // Nobody hears it when the server has stopped.
                let _ = tell.send(Message::Heard(event));
            };
            let mut hear = |watched| match watched {
                Watched::Events { revision, events } => {
                    say(Event::Watched { watch, revision, events });
                }
                Watched::Progress { revision } => {
                    say(Event::Watched { watch, revision, events: Vec::new() });
                }
                Watched::Open { .. } => complaints.end(),
                Watched::Broken(_) => {}
            };
            let end = gateway.watch(&prefix, from, &stop, &mut hear);
            if let WatchEnd::Lost(reason) = &end {
                complaints.say(reason);
                std::thread::sleep(REST);
            }
            if !matches!(end, WatchEnd::Stopped) {
                say(Event::WatchEnded { watch });
            }
        };
        thread::start("cluster-watch", hear).map(drop)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.watch.stop();
    }
}

/// A thread that carries out one request after the other.
fn worker(
    name: &str,
    gateway: &Arc<Gateway>,
    limit: Duration,
    tell: &Sender<Message>,
    complaints: Arc<Complaints>,
) -> io::Result<Sender<Waiting>> {
    let (sender, receiver) = mpsc::channel::<Waiting>();
    let (gateway, tell) = (Arc::clone(gateway), tell.clone());
    thread::start(name, move || {
        for (request, what, since) in receiver {
            let result = match since.elapsed() < STALE {
                true => {
                    let result = gateway.ask(&what, limit);
                    match &result {
                        Err(failure) => complaints.say(&failure.to_string()),
                        Ok(_) => complaints.end(),
                    }
                    result
                }
                false => Err(Failure::NotDone("etcd has not answered earlier requests".into())),
            };
            if tell.send(Message::Heard(Event::Answered { request, result })).is_err() {
                break;
            }
        }
    })?;
    Ok(sender)
}
