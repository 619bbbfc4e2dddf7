//! The thread that writes what a node keeps.
//!
//! A disk may stand still for seconds, and a primary that waits for it renews no lease. So the
//! node's own thread waits only for what its next step rests on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

use persist::config_file;
use process::paths::reason;
use process::thread;

use super::message::Message;

/// See the module's text. The thread ends with it.
pub(super) struct Keeper {
    jobs: Sender<Job>,
}

/// A text for the file, with all that texts before had.
struct Job {
    text: Vec<u8>,
    heed: Heed,
}

/// Who hears how it went.
enum Heed {
    /// Somebody waits for it.
    Waits(Sender<Result<(), String>>),
    /// The node, if it fails: it must not go on with what it could not write.
    Fails,
    /// The node, if it fails, for its log alone.
    Log,
}

impl Keeper {
    /// # Errors
    /// The system makes no thread.
    pub(super) fn start(path: PathBuf, tell: Sender<Message>) -> io::Result<Keeper> {
        let (jobs, given) = mpsc::channel();
        thread::start("cluster-keep", move || keep(&path, &given, &tell))?;
        Ok(Keeper { jobs })
    }

    /// Writes it, and waits until it outlives the machine.
    ///
    /// # Errors
    /// The system's. The file is what it was.
    pub(super) fn write(&self, text: Vec<u8>) -> Result<(), String> {
        let (done, is_done) = mpsc::channel();
        self.give(text, Heed::Waits(done));
        is_done.recv().unwrap_or_else(|_| Err("its thread has ended".to_owned()))
    }

    /// Writes it in its time. [`Message::NotWritten`] says if it cannot.
    pub(super) fn write_later(&self, text: Vec<u8>, is_needed: bool) {
        self.give(text, if is_needed { Heed::Fails } else { Heed::Log });
    }

    fn give(&self, text: Vec<u8>, heed: Heed) {
        // The thread ends after this.
        let _ = self.jobs.send(Job { text, heed });
    }
}

fn keep(path: &Path, given: &Receiver<Job>, tell: &Sender<Message>) {
    while let Ok(first) = given.recv() {
        // The last one has all that those before it have.
        let mut jobs = vec![first];
        jobs.extend(given.try_iter());
        let last = jobs.last().map(|job| &*job.text).unwrap_or_default();
        let written = config_file::replace(path, last).map_err(|error| reason(&error));
        let is_needed = jobs.iter().any(|job| matches!(job.heed, Heed::Fails));
        let mut somebody_waits = false;
        for job in jobs {
            if let Heed::Waits(done) = job.heed {
                somebody_waits = true;
                let _ = done.send(written.clone());
            }
        }
        if let Err(reason) = written
            && (is_needed || !somebody_waits)
        {
            // It is not there any more when the server stops.
            let _ = tell.send(Message::NotWritten { reason, is_needed });
        }
        process::memory::publish();
    }
}
