//! What the user is said. A thread of its own prints it: a terminal that stands still, or a pipe
//! that nobody empties, must not keep a server's clients waiting between two steps.

use std::io::{self, Write};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

enum Said {
    Line(String),
    /// Dropped when everything before it is printed.
    All(Sender<()>),
}

static PRINTER: LazyLock<Sender<Said>> = LazyLock::new(|| {
    let (printer, all) = channel();
    thread::spawn(move || {
        for said in all {
            match said {
                // Nobody may be listening. What is to be done is done all the same.
                Said::Line(line) => drop(writeln!(io::stdout(), "{line}")),
                Said::All(printed) => drop(printed),
            }
        }
    });
    printer
});

/// Tells the user something, sooner or later.
pub(crate) fn say(line: &str) {
    // The thread never ends.
    let _ = PRINTER.send(Said::Line(line.to_owned()));
}

/// Waits until everything is printed that was said.
pub(crate) fn wait_until_printed() {
    let (printed, waits) = channel();
    let _ = PRINTER.send(Said::All(printed));
    // It fails when the other end is dropped, which is meant.
    let _ = waits.recv();
}
