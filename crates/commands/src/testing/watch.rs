//! What WATCH notices.

use super::server;

#[test]
fn a_change_before_the_exclusive_command_has_the_slot_counts() {
    let mut server = server();
    for line in ["WATCH k", "MULTI", "DBSIZE"] {
        server.text(line);
    }
    let mut other = server.connect();
    // Another thread holds the slot of the watched key, and changes the key before the exclusive
    // command gets the slot.
    server.while_locked(b"k", |server| {
        assert_eq!(server.try_text("EXEC"), None, "the slot is locked");
    });
    assert_eq!(server.text_as(&mut other, "RPUSH k 1"), ":1\r\n");
    assert_eq!(server.text("EXEC"), "*-1\r\n");
}

#[test]
fn what_was_watched_is_cleaned_up_when_its_slot_is_free() {
    let mut server = server();
    server.text("WATCH k other");
    server.while_locked(b"k", |server| assert_eq!(server.text("UNWATCH"), "+OK\r\n"));
    assert!(server.has_attachment(b"k") && !server.has_attachment(b"other"));
    server.clean_slots();
    assert!(!server.has_attachment(b"k"), "nothing is left");
}
