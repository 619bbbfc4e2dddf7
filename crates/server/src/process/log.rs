//! The log: lines for an operator, in the format that tools for Redis read.
//!
//! `PID:ROLE DD Mon YYYY HH:MM:SS.mmm LEVEL message`. A log file is opened for each line: lines are
//! rare, and after the file is moved away (logrotate does that) there is a new one without a word to
//! the server. Logging never fails: a line that cannot be written is lost.

use std::ffi::CString;
use std::fmt::{Display, Formatter};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use config::{self, Config, SyslogFacility};
use engine::host::LogLevel;
use parking_lot::Mutex;

use crate::process::system::{self, LocalTime};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// See the module's text.
pub struct Log {
    /// The lowest level that is written.
    threshold: AtomicU8,
    /// Where lines go; standard output without it.
    file: Option<PathBuf>,
    /// Lines go to the system log too.
    to_system_log: bool,
    /// Keeps lines of several threads apart.
    writing: Mutex<()>,
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
            to_system_log: config.syslog_enabled,
            writing: Mutex::new(()),
        })
    }

    /// Makes a changed `loglevel` take effect.
    pub fn set_level(&self, config: &Config) {
        self.threshold.store(level_of(config) as u8, Relaxed);
    }

    /// Writes a line, unless its level is below the configured one.
    pub fn write(&self, level: LogLevel, message: &str) {
        if (level as u8) < self.threshold.load(Relaxed) {
            return;
        }
        let now = base::clock::now_ms();
        let time = system::local_time((now / 1000) as i64);
        self.append(&Line { pid: std::process::id(), time, now, level, message }.to_string());
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
        let now = base::clock::now_ms();
        let time = system::local_time((now / 1000) as i64);
        let mut line = io::Cursor::new([0; 512]);
        let parts = Line { pid: std::process::id(), time, now, level: LogLevel::Warning, message };
        // The part that does not fit is left out.
        let _ = write!(line, "{parts}");
        let length = line.position() as usize;
        let bytes = &line.get_ref()[..length];
        let _ = match &self.file {
            // One write to a file that is opened for appending stays in one piece.
            Some(path) => append_to(path).and_then(|mut file| file.write(bytes)),
            None => rustix::io::write(rustix::stdio::stdout(), bytes).map_err(io::Error::from),
        };
    }

    /// Writes text as it is, at every level: crash reports.
    pub fn append(&self, text: &str) {
        let _writing = self.writing.lock();
        // Nothing can be done about a log that cannot be written, and nobody could be told.
        let _ = match &self.file {
            Some(path) => append_to(path).and_then(|mut file| file.write_all(text.as_bytes())),
            None => {
                let mut output = io::stdout().lock();
                output.write_all(text.as_bytes()).and_then(|()| output.flush())
            }
        };
    }
}

/// The path, independent of later changes of the working directory.
fn absolute(path: &[u8]) -> PathBuf {
    let path = crate::process::paths::path(path);
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
    use super::*;

    #[test]
    fn lines_have_the_usual_format() {
        let time = LocalTime { year: 2026, month: 10, day: 7, hour: 5, minute: 4, second: 3 };
        let line = Line { pid: 12, time, now: 1009, level: LogLevel::Notice, message: "Ready" };
        assert_eq!(line.to_string(), "12:M 07 Nov 2026 05:04:03.009 * Ready\n");
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
}
