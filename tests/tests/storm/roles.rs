//! What the clients of the storm do, each in its own thread.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tests::client::{Received, Reply};
use tests::grammar;

use crate::actor::{Actor, Executed, World, is_refusal};
use crate::data;
use crate::history::{Action, Operation};

/// Clients that write registers; each has its own.
const WRITERS: usize = 3;

/// What a client does until the storm is over. The number tells it from others of its kind.
type Play = fn(&mut Actor<'_>, usize);

/// (name, whether it bears errors, how many, what they do). Connections of victims are killed now
/// and then.
const ROLES: &[(&str, bool, usize, Play)] = &[
    ("victim", false, WRITERS, write),
    ("victim", false, 2, read),
    ("pusher", false, 2, push),
    ("popper", false, 3, pop),
    ("pusher", false, 2, feed),
    ("popper", false, 3, consume),
    ("victim", false, 1, take_long),
    ("victim", false, 3, count),
    ("publisher", false, 1, publish),
    ("subscriber", false, 1, listen),
    ("operator", false, 1, operate),
    ("victim", true, 2, make_noise),
    ("heavy", true, 1, lift),
];

/// Plays all roles until the world stops, in threads of a scope. Returns what each has to do.
pub(crate) fn cast(world: &World, seed: u64) -> Vec<impl FnOnce() -> Vec<Operation> + Send> {
    let mut players = Vec::new();
    let mut client = 0;
    for &(name, lenient, count, play) in ROLES {
        for number in 0..count {
            client += 1;
            let seed = seed.wrapping_mul(1009).wrapping_add(client);
            players.push(move || {
                let mut actor = match lenient {
                    true => Actor::lenient(world, seed, name),
                    false => Actor::new(world, seed, name),
                };
                while world.goes_on() {
                    play(&mut actor, number);
                }
                actor.operations
            });
        }
    }
    players
}

// ---- Registers ----------------------------------------------------------------------------------

fn write(actor: &mut Actor<'_>, number: usize) {
    let own: Vec<usize> =
        (0..data::ALL_REGISTERS).filter(|register| register % WRITERS == number).collect();
    let mut count = 0;
    while actor.world.goes_on() {
        let (mut commands, mut writes) = (Vec::new(), Vec::new());
        for _ in 0..=actor.random.below(8) {
            count += 1;
            let register = *actor.random.pick(&own);
            let value = actor.fresh(number, count);
            commands.extend(data::write(register, value, &mut actor.random));
            writes.push((register, value, commands.len() - 1));
        }
        let begin = actor.now();
        let answers = actor.exchange(&commands);
        for (register, value, at) in writes {
            let action = Action::Write { register, value };
            match &answers[at] {
                Some((reply, _)) if reply.is_error() => {}
                Some((_, end)) => actor.record(action, begin, Some(*end)),
                None => actor.record(action, begin, None),
            }
        }
        actor.rest(3000);
    }
}

fn read(actor: &mut Actor<'_>, _: usize) {
    let begin = actor.now();
    match actor.random.below(10) {
        0..6 => {
            let registers: Vec<usize> =
                (0..4).map(|_| actor.random.below(data::REGISTERS)).collect();
            let commands: Vec<String> = registers.iter().map(|&it| data::read(it)).collect();
            let answers = actor.exchange(&commands);
            for (register, answer) in registers.into_iter().zip(answers) {
                if let Some((reply, end)) = answer.filter(|(reply, _)| !reply.is_error()) {
                    record_read(actor, register, &reply, begin, end);
                }
            }
        }
        6..9 => read_pair(actor, begin),
        _ => look_at_sides(actor),
    }
    actor.rest(2000);
}

fn record_read(actor: &mut Actor<'_>, register: usize, reply: &Reply, begin: u64, end: u64) {
    match data::value(reply) {
        Ok(value) => actor.record(Action::Read { register, value }, begin, Some(end)),
        Err(error) => actor.world.complain(format!("register {register}: {error:#}")),
    }
}

fn read_pair(actor: &mut Actor<'_>, begin: u64) {
    let pair = actor.random.below(data::PAIRS);
    let (Executed::Done(replies), Some(end)) = actor.transaction(&data::read_pair(pair)) else {
        return;
    };
    match (data::value(&replies[0]), data::value(&replies[1])) {
        (Ok(first), Ok(second)) if first == second => {
            record_read(actor, data::REGISTERS + pair, &replies[0], begin, end);
        }
        (first, second) => {
            actor.world.complain(format!("pair {pair} was seen torn: {first:?} and {second:?}"));
        }
    }
}

fn look_at_sides(actor: &mut Actor<'_>) {
    let commands = ["GET mark", "SELECT 3", "GET side", "SELECT 4", "GET side", "SELECT 2"];
    let commands = commands.map(str::to_owned);
    let (Executed::Done(replies), _) = actor.transaction(&commands) else { return };
    let mark = data::value(&replies[0]).ok().flatten().unwrap_or(0);
    if let Some(violation) = data::wrong_sides(mark, &replies[2], &replies[4]) {
        actor.world.complain(format!("a transaction saw the middle of a swap: {violation}"));
    }
}

// ---- Queues -------------------------------------------------------------------------------------

fn push(actor: &mut Actor<'_>, number: usize) {
    let mut count = 0;
    while actor.world.goes_on() {
        let wanted = 1 + actor.random.below(3) as u64;
        let elements: Vec<u64> =
            (1..=wanted).map(|index| actor.fresh(number, count + index)).collect();
        count += wanted;
        let mut queue = || actor.random.below(data::QUEUES);
        let (first, second) = (queue(), queue());
        let begin = actor.now();
        let end = if actor.random.percent(30) {
            let command = |(index, element)| {
                format!("LPUSH queue:{} {element}", if index == 0 { first } else { second })
            };
            let commands: Vec<String> = elements.iter().enumerate().map(command).collect();
            match actor.transaction(&commands) {
                (Executed::Done(_), end) => Some(end),
                (Executed::Unanswered, _) => Some(None),
                _ => None,
            }
        } else {
            let words: Vec<String> = elements.iter().map(u64::to_string).collect();
            match actor.call(&format!("RPUSH queue:{first} {}", words.join(" "))) {
                Some((reply, _)) if reply.is_error() => None,
                Some((_, end)) => Some(Some(end)),
                None => Some(None),
            }
        };
        if let Some(end) = end {
            elements.iter().for_each(|&element| actor.record(Action::Push { element }, begin, end));
        }
        actor.rest(8000);
    }
}

fn pop(actor: &mut Actor<'_>, _: usize) {
    let mut queue = || actor.random.below(data::QUEUES);
    let (one, other) = (queue(), queue());
    let (command, most) = match actor.random.below(8) {
        0 | 1 => (format!("BLPOP queue:{one} queue:{other} 0.2"), 1),
        2 => (format!("BRPOP queue:{one} queue:{other} 0.05"), 1),
        3 => (format!("BLMPOP 0.1 2 queue:{one} queue:{other} LEFT COUNT 3"), 3),
        4 => (format!("LMPOP 2 queue:{one} queue:{other} RIGHT COUNT 2"), 2),
        5 => (format!("LPOP queue:{one}"), 1),
        6 => (format!("BLMOVE queue:{one} queue:{other} LEFT RIGHT 0.1"), 0),
        // A long wait, whose deadline never comes.
        _ => (format!("BLPOP queue:0 queue:1 queue:2 queue:3 {}", 5 + one), 1),
    };
    let begin = actor.now();
    match actor.call(&command) {
        None if most > 0 => actor.record(Action::PopUnanswered { most }, begin, None),
        Some((reply, end)) if most > 0 && !reply.is_error() => {
            for element in popped(&reply) {
                actor.record(Action::Pop { element }, begin, Some(end));
            }
        }
        _ => {}
    }
    actor.rest(2000);
}

/// The elements in an answer of any pop: alone, behind the name of a list, or in an array there.
fn popped(reply: &Reply) -> Vec<u64> {
    let element = |reply: &Reply| data::value(reply).ok().flatten();
    match reply {
        Reply::Array(pair) => match pair.as_slice() {
            [_, Reply::Array(elements)] => elements.iter().filter_map(element).collect(),
            [_, one] => element(one).into_iter().collect(),
            _ => Vec::new(),
        },
        one => element(one).into_iter().collect(),
    }
}

// ---- Streams and their groups -------------------------------------------------------------------

/// Adds entries: alone, in a transaction, or by a script that knows one stream of two.
fn feed(actor: &mut Actor<'_>, number: usize) {
    const SCRIPT: &str = "redis.call('xadd',KEYS[1],'*','v',ARGV[1])\n\
        return(redis.call('xadd',ARGV[3],'*','v',ARGV[2]))";
    let mut count = 0;
    while actor.world.goes_on() {
        let elements = [1, 2].map(|index| actor.fresh(data::FEEDERS + number, count + index));
        count += 2;
        let [first, second] = elements;
        let mut stream = || format!("stream:{}", actor.random.below(data::STREAMS));
        let (one, other) = (stream(), stream());
        let add = |stream: &str, element: u64| format!("XADD {stream} * v {element}");
        let begin = actor.now();
        let end = match actor.random.below(3) {
            0 => match actor.transaction(&[add(&one, first), add(&other, second)]) {
                (Executed::Done(_), end) => Some(end),
                (Executed::Unanswered, _) => Some(None),
                _ => None,
            },
            1 => answered(actor.call(&format!("EVAL {SCRIPT} 1 {one} {first} {second} {other}"))),
            _ => {
                let answer = answered(actor.call(&add(&one, first)));
                if let Some(end) = answer {
                    actor.record(Action::Push { element: first }, begin, end);
                }
                None
            }
        };
        if let Some(end) = end {
            elements.iter().for_each(|&element| actor.record(Action::Push { element }, begin, end));
        }
        actor.rest(6000);
    }
}

/// When a command was answered, if it may have been executed.
fn answered(answer: Option<(Reply, u64)>) -> Option<Option<u64>> {
    match answer {
        Some((reply, _)) if reply.is_error() => None,
        Some((_, end)) => Some(Some(end)),
        None => Some(None),
    }
}

/// Takes entries as a consumer of the group, and settles most of them.
fn consume(actor: &mut Actor<'_>, number: usize) {
    let mut stream = || actor.random.below(data::STREAMS);
    let (one, other) = (format!("stream:{}", stream()), format!("stream:{}", stream()));
    let group = data::GROUP;
    let begin = actor.now();
    let mut taken = Vec::new();
    if actor.random.percent(15) {
        // What another one was given and has not settled.
        let claim = format!("XAUTOCLAIM {one} {group} consumer{number} 0 0 COUNT 3");
        if let Some((Reply::Array(parts), _)) = actor.call(&claim)
            && let Some(claimed) = parts.get(1)
        {
            let claimed = data::entries(claimed).into_iter();
            taken.extend(claimed.map(|(id, element)| (one.clone(), id, element)));
        }
    } else {
        let most = 1 + actor.random.below(4);
        let block = *actor.random.pick(&["", "BLOCK 40 ", "BLOCK 5000 "]);
        let claim = *actor.random.pick(&["", "CLAIM 30 "]);
        let read = format!("XREADGROUP GROUP {group} consumer{number} COUNT {most}");
        match actor.call(&format!("{read} {block}{claim}STREAMS {one} {other} > >")) {
            None => actor.record(Action::PopUnanswered { most: 2 * most }, begin, None),
            Some((Reply::Array(streams), end)) => {
                for part in streams {
                    let Reply::Array(part) = part else { continue };
                    let name = part.first().and_then(Reply::text).unwrap_or_default();
                    let name = String::from_utf8_lossy(name).into_owned();
                    let Some(Reply::Array(entries)) = part.get(1) else { continue };
                    for entry in entries {
                        let was_delivered = data::was_delivered(entry);
                        let entry = Reply::Array(vec![entry.clone()]);
                        for (id, element) in data::entries(&entry) {
                            if !was_delivered {
                                actor.record(Action::Pop { element }, begin, Some(end));
                            }
                            taken.push((name.clone(), id, element));
                        }
                    }
                }
            }
            Some((reply, _)) if reply.is_error() => {
                for stream in [&one, &other] {
                    actor.call(&format!("XGROUP CREATE {stream} {group} 0 MKSTREAM"));
                }
            }
            Some(_) => {}
        }
    }
    for (stream, id, element) in taken {
        if actor.random.percent(85) {
            settle(actor, &stream, &String::from_utf8_lossy(&id), element);
        }
    }
    actor.rest(2000);
}

/// Acknowledges an entry and removes it, in one of several ways.
fn settle(actor: &mut Actor<'_>, stream: &str, id: &str, element: u64) {
    let (group, begin) = (data::GROUP, actor.now());
    let end = match actor.random.below(3) {
        0 => answered(actor.call(&format!("XACKDEL {stream} {group} IDS 1 {id}"))),
        1 => {
            let script = "redis.call('xack',KEYS[1],ARGV[1],ARGV[2])\n\
                          return(redis.call('xdel',KEYS[1],ARGV[2]))";
            answered(actor.call(&format!("EVAL {script} 1 {stream} {group} {id}")))
        }
        _ => answered(actor.call(&format!("XACK {stream} {group} {id}"))),
    };
    if let Some(end) = end {
        actor.record(Action::Settle { element }, begin, end);
    }
}

// ---- Scripts that take long ---------------------------------------------------------------------

/// Runs scripts for longer than others are to wait, which read further keys afterwards or before.
fn take_long(actor: &mut Actor<'_>, number: usize) {
    let spin = "local\tt=os.clock()+tonumber(ARGV[1])\nwhile(os.clock()<t)do\nend\n";
    let look = "redis.call('get',ARGV[2])\n";
    let write = "redis.call('set',KEYS[1],ARGV[1])\n";
    let parts: [&[&str]; 4] =
        [&[spin], &[look, spin], &[write, spin, look], &[write, look, spin, look]];
    let script = format!("{}return(1)", actor.random.pick(&parts).concat());
    let seconds = actor.random.below(120) as f64 / 1000.0;
    let other = format!("register:{}", actor.random.below(data::REGISTERS) / 8 * 8);
    let begin = actor.now();
    actor.world.long_scripts.fetch_add(1, Ordering::SeqCst);
    if !actor.world.calm.load(Ordering::SeqCst) {
        actor.call(&format!("EVAL {script} 1 long:{number} {seconds} {other}"));
        actor.world.note("a long script", begin);
    }
    actor.world.long_scripts.fetch_sub(1, Ordering::SeqCst);
    actor.rest(150_000);
}

// ---- Counters under WATCH -----------------------------------------------------------------------

fn count(actor: &mut Actor<'_>, number: usize) {
    let mut count = 0;
    while actor.world.goes_on() {
        count += 1;
        let (counter, to) = (actor.random.below(data::COUNTERS), actor.fresh(number, count));
        let breaks = actor.breaks;
        let look = [format!("WATCH counter:{counter}"), format!("GET counter:{counter}")];
        let answers = actor.exchange(&look);
        let Some((reply, seen)) = answers.into_iter().nth(1).flatten() else { continue };
        let Ok(from) = data::value(&reply) else { continue };
        actor.rest(500);
        let begin = actor.now();
        let set = [format!("SET counter:{counter} {to}")];
        // Never on a new connection, which watches nothing.
        if actor.breaks != breaks {
            continue;
        }
        let action = Action::Swap { counter, from, to, seen };
        match actor.transaction(&set) {
            (Executed::Done(_), end) => actor.record(action, begin, end),
            (Executed::Unanswered, _) => actor.record(action, begin, None),
            (Executed::Aborted, _) => {}
            (Executed::Refused, _) => {
                actor.call("UNWATCH");
            }
        }
        actor.rest(4000);
    }
}

// ---- Messages -----------------------------------------------------------------------------------

fn publish(actor: &mut Actor<'_>, _: usize) {
    let (mut name, mut count) = (actor.random.bits(), 0);
    while actor.world.goes_on() {
        let wanted = 1 + actor.random.below(5);
        let commands: Vec<String> =
            (1..=wanted).map(|index| format!("PUBLISH news {name}:{}", count + index)).collect();
        count += wanted;
        let answers = actor.exchange(&commands);
        if answers.iter().any(|answer| answer.as_ref().is_none_or(|(reply, _)| reply.is_error())) {
            // It is unknown which were sent: others see a gap, which is none in a new name.
            (name, count) = (actor.random.bits(), 0);
        }
        actor.rest(5000);
    }
}

/// Each publisher's messages come in its order, and none is left out.
fn listen(actor: &mut Actor<'_>, _: usize) {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    if actor.call("SUBSCRIBE news").is_none_or(|(reply, _)| reply.is_error()) {
        actor.hang_up();
        return;
    }
    while actor.world.goes_on() {
        let world = actor.world;
        let Some(client) = actor.connected() else { return };
        match client.has_input(Duration::from_millis(50)) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return actor.hang_up(),
        }
        let Ok(Received::Reply(Reply::Array(message))) = client.receive() else {
            return actor.hang_up();
        };
        let text = message.get(2).and_then(Reply::text).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        let Some((publisher, count)) = text.split_once(':') else { continue };
        let count: u64 = count.parse().unwrap_or(0);
        if let Some(before) = last.insert(publisher.to_owned(), count)
            && count != before + 1
        {
            world.complain(format!("message {count} of {publisher} came after {before}"));
        }
    }
}

// ---- Whole databases ----------------------------------------------------------------------------

fn operate(actor: &mut Actor<'_>, _: usize) {
    let Some((reply, _)) = actor.call("GET mark") else { return };
    let Ok(mark) = data::value(&reply) else { return };
    // Even marks go with the first order of the two databases.
    let mut mark = mark.unwrap_or(0);
    while actor.world.goes_on() {
        let flush = mark == 0 || actor.random.percent(12);
        let number = if flush { (mark / 2 + 1) * 2 } else { mark + 1 };
        let mut commands = vec![format!("SET mark {number}")];
        if flush {
            let how = *actor.random.pick(&["FLUSHALL", "FLUSHALL ASYNC", "FLUSHALL SYNC"]);
            commands.insert(0, how.to_owned());
            commands.extend(data::FIRST_ORDER.map(str::to_owned));
        } else {
            commands.push("SWAPDB 3 4".to_owned());
        }
        let begin = actor.now();
        let action = Action::Mark { number, flush };
        match actor.transaction(&commands) {
            (Executed::Done(_), end) => {
                actor.record(action, begin, end);
                actor.world.note(if flush { "FLUSHALL" } else { "SWAPDB" }, begin);
                mark = number;
            }
            (Executed::Unanswered, _) => {
                actor.record(action, begin, None);
                return;
            }
            _ => {}
        }
        actor.rest(250_000);
    }
}

// ---- Noise --------------------------------------------------------------------------------------

fn make_noise(actor: &mut Actor<'_>, _: usize) {
    let mut commands = Vec::new();
    for _ in 0..=actor.random.below(12) {
        let command = grammar::command(&grammar::REDIS, &mut actor.random);
        // Words are split at blanks here, and a command of other words is noise as well.
        let words = command.words.iter().map(|word| String::from_utf8_lossy(word));
        commands.push(words.collect::<Vec<_>>().join(" "));
    }
    actor.exchange(&commands);
    actor.rest(4000);
}

/// Large values, come and gone.
fn lift(actor: &mut Actor<'_>, _: usize) {
    let size = 10_000 + actor.random.below(400_000);
    let key = actor.random.below(4);
    let command = match actor.random.below(8) {
        0 => format!("SET heavy:{key} {}", "x".repeat(size)),
        1 => format!("APPEND heavy:{key} {}", "y".repeat(size / 4)),
        2 => format!("RPUSH heavy:list{}", " element".repeat(size / 100)),
        3 => {
            let fields: Vec<String> =
                (0..size / 100).map(|field| format!(" field{field} value{field}")).collect();
            format!("HSET heavy:hash{}", fields.concat())
        }
        4 => "SORT heavy:list ALPHA LIMIT 0 10".to_owned(),
        5 => "UNLINK heavy:0 heavy:1 heavy:list".to_owned(),
        6 => "DEL heavy:2 heavy:3 heavy:hash".to_owned(),
        _ => format!("DEBUG POPULATE {} populated", size / 50),
    };
    let begin = actor.now();
    let answer = actor.call(&command);
    let name: String = command.chars().take(20).collect();
    actor.world.note(&name, begin);
    if answer.is_some_and(|(reply, _)| is_refusal(&reply)) {
        actor.rest(100_000);
    }
    actor.rest(60_000);
}
