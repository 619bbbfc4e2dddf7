//! The disk of a machine: what its files hold, and what of that would survive a loss of power.
//!
//! A write is in the file at once, and outlives the process. It outlives the machine after a sync
//! of the file. A name outlives the machine after a sync of its directory. Chance decides what is
//! left of unsynced data when the power fails: each name separately, and the writes of a file up to
//! some byte.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;

/// The number of a file or directory.
pub(crate) type Inode = u64;

/// The number of the root.
pub(crate) const ROOT: Inode = 1;

/// The name that the root of a disk has in the paths of its machine.
pub(crate) const PREFIX: &str = "/data";

/// An error, by the system's number.
pub(crate) type Failed = i32;

/// One change of a file's bytes.
#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl Change {
    fn apply(&self, data: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => {
                let end = at + bytes.len();
                if data.len() < end {
                    data.resize(end, 0);
                }
                data[*at..end].copy_from_slice(bytes);
            }
            Change::Resize(length) => data.resize(*length, 0),
        }
    }
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) data: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

/// One change of a directory's names.
#[derive(Clone, Debug)]
enum Naming {
    Add(Vec<u8>, Inode),
    Remove(Vec<u8>),
    Move { from: Vec<u8>, to: Vec<u8>, inode: Inode },
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<Vec<u8>, Inode>) {
        match self {
            Naming::Add(name, inode) => drop(names.insert(name.clone(), *inode)),
            Naming::Remove(name) => drop(names.remove(name)),
            Naming::Move { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

/// A directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    pub(crate) names: BTreeMap<Vec<u8>, Inode>,
    durable: BTreeMap<Vec<u8>, Inode>,
    unsynced: Vec<Naming>,
}

/// What a number stands for.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(File),
    Directory(Directory),
}

/// All files of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    nodes: BTreeMap<Inode, Node>,
    next: Inode,
    /// Which open file has locked an inode.
    pub(crate) locks: BTreeMap<Inode, u64>,
    /// When each was changed, in nanoseconds.
    pub(crate) changed: BTreeMap<Inode, u64>,
    /// When it failed for the first time.
    pub(crate) failed: Option<u64>,
}

impl Disk {
    pub(crate) fn new() -> Disk {
        let root = Node::Directory(Directory::default());
        let (locks, changed, failed) = (BTreeMap::new(), BTreeMap::new(), None);
        Disk { nodes: BTreeMap::from([(ROOT, root)]), next: ROOT + 1, locks, changed, failed }
    }

    pub(crate) fn node(&self, inode: Inode) -> Result<&Node, Failed> {
        self.nodes.get(&inode).ok_or(libc::ENOENT)
    }

    pub(crate) fn file(&self, inode: Inode) -> Result<&File, Failed> {
        match self.node(inode)? {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(libc::EISDIR),
        }
    }

    fn file_mut(&mut self, inode: Inode) -> Result<&mut File, Failed> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(libc::EISDIR),
            None => Err(libc::ENOENT),
        }
    }

    pub(crate) fn directory(&self, inode: Inode) -> Result<&Directory, Failed> {
        match self.node(inode)? {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(libc::ENOTDIR),
        }
    }

    fn directory_mut(&mut self, inode: Inode) -> Result<&mut Directory, Failed> {
        match self.nodes.get_mut(&inode) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(libc::ENOTDIR),
            None => Err(libc::ENOENT),
        }
    }

    /// The directory and the name to which a path below the root leads.
    pub(crate) fn parent<'p>(&self, path: &'p [u8]) -> Result<(Inode, &'p [u8]), Failed> {
        let mut parts = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
        let mut name = parts.next().ok_or(libc::EEXIST)?;
        let mut directory = ROOT;
        for part in parts {
            directory = *self.directory(directory)?.names.get(name).ok_or(libc::ENOENT)?;
            name = part;
        }
        self.directory(directory)?;
        Ok((directory, name))
    }

    /// What a path below the root leads to.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Inode, Failed> {
        match self.parent(path) {
            Ok((directory, name)) => {
                self.directory(directory)?.names.get(name).copied().ok_or(libc::ENOENT)
            }
            Err(libc::EEXIST) => Ok(ROOT),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, path: &[u8], node: Node) -> Result<Inode, Failed> {
        let (directory, name) = self.parent(path)?;
        if self.directory(directory)?.names.contains_key(name) {
            return Err(libc::EEXIST);
        }
        let inode = self.next;
        self.next += 1;
        self.nodes.insert(inode, node);
        self.change_names(directory, Naming::Add(name.to_vec(), inode))?;
        Ok(inode)
    }

    fn change_names(&mut self, directory: Inode, change: Naming) -> Result<(), Failed> {
        let directory = self.directory_mut(directory)?;
        change.apply(&mut directory.names);
        directory.unsynced.push(change);
        Ok(())
    }

    /// Makes an empty file.
    pub(crate) fn create(&mut self, path: &[u8]) -> Result<Inode, Failed> {
        self.add(path, Node::File(File::default()))
    }

    /// Makes an empty directory.
    pub(crate) fn make_directory(&mut self, path: &[u8]) -> Result<Inode, Failed> {
        self.add(path, Node::Directory(Directory::default()))
    }

    /// Removes a name. What it stood for goes on as long as it is open.
    pub(crate) fn unlink(&mut self, path: &[u8], is_directory: bool) -> Result<(), Failed> {
        let (directory, name) = self.parent(path)?;
        let inode = *self.directory(directory)?.names.get(name).ok_or(libc::ENOENT)?;
        match (self.node(inode)?, is_directory) {
            (Node::Directory(it), true) if !it.names.is_empty() => return Err(libc::ENOTEMPTY),
            (Node::Directory(_), false) => return Err(libc::EISDIR),
            (Node::File(_), true) => return Err(libc::ENOTDIR),
            _ => {}
        }
        self.change_names(directory, Naming::Remove(name.to_vec()))
    }

    /// Gives a file or directory another name.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Failed> {
        let (old, from) = self.parent(from)?;
        let (new, to) = self.parent(to)?;
        let inode = *self.directory(old)?.names.get(from).ok_or(libc::ENOENT)?;
        let (from, to) = (from.to_vec(), to.to_vec());
        if old == new {
            return self.change_names(old, Naming::Move { from, to, inode });
        }
        self.change_names(new, Naming::Add(to, inode))?;
        self.change_names(old, Naming::Remove(from))
    }

    /// Gives a file one more name.
    pub(crate) fn link(&mut self, from: &[u8], to: &[u8]) -> Result<(), Failed> {
        let inode = self.find(from)?;
        self.file(inode)?;
        let (directory, name) = self.parent(to)?;
        if self.directory(directory)?.names.contains_key(name) {
            return Err(libc::EEXIST);
        }
        self.change_names(directory, Naming::Add(name.to_vec(), inode))
    }

    fn change(&mut self, inode: Inode, change: Change) -> Result<(), Failed> {
        let file = self.file_mut(inode)?;
        change.apply(&mut file.data);
        file.unsynced.push(change);
        Ok(())
    }

    pub(crate) fn write(&mut self, inode: Inode, at: usize, bytes: Vec<u8>) -> Result<(), Failed> {
        self.change(inode, Change::Write { at, bytes })
    }

    pub(crate) fn resize(&mut self, inode: Inode, length: usize) -> Result<(), Failed> {
        self.change(inode, Change::Resize(length))
    }

    /// How many changes of a file or directory a sync that begins now covers.
    pub(crate) fn unsynced(&self, inode: Inode) -> Result<usize, Failed> {
        Ok(match self.node(inode)? {
            Node::File(file) => file.unsynced.len(),
            Node::Directory(directory) => directory.unsynced.len(),
        })
    }

    /// A sync is over that has covered this many changes.
    pub(crate) fn sync(&mut self, inode: Inode, covered: usize) {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(file)) => {
                let covered = covered.min(file.unsynced.len());
                for change in file.unsynced.drain(..covered) {
                    change.apply(&mut file.durable);
                }
            }
            Some(Node::Directory(directory)) => {
                let covered = covered.min(directory.unsynced.len());
                for change in directory.unsynced.drain(..covered) {
                    change.apply(&mut directory.durable);
                }
            }
            None => {}
        }
    }

    /// The system writes back everything, as it does by itself after a while.
    pub(crate) fn write_back(&mut self) {
        let inodes: Vec<Inode> = self.nodes.keys().copied().collect();
        inodes.into_iter().for_each(|inode| self.sync(inode, usize::MAX));
    }

    /// Whether a file has got another name, while an earlier name of another file in the same
    /// directory is not durable: the later one may survive a loss of power without the earlier one.
    pub(crate) fn has_names_at_stake(&self) -> bool {
        let is_at_stake = |directory: &Directory| {
            let mut added = BTreeSet::new();
            directory.unsynced.iter().any(|change| match change {
                Naming::Add(_, inode) => {
                    added.insert(*inode);
                    false
                }
                Naming::Remove(_) => false,
                Naming::Move { inode, .. } => added.iter().any(|other| other != inode),
            })
        };
        self.nodes.values().any(|node| match node {
            Node::File(_) => false,
            Node::Directory(directory) => is_at_stake(directory),
        })
    }

    /// The power fails: what was not synced is there or not, and no file is open.
    pub(crate) fn lose_power(&mut self, random: &mut Random) -> String {
        let mut report = Vec::new();
        let survival = Survival::draw(random);
        for (inode, node) in &mut self.nodes {
            match node {
                Node::File(file) => {
                    let changes = std::mem::take(&mut file.unsynced);
                    let all: usize = changes.iter().map(Change::length).sum();
                    if all > 0 {
                        let kept = random.below(all + 1);
                        report.push(format!("{kept} of {all} new bytes of file {inode}"));
                        keep_bytes(changes, kept, &mut file.durable);
                    }
                    file.data.clone_from(&file.durable);
                }
                Node::Directory(directory) => {
                    let changes = std::mem::take(&mut directory.unsynced);
                    for (change, is_kept) in survival.choose(changes, random) {
                        report
                            .push(format!("{change:?} {}", if is_kept { "kept" } else { "lost" }));
                        if is_kept {
                            change.apply(&mut directory.durable);
                        }
                    }
                    directory.names.clone_from(&directory.durable);
                }
            }
        }
        self.forget_open();
        report.join("; ")
    }

    /// No process is left: what has no name is gone, and so are locks.
    pub(crate) fn forget_open(&mut self) {
        self.locks.clear();
        let mut named = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Directory(directory) = node {
                named.extend(directory.names.values());
                named.extend(directory.durable.values());
                named.extend(directory.unsynced.iter().filter_map(|change| match change {
                    Naming::Add(_, inode) | Naming::Move { inode, .. } => Some(*inode),
                    Naming::Remove(_) => None,
                }));
            }
        }
        self.nodes.retain(|inode, _| named.contains(inode));
        self.changed.retain(|inode, _| named.contains(inode));
    }

    /// The files, with their paths and bytes.
    pub(crate) fn all(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        self.walk(ROOT, "", &mut found);
        found
    }

    fn walk(&self, directory: Inode, path: &str, found: &mut Vec<(String, Vec<u8>)>) {
        let Ok(directory) = self.directory(directory) else { return };
        for (name, &inode) in &directory.names {
            let path = format!("{path}/{}", String::from_utf8_lossy(name));
            match self.node(inode) {
                Ok(Node::File(file)) => found.push((path, file.data.clone())),
                Ok(Node::Directory(_)) => self.walk(inode, &path, found),
                Err(_) => found.push((format!("{path} (lost)"), Vec::new())),
            }
        }
    }
}

/// Which changes of names survive a loss of power that no sync has covered.
#[derive(Clone, Copy, Debug)]
enum Survival {
    /// The first ones: most file systems keep the order.
    InOrder,
    /// Any.
    Each,
    /// All but one.
    Most,
    /// One of them.
    Few,
}

impl Survival {
    fn draw(random: &mut Random) -> Survival {
        let all =
            [Survival::InOrder, Survival::InOrder, Survival::Each, Survival::Most, Survival::Few];
        all[random.below(all.len())]
    }

    fn choose(self, changes: Vec<Naming>, random: &mut Random) -> Vec<(Naming, bool)> {
        let one = random.below(changes.len() + 1);
        let mut is_kept = |number: usize| match self {
            Survival::InOrder => number < one,
            Survival::Each => random.percent(50),
            Survival::Most => number != one,
            Survival::Few => number == one,
        };
        let decided = changes.into_iter().enumerate();
        decided.map(|(number, change)| (change, is_kept(number))).collect()
    }
}

impl Change {
    fn length(&self) -> usize {
        match self {
            Change::Write { bytes, .. } => bytes.len(),
            Change::Resize(_) => 1,
        }
    }
}

/// Applies changes up to some byte.
fn keep_bytes(changes: Vec<Change>, mut kept: usize, durable: &mut Vec<u8>) {
    for mut change in changes {
        let length = change.length();
        if let Change::Write { bytes, .. } = &mut change {
            bytes.truncate(kept);
        }
        if kept == 0 {
            return;
        }
        change.apply(durable);
        kept -= length.min(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file holds after the power has failed, for many draws.
    fn outcomes(prepare: impl Fn(&mut Disk), path: &[u8]) -> BTreeSet<Option<Vec<u8>>> {
        let after = |seed| {
            let mut disk = Disk::new();
            prepare(&mut disk);
            disk.lose_power(&mut Random::new(seed));
            disk.find(path).ok().map(|inode| disk.file(inode).expect("a file").data.clone())
        };
        (0..200).map(after).collect()
    }

    fn sync(disk: &mut Disk, inode: Inode) {
        let covered = disk.unsynced(inode).expect("it is there");
        disk.sync(inode, covered);
    }

    #[test]
    fn what_was_synced_survives_and_the_rest_up_to_some_byte() {
        let found = outcomes(
            |disk| {
                let file = disk.create(b"/a").expect("a new name");
                disk.write(file, 0, b"ab".to_vec()).expect("a file");
                sync(disk, file);
                sync(disk, ROOT);
                disk.write(file, 2, b"cd".to_vec()).expect("a file");
            },
            b"/a",
        );
        let expected = [&b"ab"[..], b"abc", b"abcd"].map(|it| Some(it.to_vec()));
        assert_eq!(found, BTreeSet::from(expected));
    }

    #[test]
    fn a_name_survives_a_sync_of_its_directory_and_not_one_of_its_file() {
        let create = |disk: &mut Disk| {
            let file = disk.create(b"/a").expect("a new name");
            disk.write(file, 0, b"x".to_vec()).expect("a file");
            sync(disk, file);
        };
        let whole = Some(b"x".to_vec());
        assert_eq!(outcomes(create, b"/a"), BTreeSet::from([None, whole.clone()]));
        let with_name = |disk: &mut Disk| {
            create(disk);
            sync(disk, ROOT);
        };
        assert_eq!(outcomes(with_name, b"/a"), BTreeSet::from([whole]));
    }

    #[test]
    fn a_file_that_replaces_another_is_there_or_the_other() {
        let replace = |disk: &mut Disk| {
            for (name, bytes) in [(b"/a", b"old"), (b"/b", b"new")] {
                let file = disk.create(name).expect("a new name");
                disk.write(file, 0, bytes.to_vec()).expect("a file");
                sync(disk, file);
            }
            sync(disk, ROOT);
            disk.rename(b"/b", b"/a").expect("both are there");
        };
        let expected = [b"old", b"new"].map(|it| Some(it.to_vec()));
        assert_eq!(outcomes(replace, b"/a"), BTreeSet::from(expected));
    }
}
