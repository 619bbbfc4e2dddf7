//! Scripts whose error handlers loop: SCRIPT KILL and SHUTDOWN end them all the same. When other
//! threads hold the slots that a script needs, its handlers are not called.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::client::{Client, Received, Reply};
use tests::server::{Server, Target};

use super::{Gust, done, is_busy, text, together, with_server};

/// How long the end of a script may take that was told to end, or of a process.
const PATIENCE: Duration = Duration::from_secs(60);
/// A handler that never ends.
const LOOP: &str = "function(e) while true do end end";
/// Keys that scripts contend for.
const COUNTERS: usize = 7;

/// Scripts that do not end by themselves and have written nothing. `L` stands for [`LOOP`].
const ENDLESS: &[&str] = &[
    "xpcall(function() while true do end end,L)",
    "xpcall(function() error('x') end,L)",
    "xpcall(function() redis.call('nosuch') end,L)",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(function() while true do redis.call('get',KEYS[1]) end end,L) end",
    "coroutine.wrap(function() xpcall(function() while true do end end,L) end)() while true do end",
    "xpcall(function() xpcall(function() while true do end end,L) end,L)",
    "xpcall(function() string.gsub('x','x',function() while true do end end) end,L)",
    "xpcall(function() table.sort({3,2,1},function() while true do end end) end,L)",
    "local ok repeat ok=pcall(function() while true do end end) until false",
    "setmetatable({},{__index=L}) xpcall(function() local t=setmetatable({},{__index=L}) return t.x end,L)",
];

/// Scripts that end by themselves, whatever others hold. The first argument makes them differ.
const CONTENDING: &[&str] = &[
    "xpcall(function() for i=1,40 do redis.call('incr','c:'..((i*ARGV[1])%7)) end end,L) return 40",
    "local n=0 while n<40 do if pcall(redis.call,'incr','c:'..((n*ARGV[1])%7)) then n=n+1 end end \
     return 40",
    "for i=1,40 do xpcall(function() redis.call('get','c:'..((i*ARGV[1])%7)) end,L) end return 0",
    "for i=1,20 do local k='c:'..((i*ARGV[1])%7) while not pcall(redis.call,'get',k) do end end \
     return 0",
];

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let threshold = gust.random.between(1, 50).to_string();
    let options = [("threads", "3"), ("busy-reply-threshold", &threshold)];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let contention = contend(&server, gust);
    with_server(contention, &mut server)?;
    let mut rounds = 0;
    while rounds < 2 || gust.goes_on() {
        let script = gust.random.pick(ENDLESS).replace('L', LOOP);
        let killed = end_by_kill(&server, &script);
        with_server(killed, &mut server)?;
        rounds += 1;
    }
    let loaded = load_endless(&server);
    with_server(loaded, &mut server)?;
    let script = gust.random.pick(ENDLESS).replace('L', LOOP);
    end_process(&mut server, &script, gust.random.percent(50))
}

/// Scripts of several threads want slots of each other, and commands want them too.
fn contend(server: &Server, gust: &mut Gust) -> Result<()> {
    let mut counts = [0, 0, 0];
    let mut parts: Vec<super::Part<'_>> = Vec::new();
    let end = Instant::now() + gust.end.saturating_duration_since(Instant::now()) / 2;
    for count in &mut counts {
        let mut branch = Gust { end, ..gust.branch() };
        parts.push(Box::new(move || {
            let mut client = server.connect()?;
            while branch.goes_on() {
                let script = branch.random.pick(CONTENDING).replace('L', LOOP);
                let factor = branch.random.between(1, 100).to_string();
                let reply = client.call(&["EVAL", &script, "0", &factor])?;
                match reply {
                    Reply::Integer(done) => *count += done,
                    ref busy if is_busy(busy) => {}
                    other => anyhow::bail!("{script} was answered {other:?}"),
                }
            }
            Ok(())
        }));
    }
    let mut branch = Gust { end, ..gust.branch() };
    parts.push(Box::new(move || {
        let mut client = server.connect()?;
        while branch.goes_on() {
            let key = format!("c:{}", branch.random.below(COUNTERS));
            client.call(&["GETRANGE", &key, "0", "0"])?;
            client.call(&["MGET", "c:0", "c:1", "c:2", "c:3", "c:4", "c:5", "c:6"])?;
        }
        Ok(())
    }));
    together(parts)?;
    let mut client = server.connect()?;
    let mut sum = 0;
    for counter in 0..COUNTERS {
        let reply = done(&mut client, &["GET", &format!("c:{counter}")])?;
        sum += text(&reply).parse().unwrap_or(0);
    }
    let wanted: i64 = counts.iter().sum();
    ensure!(sum == wanted, "scripts counted to {wanted}, and the counters hold {sum}");
    Ok(())
}

/// A script runs, SCRIPT KILL says OK, and it ends.
fn end_by_kill(server: &Server, script: &str) -> Result<()> {
    let (mut runner, mut killer) = (server.connect()?, server.connect()?);
    runner.send(&["EVAL", script, "1", "key"])?;
    let begin = Instant::now();
    loop {
        let reply = killer.call_text("SCRIPT KILL")?;
        if reply == Reply::Status(b"OK".to_vec()) {
            break;
        }
        let said = text(&reply);
        ensure!(said.starts_with("NOTBUSY"), "SCRIPT KILL was answered {said} ({script})");
        ensure!(begin.elapsed() < PATIENCE, "SCRIPT KILL does not find {script}");
        std::thread::sleep(Duration::from_millis(1));
    }
    ensure!(runner.has_input(PATIENCE)?, "SCRIPT KILL said OK, and this runs on: {script}");
    let reply = match runner.receive()? {
        Received::Reply(reply) => reply,
        Received::Closed => anyhow::bail!("the connection of a killed script was closed"),
    };
    ensure!(text(&reply).contains("killed by user"), "a killed script answers {reply:?}");
    let reply = runner.call(&["EVAL", "return 7", "0"])?;
    ensure!(reply == Reply::Integer(7), "after a killed script, another answers {reply:?}");
    Ok(())
}

/// A library whose first lines never end is refused, and everybody goes on.
fn load_endless(server: &Server) -> Result<()> {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(server.connect()?);
    }
    let library = format!("#!lua name=endless\nxpcall(function() while true do end end,{LOOP})");
    let (loader, others) = clients.split_first_mut().expect("four were made");
    loader.send(&["FUNCTION", "LOAD", &library])?;
    for client in others {
        client.send(&["SET", "other", "1"])?;
        ensure!(client.has_input(PATIENCE)?, "FUNCTION LOAD holds everybody for ever");
        client.receive()?;
    }
    ensure!(loader.has_input(PATIENCE)?, "FUNCTION LOAD never ends");
    Ok(())
}

/// A script runs, and the process is told to end. A signal waits for the script, which is then
/// killed.
fn end_process(server: &mut Server, script: &str, by_signal: bool) -> Result<()> {
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    runner.send(&["EVAL", script, "1", "key"])?;
    wait_until_busy(&mut other)?;
    let how = if by_signal { "SIGTERM with SCRIPT KILL" } else { "SHUTDOWN NOSAVE" };
    if by_signal {
        let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process has a number")?, Signal::TERM)?;
        other.send(&["SCRIPT", "KILL"])?;
    } else {
        other.send(&["SHUTDOWN", "NOSAVE"])?;
    }
    let begin = Instant::now();
    while server.is_running() {
        ensure!(begin.elapsed() < PATIENCE, "{how} does not end {script}\n{}", server.log_tail());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn wait_until_busy(client: &mut Client) -> Result<()> {
    let begin = Instant::now();
    // The script holds this key.
    while !is_busy(&client.call_text("GET key")?) {
        ensure!(begin.elapsed() < PATIENCE, "a script that runs for long is not told of");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
