//! What the settings say of a node and of etcd.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use cluster::control::{Announced, Recovered, Setup};
use cluster::topology::Address;
use config::{Config, PrimaryAddress};

use super::kept::Kept;

/// How long one member of etcd may take to answer: a part of the time for which a silent primary
/// keeps its place, within these bounds.
const ATTEMPT_MS: std::ops::RangeInclusive<u64> = 200..=1000;

/// How etcd is asked.
pub(super) fn of_etcd(config: &Config) -> gateway::Config {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let user = (!config.cluster_etcd_user.is_empty())
        .then(|| (text(&config.cluster_etcd_user), text(&config.cluster_etcd_password)));
    gateway::Config {
        endpoints: endpoints(&config.cluster_etcd),
        user,
        tls: tls_of(config),
        attempt_ms: attempt_ms(config),
        ..gateway::Config::default()
    }
}

/// The addresses of etcd's members, of a value of `cluster-etcd`.
pub(super) fn endpoints(places: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(places);
    text.split(',').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

fn attempt_ms(config: &Config) -> u64 {
    (config.cluster_node_timeout / 10).clamp(*ATTEMPT_MS.start(), *ATTEMPT_MS.end())
}

/// How long a request may take, with attempts at other members.
pub(super) fn patience(config: &Config) -> Duration {
    Duration::from_millis(3 * attempt_ms(config))
}

/// Whom the node believes to be etcd, and what it shows of itself.
fn tls_of(config: &Config) -> tls::ClientSettings {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let authority = match config.cluster_etcd_ca_file.is_empty() {
        true => text(&config.tls_ca_cert_file),
        false => text(&config.cluster_etcd_ca_file),
    };
    let (certificate, key) =
        (text(&config.cluster_etcd_cert_file), text(&config.cluster_etcd_key_file));
    let own = (!certificate.is_empty()).then_some((&*certificate, &*key));
    tls::ClientSettings::of_options((!authority.is_empty()).then_some(&*authority), own)
}

/// What the machine is made with. The data are at this place.
///
/// # Errors
/// The node does not know where others reach it.
pub(super) fn of_node(
    config: &Config,
    kept: &Kept,
    (history, offset): (&str, u64),
) -> Result<Setup, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let stopped_here =
        kept.stopped_at.as_ref().is_some_and(|at| at.history == history && at.offset == offset);
    let (epoch, start) = kept.epoch_of(history, offset);
    let complete = kept.complete && stopped_here && kept.history == history;
    // A file from before that was written down says in which shard the node was.
    let home = || kept.topology.as_ref()?.home_of(kept.node).map(|shard| shard.id);
    let shard = kept.shard.or_else(home);
    let recovered = Recovered { shard, epoch, start, offset, complete };
    Ok(Setup {
        cluster: text(&config.cluster_name),
        node: kept.node,
        incarnation: base::rng::entropy_u64(),
        announced: announced(config, &config.cluster_etcd)?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        node_timeout_ms: config.cluster_node_timeout,
        promised_ms: kept.promised_ms,
        recovered,
        cached: kept.topology.clone(),
    })
}

/// What others know of the node, which asks etcd at these addresses.
///
/// # Errors
/// The node does not know where others reach it.
pub(super) fn announced(config: &Config, etcd: &[u8]) -> Result<Announced, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Announced {
        address: address(config, etcd)?,
        zone: text(&config.availability_zone),
        name: text(&config.cluster_announce_human_nodename),
    })
}

/// Whether others know the same of the node by both settings, wherever it reaches etcd.
pub(super) fn announces_alike(one: &Config, other: &Config) -> bool {
    let of = |config: &Config| {
        let ports = [
            config.cluster_announce_port,
            config.cluster_announce_tls_port,
            config.port,
            config.tls_port,
            config.http_port,
            config.https_port,
        ];
        (ports, config.tls_replication && config.tls_cluster)
    };
    let texts = |config: &Config| {
        [
            config.cluster_announce_ip.clone(),
            config.cluster_announce_hostname.clone(),
            config.cluster_announce_human_nodename.clone(),
            config.availability_zone.clone(),
        ]
    };
    of(one) == of(other) && texts(one) == texts(other)
}

/// Where others reach the node: as it announces, or where it listens, at the address by which it
/// reaches etcd.
fn address(config: &Config, etcd: &[u8]) -> Result<Address, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let announced = |announced: u16, own: u16| if announced == 0 { own } else { announced };
    if config.port == 0 && !(config.tls_replication && config.tls_cluster) {
        let text = "with port 0 nodes reach each other by tls-port alone, which needs \
                    tls-replication yes and tls-cluster yes";
        return Err(text.to_owned());
    }
    let host = match config.cluster_announce_ip.is_empty() {
        true => own_address(etcd)?.to_string(),
        false => text(&config.cluster_announce_ip),
    };
    Ok(Address {
        host,
        port: announced(config.cluster_announce_port, config.port),
        tls_port: announced(config.cluster_announce_tls_port, config.tls_port),
        http_port: config.http_port,
        https_port: config.https_port,
        hostname: text(&config.cluster_announce_hostname),
    })
}

fn own_address(etcd: &[u8]) -> Result<IpAddr, String> {
    let first = endpoints(etcd).into_iter().next().unwrap_or_default();
    let place = gateway::endpoint(&first)?;
    let (_, place) = place.split_once("://").unwrap_or_default();
    let own = place.to_socket_addrs().and_then(|mut addresses| {
        let to = addresses.next().ok_or_else(|| std::io::Error::other("it has no address"))?;
        let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        // Nothing is sent: the system says by which of its addresses it would be.
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.local_addr()
    });
    own.map(|own| own.ip()).map_err(|error| {
        let error = process::paths::reason(&error);
        format!("{first} cannot be reached: {error}. Say where others reach this node by cluster-announce-ip")
    })
}

/// Where a node has its port for replication.
pub(super) fn place_of(address: &Address, config: &Config) -> PrimaryAddress {
    let is_encrypted = config.tls_replication && address.tls_port != 0;
    let port = if is_encrypted { address.tls_port } else { address.port };
    PrimaryAddress { host: address.host.clone().into_bytes(), port }
}

/// Where a node is reached, encrypted or not as the settings say: at port 0 if it has no such port.
pub(super) fn way_to(address: &Address, config: &Config) -> PrimaryAddress {
    let port = if config.tls_replication { address.tls_port } else { address.port };
    PrimaryAddress { host: address.host.clone().into_bytes(), port }
}

#[cfg(test)]
mod tests {
    use cluster::ids::ShardId;

    use super::*;

    fn kept() -> Kept {
        let text = r#"{"node": "00000000000000000000000000000000000000ff", "lineage":
            [[7, 2]], "complete": true, "history": "h", "stopped_at": {"history": "h", "offset": 9},
            "shard": "0303030303030303030303030303030303030303"}"#;
        serde_json::from_str(text).unwrap()
    }

    fn recovered(kept: &Kept, history: &str, offset: u64) -> Recovered {
        let config = Config { cluster_announce_ip: b"10.0.0.1".to_vec(), ..Config::default() };
        of_node(&config, kept, (history, offset)).unwrap().recovered
    }

    #[test]
    fn data_are_complete_only_where_the_server_was_stopped() {
        let shard = Some(ShardId([3; 20]));
        let all = Recovered { shard, epoch: 7, start: 2, offset: 9, complete: true };
        assert_eq!(recovered(&kept(), "h", 9), all);
        assert_eq!(recovered(&kept(), "h", 8), Recovered { offset: 8, complete: false, ..all });
        let before = Recovered { shard, epoch: 0, start: 0, offset: 1, complete: false };
        assert_eq!(recovered(&kept(), "h", 1), before, "they do not reach the epoch's start");
        let nothing = Recovered { offset: 9, ..before };
        assert_eq!(recovered(&kept(), "other", 9), nothing);
        let killed = Kept { stopped_at: None, ..kept() };
        assert_eq!(recovered(&killed, "h", 9), Recovered { complete: false, ..all });
    }

    #[test]
    fn a_node_is_where_it_says_or_where_it_reaches_etcd() {
        let config = Config {
            cluster_etcd: b"http://127.0.0.1:1, http://h:2".to_vec(),
            port: 7000,
            cluster_announce_tls_port: 9,
            ..Config::default()
        };
        let own = address(&config, &config.cluster_etcd).unwrap();
        assert_eq!((&*own.host, own.port, own.tls_port), ("127.0.0.1", 7000, 9));
        let said = Config { cluster_announce_ip: b"10.0.0.1".to_vec(), ..config };
        assert_eq!(address(&said, b"").unwrap().host, "10.0.0.1");
        let hidden = Config { port: 0, tls_port: 7000, tls_replication: true, ..said };
        assert!(address(&hidden, b"").unwrap_err().contains("tls-cluster"));
        let encrypted = Config { tls_cluster: true, ..hidden };
        assert_eq!(address(&encrypted, b"").unwrap().port, 0);
    }

    /// Nothing goes to a plain port that is to be encrypted, and no TLS to a plain port.
    #[test]
    fn a_node_without_the_port_that_is_asked_for_cannot_be_reached() {
        let address = Address { port: 7000, ..Address::default() };
        let plain = Config::default();
        assert_eq!(way_to(&address, &plain).port, 7000);
        let encrypted = Config { tls_replication: true, ..plain };
        assert_eq!(way_to(&address, &encrypted).port, 0);
        assert_eq!(way_to(&Address { tls_port: 7001, ..address }, &encrypted).port, 7001);
    }

    #[test]
    fn a_node_announces_itself_again_by_its_own_settings_alone() {
        let before = Config::default();
        let other = Config { slowlog_max_len: 9, ..Config::default() };
        assert!(announces_alike(&before, &other));
        let changed = [
            Config { port: 9, ..Config::default() },
            Config { https_port: 9, ..Config::default() },
            Config { cluster_announce_tls_port: 9, ..Config::default() },
            Config { cluster_announce_ip: b"h".to_vec(), ..Config::default() },
            Config { cluster_announce_hostname: b"h".to_vec(), ..Config::default() },
            Config { cluster_announce_human_nodename: b"h".to_vec(), ..Config::default() },
            Config { availability_zone: b"h".to_vec(), ..Config::default() },
        ];
        changed.iter().for_each(|changed| assert!(!announces_alike(&before, changed)));
    }
}
