//! The events at a target, each at its time. One thread does it all: it starts and ends processes
//! itself, and leaves waiting for replies to threads of its own.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::case::{Action, Case, Event, Load};
use super::running::{self, ActiveLoad};
use super::{attaching, backing_up, moving, storm};
use crate::redact::Redactor;
use crate::results::{self, LoadRecording};
use crate::targets::connection::{Connection, Endpoint, in_words, info_fields};
use crate::targets::server::Server;
use crate::targets::{Interrupt, cpus};

/// How long a command may take to answer, and a save to finish.
const PATIENCE: Duration = Duration::from_secs(120);
/// The note about an event that ended with the run.
const NOT_OVER: &str = "; not over when the run was";
/// The pause between two checks of whether a save is over, or a server is back.
const POLL: Duration = Duration::from_millis(20);

/// The events of a run.
pub(crate) struct Events {
    zero: Instant,
    waiting: Vec<Event>,
    pending: Vec<(usize, PendingEvent)>,
    done: Vec<results::Event>,
    loads: Vec<LoadRecording>,
    /// Where the lab's own programs run, if anywhere in particular.
    cpus: Vec<usize>,
    /// When the server was broken, in seconds from zero.
    faults: Vec<f64>,
    /// Called before and after each event: a check of the data begins anew.
    turn: Turn,
    halt: Interrupt,
    last_poll: Instant,
    /// The process that was stopped last.
    stopped: Option<usize>,
}

/// Told that something is done to the server.
pub(crate) type Turn = Arc<dyn Fn() + Send + Sync>;

/// Events that have begun and are not over.
enum PendingEvent {
    /// A thread waits for the outcome.
    Outcome(JoinHandle<Outcome>),
    /// A load runs.
    Burst(ActiveLoad),
    /// This process is started again at this time.
    Restart(f64, usize),
    /// This process is starting.
    Ready(usize),
    /// This process goes on at this time.
    Continue(f64, usize),
    /// The link is mended at this time.
    Mend(f64),
}

/// The result of an event.
struct Outcome {
    text: String,
    lasts: Lasts,
}

/// How long an event is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// A moment.
    No,
    /// It was over when its outcome was known.
    Over,
    /// It goes on; its end is unknown.
    On,
}

impl Events {
    /// The events of a case, whose times count from `zero`.
    pub(crate) fn new(case: &Case, zero: Instant, turn: Turn) -> Self {
        // What has to do with the server from without comes from where its clients are, and takes
        // nothing of the server's own processors.
        let cpus = case.loads.first().map(|load| load.cpus.clone()).unwrap_or_default();
        Events {
            zero,
            waiting: case.events.iter().rev().cloned().collect(),
            pending: Vec::new(),
            done: Vec::new(),
            loads: Vec::new(),
            cpus,
            faults: Vec::new(),
            turn,
            halt: Interrupt::default(),
            last_poll: zero,
            stopped: None,
        }
    }

    /// Begins events that are due and ends those that are over. Must be called often.
    pub(crate) fn tick(&mut self, server: &mut Server) {
        while self.waiting.last().is_some_and(|event| event.at <= self.seconds()) {
            if let Some(event) = self.waiting.pop() {
                self.begin(event, server);
            }
        }
        for (index, pending) in std::mem::take(&mut self.pending) {
            if let Some(pending) = self.follow(index, pending, server) {
                self.pending.push((index, pending));
            }
        }
    }

    /// Whether something is not over yet.
    pub(crate) fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// When the server was broken, each time, in seconds from zero.
    pub(crate) fn faults(&self) -> &[f64] {
        &self.faults
    }

    /// When all data was deleted on purpose, in seconds from zero: when that was over.
    pub(crate) fn emptied(&self) -> Vec<f64> {
        let flushes = self.done.iter().filter(|event| {
            let name = event.name.to_ascii_uppercase();
            name.starts_with("FLUSHALL") || name.starts_with("FLUSHDB")
        });
        flushes.filter_map(|event| event.until).collect()
    }

    /// Gives up events that are not over, and returns all events and the recordings of their loads.
    pub(crate) fn finish(
        mut self,
        server: &mut Server,
    ) -> (Vec<results::Event>, Vec<LoadRecording>) {
        self.halt.set();
        for (index, pending) in std::mem::take(&mut self.pending) {
            let now = self.seconds();
            let lasts = match pending {
                PendingEvent::Outcome(thread) => match thread.join() {
                    Ok(outcome) => {
                        self.done[index].outcome.push_str(&outcome.text);
                        outcome.lasts
                    }
                    Err(_) => Lasts::On,
                },
                PendingEvent::Burst(active_load) => {
                    active_load.stop();
                    self.land(index, active_load);
                    self.done[index].outcome.push_str(NOT_OVER);
                    Lasts::Over
                }
                PendingEvent::Continue(_, place) => {
                    let _ = server.go_on(place);
                    self.done[index].outcome.push_str(NOT_OVER);
                    Lasts::Over
                }
                PendingEvent::Mend(_) => {
                    server.cut_link(false);
                    self.done[index].outcome.push_str(NOT_OVER);
                    Lasts::Over
                }
                PendingEvent::Restart(..) | PendingEvent::Ready(_) => {
                    self.done[index].outcome.push_str(NOT_OVER);
                    Lasts::On
                }
            };
            self.lasted(index, lasts, now);
        }
        for event in self.waiting.iter().rev() {
            self.done.push(results::Event {
                at: event.at,
                until: None,
                name: event.action.name(),
                outcome: "not done: the run had ended".to_owned(),
                done: false,
                unfinished: false,
            });
        }
        (self.done, self.loads)
    }

    fn seconds(&self) -> f64 {
        self.zero.elapsed().as_secs_f64()
    }

    fn begin(&mut self, event: Event, server: &mut Server) {
        let index = self.done.len();
        let name = event.action.name();
        let leaves_down =
            matches!(event.action, Action::Kill { .. } | Action::Stop { .. } | Action::Cut { .. });
        (self.turn)();
        self.done.push(results::Event::new(self.seconds(), None, name, ""));
        match self.act(event.action, event.of, server) {
            Ok((text, pending)) => {
                self.done[index].outcome = text;
                // Until something ends it.
                self.done[index].unfinished = leaves_down && pending.is_none();
                self.pending.extend(pending.map(|pending| (index, pending)));
            }
            Err(reason) => {
                self.done[index].outcome = format!("not done: {reason}");
                self.done[index].done = false;
            }
        }
        (self.turn)();
    }

    /// Notes how long an event was.
    fn lasted(&mut self, index: usize, lasts: Lasts, now: f64) {
        let event = &mut self.done[index];
        event.until = (lasts == Lasts::Over).then_some(now);
        event.unfinished = lasts == Lasts::On;
    }

    /// A stopped process goes on, or is gone: stops that lasted until now are over.
    fn end_stops(&mut self, place: usize, now: f64) {
        let is_of = |pending: &PendingEvent| matches!(pending, PendingEvent::Continue(_, own) if *own == place);
        let (stops, others) =
            std::mem::take(&mut self.pending).into_iter().partition(|(_, pending)| is_of(pending));
        self.pending = others;
        let stops: Vec<(usize, PendingEvent)> = stops;
        let waiting = stops.into_iter().map(|(index, _)| index);
        let name = Action::Stop { seconds: None }.name();
        let endless = self.done.iter().enumerate();
        let endless = endless.filter(|(_, event)| event.unfinished && event.name == name);
        let all: Vec<usize> = waiting.chain(endless.map(|(index, _)| index)).collect();
        for index in all {
            self.lasted(index, Lasts::Over, now);
        }
    }

    /// Begins an event: returns its immediate result, and what is to follow.
    fn act(
        &mut self,
        action: Action,
        of: Option<usize>,
        server: &mut Server,
    ) -> Result<(String, Option<PendingEvent>), String> {
        let needs_own =
            matches!(action, Action::Kill { .. } | Action::Stop { .. } | Action::Continue);
        if needs_own && !server.is_ours() {
            return Err("the lab has not started this server".to_owned());
        }
        let place = match of {
            Some(place) => place,
            // The one that was stopped.
            None if matches!(action, Action::Continue) => {
                self.stopped.unwrap_or(server.store_place())
            }
            None if needs_own => server.place_to_break()?,
            None => server.store_place(),
        };
        // Of several nodes, which one it was.
        let name = match of.is_some() || server.cluster().is_some() {
            true => format!("{}: ", server.name_of(place)),
            false => String::new(),
        };
        let now = self.seconds();
        let (endpoint, halt) = (server.endpoint().clone(), self.halt.clone());
        Ok(match action {
            Action::Command(words) => {
                let turn = Arc::clone(&self.turn);
                let thread = std::thread::spawn(move || command(&endpoint, &words, &halt, &turn));
                (String::new(), Some(PendingEvent::Outcome(thread)))
            }
            Action::Kill { restart_after } => {
                let pid = server.kill(place).ok_or_else(|| "there is no process".to_owned())?;
                self.faults.push(now);
                self.end_stops(place, now);
                let restart =
                    restart_after.map(|seconds| PendingEvent::Restart(now + seconds, place));
                (format!("{name}process {pid} killed"), restart)
            }
            Action::Stop { seconds } => {
                server.stop(place).map_err(|error| error.to_string())?;
                self.faults.push(now);
                self.stopped = Some(place);
                let go_on = seconds.map(|seconds| PendingEvent::Continue(now + seconds, place));
                (format!("{name}stopped"), go_on)
            }
            Action::Continue => {
                server.go_on(place).map_err(|error| error.to_string())?;
                self.end_stops(place, now);
                (format!("{name}goes on"), None)
            }
            Action::Cut { seconds } => {
                if !server.cut_link(true) {
                    return Err("the store has no link".to_owned());
                }
                self.faults.push(now);
                ("cut".to_owned(), seconds.map(|seconds| PendingEvent::Mend(now + seconds)))
            }
            Action::Move => {
                let to = server.own_endpoint().clone();
                self.act_from_without(move || moving::move_all(&endpoint, &to, &halt))
            }
            Action::MoveSlots(count) => {
                let cluster = server.cluster().ok_or("it is no cluster")?.clone();
                self.act_from_without(move || cluster.move_slots(count, &halt))
            }
            Action::Backup => self.act_from_without(move || backing_up::back_up(&endpoint, &halt)),
            Action::Attach { replica, .. } => {
                let replica = server.endpoint_of(Some(replica)).clone();
                let thread = std::thread::spawn(move || {
                    let (text, lasts) = match attaching::attach(&replica, &endpoint, &halt) {
                        Ok(Some(seconds)) => (format!("online after {seconds:.3} s"), Lasts::Over),
                        Ok(None) => ("not online yet".to_owned(), Lasts::On),
                        Err(reason) => (reason, Lasts::No),
                    };
                    Outcome { text, lasts }
                });
                (String::new(), Some(PendingEvent::Outcome(thread)))
            }
            Action::ConnectionStorm { connections, seconds } => self.act_from_without(move || {
                let seen = storm::storm(&endpoint, connections, seconds, &halt);
                seen.map(|seen| seen.in_words()).map_err(|error| error.to_string())
            }),
            Action::HotKeyBurst(load) => {
                let Load { mut plan, cpus, name, .. } = *load;
                plan.address = running::address(&endpoint);
                (
                    String::new(),
                    Some(PendingEvent::Burst(ActiveLoad::start(name, plan, cpus, 1, 0.0, None))),
                )
            }
        })
    }

    /// Begins what has to do with the server from without, and lasts: by a thread of its own, from
    /// the processors of the clients.
    fn act_from_without(
        &self,
        work: impl FnOnce() -> Result<String, String> + Send + 'static,
    ) -> (String, Option<PendingEvent>) {
        let cpus = self.cpus.clone();
        let thread = std::thread::spawn(move || {
            let done = cpus::within(&cpus, work).unwrap_or_else(|error| Err(error.to_string()));
            match done {
                Ok(text) => Outcome { text, lasts: Lasts::Over },
                Err(reason) => Outcome { text: reason, lasts: Lasts::No },
            }
        });
        (String::new(), Some(PendingEvent::Outcome(thread)))
    }

    /// Checks whether something is over; returns it if it is not.
    fn follow(
        &mut self,
        index: usize,
        pending: PendingEvent,
        server: &mut Server,
    ) -> Option<PendingEvent> {
        let now = self.seconds();
        let unfinished = self.end(index, pending, server, now);
        if unfinished.is_none() {
            (self.turn)();
        }
        unfinished
    }

    /// Ends events that are over, and returns the others.
    fn end(
        &mut self,
        index: usize,
        pending: PendingEvent,
        server: &mut Server,
        now: f64,
    ) -> Option<PendingEvent> {
        match pending {
            PendingEvent::Outcome(thread) if thread.is_finished() => {
                if let Ok(outcome) = thread.join() {
                    self.done[index].outcome = outcome.text;
                    self.lasted(index, outcome.lasts, now);
                }
                None
            }
            PendingEvent::Burst(active_load) if active_load.is_finished() => {
                self.done[index].until = Some(now);
                self.land(index, active_load);
                None
            }
            PendingEvent::Restart(at, place) if at <= now => match server.launch(place) {
                Ok(()) => Some(PendingEvent::Ready(place)),
                Err(error) => {
                    self.done[index].outcome = error.to_string();
                    self.lasted(index, Lasts::On, now);
                    None
                }
            },
            PendingEvent::Ready(place) if self.last_poll.elapsed() >= POLL => {
                self.last_poll = Instant::now();
                if !server.is_ready(place) {
                    return Some(PendingEvent::Ready(place));
                }
                let until = self.seconds();
                self.done[index].until = Some(until);
                let took = until - self.done[index].at;
                self.done[index].outcome.push_str(&format!("; it answers again after {took:.2} s"));
                None
            }
            PendingEvent::Continue(at, place) if at <= now => {
                self.done[index].until = Some(now);
                if let Err(error) = server.go_on(place) {
                    self.done[index].outcome = error.to_string();
                }
                None
            }
            PendingEvent::Mend(at) if at <= now => {
                server.cut_link(false);
                self.done[index].until = Some(now);
                None
            }
            unfinished => Some(unfinished),
        }
    }

    /// Keeps the recording of a burst.
    fn land(&mut self, index: usize, active_load: ActiveLoad) {
        match active_load.finish() {
            Ok(load) => {
                let recording = &load.recording;
                self.done[index].outcome = format!("{:.0} requests/s", recording.rate());
                self.loads.push(load);
            }
            Err(error) => self.done[index].outcome = error,
        }
    }
}

impl Action {
    /// Its name in tables and charts; secrets are withheld.
    pub(crate) fn name(&self) -> String {
        match self {
            Action::Command(words) => Redactor::default().words(words).join(" "),
            Action::Kill { .. } => "kill -9".to_owned(),
            Action::Stop { .. } => "SIGSTOP".to_owned(),
            Action::Continue => "SIGCONT".to_owned(),
            Action::Cut { .. } => "cut link".to_owned(),
            Action::Move => moving::MOVE.to_owned(),
            Action::MoveSlots(_) => moving::MOVE_SLOTS.to_owned(),
            Action::Backup => backing_up::BACKUP.to_owned(),
            Action::Attach { name, .. } => format!("{name}{}", attaching::ATTACHES),
            Action::ConnectionStorm { connections, .. } => format!("{connections} connections"),
            Action::HotKeyBurst(_) => "hot-key burst".to_owned(),
        }
    }
}

/// Sends a command; of one that begins a save, waits until the save is over.
fn command(endpoint: &Endpoint, words: &[String], halt: &Interrupt, turn: &Turn) -> Outcome {
    let answer = endpoint.connect(PATIENCE).and_then(|mut connection| {
        let reply = connection.call(words)?;
        // Data written from here on is not affected by the command.
        turn();
        Ok((connection, reply))
    });
    let (mut connection, reply) = match answer {
        Ok(answer) => answer,
        Err(error) => return Outcome { text: error.to_string(), lasts: Lasts::No },
    };
    let name = words.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let saves = name == "BGSAVE" || name == "BGREWRITEAOF";
    if reply.is_error() || !saves {
        // SAVE, FLUSHALL and similar commands last as long as their reply takes.
        let lasted = matches!(name.as_str(), "SAVE" | "FLUSHALL" | "FLUSHDB" | "DEBUG");
        let lasts = if lasted && !reply.is_error() { Lasts::Over } else { Lasts::No };
        return Outcome { text: in_words(&reply), lasts };
    }
    let start = Instant::now();
    while !halt.is_set() && start.elapsed() < PATIENCE {
        std::thread::sleep(POLL);
        match save_ended(&mut connection, &name) {
            Ok(None) => {}
            Ok(Some(status)) => {
                let text = format!("{}; {status}", in_words(&reply));
                return Outcome { text, lasts: Lasts::Over };
            }
            // The server that saved is gone, and the save with it.
            Err(error) => return Outcome { text: error.to_string(), lasts: Lasts::Over },
        }
    }
    Outcome { text: format!("{}; not over yet", in_words(&reply)), lasts: Lasts::On }
}

/// How the last save or rewrite ended, when none is running.
fn save_ended(connection: &mut Connection, name: &str) -> std::io::Result<Option<String>> {
    let reply = connection.call(&["INFO", "persistence"])?;
    let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
    let field = |name: &str| {
        info_fields(&text).find(|(field, _)| *field == name).map_or("", |(_, value)| value.trim())
    };
    let (going_on, status) = if name == "BGSAVE" {
        (field("rdb_bgsave_in_progress") == "1", field("rdb_last_bgsave_status"))
    } else {
        let scheduled = field("aof_rewrite_scheduled") == "1";
        (scheduled || field("aof_rewrite_in_progress") == "1", field("aof_last_bgrewrite_status"))
    };
    Ok((!going_on).then(|| format!("ended: {status}")))
}
