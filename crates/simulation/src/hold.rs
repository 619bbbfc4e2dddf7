//! The hold on a process: each of its system calls comes to the world, which answers it.
//!
//! The kernel does the work (seccomp's user notification): a thread that makes a call sleeps until
//! the world has sent the answer, or has let the kernel execute the call. Only calls that depend on
//! nothing but the process's own memory are never seen here. The process has no vDSO, so that
//! clocks are system calls, and its addresses and random bytes are the same in each run.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use anyhow::{Context, Result, bail, ensure};

use crate::memory::Memory;

/// The descriptor with which a new process hands over its hold.
const DOOR: RawFd = 200;
/// How long a thread may run without a system call, in milliseconds of the real clock. Longer than
/// that it waits for another thread in a loop, and the other one never runs.
const PATIENCE: i32 = 60_000;

/// Calls that the kernel executes without asking: they concern the memory and the signals of the
/// caller.
const FREE: &[i64] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_arch_prctl,
    libc::SYS_membarrier,
    libc::SYS_execve,
];

/// A system call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    id: u64,
    /// The thread, by the kernel's number.
    pub(crate) thread: i32,
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
}

/// What a process did instead of the next call.
pub(crate) enum Next {
    Call(Call),
    /// It has ended.
    Ended,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Notification {
    id: u64,
    thread: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const RECEIVE: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const GO_ON: u32 = 1;

/// A process whose calls come here. It is killed when this is dropped.
pub(crate) struct Hold {
    process: i32,
    listener: OwnedFd,
    ended: bool,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

impl Hold {
    /// Starts a program.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
        random: [u8; 16],
    ) -> Result<Hold> {
        let image = Image::new(program, arguments, environment)?;
        let mut ends = [0; 2];
        // SAFETY: the array has room for the two descriptors.
        check(unsafe {
            libc::socketpair(
                libc::AF_UNIX,
                libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
                0,
                ends.as_mut_ptr(),
            )
        })?;
        // SAFETY: the kernel has just made them, and nothing else owns them.
        let (own, its) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // SAFETY: the child calls nothing but what is safe after a fork: system calls on what was
        // prepared before.
        let process = check(unsafe { libc::fork() })?;
        if process == 0 {
            // SAFETY: as above; the child does not return.
            unsafe { image.become_it(its.as_raw_fd()) }
        }
        drop(its);
        let listener = match receive_descriptor(&own) {
            Ok(listener) => listener,
            Err(error) => {
                // SAFETY: it is our child, and not reaped yet.
                unsafe { libc::waitpid(process, ptr::null_mut(), 0) };
                return Err(error).context("the system does not allow to hold a process");
            }
        };
        let hold = Hold { process, listener, ended: false };
        // A switch to the thread that waits, without a way through the scheduler. Older kernels do
        // not have it. SAFETY: the call takes a number.
        unsafe { libc::ioctl(hold.listener.as_raw_fd(), SET_FLAGS, 1_u64) };
        hold.prepare(random)?;
        Ok(hold)
    }

    /// Takes the vDSO from a program that has just been loaded, and gives it these random bytes.
    fn prepare(&self, random: [u8; 16]) -> Result<()> {
        let mut status = 0;
        // SAFETY: the status is ours.
        check(unsafe { libc::waitpid(self.process, &raw mut status, libc::__WALL) })?;
        let is_loaded = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP;
        ensure!(is_loaded, "the program could not be started ({status:#x})");
        // SAFETY: registers are plain numbers; the kernel fills them.
        let registers = unsafe {
            let mut registers: libc::user_regs_struct = mem::zeroed();
            check(ptrace(libc::PTRACE_GETREGS, self.process, (&raw mut registers).cast()))?;
            registers
        };
        let memory = Memory::of(self.process);
        let mut at = registers.rsp + 8 * (memory.number(registers.rsp)? + 2);
        while memory.number(at)? != 0 {
            at += 8;
        }
        at += 8;
        loop {
            match memory.number(at)? {
                0 => break,
                libc::AT_SYSINFO_EHDR => memory.write(at, &1_u64.to_le_bytes())?,
                libc::AT_RANDOM => memory.write(memory.number(at + 8)?, &random)?,
                _ => {}
            }
            at += 16;
        }
        // SAFETY: it is stopped, and ours.
        check(unsafe { ptrace(libc::PTRACE_DETACH, self.process, ptr::null_mut()) })?;
        Ok(())
    }

    pub(crate) fn process(&self) -> i32 {
        self.process
    }

    /// Waits for the next call of any of its threads.
    pub(crate) fn next(&mut self) -> Result<Next> {
        loop {
            let mut wait =
                libc::pollfd { fd: self.listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: there is one.
            let ready = unsafe { libc::poll(&raw mut wait, 1, PATIENCE) };
            if ready == 0 {
                bail!("a thread runs on and on without a system call");
            }
            if ready > 0 && wait.revents & libc::POLLIN == 0 {
                return Ok(Next::Ended);
            }
            // SAFETY: plain numbers, which the kernel wants to be zero.
            let mut notification: Notification = unsafe { mem::zeroed() };
            // SAFETY: the call fills a structure of this layout.
            let received =
                unsafe { libc::ioctl(self.listener.as_raw_fd(), RECEIVE, &raw mut notification) };
            if received < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    // The thread that had made the call is gone.
                    Some(libc::EINTR | libc::ENOENT) => continue,
                    _ => return Err(error).context("waiting for a system call"),
                }
            }
            return Ok(Next::Call(Call {
                id: notification.id,
                thread: notification.thread.cast_signed(),
                number: i64::from(notification.number),
                arguments: notification.arguments,
            }));
        }
    }

    /// Answers a call; a negative value is an error's number.
    pub(crate) fn answer(&self, call: &Call, value: i64) -> io::Result<()> {
        let answer = if value < 0 {
            Answer {
                id: call.id,
                value: 0,
                error: i32::try_from(value).unwrap_or(-libc::EIO),
                flags: 0,
            }
        } else {
            Answer { id: call.id, value, error: 0, flags: 0 }
        };
        self.send(&answer)
    }

    /// Lets the kernel execute a call.
    pub(crate) fn let_go(&self, call: &Call) -> io::Result<()> {
        self.send(&Answer { id: call.id, value: 0, error: 0, flags: GO_ON })
    }

    fn send(&self, answer: &Answer) -> io::Result<()> {
        // SAFETY: the structure has the layout that the call reads.
        check(unsafe { libc::ioctl(self.listener.as_raw_fd(), SEND, ptr::from_ref(answer)) })?;
        Ok(())
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: it is our child, and not reaped yet.
        unsafe { libc::kill(self.process, signal) };
    }

    /// Waits for its end, and returns the status as the system has it.
    pub(crate) fn reap(&mut self) -> i32 {
        let mut status = 0;
        // SAFETY: the status is ours, and so is the child.
        unsafe { libc::waitpid(self.process, &raw mut status, libc::__WALL) };
        self.ended = true;
        status
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(libc::SIGKILL);
            self.reap();
        }
    }
}

unsafe fn ptrace(request: libc::c_uint, process: i32, data: *mut libc::c_void) -> libc::c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { libc::ptrace(request, process, ptr::null_mut::<libc::c_void>(), data) };
    libc::c_int::try_from(result).unwrap_or(0)
}

/// What a child needs to become a program, prepared before it is there.
struct Image {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    filter: Vec<libc::sock_filter>,
}

impl Image {
    fn new(program: &Path, arguments: &[String], environment: &[(&str, &str)]) -> Result<Image> {
        let name = CString::new(program.as_os_str().as_bytes())?;
        // Its path is on the stack, and would move the stack.
        let mut words = vec![CString::new("program")?];
        for argument in arguments {
            words.push(CString::new(argument.as_str())?);
        }
        let variable = |(name, value): &(&str, &str)| CString::new(format!("{name}={value}"));
        let environment = environment.iter().map(variable).collect::<Result<_, _>>()?;
        Ok(Image { program: name, arguments: words, environment, filter: filter() })
    }

    /// In the child of a fork: becomes the program, and does not return.
    unsafe fn become_it(&self, door: RawFd) -> ! {
        let pointers = |strings: &[CString], space: &mut [*const libc::c_char; 64]| {
            for (string, slot) in strings.iter().zip(space.iter_mut().take(63)) {
                *slot = string.as_ptr();
            }
        };
        let (mut arguments, mut environment) = ([ptr::null(); 64], [ptr::null(); 64]);
        pointers(&self.arguments, &mut arguments);
        pointers(&self.environment, &mut environment);
        // SAFETY: system calls on memory that lives on, and nothing that a lock of the parent could
        // stop.
        unsafe {
            let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            for stream in 0..3 {
                libc::dup2(nothing, stream);
            }
            libc::dup3(door, DOOR, libc::O_CLOEXEC);
            // Addresses that are the same each time, where the system allows that.
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            let stack = libc::rlimit { rlim_cur: 8 << 20, rlim_max: libc::RLIM_INFINITY };
            libc::setrlimit(libc::RLIMIT_STACK, &raw const stack);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::ptrace(libc::PTRACE_TRACEME);
            let program = libc::sock_fprog {
                len: self.filter.len() as libc::c_ushort,
                filter: self.filter.as_ptr().cast_mut(),
            };
            let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE;
            let listener = libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            );
            if listener < 0 || !send_descriptor(listener as RawFd) {
                libc::syscall(libc::SYS_exit_group, 126);
            }
            libc::execve(self.program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            // An end without a system call, because calls are held by now.
            std::arch::asm!("ud2", options(noreturn));
        }
    }
}

/// A call that was received is interrupted by nothing but the end of the process.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// The filter of calls: those that are free, the one that hands over the hold, and all others,
/// which are held.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let allow = step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);
    let mut filter = vec![step(LOAD, 0, 0, 0)];
    for &number in FREE {
        filter.push(step(IF_EQUAL, 0, 1, number as u32));
        filter.push(allow);
    }
    filter.push(step(IF_EQUAL, 0, 3, libc::SYS_sendmsg as u32));
    // The low half of the first argument.
    filter.push(step(LOAD, 0, 0, 16));
    filter.push(step(IF_EQUAL, 0, 1, DOOR.cast_unsigned()));
    filter.push(allow);
    filter.push(step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    filter
}

#[repr(C, align(8))]
struct Control([u8; 24]);

/// Sends a descriptor through the door. In the child of a fork.
unsafe fn send_descriptor(descriptor: RawFd) -> bool {
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 24]);
    // SAFETY: the message refers to what lives until it is sent, and the space for the descriptor
    // is as large as the message says.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast(), descriptor);
        libc::sendmsg(DOOR, &raw const message, 0) == 1
    }
}

fn receive_descriptor(door: &OwnedFd) -> Result<OwnedFd> {
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 24]);
    // SAFETY: the message refers to what lives until it has come. A message of one byte has the
    // descriptor.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = 24;
        let received = libc::recvmsg(door.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        ensure!(received == 1, "the process has ended before it could be held");
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        ensure!(!header.is_null(), "a message without the hold");
        let descriptor: RawFd = ptr::read_unaligned(libc::CMSG_DATA(header).cast());
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Keeps the present thread and the processes that it starts on one processor.
pub(crate) fn stay_on_one_processor() {
    // SAFETY: the sets are plain bits; the calls fill and read them.
    unsafe {
        let mut allowed: libc::cpu_set_t = mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 {
            return;
        }
        if libc::CPU_COUNT(&allowed) > 1
            && let Ok(present) = usize::try_from(libc::sched_getcpu())
        {
            let mut only: libc::cpu_set_t = mem::zeroed();
            libc::CPU_SET(present, &mut only);
            libc::sched_setaffinity(0, size, &raw const only);
        }
    }
}
