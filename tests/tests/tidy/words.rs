//! One word for a thing, one thing for a word: old words, and the words that have replaced them.
//! `docs/ARCHITECTURE.md` explains the new ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tests::server::repository;

use crate::source::{blank, find_files, tokens};
use crate::{compare, documents};

/// An old word: the folder where it must not return, the word, and the word that has its meaning
/// now. Each folder is a prefix of paths; the empty one stands for all.
type Old = (&'static str, &'static str, &'static str);

/// Words that no identifier contains, neither as a whole nor as a part (`next_due`, `DueTimes`).
const PARTS: &[Old] = &[
    ("crates/base/", "steady", "monotonic"),
    ("crates/store/", "steady", "monotonic"),
    ("crates/engine/", "steady", "monotonic"),
    ("crates/server/", "steady", "monotonic"),
    ("", "doom", "close_reason"),
    ("", "nudge", "notify"),
    ("", "napping", "asleep"),
    ("", "errand", "job, background job"),
    ("", "errands", "background jobs"),
    ("", "assistant", "job thread"),
    ("", "familiar", "cached headers"),
    ("crates/server/", "relief", "yielding"),
    ("crates/server/", "stranger", "rejected origin"),
    ("crates/", "strangers", "unknown peers"),
    ("crates/store/", "shelf", "segment"),
    ("crates/store/", "shelves", "segments"),
    ("crates/store/", "label", "content_type_id"),
    ("crates/store/", "due", "expiry, expired"),
    ("crates/engine/", "due", "expiry, expired, deadline"),
    ("crates/server/", "due", "deadline, expired"),
    ("crates/store/", "presence", "pinned"),
    ("crates/engine/", "presence", "pinned"),
    ("crates/engine/", "news", "publications"),
    ("crates/engine/", "telling", "delivery"),
    ("crates/engine/", "figures", "metrics"),
    ("crates/engine/", "program", "exclusive"),
    ("crates/server/src/net/", "place", "connection_index, position"),
    ("crates/server/src/net/", "places", "indexes, positions"),
];

/// Identifiers that must not return as a whole; their words are also plain English.
const WHOLE: &[Old] = &[
    ("", "Presence", "Pinned"),
    ("", "Held", "LockedSlots"),
    ("crates/store/", "held", "locked"),
    ("crates/engine/", "held", "locked"),
    ("", "try_hold", "try_lock_slots"),
    ("", "try_cover", "try_acquire"),
    ("crates/engine/", "Authority", "SlotAccess"),
    ("crates/engine/", "authority", "slot_access"),
    ("", "needs_gates", "stops_the_world"),
    ("", "NeedsGates", "NeedsStoppedWorld"),
    ("", "NeedsProgram", "NeedsAllSlots"),
    ("", "bring_near", "prefetch"),
    ("", "may_go_short", "may_take_fast_path"),
    ("", "execute_plainly", "execute_fast"),
    ("crates/store/", "Backlog", "CutMemory"),
    ("", "consists", "expansion"),
    ("", "noting", "accounting"),
    ("crates/store/", "Place", "Position"),
    ("crates/engine/", "Place", "Position, Selection"),
    ("crates/server/", "Place", "Resource, FileRole, CommandSpan, Setup"),
    ("crates/config/", "Place", "Location"),
    ("crates/", "Places", "Positions, or what they are the places of"),
    ("", "Batch", "EffectBatch, CommandBatch, EntryBatch"),
    ("", "Pending", "PendingCommand, PendingEntry, PendingFree, PendingEvent"),
    ("crates/engine/", "Listener", "Follower; a listener is a socket"),
    ("crates/engine/", "Listeners", "Followers, SubscribersByName"),
    ("", "Telling", "what it delivers or reports"),
    ("crates/", "Told", "what was reported or answered"),
    ("", "Tell", "Notify"),
    ("", "News", "Publication"),
    ("", "Mail", "Messages"),
    ("", "Letters", "Queued"),
    ("", "nap", "sleep"),
    ("", "Hand", "InternalClient"),
    ("crates/server/", "hand", "client"),
    ("", "Aside", "Background"),
    ("", "do_aside", "run_in_background"),
    ("", "Listings", "NodeReader"),
    ("crates/server/", "listings", "node_reader"),
    ("", "Want", "GetRequest"),
    ("", "Asked", "what was asked for: CachedRequest, ClockSample, Invocation"),
    ("", "Facts", "Metadata"),
    ("", "Figures", "Metrics; a figure is a number that the lab measured"),
    ("", "Settings", "Config; a setting is one directive with its value"),
    ("crates/engine/", "covered", "released"),
    ("crates/server/", "covered", "released, contained"),
    ("", "written_to", "write_offset"),
    ("", "unaccounted", "unrecorded"),
    ("", "listed_as_waiting", "listed_as_awaiting_journal"),
    ("crates/lab/", "run_all", "run_experiments, run_experiment"),
    ("crates/lab/", "play", "run_phases, run_all_points"),
];

/// Phrases that neither comments nor documents contain.
const PHRASES: &[(&str, &str)] = &[
    ("steady clock", "monotonic clock"),
    ("short path", "fast path"),
    ("brought near", "prefetched"),
    ("bring near", "prefetch"),
    ("brings near", "prefetches"),
    ("all gates closed", "the world stopped"),
    ("closed all gates", "stopped the world"),
    ("all gates are closed", "the world is stopped"),
    ("as a program", "as an exclusive command"),
    ("a program that locks", "an exclusive command that locks"),
    ("on shelves", "in segments"),
    ("the queue of news", "the queue of publications"),
    ("there is no mail", "there is no message"),
];

#[test]
fn old_words_do_not_return() {
    let root = repository();
    let mut found = BTreeSet::new();
    let mut files = Vec::new();
    for folder in ["crates", "explore", "fuzz", "tests/src", "tests/tests"] {
        find_files(&root.join(folder), &mut files);
    }
    files.retain(|file| !file.ends_with("tidy/words.rs") && !is_built(file, &root));
    assert!(files.len() > 600, "only {} files were found", files.len());
    for file in files {
        let path = file.strip_prefix(&root).expect("it was found there").to_string_lossy();
        let text = fs::read_to_string(&file).expect("a source is text");
        note_identifiers(&path, &blank(&text), &mut found);
        note_phrases(&path, &text, &mut found);
    }
    for document in documents::all(&root) {
        let path = document.strip_prefix(&root).expect("it was found there").to_string_lossy();
        note_phrases(&path, &fs::read_to_string(&document).expect("it is text"), &mut found);
    }
    compare("has an old word", &found, &BTreeSet::new());
}

/// Whether a file was written by a build.
fn is_built(file: &Path, root: &Path) -> bool {
    file.strip_prefix(root).is_ok_and(|path| path.iter().any(|part| part == "target"))
}

fn note_identifiers(path: &str, code: &str, found: &mut BTreeSet<String>) {
    let is_here = |folder: &str| path.starts_with(folder);
    for token in tokens(code).into_iter().collect::<BTreeSet<_>>() {
        let whole = WHOLE.iter().filter(|(_, word, _)| *word == token);
        let parts = parts(token);
        let inner = PARTS.iter().filter(|(_, word, _)| parts.iter().any(|part| part == word));
        for (_, _, now) in whole.chain(inner).filter(|(folder, ..)| is_here(folder)) {
            found.insert(format!("{path}: `{token}`, now: {now}"));
        }
    }
}

/// The words of which an identifier consists, in small letters.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for word in identifier.split('_') {
        let mut part = String::new();
        let mut before = ' ';
        for letter in word.chars() {
            if letter.is_uppercase() && before.is_lowercase() {
                parts.push(std::mem::take(&mut part));
            }
            part.extend(letter.to_lowercase());
            before = letter;
        }
        parts.push(part);
    }
    parts
}

fn note_phrases(path: &str, text: &str, found: &mut BTreeSet<String>) {
    let words = text.split_whitespace().filter(|word| !matches!(*word, "//" | "///" | "//!"));
    let text = words.collect::<Vec<_>>().join(" ").to_lowercase();
    for (phrase, now) in PHRASES.iter().filter(|(phrase, _)| text.contains(phrase)) {
        found.insert(format!("{path}: \"{phrase}\", now: {now}"));
    }
}

#[test]
fn old_words_are_found() {
    let mut found = BTreeSet::new();
    let code = "fn next_due(own: Held) -> DueTime { residue + is_doomed + withheld }";
    note_identifiers("crates/store/src/a.rs", code, &mut found);
    note_identifiers("crates/lab/src/a.rs", "fn due() {}", &mut found);
    note_phrases("b.md", "by the\n/// Steady clock, that is", &mut found);
    let names: Vec<_> = found.iter().map(|line| line.split(", now").next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "b.md: \"steady clock\"",
            "crates/store/src/a.rs: `DueTime`",
            "crates/store/src/a.rs: `Held`",
            "crates/store/src/a.rs: `next_due`",
        ]
    );
    assert_eq!(parts("TLSNextDue_at"), ["tlsnext", "due", "at"]);
}
