//! Tests of the checker: it must complain about wrong histories, and about no others.

use crate::check::check;
use crate::history::{Action, Life, NEVER, Operation, Promise, State, Time};

fn operation(action: Action, begin: Time, end: Time) -> Operation {
    Operation { action, begin, end }
}

fn write(value: u64, begin: Time, end: Time) -> Operation {
    operation(Action::Write { register: 1, value }, begin, end)
}

fn read(value: Option<u64>, begin: Time, end: Time) -> Operation {
    operation(Action::Read { register: 1, value }, begin, end)
}

fn holding(value: Option<u64>) -> State {
    State { registers: value.map(|value| (1, value)).into_iter().collect(), ..State::default() }
}

fn promise(until: Time) -> Promise {
    Promise::of_all(vec![(0, until)], "a promise".to_owned())
}

/// Writes 5 and 6, one after the other, and what was left.
fn life(more: Vec<Operation>, after: State) -> Life {
    let mut operations = vec![write(5, 100, 110), write(6, 120, 130)];
    operations.extend(more);
    Life { before: holding(Some(1)), operations, promise: promise(1000), after }
}

fn complains(life: &Life, of: &str) {
    let found = check(life);
    assert!(found.iter().any(|sentence| sentence.contains(of)), "{of}: {found:?}");
}

fn is_content(life: &Life) {
    assert_eq!(check(life), Vec::<String>::new());
}

#[test]
fn a_lost_write_is_seen() {
    is_content(&life(Vec::new(), holding(Some(6))));
    complains(&life(Vec::new(), holding(Some(5))), "1 operations are lost");
    complains(&life(Vec::new(), holding(None)), "lost");
    complains(&life(Vec::new(), holding(Some(7))), "never written");
    let mut unpromised = life(Vec::new(), holding(Some(5)));
    unpromised.promise = promise(125);
    is_content(&unpromised);
    // Not acknowledged, but a client has seen it.
    is_content(&life(vec![write(7, 140, NEVER)], holding(Some(6))));
    let seen = vec![write(7, 140, NEVER), read(Some(7), 150, 160)];
    let mut seen = life(seen, holding(Some(6)));
    complains(&seen, "lost");
    // Under everysec a reader does not wait for the write of another client.
    seen.promise.of_what_is_seen.clear();
    is_content(&seen);
    seen.after = holding(Some(5));
    complains(&seen, "value 6 of register 1");
}

#[test]
fn a_state_of_no_instant_is_seen() {
    let other = operation(Action::Write { register: 2, value: 9 }, 140, 150);
    let mut after = holding(Some(5));
    after.registers.insert(2, 9);
    let mut life = life(vec![other], after);
    life.promise = Promise::default();
    complains(&life, "no instant");
    // Had it begun before, it could have come first.
    life.operations[2].begin = 125;
    is_content(&life);
}

#[test]
fn stale_reads_are_seen() {
    let reading = |value, begin, end| life(vec![read(value, begin, end)], holding(Some(6)));
    is_content(&reading(Some(5), 125, 140));
    is_content(&reading(Some(6), 125, 140));
    complains(&reading(Some(5), 135, 140), "a read saw 5, though 6");
    complains(&reading(None, 135, 140), "found nothing");
    complains(&reading(Some(6), 100, 115), "before it was written");
    complains(&reading(Some(8), 100, 115), "never written");
}

#[test]
fn flushes_count() {
    let flush = |begin, end| operation(Action::Mark { number: 2, flush: true }, begin, end);
    let flushed = |more: Vec<Operation>, value| {
        let mut life = life(more, holding(value));
        life.after.mark = 2;
        life
    };
    is_content(&flushed(vec![flush(140, 150), read(None, 160, 170)], None));
    is_content(&flushed(vec![flush(125, 150), read(Some(6), 160, 170)], Some(6)));
    complains(&flushed(vec![flush(140, 150), read(Some(6), 160, 170)], None), "though flush 2");
    complains(&flushed(vec![flush(140, 150)], Some(6)), "which flush 2 removed");
    let mut lost = flushed(vec![flush(140, 150)], Some(6));
    lost.after.mark = 0;
    complains(&lost, "flush 2");
}

#[test]
fn elements_are_popped_once() {
    let push = |element| operation(Action::Push { element }, 140, 150);
    let pop = |element, begin| operation(Action::Pop { element }, begin, begin + 10);
    let left = |elements: &[u64]| {
        let mut state = holding(Some(6));
        state.elements = elements.iter().copied().collect();
        state
    };
    is_content(&life(vec![push(1), push(2), pop(1, 160)], left(&[2])));
    complains(&life(vec![push(1), pop(1, 160), pop(1, 180)], left(&[])), "popped twice");
    complains(&life(vec![push(1)], left(&[])), "push of element 1");
    complains(&life(vec![push(1), pop(1, 160)], left(&[1])), "pop of element 1");
    complains(&life(vec![pop(1, 160)], left(&[])), "never pushed");
    let unanswered = operation(Action::PopUnanswered { most: 1 }, 160, NEVER);
    is_content(&life(vec![push(1), unanswered], left(&[])));
}

#[test]
fn what_a_group_delivers_stays_until_it_is_settled() {
    // An element of a stream.
    const ELEMENT: u64 = 33 << 30;
    let at = |action, begin| operation(action, begin, begin + 5);
    let delivered = || {
        vec![at(Action::Push { element: ELEMENT }, 140), at(Action::Pop { element: ELEMENT }, 150)]
    };
    let settled = || {
        let mut all = delivered();
        all.push(at(Action::Settle { element: ELEMENT }, 160));
        all
    };
    let mut pending = holding(Some(6));
    pending.pending.insert(ELEMENT);
    is_content(&life(delivered(), pending.clone()));
    is_content(&life(settled(), holding(Some(6))));
    complains(&life(delivered(), holding(Some(6))), "delivery of element");
    complains(&life(settled(), pending), "settling of element");
}

#[test]
fn a_value_has_one_successor_under_watch() {
    let swap = |from, to, begin| {
        let action = Action::Swap { counter: 0, from: Some(from), to, seen: begin };
        operation(action, begin, begin + 5)
    };
    let counted = |more: Vec<Operation>, value| {
        let mut life = life(more, holding(Some(6)));
        life.before.counters.insert(0, 1);
        life.after.counters.insert(0, value);
        life
    };
    is_content(&counted(vec![swap(1, 2, 140), swap(2, 3, 150)], 3));
    complains(&counted(vec![swap(1, 2, 140), swap(1, 3, 150)], 3), "followed by");
    complains(&counted(vec![swap(1, 2, 140), swap(2, 3, 150)], 2), "step of counter 0 to 3");
}
