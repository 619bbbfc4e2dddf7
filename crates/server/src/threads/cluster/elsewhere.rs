//! Which etcd is asked when the settings name another one while the node runs. Two that both answer
//! would elect two primaries.
//!
//! | the other one | the node | the one that is asked | so |
//! |---|---|---|---|
//! | is the same | | | it is asked there at once |
//! | is not | is in a shard | answers | the node stays, until `cluster-etcd` is set again |
//! | cannot be read | | | the node waits |
//! | can be read | is in no shard | | it is asked there at once |
//! | can be read | is in one | has answered since `cluster-etcd` was set | the node waits |
//! | can be read | is in one | has been silent since, for long enough | it is asked there |
//!
//! An etcd that is left while it answers others may have another primary. So its silence counts
//! only if it was there first: what came later may be a broken cable of this node alone.
//!
//! Silence is long enough if it has ended all leases, those of other nodes too. They may have
//! renewed theirs after this node was answered for the last time, but not much: it asks each third
//! of its own, and an etcd that still answered would have answered that. A third, the time of a
//! request and a whole one are less than twice the longest.
//!
//! A thread finds out what the other one is, one at a time: [`compare`].

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use cluster::store::Answer;
use config::Config;
use gateway::Gateway;
use process::log::Log;
use process::thread;

use super::compare::{Compared, Likeness, Other, compare};
use super::message::Message;
use super::setup;

/// How long it rests between two looks: at first, and after so many.
const REST: Duration = Duration::from_secs(1);
const LONG_REST: Duration = Duration::from_secs(10);
const SOON: u32 = 3;
/// How often the log says why the node waits, if that is what it said last.
const WARN_EACH: Duration = Duration::from_secs(30);
/// See the module's text.
pub(super) struct Elsewhere {
    /// Where etcd is asked, as the settings said it.
    asked: Vec<u8>,
    /// When that one has last said something that is believed.
    heard: Instant,
    /// The longest that a lease lasts, as far as is known.
    longest: Duration,
    wait: Option<Wait>,
    is_under_way: bool,
    log: Arc<Log>,
    tell: Sender<Message>,
}

/// The settings name another etcd.
struct Wait {
    places: Vec<u8>,
    since: Instant,
    other: Option<Other>,
    looks: u32,
    next_at: Instant,
    /// What the log says of it, since when.
    said: Option<(String, Instant)>,
    /// The one that is asked has answered after the first look.
    has_spoken: bool,
    /// The node stays.
    is_over: bool,
}

/// How it is with the node and the etcd that it asks.
#[derive(Clone, Copy)]
struct Present {
    /// The node leads, or is in a shard.
    is_bound: bool,
    /// etcd has just answered, and is believed.
    speaks: bool,
    /// It has done so since the settings name another one.
    has_spoken: bool,
    /// It has been silent for so long that all leases have ended.
    is_gone: bool,
}

/// What follows: see the module's text.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Go,
    /// `cluster-etcd` has to be set again, for this reason.
    Stay(String),
    /// It is looked again later, for this reason.
    Wait(String),
    /// Only silence is missing.
    Linger,
}

fn decide(present: Present, asked: &str, likeness: &Likeness, read: Result<bool, &String>) -> Step {
    match (likeness, read) {
        (Likeness::Same, _) => Step::Go,
        (Likeness::Another(place), _) if present.is_bound && present.speaks => Step::Stay(format!(
            "{place} is another etcd, and the one at {asked} still answers: with two, there would \
             be two primaries. This node stays at {asked}. If that one is to be left, stop it, and \
             then set cluster-etcd again"
        )),
        (_, Err(reason)) => Step::Wait(format!("what is there is not known ({reason})")),
        _ if !present.is_bound => Step::Go,
        (Likeness::Unknown(reason), _) if present.has_spoken => Step::Wait(format!(
            "whether it is the same as the one at {asked}, which has answered meanwhile, is not \
             known ({reason}). If it is another one, and the one at {asked} is stopped for good, \
             set cluster-etcd again"
        )),
        _ if present.is_gone => Step::Go,
        _ => Step::Linger,
    }
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
            longest: Duration::from_millis(config.cluster_node_timeout),
            wait: None,
            is_under_way: false,
            log: Arc::clone(log),
            tell: tell.clone(),
        }
    }

    /// The etcd that is asked has given an answer that is believed.
    pub(super) fn hear(&mut self, answer: &Answer) {
        if let Answer::Granted { ttl_s, .. } | Answer::KeptAlive { ttl_s } = answer {
            // It may give more than it is asked for.
            let ttl = Duration::from_secs(u64::try_from(*ttl_s).unwrap_or(0));
            self.longest = self.longest.max(ttl);
        }
        self.note_answer();
    }

    fn note_answer(&mut self) {
        self.heard = Instant::now();
        if let Some(wait) = self.wait.as_mut().filter(|wait| wait.looks > 0) {
            wait.has_spoken = true;
        }
    }

    /// Where etcd is asked, as the settings said it.
    pub(super) fn asked(&self) -> &[u8] {
        &self.asked
    }

    /// The addresses at which etcd is asked, and those at which it may be soon.
    pub(super) fn endpoints(&self) -> Vec<String> {
        let mut all = setup::endpoints(&self.asked);
        let waits = self.wait.iter().filter(|wait| !wait.is_over);
        for more in waits.flat_map(|wait| setup::endpoints(&wait.places)) {
            if !all.contains(&more) {
                all.push(more);
            }
        }
        all
    }

    /// CONFIG SET names an etcd, maybe the one that it has named before: all begins anew.
    pub(super) fn begin_anew(&mut self) {
        if let Some(wait) = &mut self.wait {
            wait.places.clear();
        }
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
            self.wait = Some(Wait {
                places: config.cluster_etcd.clone(),
                since: now,
                other: None,
                looks: 0,
                next_at: now,
                said: None,
                has_spoken: false,
                is_over: false,
            });
        }
        let Some(wait) = &mut self.wait else { return };
        if self.is_under_way || wait.is_over || now < wait.next_at {
            return;
        }
        let other = wait.other.take();
        let (tell, config, asked) = (self.tell.clone(), Arc::clone(config), Arc::clone(asked));
        let compare = move || {
            // Nobody hears it when the server has stopped.
            let _ = tell.send(Message::Compared(Box::new(compare(&config, &asked, other))));
        };
        match thread::start("cluster-compare", compare) {
            Ok(_) => self.is_under_way = true,
            Err(error) => self.put_off(&format!("a thread cannot be started: {error}")),
        }
    }

    /// How etcd is to be asked from now on, if elsewhere, and whether it is the same one there.
    pub(super) fn end(
        &mut self,
        found: Compared,
        config: &Config,
        (is_bound, is_believed): (bool, bool),
    ) -> Option<(Gateway, bool)> {
        self.is_under_way = false;
        let speaks = found.granted.is_ok() && is_believed;
        let patience = 2 * self.longest;
        // The settings may have changed again meanwhile.
        let is_meant = |wait: &&mut Wait| {
            let is_of_it = wait.places == found.places && found.begun >= wait.since;
            is_of_it && config.cluster_etcd == found.places
        };
        let wait = self.wait.as_mut().filter(is_meant)?;
        wait.looks = wait.looks.saturating_add(1);
        if speaks {
            self.note_answer();
        }
        let wait = self.wait.as_mut()?;
        let present = Present {
            is_bound,
            speaks,
            has_spoken: wait.has_spoken,
            is_gone: self.heard.elapsed() >= patience,
        };
        let other = match found.other {
            Ok(other) => other,
            Err(reason) => {
                self.put_off(&reason);
                return None;
            }
        };
        let asked = text(&self.asked);
        match decide(present, &asked, &found.likeness, found.read.as_ref().copied()) {
            Step::Go => {
                if found.read == Ok(false) {
                    let there = text(&found.places);
                    self.log.notice(format!("etcd at {there} has nothing of this cluster"));
                }
                return Some((other.all, found.likeness == Likeness::Same));
            }
            Step::Stay(reason) => {
                wait.is_over = true;
                self.put_off(&reason);
            }
            Step::Wait(reason) => {
                wait.other = Some(other);
                self.put_off(&reason);
            }
            Step::Linger => {
                wait.other = Some(other);
                let ms = patience.as_millis();
                self.put_off(&format!("the one at {asked} has to be silent for {ms} ms first"));
                let left = (self.heard + patience).saturating_duration_since(Instant::now());
                if let Some(wait) = &mut self.wait {
                    wait.next_at = Instant::now() + left.min(LONG_REST);
                }
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
        self.heard = Instant::now();
    }

    /// Tries it again later, and says from time to time why.
    pub(super) fn put_off(&mut self, reason: &str) {
        let Some(wait) = &mut self.wait else { return };
        wait.next_at = Instant::now() + if wait.looks <= SOON { REST } else { LONG_REST };
        let is_said = |(text, at): &(String, Instant)| text == reason && at.elapsed() < WARN_EACH;
        if !wait.said.as_ref().is_some_and(is_said) {
            wait.said = Some((reason.to_owned(), Instant::now()));
            self.log.warning(format!("etcd is not asked at {}: {reason}", text(&wait.places)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Present =
        Present { is_bound: true, speaks: false, has_spoken: false, is_gone: false };

    /// What follows if the other one has answered a read, or not.
    fn step(present: Present, likeness: &Likeness, reads: bool) -> Step {
        let why = "silent".to_owned();
        decide(present, "http://a", likeness, if reads { Ok(true) } else { Err(&why) })
    }

    fn unknown() -> Likeness {
        Likeness::Unknown("no answer".to_owned())
    }

    #[test]
    fn the_same_is_asked_whatever_else_is_so() {
        for speaks in [false, true] {
            let present = Present { speaks, has_spoken: speaks, ..BOUND };
            assert_eq!(step(present, &Likeness::Same, false), Step::Go);
        }
    }

    #[test]
    fn another_is_given_up_if_the_present_one_answers() {
        let another = Likeness::Another("http://b".to_owned());
        let answers = Present { speaks: true, has_spoken: true, ..BOUND };
        for present in [answers, Present { is_gone: true, ..answers }] {
            let Step::Stay(text) = step(present, &another, true) else { panic!() };
            assert!(text.contains("http://b") && text.contains("set cluster-etcd again"), "{text}");
        }
    }

    #[test]
    fn silence_counts_only_from_the_first_look_on() {
        assert_eq!(step(BOUND, &unknown(), true), Step::Linger);
        let gone = Present { is_gone: true, ..BOUND };
        assert_eq!(step(gone, &unknown(), true), Step::Go);
        // One that is not believed is of no more use than one that is silent.
        assert_eq!(step(gone, &Likeness::Another(String::new()), true), Step::Go);
        for speaks in [false, true] {
            let present = Present { speaks, has_spoken: true, ..gone };
            let Step::Wait(text) = step(present, &unknown(), true) else { panic!() };
            assert!(text.contains("no answer") && text.contains("If it is another one"), "{text}");
        }
    }

    #[test]
    fn nobody_goes_where_nothing_answers() {
        for is_bound in [false, true] {
            let present = Present { is_bound, is_gone: true, ..BOUND };
            let Step::Wait(text) = step(present, &unknown(), false) else { panic!() };
            assert!(text.contains("silent") && !text.contains("stop"), "{text}");
        }
    }

    #[test]
    fn a_node_without_a_shard_goes_at_once() {
        let free = Present { is_bound: false, has_spoken: true, ..BOUND };
        assert_eq!(step(free, &unknown(), true), Step::Go);
        let another = Likeness::Another("http://b".to_owned());
        assert_eq!(step(Present { speaks: true, ..free }, &another, true), Step::Go);
    }
}
