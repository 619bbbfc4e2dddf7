//! The screen that goes on: keys that are pressed, and looks again and again.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use base::clock::monotonic_ms;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::flag;
use termion::event::Key;
use termion::input::TermRead;
use termion::raw::IntoRawMode;
use termion::screen::IntoAlternateScreen;

use crate::look::Look;
use crate::options::{Options, SHORTEST};
use crate::screen::{self, Chosen, Drawn};
use crate::source::Source;
use crate::table::{Table, per_second, table};
use crate::view::{VIEWS, View};

/// How long a wait for a key lasts at most: a terminal of another size is noticed after it.
const GLANCE: Duration = Duration::from_millis(100);
/// The longest time between two looks that keys lead to.
const LONGEST_MS: u64 = 60_000;
/// How many rates are kept.
const RATES: usize = 500;
/// Rows that PgUp and PgDn scroll by.
const PAGE: usize = 10;

struct Live<'s> {
    source: &'s mut Source,
    chosen: Chosen,
    now: Look,
    before: Option<Look>,
    rates: Vec<f64>,
    trouble: Option<String>,
    server: String,
}

/// Shows the server until `q`.
pub(crate) fn run(source: &mut Source, options: &Options) -> io::Result<()> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(io::Error::other("this is no terminal: use --once or --json"));
    }
    // A server that cannot be asked at all is told of as in any other tool.
    let now = Look::take(source, true)?;
    let asked = Arc::new(AtomicBool::new(false));
    let resized = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&asked))?;
    }
    flag::register(SIGWINCH, Arc::clone(&resized))?;
    let keys = keys();
    let mut terminal = io::stdout().into_raw_mode()?.into_alternate_screen()?;
    write!(terminal, "{}", termion::cursor::Hide)?;
    let server = source.name();
    let interval_ms = options.interval.as_millis() as u64;
    let chosen = Chosen::new(options.view, interval_ms, options.colors);
    let mut live =
        Live { source, chosen, now, before: None, rates: Vec::new(), trouble: None, server };
    let ended = live.go_on(&mut terminal, &keys, &asked, &resized);
    write!(terminal, "{}", termion::cursor::Show)?;
    terminal.flush()?;
    ended
}

/// The keys, read by a thread, which may wait for them.
fn keys() -> Receiver<Key> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for key in io::stdin().lock().keys().map_while(Result::ok) {
            if sender.send(key).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Live<'_> {
    fn go_on(
        &mut self,
        terminal: &mut impl Write,
        keys: &Receiver<Key>,
        asked: &AtomicBool,
        resized: &AtomicBool,
    ) -> io::Result<()> {
        let mut last_ms = monotonic_ms();
        let mut is_new = true;
        while !asked.load(Ordering::Relaxed) {
            if is_new || resized.swap(false, Ordering::Relaxed) {
                self.draw(terminal)?;
                is_new = false;
            }
            let passed = monotonic_ms() - last_ms;
            let left = Duration::from_millis(self.chosen.interval_ms.saturating_sub(passed));
            match keys.recv_timeout(left.min(GLANCE)) {
                Ok(key) => {
                    if !self.press(key) {
                        return Ok(());
                    }
                    is_new = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The terminal is gone.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if !self.chosen.paused && monotonic_ms() - last_ms >= self.chosen.interval_ms {
                last_ms = monotonic_ms();
                self.look();
                is_new = true;
            }
        }
        Ok(())
    }

    /// Asks the server again.
    fn look(&mut self) {
        // What takes it some work is asked for where it is seen.
        let with_memory = matches!(self.chosen.view, View::Memory | View::Keys);
        match Look::take(self.source, with_memory) {
            Ok(mut now) => {
                if !with_memory {
                    now.memory = std::mem::take(&mut self.now.memory);
                }
                let name = "total_commands_processed";
                let span = now.at_ns.saturating_sub(self.now.at_ns) as f64 / 1e9;
                self.rates.push(per_second(now.number(name), self.now.number(name), span));
                let more = self.rates.len().saturating_sub(RATES);
                self.rates.drain(..more);
                // After a restart there is nothing to compare with.
                let is_same = now.text("run_id") == self.now.text("run_id");
                let before = std::mem::replace(&mut self.now, now);
                self.before = is_same.then_some(before);
                self.trouble = None;
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    fn table(&self) -> Table {
        let mut table = table(self.chosen.view, &self.now, self.before.as_ref());
        let order = self.chosen.order.unwrap_or(table.order);
        if order < table.columns.len() {
            table.sort(order, self.chosen.turned);
        }
        table
    }

    fn draw(&mut self, terminal: &mut impl Write) -> io::Result<()> {
        let (columns, rows) = termion::terminal_size()?;
        let table = self.table();
        self.chosen.scrolled = self.chosen.scrolled.min(table.rows.len().saturating_sub(1));
        let drawn = Drawn {
            server: &self.server,
            now: &self.now,
            before: self.before.as_ref(),
            table: &table,
            rates: &self.rates,
            trouble: self.trouble.as_deref(),
        };
        let lines = screen::lines(&drawn, &self.chosen, columns.into(), rows.into());
        let mut text = String::new();
        for (row, line) in lines.iter().enumerate() {
            text.push_str(&format!("\x1b[{};1H{line}\x1b[K", row + 1));
        }
        terminal.write_all(text.as_bytes())?;
        terminal.flush()
    }

    /// Does what a key means. Returns whether the screen goes on.
    fn press(&mut self, key: Key) -> bool {
        let chosen = &mut self.chosen;
        match key {
            Key::Char('q') | Key::Ctrl('c') => return false,
            Key::Char('?' | 'h') => chosen.explains = !chosen.explains,
            Key::Char(' ' | 'p') => chosen.paused = !chosen.paused,
            Key::Char(digit @ '1'..='6') => self.show(VIEWS[digit as usize - '1' as usize]),
            Key::Char('\t') | Key::Right => self.show(self.chosen.view.moved(1)),
            Key::BackTab | Key::Left => self.show(self.chosen.view.moved(VIEWS.len() - 1)),
            Key::Char('s') => {
                let table = table(chosen.view, &self.now, None);
                let present = chosen.order.unwrap_or(table.order);
                let next = if present < table.columns.len() { present + 1 } else { 0 };
                chosen.order = Some(next % table.columns.len().max(1));
            }
            Key::Char('r') => chosen.turned = !chosen.turned,
            Key::Up => chosen.scrolled = chosen.scrolled.saturating_sub(1),
            Key::Down => chosen.scrolled += 1,
            Key::PageUp => chosen.scrolled = chosen.scrolled.saturating_sub(PAGE),
            Key::PageDown => chosen.scrolled += PAGE,
            Key::Home => chosen.scrolled = 0,
            Key::Char('+') => chosen.interval_ms = (chosen.interval_ms * 2).min(LONGEST_MS),
            Key::Char('-') => {
                chosen.interval_ms = (chosen.interval_ms / 2).max(SHORTEST.as_millis() as u64);
            }
            _ => {}
        }
        true
    }

    fn show(&mut self, view: View) {
        let is_other = self.chosen.view != view;
        self.chosen.view = view;
        self.chosen.explains = false;
        if is_other {
            self.chosen.order = None;
            self.chosen.turned = false;
            self.chosen.scrolled = 0;
        }
    }
}
