//! Which events concern a client that watches a path.

use crate::event::Event;
use crate::path;

/// Whether an event of the past answers a client that asks from an index on. Here events of hidden
/// nodes are included, and the end of a directory concerns every path that begins with its own.
pub fn is_found(event: &Event<'_>, watched: &[u8], recursive: bool) -> bool {
    if event.refresh {
        return false;
    }
    *event.path == *watched
        || (recursive && is_below(&event.path, watched))
        || (event.takes_away_a_directory() && watched.starts_with(&event.path))
}

/// Whether an event concerns a client that watches a path while it happens, as far as the paths
/// decide.
pub fn concerns(event: &Event<'_>, watched: &[u8], recursive: bool) -> bool {
    if event.refresh {
        return false;
    }
    let is_seen =
        recursive && is_below(&event.path, watched) && !path::is_hidden_from(watched, &event.path);
    *event.path == *watched
        || is_seen
        || (event.takes_away_a_directory() && is_below(watched, &event.path))
}

fn is_below(path: &[u8], above: &[u8]) -> bool {
    let rest = path.strip_prefix(above.strip_suffix(b"/").unwrap_or(above));
    rest.is_some_and(|rest| rest.first() == Some(&b'/') && rest.len() > 1)
}
