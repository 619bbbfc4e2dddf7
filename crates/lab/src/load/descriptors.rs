//! Descriptors: every connection needs one, and shells give few.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as any process may. A failure is not reported: the load
/// names the limit when it meets it.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// What this side lacks when a connection could not be opened; `None` if this side was not the
/// cause.
pub(crate) fn own_fault(error: &io::Error) -> Option<String> {
    match error.raw_os_error()? {
        libc::EMFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
            Some(format!("{error}: the limit of open files is {limit} (see ulimit -n)"))
        }
        libc::EADDRNOTAVAIL => Some(format!("{error}: no port of this side is free")),
        libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => Some(error.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_side_lacks_is_named() {
        let said = |code| own_fault(&io::Error::from_raw_os_error(code));
        assert!(said(libc::EMFILE).is_some_and(|text| text.contains("ulimit -n")));
        assert!(said(libc::EADDRNOTAVAIL).is_some_and(|text| text.contains("port")));
        assert_eq!(said(libc::ECONNREFUSED), None);
    }

    #[test]
    fn the_limit_is_as_high_as_allowed() {
        raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
