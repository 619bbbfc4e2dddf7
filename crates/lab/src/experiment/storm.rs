//! A connection storm: many clients come at the same moment, each asks once, and all stay a while.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;

/// How long a client waits for its connection and its answer together.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the storm checks whether it should end.
const LOOK: Duration = Duration::from_millis(20);

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
    socket: Socket,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The connection is not there yet.
    Opening,
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
    let start = Instant::now();
    let mut seen = Seen::default();
    let mut guests: Vec<Guest> = Vec::with_capacity(connections);
    for _ in 0..connections {
        match connect(address) {
            Ok(guest) => guests.push(guest),
            Err(error) => seen.failure = Some(error.to_string()),
        }
    }
    while start.elapsed() < PATIENCE && !halt.is_set() {
        let ready = wait(&guests)?;
        if ready.is_empty() && !guests.iter().any(Guest::is_waiting) {
            break;
        }
        for place in ready {
            guests[place].go_on(&mut seen);
            if guests[place].state == State::Done {
                seen.last_answer = start.elapsed();
            }
        }
    }
    while start.elapsed().as_secs_f64() < seconds && !halt.is_set() {
        std::thread::sleep(LOOK);
    }
    Ok(seen)
}

/// Begins to connect.
fn connect(address: SocketAddr) -> io::Result<Guest> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        // The next look at the connection shows why.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) => return Err(error),
    }
    Ok(Guest { socket, state: State::Opening })
}

/// Waits a little until some clients can go on; returns which.
fn wait(guests: &[Guest]) -> io::Result<Vec<usize>> {
    let waiting = guests.iter().enumerate().filter(|(_, guest)| guest.is_waiting());
    let (places, mut watched): (Vec<usize>, Vec<PollFd<'_>>) = waiting
        .map(|(place, guest)| {
            let wanted = if guest.state == State::Opening { PollFlags::OUT } else { PollFlags::IN };
            (place, PollFd::new(&guest.socket, wanted))
        })
        .unzip();
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    match poll(&mut watched, Some(&look)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = places.into_iter().zip(&watched).filter(|(_, one)| !one.revents().is_empty());
    Ok(ready.map(|(place, _)| place).collect())
}

impl Guest {
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Opening | State::Requested)
    }

    /// Takes the next step: asks, or takes the answer.
    fn go_on(&mut self, seen: &mut Seen) {
        let next = match self.state {
            State::Opening => self.ask().map(|()| {
                seen.opened += 1;
                State::Requested
            }),
            State::Requested => self.take_answer(),
            state => Ok(state),
        };
        match next {
            Ok(state) => self.state = state,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => self.state = State::Refused,
        }
        seen.refused += usize::from(self.state == State::Refused);
        seen.answered += usize::from(self.state == State::Done);
    }

    fn ask(&mut self) -> io::Result<()> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        self.socket.write_all(b"*1\r\n$4\r\nPING\r\n")
    }

    /// A server that wants a password has answered too; one that has too many clients reports that
    /// and closes.
    fn take_answer(&mut self) -> io::Result<State> {
        let mut answer = [0; 64];
        let length = self.socket.read(&mut answer)?;
        let is_answer = answer[..length].starts_with(b"+") || answer.starts_with(b"-NOAUTH");
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
