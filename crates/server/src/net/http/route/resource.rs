//! Which address means what, and which methods it takes.

use http::translation::Strings;

use crate::net::http::etcd::cluster::{self, is_own};
use crate::net::http::exchange::Style;
use crate::net::intake::Intake;

/// The meaning of a path.
pub(super) enum Resource<'t> {
    Key(&'t [u8]),
    Keys,
    Mget,
    Command(Style),
    /// POST runs a command; GET lists the addresses.
    Root(Style),
    Pipeline(Style),
    Transaction(Style),
    /// A command as the segments of a path.
    Words(&'t [u8]),
    Health,
    Readiness,
    Metrics,
    Changes,
    Overview,
    Memory,
    HotKeys,
    Views,
    View(&'t [u8]),
    Description,
    /// Something that clients of etcd ask for.
    Etcd(&'t [u8]),
}

impl<'t> Resource<'t> {
    pub(super) fn of(path: &'t [u8], strings: Option<Strings>) -> Option<Resource<'t>> {
        let own = Style { resp3: true, strings: strings.unwrap_or(Strings::Tagged) };
        let upstash = Style { resp3: false, strings: strings.unwrap_or(Strings::Lossy) };
        if let Some(key) = path.strip_prefix(b"/v1/keys/") {
            return Some(Resource::Key(key));
        }
        if let Some(name) = path.strip_prefix(b"/v1/views/") {
            return Some(Resource::View(name));
        }
        Some(match path {
            b"/v1/keys" => Resource::Keys,
            b"/v1/mget" => Resource::Mget,
            b"/v1/command" => Resource::Command(own),
            b"/v1/pipeline" => Resource::Pipeline(own),
            b"/v1/transaction" => Resource::Transaction(own),
            b"/" => Resource::Root(upstash),
            b"/pipeline" => Resource::Pipeline(upstash),
            b"/multi-exec" => Resource::Transaction(upstash),
            b"/healthz" => Resource::Health,
            b"/readyz" => Resource::Readiness,
            b"/metrics" => Resource::Metrics,
            b"/v1/changes" => Resource::Changes,
            b"/v1/overview" => Resource::Overview,
            b"/v1/memory" => Resource::Memory,
            b"/v1/hotkeys" => Resource::HotKeys,
            b"/v1/views" => Resource::Views,
            b"/v1/openapi.json" => Resource::Description,
            _ if path.starts_with(b"/v1/") => return None,
            _ if is_own(path) => Resource::Etcd(path),
            _ => Resource::Words(&path[1..]),
        })
    }

    /// The methods that it takes.
    pub(super) fn methods(&self, intake: Intake<'_>) -> &'static str {
        match self {
            Resource::View(name) if !intake.writes_through(name) => "GET, HEAD, DELETE, OPTIONS",
            Resource::Key(_) => "GET, HEAD, PUT, PATCH, POST, DELETE, OPTIONS",
            Resource::Keys
            | Resource::Health
            | Resource::Readiness
            | Resource::Metrics
            | Resource::Overview
            | Resource::Memory
            | Resource::HotKeys
            | Resource::Description => "GET, HEAD, OPTIONS",
            Resource::Changes => "GET, OPTIONS",
            Resource::Root(_) => "GET, HEAD, POST, OPTIONS",
            Resource::Mget
            | Resource::Command(_)
            | Resource::Pipeline(_)
            | Resource::Transaction(_) => "POST, OPTIONS",
            Resource::Views => "GET, HEAD, DELETE, OPTIONS",
            Resource::View(_) => "GET, HEAD, POST, DELETE, OPTIONS",
            Resource::Words(_) => "GET, HEAD, POST, PUT, OPTIONS",
            Resource::Etcd(path) => cluster::methods(path),
        }
    }

    #[inline]
    pub(super) fn takes(&self, method: &str, intake: Intake<'_>) -> bool {
        match (self, method) {
            (Resource::Key(_), "GET" | "PUT") => true,
            // Each of its addresses says so itself.
            (Resource::Etcd(_), _) => true,
            _ => self.methods(intake).split(", ").any(|own| own == method),
        }
    }
}
