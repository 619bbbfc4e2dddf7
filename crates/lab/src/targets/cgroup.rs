//! Starving a process: a cgroup of version 1 or 2 gives it less processor time or memory than the
//! machine has. The cgroup is made inside the lab's own, or, where version 2 allows limits only
//! there, inside one above it. It is removed with the process. The cgroups of a lab that was killed
//! are removed by the next one; a lock shows whether they are in use.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::target::Limits;

/// The beginning of the names of all of them.
const PREFIX: &str = "dunlin-lab-";
/// Processor time is divided anew after this many microseconds: the kernel's usual period.
const PERIOD_US: f64 = 100_000.0;
/// The kernel deals out no less, in microseconds.
const LEAST_US: f64 = 1_000.0;
/// How long processes that were killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// How far below a hierarchy's root to search for leftovers.
const DEEPEST: usize = 12;

/// The groups of this process.
static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// One cgroup, or with version 1 one for each limited resource. Dropping it removes them; no
/// process may be in it any more.
#[derive(Debug)]
pub(crate) struct Cgroup {
    groups: Vec<Group>,
}

/// One directory of the cgroup file system, which the lab has made.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    version: Version,
    /// Locked for as long as it is in use.
    _lock: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A hierarchy that is mounted, and where the lab itself is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    /// For version 1, the resources that it limits.
    controllers: Vec<String>,
    mount: PathBuf,
    own: PathBuf,
}

impl Cgroup {
    /// Makes one with these limits.
    ///
    /// # Errors
    /// This machine has no cgroups, or does not let the lab make any: why, for a reader.
    pub(crate) fn make(limits: &Limits) -> Result<Self, String> {
        let wanted: Vec<&str> =
            [("cpu", limits.cpus.is_some()), ("memory", limits.memory.is_some())]
                .into_iter()
                .filter_map(|(name, is_wanted)| is_wanted.then_some(name))
                .collect();
        let hierarchies = hierarchies();
        let mut cgroup = Cgroup { groups: Vec::new() };
        let mut second = Vec::new();
        for controller in wanted {
            let first = hierarchies.iter().find(|one| {
                one.version == Version::One && one.controllers.iter().any(|own| own == controller)
            });
            let Some(first) = first else {
                second.push(controller);
                continue;
            };
            // Two controllers may share a hierarchy.
            if !cgroup.groups.iter().any(|group| group.path.starts_with(&first.own)) {
                let group = Group::make(&first.own, Version::One);
                cgroup.groups.push(group.map_err(|error| unable(&first.own, &error))?);
            }
        }
        if !second.is_empty() {
            let hierarchy = hierarchies.iter().find(|one| one.version == Version::Two);
            let hierarchy = hierarchy.ok_or("this machine has no cgroups that limit it")?;
            let parent = parent_of_two(hierarchy, &second)?;
            let group = Group::make(&parent, Version::Two);
            cgroup.groups.push(group.map_err(|error| unable(&parent, &error))?);
        }
        let mut done = Limits::default();
        for group in &cgroup.groups {
            let own = group.limit(limits).map_err(|error| unable(&group.path, &error))?;
            done = Limits { cpus: done.cpus.or(own.cpus), memory: done.memory.or(own.memory) };
        }
        // A kernel may have the controller, but not this limit: the target would be measured as if
        // it had.
        if done != *limits {
            return Err("it cannot be starved here: this kernel has no such limit".to_owned());
        }
        Ok(cgroup)
    }

    /// The files to which a process writes `0` to enter it.
    ///
    /// # Errors
    /// It is gone, or is not ours.
    pub(crate) fn entrances(&self) -> io::Result<Vec<File>> {
        let entrance =
            |group: &Group| File::options().write(true).open(group.path.join("cgroup.procs"));
        self.groups.iter().map(entrance).collect()
    }

    /// How often the kernel has killed a process of it because its memory was full.
    pub(crate) fn kills(&self) -> u64 {
        let kills = |group: &Group| {
            let name = match group.version {
                Version::One => "memory.oom_control",
                Version::Two => "memory.events",
            };
            let text = fs::read_to_string(group.path.join(name)).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
            count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
        };
        self.groups.iter().map(kills).sum()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for group in &self.groups {
            held().remove(&group.path);
            // A cgroup that cannot be removed now is removed when the lab runs again.
            let _ = remove(&group.path, Instant::now() + PATIENCE);
        }
    }
}

impl Group {
    fn make(parent: &Path, version: Version) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            // A thread that removes all of them waits until this one is among them.
            let mut all = held();
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            all.insert(path.clone());
            drop(all);
            let lock = File::open(&path)?;
            let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            // Another lab may have taken it for a leftover before it was locked.
            let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            let is_there = fs::metadata(&path).ok().map(inode) == lock.metadata().ok().map(inode);
            if is_locked && is_there {
                return Ok(Group { path, version, _lock: lock });
            }
            held().remove(&path);
        }
    }

    /// Sets the limits that it can have, and returns them.
    fn limit(&self, limits: &Limits) -> io::Result<Limits> {
        let write = |name: &str, value: String| -> io::Result<()> {
            File::options().write(true).open(self.path.join(name))?.write_all(value.as_bytes())
        };
        let has = |name: &str| self.path.join(name).exists();
        let quota = limits.cpus.map(|cpus| (cpus * PERIOD_US).max(LEAST_US).round());
        let files = match self.version {
            Version::One => {
                ["cpu.cfs_quota_us", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
            }
            Version::Two => ["cpu.max", "memory.max", "memory.swap.max"],
        };
        let [share, memory, swap] = files;
        let quota = quota.filter(|_| has(share));
        let bytes = limits.memory.filter(|_| has(memory));
        match (self.version, quota) {
            (Version::One, Some(quota)) => {
                write("cpu.cfs_period_us", PERIOD_US.to_string())?;
                write(share, quota.to_string())?;
            }
            (Version::Two, Some(quota)) => write(share, format!("{quota} {PERIOD_US}"))?,
            (_, None) => {}
        }
        if let Some(bytes) = bytes {
            write(memory, bytes.to_string())?;
            // Version 1 has memory and swap together; some kernels do not count swap.
            if has(swap) {
                let most = if self.version == Version::One { bytes } else { 0 };
                write(swap, most.to_string())?;
            }
        }
        Ok(Limits { cpus: limits.cpus.filter(|_| quota.is_some()), memory: bytes })
    }
}

fn unable(path: &Path, error: &io::Error) -> String {
    format!("it cannot be starved here: {}: {error}", path.display())
}

/// The nearest cgroup of version 2, from the lab's own upwards, whose children may have these
/// limits. A cgroup that has processes itself does not allow them, except the root.
fn parent_of_two(hierarchy: &Hierarchy, wanted: &[&str]) -> Result<PathBuf, String> {
    let mut reason = "this machine has no cgroups that limit it".to_owned();
    let above = hierarchy.own.ancestors();
    for path in above.take_while(|path| path.starts_with(&hierarchy.mount)) {
        let words = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
        let has_all =
            |text: &str| wanted.iter().all(|one| text.split_whitespace().any(|word| word == *one));
        if !has_all(&words("cgroup.controllers")) {
            continue;
        }
        if has_all(&words("cgroup.subtree_control")) {
            return Ok(path.to_owned());
        }
        let more: Vec<String> = wanted.iter().map(|one| format!("+{one}")).collect();
        let control = File::options().write(true).open(path.join("cgroup.subtree_control"));
        match control.and_then(|mut file| file.write_all(more.join(" ").as_bytes())) {
            Ok(()) => return Ok(path.to_owned()),
            Err(error) => reason = unable(path, &error),
        }
    }
    Err(reason)
}

/// The hierarchies of this machine, with the lab's place in each.
fn hierarchies() -> Vec<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    parse(&mounts, &own)
}

fn parse(mounts: &str, own: &str) -> Vec<Hierarchy> {
    let hierarchy = |line: &str| {
        let (before, behind) = line.split_once(" - ")?;
        let fields: Vec<&str> = before.split(' ').collect();
        let (root, mount) = (unescaped(fields.get(3)?), unescaped(fields.get(4)?));
        let mut behind = behind.split(' ');
        let version = match behind.next()? {
            "cgroup" => Version::One,
            "cgroup2" => Version::Two,
            _ => return None,
        };
        let options: Vec<&str> = behind.nth(1)?.split(',').collect();
        let place = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
            let is_it = match version {
                Version::One => names.split(',').any(|name| options.contains(&name)),
                Version::Two => names.is_empty(),
            };
            is_it.then_some(path)
        })?;
        // The mounted part may be only a part of the hierarchy.
        let inside = Path::new(place).strip_prefix(&root).unwrap_or(Path::new(""));
        let own = if inside.as_os_str().is_empty() { mount.clone() } else { mount.join(inside) };
        let controllers = options.iter().map(|name| (*name).to_owned()).collect();
        Some(Hierarchy { version, controllers, mount, own })
    };
    mounts.lines().filter_map(hierarchy).collect()
}

/// A path as the kernel lists it: spaces and similar characters are octal numbers.
fn unescaped(text: &str) -> PathBuf {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, character)| text.replace(code, character))
        .into()
}

/// Removes an empty cgroup, as soon as no process is in it any more.
fn remove(path: &Path, until: Instant) -> io::Result<()> {
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
            Ok(()) => return Ok(()),
        }
    }
}

/// Removes the cgroups that killed labs have left behind; returns how many.
pub(crate) fn remove_leftovers() -> usize {
    hierarchies().iter().map(|hierarchy| remove_below(&hierarchy.mount, DEEPEST)).sum()
}

fn remove_below(directory: &Path, depth: usize) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let inner = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    inner
        .map(|entry| {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                usize::from(remove_if_left(&path).is_ok())
            } else if depth > 0 {
                remove_below(&path, depth - 1)
            } else {
                0
            }
        })
        .sum()
}

fn remove_if_left(path: &Path) -> io::Result<()> {
    let lock = File::open(path)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_dir(path)
}

/// Removes the cgroups of this process, whose processes have been killed: it is about to end
/// abruptly. None is made afterwards: a thread that tries waits for that end.
pub(crate) fn remove_all() {
    let until = Instant::now() + PATIENCE;
    let all = held();
    for path in &*all {
        let _ = remove(path, until);
    }
    std::mem::forget(all);
}

fn held() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Limits = Limits { cpus: Some(0.25), memory: Some(64 << 20) };

    #[test]
    fn the_place_of_the_lab_is_read_for_both_versions() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      35 31 0:32 /a /sys/fs/cgroup/my\\040memory rw shared:9 - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/user.slice/one.scope\n";
        let found = parse(mounts, own);
        let paths: Vec<(Version, &str)> =
            found.iter().map(|one| (one.version, one.own.to_str().unwrap_or_default())).collect();
        let expected = [
            (Version::One, "/sys/fs/cgroup/cpu,cpuacct"),
            (Version::One, "/sys/fs/cgroup/my memory/b"),
            (Version::Two, "/sys/fs/cgroup/unified/user.slice/one.scope"),
        ];
        assert_eq!(paths, expected);
        assert!(found[0].controllers.iter().any(|name| name == "cpu"), "{found:?}");
        assert_eq!(parse("nonsense\n", own), []);
    }

    #[test]
    fn version_two_is_limited_where_its_children_may_be() {
        let mount = tempfile::tempdir().expect("there is room");
        let own = mount.path().join("user.slice/one.scope");
        fs::create_dir_all(&own).expect("there is room");
        let write = |path: &Path, name: &str, text: &str| {
            fs::write(path.join(name), text).expect("there is room");
        };
        let hierarchy = Hierarchy {
            version: Version::Two,
            controllers: Vec::new(),
            mount: mount.path().to_owned(),
            own: own.clone(),
        };
        // The nearest group has processes of its own: the kernel would refuse, here a missing file
        // does.
        write(&own, "cgroup.controllers", "cpu memory pids\n");
        let slice = mount.path().join("user.slice");
        write(&slice, "cgroup.controllers", "cpu memory pids\n");
        let reason = parent_of_two(&hierarchy, &["cpu", "memory"]).expect_err("nobody may");
        assert!(reason.contains("cannot be starved here"), "{reason}");
        write(&slice, "cgroup.subtree_control", "cpu memory\n");
        assert_eq!(parent_of_two(&hierarchy, &["cpu", "memory"]), Ok(slice));
        assert!(parent_of_two(&hierarchy, &["io"]).is_err());
    }

    #[test]
    fn limits_are_written_as_each_version_has_them() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().to_owned();
        let lock = || File::open(&path).expect("it is there");
        let files = [
            "cpu.cfs_period_us",
            "cpu.cfs_quota_us",
            "memory.limit_in_bytes",
            "memory.memsw.limit_in_bytes",
            "cpu.max",
            "memory.max",
            "memory.swap.max",
        ];
        for name in files {
            fs::write(path.join(name), "").expect("there is room");
        }
        let read = |name: &str| fs::read_to_string(path.join(name)).expect("it is there");
        for version in [Version::One, Version::Two] {
            let group = Group { path: path.clone(), version, _lock: lock() };
            assert_eq!(group.limit(&BOTH).expect("there is room"), BOTH);
        }
        assert_eq!((read(files[0]), read(files[1])), ("100000".to_owned(), "25000".to_owned()));
        assert_eq!(read(files[2]), (64 << 20).to_string());
        assert_eq!((read(files[4]), read(files[6])), ("25000 100000".to_owned(), "0".to_owned()));
        assert_eq!(read(files[5]), (64 << 20).to_string());
        // A limit that a kernel does not have is not reported as set.
        fs::remove_file(path.join("cpu.max")).expect("it is there");
        let group = Group { path: path.clone(), version: Version::Two, _lock: lock() };
        let done = group.limit(&BOTH).expect("there is room");
        assert_eq!(done, Limits { cpus: None, ..BOTH });
    }

    #[test]
    fn a_cgroup_is_made_and_removed_and_so_are_abandoned_ones() {
        let cgroup = match Cgroup::make(&BOTH) {
            Ok(cgroup) => cgroup,
            // Not every machine allows it; such a machine reports that.
            Err(reason) => {
                assert!(reason.contains("starved") || reason.contains("no cgroups"), "{reason}");
                return;
            }
        };
        let paths: Vec<PathBuf> = cgroup.groups.iter().map(|group| group.path.clone()).collect();
        assert_eq!(cgroup.entrances().expect("they are there").len(), paths.len());
        assert_eq!(cgroup.kills(), 0);
        let left = paths[0].with_file_name(format!("{PREFIX}left-by-a-test"));
        fs::create_dir(&left).expect("its neighbour was made");
        // Another test may be as quick.
        remove_leftovers();
        assert!(!left.exists() && paths.iter().all(|path| path.exists()));
        drop(cgroup);
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
