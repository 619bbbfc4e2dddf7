//! How another thread ends a watch.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use ureq::Agent;

/// Ends a watch, also one that waits just now.
#[derive(Debug, Default)]
pub struct Stop {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    agent: Option<Agent>,
}

impl Stop {
    /// Ends the watch that has this, now and for ever.
    pub fn stop(&self) {
        let agent = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_stopped = true;
            state.agent.take()
        };
        self.stopped.notify_all();
        if let Some(agent) = agent {
            agent.shutdown();
        }
    }

    /// Whether that has happened.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    /// Waits for so long, or until it happens.
    pub(crate) fn wait(&self, longest: Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that has panicked while it had the lock has left it as it was.
        let _ = self.stopped.wait_timeout_while(state, longest, |own| !own.is_stopped);
    }

    /// Whose connections are ended then. False if it has happened already.
    pub(crate) fn will_end(&self, agent: Agent) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.agent = Some(agent);
        !state.is_stopped
    }
}
