//! Connections over sessions whose link is in memory: its pieces, its stalls and its end are drawn.
//! The bytes of both directions come out once and in order, no event is waited for that does not
//! come, and no buffer grows.

use std::io::{self, Read, Write};
use std::sync::{Arc, LazyLock};

use base::limits;
use engine::session::client::Client;
use engine::session::{Session, User};
use mio::{Registry, Token};
use parking_lot::Mutex;
use proptest::prelude::*;
use resp::output::Output;
use rustls::{ClientConfig, ClientConnection, ServerConfig};
use tls::client::{ChoiceWords, TrustFiles, server_name};
use tls::server::IdentityFiles;
use tls::{ClientCertificates, ClientSettings, ServerSettings};

use super::{Progress, SCRATCH, Tls};
use crate::net::connection::Connection;
use crate::net::protocol::Speaks;
use crate::net::transport::memory::{End, Far, link};
use crate::net::transport::{AnyTransport, Flushed, Received, Sent, Transport};

/// A transport that the test can look into.
#[derive(Clone)]
struct Shared(Arc<Mutex<Tls<End>>>);

impl Transport for Shared {
    fn receive(&mut self, buffer: &mut Vec<u8>, room: usize) -> Received {
        self.0.lock().receive(buffer, room)
    }

    fn send(&mut self, output: &Output, limit: usize) -> Sent {
        self.0.lock().send(output, limit)
    }

    fn flush(&mut self) -> Flushed {
        self.0.lock().flush()
    }

    fn held_back(&self) -> usize {
        self.0.lock().held_back()
    }

    fn wants_write(&self) -> bool {
        self.0.lock().wants_write()
    }

    fn says_with_output(&self) -> bool {
        self.0.lock().says_with_output()
    }

    fn end_output(&mut self) {
        self.0.lock().end_output();
    }

    fn register(&mut self, _: &Registry, _: Token) -> io::Result<()> {
        Ok(())
    }

    fn deregister(&mut self, _: &Registry) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> i32 {
        -1
    }
}

/// What a server goes by, and clients of TLS 1.2 and of TLS 1.3.
struct Configs {
    server: Arc<ServerConfig>,
    clients: [Arc<ClientConfig>; 2],
}

static CONFIGS: LazyLock<Configs> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    tls::dev::make(directory.path(), &[]).unwrap();
    let file = |name: &str| directory.path().join(name);
    let server = ServerSettings {
        identity: IdentityFiles {
            certificate: file("server.crt"),
            key: file("server.key"),
            password: Vec::new(),
        },
        clients: ClientCertificates::None,
        sessions: Some((10, 300)),
        ..ServerSettings::default()
    };
    let client = |protocols: &str| {
        let settings = ClientSettings {
            trust: TrustFiles { file: Some(file("ca.crt")), directory: None },
            choices: ChoiceWords { protocols: protocols.to_owned(), ..ChoiceWords::default() },
            ..ClientSettings::default()
        };
        settings.read().unwrap().config
    };
    let clients = [client("TLSv1.2"), client("TLSv1.3")];
    Configs { server: server.read().unwrap().plain, clients }
});

/// Bytes of a stream from a position on.
fn stream(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|position| (position % 251) as u8).collect()
}

/// One direction of data, as its two ends see it.
#[derive(Default)]
struct Way {
    said: usize,
    heard: usize,
}

impl Way {
    fn say(&mut self, count: usize) -> Vec<u8> {
        self.said += count;
        stream(self.said - count, count)
    }

    fn hear(&mut self, bytes: &[u8]) {
        assert!(bytes == stream(self.heard, bytes.len()), "at {}", self.heard);
        self.heard += bytes.len();
        assert!(self.heard <= self.said);
    }
}

/// Both ends of a connection.
struct Pair {
    server: Connection,
    tls: Shared,
    far: Far,
    client: ClientConnection,
    /// What the client has said and is not on the link yet.
    outbox: Vec<u8>,
    /// What has come to the client that it has not heard yet.
    inbox: Vec<u8>,
    to_server: Way,
    to_client: Way,
    /// Something has happened that the server's worker learns.
    is_scheduled: bool,
    /// New keys since the client has said anything.
    keys: usize,
    /// The client has heard that the server ends.
    is_told: bool,
}

impl Pair {
    /// Shakes hands in pieces of this size.
    fn open(version: usize, piece: usize) -> Pair {
        let (end, far) = link(usize::MAX);
        let mut tls = Tls::new(end, Arc::clone(&CONFIGS.server)).unwrap();
        let config = Arc::clone(&CONFIGS.clients[version]);
        let mut client = ClientConnection::new(config, server_name("localhost").unwrap()).unwrap();
        client.set_buffer_limit(None);
        let (mut outbox, mut inbox) = (Vec::new(), Vec::new());
        let mut progress = Progress::Waits;
        while client.is_handshaking() || !outbox.is_empty() || progress == Progress::Waits {
            while client.wants_write() {
                client.write_tls(&mut outbox).unwrap();
            }
            let part = outbox.len().min(piece);
            far.send(&outbox.drain(..part).collect::<Vec<u8>>());
            if progress == Progress::Waits {
                progress = tls.shake_hands(false);
                assert!(!matches!(progress, Progress::Failed(_)), "{progress:?}");
            }
            inbox.extend(far.received());
            let part = inbox.len().min(piece);
            let heard: Vec<u8> = inbox.drain(..part).collect();
            let mut heard = &heard[..];
            while !heard.is_empty() {
                client.read_tls(&mut heard).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        let tls = Shared(Arc::new(Mutex::new(tls)));
        let own = Client::new(1, 0, "there".to_string(), "here".to_string(), -1, 0);
        let session = Session::new(Arc::new(own), User::nobody());
        let transport = AnyTransport::Other(Box::new(tls.clone()));
        let server = Connection::new(transport, Speaks::RESP.open(0), session);
        let (to_server, to_client) = (Way::default(), Way::default());
        Pair {
            server,
            tls,
            far,
            client,
            outbox,
            inbox,
            to_server,
            to_client,
            is_scheduled: true,
            keys: 0,
            is_told: false,
        }
    }

    fn announce(&mut self) {
        self.server.note_readiness(self.far.readiness());
        self.is_scheduled = true;
    }

    fn client_writes(&mut self, count: usize) {
        self.keys = 0;
        self.client.writer().write_all(&self.to_server.say(count)).unwrap();
    }

    /// Puts up to so many bytes on the link.
    fn client_says(&mut self, most: usize) -> usize {
        while self.client.wants_write() {
            self.client.write_tls(&mut self.outbox).unwrap();
        }
        let count = self.far.send(&self.outbox[..self.outbox.len().min(most)]);
        self.outbox.drain(..count);
        if count > 0 {
            self.announce();
        }
        count
    }

    /// Takes up to so many bytes off the link.
    fn client_hears(&mut self, most: usize) -> usize {
        let was_full = self.far.is_full();
        self.inbox.extend(self.far.received());
        if was_full {
            self.announce();
        }
        let part = self.inbox.len().min(most);
        let heard: Vec<u8> = self.inbox.drain(..part).collect();
        let mut heard = &heard[..];
        while !heard.is_empty() && !self.is_told {
            self.client.read_tls(&mut heard).unwrap();
            self.client.process_new_packets().unwrap();
            let mut piece = [0; 4096];
            loop {
                match self.client.reader().read(&mut piece) {
                    Ok(0) => {
                        self.is_told = true;
                        break;
                    }
                    Ok(count) => self.to_client.hear(&piece[..count]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        part
    }

    /// What a worker does with the connection in a turn, if it has learnt of anything.
    fn turn(&mut self, share: usize, limit: usize) -> bool {
        if !std::mem::take(&mut self.is_scheduled) {
            return false;
        }
        self.server.receive(share);
        let input = std::mem::take(&mut self.server.input);
        self.to_server.hear(&input);
        self.server.send(limit);
        self.is_scheduled = self.server.wants_another_turn(0);
        true
    }

    fn server_writes(&mut self, count: usize) {
        self.server.output.push(&self.to_client.say(count));
        self.is_scheduled = true;
    }

    fn look_at_buffers(&self) {
        let tls = self.tls.0.lock();
        assert!(tls.held_back() <= limits::TLS_HELD_BACK + 4096, "{}", tls.held_back());
        assert!(tls.carried.len() <= SCRATCH, "{}", tls.carried.len());
        assert!(tls.plain <= SCRATCH, "{}", tls.plain);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::ClientWrites(count) => self.client_writes(count),
            Step::ClientSays(most) => drop(self.client_says(most)),
            Step::ClientHears(most) => drop(self.client_hears(most)),
            // TLS 1.2 has no such thing; a session takes few in a row.
            Step::ClientChangesKeys if self.keys < 16 => {
                self.keys += 1;
                let _ = self.client.refresh_traffic_keys();
            }
            Step::ClientChangesKeys => {}
            Step::ServerChangesKeys => {
                let _ = self.tls.0.lock().session.refresh_traffic_keys();
                self.is_scheduled = true;
            }
            Step::ServerWrites(count) => self.server_writes(count),
            Step::Turn(share, limit) => drop(self.turn(share, limit)),
            Step::Narrow(capacity, at_once) => {
                let under_way = &mut self.far.0.lock().to_client;
                if under_way.capacity == usize::MAX {
                    (under_way.capacity, under_way.most_at_once) = (capacity, at_once);
                }
            }
        }
        self.look_at_buffers();
    }

    /// Goes on until nothing happens any more.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            let said = self.client_says(7000);
            let served = self.turn(limits::READ_PER_TURN, limits::WRITE_PER_TURN);
            self.look_at_buffers();
            if self.client_hears(5000) == 0 && said == 0 && !served {
                return;
            }
        }
        panic!("it never ends");
    }
}

#[derive(Clone, Debug)]
enum Step {
    ClientWrites(usize),
    ClientSays(usize),
    ClientHears(usize),
    ClientChangesKeys,
    ServerWrites(usize),
    ServerChangesKeys,
    /// Bytes that are read and written at most.
    Turn(usize, usize),
    /// From now on so few bytes are under way to the client, and a write takes so few of them.
    Narrow(usize, usize),
}

/// How a client's stream ends.
#[derive(Clone, Debug)]
enum Ending {
    /// With its word.
    Word,
    /// Without one, when this many bytes of those that were left are under way.
    Cut(usize),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1..30_usize, 3 => 1..5000_usize, 2 => 5000..70_000_usize]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => size().prop_map(Step::ClientWrites),
        6 => size().prop_map(Step::ClientSays),
        6 => size().prop_map(Step::ClientHears),
        1 => Just(Step::ClientChangesKeys),
        4 => size().prop_map(Step::ServerWrites),
        1 => Just(Step::ServerChangesKeys),
        8 => (size(), size()).prop_map(|(share, limit)| Step::Turn(share, limit)),
        1 => (1..40_000_usize, size()).prop_map(|(all, once)| Step::Narrow(all, once)),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![Just(Ending::Word), (0..3000_usize).prop_map(Ending::Cut)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn bytes_come_out_once_and_in_order(
        version in 0..2_usize,
        piece in 1..3000_usize,
        steps in prop::collection::vec(step(), 1..80),
        ending in ending(),
    ) {
        let mut pair = Pair::open(version, piece);
        for step in &steps {
            pair.step(step);
        }
        match ending {
            Ending::Word => {
                pair.client.send_close_notify();
                pair.settle();
                prop_assert!(pair.server.ended && pair.to_server.heard == pair.to_server.said);
                prop_assert_eq!(pair.server.why_finished(), "the client closed the connection");
            }
            Ending::Cut(left) => {
                pair.client_says(left);
                let whole = pair.outbox.is_empty();
                pair.outbox.clear();
                pair.far.0.lock().to_server.ended = true;
                pair.announce();
                pair.settle();
                prop_assert!(pair.server.ended);
                prop_assert_eq!(pair.server.why_finished(), "the connection failed");
                prop_assert!(!whole || pair.to_server.heard == pair.to_server.said);
            }
        }
        // It gets what is said to it all the same, and hears of the end.
        pair.server_writes(1000);
        pair.settle();
        prop_assert_eq!(pair.to_client.heard, pair.to_client.said);
        prop_assert!(!pair.is_told);
        pair.server.transport.end_output();
        pair.is_scheduled = true;
        pair.settle();
        prop_assert!(pair.is_told);
    }
}

/// A turn of a worker reads again and again, up to its share.
fn read_for_a_turn(pair: &mut Pair) {
    let mut left = limits::READ_PER_TURN;
    loop {
        let count = pair.server.receive(left);
        let input = std::mem::take(&mut pair.server.input);
        pair.to_server.hear(&input);
        left -= count;
        if count == 0 || left == 0 || !pair.server.readable {
            return;
        }
    }
}

#[test]
fn records_that_say_nothing_do_not_take_all_of_a_turn() {
    let mut pair = Pair::open(1, usize::MAX);
    // A session takes 32 new keys in a row.
    while pair.outbox.len() < 20 * limits::TLS_WASTED {
        for _ in 0..31 {
            pair.client.refresh_traffic_keys().unwrap();
        }
        pair.client_writes(1);
        while pair.client.wants_write() {
            pair.client.write_tls(&mut pair.outbox).unwrap();
        }
    }
    pair.client_says(usize::MAX);
    let (mut turns, mut before) = (0, pair.far.unread());
    while pair.server.readable {
        read_for_a_turn(&mut pair);
        let taken = before - pair.far.unread();
        assert!(taken <= 2 * limits::TLS_WASTED, "{taken} bytes in one turn");
        (turns, before) = (turns + 1, pair.far.unread());
    }
    assert!(turns >= 10 && before == 0, "{turns} turns, {before} bytes left");
    assert_eq!(pair.to_server.heard, pair.to_server.said);
}

#[test]
fn data_in_small_records_come_in_few_turns() {
    let mut pair = Pair::open(1, usize::MAX);
    for _ in 0..500 {
        pair.client_writes(100);
    }
    pair.client_says(usize::MAX);
    read_for_a_turn(&mut pair);
    assert_eq!(pair.to_server.heard, 50_000);
}

#[test]
fn a_ticket_goes_with_the_first_reply_or_alone() {
    for count in [0, 100] {
        let mut pair = Pair::open(1, usize::MAX);
        assert_eq!((pair.client.tls13_tickets_received(), pair.client_hears(usize::MAX)), (0, 0));
        if count > 0 {
            pair.server_writes(count);
        }
        pair.server.send(usize::MAX);
        assert_eq!(pair.tls.held_back(), 0);
        pair.client_hears(usize::MAX);
        assert_eq!((pair.client.tls13_tickets_received(), pair.to_client.heard), (1, count));
    }
    // A handshake of TLS 1.2 ends with what the server says.
    let pair = Pair::open(0, usize::MAX);
    assert!(!pair.client.is_handshaking());
    assert_eq!(pair.tls.held_back(), 0);
}
