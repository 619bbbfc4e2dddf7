//! Whether both servers let this tool, and each other, do what is to be done: commands may have
//! other names, or none, and users may lack rights.

use crate::findings::Findings;
use crate::options::{After, Options};
use crate::server::{ASKS_FOR_TIMES, NAME, PROBE_KEY, Server};
use crate::values;

pub(crate) fn look(from: &mut Server, to: &mut Server, options: &Options, found: &mut Findings) {
    let both = || {
        let own = [
            &["CLIENT", "PAUSE", "1", "WRITE"][..],
            &["CLIENT", "UNPAUSE"],
            &["CLIENT", "INFO"],
            &["CLIENT", "KILL", "ID", "1"],
            &["CLIENT", "SETNAME", NAME],
            &["UNLINK", PROBE_KEY],
            &["FUNCTION", "LIST", "WITHCODE"],
        ];
        own.into_iter().map(<[&str]>::to_vec).chain(values::asked(PROBE_KEY))
    };
    let mut old: Vec<Vec<&str>> = both().collect();
    old.extend([
        vec!["REPLCONF", "capa", "psync2"],
        vec!["PSYNC", "?", "-1"],
        vec!["SCAN", "0"],
        vec!["RANDOMKEY"],
    ]);
    let mut new: Vec<Vec<&str>> = both().collect();
    new.extend([
        vec!["REPLICAOF", "NO", "ONE"],
        vec!["CONFIG", "GET", "masterauth"],
        vec!["CONFIG", "SET", "masterauth", ""],
    ]);
    if options.after == After::Replica {
        old.extend([
            vec!["REPLICAOF", "NO", "ONE"],
            vec!["CONFIG", "GET", "replica-read-only"],
            vec!["CONFIG", "SET", "replica-read-only", "yes"],
        ]);
        new.extend([vec!["REPLCONF", "capa", "psync2"], vec!["PSYNC", "?", "-1"]]);
    }
    for (part, server, needed) in [("old", from, old), ("new", to, new)] {
        if !server.tells_rights() {
            found.note(format!(
                "the {part} server does not tell what this user may do (ACL DRYRUN): a right that \
                 is missing shows when it is needed"
            ));
        }
        // Who sees no clients sees no Sentinel, and no other move either.
        if let Err(reason) = server.call(&["CLIENT", "LIST"]) {
            found.stop(format!("{reason}: Sentinels and other moves would not be seen"));
        }
        // An older server has none.
        let of_fields = server.knows(ASKS_FOR_TIMES[0]).then(|| ASKS_FOR_TIMES.to_vec());
        for words in needed.into_iter().chain(of_fields) {
            if let Some(reason) = server.refuses(&words) {
                let name = name_of_command(&words);
                found.stop(format!("the {part} server does not allow {name}: {reason}"));
            }
        }
    }
}

/// The name of a command, with that of its part where users may have a right to parts alone.
fn name_of_command(words: &[&str]) -> String {
    let has_parts = ["CLIENT", "CONFIG", "FUNCTION"].contains(&words[0]);
    words[..if has_parts { 2 } else { 1 }].join(" ")
}
