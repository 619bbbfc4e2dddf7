//! A connection storm: many clients come at the same moment, each asks once, and all stay a while.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::load::{Channel, Encryption, SessionSettings};
use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;

/// How long a client waits for its connection and its answer together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Room for an answer, and for a record of TLS.
const ROOM: usize = 32 * 1024;
/// How often the storm checks whether it should end.
const TICK: Duration = Duration::from_millis(20);
/// The same for the kernel.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos() as i64 };
/// Clients that go on between two looks at the kernel.
const EVENTS_PER_LOOK: usize = 64;
/// A client takes each step as far as it can, and is told when it can go on.
const EVENTS: epoll::EventFlags =
    epoll::EventFlags::IN.union(epoll::EventFlags::OUT).union(epoll::EventFlags::ET);

/// The results of the clients of a storm.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Connections that were opened.
    pub(super) opened: usize,
    /// How many of these got an answer to their question.
    pub(super) answered: usize,
    /// Connections that the server refused or closed.
    pub(super) refused: usize,
    /// From the first connection to the last answer.
    pub(super) last_answer: Duration,
    /// Why this machine could not open some of them.
    failure: Option<String>,
}

/// One client.
struct Guest {
    channel: Channel,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The connection is not there yet.
    Opening,
    /// It is there, and shakes hands.
    Shaking,
    /// The question is on its way.
    Requested,
    /// It only stays.
    Done,
    /// The server did not want it.
    Refused,
}

/// Opens all connections without waiting for any, asks, and keeps them until `seconds` are over.
pub(super) fn storm(
    endpoint: &Endpoint,
    connections: usize,
    seconds: f64,
    halt: &Interrupt,
) -> io::Result<Seen> {
    let address = (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::other("the host has no address"))?;
    // No client has been there before.
    let encryption =
        endpoint.encryption.as_ref().map(|own| Encryption { in_full: true, ..own.clone() });
    let encryption = encryption.map(|own| own.read(&endpoint.host, Vec::new())).transpose();
    let encryption = encryption.map_err(io::Error::other)?;
    let mut room = vec![0; ROOM];
    let start = Instant::now();
    let mut seen = Seen::default();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut guests: Vec<Guest> = Vec::with_capacity(connections);
    for _ in 0..connections {
        match connect(address, encryption.as_ref()) {
            Ok(guest) => {
                let (data, flags) = (epoll::EventData::new_u64(guests.len() as u64), EVENTS);
                epoll::add(&epoll, guest.channel.socket(), data, flags)?;
                guests.push(guest);
            }
            Err(error) => seen.failure = Some(error.to_string()),
        }
    }
    let mut waiting = guests.len();
    while waiting > 0 && start.elapsed() < PATIENCE && !halt.is_set() {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_PER_LOOK];
        let ready = match epoll::wait(&epoll, &mut events[..], Some(&LOOK)) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for event in ready {
            let guest = &mut guests[event.data.u64() as usize];
            if !guest.is_waiting() {
                continue;
            }
            guest.go_on(&mut seen, &mut room);
            if guest.state == State::Done {
                seen.last_answer = start.elapsed();
            }
            waiting -= usize::from(!guest.is_waiting());
        }
    }
    while start.elapsed().as_secs_f64() < seconds && !halt.is_set() {
        std::thread::sleep(TICK);
    }
    Ok(seen)
}

/// Begins to connect.
fn connect(address: SocketAddr, encryption: Option<&SessionSettings>) -> io::Result<Guest> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        // The next look at the connection shows why.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) => return Err(error),
    }
    Ok(Guest { channel: Channel::new(socket, encryption)?, state: State::Opening })
}

impl Guest {
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Opening | State::Shaking | State::Requested)
    }

    /// Takes the next step: shakes hands, asks, or takes the answer.
    fn go_on(&mut self, seen: &mut Seen, room: &mut [u8]) {
        let next = match self.state {
            State::Opening | State::Shaking => self.ask(),
            State::Requested => self.take_answer(room),
            state => Ok(state),
        };
        let before = self.state;
        self.state = next.unwrap_or(State::Refused);
        let is_new = |state| before != state && self.state == state;
        if is_new(State::Requested) {
            seen.opened += 1;
            // What has come before the question is no news any more.
            return self.go_on(seen, room);
        }
        seen.refused += usize::from(is_new(State::Refused));
        seen.answered += usize::from(is_new(State::Done));
    }

    fn ask(&mut self) -> io::Result<State> {
        if let Some(error) = self.channel.socket().take_error()? {
            return Err(error);
        }
        if !self.channel.shake_hands()? {
            return Ok(State::Shaking);
        }
        // A new connection takes so little at once.
        self.channel.write(b"*1\r\n$4\r\nPING\r\n")?;
        Ok(State::Requested)
    }

    /// A server that wants a password has answered too; one that has too many clients reports that
    /// and closes.
    fn take_answer(&mut self, room: &mut [u8]) -> io::Result<State> {
        let Some(length) = self.channel.read(room)? else { return Ok(State::Requested) };
        let answer = &room[..length];
        let is_answer = answer.starts_with(b"+") || answer.starts_with(b"-NOAUTH");
        Ok(if is_answer { State::Done } else { State::Refused })
    }
}

impl Seen {
    /// For a reader.
    pub(super) fn in_words(&self) -> String {
        let Seen { opened, answered, refused, .. } = self;
        let last = self.last_answer.as_secs_f64();
        let mut text = format!(
            "{opened} opened, {answered} answered, the last after {last:.3} s; {refused} refused"
        );
        if let Some(failure) = &self.failure {
            text.push_str(&format!("; some could not be opened from here: {failure}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    fn endpoint(port: u16) -> Endpoint {
        Endpoint { host: "127.0.0.1".to_owned(), port, password: None, encryption: None }
    }

    #[test]
    fn all_are_connected_before_the_first_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let server = std::thread::spawn(move || {
            let mut streams: Vec<_> =
                (0..20).map(|_| listener.accept().expect("a client").0).collect();
            for (place, stream) in streams.iter_mut().enumerate() {
                let reply: &[u8] =
                    if place < 15 { b"+PONG\r\n" } else { b"-ERR max number of clients\r\n" };
                stream.write_all(reply).expect("it takes the reply");
            }
            streams
        });
        let seen = storm(&endpoint(port), 20, 0.0, &Interrupt::default()).expect("an address");
        drop(server.join());
        assert_eq!((seen.opened, seen.answered, seen.refused), (20, 15, 5), "{seen:?}");
        assert!(seen.in_words().starts_with("20 opened, 15 answered"), "{}", seen.in_words());
    }

    #[test]
    fn where_nobody_listens_all_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        drop(listener);
        let seen = storm(&endpoint(port), 5, 0.0, &Interrupt::default()).expect("an address");
        assert_eq!((seen.opened, seen.refused), (0, 5), "{seen:?}");
    }
}
