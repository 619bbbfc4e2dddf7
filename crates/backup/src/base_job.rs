//! A base that is received, or checked, beside the stream.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use lab::load::Address;
use lab::targets::Interrupt;
use replication::handshake::{Offer, Wanted};

use crate::digest::Hashed;
use crate::link::{Ended, Link, ServerState};
use crate::manifest::{Base, StoredFile};
use crate::moment::Moment;
use crate::position::Position;
use crate::storage::Store;
use crate::verify::{self, Contents};

/// When a base begins.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// In the stream, where times never go back.
    time: Moment,
    /// By the clock.
    taken: Moment,
}

impl Times {
    /// The present. The newest time that the stream has may be later.
    pub(crate) fn now(newest: Moment) -> Times {
        let taken = Moment::now();
        Times { time: taken.max(newest), taken }
    }

    fn of(self, base: Base) -> Base {
        Base { taken: Some(self.taken), ..base }
    }
}

/// See the module's text.
pub(crate) struct BaseJob {
    thread: JoinHandle<Result<Base, String>>,
    /// The position of a base that comes over a connection of its own, once the server has said it.
    position: Arc<OnceLock<Position>>,
    /// When the stream has reached that.
    reached: Option<Moment>,
    /// It comes over a connection of its own.
    pub(crate) is_beside: bool,
}

impl BaseJob {
    /// Checks a file that was received over the link of the stream.
    pub(crate) fn verify(
        store: Arc<dyn Store>,
        file: StoredFile,
        product: Option<String>,
        line: u64,
        position: Position,
        times: Times,
    ) -> BaseJob {
        let thread = std::thread::spawn(move || {
            let contents = check(&*store, &file)?;
            Ok(times.of(base_of(file, line, position, times.time, contents, product)))
        });
        BaseJob { thread, position: Arc::default(), reached: None, is_beside: false }
    }

    /// Receives all data over a link of its own.
    pub(crate) fn begin(
        store: Arc<dyn Store>,
        address: &Address,
        told: &ServerState,
        name: String,
        line: u64,
        newest: Moment,
        interrupt: &Interrupt,
    ) -> BaseJob {
        let position = Arc::new(OnceLock::new());
        let (known, address, told) = (Arc::clone(&position), address.clone(), told.clone());
        let interrupt = interrupt.clone();
        let thread = std::thread::spawn(move || {
            let text = |ended: Ended| ended.to_string();
            let opened = Link::open(&address, &told, Wanted::All, &interrupt).map_err(text)?;
            let (mut link, Offer::All { history, offset }) = opened else {
                return Err("the server gives no data".to_owned());
            };
            let position = *known.get_or_init(|| Position { history, offset });
            let times = Times::now(newest);
            let file = receive(&mut link, &store, name).map_err(text)?;
            drop(link);
            let contents = check(&*store, &file)?;
            Ok(times.of(base_of(file, line, position, times.time, contents, told.product)))
        });
        BaseJob { thread, position, reached: None, is_beside: true }
    }

    /// The stream has come so far.
    pub(crate) fn note_reached(&mut self, offset: u64, now: Moment) {
        if self.reached.is_none() && self.position.get().is_some_and(|own| offset >= own.offset) {
            self.reached = Some(now);
        }
    }

    /// The position of the base if the stream has not come to it yet.
    pub(crate) fn position_ahead(&self) -> Option<Position> {
        self.position.get().copied().filter(|_| self.reached.is_none())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until it is over, but no longer than this after the user has asked for the end.
    pub(crate) fn is_over_in_time(&self, interrupt: &Interrupt, patience_ms: u64) -> bool {
        let mut end = None;
        while !self.is_over() {
            let now = base::clock::monotonic_ms();
            if interrupt.is_set() && now >= *end.get_or_insert(now + patience_ms) {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        true
    }

    /// The base, whose time is not before that which the stream has for its position.
    pub(crate) fn finish(self) -> Result<Base, String> {
        let failed = |_| "the thread that received it has failed".to_owned();
        let mut base = self.thread.join().map_err(failed)??;
        base.time = base.time.max(self.reached.unwrap_or_default());
        Ok(base)
    }
}

/// Receives a file into the store.
pub(crate) fn receive(
    link: &mut Link<'_>,
    store: &Arc<dyn Store>,
    name: String,
) -> Result<StoredFile, Ended> {
    let in_file = |problem: String| format!("{name}: {problem}");
    let mut upload = Hashed::new(store.begin(&name).map_err(Ended::Failed)?);
    link.receive_file(&mut upload).map_err(|ended| match ended {
        Ended::Failed(problem) => Ended::Failed(in_file(problem)),
        other => other,
    })?;
    let (upload, bytes, sha256) = upload.finish();
    upload.finish().map_err(Ended::Failed)?;
    Ok(StoredFile { name, bytes, sha256 })
}

/// Checks a file that is to be a base. One that is none does not stay.
pub(crate) fn check(store: &dyn Store, file: &StoredFile) -> Result<Contents, String> {
    verify::check_base(store, file).inspect_err(|_| {
        // If it stays, the next run removes it.
        let _ = store.remove(&file.name);
    })
}

/// A base for the list.
pub(crate) fn base_of(
    file: StoredFile,
    line: u64,
    position: Position,
    time: Moment,
    contents: Contents,
    product: Option<String>,
) -> Base {
    let Contents { keys, server, selected, .. } = contents;
    // A Dunlin's files say which version of Redis they are for.
    let server = product.unwrap_or(server);
    Base { selected, keys, server, ..Base::new(file, line, position, time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_without_an_end_is_given_up_when_the_user_asks_for_the_end() {
        let interrupt = Interrupt::default();
        let job = |check: fn()| BaseJob {
            thread: std::thread::spawn(move || {
                check();
                Err("it is no base".to_owned())
            }),
            position: Arc::default(),
            reached: None,
            is_beside: false,
        };
        assert!(job(|| {}).is_over_in_time(&interrupt, 0));
        interrupt.set();
        let endless = || loop {
            std::thread::park();
        };
        assert!(!job(endless).is_over_in_time(&interrupt, 1));
    }
}
