//! Replaying commands: one thread reads the file, the calling one runs the commands.

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{self, SyncSender};

use base::limits::{LOAD_QUEUE, REPLAY_CHUNK_BYTES, REPLAY_CHUNK_COMMANDS};
use engine::command::args::KeyAt;
use engine::command::{self, SELECTS};
use engine::engine::{Engine, Row};
use engine::host::LogLevel;
use engine::run::drive::Policy;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::{Call, Outcome, Request};
use resp::args::{Arguments, OwnedArguments};
use resp::output::Output;
use store::gate::{Access, Inside, Pinned};

use super::following::{Following, Part};
use super::{Load, LoadError, Problem, Torn};
use crate::aof::reader::{Ending, Item, Scanner, selected};
use crate::delay::Delay;

/// Commands fetched into the cache together, before the first of them runs.
const WINDOW: usize = 32;

/// Errors of replayed commands that are logged; more are only counted.
const ERRORS_SHOWN: u64 = 10;

/// Some commands in the order of the file.
#[derive(Default)]
struct Chunk {
    /// The arguments of all of them.
    words: OwnedArguments,
    commands: Vec<CommandSpan>,
    bytes: u64,
    /// The offset after the last one.
    end: u64,
}

/// A command in a chunk.
struct CommandSpan {
    /// Where it begins in the file.
    at: u64,
    words: Range<usize>,
    /// When it ran, in milliseconds, as the file says.
    ran_at: Option<u64>,
    /// It was not applied when it came: see [`Scanner::is_unknown`].
    is_unknown: bool,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.commands.len() >= REPLAY_CHUNK_COMMANDS || self.bytes >= REPLAY_CHUNK_BYTES as u64
    }

    fn command(&self, index: usize) -> Arguments<'_> {
        self.words.part(self.commands[index].words.clone())
    }
}

impl Load<'_> {
    /// Replays the commands of a file, or of the part of it that begins at `offset`. Returns where
    /// it breaks off, if it does; the commands before that have been replayed.
    pub(super) fn replay(
        &self,
        path: &Path,
        input: impl Read + Send,
        offset: u64,
    ) -> Result<Option<Torn>, LoadError> {
        let (sender, chunks) = mpsc::sync_channel::<Chunk>(LOAD_QUEUE);
        let ending = std::thread::scope(|scope| {
            let backlog = self.engine.journal.changes().filter(|_| self.at_start);
            let following = backlog.map(Following::new);
            let reading = scope.spawn(move || scan(input, offset, &sender, following));
            let gate;
            let access = match self.world {
                Some(world) => Access::Stopped(world),
                None => {
                    gate = self.engine.gates.register();
                    Access::Gate(&gate)
                }
            };
            let mut replay = Replay::new(self.engine, access);
            let mut delay = Delay::default();
            let replayed = chunks.iter().try_for_each(|chunk| {
                if (self.stopped)() {
                    return Err(LoadError::Stopped);
                }
                self.note_offset(chunk.end);
                let replayed = replay.run(&chunk);
                replayed.map_err(|problem| LoadError::file(path, problem))?;
                self.wait_after(chunk.commands.len() as u64, &mut delay)
            });
            // The reading thread ends when its chunks are no longer taken.
            drop(chunks);
            let ending = reading.join().expect("a panic has ended the process already");
            replay.report(path);
            replayed.and_then(|()| ending.map_err(LoadError::reading(path)))
        })?;
        match ending {
            Ending::Complete => Ok(None),
            Ending::Torn { good, tear } => Ok(Some(Torn { good, tear })),
            Ending::Damaged { good, at, damage } => {
                Err(LoadError::file(path, Problem::Damaged { good, at, damage }))
            }
        }
    }
}

/// Reads a file to its end, and passes on its commands.
fn scan(
    input: impl Read,
    offset: u64,
    chunks: &SyncSender<Chunk>,
    mut following: Option<Following<'_>>,
) -> std::io::Result<Ending> {
    let mut scanner = Scanner::new(input, offset);
    let mut chunk = Chunk::default();
    let mut ran_at = None;
    loop {
        let first = chunk.words.len();
        let ending = match scanner.next()? {
            Item::Command(arguments) => {
                chunk.words.extend(arguments);
                None
            }
            Item::Timestamp(second) => {
                ran_at = u64::try_from(second).ok().and_then(|second| second.checked_mul(1000));
                None
            }
            Item::End(ending) => Some(ending),
        };
        let words = first..chunk.words.len();
        if let Some(following) = &mut following {
            if let Some(position) = scanner.take_history() {
                following.begin(position, scanner.take_selected());
            }
            if !words.is_empty() {
                let bytes = scanner.offset() - scanner.item_offset();
                let part = match (scanner.take_uncounted(), scanner.take_counted()) {
                    (true, _) => Part::Own,
                    (_, is_announced) => Part::Stream { bytes, is_announced },
                };
                following.take(scanner.words(), part);
            }
        }
        if !words.is_empty() {
            let (at, is_unknown) = (scanner.item_offset(), scanner.is_unknown());
            chunk.commands.push(CommandSpan { at, words, ran_at, is_unknown });
        }
        chunk.bytes += scanner.offset() - scanner.item_offset();
        if ending.is_some() || chunk.is_full() {
            chunk.end = scanner.offset();
            // It is not taken when the load has failed, which is reported elsewhere.
            let taken = chunks.send(std::mem::take(&mut chunk)).is_ok();
            // Another thread frees what this one allocates.
            process::memory::publish();
            if let Some(ending) = ending.or((!taken).then_some(Ending::Complete)) {
                return Ok(ending);
            }
        }
    }
}

/// Runs commands as they were once run.
struct Replay<'e> {
    engine: &'e Engine,
    access: Access<'e>,
    turn: Turn,
    session: Session,
    output: Output,
    /// What is queued has times that count from now on.
    transaction_counts_down: bool,
    errors: u64,
    keys: Vec<KeyAt>,
    prepared: Vec<Prepared>,
}

/// Tries a command until it has run: no command of a file may be left out.
struct Insistent;

impl Policy for Insistent {
    /// The journal does not get what is replayed, and the time stands still.
    fn begin(&mut self, _: &mut Turn, _: &Engine) {}

    fn wait(&mut self, _: &mut Turn, _: &Outcome) -> bool {
        std::thread::yield_now();
        true
    }
}

/// The result of [`Engine::prepare`].
struct Prepared {
    row: Option<&'static Row>,
    keys: Range<usize>,
}

impl<'e> Replay<'e> {
    fn new(engine: &'e Engine, access: Access<'e>) -> Replay<'e> {
        Replay {
            engine,
            access,
            turn: Turn::replaying(engine),
            session: engine.replaying_session(),
            output: Output::new(),
            transaction_counts_down: false,
            errors: 0,
            keys: Vec::new(),
            prepared: Vec::new(),
        }
    }

    /// Runs the commands of a chunk.
    fn run(&mut self, chunk: &Chunk) -> Result<(), Problem> {
        self.turn.look_at_clock();
        self.turn.start_timing();
        let mut next = 0;
        while next < chunk.commands.len() {
            let window = next..(next + WINDOW).min(chunk.commands.len());
            next = window.end;
            let mut inside = self.access.enter();
            self.prepare(inside.pinned(), chunk, window.clone());
            for (index, at) in window.enumerate() {
                inside = self.command(chunk, at, index, inside)?;
            }
        }
        process::memory::publish();
        Ok(())
    }

    /// Finds the rows and keys of some commands, and prefetches their data.
    fn prepare(&mut self, pinned: Pinned<'_>, chunk: &Chunk, window: Range<usize>) {
        self.keys.clear();
        self.prepared.clear();
        for at in window {
            let first = self.keys.len();
            let row = self.engine.prepare(chunk.command(at), &mut self.keys);
            self.prepared.push(Prepared { row, keys: first..self.keys.len() });
        }
        self.engine.prefetch_slots(&self.keys);
        self.engine.prefetch_buckets(pinned, self.session.database, &self.keys);
        self.engine.prefetch_entries(pinned, self.session.database, &self.keys);
    }

    /// Runs a command: the one at `index` of the prepared ones.
    fn command(
        &mut self,
        chunk: &Chunk,
        at: usize,
        index: usize,
        inside: Inside<'e>,
    ) -> Result<Inside<'e>, Problem> {
        let argv = chunk.command(at);
        if chunk.commands[at].is_unknown {
            self.leave_out(argv, chunk.commands[at].at);
            return Ok(inside);
        }
        let Prepared { row, ref keys } = self.prepared[index];
        let keys = keys.clone();
        if row.is_some_and(|row| row.command.has(SELECTS)) {
            self.check_database(argv, chunk.commands[at].at)?;
        }
        // Times that count from now on are not journaled, here or in Redis 7. The stream of an
        // older primary has them, and files made by other means.
        let ran_at = chunk.commands[at].ran_at;
        self.turn.now = match self.counts_down(row, argv) {
            true => ran_at.unwrap_or(self.turn.clock / 1000),
            false => 0,
        };
        let errors = self.turn.stats.error_replies.get();
        let start = self.output.mark();
        let request = Request { argv, row, keys: &self.keys[keys], busy: None };
        let (turn, session, output) = (&mut self.turn, &mut self.session, &mut self.output);
        let call = Call { turn, session, request, output };
        let (outcome, inside) = self.engine.drive_from(call, self.access, inside, Insistent);
        // Nothing blocks in a file; a command that would have to wait finds nothing.
        if let Outcome::Blocked(wait) = outcome {
            wait.claim();
            self.engine.end_wait(inside.pinned(), &self.session, &wait);
        }
        if self.turn.stats.error_replies.get() > errors {
            self.note_error(argv, chunk.commands[at].at, row)?;
        }
        self.output.rollback(start);
        Ok(inside)
    }

    /// Whether it matters when a command runs. Within a transaction, it runs with EXEC.
    fn counts_down(&mut self, row: Option<&Row>, argv: Arguments<'_>) -> bool {
        let Some(row) = row else { return false };
        let counts_down = row.command.countdown.is_in(argv) || row.command.has(command::SCRIPT);
        match self.session.transaction {
            None => {
                self.transaction_counts_down = false;
                counts_down
            }
            Some(_) if row.command.has(command::RUNS_QUEUED) => self.transaction_counts_down,
            Some(_) => {
                self.transaction_counts_down |= counts_down;
                false
            }
        }
    }

    /// Loading cannot go on without the database that the next commands belong to, whether SELECT
    /// runs at once or within a transaction.
    fn check_database(&self, argv: Arguments<'_>, at: u64) -> Result<(), Problem> {
        let databases = self.engine.keyspace.databases();
        match selected(argv) {
            Some(index) if index < databases => Ok(()),
            _ => {
                let reason = format!("ERR DB index is out of range: there are {databases}");
                Err(Problem::Command { at, reason })
            }
        }
    }

    /// A command was answered by an error. A command that changes nothing most likely changed
    /// nothing when it was written either; but a load cannot go on without a command.
    fn note_error(
        &mut self,
        argv: Arguments<'_>,
        at: u64,
        row: Option<&'static Row>,
    ) -> Result<(), Problem> {
        let name = match row {
            Some(row) => row.command.full_name(),
            None => {
                let name = argv.get(0).unwrap_or_default().escape_ascii().to_string();
                // The file of a replica has all that its primary knows, and the first versions have
                // not said what of it they did not know.
                if !self.engine.replication.is_replica() {
                    return Err(Problem::UnknownCommand { at, name });
                }
                name
            }
        };
        if self.counts_as_shown() {
            let reply = self.output.to_vec();
            let reason = match self.turn.config.hide_user_data_from_log {
                true => "(hidden)".to_owned(),
                false => String::from_utf8_lossy(&reply).trim().trim_start_matches('-').to_owned(),
            };
            let line = format!("== CRITICAL == Replaying '{name}' at offset {at}: '{reason}'");
            self.engine.host.log(LogLevel::Warning, &line);
        }
        Ok(())
    }

    /// A command was not applied when it came from another server. What came behind it was applied
    /// to data without it, so it is not applied now either, whatever this version knows.
    fn leave_out(&mut self, argv: Arguments<'_>, at: u64) {
        let name = argv.at(0).escape_ascii().to_string();
        let is_frame = name.eq_ignore_ascii_case("multi") || name.eq_ignore_ascii_case("exec");
        if !is_frame && self.counts_as_shown() {
            let line = format!(
                "== CRITICAL == Leaving out '{name}' at offset {at}: it came from a primary, and it, or \
                 another command of its transaction, was not known"
            );
            self.engine.host.log(LogLevel::Warning, &line);
        }
    }

    /// Counts a command that has failed. Returns whether the log shows it.
    fn counts_as_shown(&mut self) -> bool {
        self.errors += 1;
        self.errors <= ERRORS_SHOWN
    }

    fn report(&self, path: &Path) {
        if self.errors > ERRORS_SHOWN {
            let line = format!("{}: {} commands failed", path.display(), self.errors);
            self.engine.host.log(LogLevel::Warning, &line);
        }
    }
}
