//! Whether the replies of two servers are alike.

use std::mem::discriminant;

use tests::client::{Received, Reply};
use tests::grammar::{Command, Comparison};
use tests::notation;
use tests::play::sorted;

pub(crate) fn shown(received: &Received) -> String {
    match received {
        Received::Closed => "(closed)".to_owned(),
        Received::Reply(reply) => notation::lines(reply).join("\n"),
    }
}

/// Compares two answers. `queue` has the comparisons of the commands that wait for EXEC.
pub(crate) fn answered_alike(
    command: &Command,
    queue: &mut Vec<Comparison>,
    dunlin: &Received,
    reference: &Received,
) -> bool {
    let (Received::Reply(dunlin), Received::Reply(reference)) = (dunlin, reference) else {
        return false;
    };
    let is = |name: &[u8]| command.words[0].eq_ignore_ascii_case(name);
    if *reference == Reply::Status(b"QUEUED".to_vec()) {
        queue.push(command.comparison);
    } else if is(b"EXEC") {
        let comparisons = std::mem::take(queue);
        if let (Reply::Array(ours), Reply::Array(theirs)) = (dunlin, reference) {
            return ours.len() == theirs.len()
                && comparisons.len() == ours.len()
                && comparisons.iter().zip(ours).zip(theirs).all(|((by, a), b)| alike(*by, a, b));
        }
    } else if !reference.is_error() && (is(b"MULTI") || is(b"DISCARD")) {
        queue.clear();
    }
    alike(command.comparison, dunlin, reference)
}

fn alike(comparison: Comparison, dunlin: &Reply, reference: &Reply) -> bool {
    let unordered = |group| sorted(dunlin.clone(), group) == sorted(reference.clone(), group);
    dunlin == reference
        || match comparison {
            Comparison::Exact => false,
            Comparison::Unordered => unordered(1),
            Comparison::Pairs => unordered(2),
            Comparison::Time => near(dunlin, reference),
            Comparison::Shape => same_shape(dunlin, reference),
            Comparison::Clients => same_clients(dunlin, reference),
        }
}

/// Whether two replies to CLIENT LIST describe the same clients, by what is alike on two servers.
fn same_clients(dunlin: &Reply, reference: &Reply) -> bool {
    const COMPARED: [&str; 12] = [
        "name", "flags", "db", "sub", "psub", "ssub", "multi", "watch", "user", "resp", "lib-name",
        "lib-ver",
    ];
    let clients = |reply: &Reply| -> Option<Vec<String>> {
        let text = reply.text().filter(|_| !reply.is_error())?;
        let text = String::from_utf8_lossy(text).into_owned();
        let line = |line: &str| {
            let fields = line.split(' ').filter(|field| {
                field.split_once('=').is_some_and(|(name, _)| COMPARED.contains(&name))
            });
            fields.collect::<Vec<_>>().join(" ")
        };
        let mut lines: Vec<_> = text.lines().map(line).collect();
        lines.sort();
        Some(lines)
    };
    let ours = clients(dunlin);
    ours.is_some() && ours == clients(reference)
}

/// Whether two times are as near as the clocks of two servers.
fn near(dunlin: &Reply, reference: &Reply) -> bool {
    match (dunlin, reference) {
        (Reply::Integer(ours), Reply::Integer(theirs)) => {
            *ours > 0 && *theirs > 0 && ours.abs_diff(*theirs) < 5000
        }
        _ => false,
    }
}

/// Whether two replies have one type and as many elements.
fn same_shape(dunlin: &Reply, reference: &Reply) -> bool {
    let size = |reply: &Reply| reply.clone().elements().map(|elements| elements.len());
    discriminant(dunlin) == discriminant(reference) && size(dunlin) == size(reference)
}
