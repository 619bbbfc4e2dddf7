//! Scripts that run for long on the only thread that there is, or beside others that wait for them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, number, wait_until};
use tests::replication::{check_alike_between, follow};
use tests::server::{Server, Target};
use tests::web::Web;

/// A script that never ends by itself, and holds the slot of `held`.
const ENDLESS: [&str; 4] = ["EVAL", "redis.call('get', KEYS[1]) while true do end", "1", "held"];

fn start() -> Result<Server> {
    start_with("1", &[])
}

fn start_with(threads: &str, more: &[(&str, &str)]) -> Result<Server> {
    let options = [("threads", threads), ("busy-reply-threshold", "50")];
    Server::start(Target::Dunlin, &[&options, more].concat())
}

fn say(client: &mut Client, command: &str) -> Result<String> {
    let reply = client.call_text(command)?;
    Ok(String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned())
}

fn received(client: &mut Client) -> Result<String> {
    ensure!(client.has_input(Duration::from_secs(20))?, "no reply comes");
    Ok(match client.receive()? {
        Received::Reply(reply) => {
            String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
        }
        Received::Closed => "closed".to_owned(),
    })
}

/// Waits until a client is told that a script runs for long.
fn wait_until_slow(other: &mut Client) -> Result<()> {
    wait_until("the script that is slow", || Ok(say(other, "GET held")?.starts_with("BUSY")))
}

#[test]
fn a_slow_script_lets_its_thread_serve_others_who_may_kill_it() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other, mut blocked, mut listener) =
        (server.connect()?, server.connect()?, server.connect()?, server.connect()?);
    listener.call_text("SUBSCRIBE news")?;
    blocked.send(&["BLPOP", "list", "0"])?;
    let mut pipeline = Vec::new();
    tests::client::encode(&ENDLESS, &mut pipeline);
    tests::client::encode(&["INCR", "behind"], &mut pipeline);
    runner.send_raw(&pipeline)?;
    wait_until_slow(&mut other)?;
    // Commands that need nothing of the script's go on, and so do connections that come now.
    ensure!(say(&mut other, "SET free 1")? == "OK");
    let mut newcomer = server.connect()?;
    ensure!(say(&mut newcomer, "GET free")? == "1");
    ensure!(newcomer.call_text("RPUSH list a")? == Reply::Integer(1));
    ensure!(matches!(blocked.receive()?, Received::Reply(Reply::Array(_))));
    ensure!(newcomer.call_text("PUBLISH news x")? == Reply::Integer(1));
    ensure!(listener.has_input(Duration::from_secs(20))?);
    for refused in ["SET held 1", "EVAL x 0", "SCRIPT FLUSH", "FLUSHALL", "SWAPDB 0 1", "SHUTDOWN"]
    {
        let said = say(&mut other, refused)?;
        ensure!(said.starts_with("BUSY"), "{refused}: {said}");
    }
    drop(newcomer);
    ensure!(other.call_text("GET behind")? == Reply::Nil);
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    let ended = received(&mut runner)?;
    ensure!(ended.contains("Script killed by user with SCRIPT KILL"), "{ended}");
    ensure!(matches!(runner.receive()?, Received::Reply(Reply::Integer(1))), "what came behind it");
    // The thread is as it was.
    for client in [&mut runner, &mut other, &mut blocked] {
        ensure!(say(client, "GET free")? == "1");
    }
    ensure!(other.call(&["EVAL", "return 7", "0"])? == Reply::Integer(7));
    ensure!(say(&mut other, "FLUSHALL")? == "OK");
    Ok(())
}

#[test]
fn a_slow_script_that_has_written_ends_only_when_the_server_does() -> Result<()> {
    let mut server = start()?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    for command in ["MULTI", "SET held 1"] {
        runner.call_text(command)?;
    }
    runner.call(&["EVAL", "redis.call('set', KEYS[1], 2) while true do end", "1", "held"])?;
    runner.send(&["EXEC"])?;
    wait_until_slow(&mut other)?;
    let said = say(&mut other, "SCRIPT KILL")?;
    ensure!(said.starts_with("UNKILLABLE"), "{said}");
    let said = say(&mut other, "SHUTDOWN")?;
    ensure!(said.starts_with("BUSY"), "{said}");
    other.send(&["SHUTDOWN", "NOSAVE"])?;
    wait_until("the end of the process", || Ok(!server.is_running()))
}

#[test]
fn a_connection_that_closes_during_a_slow_script_leaves_no_trace() -> Result<()> {
    let server = start()?;
    let mut control = server.connect()?;
    for round in 0..20 {
        let mut runner = server.connect()?;
        runner.send(&ENDLESS)?;
        wait_until_slow(&mut control)?;
        // They come, say something, and go, while the place of the runner is kept.
        for number in 0..10 {
            let mut passing = server.connect()?;
            let (key, value) = (format!("k{number}"), format!("v{round}"));
            ensure!(passing.call(&["SET", &key, &value])? == Reply::Status(b"OK".to_vec()));
            ensure!(passing.call(&["GET", &key])? == Reply::Bulk(value.into_bytes()));
        }
        if round % 2 == 0 {
            // The runner itself leaves as well.
            drop(runner);
            ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
        } else {
            ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
            ensure!(received(&mut runner)?.contains("SCRIPT KILL"));
            ensure!(say(&mut runner, "GET k0")? == format!("v{round}"));
        }
        wait_until("the end of the script", || {
            Ok(!say(&mut control, "GET held")?.starts_with("BUSY"))
        })?;
    }
    Ok(())
}

/// What came at the runner's socket while its script ran is not forgotten, the end of it least of
/// all.
#[test]
fn a_client_that_closes_its_side_during_its_slow_script_is_answered() -> Result<()> {
    let server = start()?;
    let mut control = server.connect()?;
    let mut runner = TcpStream::connect(("127.0.0.1", server.port()))?;
    runner.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut request = Vec::new();
    tests::client::encode(&ENDLESS, &mut request);
    runner.write_all(&request)?;
    wait_until_slow(&mut control)?;
    runner.write_all(b"PING\r\n")?;
    runner.shutdown(Shutdown::Write)?;
    // The end is noticed in a turn of the others.
    for _ in 0..20 {
        ensure!(say(&mut control, "PING")? == "PONG");
    }
    ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
    let mut answer = String::new();
    runner.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("-ERR Script killed") && answer.ends_with("+PONG\r\n"), "{answer}");
    Ok(())
}

/// Keys that come and go leave tables behind, which others might still look at.
#[test]
fn tables_that_others_replace_are_freed_during_a_slow_script() -> Result<()> {
    let server = start_with("2", &[])?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    runner.send(&ENDLESS)?;
    wait_until_slow(&mut other)?;
    let before = number(&mut other, "used_memory")?;
    let mut requests = Vec::new();
    for place in 0..1000 {
        let key = format!("k{place}");
        for words in [&["SET", &key, "v"][..], &["DEL", &key]] {
            tests::client::encode(words, &mut requests);
        }
    }
    for _ in 0..200 {
        other.send_raw(&requests)?;
        for _ in 0..2000 {
            ensure!(matches!(other.receive()?, Received::Reply(reply) if !reply.is_error()));
        }
    }
    let mut control = server.connect()?;
    let freed = || Ok(number(&mut control, "used_memory")? < before + (1 << 20));
    wait_until("the end of the tables", freed)?;
    ensure!(say(&mut other, "GET held")?.starts_with("BUSY"), "the script still runs");
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    Ok(())
}

/// A client that waits already when the script becomes slow is told, too, whatever it waits for.
#[test]
fn commands_that_waited_before_a_script_was_slow_get_busy() -> Result<()> {
    for threads in ["1", "2"] {
        let server = start_with(threads, &[])?;
        let (mut runner, mut control) = (server.connect()?, server.connect()?);
        let waiting: &[&[&str]] = &[
            &["GET held"],
            &["KEYS *"],
            &["MULTI", "KEYS *", "EXEC"],
            &["FLUSHALL"],
            &["MSET held 1 other 2"],
            &["SORT list BY *"],
        ];
        ensure!(control.call_text("RPUSH list held held")? == Reply::Integer(2));
        ensure!(say(&mut control, "SET held 1")? == "OK");
        let mut others = Vec::new();
        for _ in waiting {
            others.push(server.connect()?);
        }
        runner.send(&ENDLESS)?;
        // By then it runs, and it is not slow yet.
        std::thread::sleep(Duration::from_millis(20));
        for (client, commands) in others.iter_mut().zip(waiting) {
            for command in *commands {
                client.send(&command.split(' ').collect::<Vec<_>>())?;
            }
        }
        for (client, commands) in others.iter_mut().zip(waiting) {
            let mut last = String::new();
            for _ in *commands {
                last = received(client)?;
            }
            ensure!(
                last.to_lowercase().contains("busy"),
                "{threads} threads, {commands:?}: {last}"
            );
        }
        wait_until_slow(&mut control)?;
        for command in ["KEYS *", "DEBUG DIGEST", "SORT list BY *"] {
            let said = say(&mut control, command)?;
            ensure!(said.starts_with("BUSY"), "{threads} threads, {command}: {said}");
        }
        ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
        ensure!(received(&mut runner)?.contains("SCRIPT KILL"));
        ensure!(say(&mut control, "GET held")? == "1");
    }
    Ok(())
}

/// Others hear of the slots that it has taken since it became slow.
#[test]
fn slots_that_a_slow_script_locks_later_are_busy_too() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    let script = "redis.call('get', KEYS[1]) local t = os.clock() + 0.3 \
                  while os.clock() < t do end redis.call('get', ARGV[1]) while true do end";
    runner.send(&["EVAL", script, "1", "held", "later"])?;
    wait_until_slow(&mut other)?;
    wait_until("the second slot", || Ok(say(&mut other, "SET later 1")?.starts_with("BUSY")))?;
    ensure!(say(&mut other, "SET free 1")? == "OK");
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    Ok(())
}

/// A script that has written and waits for another one keeps no other command waiting.
#[test]
fn a_script_that_waits_for_a_slot_serves_others_meanwhile() -> Result<()> {
    let server = start_with("2", &[])?;
    let mut control = server.connect()?;
    let (mut first, mut second) = (server.connect()?, server.connect()?);
    first.send(&["EVAL", "redis.call('set', KEYS[1], 1) while true do end", "1", "held"])?;
    wait_until_slow(&mut control)?;
    // It is on the other worker: on that of the first it would be refused.
    let script = "redis.call('set', KEYS[1], 1) return redis.call('get', ARGV[1])";
    let mut tries = 0;
    loop {
        second.send(&["EVAL", script, "1", "free", "held"])?;
        if !second.has_input(Duration::from_millis(500))? {
            break;
        }
        ensure!(received(&mut second)?.starts_with("BUSY"));
        second = server.connect()?;
        tries += 1;
        ensure!(tries < 100, "no connection of the other worker");
    }
    for _ in 0..8 {
        let mut other = server.connect()?;
        other.send(&["PING"])?;
        ensure!(received(&mut other)? == "PONG");
        ensure!(say(&mut other, "SET elsewhere 1")? == "OK");
        ensure!(say(&mut other, "SET free 2")?.starts_with("BUSY"));
    }
    let mut server = server;
    control.send(&["SHUTDOWN", "NOSAVE"])?;
    wait_until("the end of the process", || Ok(!server.is_running()))
}

/// A signal lets it go on to its end, as in Redis; who cannot wait for that may still say so.
#[test]
fn a_shutdown_that_waits_for_a_slow_script_can_be_forced() -> Result<()> {
    for options in [&[][..], &[("save", "3600 1")]] {
        let mut server = start_with("1", options)?;
        let (mut runner, mut other) = (server.connect()?, server.connect()?);
        let endless = "redis.call('set', KEYS[1], 1) while true do end";
        runner.send(&["EVAL", endless, "1", "held"])?;
        wait_until_slow(&mut other)?;
        for refused in ["SAVE", "BGSAVE"] {
            let said = say(&mut other, refused)?;
            ensure!(said.starts_with("BUSY"), "{refused}: {said}");
        }
        let process = Pid::from_raw(server.pid().cast_signed()).context("it has a number")?;
        kill_process(process, Signal::TERM)?;
        ensure!(!runner.has_input(Duration::from_millis(300))? && server.is_running());
        ensure!(say(&mut other, "PING")? == "PONG");
        other.send(&["SHUTDOWN", "NOSAVE"])?;
        wait_until("the end of the process", || Ok(!server.is_running()))?;
        server.start_again()?;
        ensure!(server.connect()?.call_text("GET held")? == Reply::Nil, "nothing of it was saved");
    }
    Ok(())
}

/// A script that empties all data stops the world; when it is slow, others are told, and may stop
/// the server.
#[test]
fn a_slow_script_that_empties_databases_lets_others_be_refused() -> Result<()> {
    for threads in ["1", "2"] {
        let mut server = start_with(threads, &[])?;
        let (mut runner, mut other) = (server.connect()?, server.connect()?);
        ensure!(say(&mut other, "SET held 1")? == "OK");
        // In a transaction as well; what needs all gates behind it closes them again.
        let spin = "local t = os.clock() + 0.3 while os.clock() < t do end return 1";
        runner.call_text("MULTI")?;
        runner.call_text("FLUSHALL")?;
        runner.call(&["EVAL", spin, "0"])?;
        runner.call_text("FLUSHALL")?;
        runner.call_text("SET held 2")?;
        runner.send(&["EXEC"])?;
        wait_until_slow(&mut other)?;
        ensure!(runner.has_input(Duration::from_secs(20))?);
        let Received::Reply(Reply::Array(replies)) = runner.receive()? else { bail!("no replies") };
        let shown = format!("{replies:?}");
        ensure!(!replies.iter().any(Reply::is_error), "{shown}");
        ensure!(say(&mut other, "GET held")? == "2", "{shown}");
        ensure!(say(&mut other, "FLUSHALL")? == "OK");
        runner.send(&["EVAL", "redis.call('flushall') while true do end", "0"])?;
        wait_until_slow(&mut other)?;
        ensure!(say(&mut other, "PING")? == "PONG");
        ensure!(say(&mut other, "SCRIPT KILL")?.starts_with("UNKILLABLE"));
        ensure!(say(&mut other, "FLUSHALL")?.starts_with("BUSY"));
        let mut newcomer = server.connect()?;
        ensure!(say(&mut newcomer, "PING")? == "PONG");
        newcomer.send(&["SHUTDOWN", "NOSAVE"])?;
        wait_until("the end of the process", || Ok(!server.is_running()))?;
    }
    Ok(())
}

/// What was answered while a script runs is as durable as ever.
#[test]
fn replies_during_a_slow_script_keep_their_order() -> Result<()> {
    for policy in ["everysec", "always", "no"] {
        let options = [("appendonly", "yes"), ("appendfsync", policy)];
        let mut server = start_with("1", &options)?;
        let (mut sleeper, mut runner, mut writer) =
            (server.connect()?, server.connect()?, server.connect()?);
        // All three come in one batch, and the script last.
        sleeper.send(&["DEBUG", "SLEEP", "0.3"])?;
        std::thread::sleep(Duration::from_millis(100));
        writer.send(&["SET", "written", "1"])?;
        std::thread::sleep(Duration::from_millis(20));
        runner.send(&ENDLESS)?;
        ensure!(received(&mut writer)? == "OK");
        server.kill();
        server.start_again()?;
        ensure!(say(&mut server.connect()?, "GET written")? == "1", "under {policy}");
    }
    Ok(())
}

/// A script whose commands take long is looked at between them.
#[test]
fn a_script_of_slow_commands_is_killed_soon() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    ensure!(say(&mut other, "SET held x")? == "OK");
    let fill = "for i = 1, 40000 do redis.call('rpush', KEYS[1], i * 7919 % 40009) end";
    ensure!(!other.call(&["EVAL", fill, "1", "numbers"])?.is_error());
    let script = "redis.call('get', KEYS[1]) while true do redis.call('sort_ro', KEYS[2]) end";
    runner.send(&["EVAL", script, "2", "held", "numbers"])?;
    wait_until_slow(&mut other)?;
    let begun = std::time::Instant::now();
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    ensure!(received(&mut runner)?.contains("SCRIPT KILL"));
    ensure!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    Ok(())
}

/// The turn that a slow script interrupts had more connections to serve. They are served beside the
/// script, and must not be listed once more when it has ended.
#[test]
fn connections_after_a_slow_script_in_a_turn_are_served_once() -> Result<()> {
    const CLIENTS: usize = 100;
    let options = [("threads", "1"), ("busy-reply-threshold", "1")];
    let server = &Server::start(Target::Dunlin, &options)?;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            let mut runner = server.connect()?;
            let spin = "local t = os.clock() + 0.03 while os.clock() < t do end return 'ran'";
            while !ended.load(Relaxed) {
                let reply = runner.call(&["EVAL", spin, "0"])?;
                ensure!(reply == Reply::Bulk(b"ran".to_vec()), "{reply:?}");
            }
            Ok(())
        });
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || write_and_read_back(server, number)))
            .collect();
        let written: Vec<_> = writers.into_iter().map(|it| it.join().expect("it ends")).collect();
        ended.store(true, Relaxed);
        written.into_iter().collect::<Result<()>>()?;
        runner.join().expect("it ends")
    })
}

/// Writes small values and large ones in one pipeline, again and again, and looks whether they are
/// there.
fn write_and_read_back(server: &Server, number: usize) -> Result<()> {
    const ROUNDS: usize = 60;
    let mut client = server.connect()?;
    for round in 0..ROUNDS {
        let mut requests = Vec::new();
        let (small, large) = (round.to_string(), format!("{round:08}").repeat(40_000));
        let key = |name: &str| format!("{number}:{name}");
        for name in ["a", "b", "c", "d", "e"] {
            tests::client::encode(&["SET", &key(name), &small], &mut requests);
        }
        let (one, other) = (key("large"), key("other"));
        tests::client::encode(&["MSET", &one, &large, &other, &large], &mut requests);
        let names = [key("a"), key("b"), key("c"), key("d"), key("e")];
        tests::client::encode(&[&["MGET".to_owned()], &names[..]].concat(), &mut requests);
        tests::client::encode(&["STRLEN", &other], &mut requests);
        client.send_raw(&requests)?;
        for _ in 0..6 {
            let said = received(&mut client)?;
            ensure!(said == "OK", "{said} in round {round}");
        }
        let Received::Reply(Reply::Array(values)) = client.receive()? else {
            bail!("no values in round {round}")
        };
        let expected = Reply::Bulk(small.into_bytes());
        ensure!(values.iter().all(|it| *it == expected), "{values:?} in round {round}");
        let length = Received::Reply(Reply::Integer(large.len() as i64));
        ensure!(client.receive()? == length, "in round {round}");
    }
    Ok(())
}

/// Code that catches the error by which a script ends, and goes on. What a handler does is done
/// where the error was raised, so no handler may be called for it.
const STUBBORN: &[&str] = &[
    "xpcall(function() while true do end end, function(e) while true do end end)",
    "local function f() while true do end end \
     xpcall(function() xpcall(f, f) while true do end end, f) while true do end",
    "xpcall(function() while true do end end, function(e) \
     while true do pcall(redis.call, 'get', 'x') end end)",
    "xpcall(function() while true do redis.call('ping') end end, function(e) \
     repeat local ok = pcall(redis.call, 'get', 'x') until ok while true do end end)",
    "xpcall(error, function(e) xpcall(function() while true do end end, function() \
     while true do end end) while true do end end)",
    "while true do pcall(function() while true do pcall(function() while true do end end) end end) end",
    "while true do pcall(coroutine.wrap(function() xpcall(function() while true do end end, \
     function() while true do end end) while true do end end)) end",
    "xpcall(function() string.gsub('xx', 'x', function() while true do end end) end, \
     function() string.gsub('xx', 'x', function() while true do end end) end)",
    "xpcall(function() table.sort({1, 2, 3}, function() while true do end end) end, \
     function() while true do end end)",
    "local t = setmetatable({}, {__index = function() while true do end end}) \
     while true do pcall(error, t) xpcall(function() return t.x end, function() return t.x end) end",
    "local t = setmetatable({}, {__tostring = function() while true do end end}) \
     xpcall(function() return tostring(t) end, function() return tostring(t) end)",
    "xpcall(function() loadstring('while true do end')() end, function() \
     load(function() while true do end end) end)",
];

#[test]
fn code_that_catches_every_error_is_ended_too() -> Result<()> {
    let server = start_with("2", &[])?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    for code in STUBBORN {
        runner.send(&["EVAL", &format!("redis.call('get', KEYS[1]) {code}"), "1", "held"])?;
        wait_until_slow(&mut other)?;
        ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
        let ended = received(&mut runner)?;
        ensure!(ended.contains("Script killed by user with SCRIPT KILL"), "{code}: {ended}");
        ensure!(say(&mut runner, "PING")? == "PONG");
    }
    Ok(())
}

#[test]
fn code_that_catches_every_error_does_not_hold_up_the_end_of_the_server() -> Result<()> {
    for code in STUBBORN.iter().step_by(3) {
        let mut server = start()?;
        let (mut runner, mut other) = (server.connect()?, server.connect()?);
        runner.send(&["EVAL", &format!("redis.call('get', KEYS[1]) {code}"), "1", "held"])?;
        wait_until_slow(&mut other)?;
        other.send(&["SHUTDOWN", "NOSAVE"])?;
        wait_until("the end of the process", || Ok(!server.is_running()))?;
    }
    Ok(())
}

/// A script that meets a locked slot begins again, whatever it does about errors.
#[test]
fn code_that_catches_every_error_begins_again() -> Result<()> {
    let server = start_with("2", &[("busy-reply-threshold", "0")])?;
    let (mut holder, mut runner) = (server.connect()?, server.connect()?);
    let mut beside = server.connect()?;
    let holds = "redis.call('set', KEYS[1], 'v') local ends = os.clock() + 0.3 \
                 repeat until os.clock() > ends";
    let insists = "local function get() return redis.call('get', 'held') end \
                   local function insist() repeat local ok, v = pcall(get) until ok end \
                   xpcall(get, insist) return get()";
    for _ in 0..3 {
        holder.send(&["EVAL", holds, "1", "held"])?;
        // One of the two has another thread than the holder.
        for client in [&mut runner, &mut beside] {
            client.send(&["EVAL", insists, "0"])?;
        }
        for client in [&mut runner, &mut beside] {
            let text = received(client)?;
            ensure!(text == "v" || text.is_empty(), "{text}");
        }
        received(&mut holder)?;
    }
    Ok(())
}

#[test]
fn a_library_that_catches_every_error_is_refused_in_time() -> Result<()> {
    let server = start()?;
    let mut client = server.connect()?;
    for code in STUBBORN.iter().filter(|code| !code.contains("redis.call")) {
        client.send(&["FUNCTION", "LOAD", &format!("#!lua name=stubborn\n{code}")])?;
        let refused = received(&mut client)?;
        ensure!(refused.contains("FUNCTION LOAD timeout"), "{code}: {refused}");
    }
    Ok(())
}

/// A thread loads a library anew when a function of it is called there. That is watched as the call
/// is.
#[test]
fn a_library_that_is_loaded_for_a_call_is_ended_with_it() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    let clock = "return tostring(os.clock() + 0.2)";
    let late = say_words(&mut other, &["EVAL", clock, "0"])?;
    let library = format!(
        "#!lua name=late\nif os.clock() > {late} then while true do end end \
         redis.register_function('late', function() return 1 end)"
    );
    runner.call(&["FUNCTION", "LOAD", &library])?;
    ensure!(runner.call_text("FCALL late 0")? == Reply::Integer(1));
    let burn = format!("repeat until os.clock() > {late}");
    other.call(&["EVAL", &burn, "0"])?;
    // The thread forgets everything for lack of memory.
    other.call_text("CONFIG SET lua-memory-limit 1000")?;
    other.call(&["EVAL", "return 1", "0"])?;
    other.call_text("CONFIG SET lua-memory-limit 256mb")?;
    runner.send(&["FCALL", "late", "0"])?;
    wait_until("the function that is slow", || {
        Ok(say_words(&mut other, &["EVAL", "return 1", "0"])?.starts_with("BUSY"))
    })?;
    ensure!(say(&mut other, "FUNCTION KILL")? == "OK");
    let ended = received(&mut runner)?;
    ensure!(ended.contains("Script killed by user with FUNCTION KILL"), "{ended}");
    ensure!(say(&mut runner, "PING")? == "PONG");
    Ok(())
}

fn say_words(client: &mut Client, words: &[&str]) -> Result<String> {
    let reply = client.call(words)?;
    Ok(String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned())
}

/// A script that has let others in, because it has run for long, empties databases all the same.
#[test]
fn a_slow_script_empties_databases_once() -> Result<()> {
    for threads in ["1", "2"] {
        let server = start_with(threads, &[])?;
        let (mut runner, mut other) = (server.connect()?, server.connect()?);
        let spin = "do local t = os.clock() + 0.3 while os.clock() < t do end end";
        for (before, after) in [("", ""), ("redis.call('set', KEYS[1], 1)", spin)] {
            ensure!(say(&mut other, "SET other 1")? == "OK");
            let script = format!(
                "{before} {spin} redis.call('flushall') {after} redis.call('set', KEYS[1], 2) return 'emptied'"
            );
            runner.send(&["EVAL", &script, "1", "held"])?;
            wait_until_slow(&mut other)?;
            ensure!(received(&mut runner)? == "emptied", "{threads} threads, {script}");
            ensure!(say(&mut other, "GET held")? == "2");
            ensure!(other.call_text("DBSIZE")? == Reply::Integer(1));
        }
    }
    Ok(())
}

/// What others hear of a script is no write.
#[test]
fn a_slow_script_that_has_only_published_may_be_killed() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other, mut listener) =
        (server.connect()?, server.connect()?, server.connect()?);
    listener.call_text("SUBSCRIBE news")?;
    let script = "redis.call('get', KEYS[1]) redis.call('publish', 'news', 'x') while true do end";
    runner.send(&["EVAL", script, "1", "held"])?;
    wait_until_slow(&mut other)?;
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    ensure!(received(&mut runner)?.contains("SCRIPT KILL"));
    let Received::Reply(Reply::Array(message)) = listener.receive()? else { bail!("no message") };
    ensure!(message[2] == Reply::Bulk(b"x".to_vec()), "{message:?}");
    Ok(())
}

/// A script that can no longer begin again tells its listeners while it runs.
#[test]
fn messages_of_a_slow_script_that_has_written_arrive_while_it_runs() -> Result<()> {
    let server = start_with("2", &[])?;
    let (mut runner, mut listener) = (server.connect()?, server.connect()?);
    listener.call_text("SUBSCRIBE news")?;
    let script =
        "redis.call('set', KEYS[1], 1) redis.call('publish', 'news', 'x') while true do end";
    runner.send(&["EVAL", script, "1", "held"])?;
    ensure!(listener.has_input(Duration::from_secs(20))?, "no message");
    let mut server = server;
    server.connect()?.send(&["SHUTDOWN", "NOSAVE"])?;
    wait_until("the end of the process", || Ok(!server.is_running()))
}

/// A transaction with a script that declares its keys needs nothing but these.
#[test]
fn a_transaction_with_declared_keys_runs_beside_a_slow_script() -> Result<()> {
    let server = start_with("2", &[])?;
    let (mut runner, mut control) = (server.connect()?, server.connect()?);
    runner.send(&ENDLESS)?;
    wait_until_slow(&mut control)?;
    // Half of the connections are on the other worker; those of the first have no interpreter.
    let mut ran = 0;
    for _ in 0..8 {
        let mut other = server.connect()?;
        other.call_text("MULTI")?;
        other.call(&["EVAL", "return redis.call('incr', KEYS[1])", "1", "free"])?;
        match other.call_text("EXEC")? {
            Reply::Array(replies) => {
                ran += 1;
                ensure!(replies == [Reply::Integer(ran)], "{replies:?}");
            }
            refused => ensure!(format!("{refused:?}").contains("Error"), "{refused:?}"),
        }
    }
    ensure!(ran > 0, "all were refused");
    ensure!(say(&mut control, "SCRIPT KILL")? == "OK");
    Ok(())
}

/// A page that was left must not keep the server busy.
#[test]
fn a_script_ends_when_its_http_client_has_gone() -> Result<()> {
    let options = [("threads", "1"), ("busy-reply-threshold", "50")];
    let (server, port) = Server::start_with_http(&options)?;
    let mut other = server.connect()?;
    let mut web = Web::connect(port)?;
    let body = br#"["EVAL_RO", "redis.call('get', KEYS[1]) while true do end", "1", "held"]"#;
    web.request("POST /", &[], body)?;
    wait_until_slow(&mut other)?;
    drop(web);
    wait_until("the end of the script", || Ok(!say(&mut other, "GET held")?.starts_with("BUSY")))
}

/// No write follows from half of a script that a stop has ended.
#[test]
fn a_script_that_a_shutdown_cuts_off_has_no_effect() -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", "always")];
    let mut server = start_with("2", &options)?;
    for round in 0..5 {
        let (mut runner, mut other) = (server.connect()?, server.connect()?);
        let script = "redis.call('set', KEYS[1], 1) while true do end";
        runner.send(&["EVAL", script, "1", "held"])?;
        wait_until_slow(&mut other)?;
        let mut copier = server.connect()?;
        let mut copies = Vec::new();
        for _ in 0..20_000 {
            tests::client::encode(&["COPY", "held", "{held}copy"], &mut copies);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Until the end of the process.
                while copier.send_raw(&copies).is_ok()
                    && (0..20_000).all(|_| matches!(copier.receive(), Ok(Received::Reply(_))))
                {
                }
            });
            other.send(&["SHUTDOWN", "NOSAVE"])?;
            wait_until("the end of the process", || Ok(!server.is_running()))
        })?;
        server.start_again()?;
        let copied = server.connect()?.call_text("EXISTS held {held}copy")?;
        ensure!(copied == Reply::Integer(0), "{copied:?} in round {round}");
    }
    Ok(())
}

/// A connection whose script becomes slow while it is listed to be looked at is looked at again.
#[test]
fn a_connection_whose_script_becomes_slow_is_looked_at_again() -> Result<()> {
    let options =
        [("threads", "1"), ("busy-reply-threshold", "20"), ("enable-debug-command", "yes")];
    let server = Server::start(Target::Dunlin, &options)?;
    let spin = "local t = os.clock() + 0.045 while os.clock() < t do end return 7";
    let mut pipeline = Vec::new();
    for _ in 0..30 {
        (0..300).for_each(|_| tests::client::encode(&["SET", "free", "1"], &mut pipeline));
        tests::client::encode(&["EVAL", spin, "1", "held"], &mut pipeline);
    }
    let mut clients = (0..4).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    // All of them come in the same turn.
    let mut first = server.connect()?;
    first.send(&["DEBUG", "SLEEP", "0.1"])?;
    let answered = |client: &mut Client| -> Result<()> {
        client.send_raw(&pipeline)?;
        for number in 0..30 * 301 {
            ensure!(client.has_input(Duration::from_secs(20))?, "{number} replies came");
            ensure!(matches!(client.receive()?, Received::Reply(_)), "{number} replies came");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(|| answered(client))).collect();
        all.into_iter().try_for_each(|one| one.join().expect("no panic"))
    })
}

/// What comes after a script goes by the settings that were made while it ran.
#[test]
fn commands_after_a_slow_script_use_settings_changed_meanwhile() -> Result<()> {
    let server = start()?;
    let (mut runner, mut other) = (server.connect()?, server.connect()?);
    let mut pipeline = Vec::new();
    tests::client::encode(&ENDLESS, &mut pipeline);
    tests::client::encode(&["SET", "behind", "1"], &mut pipeline);
    runner.send_raw(&pipeline)?;
    wait_until_slow(&mut other)?;
    ensure!(say(&mut other, "CONFIG SET maxmemory 1")? == "OK");
    ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
    ensure!(received(&mut runner)?.contains("SCRIPT KILL"));
    let said = received(&mut runner)?;
    ensure!(said.starts_with("OOM"), "{said}");
    Ok(())
}

/// A client that waits gets nothing of a script that a stop has ended.
#[test]
fn nobody_is_served_by_what_a_stop_has_cut_off() -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", "always")];
    let mut server = start_with("2", &options)?;
    for words in [&["BLPOP", "held", "0"][..], &["BLMOVE", "held", "{held}", "LEFT", "LEFT", "0"]] {
        let (mut runner, mut other, mut waiter) =
            (server.connect()?, server.connect()?, server.connect()?);
        waiter.send(words)?;
        wait_until("a client to wait", || Ok(number(&mut other, "blocked_clients")? == 1))?;
        let script = "redis.call('rpush', KEYS[1], 1) while true do end";
        runner.send(&["EVAL", script, "1", "held"])?;
        wait_until_slow(&mut other)?;
        other.send(&["SHUTDOWN", "NOSAVE"])?;
        wait_until("the end of the process", || Ok(!server.is_running()))?;
        ensure!(matches!(waiter.receive(), Err(_) | Ok(Received::Closed)), "it was served");
        server.start_again()?;
        ensure!(server.connect()?.call_text("EXISTS held {held}")? == Reply::Integer(0));
    }
    Ok(())
}

/// A script that has just begun, and waits for a slot of one that a stop ends, is ended with it.
#[test]
fn no_script_goes_on_from_what_a_stop_has_cut_off() -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", "always")];
    let mut server = start_with("3", &options)?;
    for round in 0..5 {
        let (mut runner, mut other, mut copier) =
            (server.connect()?, server.connect()?, server.connect()?);
        let script = "redis.call('set', KEYS[1], 1) while true do end";
        runner.send(&["EVAL", script, "1", "held"])?;
        wait_until_slow(&mut other)?;
        let copies = "redis.call('set', KEYS[1], 0) \
                      redis.call('set', KEYS[1], redis.call('get', 'held'))";
        copier.send(&["EVAL", copies, "1", "copy"])?;
        other.send(&["SHUTDOWN", "NOSAVE"])?;
        wait_until("the end of the process", || Ok(!server.is_running()))?;
        server.start_again()?;
        let copied = server.connect()?.call_text("GET copy")?;
        ensure!(copied == Reply::Nil, "{copied:?} in round {round}");
    }
    Ok(())
}

/// A save that has waited for a script gets nothing of it that a stop has ended.
#[test]
fn nothing_is_saved_of_what_a_stop_has_cut_off() -> Result<()> {
    let options = [("save", "1 1"), ("appendonly", "yes"), ("enable-debug-command", "yes")];
    let mut server = start_with("3", &options)?;
    let (mut runner, mut other, mut last) =
        (server.connect()?, server.connect()?, server.connect()?);
    // The end of the process takes longer than the save.
    ensure!(say(&mut last, "DEBUG AOF-FLUSH-SLEEP 500000")? == "OK");
    other.send(&["SET", "free", "1"])?;
    let script = "redis.call('set', KEYS[1], 1) while true do end";
    runner.send(&["EVAL", script, "1", "held"])?;
    wait_until("a save that waits", || Ok(server.log().contains("Background saving started")))?;
    other.send(&["SET", "free", "2"])?;
    last.send(&["SHUTDOWN", "NOSAVE"])?;
    wait_until("the end of the process", || Ok(!server.is_running()))?;
    server.set_options(&[]);
    server.start_again()?;
    ensure!(server.connect()?.call_text("EXISTS held")? == Reply::Integer(0));
    Ok(())
}

/// Redis lets the stream wait as well.
#[test]
fn what_a_primary_sends_outlasts_a_slow_script() -> Result<()> {
    for target in [Target::Reference, Target::Dunlin] {
        for commands in [
            &["SET held 2", "INCR other"][..],
            &["MULTI", "SET held 2", "INCR other", "EXEC"],
            &["FLUSHALL", "SET other 2"],
            &["SWAPDB 0 1", "SET other 2"],
            &["FUNCTION LOAD #!lua name=l\nredis.register_function('f',function()end)"],
        ] {
            let options = [("repl-diskless-sync-delay", "0")];
            let mut primary = Server::start(target, &options)?;
            let mut writer = primary.connect()?;
            ensure!(say(&mut writer, "SET held 1")? == "OK");
            let replica = start_with("2", &[("appendonly", "yes")])?;
            follow(&replica, primary.port())?;
            let (mut runner, mut other) = (replica.connect()?, replica.connect()?);
            check_alike_between(&mut writer, &mut other)?;
            let script = "redis.call('GET','held') while true do end";
            runner.send(&["EVAL_RO", script, "0"])?;
            wait_until_slow(&mut other)?;
            for command in commands {
                let words: Vec<&str> = command.splitn(3, ' ').collect();
                let words =
                    if words[0] == "FUNCTION" { words } else { command.split(' ').collect() };
                let reply = writer.call(&words)?;
                ensure!(!reply.is_error(), "{command}: {reply:?}");
            }
            let written = number(&mut writer, "master_repl_offset")?;
            // It has time to do what it must not.
            std::thread::sleep(Duration::from_millis(300));
            let confirmed = number(&mut other, "slave_repl_offset")?;
            ensure!(confirmed < written, "{commands:?} counts as applied");
            ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
            ensure!(received(&mut runner)?.contains("Script killed by user"));
            check_alike_between(&mut writer, &mut other)
                .with_context(|| format!("{commands:?}: {}", replica.log_tail()))?;
            ensure!(!replica.log().contains("CRITICAL"), "{}", replica.log_tail());
            if commands[0] != "FLUSHALL" {
                continue;
            }
            // So does a whole copy.
            runner.send(&["EVAL_RO", script, "0"])?;
            wait_until_slow(&mut other)?;
            primary.kill();
            primary.start_again()?;
            let mut writer = primary.connect()?;
            ensure!(say(&mut writer, "SET copied 1")? == "OK");
            wait_until("a copy comes", || {
                Ok(replica.log().matches("Loading DB in memory").count() > 1)
            })?;
            std::thread::sleep(Duration::from_millis(300));
            ensure!(say(&mut other, "SCRIPT KILL")? == "OK");
            let is_up = || Ok(figure(&mut other, "master_link_status")? == "up");
            wait_until("it takes the copy", is_up).with_context(|| replica.log_tail())?;
            check_alike_between(&mut writer, &mut other)?;
            ensure!(!replica.log().contains("of no use"), "{}", replica.log_tail());
        }
    }
    Ok(())
}
