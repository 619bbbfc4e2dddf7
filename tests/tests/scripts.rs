//! Scripts beside each other and beside readers, scripts that never end, and what of them survives.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, number, wait_until};
use tests::random::Random;
use tests::server::{Server, Target};

const ACCOUNTS: usize = 16;
const EACH: i64 = 1000;
const DURATION: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, options)
}

/// The text of an error, or nothing.
fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Error(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

fn account(number: usize) -> String {
    format!("account:{number}")
}

/// Moves an amount between two keys: both declared, one of them, or none.
fn move_amount(
    client: &mut Client,
    declared: usize,
    keys: [&str; 2],
    amount: &str,
) -> Result<Reply> {
    let script = "local a, b = KEYS[1] or ARGV[2], KEYS[2] or ARGV[3] \
                  redis.call('decrby', a, ARGV[1]) redis.call('incrby', b, ARGV[1]) return 'moved'";
    let count = declared.to_string();
    let mut words = vec!["EVAL", script, &count];
    words.extend(&keys[..declared]);
    words.push(amount);
    words.extend(keys);
    client.call(&words)
}

fn keep_moving(server: &Server, seed: u64) -> Result<u64> {
    let (mut client, mut random) = (server.connect()?, Random::new(seed));
    let (end, mut moves) = (Instant::now() + DURATION, 0);
    while Instant::now() < end {
        let (a, b) = (random.below(ACCOUNTS), random.below(ACCOUNTS - 1));
        let b = if b >= a { b + 1 } else { b };
        let keys = [account(a), account(b)];
        let declared = random.below(3);
        let amount = random.below(9).to_string();
        let in_transaction = random.below(4) == 0;
        if in_transaction {
            client.call_text("MULTI")?;
        }
        let mut reply = move_amount(&mut client, declared, [&keys[0], &keys[1]], &amount)?;
        if in_transaction {
            let executed = client.call_text("EXEC")?.elements().unwrap_or_default();
            reply = executed.into_iter().next().unwrap_or(reply);
        }
        ensure!(reply.text() == Some(b"moved"), "{reply:?} with {declared} keys declared");
        moves += 1;
    }
    Ok(moves)
}

fn keep_reading(server: &Server) -> Result<u64> {
    let script = format!(
        "local sum = 0 for i = 0, {} do sum = sum + redis.call('get', 'account:' .. i) end \
         return tostring(sum)",
        ACCOUNTS - 1
    );
    let expected = (ACCOUNTS as i64 * EACH).to_string();
    let mut client = server.connect()?;
    let (end, mut reads) = (Instant::now() + DURATION, 0);
    while Instant::now() < end {
        let reply = client.call(&["EVAL", &script, "0"])?;
        ensure!(reply.text() == Some(expected.as_bytes()), "a torn read: {reply:?}");
        reads += 1;
    }
    Ok(reads)
}

#[test]
fn scripts_move_sums_between_keys_and_nobody_sees_the_middle() -> Result<()> {
    let options = [("threads", "4"), ("appendonly", "yes"), ("enable-debug-command", "yes")];
    let server = start(&options)?;
    let mut control = server.connect()?;
    for number in 0..ACCOUNTS {
        control.call(&["SET", &account(number), &EACH.to_string()])?;
    }
    thread::scope(|scope| {
        let server = &server;
        let movers: Vec<_> =
            (0..4).map(|seed| scope.spawn(move || keep_moving(server, seed))).collect();
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(move || keep_reading(server))).collect();
        for thread in movers.into_iter().chain(readers) {
            let Ok(done) = thread.join() else { bail!("a thread has panicked") };
            ensure!(done? > 0, "each of them got through");
        }
        Ok(())
    })?;
    let digest = |control: &mut Client| control.call_text("DEBUG DIGEST");
    let before = digest(&mut control)?;
    control.call_text("DEBUG LOADAOF")?;
    ensure!(digest(&mut control)? == before, "the journal has the same order");
    Ok(())
}

/// A client that another thread serves than the one that is busy, and what it is told about `key`.
fn who_is_told(server: &Server, key: &str) -> Result<(Client, Reply)> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let mut client = server.connect()?;
        client.send(&["GET", key])?;
        if client.has_input(Duration::from_millis(300))?
            && let Received::Reply(reply) = client.receive()?
        {
            if reply.is_error() {
                return Ok((client, reply));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    bail!("nobody is told that a script runs")
}

#[test]
fn a_script_that_never_ends_is_ended_whatever_it_does() -> Result<()> {
    let server = start(&[("threads", "4"), ("busy-reply-threshold", "100")])?;
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do redis.pcall('get', KEYS[1]) end",
        "local f = coroutine.wrap(function() while true do end end) while true do pcall(f) end",
        "while true do string.rep('x', 1e5) end",
        // Calls that go on for years.
        "string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 41))",
        "string.gsub(string.rep('a', 5000), string.rep('a*', 20) .. 'b', '')",
        "for _ in string.gmatch(string.rep('a', 5000), string.rep('.-', 20) .. 'b') do end",
        "while true do table.insert({}, -2147483648, 1) end",
        "string.find(string.rep('a', 1000000), '[' .. string.rep('b', 1000000) .. 'a]*c')",
        "string.gsub(string.rep('a', 1000000), '(b*)', string.rep('%1', 1000000))",
        "local s, t = string.rep('x', 1000000), {} for i = 1, 100000 do t[i] = s end table.sort(t)",
        "local t = {} for i = 1, 200000 do t[i] = {} end \
         string.gsub(string.rep('collect', 1000000), 'collect', collectgarbage)",
        // Calls of which each takes long.
        "local t = {} for i = 1, 2000000 do t[i] = 'x' end while true do table.concat(t) end",
        "local t = {} for i = 1, 2000000 do t[i] = i end for i = 1, 2000000 do t[i] = nil end \
         while true do next(t) for k in pairs(t) do end end",
        "local s = string.rep('x', 20000000) while true do local longer = s .. 'y' end",
        "local s = '[' .. string.rep('{},', 1000000) .. '1]' \
         while true do pcall(cjson.decode, s) end",
        // And coroutines of which each ends before its instructions are many.
        "local function nest(depth) \
           for i = 1, 500 do \
             if depth > 0 then coroutine.wrap(nest)(depth - 1) \
             else for j = 1, 200 do end end \
           end \
         end nest(6)",
    ] {
        let mut busy = server.connect()?;
        busy.send(&["EVAL", script, "1", "k"])?;
        let (mut other, told) = who_is_told(&server, "k")?;
        ensure!(shown(&told).starts_with("BUSY Redis is busy"), "{told:?}");
        ensure!(!other.call_text("GET elsewhere")?.is_error(), "other slots are free");
        ensure!(!other.call_text("SCRIPT KILL")?.is_error(), "{script}");
        ensure!(busy.has_input(PATIENCE)?, "{script} goes on");
        let Received::Reply(end) = busy.receive()? else { bail!("the connection is closed") };
        let text = shown(&end);
        ensure!(text.contains("Script killed by user with SCRIPT KILL"), "{text}");
        ensure!(!busy.call_text("GET k")?.is_error(), "all is as before");
    }
    Ok(())
}

#[test]
fn what_takes_too_much_memory_ends_and_harms_nobody() -> Result<()> {
    let server = start(&[("lua-memory-limit", "16mb")])?;
    let mut client = server.connect()?;
    for script in [
        "return string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = {} while true do t = {t, {}, {}} end",
    ] {
        let reply = client.call(&["EVAL", script, "0"])?;
        ensure!(shown(&reply).contains("not enough memory"), "{script}: {}", shown(&reply));
        let reply = client.call(&["EVAL", "return #string.rep('x', 1e6)", "0"])?;
        ensure!(!reply.is_error(), "the next script has room: {reply:?}");
    }
    Ok(())
}

/// What would take the process down, if it were Lua's own functions that were called.
#[test]
fn what_is_too_deep_or_too_much_for_lua_is_an_error() -> Result<()> {
    let server = start(&[("threads", "1")])?;
    let mut client = server.connect()?;
    let endless = "ERR user_script:1: too many results to unpack";
    for (script, expected) in [
        ("return unpack({}, -2147483648, 0)", endless),
        ("return {unpack({}, -2, 2147483647)}", endless),
        ("return select('#', unpack({}, -2147483647, 2147483647))", endless),
        ("local n = 1000000 return string.find(string.rep('a', n), string.rep('a?', n))", "1"),
        (
            "local n = 1000000 return string.find(string.rep('a', n), string.rep('a-', n) .. '$')",
            "1",
        ),
        (
            "local n = 1000000 return #string.gfind(string.rep('a', n), string.rep('a?', n))()",
            "1000000",
        ),
        ("local n = 100000 return #string.match(string.rep('a', n), string.rep('a', n))", "100000"),
        (
            "local function f(n) return (string.gsub('a', 'a', function() return f(n + 1) end)) end \
             return f(1)",
            "ERR C stack overflow",
        ),
        (
            "local function f() return coroutine.wrap(f)() end return f()",
            "ERR user_script:1: user_script:1: ",
        ),
        (
            "local all = {} for i = 1, 300 do local name = 'a' .. i .. '\\0b' \
             all[i] = loadstring(string.rep('local t = {} t.a' .. i .. ' = 1 ', 100), name) \
             collectgarbage() end for i = 1, 300 do all[i]() end return #all",
            "300",
        ),
        (
            "local s = string.rep('x', 50000000) local t = {} for i = 1, 10 do t[i] = s end \
          return redis.call('rpush', 'k', unpack(t))",
            "ERR not enough memory",
        ),
        (
            "local s = string.rep('x', 50000000) local t = {} for i = 1, 10 do t[i] = s end \
          return redis.acl_check_cmd('rpush', 'k', unpack(t))",
            "ERR not enough memory",
        ),
        // Results that fill the stack, with what is said of them on top.
        ("local function f() return pcall(f) end return select('#', f())", "199"),
        ("local function f() return xpcall(f, tostring) end return select('#', f())", "199"),
        (
            "local t, n = {}, 0 for i = 1, 7990 do t[i] = i if i % 7 == 0 then \
             n = n + select('#', pcall(unpack, t)) + select('#', xpcall(function() \
             return unpack(t) end, tostring)) end end return n",
            "9123436",
        ),
    ] {
        let reply = client.call(&["EVAL", script, "0"])?;
        let text = match reply {
            Reply::Integer(number) => number.to_string(),
            other => shown(&other),
        };
        ensure!(text.starts_with(expected), "{script}: {text}");
        ensure!(client.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    }
    Ok(())
}

#[test]
fn libraries_survive_in_files_of_both_kinds() -> Result<()> {
    let library = "#!lua name=kept\nredis.register_function('answer', function() return 'yes' end)";
    for options in [
        [("appendonly", "yes"), ("aof-use-rdb-preamble", "yes")],
        [("appendonly", "yes"), ("aof-use-rdb-preamble", "no")],
        [("appendonly", "no"), ("save", "3600 1")],
    ] {
        let mut server = start(&options)?;
        let mut client = server.connect()?;
        ensure!(!client.call(&["FUNCTION", "LOAD", library])?.is_error());
        if options[0].1 == "yes" {
            client.call_text("BGREWRITEAOF")?;
            wait_until("the rewrite to end", || {
                let info = client.call_text("INFO persistence")?;
                let text = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
                Ok(text.contains("aof_rewrite_in_progress:0")
                    && text.contains("aof_last_bgrewrite_status:ok"))
            })?;
        }
        server.terminate()?;
        server.start_again()?;
        let reply = server.connect()?.call_text("FCALL answer 0")?;
        ensure!(reply.text() == Some(b"yes"), "{options:?}: {reply:?}");
    }
    Ok(())
}

/// Two scripts that need a slot of each other, each with a client that waits for what it pushes:
/// one borrows the slot, and serves the client there.
#[test]
fn a_script_that_borrows_a_slot_serves_its_waiters() -> Result<()> {
    let server = start(&[("threads", "2")])?;
    let mut control = server.connect()?;
    for round in 0..40 {
        let mut waiting = Vec::new();
        for list in ["list:a", "list:b"] {
            let mut client = server.connect()?;
            client.send(&["BLPOP", list, "0"])?;
            waiting.push(client);
        }
        wait_until("both wait", || {
            Ok(tests::observe::figure(&mut control, "blocked_clients")? == "2")
        })?;
        let mut runners = Vec::new();
        for (own, other) in [("list:a", "list:b"), ("list:b", "list:a")] {
            // A script that has waited for long takes all slots the next time: each round has its
            // own.
            let script = format!(
                "local round = {round} redis.call('hset', KEYS[1] .. '{{' .. KEYS[1] .. '}}', 'f', 1) \
                 local t = os.clock() + 0.02 while os.clock() < t do end \
                 return redis.call('rpush', ARGV[1], '{other}')"
            );
            let mut client = server.connect()?;
            client.send(&["EVAL", &script, "1", own, other])?;
            runners.push(client);
        }
        for client in runners.iter_mut().chain(&mut waiting) {
            ensure!(client.has_input(PATIENCE)?, "round {round}: no reply");
            let Received::Reply(reply) = client.receive()? else { bail!("the process is gone") };
            ensure!(!reply.is_error(), "round {round}: {reply:?}");
        }
    }
    Ok(())
}

#[test]
fn a_table_that_has_itself_in_it_is_answered_in_finite_time() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    client.send(&["EVAL", "local t = {} t[1] = t t[2] = t return t", "0"])?;
    ensure!(client.has_input(PATIENCE)?, "it takes too long");
    ensure!(server.connect()?.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    Ok(())
}

/// Many scripts are compiled; those that are not used make room for others.
#[test]
fn compiled_scripts_do_not_fill_the_memory_of_others() -> Result<()> {
    let server = start(&[("lua-memory-limit", "4mb"), ("threads", "1")])?;
    let mut client = server.connect()?;
    for number in 0..200 {
        let body = (0..500).map(|line| format!("do local a = '{line}:{number}' end "));
        let script = format!("do {} end return {number}", body.collect::<String>());
        let reply = client.call(&["EVAL", &script, "0"])?;
        ensure!(reply == Reply::Integer(number), "script {number}: {reply:?}");
    }
    Ok(())
}

/// Two thirds of the memory are in use, and what else is made is garbage soon; whatever a script
/// has told the collector before.
#[test]
fn garbage_does_not_count_among_what_a_script_needs() -> Result<()> {
    let server = start(&[("lua-memory-limit", "12mb"), ("threads", "1")])?;
    let mut client = server.connect()?;
    client.call(&["SET", "long", &"x".repeat(1_000_000)])?;
    for script in [
        "return collectgarbage('setpause', 1000000) + collectgarbage('setstepmul', 1)",
        "for i = 1, 100 do redis.call('get', 'long') end return 1",
        "local t = {} for i = 1, 80 do t[i] = string.rep('x', 100000) .. i end \
         for i = 1, 1000 do local s = string.rep('y', 100000) .. i end return #t",
        "local t = {} for i = 1, 100000 do t[i] = {i} end \
         for i = 1, 1000000 do local s = {i, i} end return #t",
        "return collectgarbage('setpause', 200) + collectgarbage('setstepmul', 200)",
    ] {
        let reply = client.call(&["EVAL", script, "0"])?;
        let expected = if script.contains("setpause") { 400 } else { 0 };
        let is_right = matches!(reply, Reply::Integer(n) if n == expected || expected == 0);
        ensure!(is_right, "{script}: {reply:?}");
    }
    Ok(())
}

/// Libraries that were replaced, or refused when they had registered something, leave nothing
/// behind.
#[test]
fn libraries_that_are_gone_take_no_memory() -> Result<()> {
    let server = start(&[("lua-memory-limit", "8mb"), ("threads", "1")])?;
    let mut client = server.connect()?;
    let library = |name: &str, function: &str, number: usize, end: &str| {
        format!(
            "#!lua name={name}\nlocal s = string.rep('x', 1000000) .. {number} \
             redis.register_function('{function}', function() return #s end) {end}"
        )
    };
    ensure!(!client.call(&["FUNCTION", "LOAD", &library("a", "f", 0, "")])?.is_error());
    for number in 0..20 {
        let late =
            client.call(&["FUNCTION", "LOAD", &library("b", "g", number, "error('late')")])?;
        ensure!(shown(&late).ends_with("late"), "{late:?}");
        let taken = client.call(&["FUNCTION", "LOAD", &library("b", "f", number, "")])?;
        ensure!(shown(&taken).ends_with("already exists"), "{taken:?}");
        let next = library("a", "f", number, "");
        let replaced = client.call(&["FUNCTION", "LOAD", "REPLACE", &next])?;
        ensure!(replaced.text() == Some(b"a"), "{replaced:?}");
        ensure!(matches!(client.call_text("FCALL f 0")?, Reply::Integer(1_000_001..)));
    }
    Ok(())
}

/// Commands that need the whole server may come anywhere in a script.
#[test]
fn a_script_empties_databases_whatever_it_has_done_before() -> Result<()> {
    let mut server = start(&[("appendonly", "yes"), ("appendfsync", "always"), ("threads", "2")])?;
    let mut client = server.connect()?;
    let library = "#!lua name=l\nredis.register_function('f', function() \
                   redis.call('set', 'a', 1) redis.call('flushdb') \
                   return redis.call('set', 'b', 2) end)";
    ensure!(!client.call(&["FUNCTION", "LOAD", library])?.is_error());
    let script = "redis.call('set', KEYS[1], 1) redis.call('flushall') redis.call('set', 'c', 3)";
    let named = "redis.call('set', KEYS[1], 1) return redis.call(ARGV[1], ARGV[2], ARGV[3])";
    for words in [
        vec!["EVAL", script, "1", "k"],
        vec!["FCALL", "f", "0"],
        vec!["EVAL", named, "1", "k", "swapdb", "0", "1"],
    ] {
        let reply = client.call(&words)?;
        ensure!(!reply.is_error(), "{words:?}: {reply:?}");
        client.call_text("MULTI")?;
        client.call(&words)?;
        let executed = client.call_text("EXEC")?;
        ensure!(!format!("{executed:?}").contains("Error"), "{words:?}: {executed:?}");
    }
    let digest = client.call_text("DEBUG DIGEST")?;
    server.kill();
    server.start_again()?;
    ensure!(server.connect()?.call_text("DEBUG DIGEST")? == digest);
    Ok(())
}

/// A script that begins again is shown once.
#[test]
fn monitor_shows_a_script_once() -> Result<()> {
    let server = start(&[("threads", "2")])?;
    let (mut monitor, mut client) = (server.connect()?, server.connect()?);
    monitor.call_text("MONITOR")?;
    client.call(&["EVAL", "return redis.call('flushall')", "0"])?;
    client.call_text("ECHO end")?;
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| !line.contains("\"end\"")) {
        ensure!(monitor.has_input(PATIENCE)?, "{lines:?}");
        let Received::Reply(line) = monitor.receive()? else { bail!("closed") };
        lines.push(String::from_utf8_lossy(line.text().unwrap_or_default()).into_owned());
    }
    ensure!(lines.iter().filter(|line| line.contains("\"EVAL\"")).count() == 1, "{lines:?}");
    Ok(())
}

/// The memory is full when the remains of a script are collected; or it is more than full, since
/// the limit was lowered.
#[test]
fn a_full_memory_ends_the_script_and_not_the_server() -> Result<()> {
    let strings =
        |count: usize| format!("local t = {{}} for i = 1, {count} do t[i] = 's' .. i end");
    for (limit, count) in [("16mb", 60_000), ("32mb", 120_000)] {
        let server = start(&[("lua-memory-limit", limit), ("threads", "1")])?;
        let mut client = server.connect()?;
        let script = format!("{} t = nil local f while true do f = {{f}} end", strings(count));
        let reply = client.call(&["EVAL", &script, "0"])?;
        ensure!(shown(&reply).contains("not enough memory"), "{}", shown(&reply));
        let reply = client.call(&["EVAL", &format!("{} return #t", strings(count)), "0"])?;
        ensure!(reply == Reply::Integer(count as i64), "the next script has room: {reply:?}");
        ensure!(!client.call_text("CONFIG SET lua-memory-limit 1000")?.is_error());
        let library = "#!lua name=l\nredis.register_function('f', function() end)";
        for words in [
            &["EVAL", "return 1", "0"][..],
            &["SCRIPT", "LOAD", "return 2"],
            &["FUNCTION", "LOAD", library],
        ] {
            let reply = client.call(words)?;
            ensure!(shown(&reply).contains("not enough memory"), "{words:?}: {}", shown(&reply));
        }
        client.call(&["CONFIG", "SET", "lua-memory-limit", limit])?;
        ensure!(client.call(&["EVAL", "return 1", "0"])? == Reply::Integer(1), "all is as before");
    }
    Ok(())
}

const COUNTER: &str = "#!lua name=counter\nlocal count = 0 \
                       redis.register_function('count', function() count = count + 1 return count end)";

/// What a library keeps in its local variables is not lost because of others.
#[test]
fn a_library_keeps_its_state_when_others_go() -> Result<()> {
    let server = start(&[("threads", "1")])?;
    let mut client = server.connect()?;
    client.call(&["FUNCTION", "LOAD", COUNTER])?;
    let other = "#!lua name=other\nredis.register_function('other', function() end)";
    let late = "#!lua name=late\nredis.register_function('late', function() end) error('late')";
    let taken = "#!lua name=taken\nredis.register_function('COUNT', function() end)";
    for (number, words) in (1..).zip([
        &["PING"][..],
        &["SCRIPT", "FLUSH"],
        &["FUNCTION", "LOAD", other],
        &["FUNCTION", "LOAD", "REPLACE", other],
        &["FUNCTION", "DELETE", "other"],
        &["FUNCTION", "LOAD", late],
        &["FUNCTION", "LOAD", taken],
        &["FUNCTION", "RESTORE", "none"],
    ]) {
        client.call(words)?;
        ensure!(client.call_text("FCALL count 0")? == Reply::Integer(number), "{words:?}");
    }
    client.call(&["FUNCTION", "LOAD", "REPLACE", COUNTER])?;
    ensure!(client.call_text("FCALL count 0")? == Reply::Integer(1), "it is a new one");
    client.call_text("FUNCTION FLUSH")?;
    client.call(&["FUNCTION", "LOAD", COUNTER])?;
    ensure!(client.call_text("FCALL count 0")? == Reply::Integer(1), "it is a new one");
    Ok(())
}

/// `redis.register_function` is there while a library is loaded, and only then.
#[test]
fn functions_are_registered_while_a_library_is_loaded() -> Result<()> {
    let server = start(&[("threads", "1"), ("lua-memory-limit", "16mb")])?;
    let mut client = server.connect()?;
    let kept = "#!lua name=kept\nlocal register = redis.register_function \
                register('kept', function() return register('x', function() end) end)";
    client.call(&["FUNCTION", "LOAD", kept])?;
    let reply = client.call_text("FCALL kept 0")?;
    let expected = "ERR redis.register_function can only be called on FUNCTION LOAD command \
                    script: kept, on @user_function:2.";
    ensure!(shown(&reply) == expected, "{}", shown(&reply));
    let full = "#!lua name=full\nlocal t = {} for i = 1, 60000 do t[i] = 's' .. i end t = nil \
                local f while true do f = {f} end";
    // On a slow machine its time is over before.
    ensure!(client.call(&["FUNCTION", "LOAD", full])?.is_error());
    let reply = client.call(&["EVAL", "return tostring(redis.register_function)", "0"])?;
    ensure!(reply.text() == Some(b"nil"), "{reply:?}");
    Ok(())
}

/// What Redis 8.0 answers.
#[test]
fn numbers_are_errors_and_bounds_as_on_the_reference() -> Result<()> {
    let server = start(&[])?;
    let mut client = server.connect()?;
    for (script, expected) in [
        ("error({err=1})", "1 script: "),
        ("error({err=1.5})", "1.5 script: "),
        ("return math.random(2^31 + 1)", "ERR user_script:1: bad argument #1 to 'random'"),
        ("return math.random(2^33, 5) <= 5", "1"),
        ("return math.random(-2^31, 2^31 - 1)", "-2147483648"),
        ("math.randomseed(3) return math.random(-3, 2^31 - 1)", "-1681984275"),
        ("return math.random(2^31 - 5, 2^31 + 5)", "ERR user_script:1: bad argument #2"),
    ] {
        let reply = client.call(&["EVAL", script, "0"])?;
        let text = match reply {
            Reply::Integer(number) => number.to_string(),
            other => shown(&other),
        };
        ensure!(text.starts_with(expected), "{script}: {text}");
    }
    Ok(())
}

/// Nothing of an attempt is left when a script begins again, in statistics, messages and events.
#[test]
fn a_script_that_begins_again_has_done_nothing_before() -> Result<()> {
    let server = start(&[("threads", "2"), ("notify-keyspace-events", "AKEm")])?;
    let (mut client, mut listener) = (server.connect()?, server.connect()?);
    for channel in ["news", "__keyevent@0__:keymiss", "end"] {
        listener.call(&["SUBSCRIBE", channel])?;
    }
    client.call_text("SET text x")?;
    // It learns in the middle that it needs the whole server.
    let script = "redis.call('get', 'nokey') redis.call('publish', 'news', 'once') \
                  redis.pcall('get') redis.pcall('llen', 'text') redis.call('strlen', 'text') \
                  return redis.call('flush' .. 'all')";
    let reply = client.call(&["EVAL", script, "0"])?;
    ensure!(!reply.is_error(), "{reply:?}");
    client.call_text("PUBLISH end x")?;
    let mut channels = Vec::new();
    while channels.last().is_none_or(|last| last != "end") {
        let Received::Reply(Reply::Array(message)) = listener.receive()? else { bail!("closed") };
        let channel = message[1].text().unwrap_or_default();
        channels.push(String::from_utf8_lossy(channel).into_owned());
    }
    channels.sort();
    ensure!(channels == ["__keyevent@0__:keymiss", "end", "news"], "{channels:?}");
    ensure!(number(&mut client, "keyspace_misses")? == 1);
    let get = figure(&mut client, "cmdstat_get")?;
    ensure!(
        get.starts_with("calls=1,") && get.ends_with("rejected_calls=1,failed_calls=0"),
        "{get}"
    );
    ensure!(figure(&mut client, "cmdstat_publish")?.starts_with("calls=2,"));
    for error in ["errorstat_WRONGTYPE", "errorstat_ERR"] {
        ensure!(figure(&mut client, error)? == "count=1", "{error}");
    }
    let histogram = client.call_text("LATENCY HISTOGRAM strlen")?;
    let figures = histogram.clone().elements().and_then(|all| all.into_iter().nth(1));
    let figures = figures.and_then(Reply::elements).context("no figures")?;
    let counts = figures.last().cloned().and_then(Reply::elements).context("no counts")?;
    let one = Some(&Reply::Integer(1));
    ensure!(figures.get(1) == one && counts.get(1) == one && counts.len() == 2, "{histogram:?}");
    Ok(())
}

/// PUBLISH writes nothing, so what follows it is checked as if it were not there.
#[test]
fn a_script_that_has_published_is_short_of_memory_as_before() -> Result<()> {
    let server = start(&[("maxmemory", "1")])?;
    let mut client = server.connect()?;
    let script = "redis.call('publish', 'news', 'x') return redis.call('set', KEYS[1], 1)";
    let reply = client.call(&["EVAL", script, "1", "k"])?;
    ensure!(shown(&reply).contains("OOM"), "{reply:?}");
    Ok(())
}

/// CLIENT PAUSE WRITE holds what may write, and no script that says that it does not.
#[test]
fn scripts_that_write_nothing_run_while_writes_are_paused() -> Result<()> {
    let server = start(&[])?;
    let (mut client, mut control) = (server.connect()?, server.connect()?);
    let library = "#!lua name=l\nredis.register_function{function_name='f', \
                   callback=function() return 7 end, flags={'no-writes'}}";
    ensure!(!client.call(&["FUNCTION", "LOAD", library])?.is_error());
    let script = "#!lua flags=no-writes\nreturn 7";
    let sha = client.call(&["SCRIPT", "LOAD", script])?;
    let sha = String::from_utf8_lossy(sha.text().unwrap_or_default()).into_owned();
    client.call_text("SCRIPT FLUSH")?;
    client.call(&["SCRIPT", "LOAD", script])?;
    control.call_text("CLIENT PAUSE 1000000 WRITE")?;
    for words in [["EVAL", script, "0"], ["EVALSHA", &sha, "0"], ["FCALL", "f", "0"]] {
        ensure!(client.call(&words)? == Reply::Integer(7), "{words:?}");
        client.call_text("MULTI")?;
        client.call(&words)?;
        ensure!(client.call_text("EXEC")? == Reply::Array(vec![Reply::Integer(7)]), "{words:?}");
    }
    client.send(&["EVAL", "return 7", "0"])?;
    wait_until("the pause of the other script", || {
        Ok(number(&mut control, "blocked_clients")? == 1)
    })?;
    control.call_text("CLIENT UNPAUSE")?;
    ensure!(client.receive()? == Received::Reply(Reply::Integer(7)));
    Ok(())
}
