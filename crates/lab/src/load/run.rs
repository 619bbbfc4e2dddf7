//! Runs a plan: checks it, starts the threads, and adds up their recordings.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::clock::{monotonic_ns, now_ms};
use resp::client::{ReplyScanner, encode_command};
use tls::Stream;

use super::channel::Encryption;
use super::control::Control;
use super::error::LoadError;
use super::render::Renderer;
use super::socket::Endpoint;
use super::topology::{self, Cluster};
use super::worker::{Outcome, Shared, Worker};
use super::{Address, Pace, Plan, Work, check, descriptors, template, verdict};
use crate::record::{Generator, OperationRecord, Recording, Second};

/// How long the first connection may take, and its greeting.
const FIRST_CONNECTION: Duration = Duration::from_secs(10);
/// How often to look whether idle connections must be closed.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a plan to its end, which is a bound of the plan, or [`Control::stop`], or, unless the plan
/// reconnects, the loss of a connection. One control serves one run.
///
/// # Errors
/// [`LoadError`]: the load did not begin. Later errors are part of the recording.
pub fn run(plan: &Plan, control: &Control) -> Result<Recording, LoadError> {
    run_from(plan, control, || {})
}

/// As [`run`]; when all connections are open, `before` is called, and the load begins when that
/// returns.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_from(
    plan: &Plan,
    control: &Control,
    before: impl FnOnce(),
) -> Result<Recording, LoadError> {
    check::check(plan)?;
    let greeting = greeting(plan);
    let encryption = encryption(plan)?;
    let endpoint = first_connection(plan, encryption.as_ref(), &greeting)?;
    let open = |endpoint: &Endpoint| {
        let socket = endpoint.open_blocking(topology::PATIENCE)?;
        let stream = encrypt(socket.into(), encryption.as_ref())?;
        greet(stream, &greeting).map_err(|error| io::Error::other(error.to_string()))
    };
    let cluster = if plan.cluster {
        let known = Cluster::of(&plan.address, &endpoint, &open);
        Some(known.map_err(|error| LoadError::Refused(error.to_string()))?)
    } else {
        None
    };
    let templates = match &plan.work {
        Work::Resp(work) => template::of_commands(work, plan.seed),
        Work::Http(work) => template::of_http(work, &host(plan), plan.seed),
    };
    let shared = Shared {
        plan,
        control,
        members: members(plan, endpoint)?,
        cluster,
        encryption: encryption.clone(),
        greeting: greeting.clone(),
        barrier: Barrier::new(plan.threads + 1),
        start: AtomicU64::new(0),
        issued: AtomicU64::new(0),
        ended: Mutex::new(None),
        has_ended: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let sequence = Arc::default();
    let workers: Vec<Worker> = (0..plan.threads)
        .map(|thread| {
            let renderer = Renderer::new(plan, templates.clone(), &sequence, thread);
            Worker::new(&shared, renderer, thread)
        })
        .collect::<Result<_, _>>()?;
    let mut started_unix_ms = 0;
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .enumerate()
            .map(|(thread, worker)| scope.spawn(move || worker.run(thread)))
            .collect();
        if let Some(cluster) = &shared.cluster {
            let open = &open;
            scope.spawn(move || cluster.follow(open));
        }
        shared.barrier.wait();
        if !shared.has_failed() {
            before();
        }
        let start = monotonic_ns();
        let warmup = plan.warmup_seconds;
        started_unix_ms = now_ms() + (warmup * 1e3) as u64;
        control.begin(start + (warmup * 1e9) as u64);
        shared.start.store(start, Ordering::Release);
        shared.barrier.wait();
        let outcomes: Vec<_> =
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        shared.cluster.iter().for_each(Cluster::end);
        outcomes
    });
    if let Some(failure) = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(failure);
    }
    let mut finished = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => finished.extend(outcome?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let start = shared.start.load(Ordering::Acquire) + (plan.warmup_seconds * 1e9) as u64;
    let mut recording = put_together(plan, finished, start);
    recording.started_unix_ms = started_unix_ms;
    let lost = shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
    recording.interrupted = lost.or_else(|| was_stopped(plan, control, &recording));
    verdict::judge(&mut recording);
    Ok(recording)
}

/// A load that was told to stop has ended early if its plan has a bound that it did not reach.
fn was_stopped(plan: &Plan, control: &Control, recording: &Recording) -> Option<String> {
    let was_short = plan.seconds.is_some_and(|seconds| recording.seconds < seconds)
        || plan.requests.is_some_and(|requests| recording.requests() < requests);
    (control.is_stopped() && was_short).then(|| "stopped".to_owned())
}

/// The server's name for a person.
fn address(plan: &Plan) -> String {
    let address = &plan.address;
    address.socket.clone().unwrap_or_else(|| format!("{}:{}", address.host, address.port))
}

/// The header Host.
fn host(plan: &Plan) -> String {
    let address = &plan.address;
    let usual = if address.encryption.is_some() { 443 } else { 80 };
    match address.port {
        port if port == usual => address.host.clone(),
        port if address.host.contains(':') => format!("[{}]:{port}", address.host),
        port => format!("{}:{port}", address.host),
    }
}

/// The greeting with which every connection begins, and how many replies it has.
fn greeting(plan: &Plan) -> (Vec<u8>, usize) {
    let (mut bytes, mut replies) = (Vec::new(), 0);
    let Work::Resp(work) = &plan.work else { return (bytes, replies) };
    let mut add = |words: &[&str]| {
        encode_command(words.iter(), &mut bytes);
        replies += 1;
    };
    let address = &plan.address;
    match (&address.user, &address.password) {
        (Some(user), Some(password)) => add(&["AUTH", user, password]),
        (None, Some(password)) => add(&["AUTH", password]),
        (_, None) => {}
    }
    if work.protocol == 3 {
        add(&["HELLO", "3"]);
    }
    if work.tracking {
        add(&["CLIENT", "TRACKING", "on"]);
    }
    if address.database > 0 {
        add(&["SELECT", &address.database.to_string()]);
    }
    (bytes, replies)
}

/// All that may be asked, by their names: the server itself is the first.
fn members(plan: &Plan, own: Endpoint) -> Result<Vec<(String, Endpoint)>, LoadError> {
    let mut members = vec![(address(plan), own)];
    for name in plan.members.iter().filter(|name| **name != address(plan)) {
        let failed = |error| LoadError::Connect { address: name.clone(), error };
        let place = name.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = place.ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?;
        let own = Address { host: host.to_owned(), port, ..Address::default() };
        members.push((name.clone(), Endpoint::resolve(&own).map_err(failed)?.remove(0)));
    }
    Ok(members)
}

/// Finds where the server listens, and tries the greeting, so that an error is reported plainly
/// before there are threads.
fn first_connection(
    plan: &Plan,
    encryption: Option<&Encryption>,
    greeting: &(Vec<u8>, usize),
) -> Result<Endpoint, LoadError> {
    let failed = |error| LoadError::Connect { address: address(plan), error };
    let mut last = None;
    for endpoint in Endpoint::resolve(&plan.address).map_err(failed)? {
        let opened = endpoint.open_blocking(FIRST_CONNECTION);
        match opened.and_then(|socket| encrypt(socket.into(), encryption)) {
            Ok(stream) => {
                greet(stream, greeting).map_err(|error| error.or_connect(failed))?;
                return Ok(endpoint);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(failed(last.unwrap_or_else(|| ErrorKind::NotFound.into())))
}

/// What encrypts the connections of a plan, if they are to be encrypted.
fn encryption(plan: &Plan) -> Result<Option<Encryption>, LoadError> {
    let Some(own) = &plan.address.encryption else { return Ok(None) };
    let protocols = match &plan.work {
        Work::Resp(_) => Vec::new(),
        Work::Http(_) => vec![b"http/1.1".to_vec()],
    };
    own.read(&plan.address.host, protocols).map(Some).map_err(LoadError::Plan)
}

fn encrypt(socket: TcpStream, encryption: Option<&Encryption>) -> io::Result<Stream> {
    match encryption {
        Some((config, name)) => {
            let begun = Instant::now();
            let is_over = || begun.elapsed() >= FIRST_CONNECTION;
            Stream::encrypt(socket, Arc::clone(config), name.clone(), &is_over)
        }
        None => Ok(Stream::Plain(socket)),
    }
}

/// Sends the greeting on a connection that blocks.
fn greet(mut socket: Stream, greeting: &(Vec<u8>, usize)) -> Result<Stream, LoadError> {
    let (bytes, mut missing) = (&greeting.0, greeting.1);
    socket.write_all(bytes)?;
    socket.flush()?;
    let (mut scanner, mut buffer, mut refused) = (ReplyScanner::default(), [0; 4096], None);
    while missing > 0 {
        let length = match socket.read(&mut buffer) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        let count = |_, error: Option<&[u8]>| {
            missing = missing.saturating_sub(1);
            let text = error.map(|text| String::from_utf8_lossy(text).into_owned());
            refused = refused.take().or(text);
        };
        let scanned = scanner.scan(&buffer[..length], count);
        scanned.map_err(|error| LoadError::Refused(error.to_string()))?;
    }
    refused.map_or(Ok(socket), |text| Err(LoadError::Refused(text)))
}

/// Opens the connections of a plan, sends nothing on them, and keeps them until the control stops
/// it. Calls `opened` after each with the number of open ones.
///
/// # Errors
/// [`LoadError`]: not all could be opened, and the open ones are closed again.
pub fn idle(plan: &Plan, control: &Control, opened: impl Fn(usize)) -> Result<(), LoadError> {
    check::check(plan)?;
    let greeting = greeting(plan);
    let encryption = encryption(plan)?;
    let endpoint = first_connection(plan, encryption.as_ref(), &greeting)?;
    let mut sockets = Vec::with_capacity(plan.connections);
    while sockets.len() < plan.connections && !control.is_stopped() {
        let socket =
            endpoint.open_blocking(FIRST_CONNECTION).map_err(
                |error| match descriptors::own_fault(&error) {
                    Some(reason) => LoadError::Opening(reason),
                    None => error.into(),
                },
            )?;
        sockets.push(greet(encrypt(socket.into(), encryption.as_ref())?, &greeting)?);
        opened(sockets.len());
    }
    while !control.is_stopped() {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Adds up the outcomes of the threads.
fn put_together(plan: &Plan, outcomes: Vec<Outcome>, start: u64) -> Recording {
    let mut operations: Vec<OperationRecord> = Vec::new();
    let mut timeline: Vec<Second> = Vec::new();
    let mut generator = Generator::default();
    let end = outcomes.iter().map(|outcome| outcome.end).max().unwrap_or(start);
    for Outcome { tally, usage, end } in outcomes {
        if operations.is_empty() {
            operations = tally.operations;
        } else {
            for (sum, operation) in operations.iter_mut().zip(&tally.operations) {
                sum.merge(operation);
            }
        }
        Second::merge(&mut timeline, tally.timeline);
        generator.cpu_user_seconds += usage.user;
        generator.cpu_system_seconds += usage.system;
        let seconds = end.saturating_sub(start) as f64 / 1e9;
        if seconds > 0.0 {
            let share = (usage.total() / seconds).min(1.0);
            generator.busiest_thread = generator.busiest_thread.max(share);
        }
        generator.lateness.merge(&tally.lateness);
        generator.held_up.merge(&tally.held_up);
        generator.unsent += tally.unsent;
        generator.connects += tally.connects;
        generator.resumed += tally.resumed;
        generator.redirects += tally.redirects;
        generator.socket_errors += tally.socket_errors;
        generator.own_errors += tally.own_errors;
    }
    let seconds = end.saturating_sub(start) as f64 / 1e9;
    if !matches!(plan.pace, Pace::Open { .. }) {
        debug_assert_eq!(generator.lateness.count(), 0, "a closed loop has no schedule");
    }
    Recording {
        plan: crate::redact::plan(plan),
        started_unix_ms: 0,
        seconds,
        operations,
        timeline: Second::filled(timeline),
        generator,
        interrupted: None,
    }
}
