//! Has agents carry out a plan together.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::clock::{ClockSample, Difference, difference};
use super::message::{
    Answer, Hello, LONGEST_GREETING, LONGEST_REPORT, Order, Report, Welcome, receive, send,
};
use super::server::unix_ns;
use super::split;
use super::token::{Token, challenge, same};
use crate::load::{Control, Plan, Progress, check};
use crate::record::Recording;

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to open all connections.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// An agent that runs a load reports its progress much more often than that.
const REPORT_PATIENCE: Duration = Duration::from_secs(60);
/// How often an agent is asked for the time.
const QUESTIONS: usize = 16;
/// The start is this far in the future, plus some delays of the network.
const AHEAD: Duration = Duration::from_millis(100);
/// A report may cover this much more time than has passed here.
const SLACK: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// Which agents there are, and the secret that they expect.
#[derive(Clone, Debug)]
pub struct Agents {
    /// `host:port` of each.
    pub addresses: Vec<String>,
    /// The secret that they share.
    pub token: Token,
}

/// The result of a plan that agents carried out.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The recordings of all agents together.
    pub recording: Recording,
    /// For each agent: how many milliseconds its clock is ahead of ours, and how wrong this may be.
    pub clocks: Vec<(f64, f64)>,
}

/// Why agents did not carry out a plan.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// An agent cannot be reached, or the connection was lost.
    #[error("agent {agent}: {error}")]
    Connection {
        /// Its address.
        agent: String,
        /// The system's error.
        error: io::Error,
    },
    /// The two sides do not have the same token.
    #[error("agent {0}: the token is not accepted")]
    Token(String),
    /// An agent reports a failure.
    #[error("agent {agent}: {message}")]
    Failed {
        /// Its address.
        agent: String,
        /// The agent's words.
        message: String,
    },
    /// The plan cannot be shared out.
    #[error("{0}")]
    Plan(String),
}

/// Has the agents carry out a plan together, each its share.
///
/// # Errors
/// [`AgentError`]: if one agent fails, the others are stopped.
pub fn run(plan: &Plan, control: &Control, agents: &Agents) -> Result<Seen, AgentError> {
    check(plan).map_err(|error| AgentError::Plan(error.to_string()))?;
    let plans = split::split(plan, agents.addresses.len()).map_err(AgentError::Plan)?;
    let mut links = Vec::new();
    for address in &agents.addresses {
        links.push(Link::open(address, &agents.token)?);
    }
    let clocks: Vec<Difference> =
        links.iter_mut().map(Link::compare_clocks).collect::<Result<_, _>>()?;
    for (link, plan) in links.iter_mut().zip(plans) {
        link.order(&Order::Prepare(Box::new(plan)))?;
    }
    for link in &mut links {
        link.await_ready()?;
    }
    let farthest = clocks.iter().map(|clock| clock.delay).max().unwrap_or(0).max(0) as u64;
    let start = unix_ns() + AHEAD.as_nanos() as u64 + 4 * farthest;
    for (link, clock) in links.iter_mut().zip(&clocks) {
        link.order(&Order::Start { at: start.saturating_add_signed(clock.offset) })?;
    }
    control.begin_now();
    let patience = REPORT_PATIENCE + Duration::from_secs_f64(plan.warmup_seconds);
    let began = Instant::now();
    let recordings = collect(links, control, patience)?;
    // The start may be slightly earlier than this, and clocks are not exact.
    let elapsed = began.elapsed() + SLACK;
    for (agent, recording) in &recordings {
        split::check(plan, recording, elapsed.as_secs_f64()).map_err(|message| {
            AgentError::Failed { agent: agent.clone(), message: message.to_owned() }
        })?;
    }
    let offsets: Vec<f64> = clocks.iter().map(|clock| clock.offset as f64 / 1e6).collect();
    let recording = split::merge(plan, recordings, &offsets)
        .ok_or_else(|| AgentError::Plan("there are no agents".to_owned()))?;
    let in_ms = |clock: &Difference| (clock.offset as f64 / 1e6, clock.delay as f64 / 2e6);
    Ok(Seen { recording, clocks: clocks.iter().map(in_ms).collect() })
}

/// Waits for the recordings of all agents, each on a thread of its own. When one fails, or the
/// control says so, all are stopped.
fn collect(
    links: Vec<Link>,
    control: &Control,
    patience: Duration,
) -> Result<Vec<(String, Recording)>, AgentError> {
    let (sender, results) = mpsc::channel();
    let count = links.len();
    let mut stoppers = Vec::new();
    for link in &links {
        stoppers.push(link.stream.try_clone().map_err(|error| link.failed(error))?);
    }
    thread::scope(|scope| {
        for (place, mut link) in links.into_iter().enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                let result = link.await_end(control, patience);
                let _ = sender.send((place, result.map(|recording| (link.agent, recording))));
            });
        }
        let mut recordings: Vec<Option<(String, Recording)>> = vec![None; count];
        let (mut failure, mut missing, mut is_stopped) = (None, count, false);
        while missing > 0 {
            match results.recv_timeout(LOOK) {
                Ok((place, Ok(recording))) => {
                    recordings[place] = Some(recording);
                    missing -= 1;
                }
                Ok((_, Err(error))) => {
                    failure.get_or_insert(error);
                    missing -= 1;
                }
                Err(_) => {}
            }
            if (failure.is_some() || control.is_stopped()) && !is_stopped {
                is_stopped = true;
                for stream in &mut stoppers {
                    // An agent that is gone needs no order.
                    let _ = send(stream, &Order::Stop);
                }
            }
        }
        failure.map_or_else(|| Ok(recordings.into_iter().flatten().collect()), Err)
    })
}

/// The connection to an agent.
struct Link {
    agent: String,
    stream: TcpStream,
}

impl Link {
    fn open(agent: &str, token: &Token) -> Result<Link, AgentError> {
        let failed = |error| AgentError::Connection { agent: agent.to_owned(), error };
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in agent.to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    let mut link = Link { agent: agent.to_owned(), stream };
                    link.greet(token)?;
                    return Ok(link);
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    fn failed(&self, error: io::Error) -> AgentError {
        AgentError::Connection { agent: self.agent.clone(), error }
    }

    /// Proves that we know the token, and has the agent prove it too.
    fn greet(&mut self, token: &Token) -> Result<(), AgentError> {
        let refused = || AgentError::Token(self.agent.clone());
        let stream = &mut self.stream;
        let mut exchange = || -> io::Result<(Hello, String, Option<Welcome>)> {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let hello: Hello = receive(stream, LONGEST_GREETING)?;
            let ours = challenge()?;
            let proof = token.proof("coordinator", &hello.challenge, &ours);
            send(stream, &Answer { challenge: ours.clone(), proof })?;
            // An agent that does not accept the proof closes the connection.
            Ok((hello, ours, receive(stream, LONGEST_GREETING).ok()))
        };
        let (hello, ours, welcome) = match exchange() {
            Ok(said) => said,
            Err(error) => return Err(self.failed(error)),
        };
        if hello.version != 1 {
            let message = format!("it speaks version {} of the protocol, not 1", hello.version);
            return Err(AgentError::Failed { agent: self.agent.clone(), message });
        }
        let expected = token.proof("agent", &ours, &hello.challenge);
        match welcome {
            Some(welcome) if same(&welcome.proof, &expected) => Ok(()),
            _ => Err(refused()),
        }
    }

    fn order(&mut self, order: &Order) -> Result<(), AgentError> {
        send(&mut self.stream, order).map_err(|error| self.failed(error))
    }

    fn report(&mut self) -> Result<Report, AgentError> {
        match receive(&mut self.stream, LONGEST_REPORT) {
            Ok(Report::Failed(message)) => {
                Err(AgentError::Failed { agent: self.agent.clone(), message })
            }
            Ok(report) => Ok(report),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn compare_clocks(&mut self) -> Result<Difference, AgentError> {
        let mut answers = Vec::with_capacity(QUESTIONS);
        for _ in 0..QUESTIONS {
            let asked = unix_ns();
            self.order(&Order::Clock)?;
            if let Report::Clock { received, sent } = self.report()? {
                answers.push(ClockSample { asked, received, sent, answered: unix_ns() });
            }
        }
        Ok(difference(&answers))
    }

    fn await_ready(&mut self) -> Result<(), AgentError> {
        let set = self.stream.set_read_timeout(Some(READY_PATIENCE));
        set.map_err(|error| self.failed(error))?;
        match self.report()? {
            Report::Ready => Ok(()),
            _ => Err(self.failed(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Waits for the recording, and passes on how far the agent is.
    fn await_end(
        &mut self,
        control: &Control,
        patience: Duration,
    ) -> Result<Recording, AgentError> {
        let set = self.stream.set_read_timeout(Some(patience));
        set.map_err(|error| self.failed(error))?;
        let mut told = Progress::default();
        loop {
            match self.report()? {
                Report::Done(recording) => return Ok(*recording),
                Report::Progress { requests, errors, response_ms } => {
                    let more = (response_ms - told.response_ms).max(0.0) * 1e6;
                    control.add(
                        requests.saturating_sub(told.requests),
                        errors.saturating_sub(told.errors),
                        more as u64,
                    );
                    told = Progress { seconds: 0.0, requests, errors, response_ms };
                }
                _ => {}
            }
        }
    }
}
