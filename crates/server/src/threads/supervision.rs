//! What systemd is told while it supervises the server, and the thread that tells it.
//!
//! The thread extends the timeouts of a start and of a stop as long as data is loaded or saved, and
//! says how far that is. If systemd wants signs of life (`WatchdogSec=`), the thread gives them
//! only while it sees every worker turn. A worker that a load or a save holds up counts as alive
//! while that makes progress.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use engine::engine::Engine;
use parking_lot::Mutex;
use process::log::Log;
use process::supervisor::{self, Message, Supervisor};
use process::thread;

/// Between two looks, unless signs of life are wanted more often.
const TICK: Duration = Duration::from_secs(1);
/// By how much a timeout is extended: for as long a disk may stall.
const EXTENSION: Duration = Duration::from_secs(60);
const READY: &str = "Ready to accept connections";

/// See the module's text. It does nothing where systemd does not supervise the server.
pub struct Supervision {
    is_on: bool,
    phase: Mutex<Phase>,
    log: Arc<Log>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Loading,
    Serving,
    Stopping,
}

impl Supervision {
    /// Starts the thread, if there is a supervisor to be told. The server is about to load its
    /// data.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        supervisor: Option<Supervisor>,
        engine: &Arc<Engine>,
        log: &Arc<Log>,
    ) -> io::Result<Arc<Supervision>> {
        let supervision = Arc::new(Supervision {
            is_on: supervisor == Some(Supervisor::Systemd),
            phase: Mutex::new(Phase::Loading),
            log: Arc::clone(log),
        });
        supervision.tell(&[Message::Status("Loading data")]);
        if supervision.is_on {
            let (supervision, engine) = (Arc::clone(&supervision), Arc::clone(engine));
            thread::start("supervision", move || supervision.watch(&engine))?;
        }
        Ok(supervision)
    }

    /// The server serves clients.
    pub fn note_ready(&self) {
        *self.phase.lock() = Phase::Serving;
        self.tell(&[Message::Status(READY), Message::Ready]);
    }

    /// Does what an operator's signal asks for, while systemd knows that it is being done. It would
    /// take a server that is still loading for one that is ready.
    pub fn reload(&self, reload: impl FnOnce()) {
        let told: Vec<_> =
            [Ok(Message::Reloading), Message::monotonic_usec_now()].into_iter().flatten().collect();
        let is_told = self.tell_while_serving(&told);
        reload();
        if is_told {
            self.tell_while_serving(&[Message::Ready]);
        }
    }

    /// The server begins to stop. It may need this long before it saves, to wait for replicas.
    pub fn note_stopping(&self, patience: Duration) {
        if std::mem::replace(&mut *self.phase.lock(), Phase::Stopping) != Phase::Stopping {
            self.tell(&[
                Message::Stopping,
                Message::Status("Stopping"),
                extension(patience + EXTENSION),
            ]);
        }
    }

    /// The server does not stop after all.
    pub fn note_serving_on(&self) {
        *self.phase.lock() = Phase::Serving;
        self.tell(&[Message::Status(READY)]);
    }

    fn tell(&self, told: &[Message<'_>]) {
        if self.is_on {
            supervisor::tell_systemd(told, &self.log);
        }
    }

    /// Tells it nothing, and returns false, before the server is ready and when it stops.
    fn tell_while_serving(&self, told: &[Message<'_>]) -> bool {
        let phase = self.phase.lock();
        if *phase == Phase::Serving {
            self.tell(told);
        }
        *phase == Phase::Serving
    }

    /// The thread. It ends with the process.
    fn watch(&self, engine: &Engine) {
        let patience = supervisor::watchdog();
        let tick = patience.map_or(TICK, |patience| TICK.min(patience / 4));
        let mut looks = Looks::default();
        loop {
            std::thread::sleep(tick);
            let seen = looks.look(engine);
            let phase = self.phase.lock();
            if let Some(status) = looks.status(engine, *phase) {
                self.tell(&[Message::Status(&status)]);
            }
            if *phase != Phase::Serving && seen.progress {
                self.tell(&[extension(EXTENSION)]);
            }
            // Workers end while the server stops, for which there is a timeout of its own.
            let is_alive = seen.turns || seen.holds_up_workers || *phase == Phase::Stopping;
            drop(phase);
            if patience.is_some() && is_alive {
                self.tell(&[Message::Watchdog]);
            }
            process::memory::publish();
        }
    }
}

fn extension(by: Duration) -> Message<'static> {
    Message::ExtendTimeoutUsec(u32::try_from(by.as_micros()).unwrap_or(u32::MAX))
}

/// What was seen at the last look.
#[derive(Default)]
struct Looks {
    /// The turns of each worker.
    turns: Vec<u64>,
    /// Bytes that were loaded, and keys that were saved.
    progress: (u64, u64),
    status: String,
}

/// What has happened since the last look.
struct Seen {
    /// Every worker has turned.
    turns: bool,
    /// A load or a save has gone on.
    progress: bool,
    /// One that keeps workers from turning has.
    holds_up_workers: bool,
}

impl Looks {
    fn look(&mut self, engine: &Engine) -> Seen {
        let threads = engine.stats.threads();
        let workers = threads.iter().filter(|stats| stats.thread.starts_with("worker-"));
        let turns: Vec<u64> = workers.map(|stats| stats.turns.get()).collect();
        let loaded = engine.loading.progress().map(|progress| progress.loaded_bytes);
        let saved = engine.saving.metrics(0).keys_written;
        let progress = (loaded.unwrap_or(0), saved);
        let turned = turns.iter().zip(&self.turns).all(|(now, before)| now != before);
        let progressed = progress != self.progress;
        (self.turns, self.progress) = (turns, progress);
        let holds_up_workers = progressed && (loaded.is_some() || engine.saving.is_in_foreground());
        Seen { turns: turned, progress: progressed, holds_up_workers }
    }

    /// What an operator sees of the server, if that has changed.
    fn status(&mut self, engine: &Engine, phase: Phase) -> Option<String> {
        let saving = engine.saving.metrics(0);
        let status = match (phase, engine.loading.progress()) {
            (Phase::Loading, progress) => {
                let percentage = progress.map_or(0.0, |progress| progress.percentage());
                format!("Loading data: {percentage:.0} %")
            }
            (Phase::Stopping, _) if saving.in_progress => {
                format!("Saving data: {} of {} keys", saving.keys_written, saving.keys_total)
            }
            (Phase::Stopping, _) => "Stopping".to_owned(),
            (Phase::Serving, _) => match engine.replication.primary() {
                Some(primary) if engine.replication.is_stale() => {
                    let host = String::from_utf8_lossy(&primary.host).into_owned();
                    format!("{READY}; no link to the primary {host}:{}", primary.port)
                }
                _ => READY.to_owned(),
            },
        };
        let has_changed = status != self.status;
        self.status.clone_from(&status);
        has_changed.then_some(status)
    }
}
