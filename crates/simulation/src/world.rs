//! The world: machines, their processes and threads, of which one runs at a time, and the time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::disk::Disk;
use crate::hold::{Call, Hold, Next};
use crate::memory::Memory;
use crate::objects::{MachineNumber, Object, ObjectNumber, ThreadNumber, Way};
use crate::outcome::{Done, Outcome};
use crate::random::Random;
use crate::trace::Trace;
use crate::weather::Weather;

/// The wall clock when a world begins: 2030-01-01.
const EPOCH: u64 = 1_893_456_000 * 1_000_000_000;
/// Steps between two draws of how threads take turns.
const STEPS_OF_A_MOOD: u64 = 4_000;

/// The number of a process in its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessNumber(pub(crate) usize);

/// What a process is started from.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file of the program, on the real disk.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment, besides those that all have.
    pub environment: Vec<(String, String)>,
}

/// A machine: an address and a disk, which outlive its processes.
pub(crate) struct Machine {
    pub(crate) disk: Disk,
    /// Its listeners by port.
    pub(crate) listeners: BTreeMap<u16, ObjectNumber>,
    /// Ports of its own address that lead to another machine.
    pub(crate) forwards: BTreeMap<u16, MachineNumber>,
    pub(crate) next_port: u16,
}

/// A process that runs.
pub(crate) struct Process {
    pub(crate) machine: MachineNumber,
    pub(crate) hold: Hold,
    pub(crate) descriptors: BTreeMap<i32, ObjectNumber>,
    pub(crate) directory: Vec<u8>,
    /// What it has written to its standard output and to that for errors.
    pub(crate) output: Vec<u8>,
    threads: BTreeSet<ThreadNumber>,
    /// Signals that were sent to it, and not yet taken.
    pub(crate) signals: VecDeque<i32>,
    /// How many threads it has begun.
    begun: usize,
    /// Where the number of the next thread is, which the kernel clears when the thread ends.
    pub(crate) next_number_at: u64,
    /// Keys of the words at which threads wait.
    pub(crate) sleepers: BTreeMap<u64, Vec<ThreadNumber>>,
}

impl Process {
    pub(crate) fn memory(&self) -> Memory {
        Memory::of(self.hold.process())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Ready,
    Waiting,
}

/// A thread of a process.
pub(crate) struct Thread {
    pub(crate) process: ProcessNumber,
    /// Its number in its process.
    name: usize,
    /// The kernel's number.
    kernel: i32,
    pub(crate) call: Call,
    state: State,
    /// When its wait ends, if nothing ends it before.
    pub(crate) deadline: Option<u64>,
    /// Another thread has ended its sleep.
    pub(crate) is_woken: bool,
    /// Something that its call has begun: how much a sync covers.
    pub(crate) begun: Option<usize>,
    /// Objects at which it waits.
    waits_at: Vec<ObjectNumber>,
    /// The word at which it sleeps.
    pub(crate) sleeps_at: Option<u64>,
    /// Where the kernel clears the thread's number when it ends.
    pub(crate) number_at: u64,
    /// It does not run before that time.
    stalled_until: u64,
}

/// What happens at some time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// The wait of a thread may be over.
    Deadline(ThreadNumber),
    /// Bytes arrive at the end of a connection.
    Arrival(ObjectNumber, Vec<u8>),
    /// It comes to its end there.
    End(ObjectNumber),
    /// It is found to be broken there.
    Reset(ObjectNumber),
    /// An attempt to connect arrives.
    Connect { socket: ObjectNumber, machine: MachineNumber, port: u16 },
}

/// How far a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// Nothing will ever happen again by itself.
    Rest,
}

/// Simulated machines on a network, with the programs that run on them.
pub struct World {
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) weather: Weather,
    pub(crate) machines: Vec<Machine>,
    pub(crate) processes: BTreeMap<ProcessNumber, Process>,
    pub(crate) threads: BTreeMap<ThreadNumber, Thread>,
    pub(crate) objects: BTreeMap<ObjectNumber, Object>,
    pub(crate) trace: Trace,
    pub(crate) ways: BTreeMap<(MachineNumber, MachineNumber), Way>,
    ended: BTreeMap<ProcessNumber, (i32, Vec<u8>)>,
    ready: Vec<ThreadNumber>,
    timers: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    next_timer: u64,
    next_thread: ThreadNumber,
    next_process: usize,
    next_object: ObjectNumber,
    last: Option<ThreadNumber>,
    steps: u64,
    /// The chance in percent that the same thread goes on.
    steadiness: usize,
}

impl World {
    /// Whether this system lets a world hold processes.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check() -> Result<()> {
        let mut world = World::new(0);
        let machine = world.add_machine();
        let program =
            Program { path: "/bin/true".into(), arguments: Vec::new(), environment: Vec::new() };
        let process = world.start(machine, &program)?;
        world.run(Duration::from_secs(1), |world| !world.is_running(process))?;
        ensure!(world.status(process) == Some(0), "a program does not run as it should");
        Ok(())
    }

    /// A world without machines.
    #[must_use]
    pub fn new(seed: u64) -> World {
        // Only one thread runs at a time, and switching between processors is slow.
        crate::hold::stay_on_one_processor();
        let mut random = Random::new(seed);
        let weather = Weather::draw(&mut random);
        World {
            now: 1_000_000_000,
            random,
            weather,
            machines: Vec::new(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            objects: BTreeMap::new(),
            trace: Trace::new(),
            ways: BTreeMap::new(),
            ended: BTreeMap::new(),
            ready: Vec::new(),
            timers: BinaryHeap::new(),
            next_timer: 0,
            next_thread: 0,
            next_process: 1,
            next_object: 1,
            last: None,
            steps: 0,
            steadiness: 0,
        }
    }

    /// A machine more. Its number is the answer.
    pub fn add_machine(&mut self) -> MachineNumber {
        self.machines.push(Machine {
            disk: Disk::new(),
            listeners: BTreeMap::new(),
            forwards: BTreeMap::new(),
            next_port: 40_000,
        });
        self.machines.len() - 1
    }

    /// Makes a port of one machine lead to another one.
    pub fn forward(&mut self, from: MachineNumber, port: u16, to: MachineNumber) {
        self.machines[from].forwards.insert(port, to);
    }

    /// The time that has passed since the world began.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// What the wall clock shows when a world begins.
    #[must_use]
    pub fn origin() -> Duration {
        Duration::from_nanos(EPOCH)
    }

    /// The system calls so far, of all threads.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A number that stands for everything that has happened.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.trace.hash()
    }

    /// The last things that happened.
    #[must_use]
    pub fn recent(&self) -> String {
        self.trace.recent()
    }

    /// What the disk and the network are like.
    pub fn weather(&mut self) -> &mut Weather {
        &mut self.weather
    }

    pub(crate) fn wall_clock(&self) -> u64 {
        EPOCH + self.now
    }

    /// Starts a program on a machine.
    ///
    /// # Errors
    /// The system does not allow it, or the program is not there.
    pub fn start(&mut self, machine: MachineNumber, program: &Program) -> Result<ProcessNumber> {
        let random = self.random.bytes(16).try_into().unwrap_or_default();
        let mut environment = vec![("PATH", "/usr/bin:/bin"), ("LANG", "C")];
        environment.extend(program.environment.iter().map(|(name, it)| (&**name, &**it)));
        let hold = Hold::start(&program.path, &program.arguments, &environment, random)
            .with_context(|| format!("starting {:?}", program.path))?;
        let number = ProcessNumber(self.next_process);
        self.next_process += 1;
        self.processes.insert(
            number,
            Process {
                machine,
                hold,
                descriptors: BTreeMap::new(),
                directory: Vec::new(),
                output: Vec::new(),
                threads: BTreeSet::new(),
                signals: VecDeque::new(),
                begun: 0,
                next_number_at: 0,
                sleepers: BTreeMap::new(),
            },
        );
        self.trace.say(self.now, &format!("process {} starts", number.0));
        self.collect(number, 1)?;
        Ok(number)
    }

    /// Whether a process runs.
    #[must_use]
    pub fn is_running(&self, process: ProcessNumber) -> bool {
        self.processes.contains_key(&process)
    }

    /// What a process has written to its standard output.
    #[must_use]
    pub fn output(&self, process: ProcessNumber) -> String {
        let running = self.processes.get(&process).map(|process| &process.output);
        let ended = self.ended.get(&process).map(|(_, output)| output);
        String::from_utf8_lossy(running.or(ended).map_or(&[], Vec::as_slice)).into_owned()
    }

    /// How a process has ended, as the system has it: zero if well.
    #[must_use]
    pub fn status(&self, process: ProcessNumber) -> Option<i32> {
        self.ended.get(&process).map(|(status, _)| *status)
    }

    /// Sends a signal to a process that waits for signals.
    pub fn signal(&mut self, process: ProcessNumber, signal: i32) {
        if let Some(it) = self.processes.get_mut(&process) {
            it.signals.push_back(signal);
            let threads: Vec<_> = it.threads.iter().copied().collect();
            for thread in threads {
                if self
                    .threads
                    .get(&thread)
                    .is_some_and(|it| it.call.number == libc::SYS_rt_sigtimedwait)
                {
                    self.wake(thread);
                }
            }
        }
    }

    /// Kills a process. What it has written stays, and its connections end.
    pub fn kill(&mut self, process: ProcessNumber) {
        self.trace.say(self.now, &format!("process {} is killed", process.0));
        if let Some(it) = self.processes.get_mut(&process) {
            it.hold.signal(libc::SIGKILL);
            self.bury(process);
        }
    }

    /// A machine loses its power. What it had not synced is lost in part, and its connections
    /// break. Returns what became of that.
    pub fn cut_power(&mut self, machine: MachineNumber) -> String {
        let running = self.processes.iter().filter(|(_, it)| it.machine == machine);
        let running: Vec<_> = running.map(|(number, _)| *number).collect();
        for process in running {
            self.kill(process);
        }
        let report = self.machines[machine].disk.lose_power(&mut self.random);
        self.trace.say(self.now, &format!("machine {machine} loses its power: {report}"));
        report
    }

    /// A machine makes everything durable that was written so far, as systems do by themselves
    /// after half a minute.
    pub fn write_back(&mut self, machine: MachineNumber) {
        self.machines[machine].disk.write_back();
    }

    /// Puts a file into the data directory of a machine, where no loss of power takes it away.
    ///
    /// # Errors
    /// It is there already.
    pub fn give_file(&mut self, machine: MachineNumber, name: &str, bytes: &[u8]) -> Result<()> {
        let disk = &mut self.machines[machine].disk;
        let inode = disk.create(name.as_bytes());
        let written = inode.and_then(|inode| disk.write(inode, 0, bytes.to_vec()));
        ensure!(written.is_ok(), "{name} cannot be given to machine {machine}");
        disk.write_back();
        Ok(())
    }

    /// The files of a machine, with their bytes.
    #[must_use]
    pub fn files(&self, machine: MachineNumber) -> Vec<(String, Vec<u8>)> {
        self.machines[machine].disk.all()
    }

    /// When the disk of a machine failed for the first time, if it did.
    #[must_use]
    pub fn disk_failed(&self, machine: MachineNumber) -> Option<Duration> {
        self.machines[machine].disk.failed.map(Duration::from_nanos)
    }

    /// Whether something listens at a port.
    #[must_use]
    pub fn listens(&self, machine: MachineNumber, port: u16) -> bool {
        self.machines[machine].listeners.contains_key(&port)
    }

    /// Lets the world go on until `is_over` says so, or for so long. Returns whether it was over.
    ///
    /// # Errors
    /// A program does what the world does not understand.
    pub fn run(&mut self, most: Duration, mut is_over: impl FnMut(&World) -> bool) -> Result<bool> {
        let end = self.now + u64::try_from(most.as_nanos()).unwrap_or(u64::MAX / 2);
        loop {
            if is_over(self) {
                return Ok(true);
            }
            if self.now >= end {
                return Ok(false);
            }
            let step = self.step(end).with_context(|| format!("after:\n{}", self.recent()))?;
            if step == Step::Rest {
                self.now = end;
            }
        }
    }

    /// Lets one thread go on, or the time until one can.
    fn step(&mut self, end: u64) -> Result<Step> {
        self.fire();
        let Some(thread) = self.choose() else {
            let next = self.next_time();
            return Ok(match next {
                None => Step::Rest,
                Some(next) => {
                    self.now = self.now.max(next.min(end));
                    Step::Done
                }
            });
        };
        self.steps += 1;
        let outcome = self.execute(thread)?;
        let cost = self.random.between(100, 1_500);
        self.now += cost;
        self.settle(thread, outcome)?;
        Ok(Step::Done)
    }

    /// The next time at which something happens by itself.
    fn next_time(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        let stalled = self.ready.iter().filter_map(|it| self.threads.get(it));
        let stalled = stalled.map(|thread| thread.stalled_until).min();
        match (timer, stalled) {
            (Some(timer), Some(stalled)) => Some(timer.min(stalled)),
            (timer, stalled) => timer.or(stalled),
        }
    }

    /// Draws which thread goes on.
    fn choose(&mut self) -> Option<ThreadNumber> {
        if self.steps.is_multiple_of(STEPS_OF_A_MOOD) {
            self.steadiness = [0, 30, 80, 95][self.random.below(4)];
        }
        let now = self.now;
        let can =
            |it: &ThreadNumber| self.threads.get(it).is_some_and(|it| it.stalled_until <= now);
        let able: Vec<usize> =
            (0..self.ready.len()).filter(|&place| can(&self.ready[place])).collect();
        if able.is_empty() {
            return None;
        }
        let same = self.last.and_then(|last| able.iter().find(|&&place| self.ready[place] == last));
        let same = same.copied();
        let place = match same {
            Some(same) if self.random.percent(self.steadiness) => same,
            _ => able[self.random.below(able.len())],
        };
        let thread = self.ready.remove(place);
        if self.weather.stalls != 0 && self.random.once_in(self.weather.stalls) {
            // It loses its processor.
            let until = self.now + self.random.between(100_000, 30_000_000);
            self.threads.get_mut(&thread)?.stalled_until = until;
            self.ready.push(thread);
            return self.choose();
        }
        self.last = Some(thread);
        Some(thread)
    }

    fn execute(&mut self, thread: ThreadNumber) -> Result<Outcome> {
        for object in std::mem::take(&mut self.thread_mut(thread)?.waits_at) {
            if let Some(object) = self.objects.get_mut(&object) {
                object.waiting.remove(&thread);
            }
        }
        let call = self.thread_mut(thread)?.call;
        let outcome = match self.dispatch(thread, &call)? {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Value(-i64::from(error)),
        };
        let name = self.thread(thread)?.name;
        let process = self.thread(thread)?.process.0;
        self.trace.call(self.now, process, name, &call, &outcome);
        Ok(outcome)
    }

    fn settle(&mut self, thread: ThreadNumber, outcome: Outcome) -> Result<()> {
        let it = self.thread_mut(thread)?;
        if matches!(outcome, Outcome::Wait) {
            it.state = State::Waiting;
            if let Some(deadline) = it.deadline {
                self.at(deadline, Happening::Deadline(thread));
            }
            return Ok(());
        }
        (it.state, it.deadline, it.is_woken, it.begun) = (State::Running, None, false, None);
        let (process, call) = (it.process, it.call);
        let hold = &self.processes.get(&process).context("its process")?.hold;
        match outcome {
            Outcome::Value(value) => hold.answer(&call, value)?,
            _ => hold.let_go(&call)?,
        }
        match call.number {
            libc::SYS_exit_group => {
                self.bury(process);
                Ok(())
            }
            libc::SYS_exit => self.end_thread(thread),
            libc::SYS_clone | libc::SYS_clone3 => self.collect(process, 2),
            _ => self.collect(process, 1),
        }
    }

    /// Waits until this many threads of a process have made their next calls.
    fn collect(&mut self, process: ProcessNumber, calls: usize) -> Result<()> {
        for _ in 0..calls {
            let it = self.processes.get_mut(&process).context("its process")?;
            match it.hold.next()? {
                Next::Ended => {
                    self.bury(process);
                    return Ok(());
                }
                Next::Call(call) => self.note_call(process, call),
            }
        }
        Ok(())
    }

    fn note_call(&mut self, process: ProcessNumber, call: Call) {
        let Some(it) = self.processes.get_mut(&process) else { return };
        let known = it.threads.iter().copied();
        let known = known
            .filter_map(|number| self.threads.get(&number).map(|thread| (number, thread.kernel)))
            .find(|(_, kernel)| *kernel == call.thread);
        let number = if let Some((number, _)) = known {
            if let Some(thread) = self.threads.get_mut(&number) {
                thread.call = call;
                thread.state = State::Ready;
            }
            number
        } else {
            let number = self.next_thread;
            self.next_thread += 1;
            it.threads.insert(number);
            let (name, number_at) = (it.begun, std::mem::take(&mut it.next_number_at));
            it.begun += 1;
            self.threads.insert(
                number,
                Thread {
                    process,
                    name,
                    kernel: call.thread,
                    call,
                    state: State::Ready,
                    deadline: None,
                    is_woken: false,
                    begun: None,
                    waits_at: Vec::new(),
                    sleeps_at: None,
                    number_at,
                    stalled_until: 0,
                },
            );
            number
        };
        self.ready.push(number);
        // Two may have come in any order.
        self.ready.sort_unstable();
    }

    /// A thread ends: waits until the kernel has cleared its number, and wakes threads that wait
    /// for that.
    fn end_thread(&mut self, thread: ThreadNumber) -> Result<()> {
        let it = self.threads.remove(&thread).context("a thread")?;
        let process = self.processes.get_mut(&it.process).context("its process")?;
        process.threads.remove(&thread);
        if process.threads.is_empty() {
            self.bury(it.process);
            return Ok(());
        }
        let memory = process.memory();
        if it.number_at != 0 {
            while memory.word(it.number_at).is_ok_and(|word| word != 0) {
                std::thread::yield_now();
            }
            self.wake_sleepers(it.process, it.number_at, usize::MAX);
        }
        Ok(())
    }

    /// Removes a process that ends or was told to.
    fn bury(&mut self, process: ProcessNumber) {
        let Some(mut it) = self.processes.remove(&process) else { return };
        let status = it.hold.reap();
        for thread in &it.threads {
            self.threads.remove(thread);
        }
        self.ready.retain(|thread| !it.threads.contains(thread));
        for object in it.descriptors.values() {
            self.release(*object);
        }
        let machine = it.machine;
        if !self.processes.values().any(|it| it.machine == machine) {
            self.machines[machine].disk.forget_open();
        }
        self.trace.say(self.now, &format!("process {} has ended: {status:#x}", process.0));
        self.ended.insert(process, (status, it.output));
    }

    pub(crate) fn thread(&self, thread: ThreadNumber) -> Result<&Thread> {
        self.threads.get(&thread).context("a thread that has ended")
    }

    pub(crate) fn thread_mut(&mut self, thread: ThreadNumber) -> Result<&mut Thread> {
        self.threads.get_mut(&thread).context("a thread that has ended")
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, object: Object) -> ObjectNumber {
        let number = self.next_object;
        self.next_object += 1;
        self.objects.insert(number, object);
        number
    }

    /// Has something happen at some time.
    pub(crate) fn at(&mut self, time: u64, happening: Happening) {
        self.next_timer += 1;
        self.timers.push(Reverse((time, self.next_timer, happening)));
    }

    /// Lets happen what is due.
    fn fire(&mut self) {
        while let Some(Reverse((at, ..))) = self.timers.peek()
            && *at <= self.now
            && let Some(Reverse((_, _, happening))) = self.timers.pop()
        {
            match happening {
                Happening::Deadline(thread) => {
                    let now = self.now;
                    let over = |it: &Thread| it.deadline.is_some_and(|deadline| deadline <= now);
                    if self.threads.get(&thread).is_some_and(over) {
                        self.wake(thread);
                    }
                }
                other => self.happen(other),
            }
        }
    }

    /// Has a thread that waits look again.
    pub(crate) fn wake(&mut self, thread: ThreadNumber) {
        if let Some(it) = self.threads.get_mut(&thread)
            && it.state == State::Waiting
        {
            it.state = State::Ready;
            self.ready.push(thread);
            self.ready.sort_unstable();
        }
    }

    /// The thread waits until something happens at an object.
    pub(crate) fn wait_at(&mut self, thread: ThreadNumber, object: ObjectNumber) {
        if let Some(it) = self.objects.get_mut(&object)
            && it.waiting.insert(thread)
            && let Some(thread) = self.threads.get_mut(&thread)
        {
            thread.waits_at.push(object);
        }
    }

    /// Something has happened at an object: threads that wait for that look again.
    pub(crate) fn touch(&mut self, object: ObjectNumber) {
        let Some(it) = self.objects.get(&object) else { return };
        let watched = it.watched.clone();
        for thread in it.waiting.clone() {
            self.wake(thread);
        }
        for (watch, descriptor) in watched {
            self.note_happened(watch, descriptor);
        }
    }

    /// The time at which the wait of a thread ends; the first answer stays.
    pub(crate) fn deadline(&mut self, thread: ThreadNumber, after: u64) -> u64 {
        let now = self.now;
        match self.threads.get_mut(&thread) {
            Some(it) => *it.deadline.get_or_insert(now.saturating_add(after)),
            None => now,
        }
    }

    /// What a program's first argument names cannot be done.
    pub(crate) fn refuse(&self, call: &Call) -> Result<Done> {
        bail!("a system call that the world does not know: {} {:x?}", call.number, call.arguments)
    }
}
