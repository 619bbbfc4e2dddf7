//! The programs of other projects that the tests compare with: Redis and Valkey as Debian packages
//! them.
//!
//! `scripts/install-peers` brings them, each Debian release into its own directory. The programs of
//! a stable release judge the tests, unless `DUNLIN_PEERS` names another release that was brought.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::server::{repository, target_directory};

/// The Debian release whose programs judge, unless `DUNLIN_PEERS` names another: Redis 8.0, Valkey
/// 8.1.
const STABLE: &str = "trixie";

/// The Debian release that has the newest of all: Valkey 9.1.
const NEWEST: &str = "sid";

/// The Debian release that has Redis 7.0.
const OLDEST: &str = "bookworm";

/// Where `scripts/install-peers` puts what it brings.
#[must_use]
pub fn directory() -> PathBuf {
    target_directory(&repository()).join("peers")
}

fn programs_of(release: &str) -> PathBuf {
    directory().join(release).join("bin")
}

fn programs() -> PathBuf {
    let chosen = std::env::var("DUNLIN_PEERS").ok().filter(|release| !release.is_empty());
    programs_of(chosen.as_deref().unwrap_or(STABLE))
}

/// A program of the release that judges: `redis-server`, `redis-cli`, `valkey-server` and so on.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    programs().join(name)
}

/// A program of Debian's newest Redis or Valkey. It is there only after `make peers-newest`.
#[must_use]
pub fn newest(name: &str) -> PathBuf {
    programs_of(NEWEST).join(name)
}

/// A program of Redis 7.0. It is there only after `make peers-newest`.
#[must_use]
pub fn oldest(name: &str) -> PathBuf {
    programs_of(OLDEST).join(name)
}

/// A program of etcd 3.4: `etcd` or `etcdctl`.
#[must_use]
pub fn etcd(name: &str) -> PathBuf {
    programs_of("etcd").join(name)
}

/// A search path for programs that start these, and the services in `examples` that are built with
/// them, by their names alone.
#[must_use]
pub fn search_path() -> OsString {
    let mut path = programs().into_os_string();
    path.push(":");
    path.push(directory().join("go/bin"));
    if let Some(usual) = std::env::var_os("PATH") {
        path.push(":");
        path.push(usual);
    }
    path
}
