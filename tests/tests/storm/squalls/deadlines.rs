//! Deadlines after slow scripts: a lock's time to live counts from when its command ran, and no
//! waiting client gives up early.
//!
//! A client does not know when its command ran. But the command before it has read the mark of a
//! script, so the command ran after that script had taken its time. So every assertion is a lower
//! bound, which a busy machine only makes easier to keep.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::server::{Server, Target};

use super::{Gust, done, text, with_server};

/// Takes this many seconds of processor time, and sets a mark.
const SPIN: &str = "local t=os.clock()+tonumber(ARGV[1]) while os.clock()<t do end \
                    return redis.call('set',KEYS[1],'x')";
/// How long the script takes that lets the others gather, so that one turn has them all, and how
/// long the one that holds them up.
const GATHERING: f64 = 0.05;
const HOLDING: f64 = 0.25;
/// By how much at least a script that took so long puts off what is behind it. The processor time
/// of the process, which it waits for, is that of all its threads.
const CERTAIN: Duration = Duration::from_millis(200);

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let options = [("threads", "1"), ("busy-reply-threshold", "600000")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let result = play(&server, gust);
    with_server(result, &mut server)
}

/// What a command was answered that was sent behind a script.
struct Behind {
    client: Client,
    reply: Reply,
    /// It did not run before that.
    earliest: Instant,
    /// How long the answer to the command before it took.
    held_up: Duration,
}

/// Plays rounds whose deadlines are a little shorter than what scripts have just taken. Who counts
/// from before the scripts finds them over, and none of them is, because the scripts' time comes on
/// top.
fn play(server: &Server, gust: &mut Gust) -> Result<()> {
    let mut held_up = Duration::from_secs_f64(GATHERING + HOLDING);
    let mut rounds = 0;
    while rounds < 3 || gust.goes_on() {
        let lasts = held_up.saturating_sub(CERTAIN / 3).max(CERTAIN);
        let lasts = u64::try_from(lasts.as_millis())?;
        let kind = *gust.random.pick(&[lock, wait_for_element, pause]);
        held_up = kind(server, lasts)?;
        rounds += 1;
    }
    Ok(())
}

/// Sends a long script, and a command from another client, while a third one keeps the thread busy.
fn behind_script(server: &Server, command: &[&str]) -> Result<Behind> {
    let mut clients = [server.connect()?, server.connect()?, server.connect()?];
    for client in &mut clients {
        done(client, &["DEL", "mark", "lock"])?;
    }
    let [gatherer, runner, mut client] = clients;
    let mut scripts = [gatherer, runner];
    let begin = Instant::now();
    let parts = [("other", GATHERING), ("mark", HOLDING)];
    for (script, (mark, seconds)) in scripts.iter_mut().zip(parts) {
        script.send(&["EVAL", SPIN, "1", mark, &seconds.to_string()])?;
        sleep(Duration::from_millis(10));
    }
    let mut request = Vec::new();
    encode(&["GET", "mark"], &mut request);
    encode(command, &mut request);
    client.send_raw(&request)?;
    let is_behind = receive(&mut client)? != Reply::Nil;
    let held_up = begin.elapsed();
    let reply = receive(&mut client)?;
    for script in &mut scripts {
        receive(script)?;
    }
    let earliest = if is_behind { begin + CERTAIN } else { begin };
    Ok(Behind { client, reply, earliest, held_up })
}

fn receive(client: &mut Client) -> Result<Reply> {
    match client.receive()? {
        Received::Reply(reply) => Ok(reply),
        Received::Closed => bail!("the connection was closed"),
    }
}

/// A lock is there right after it was given, unless its time is over.
fn lock(server: &Server, lasts: u64) -> Result<Duration> {
    let command = ["SET", "lock", "mine", "NX", "PX", &lasts.to_string()];
    let mut behind = behind_script(server, &command)?;
    ensure!(text(&behind.reply) == "OK", "nobody has the lock: {:?}", behind.reply);
    let owner = text(&behind.client.call_text("GET lock")?);
    let since = behind.earliest.elapsed();
    ensure!(
        owner == "mine" || since >= Duration::from_millis(lasts),
        "a lock of {lasts} ms was gone after {since:?} at most"
    );
    Ok(behind.held_up)
}

/// A wait is not over before its time.
fn wait_for_element(server: &Server, lasts: u64) -> Result<Duration> {
    let waits = Duration::from_millis(lasts);
    let command = ["BLPOP", "nothing", &format!("{:.3}", waits.as_secs_f64())];
    let behind = behind_script(server, &command)?;
    let since = behind.earliest.elapsed();
    ensure!(behind.reply == Reply::NilArray, "BLPOP was answered {:?}", behind.reply);
    ensure!(since >= waits, "BLPOP of {waits:?} gave up after {since:?} at most");
    Ok(behind.held_up)
}

/// A pause is not over before its time.
fn pause(server: &Server, lasts: u64) -> Result<Duration> {
    let command = ["CLIENT", "PAUSE", &lasts.to_string(), "WRITE"];
    let mut behind = behind_script(server, &command)?;
    ensure!(!behind.reply.is_error(), "CLIENT PAUSE was answered {:?}", behind.reply);
    done(&mut behind.client, &["SET", "written", "1"])?;
    let since = behind.earliest.elapsed();
    ensure!(
        since >= Duration::from_millis(lasts),
        "a pause of {lasts} ms was over after {since:?} at most"
    );
    Ok(behind.held_up)
}
