//! Listening sockets: which addresses, and which clients may connect before a password is set.

mod inherited;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Config;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::net::{Listener, Speaks};
use process::log::Log;
use process::paths::{self, reason};
use process::permissions;

pub use inherited::Inherited;

/// The kernel's own bound of the queue of connections that were not accepted yet.
const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

/// Why there is no socket to listen on. The log has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotListening;

/// All sockets that the server listens on.
#[derive(Default)]
pub struct Listening {
    tcp: Vec<TcpSocket>,
    unix: Option<UnixSocket>,
    /// Those that the service manager has opened. They stay until the end.
    inherited: Inherited,
    /// What encrypts the connections of some of them.
    active: Arc<tls::Active>,
}

/// A TCP socket, and the protocol spoken there.
struct TcpSocket {
    address: SocketAddr,
    /// The word of `bind` that asks for it.
    word: String,
    speaks: Speaks,
    listener: TcpListener,
}

/// The unix socket, and the identity of its file.
struct UnixSocket {
    path: PathBuf,
    /// The device and the number of the file, which identify it.
    file: (u64, u64),
    listener: UnixListener,
}

impl Listening {
    /// Opens the sockets that the settings ask for, besides those that are there already. `active`
    /// is what encrypts connections.
    ///
    /// # Errors
    /// One of them cannot be opened, or none is asked for.
    pub fn open(
        config: &Config,
        inherited: Inherited,
        log: &Log,
        active: &Arc<tls::Active>,
    ) -> Result<Listening, NotListening> {
        let active = Arc::clone(active);
        let mut listening = Listening { inherited, active, ..Listening::default() };
        for speaks in Speaks::all() {
            let (name, port) = (speaks.name(), speaks.port(config));
            match listening.bind_missing(config, speaks, log) {
                Ok(()) => {}
                Err(NotListening) if speaks.is_needed() => {
                    let kind = if speaks.is_encrypted() { "TLS" } else { "TCP" };
                    log.warning(format!("Failed listening on port {port} ({kind}), aborting."));
                    return Err(NotListening);
                }
                Err(NotListening) => {
                    log.warning(format!("{name} is not served: cannot listen on port {port}."));
                }
            }
        }
        if !config.unixsocket.is_empty() {
            match open_unix(config) {
                Ok(unix) => listening.unix = Some(unix),
                Err(error) => {
                    log.warning(format!("Failed opening Unix socket: bind: {}", reason(&error)));
                    return Err(NotListening);
                }
            }
        }
        if listening.handles().is_empty() {
            log.warning("Configured to not listen anywhere, exiting.");
            return Err(NotListening);
        }
        warn_about_backlog(config, log);
        Ok(listening)
    }

    /// Changes from the addresses and ports of `old` settings to those of `config`. `give` hands
    /// the sockets to the acceptor of connections, and takes back those that it got before.
    ///
    /// # Errors
    /// An address cannot be bound. Then everything is as before. As at the start, a server that
    /// does not serve HTTP because its port is taken does without, unless that port is to change.
    pub fn change(
        &mut self,
        old: &Config,
        config: &Config,
        log: &Log,
        give: &dyn Fn(Vec<Listener>),
    ) -> Result<(), NotListening> {
        let is_served = |speaks| self.tcp.iter().any(|own| own.speaks == speaks);
        let is_to_change = |speaks: Speaks| speaks.port(old) != speaks.port(config);
        let mut inherited = Speaks::all().filter(|&speaks| self.inherited.has(speaks));
        if let Some(speaks) = inherited.find(|&speaks| is_to_change(speaks)) {
            let name = speaks.name();
            log.warning(format!("The service manager chooses the port for {name}"));
            return Err(NotListening);
        }
        let needed: Vec<Speaks> = Speaks::all()
            .filter(|&own| own.is_needed() || is_served(own) || is_to_change(own))
            .collect();
        let wanted: Vec<(SocketAddr, Speaks)> = Speaks::all()
            .flat_map(|speaks| addresses(config, speaks).map(move |address| (address, speaks)))
            .filter_map(|(address, speaks)| Some((address.resolve().ok()?, speaks)))
            .collect();
        let before = std::mem::take(&mut self.tcp);
        let (kept, superfluous): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|own| wanted.contains(&(own.address, own.speaks)));
        self.tcp = kept;
        // On the new port, an old address can be in the way of a new one: `*` and `127.0.0.1`
        // exclude each other. On another port it stays until the new ones are there.
        let (in_the_way, other): (Vec<_>, Vec<_>) = superfluous
            .into_iter()
            .partition(|own| Speaks::all().any(|other| other.port(config) == own.address.port()));
        give(self.handles());
        in_the_way.iter().for_each(|own| stop_listening(&own.listener));
        let kept = self.tcp.len();
        let bound = Speaks::all().try_for_each(|speaks| {
            let bound = self.bind_missing(config, speaks, log);
            bound.or_else(|error| if needed.contains(&speaks) { Err(error) } else { Ok(()) })
        });
        let superfluous = match bound {
            Ok(()) => other,
            Err(NotListening) => {
                let added = self.tcp.split_off(kept);
                self.tcp.extend(other);
                added
            }
        };
        give(self.handles());
        superfluous.iter().for_each(|own| stop_listening(&own.listener));
        if bound.is_err() {
            // Those that were in the way.
            for speaks in Speaks::all() {
                let _ = self.bind_missing(old, speaks, log);
            }
            give(self.handles());
        }
        bound
    }

    /// The sockets, for the acceptor of connections.
    pub fn handles(&self) -> Vec<Listener> {
        let inherited = self.inherited.tcp.iter().map(|(_, speaks, listener)| (*speaks, listener));
        let tcp = self.tcp.iter().map(|own| (own.speaks, &own.listener)).chain(inherited);
        let tcp = tcp.filter_map(|(speaks, listener)| {
            let listener = listener.try_clone().ok()?;
            Some(match speaks.is_encrypted() {
                true => Listener::tls(listener, speaks, &self.active),
                false => Listener::tcp(listener, speaks),
            })
        });
        let inherited = self.inherited.unix.iter().map(|(speaks, listener)| (*speaks, listener));
        let unix = self.unix.iter().map(|own| (Speaks::RESP, &own.listener)).chain(inherited);
        let unix = unix.filter_map(|(speaks, listener)| {
            Listener::unix(listener.try_clone().ok()?, speaks).ok()
        });
        tcp.chain(unix).collect()
    }

    /// The addresses of the TCP sockets for a protocol.
    pub fn addresses(&self, speaks: Speaks) -> impl Iterator<Item = SocketAddr> {
        let inherited = self.inherited.tcp.iter().map(|own| (own.1, own.0));
        let all = self.tcp.iter().map(|own| (own.speaks, own.address)).chain(inherited);
        all.filter(move |own| own.0 == speaks).map(|own| own.1)
    }

    /// The words of `bind` at whose addresses this is spoken. The machine may lack others.
    pub fn words(&self, speaks: Speaks) -> Vec<String> {
        let spoken = self.tcp.iter().filter(|own| own.speaks == speaks);
        let inherited = self.inherited.tcp.iter().filter(|own| own.1 == speaks);
        let inherited = inherited.map(|own| own.0.ip().to_string());
        spoken.map(|own| own.word.clone()).chain(inherited).collect()
    }

    /// The path of the unix socket.
    pub fn unix_path(&self) -> Option<&std::path::Path> {
        self.unix.as_ref().map(|own| own.path.as_path())
    }

    /// Removes the unix socket from its directory, at the end. A file or another server's socket
    /// that has taken its place meanwhile stays.
    ///
    /// # Errors
    /// It cannot be looked at or removed, or is not there any more.
    pub fn remove_unix_socket(&self) -> io::Result<()> {
        let Some(own) = &self.unix else { return Ok(()) };
        if file_number(&std::fs::symlink_metadata(&own.path)?) != own.file {
            return Ok(());
        }
        std::fs::remove_file(&own.path)
    }

    /// Binds the addresses in the settings for one protocol that are not bound yet; on failure,
    /// none of them.
    fn bind_missing(
        &mut self,
        config: &Config,
        speaks: Speaks,
        log: &Log,
    ) -> Result<(), NotListening> {
        if self.inherited.has(speaks) {
            return Ok(());
        }
        let mut added: Vec<TcpSocket> = Vec::new();
        for address in addresses(config, speaks) {
            let bound = address.resolve().and_then(|at| {
                let known = |own: &TcpSocket| own.address == at && own.speaks == speaks;
                if self.tcp.iter().chain(&added).any(known) {
                    return Ok(None);
                }
                let listener = open_tcp(at, config)?;
                Ok(Some(TcpSocket { address: at, word: address.shown(), speaks, listener }))
            });
            match bound {
                Ok(Some(own)) => added.push(own),
                Ok(None) => {}
                Err(error) => {
                    let (word, port) = (&address.word, address.port);
                    log.warning(format!(
                        "Warning: Could not create server TCP listening socket {word}:{port}: \
                         bind: {}",
                        reason(&error)
                    ));
                    if !address.may_fail(&error) {
                        return Err(NotListening);
                    }
                }
            }
        }
        self.tcp.append(&mut added);
        Ok(())
    }
}

/// A word of `bind`.
struct Address<'c> {
    word: std::borrow::Cow<'c, str>,
    port: u16,
    /// It began with `-`: a machine may lack that address without an error.
    optional: bool,
}

/// The addresses and the port for a protocol.
fn addresses(config: &Config, speaks: Speaks) -> impl Iterator<Item = Address<'_>> {
    let port = speaks.port(config);
    let bind = if port == 0 { &[][..] } else { &config.bind };
    bind.iter().map(move |word| {
        let stripped = word.strip_prefix(b"-");
        let word = String::from_utf8_lossy(stripped.unwrap_or(word));
        Address { word, port, optional: stripped.is_some() }
    })
}

impl Address<'_> {
    fn resolve(&self) -> io::Result<SocketAddr> {
        let port = self.port;
        match &*self.word {
            "*" => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
            "::*" => Ok((Ipv6Addr::UNSPECIFIED, port).into()),
            word => (word, port)
                .to_socket_addrs()?
                .min_by_key(SocketAddr::is_ipv6)
                .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// The word as it is in the settings.
    fn shown(&self) -> String {
        let sign = if self.optional { "-" } else { "" };
        format!("{sign}{}", self.word)
    }

    fn may_fail(&self, error: &io::Error) -> bool {
        let unavailable = error.kind() == io::ErrorKind::AddrNotAvailable;
        let unsupported =
            [libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT, libc::ENOPROTOOPT, libc::EPFNOSUPPORT]
                .map(Some)
                .contains(&error.raw_os_error());
        unsupported || (unavailable && self.optional)
    }
}

fn open_tcp(address: SocketAddr, config: &Config) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    if config.socket_mark_id != 0 {
        socket.set_mark(config.socket_mark_id)?;
    }
    socket.bind(&address.into())?;
    socket.listen(backlog(config))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn file_number(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Removes the socket of a server that ended without removing it. Anything else of that name is
/// some user's data, or the setting is a mistake.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => {
            let text = format!("{} exists and is not a socket", path.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_unix(config: &Config) -> io::Result<UnixSocket> {
    let path = std::path::absolute(paths::path(&config.unixsocket))?;
    remove_stale_socket(&path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&socket2::SockAddr::unix(&path)?)?;
    let mode = match config.unixsocketperm {
        0 => permissions::of_socket(),
        chosen => chosen,
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    socket.listen(backlog(config))?;
    socket.set_nonblocking(true)?;
    let file = file_number(&std::fs::symlink_metadata(&path)?);
    Ok(UnixSocket { path, file, listener: socket.into() })
}

fn backlog(config: &Config) -> i32 {
    i32::try_from(config.tcp_backlog).unwrap_or(i32::MAX)
}

/// Ends listening at once, though the acceptor may keep the socket a moment longer.
fn stop_listening(listener: &TcpListener) {
    // It fails only when the socket does not listen, which is the aim.
    let _ = SockRef::from(listener).shutdown(Shutdown::Both);
}

fn warn_about_backlog(config: &Config, log: &Log) {
    let bound = std::fs::read_to_string(SOMAXCONN).ok();
    if let Some(bound) = bound.and_then(|text| text.trim().parse::<u32>().ok())
        && bound < config.tcp_backlog
    {
        log.warning(format!(
            "WARNING: The TCP backlog setting of {} cannot be enforced because {SOMAXCONN} is set \
             to the lower value of {bound}.",
            config.tcp_backlog
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn log() -> Log {
        let config = Config { loglevel: config::LogLevel::Warning, ..Config::default() };
        Log::open(&config).unwrap()
    }

    fn settings(port: u16, bind: &[&str]) -> Config {
        let bind = bind.iter().map(|word| word.as_bytes().to_vec()).collect();
        Config { port, http_port: 0, bind, ..Config::default() }
    }

    fn open(config: &Config, log: &Log) -> Result<Listening, NotListening> {
        Listening::open(config, Inherited::default(), log, &Arc::default())
    }

    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn optional_addresses_may_be_missing_and_others_not() {
        let port = free_port();
        // 192.0.2.0/24 is for documentation: no machine has it.
        let config = settings(port, &["127.0.0.1", "-192.0.2.1"]);
        let listening = open(&config, &log()).unwrap();
        assert_eq!(listening.handles().len(), 1);
        assert_eq!(listening.words(Speaks::RESP), ["127.0.0.1"]);
        let config = settings(port, &["192.0.2.1"]);
        assert!(open(&config, &log()).is_err());
        assert!(open(&settings(0, &["127.0.0.1"]), &log()).is_err());
    }

    #[test]
    fn addresses_change_while_listening() {
        let port = free_port();
        let log = log();
        let given = RefCell::new(Vec::new());
        let give = |handles| *given.borrow_mut() = handles;
        let mut listening = open(&settings(port, &["127.0.0.1"]), &log).unwrap();
        give(listening.handles());
        let connects = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(connects(port));
        let (first, all) = (settings(port, &["127.0.0.1"]), settings(port, &["*"]));
        listening.change(&first, &all, &log, &give).unwrap();
        assert!(connects(port));
        let other = free_port();
        let second = settings(other, &["127.0.0.1"]);
        listening.change(&all, &second, &log, &give).unwrap();
        assert!(connects(other) && !connects(port));
        for missing in
            [settings(other, &["127.0.0.1", "192.0.2.1"]), settings(port, &["*", "::1x"])]
        {
            let change = listening.change(&second, &missing, &log, &give);
            assert_eq!(change, Err(NotListening));
            assert!(connects(other) && !connects(port), "all is as before");
            assert_eq!(given.borrow().len(), 1);
        }
        listening.change(&second, &settings(0, &["127.0.0.1"]), &log, &give).unwrap();
        assert!(!connects(other));
    }

    #[test]
    fn a_taken_http_port_does_not_stop_other_changes() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let http_port = taken.local_addr().unwrap().port();
        let with_http = |port, http_port| Config { http_port, ..settings(port, &["127.0.0.1"]) };
        let (log, given) = (log(), RefCell::new(Vec::new()));
        let give = |handles| *given.borrow_mut() = handles;
        let connects = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        let (first, second) =
            (with_http(free_port(), http_port), with_http(free_port(), http_port));
        let mut listening = open(&first, &log).unwrap();
        listening.change(&first, &second, &log, &give).unwrap();
        assert!(connects(second.port) && !connects(first.port));
        // A client that asks for that port gets an error, and nothing changes.
        let without = with_http(second.port, 0);
        listening.change(&second, &without, &log, &give).unwrap();
        let change = listening.change(&without, &first, &log, &give);
        assert_eq!(change, Err(NotListening));
        assert!(connects(second.port) && !connects(first.port));
        assert_eq!(given.borrow().len(), 1);
    }
}
