//! Socket activation: listening sockets that the service manager has opened and passes on.
//!
//! The name of a socket, `FileDescriptorName=` in its unit, says what is spoken there. For each
//! protocol that has such a socket, `bind` and the setting of its port say nothing.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

use config::Config;
use process::log::Log;
use process::supervisor;
use socket2::{Domain, Socket, Type};

use crate::net::Speaks;

/// See the module's text.
#[derive(Default)]
pub struct Inherited {
    pub(super) tcp: Vec<(SocketAddr, Speaks, TcpListener)>,
    pub(super) unix: Vec<(Speaks, UnixListener)>,
}

impl Inherited {
    /// Takes what the service manager has passed on. The settings get the ports of these sockets.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn take(config: &mut Config, log: &Log) -> io::Result<Inherited> {
        let mut inherited = Inherited::default();
        for (name, descriptor) in supervisor::inherited()? {
            let wrong = |problem: &str| io::Error::other(format!("'{name}' {problem}"));
            let speaks = spoken_at(&name)
                .ok_or_else(|| wrong("is no name of one: they are plain, tls, http and https"))?;
            let socket = Socket::from(descriptor);
            // Something that is no socket does not say what kind of socket it is.
            let listens = socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
                && socket.is_listener().unwrap_or(false);
            if !listens {
                return Err(wrong("is no socket that listens for streams"));
            }
            socket.set_nonblocking(true)?;
            let shown = match socket.domain()? {
                Domain::IPV4 | Domain::IPV6 => inherited.add_tcp(speaks, socket.into())?,
                Domain::UNIX if speaks.is_encrypted() => {
                    return Err(wrong("is a unix socket: these are not encrypted"));
                }
                Domain::UNIX => inherited.add_unix(speaks, socket.into())?,
                _ => return Err(wrong("is of a family that is not served")),
            };
            log.notice(format!("The service manager listens at {shown} for {}", speaks.name()));
        }
        inherited.tell(config);
        Ok(inherited)
    }

    fn add_tcp(&mut self, speaks: Speaks, listener: TcpListener) -> io::Result<String> {
        let address = listener.local_addr()?;
        self.tcp.push((address, speaks, listener));
        Ok(address.to_string())
    }

    fn add_unix(&mut self, speaks: Speaks, listener: UnixListener) -> io::Result<String> {
        let address = listener.local_addr()?;
        let path = address.as_pathname().map(|path| path.display().to_string());
        self.unix.push((speaks, listener));
        Ok(path.unwrap_or_else(|| "an unnamed unix socket".to_owned()))
    }

    /// Whether there is a socket for this protocol.
    pub(super) fn has(&self, speaks: Speaks) -> bool {
        self.tcp.iter().any(|own| own.1 == speaks) || self.unix.iter().any(|own| own.0 == speaks)
    }

    /// Has the settings name the ports, which are shown to clients and replicas.
    fn tell(&self, config: &mut Config) {
        for speaks in Speaks::all().filter(|&speaks| self.has(speaks)) {
            let first = self.tcp.iter().find(|own| own.1 == speaks);
            speaks.set_port(config, first.map_or(0, |own| own.0.port()));
        }
    }
}

/// What is spoken at a socket of this name. A unit that gives none has its sockets named after
/// itself.
fn spoken_at(name: &str) -> Option<Speaks> {
    match name {
        "plain" | "" | "unknown" => Some(Speaks::RESP),
        unit if unit.ends_with(".socket") => Some(Speaks::RESP),
        "tls" => Some(Speaks::RESP_OVER_TLS),
        "http" => Some(Speaks::HTTP),
        "https" => Some(Speaks::HTTPS),
        _ => None,
    }
}
