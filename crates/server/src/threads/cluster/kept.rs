//! What a node keeps in `cluster-config-file`: its name, to which epochs its data belong, and the
//! cluster as it last knew it, for a start while etcd cannot be reached.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster::control::Lineage;
use cluster::ids::{Epoch, NodeId, ShardId};
use cluster::topology::Topology;
use engine::engine::random_id;
use engine::journal::backlog::Position;
use persist::config_file;
use process::paths::{self, reason};
use serde::{Deserialize, Serialize};

/// Where the data ended when the server was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoppedAt {
    /// The history.
    pub(super) history: String,
    /// The offset up to which the data have it.
    pub(super) offset: u64,
}

/// How many earlier names of a history are known at most.
const NAMES: usize = 16;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The node's name.
    pub(super) node: NodeId,
    /// The name of the cluster of which it is a node; empty when that is not known.
    #[serde(default)]
    pub(super) cluster: String,
    /// For how long it has promised things that may not be over, in milliseconds; zero if all are.
    #[serde(default)]
    pub(super) promised_ms: u64,
    /// The shard in which the data count, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shard: Option<ShardId>,
    /// The epochs to which the data belong.
    #[serde(default)]
    pub(super) lineage: Lineage,
    /// Whether the data lack nothing of what the node has ever confirmed.
    #[serde(default)]
    pub(super) complete: bool,
    /// The name that the history of the data has in the last of them.
    #[serde(default)]
    pub(super) history: String,
    /// The name that it gets if this node leads: known before anybody can have written under it.
    #[serde(default = "random_id")]
    pub(super) next: String,
    /// The names that it had before, each with the last epoch at that time; the newest last. A file
    /// may be older than the last change of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<(String, Epoch)>,
    /// Where the data ended when the server was stopped, if nothing has happened since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped_at: Option<StoppedAt>,
    /// The cluster.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "shared")]
    pub(super) topology: Option<Arc<Topology>>,
}

/// What is shared stands in the file as if it were not.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &Option<Arc<T>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'d, T: Deserialize<'d>, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Option<Arc<T>>, D::Error> {
        Ok(Option::<T>::deserialize(from)?.map(Arc::new))
    }
}

impl Kept {
    fn of_new_node() -> Result<Kept, String> {
        let mut name = [0; 20];
        base::rng::entropy(&mut name).map_err(|error| reason(&error))?;
        Ok(Kept {
            node: NodeId(name),
            cluster: String::new(),
            promised_ms: 0,
            shard: None,
            lineage: Lineage::default(),
            complete: false,
            history: String::new(),
            next: random_id(),
            earlier: Vec::new(),
            stopped_at: None,
            topology: None,
        })
    }

    /// The node is to be one of this cluster. Returns the name of the one that it was a node of
    /// before, if it is another one: nothing that it knew of that is of use.
    pub(super) fn enter(&mut self, cluster: &str) -> Option<String> {
        let known = self.topology.as_ref().map(|topology| topology.name.clone());
        let before = Some(self.cluster.clone()).filter(|name| !name.is_empty()).or(known);
        let before = before.filter(|name| name != cluster);
        if before.is_some() {
            (self.topology, self.shard, self.lineage) = (None, None, Lineage::default());
            self.earlier.clear();
            (self.complete, self.stopped_at) = (false, None);
        }
        cluster.clone_into(&mut self.cluster);
        before
    }

    /// The data are of this epoch from now on, and their history has this name.
    pub(super) fn note(&mut self, epoch: Epoch, start: u64, history: String) {
        self.rename(history);
        self.lineage.note(epoch, start);
        if epoch == 0 {
            // They are others from now on, or count for nothing where the node is now.
            self.earlier.clear();
        }
    }

    /// The history of the data has this name from now on.
    pub(super) fn rename(&mut self, history: String) {
        if history != self.history {
            if history == self.next {
                self.next = random_id();
            }
            let before = std::mem::replace(&mut self.history, history);
            self.earlier.retain(|(name, _)| *name != before && *name != self.history);
            if !before.is_empty() {
                self.earlier.push((before, self.lineage.last()));
            }
            let surplus = self.earlier.len().saturating_sub(NAMES);
            self.earlier.drain(..surplus);
        }
    }

    /// The data were loaded, and end at this place: they are of no later epoch than that.
    pub(super) fn loaded(&mut self, history: &str, offset: u64) {
        if history == self.next {
            // The node was killed as soon as it led.
            self.rename(history.to_owned());
        }
        // Who has led under that name may have lost all data since: no two histories have one.
        self.next = random_id();
        let (epoch, _) = self.epoch_of(history, offset);
        self.lineage.cut_to(epoch);
    }

    /// The epoch for which data count that end at this place, and its start; zeros: for none.
    pub(super) fn epoch_of(&self, history: &str, offset: u64) -> (Epoch, u64) {
        if self.history == history {
            return self.lineage.at(offset);
        }
        let earlier = self.earlier.iter().find(|(name, _)| name == history);
        earlier.map_or((0, 0), |(_, last)| self.lineage.at_until(offset, *last))
    }

    /// What the node knows of this cluster before etcd says more. Who is primary it does not know.
    pub(super) fn known(&self, cluster: &str) -> Option<Arc<Topology>> {
        let known = self.topology.as_deref().filter(|known| known.name == cluster);
        let mut known = Topology::clone(known?);
        known.shards.values_mut().for_each(|shard| shard.leader = None);
        Some(Arc::new(known))
    }
}

/// The file with it.
pub struct KeptFile {
    path: PathBuf,
    pub(super) kept: Kept,
}

impl KeptFile {
    /// Reads the file, or begins one with a new name for the node.
    ///
    /// # Errors
    /// It cannot be read or written, or has something else in it.
    pub fn open(name: &[u8]) -> Result<KeptFile, String> {
        let path = std::path::absolute(paths::path(name)).map_err(|error| reason(&error))?;
        let kept = match fs::read(&path) {
            Ok(text) => {
                let read = serde_json::from_slice(&text);
                read.map_err(|error| format!("it is no file of a node of a cluster: {error}"))?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Kept::of_new_node()?,
            Err(error) => return Err(reason(&error)),
        };
        let file = KeptFile { path, kept };
        file.store().map_err(|error| reason(&error))?;
        Ok(file)
    }

    /// The node's name.
    pub fn node(&self) -> NodeId {
        self.kept.node
    }

    /// What the node knows of this cluster before etcd says more.
    pub fn known(&self, cluster: &[u8]) -> Option<Arc<Topology>> {
        self.kept.known(&String::from_utf8_lossy(cluster))
    }

    /// Where the stream of the data ended when the server was stopped, if it was in order.
    pub fn stopped_at(&self) -> Option<Position> {
        let StoppedAt { history, offset } = self.kept.stopped_at.clone()?;
        Some(Position { history, offset })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it, so that it outlives the machine.
    ///
    /// # Errors
    /// The system's. The file is what it was.
    pub(super) fn store(&self) -> io::Result<()> {
        config_file::replace(&self.path, &self.text())
    }

    /// What stands in the file.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(&self.kept).expect("its keys are strings");
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_node_keeps_its_name_and_what_it_knows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes.conf");
        let mut first = KeptFile::open(path.as_os_str().as_bytes()).unwrap();
        first.kept.lineage.note(7, 3);
        first.kept.complete = true;
        first.kept.stopped_at = Some(StoppedAt { history: "h".into(), offset: 9 });
        let topology = Topology::new("c".into(), 3, [], [], []);
        first.kept.topology = Some(Arc::new(topology));
        first.store().unwrap();
        let again = KeptFile::open(path.as_os_str().as_bytes()).unwrap();
        assert_eq!(again.kept, first.kept);
        let other = directory.path().join("other.conf");
        let other = KeptFile::open(other.as_os_str().as_bytes()).unwrap();
        assert_ne!(other.kept.node, first.kept.node);
    }

    #[test]
    fn what_a_node_knew_of_another_cluster_is_forgotten() {
        let mut kept = Kept::of_new_node().unwrap();
        assert_eq!(kept.enter("one"), None);
        kept.lineage.note(7, 3);
        kept.complete = true;
        kept.topology = Some(Arc::new(Topology::new("one".into(), 3, [], [], [])));
        let known = kept.clone();
        assert_eq!(kept.enter("one"), None);
        assert_eq!(kept, known);
        // As written before the name was kept.
        kept.cluster.clear();
        assert_eq!(kept.enter("two"), Some("one".into()));
        assert_eq!((kept.lineage.last(), kept.complete, kept.topology), (0, false, None));
        assert_eq!((kept.node, &*kept.cluster), (known.node, "two"));
    }

    #[test]
    fn files_from_before_a_change_of_names_count_for_the_epochs_of_that_time() {
        let mut kept = Kept::of_new_node().unwrap();
        kept.note(5, 100, "h5".into());
        kept.note(7, 145, "h7".into());
        assert_eq!(kept.epoch_of("h7", 150), (7, 145));
        assert_eq!(kept.epoch_of("h7", 144), (5, 100));
        assert_eq!(kept.epoch_of("h5", 150), (5, 100), "what it has past 145 is of its own epoch");
        assert_eq!(kept.epoch_of("h5", 99), (0, 0));
        assert_eq!(kept.epoch_of("h6", 150), (0, 0));
        // The name changes with the link, the epoch when the data reach its start.
        kept.note(7, 145, "h9".into());
        kept.note(9, 160, "h9".into());
        assert_eq!((kept.epoch_of("h7", 170), kept.epoch_of("h9", 170)), ((7, 145), (9, 160)));
        // It has led, and was killed before it could note that.
        let mut led = kept.clone();
        led.note(11, 170, "h9".into());
        let name = led.next.clone();
        led.loaded(&name, 180);
        assert_eq!((led.epoch_of(&name, 180), &led.history), ((11, 170), &name));
        assert_ne!(led.next, name);
        // Its data are lost.
        let name = led.next.clone();
        led.loaded("of a new server", 0);
        assert_ne!(led.next, name);
        // The last file is older than that.
        kept.loaded("h7", 150);
        assert_eq!((kept.epoch_of("h7", 170), kept.epoch_of("h9", 170)), ((7, 145), (7, 145)));
        // All data are replaced.
        kept.note(0, 0, "h9".into());
        assert_eq!((kept.epoch_of("h7", 170), kept.epoch_of("h5", 150)), ((0, 0), (0, 0)));
        for number in 0..100 {
            kept.rename(format!("{number}"));
        }
        assert_eq!(kept.earlier.len(), NAMES);
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes.conf");
        let text = "0123 127.0.0.1:6379@16379 myself,master - 0 0 1 connected\n";
        fs::write(&path, text).unwrap();
        let refused = KeptFile::open(path.as_os_str().as_bytes()).err().unwrap();
        assert!(refused.starts_with("it is no file of a node of a cluster"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
