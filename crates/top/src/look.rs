//! One look at a server: all that is known of it at an instant.

use std::collections::BTreeMap;
use std::io;

use base::clock::monotonic_ns;
use lab::targets::connection::info_fields;
use serde_json::Value as Json;

use crate::source::Source;

/// The fields of a line such as `calls=1,usec=2`.
type Fields = BTreeMap<String, String>;

/// What is known of one command.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandSum {
    pub(crate) calls: u64,
    pub(crate) us: f64,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    /// Percentiles since the start of the server, in microseconds: 50, 99 and 99.9.
    pub(crate) percentiles: Option<[f64; 3]>,
}

/// The times of commands in a part of their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageSum {
    pub(crate) count: f64,
    pub(crate) seconds: f64,
    /// Up to so many seconds: how many.
    pub(crate) buckets: Vec<(f64, f64)>,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub(crate) at_ns: u64,
    /// The fields of INFO.
    pub(crate) info: Fields,
    pub(crate) commands: BTreeMap<String, CommandSum>,
    /// In the order in which a command goes through them; none where they are not known.
    pub(crate) stages: Vec<(String, StageSum)>,
    pub(crate) clients: Vec<Fields>,
    /// `/v1/memory` and `/v1/hotkeys`; null where they are not known.
    pub(crate) memory: Json,
    pub(crate) hot_keys: Json,
}

/// The parts of the way of a command, in their order.
const STAGES: [&str; 4] = ["queue", "execute", "commit", "flush"];

impl Look {
    /// Asks a server. What takes it some work is asked only if it is to be shown.
    pub(crate) fn take(source: &mut Source, with_memory: bool) -> io::Result<Look> {
        let page = match source.text(&["INFO", "everything"])? {
            Some(page) => page,
            None => source.text(&["INFO"])?.ok_or_else(|| io::Error::other("INFO is refused"))?,
        };
        let clients = source.text(&["CLIENT", "LIST"])?.unwrap_or_default();
        let mut look = Look { at_ns: monotonic_ns(), ..Look::of_texts(&page, &clients) };
        let metrics = source.page("/metrics").unwrap_or_default();
        look.stages = stages(&metrics);
        if with_memory {
            look.memory = source.json("/v1/memory?samples=1000").unwrap_or_default();
        }
        look.hot_keys = source.json("/v1/hotkeys?limit=100").unwrap_or_default();
        Ok(look)
    }

    fn of_texts(info: &str, clients: &str) -> Look {
        let mut look = Look::default();
        for (name, value) in info_fields(info) {
            let value = value.trim();
            if let Some(command) = name.strip_prefix("cmdstat_") {
                let fields = pairs(value, ',');
                let sum = look.commands.entry(command.to_owned()).or_default();
                sum.calls = number(&fields, "calls") as u64;
                sum.us = number(&fields, "usec");
                sum.failed = number(&fields, "failed_calls") as u64;
                sum.rejected = number(&fields, "rejected_calls") as u64;
            } else if let Some(command) = name.strip_prefix("latency_percentiles_usec_") {
                let fields = pairs(value, ',');
                let percentiles = ["p50", "p99", "p99.9"].map(|name| number(&fields, name));
                look.commands.entry(command.to_owned()).or_default().percentiles =
                    Some(percentiles);
            } else {
                look.info.insert(name.to_owned(), value.to_owned());
            }
        }
        look.clients = clients.lines().map(|line| pairs(line, ' ')).collect();
        look.clients.retain(|client| client.contains_key("addr"));
        look
    }

    /// A field of INFO as a number; 0 if there is none.
    pub(crate) fn number(&self, name: &str) -> f64 {
        number(&self.info, name)
    }

    /// A field of INFO; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    /// The product and its version.
    pub(crate) fn product(&self) -> String {
        for (field, name) in
            [("dunlin_version", "Dunlin"), ("valkey_version", "Valkey"), ("redis_version", "Redis")]
        {
            if let Some(version) = self.info.get(field) {
                return format!("{name} {version}");
            }
        }
        "an unknown server".to_owned()
    }

    /// The databases, with their numbers of keys, and of keys that expire.
    pub(crate) fn databases(&self) -> Vec<(String, u64, u64)> {
        let database = |(name, value): (&String, &String)| {
            name.strip_prefix("db")?.parse::<u32>().ok()?;
            let fields = pairs(value, ',');
            let keys = fields.get("keys")?.parse().ok()?;
            Some((name.clone(), keys, number(&fields, "expires") as u64))
        };
        self.info.iter().filter_map(database).collect()
    }

    /// The replicas: the fields of each.
    pub(crate) fn replicas(&self) -> Vec<Fields> {
        let is_replica = |(name, _): &(&String, &String)| {
            name.strip_prefix("slave").is_some_and(|rest| rest.parse::<u32>().is_ok())
        };
        self.info.iter().filter(is_replica).map(|(_, value)| pairs(value, ',')).collect()
    }
}

/// A field as a number; 0 if there is none.
pub(crate) fn number(fields: &Fields, name: &str) -> f64 {
    fields.get(name).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn pairs(line: &str, separator: char) -> Fields {
    let pairs = line.split(separator).filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The histograms of the stages in a page of metrics.
fn stages(page: &str) -> Vec<(String, StageSum)> {
    const PREFIX: &str = "dunlin_stage_duration_seconds_";
    let mut stages: BTreeMap<String, StageSum> = BTreeMap::new();
    for line in page.lines() {
        let Some((name, value)) = line.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once(' '))
        else {
            continue;
        };
        let (Some((kind, labels)), Ok(value)) = (name.split_once('{'), value.parse::<f64>()) else {
            continue;
        };
        let label = |name: &str| {
            let start = labels.find(&format!("{name}=\""))? + name.len() + 2;
            labels[start..].split('"').next()
        };
        let Some(stage) = label("stage") else { continue };
        let sum = stages.entry(stage.to_owned()).or_default();
        match kind {
            "count" => sum.count = value,
            "sum" => sum.seconds = value,
            _ => {
                let most = label("le").map_or(f64::INFINITY, |most| match most {
                    "+Inf" => f64::INFINITY,
                    most => most.parse().unwrap_or(f64::INFINITY),
                });
                sum.buckets.push((most, value));
            }
        }
    }
    let known = STAGES.iter().filter_map(|name| Some(((*name).to_owned(), stages.remove(*name)?)));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_understood() {
        let info = "# Server\r\nredis_version:8.0.2\r\nvalkey_version:9.1.0\r\n# Commandstats\r\n\
                    cmdstat_get:calls=5,usec=10,usec_per_call=2.00,rejected_calls=1,failed_calls=2\r\n\
                    latency_percentiles_usec_get:p50=1.5,p99=2.5,p99.9=3.5\r\n\
                    db0:keys=7,expires=3,avg_ttl=1\r\nslave0:ip=h,port=1,state=online,lag=2\r\n";
        let look =
            Look::of_texts(info, "id=1 addr=h:1 name=a cmd=get\nid=2 addr=h:2 name= cmd=set\n");
        assert_eq!(look.product(), "Valkey 9.1.0");
        let get = &look.commands["get"];
        assert_eq!((get.calls, get.rejected, get.failed), (5, 1, 2));
        assert_eq!(get.percentiles, Some([1.5, 2.5, 3.5]));
        assert_eq!(look.databases(), [("db0".to_owned(), 7, 3)]);
        assert_eq!(number(&look.replicas()[0], "lag"), 2.0);
        assert_eq!((look.clients.len(), &*look.clients[1]["cmd"]), (2, "set"));
    }

    #[test]
    fn histograms_are_understood() {
        let page = "# TYPE x\ndunlin_stage_duration_seconds_bucket{stage=\"flush\",le=\"0.001\"} 3\n\
                    dunlin_stage_duration_seconds_bucket{stage=\"flush\",le=\"+Inf\"} 4\n\
                    dunlin_stage_duration_seconds_sum{stage=\"flush\"} 0.5\n\
                    dunlin_stage_duration_seconds_count{stage=\"flush\"} 4\n\
                    dunlin_stage_duration_seconds_count{stage=\"queue\"} 9\n";
        let stages = stages(page);
        assert_eq!((&*stages[0].0, stages[0].1.count), ("queue", 9.0));
        assert_eq!(stages[1].1.buckets, [(0.001, 3.0), (f64::INFINITY, 4.0)]);
        assert_eq!(stages[1].1.seconds, 0.5);
    }
}
