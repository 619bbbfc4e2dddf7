//! KEYS, SCAN and RANDOMKEY: commands that look at keys they do not name.
//!
//! They hold one slot at a time and look at a bounded number of entries while they hold it, so that
//! they never keep others waiting for long. So their result does not show one instant, unless they
//! run inside a transaction, which holds all slots. Expired keys are skipped. SCAN and RANDOMKEY
//! also have the expired keys removed that they would have shown. When another thread has locked a
//! slot, SCAN ends with the keys that it has, if it has any. The other commands are tried again
//! later, and KEYS goes on where it was.

use base::limits::{RANDOMKEY_TRIES, WALKED_PER_LOCK};
use store::{Entry, SlotTable};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::db::slot_access::SlotAccess;
use engine::engine::Context;
use engine::handler::scan::{self, ScanOptions, Scanned};
use engine::handler::walk::{Cursor, Walk, walk};
use engine::session::KeysSoFar;

/// KEYS pattern
pub(super) fn keys(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let pattern = args.bytes()?;
    let all = pattern == b"*";
    let mark = cx.reply.mark();
    let (mut cursor, mut count) = (Cursor::START, 0);
    if let Some(so_far) = cx.session.keys_so_far.take() {
        cx.reply.raw(&so_far.reply);
        (cursor, count) = (Cursor::from_number(so_far.cursor), so_far.count);
    }
    let reply = &mut cx.reply;
    let end = walk(&cx.db, cx.slot_access, cursor, usize::MAX, |_, entry, is_live| {
        if is_live && (all || base::glob::matches(pattern, entry.key())) {
            reply.bulk(entry.key());
            count += 1;
        }
    });
    if cx.reply.output().is_over_limit() {
        // Parts of the reply are lost, so no client may go on from there. The connection is closed.
        cx.db.locked.forgive_missed();
    } else if let Walk::Missed(cursor) = end {
        let reply = cx.reply.since(mark).to_vec();
        cx.session.keys_so_far =
            Some(Box::new(KeysSoFar { cursor: cursor.to_number(), reply, count }));
        return Err(CommandError::MISSED_SLOT);
    }
    cx.reply.close_array(mark, count);
    Ok(())
}

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
pub(super) fn scan(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let cursor = Cursor::from_number(scan::cursor(args)?);
    let options = ScanOptions::parse(args, Scanned::Keys)?;
    let (db, slot_access) = (&cx.db, cx.slot_access);
    scan::reply_scan(&mut cx.reply, |reply| {
        let (mut count, mut seen, mut hits) = (0, 0, 0);
        let end = walk(db, slot_access, cursor, options.count, |_, entry, is_live| {
            seen += u64::from(is_live);
            if !options.admits(entry.key()) {
                return;
            }
            if !is_live {
                return db.note_expired_in_walk(entry.key());
            }
            // To ask for a type is to look a key up.
            hits += u64::from(options.type_name.is_some());
            let type_name = entry.value().type_name().as_bytes();
            if options.type_name.is_none_or(|name| name.eq_ignore_ascii_case(type_name)) {
                reply.bulk(entry.key());
                count += 1;
            }
        });
        db.stats.keyspace_hits.add(hits);
        let next = match end {
            Walk::Finished => 0,
            Walk::Paused(next) => next.to_number(),
            Walk::Missed(next) => {
                if seen > 0 {
                    db.locked.forgive_missed();
                }
                next.to_number()
            }
        };
        (next, count)
    });
    if cx.db.locked.missed().is_some() { Err(CommandError::MISSED_SLOT) } else { Ok(()) }
}

/// RANDOMKEY
pub(super) fn randomkey(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    match random_live_key(&cx.db, cx.slot_access)? {
        Some(key) => cx.reply.bulk(&key),
        None => cx.reply.null(),
    }
    Ok(())
}

fn random_live_key(
    db: &Db<'_>,
    slot_access: SlotAccess<'_>,
) -> Result<Option<Box<[u8]>>, CommandError> {
    for _ in 0..RANDOMKEY_TRIES {
        let Some(slot) = db.locked.space().random_slot(db.index) else { return Ok(None) };
        let live = db.with_slot(slot_access, slot, |locked| {
            let entry = locked.table(db.index, slot)?.random()?;
            let is_live = entry.expire_at().is_none_or(|at| !db.has_expired(at));
            if !is_live {
                db.note_expired_in_walk(entry.key());
            }
            is_live.then(|| entry.key().into())
        });
        if let Some(key) = live.ok_or(CommandError::MISSED_SLOT)? {
            return Ok(Some(key));
        }
    }
    // Nearly all keys have expired: any live key will do.
    let (mut cursor, mut live) = (Cursor::START, None);
    while live.is_none() {
        let show = |_: &SlotTable, entry: Entry<'_>, is_live: bool| {
            if is_live {
                live = Some(entry.key().into());
            }
        };
        cursor = match walk(db, slot_access, cursor, WALKED_PER_LOCK, show) {
            Walk::Finished => break,
            Walk::Paused(next) => next,
            Walk::Missed(_) => return Err(CommandError::MISSED_SLOT),
        };
    }
    Ok(live)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use resp::client::{ReplyParser, Value};

    use crate::testing::TestServer;

    #[test]
    fn walks_remove_the_expired_keys_that_they_would_show() {
        let mut server = crate::testing::server();
        let now = server.turn.now;
        server.now = Some(now);
        for line in ["SET a 1 PX 5", "SET b 1 PX 5", "RPUSH l 1", "PEXPIRE l 5", "SET c 1 PX 5"] {
            server.text(line);
        }
        server.now = Some(now + 10);
        server.journal.take();
        for (line, left) in [("KEYS *", 4), ("SCAN 0 MATCH a", 3)] {
            assert!(server.text(line).ends_with("*0\r\n"), "{line}");
            assert_eq!(server.text("DBSIZE"), format!(":{left}\r\n"), "{line}");
        }
        assert_eq!(server.journal.take().len(), 1, "the journal has what went");
        assert!(server.text("SCAN 0 TYPE list").ends_with("*0\r\n"));
        assert_eq!(server.text("DBSIZE"), ":0\r\n", "whatever its type was");
        server.text("SET d 1 PX 5");
        server.now = Some(now + 20);
        assert_eq!(server.text("RANDOMKEY"), "$-1\r\n");
        assert_eq!(server.text("DBSIZE"), ":0\r\n");
        server.text("SET d 1 PX 5");
        server.now = Some(now + 30);
        for line in ["MULTI", "SCAN 0", "DBSIZE"] {
            server.text(line);
        }
        assert_eq!(server.text("EXEC"), "*2\r\n*2\r\n$1\r\n0\r\n*0\r\n:0\r\n");
    }

    /// Scans to the end and returns everything that was shown.
    fn scan_all(
        server: &mut TestServer,
        count: &str,
        mut between: impl FnMut(&mut TestServer),
    ) -> Vec<Vec<u8>> {
        let (mut cursor, mut shown) = (b"0".to_vec(), Vec::new());
        for _ in 0..10_000 {
            let reply = server.run(&[b"SCAN", &cursor[..], b"COUNT", count.as_bytes()]);
            let (value, _) = ReplyParser::new().next(&reply).unwrap().unwrap();
            let Value::Array(parts) = value else { panic!("SCAN answers an array") };
            let Value::Array(keys) = &parts[1] else { panic!("of a cursor and keys") };
            shown.extend(keys.iter().map(|key| key.as_bytes().unwrap().to_vec()));
            cursor = parts[0].as_bytes().unwrap().to_vec();
            if cursor == b"0" {
                return shown;
            }
            between(server);
        }
        panic!("the scan does not end");
    }

    fn restore(server: &mut TestServer, key: &str) {
        let payload = b"\x00\x03abc\x09\x00\x09^a\xf1\x15\xf4\xc1S";
        assert_eq!(
            server.run(&[b"RESTORE", key.as_bytes(), b"0", payload, b"REPLACE"]),
            b"+OK\r\n"
        );
    }

    #[test]
    fn a_scan_shows_each_key_once_while_nothing_changes() {
        let mut server = crate::testing::server();
        for number in 0..500 {
            restore(&mut server, &format!("{{one}}:{number}"));
            restore(&mut server, &format!("many:{number}"));
        }
        for count in ["1", "10", "700", "100000"] {
            let shown = scan_all(&mut server, count, |_| {});
            assert_eq!(shown.len(), 1000);
            assert_eq!(shown.iter().collect::<HashSet<_>>().len(), 1000);
        }
        assert_eq!(server.text("KEYS many:49?").matches("many:").count(), 10);
        assert!(server.text("KEYS *").starts_with("*1000\r\n"));
    }

    #[test]
    fn a_scan_shows_what_stays_while_others_come_and_go() {
        let mut server = crate::testing::server();
        for number in 0..300 {
            restore(&mut server, &format!("{{one}}:stays:{number}"));
        }
        let mut round = 0;
        let shown = scan_all(&mut server, "7", |server| {
            for number in 0..40 {
                let key = format!("{{one}}:comes:{round}:{number}");
                if round % 20 < 10 {
                    restore(server, &key);
                } else {
                    server.text(&format!("DEL {{one}}:comes:{}:{number}", round - 10));
                }
            }
            round += 1;
        });
        let stays = shown.iter().filter(|key| key.starts_with(b"{one}:stays:"));
        assert_eq!(stays.collect::<HashSet<_>>().len(), 300);
    }

    /// A server with a key in each of the slots of `b` (3300), `c` (7365) and `a` (15495).
    fn with_three_keys() -> TestServer {
        let mut server = crate::testing::server();
        for key in ["a", "b", "c"] {
            restore(&mut server, key);
        }
        server
    }

    #[test]
    fn a_long_walk_keeps_nobody_from_what_it_has_passed() {
        let mut server = with_three_keys();
        let engine = Arc::clone(&server.engine);
        let slot = |key: &str| base::crc::key_slot(key.as_bytes());
        let reservation = engine.keyspace.reserve();
        let keys = |server: &mut TestServer| server.try_text_reserved("KEYS *", &reservation);
        server.while_locked(b"b", |server| assert!(keys(server).is_none()));
        assert!(engine.keyspace.is_busy(slot("b"), None), "it is kept for the walk");
        server.while_locked(b"a", |server| assert!(keys(server).is_none()));
        assert!(!engine.keyspace.is_busy(slot("b"), None), "the walk has passed it");
        assert!(engine.keyspace.is_busy(slot("a"), None));
        assert!(keys(&mut server).is_some_and(|reply| reply.starts_with("*3\r\n")));
    }

    #[test]
    fn a_walk_whose_reply_was_cut_off_is_not_continued() {
        let mut server = with_three_keys();
        for number in 0..3000 {
            restore(&mut server, &format!("{{b}}:{number}"));
        }
        server.output_limit = 10_000;
        server.while_locked(b"a", |server| {
            assert!(server.try_text("KEYS *").is_some(), "nothing is left to be tried again");
        });
        server.output_limit = usize::MAX;
        assert!(server.text("KEYS *").starts_with("*3003\r\n"));
    }

    #[test]
    fn random_keys_are_live_ones() {
        let mut server = crate::testing::server();
        assert_eq!(server.text("RANDOMKEY"), "$-1\r\n");
        let now = server.turn.now;
        server.now = Some(now);
        for number in 0..300 {
            restore(&mut server, &format!("k:{number}"));
            server.text(&format!("PEXPIREAT k:{number} {}", now + 10));
        }
        server.now = Some(now + 11);
        assert_eq!(server.text("RANDOMKEY"), "$-1\r\n");
        restore(&mut server, "live");
        assert_eq!(server.text("RANDOMKEY"), "$4\r\nlive\r\n");
        assert_eq!(server.text("KEYS *"), "*1\r\n$4\r\nlive\r\n");
    }
}
