//! The limit: a server that only finds where requests end and answers all of them alike. No server
//! of the same kind can do less, so a load against it costs only what the load itself and the
//! kernel cost. It can also stall on purpose, which shows how a generator records that.

mod framing;

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;

use crate::load::duration;
use framing::{Counted, Framing};

const COMMAND_REPLY: &[u8] = b"+OK\r\n";
const PAGE_REPLY: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nOK";
/// The name of the listening socket among the connections, whose names count from 0.
const LISTENER: u64 = u64::MAX;
/// How often to check whether to stop, in nanoseconds.
const LOOK: i64 = 50_000_000;
const READ_BUFFER: usize = 128 * 1024;
const EVENTS_PER_TURN: usize = 256;

/// The settings of the limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Where it listens; port 0 for any that is free.
    pub address: SocketAddr,
    /// Threads that answer.
    pub threads: usize,
    /// When it stops answering.
    pub stall: Option<Stall>,
    /// The length of the value that answers each command; 0 for `+OK`.
    pub reply_bytes: usize,
}

/// A pause without any answer, again and again: `100ms:1s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// How long it takes.
    pub pause: Duration,
    /// From one to the next.
    pub every: Duration,
}

impl FromStr for Stall {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| duration::parse(text).map(Duration::from_secs_f64);
        let parts = text.split_once(':').and_then(|(pause, every)| time(pause).zip(time(every)));
        match parts {
            Some((pause, every)) if pause < every => Ok(Stall { pause, every }),
            _ => Err(format!("'{text}' is no stall: use PAUSE:EVERY, as in 100ms:1s")),
        }
    }
}

/// Answers until `stop` is set. Passes its address to `ready`.
///
/// # Errors
/// The address cannot be bound, or the system refuses an event queue.
pub fn serve(limit: &Limit, stop: &AtomicBool, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let listener = TcpListener::bind(limit.address)?;
    listener.set_nonblocking(true)?;
    let responders = (0..limit.threads.max(1))
        .map(|_| Responder::new(listener.try_clone()?, limit))
        .collect::<io::Result<Vec<_>>>()?;
    ready(listener.local_addr()?);
    thread::scope(|scope| {
        let threads: Vec<_> =
            responders.into_iter().map(|one| scope.spawn(move || one.run(stop))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// A client.
struct Client {
    stream: TcpStream,
    framing: Framing,
    /// Replies that the kernel did not take yet.
    unsent: Vec<u8>,
}

/// One thread.
struct Responder {
    listener: TcpListener,
    epoll: OwnedFd,
    clients: HashMap<u64, Client>,
    next_name: u64,
    buffer: Vec<u8>,
    output: Vec<u8>,
    /// The answer to a command.
    reply: Vec<u8>,
    stall: Option<Stall>,
    next_stall: Instant,
}

impl Responder {
    fn new(listener: TcpListener, limit: &Limit) -> io::Result<Self> {
        let stall = limit.stall;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let name = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, name, epoll::EventFlags::IN)?;
        Ok(Responder {
            listener,
            epoll,
            clients: HashMap::new(),
            next_name: 0,
            buffer: vec![0; READ_BUFFER],
            output: Vec::new(),
            reply: command_reply(limit.reply_bytes),
            stall,
            next_stall: Instant::now() + stall.map_or(Duration::ZERO, |stall| stall.every),
        })
    }

    fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_PER_TURN];
        while !stop.load(Ordering::Relaxed) {
            self.pause();
            let events = match epoll::wait(&self.epoll, &mut events[..], Some(&timeout)) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for event in &*events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    name => self.answer(name),
                }
            }
        }
        Ok(())
    }

    /// Stops answering for a while, if it is time for that.
    fn pause(&mut self) {
        let Some(stall) = self.stall else { return };
        if Instant::now() >= self.next_stall {
            thread::sleep(stall.pause);
            self.next_stall += stall.every;
        }
    }

    fn accept(&mut self) {
        // Another thread may have been faster.
        while let Ok((stream, _)) = self.listener.accept() {
            let name = epoll::EventData::new_u64(self.next_name);
            let is_ready = stream.set_nonblocking(true).is_ok()
                && stream.set_nodelay(true).is_ok()
                && epoll::add(&self.epoll, &stream, name, epoll::EventFlags::IN).is_ok();
            if is_ready {
                let client = Client { stream, framing: Framing::default(), unsent: Vec::new() };
                self.clients.insert(self.next_name, client);
                self.next_name += 1;
            }
        }
    }

    /// Reads the input of a client, and answers it. A client that cannot be served is closed.
    fn answer(&mut self, name: u64) {
        let Some(client) = self.clients.get_mut(&name) else { return };
        let was_waiting = !client.unsent.is_empty();
        if !was_waiting {
            let length = match recv(&client.stream, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((_, length)) if length > 0 => length,
                Err(Errno::AGAIN | Errno::INTR) => return,
                _ => return self.forget(name),
            };
            let Ok(counted) = client.framing.take(&self.buffer[..length]) else {
                return self.forget(name);
            };
            lay_out(counted, &self.reply, &mut self.output);
        } else {
            self.output.clear();
            self.output.append(&mut client.unsent);
        }
        if self.output.is_empty() {
            return;
        }
        let sent = match send(&client.stream, &self.output, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return self.forget(name),
        };
        if sent < self.output.len() {
            client.unsent.extend_from_slice(&self.output[sent..]);
        }
        // While replies wait, nothing is read: a client that does not take them sends no more.
        let waits = !client.unsent.is_empty();
        if waits != was_waiting {
            let wanted = if waits { epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
            let data = epoll::EventData::new_u64(name);
            if epoll::modify(&self.epoll, &client.stream, data, wanted).is_err() {
                self.forget(name);
            }
        }
    }

    fn forget(&mut self, name: u64) {
        self.clients.remove(&name);
    }
}

/// The answer to a command: `+OK`, or a value of this length.
fn command_reply(bytes: usize) -> Vec<u8> {
    if bytes == 0 {
        return COMMAND_REPLY.to_vec();
    }
    let value = vec![b'x'; bytes];
    [format!("${bytes}\r\n").as_bytes(), &value, b"\r\n"].concat()
}

/// Writes the replies to this many requests.
fn lay_out(counted: Counted, reply: &[u8], output: &mut Vec<u8>) {
    output.clear();
    for _ in 0..counted.commands {
        output.extend_from_slice(reply);
    }
    for _ in 0..counted.pages {
        output.extend_from_slice(PAGE_REPLY);
    }
}

#[cfg(test)]
mod tests;
