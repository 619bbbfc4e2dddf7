//! The crash report: what is needed to find a mistake after the process has ended.
//!
//! A panic ends the process, in whichever thread it happens, because the state of the data is then
//! unknown. So does a fault that the processor reports, or code that aborts, as for lack of memory. Before
//! that, the report is written to the log.

use std::backtrace::Backtrace;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use config::Config;

use crate::process::log::Log;
use crate::process::system;

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
        backtrace = Backtrace::force_capture(),
    ));
}
