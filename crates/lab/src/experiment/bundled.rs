//! The experiments that are part of the program.

/// A name and the text of its file.
macro_rules! bundled {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("bundled/", $name, ".toml")))),+]
    };
}

/// The experiments by name, in the order of the report.
pub const BUNDLED: &[(&str, &str)] = bundled![
    "api-read",
    "persistence",
    "rewrite-memory",
    "self-heal",
    "api-departments",
    "api-kill",
    "api-starved",
    "pipeline",
    "snapshot",
    "full-sync",
    "replication-lag",
    "failover",
    "cluster-failover",
    "cluster-move",
    "etcd-members",
    "moving",
    "backup",
    "blob-batch",
    "blob-connections",
    "blob-memory",
    "blob-large",
    "value-size",
    "cluster-values",
    "mixed-size",
    "threads",
    "hot-key",
    "hot-burst",
    "tls-storm",
    "efficiency",
];

/// The text of the bundled experiment of this name.
pub fn text(name: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|(bundled, _)| *bundled == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Definition, suite};
    use super::*;

    #[test]
    fn every_file_can_be_filled_in_at_every_point_in_both_sizes() {
        for (name, text) in BUNDLED {
            for full in [false, true] {
                let choice = Choice { full, ..Choice::default() };
                let definition = Definition::new(name, text, &choice);
                let definition = definition.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(definition.name(), *name);
                assert!(definition.repetitions() > 1, "{name}: one run has no spread");
            }
        }
    }

    #[test]
    fn the_quick_size_is_quick() {
        // Beside Dunlin one peer, as on most machines.
        let targets = vec!["dunlin".to_owned()];
        let mut all = 0.0;
        for (name, text) in BUNDLED {
            let choice = Choice { targets: targets.clone(), ..Choice::default() };
            let definition = Definition::new(name, text, &choice);
            let definition = definition.unwrap_or_else(|error| panic!("{error}"));
            let seconds = 2.0 * suite::estimate_seconds(&definition);
            assert!(seconds < 180.0, "{name} takes {seconds:.0} s");
            all += seconds;
        }
        assert!(all < 30.0 * 60.0, "all take {all:.0} s");
    }
}
