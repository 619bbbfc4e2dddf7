//! Noise: random commands and large values, so that the others do not have the server for
//! themselves.

use tests::grammar;

use crate::actor::{Actor, is_refusal};

pub(super) fn make_noise(actor: &mut Actor<'_>, _: usize) {
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
pub(super) fn lift(actor: &mut Actor<'_>, _: usize) {
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
