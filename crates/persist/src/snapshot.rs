//! Writing the data of a cut as a file: RDB, or commands.
//!
//! The thread that writes goes through the cut in small steps. Within a step it may hold a slot
//! while small values are shown, so their bytes are gathered in memory. Between steps, and while a
//! large value is shown, it holds no lock and writes to the file. Only this thread waits for the
//! disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::Config;
use engine::content_types::ContentTypes;
use engine::engine::Engine;
use engine::session::attachment::Attachment;
use rdb::file::{Collection, FileWriter, Head, Preamble, StreamPlace, Usage, WriteOptions};
use store::ValueRef;
use store::cut::{self, Sink, WalkProgress, Walker};
use store::evict;
use store::freeze::{Piece, PieceKind};
use store::gate::Access;
use store::pack::Element;

use super::as_commands::CommandSink;
use super::delay::Delay;
use super::shape::{CHUNK, Shape, Staged};

/// Steps between two checks of how far the file is, and of whether it is still wanted.
const STEPS_PER_REPORT: usize = 64;
/// How long the thread works at a stretch while commands go on. Without pauses, a request on a
/// processor that it shares with a worker would wait for the end of its time slice, some
/// milliseconds.
const STINT: Duration = Duration::from_micros(100);
/// How long it then rests; also when another thread has found a slot locked by it.
const REST: Duration = Duration::from_micros(50);
/// Steps that found a slot in use before the thread lets others run.
const CONTENDED_MAX: usize = 16;

/// The kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A file of its own.
    Whole,
    /// The base of an append-only file.
    AofBase,
    /// The same, as commands.
    AofBaseAsCommands,
}

/// How the data is gone through.
#[derive(Clone, Copy)]
struct Pace<'g> {
    access: Access<'g>,
    /// Microseconds of waiting after each key, as [`Delay`] has them.
    per_key: i32,
}

/// A file that is complete, but not synced.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// Keys.
    pub keys: u64,
}

/// Writes all entries of a cut to `file`, and where the stream goes on after them. `report` is
/// called now and then with the number of keys written, and returns whether to go on.
///
/// # Errors
/// The file's, and [`io::ErrorKind::Interrupted`] when `report` says so. The file is worth nothing
/// then.
pub fn write(
    engine: &Engine,
    walker: Walker<'_, Attachment>,
    access: Access<'_>,
    (purpose, place): (Purpose, Option<StreamPlace<'_>>),
    mut file: impl Write,
    report: impl FnMut(u64) -> bool,
) -> io::Result<Written> {
    let beside_commands = matches!(access, Access::Gate(_));
    let rest = if beside_commands { REST } else { Duration::ZERO };
    let staged = Staged::new(&mut file, rest);
    let config = engine.config.snapshot();
    let pace = Pace { access, per_key: config.rdb_key_save_delay };
    let libraries = engine.scripts.functions.take_at_cut();
    let version = version_of(&config, walker.has_expiring_fields());
    if purpose == Purpose::AofBaseAsCommands {
        let mut sink = CommandSink::new(staged.clone(), &engine.content_types);
        libraries.iter().for_each(|library| sink.put_library(library.source()));
        return write_shaped(sink, &staged, walker, pace, report);
    }
    let mut sink = RdbSink::begin(engine, &config, (purpose, version, place), staged.clone())?;
    libraries.iter().try_for_each(|library| sink.writer.function(library.source()))?;
    write_shaped(sink, &staged, walker, pace, report)
}

/// What a copy for replicas consists of.
#[derive(Clone, Copy, Debug)]
pub struct CopyForm<'a> {
    /// The version of the format.
    pub version: u16,
    /// Where the stream of writes goes on after it.
    pub place: StreamPlace<'a>,
    /// Without keys.
    pub without_data: bool,
    /// Without functions.
    pub without_functions: bool,
}

/// Writes a copy of a cut for replicas, as [`write`] writes a file.
///
/// # Errors
/// As [`write`].
pub fn write_copy(
    engine: &Engine,
    walker: Walker<'_, Attachment>,
    access: Access<'_>,
    form: &CopyForm<'_>,
    mut output: impl Write,
    report: impl FnMut(u64) -> bool,
) -> io::Result<Written> {
    let staged = Staged::new(&mut output, REST);
    let config = engine.config.snapshot();
    let pace = Pace { access, per_key: config.rdb_key_save_delay };
    let libraries = engine.scripts.functions.take_at_cut();
    let shape = (Purpose::Whole, form.version, Some(form.place));
    let mut sink = RdbSink::begin(engine, &config, shape, staged.clone())?;
    if !form.without_functions {
        libraries.iter().try_for_each(|library| sink.writer.function(library.source()))?;
    }
    if form.without_data {
        drop(walker);
        let bytes = sink.finish()?;
        staged.end()?;
        return Ok(Written { bytes, keys: 0 });
    }
    write_shaped(sink, &staged, walker, pace, report)
}

/// Writes the entries of a cut as commands that a client may send, as [`write`] writes a file. No
/// functions are among them.
///
/// # Errors
/// As [`write`].
pub fn write_commands(
    engine: &Engine,
    walker: Walker<'_, Attachment>,
    access: Access<'_>,
    mut output: impl Write,
    report: impl FnMut(u64) -> bool,
) -> io::Result<Written> {
    let staged = Staged::new(&mut output, REST);
    let sink = CommandSink::new(staged.clone(), &engine.content_types).into_client();
    write_shaped(sink, &staged, walker, Pace { access, per_key: 0 }, report)
}

/// The version of a file: the oldest from 11 on that can express the data, if the settings allow
/// it.
fn version_of(config: &Config, has_expiring_fields: bool) -> u16 {
    let needed = match has_expiring_fields {
        true => rdb::FILE_VERSION_WITH_EXPIRING_FIELDS,
        false => rdb::FILE_VERSION,
    };
    config.rdb_version.min(needed)
}

/// The error that ends a file that is not wanted any more.
pub(super) fn not_wanted() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it is not wanted any more")
}

/// Writes a file without entries: libraries of functions stay when the data goes.
///
/// # Errors
/// The file's.
pub fn write_none(engine: &Engine, purpose: Purpose, mut file: impl Write) -> io::Result<()> {
    let staged = Staged::new(&mut file, Duration::ZERO);
    let libraries = engine.scripts.functions.libraries();
    if purpose == Purpose::AofBaseAsCommands {
        let mut sink = CommandSink::new(staged.clone(), &engine.content_types);
        libraries.iter().for_each(|library| sink.put_library(library.source()));
        sink.finish()?;
    } else {
        let config = engine.config.snapshot();
        let version = version_of(&config, false);
        let mut sink = RdbSink::begin(engine, &config, (purpose, version, None), staged.clone())?;
        libraries.iter().try_for_each(|library| sink.writer.function(library.source()))?;
        sink.finish()?;
    }
    staged.end()
}

fn write_shaped<S: Shape>(
    mut sink: S,
    staged: &Staged<'_>,
    mut walker: Walker<'_, Attachment>,
    Pace { access, per_key }: Pace<'_>,
    mut report: impl FnMut(u64) -> bool,
) -> io::Result<Written> {
    let (mut contended, mut steps) = (0, 0);
    let mut delay = Delay::default();
    let mut stint = Instant::now();
    loop {
        let beside_commands = matches!(access, Access::Gate(_));
        if walker.was_in_the_way() || beside_commands && stint.elapsed() >= STINT {
            std::thread::sleep(REST);
            stint = Instant::now();
        }
        let keys_before = sink.keys();
        let step = walker.step(access, &mut sink);
        sink.failed()?;
        contended = if step == WalkProgress::Contended { contended + 1 } else { 0 };
        if contended > CONTENDED_MAX {
            std::thread::yield_now();
        }
        staged.pass_on(CHUNK)?;
        steps += 1;
        if steps % STEPS_PER_REPORT == 0 && !report(sink.keys()) {
            return Err(not_wanted());
        }
        let keys = sink.keys();
        if per_key != 0 && !delay.wait(keys - keys_before, || per_key, || report(keys)) {
            return Err(not_wanted());
        }
        if step == WalkProgress::Finished {
            break;
        }
    }
    // Writers need not hand anything over any more.
    drop(walker);
    let keys = sink.keys();
    let bytes = sink.finish()?;
    staged.end()?;
    report(keys);
    Ok(Written { bytes, keys })
}

/// Shapes entries as an RDB file has them.
struct RdbSink<'f> {
    writer: FileWriter<Staged<'f>>,
    /// Where the writer puts it.
    staged: Staged<'f>,
    /// The database of the entries before.
    database: Option<usize>,
    keys: u64,
    /// The content-type id of the entries before.
    content_type_id: u8,
    content_types: Arc<ContentTypes>,
    /// How to read the eviction clock.
    clock: Clock,
    /// The first thing that could not be written.
    error: Option<io::Error>,
}

/// The present second, as the eviction clock of keys has it.
fn seconds() -> u32 {
    (base::clock::monotonic_ms() / 1000) as u32 & 0xff_ffff
}

/// How long a key was idle at an instant, if it was used in this second. One that was used since
/// the instant would otherwise seem idle for half a year, as long as the clock goes.
fn idle_seconds(then: u32, used: u32, now: impl FnOnce() -> u32) -> u64 {
    let idle = evict::idle_seconds(used, then);
    // The time is looked at only for the few keys that this may be true of.
    let is_later =
        idle >= 1 << 23 && evict::idle_seconds(then, used) <= evict::idle_seconds(then, now());
    if is_later { 0 } else { u64::from(idle) }
}

/// The meaning of the eviction clock of keys, and the time to compare it with.
#[derive(Clone, Copy)]
enum Clock {
    /// Nothing that outlives the process.
    Unused,
    /// The second in which the file was begun; 24 bits of it are kept.
    Seconds(u32),
    /// A counter in the lowest byte.
    Counter,
}

impl Clock {
    fn new(config: &Config) -> Clock {
        if config.maxmemory_policy.is_lfu() {
            Clock::Counter
        } else if config.maxmemory_policy.is_lru() {
            Clock::Seconds(seconds())
        } else {
            Clock::Unused
        }
    }

    fn usage(self, clock: u32) -> Option<Usage> {
        match self {
            Clock::Unused => None,
            Clock::Seconds(then) => Some(Usage::IdleSeconds(idle_seconds(then, clock, seconds))),
            Clock::Counter => Some(Usage::Frequency(clock as u8)),
        }
    }
}

impl<'f> RdbSink<'f> {
    fn begin(
        engine: &Engine,
        config: &Config,
        (purpose, version, stream): (Purpose, u16, Option<StreamPlace<'_>>),
        staged: Staged<'f>,
    ) -> io::Result<RdbSink<'f>> {
        let options =
            WriteOptions { compress: config.rdbcompression, checksum: config.rdbchecksum, version };
        let mut writer = FileWriter::new(staged.clone(), options)?;
        writer.preamble(&Preamble {
            server_version: engine::REDIS_VERSION,
            created_seconds: base::clock::now_ms() / 1000,
            used_memory: engine.host.used_memory() as u64,
            aof_base: purpose == Purpose::AofBase,
            stream,
        })?;
        Ok(RdbSink {
            writer,
            staged,
            database: None,
            keys: 0,
            content_type_id: 0,
            content_types: Arc::clone(&engine.content_types),
            clock: Clock::new(config),
            error: None,
        })
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    fn head<'h>(&mut self, head: &cut::Head<'h>) -> Head<'h> {
        if self.database != Some(head.database) {
            self.database = Some(head.database);
            let written = self.writer.select(head.database);
            self.note(written);
        }
        if self.content_type_id != head.content_type_id {
            self.content_type_id = head.content_type_id;
            let name = self.content_types.name(head.content_type_id).unwrap_or_default();
            let written = self.writer.content_type(&name);
            self.note(written);
        }
        self.keys += 1;
        Head { key: head.key, expire_at_ms: head.expire_at, usage: self.clock.usage(head.clock) }
    }
}

impl Shape for RdbSink<'_> {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn failed(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn finish(self) -> io::Result<u64> {
        Ok(self.writer.finish()?.size)
    }
}

impl Sink for RdbSink<'_> {
    fn entry(&mut self, head: &cut::Head<'_>, value: ValueRef<'_>) {
        let head = self.head(head);
        let written = self.writer.entry(&head, value);
        self.note(written);
    }

    fn entry_at_leisure(&mut self, head: &cut::Head<'_>, value: ValueRef<'_>) {
        self.staged.set_at_leisure(true);
        self.entry(head, value);
        self.staged.set_at_leisure(false);
    }

    fn begin_text(&mut self, head: &cut::Head<'_>, len: usize) {
        let head = self.head(head);
        let written = self.writer.begin_text(&head, len as u64);
        self.note(written);
    }

    fn text(&mut self, part: &[u8]) {
        self.staged.set_at_leisure(true);
        let written = self.writer.text_part(part);
        self.staged.set_at_leisure(false);
        self.note(written);
    }

    fn end_text(&mut self) {
        self.staged.set_at_leisure(true);
        let written = self.writer.end_text();
        self.staged.set_at_leisure(false);
        self.note(written);
    }

    fn begin(&mut self, head: &cut::Head<'_>, kind: PieceKind, len: usize) {
        let head = self.head(head);
        let collection = match kind {
            PieceKind::Member => Collection::Set,
            PieceKind::Field(None) => Collection::Hash,
            PieceKind::Field(Some(earliest)) => Collection::ExpiringHash { earliest },
            PieceKind::Scored => Collection::Zset,
        };
        let written = self.writer.begin(&head, collection, len as u64);
        self.note(written);
    }

    fn piece(&mut self, piece: Piece<'_>) {
        let written = match piece {
            Piece::Member(member) => self.writer.member(Element::Str(member)),
            Piece::Field(field, value, expire_at) => {
                self.writer.field(Element::Str(field), Element::Str(value), expire_at)
            }
            Piece::Scored(member, score) => self.writer.scored(Element::Str(member), score),
        };
        self.note(written);
    }

    fn piece_at_leisure(&mut self, piece: Piece<'_>) {
        self.staged.set_at_leisure(true);
        self.piece(piece);
        self.staged.set_at_leisure(false);
    }

    fn end(&mut self) {
        let written = self.writer.end();
        self.note(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_used_since_the_cut_are_not_idle() {
        // The file is begun, and 20 seconds later it is written.
        let idle = |then: u32, used| idle_seconds(then, used, || (then + 20) & 0xff_ffff);
        assert_eq!(idle(100, 40), 60);
        assert_eq!(idle(100, 101), 0);
        // The clock of 24 bits has begun anew.
        assert_eq!(idle(3, 0xff_fffe), 5);
        assert_eq!(idle(0xff_fffe, 3), 0);
        assert_eq!(idle(100, 120), 0);
    }

    #[test]
    fn keys_unused_for_months_keep_their_idle_time() {
        const DAY: u32 = 24 * 60 * 60;
        for days in [96, 98, 150, 194] {
            let idle = idle_seconds(200 * DAY, (200 - days) * DAY, || 200 * DAY + 20);
            assert_eq!(idle, u64::from(days * DAY));
        }
        let usage = Clock::Seconds(seconds()).usage(seconds().wrapping_sub(150 * DAY) & 0xff_ffff);
        let Some(Usage::IdleSeconds(idle)) = usage else { panic!("it has a time") };
        assert!((150..151).contains(&(idle / u64::from(DAY))), "{idle} seconds");
    }
}
