//! The conditions under which a plan makes sense.

use super::error::LoadError;
use super::{Keys, Pace, Plan, Size, Work};

/// Connections that one load may have: more than one address has ports for.
const MOST_CONNECTIONS: usize = 1_000_000;
/// Requests that one connection may send at once.
const LONGEST_PIPELINE: usize = 1_000_000;
/// Bytes that the requests of a pipeline may have: they are kept in memory, by each thread.
const LARGEST_BATCH: f64 = 4.0 * 1024.0 * 1024.0 * 1024.0;
/// Threads that one load may have.
const MOST_THREADS: usize = 1024;

/// Refuses a plan that cannot be run.
///
/// # Errors
/// [`LoadError::Plan`] with what is wrong.
pub(crate) fn check(plan: &Plan) -> Result<(), LoadError> {
    let wrong = |text: &str| Err(LoadError::Plan(text.to_owned()));
    if plan.connections == 0 {
        return wrong("a load needs at least one connection");
    }
    if plan.connections > MOST_CONNECTIONS {
        return wrong("a load has at most a million connections");
    }
    if plan.threads == 0 || plan.threads > MOST_THREADS {
        return wrong("a load needs 1 to 1024 threads");
    }
    if plan.threads > plan.connections {
        return wrong("a load needs at least one connection for each of its threads");
    }
    if plan.pipeline == 0 || plan.pipeline > LONGEST_PIPELINE {
        return wrong("a pipeline has one to a million requests");
    }
    if !(0.0..1.0).contains(&plan.phase) {
        return wrong("a phase is a share of the time between two requests, from 0 to below 1");
    }
    let times = [plan.seconds.unwrap_or(0.0), plan.warmup_seconds];
    if !times.iter().all(|time| time.is_finite() && (0.0..=1e9).contains(time)) {
        return wrong("times are seconds from 0 to 1e9");
    }
    match plan.pace {
        Pace::Closed { think_seconds } if !(0.0..=1e9).contains(&think_seconds) => {
            return wrong("the pause between requests is seconds from 0 to 1e9");
        }
        Pace::Open { rate, .. } if !(1e-3..=1e9).contains(&rate) => {
            return wrong("a rate is 0.001 to 1e9 requests a second");
        }
        _ => {}
    }
    let has_no_keys = match &plan.work {
        Work::Resp(work) => !work.keep_alive || work.tracking || plan.address.database > 0,
        Work::Http(_) => true,
    };
    if plan.cluster && (has_no_keys || plan.address.socket.is_some()) {
        return wrong(
            "a cluster takes commands over TCP, in database 0, on connections that are kept; there \
             is no tracking",
        );
    }
    let is_of_one =
        matches!(plan.work, Work::Resp(_)) || plan.pipeline > 1 || plan.address.socket.is_some();
    if is_of_one && !plan.members.is_empty() {
        return wrong("members are asked over HTTP, one request at a time");
    }
    check_memory(plan)?;
    let (weights, keys, sizes) = match &plan.work {
        Work::Resp(work) => {
            if work.operations.iter().any(|operation| operation.arguments.is_empty()) {
                return wrong("an operation is a command with at least one word");
            }
            if !(2..=3).contains(&work.protocol) {
                return wrong("the protocol is 2 or 3");
            }
            let weights: Vec<f64> = work.operations.iter().map(|one| one.weight).collect();
            (weights, &work.keys, &work.sizes)
        }
        Work::Http(work) => {
            let heads = work.requests.iter().filter(|request| request.method == "HEAD").count();
            if plan.pipeline > 1 && heads > 0 && heads < work.requests.len() {
                return wrong("HEAD cannot be pipelined together with other methods");
            }
            if work.requests.iter().any(|request| !is_plain(&request.method, &request.path)) {
                return wrong("methods and paths have no spaces, and a path begins with /");
            }
            let weights: Vec<f64> = work.requests.iter().map(|one| one.weight).collect();
            (weights, &work.keys, &work.sizes)
        }
    };
    check_weights(&weights, "operations")?;
    let sizes: Vec<f64> = sizes.iter().map(|Size { weight, .. }| *weight).collect();
    check_weights(&sizes, "sizes")?;
    check_keys(keys)
}

/// Refuses requests that would not fit into memory: orders come from other machines, too.
fn check_memory(plan: &Plan) -> Result<(), LoadError> {
    let (texts, sizes): (Vec<Vec<&String>>, _) = match &plan.work {
        Work::Resp(work) => (
            work.operations.iter().map(|one| one.arguments.iter().collect()).collect(),
            &work.sizes,
        ),
        Work::Http(work) => {
            (work.requests.iter().map(|one| one.body.iter().collect()).collect(), &work.sizes)
        }
    };
    let largest = sizes.iter().map(|size| size.bytes).max().unwrap_or(0) as f64;
    let length =
        |text: &&String| text.len() as f64 + text.matches("__data__").count() as f64 * largest;
    let lengths = texts.iter().map(|words| words.iter().map(length).sum::<f64>());
    let longest = lengths.fold(0.0, f64::max);
    // Each operation is laid out once in each size, and a pipeline of the longest requests may be
    // sent.
    let all = longest * (texts.len() * sizes.len()).max(plan.pipeline) as f64;
    if all > LARGEST_BATCH {
        return Err(LoadError::Plan(
            "the requests of a pipeline, or all kinds of them, take more than 4 GiB of memory"
                .to_owned(),
        ));
    }
    Ok(())
}

fn is_plain(method: &str, path: &str) -> bool {
    let is_word = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    !method.is_empty() && is_word(method) && path.starts_with('/') && is_word(path)
}

fn check_weights(weights: &[f64], what: &str) -> Result<(), LoadError> {
    let are_numbers = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
    if !are_numbers || weights.iter().sum::<f64>() <= 0.0 {
        return Err(LoadError::Plan(format!(
            "{what} need weights of 0 and more, and one of them above 0"
        )));
    }
    Ok(())
}

fn check_keys(keys: &Keys) -> Result<(), LoadError> {
    let is_right = match *keys {
        Keys::Literal => true,
        Keys::Uniform { count } | Keys::Sequential { count } => count > 0,
        Keys::Zipf { count, exponent } => count > 0 && (0.0..=10.0).contains(&exponent),
        Keys::Hot { count, hot, share } => hot > 0 && hot < count && (0.0..=1.0).contains(&share),
    };
    if is_right {
        return Ok(());
    }
    Err(LoadError::Plan(format!(
        "keys need a count above 0, an exponent from 0 to 10, fewer hot keys than keys and a share \
         from 0 to 1: {keys:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Operation, RespWork};

    #[test]
    fn what_takes_too_much_is_refused() {
        let operation = |word: &str| Operation {
            name: word.to_owned(),
            weight: 1.0,
            arguments: vec!["SET".to_owned(), "k".to_owned(), word.to_owned()],
        };
        let plan = |bytes, pipeline, word| {
            let sizes = vec![Size { bytes, weight: 1.0 }];
            let work = RespWork { operations: vec![operation(word)], sizes, ..RespWork::default() };
            Plan { pipeline, work: Work::Resp(work), ..Plan::default() }
        };
        assert!(check(&Plan::default()).is_ok());
        assert!(check(&plan(1 << 30, 1, "__data__")).is_ok());
        assert!(check(&plan(1_000_000_000_000_000, 1, "__data__")).is_err());
        assert!(check(&plan(1 << 30, 5, "__data__")).is_err());
        assert!(check(&plan(1 << 30, 1, "__data____data____data____data____data__")).is_err());
        assert!(check(&plan(3, usize::MAX, "__data__")).is_err());
        assert!(check(&Plan { connections: usize::MAX, ..Plan::default() }).is_err());
    }
}
