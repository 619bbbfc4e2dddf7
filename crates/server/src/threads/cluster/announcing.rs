//! What others shall know of this node after its settings have changed. Its own address may have to
//! be looked up, which has no time limit and must not keep the cluster's thread: a thread of its
//! own does that, one at a time.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use cluster::control::{Announced, Event};
use config::Config;
use process::log::Log;
use process::thread;

use super::message::Message;
use super::setup;

/// How long it rests after it could not find out what to announce.
const REST: Duration = Duration::from_secs(1);

/// See the module's text.
pub(super) struct Announcing {
    /// The settings by which the node has announced itself.
    announced: Arc<Config>,
    is_under_way: bool,
    next_at: Instant,
    /// Why it could not, as the log says already.
    said: Option<String>,
    log: Arc<Log>,
    tell: Sender<Message>,
}

impl Announcing {
    /// The node has announced itself by these settings.
    pub(super) fn new(
        announced: Arc<Config>,
        log: &Arc<Log>,
        tell: &Sender<Message>,
    ) -> Announcing {
        let (log, tell) = (Arc::clone(log), tell.clone());
        let next_at = Instant::now();
        Announcing { announced, is_under_way: false, next_at, said: None, log, tell }
    }

    /// Begins to find out what is to be announced, if that is by other settings now. etcd is asked
    /// at these addresses, whatever the settings name.
    pub(super) fn look(&mut self, config: Arc<Config>, etcd: &[u8]) {
        if self.is_under_way || Arc::ptr_eq(&config, &self.announced) {
            return;
        }
        if setup::announces_alike(&config, &self.announced) {
            self.announced = config;
            return;
        }
        if Instant::now() < self.next_at {
            return;
        }
        let (tell, etcd) = (self.tell.clone(), etcd.to_owned());
        let find_out = move || {
            let announced = setup::announced(&config, &etcd);
            // Nobody hears it when the server has stopped.
            let _ = tell.send(Message::Announces { config, announced });
        };
        match thread::start("cluster-address", find_out) {
            Ok(_) => self.is_under_way = true,
            Err(error) => self.put_off(format!("a thread cannot be started: {error}")),
        }
    }

    /// This is to be announced by these settings. They may have changed again meanwhile.
    pub(super) fn end(
        &mut self,
        config: Arc<Config>,
        announced: Result<Announced, String>,
    ) -> Option<Event> {
        self.is_under_way = false;
        match announced {
            Ok(announced) => {
                (self.announced, self.said) = (config, None);
                Some(Event::Announces(announced))
            }
            Err(reason) => {
                self.put_off(reason);
                None
            }
        }
    }

    fn put_off(&mut self, reason: String) {
        self.next_at = Instant::now() + REST;
        if self.said.as_ref() != Some(&reason) {
            self.log.warning(format!("The node announces what it did before: {reason}"));
            self.said = Some(reason);
        }
    }
}
