//! Registers: a reader sees the last value that was acknowledged, or a newer one, and never a torn
//! pair.

use tests::client::Reply;

use super::WRITERS;
use crate::actor::{Actor, Executed};
use crate::data;
use crate::history::Action;

pub(super) fn write(actor: &mut Actor<'_>, number: usize) {
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

pub(super) fn read(actor: &mut Actor<'_>, _: usize) {
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
