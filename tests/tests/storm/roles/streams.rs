//! Streams: a group delivers an entry first to one consumer, and keeps it until it is settled.

use tests::client::Reply;

use crate::actor::{Actor, Executed};
use crate::data;
use crate::history::Action;

/// Adds entries: alone, in a transaction, or by a script that knows one stream of two.
pub(super) fn feed(actor: &mut Actor<'_>, number: usize) {
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
pub(super) fn consume(actor: &mut Actor<'_>, number: usize) {
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
