//! The system calls: what each does in the world.

mod events;
mod files;
mod names;
mod sockets;
mod threads;

use anyhow::Result;

use crate::hold::Call;
use crate::objects::{Kind, Object, ObjectNumber, ThreadNumber};
use crate::outcome::{Done, Outcome};
use crate::world::{ProcessNumber, World};

/// The first descriptor of an object of the world. Those below belong to the kernel.
const FIRST_DESCRIPTOR: i32 = 1000;

/// The answer of a call that succeeds and has nothing to say.
const WELL: Done = Ok(Outcome::Value(0));

/// A number as the answer.
fn value(number: usize) -> Done {
    Ok(Outcome::Value(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// A descriptor among the arguments.
fn descriptor(argument: u64) -> i32 {
    argument as u32 as i32
}

/// The process has given an address that it does not have.
fn fault<E>(_: E) -> i32 {
    libc::EFAULT
}

impl World {
    /// Does what a call asks for, as far as it can be done now.
    pub(crate) fn dispatch(&mut self, thread: ThreadNumber, call: &Call) -> Result<Done> {
        let process = self.thread(thread)?.process;
        let a = call.arguments;
        Ok(match call.number {
            libc::SYS_futex => self.futex(thread, process, call)?,
            libc::SYS_clock_gettime => self.clock(process, a[0], a[1]),
            libc::SYS_gettimeofday => self.time_of_day(process, a[0]),
            libc::SYS_clock_getres | libc::SYS_uname => Ok(Outcome::GoOn),
            libc::SYS_clock_nanosleep | libc::SYS_nanosleep => self.sleep(thread, process, call),
            libc::SYS_sched_yield => WELL,
            libc::SYS_clone | libc::SYS_clone3 => self.clone_thread(process, call),
            libc::SYS_set_tid_address => {
                self.thread_mut(thread)?.number_at = a[0];
                Ok(Outcome::GoOn)
            }
            libc::SYS_exit | libc::SYS_exit_group => Ok(Outcome::GoOn),
            libc::SYS_rt_sigtimedwait => self.wait_for_signal(thread, process),
            libc::SYS_getrandom => self.random_bytes(process, a[0], a[1]),
            libc::SYS_getpid => Ok(Outcome::Value(process.0 as i64 + 1000)),
            libc::SYS_getppid => Ok(Outcome::Value(1)),
            libc::SYS_getrusage => self.usage(process, a[1]),
            libc::SYS_sysinfo => self.system_information(process, a[0]),
            libc::SYS_prlimit64 => self.limits(process, call),
            libc::SYS_set_robust_list
            | libc::SYS_rseq
            | libc::SYS_gettid
            | libc::SYS_prctl
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_tgkill
            | libc::SYS_sched_getaffinity
            | libc::SYS_getpriority
            | libc::SYS_umask => Ok(Outcome::GoOn),
            libc::SYS_sched_setattr
            | libc::SYS_sched_setscheduler
            | libc::SYS_sched_getscheduler
            | libc::SYS_sched_setaffinity
            | libc::SYS_setpriority => WELL,
            _ => return self.dispatch_descriptors(thread, process, call),
        })
    }

    /// The calls that concern descriptors and paths.
    fn dispatch_descriptors(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Result<Done> {
        let a = call.arguments;
        Ok(match call.number {
            libc::SYS_read | libc::SYS_recvfrom => {
                self.read(thread, process, call, &[(a[1], a[2] as usize)])
            }
            libc::SYS_write | libc::SYS_sendto => {
                self.write(thread, process, call, &[(a[1], a[2] as usize)])
            }
            libc::SYS_pread64 => self.read_at(process, call),
            libc::SYS_pwrite64 => self.write_at(process, call),
            libc::SYS_readv | libc::SYS_writev => {
                let memory = self.memory(process);
                let parts = match memory.and_then(|it| it.parts(a[1], a[2] as usize).map_err(fault))
                {
                    Ok(parts) => parts,
                    Err(error) => return Ok(Err(error)),
                };
                if call.number == libc::SYS_readv {
                    self.read(thread, process, call, &parts)
                } else {
                    self.write(thread, process, call, &parts)
                }
            }
            libc::SYS_close => self.close(process, descriptor(a[0])),
            libc::SYS_fcntl => self.control(process, call),
            libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => self.duplicate(process, call),
            libc::SYS_ioctl => self.device_control(process, call),
            libc::SYS_eventfd2 => {
                let object = Object::new(Kind::Event(a[0]), self.machine_of(process)?);
                let number = self.add(object);
                self.set_nonblocking(number, a[1] & libc::O_NONBLOCK as u64 != 0);
                self.give(process, number)
            }
            libc::SYS_epoll_create1 | libc::SYS_epoll_create => {
                let machine = self.machine_of(process)?;
                let number = self.add(Object::new(Kind::Watch(Default::default()), machine));
                self.give(process, number)
            }
            libc::SYS_epoll_ctl => self.change_watch(process, call),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                self.wait_for_events(thread, process, call)
            }
            libc::SYS_poll | libc::SYS_ppoll => self.poll(thread, process, call),
            libc::SYS_socket => self.socket(process, call),
            libc::SYS_bind => self.bind(process, call),
            libc::SYS_listen => self.listen(process, call),
            libc::SYS_accept4 | libc::SYS_accept => self.accept(thread, process, call),
            libc::SYS_connect => self.connect(thread, process, call),
            libc::SYS_shutdown => self.shut_down(process, call),
            libc::SYS_getsockname | libc::SYS_getpeername => self.name_of_socket(process, call),
            libc::SYS_setsockopt => self.set_option(process, call),
            libc::SYS_getsockopt => self.get_option(process, call),
            libc::SYS_lseek => self.seek(process, call),
            libc::SYS_fsync | libc::SYS_fdatasync => self.sync(thread, process, call),
            libc::SYS_sync_file_range | libc::SYS_fadvise64 => WELL,
            libc::SYS_ftruncate => self.truncate(process, call),
            libc::SYS_fallocate => Err(libc::EOPNOTSUPP),
            libc::SYS_flock => self.lock(process, call),
            libc::SYS_getdents64 => self.list(process, call),
            _ => return self.dispatch_paths(process, call),
        })
    }

    fn machine_of(&self, process: ProcessNumber) -> Result<usize> {
        use anyhow::Context as _;
        Ok(self.processes.get(&process).context("a process that has ended")?.machine)
    }

    fn memory(&self, process: ProcessNumber) -> Result<crate::memory::Memory, i32> {
        Ok(self.processes.get(&process).ok_or(libc::ESRCH)?.memory())
    }

    fn object_of(&self, process: ProcessNumber, descriptor: i32) -> Result<ObjectNumber, i32> {
        let process = self.processes.get(&process).ok_or(libc::ESRCH)?;
        process.descriptors.get(&descriptor).copied().ok_or(libc::EBADF)
    }

    fn object(&self, number: ObjectNumber) -> Result<&Object, i32> {
        self.objects.get(&number).ok_or(libc::EBADF)
    }

    fn object_mut(&mut self, number: ObjectNumber) -> Result<&mut Object, i32> {
        self.objects.get_mut(&number).ok_or(libc::EBADF)
    }

    /// A descriptor more for an object: the lowest that is free.
    fn give(&mut self, process: ProcessNumber, object: ObjectNumber) -> Done {
        let process = self.processes.get_mut(&process).ok_or(libc::ESRCH)?;
        let free = |it: &i32| !process.descriptors.contains_key(it);
        let descriptor = (FIRST_DESCRIPTOR..).find(free).ok_or(libc::EMFILE)?;
        process.descriptors.insert(descriptor, object);
        if let Some(object) = self.objects.get_mut(&object) {
            object.references += 1;
        }
        Ok(Outcome::Value(i64::from(descriptor)))
    }

    fn set_nonblocking(&mut self, object: ObjectNumber, is_nonblocking: bool) {
        if let Some(object) = self.objects.get_mut(&object) {
            object.is_nonblocking = is_nonblocking;
        }
    }

    fn close(&mut self, process: ProcessNumber, descriptor: i32) -> Done {
        let it = self.processes.get_mut(&process).ok_or(libc::ESRCH)?;
        let Some(object) = it.descriptors.remove(&descriptor) else { return Ok(Outcome::GoOn) };
        // A set watches descriptors, as far as this one is the last of its object.
        if self.object(object)?.references == 1 {
            for (watch, descriptor) in self.object(object)?.watched.clone() {
                if let Some(Kind::Watch(it)) = self.objects.get_mut(&watch).map(|it| &mut it.kind) {
                    it.interests.remove(&descriptor);
                    it.happened.retain(|it| *it != descriptor);
                }
            }
        }
        self.release(object);
        WELL
    }

    /// A descriptor less stands for an object.
    pub(crate) fn release(&mut self, number: ObjectNumber) {
        let Some(object) = self.objects.get_mut(&number) else { return };
        object.references = object.references.saturating_sub(1);
        if object.references > 0 {
            return;
        }
        let Some(object) = self.objects.remove(&number) else { return };
        match object.kind {
            Kind::Open(open) => {
                let locks = &mut self.machines[object.machine].disk.locks;
                if locks.get(&open.inode) == Some(&number) {
                    locks.remove(&open.inode);
                }
            }
            Kind::Listener { port, queue } => {
                self.machines[object.machine].listeners.remove(&port);
                queue.into_iter().for_each(|end| self.release(end));
            }
            Kind::End(end) => self.end_connection(&end),
            _ => {}
        }
    }

    fn control(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let Ok(object) = self.object_of(process, descriptor(a[0])) else {
            return Ok(Outcome::GoOn);
        };
        match a[1] as i32 {
            libc::F_GETFD => Ok(Outcome::Value(1)),
            libc::F_SETFD => WELL,
            libc::F_GETFL => {
                let is_nonblocking = self.object(object)?.is_nonblocking;
                let flags = if is_nonblocking { libc::O_NONBLOCK } else { 0 } | libc::O_RDWR;
                Ok(Outcome::Value(i64::from(flags)))
            }
            libc::F_SETFL => {
                self.set_nonblocking(object, a[2] & libc::O_NONBLOCK as u64 != 0);
                WELL
            }
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => self.give(process, object),
            _ => Err(libc::EINVAL),
        }
    }

    fn duplicate(&mut self, process: ProcessNumber, call: &Call) -> Done {
        match self.object_of(process, descriptor(call.arguments[0])) {
            Ok(object) if call.number == libc::SYS_dup => self.give(process, object),
            Ok(_) => Err(libc::EINVAL),
            Err(_) => Ok(Outcome::GoOn),
        }
    }

    fn device_control(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        match self.object_of(process, descriptor(a[0])) {
            Ok(object) if a[1] == libc::FIONBIO => {
                let flag = self.memory(process)?.word(a[2]).map_err(fault)?;
                self.set_nonblocking(object, flag != 0);
                WELL
            }
            _ => Err(libc::ENOTTY),
        }
    }
}
