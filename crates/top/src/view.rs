//! The views, and the orders in which they can be.

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Commands,
    Latency,
    Clients,
    Memory,
    Keys,
    Replication,
}

/// All of them, in the order of their numbers.
pub(crate) const VIEWS: [View; 6] =
    [View::Commands, View::Latency, View::Clients, View::Memory, View::Keys, View::Replication];

impl View {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            View::Commands => "commands",
            View::Latency => "latency",
            View::Clients => "clients",
            View::Memory => "memory",
            View::Keys => "keys",
            View::Replication => "replication",
        }
    }

    /// The view with this name.
    pub(crate) fn named(name: &str) -> Option<View> {
        VIEWS.into_iter().find(|view| view.name() == name)
    }

    /// The view this many places further.
    pub(crate) fn moved(self, by: usize) -> View {
        let place = VIEWS.iter().position(|view| *view == self).unwrap_or(0);
        VIEWS[(place + by) % VIEWS.len()]
    }
}
