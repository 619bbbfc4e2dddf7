//! Fields of hashes that have expired, as commands meet them.

use engine::db::fields::FIELDS_AT_ONCE;

use super::{TestServer, messages, server};

/// A hash with this many fields whose time is over.
fn with_expired_fields(fields: usize) -> TestServer {
    let mut server = server();
    let now = server.turn.now;
    server.now = Some(now);
    server.text("HSET h kept v");
    for number in 0..fields {
        server.text(&format!("HSETEX h PX 5 FIELDS 1 f{number} v"));
    }
    server.now = Some(now + 10);
    server.journal.take();
    server
}

#[test]
fn a_read_removes_what_it_meets_and_remembers_nothing_that_was_never_there() {
    let mut server = with_expired_fields(2);
    server.text("HMGET h f0 absent f0 kept");
    let removals: Vec<_> = server.journal.take().into_iter().map(|own| own.argv).collect();
    assert_eq!(removals, [[b"HDEL".to_vec(), b"h".to_vec(), b"f0".to_vec()]]);
    assert_eq!(server.text("HLEN h"), ":2\r\n");
    server.text(&format!("HMGET h{} f1", " absent".repeat(2 * FIELDS_AT_ONCE)));
    assert_eq!(server.text("HLEN h"), ":1\r\n");
}

#[test]
fn fields_that_one_command_finds_expired_are_one_event() {
    for read in ["HMGET h f0 f1 kept f2", "HGETDEL h FIELDS 3 f0 f1 f2"] {
        let mut server = with_expired_fields(3);
        server.text("CONFIG SET notify-keyspace-events Eh");
        let mut subscriber = server.connect();
        server.text_as(&mut subscriber, "SUBSCRIBE __keyevent@0__:hexpired");
        server.text(read);
        let heard = messages(&subscriber);
        assert_eq!(heard.matches("hexpired").count(), 1, "{read}: {heard}");
        assert_eq!(server.text("HLEN h"), ":1\r\n");
    }
}

#[test]
fn a_read_that_names_fields_without_end_removes_some_of_them() {
    let mut server = with_expired_fields(2 * FIELDS_AT_ONCE);
    let fields = (0..2 * FIELDS_AT_ONCE).map(|number| format!(" f{number}"));
    let reply = server.text(&format!("HMGET h{}", fields.collect::<String>()));
    assert_eq!(reply.matches("$-1\r\n").count(), 2 * FIELDS_AT_ONCE);
    assert_eq!(server.text("HLEN h"), format!(":{}\r\n", FIELDS_AT_ONCE + 1));
    assert_eq!(server.text("HGETALL h"), "*2\r\n$4\r\nkept\r\n$1\r\nv\r\n");
}
