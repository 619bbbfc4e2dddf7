//! Queues: an element is popped once, by one client, whether or not the client has waited for it.

use tests::client::Reply;

use crate::actor::{Actor, Executed};
use crate::data;
use crate::history::Action;

pub(super) fn push(actor: &mut Actor<'_>, number: usize) {
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

pub(super) fn pop(actor: &mut Actor<'_>, _: usize) {
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
