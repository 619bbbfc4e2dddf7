//! Whether two addresses are those of one etcd, and whether a cluster is there.
//!
//! Two addresses are those of one etcd if the second knows a lease that the first has just granted.
//! A lease of before says nothing, since a copy knows it. Nor does the number that etcd gives
//! itself (`cluster_id`): it comes from the addresses of its peers, so a copy may have the same,
//! and strangers with usual settings do.

use std::time::{Duration, Instant};

use cluster::keys::Keys;
use cluster::store::{Answer, Request};
use config::Config;
use gateway::Gateway;

use super::setup;

/// How long the lease lasts that is granted to compare, if it cannot be revoked.
const LEASE_S: i64 = 60;

/// How the other one is asked, also each of its members alone.
pub(super) struct Other {
    pub(super) all: Gateway,
    alone: Vec<(String, Gateway)>,
}

/// What was found of another etcd that the settings name.
pub(super) struct Compared {
    /// For which value of `cluster-etcd`.
    pub(super) places: Vec<u8>,
    pub(super) begun: Instant,
    /// Why the one that is asked grants no lease to compare with, if it does not.
    pub(super) granted: Result<(), String>,
    pub(super) other: Result<Other, String>,
    pub(super) likeness: Likeness,
    /// Whether the other one has keys of the cluster, or why that cannot be read.
    pub(super) read: Result<bool, String>,
}

/// Whether the other one is the one that is asked.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Likeness {
    Same,
    /// This member is another etcd.
    Another(String),
    Unknown(String),
}

impl Other {
    fn open(config: &Config) -> Result<Other, String> {
        let all = setup::of_etcd(config);
        let open_alone = |place: &String| {
            let alone = gateway::Config { endpoints: vec![place.clone()], ..all.clone() };
            Ok((place.clone(), Gateway::open(alone)?))
        };
        let alone = all.endpoints.iter().map(open_alone).collect::<Result<_, String>>()?;
        Ok(Other { all: Gateway::open(all)?, alone })
    }

    /// Whether every member, as far as it answers, knows a lease. One may be another etcd than the
    /// rest.
    fn know_lease(&self, lease: i64, limit: Duration) -> Likeness {
        let (mut is_known, mut silent) = (false, String::new());
        for (place, alone) in &self.alone {
            match alone.ask(&Request::KeepAlive { lease }, limit) {
                Ok(Answer::KeptAlive { ttl_s }) if ttl_s > 0 => is_known = true,
                Ok(_) => return Likeness::Another(place.clone()),
                Err(failure) => silent = failure.to_string(),
            }
        }
        if is_known { Likeness::Same } else { Likeness::Unknown(silent) }
    }

    fn has_keys(&self, config: &Config, limit: Duration) -> Result<bool, String> {
        let prefix = Keys::new(&String::from_utf8_lossy(&config.cluster_name)).prefix().to_owned();
        let answer = self
            .all
            .ask(&Request::Read { prefix }, limit)
            .map_err(|failure| failure.to_string())?;
        Ok(matches!(answer, Answer::Pairs { pairs, .. } if !pairs.is_empty()))
    }
}

/// Looks whether the etcd that is asked answers, and what the other one is.
pub(super) fn compare(config: &Config, asked: &Gateway, other: Option<Other>) -> Compared {
    let (begun, limit) = (Instant::now(), setup::patience(config));
    let other = other.map_or_else(|| Other::open(config), Ok);
    let granted = asked.ask(&Request::Grant { ttl_s: LEASE_S }, limit);
    let likeness = match (&other, &granted) {
        (Ok(other), Ok(Answer::Granted { lease, .. })) => other.know_lease(*lease, limit),
        (_, Err(failure)) => Likeness::Unknown(failure.to_string()),
        _ => Likeness::Unknown(String::new()),
    };
    if let Ok(Answer::Granted { lease, .. }) = granted {
        // If that fails, it ends by itself.
        let _ = asked.ask(&Request::Revoke { lease }, limit);
    }
    let read = match (&other, &likeness) {
        (Err(reason), _) => Err(reason.clone()),
        (Ok(_), Likeness::Same) => Ok(true),
        (Ok(other), _) => other.has_keys(config, limit),
    };
    let granted = granted.map(drop).map_err(|failure| failure.to_string());
    Compared { places: config.cluster_etcd.clone(), begun, granted, other, likeness, read }
}
