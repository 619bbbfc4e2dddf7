//! Paths: which of them lead to the disk of the machine, and which lead elsewhere.

use anyhow::Result;

use super::{WELL, descriptor, fault, value};
use crate::disk::{Inode, Node, PREFIX};
use crate::hold::Call;
use crate::objects::{Kind, MachineNumber, Object, Open};
use crate::outcome::{Done, Outcome};
use crate::world::{ProcessNumber, World};

/// Where a path leads.
enum Place {
    /// On the disk, below its root.
    Disk(Vec<u8>),
    /// A file of the real system that programs need to start: their code, and what describes it.
    Code,
    /// A text that the world makes up.
    Text(&'static str),
    Entropy,
    Nothing,
    Nowhere,
}

/// What files of the system say.
const TEXTS: &[(&str, &str)] = &[
    // No other clock: the counter of the processor does not show the time of the world.
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "simulated\n"),
    ("/proc/sys/net/core/somaxconn", "4096\n"),
    ("/proc/self/statm", "100000 20000 1000 1000 0 10000 0\n"),
];

/// The beginnings of paths to the code of programs.
const CODE: &[&str] = &["/lib", "/usr/", "/etc/ld.so", "/etc/localtime", "/bin/"];

/// Removes `.`, `..` and empty parts.
fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| [b"/", *part].concat()).collect()
}

impl World {
    /// The calls that concern paths.
    pub(super) fn dispatch_paths(&mut self, process: ProcessNumber, call: &Call) -> Result<Done> {
        let a = call.arguments;
        let here = libc::AT_FDCWD as u64;
        let machine = self.machine_of(process)?;
        Ok(match call.number {
            libc::SYS_open => self.open(process, here, a[0], a[1]),
            libc::SYS_openat => self.open(process, a[0], a[1], a[2]),
            libc::SYS_creat => Err(libc::ENOSYS),
            libc::SYS_mkdir => self.change(process, here, a[0], |it, path| {
                it.machines[machine].disk.make_directory(path).map(|_| ())
            }),
            libc::SYS_mkdirat => self.change(process, a[0], a[1], |it, path| {
                it.machines[machine].disk.make_directory(path).map(|_| ())
            }),
            libc::SYS_unlink | libc::SYS_rmdir => {
                let is_directory = call.number == libc::SYS_rmdir;
                self.change(process, here, a[0], |it, path| {
                    it.machines[machine].disk.unlink(path, is_directory)
                })
            }
            libc::SYS_unlinkat => {
                let is_directory = a[2] as i32 & libc::AT_REMOVEDIR != 0;
                self.change(process, a[0], a[1], |it, path| {
                    it.machines[machine].disk.unlink(path, is_directory)
                })
            }
            libc::SYS_rename => self.rename(process, (here, a[0]), (here, a[1])),
            libc::SYS_renameat | libc::SYS_renameat2 => {
                self.rename(process, (a[0], a[1]), (a[2], a[3]))
            }
            libc::SYS_linkat => self.link(process, (a[0], a[1]), (a[2], a[3])),
            libc::SYS_fstat => self.describe_descriptor(process, a[0], a[1]),
            libc::SYS_stat | libc::SYS_lstat => self.describe(process, here, a[0], a[1]),
            libc::SYS_newfstatat => {
                if a[3] as i32 & libc::AT_EMPTY_PATH != 0 {
                    self.describe_descriptor(process, a[0], a[2])
                } else {
                    self.describe(process, a[0], a[1], a[2])
                }
            }
            libc::SYS_statx => self.describe_at_length(process, call),
            libc::SYS_fstatfs | libc::SYS_statfs => Err(libc::ENOSYS),
            libc::SYS_access => self.access(process, here, a[0]),
            libc::SYS_faccessat | libc::SYS_faccessat2 => self.access(process, a[0], a[1]),
            libc::SYS_readlink | libc::SYS_readlinkat => Err(libc::EINVAL),
            libc::SYS_chdir => self.enter(process, a[0]),
            libc::SYS_getcwd => {
                let directory = &self.processes[&process].directory;
                let path = [PREFIX.as_bytes(), directory, b"\0"].concat();
                if path.len() > a[1] as usize {
                    return Ok(Err(libc::ERANGE));
                }
                match self.memory(process).and_then(|it| it.write(a[0], &path).map_err(fault)) {
                    Ok(()) => value(path.len()),
                    Err(error) => Err(error),
                }
            }
            libc::SYS_chmod | libc::SYS_fchmod | libc::SYS_fchmodat => WELL,
            _ => return self.refuse(call),
        })
    }

    fn place(&self, process: ProcessNumber, directory: u64, path: u64) -> Result<Place, i32> {
        let text = self.memory(process)?.text(path).map_err(fault)?;
        if text.is_empty() {
            return Err(libc::ENOENT);
        }
        let mut whole = Vec::new();
        if text[0] != b'/' {
            let base = if descriptor(directory) == libc::AT_FDCWD {
                &self.processes.get(&process).ok_or(libc::ESRCH)?.directory
            } else {
                let number = self.object_of(process, descriptor(directory))?;
                match &self.object(number)?.kind {
                    Kind::Open(open) => &open.path,
                    _ => return Err(libc::ENOTDIR),
                }
            };
            whole = [PREFIX.as_bytes(), base, b"/"].concat();
        }
        whole.extend_from_slice(&text);
        let whole = normal(&whole);
        if let Some(rest) = whole.strip_prefix(PREFIX.as_bytes())
            && (rest.is_empty() || rest[0] == b'/')
        {
            return Ok(Place::Disk(rest.to_vec()));
        }
        let text = String::from_utf8_lossy(&whole);
        if let Some((_, content)) = TEXTS.iter().find(|(path, _)| *path == text) {
            return Ok(Place::Text(content));
        }
        Ok(match &*text {
            "/dev/null" => Place::Nothing,
            "/dev/urandom" | "/dev/random" => Place::Entropy,
            path if CODE.iter().any(|start| path.starts_with(start)) => Place::Code,
            _ => Place::Nowhere,
        })
    }

    fn open(&mut self, process: ProcessNumber, directory: u64, path: u64, flags: u64) -> Done {
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        let kind = match self.place(process, directory, path)? {
            Place::Code => return Ok(Outcome::GoOn),
            Place::Nowhere => return Err(libc::ENOENT),
            Place::Text(text) => Kind::Text(text.bytes().collect()),
            Place::Nothing => Kind::Text(std::collections::VecDeque::new()),
            Place::Entropy => Kind::Entropy,
            Place::Disk(path) => {
                let inode = self.open_inode(machine, &path, flags as i32)?;
                let appends = flags as i32 & libc::O_APPEND != 0;
                Kind::Open(Open { inode, position: 0, appends, path })
            }
        };
        let number = self.add(Object::new(kind, machine));
        self.give(process, number)
    }

    fn open_inode(
        &mut self,
        machine: MachineNumber,
        path: &[u8],
        flags: i32,
    ) -> Result<Inode, i32> {
        let disk = &mut self.machines[machine].disk;
        let has = |flag: i32| flags & flag == flag;
        let inode = match disk.find(path) {
            Err(libc::ENOENT) if has(libc::O_CREAT) => disk.create(path)?,
            Ok(_) if has(libc::O_CREAT | libc::O_EXCL) => return Err(libc::EEXIST),
            found => found?,
        };
        let writes = has(libc::O_WRONLY) || has(libc::O_RDWR);
        let is_file = disk.file(inode).is_ok();
        if writes && !is_file {
            return Err(libc::EISDIR);
        }
        if has(libc::O_DIRECTORY) && is_file {
            return Err(libc::ENOTDIR);
        }
        if has(libc::O_TRUNC) && !disk.file(inode)?.data.is_empty() {
            disk.resize(inode, 0)?;
        }
        disk.changed.entry(inode).or_insert(self.now);
        Ok(inode)
    }

    fn change(
        &mut self,
        process: ProcessNumber,
        directory: u64,
        path: u64,
        change: impl FnOnce(&mut World, &[u8]) -> Result<(), i32>,
    ) -> Done {
        match self.place(process, directory, path)? {
            Place::Disk(path) => change(self, &path)?,
            Place::Nowhere => return Err(libc::ENOENT),
            _ => return Err(libc::EACCES),
        }
        WELL
    }

    fn rename(&mut self, process: ProcessNumber, from: (u64, u64), to: (u64, u64)) -> Done {
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        let from = self.place(process, from.0, from.1)?;
        let to = self.place(process, to.0, to.1)?;
        match (from, to) {
            (Place::Disk(from), Place::Disk(to)) => {
                self.machines[machine].disk.rename(&from, &to)?;
                WELL
            }
            _ => Err(libc::EACCES),
        }
    }

    fn link(&mut self, process: ProcessNumber, from: (u64, u64), to: (u64, u64)) -> Done {
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        let from = self.place(process, from.0, from.1)?;
        let to = self.place(process, to.0, to.1)?;
        match (from, to) {
            (Place::Disk(from), Place::Disk(to)) => {
                self.machines[machine].disk.link(&from, &to)?;
                WELL
            }
            _ => Err(libc::EACCES),
        }
    }

    fn access(&mut self, process: ProcessNumber, directory: u64, path: u64) -> Done {
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        match self.place(process, directory, path)? {
            Place::Disk(path) => self.machines[machine].disk.find(&path).map(|_| Outcome::Value(0)),
            Place::Code => Ok(Outcome::GoOn),
            Place::Nowhere => Err(libc::ENOENT),
            _ => WELL,
        }
    }

    fn enter(&mut self, process: ProcessNumber, path: u64) -> Done {
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        let Place::Disk(path) = self.place(process, libc::AT_FDCWD as u64, path)? else {
            return Err(libc::ENOENT);
        };
        let inode = self.machines[machine].disk.find(&path)?;
        self.machines[machine].disk.directory(inode)?;
        self.processes.get_mut(&process).ok_or(libc::ESRCH)?.directory = path;
        WELL
    }

    fn describe(&mut self, process: ProcessNumber, directory: u64, path: u64, to: u64) -> Done {
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        match self.place(process, directory, path)? {
            Place::Disk(path) => {
                let inode = self.machines[machine].disk.find(&path)?;
                self.write_description(process, machine, inode, to)
            }
            Place::Code => Ok(Outcome::GoOn),
            _ => Err(libc::ENOENT),
        }
    }

    fn describe_descriptor(&mut self, process: ProcessNumber, argument: u64, to: u64) -> Done {
        if descriptor(argument) == libc::AT_FDCWD {
            return Err(libc::EINVAL);
        }
        let Ok(number) = self.object_of(process, descriptor(argument)) else {
            return Ok(Outcome::GoOn);
        };
        let (machine, inode) = match &self.object(number)? {
            Object { kind: Kind::Open(open), machine, .. } => (*machine, open.inode),
            Object { kind: Kind::Text(_) | Kind::Entropy, .. } => {
                let mut bytes = vec![0; 144];
                bytes[24..28].copy_from_slice(&(libc::S_IFCHR | 0o666).to_le_bytes());
                self.memory(process)?.write(to, &bytes).map_err(fault)?;
                return WELL;
            }
            _ => return Err(libc::EINVAL),
        };
        self.write_description(process, machine, inode, to)
    }

    /// Kind and rights, length, and when it was changed.
    fn facts(&self, machine: MachineNumber, inode: Inode) -> Result<(u32, u64, u64), i32> {
        let disk = &self.machines[machine].disk;
        let (mode, length) = match disk.node(inode)? {
            Node::File(file) => (libc::S_IFREG | 0o644, file.data.len() as u64),
            Node::Directory(_) => (libc::S_IFDIR | 0o755, 4096),
        };
        let changed = disk.changed.get(&inode).copied().unwrap_or(0);
        Ok((mode, length, self.wall_clock() - self.now + changed))
    }

    fn write_description(
        &mut self,
        process: ProcessNumber,
        machine: MachineNumber,
        inode: Inode,
        to: u64,
    ) -> Done {
        let (mode, length, changed) = self.facts(machine, inode)?;
        let mut bytes = vec![0; 144];
        let mut put = |at: usize, number: u64| {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        };
        put(0, machine as u64 + 1);
        put(8, inode);
        put(16, 1);
        put(24, u64::from(mode));
        put(48, length);
        put(56, 4096);
        put(64, length.div_ceil(512));
        for at in [72, 88, 104] {
            put(at, changed / 1_000_000_000);
            put(at + 8, changed % 1_000_000_000);
        }
        self.memory(process)?.write(to, &bytes).map_err(fault)?;
        WELL
    }

    fn describe_at_length(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let is_empty = a[2] as i32 & libc::AT_EMPTY_PATH != 0;
        let (machine, inode) = if is_empty
            && self.memory(process)?.read(a[1], 1).map_err(fault)? == [0]
        {
            let Ok(number) = self.object_of(process, descriptor(a[0])) else {
                return Ok(Outcome::GoOn);
            };
            match self.object(number)? {
                Object { kind: Kind::Open(open), machine, .. } => (*machine, open.inode),
                Object { kind: Kind::Text(_) | Kind::Entropy, .. } => {
                    let mut bytes = vec![0; 256];
                    bytes[..4].copy_from_slice(&0x7ff_u32.to_le_bytes());
                    bytes[28..30].copy_from_slice(&((libc::S_IFCHR | 0o666) as u16).to_le_bytes());
                    self.memory(process)?.write(a[4], &bytes).map_err(fault)?;
                    return WELL;
                }
                _ => return Err(libc::EINVAL),
            }
        } else {
            let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
            match self.place(process, a[0], a[1])? {
                Place::Disk(path) => (machine, self.machines[machine].disk.find(&path)?),
                Place::Code => return Ok(Outcome::GoOn),
                _ => return Err(libc::ENOENT),
            }
        };
        let (mode, length, changed) = self.facts(machine, inode)?;
        let mut bytes = vec![0; 256];
        bytes[..4].copy_from_slice(&0x7ff_u32.to_le_bytes());
        bytes[4..8].copy_from_slice(&4096_u32.to_le_bytes());
        bytes[16..20].copy_from_slice(&1_u32.to_le_bytes());
        bytes[28..30].copy_from_slice(&(mode as u16).to_le_bytes());
        bytes[32..40].copy_from_slice(&inode.to_le_bytes());
        bytes[40..48].copy_from_slice(&length.to_le_bytes());
        bytes[48..56].copy_from_slice(&length.div_ceil(512).to_le_bytes());
        for at in [64, 80, 96, 112] {
            bytes[at..at + 8].copy_from_slice(&(changed / 1_000_000_000).to_le_bytes());
            let rest = (changed % 1_000_000_000) as u32;
            bytes[at + 8..at + 12].copy_from_slice(&rest.to_le_bytes());
        }
        bytes[140..144].copy_from_slice(&(machine as u32 + 1).to_le_bytes());
        self.memory(process)?.write(a[4], &bytes).map_err(fault)?;
        WELL
    }
}
