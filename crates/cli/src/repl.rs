//! Commands that are typed, or that come from standard input line by line.

use std::io::{self, BufRead, BufReader, IsTerminal, Stdin};
use std::path::PathBuf;
use std::time::Duration;

use base::clock::monotonic_ms;
use termion::event::Key;

use crate::command::docs;
use crate::connection::Ready;
use crate::docs::Docs;
use crate::editor::LineHelper;
use crate::format::Form;
use crate::history;
use crate::line_editor::{LineEditor, Typed};
use crate::monitor::{self, Filter};
use crate::print::{complain, output, reason, say};
use crate::session::{Failed, Session};
use crate::terminal::RawMode;
use crate::{help, interrupt};

/// A command that took this long is followed by its time.
const SLOW_MS: u64 = 500;
/// Names the file with preferences, and its usual name in the home directory.
const PREFERENCES: (&str, &str) = ("REDISCLI_RCFILE", ".redisclirc");
/// How long messages are waited for before the line that says so is written again.
const BETWEEN_MESSAGES: Duration = Duration::from_secs(5);

/// Where lines come from.
enum Lines {
    Typed(Box<LineEditor>),
    Plain(BufReader<Stdin>),
}

/// What is to be done next.
enum Next {
    Line(Vec<u8>),
    /// Nothing was typed, or it was given up.
    Nothing,
    End,
}

struct Repl<'s> {
    session: &'s mut Session,
    lines: Lines,
    history: Option<PathBuf>,
    docs: Option<Docs>,
}

/// Runs commands until the input ends.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    session.is_interactive = true;
    // Without a connection each command tries to make one.
    let _ = session.connect();
    let is_typed = io::stdin().is_terminal();
    let mut repl = match is_typed {
        false => {
            let lines = Lines::Plain(BufReader::new(io::stdin()));
            Repl { session, lines, history: None, docs: None }
        }
        true => typed(session)?,
    };
    loop {
        match repl.next() {
            Next::Line(line) => {
                if !repl.carry_out(&line) {
                    return Ok(());
                }
            }
            Next::Nothing => {}
            // As in redis-cli, the first Ctrl-C or Ctrl-D ends the subscription.
            Next::End if repl.session.is_subscribed && is_typed => {
                repl.session.is_subscribed = false;
                let _ = repl.session.connect();
            }
            Next::End => return Ok(()),
        }
        if repl.session.is_subscribed {
            repl.show_messages()?;
        }
    }
}

fn typed(session: &mut Session) -> Result<Repl<'_>, Failed> {
    let failed = |error: &dyn std::fmt::Display| {
        complain(&format!("the terminal cannot be used: {error}"));
        Failed
    };
    interrupt::catch().map_err(|error| failed(&reason(&error)))?;
    let colors = session.options.colors;
    let docs = docs(session);
    let mut helper = LineHelper { docs: docs.clone(), shows_hints: true, colors };
    for line in preferences() {
        let _ = set_preference(&mut helper, &line);
    }
    let file = history::file().filter(|_| session.options.keeps_history);
    let lines = file.as_ref().map(history::load).unwrap_or_default();
    let editor = LineEditor::new(helper, lines).map_err(|error| failed(&reason(&error)))?;
    Ok(Repl { session, lines: Lines::Typed(Box::new(editor)), history: file, docs: Some(docs) })
}

/// The lines of the file with preferences.
fn preferences() -> Vec<String> {
    let path = history::dotfile(PREFERENCES.0, PREFERENCES.1);
    let text = path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn set_preference(helper: &mut LineHelper, line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [":set", "hints"] => helper.shows_hints = true,
        [":set", "nohints"] => helper.shows_hints = false,
        [":set", ..] => return Err(format!("unknown preference '{line}'")),
        _ => return Err(format!("unknown internal command '{line}'")),
    }
    Ok(())
}

impl Repl<'_> {
    fn next(&mut self) -> Next {
        let prompt = self.session.prompt();
        match &mut self.lines {
            Lines::Plain(input) => {
                let mut line = Vec::new();
                match input.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => Next::End,
                    Ok(_) => {
                        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                            line.pop();
                        }
                        Next::Line(line)
                    }
                }
            }
            Lines::Typed(editor) => match editor.read(&prompt) {
                Ok(Typed::Line(line)) => {
                    // What was interrupted has ended since.
                    interrupt::take();
                    Next::Line(line.into_bytes())
                }
                Ok(Typed::Interrupt { went_on: true }) => Next::Nothing,
                Ok(Typed::Interrupt { went_on: false } | Typed::End) => Next::End,
                Err(error) => {
                    complain(&format!("the terminal cannot be used: {}", reason(&error)));
                    Next::End
                }
            },
        }
    }

    /// Carries out a line. Returns whether further lines are wanted.
    fn carry_out(&mut self, line: &[u8]) -> bool {
        let Ok(mut words) = resp::words::split(line) else {
            say("Invalid argument(s)");
            self.keep(line, &[]);
            return true;
        };
        let Some(first) = words.first() else { return true };
        let mut repeat = 1;
        let count = std::str::from_utf8(first).ok().and_then(|text| text.parse::<i64>().ok());
        if let Some(count) = count.filter(|_| words.len() > 1) {
            if count <= 0 {
                say("Invalid redis-cli repeat command option value.");
                return true;
            }
            repeat = count;
            words.remove(0);
        }
        if !history::is_sensitive(&words) {
            self.keep(line, &words);
        }
        let name = words[0].to_ascii_lowercase();
        match (&name[..], words.len()) {
            (b"quit" | b"exit", _) => return false,
            (b"help" | b"?", _) => {
                let docs = self.docs.get_or_insert_with(|| docs(self.session));
                help::print(docs, &words[1..]);
            }
            (b"clear", 1) => output(b"\x1b[H\x1b[2J"),
            (b"connect", 3) => self.connect(&words),
            ([b':', ..], _) => self.internal(&words),
            _ => {
                let begun = monotonic_ms();
                let _ = self.session.issue(&words, repeat);
                let taken = monotonic_ms() - begun;
                if taken >= SLOW_MS && self.session.options.form == Form::Standard {
                    say(&format!("({:.2}s)", taken as f64 / 1000.0));
                }
            }
        }
        true
    }

    fn connect(&mut self, words: &[Vec<u8>]) {
        let port = std::str::from_utf8(&words[2]).ok().and_then(|port| port.parse().ok());
        match port {
            Some(port) => {
                let _ = self.session.connect_to(&String::from_utf8_lossy(&words[1]), port);
            }
            None => say("Invalid server port."),
        }
    }

    /// What begins with a colon is for this tool.
    fn internal(&mut self, words: &[Vec<u8>]) {
        let texts: Vec<String> =
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        match &*texts[0] {
            ":help" => help::print(&Docs::default(), &[]),
            ":monitor" => {
                let _ = monitor::run(self.session, &Filter::new(&words[1..]));
            }
            _ => {
                let line = texts.join(" ");
                let done = match &mut self.lines {
                    Lines::Typed(editor) => set_preference(&mut editor.helper, &line),
                    Lines::Plain(_) => {
                        let docs = Docs::default();
                        let mut nobody = LineHelper { docs, shows_hints: false, colors: false };
                        set_preference(&mut nobody, &line)
                    }
                };
                if let Err(problem) = done {
                    say(&problem);
                }
            }
        }
    }

    fn keep(&mut self, line: &[u8], words: &[Vec<u8>]) {
        let Lines::Typed(editor) = &mut self.lines else { return };
        let entry = history::entry(&String::from_utf8_lossy(line), words);
        if editor.history.last() != Some(&entry) {
            editor.history.push(entry);
        }
        let more = editor.history.len().saturating_sub(history::LINES_MAX);
        editor.history.drain(..more);
        let Some(path) = &self.history else { return };
        if let Err(error) = history::save(path, editor.history.iter()) {
            complain(&format!("the history cannot be saved: {}", reason(&error)));
            self.history = None;
        }
    }

    /// Prints messages until a key is pressed.
    fn show_messages(&mut self) -> Result<(), Failed> {
        if let Lines::Plain(input) = &self.lines
            && !input.buffer().is_empty()
        {
            return self.session.show_received();
        }
        let says_so = self.session.options.form != Form::Raw && io::stdout().is_terminal();
        let raw = RawMode::begin().ok();
        let whole = |act: &mut dyn FnMut() -> Result<(), Failed>| match &raw {
            Some(raw) => raw.suspended(act),
            None => act(),
        };
        while self.session.is_subscribed {
            whole(&mut || self.session.show_received())?;
            if says_so {
                let text = "Reading messages... (press Ctrl-C to quit or any key to type command)";
                output(format!("\x1b[1;90m{text}\x1b[0m\r").as_bytes());
            }
            let Some(connection) = self.session.connection() else { return Ok(()) };
            let ready = connection.wait(Some(BETWEEN_MESSAGES), true);
            if says_so {
                output(b"\x1b[K");
            }
            match ready {
                Ok(Ready::Server) => {
                    let read = self.session.connection().map_or(Ok(()), |one| one.read());
                    if let Err(error) = read {
                        self.session.is_subscribed = false;
                        let _ = whole(&mut || Err(self.session.lose(&error)));
                    }
                }
                Ok(Ready::Input) => {
                    let Lines::Typed(editor) = &mut self.lines else { break };
                    match editor.keys.next() {
                        // Raw keys make no signal.
                        Some(Key::Ctrl('c')) => drop(self.session.connect()),
                        Some(key) => {
                            editor.keys.give_back(key);
                            break;
                        }
                        None => break,
                    }
                }
                Ok(Ready::Interrupt) => {
                    interrupt::take();
                    let _ = self.session.connect();
                }
                Ok(Ready::Timeout) => {}
                Err(error) => {
                    self.session.lose(&error);
                    break;
                }
            }
        }
        Ok(())
    }
}
