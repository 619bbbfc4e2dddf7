//! The log: lines for an operator, in the format that tools for Redis read.
//!
//! `PID:ROLE DD Mon YYYY HH:MM:SS.mmm LEVEL message`. A log file is opened for each line. Lines are
//! rare, and when logrotate has moved the file away, the next line makes a new one; the server
//! needs no signal. Logging never fails: a line that cannot be written is lost. For the journal of
//! systemd, `<N>` before each line says how important it is.
//!
//! A thread that holds slots, such as one that runs a script, must not wait for the log. Its lines
//! go into a queue, which a separate thread writes. Lines of other threads follow the queued ones.
//! That thread also writes what was left out of [`frequent`] lines.

mod frequent;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fmt::{Display, Formatter};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::limits;
use config::{self, Config, SyslogFacility};
use engine::host::{Frequent, LogLevel};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::stdio::stdout;

use self::frequent::{Fate, FrequentLines};
use crate::system::{self, LocalTime};
use crate::thread;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How long the end of the server waits for a log that takes no line.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// How long a crash report waits for lines that are being written.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

/// See the module's text.
pub struct Log {
    /// The lowest level that is written.
    threshold: AtomicU8,
    /// Where lines go; standard output without it.
    file: Option<PathBuf>,
    /// Standard output is read by systemd's journal.
    in_journal: bool,
    /// Lines go to the system log too.
    to_system_log: bool,
    /// Keeps lines of several threads apart.
    writing: Mutex<()>,
    queue: Mutex<Queue>,
    /// Something was queued, or the queue is about to end.
    queued: Condvar,
    /// A line was written, or the thread has ended.
    written: Condvar,
    frequent: FrequentLines,
}

/// Lines that wait to be written.
#[derive(Default)]
struct Queue {
    lines: VecDeque<QueuedLine>,
    /// Bytes of these lines.
    bytes: usize,
    /// Lines that the queue had no room for since the last that it took.
    left_out: usize,
    /// Lines written so far.
    done: u64,
    /// A line is being written.
    busy: bool,
    writer: Writer,
}

/// Who writes the queued lines.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Writer {
    /// Whoever queues a line, at once.
    #[default]
    Anyone,
    /// The thread.
    Thread,
    /// The thread, which ends then.
    EndingThread,
    /// Nobody: the log takes no lines any more.
    Nobody,
}

struct QueuedLine {
    level: LogLevel,
    text: String,
    /// Where the message begins in the text.
    message_at: usize,
}

/// The thread that writes queued lines.
pub struct LogThread {
    log: Arc<Log>,
    thread: JoinHandle<()>,
}

impl QueuedLine {
    fn now(level: LogLevel, message: &str) -> QueuedLine {
        let text = Line::now(level, message).to_string();
        let message_at = text.len() - message.len() - 1;
        QueuedLine { level, text, message_at }
    }

    fn message(&self) -> &str {
        self.text[self.message_at..].trim_end_matches('\n')
    }
}

impl Queue {
    /// Adds a line. One for which there is no room is left out; a line that is longer than the
    /// queue has room if there is no other.
    fn add(&mut self, line: QueuedLine, room: usize) {
        if self.bytes > 0 && self.bytes + line.text.len() > room {
            self.left_out += 1;
            return;
        }
        self.tell_of_left_out();
        self.bytes += line.text.len();
        self.lines.push_back(line);
    }

    /// Says in the place of lines that were left out how many they were.
    fn tell_of_left_out(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let message = format!("{left_out} lines were left out: the log was too slow.");
            let line = QueuedLine::now(LogLevel::Warning, &message);
            self.bytes += line.text.len();
            self.lines.push_back(line);
        }
    }

    /// Takes the first line.
    fn take(&mut self) -> Option<QueuedLine> {
        if self.lines.is_empty() {
            self.tell_of_left_out();
        }
        let line = self.lines.pop_front()?;
        self.bytes -= line.text.len();
        Some(line)
    }

    /// Whether no line waits any more: they are written, or lost.
    fn is_over(&self) -> bool {
        self.writer == Writer::Nobody || (self.lines.is_empty() && !self.busy)
    }
}

impl Log {
    /// Opens the log that the settings ask for. The level can be changed later, the rest cannot.
    ///
    /// # Errors
    /// The file cannot be opened for appending.
    pub fn open(config: &Config) -> io::Result<Log> {
        let file = (!config.logfile.is_empty()).then(|| absolute(&config.logfile));
        if let Some(path) = &file {
            append_to(path)?;
        }
        if config.syslog_enabled {
            open_system_log(config);
        }
        Ok(Log {
            threshold: AtomicU8::new(level_of(config) as u8),
            file,
            in_journal: is_journal(stdout()),
            to_system_log: config.syslog_enabled,
            writing: Mutex::new(()),
            queue: Mutex::default(),
            queued: Condvar::new(),
            written: Condvar::new(),
            frequent: FrequentLines::default(),
        })
    }

    /// Makes a changed `loglevel` take effect.
    pub fn set_level(&self, config: &Config) {
        self.threshold.store(level_of(config) as u8, Relaxed);
    }

    /// Logs a line of the server itself, unless its level is below the configured one. Lines that
    /// clients cause leave room for these in the queue.
    pub fn write(&self, level: LogLevel, message: &str) {
        self.add(level, message, 2 * limits::LOG_QUEUE);
    }

    /// Logs a line that a client may have caused, unless its level is below the configured one.
    pub fn write_for_client(&self, level: LogLevel, message: &str) {
        self.add(level, message, limits::LOG_QUEUE);
    }

    /// Logs a line of a kind that clients may cause as often as they like: one of a kind a second
    /// at most. Whoever has asked for a lower level than that of the usual lines gets all of them.
    pub fn write_frequent(&self, kind: Frequent, level: LogLevel, line: &dyn Fn() -> String) {
        let threshold = self.threshold.load(Relaxed);
        if (level as u8) < threshold {
            return;
        }
        if threshold <= LogLevel::Verbose as u8 {
            return self.write_for_client(level, &line());
        }
        match self.frequent.note(kind, level, base::clock::monotonic_ms(), line) {
            Fate::Written(line) => self.write_for_client(level, &line),
            Fate::Kept => {
                // The thread looks under the lock when it has to wake up.
                drop(self.queue.lock());
                self.queued.notify_one();
            }
            Fate::Counted => {}
        }
    }

    fn add(&self, level: LogLevel, message: &str, room: usize) {
        if (level as u8) < self.threshold.load(Relaxed) {
            return;
        }
        let line = QueuedLine::now(level, message);
        let mut queue = self.queue.lock();
        if queue.writer == Writer::Nobody {
            return;
        }
        queue.add(line, room);
        let writer = queue.writer;
        drop(queue);
        match writer {
            Writer::Anyone => self.write_queued(),
            _ => _ = self.queued.notify_one(),
        }
    }

    /// Starts the thread that writes queued lines.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start_thread(self: &Arc<Self>) -> io::Result<LogThread> {
        let log = Arc::clone(self);
        let thread = thread::start("log", move || {
            while log.wait_for_lines() {
                log.write_queued();
            }
            log.written.notify_all();
        })?;
        self.queue.lock().writer = Writer::Thread;
        Ok(LogThread { log: Arc::clone(self), thread })
    }

    /// Waits for lines. Returns whether there are any; there are none at the end.
    fn wait_for_lines(&self) -> bool {
        let mut queue = self.queue.lock();
        while queue.lines.is_empty() && queue.writer != Writer::EndingThread {
            let now = base::clock::monotonic_ms();
            match self.frequent.next().map(|due| due.saturating_sub(now)) {
                None => self.queued.wait(&mut queue),
                Some(0) => self.queue_frequent(&mut queue, now),
                Some(pause) => {
                    _ = self.queued.wait_for(&mut queue, Duration::from_millis(pause));
                }
            }
        }
        if queue.writer == Writer::EndingThread {
            self.queue_frequent(&mut queue, u64::MAX);
        }
        let any = !queue.lines.is_empty();
        if !any {
            queue.writer = Writer::Anyone;
        }
        any
    }

    /// Queues the lines that were kept and may be written by this time.
    fn queue_frequent(&self, queue: &mut Queue, now: u64) {
        for (level, line) in self.frequent.take(now) {
            queue.add(QueuedLine::now(level, &line), limits::LOG_QUEUE);
        }
    }

    /// Writes the queued lines, in their order.
    fn write_queued(&self) {
        let _writing = self.writing.lock();
        loop {
            let mut queue = self.queue.lock();
            let Some(line) = queue.take() else { return };
            queue.busy = true;
            drop(queue);
            self.append_alone(priority(line.level), &line.text);
            self.tell_system_log(line.level, line.message());
            let mut queue = self.queue.lock();
            (queue.busy, queue.done) = (false, queue.done + 1);
            drop(queue);
            self.written.notify_all();
        }
    }

    /// Waits until `is_over`, as long as lines are written meanwhile. Returns whether it is.
    fn wait_for_writer(
        &self,
        queue: &mut MutexGuard<'_, Queue>,
        is_over: fn(&Queue) -> bool,
    ) -> bool {
        let (mut done, mut deadline) = (queue.done, Instant::now() + END_PATIENCE);
        while !is_over(queue) {
            if self.written.wait_until(queue, deadline).timed_out() && queue.done == done {
                return is_over(queue);
            }
            if queue.done != done {
                (done, deadline) = (queue.done, Instant::now() + END_PATIENCE);
            }
        }
        true
    }

    /// Waits until the queued lines are written, unless the log takes none: the process is about to
    /// end.
    pub fn drain(&self) {
        let _ = self.wait_for_writer(&mut self.queue.lock(), Queue::is_over);
    }

    fn tell_system_log(&self, level: LogLevel, message: &str) {
        if self.to_system_log
            && let Ok(message) = CString::new(message)
        {
            system::write_system_log(priority(level), &message);
        }
    }

    /// Writes at level `warning`.
    pub fn warning(&self, message: impl AsRef<str>) {
        self.write(LogLevel::Warning, message.as_ref());
    }

    /// Writes at level `notice`.
    pub fn notice(&self, message: impl AsRef<str>) {
        self.write(LogLevel::Notice, message.as_ref());
    }

    /// Writes a line at level `warning` without memory from the heap, and without a lock, which the
    /// calling thread may hold: for a time when there is no memory left.
    pub fn last_words(&self, message: &str) {
        let mut line = io::Cursor::new([0; 512]);
        // The part that does not fit is left out.
        if self.in_journal && self.file.is_none() {
            let _ = write!(line, "<{}>", libc::LOG_CRIT);
        }
        let _ = write!(line, "{}", Line::now(LogLevel::Warning, message));
        let length = line.position() as usize;
        let bytes = &line.get_ref()[..length];
        let _ = match &self.file {
            // One write to a file that is opened for appending stays in one piece.
            Some(path) => append_to(path).and_then(|mut file| file.write(bytes)),
            None => rustix::io::write(stdout(), bytes).map_err(io::Error::from),
        };
    }

    /// Writes text as it is, at every level, after the lines that are queued: crash reports. Locks
    /// that a thread does not unlock soon, which may be this one, are passed over.
    pub fn append(&self, text: &str) {
        let writing = self.writing.try_lock_for(REPORT_PATIENCE);
        while writing.is_some()
            && let Some(mut queue) = self.queue.try_lock_for(REPORT_PATIENCE)
            && let Some(line) = queue.take()
        {
            drop(queue);
            self.append_alone(priority(line.level), &line.text);
        }
        self.append_alone(libc::LOG_CRIT, text);
    }

    /// Appends text to the file, or writes it to standard output, with its priority in syslog for
    /// the journal.
    fn append_alone(&self, priority: i32, text: &str) {
        // Nothing can be done about a log that cannot be written, and nobody could be told.
        let _ = match &self.file {
            Some(path) => append_to(path).and_then(|mut file| file.write_all(text.as_bytes())),
            None if self.in_journal => write_out(with_priority(priority, text).as_bytes()),
            None => write_out(text.as_bytes()),
        };
    }
}

impl LogThread {
    /// Has the queued lines written, and ends the thread. If the log takes none for some seconds,
    /// these and all later ones are lost.
    pub fn stop(self) {
        let mut queue = self.log.queue.lock();
        queue.writer = Writer::EndingThread;
        self.log.queued.notify_one();
        let has_ended = |queue: &Queue| queue.writer == Writer::Anyone;
        if self.log.wait_for_writer(&mut queue, has_ended) {
            drop(queue);
            // A panic of the thread has ended the process already.
            let _ = self.thread.join();
        } else {
            queue.writer = Writer::Nobody;
        }
    }
}

/// Whether systemd's journal reads what is written there: `$JOURNAL_STREAM` names the device and
/// the number of its stream.
fn is_journal(descriptor: impl AsFd) -> bool {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let found = rustix::fs::fstat(descriptor);
    found.is_ok_and(|found| named == format!("{}:{}", found.st_dev, found.st_ino))
}

/// The lines of a text, each with its priority for the journal.
fn with_priority(priority: i32, text: &str) -> String {
    text.split_inclusive('\n').flat_map(|line| [format!("<{priority}>"), line.to_owned()]).collect()
}

/// Why the server does not start, as standard error gets it before there is a log.
pub fn complaint(text: &str) -> Cow<'_, str> {
    match is_journal(rustix::stdio::stderr()) {
        true => Cow::Owned(with_priority(libc::LOG_ERR, text)),
        false => Cow::Borrowed(text),
    }
}

/// Writes to standard output, past the buffer of the standard library, whose lock a thread may hold
/// that waits there for ever.
fn write_out(mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(stdout(), rest))?;
        rest = &rest[written..];
    }
    Ok(())
}

/// The path, independent of later changes of the working directory.
fn absolute(path: &[u8]) -> PathBuf {
    let path = crate::paths::path(path);
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn append_to(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// A line of the log.
struct Line<'m> {
    pid: u32,
    time: LocalTime,
    /// Unix milliseconds.
    now: u64,
    level: LogLevel,
    message: &'m str,
}

impl Line<'_> {
    fn now(level: LogLevel, message: &str) -> Line<'_> {
        let now = base::clock::now_ms();
        let time = system::local_time((now / 1000) as i64);
        Line { pid: std::process::id(), time, now, level, message }
    }
}

impl Display for Line<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let LocalTime { year, month, day, hour, minute, second } = self.time;
        let sign = match self.level {
            LogLevel::Debug => '.',
            LogLevel::Verbose => '-',
            LogLevel::Notice => '*',
            LogLevel::Warning | LogLevel::Nothing => '#',
        };
        let (pid, month, message) = (self.pid, MONTHS[month], self.message);
        writeln!(
            formatter,
            "{pid}:M {day:02} {month} {year} {hour:02}:{minute:02}:{second:02}.{:03} {sign} \
             {message}",
            self.now % 1000
        )
    }
}

fn level_of(config: &Config) -> LogLevel {
    match config.loglevel {
        config::LogLevel::Debug => LogLevel::Debug,
        config::LogLevel::Verbose => LogLevel::Verbose,
        config::LogLevel::Notice => LogLevel::Notice,
        config::LogLevel::Warning => LogLevel::Warning,
        config::LogLevel::Nothing => LogLevel::Nothing,
    }
}

fn priority(level: LogLevel) -> i32 {
    match level {
        LogLevel::Debug => libc::LOG_DEBUG,
        LogLevel::Verbose => libc::LOG_INFO,
        LogLevel::Notice => libc::LOG_NOTICE,
        LogLevel::Warning | LogLevel::Nothing => libc::LOG_WARNING,
    }
}

fn open_system_log(config: &Config) {
    /// The C library keeps a pointer to the name.
    static NAME: OnceLock<CString> = OnceLock::new();
    let name =
        NAME.get_or_init(|| CString::new(config.syslog_ident.as_slice()).unwrap_or_default());
    let facility = match config.syslog_facility {
        SyslogFacility::User => libc::LOG_USER,
        SyslogFacility::Local0 => libc::LOG_LOCAL0,
        SyslogFacility::Local1 => libc::LOG_LOCAL1,
        SyslogFacility::Local2 => libc::LOG_LOCAL2,
        SyslogFacility::Local3 => libc::LOG_LOCAL3,
        SyslogFacility::Local4 => libc::LOG_LOCAL4,
        SyslogFacility::Local5 => libc::LOG_LOCAL5,
        SyslogFacility::Local6 => libc::LOG_LOCAL6,
        SyslogFacility::Local7 => libc::LOG_LOCAL7,
    };
    system::open_system_log(name, facility);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn lines_have_the_usual_format() {
        let time = LocalTime { year: 2026, month: 10, day: 7, hour: 5, minute: 4, second: 3 };
        let line = Line { pid: 12, time, now: 1009, level: LogLevel::Notice, message: "Ready" };
        assert_eq!(line.to_string(), "12:M 07 Nov 2026 05:04:03.009 * Ready\n");
    }

    #[test]
    fn each_line_has_its_priority_in_the_journal() {
        assert_eq!(with_priority(3, "one\ntwo\n\nrest"), "<3>one\n<3>two\n<3>\n<3>rest");
    }

    #[test]
    fn the_level_decides_and_a_moved_file_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let logfile = path.to_str().unwrap().as_bytes().to_vec();
        let mut config = Config { logfile, ..Config::default() };
        let log = Log::open(&config).unwrap();
        log.write(LogLevel::Verbose, "unseen");
        log.notice("one");
        std::fs::rename(&path, directory.path().join("old.log")).unwrap();
        config.loglevel = config::LogLevel::Debug;
        log.set_level(&config);
        log.write(LogLevel::Debug, "two");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with(" . two\n") && text.lines().count() == 1, "{text}");
        let old = std::fs::read_to_string(directory.path().join("old.log")).unwrap();
        assert!(old.ends_with(" * one\n") && old.lines().count() == 1, "{old}");
    }

    /// A pipe that nobody reads stands for a disk that stalls.
    #[test]
    fn queued_lines_wait_for_no_file_and_stay_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let logfile = path.to_str().unwrap().as_bytes().to_vec();
        let log = Arc::new(Log::open(&Config { logfile, ..Config::default() }).unwrap());
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let thread = log.start_thread().unwrap();
        let long = "x".repeat(1000);
        let count = 2 * limits::LOG_QUEUE / long.len();
        (0..count).for_each(|number| {
            log.write_for_client(LogLevel::Notice, &format!("{number} {long}"));
        });
        log.write_for_client(LogLevel::Debug, "below the level");
        log.notice("of the server");
        let reader = std::thread::spawn(move || {
            // A pipe that is opened for writing as well does not end with the line of a writer.
            let mut pipe = std::fs::File::options().read(true).write(true).open(path).unwrap();
            let (mut text, mut piece) = (String::new(), [0; 4096]);
            while !text.contains("the end") {
                let length = pipe.read(&mut piece).unwrap();
                text.push_str(std::str::from_utf8(&piece[..length]).unwrap());
            }
            text
        });
        thread.stop();
        log.notice("the end");
        let text = reader.join().unwrap();
        let lines = text.lines().filter_map(|line| line.strip_suffix(&long)?.split(' ').nth(6));
        let numbers: Vec<usize> = lines.map(|number| number.parse().unwrap()).collect();
        assert!(!numbers.is_empty() && numbers.len() < count);
        assert!(numbers.is_sorted_by(|one, next| one < next), "in their order, each once");
        // A thread that begins late makes room for a line between two that are left out.
        let told = |line: &str| {
            line.strip_suffix(" lines were left out: the log was too slow.")?
                .rsplit(' ')
                .next()?
                .parse::<usize>()
                .ok()
        };
        let (before, _) = text.split_once("of the server").unwrap();
        let left_out: usize = before.lines().filter_map(told).sum();
        assert_eq!(numbers.len() + left_out, count, "each was written or told of");
    }

    /// A log in a file, as if a thread wrote its lines that does not do so.
    fn neglected(directory: &Path) -> (Log, PathBuf) {
        let path = directory.join("server.log");
        let logfile = path.to_str().unwrap().as_bytes().to_vec();
        let log = Log::open(&Config { logfile, ..Config::default() }).unwrap();
        log.queue.lock().writer = Writer::Thread;
        (log, path)
    }

    #[test]
    fn a_report_follows_the_lines_that_wait_and_does_not_wait_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let (log, path) = neglected(directory.path());
        log.notice("one");
        log.append("report\n");
        log.notice("lost");
        let writing = log.writing.lock();
        log.append("another\n");
        drop(writing);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with(" * one\nreport\nanother\n"), "{text}");
    }

    #[test]
    fn a_line_longer_than_the_queue_has_room_in_an_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        let (log, path) = neglected(directory.path());
        let long = "x".repeat(2 * limits::LOG_QUEUE);
        log.write_for_client(LogLevel::Notice, &long);
        log.write_for_client(LogLevel::Notice, "left out");
        log.append("");
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().next().is_some_and(|line| line.ends_with(&long)));
        assert!(text.ends_with(" # 1 lines were left out: the log was too slow.\n"));
    }

    #[test]
    fn an_end_does_not_wait_for_a_log_that_nobody_reads() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.log");
        let logfile = path.to_str().unwrap().as_bytes().to_vec();
        let log = Arc::new(Log::open(&Config { logfile, ..Config::default() }).unwrap());
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let thread = log.start_thread().unwrap();
        log.notice("it stays in the pipe");
        thread.stop();
        log.notice("lost");
        assert!(log.queue.lock().writer == Writer::Nobody);
    }
}
