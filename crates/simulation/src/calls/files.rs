//! Files that are open.

use super::{WELL, descriptor, fault, value};
use crate::disk::{Inode, Node};
use crate::hold::Call;
use crate::objects::{Kind, MachineNumber, ObjectNumber, Open, ThreadNumber};
use crate::outcome::{Done, Outcome};
use crate::world::{ProcessNumber, World};

impl World {
    /// The open file behind a descriptor: its machine, its object and its inode.
    pub(super) fn open_file(
        &self,
        process: ProcessNumber,
        argument: u64,
    ) -> Result<(MachineNumber, ObjectNumber, Inode), i32> {
        let number = self.object_of(process, descriptor(argument))?;
        let object = self.object(number)?;
        match &object.kind {
            Kind::Open(open) => Ok((object.machine, number, open.inode)),
            _ => Err(libc::EINVAL),
        }
    }

    fn open_mut(&mut self, number: ObjectNumber) -> Result<&mut Open, i32> {
        match &mut self.object_mut(number)?.kind {
            Kind::Open(open) => Ok(open),
            _ => Err(libc::EINVAL),
        }
    }

    pub(super) fn read_at(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        if self.object_of(process, descriptor(a[0])).is_err() {
            return Ok(Outcome::GoOn);
        }
        let (machine, _, inode) = self.open_file(process, a[0])?;
        let data = &self.machines[machine].disk.file(inode)?.data;
        let from = (a[3] as usize).min(data.len());
        let bytes = data[from..data.len().min(from.saturating_add(a[2] as usize))].to_vec();
        self.memory(process)?.write(a[1], &bytes).map_err(fault)?;
        value(bytes.len())
    }

    pub(super) fn write_at(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let (machine, _, inode) = self.open_file(process, a[0])?;
        let bytes = self.memory(process)?.read(a[1], a[2] as usize).map_err(fault)?;
        self.machines[machine].disk.write(inode, a[3] as usize, bytes)?;
        value(a[2] as usize)
    }

    pub(super) fn seek(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        if self.object_of(process, descriptor(a[0])).is_err() {
            return Ok(Outcome::GoOn);
        }
        let (machine, number, inode) = self.open_file(process, a[0])?;
        let length = match self.machines[machine].disk.node(inode)? {
            Node::File(file) => file.data.len(),
            Node::Directory(_) => 0,
        };
        let position = self.open_mut(number)?.position;
        let base = match a[2] as i32 {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => position,
            libc::SEEK_END => length,
            _ => return Err(libc::EINVAL),
        };
        let position = base.checked_add_signed(a[1] as isize).ok_or(libc::EINVAL)?;
        self.open_mut(number)?.position = position;
        value(position)
    }

    /// A sync covers what was written before it began, and takes its time.
    pub(super) fn sync(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Done {
        let Ok((machine, _, inode)) = self.open_file(process, call.arguments[0]) else {
            return Err(libc::EINVAL);
        };
        let it = self.threads.get(&thread).ok_or(libc::ESRCH)?;
        match it.begun {
            None => {
                let covered = self.machines[machine].disk.unsynced(inode)?;
                let takes = self.random.between(self.weather.sync.0, self.weather.sync.1);
                self.deadline(thread, takes);
                self.threads.get_mut(&thread).ok_or(libc::ESRCH)?.begun = Some(covered);
                Ok(Outcome::Wait)
            }
            Some(_) if it.deadline.is_some_and(|deadline| deadline > self.now) => Ok(Outcome::Wait),
            Some(covered) => {
                let chance = self.weather.failing_syncs;
                if chance != 0 && self.random.once_in(chance) {
                    let now = self.now;
                    self.machines[machine].disk.failed.get_or_insert(now);
                    return Err(libc::EIO);
                }
                self.machines[machine].disk.sync(inode, covered);
                WELL
            }
        }
    }

    /// Whether a thread of a machine waits for a sync now: of a directory, or of a file.
    #[must_use]
    pub fn is_syncing(&self, machine: MachineNumber, of_directory: bool) -> bool {
        self.threads.values().filter(|thread| thread.begun.is_some()).any(|thread| {
            let open = self.open_file(thread.process, thread.call.arguments[0]);
            open.is_ok_and(|(its, _, inode)| {
                let is_directory = self.machines[its].disk.directory(inode).is_ok();
                its == machine && is_directory == of_directory
            })
        })
    }

    /// Whether a loss of power may now leave a name of a machine's disk without an earlier one.
    #[must_use]
    pub fn has_names_at_stake(&self, machine: MachineNumber) -> bool {
        self.machines[machine].disk.has_names_at_stake()
    }

    pub(super) fn truncate(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let (machine, _, inode) = self.open_file(process, call.arguments[0])?;
        self.machines[machine].disk.resize(inode, call.arguments[1] as usize)?;
        WELL
    }

    pub(super) fn lock(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let (machine, number, inode) = self.open_file(process, call.arguments[0])?;
        let locks = &mut self.machines[machine].disk.locks;
        let owner = locks.get(&inode).copied();
        if call.arguments[1] as i32 & libc::LOCK_UN != 0 {
            if owner == Some(number) {
                locks.remove(&inode);
            }
            return WELL;
        }
        match owner {
            Some(owner) if owner != number => Err(libc::EAGAIN),
            _ => {
                locks.insert(inode, number);
                WELL
            }
        }
    }

    /// The names in a directory.
    pub(super) fn list(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        if self.object_of(process, descriptor(a[0])).is_err() {
            return Ok(Outcome::GoOn);
        }
        let (machine, number, inode) = self.open_file(process, a[0])?;
        let position = self.open_mut(number)?.position;
        let disk = &self.machines[machine].disk;
        let (mut bytes, mut taken) = (Vec::new(), 0);
        for (name, &inode) in disk.directory(inode)?.names.iter().skip(position) {
            let length = (19 + name.len() + 1).next_multiple_of(8);
            if bytes.len() + length > a[2] as usize {
                break;
            }
            taken += 1;
            let begin = bytes.len();
            bytes.extend_from_slice(&inode.to_le_bytes());
            bytes.extend_from_slice(&((position + taken) as u64).to_le_bytes());
            bytes.extend_from_slice(&(length as u16).to_le_bytes());
            let is_directory = disk.directory(inode).is_ok();
            bytes.push(if is_directory { libc::DT_DIR } else { libc::DT_REG });
            bytes.extend_from_slice(name);
            bytes.resize(begin + length, 0);
        }
        self.open_mut(number)?.position += taken;
        self.memory(process)?.write(a[1], &bytes).map_err(fault)?;
        value(bytes.len())
    }
}
