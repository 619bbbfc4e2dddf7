//! Blocking, with several connections on one engine, and what the journal receives.

use crate::testing::TestServer;
use engine::session::Session;

/// Connections by number; commands of connection 0 are the server's own.
struct Connections {
    server: TestServer,
    others: Vec<Session>,
}

impl Connections {
    fn new(count: usize) -> Connections {
        let server = crate::testing::server();
        let others = (0..count).map(|_| server.connect()).collect();
        Connections { server, others }
    }

    fn send(&mut self, number: usize, line: &str) -> String {
        std::mem::swap(&mut self.server.session, &mut self.others[number - 1]);
        let reply = self.server.text(line);
        std::mem::swap(&mut self.server.session, &mut self.others[number - 1]);
        reply
    }

    /// Sends commands that wait, one for each connection.
    fn block(&mut self, lines: &[&str]) {
        for (index, line) in lines.iter().enumerate() {
            assert_eq!(self.send(index + 1, line), "", "{line} waits");
        }
    }

    fn run(&mut self, line: &str) -> String {
        self.server.text(line)
    }

    /// The reply with which a waiting connection was served, if it was. Ends its waiting as its
    /// worker would.
    fn received(&mut self, number: usize) -> Option<String> {
        let session = &self.others[number - 1];
        let served = session.client.inbox.lock().served.take()?;
        let waiter = &served.wait;
        assert!(!waiter.is_waiting(), "who is served was claimed");
        let inside = self.server.gate.enter();
        self.server.engine.end_wait(inside.pinned(), session, waiter);
        Some(String::from_utf8_lossy(&served.reply.to_vec()).into_owned())
    }

    /// Lets the time of a waiting connection run out. Returns whether it had not been served
    /// before.
    fn time_out(&mut self, number: usize) -> bool {
        let session = &self.others[number - 1];
        let waiter = session.client.wait.lock().clone().expect("it was waiting");
        let won = waiter.claim();
        if won {
            let inside = self.server.gate.enter();
            self.server.engine.end_wait(inside.pinned(), session, &waiter);
        }
        won
    }

    /// What the journal has received, one line for each command.
    fn journal(&mut self) -> Vec<String> {
        let effects = self.server.journal.take();
        let line = |argv: &Vec<Vec<u8>>| {
            let words = argv.iter().map(|word| String::from_utf8_lossy(word));
            words.collect::<Vec<_>>().join(" ")
        };
        effects.iter().map(|effect| line(&effect.argv)).collect()
    }

    /// Nothing may be left at the slots after all waiting has ended.
    fn assert_nobody_waits(&self, keys: &[&str]) {
        assert_eq!(self.server.engine.blocked_clients(), 0);
        let inside = self.server.gate.enter();
        for key in keys {
            let slot = base::crc::key_slot(key.as_bytes());
            let locked = self.server.engine.lock_slot(inside.pinned(), slot);
            assert!(locked.attachment(slot).is_none(), "{key}");
        }
    }
}

/// A reply of strings in an array.
fn strings(words: &[&str]) -> Option<String> {
    let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    Some(format!("*{}\r\n{}", words.len(), bulks.collect::<String>()))
}

fn bulk(word: &str) -> Option<String> {
    Some(format!("${}\r\n{word}\r\n", word.len()))
}

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

#[test]
fn the_client_that_waits_longest_is_served_first() {
    let mut all = Connections::new(3);
    all.block(&["BLPOP l 0", "BRPOP l 0", "BLPOP l 0"]);
    assert_eq!(all.run("RPUSH l a b c d"), ":4\r\n");
    assert_eq!(all.received(1), strings(&["l", "a"]));
    assert_eq!(all.received(2), strings(&["l", "d"]));
    assert_eq!(all.received(3), strings(&["l", "b"]));
    assert_eq!(all.run("LRANGE l 0 -1"), strings(&["c"]).unwrap());
    let journal = ["MULTI", "RPUSH l a b c d", "LPOP l", "RPOP l", "LPOP l", "EXEC"];
    assert_eq!(all.journal(), journal);
    all.assert_nobody_waits(&["l"]);
}

#[test]
fn waiters_without_an_element_wait_on() {
    let mut all = Connections::new(2);
    all.block(&["BLPOP l 0", "BLPOP l 0"]);
    all.run("LPUSH l a");
    assert_eq!((all.received(1), all.received(2)), (strings(&["l", "a"]), None));
    all.run("LPUSH l b");
    assert_eq!(all.received(2), strings(&["l", "b"]));
    assert_eq!(all.run("LLEN l"), ":0\r\n");
    all.assert_nobody_waits(&["l"]);
}

#[test]
fn of_several_keys_the_one_that_appears_serves() {
    let mut all = Connections::new(2);
    all.block(&["BLPOP a b a c 0", "BLMPOP 0 2 c b RIGHT COUNT 2"]);
    all.run("RPUSH c 1 2 3");
    assert_eq!(all.received(1), strings(&["c", "1"]));
    let expected = "*2\r\n$1\r\nc\r\n*2\r\n$1\r\n3\r\n$1\r\n2\r\n";
    assert_eq!(all.received(2).as_deref(), Some(expected));
    assert_eq!(all.journal(), ["MULTI", "RPUSH c 1 2 3", "LPOP c", "RPOP c 2", "EXEC"]);
    // The other keys have forgotten the two.
    for key in ["a", "b", "c"] {
        all.run(&format!("RPUSH {key} x"));
        assert_eq!(all.run(&format!("LLEN {key}")), ":1\r\n");
    }
    all.assert_nobody_waits(&["a", "b", "c"]);
}

#[test]
fn a_waiter_that_was_served_elsewhere_is_passed_over() {
    let mut all = Connections::new(2);
    all.block(&["BLPOP a b 0", "BLPOP b 0"]);
    all.run("RPUSH a 1");
    // The first waiter is still at b, claimed, until its worker removes it.
    all.run("RPUSH b 2");
    assert_eq!(all.received(1), strings(&["a", "1"]));
    assert_eq!(all.received(2), strings(&["b", "2"]));
    all.assert_nobody_waits(&["a", "b"]);
}

#[test]
fn moves_wake_further_waiters() {
    let mut all = Connections::new(4);
    all.block(&[
        "BLMOVE a b LEFT RIGHT 0",
        "BRPOPLPUSH b c 0",
        "BLMOVE c d RIGHT LEFT 0",
        "BLPOP d 0",
    ]);
    assert_eq!(all.run("RPUSH a x"), ":1\r\n");
    for number in 1..=3 {
        assert_eq!(all.received(number), bulk("x"));
    }
    assert_eq!(all.received(4), strings(&["d", "x"]));
    let journal = [
        "MULTI",
        "RPUSH a x",
        "LMOVE a b LEFT RIGHT",
        "RPOPLPUSH b c",
        "LMOVE c d RIGHT LEFT",
        "LPOP d",
        "EXEC",
    ];
    assert_eq!(all.journal(), journal);
    all.assert_nobody_waits(&["a", "b", "c", "d"]);
}

#[test]
fn a_circle_of_moves_ends() {
    let mut all = Connections::new(3);
    all.block(&["BLMOVE a b LEFT LEFT 0", "BLMOVE b a LEFT LEFT 0", "BLMOVE a a LEFT RIGHT 0"]);
    all.run("RPUSH a x");
    for number in 1..=3 {
        assert_eq!(all.received(number), bulk("x"));
    }
    assert_eq!(all.run("LRANGE a 0 -1"), strings(&["x"]).unwrap());
    all.assert_nobody_waits(&["a", "b"]);
}

#[test]
fn a_move_to_another_type_fails_and_leaves_the_element_to_others() {
    let mut all = Connections::new(2);
    all.run("SADD d member");
    all.block(&["BLMOVE l d LEFT LEFT 0", "BLPOP l 0"]);
    all.run("RPUSH l x");
    assert_eq!(all.received(1).as_deref(), Some(WRONG_TYPE));
    assert_eq!(all.received(2), strings(&["l", "x"]));
    all.assert_nobody_waits(&["l", "d"]);
}

#[test]
fn keys_of_other_types_are_refused_at_once_and_wake_nobody() {
    let mut all = Connections::new(1);
    all.run("SADD s member");
    for line in [
        "BLPOP s 0",
        "BRPOP nokey s 0",
        "BLMOVE s d LEFT LEFT 0",
        "BRPOPLPUSH s d 0",
        "BLMPOP 0 2 nokey s LEFT",
    ] {
        assert_eq!(all.run(line), WRONG_TYPE, "{line}");
    }
    all.block(&["BLPOP l 0"]);
    all.run("HSET l field value");
    assert_eq!(all.received(1), None);
    all.run("HDEL l field");
    all.run("RPUSH l x");
    assert_eq!(all.received(1), strings(&["l", "x"]));
    all.assert_nobody_waits(&["s", "l"]);
}

#[test]
fn transactions_serve_at_their_end_and_never_wait() {
    let mut all = Connections::new(2);
    all.block(&["BLPOP a b 0", "BLPOP b 0"]);
    for line in ["MULTI", "RPUSH b 1", "RPUSH a 2", "LPUSH b 0", "EXEC"] {
        all.run(line);
    }
    // The key that appeared first serves first, from the first key of its waiter that has something
    // at the end.
    assert_eq!(all.received(1), strings(&["a", "2"]));
    assert_eq!(all.received(2), strings(&["b", "0"]));
    assert_eq!(all.run("LLEN b"), ":1\r\n");
    all.journal();
    for line in ["MULTI", "BLPOP x 0", "BRPOP x 0", "BLMOVE x y LEFT LEFT 0", "BRPOPLPUSH x y 0"] {
        all.run(line);
    }
    all.run("BLMPOP 0 1 x LEFT");
    all.run("BLPOP b 0");
    let expected =
        format!("*6\r\n*-1\r\n*-1\r\n$-1\r\n$-1\r\n*-1\r\n{}", strings(&["b", "1"]).unwrap());
    assert_eq!(all.run("EXEC"), expected);
    assert_eq!(all.journal(), ["LPOP b"]);
    all.assert_nobody_waits(&["a", "b", "x"]);
}

#[test]
fn what_a_transaction_takes_back_serves_nobody() {
    let mut all = Connections::new(1);
    all.block(&["BLPOP l 0"]);
    for line in ["MULTI", "RPUSH l a", "LPOP l", "SADD l member", "EXEC"] {
        all.run(line);
    }
    assert_eq!(all.received(1), None);
    assert!(all.time_out(1));
    all.assert_nobody_waits(&["l"]);
}

#[test]
fn a_waiter_times_out_or_is_served_and_never_both() {
    let mut all = Connections::new(2);
    all.block(&["BLPOP l 1.5", "BLPOP l 0"]);
    let deadline = |all: &Connections, number: usize| {
        let waiter = all.others[number - 1].client.wait.lock().clone();
        waiter.expect("it waits").deadline.map(|deadline| deadline - all.server.turn.monotonic)
    };
    assert_eq!((deadline(&all, 1), deadline(&all, 2)), (Some(1500), None));
    assert!(all.time_out(1));
    all.run("RPUSH l a");
    assert_eq!((all.received(1), all.received(2)), (None, strings(&["l", "a"])));
    all.block(&["BLPOP l 1"]);
    all.run("RPUSH l b");
    assert!(!all.time_out(1), "it was served before");
    assert_eq!(all.received(1), strings(&["l", "b"]));
    all.assert_nobody_waits(&["l"]);
}

#[test]
fn databases_are_apart() {
    let mut all = Connections::new(2);
    all.others[0].select(1);
    all.block(&["BLPOP l 0", "BLMOVE l m LEFT LEFT 0"]);
    all.run("RPUSH l a");
    assert_eq!((all.received(1), all.received(2)), (None, bulk("a")));
    all.server.session.select(1);
    all.run("RPUSH l b");
    assert_eq!(all.received(1), strings(&["l", "b"]));
    assert_eq!(all.run("LLEN m"), ":0\r\n");
    all.assert_nobody_waits(&["l", "m"]);
}

#[test]
fn the_journal_sees_what_was_done_at_once() {
    let mut all = Connections::new(0);
    for line in [
        "RPUSH l a b c d e f g",
        "BLPOP nokey l 0",
        "BRPOP l 0",
        "LMPOP 2 nokey l LEFT COUNT 2",
        "BLMPOP 0 1 l RIGHT",
        "BLMOVE l m LEFT RIGHT 0",
        "BRPOPLPUSH l m 0",
        "LPUSHX nokey a",
        "LREM m 0 nothing",
        "LPOP m 100",
    ] {
        all.run(line);
    }
    let journal = [
        "RPUSH l a b c d e f g",
        "LPOP l",
        "RPOP l",
        "LPOP l 2",
        "RPOP l 1",
        "LMOVE l m LEFT RIGHT",
        "RPOPLPUSH l m",
        "LPOP m 100",
    ];
    assert_eq!(all.journal(), journal);
}
