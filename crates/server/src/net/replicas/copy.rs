//! One full copy for the replicas that attach together, made by a thread of its own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use engine::engine::Engine;
use parking_lot::Mutex;
use persist::cuts::{self, CutRight, Cuts};
use persist::full_copy::{self, Begun, NoCopy, Wanted};

use super::fan_out::{FanIn, FanOut};

/// How replicas get a copy: those of one form share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    pub(super) wanted: Wanted,
    /// It goes into a file first, because its length comes before it.
    pub(super) spooled: bool,
}

/// How far a copy is.
#[derive(Default)]
struct Progress {
    begun: Option<Begun>,
    ended: Option<Result<u64, NoCopy>>,
}

/// A copy that is being made.
pub(super) struct Copy {
    pub(super) form: Form,
    /// The numbers of the clients that get it.
    pub(super) members: Vec<u64>,
    /// The end of the copy where its length is not known.
    pub(super) mark: [u8; 40],
    /// What it was given to, if it goes into no file.
    pub(super) fan_out: Option<Arc<FanOut>>,
    /// The file, if it goes into one.
    pub(super) file: Option<Arc<File>>,
    progress: Mutex<Progress>,
    /// Nobody wants it any more.
    given_up: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Copy {
    /// Prepares a copy.
    ///
    /// # Errors
    /// There is no file for it.
    pub(super) fn new(
        (engine, cuts): (&Arc<Engine>, &Arc<Cuts>),
        form: Form,
        members: Vec<u64>,
        wake: impl Fn() + Send + Sync + Clone + 'static,
    ) -> io::Result<Copy> {
        let (mut fan_out, mut file) = (None, None);
        let given_up = Arc::<AtomicBool>::default();
        if form.spooled {
            file = Some(Arc::new(full_copy::spool()?));
        } else {
            let config = engine.config.load();
            let most = match config.client_output_buffer_limits.replica.hard_bytes {
                0 => usize::MAX,
                bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
            };
            let patience = Duration::from_secs(u64::from(config.repl_timeout));
            let own = Arc::clone(engine);
            let presses = move || own.keyspace.cut_presses();
            let ids = members.iter().copied();
            let (cuts, given_up) = (Arc::clone(cuts), Arc::clone(&given_up));
            let is_over = move || cuts.is_recalled() || given_up.load(Relaxed);
            let made = FanOut::new(ids, (most, patience), wake.clone(), presses, is_over);
            fan_out = Some(Arc::new(made));
        }
        let mut mark = [0; 40];
        mark.copy_from_slice(engine::engine::random_id().as_bytes());
        Ok(Copy {
            form,
            members,
            mark,
            fan_out,
            file,
            progress: Mutex::default(),
            given_up,
            wake: Box::new(wake),
        })
    }

    /// Starts the thread that makes it.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(super) fn start(self: &Arc<Copy>, engine: &Arc<Engine>, right: CutRight) -> io::Result<()> {
        let (copy, engine) = (Arc::clone(self), Arc::clone(engine));
        let spawned = cuts::spawn("full-copy", right, move |right| {
            let written = copy.write(&engine, &right);
            drop(right);
            if let Some(fan_out) = &copy.fan_out {
                fan_out.end(written.is_ok());
            }
            copy.progress.lock().ended = Some(written);
            (copy.wake)();
        });
        spawned.map_err(|(error, _)| error)
    }

    fn write(&self, engine: &Engine, right: &CutRight) -> Result<u64, NoCopy> {
        let begun = |begun: &Begun| -> io::Result<Box<dyn Write>> {
            self.progress.lock().begun = Some(begun.clone());
            (self.wake)();
            match (&self.fan_out, &self.file) {
                (Some(fan_out), _) => Ok(Box::new(FanIn(Arc::clone(fan_out)))),
                (None, Some(file)) => Ok(Box::new(BufWriter::new(file.try_clone()?))),
                (None, None) => Err(io::Error::other("nobody gets it")),
            }
        };
        let is_wanted = || !self.given_up.load(Relaxed);
        full_copy::write(engine, right, self.form.wanted, begun, is_wanted)
            .map(|written| written.bytes)
    }

    /// Gives it up: nobody wants it any more.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }

    /// One of those that get it has gone.
    pub(super) fn leave(&self, id: u64) {
        self.fan_out.as_ref().inspect(|fan_out| fan_out.leave(id));
    }

    /// Where it was begun, once.
    pub(super) fn take_begun(&self) -> Option<Begun> {
        self.progress.lock().begun.take()
    }

    /// What came of it, once.
    pub(super) fn take_ended(&self) -> Option<Result<u64, NoCopy>> {
        self.progress.lock().ended.take()
    }
}
