//! Squalls: short lives of one process, each with the settings and the clients that show one kind
//! of mistake within seconds. The storm has them between its lives, and each is a test of its own.
//!
//! A squall never blames the server for being slow: it states only what must hold on any machine,
//! and it gives up on an answer after a time that no busy machine explains.

mod acknowledged;
mod deadlines;
mod directories;
mod events;
mod evictions;
mod handlers;
mod hostile;
mod kills;
pub(crate) mod leavers;
mod memory;
mod replicas;
mod web;
mod yielding;

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, PATIENCE, Reply, encode};
use tests::random::Random;
use tests::server::Server;

/// One kind.
pub(crate) struct Squall {
    pub(crate) name: &'static str,
    blow: fn(&mut Gust) -> Result<()>,
}

/// All kinds, in the order in which a storm has them.
pub(crate) const ALL: &[Squall] = &[
    Squall { name: "memory", blow: memory::blow },
    Squall { name: "yielding", blow: yielding::blow },
    Squall { name: "handlers", blow: handlers::blow },
    Squall { name: "kills", blow: kills::blow },
    Squall { name: "leavers", blow: leavers::blow },
    Squall { name: "acknowledged", blow: acknowledged::blow },
    Squall { name: "evictions", blow: evictions::blow },
    Squall { name: "web", blow: web::blow },
    Squall { name: "hostile", blow: hostile::blow },
    Squall { name: "events", blow: events::blow },
    Squall { name: "deadlines", blow: deadlines::blow },
    Squall { name: "directories", blow: directories::blow },
    Squall { name: "replicas", blow: replicas::blow },
];

/// How long a squall is that goes with the tests.
const SHORT: Duration = Duration::from_secs(3);

impl Squall {
    /// The kind of that name.
    pub(crate) fn named(name: &str) -> Result<&'static Squall> {
        ALL.iter().find(|squall| squall.name == name).with_context(|| format!("no squall {name}"))
    }

    /// Lets it blow for about this long.
    pub(crate) fn play(&self, seed: u64, duration: Duration) -> Result<()> {
        let begin = Instant::now();
        let mut gust = Gust { random: Random::new(seed), end: begin + duration };
        (self.blow)(&mut gust).with_context(|| {
            let after = begin.elapsed().as_secs_f32();
            format!("squall {}, seed {seed}, after {after:.1} s", self.name)
        })
    }
}

/// What a squall does next, and for how long it goes on.
#[derive(Clone)]
pub(crate) struct Gust {
    random: Random,
    end: Instant,
}

impl Gust {
    fn goes_on(&self) -> bool {
        Instant::now() < self.end
    }

    /// The same for one of several threads.
    fn branch(&mut self) -> Gust {
        Gust { random: Random::new(self.random.bits()), end: self.end }
    }

    fn rest(&mut self, most_microseconds: i64) {
        let wanted = self.random.between(0, most_microseconds).unsigned_abs();
        thread::sleep(Duration::from_micros(wanted));
    }
}

/// What one of several threads does.
type Part<'p> = Box<dyn FnOnce() -> Result<()> + Send + 'p>;

/// Plays parts side by side until all have ended. The first error is the result.
fn together(parts: Vec<Part<'_>>) -> Result<()> {
    thread::scope(|scope| {
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(part)).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("no client panics"));
        results.fold(Ok(()), Result::and)
    })
}

/// Adds to an error what the server has to say; a server that has ended is one.
fn with_server(result: Result<()>, server: &mut Server) -> Result<()> {
    let result = match server.is_running() {
        true => result,
        false => result.and(Err(anyhow::anyhow!("the process has ended by itself"))),
    };
    result.with_context(|| server.log_tail())
}

/// The answer to a command whose words are given, where an error is none.
fn done<W: AsRef<[u8]>>(client: &mut Client, words: &[W]) -> Result<Reply> {
    let reply = client.call(words)?;
    ensure!(!reply.is_error(), "{} was answered {reply:?}", shown(words));
    Ok(reply)
}

/// An answer that is a whole number.
fn integer(client: &mut Client, command: &str) -> Result<i64> {
    match client.call_text(command)? {
        Reply::Integer(number) => Ok(number),
        other => anyhow::bail!("{command} was answered {other:?}"),
    }
}

fn shown<W: AsRef<[u8]>>(words: &[W]) -> String {
    let words = words.iter().map(|word| String::from_utf8_lossy(word.as_ref()).into_owned());
    words.collect::<Vec<_>>().join(" ").chars().take(100).collect()
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// Whether an error says that a script runs for long.
fn is_busy(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"BUSY "))
}

/// A connection of which only the sending matters, and how it ends.
pub(crate) fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(Duration::from_millis(300)))?;
    Ok(stream)
}

/// Sends commands, as far as the server takes them in time.
fn send(stream: &mut TcpStream, commands: &[Vec<&str>]) {
    let mut request = Vec::new();
    commands.iter().for_each(|words| encode(words, &mut request));
    let _ = stream.write_all(&request);
}

/// A program that stalls some writes of the append-only file below a directory, if it is there.
/// `when` counts the writes of each thread.
fn stalling_writes(directory: &str, seconds: u64, when: &str) -> Option<Vec<String>> {
    let is_there = Command::new("strace").arg("--version").output().is_ok();
    if !is_there {
        let _ = writeln!(std::io::stderr(), "SKIPPED a squall with writes that stall: no strace");
        return None;
    }
    let file = format!("{directory}/appendonlydir/appendonly.aof.1.incr.aof");
    let inject = format!("inject=writev,write:delay_enter={}:when={when}", seconds * 1_000_000);
    let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", &file];
    let more = ["-e", "trace=writev,write", "-e", &inject];
    Some(words.iter().chain(&more).map(|word| (*word).to_owned()).collect())
}

#[cfg(test)]
mod tests_of_each {
    //! Each kind by itself, with a seed that stays.

    use anyhow::Result;

    use super::{SHORT, Squall};

    fn short(name: &str) -> Result<()> {
        Squall::named(name)?.play(1, SHORT)
    }

    #[test]
    fn scripts_that_find_no_memory_end_alone() -> Result<()> {
        short("memory")
    }

    #[test]
    fn slow_scripts_spare_the_pipelines_beside_them() -> Result<()> {
        short("yielding")
    }

    #[test]
    fn handlers_of_errors_never_hold_the_server() -> Result<()> {
        short("handlers")
    }

    #[test]
    fn a_kill_is_a_fence() -> Result<()> {
        short("kills")
    }

    #[test]
    fn clients_that_leave_are_noticed() -> Result<()> {
        short("leavers")
    }

    #[test]
    fn acknowledged_writes_outlive_a_kill() -> Result<()> {
        short("acknowledged")
    }

    #[test]
    fn a_slow_disk_evicts_nothing() -> Result<()> {
        short("evictions")
    }

    #[test]
    fn large_values_take_bounded_memory_over_http() -> Result<()> {
        short("web")
    }

    #[test]
    fn hostile_clients_leave_the_others_their_answers() -> Result<()> {
        short("hostile")
    }

    #[test]
    fn events_of_a_key_come_in_the_order_of_its_changes() -> Result<()> {
        short("events")
    }

    #[test]
    fn deadlines_count_from_the_command() -> Result<()> {
        short("deadlines")
    }

    #[test]
    fn replicas_lose_nothing_that_they_have_acknowledged() -> Result<()> {
        short("replicas")
    }

    #[test]
    fn two_servers_never_share_files() -> Result<()> {
        short("directories")
    }
}
