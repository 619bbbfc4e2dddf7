//! What followers are told of commands.

use std::rc::Rc;

use engine::changes::reading::changes_of;
use engine::changes::slots::{Concern, concern};
use engine::journal::EffectBatch;
use engine::journal::change::Operation;
use store::SlotSet;

fn told(commands: &[(usize, &str)]) -> Vec<String> {
    let mut batch = EffectBatch::default();
    for (database, line) in commands {
        batch.push(*database, line.split(' ').map(str::as_bytes));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let commands: Vec<_> = batch.commands().collect();
    let commands = commands.iter().map(|(database, command)| (*database, &**command));
    let changes = changes_of(crate::registry(), commands);
    let shown = changes.iter().map(|change| {
        let database = change.database.map_or("*".to_owned(), |own| own.to_string());
        let key = change.key.map_or("*".to_owned(), text);
        let operation = match change.operation {
            Operation::Set(value, expires) => format!("set {} {expires:?}", text(value)),
            other => format!("{other:?}").to_lowercase(),
        };
        format!("{database} {key} {operation}")
    });
    shown.collect()
}

#[test]
fn keys_of_one_command_share_its_words() {
    // A copy for each would be the square of their number.
    for (line, shared) in
        [("MSET a 1 b 2", 0), ("UNLINK a b", 0), ("LMOVE a b LEFT RIGHT", 2), ("SWAPDB 1 2", 0)]
    {
        let mut batch = EffectBatch::default();
        batch.push(0, line.split(' ').map(str::as_bytes));
        let commands: Vec<_> = batch.commands().collect();
        let commands = commands.iter().map(|(database, command)| (*database, &**command));
        let changes = changes_of(crate::registry(), commands);
        let owners = changes.iter().map(|own| own.words.as_ref().map_or(0, Rc::strong_count));
        assert_eq!(owners.collect::<Vec<_>>(), [shared; 2], "{line}");
    }
}

#[test]
fn each_key_that_is_written_is_a_change() {
    assert_eq!(told(&[(0, "SET k v")]), ["0 k set v None"]);
    assert_eq!(told(&[(3, "set k v PXAT 99")]), ["3 k set v Some(99)"]);
    assert_eq!(told(&[(0, "SET k v KEEPTTL")]), ["0 k update"], "it may have a time");
    assert_eq!(told(&[(0, "MSET a 1 b 2")]), ["0 a set 1 None", "0 b set 2 None"]);
    assert_eq!(told(&[(0, "UNLINK a b")]), ["0 a delete", "0 b delete"]);
    assert_eq!(told(&[(0, "RENAME a b")]), ["0 a delete", "0 b update"]);
    assert_eq!(told(&[(0, "MOVE a 2")]), ["0 a delete", "2 a update"]);
    assert_eq!(told(&[(1, "COPY a b DB 2 REPLACE")]), ["2 b update"]);
    assert_eq!(told(&[(1, "COPY a b")]), ["1 b update"]);
    assert_eq!(told(&[(0, "HSET h f v")]), ["0 h update"]);
    assert_eq!(told(&[(0, "LMOVE a b LEFT RIGHT")]), ["0 a update", "0 b update"]);
    assert_eq!(told(&[(0, "SINTERSTORE to a b")]), ["0 to update"], "a and b were read");
    assert_eq!(told(&[(0, "SORT a STORE to")]), ["0 to update"]);
    assert_eq!(told(&[(4, "FLUSHDB")]), ["4 * flush"]);
    assert_eq!(told(&[(4, "FLUSHALL ASYNC")]), ["* * flush"]);
    assert_eq!(told(&[(0, "SWAPDB 1 2")]), ["1 * swap(2)", "2 * swap(1)"]);
    assert_eq!(told(&[(0, "INCR n"), (1, "DEL n")]), ["0 n update", "1 n delete"]);
}

/// What a command of database 3 is to the slot of `bar`.
fn to_slot_of_bar(line: &str) -> Concern {
    let mut batch = EffectBatch::default();
    batch.push(3, line.split(' ').map(str::as_bytes));
    let commands: Vec<_> = batch.commands().collect();
    let slots = SlotSet::parse(b"5061").expect("a slot");
    concern(crate::registry(), (commands[0].0, &commands[0].1), &slots)
}

#[test]
fn a_server_that_takes_slots_over_gets_what_concerns_them() {
    assert_eq!(to_slot_of_bar("SET bar v"), Concern::Whole);
    assert_eq!(
        to_slot_of_bar("DEL bar foo"),
        Concern::Part(b"*2\r\n$3\r\nDEL\r\n$3\r\nbar\r\n".into())
    );
    assert_eq!(to_slot_of_bar("RENAME bar foo"), Concern::Mixed);
    assert_eq!(to_slot_of_bar("FLUSHDB"), Concern::Flush(Some(3)));
    assert_eq!(to_slot_of_bar("FLUSHALL"), Concern::Flush(None));
    for line in ["SET foo v", "PING", "FUNCTION FLUSH", "PUBLISH channel bar"] {
        assert_eq!(to_slot_of_bar(line), Concern::Nothing, "{line}");
    }
    let part = to_slot_of_bar("COMMAND INFO CONTENTTYPE bar text/plain");
    assert!(matches!(part, Concern::Part(_)), "what only this program knows is known: {part:?}");
    // It may be anything, also what empties all slots.
    assert_eq!(to_slot_of_bar("empty-all"), Concern::Unknown);
    assert_eq!(to_slot_of_bar("of-later-versions foo"), Concern::Unknown);
}
