//! An agent: waits for plans, and carries them out.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::message::{
    Answer, Hello, LONGEST_GREETING, LONGEST_ORDER, Order, Report, Until, Welcome, receive, send,
};
use super::token::{Token, challenge, same};
use crate::load::{self, Control, LoadError, Plan, run_from};
use crate::record::Recording;

/// Coordinators that are served at the same time; the rest are turned away.
const MOST_COORDINATORS: usize = 16;
/// Connections that have not yet proved that they know the token. When there are more, the oldest
/// is closed: silent connections must not keep others out.
const MOST_UNKNOWN_PEERS: usize = 64;
/// How long the other side may take to prove that it knows the token.
const GREETING_PATIENCE: Duration = Duration::from_secs(5);
/// How long a coordinator may take to send its request then, and to receive an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look for the end and for the progress of a load.
const LOOK: Duration = Duration::from_millis(20);
const PROGRESS: Duration = Duration::from_millis(200);
/// The farthest that a start may be away.
const FARTHEST_START: Duration = Duration::from_secs(60);

/// Serves plans until `stop` is set. Passes its address to `ready`. An error with one coordinator
/// is reported to that coordinator, and does not end the agent.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(
    address: SocketAddr,
    token: &Token,
    stop: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    load::descriptors::raise_limit();
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    ready(listener.local_addr()?);
    let unknown_peers = UnknownPeers::default();
    let coordinators = AtomicUsize::new(0);
    let is_busy = AtomicBool::new(false);
    thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(LOOK);
                continue;
            };
            // A connection without a descriptor has no room.
            let Ok(number) = unknown_peers.enter(&stream) else { continue };
            let (unknown_peers, coordinators, is_busy) = (&unknown_peers, &coordinators, &is_busy);
            scope.spawn(move || {
                let mut session = Session { stream, stop, is_busy };
                let greeted = session.prepare().and_then(|()| session.greet(token));
                unknown_peers.leave(number);
                if greeted.is_err() {
                    return;
                }
                // Any error is reported, or there is nobody to report it to.
                let _ = if coordinators.fetch_add(1, Ordering::Relaxed) < MOST_COORDINATORS {
                    session.run()
                } else {
                    session.refuse("the agent listens to too many coordinators")
                };
                coordinators.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

/// Connections whose identity is not proved yet, the oldest first.
#[derive(Debug, Default)]
struct UnknownPeers(Mutex<(u64, VecDeque<(u64, TcpStream)>)>);

impl UnknownPeers {
    /// Accepts a connection, and closes the oldest when there are too many; returns its number.
    fn enter(&self, stream: &TcpStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut unknown_peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, waiting) = &mut *unknown_peers;
        *last += 1;
        waiting.push_back((*last, stream));
        if waiting.len() > MOST_UNKNOWN_PEERS
            && let Some((_, oldest)) = waiting.pop_front()
        {
            // Its thread reads the end.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(*last)
    }

    /// It has proved its identity, or is gone.
    fn leave(&self, number: u64) {
        let mut unknown_peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unknown_peers.1.retain(|(other, _)| *other != number);
    }
}

/// A coordinator that is listened to.
struct Session<'a> {
    stream: TcpStream,
    stop: &'a AtomicBool,
    /// Whether a plan is being carried out for any coordinator.
    is_busy: &'a AtomicBool,
}

impl Session<'_> {
    fn prepare(&self) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(PATIENCE))
    }

    /// Says why there is no more.
    fn refuse(&mut self, why: &str) -> io::Result<()> {
        send(&mut self.stream, &Report::Failed(why.to_owned()))
    }

    /// Carries out the requests of a coordinator that knows the token.
    fn run(mut self) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match receive(&mut Until::new(&mut self.stream, left), LONGEST_ORDER)? {
                Order::Clock => {
                    let received = unix_ns();
                    send(&mut self.stream, &Report::Clock { received, sent: unix_ns() })?;
                }
                Order::Prepare(plan) => return self.carry_out(&plan),
                Order::Start { .. } | Order::Stop => {
                    return self.refuse("there is no plan");
                }
            }
        }
    }

    /// Has the coordinator prove that it knows the token, and proves the same.
    fn greet(&mut self, token: &Token) -> io::Result<()> {
        let ours = challenge()?;
        send(&mut self.stream, &Hello { version: 1, challenge: ours.clone() })?;
        let mut patient = Until::new(&mut self.stream, GREETING_PATIENCE);
        let answer: Answer = receive(&mut patient, LONGEST_GREETING)?;
        if !same(&answer.proof, &token.proof("coordinator", &ours, &answer.challenge)) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let proof = token.proof("agent", &answer.challenge, &ours);
        send(&mut self.stream, &Welcome { proof })
    }

    /// Carries out a plan, unless another one is under way.
    fn carry_out(mut self, plan: &Plan) -> io::Result<()> {
        if self.is_busy.swap(true, Ordering::Acquire) {
            return self.refuse("the agent carries out another plan");
        }
        let result = self.load(plan);
        self.is_busy.store(false, Ordering::Release);
        match result? {
            Ok(recording) => send(&mut self.stream, &Report::Done(Box::new(recording)))?,
            Err(error) => send(&mut self.stream, &Report::Failed(error.to_string()))?,
        }
        self.stream.shutdown(Shutdown::Both)
    }

    fn load(&mut self, plan: &Plan) -> io::Result<Result<Recording, LoadError>> {
        let control = Control::default();
        let (orders, mut writer) = (self.stream.try_clone()?, self.stream.try_clone()?);
        orders.set_read_timeout(None)?;
        let (sender, start) = mpsc::channel();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // Orders, until the end of the connection, which this side closes in the end.
            let listener = scope.spawn(|| listen(orders, &control, &sender));
            let (control, is_over, stream) = (&control, &is_over, &self.stream);
            let load = scope.spawn(move || {
                let result = run_from(plan, control, || await_start(stream, &start, control));
                is_over.store(true, Ordering::Release);
                result
            });
            let mut told = Instant::now();
            while !is_over.load(Ordering::Acquire) {
                thread::sleep(LOOK);
                if self.stop.load(Ordering::Relaxed) {
                    control.stop();
                }
                let progress = control.progress();
                if progress.seconds > 0.0 && told.elapsed() >= PROGRESS {
                    told = Instant::now();
                    let (requests, errors) = (progress.requests, progress.errors);
                    let response_ms = progress.response_ms;
                    let report = Report::Progress { requests, errors, response_ms };
                    if send(&mut writer, &report).is_err() {
                        control.stop();
                    }
                }
            }
            let result = load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // The listener waits for an order that will not come; replies can still be written.
            self.stream.shutdown(Shutdown::Read)?;
            let _ = listener.join();
            Ok(result)
        })
    }
}

/// Follows the orders that come while a plan is carried out.
fn listen(mut orders: TcpStream, control: &Control, start: &mpsc::Sender<u64>) {
    loop {
        match receive(&mut orders, LONGEST_ORDER) {
            Ok(Order::Start { at }) => {
                // A load that has failed meanwhile does not start.
                let _ = start.send(at);
            }
            // A stop, or no coordinator is left.
            _ => {
                control.stop();
                let _ = start.send(0);
                return;
            }
        }
    }
}

/// Tells that all connections are open, and waits for the instant to begin.
fn await_start(stream: &TcpStream, start: &mpsc::Receiver<u64>, control: &Control) {
    let mut stream = stream;
    if send(&mut stream, &Report::Ready).is_err() {
        control.stop();
        return;
    }
    let Ok(at) = start.recv_timeout(FARTHEST_START) else {
        control.stop();
        return;
    };
    let left = Duration::from_nanos(at.saturating_sub(unix_ns()));
    thread::sleep(left.min(FARTHEST_START));
}

/// The wall clock in nanoseconds.
pub(super) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
