//! LCS: the longest common subsequence of two strings.
//!
//! The textbook's table of lengths is filled row by row, but only two rows of it are kept. The way
//! back needs one bit of each cell: whether the longer subsequence lies above. Whether two bytes
//! are equal can be seen again in the strings. That takes a 32nd of the memory of the whole table.

use resp::reply::Reply;
use store::ValueRef;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// The form of LCS's answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Subsequence,
    /// LEN
    Length,
    /// IDX
    Matches,
}

/// LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]
pub(super) fn lcs(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let keys = [args.key()?, args.key()?];
    // Both are looked up before any option is read.
    let found = keys.each_ref().map(|key| cx.db.find(key));
    let mut strings = [const { None }; 2];
    for (string, entry) in strings.iter_mut().zip(found) {
        *string = match entry.map(|entry| entry.value()) {
            None => None,
            Some(ValueRef::String(own)) => Some(own.bytes()),
            Some(_) => {
                return Err(CommandError::text(
                    "ERR The specified keys must contain string values",
                ));
            }
        };
    }
    let [a, b] = strings.each_ref().map(|string| string.as_deref().unwrap_or_default());
    let options = LcsOptions::parse(args)?;
    check_size(a.len(), b.len(), cx.db.config.proto_max_bulk_len)?;
    if options.answer == Answer::Length {
        cx.reply.integer(i64::from(length(a, b)));
        return Ok(());
    }
    let table = Table::new(a, b);
    let matches = table.matches(a, b);
    match options.answer {
        Answer::Matches => reply_matches(&mut cx.reply, &matches, table.length, &options),
        _ => {
            let parts = matches.iter().rev().map(|common| &a[common.a..common.a + common.length]);
            cx.reply.bulk(&parts.collect::<Vec<_>>().concat());
        }
    }
    Ok(())
}

struct LcsOptions {
    answer: Answer,
    /// Shorter matches are left out.
    shortest: i64,
    /// Each match comes with its length.
    with_lengths: bool,
}

impl LcsOptions {
    fn parse(args: &mut Args<'_>) -> Result<LcsOptions, CommandError> {
        let (mut len, mut idx) = (false, false);
        let mut options =
            LcsOptions { answer: Answer::Subsequence, shortest: 0, with_lengths: false };
        while !args.is_empty() {
            if args.word("IDX") {
                idx = true;
            } else if args.word("LEN") {
                len = true;
            } else if args.word("WITHMATCHLEN") {
                options.with_lengths = true;
            } else if args.word("MINMATCHLEN") {
                options.shortest = args.i64()?;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        options.answer = match (len, idx) {
            (true, true) => {
                return Err(CommandError::text(
                    "ERR If you want both the length and indexes, please just use IDX.",
                ));
            }
            (true, false) => Answer::Length,
            (false, true) => Answer::Matches,
            (false, false) => Answer::Subsequence,
        };
        Ok(options)
    }
}

/// Refuses strings for which the search would take too long. The bound is that of Redis, which
/// keeps the whole table.
fn check_size(a: usize, b: usize, limit: u64) -> CommandResult {
    let cells = (a as u64 + 1).checked_mul(b as u64 + 1);
    let bytes = cells.and_then(|cells| cells.checked_mul(4));
    match bytes {
        Some(bytes) if bytes <= limit => Ok(()),
        _ => Err(CommandError::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        )),
    }
}

/// Fills the row of lengths for the next byte of `a`; `row[j]` is the length for the first `j`
/// bytes of `b`. Calls `visit` for each place where the longer subsequence is above.
fn next_row(row: &mut [u32], byte: u8, b: &[u8], mut visit: impl FnMut(usize)) {
    let mut diagonal = 0;
    for (j, &other) in b.iter().enumerate() {
        let (above, left) = (row[j + 1], row[j]);
        row[j + 1] = if byte == other { diagonal + 1 } else { above.max(left) };
        if above > left {
            visit(j);
        }
        diagonal = above;
    }
}

/// The length of the longest common subsequence.
fn length(a: &[u8], b: &[u8]) -> u32 {
    let mut row = vec![0; b.len() + 1];
    a.iter().for_each(|&byte| next_row(&mut row, byte, b, |_| {}));
    row[b.len()]
}

/// A part that both strings have, as offsets in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Common {
    a: usize,
    b: usize,
    length: usize,
}

/// The bits that the way back needs.
struct Table {
    /// A bit per pair of bytes, by rows of `a`: the longer subsequence lies above.
    above: Vec<u64>,
    columns: usize,
    length: u32,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Table {
        let columns = b.len();
        let mut above = vec![0; (a.len() * columns).div_ceil(64)];
        let mut row = vec![0; columns + 1];
        for (i, &byte) in a.iter().enumerate() {
            next_row(&mut row, byte, b, |j| {
                let cell = i * columns + j;
                above[cell / 64] |= 1 << (cell % 64);
            });
        }
        Table { above, columns, length: row[columns] }
    }

    fn is_above(&self, i: usize, j: usize) -> bool {
        let cell = i * self.columns + j;
        self.above[cell / 64] >> (cell % 64) & 1 == 1
    }

    /// The common parts, from the end of the strings to their beginning.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<Common> {
        let mut matches: Vec<Common> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match matches.last_mut() {
                    Some(last) if (last.a, last.b) == (i + 1, j + 1) => {
                        *last = Common { a: i, b: j, length: last.length + 1 };
                    }
                    _ => matches.push(Common { a: i, b: j, length: 1 }),
                }
            } else if self.is_above(i - 1, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        matches
    }
}

fn reply_matches(reply: &mut Reply<'_>, matches: &[Common], length: u32, options: &LcsOptions) {
    let long_enough = |common: &&Common| common.length as i64 >= options.shortest;
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.iter().filter(long_enough).count());
    for common in matches.iter().filter(long_enough) {
        reply.array(2 + usize::from(options.with_lengths));
        for start in [common.a, common.b] {
            reply.array(2);
            reply.integer(start as i64);
            reply.integer((start + common.length - 1) as i64);
        }
        if options.with_lengths {
            reply.integer(common.length as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(i64::from(length));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, spelt out.
    fn defined(a: &[u8], b: &[u8]) -> u32 {
        match (a, b) {
            ([], _) | (_, []) => 0,
            ([x, a @ ..], [y, b @ ..]) if x == y => 1 + defined(a, b),
            ([_, shorter_a @ ..], [_, shorter_b @ ..]) => {
                defined(shorter_a, b).max(defined(a, shorter_b))
            }
        }
    }

    proptest! {
        #[test]
        fn the_parts_are_common_and_longest(a in "[abc]{0,9}", b in "[abc]{0,9}") {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            let table = Table::new(a, b);
            prop_assert_eq!(table.length, defined(a, b));
            prop_assert_eq!(table.length, length(a, b));
            let matches = table.matches(a, b);
            let mut ends = (a.len(), b.len());
            for common in &matches {
                let (in_a, in_b) = (common.a + common.length, common.b + common.length);
                prop_assert!(in_a <= ends.0 && in_b <= ends.1);
                prop_assert_eq!(&a[common.a..in_a], &b[common.b..in_b]);
                ends = (common.a, common.b);
            }
            let total: usize = matches.iter().map(|common| common.length).sum();
            prop_assert_eq!(total, table.length as usize);
        }
    }
}
