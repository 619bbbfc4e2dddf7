//! What a client may do, as commands show it.

use engine::session::User;

use super::server;

/// As on the reference.
#[test]
fn a_waiter_is_served_if_it_may_still_run_the_command() {
    let mut server = server();
    let mut waiter = server.connect();
    waiter.user = User::unknown(&server.engine.users);
    assert_eq!(server.text_as(&mut waiter, "BLPOP k 0"), "", "there is no password yet");
    server.text("CONFIG SET requirepass p");
    assert_eq!(server.text("RPUSH k v"), ":1\r\n");
    let served = waiter.client.inbox.lock().served.take().expect("the wait is over");
    assert!(served.reply.to_vec().starts_with(b"-NOAUTH"));
    assert_eq!(server.text("LLEN k"), ":1\r\n");
}
