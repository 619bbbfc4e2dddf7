//! A line editor with the keys of Emacs, as in most command lines.
//!
//! The line may be wider than the terminal and may have line ends in it. After each key all of it
//! is drawn again: the editor knows in which row of its own the cursor is, goes up to the first,
//! and clears the screen from there on.

use std::io;

use termion::event::Key;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::editor::{LineHelper, is_open};
use crate::print::output;
use crate::terminal::{Keys, RawMode};

/// The columns of a terminal that does not tell.
const USUAL_COLUMNS: usize = 80;
/// The space between two columns of candidates.
const GAP: usize = 2;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Line(String),
    /// Ctrl-C; whether the line had gone on in a second one.
    Interrupt {
        went_on: bool,
    },
    /// Ctrl-D in an empty line, or the terminal is gone.
    End,
}

/// See the module's text.
pub(crate) struct LineEditor {
    pub(crate) keys: Keys,
    pub(crate) helper: LineHelper,
    /// The lines before, the newest last.
    pub(crate) history: Vec<String>,
    /// What was cut last.
    cut: String,
}

/// A line that is typed.
struct Line<'p> {
    prompt: &'p str,
    text: String,
    /// Where the cursor is, in bytes.
    cursor: usize,
    /// The row of the cursor when the line was drawn last.
    row: usize,
}

/// The place of a character after a text, in rows and columns from its begin on.
fn place(text: &str, columns: usize) -> (usize, usize) {
    let (mut row, mut column) = (0, 0);
    for letter in text.chars() {
        if letter == '\n' {
            (row, column) = (row + 1, 0);
            continue;
        }
        let width = letter.width().unwrap_or(0);
        if column + width > columns {
            (row, column) = (row + 1, 0);
        }
        column += width;
        if column == columns {
            (row, column) = (row + 1, 0);
        }
    }
    (row, column)
}

fn columns() -> usize {
    match termion::terminal_size() {
        Ok((columns, _)) if columns > 0 => usize::from(columns),
        _ => USUAL_COLUMNS,
    }
}

impl Line<'_> {
    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// The byte before which the character before the cursor begins.
    fn before(&self) -> usize {
        let letter = self.text[..self.cursor].chars().next_back();
        self.cursor - letter.map_or(0, char::len_utf8)
    }

    fn after(&self) -> usize {
        self.cursor + self.text[self.cursor..].chars().next().map_or(0, char::len_utf8)
    }

    fn word_before(&self) -> usize {
        let trimmed = self.text[..self.cursor].trim_end();
        trimmed.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let space = rest.len() - rest.trim_start().len();
        let word = rest[space..].find(char::is_whitespace).unwrap_or(rest.len() - space);
        self.cursor + space + word
    }

    /// Removes a part, and returns it.
    fn remove(&mut self, from: usize, to: usize) -> String {
        self.cursor = from;
        self.text.drain(from..to).collect()
    }

    fn replace(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// Draws the prompt and the line.
    fn draw(&mut self, helper: &LineHelper) {
        let columns = columns();
        let painted = helper.paint(&self.text).replace('\n', "\r\n");
        let whole = format!("{}{}", self.prompt, self.text);
        let (end_row, end_column) = place(&whole, columns);
        let mut drawn = self.to_first_row();
        drawn.push_str(self.prompt);
        drawn.push_str(&painted);
        // The terminal waits with the line end until one more character comes.
        if end_column == 0 && end_row > 0 && !self.text.ends_with('\n') {
            drawn.push_str("\r\n");
        }
        let at_end = self.cursor == self.text.len();
        if let Some(hint) = helper.hint(&self.text).filter(|_| at_end) {
            // It never makes the line longer than its row.
            let room = columns.saturating_sub(end_column + 1);
            let mut shown = String::new();
            for letter in hint.chars() {
                if shown.width() + letter.width().unwrap_or(0) > room {
                    break;
                }
                shown.push(letter);
            }
            drawn.push_str(&helper.paint_hint(&shown));
        }
        let before = format!("{}{}", self.prompt, &self.text[..self.cursor]);
        let (row, column) = place(&before, columns);
        if end_row > row {
            drawn.push_str(&format!("\x1b[{}A", end_row - row));
        }
        drawn.push('\r');
        if column > 0 {
            drawn.push_str(&format!("\x1b[{column}C"));
        }
        self.row = row;
        output(drawn.as_bytes());
    }

    /// Goes to the first row and clears all from there on.
    fn to_first_row(&self) -> String {
        let up = if self.row > 0 { format!("\x1b[{}A", self.row) } else { String::new() };
        format!("{up}\r\x1b[J")
    }

    /// Draws the line without a hint and leaves it.
    fn leave(&mut self, helper: &LineHelper, with: &str) {
        let painted = helper.paint(&self.text).replace('\n', "\r\n");
        output(format!("{}{}{painted}{with}\r\n", self.to_first_row(), self.prompt).as_bytes());
    }
}

impl LineEditor {
    /// An editor with these lines before.
    pub(crate) fn new(helper: LineHelper, history: Vec<String>) -> io::Result<LineEditor> {
        Ok(LineEditor { keys: Keys::open()?, helper, history, cut: String::new() })
    }

    /// Reads a line.
    pub(crate) fn read(&mut self, prompt: &str) -> io::Result<Typed> {
        let _raw = RawMode::begin()?;
        let mut line = Line { prompt, text: String::new(), cursor: 0, row: 0 };
        // The lines of the history as they were changed, and the new one at the end.
        let mut all: Vec<String> = self.history.clone();
        all.push(String::new());
        let mut at = all.len() - 1;
        loop {
            line.draw(&self.helper);
            let Some(key) = self.keys.next() else { return Ok(Typed::End) };
            match key {
                Key::Char('\n' | '\r') if is_open(&line.text) => {
                    line.cursor = line.text.len();
                    line.insert("\n");
                }
                Key::Char('\n' | '\r') => {
                    line.leave(&self.helper, "");
                    return Ok(Typed::Line(line.text));
                }
                Key::Ctrl('c') => {
                    let went_on = line.text.contains('\n');
                    line.leave(&self.helper, "^C");
                    return Ok(Typed::Interrupt { went_on });
                }
                Key::Ctrl('d') if line.text.is_empty() => {
                    line.leave(&self.helper, "");
                    return Ok(Typed::End);
                }
                Key::Up | Key::Ctrl('p') | Key::Down | Key::Ctrl('n') => {
                    let is_up = matches!(key, Key::Up | Key::Ctrl('p'));
                    let next = if is_up { at.checked_sub(1) } else { Some(at + 1) };
                    if let Some(next) = next.filter(|next| *next < all.len()) {
                        all[at] = std::mem::take(&mut line.text);
                        line.replace(all[next].clone());
                        at = next;
                    }
                }
                Key::Ctrl('r') => {
                    if let Some(found) = self.search(&mut line) {
                        line.replace(found);
                    }
                }
                Key::Char('\t') => self.complete(&mut line),
                Key::Ctrl('l') => {
                    output(b"\x1b[H\x1b[2J");
                    line.row = 0;
                }
                other => self.edit(&mut line, other),
            }
        }
    }

    /// The keys that move the cursor and change the text.
    fn edit(&mut self, line: &mut Line<'_>, key: Key) {
        match key {
            Key::Char(letter) => line.insert(letter.encode_utf8(&mut [0; 4])),
            Key::Left | Key::Ctrl('b') => line.cursor = line.before(),
            Key::Right | Key::Ctrl('f') => line.cursor = line.after(),
            Key::Home | Key::Ctrl('a') => line.cursor = 0,
            Key::End | Key::Ctrl('e') => line.cursor = line.text.len(),
            Key::Alt('b') | Key::CtrlLeft | Key::AltLeft => line.cursor = line.word_before(),
            Key::Alt('f') | Key::CtrlRight | Key::AltRight => line.cursor = line.word_after(),
            Key::Backspace | Key::Ctrl('h') => drop(line.remove(line.before(), line.cursor)),
            Key::Delete | Key::Ctrl('d') => drop(line.remove(line.cursor, line.after())),
            Key::Ctrl('k') => self.cut = line.remove(line.cursor, line.text.len()),
            Key::Ctrl('u') => self.cut = line.remove(0, line.cursor),
            Key::Ctrl('w') => self.cut = line.remove(line.word_before(), line.cursor),
            Key::Alt('d') => self.cut = line.remove(line.cursor, line.word_after()),
            Key::Ctrl('y') => line.insert(&self.cut),
            Key::Ctrl('t') => {
                let (from, to) = (line.before(), line.after());
                if from < line.cursor && line.cursor < to {
                    let second = line.text[line.cursor..to].to_owned();
                    line.text.replace_range(line.cursor..to, "");
                    line.text.insert_str(from, &second);
                    line.cursor = to;
                }
            }
            _ => {}
        }
    }

    /// Completes the word before the cursor as far as it is clear, or lists what it may become.
    fn complete(&self, line: &mut Line<'_>) {
        let (start, candidates) = self.helper.complete(&line.text[..line.cursor]);
        let Some(first) = candidates.first() else { return };
        let shared = candidates.iter().fold(first.as_str(), |shared, other| {
            let same = shared.bytes().zip(other.bytes()).take_while(|(one, other)| one == other);
            shared.get(..same.count()).unwrap_or("")
        });
        let typed = line.cursor - start;
        if candidates.len() == 1 || shared.len() > typed {
            let space = if candidates.len() == 1 { " " } else { "" };
            line.text.replace_range(start..line.cursor, &format!("{shared}{space}"));
            line.cursor = start + shared.len() + space.len();
            return;
        }
        let width = candidates.iter().map(|word| word.width()).max().unwrap_or(0) + GAP;
        let in_row = (columns() / width).max(1);
        let mut list = String::new();
        for row in candidates.chunks(in_row) {
            let padded: String = row.iter().map(|word| format!("{word:<width$}")).collect();
            list.push_str(padded.trim_end());
            list.push_str("\r\n");
        }
        line.leave(&self.helper, "");
        output(list.as_bytes());
        line.row = 0;
    }

    /// Looks for an earlier line while a part of it is typed; `None` if it was given up. A key that
    /// means something else ends the search and comes again.
    fn search(&mut self, line: &mut Line<'_>) -> Option<String> {
        let (mut part, mut skip) = (String::new(), 0);
        loop {
            let fitting = |entry: &&String| !part.is_empty() && entry.contains(&part);
            let found = self.history.iter().rev().filter(fitting).nth(skip).cloned();
            let prompt = format!("(reverse-i-search)`{part}': ");
            let text = found.clone().unwrap_or_default();
            let mut shown = Line { prompt: &prompt, cursor: text.len(), text, row: line.row };
            let hints = std::mem::replace(&mut self.helper.shows_hints, false);
            shown.draw(&self.helper);
            self.helper.shows_hints = hints;
            line.row = shown.row;
            match self.keys.next()? {
                Key::Ctrl('r') => skip += usize::from(found.is_some()),
                Key::Backspace => {
                    part.pop();
                    skip = 0;
                }
                Key::Ctrl('c' | 'g') => return None,
                Key::Char(letter) if letter != '\n' && letter != '\r' && letter != '\t' => {
                    part.push(letter);
                    skip = 0;
                }
                other => {
                    self.keys.give_back(other);
                    return found;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, cursor: usize) -> Line<'static> {
        Line { prompt: "> ", text: text.to_owned(), cursor, row: 0 }
    }

    #[test]
    fn places_in_rows() {
        assert_eq!(place("", 10), (0, 0));
        assert_eq!(place("abc", 10), (0, 3));
        assert_eq!(place("0123456789", 10), (1, 0));
        assert_eq!(place("01234567890", 10), (1, 1));
        assert_eq!(place("ab\ncd", 10), (1, 2));
        // A wide letter that does not fit goes into the next row.
        assert_eq!(place("012345678\u{4e2d}", 10), (1, 2));
        assert_eq!(place("e\u{301}", 10), (0, 1));
    }

    #[test]
    fn words_and_letters() {
        let mut one = line("set käse  wert", 14);
        assert_eq!(&one.text[one.word_before()..], "wert");
        one.cursor = one.word_before();
        assert_eq!(&one.text[one.word_before()..], "käse  wert");
        one.cursor = 4;
        assert_eq!(&one.text[4..one.word_after()], "käse");
        one.cursor = 7;
        assert_eq!(one.before(), 5);
        assert_eq!(one.remove(5, 7), "ä");
        assert_eq!((&*one.text, one.cursor), ("set kse  wert", 5));
        one.insert("ä");
        assert_eq!((&*one.text, one.cursor), ("set käse  wert", 7));
    }
}
