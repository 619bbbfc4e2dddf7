//! The judges find histories that cannot be.

use anyhow::{Result, ensure};

use crate::history::{Kind, Operation, judge, one_primary_at_a_time};

/// An operation on the key `k` of a node with that number, from one time to another.
fn did(kind: Kind, value: Option<&str>, (call, returned): (u64, u64)) -> Operation {
    Operation {
        client: 0,
        key: "k".to_owned(),
        kind,
        value: value.map(str::to_owned),
        length: None,
        call,
        // Zero is never.
        returned: (returned > 0).then_some(returned),
        node: 0,
        shard: 0,
        epoch: None,
    }
}

#[test]
fn a_history_that_can_be_is_right() -> Result<()> {
    let history = [
        did(Kind::Get, None, (1, 2)),
        did(Kind::Set, Some("a"), (3, 6)),
        // Nobody knows whether these were done. The first is seen, and the second is not.
        did(Kind::Set, Some("b"), (4, 0)),
        did(Kind::Set, Some("c"), (4, 0)),
        did(Kind::Get, Some("b"), (5, 9)),
        did(Kind::Get, Some("a"), (7, 8)),
        did(Kind::Get, Some("b"), (20, 21)),
    ];
    ensure!(judge(&history)? == "6 operations of 1 keys");
    let (mut first, mut third) =
        (did(Kind::Push, Some("a"), (1, 2)), did(Kind::Push, Some("c"), (3, 4)));
    (first.length, third.length) = (Some(1), Some(3));
    let history = [
        first,
        did(Kind::Push, Some("b"), (1, 0)),
        third,
        did(Kind::List, Some("a,b,c"), (5, 6)),
        // It may still come.
        did(Kind::Push, Some("d"), (1, 0)),
    ];
    judge(&history).map(drop)
}

#[test]
fn histories_that_cannot_be_are_found() -> Result<()> {
    let set = |value, times| did(Kind::Set, Some(value), times);
    let get = |value, times| did(Kind::Get, value, times);
    let push = |value, length, times| Operation {
        length: Some(length),
        ..did(Kind::Push, Some(value), times)
    };
    let list = |value, times| did(Kind::List, Some(value), times);
    let wrong = [
        ("a lost write", vec![set("a", (1, 2)), get(None, (3, 4))]),
        ("an old value", vec![set("a", (1, 2)), set("b", (3, 4)), get(Some("a"), (5, 6))]),
        (
            "a value that is taken back",
            vec![
                set("a", (1, 2)),
                set("b", (3, 0)),
                get(Some("b"), (4, 5)),
                get(Some("a"), (6, 7)),
            ],
        ),
        ("a value from nowhere", vec![get(Some("a"), (1, 2))]),
        ("a value before its time", vec![get(Some("a"), (1, 2)), set("a", (3, 0))]),
        ("a lost element", vec![push("a", 1, (1, 2)), push("b", 2, (3, 4)), list("b", (5, 6))]),
        ("an element twice", vec![push("a", 1, (1, 2)), list("a,a", (5, 6))]),
        ("another order", vec![push("a", 1, (1, 2)), push("b", 2, (3, 4)), list("b,a", (5, 6))]),
        ("another length", vec![push("a", 1, (1, 2)), push("b", 1, (3, 4)), list("a,b", (5, 6))]),
    ];
    for (name, history) in wrong {
        let error = judge(&history).err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(error.contains("k: "), "{name}: {error}");
        let place = error.rsplit(' ').next().unwrap_or_default();
        std::fs::remove_dir_all(place)?;
    }
    Ok(())
}

#[test]
fn two_primaries_are_found() -> Result<()> {
    let by = |node, epoch, times| Operation {
        node,
        epoch: Some(epoch),
        ..did(Kind::Set, Some("v"), times)
    };
    // The first acknowledges late what it has done before.
    one_primary_at_a_time(&[by(0, 5, (1, 9)), by(1, 7, (3, 4)), by(1, 7, (10, 11))])?;
    // Another shard has epochs of its own.
    let other = Operation { shard: 1, ..by(2, 4, (12, 13)) };
    one_primary_at_a_time(&[by(1, 7, (3, 4)), other])?;
    for wrong in [[by(0, 5, (1, 2)), by(1, 5, (3, 4))], [by(1, 7, (3, 4)), by(0, 5, (5, 6))]] {
        ensure!(one_primary_at_a_time(&wrong).is_err(), "{wrong:?}");
    }
    Ok(())
}
