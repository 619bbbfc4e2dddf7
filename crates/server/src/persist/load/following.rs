//! What a file tells of the journal besides the data: the end of the journal is kept again, so that
//! clients that followed it before the server stopped can go on where they were.

use std::sync::Arc;

use engine::persistence::backlog::{Backlog, Position, Record};
use engine::persistence::journal::Batch;
use resp::args::Arguments;

use crate::persist::aof::reader::selected;

/// Follows the commands of one file.
pub(super) struct Following<'b> {
    backlog: &'b Backlog,
    /// The present offset in the journal, if the file says it.
    offset: Option<u64>,
    database: usize,
    /// The commands of a transaction so far.
    together: Option<Batch>,
}

impl<'b> Following<'b> {
    /// At the beginning of a file.
    pub(super) fn new(backlog: &'b Backlog) -> Following<'b> {
        Following { backlog, offset: None, database: 0, together: None }
    }

    /// The file says at which offset in the journal the next command is.
    pub(super) fn begin(&mut self, position: Position) {
        self.offset = Some(position.offset);
        // Followers have some time to come back.
        self.backlog.note_use(base::clock::steady_ms());
        self.backlog.load_history(position);
    }

    /// Takes a command of this many bytes.
    pub(super) fn take(&mut self, argv: Arguments<'_>, bytes: u64) {
        let name = argv.at(0);
        if name.eq_ignore_ascii_case(b"SELECT") {
            self.database = selected(argv).unwrap_or_default();
        }
        let Some(offset) = &mut self.offset else {
            // The journal's offset of the next commands would be unknown.
            return self.backlog.forget_loaded();
        };
        *offset += bytes;
        let end = *offset;
        if name.eq_ignore_ascii_case(b"SELECT") {
            return;
        }
        if name.eq_ignore_ascii_case(b"MULTI") {
            self.together = Some(Batch::default());
        } else if name.eq_ignore_ascii_case(b"EXEC") {
            let batch = self.together.take().unwrap_or_default();
            self.backlog.push(Arc::new(Record::new(end, batch)));
        } else if let Some(batch) = &mut self.together {
            batch.push(self.database, argv.iter());
        } else {
            let mut batch = Batch::default();
            batch.push(self.database, argv.iter());
            self.backlog.push(Arc::new(Record::new(end, batch)));
        }
    }
}
