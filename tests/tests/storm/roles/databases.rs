//! Whole databases: a swap or a flush is seen by all at once, with the mark that names it.

use crate::actor::{Actor, Executed};
use crate::data;
use crate::history::Action;

pub(super) fn operate(actor: &mut Actor<'_>, _: usize) {
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
        let replicas = actor.world.replicas.as_ref().filter(|_| flush);
        replicas.inspect(|it| it.note_flush());
        match actor.transaction(&commands) {
            (Executed::Done(_), end) => {
                replicas.inspect(|it| it.note_flushed());
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
