//! What a file tells of the journal besides the data: the end of the journal is kept again, so that
//! clients that followed it before the server stopped can go on where they were.

use engine::journal::backlog::{Backlog, Position};
use engine::journal::tail::Tail;
use resp::args::Arguments;
use resp::client::encode_command;

use crate::aof::reader::selected;

/// Of what a command of a file is a part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The file is all that has it.
    Own,
    /// The stream, of which it is this many bytes.
    Stream {
        /// With its line ends.
        bytes: u64,
        /// An annotation says so, as it does of a SELECT.
        is_announced: bool,
    },
}

/// Follows the commands of one file.
pub(super) struct Following<'b> {
    backlog: &'b Backlog,
    /// Where the stream goes on, if the file says its offset.
    tail: Option<Tail>,
    /// The database of the next command, if the file has selected one.
    database: Option<usize>,
    /// The file says which database is selected in the stream, as those of before do not.
    says_selected: bool,
    /// The bytes of a transaction, or of SELECT, before what they belong to.
    begun: Vec<u8>,
    in_transaction: bool,
}

impl<'b> Following<'b> {
    /// At the beginning of a file.
    pub(super) fn new(backlog: &'b Backlog) -> Following<'b> {
        Following {
            backlog,
            tail: None,
            database: None,
            says_selected: false,
            begun: Vec::new(),
            in_transaction: false,
        }
    }

    /// The file says at which offset in the journal the next command is, and, unless it is one of
    /// before, which database is selected there, if one is known to be.
    pub(super) fn begin(&mut self, position: Position, selected: Option<Option<usize>>) {
        self.begun.clear();
        let tail = self.tail.get_or_insert_default();
        tail.go_on_from(position.offset, selected.unwrap_or(self.database));
        // Followers have some time to come back.
        self.backlog.note_use(base::clock::monotonic_ms());
        self.backlog.load_history(position);
        if let Some(selected) = selected {
            self.backlog.note_loaded(selected);
        }
        self.says_selected = selected.is_some();
    }

    /// Takes a command.
    pub(super) fn take(&mut self, argv: Arguments<'_>, part: Part) {
        let name = argv.at(0);
        let is_select = name.eq_ignore_ascii_case(b"SELECT");
        if is_select {
            self.database = selected(argv);
        }
        let Some(tail) = &mut self.tail else {
            // The journal's offset of the next commands would be unknown.
            return if matches!(part, Part::Stream { .. }) {
                self.backlog.forget_loaded()
            };
        };
        let Part::Stream { bytes, is_announced } = part else {
            if !self.says_selected {
                // Where nothing else is known, it is what the file's own first SELECT selects.
                let is_unknown =
                    self.backlog.loaded_end().is_some_and(|(_, known)| known.is_none());
                if is_select && is_unknown {
                    self.backlog.note_loaded(self.database);
                }
                tail.go_on_from(tail.end(), self.database);
            }
            return;
        };
        let before = self.begun.len() as u64;
        encode_command(argv.iter(), &mut self.begun);
        let is_other = is_select && !self.in_transaction && self.says_selected && !is_announced;
        if is_other || self.begun.len() as u64 - before != bytes {
            // Somebody else has written it, into this file or in another form: the stream's bytes
            // are unknown.
            self.tail = None;
            return self.backlog.forget_loaded();
        }
        self.in_transaction = match self.in_transaction {
            true => !name.eq_ignore_ascii_case(b"EXEC"),
            false => name.eq_ignore_ascii_case(b"MULTI"),
        };
        if !self.in_transaction && !is_select {
            tail.append_raw(&self.begun, self.database, self.backlog);
            self.backlog.note_loaded(self.database);
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aof::reader::{Item, Scanner};

    /// What a load of these lines knows of the end: the offset, and the database that is selected.
    fn loaded(lines: &[&str]) -> Option<(u64, Option<usize>)> {
        let mut file = Vec::new();
        for line in lines {
            match line.starts_with('#') {
                true => file.extend_from_slice(format!("{line}\r\n").as_bytes()),
                false => encode_command(line.split(' '), &mut file),
            }
        }
        let backlog = Backlog::default();
        let (mut scanner, mut following) = (Scanner::new(&*file, 0), Following::new(&backlog));
        loop {
            let is_end = matches!(scanner.next().unwrap(), Item::End(_));
            if let Some(position) = scanner.take_history() {
                following.begin(position, scanner.take_selected());
            }
            if is_end {
                return backlog.loaded_end();
            }
            let bytes = scanner.offset() - scanner.item_offset();
            let (is_own, is_announced) = (scanner.take_uncounted(), scanner.take_counted());
            let part = if is_own { Part::Own } else { Part::Stream { bytes, is_announced } };
            following.take(scanner.words(), part);
        }
    }

    const OWN: [&str; 4] = ["#UNCOUNTED", "SELECT 5", "#UNCOUNTED", "SET own 1"];

    #[test]
    fn the_database_of_the_stream_is_what_the_file_says_it_is() {
        for (said, known) in [("#SELECTED:2", Some(2)), ("#SELECTED:-1", None)] {
            let begin = [said, "#CHANGES:a:100"];
            let select = ["#UNCOUNTED", "SELECT 2"];
            let select = &select[..if known.is_some() { 2 } else { 0 }];
            assert_eq!(loaded(&[&begin[..], select].concat()), Some((100, known)));
            assert_eq!(loaded(&[&begin[..], select, &OWN].concat()), Some((100, known)));
            // An effect of the stream selects its database if need be.
            let effects = ["#COUNTED", "SELECT 3", "INCR k"];
            let all = [&begin[..], select, &OWN, &effects, &OWN].concat();
            assert_eq!(loaded(&all), Some((100 + 23 + 21, Some(3))));
        }
        // Another server has used the file in between.
        let begin = ["#SELECTED:2", "#CHANGES:a:100", "#UNCOUNTED", "SELECT 2", "INCR k"];
        assert_eq!(loaded(&begin), Some((121, Some(2))));
        assert_eq!(loaded(&[&begin[..], &["SELECT 2", "INCR k"]].concat()), None);
        let together = ["MULTI", "SELECT 3", "INCR k", "EXEC"];
        assert_eq!(loaded(&[&begin[..], &together].concat()), Some((194, Some(3))));
        // The file has selected it long before.
        let early = ["SELECT 4", "INCR k", "#SELECTED:4", "#CHANGES:a:100"];
        assert_eq!(loaded(&[&early[..], &OWN].concat()), Some((100, Some(4))));
    }

    #[test]
    fn files_of_before_say_it_by_their_own_select() {
        let begin = ["#CHANGES:a:100", "#UNCOUNTED", "SELECT 2"];
        assert_eq!(loaded(&begin), Some((100, Some(2))));
        assert_eq!(loaded(&[&begin[..], &OWN].concat()), Some((100, Some(2))));
        let next = ["#UNCOUNTED", "SELECT 2", "INCR k"];
        let all = [&begin[..], &OWN, &next, &OWN].concat();
        assert_eq!(loaded(&all), Some((121, Some(2))));
    }
}
