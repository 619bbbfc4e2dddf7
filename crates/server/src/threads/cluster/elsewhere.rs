//! Which etcd is asked when the settings name another one while the node runs. Two that both answer
//! would elect two primaries, so a node leaves the one it asks only when the other one is the same,
//! or when the one it asks has been silent for so long that it has ended this node's lease.
//!
//! Two addresses are those of one etcd if the second knows a lease that the first has just granted.
//! The number that etcd gives itself (`cluster_id`) does not say so: it comes from the addresses of
//! its peers, so a copy may have the same, and strangers with usual settings do. A thread finds
//! that out, one at a time.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use cluster::store::{Answer, Failure, Request};
use config::Config;
use gateway::Gateway;
use process::log::Log;
use process::thread;

use super::message::{Compared, Message};
use super::setup;

/// How long it rests between two looks.
const REST: Duration = Duration::from_secs(1);
/// How often the log says why the node waits.
const WARN_EACH: Duration = Duration::from_secs(30);
/// How long the lease lasts that is granted to compare, if it cannot be revoked.
const LEASE_S: i64 = 60;

/// See the module's text.
pub(super) struct Elsewhere {
    /// Where etcd is asked, as the settings said it.
    asked: Vec<u8>,
    /// When that one has last said something that is believed.
    heard: Instant,
    /// After which silence it is left.
    patience: Duration,
    wait: Option<Wait>,
    is_under_way: bool,
    log: Arc<Log>,
    tell: Sender<Message>,
}

/// The settings name another etcd.
struct Wait {
    places: Vec<u8>,
    next_at: Instant,
    warned_at: Option<Instant>,
}

fn text(places: &[u8]) -> String {
    String::from_utf8_lossy(places).into_owned()
}

impl Elsewhere {
    /// etcd is asked where these settings say.
    pub(super) fn new(config: &Config, log: &Arc<Log>, tell: &Sender<Message>) -> Elsewhere {
        Elsewhere {
            asked: config.cluster_etcd.clone(),
            heard: Instant::now(),
            patience: Duration::from_millis(config.cluster_node_timeout),
            wait: None,
            is_under_way: false,
            log: Arc::clone(log),
            tell: tell.clone(),
        }
    }

    /// The etcd that is asked has said something that is believed.
    pub(super) fn hear(&mut self) {
        self.heard = Instant::now();
    }

    /// The addresses at which etcd is asked, and those at which it is about to be.
    pub(super) fn endpoints(&self) -> Vec<String> {
        let mut all = setup::endpoints(&self.asked);
        for more in self.wait.iter().flat_map(|wait| setup::endpoints(&wait.places)) {
            if !all.contains(&more) {
                all.push(more);
            }
        }
        all
    }

    /// Begins to look whether to ask elsewhere, if the settings say so.
    pub(super) fn look(&mut self, config: &Arc<Config>, asked: &Arc<Gateway>) {
        if config.cluster_etcd == self.asked {
            if self.wait.take().is_some() {
                self.log.notice(format!("etcd is asked at {} as before", text(&self.asked)));
            }
            return;
        }
        let now = Instant::now();
        if self.wait.as_ref().is_none_or(|wait| wait.places != config.cluster_etcd) {
            let places = config.cluster_etcd.clone();
            self.wait = Some(Wait { places, next_at: now, warned_at: None });
        }
        if self.is_under_way || self.wait.as_ref().is_some_and(|wait| now < wait.next_at) {
            return;
        }
        let (tell, config, asked) = (self.tell.clone(), Arc::clone(config), Arc::clone(asked));
        let compare = move || {
            // Nobody hears it when the server has stopped.
            let _ = tell.send(Message::Compared(Box::new(compare(&config, &asked))));
        };
        match thread::start("cluster-compare", compare) {
            Ok(_) => self.is_under_way = true,
            Err(error) => self.put_off(&format!("a thread cannot be started: {error}")),
        }
    }

    /// How etcd is to be asked from now on, if elsewhere, and whether it is the same one there.
    pub(super) fn end(&mut self, found: Compared, is_believed: bool) -> Option<(Gateway, bool)> {
        self.is_under_way = false;
        let holds = found.answers && is_believed;
        if holds {
            self.hear();
        }
        // The settings may have changed again meanwhile.
        self.wait.as_ref().filter(|wait| wait.places == found.places)?;
        match (found.gateway, found.is_same) {
            (Err(reason), _) => self.put_off(&reason),
            (Ok(gateway), Ok(())) => return Some((gateway, true)),
            (Ok(gateway), Err(_)) if self.heard.elapsed() >= self.patience => {
                return Some((gateway, false));
            }
            // It goes there as soon as the present one has been silent for long enough.
            (Ok(_), Err(_)) if !holds => self.rest(),
            (Ok(_), Err(reason)) => {
                let (asked, patience) = (text(&self.asked), self.patience.as_millis());
                self.put_off(&format!(
                    "{reason}, and the one at {asked} still answers, so this node goes on there: \
                     with two, there would be two primaries. Stop the one at {asked}, and this \
                     node leaves it {patience} ms later; or set cluster-etcd back"
                ));
            }
        }
        None
    }

    /// It is asked there now.
    pub(super) fn arrive(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.log.notice(format!("etcd is asked at {}", text(&wait.places)));
            self.asked = wait.places;
        }
        self.hear();
    }

    fn rest(&mut self) {
        if let Some(wait) = &mut self.wait {
            wait.next_at = Instant::now() + REST;
        }
    }

    /// Tries it again later, and says from time to time why.
    pub(super) fn put_off(&mut self, reason: &str) {
        self.rest();
        let Some(wait) = &mut self.wait else { return };
        if wait.warned_at.is_none_or(|at| at.elapsed() >= WARN_EACH) {
            wait.warned_at = Some(Instant::now());
            self.log.warning(format!("etcd is not asked at {}: {reason}", text(&wait.places)));
        }
    }
}

/// Looks whether the etcd that is asked answers, and whether all that is named is the same.
fn compare(config: &Config, asked: &Gateway) -> Compared {
    let limit = setup::patience(config);
    let granted = asked.ask(&Request::Grant { ttl_s: LEASE_S }, limit);
    let is_same = match granted {
        Ok(Answer::Granted { lease, .. }) => {
            let is_same = know_lease(config, lease);
            // If that fails, it ends by itself.
            let _ = asked.ask(&Request::Revoke { lease }, limit);
            is_same
        }
        _ => Err("the present one does not answer".to_owned()),
    };
    Compared {
        places: config.cluster_etcd.clone(),
        answers: granted.is_ok(),
        gateway: Gateway::open(setup::of_etcd(config)),
        is_same,
    }
}

/// Whether every member that the settings name, as far as it answers, knows a lease. One may be
/// another etcd than the rest.
fn know_lease(config: &Config, lease: i64) -> Result<(), String> {
    let (all, limit) = (setup::of_etcd(config), setup::patience(config));
    let (mut is_known, mut silent) = (false, String::new());
    for place in &all.endpoints {
        let alone = gateway::Config { endpoints: vec![place.clone()], ..all.clone() };
        match Gateway::open(alone)?.ask(&Request::KeepAlive { lease }, limit) {
            Ok(Answer::KeptAlive { ttl_s }) if ttl_s > 0 => is_known = true,
            Ok(_) => return Err(format!("{place} is another etcd")),
            Err(Failure::NotDone(text) | Failure::Unknown(text)) => silent = text,
        }
    }
    if is_known { Ok(()) } else { Err(format!("whether it is the same is not known ({silent})")) }
}
