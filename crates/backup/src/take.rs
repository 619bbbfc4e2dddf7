//! Taking a backup: a base if one is needed, and the stream of writes behind it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use lab::load::Address;
use lab::targets::Interrupt;
use replication::handshake::{Offer, Wanted};
use replication::stream::Stream;

use crate::base_job::{self, BaseJob, Times, base_of};
use crate::catalog::Catalog;
use crate::digest::Hashed;
use crate::link::{self, Ended, Link, ServerState};
use crate::manifest::{Base, Segment, StoredFile, position_of_file};
use crate::moment::{Moment, wait};
use crate::options::{Point, Take};
use crate::plan::Plan;
use crate::position::Position;
use crate::print::{complain, say};
use crate::retention::age_of;
use crate::segment::Growing;
use crate::storage::Store;

/// A segment of fewer bytes goes on growing after it was written, and is written anew then.
const SMALL_SEGMENT: usize = 4 * 1024 * 1024;
/// But not for longer than this.
const SEGMENT_AGE_MS: u64 = 60 * 60 * 1000;
/// What changes no data may wait so many times longer until it is written.
const IDLE_FACTOR: u64 = 6;
/// Units that are taken from the stream at once.
const UNITS: usize = 1024;
/// The pauses between two attempts to connect.
const FIRST_PAUSE_MS: u64 = 500;
const LONGEST_PAUSE_MS: u64 = 30_000;
/// A run that is to end begins so many times again when the address leads to another server.
const MOST_MOVES: u32 = 3;
/// The pause before another attempt to take a base beside the stream.
const AFTER_NO_BASE_MS: u64 = 10 * 60 * 1000;
/// A base that is being checked when the user asks for the end has this time still: units have
/// little more.
const CHECKED_WITHIN_MS: u64 = 30_000;
/// Where the server does not tell how far it is, its stream is over for now after such a silence.
/// If there is none, what was on its way has arrived after the longer time.
const QUIET_MS: u64 = 1000;
const NEVER_QUIET_MS: u64 = 5000;
/// After this time the pace of the stream says when it will be where the server is; if that is
/// longer than the other one, the server is not there.
const PACE_MS: u64 = 60_000;
const LONGEST_WAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Commands that change no data: signs of life, questions and messages.
const WITHOUT_EFFECT: [&str; 4] = ["PING", "REPLCONF", "PUBLISH", "SPUBLISH"];

/// Whether a unit of the stream is one of these, which a restored file does without.
pub(crate) fn is_without_effect(unit: &replication::stream::Unit<'_>) -> bool {
    WITHOUT_EFFECT.iter().any(|name| {
        let first = unit.first();
        unit.commands().len() == 1 && first.at(0).eq_ignore_ascii_case(name.as_bytes())
    })
}

/// Takes a plain RDB file into the store.
pub(crate) fn take_file(path: &Path, options: &Take, store: Arc<dyn Store>) -> Result<(), String> {
    let in_file = |problem: String| format!("{}: {problem}", path.display());
    let mut input = File::open(path).map_err(|error| in_file(error.to_string()))?;
    let mut catalog = Catalog::open(Arc::clone(&store))?;
    let name = catalog.new_name("base", "rdb")?;
    let mut upload = Hashed::new(store.begin(&name)?);
    std::io::copy(&mut input, &mut upload).map_err(|error| in_file(error.to_string()))?;
    let (upload, bytes, sha256) = upload.finish();
    upload.finish()?;
    let file = StoredFile { name, bytes, sha256 };
    let contents = base_job::check(&*store, &file).map_err(in_file)?;
    let now = Moment::now();
    // Any program may have written it, by any clock.
    let time = contents.written.map_or(now, |written| written.min(now));
    let position = position_of_file(&file.sha256).ok_or("a sum is too short")?;
    let line = catalog.manifest.last_line() + 1;
    let base = base_of(file, line, position, time, contents, None);
    let base = Base { imported: Some(now), ..base };
    say(&format!(
        "took {} keys of {} in as {}, at {}, of {}",
        base.keys,
        path.display(),
        base.file.name,
        base.position,
        base.time
    ));
    catalog.manifest.bases.push(base);
    catalog.save()?;
    catalog.retain(&options.retention)?;
    catalog.end()
}

/// Removes what need not be kept.
pub(crate) fn prune(options: &Take, store: Arc<dyn Store>) -> Result<(), String> {
    let mut catalog = Catalog::open_existing(store)?;
    let removed = catalog.retain(&options.retention)?;
    let left = catalog.manifest.bases.len();
    say(&format!("{removed} files were removed; {left} restore points with a base are left"));
    catalog.end()
}

/// Takes a backup of a server.
pub(crate) fn take(
    address: &Address,
    options: &Take,
    store: Arc<dyn Store>,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let catalog = Catalog::open(store)?;
    if let Some(warning) = catalog.manifest.ahead_of(Moment::now()) {
        complain(&warning);
    }
    let mut run = Run::new(address, options, catalog, interrupt);
    let mut pause = FIRST_PAUSE_MS;
    let mut moves = 0;
    loop {
        let received = run.received;
        let ended = run.follow_once();
        let goes_on = match &ended {
            Err(Ended::Lost(_)) => options.follow && run.was_linked,
            Err(Ended::Moved(_)) => {
                moves += 1;
                options.follow || moves <= MOST_MOVES
            }
            _ => false,
        };
        // Whatever has arrived counts, and a base that is being checked.
        let published = run.publish(true);
        let published = match goes_on {
            true => published,
            false => published.and_then(|()| run.finish_job()),
        };
        match (ended, published) {
            (Ok(()), Ok(())) | (Err(Ended::Interrupted), Ok(())) => return run.report(),
            (Err(Ended::Failed(problem)), _) | (_, Err(problem)) => return Err(problem),
            (Err(problem), Ok(())) if !goes_on => return Err(problem.to_string()),
            (Err(problem), Ok(())) => {
                if run.received > received {
                    pause = FIRST_PAUSE_MS;
                }
                say(&format!("{}: {problem}; trying again in {pause} ms", Moment::now()));
                if wait(pause, interrupt) {
                    return run.report();
                }
                pause = (2 * pause).min(LONGEST_PAUSE_MS);
            }
        }
    }
}

/// Where a run ends that is to end.
#[derive(Clone, Copy)]
struct Target {
    /// None if the server does not tell.
    offset: Option<u64>,
    /// How far the stream was when the server was asked, and when that was.
    begun: u64,
    asked_ms: u64,
}

impl Target {
    /// Whether the stream comes there in time. A server that is honest has written what it says,
    /// and gives it.
    fn is_neared(&self, offset: u64, reached: u64, monotonic: u64) -> bool {
        let passed = monotonic.saturating_sub(self.asked_ms);
        let (come, left) = (reached.saturating_sub(self.begun), offset.saturating_sub(reached));
        passed < PACE_MS
            || u128::from(left) * u128::from(passed)
                <= u128::from(come) * u128::from(LONGEST_WAY_MS)
    }
}

struct Run<'r> {
    address: &'r Address,
    options: &'r Take,
    catalog: Catalog,
    interrupt: &'r Interrupt,
    /// The line that grows, and how far it has come; none before there is one.
    line: u64,
    reached: Option<Position>,
    growing: Option<Growing>,
    /// The newest time that the line has. Times never go back, even if the clock does.
    newest: Moment,
    /// What the list has of the segment that grows.
    listed: Option<StoredFile>,
    /// Why the store has not taken a segment.
    refused: Option<String>,
    begun_ms: u64,
    published_ms: u64,
    job: Option<BaseJob>,
    /// Bytes of the stream, and of bases, that this run has received.
    received: u64,
    was_linked: bool,
    wants_base: bool,
    /// A base has failed: the next attempt is not before this.
    no_base_before_ms: u64,
    new_bases: usize,
}

impl<'r> Run<'r> {
    fn new(
        address: &'r Address,
        options: &'r Take,
        catalog: Catalog,
        interrupt: &'r Interrupt,
    ) -> Run<'r> {
        let manifest = &catalog.manifest;
        // A plain file that was taken in meanwhile leaves the stream where it was.
        let line = manifest.lines_of_servers().pop().unwrap_or(0);
        // What follows a gap is of no use; nor does a line go on before what is missing of it, with
        // which that has to fit together when it is back.
        let reached = manifest.end_of(line).map(|(position, _)| position);
        let reached = reached.filter(|_| Plan::of(manifest, Point::Newest).is_ok());
        let newest = manifest.newest_time();
        Run {
            address,
            options,
            interrupt,
            line,
            reached,
            growing: None,
            newest,
            listed: None,
            refused: None,
            begun_ms: 0,
            published_ms: base::clock::monotonic_ms(),
            job: None,
            received: 0,
            was_linked: false,
            wants_base: options.full,
            no_base_before_ms: 0,
            new_bases: 0,
            catalog,
        }
    }

    /// Connects, and follows until the end.
    fn follow_once(&mut self) -> Result<(), Ended> {
        let told = link::ask(self.address, self.interrupt)?;
        let wanted = self.reached.map_or(Wanted::All, |reached| Wanted::From {
            history: reached.history,
            first: reached.offset + 1,
        });
        let (mut link, offer) = Link::open(self.address, &told, wanted, self.interrupt)?;
        self.was_linked = true;
        let product = told.product.clone().unwrap_or_else(|| "a server".to_owned());
        let place = link::place(self.address);
        match offer {
            Offer::All { history, offset } => {
                if let Some(reached) = self.reached {
                    say(&format!(
                        "{product} at {place} no longer has the stream after {reached}: a new base \
                         begins"
                    ));
                }
                self.take_base(&mut link, &told, Position { history, offset })?;
            }
            Offer::Rest { history, .. } => {
                let reached = self.reached.expect("the rest was asked for after this");
                say(&format!("{product} at {place}: the stream goes on after {reached}"));
                if let Some(history) = history.filter(|history| *history != reached.history) {
                    self.end_segment()?;
                    self.reached = Some(Position { history, offset: reached.offset });
                }
            }
            Offer::AllWithoutOffsets => return Err(Ended::Failed("no offsets".to_owned())),
        }
        self.follow(&mut link, &told)
    }

    /// Receives all data over the link, which begins a line.
    fn take_base(
        &mut self,
        link: &mut Link<'_>,
        told: &ServerState,
        position: Position,
    ) -> Result<(), Ended> {
        self.end_segment()?;
        self.finish_job().map_err(Ended::Failed)?;
        let times = Times::now(self.newest);
        say(&format!("base at {position} begins"));
        let name = self.catalog.new_name("base", "rdb").map_err(Ended::Failed)?;
        let file = base_job::receive(link, &self.catalog.store, name)?;
        self.received += file.bytes;
        // Not before: where it fails, the stream of the line that there is may go on.
        self.line = self.catalog.manifest.last_line().max(self.line) + 1;
        self.reached = Some(position);
        link.acknowledge(position.offset, true)?;
        self.wants_base = false;
        let store = Arc::clone(&self.catalog.store);
        let product = told.product.clone();
        self.job = Some(BaseJob::verify(store, file, product, self.line, position, times));
        Ok(())
    }

    fn follow(&mut self, link: &mut Link<'_>, told: &ServerState) -> Result<(), Ended> {
        let begin = self.reached.expect("it is known when a link begins");
        let mut stream = Stream::new(begin.offset);
        let mut target: Option<Target> = None;
        let mut heard_ms = base::clock::monotonic_ms();
        loop {
            let arrived = link.receive()?;
            let (now, monotonic) = (Moment::now(), base::clock::monotonic_ms());
            let now = now.max(self.newest);
            if !arrived.is_empty() {
                (heard_ms, self.newest) = (monotonic, now);
                self.take_units(&mut stream, &arrived, now)?;
            }
            link.acknowledge(stream.offset(), false)?;
            self.publish_in_time(monotonic).map_err(Ended::Failed)?;
            self.look_after_bases(told, stream.offset(), now)?;
            if self.options.follow || self.job.is_some() || self.wants_base {
                continue;
            }
            // Not before the base is complete: what was written meanwhile counts.
            let wanted = match target {
                Some(target) => target,
                None => {
                    let told = link::ask(self.address, self.interrupt)?;
                    // The offsets of another server's stream say nothing of this one.
                    let own = self.reached.map(|reached| reached.history);
                    if let Some(other) = told.history.filter(|history| Some(*history) != own) {
                        return Err(Ended::Moved(other));
                    }
                    let (offset, begun) = (told.offset, stream.offset());
                    *target.insert(Target { offset, begun, asked_ms: monotonic })
                }
            };
            let is_over = match wanted.offset {
                Some(offset) if !wanted.is_neared(offset, stream.offset(), monotonic) => {
                    let reached = stream.offset();
                    let problem = format!("the server is at {offset}, but gives {reached} only");
                    return Err(Ended::Lost(problem));
                }
                Some(offset) => stream.offset() >= offset,
                None => {
                    monotonic >= heard_ms + QUIET_MS
                        || monotonic >= wanted.asked_ms + NEVER_QUIET_MS
                }
            };
            if is_over {
                return Ok(());
            }
        }
    }

    fn take_units(
        &mut self,
        stream: &mut Stream,
        arrived: &[u8],
        now: Moment,
    ) -> Result<(), Ended> {
        let lost = |error: replication::LinkError| Ended::Lost(error.to_string());
        stream.push(arrived);
        loop {
            let before = stream.offset();
            let units = stream.next_units(UNITS).map_err(lost)?;
            if units.is_empty() {
                return Ok(());
            }
            let reached = self.reached.as_mut().expect("a stream begins somewhere");
            debug_assert_eq!(reached.offset, before, "units follow each other");
            let growing = self.growing.get_or_insert_with(|| {
                self.begun_ms = base::clock::monotonic_ms();
                Growing::new(self.line, *reached, now)
            });
            for unit in units.iter() {
                growing.add(unit.bytes(), now);
                growing.has_effects |= !is_without_effect(&unit);
            }
            self.received += growing.to - reached.offset;
            reached.offset = growing.to;
            if growing.length() >= self.options.segment_bytes {
                self.end_segment()?;
            }
        }
    }

    fn end_segment(&mut self) -> Result<(), Ended> {
        self.publish(true).map_err(Ended::Failed)
    }

    fn publish_in_time(&mut self, monotonic: u64) -> Result<(), String> {
        let Some(growing) = &self.growing else { return Ok(()) };
        let patience = match growing.has_effects {
            true => self.options.segment_ms,
            false => IDLE_FACTOR * self.options.segment_ms,
        };
        match monotonic >= self.published_ms + patience {
            true => self.publish(false),
            false => Ok(()),
        }
    }

    /// Writes what has arrived into the store. `ends` says that the next units begin a new segment.
    fn publish(&mut self, ends: bool) -> Result<(), String> {
        // What it has refused may have its file: another attempt would leave another one.
        if let Some(problem) = &self.refused {
            return Err(problem.clone());
        }
        let written = self.write(ends);
        self.refused = written.clone().err();
        written
    }

    fn write(&mut self, ends: bool) -> Result<(), String> {
        let monotonic = base::clock::monotonic_ms();
        self.published_ms = monotonic;
        let Some(growing) = &mut self.growing else { return Ok(()) };
        // Retention may have taken it out of the list.
        let listed = |segment: &Segment| Some(&segment.file) == self.listed.as_ref();
        let listed = self.catalog.manifest.segments.iter().position(listed);
        let known = listed.map(|index| self.catalog.manifest.segments[index].to);
        if known != Some(growing.to) {
            let (line, from, to) = (growing.line, growing.from, growing.to);
            let (first_time, last_time) = (growing.first_time, growing.last_time);
            let name = self.catalog.new_name("stream", "aof")?;
            let file = self.catalog.put(name, growing.file())?;
            let old = self.listed.replace(file.clone());
            if let Some(index) = listed {
                self.catalog.manifest.segments.remove(index);
            }
            let segment = Segment { file, line, from, to, first_time, last_time };
            self.catalog.manifest.segments.push(segment);
            self.catalog.save()?;
            self.catalog.remove(old.as_slice())?;
        }
        growing.has_effects = false;
        let is_old = monotonic >= self.begun_ms + SEGMENT_AGE_MS;
        if ends || growing.length() >= SMALL_SEGMENT || is_old {
            (self.growing, self.listed) = (None, None);
        }
        Ok(())
    }

    /// Begins a base when it is time for one, and lists one that is complete.
    fn look_after_bases(
        &mut self,
        told: &ServerState,
        offset: u64,
        now: Moment,
    ) -> Result<(), Ended> {
        if let Some(job) = &mut self.job {
            job.note_reached(offset, now);
            // A base of this stream is not listed before the stream that leads to it.
            let ahead = job.position_ahead();
            if !job.is_over() || ahead.is_some_and(|position| self.is_of_line(position)) {
                return Ok(());
            }
            let job = self.job.take().expect("it is there");
            let is_beside = job.is_beside;
            match job.finish() {
                Ok(base) if is_beside && !self.is_of_line(base.position) => {
                    self.give_up_base(&base).map_err(Ended::Failed)?;
                    if self.options.follow {
                        // The next one may come from the wrong server as well.
                        self.no_base_before_ms = base::clock::monotonic_ms() + AFTER_NO_BASE_MS;
                    }
                    self.wants_base = self.still_wants_base();
                    return Err(Ended::Moved(base.position.history));
                }
                Ok(base) => self.list_base(base).map_err(Ended::Failed)?,
                Err(problem) if self.options.follow => {
                    say(&format!("{now}: no base: {problem}"));
                    self.no_base_before_ms = base::clock::monotonic_ms() + AFTER_NO_BASE_MS;
                    self.wants_base = self.still_wants_base();
                }
                Err(problem) => return Err(Ended::Failed(problem)),
            }
            return Ok(());
        }
        let mut bases = self.catalog.manifest.bases.iter();
        let newest = bases.rfind(|base| base.imported.is_none()).map(age_of);
        let clock = Moment::now();
        let is_older_than = |every: u64| {
            newest.is_none_or(|newest| {
                clock.0 >= newest.0.saturating_add(every) || newest.is_far_ahead_of(clock)
            })
        };
        let is_old = self.options.base_every_ms.is_some_and(is_older_than);
        if (self.wants_base || is_old) && base::clock::monotonic_ms() >= self.no_base_before_ms {
            self.wants_base = false;
            let name = self.catalog.new_name("base", "rdb").map_err(Ended::Failed)?;
            let store = Arc::clone(&self.catalog.store);
            say(&format!("{now}: a new base begins beside the stream"));
            let (address, line, newest) = (self.address, self.line, self.newest);
            let job = BaseJob::begin(store, address, told, name, line, newest, self.interrupt);
            self.job = Some(job);
        }
        Ok(())
    }

    /// What the user has asked for, and a line without a base, want one still.
    fn still_wants_base(&self) -> bool {
        let has_one = !self.catalog.manifest.bases_of(self.line).is_empty();
        !has_one || self.options.full && self.new_bases == 0
    }

    /// Waits for a base that is under way, and lists it.
    fn finish_job(&mut self) -> Result<(), String> {
        let Some(job) = self.job.take() else { return Ok(()) };
        if !job.is_over_in_time(self.interrupt, CHECKED_WITHIN_MS) {
            say("no base: its check is not over. The next run removes it");
            return Ok(());
        }
        let is_beside = job.is_beside;
        match job.finish() {
            Ok(base) if is_beside && !self.leads_to(base.position) => self.give_up_base(&base),
            Ok(base) => self.list_base(base),
            Err(problem) => {
                say(&format!("{}: no base: {problem}", Moment::now()));
                Ok(())
            }
        }
    }

    /// Whether a base is of the data whose stream this line has. It comes over a connection of its
    /// own, and by a name that may lead to another server by then.
    fn is_of_line(&self, at: Position) -> bool {
        self.reached.is_some_and(|reached| reached.history == at.history)
            || self.catalog.manifest.has(self.line, at)
    }

    /// Whether the stream has come to a position.
    fn leads_to(&self, at: Position) -> bool {
        self.is_of_line(at) && self.reached.is_some_and(|reached| at.offset <= reached.offset)
    }

    fn give_up_base(&mut self, base: &Base) -> Result<(), String> {
        let problem = match self.is_of_line(base.position) {
            true => "is not reached by the stream",
            false => "is not of the history of the stream",
        };
        say(&format!("no base: {} {problem}", base.position));
        self.catalog.remove(std::slice::from_ref(&base.file))
    }

    fn list_base(&mut self, base: Base) -> Result<(), String> {
        say(&format!(
            "base {} is complete: {} keys, {} bytes at {}",
            base.file.name, base.keys, base.file.bytes, base.position
        ));
        // Were it listed alone, and this program killed, nothing would lead to it.
        self.publish(false)?;
        self.catalog.manifest.bases.push(base);
        self.new_bases += 1;
        self.catalog.save()?;
        self.catalog.retain(&self.options.retention).map(drop)
    }

    /// The last lines of a run.
    fn report(&mut self) -> Result<(), String> {
        if self.new_bases == 0 {
            self.catalog.retain(&self.options.retention)?;
        }
        self.catalog.end()?;
        let manifest = &self.catalog.manifest;
        match manifest.end_of(self.line) {
            Some(_) if self.options.full && self.new_bases == 0 => {
                Err("the new base is not complete".to_owned())
            }
            Some((position, time)) => {
                say(&format!("the backup reaches {position}, of {time}"));
                Ok(())
            }
            None => Err("the base is not complete: nothing can be restored from this run".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_give_what_it_says_is_not_waited_for() {
        let target = Target { offset: None, begun: 1000, asked_ms: 0 };
        for (offset, reached, monotonic, is_neared) in [
            (2000, 1000, PACE_MS - 1, true),
            (2000, 1000, PACE_MS, false),
            (2000, 2000, PACE_MS, true),
            (9_000_000_000_000_000_000, 1_000_000, PACE_MS, false),
            // A gigabyte in each minute.
            (100_000_000_000, 1_000_001_000, PACE_MS, true),
        ] {
            assert_eq!(target.is_neared(offset, reached, monotonic), is_neared, "{offset}");
        }
    }
}
