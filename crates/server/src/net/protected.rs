//! Which clients may connect while no password is set.

use std::net::{IpAddr, SocketAddr};

use config::Config;
use engine::host::{Frequent, LogLevel, Notify};
use engine::users::Users;

use super::protocol::Speaks;
use super::transport::{AnyTransport, Origin, Transport};

/// The answer to a client from another machine while no password is set.
const DENIED: &[u8] = b"-DENIED Redis is running in protected mode because protected mode is \
enabled and no password is set for the default user. In this mode connections are only accepted \
from the loopback interface. To serve other machines, set a password (the 'requirepass' option, or \
CONFIG SET requirepass from this machine), or, where the network itself keeps strangers out, \
switch protected mode off ('protected-mode no', or CONFIG SET protected-mode no).\r\n";

/// Why a client at `peer` may not connect by TCP, if so: the error to send before closing.
fn protected(config: &Config, users: &Users, peer: &SocketAddr) -> Option<&'static [u8]> {
    let local = match peer.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    };
    let is_denied = config.protected_mode && !local && users.default_user().takes_any_password;
    is_denied.then_some(DENIED)
}

/// Refuses such a client. Returns whether it is one.
pub(super) fn refuse_unprotected(
    (config, users): (&Config, &Users),
    log: &(impl Notify + ?Sized),
    origin: &Origin,
    (transport, speaks): (&mut AnyTransport, Speaks),
) -> bool {
    let text = origin.peer.and_then(|peer| protected(config, users, &peer));
    if let Some(text) = text {
        log.log_frequent(Frequent::Refused, LogLevel::Warning, &|| {
            format!("Refused a connection: protected mode, and there is no password ({origin})")
        });
        refuse(transport, speaks, 403, text);
    }
    text.is_some()
}

/// Tells the client why it is refused, if the transport takes it. The text is an error in RESP.
pub(super) fn refuse(transport: &mut AnyTransport, speaks: Speaks, status: u16, text: &[u8]) {
    // The client sees in any case that it is closed.
    let _ = transport.send(&speaks.refusal(status, text), usize::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_clients_are_denied_without_a_password() {
        let config = Config::default();
        let users = |password| Users::new(commands::registry().catalog(), password);
        for (peer, denied) in [
            ("127.0.0.1:5", false),
            ("[::1]:5", false),
            ("[::ffff:127.0.0.1]:5", false),
            ("10.0.0.1:5", true),
            ("[fe80::1]:5", true),
        ] {
            assert_eq!(
                protected(&config, &users(b""), &peer.parse().unwrap()).is_some(),
                denied,
                "{peer}"
            );
        }
        assert_eq!(protected(&config, &users(b"x"), &"10.0.0.1:5".parse().unwrap()), None);
        assert!(DENIED.starts_with(b"-DENIED ") && DENIED.ends_with(b"\r\n"));
        assert_eq!(DENIED.iter().filter(|&&byte| byte == b'\n').count(), 1);
    }
}
