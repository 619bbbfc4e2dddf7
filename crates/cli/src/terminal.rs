//! The terminal at standard input: keys as they are pressed, and a password that is not shown.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;

use termion::event::Key;
use termion::input::TermRead;
use termion::raw::{IntoRawMode, RawTerminal};

use crate::print::{complain, output};

/// Standard input, read without a buffer.
fn input() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// The keys that are pressed.
pub(crate) struct Keys {
    keys: termion::input::Keys<File>,
    /// Those that were read and are to come again.
    returned: VecDeque<Key>,
}

impl Keys {
    /// The keys of standard input.
    pub(crate) fn open() -> io::Result<Keys> {
        Ok(Keys { keys: input()?.keys(), returned: VecDeque::new() })
    }

    /// Waits for the next key; `None` when the terminal is gone.
    pub(crate) fn next(&mut self) -> Option<Key> {
        if let Some(key) = self.returned.pop_front() {
            return Some(key);
        }
        loop {
            match self.keys.next()? {
                Ok(key) => return Some(key),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What is no text is no key.
                Err(error) if error.kind() == io::ErrorKind::Other => {}
                Err(_) => return None,
            }
        }
    }

    /// Makes this the next key.
    pub(crate) fn give_back(&mut self, key: Key) {
        self.returned.push_back(key);
    }
}

/// As long as it lives, keys come at once and are not shown.
pub(crate) struct RawMode(RawTerminal<File>);

impl RawMode {
    /// Begins; fails where there is no terminal.
    pub(crate) fn begin() -> io::Result<RawMode> {
        input()?.into_raw_mode().map(RawMode)
    }

    /// Does something that prints whole lines, with the terminal as it was.
    pub(crate) fn suspended<R>(&self, act: impl FnOnce() -> R) -> R {
        // If this fails, lines only look odd.
        let _ = self.0.suspend_raw_mode();
        let result = act();
        let _ = self.0.activate_raw_mode();
        result
    }
}

/// Asks for a password, which is not shown.
pub(crate) fn password() -> Option<String> {
    if !io::stdin().is_terminal() {
        let mut line = String::new();
        io::stdin().read_line(&mut line).ok()?;
        return Some(line.trim_end_matches(['\n', '\r']).to_owned());
    }
    output(b"Please input password: ");
    let mut input = input().ok()?;
    let raw = RawMode::begin().ok();
    let mut typed = Vec::new();
    let mut one = [0; 1];
    let is_typed = loop {
        match input.read(&mut one) {
            Ok(1) => {}
            _ => break false,
        }
        match one[0] {
            b'\n' | b'\r' => break true,
            3 => break false,
            4 if typed.is_empty() => break false,
            8 | 0x7f => {
                if typed.pop().is_some() {
                    output(b"\x08 \x08");
                }
            }
            byte => {
                typed.push(byte);
                output(b"*");
            }
        }
    };
    drop(raw);
    output(b"\n");
    if !is_typed {
        complain("no password");
        return None;
    }
    Some(String::from_utf8_lossy(&typed).into_owned())
}
