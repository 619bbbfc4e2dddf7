//! What a file tells of the journal besides the data: the end of the journal is kept again, so that
//! clients that followed it before the server stopped can go on where they were.

use engine::journal::backlog::{Backlog, Position};
use engine::journal::tail::Tail;
use resp::args::Arguments;
use resp::client::encode_command;

use crate::aof::reader::selected;

/// Follows the commands of one file.
pub(super) struct Following<'b> {
    backlog: &'b Backlog,
    /// Where the stream goes on, if the file says its offset.
    tail: Option<Tail>,
    /// The database of the next command, if the file has selected one.
    database: Option<usize>,
    /// The bytes of a transaction, or of SELECT, before what they belong to.
    begun: Vec<u8>,
    in_transaction: bool,
}

impl<'b> Following<'b> {
    /// At the beginning of a file.
    pub(super) fn new(backlog: &'b Backlog) -> Following<'b> {
        Following { backlog, tail: None, database: None, begun: Vec::new(), in_transaction: false }
    }

    /// The file says at which offset in the journal the next command is.
    pub(super) fn begin(&mut self, position: Position) {
        self.begun.clear();
        let tail = self.tail.get_or_insert_default();
        tail.go_on_from(position.offset, self.database);
        // Followers have some time to come back.
        self.backlog.note_use(base::clock::monotonic_ms());
        self.backlog.load_history(position);
    }

    /// Takes a command of this many bytes of the stream, or one that is no part of it.
    pub(super) fn take(&mut self, argv: Arguments<'_>, bytes: Option<u64>) {
        let name = argv.at(0);
        let is_select = name.eq_ignore_ascii_case(b"SELECT");
        if is_select {
            self.database = selected(argv);
        }
        let Some(tail) = &mut self.tail else {
            // The journal's offset of the next commands would be unknown.
            return if bytes.is_some() {
                self.backlog.forget_loaded()
            };
        };
        let Some(bytes) = bytes else {
            if is_select {
                self.backlog.note_selected(self.database);
            }
            return tail.go_on_from(tail.end(), self.database);
        };
        let before = self.begun.len() as u64;
        encode_command(argv.iter(), &mut self.begun);
        if self.begun.len() as u64 - before != bytes {
            // Somebody else has written it, and in another form: the stream's bytes are unknown.
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
