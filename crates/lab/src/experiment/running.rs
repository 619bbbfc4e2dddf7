//! Running loads, each in a thread of its own, bound to its processors.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::agent::{self, Agents};
use crate::load::{self, Address, Control, Plan, Progress};
use crate::record::Recording;
use crate::results::{AgentClock, LoadRecording};
use crate::targets::connection::Endpoint;
use crate::targets::cpus;

/// How often a load that is not due yet checks whether it is due, or should end.
const TICK: Duration = Duration::from_millis(5);

/// One load that runs.
pub(crate) struct ActiveLoad {
    name: String,
    control: Arc<Control>,
    thread: JoinHandle<Result<(Recording, Vec<AgentClock>), String>>,
}

impl ActiveLoad {
    /// Starts a load after a delay, here or on agents. Of loads on the same processors, those with
    /// a larger `priority`, from 1 on, go first.
    pub(crate) fn start(
        name: String,
        plan: Plan,
        cpus: Vec<usize>,
        priority: i32,
        delay_seconds: f64,
        agents: Option<Arc<Agents>>,
    ) -> Self {
        let control = Arc::new(Control::default());
        let shared = Arc::clone(&control);
        let begin = Instant::now() + Duration::from_secs_f64(delay_seconds);
        let thread = std::thread::spawn(move || {
            while Instant::now() < begin && !shared.is_stopped() {
                std::thread::sleep(TICK.min(begin.saturating_duration_since(Instant::now())));
            }
            if let Some(agents) = agents {
                let seen =
                    agent::run(&plan, &shared, &agents).map_err(|error| error.to_string())?;
                let clocks = agents.addresses.iter().zip(seen.clocks);
                let clocks = clocks.map(|(address, (ahead_ms, bound_ms))| AgentClock {
                    address: address.clone(),
                    ahead_ms,
                    bound_ms,
                });
                return Ok((seen.recording, clocks.collect()));
            }
            // The generator's threads keep to the processors of the one that starts them.
            let recording = cpus::load_within(&cpus, priority, || load::run(&plan, &shared));
            let recording = recording.map_err(|error| error.to_string())?;
            recording.map(|seen| (seen, Vec::new())).map_err(|error| error.to_string())
        });
        ActiveLoad { name, control, thread }
    }

    /// Asks the load to end.
    pub(crate) fn stop(&self) {
        self.control.stop();
    }

    /// Whether it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// How far it is.
    pub(crate) fn progress(&self) -> Progress {
        self.control.progress()
    }

    /// Waits for its end, and returns its recording.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn finish(self) -> Result<LoadRecording, String> {
        match self.thread.join() {
            Ok(Ok((recording, agents))) => Ok(LoadRecording { name: self.name, recording, agents }),
            Ok(Err(error)) => Err(format!("load '{}': {error}", self.name)),
            Err(_) => Err(format!("load '{}' has panicked", self.name)),
        }
    }
}

/// A target's address as plans have it.
pub(crate) fn address(endpoint: &Endpoint) -> Address {
    Address {
        host: endpoint.host.clone(),
        port: endpoint.port,
        password: endpoint.password.clone(),
        encryption: endpoint.encryption.clone(),
        ..Address::default()
    }
}
