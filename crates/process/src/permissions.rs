//! The permissions of the files and directories that the server makes: 0640 and 0750, whatever the
//! umask that it was started with.
//!
//! A pid file and a unix socket are open to more: the code that makes them says so.

use std::sync::OnceLock;

use rustix::fs::Mode;

/// Takes everything from others, and writing from the group.
const UMASK: Mode = Mode::WGRP.union(Mode::RWXO);

/// The umask that the process was started with.
static AT_START: OnceLock<Mode> = OnceLock::new();

/// Gives these permissions to all that the process makes from now on.
pub fn choose() {
    let before = rustix::process::umask(UMASK);
    AT_START.get_or_init(|| before);
}

/// The mode of a unix socket for which no setting chooses one: all that the umask at the start
/// leaves.
pub fn of_socket() -> u32 {
    let taken = AT_START.get().copied().unwrap_or(UMASK);
    (Mode::RWXU | Mode::RWXG | Mode::RWXO).difference(taken).bits()
}
