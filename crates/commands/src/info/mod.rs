//! INFO: the server in fields, by section.
//!
//! Sections, fields and their order are those of Redis 8.0, because tools look for them. Fields
//! without a meaning in Dunlin are 0 or empty. Three sections are our own: `threads` says what each
//! thread did, `changes` describes the followers of the journal, and `durability` says what has
//! come of the durability and freshness that clients have chosen. `tls` is Valkey's, and only there
//! if connections are encrypted.

use std::fmt::{Display, Write};

use engine::command::args::Args;
use engine::command::error::CommandResult;
use engine::command::{
    ArgumentKind, Docs, Group, IN_DANGEROUS, LOADING, NO_KEYS, STALE, argument, docs,
};
use engine::engine::{Command, Context, Family, row};

mod persistence;
mod sections;
mod statistics;

/// A page of fields.
pub(super) struct Page {
    text: String,
}

impl Page {
    /// One line, `name:value`.
    fn field(&mut self, name: &str, value: impl Display) {
        // Writing into a string cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    /// Bytes, as a number and in a form for people.
    fn bytes(&mut self, name: &str, bytes: usize) {
        self.field(name, bytes);
        self.human_bytes(&format!("{name}_human"), bytes);
    }

    /// Bytes in a form for people.
    fn human_bytes(&mut self, name: &str, bytes: usize) {
        self.field(name, Human(bytes));
    }
}

/// Bytes with a unit: `512B`, `1.50K`, `2.00G`.
struct Human(usize);

impl Display for Human {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 < 1024 {
            return write!(f, "{}B", self.0);
        }
        let (mut value, mut unit) = (self.0 as f64 / 1024.0, 0);
        while value >= 1024.0 && unit < 5 {
            (value, unit) = (value / 1024.0, unit + 1);
        }
        write!(f, "{value:.2}{}", char::from(b"KMGTPE"[unit]))
    }
}

/// When a section is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Without arguments.
    ByDefault,
    /// When it is named, or all are.
    OnRequest,
    /// As by default, if connections are encrypted.
    WithCertificates,
}

struct Section {
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&mut Page, &Context<'_>),
}

const fn section(
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&mut Page, &Context<'_>),
) -> Section {
    Section { name, title, shown, write }
}

/// The sections in their order.
const SECTIONS: &[Section] = &[
    section("server", "Server", Shown::ByDefault, sections::server),
    section("clients", "Clients", Shown::ByDefault, sections::clients),
    section("memory", "Memory", Shown::ByDefault, sections::memory),
    section("persistence", "Persistence", Shown::ByDefault, persistence::persistence),
    section("threads", "Threads", Shown::OnRequest, statistics::threads),
    section("changes", "Changes", Shown::OnRequest, sections::changes),
    section("durability", "Durability", Shown::OnRequest, sections::durability),
    section("stats", "Stats", Shown::ByDefault, statistics::stats),
    section("replication", "Replication", Shown::ByDefault, sections::replication),
    section("cpu", "CPU", Shown::ByDefault, sections::cpu),
    section("modules", "Modules", Shown::ByDefault, |_, _| {}),
    section("commandstats", "Commandstats", Shown::OnRequest, statistics::commands),
    section("errorstats", "Errorstats", Shown::ByDefault, statistics::errors),
    section("latencystats", "Latencystats", Shown::OnRequest, statistics::latencies),
    section("cluster", "Cluster", Shown::ByDefault, sections::cluster),
    section("keyspace", "Keyspace", Shown::ByDefault, sections::keyspace),
    section("tls", "TLS", Shown::WithCertificates, sections::tls),
];

/// INFO [section [section ...]]
fn info(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let names: Vec<&[u8]> = match args.is_empty() {
        true => vec![b"default"],
        false => args.rest().iter().collect(),
    };
    let wanted = |name: &str| names.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let (all, default) = (wanted("all") || wanted("everything"), wanted("default"));
    let mut page = Page { text: String::new() };
    for section in SECTIONS {
        if section.shown == Shown::WithCertificates && cx.engine.host.certificates().is_empty() {
            continue;
        }
        let by_default = default && section.shown != Shown::OnRequest;
        if all || by_default || wanted(section.name) {
            if !page.text.is_empty() {
                page.text.push_str("\r\n");
            }
            let _ = write!(page.text, "# {}\r\n", section.title);
            (section.write)(&mut page, cx);
        }
    }
    cx.reply.verbatim(b"txt", page.text.as_bytes());
    Ok(())
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] =
    &Group::Server.rows([row("info", info, -1, LOADING | STALE | IN_DANGEROUS, NO_KEYS)]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[docs("info", "1.0.0", "Shows the server in fields.")
    .cost("O(1)")
    .arguments(&[argument("section", ArgumentKind::String).optional().multiple()])
    .history(&[("7.0.0", "Takes several sections.")])
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])];

#[cfg(test)]
mod tests {
    use super::*;

    /// The titles of the sections in a reply.
    fn titles(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix("# ")).collect()
    }

    fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    #[test]
    fn sections_come_in_their_order_once_each() {
        let mut server = crate::testing::server();
        let text = server.text("INFO keyspace CPU keyspace nosuch");
        assert_eq!(titles(&text), ["CPU", "Keyspace"]);
        assert_eq!(server.text("INFO nosuch"), "$0\r\n\r\n");
        assert_eq!(server.text("INFO modules"), "$11\r\n# Modules\r\n\r\n");
        let default = server.text("INFO");
        assert_eq!(titles(&default).len(), 11);
        assert_eq!(titles(&default), titles(&server.text("INFO default server")));
        let all = server.text("INFO everything");
        assert_eq!(titles(&all).len(), SECTIONS.len() - 1, "nothing is encrypted");
    }

    #[test]
    fn what_happened_is_counted() {
        let mut server = crate::testing::server();
        server.text("SADD s a b");
        server.text("SCARD s");
        server.text("SCARD nosuch");
        server.text("LPUSH s a");
        server.text("NOSUCH");
        server.text("SCARD");
        let text = server.text("INFO all");
        let calls = field(&text, "cmdstat_scard").expect("SCARD was called");
        assert!(calls.starts_with("calls=2,usec="), "{calls}");
        assert!(calls.ends_with(",rejected_calls=1,failed_calls=0"), "{calls}");
        assert_eq!(field(&text, "errorstat_ERR"), Some("count=2"));
        assert_eq!(field(&text, "errorstat_WRONGTYPE"), Some("count=1"));
        assert_eq!(field(&text, "total_error_replies"), Some("3"));
        assert_eq!(field(&text, "keyspace_hits"), Some("1"));
        assert_eq!(field(&text, "db0"), Some("keys=1,expires=0,avg_ttl=0,subexpiry=0"));
        assert_eq!(field(&text, "rdb_changes_since_last_save"), Some("2"));
        let percentiles = field(&text, "latency_percentiles_usec_scard").expect("as above");
        assert!(percentiles.starts_with("p50=") && percentiles.contains(",p99.9="));
        server.text("CONFIG RESETSTAT");
        let text = server.text("INFO stats errorstats persistence");
        assert_eq!(field(&text, "rdb_changes_since_last_save"), Some("2"), "no statistic");
        assert_eq!(field(&text, "total_error_replies"), Some("0"));
        assert_eq!(field(&text, "errorstat_ERR"), None);
    }

    #[test]
    fn bytes_are_shown_with_their_unit() {
        let shown = |bytes| Human(bytes).to_string();
        assert_eq!(shown(0), "0B");
        assert_eq!(shown(1023), "1023B");
        assert_eq!(shown(1024), "1.00K");
        assert_eq!(shown(1536 << 20), "1.50G");
        assert_eq!(shown(25_276_502_016), "23.54G");
    }
}
