//! Connections to other servers, from threads that others wait for.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// How long the thread waits before it looks around.
const SLICE: Duration = Duration::from_millis(50);
/// How often the system of another end that says nothing is asked for a sign of life.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// So many names are looked up at once at most: a name server that is silent holds a thread each.
const LOOKUPS: usize = 32;

static LOOKUPS_UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// The addresses of a host, within this time, unless `is_unwanted` says meanwhile that nobody wants
/// them any more. The system's lookup of a name has no limit, so it needs a thread.
///
/// # Errors
/// It has none, or they are not known in time, or are not wanted.
pub(crate) fn resolve(
    host: &str,
    port: u16,
    patience: Duration,
    is_unwanted: &dyn Fn() -> bool,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(own) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(own, port)]);
    }
    let host = host.to_owned();
    let look = move || (&*host, port).to_socket_addrs().map(Iterator::collect);
    in_time(&LOOKUPS_UNDER_WAY, look, patience, is_unwanted)
}

/// What a function finds within this time, on a thread of its own, which is counted.
fn in_time<T: Send + 'static>(
    under_way: &'static AtomicUsize,
    find: impl FnOnce() -> io::Result<T> + Send + 'static,
    patience: Duration,
    is_unwanted: &dyn Fn() -> bool,
) -> io::Result<T> {
    let begun = Instant::now();
    let (tell, told) = sync_channel(1);
    if under_way.fetch_add(1, Relaxed) >= LOOKUPS {
        under_way.fetch_sub(1, Relaxed);
        return Err(io::Error::other("too many names are being looked up"));
    }
    let look = move || {
        let found = find();
        under_way.fetch_sub(1, Relaxed);
        // Nobody may wait for it any more.
        let _ = tell.send(found);
    };
    if let Err(error) = thread::Builder::new().name("lookup".to_owned()).spawn(look) {
        under_way.fetch_sub(1, Relaxed);
        return Err(error);
    }
    loop {
        match told.recv_timeout(SLICE.min(patience)) {
            Ok(found) => return found,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("nothing is found"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if begun.elapsed() >= patience || is_unwanted() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }
}

/// Ends a connection whose other end has acknowledged nothing for so long. What a network has lost
/// is sent again ever less often, so a new connection is sooner there when it works again.
///
/// # Errors
/// As `setsockopt`.
pub(crate) fn bound_silence(socket: &TcpStream, bound: Duration) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(PROBE_EVERY).with_interval(PROBE_EVERY);
    let own = SockRef::from(socket);
    own.set_tcp_keepalive(&probes)?;
    own.set_tcp_user_timeout(Some(bound))
}

/// Connects to an address within this time, unless `is_unwanted` says meanwhile that nobody wants
/// the connection any more. `from` is the name or the address of this end, if it is not to be
/// chosen by the system.
///
/// # Errors
/// It cannot be reached, or not in time, or is not wanted.
pub(crate) fn connect(
    to: SocketAddr,
    from: &[u8],
    patience: Duration,
    is_unwanted: &dyn Fn() -> bool,
) -> io::Result<TcpStream> {
    let begun = Instant::now();
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if !from.is_empty() {
        let mut own = (&*String::from_utf8_lossy(from), 0).to_socket_addrs()?;
        let own = own.find(|own| own.is_ipv4() == to.is_ipv4());
        let own = own.ok_or_else(|| io::Error::other("bind-source-addr is of another family"))?;
        socket.bind(&own.into())?;
    }
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {
            while !is_decided(&socket)? {
                if begun.elapsed() >= patience || is_unwanted() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
        tried => tried?,
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// Whether it is connected: waits for that a little.
fn is_decided(socket: &Socket) -> io::Result<bool> {
    let slice = Timespec::try_from(SLICE).map_err(io::Error::other)?;
    let mut asked = [PollFd::new(socket, PollFlags::OUT)];
    match poll(&mut asked, Some(&slice)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        polled => polled?,
    };
    socket.take_error()?.map_or(Ok(true), Err)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::TcpListener;
    use std::sync::{Arc, Barrier};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_server_is_reached_or_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let stream = connect(at, b"127.0.0.1", LONG, &|| false).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), at);
        drop(listener);
        let refused = connect(at, b"", LONG, &|| false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let from = connect(at, b"::1", LONG, &|| false).unwrap_err();
        assert_eq!(from.to_string(), "bind-source-addr is of another family");
    }

    #[test]
    fn a_name_is_looked_up_within_a_time() {
        static OWN: AtomicUsize = AtomicUsize::new(0);
        let found = resolve("localhost", 7, LONG, &|| false).unwrap();
        assert!(found.iter().all(|at| at.ip().is_loopback() && at.port() == 7), "{found:?}");
        assert_eq!(resolve("::1", 7, LONG, &|| false).unwrap(), ["[::1]:7".parse().unwrap()]);
        let (held, hold) = sync_channel::<()>(0);
        let silent = move || hold.recv().map_err(io::Error::other);
        let late = in_time(&OWN, silent, Duration::from_millis(1), &|| false).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(held);
        let (held, hold) = sync_channel::<()>(0);
        let silent = move || hold.recv().map_err(io::Error::other);
        let unwanted = in_time(&OWN, silent, LONG, &|| true).unwrap_err();
        assert_eq!(unwanted.kind(), io::ErrorKind::TimedOut);
        drop(held);
    }

    #[test]
    fn names_that_nobody_answers_take_so_many_threads_and_no_more() {
        static OWN: AtomicUsize = AtomicUsize::new(0);
        let all = Arc::new(Barrier::new(LOOKUPS + 1));
        let look_up = || {
            let all = Arc::clone(&all);
            let silent = move || {
                all.wait();
                Ok(())
            };
            in_time(&OWN, silent, Duration::ZERO, &|| false).unwrap_err().kind()
        };
        (0..LOOKUPS).for_each(|_| assert_eq!(look_up(), io::ErrorKind::TimedOut));
        assert_eq!(look_up(), io::ErrorKind::Other);
        all.wait();
    }

    /// Nobody takes connections there, and the queue of those that wait is full.
    fn deaf() -> (Socket, Vec<Socket>, SocketAddr) {
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let at = listener.local_addr().unwrap();
        let waiting = (0..4).map(|_| {
            let socket = socket();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&at);
            socket
        });
        let waiting = waiting.collect();
        (listener, waiting, at.as_socket().unwrap())
    }

    #[test]
    fn a_connection_that_nobody_wants_any_more_is_given_up() {
        let (_listener, _waiting, at) = deaf();
        let asked = Cell::new(0);
        let is_unwanted = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let given_up = connect(at, b"", LONG, &is_unwanted).unwrap_err();
        assert_eq!((given_up.kind(), asked.get()), (io::ErrorKind::TimedOut, 3));
        let late = connect(at, b"", Duration::from_millis(1), &|| false).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}
