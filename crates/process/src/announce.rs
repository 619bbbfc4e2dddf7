//! What the log says when a server starts: its addresses, where its data is, and what its operator
//! should know.

use std::net::SocketAddr;

use config::Config;
use rustix::fs::Access;

use super::log::Log;
use super::paths;

/// Addresses at which clients are served.
pub struct Served {
    /// In the protocol of Redis.
    pub resp: Vec<SocketAddr>,
    /// In HTTP.
    pub http: Vec<SocketAddr>,
}

/// Says at which addresses clients are served, by connections that are open or encrypted, and in
/// which directory the data lies: the current one. `is_open` says that clients need no password.
pub fn announce(config: &Config, is_open: bool, (open, encrypted): (&Served, &Served), log: &Log) {
    for (served, over, scheme) in [(open, "", "http"), (encrypted, " over TLS", "https")] {
        let Served { resp, http } = served;
        if !resp.is_empty() {
            log.notice(format!("The Redis protocol{over} is served at {}", list(resp)));
        }
        if let Some(first) = http.first() {
            let (at, page) = (list(http), page(scheme, first));
            log.notice(format!("HTTP{over} is served at {at}; dashboard: {page}"));
        }
    }
    let directory = paths::path(&config.dir).display();
    log.notice(format!("Data directory: {directory}"));
    let saves = config.appendonly || !config.save.is_empty();
    if saves && let Err(error) = rustix::fs::access(".", Access::WRITE_OK | Access::EXEC_OK) {
        log.warning(format!(
            "WARNING: data cannot be saved in {directory}: {}. Change that, or `dir`.",
            paths::reason(&error.into())
        ));
    }
    let all = [open, encrypted].into_iter().flat_map(|own| own.resp.iter().chain(&own.http));
    let public = all.into_iter().find(|address| !address.ip().is_loopback());
    if let Some(address) = public.filter(|_| is_open) {
        warn_of_open_access(config, address, log);
    }
}

fn warn_of_open_access(config: &Config, address: &SocketAddr, log: &Log) {
    if config.protected_mode {
        log.notice(format!(
            "There is no password, so that clients of other machines are refused at {address}: set \
             `requirepass` to let them in (see protected-mode)"
        ));
    } else {
        log.warning(format!(
            "WARNING: there is no password: whoever reaches {address} can read and change all data. \
             Set `requirepass`, or `bind` to 127.0.0.1."
        ));
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    addresses.join(", ")
}

/// Where a browser on this machine finds the page.
fn page(scheme: &str, address: &SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("{scheme}://localhost:{}/", address.port()),
        false => format!("{scheme}://{address}/"),
    }
}
