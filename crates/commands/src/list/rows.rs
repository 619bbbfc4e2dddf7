//! The rows of the lists, and their documentation.

use super::blocking::{
    SERVE_BLMOVE, SERVE_BLMPOP, SERVE_BLPOP, SERVE_BRPOP, SERVE_BRPOPLPUSH, blmove, blmpop, blpop,
    brpop, brpoplpush,
};
use super::moving::{lmove, lmpop, rpoplpush};
use super::{
    lindex, linsert, llen, lpop, lpos, lpush, lpushx, lrange, lrem, lset, ltrim, rpop, rpush,
    rpushx,
};
use engine::command::{
    ADDS, Argument, ArgumentKind, BLOCKING, DELETES, DENYOOM, Docs, FAST, Group, LOOKS,
    MOVABLE_KEYS, MOVES, READONLY, READS, TAKES, TAKES_COUNTED, TAKES_COUNTED_2, TAKES_TIMED,
    UPDATES, WRITE, argument, docs, key, one_of, word,
};
use engine::engine::{Command, Family, row};

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::List.rows([
    row("lpush", lpush, -3, WRITE | DENYOOM | FAST, ADDS),
    row("rpush", rpush, -3, WRITE | DENYOOM | FAST, ADDS),
    row("lpushx", lpushx, -3, WRITE | DENYOOM | FAST, ADDS),
    row("rpushx", rpushx, -3, WRITE | DENYOOM | FAST, ADDS),
    row("lpop", lpop, -2, WRITE | FAST, TAKES),
    row("rpop", rpop, -2, WRITE | FAST, TAKES),
    row("llen", llen, 2, READONLY | FAST, LOOKS),
    row("lindex", lindex, 3, READONLY, READS),
    row("lset", lset, 4, WRITE | DENYOOM, UPDATES),
    row("linsert", linsert, 5, WRITE | DENYOOM, ADDS),
    row("lrem", lrem, 4, WRITE, DELETES),
    row("ltrim", ltrim, 4, WRITE, DELETES),
    row("lrange", lrange, 4, READONLY, READS),
    row("lpos", lpos, -3, READONLY, READS),
    row("lmove", lmove, 5, WRITE | DENYOOM, MOVES),
    row("rpoplpush", rpoplpush, 3, WRITE | DENYOOM, MOVES),
    row("lmpop", lmpop, -4, WRITE | MOVABLE_KEYS, TAKES_COUNTED),
    row("blpop", blpop, -3, WRITE | BLOCKING, TAKES_TIMED).serve(SERVE_BLPOP),
    row("brpop", brpop, -3, WRITE | BLOCKING, TAKES_TIMED).serve(SERVE_BRPOP),
    row("blmove", blmove, 6, WRITE | DENYOOM | BLOCKING, MOVES).serve(SERVE_BLMOVE),
    row("brpoplpush", brpoplpush, 4, WRITE | DENYOOM | BLOCKING, MOVES).serve(SERVE_BRPOPLPUSH),
    row("blmpop", blmpop, -5, WRITE | BLOCKING | MOVABLE_KEYS, TAKES_COUNTED_2).serve(SERVE_BLMPOP),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);
const ELEMENT: Argument = argument("element", ArgumentKind::String);
const COUNT: Argument = argument("count", ArgumentKind::Integer);
const START: Argument = argument("start", ArgumentKind::Integer);
const STOP: Argument = argument("stop", ArgumentKind::Integer);
const NUMKEYS: Argument = argument("numkeys", ArgumentKind::Integer);
const TIMEOUT: Argument = argument("timeout", ArgumentKind::Double);
const SOURCE: Argument = key("source", 0);
const DESTINATION: Argument = key("destination", 1);
const ENDS: &[Argument] = &[word("left", "LEFT"), word("right", "RIGHT")];
const PUSH_COST: &str = "O(N) for N elements that are given.";
const POP_MANY_COST: &str = "O(N+M) for N keys and M elements that are taken.";
const SEVERAL: &str = "Takes several elements.";
const FRACTIONS: &str = "The timeout may have a fraction.";

const DOCS: &[Docs] = &[
    docs("lpush", "1.0.0", "Puts elements in front of a list, which is created if necessary.")
        .cost(PUSH_COST)
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("2.4.0", SEVERAL)]),
    docs("rpush", "1.0.0", "Appends elements to a list, which is created if necessary.")
        .cost(PUSH_COST)
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("2.4.0", SEVERAL)]),
    docs("lpushx", "2.2.0", "Puts elements in front of a list that exists.")
        .cost(PUSH_COST)
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("4.0.0", SEVERAL)]),
    docs("rpushx", "2.2.0", "Appends elements to a list that exists.")
        .cost(PUSH_COST)
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("4.0.0", SEVERAL)]),
    docs("lpop", "1.0.0", "Takes the first elements out of a list and returns them.")
        .cost("O(N) for N elements that are answered.")
        .arguments(&[KEY, COUNT.since("6.2.0").optional()])
        .history(&[("6.2.0", "Takes a count.")]),
    docs("rpop", "1.0.0", "Takes the last elements out of a list and returns them.")
        .cost("O(N) for N elements that are answered.")
        .arguments(&[KEY, COUNT.since("6.2.0").optional()])
        .history(&[("6.2.0", "Takes a count.")]),
    docs("llen", "1.0.0", "Returns the number of elements in a list.")
        .cost("O(1)")
        .arguments(&[KEY]),
    docs("lindex", "1.0.0", "Returns the element at an index of a list.")
        .cost("O(N) for an element that is N away from the nearer end.")
        .arguments(&[KEY, argument("index", ArgumentKind::Integer)]),
    docs("lset", "1.0.0", "Replaces the element at an index of a list.")
        .cost("O(N) for a list of N elements; O(1) at its ends.")
        .arguments(&[KEY, argument("index", ArgumentKind::Integer), ELEMENT]),
    docs("linsert", "2.2.0", "Puts an element next to the first one that has a given value.")
        .cost("O(N) for a pivot that is the N-th element from the left.")
        .arguments(&[
            KEY,
            one_of("where", &[word("before", "BEFORE"), word("after", "AFTER")]),
            argument("pivot", ArgumentKind::String),
            ELEMENT,
        ]),
    docs("lrem", "1.0.0", "Removes elements that have a given value.")
        .cost("O(N+M) for a list of N elements of which M are removed.")
        .arguments(&[KEY, COUNT, ELEMENT]),
    docs("ltrim", "1.0.0", "Removes all elements outside of a range.")
        .cost("O(N) for N elements that go.")
        .arguments(&[KEY, START, STOP]),
    docs("lrange", "1.0.0", "Returns the elements in a range.")
        .cost("O(S+N) for N elements that begin S away from the nearer end.")
        .arguments(&[KEY, START, STOP]),
    docs("lpos", "6.0.6", "Returns where in a list elements with a given value are.")
        .cost("O(N) for N elements that are compared before enough are found.")
        .arguments(&[
            KEY,
            ELEMENT,
            argument("rank", ArgumentKind::Integer).token("RANK").optional(),
            argument("num-matches", ArgumentKind::Integer).token("COUNT").optional(),
            argument("len", ArgumentKind::Integer).token("MAXLEN").optional(),
        ]),
    docs("lmove", "6.2.0", "Moves an element from an end of one list to an end of another.")
        .cost("O(1)")
        .arguments(&[SOURCE, DESTINATION, one_of("wherefrom", ENDS), one_of("whereto", ENDS)]),
    docs("rpoplpush", "1.2.0", "Moves the last element of one list to the front of another.")
        .cost("O(1)")
        .arguments(&[SOURCE, DESTINATION])
        .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"),
    docs("lmpop", "7.0.0", "Takes elements out of the first of several lists that is not empty.")
        .cost(POP_MANY_COST)
        .arguments(&[
            NUMKEYS,
            KEY.multiple(),
            one_of("where", ENDS),
            COUNT.token("COUNT").optional(),
        ]),
    docs(
        "blpop",
        "2.0.0",
        "Takes the first element out of one of several lists, and waits for one if necessary.",
    )
    .cost("O(N) for N keys.")
    .arguments(&[KEY.multiple(), TIMEOUT])
    .history(&[("6.0.0", FRACTIONS)]),
    docs(
        "brpop",
        "2.0.0",
        "Takes the last element out of one of several lists, and waits for one if necessary.",
    )
    .cost("O(N) for N keys.")
    .arguments(&[KEY.multiple(), TIMEOUT])
    .history(&[("6.0.0", FRACTIONS)]),
    docs("blmove", "6.2.0", "Moves an element from list to list, and waits for one if necessary.")
        .cost("O(1)")
        .arguments(&[
            SOURCE,
            DESTINATION,
            one_of("wherefrom", ENDS),
            one_of("whereto", ENDS),
            TIMEOUT,
        ]),
    docs(
        "brpoplpush",
        "2.2.0",
        "Moves the last element of one list to the front of another, and waits for one if \
             necessary.",
    )
    .cost("O(1)")
    .arguments(&[SOURCE, DESTINATION, TIMEOUT])
    .history(&[("6.0.0", FRACTIONS)])
    .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"),
    docs(
        "blmpop",
        "7.0.0",
        "Takes elements out of the first of several lists that is not empty, and waits for one \
             if necessary.",
    )
    .cost(POP_MANY_COST)
    .arguments(&[
        TIMEOUT,
        NUMKEYS,
        KEY.multiple(),
        one_of("where", ENDS),
        COUNT.token("COUNT").optional(),
    ]),
];
