//! The crash report: what helps to find a mistake after the process has ended.
//!
//! A panic ends the process, in whichever thread it happens, because the state of the data is then
//! unknown. So does a fault that the processor reports, or code that aborts, as for lack of memory.
//! Before that, the lines of the log that wait are written, and the report follows them. A log that
//! cannot be written does not keep the process from ending.

use std::backtrace::Backtrace;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use config::Config;

use crate::log::Log;
use crate::system;

/// What the log says in place of data.
const HIDDEN: &str = "(hidden by hide-user-data-from-log)";

/// The contents of a report besides the reason, and where it goes.
struct Reports {
    log: Arc<Log>,
    /// `crash-log-enabled`.
    enabled: AtomicBool,
    /// `hide-user-data-from-log`: the message of a panic may quote data.
    hides_data: AtomicBool,
    command_line: String,
}

/// There is one report per process, and signal handlers take no arguments.
static REPORTS: OnceLock<Reports> = OnceLock::new();

/// From now on, reports about panics and faults go to this log.
pub fn install(log: Arc<Log>, config: &Config, command_line: String) {
    let enabled = AtomicBool::new(config.crash_log_enabled);
    let hides_data = AtomicBool::new(config.hide_user_data_from_log);
    system::keep_report_stack();
    REPORTS.get_or_init(|| Reports { log, enabled, hides_data, command_line });
    std::panic::set_hook(Box::new(|info| crash(&describe(info))));
    system::on_fatal_signal(|signal| report(&format!("crashed by signal {signal}")));
}

/// Makes a changed `crash-log-enabled` or `hide-user-data-from-log` take effect.
pub fn apply(config: &Config) {
    if let Some(reports) = REPORTS.get() {
        reports.enabled.store(config.crash_log_enabled, Relaxed);
        reports.hides_data.store(config.hide_user_data_from_log, Relaxed);
    }
}

/// Logs that the system has no memory for this many bytes: the code that asked for them most likely
/// ends the process now. Called by the allocator; takes no memory itself.
#[cold]
pub fn note_failed_allocation(bytes: usize) {
    /// If writing the line asks for memory after all, that does not come here again.
    static NOTING: AtomicBool = AtomicBool::new(false);
    let Some(reports) = REPORTS.get() else { return };
    if NOTING.swap(true, Relaxed) {
        return;
    }
    let mut message = io::Cursor::new([0; 128]);
    // The text is shorter than that.
    let _ = write!(message, "Out Of Memory allocating {bytes} bytes!");
    let length = message.position() as usize;
    reports.log.last_words(str::from_utf8(&message.get_ref()[..length]).unwrap_or_default());
    NOTING.store(false, Relaxed);
}

/// Ends the process at once, with a report.
pub fn crash(reason: &str) -> ! {
    report(reason);
    system::abort()
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(String::new, |place| format!(" ({place})"));
    let hides_data = REPORTS.get().is_some_and(|reports| reports.hides_data.load(Relaxed));
    let message = match info.payload_as_str() {
        Some(_) if hides_data => HIDDEN,
        Some(message) => message,
        None => "a panic without words",
    };
    format!("panicked: {message}{place}")
}

fn report(reason: &str) {
    let Some(reports) = REPORTS.get() else { return };
    if !reports.enabled.load(Relaxed) {
        return;
    }
    system::end_soon();
    let thread = std::thread::current();
    reports.log.append(&format!(
        "\n=== DUNLIN BUG REPORT START: please send it all, with what led to it ===\n\
         Reason: {reason}\n\
         Version: {version}, {architecture}\n\
         Command line: {command_line}\n\
         Process and thread: {process}, {thread}\n\
         \n------ STACK TRACE ------\n{backtrace}\n\
         === DUNLIN BUG REPORT END ===\n\n",
        version = env!("CARGO_PKG_VERSION"),
        architecture = std::env::consts::ARCH,
        command_line = reports.command_line,
        process = std::process::id(),
        thread = thread.name().unwrap_or("unnamed"),
        backtrace = shortened(&Backtrace::force_capture().to_string()),
    ));
}

/// Lines that are kept of each end of a trace.
const LINES_OF_TRACE: usize = 200;

/// A trace without its middle: one of a stack that is used up has thousands of lines, mostly alike.
fn shortened(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    let Some(left_out) = lines.len().checked_sub(2 * LINES_OF_TRACE).filter(|count| *count > 0)
    else {
        return trace.to_owned();
    };
    let (first, last) = (&lines[..LINES_OF_TRACE], &lines[lines.len() - LINES_OF_TRACE..]);
    format!("{}\n[{left_out} lines]\n{}", first.join("\n"), last.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::thread;

    /// Where the process that [`a_thread_without_stack_reports`] starts writes its log.
    const LOG: &str = "DUNLIN_TEST_LOG_OF_CRASH";

    #[test]
    fn a_thread_without_stack_reports() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let this = std::env::current_exe().unwrap();
        let name = "crash::tests::uses_up_its_stack";
        let mut command = Command::new(this);
        let ended = command.args(["--exact", name, "--ignored"]).env(LOG, &log).output().unwrap();
        assert!(!ended.status.success());
        let log = std::fs::read_to_string(&log).unwrap();
        let is_there = |part: &str| assert!(log.contains(part), "{part}: {log}");
        is_there("Reason: crashed by signal SIGSEGV");
        is_there(", deep\n");
        is_there("use_up");
        is_there("=== DUNLIN BUG REPORT END ===");
        assert!(log.lines().count() < 3 * LINES_OF_TRACE);
    }

    /// Needs a stack frame each time.
    fn use_up(depth: usize) -> usize {
        if depth == usize::MAX {
            return 0;
        }
        let frame = black_box([depth; 64]);
        frame[1] + use_up(black_box(depth + 1)) + frame[depth % 64]
    }

    #[test]
    #[ignore = "it ends its process"]
    fn uses_up_its_stack() {
        let log = std::env::var_os(LOG).expect("another test starts this one");
        let logfile = Path::new(&log).as_os_str().as_encoded_bytes().to_vec();
        let config = Config { logfile, ..Config::default() };
        let log = Arc::new(Log::open(&config).unwrap());
        install(log, &config, String::new());
        let ended = thread::start("deep", || use_up(0)).unwrap().join();
        unreachable!("{ended:?}");
    }
}
