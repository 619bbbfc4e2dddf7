//! How another thread ends a watch.

use std::sync::{Mutex, PoisonError};

use ureq::Agent;

/// Ends a watch, also one that waits just now.
#[derive(Debug, Default)]
pub struct Stop(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    agent: Option<Agent>,
}

impl Stop {
    /// Ends the watch that has this, now and for ever.
    pub fn stop(&self) {
        let agent = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_stopped = true;
            state.agent.take()
        };
        if let Some(agent) = agent {
            agent.shutdown();
        }
    }

    /// Whether that has happened.
    pub fn is_stopped(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    /// Whose connections are ended then. False if it has happened already.
    pub(crate) fn will_end(&self, agent: Agent) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.agent = Some(agent);
        !state.is_stopped
    }
}
