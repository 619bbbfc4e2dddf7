//! System calls that have no safe wrapper among the crates we use: local time, fork, signal masks,
//! descriptors that the process began with, the system log, the memory of the command line, and the
//! allocator's commands.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::Duration;

use engine::host::CpuSeconds;
use rustix::event::{PollFd, PollFlags, Timespec};

/// A moment on the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Year of the common era.
    pub year: i32,
    /// Month, from 0.
    pub month: usize,
    /// Day of the month, from 1.
    pub day: i32,
    /// Hour, 0 to 23.
    pub hour: i32,
    /// Minute.
    pub minute: i32,
    /// Second, 60 in a leap second.
    pub second: i32,
}

/// Unix time in the time zone of the process.
pub fn local_time(unix_seconds: i64) -> LocalTime {
    let mut fields = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live variables of the right types; all-zero bytes are a valid
    // `tm`, so the value is initialised whether or not the call succeeds.
    let fields = unsafe {
        libc::localtime_r(&raw const unix_seconds, fields.as_mut_ptr());
        fields.assume_init()
    };
    LocalTime {
        year: fields.tm_year + 1900,
        month: usize::try_from(fields.tm_mon).unwrap_or(0) % 12,
        day: fields.tm_mday,
        hour: fields.tm_hour,
        minute: fields.tm_min,
        second: fields.tm_sec,
    }
}

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The process that forked.
    Parent,
    /// The new process.
    Child,
}

/// Forks, to go into the background.
///
/// # Errors
/// The system's.
///
/// # Panics
/// When the process has more than one thread: the others, and any lock they hold, would be lost in
/// the child.
pub fn fork_before_threads() -> io::Result<Forked> {
    assert_eq!(thread_count(), 1, "going into the background comes before the first thread");
    // SAFETY: this is the only thread, as was just checked, so the child may do whatever the parent
    // may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        _ => Ok(Forked::Parent),
    }
}

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// Blocks these signals in the calling thread and in all that it starts from now on.
pub fn block_signals(signals: &[i32]) {
    let set = signal_set(signals);
    // SAFETY: the set is initialised, and the old mask is not wanted.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for one of these signals, which are blocked in all threads. Returns its number, and the id
/// of the process that has sent it; 0 if none has.
pub fn wait_for_signal(signals: &[i32]) -> (i32, i32) {
    let set = signal_set(signals);
    let mut details = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: both pointers are to live variables of the right types.
        let number = unsafe { libc::sigwaitinfo(&raw const set, details.as_mut_ptr()) };
        if number > 0 {
            // SAFETY: all-zero bytes are a valid value; and every signal that one of these is, if a
            // process has sent it, comes with the process's id.
            let sender = unsafe { details.assume_init_ref().si_pid() };
            return (number, sender);
        }
    }
}

/// Takes a descriptor that was open when the process began.
///
/// # Errors
/// It is not open.
///
/// # Panics
/// When it has been taken before: then its number may be that of something else by now.
pub fn take_inherited(descriptor: RawFd) -> io::Result<OwnedFd> {
    static TAKEN_BELOW: AtomicI32 = AtomicI32::new(0);
    assert!(TAKEN_BELOW.fetch_max(descriptor + 1, Relaxed) <= descriptor, "each is taken once");
    // SAFETY: the call looks at the flags of whatever has this number, and of nothing else.
    if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open. Only the caller's protocol tells of it, and nothing else in the process
    // takes descriptors by their numbers; as was checked, it has not been taken before.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Makes the process ignore a signal.
pub fn ignore_signal(signal: i32) {
    // SAFETY: `SIG_IGN` installs no handler, so no code of ours runs at a bad time.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before anything reads it; an unknown number makes
    // `sigaddset` fail without touching it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Calls `report` when the process is about to end because of a fault of its own: an access to
/// memory that is not there, an impossible instruction, code that gives up by `abort`. The process
/// ends afterwards in any case.
pub fn on_fatal_signal(report: fn(&str)) {
    REPORT.get_or_init(|| report);
    for &(signal, _) in &FATAL_SIGNALS {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all-zero bytes are a valid `sigaction` (no flags, an empty mask), and `handler`
        // has the signature that goes without SA_SIGINFO.
        unsafe {
            let action = action.assume_init_mut();
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            // The handler runs once; the same signal again ends the process.
            action.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigaction(signal, action, std::ptr::null_mut());
        }
    }
}

/// Bytes of the stack on which a thread makes its report. Only a report uses memory there.
const REPORT_STACK: usize = 512 * 1024;

/// A stack beside the one that the thread may have used up.
struct ReportStack(*mut libc::c_void);

impl ReportStack {
    fn new() -> Option<ReportStack> {
        let (protection, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
        );
        // SAFETY: a new mapping, which concerns no other memory.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), REPORT_STACK, protection, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let stack = libc::stack_t { ss_sp: start, ss_flags: 0, ss_size: REPORT_STACK };
        // SAFETY: the mapping is as long as this says, and stays until the thread has another stack
        // or none for its signals: see `drop`.
        unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
        Some(ReportStack(start))
    }
}

impl Drop for ReportStack {
    fn drop(&mut self) {
        let none =
            libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: the thread ends, and no handler uses the mapping from here on.
        unsafe {
            libc::sigaltstack(&raw const none, std::ptr::null_mut());
            libc::munmap(self.0, REPORT_STACK);
        }
    }
}

thread_local! {
    static REPORT_STACK_HERE: Option<ReportStack> = ReportStack::new();
}

/// Keeps a stack for the report of this thread, until it ends: its own may be used up by then.
pub fn keep_report_stack() {
    REPORT_STACK_HERE.with(|_| ());
}

static REPORT: OnceLock<fn(&str)> = OnceLock::new();

const FATAL_SIGNALS: [(i32, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

/// Ends the process at once, without a further report.
pub fn abort() -> ! {
    // SAFETY: the signal gets back what it does by default.
    unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
    std::process::abort()
}

/// How long a report may take, in seconds. The fault can have happened inside the allocator, whose
/// locks the report would then wait for in vain, and the log may be a pipe that nobody reads.
const REPORT_PATIENCE: u32 = 10;

/// Ends the process when the time of a report is up.
pub fn end_soon() {
    // SAFETY: both may be called from a signal handler. The signal of the alarm ends the process,
    // also where the one that started it had it ignored.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(REPORT_PATIENCE);
    }
}

extern "C" fn handler(signal: i32) {
    end_soon();
    let name = FATAL_SIGNALS.iter().find(|(number, _)| *number == signal);
    if let (Some(report), Some((_, name))) = (REPORT.get(), name) {
        report(name);
    }
    // SAFETY: `raise` may be called from a signal handler.
    unsafe { libc::raise(signal) };
}

/// Opens the system log for this process. `name` stands before every message.
pub fn open_system_log(name: &'static CStr, facility: i32) {
    let options = libc::LOG_PID | libc::LOG_NDELAY | libc::LOG_NOWAIT;
    // SAFETY: the C library keeps the pointer, and the name lives as long as the process.
    unsafe { libc::openlog(name.as_ptr(), options, facility) };
}

/// Writes a message to the system log.
pub fn write_system_log(priority: i32, message: &CStr) {
    // SAFETY: the format takes exactly one string, and `message` is one.
    unsafe { libc::syslog(priority, c"%s".as_ptr(), message.as_ptr()) };
}

/// The memory in which the kernel looks for the command line of the process: `ps` shows it.
pub struct TitleArea {
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to the process, not to a thread.
unsafe impl Send for TitleArea {}

impl TitleArea {
    /// Claims the memory of the arguments and of the environment after them, after moving the
    /// environment away. Code that reads the arguments afterwards finds the title instead.
    ///
    /// # Panics
    /// When the process has more than one thread, or has claimed the area before.
    pub fn claim() -> Option<TitleArea> {
        static CLAIMED: AtomicBool = AtomicBool::new(false);
        assert!(!CLAIMED.swap(true, Relaxed), "the title is claimed once");
        assert_eq!(thread_count(), 1, "the title is claimed before the first thread");
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let [arguments, arguments_end] = [stat_field(&stat, 48)?, stat_field(&stat, 49)?];
        let [environment, environment_end] = [stat_field(&stat, 50)?, stat_field(&stat, 51)?];
        if arguments == 0 || arguments_end != environment || environment_end <= arguments {
            return None;
        }
        for (name, value) in std::env::vars_os() {
            // SAFETY: there is no other thread that could read the environment, as was checked.
            // Setting a variable moves it to the heap, so that its old place is free.
            unsafe { std::env::set_var(name, value) };
        }
        let start = std::ptr::with_exposed_provenance_mut(arguments);
        Some(TitleArea { start, length: environment_end - arguments })
    }

    /// Shows this text as the command line, as far as it fits.
    pub fn set(&mut self, title: &[u8]) {
        let shown = title.len().min(self.length - 1);
        // SAFETY: the area is the process's own memory, above its stack, of that length. After
        // `claim` only the list of arguments refers to it, which nothing reads any more and which
        // stays terminated: `shown` is less than the length, so that a zero remains at the end.
        unsafe {
            std::ptr::copy_nonoverlapping(title.as_ptr(), self.start, shown);
            std::ptr::write_bytes(self.start.add(shown), 0, self.length - shown);
        }
    }
}

/// Waits until a poll instance has events, but not longer than `longest`, which may be less than
/// the millisecond that the instance itself counts in. An error ends it at once.
pub fn wait_readable(poll: &impl AsRawFd, longest: Duration) {
    // SAFETY: the descriptor belongs to `poll`, which is borrowed for longer.
    let descriptor = unsafe { BorrowedFd::borrow_raw(poll.as_raw_fd()) };
    let mut waited = [PollFd::new(&descriptor, PollFlags::IN)];
    if let Ok(timeout) = Timespec::try_from(longest) {
        let _ = rustix::event::poll(&mut waited, Some(&timeout));
    }
}

/// Processor time of the process.
pub fn cpu_seconds() -> CpuSeconds {
    let [system, user] = usage(libc::RUSAGE_SELF);
    let [children_system, children_user] = usage(libc::RUSAGE_CHILDREN);
    let [main_thread_system, main_thread_user] = main_thread_seconds().unwrap_or_default();
    CpuSeconds {
        system,
        user,
        children_system,
        children_user,
        main_thread_system,
        main_thread_user,
    }
}

/// CPU seconds of the thread that the process began with, in the system and in user space.
fn main_thread_seconds() -> Option<[f64; 2]> {
    let process = std::process::id();
    let stat = std::fs::read_to_string(format!("/proc/self/task/{process}/stat")).ok()?;
    let ticks = |number| Some(stat_field(&stat, number)? as f64);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some([ticks(15)? / per_second, ticks(14)? / per_second])
}

/// Processor time of each thread of the process, in seconds, with the thread's name; empty where
/// the system does not tell it.
pub fn thread_seconds() -> Vec<(String, f64)> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let seconds = |stat: &str| {
        let (_, name) = stat.split_once('(')?;
        let (name, _) = name.rsplit_once(") ")?;
        let ticks = stat_field(stat, 14)? + stat_field(stat, 15)?;
        Some((name.to_owned(), ticks as f64 / per_second))
    };
    // A thread may end meanwhile.
    let stats =
        threads.flatten().filter_map(|own| std::fs::read_to_string(own.path().join("stat")).ok());
    stats.filter_map(|stat| seconds(&stat)).collect()
}

/// A field of `/proc/PID/stat` by the number that proc(5) gives it, from 3.
fn stat_field(stat: &str, number: usize) -> Option<usize> {
    // The name of the process, in parentheses, may contain spaces; fields are counted after it.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(number - 3)?.trim().parse().ok()
}

/// CPU seconds in the system and outside of it.
fn usage(who: i32) -> [f64; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live variable of the right type; all-zero bytes are a valid
    // `rusage`, so the value is initialised whether or not the call succeeds.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_stime, usage.ru_utime].map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
}

/// Tells the allocator to give all unused pages back to the system.
pub fn purge_allocator() {
    // "arena.4096" stands for all arenas.
    let name = c"arena.4096.purge";
    // SAFETY: the name is terminated, and the command neither takes nor gives a value. It fails
    // only where the allocator has no such command, and then does nothing.
    unsafe {
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_counts_like_the_calendar() {
        // Zones are at most 14 hours away from UTC, so noon of the second stays in January.
        let time = local_time(1_704_196_800);
        assert_eq!((time.year, time.month), (2024, 0));
        assert!((1..=3).contains(&time.day));
        assert_eq!(time.second, 0);
    }

    #[test]
    fn a_blocked_signal_is_waited_for() {
        block_signals(&[libc::SIGUSR2]);
        // SAFETY: raises a signal that this thread blocks, so no handler runs.
        unsafe { libc::raise(libc::SIGUSR2) };
        let own = std::process::id().cast_signed();
        assert_eq!(wait_for_signal(&[libc::SIGUSR2]), (libc::SIGUSR2, own));
    }
}
