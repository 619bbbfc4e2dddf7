//! What has happened: a hash of all of it, the last part as text, and all of it as a file if
//! `DUNLIN_TRACE` names one.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use crate::hold::Call;
use crate::outcome::Outcome;

/// Lines of the last part.
const RECENT: usize = 60;

/// Bytes of a message or of a write that are shown.
const SHOWN: usize = 400;

/// The record of a world.
pub(crate) struct Trace {
    hash: u64,
    recent: VecDeque<String>,
    file: Option<BufWriter<File>>,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        let path = std::env::var_os("DUNLIN_TRACE");
        let file = path.and_then(|path| File::create(path).ok()).map(BufWriter::new);
        Trace { hash: 0xcbf2_9ce4_8422_2325, recent: VecDeque::new(), file }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn recent(&self) -> String {
        self.recent.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        })
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }

    /// Notes a call and what it has come to.
    pub(crate) fn call(
        &mut self,
        now: u64,
        process: usize,
        thread: usize,
        call: &Call,
        outcome: &Outcome,
    ) {
        let value = match outcome {
            Outcome::Value(value) => *value,
            Outcome::GoOn => 1 << 40,
            Outcome::Wait => 1 << 41,
        };
        for number in [now, process as u64, thread as u64, call.number as u64, value as u64] {
            self.mix(number);
        }
        let outcome = match outcome {
            Outcome::Value(value) => value.to_string(),
            Outcome::GoOn => "goes on".to_owned(),
            Outcome::Wait => "waits".to_owned(),
        };
        let name = name(call.number);
        self.keep(format!("{now} {process}.{thread}: {name} {outcome}"));
    }

    /// Notes something else.
    pub(crate) fn say(&mut self, now: u64, text: &str) {
        text.bytes().for_each(|byte| self.mix(u64::from(byte)));
        self.keep(format!("{now} {text}"));
    }

    /// Notes the beginning of bytes that go somewhere, in the file alone.
    pub(crate) fn show(&mut self, what: &str, bytes: &[u8]) {
        if let Some(file) = &mut self.file {
            let shown = &bytes[..bytes.len().min(SHOWN)];
            let _ = writeln!(file, "    {what}: {}", shown.escape_ascii());
        }
    }

    fn keep(&mut self, line: String) {
        if let Some(file) = &mut self.file {
            let _ = writeln!(file, "{line}");
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(line);
    }
}

/// The names of frequent calls; others have their number.
fn name(number: i64) -> String {
    const NAMES: &[(i64, &str)] = &[
        (libc::SYS_accept4, "accept"),
        (libc::SYS_clock_gettime, "clock"),
        (libc::SYS_clock_nanosleep, "sleep"),
        (libc::SYS_clone3, "clone"),
        (libc::SYS_close, "close"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_epoll_ctl, "epoll_ctl"),
        (libc::SYS_epoll_pwait2, "epoll_wait"),
        (libc::SYS_epoll_wait, "epoll_wait"),
        (libc::SYS_exit, "exit"),
        (libc::SYS_fdatasync, "fdatasync"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_ftruncate, "ftruncate"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_openat, "open"),
        (libc::SYS_ppoll, "poll"),
        (libc::SYS_read, "read"),
        (libc::SYS_recvfrom, "receive"),
        (libc::SYS_rename, "rename"),
        (libc::SYS_sched_yield, "yield"),
        (libc::SYS_sendto, "send"),
        (libc::SYS_unlink, "unlink"),
        (libc::SYS_write, "write"),
        (libc::SYS_writev, "writev"),
    ];
    let known = NAMES.iter().find(|(it, _)| *it == number);
    known.map_or_else(|| format!("call {number}"), |(_, name)| (*name).to_owned())
}
