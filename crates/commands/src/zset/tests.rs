//! What the journal receives, and which clients are served when members appear.

use crate::testing::TestServer;

/// What the journal has received since the last call, one line for each command.
fn journal(server: &TestServer) -> Vec<String> {
    let line = |argv: &Vec<Vec<u8>>| {
        let words = argv.iter().map(|word| String::from_utf8_lossy(word));
        words.collect::<Vec<_>>().join(" ")
    };
    server.journal.take().iter().map(|effect| line(&effect.argv)).collect()
}

#[test]
fn pops_from_the_first_of_several_keys_replay_as_pops_of_one() {
    let mut server = crate::testing::server();
    server.text("ZADD z 1 a 2 b 3 c 4 d 5 e");
    journal(&server);
    for (command, effect) in [
        ("ZMPOP 2 nokey z MAX COUNT 2", "ZPOPMAX z 2"),
        ("BZPOPMIN nokey z 0", "ZPOPMIN z"),
        ("BZMPOP 0 1 z MIN COUNT 10", "ZPOPMIN z 2"),
    ] {
        server.text(command);
        assert_eq!(journal(&server), [effect], "{command}");
    }
    assert_eq!(server.text("EXISTS z"), ":0\r\n");
}

#[test]
fn what_changes_nothing_leaves_nothing_in_the_journal() {
    let mut server = crate::testing::server();
    server.text("ZADD z 1 a");
    journal(&server);
    for command in [
        "ZADD z 1 a",
        "ZADD z NX 2 a",
        "ZADD z XX 2 b",
        "ZADD nokey XX 1 a",
        "ZADD z GT INCR -1 a",
        "ZINCRBY z 0 a",
        "ZREM z b",
        "ZPOPMIN z 0",
        "ZREMRANGEBYSCORE z 2 3",
        "ZUNIONSTORE d 1 nokey",
        "ZRANGESTORE d z 5 6",
        "ZMPOP 1 nokey MIN",
    ] {
        server.text(command);
        assert!(journal(&server).is_empty(), "{command}");
    }
    assert_eq!(server.text("EXISTS nokey d"), ":0\r\n");
}

#[test]
fn waiters_are_served_in_turn_and_the_journal_sees_pops() {
    let mut server = crate::testing::server();
    let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
    let lines = ["BZPOPMIN y z 0", "BZMPOP 0 2 y z MAX COUNT 2", "BZPOPMAX z 0"];
    for (session, line) in waiting.iter_mut().zip(lines) {
        std::mem::swap(&mut server.session, session);
        assert_eq!(server.text(line), "", "{line} waits");
        std::mem::swap(&mut server.session, session);
    }
    server.text("ZADD z 1 a 2 b 3 c");
    let received = waiting.iter().map(|session| {
        let served = session.client.inbox.lock().served.take();
        served.map(|served| String::from_utf8_lossy(&served.reply.to_vec()).into_owned())
    });
    let expected = [
        Some("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n".to_string()),
        Some(
            "*2\r\n$1\r\nz\r\n*2\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n"
                .to_string(),
        ),
        None,
    ];
    assert!(received.eq(expected));
    let effects = ["MULTI", "ZADD z 1 a 2 b 3 c", "ZPOPMIN z", "ZPOPMAX z 2", "EXEC"];
    assert_eq!(journal(&server), effects);
}

#[test]
fn a_scan_may_leave_out_the_scores() {
    let mut server = crate::testing::server();
    for members in [2, 300] {
        for member in 0..members {
            server.text(&format!("ZADD z {member} m{member}"));
        }
        let reply = server.text("ZSCAN z 0 NOSCORES COUNT 1000 MATCH m1");
        assert_eq!(reply, "*2\r\n$1\r\n0\r\n*1\r\n$2\r\nm1\r\n");
    }
    let error = "-ERR NOSCORES option can only be used in ZSCAN\r\n";
    assert_eq!(server.text("SCAN 0 NOSCORES"), error);
}
