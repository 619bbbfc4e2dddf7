//! One move of slots, as its source sees it.
//!
//! 1. The target begins an import: it deletes what it has in the slots, and hides them.
//! 2. A cut of the slots goes out as commands. The journal is kept from the cut on.
//! 3. What the journal has of the slots goes out, until little is left.
//! 4. The slots are held: commands for them wait. The last of the journal goes out, and the target
//!    says that it has everything.
//! 5. The slots change their owner, and the held commands go on: they are sent to the target.
//! 6. The keys are deleted here, by another thread. In a cluster, a node does so whenever it finds
//!    keys in slots of other shards.
//!
//! Before the last step of 4 a connection that breaks only means to begin anew.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use engine::changes::slots::{Concern, concern};
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::journal::backlog::Backlog;
use engine::journal::batch::select_command;
use engine::session::attachment::Attachment;
use engine::session::leaving::{Leaving, Step};
use engine::session::slot_moves::MoveCounts;
use persist::cuts::{CutRight, Reader};
use persist::snapshot::{self, Written};
use resp::args::OwnedArguments;
use resp::client::{Value, encode_command};
use store::cut::Walker;
use store::gate::Access;

use super::job::{Move, MoveEvent, Notify, Order, Shared};
use crate::threads::moving::target::{Address, Patience, Target};
use crate::threads::wire::{SILENCE, Trouble, Wire};

/// Records of the journal that are read at once.
const RECORDS: usize = 512;
/// With this many bytes of the journal left, the slots may be held. So many may be on their way to
/// the target, or more if all of them have gone out since a short time: where the way is long, many
/// always are.
const NEAR_BYTES: u64 = 64 * 1024;
/// That time at first, and at most. Clients wait for longer than it: it grows while a move follows.
const SHORT_LAG: Duration = Duration::from_millis(3);
const LONGEST_LAG: Duration = Duration::from_millis(100);
/// It grows by one millisecond in so many.
const LAG_GROWS_IN: u32 = 50;
/// A target that has not caught up is sent no more than so many bytes that it has not reached.
const MOST_AHEAD: u64 = 256 * 1024;
/// Slots are held no longer than this in vain; the move then goes on without holding them.
const LONGEST_HOLD: Duration = Duration::from_millis(500);
/// The pause after that.
const PAUSE_OF_HOLDS: Duration = Duration::from_millis(500);
/// The rest while there is nothing to send.
const REST: Duration = Duration::from_millis(1);
/// The rest until the target is asked again whether others have what it has.
const REST_OF_COPIES: Duration = Duration::from_micros(200);
/// How long a target may take to connect, to answer, and to delete what it has in the slots.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_OF_BEGIN: Duration = Duration::from_secs(60);
/// The pause before a move begins anew. It doubles so many times while the reason stays the same:
/// everything was sent in vain, and may be again.
const PAUSE: Duration = Duration::from_millis(500);
const DOUBLINGS: u32 = 4;
/// Where the rate of a copy is bounded, about so many pieces are sent in a second, of so many bytes
/// at least and at most; and after this time it is looked whether the bound has changed. The target
/// serves its clients between two pieces: a large one would make them wait.
const PIECES_A_SECOND: u64 = 50;
const LEAST_PIECE: usize = 512;
const LARGEST_PIECE: usize = 16 * 1024;
const LONGEST_REST_OF_COPY: Duration = Duration::from_millis(50);
/// What too long a rest has cost a copy is made up for, up to this much time.
const MADE_UP_FOR: Duration = Duration::from_millis(5);
/// How long a target may serve its clients before it is sent more of the journal.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Neither a bound nor a target that serves its clients slows a move down for which so many bytes
/// of the journal are kept.
const MOST_OF_JOURNAL: u64 = 64 * 1024 * 1024;
/// A target that takes nothing of a copy for so long is lost, if writers wait for that.
const LONGEST_STALL: Duration = Duration::from_millis(500);
/// How often a move without a cluster begins.
const TRIES_ALONE: u32 = 5;

/// How a try ends that does not fail.
enum End {
    Moved,
    Ended,
}

/// The number of a part of the journal that is kept, and where it is kept.
struct Pin<'e>(&'e Backlog, u64);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.pin(self.1, None);
    }
}

/// Slots that are held until this is dropped.
struct Hold<'a>(&'a Engine, &'a Move);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.slot_moves.release(&self.1.slots);
    }
}

/// Sends the bytes of a cut at a bounded rate.
struct Paced<'w> {
    wire: &'w mut Wire,
    trouble: &'w mut Option<Trouble>,
    /// Bytes a second, as they are bounded at the moment; 0 for no bound.
    rate: &'w (dyn Fn() -> u64 + Sync),
    goes_on: &'w (dyn Fn() -> bool + Sync),
    /// Whether others pay for the bound: then it does not hold.
    hurries: &'w (dyn Fn() -> bool + Sync),
    /// Whether writers wait for the copy, or soon will.
    presses: &'w (dyn Fn() -> bool + Sync),
    shown: &'w Leaving,
    counts: &'w MoveCounts,
    /// How many bytes more were sent at this time than the bound allows.
    ahead: (Instant, f64),
}

impl Paced<'_> {
    /// Waits until more may be sent. The bound may change meanwhile. Returns whether to go on.
    fn wait(&mut self) -> bool {
        loop {
            let (rate, now) = ((self.rate)() as f64, Instant::now());
            let (since, ahead) = self.ahead;
            let left = ahead - now.duration_since(since).as_secs_f64() * rate;
            self.ahead = (now, left.max(-rate * MADE_UP_FOR.as_secs_f64()));
            if left <= 0.0 {
                return true;
            }
            if rate == 0.0 || (self.hurries)() {
                self.ahead.1 = 0.0;
                return true;
            }
            if !(self.goes_on)() {
                return false;
            }
            std::thread::sleep(Duration::from_secs_f64(left / rate).min(LONGEST_REST_OF_COPY));
        }
    }
}

impl Write for Paced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.wait() {
            return Err(io::Error::other("it is not wanted any more"));
        }
        let most = match (self.rate)() {
            0 => bytes.len(),
            rate => usize::try_from(rate / PIECES_A_SECOND)
                .unwrap_or(usize::MAX)
                .clamp(LEAST_PIECE, LARGEST_PIECE),
        };
        let bytes = &bytes[..most.min(bytes.len())];
        let is_too_long = |silent: Duration| {
            let hinders = silent > LONGEST_STALL && (self.presses)();
            hinders.then_some("the target takes nothing, and writers would wait for it")
        };
        if let Err(trouble) = self.wire.send_unless(bytes, &is_too_long) {
            *self.trouble = Some(trouble);
            return Err(io::Error::other("the target is lost"));
        }
        self.ahead.1 += bytes.len() as f64;
        self.shown.note_sent(bytes.len() as u64, base::clock::monotonic_ms());
        self.counts.bytes.fetch_add(bytes.len() as u64, Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Moves slots. Returns the last event.
pub(super) fn run(
    shared: &Shared,
    engine: &Arc<Engine>,
    job: &Move,
    order: &Order,
    notify: &Notify,
) -> MoveEvent {
    let (mut tries, mut told, mut doublings) = (0, String::new(), 0);
    let to = job.place(&engine.config.load());
    let now = base::clock::monotonic_ms();
    let leaving = Arc::new(Leaving::new(&job.id, job.slots.len(), to, now));
    let _shown = engine.slot_moves.show(&leaving);
    loop {
        tries += 1;
        leaving.note_try();
        let leaving = &leaving;
        let mut source = Source { shared, engine, job, order, notify, leaving, selected: None };
        match source.attempt() {
            Ok(End::Moved) => return MoveEvent::Done(true),
            Ok(End::Ended) => return MoveEvent::Done(false),
            Err(Trouble::Refused(why)) => return MoveEvent::Failed(why),
            Err(Trouble::Broken(why)) => {
                if job.alone && tries == TRIES_ALONE {
                    return MoveEvent::Failed(why);
                }
                leaving.note_trouble(&why);
                doublings = if why == told { DOUBLINGS.min(doublings + 1) } else { 0 };
                if why != told {
                    let line = format!("The move {} of slots begins anew: {why}", job.id);
                    engine.host.log(LogLevel::Warning, &line);
                    told = why;
                }
            }
        }
        order.say(|said| said.hold = false);
        notify(MoveEvent::BeginsAnew);
        if let Some(moved) = order.wait_for_end(PAUSE * 2_u32.pow(doublings)) {
            return MoveEvent::Done(moved);
        }
    }
}

/// One try.
struct Source<'m> {
    shared: &'m Shared,
    engine: &'m Arc<Engine>,
    job: &'m Move,
    order: &'m Order,
    notify: &'m Notify,
    /// What others see of it.
    leaving: &'m Leaving,
    /// The database that the target has selected, if it is known.
    selected: Option<usize>,
}

impl Source<'_> {
    /// Why it does not go on, if it does not.
    fn is_over(&self) -> bool {
        self.shared.is_stopped()
            || self.order.said().end.is_some()
            || self.engine.replication.is_replica()
    }

    fn attempt(&mut self) -> Result<End, Trouble> {
        let begun = Instant::now();
        let mut wire = self.connect()?;
        let ranges = ranges(self.job);
        let attempt = self.shared.number.fetch_add(1, Relaxed).to_string();
        let words =
            ["SLOTMOVE", "BEGIN", &self.job.id, &ranges, &self.job.epoch.to_string(), &attempt];
        if self.is_over() {
            return Ok(End::Ended);
        }
        expect_ok(wire.ask(&words.map(str::as_bytes), PATIENCE_OF_BEGIN)?)?;
        self.leaving.note(Step::Waits);
        let Some(right) = self.take_right(&mut wire)? else { return Ok(End::Ended) };
        let journal = &self.engine.journal;
        let stopped = self.engine.gates.stop_the_world();
        self.engine.keep_changes();
        let Some(backlog) = journal.changes().filter(|own| own.is_on()) else {
            return Err(Trouble::Refused("ERR this server keeps no journal".into()));
        };
        let walker = right.begin_slots(self.engine, &stopped, self.job.slots.clone());
        // The next effect names its database.
        journal.append_raw(b"", None);
        let mut at = journal.end();
        let pin = Pin(backlog, self.shared.number.fetch_add(1, Relaxed));
        backlog.pin(pin.1, Some(at));
        drop(stopped);
        let written = giving_way(|| self.copy(&mut wire, backlog, walker, &right))??;
        drop(right);
        let Some(written) = written else { return Ok(End::Ended) };
        let copied = begun.elapsed();
        giving_way(|| self.catch_up(&mut wire, backlog, (pin.1, &mut at)))??;
        let Some((end, held)) = self.follow(&mut wire, backlog, (pin.1, at))? else {
            return Ok(End::Ended);
        };
        let line = format!(
            "The move {} of {} slots to {} is over: {} keys, {} kB of commands in {} ms, then \
             the journal, {} ms altogether; clients of these slots have waited for {}.{} ms",
            self.job.id,
            self.job.slots.len(),
            self.leaving.to,
            written.keys,
            written.bytes >> 10,
            copied.as_millis(),
            begun.elapsed().as_millis(),
            held.as_millis(),
            held.as_micros() % 1000 / 100,
        );
        self.engine.host.log(LogLevel::Notice, &line);
        Ok(end)
    }

    /// Sends the cut. Nothing if it is not wanted any more.
    fn copy(
        &self,
        wire: &mut Wire,
        backlog: &Backlog,
        walker: Walker<'_, Attachment>,
        right: &CutRight,
    ) -> Result<Option<Written>, Trouble> {
        let gate = self.engine.gates.register();
        let mut trouble = None;
        let config = &self.engine.config;
        let rate = || self.job.rate.unwrap_or_else(|| config.load().cluster_migration_bandwidth);
        let goes_on = || {
            backlog.note_use(base::clock::monotonic_ms());
            process::memory::publish();
            !self.is_over() && !right.is_recalled()
        };
        // What clients change of the slots waits for the copy, and they wait for that if it is too
        // much. What they change anywhere is kept.
        let begun_at = self.engine.journal.end();
        let presses = || self.engine.keyspace.cut_presses();
        let hurries = || {
            let kept = backlog.newest().saturating_sub(begun_at);
            presses() || kept > MOST_OF_JOURNAL
        };
        let counts = &self.engine.slot_moves.counts;
        counts.tries.fetch_add(1, Relaxed);
        self.leaving.note_copy(self.count_keys(), base::clock::monotonic_ms());
        let paced = Paced {
            wire: &mut *wire,
            trouble: &mut trouble,
            rate: &rate,
            goes_on: &goes_on,
            hurries: &hurries,
            presses: &presses,
            shown: self.leaving,
            counts,
            ahead: (Instant::now(), 0.0),
        };
        let report = |keys: u64| {
            let before = self.leaving.keys_sent.swap(keys, Relaxed);
            counts.keys.fetch_add(keys.saturating_sub(before), Relaxed);
            goes_on()
        };
        let access = Access::Gate(&gate);
        let written = snapshot::write_commands(self.engine, walker, access, paced, report);
        let written = match (written, trouble) {
            (Ok(written), _) => written,
            (_, Some(trouble)) => return Err(trouble),
            _ if self.is_over() => return Ok(None),
            (Err(error), None) => return Err(error.into()),
        };
        wire.mark()?;
        let before = self.leaving.keys_sent.load(Relaxed);
        counts.keys.fetch_add(written.keys.saturating_sub(before), Relaxed);
        self.leaving.note_copied(written.keys, base::clock::monotonic_ms());
        Ok(Some(written))
    }

    /// Sends what the journal has now, some at a time: the target serves its clients in between. It
    /// is not waited for when it does not say that it has got on, as one without a quorum does not:
    /// all that is written here, to whatever slots, is kept until it is sent.
    fn catch_up(
        &mut self,
        wire: &mut Wire,
        backlog: &Backlog,
        (pin, at): (u64, &mut u64),
    ) -> Result<(), Trouble> {
        let end = self.engine.journal.end();
        while !self.is_over() && *at < end && self.send_records(wire, backlog, at, end)? {
            backlog.note_use(base::clock::monotonic_ms());
            backlog.pin(pin, Some(*at));
            let begun = Instant::now();
            let is_patient = || {
                let kept = backlog.newest().saturating_sub(*at);
                begun.elapsed() < LONGEST_PAUSE && kept < MOST_OF_JOURNAL
            };
            while wire.unreached() > MOST_AHEAD && is_patient() && !self.is_over() {
                if !wire.hear()? {
                    self.order.wait(REST);
                }
            }
        }
        Ok(())
    }

    fn connect(&self) -> Result<Wire, Trouble> {
        let config = self.engine.config.snapshot();
        let mut credentials = OwnedArguments::default();
        if !config.masterauth.is_empty() {
            let user = Some(&config.masteruser).filter(|user| !user.is_empty());
            credentials = user.into_iter().chain([&config.masterauth]).collect();
        }
        let encrypted = config.tls_cluster.then_some(&self.shared.active);
        let port = self.job.port(&config);
        if port == 0 {
            let why = match encrypted {
                Some(_) => "the target has no tls-port, and tls-cluster asks for encryption",
                None => "the target has no port without encryption, and tls-cluster is off",
            };
            return Err(Trouble::Broken(why.into()));
        }
        let address = Address { host: &self.job.host, port, active: encrypted };
        let is_stopped = || self.is_over();
        let patience = Patience { timeout: PATIENCE, is_stopped: &is_stopped };
        let target = Target::connect(self.engine, &address, credentials.view(), None, patience);
        let bounded = target.and_then(|target| {
            // Writes may be held while the last of the slots is on its way. A target that is only
            // busy takes nothing for a while either.
            let bound = SILENCE.max(Duration::from_millis(config.cluster_node_timeout));
            target.bound_silence(bound).map(|()| target)
        });
        let target = bounded.map_err(|trouble| Trouble::Broken(trouble.to_string()))?;
        Ok(Wire::new(target.into_stream(), &format!("slots:{}", self.job.id))?)
    }

    /// How many keys are in the slots.
    fn count_keys(&self) -> u64 {
        let keyspace = &self.engine.keyspace;
        let all = (0..keyspace.databases())
            .flat_map(|own| self.job.slots.iter().map(move |slot| (own, slot)));
        all.map(|(own, slot)| keyspace.slot_len(own, slot) as u64).sum()
    }

    /// The right to read a cut, when others have done with it. Nothing if it is not wanted any
    /// more.
    fn take_right(&self, wire: &mut Wire) -> Result<Option<CutRight>, Trouble> {
        loop {
            match self.shared.cuts.try_take(Reader::Slots) {
                Ok(right) => return Ok(Some(right)),
                Err(_) if self.is_over() => return Ok(None),
                Err(_) => self.order.wait(REST * 5),
            }
            // The target may be gone.
            wire.hear()?;
        }
    }

    /// Sends what the journal has of the slots, until they have changed their owner. Returns how it
    /// ends, and how long the slots were held; nothing if it was ended before.
    fn follow(
        &mut self,
        wire: &mut Wire,
        backlog: &Backlog,
        (pin, mut at): (u64, u64),
    ) -> Result<Option<(End, Duration)>, Trouble> {
        let mut has_told = false;
        let begun = Instant::now();
        let mut next_hold = begun;
        loop {
            if self.is_over() {
                return Ok(None);
            }
            backlog.note_use(base::clock::monotonic_ms());
            let any = self.send_records(wire, backlog, &mut at, u64::MAX)?;
            backlog.pin(pin, Some(at));
            wire.mark_now_and_then()?;
            wire.hear()?;
            let left = backlog.newest().saturating_sub(at);
            let short = LONGEST_LAG.min(SHORT_LAG + begun.elapsed() / LAG_GROWS_IN);
            let is_near = wire.unreached() <= NEAR_BYTES || wire.lag() <= short;
            if left < NEAR_BYTES && is_near {
                self.leaving.note_near(base::clock::monotonic_ms());
                if !std::mem::replace(&mut has_told, true) {
                    (self.notify)(MoveEvent::CaughtUp);
                }
                let holds = self.job.alone || self.order.said().hold;
                if holds && Instant::now() >= next_hold {
                    // Clients do not wait for a target that cannot make it durable.
                    let is_fit = self.is_sure(wire, "SURE")? && !self.is_over();
                    if is_fit && let Some(done) = self.hand_over(wire, backlog, &mut at)? {
                        return Ok(Some(done));
                    }
                    self.leaving.note(Step::Follows);
                    next_hold = Instant::now() + PAUSE_OF_HOLDS;
                }
            }
            if !any {
                self.order.wait(REST);
            }
        }
    }

    /// Holds the slots, and lets them change their owner. Nothing if the target was too slow for
    /// that, so that the slots are not held any more.
    fn hand_over(
        &mut self,
        wire: &mut Wire,
        backlog: &Backlog,
        at: &mut u64,
    ) -> Result<Option<(End, Duration)>, Trouble> {
        // A command that has passed its checks before may still run. When the world stands, there
        // is none. A script may run for long: nobody else waits for it.
        let stopped = self.engine.gates.stop_the_world_within(LONGEST_HOLD);
        let Some(stopped) = stopped else { return Ok(None) };
        let begun = Instant::now();
        self.leaving.note(Step::Holds);
        self.engine.slot_moves.hold(&self.job.slots);
        let hold = Hold(self.engine, self.job);
        drop(stopped);
        (self.notify)(MoveEvent::Holds);
        if !self.deliver(wire, backlog, at, begun)? {
            drop(hold);
            (self.notify)(MoveEvent::LetGo);
            return Ok(None);
        }
        if self.job.alone {
            expect_ok(wire.ask(&[b"SLOTMOVE", b"TAKE"], PATIENCE)?)?;
            self.engine.keyspace.hidden.insert(&self.job.slots);
            self.engine.slot_moves.give(&self.job.slots, &self.leaving.to);
        } else {
            (self.notify)(MoveEvent::Delivered);
            while self.order.wait_for_end(PAUSE).is_none() && !self.shared.is_stopped() {}
            if self.order.said().end != Some(true) {
                return Ok(Some((End::Ended, begun.elapsed())));
            }
        }
        drop(hold);
        let held = begun.elapsed();
        if self.job.alone {
            self.engine.slot_moves.empty(self.job.slots.clone());
        }
        Ok(Some((End::Moved, held)))
    }

    /// Brings the rest across while the slots are held. Returns whether it was in time.
    fn deliver(
        &mut self,
        wire: &mut Wire,
        backlog: &Backlog,
        at: &mut u64,
        begun: Instant,
    ) -> Result<bool, Trouble> {
        loop {
            let end = self.engine.journal.end();
            while *at < end && self.send_records(wire, backlog, at, end)? {}
            if !self.is_sure(wire, "READY")? || self.is_over() {
                return Ok(false);
            }
            // Keys may have expired meanwhile, or were evicted.
            if !self.has_news(backlog, *at)? {
                return Ok(true);
            }
            if begun.elapsed() > LONGEST_HOLD {
                return Ok(false);
            }
        }
    }

    /// Whether what the target was sent is as durable as it has to be, or soon is: asks it by this
    /// word. Its replies may wait for that too.
    fn is_sure(&self, wire: &mut Wire, word: &str) -> Result<bool, Trouble> {
        match wire.settle(LONGEST_HOLD) {
            Err(Trouble::Broken(_)) if wire.ahead() > 0 && wire.hear().is_ok() => return Ok(false),
            settled => settled?,
        }
        let begun = Instant::now();
        let mut words = vec![&b"SLOTMOVE"[..], word.as_bytes()];
        words.extend(self.job.needs_file.then_some(&b"FSYNC"[..]));
        loop {
            match wire.ask(&words, LONGEST_HOLD)? {
                Value::Integer(1) => return Ok(true),
                Value::Integer(_) if self.is_over() || begun.elapsed() > LONGEST_HOLD => {
                    return Ok(false);
                }
                Value::Integer(_) => self.order.wait(REST_OF_COPIES),
                Value::Error(text) => return Err(Trouble::of_error(&text)),
                other => return Err(Trouble::Refused(format!("ERR unexpected reply {other:?}"))),
            }
        }
    }

    /// Whether the journal has anything of the slots after an offset.
    fn has_news(&self, backlog: &Backlog, mut at: u64) -> Result<bool, Trouble> {
        loop {
            let records = read(backlog, at, u64::MAX)?;
            let Some(last) = records.last() else { return Ok(false) };
            at = last.end();
            let commands = records.iter().flat_map(|record| record.commands());
            let concerns = |command: (usize, &[u8])| {
                let concern = concern(self.engine.commands, command, &self.job.slots);
                concern != Concern::Nothing
            };
            if commands.into_iter().any(concerns) {
                return Ok(true);
            }
        }
    }

    /// Sends some of what the journal has of the slots after an offset, and a mark now and then.
    /// Returns whether there was anything to read.
    fn send_records(
        &mut self,
        wire: &mut Wire,
        backlog: &Backlog,
        at: &mut u64,
        until: u64,
    ) -> Result<bool, Trouble> {
        let records = read(backlog, *at, until)?;
        let Some(last) = records.last() else { return Ok(false) };
        *at = last.end();
        let mut bytes = Vec::new();
        for (database, command) in records.iter().flat_map(|record| record.commands()) {
            match concern(self.engine.commands, (database, command), &self.job.slots) {
                Concern::Nothing => {}
                Concern::Whole => self.put(database, command, &mut bytes),
                Concern::Part(part) => self.put(database, &part, &mut bytes),
                Concern::Flush(database) => {
                    let text = database.map_or_else(|| "all".to_owned(), |own| own.to_string());
                    let words = [&b"SLOTMOVE"[..], b"FLUSH", text.as_bytes()];
                    encode_command(words.into_iter(), &mut bytes);
                }
                Concern::Mixed => {
                    let why = "a command takes keys of these slots and of others";
                    return Err(Trouble::Broken(why.into()));
                }
                Concern::Unknown => {
                    let why = "the journal has a command that this server does not know";
                    return Err(Trouble::Broken(why.into()));
                }
            }
        }
        if !bytes.is_empty() {
            wire.send(&bytes)?;
            let left = backlog.newest().saturating_sub(*at);
            self.leaving.note_followed(bytes.len() as u64, left, base::clock::monotonic_ms());
            self.engine.slot_moves.counts.bytes.fetch_add(bytes.len() as u64, Relaxed);
            wire.mark_now_and_then()?;
        }
        Ok(true)
    }

    fn put(&mut self, database: usize, command: &[u8], bytes: &mut Vec<u8>) {
        if self.selected != Some(database) {
            self.selected = Some(database);
            bytes.extend_from_slice(&select_command(database));
        }
        bytes.extend_from_slice(command);
    }
}

/// Does work on a thread of its own that lets the workers go first. One that gives way can not take
/// that back, and this one holds slots at the end.
fn giving_way<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    process::thread::apart("slot-copy", || {
        base::time_slice::give_way();
        work()
    })
}

fn read(
    backlog: &Backlog,
    at: u64,
    until: u64,
) -> Result<Vec<engine::journal::records::Record>, Trouble> {
    let gone = |_| Trouble::Broken("the journal is not kept that long".into());
    backlog.read(at, until, RECORDS).map_err(gone)
}

fn expect_ok(reply: Value) -> Result<(), Trouble> {
    match reply {
        Value::Simple(_) => Ok(()),
        Value::Error(text) => Err(Trouble::of_error(&text)),
        other => Err(Trouble::Refused(format!("ERR unexpected reply {other:?}"))),
    }
}

/// The slots of a move, as ranges.
fn ranges(job: &Move) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for slot in job.slots.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    let text = |(first, last): &(u16, u16)| format!("{first}-{last}");
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}
