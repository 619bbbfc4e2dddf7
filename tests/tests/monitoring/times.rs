//! How long each alert waits, and what it says, by series that are made up: promtool evaluates
//! `deploy/alerts.yml` as it is.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::prometheus::{path, promtool, rules};

/// An alert, and series that make it fire. In each, `I` is its place.
struct Case {
    alert: &'static str,
    /// Names with labels, and values for each minute: of a server in trouble.
    troubled: &'static [(&'static str, &'static str)],
    /// The same of one that is well.
    calm: &'static [&'static str],
    /// Labels besides those of every alert.
    labels: &'static [(&'static str, &'static str)],
    /// The minute in which it does not fire yet, and the one in which it does.
    minutes: (u32, u32),
    summary: &'static str,
}

const NONE: &[(&str, &str)] = &[];
const JOB: &[(&str, &str)] = &[("job", "dunlin")];

const fn case(
    alert: &'static str,
    troubled: &'static [(&'static str, &'static str)],
    calm: &'static [&'static str],
    minutes: (u32, u32),
    summary: &'static str,
) -> Case {
    Case { alert, troubled, calm, labels: JOB, minutes, summary }
}

const CASES: &[Case] = &[
    case("DunlinDown", &[("up{I}", "0x30")], &["1x30"], (0, 2), "i:1 does not answer"),
    case("DunlinNotReady", &[("dunlin_ready{I}", "0x30")], &["1x30"], (4, 6), "i:1 is not ready"),
    case(
        "DunlinRestarts",
        &[("dunlin_uptime_seconds{I}", "100 5 60 5 60 5 60 90 120 150x20")],
        &["100+60x30"],
        (4, 6),
        "i:1 has started 3 times in 15 minutes",
    ),
    case(
        "DunlinLoadsForLong",
        &[("dunlin_loading{I}", "1x30")],
        &["0x30"],
        (9, 11),
        "i:1 has been loading its data for ten minutes",
    ),
    case(
        "DunlinSaveFailed",
        &[("dunlin_snapshot_last_failed{I}", "1x30")],
        &["0x30"],
        (0, 2),
        "The last save of i:1 failed",
    ),
    case(
        "DunlinAppendOnlyFileFails",
        &[("dunlin_append_only_write_failed{I}", "1x30")],
        &["0x30"],
        (0, 2),
        "i:1 cannot write its append-only file",
    ),
    case(
        "DunlinRewriteFailed",
        &[("dunlin_append_only_rewrite_last_failed{I}", "1x30")],
        &["0x30"],
        (4, 6),
        "The last rewrite of the append-only file of i:1 failed",
    ),
    case(
        "DunlinAppendOnlyFileBehind",
        &[("dunlin_append_only_pending_bytes{I}", "33554432x30")],
        &["1000x30"],
        (0, 2),
        "32MiB of i:1 wait to be written to the append-only file",
    ),
    Case {
        alert: "DunlinSlowSyncs",
        troubled: &[
            ("dunlin_stage_duration_seconds_bucket{I,stage=\"commit\",le=\"0.05\"}", "0+0x30"),
            ("dunlin_stage_duration_seconds_bucket{I,stage=\"commit\",le=\"0.1\"}", "0+100x30"),
            ("dunlin_stage_duration_seconds_bucket{I,stage=\"commit\",le=\"+Inf\"}", "0+100x30"),
        ],
        calm: &["0+100x30", "0+100x30", "0+100x30"],
        labels: NONE,
        minutes: (5, 7),
        summary: "1 % of the replies of i:1 wait 99.5ms and more for the disk",
    },
    case(
        "DunlinPrimaryLinkDown",
        &[("dunlin_primary_link_up{I}", "0x30")],
        &["1x30"],
        (0, 2),
        "The replica i:1 has no link to its primary",
    ),
    case(
        "DunlinReplicaStale",
        &[("dunlin_replica_staleness_seconds{I}", "75x30")],
        &["0.5x30"],
        (0, 2),
        "The data of the replica i:1 is 1m 15s old",
    ),
    Case {
        alert: "DunlinReplicaLag",
        troubled: &[("dunlin_replica_lag_bytes{I,replica=\"r:2\"}", "134217728x30")],
        calm: &["0x30"],
        labels: &[("job", "dunlin"), ("replica", "r:2")],
        minutes: (0, 2),
        summary: "r:2 lacks 128MiB of what i:1 has written",
    },
    case(
        "DunlinClusterDown",
        &[("dunlin_cluster_up{I}", "0x30")],
        &["1x30"],
        (0, 1),
        "i:1 does not serve its slots",
    ),
    case(
        "DunlinClusterShardWithoutPrimary",
        &[("dunlin_cluster_shards_without_primary{I}", "2x30")],
        &["0x30"],
        (0, 1),
        "i:1 sees 2 shards without a primary",
    ),
    case(
        "DunlinClusterWithoutQuorum",
        &[("dunlin_cluster_shards_without_quorum{I}", "1x30")],
        &["0x30"],
        (0, 1),
        "i:1 sees 1 shards with less than a quorum of their members",
    ),
    case(
        "DunlinClusterMemberMissing",
        &[("dunlin_cluster_shards_lacking_members{I}", "3x30")],
        &["0x30"],
        (4, 6),
        "i:1 sees 3 shards of which a member is gone",
    ),
    case(
        "DunlinClusterEtcdSilent",
        &[("dunlin_cluster_etcd_silence_seconds{I}", "75x30")],
        &["2x30"],
        (0, 1),
        "etcd has not answered i:1 for 1m 15s",
    ),
    case(
        "DunlinClusterMoveStuck",
        &[("dunlin_cluster_migration_stalled_seconds{I}", "0 60 120 180 240 300 360 420 480x30")],
        &["0 60 120 180 240 0 60 120 180 240 300 0x30"],
        (6, 8),
        "A move of slots from i:1 has come no nearer to its end for 8m 0s",
    ),
    Case {
        alert: "DunlinCertificateEnds",
        // Time begins at 0 there.
        troubled: &[("dunlin_tls_certificate_end_seconds{I,kind=\"server\"}", "867720x90")],
        calm: &["9000000x90"],
        labels: &[("job", "dunlin"), ("kind", "server")],
        minutes: (59, 62),
        summary: "A certificate (server) of i:1 ends in 10d 0h 0m 0s",
    },
    Case {
        alert: "DunlinCertificateEndsSoon",
        troubled: &[("dunlin_tls_certificate_end_seconds{I,kind=\"ca\"}", "259200x3000")],
        calm: &["9000000x3000"],
        labels: &[("job", "dunlin"), ("kind", "ca")],
        minutes: (1439, 1500),
        summary: "A certificate (ca) of i:1 ends in 1d 23h 0m 0s",
    },
    case(
        "DunlinMemoryNearLimit",
        &[("dunlin_memory_max_bytes{I}", "100x30"), ("dunlin_memory_used_bytes{I}", "95x30")],
        &["0x30", "95x30"],
        (4, 6),
        "i:1 uses 95% of maxmemory",
    ),
    Case {
        alert: "DunlinRefusesWritesForMemory",
        troubled: &[("dunlin_errors_total{I,code=\"OOM\"}", "0+60x30")],
        calm: &["7x30"],
        labels: &[("job", "dunlin"), ("code", "OOM")],
        minutes: (2, 4),
        summary: "i:1 refuses writes because its memory is full",
    },
    case(
        "DunlinEvicts",
        &[("dunlin_evicted_keys_total{I}", "0+120x30")],
        &["7x30"],
        (10, 12),
        "i:1 evicts 2 keys a second",
    ),
    case(
        "DunlinHitRateLow",
        &[
            ("dunlin_keyspace_hits_total{I}", "0+1200x30"),
            ("dunlin_keyspace_misses_total{I}", "0+3600x30"),
        ],
        // Few reads say nothing.
        &["0+1x30", "0+9x30"],
        (15, 17),
        "Only 25% of the reads of i:1 find their key",
    ),
    case(
        "DunlinConnectionsNearLimit",
        &[("dunlin_connected_clients{I}", "96x30"), ("dunlin_max_clients{I}", "100x30")],
        &["10x30", "100x30"],
        (4, 6),
        "i:1 has 96% of its connections in use",
    ),
    case(
        "DunlinConnectionsRefused",
        &[("dunlin_connections_rejected_total{I}", "0 0 0+2x30")],
        &["5x30"],
        (1, 12),
        "i:1 has refused 10 connections in five minutes",
    ),
    Case {
        alert: "DunlinFailedLogins",
        troubled: &[("dunlin_access_denied_total{I,reason=\"login\"}", "0+60x30")],
        calm: &["0+1x30"],
        labels: &[("job", "dunlin"), ("reason", "login")],
        minutes: (5, 7),
        summary: "1 logins a second fail at i:1",
    },
    Case {
        alert: "DunlinSlowCommands",
        troubled: &[
            ("dunlin_command_duration_seconds_bucket{I,command=\"sort\",le=\"0.05\"}", "0+0x30"),
            ("dunlin_command_duration_seconds_bucket{I,command=\"sort\",le=\"0.1\"}", "0+100x30"),
            ("dunlin_command_duration_seconds_bucket{I,command=\"sort\",le=\"+Inf\"}", "0+100x30"),
        ],
        calm: &["0+100x30", "0+100x30", "0+100x30"],
        labels: &[("command", "sort")],
        minutes: (10, 12),
        summary: "1 % of sort on i:1 takes 99.5ms and more",
    },
    Case {
        alert: "DunlinProcessorFull",
        troubled: &[
            ("dunlin_cpu_seconds_total{I,mode=\"user\"}", "0+110x30"),
            ("dunlin_cpu_seconds_total{I,mode=\"system\"}", "0+6x30"),
            ("dunlin_threads{I}", "2x30"),
        ],
        calm: &["0+100x30", "0+6x30", "2x30"],
        labels: NONE,
        minutes: (14, 16),
        summary: "The threads of i:1 are busy all the time",
    },
];

impl Case {
    fn series(&self) -> Vec<Value> {
        let place = |name: &str, place: &str| {
            name.replacen('I', &format!("job=\"dunlin\",instance=\"{place}\""), 1)
        };
        let troubled = self.troubled.iter().map(|(name, values)| (place(name, "i:1"), *values));
        let calm = self.troubled.iter().zip(self.calm);
        let calm = calm.map(|((name, _), values)| (place(name, "calm:1"), *values));
        let series = troubled.chain(calm);
        series.map(|(series, values)| json!({"series": series, "values": values})).collect()
    }

    fn test(&self, rule: &Value) -> Value {
        let mut labels = json!({"instance": "i:1", "severity": rule["labels"]["severity"]});
        for (name, value) in self.labels {
            labels[*name] = (*value).into();
        }
        let mut annotations = rule["annotations"].clone();
        annotations["summary"] = self.summary.into();
        let (quiet, fires) = self.minutes;
        json!({
            "name": self.alert,
            "interval": "1m",
            "input_series": self.series(),
            "alert_rule_test": [
                {"eval_time": format!("{quiet}m"), "alertname": self.alert, "exp_alerts": []},
                {"eval_time": format!("{fires}m"), "alertname": self.alert,
                 "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}]},
            ],
        })
    }
}

#[test]
fn each_alert_waits_as_long_as_it_says() -> Result<()> {
    let rules = rules("deploy/alerts.yml")?;
    let named = |name: &str| rules.iter().find(|own| own["alert"] == name);
    let tests: Result<Vec<Value>> = CASES
        .iter()
        .map(|case| Ok(case.test(named(case.alert).with_context(|| format!("no {}", case.alert))?)))
        .collect();
    let tried: BTreeSet<&str> = CASES.iter().map(|case| case.alert).collect();
    for rule in &rules {
        let name = rule["alert"].as_str().context("a name")?;
        ensure!(tried.contains(name), "{name} is not tried");
    }
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("alerts.test.yml");
    let run = |tests: Value| -> Result<()> {
        let rules = path("deploy/alerts.yml");
        let text = json!({"rule_files": [rules], "evaluation_interval": "1m", "tests": tests});
        // JSON is YAML.
        fs::write(&file, text.to_string())?;
        promtool(&["test", "rules", file.to_str().context("a path of text")?], b"")
    };
    let mut tests = tests?;
    run(tests.clone().into())?;
    // The tool does find faults.
    tests[0]["alert_rule_test"][1]["exp_alerts"][0]["exp_labels"]["severity"] = "warning".into();
    ensure!(run(tests.into()).is_err());
    Ok(())
}

/// Whoever is woken finds what to do.
#[test]
fn each_alert_has_its_part_of_the_page() -> Result<()> {
    let page = fs::read_to_string(path("docs/operations.md"))?;
    let mut sections: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    for rule in rules("deploy/alerts.yml")? {
        let name = rule["alert"].as_str().context("a name")?;
        let notes = &rule["annotations"];
        for note in ["summary", "description"] {
            ensure!(notes[note].as_str().is_some_and(|text| text.len() > 10), "{name}: {note}");
        }
        let runbook = format!("docs/operations.md#{}", name.to_lowercase());
        ensure!(notes["runbook"] == *runbook, "{name}: {}", notes["runbook"]);
        ensure!(sections.remove(name), "docs/operations.md has no part {name}");
    }
    let left: Vec<_> = sections.iter().filter(|own| own.starts_with("Dunlin")).collect();
    ensure!(left.is_empty(), "no such alerts: {left:?}");
    Ok(())
}
