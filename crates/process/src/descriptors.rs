//! How many clients the process may have: each needs a descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything else: log, data files, listening sockets.
const RESERVED: u64 = 32;
/// Descriptors of each worker: its poll instance and its waker. For few workers, the reserve has
/// room for them.
const PER_THREAD: u64 = 2;

/// The result of asking for descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// How many clients have room, at most as many as asked for.
    pub clients: u32,
    /// The message to the operator, when there are fewer.
    pub warnings: Vec<String>,
}

/// The limit of open files.
pub fn limit() -> Rlimit {
    getrlimit(Resource::Nofile)
}

/// Makes the limit again what it was, if it was raised.
pub fn put_back(before: Rlimit) {
    if limit() != before {
        // The process may lower it. It may use more files by now: those stay open.
        let _ = setrlimit(Resource::Nofile, before);
    }
}

/// Raises the limit of open files so that `clients` fit beside `threads` workers.
pub fn make_room(clients: u32, threads: usize) -> Granted {
    let reserved = RESERVED.max(RESERVED / 2 + PER_THREAD * threads as u64);
    let wanted = u64::from(clients) + reserved;
    let limit = getrlimit(Resource::Nofile);
    let available = limit.current.unwrap_or(u64::MAX);
    if available >= wanted {
        return Granted { clients, warnings: Vec::new() };
    }
    let hard = limit.maximum.unwrap_or(u64::MAX).max(wanted);
    let raised = Rlimit { current: Some(wanted), maximum: Some(hard) };
    let Err(error) = setrlimit(Resource::Nofile, raised) else {
        return Granted { clients, warnings: Vec::new() };
    };
    // Only a privileged process gets more than the hard limit; every process gets up to that.
    let highest = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let available = match setrlimit(Resource::Nofile, highest) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => available,
    };
    let possible = u32::try_from(available.saturating_sub(reserved)).unwrap_or(clients);
    Granted {
        clients: possible.min(clients),
        warnings: warnings(clients, wanted, available, possible, error),
    }
}

fn warnings(
    clients: u32,
    wanted: u64,
    available: u64,
    possible: u32,
    error: rustix::io::Errno,
) -> Vec<String> {
    let error = crate::paths::reason(&error.into());
    vec![
        format!(
            "You requested maxclients of {clients} requiring at least {wanted} max file \
             descriptors."
        ),
        format!("Server can't set maximum open files to {wanted} because of OS error: {error}."),
        format!(
            "Current maximum open files is {available}. maxclients has been reduced to {possible} \
             to compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'."
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clients_fit_and_too_many_are_reduced() {
        assert_eq!(make_room(1, 1), Granted { clients: 1, warnings: Vec::new() });
        // More descriptors than any kernel grants (`fs.nr_open` is below 2^31).
        let granted = make_room(u32::MAX, 1);
        assert!(granted.clients < u32::MAX);
        assert_eq!(granted.warnings.len(), 3);
    }
}
