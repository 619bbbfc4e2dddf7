//! Holds what a server has against what clients were told while another one was the primary, or it
//! itself.

use crate::check;
use crate::history::{Action, Life, NEVER, Operation, Promise, State, Time};
use crate::replicas::{Assurance, WRITERS};

/// Why a server has what it has.
pub(crate) enum Reason {
    /// It was the primary all the time, or got everything that the primary had.
    SameData {
        /// What was read later may be from before.
        reads_until: Time,
    },
    /// The primary has started again, from its files.
    Restarted {
        /// What its files promise.
        promise: Promise,
        /// Whether a reader's answer waits until what it has read is on the disk.
        readers_wait: bool,
        /// Whether it has an append-only file.
        appends: bool,
    },
    /// It was promoted, as the one that had most of the stream.
    Promoted {
        /// What was acknowledged later need not be there.
        until: Time,
        /// What was read later may be from elsewhere.
        reads_until: Time,
        /// When which replica has ended meanwhile.
        ended: Vec<(usize, Time)>,
        /// How many replicas were not there to be promoted.
        absent: usize,
    },
}

/// All that is wrong, one sentence each.
pub(crate) fn judge(
    before: &State,
    operations: &[Operation],
    after: &State,
    assurances: &[Assurance],
    reason: Reason,
) -> Vec<String> {
    let life = |operations: Vec<Operation>, promise: Promise| Life {
        before: before.clone(),
        operations,
        promise,
        after: after.clone(),
    };
    let all = Promise::of_all(vec![(0, Time::MAX - 1)], "the data was handed over".to_owned());
    let nothing = Promise::default();
    match reason {
        Reason::SameData { reads_until } => {
            check::check(&life(without_reads_after(operations, reads_until), all))
        }
        Reason::Restarted { promise, readers_wait, appends } => {
            let mut wrong = check::check(&life(operations.to_vec(), nothing));
            let is_memory = |it: &Operation| match it.action {
                Action::Write { register, .. } => !assurances[register % WRITERS].is_of_disk(),
                _ => false,
            };
            let mut rest = operations.to_vec();
            rest.iter_mut().filter(|it| is_memory(it)).for_each(|it| it.end = NEVER);
            rest.retain(|it| readers_wait || !matches!(it.action, Action::Read { .. }));
            wrong.extend(check::check(&life(rest, promise)));
            if appends {
                let is_synced = |register: usize, _: u64, _: &Operation| {
                    assurances[register % WRITERS].is_synced()
                };
                wrong.extend(lost(operations, after, is_synced));
            }
            wrong
        }
        Reason::Promoted { until, reads_until, ended, absent } => {
            let kept = without_reads_after(operations, reads_until);
            let mut wrong = check::check(&life(kept, nothing));
            let is_kept = |register: usize, copies: u64, it: &Operation| {
                if assurances[register % WRITERS].is_synced() {
                    // One that has ended has it again when it is back.
                    return it.end <= until && copies > absent as u64;
                }
                let mut gone: Vec<usize> =
                    ended.iter().filter(|(_, at)| *at >= it.begin).map(|(own, _)| *own).collect();
                gone.sort_unstable();
                gone.dedup();
                it.end <= until && copies > gone.len() as u64
            };
            wrong.extend(lost(operations, after, is_kept));
            wrong
        }
    }
}

fn without_reads_after(operations: &[Operation], time: Time) -> Vec<Operation> {
    let is_kept = |it: &&Operation| !matches!(it.action, Action::Read { .. }) || it.end <= time;
    operations.iter().filter(is_kept).cloned().collect()
}

/// How many operations were assured in such a way that they had to be there.
pub(crate) fn assured(operations: &[Operation]) -> usize {
    operations.iter().filter(|it| matches!(it.action, Action::Assured { .. })).count()
}

/// What was assured to clients in such a way, and is not there.
fn lost(
    operations: &[Operation],
    after: &State,
    is_kept: impl Fn(usize, u64, &Operation) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for operation in operations {
        let Action::Assured { register, value, copies } = operation.action else { continue };
        if !is_kept(register, copies, operation) {
            continue;
        }
        let found = after.registers.get(&register).copied();
        let was_flushed = operations.iter().any(|it| match it.action {
            Action::Mark { number, flush: true } => {
                it.end > operation.begin && number <= after.mark
            }
            _ => false,
        });
        if found.is_some_and(|found| found >= value) || (found.is_none() && was_flushed) {
            continue;
        }
        wrong.push(format!(
            "value {value} of register {register} was assured at {copies} replicas, from {} to {}, \
             and is lost: {found:?}",
            operation.begin, operation.end
        ));
    }
    wrong.truncate(5);
    wrong
}
