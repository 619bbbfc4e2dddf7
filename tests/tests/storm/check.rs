//! Finds what was wrong in the life of a process.
//!
//! Registers have one writer each, who gives them growing values, so that the order of writes is
//! known. The mark has one writer too, and says which of the swaps and flushes a state has seen.
//!
//! The rules while the process runs: a read sees the last value that was acknowledged before the
//! read began, or a newer one, or nothing after a flush. An element is popped once, and only after
//! it was pushed; the same goes for entries of streams and new deliveries of a group. A value of a
//! watched counter has one successor.
//!
//! The rules when the process has ended: promised values are there, which are those that were
//! acknowledged, and those that were read where readers wait for the disk. And the state is that of
//! one instant: if a write is not lost, nothing is lost that was acknowledged before that write
//! began.

use std::collections::{BTreeMap, BTreeSet};

use crate::data;
use crate::history::{Action, Life, NEVER, Operation, Time};

/// Violations of one kind that are reported.
const ENOUGH: usize = 5;

/// One operation in the words of a report.
struct Trace {
    what: String,
    begin: Time,
    /// When a client knew of it: the one that did it, or one that saw it.
    end: Time,
    /// When the one that did it knew.
    acknowledged: Time,
}

/// What became of operations, as far as it is certain.
#[derive(Default)]
struct Fates {
    lost: Vec<Trace>,
    survived: Vec<Trace>,
    violations: Vec<String>,
}

/// A write of a register.
#[derive(Clone, Copy)]
struct Write {
    value: u64,
    begin: Time,
    end: Time,
    /// When it was known to a client that it had happened.
    known: Time,
}

impl Write {
    fn is_acknowledged(&self) -> bool {
        self.end != NEVER
    }
}

/// A flush of everything.
#[derive(Clone, Copy)]
struct Flush {
    number: u64,
    begin: Time,
    end: Time,
}

/// The flushes that the state at the end has seen, or may have seen.
struct Survivors {
    flushes: Vec<Flush>,
    /// The mark of that state.
    mark: u64,
}

impl Survivors {
    /// Whether what was written in that time may have been removed.
    fn may_have_removed(&self, begin: Time) -> bool {
        self.flushes.iter().any(|flush| flush.end > begin)
    }

    /// The flush that has certainly removed what was acknowledged then.
    fn removed(&self, end: Time) -> Option<u64> {
        let certain = |flush: &&Flush| flush.end != NEVER || flush.number == self.mark;
        let flush = self.flushes.iter().filter(certain).find(|flush| flush.begin > end);
        flush.map(|flush| flush.number)
    }
}

/// All that was wrong, one sentence each.
pub(crate) fn check(life: &Life) -> Vec<String> {
    let flushes = flushes(life);
    let mut fates = Fates::default();
    let marked = check_marks(life, &mut fates);
    check_registers(life, &flushes, &marked, &mut fates);
    check_queues(life, &flushes, &marked, &mut fates);
    check_counters(life, &flushes, &marked, &mut fates);
    check_promise(life, &mut fates);
    fates.violations
}

/// How much of the acknowledged work was lost: operations, and nanoseconds before the last of them.
pub(crate) fn loss(life: &Life) -> (usize, Time) {
    let flushes = flushes(life);
    let mut fates = Fates::default();
    let marked = check_marks(life, &mut fates);
    check_registers(life, &flushes, &marked, &mut fates);
    let lost = fates.lost.iter().filter(|trace| trace.end != NEVER);
    let ends = lost.map(|trace| trace.end).collect::<Vec<_>>();
    let last = life.operations.iter().filter(|it| it.is_acknowledged()).map(|it| it.end).max();
    let first = ends.iter().min().copied();
    (ends.len(), first.map_or(0, |first| last.unwrap_or(first).saturating_sub(first)))
}

fn flushes(life: &Life) -> Vec<Flush> {
    let flush = |operation: &Operation| match operation.action {
        Action::Mark { number, flush: true } => {
            Some(Flush { number, begin: operation.begin, end: operation.end })
        }
        _ => None,
    };
    life.operations.iter().filter_map(flush).collect()
}

impl Fates {
    fn complain(&mut self, sentence: String) {
        if self.violations.len() < ENOUGH * 4 {
            self.violations.push(sentence);
        }
    }

    fn lose(&mut self, what: String, begin: Time, end: Time) {
        self.lost.push(Trace { what, begin, end, acknowledged: end });
    }

    fn lose_write(&mut self, what: String, write: &Write) {
        let Write { begin, end, known, .. } = *write;
        self.lost.push(Trace { what, begin, end: known, acknowledged: end });
    }

    fn keep(&mut self, what: String, begin: Time, end: Time) {
        self.survived.push(Trace { what, begin, end, acknowledged: end });
    }
}

/// Sorts swaps and flushes into lost and survived ones.
fn check_marks(life: &Life, fates: &mut Fates) -> Survivors {
    let after = life.after.mark;
    let mut found = after == life.before.mark;
    let mut survivors = Survivors { flushes: Vec::new(), mark: after };
    for operation in &life.operations {
        let Action::Mark { number, flush } = operation.action else { continue };
        let what = format!("{} {number}", if flush { "flush" } else { "swap" });
        found |= number == after;
        if number > after {
            if operation.is_acknowledged() {
                fates.lose(what, operation.begin, operation.end);
            }
            continue;
        }
        if flush {
            let Operation { begin, end, .. } = *operation;
            survivors.flushes.push(Flush { number, begin, end });
        }
        if number == after {
            fates.keep(what, operation.begin, operation.end);
        }
    }
    if !found || after < life.before.mark {
        fates.complain(format!("the mark is {after}, which nobody set in this process's life"));
    }
    survivors
}

/// The writes of each register, what was there first as one at the beginning of time.
fn writes(life: &Life) -> BTreeMap<usize, Vec<Write>> {
    let mut writes: BTreeMap<usize, Vec<Write>> = BTreeMap::new();
    for (&register, &value) in &life.before.registers {
        writes.entry(register).or_default().push(Write { value, begin: 0, end: 0, known: 0 });
    }
    for operation in &life.operations {
        let Action::Write { register, value } = operation.action else { continue };
        let Operation { begin, end, .. } = *operation;
        writes.entry(register).or_default().push(Write { value, begin, end, known: end });
    }
    for list in writes.values_mut() {
        list.sort_by_key(|write| write.value);
    }
    for operation in &life.operations {
        let Action::Read { register, value: Some(value) } = operation.action else { continue };
        let Some(list) = writes.get_mut(&register) else { continue };
        if let Ok(at) = list.binary_search_by_key(&value, |write| write.value) {
            list[at].known = list[at].known.min(operation.end);
        }
    }
    writes
}

fn check_registers(life: &Life, flushes: &[Flush], marked: &Survivors, fates: &mut Fates) {
    let writes = writes(life);
    let none = Vec::new();
    for operation in &life.operations {
        let Action::Read { register, value } = operation.action else { continue };
        let list = writes.get(&register).unwrap_or(&none);
        if let Some(error) = wrong_read(list, flushes, operation, value) {
            fates.complain(format!("register {register}: {error}"));
        }
    }
    let all: BTreeSet<usize> = writes.keys().chain(life.after.registers.keys()).copied().collect();
    for register in all {
        let list = writes.get(&register).unwrap_or(&none);
        let value = life.after.registers.get(&register).copied();
        judge_register(register, list, value, marked, fates);
    }
}

/// What is wrong with a read, if something is.
fn wrong_read(
    writes: &[Write],
    flushes: &[Flush],
    read: &Operation,
    value: Option<u64>,
) -> Option<String> {
    let newest = writes.iter().rev().find(|write| write.end < read.begin);
    let Some(value) = value else {
        let newest = newest?;
        let excused =
            flushes.iter().any(|flush| flush.end > newest.begin && flush.begin < read.end);
        return (!excused).then(|| {
            format!("a read found nothing, though {} had been acknowledged", newest.value)
        });
    };
    let Some(seen) = writes.iter().find(|write| write.value == value) else {
        return Some(format!("a read saw {value}, which was never written"));
    };
    if seen.begin > read.end {
        return Some(format!("a read saw {value} before it was written"));
    }
    if !seen.is_acknowledged() {
        return None;
    }
    if let Some(newest) = newest.filter(|newest| newest.value > value && newest.begin > seen.end) {
        return Some(format!("a read saw {value}, though {} had been acknowledged", newest.value));
    }
    let flushed = flushes.iter().find(|flush| flush.begin > seen.end && flush.end < read.begin)?;
    Some(format!("a read saw {value}, though flush {} had been acknowledged", flushed.number))
}

/// Decides which writes of a register survived, given what is there now.
fn judge_register(
    register: usize,
    writes: &[Write],
    value: Option<u64>,
    marked: &Survivors,
    fates: &mut Fates,
) {
    let name = |write: &Write| format!("value {} of register {register}", write.value);
    let Some(value) = value else {
        // Whatever was certainly written after the last flush should be there.
        let after = |write: &&Write| !marked.may_have_removed(write.begin);
        for write in writes.iter().filter(after).filter(|write| write.known != NEVER) {
            fates.lose_write(name(write), write);
        }
        return;
    };
    let Some(kept) = writes.iter().find(|write| write.value == value) else {
        fates.complain(format!("register {register} holds {value}, which was never written"));
        return;
    };
    fates.keep(name(kept), kept.begin, kept.end);
    if let Some(number) = marked.removed(kept.end) {
        fates.complain(format!("register {register} holds {value}, which flush {number} removed"));
    }
    if kept.is_acknowledged() {
        let newer = |write: &&Write| write.value > value && write.begin > kept.end;
        for write in writes.iter().filter(newer).filter(|write| write.known != NEVER) {
            fates.lose_write(name(write), write);
        }
    }
}

fn check_queues(life: &Life, flushes: &[Flush], marked: &Survivors, fates: &mut Fates) {
    let mut pushes: BTreeMap<u64, (Time, Time)> =
        life.before.elements.iter().map(|&element| (element, (0, 0))).collect();
    let mut pops: BTreeMap<u64, (Time, Time)> = BTreeMap::new();
    let mut unanswered = 0;
    for Operation { action, begin, end } in &life.operations {
        match *action {
            Action::Push { element } => {
                pushes.insert(element, (*begin, *end));
            }
            Action::Pop { element } => {
                let earlier = pops.insert(element, (*begin, *end));
                if earlier.is_some() {
                    fates.complain(format!("element {element} was popped twice"));
                }
            }
            Action::PopUnanswered { most } => unanswered += most,
            _ => {}
        }
    }
    for (element, &(pop_begin, pop_end)) in &pops {
        let Some(&(push_begin, push_end)) = pushes.get(element) else {
            fates.complain(format!("element {element} was popped, which was never pushed"));
            continue;
        };
        let flushed =
            |flush: &&Flush| flush.begin > push_end && flush.end < pop_begin && push_end != NEVER;
        if pop_end < push_begin {
            fates.complain(format!("element {element} was popped before it was pushed"));
        } else if let Some(flush) = flushes.iter().find(flushed) {
            let number = flush.number;
            fates.complain(format!("element {element} was popped after flush {number} removed it"));
        }
    }
    judge_queues(life, &pushes, &pops, marked, unanswered, fates);
    judge_groups(life, &pops, marked, fates);
}

/// Holds what groups wait for against what was delivered to them and settled.
fn judge_groups(
    life: &Life,
    deliveries: &BTreeMap<u64, (Time, Time)>,
    marked: &Survivors,
    fates: &mut Fates,
) {
    let mut settled: BTreeMap<u64, (Time, Time)> = BTreeMap::new();
    for &Operation { ref action, begin, end } in &life.operations {
        if let Action::Settle { element } = *action {
            let known = settled.entry(element).or_insert((begin, end));
            *known = (known.0.min(begin), known.1.min(end));
        }
    }
    for (element, &(begin, end)) in &settled {
        if end == NEVER {
            continue;
        }
        let is_back = life.after.pending.contains(element) || life.after.elements.contains(element);
        if is_back {
            fates.lose(format!("settling of element {element}"), begin, end);
        }
    }
    let before = life.before.pending.iter().map(|&element| (element, (0, 0)));
    let delivered = deliveries.iter().map(|(&element, &times)| (element, times));
    for (element, (begin, end)) in before.chain(delivered) {
        let waits = data::is_of_stream(element) && !settled.contains_key(&element);
        // What is not delivered any more is a lost delivery, which is judged elsewhere.
        let is_there =
            life.after.pending.contains(&element) || life.after.elements.contains(&element);
        if waits && end != NEVER && !is_there && !marked.may_have_removed(begin) {
            fates.lose(format!("delivery of element {element}"), begin, end);
        }
    }
}

/// Holds what is left in the queues against what was pushed and popped.
fn judge_queues(
    life: &Life,
    pushes: &BTreeMap<u64, (Time, Time)>,
    pops: &BTreeMap<u64, (Time, Time)>,
    marked: &Survivors,
    unanswered: usize,
    fates: &mut Fates,
) {
    for element in &life.after.elements {
        let Some(&(begin, end)) = pushes.get(element) else {
            fates.complain(format!("element {element} is there, which was never pushed"));
            continue;
        };
        fates.keep(format!("push of element {element}"), begin, end);
        if let Some(&(begin, end)) = pops.get(element) {
            fates.lose(format!("pop of element {element}"), begin, end);
        }
        if let Some(number) = marked.removed(end) {
            fates.complain(format!("element {element} is there, which flush {number} removed"));
        }
    }
    let missing = pushes.iter().filter(|(element, (begin, end))| {
        *end != NEVER
            && !pops.contains_key(element)
            && !life.after.elements.contains(element)
            && !marked.may_have_removed(*begin)
    });
    let mut missing: Vec<_> = missing.collect();
    // As many may have been handed to a client whose connection broke; the oldest are excused,
    // since queues are served from both ends that is a guess, but never one that accuses wrongly.
    missing.sort_by_key(|(_, (_, end))| *end);
    for (element, (begin, end)) in missing.into_iter().skip(unanswered) {
        fates.lose(format!("push of element {element}"), *begin, *end);
    }
}

/// A change of a watched counter.
struct Step {
    from: Option<u64>,
    begin: Time,
    end: Time,
    to: u64,
}

fn check_counters(life: &Life, flushes: &[Flush], marked: &Survivors, fates: &mut Fates) {
    let mut steps: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
    for &Operation { ref action, begin, end } in &life.operations {
        let Action::Swap { counter, from, to, seen } = *action else { continue };
        let between = |flush: &&Flush| flush.begin > seen && flush.end < begin;
        if let Some(flush) = flushes.iter().find(between).filter(|_| from.is_some() && end != NEVER)
        {
            let number = flush.number;
            fates.complain(format!(
                "counter {counter} went from {from:?} to {to} though flush {number} came between"
            ));
        }
        steps.entry(counter).or_default().push(Step { from, begin, end, to });
    }
    for (&counter, steps) in &steps {
        let mut successors: BTreeMap<u64, u64> = BTreeMap::new();
        for step in steps.iter().filter(|step| step.end != NEVER) {
            let Some(from) = step.from else { continue };
            if let Some(other) = successors.insert(from, step.to) {
                let to = step.to;
                fates.complain(format!(
                    "counter {counter}: {from} was followed by {other} and by {to} under WATCH"
                ));
            }
        }
    }
    let all: BTreeSet<usize> = steps.keys().chain(life.before.counters.keys()).copied().collect();
    for counter in all {
        let none = Vec::new();
        let steps = steps.get(&counter).unwrap_or(&none);
        judge_counter(life, counter, steps, marked, fates);
    }
}

fn judge_counter(
    life: &Life,
    counter: usize,
    steps: &[Step],
    marked: &Survivors,
    fates: &mut Fates,
) {
    let before = life.before.counters.get(&counter).copied();
    let name = |step: &Step| format!("step of counter {counter} to {}", step.to);
    let Some(value) = life.after.counters.get(&counter).copied() else {
        let certain = steps.iter().filter(|step| step.end != NEVER);
        for step in certain.filter(|step| !marked.may_have_removed(step.begin)) {
            fates.lose(name(step), step.begin, step.end);
        }
        if before.is_some() && marked.flushes.is_empty() {
            fates.lose(format!("the first value of counter {counter}"), 0, 0);
        }
        return;
    };
    let kept = steps.iter().find(|step| step.to == value);
    match kept {
        Some(kept) => fates.keep(name(kept), kept.begin, kept.end),
        None if before == Some(value) => {}
        None => {
            fates.complain(format!("counter {counter} holds {value}, which was never written"));
        }
    }
    for step in steps.iter().filter(|step| step.from == Some(value) && step.end != NEVER) {
        fates.lose(name(step), step.begin, step.end);
    }
}

/// Holds what was lost against what was promised and against what survived.
fn check_promise(life: &Life, fates: &mut Fates) {
    let promised = |trace: &&Trace| {
        let Trace { begin, end, acknowledged, .. } = **trace;
        life.promise.covers(begin, acknowledged) || life.promise.covers_what_is_seen(begin, end)
    };
    let broken: Vec<_> = fates.lost.iter().filter(promised).collect();
    if let Some(first) = broken.iter().min_by_key(|trace| trace.end) {
        let last = life.operations.iter().filter(|it| it.is_acknowledged()).map(|it| it.end).max();
        let age = last.unwrap_or(first.end).saturating_sub(first.end) / 1_000_000;
        let (what, count, reason) = (&first.what, broken.len(), &life.promise.reason);
        let sentence = format!(
            "{count} operations are lost, the first is the {what}, which a client knew of {age} \
             ms before the last answer; {reason}"
        );
        fates.violations.push(sentence);
    }
    let first_lost = fates.lost.iter().min_by_key(|trace| trace.end);
    let last_kept = fates.survived.iter().max_by_key(|trace| trace.begin);
    if let (Some(lost), Some(kept)) = (first_lost, last_kept)
        && lost.end < kept.begin
    {
        let between = (kept.begin - lost.end) / 1_000;
        let sentence = format!(
            "the {} is lost, but the {}, which began {between} us after that was acknowledged, is \
             not: the state is that of no instant",
            lost.what, kept.what
        );
        fates.violations.push(sentence);
    }
}
