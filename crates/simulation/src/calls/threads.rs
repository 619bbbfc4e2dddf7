//! Threads and what they sleep for, clocks, and what the system says of itself.

use std::time::Duration;

use anyhow::Result;

use super::{WELL, fault, value};
use crate::hold::Call;
use crate::objects::ThreadNumber;
use crate::outcome::{Done, Outcome};
use crate::world::{ProcessNumber, World};

/// Bytes of memory that a machine has.
const MEMORY: u64 = 4 << 30;
/// Descriptors that a process may have.
const DESCRIPTORS: u64 = 20_000;

/// A time of the system as nanoseconds.
pub(super) fn nanoseconds(memory: crate::memory::Memory, address: u64) -> Result<u64, i32> {
    let seconds = memory.number(address).map_err(fault)?;
    let rest = memory.number(address + 8).map_err(fault)?;
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
}

impl World {
    pub(super) fn futex(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Result<Done> {
        let a = call.arguments;
        let operation = a[1] as i32 & libc::FUTEX_CMD_MASK;
        Ok(match operation {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => self.sleep_at(thread, process, call),
            libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
                value(self.wake_sleepers(process, a[0], a[2] as u32 as usize))
            }
            _ => self.refuse(call)?,
        })
    }

    fn sleep_at(&mut self, thread: ThreadNumber, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let it = self.threads.get_mut(&thread).ok_or(libc::ESRCH)?;
        if it.is_woken {
            return WELL;
        }
        let (is_asleep, deadline) = (it.sleeps_at.is_some(), it.deadline);
        if is_asleep {
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                self.forget_sleeper(thread, process);
                return Err(libc::ETIMEDOUT);
            }
            return Ok(Outcome::Wait);
        }
        let memory = self.memory(process)?;
        if memory.word(a[0]).map_err(fault)? != a[2] as u32 {
            return Err(libc::EAGAIN);
        }
        if a[3] != 0 {
            let time = nanoseconds(memory, a[3])?;
            let is_relative = a[1] as i32 & libc::FUTEX_CMD_MASK == libc::FUTEX_WAIT;
            let after = if is_relative {
                time
            } else if a[1] as i32 & libc::FUTEX_CLOCK_REALTIME != 0 {
                time.saturating_sub(self.wall_clock())
            } else {
                time.saturating_sub(self.now)
            };
            if after == 0 {
                return Err(libc::ETIMEDOUT);
            }
            self.deadline(thread, after);
        }
        let it = self.processes.get_mut(&process).ok_or(libc::ESRCH)?;
        it.sleepers.entry(a[0]).or_default().push(thread);
        self.threads.get_mut(&thread).ok_or(libc::ESRCH)?.sleeps_at = Some(a[0]);
        Ok(Outcome::Wait)
    }

    fn forget_sleeper(&mut self, thread: ThreadNumber, process: ProcessNumber) {
        let Some(at) = self.threads.get_mut(&thread).and_then(|it| it.sleeps_at.take()) else {
            return;
        };
        let Some(it) = self.processes.get_mut(&process) else { return };
        if let Some(sleepers) = it.sleepers.get_mut(&at) {
            sleepers.retain(|it| *it != thread);
            if sleepers.is_empty() {
                it.sleepers.remove(&at);
            }
        }
    }

    /// Wakes at most this many threads that sleep at a word, and returns how many.
    pub(crate) fn wake_sleepers(&mut self, process: ProcessNumber, at: u64, most: usize) -> usize {
        let mut woken = 0;
        while woken < most {
            let sleepers = self.processes.get(&process).and_then(|it| it.sleepers.get(&at));
            let Some(sleepers) = sleepers.filter(|it| !it.is_empty()) else { break };
            let sleepers = sleepers.clone();
            let thread = sleepers[self.random.below(sleepers.len())];
            self.forget_sleeper(thread, process);
            if let Some(it) = self.threads.get_mut(&thread) {
                it.is_woken = true;
            }
            self.wake(thread);
            woken += 1;
        }
        woken
    }

    pub(super) fn clock(&mut self, process: ProcessNumber, clock: u64, to: u64) -> Done {
        let time = match clock as i32 {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => self.wall_clock(),
            _ => self.now,
        };
        let mut bytes = (time / 1_000_000_000).to_le_bytes().to_vec();
        bytes.extend_from_slice(&(time % 1_000_000_000).to_le_bytes());
        self.memory(process)?.write(to, &bytes).map_err(fault)?;
        WELL
    }

    pub(super) fn time_of_day(&mut self, process: ProcessNumber, to: u64) -> Done {
        let time = self.wall_clock();
        let mut bytes = (time / 1_000_000_000).to_le_bytes().to_vec();
        bytes.extend_from_slice(&(time % 1_000_000_000 / 1_000).to_le_bytes());
        self.memory(process)?.write(to, &bytes).map_err(fault)?;
        WELL
    }

    pub(super) fn sleep(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Done {
        let a = call.arguments;
        let memory = self.memory(process)?;
        let after = if call.number == libc::SYS_nanosleep {
            nanoseconds(memory, a[0])?
        } else {
            let time = nanoseconds(memory, a[2])?;
            let is_absolute = a[1] as i32 & libc::TIMER_ABSTIME != 0;
            let is_wall_clock = a[0] as i32 == libc::CLOCK_REALTIME;
            match (is_absolute, is_wall_clock) {
                (false, _) => time,
                (true, true) => time.saturating_sub(self.wall_clock()),
                (true, false) => time.saturating_sub(self.now),
            }
        };
        let deadline = self.deadline(thread, after);
        if deadline <= self.now { WELL } else { Ok(Outcome::Wait) }
    }

    pub(super) fn clone_thread(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let (flags, at) = if call.number == libc::SYS_clone {
            (a[0], a[3])
        } else {
            let memory = self.memory(process)?;
            (memory.number(a[0]).map_err(fault)?, memory.number(a[0] + 16).map_err(fault)?)
        };
        if flags & libc::CLONE_THREAD as u64 == 0 {
            // A process of its own.
            return Err(libc::ENOSYS);
        }
        let it = self.processes.get_mut(&process).ok_or(libc::ESRCH)?;
        it.next_number_at = if flags & libc::CLONE_CHILD_CLEARTID as u64 == 0 { 0 } else { at };
        Ok(Outcome::GoOn)
    }

    pub(super) fn wait_for_signal(&mut self, _: ThreadNumber, process: ProcessNumber) -> Done {
        let it = self.processes.get_mut(&process).ok_or(libc::ESRCH)?;
        match it.signals.pop_front() {
            Some(signal) => Ok(Outcome::Value(i64::from(signal))),
            None => Ok(Outcome::Wait),
        }
    }

    pub(super) fn random_bytes(&mut self, process: ProcessNumber, to: u64, length: u64) -> Done {
        let bytes = self.random.bytes((length as usize).min(1 << 20));
        self.memory(process)?.write(to, &bytes).map_err(fault)?;
        value(bytes.len())
    }

    pub(super) fn usage(&mut self, process: ProcessNumber, to: u64) -> Done {
        let mut bytes = vec![0; 144];
        let microseconds = Duration::from_nanos(self.now / 10).as_micros() as u64;
        bytes[..8].copy_from_slice(&(microseconds / 1_000_000).to_le_bytes());
        bytes[8..16].copy_from_slice(&(microseconds % 1_000_000).to_le_bytes());
        self.memory(process)?.write(to, &bytes).map_err(fault)?;
        WELL
    }

    pub(super) fn system_information(&mut self, process: ProcessNumber, to: u64) -> Done {
        let mut bytes = vec![0; 112];
        bytes[..8].copy_from_slice(&(self.now / 1_000_000_000).to_le_bytes());
        bytes[32..40].copy_from_slice(&MEMORY.to_le_bytes());
        bytes[40..48].copy_from_slice(&(MEMORY / 2).to_le_bytes());
        bytes[104..108].copy_from_slice(&1_u32.to_le_bytes());
        self.memory(process)?.write(to, &bytes).map_err(fault)?;
        WELL
    }

    pub(super) fn limits(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        if a[3] == 0 {
            return WELL;
        }
        let limits = match a[1] as u32 {
            libc::RLIMIT_NOFILE => [DESCRIPTORS, DESCRIPTORS],
            libc::RLIMIT_STACK => [8 << 20, u64::MAX],
            _ => [u64::MAX, u64::MAX],
        };
        let bytes: Vec<u8> = limits.iter().flat_map(|limit| limit.to_le_bytes()).collect();
        self.memory(process)?.write(a[3], &bytes).map_err(fault)?;
        WELL
    }
}
