//! How soon the calling thread runs when it is woken, and how much when others want to run too.
#![allow(unsafe_code)]

/// The shortest slice that the kernel gives, in nanoseconds.
const SHORTEST: u64 = 100_000;

/// Asks for the shortest time slice for the calling thread. A woken thread with a shorter slice
/// than the running one goes ahead of it, and need not wait until the slice of that one ends, some
/// milliseconds later; its share of the processor stays the same. Kernels before Linux 6.12 know no
/// such slice and change nothing. See `sched_setattr(2)`.
pub fn shorten() {
    // SAFETY: the call takes no pointer and changes nothing.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        // The user has chosen how this process runs.
        return;
    }
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: current_nice(),
        sched_priority: 0,
        sched_runtime: SHORTEST,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the pointer is to a live structure that contains its own size; the kernel only reads
    // it. If the kernel refuses, nothing changes.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// How much nicer [`yield_to_others`] makes a thread: beside an ordinary one it gets a tenth of a
/// processor.
const NICER: i32 = 10;

/// Has the calling thread, and those that it starts from now on, get a small part of a processor
/// that the other threads of the process want as well. What nobody wants, it gets. See `nice(2)`.
pub fn yield_to_others() {
    // The kernel bounds it. Where it refuses, nothing changes.
    let _ = rustix::process::setpriority_process(None, current_nice() + NICER);
}

/// [`yield_to_others`] and [`shorten`]: who is served goes before the calling thread, and waits no
/// longer than a short slice for it.
pub fn give_way() {
    yield_to_others();
    shorten();
}

/// Has the calling thread, and those that it starts from now on, run as soon as they are woken,
/// before all ordinary threads: as `SCHED_FIFO` with this priority, from 1 on. For threads that
/// sleep now and then, or the ordinary ones of their processor hardly run. Returns how the thread
/// was scheduled before, for [`end_real_time`]; none where nothing changed, since somebody has
/// chosen how this process runs, or the system does not allow it, which takes CAP_SYS_NICE. See
/// `sched(7)`.
pub fn begin_real_time(priority: i32) -> Option<i32> {
    // SAFETY: the call takes no pointer and changes nothing.
    let before = unsafe { libc::sched_getscheduler(0) };
    let is_ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&before);
    (is_ordinary && set_scheduler(libc::SCHED_FIFO, priority)).then_some(before)
}

/// Makes the calling thread an ordinary one again.
pub fn end_real_time(before: i32) {
    set_scheduler(before, 0);
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live structure, which the kernel only reads.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

/// The niceness of the calling thread, which the call above sets as well.
fn current_nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or(0)
}
