//! Which clients are closed when clients take too much memory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use engine::session::client::{Client, flag};

use super::{TestServer, server};

const MEGABYTE: usize = 1 << 20;

/// A server with clients whose output takes this many bytes each.
fn server_with(sizes: &[usize]) -> (TestServer, Vec<Arc<Client>>) {
    let server = server();
    let clients = sizes.iter().map(|&bytes| {
        let client = Arc::clone(&server.connect().client);
        client.note_output(bytes, bytes);
        server.engine.clients.count_memory(&client);
        client
    });
    let clients = clients.collect();
    (server, clients)
}

fn evict(server: &mut TestServer, limit: &str) -> u64 {
    server.text(&format!("CONFIG SET maxmemory-clients {limit}"));
    server.turn.begin(&server.engine);
    server.engine.evict_clients(&mut server.turn);
    server.turn.stats.evicted_clients.get()
}

fn killed(clients: &[Arc<Client>]) -> Vec<bool> {
    clients.iter().map(|client| client.is_killed()).collect()
}

#[test]
fn the_largest_clients_are_closed_until_the_others_fit() {
    let (mut server, clients) = server_with(&[1, 5, 2, 4].map(|size| size * MEGABYTE));
    assert_eq!(evict(&mut server, "0"), 0);
    assert_eq!(evict(&mut server, "13mb"), 0);
    assert_eq!(evict(&mut server, "4mb"), 2);
    assert_eq!(killed(&clients), [false, true, false, true]);
}

#[test]
fn a_client_with_no_evict_counts_but_stays() {
    let (mut server, clients) = server_with(&[9, 1].map(|size| size * MEGABYTE));
    clients[0].set_flag(flag::NO_EVICT, true);
    assert_eq!(evict(&mut server, "5mb"), 2, "the other one and the test's own");
    assert_eq!(killed(&clients), [false, true]);
}

#[test]
fn the_links_of_other_servers_neither_count_nor_go() {
    for of_server in [flag::REPLICA, flag::BRINGS_SLOTS, flag::SPEAKS_FOR_NODE] {
        let (mut server, clients) = server_with(&[9, 1].map(|size| size * MEGABYTE));
        clients[0].set_flag(of_server, true);
        assert_eq!(evict(&mut server, "5mb"), 0);
        assert_eq!(killed(&clients), [false, false]);
    }
}

#[test]
fn a_client_that_has_gone_is_not_in_the_sum() {
    let (server, clients) = server_with(&[MEGABYTE, 7]);
    for client in &clients {
        server.engine.clients.remove(client.id);
    }
    assert_eq!(server.engine.clients.memory.load(Relaxed), 0);
}
