//! Counters under WATCH: a value has one successor.

use crate::actor::{Actor, Executed};
use crate::data;
use crate::history::Action;

pub(super) fn count(actor: &mut Actor<'_>, number: usize) {
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
