//! The rows of the lists.

use super::blocking::{
    SERVE_BLMOVE, SERVE_BLMPOP, SERVE_BLPOP, SERVE_BRPOP, SERVE_BRPOPLPUSH, blmove, blmpop, blpop,
    brpop, brpoplpush,
};
use super::moving::{lmove, lmpop, rpoplpush};
use super::{
    lindex, linsert, llen, lpop, lpos, lpush, lpushx, lrange, lrem, lset, ltrim, rpop, rpush,
    rpushx,
};
use crate::command::{
    ACCESS, Argument, ArgumentKind, BLOCKING, Command, DELETE, DENYOOM, FAST, Group, INSERT,
    KeySpec, MOVABLE_KEYS, READONLY, RO, RW, UPDATE, WRITE, argument, key, one_of, word,
};

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

/// The key from which a pop takes.
const POPPED: KeySpec = KeySpec::at(RW | ACCESS | DELETE, 1);
/// The key to which a push adds.
const PUSHED: KeySpec = KeySpec::at(RW | INSERT, 1);
const MOVED: &[KeySpec] = &[POPPED, KeySpec::at(RW | INSERT, 2)];

const PUSH_COST: &str = "O(N) for N elements that are given.";
const POP_MANY_COST: &str = "O(N+M) for N keys and M elements that are taken.";
const SEVERAL: &str = "Takes several elements.";
const FRACTIONS: &str = "The timeout may have a fraction.";

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("lpush", lpush, -3, Group::List, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[PUSHED])
        .docs(PUSH_COST, "Puts elements in front of a list, which is created if necessary.")
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("2.4.0", SEVERAL)]),
    Command::new("rpush", rpush, -3, Group::List, "1.0.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[PUSHED])
        .docs(PUSH_COST, "Appends elements to a list, which is created if necessary.")
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("2.4.0", SEVERAL)]),
    Command::new("lpushx", lpushx, -3, Group::List, "2.2.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[PUSHED])
        .docs(PUSH_COST, "Puts elements in front of a list that exists.")
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("4.0.0", SEVERAL)]),
    Command::new("rpushx", rpushx, -3, Group::List, "2.2.0")
        .flags(WRITE | DENYOOM | FAST)
        .keys(&[PUSHED])
        .docs(PUSH_COST, "Appends elements to a list that exists.")
        .arguments(&[KEY, ELEMENT.multiple()])
        .history(&[("4.0.0", SEVERAL)]),
    Command::new("lpop", lpop, -2, Group::List, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[POPPED])
        .docs(
            "O(N) for N elements that are answered.",
            "Takes the first elements out of a list and returns them.",
        )
        .arguments(&[KEY, COUNT.since("6.2.0").optional()])
        .history(&[("6.2.0", "Takes a count.")]),
    Command::new("rpop", rpop, -2, Group::List, "1.0.0")
        .flags(WRITE | FAST)
        .keys(&[POPPED])
        .docs(
            "O(N) for N elements that are answered.",
            "Takes the last elements out of a list and returns them.",
        )
        .arguments(&[KEY, COUNT.since("6.2.0").optional()])
        .history(&[("6.2.0", "Takes a count.")]),
    Command::new("llen", llen, 2, Group::List, "1.0.0")
        .flags(READONLY | FAST)
        .keys(&[KeySpec::at(RO, 1)])
        .docs("O(1)", "Returns the number of elements in a list.")
        .arguments(&[KEY]),
    Command::new("lindex", lindex, 3, Group::List, "1.0.0")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .docs(
            "O(N) for an element that is N away from the nearer end.",
            "Returns the element at an index of a list.",
        )
        .arguments(&[KEY, argument("index", ArgumentKind::Integer)]),
    Command::new("lset", lset, 4, Group::List, "1.0.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .docs(
            "O(N) for a list of N elements; O(1) at its ends.",
            "Replaces the element at an index of a list.",
        )
        .arguments(&[KEY, argument("index", ArgumentKind::Integer), ELEMENT]),
    Command::new("linsert", linsert, 5, Group::List, "2.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[PUSHED])
        .docs(
            "O(N) for a pivot that is the N-th element from the left.",
            "Puts an element next to the first one that has a given value.",
        )
        .arguments(&[
            KEY,
            one_of("where", &[word("before", "BEFORE"), word("after", "AFTER")]),
            argument("pivot", ArgumentKind::String),
            ELEMENT,
        ]),
    Command::new("lrem", lrem, 4, Group::List, "1.0.0")
        .flags(WRITE)
        .keys(&[KeySpec::at(RW | DELETE, 1)])
        .docs(
            "O(N+M) for a list of N elements of which M are removed.",
            "Removes elements that have a given value.",
        )
        .arguments(&[KEY, COUNT, ELEMENT]),
    Command::new("ltrim", ltrim, 4, Group::List, "1.0.0")
        .flags(WRITE)
        .keys(&[KeySpec::at(RW | DELETE, 1)])
        .docs("O(N) for N elements that go.", "Removes all elements outside of a range.")
        .arguments(&[KEY, START, STOP]),
    Command::new("lrange", lrange, 4, Group::List, "1.0.0")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .docs(
            "O(S+N) for N elements that begin S away from the nearer end.",
            "Returns the elements in a range.",
        )
        .arguments(&[KEY, START, STOP]),
    Command::new("lpos", lpos, -3, Group::List, "6.0.6")
        .flags(READONLY)
        .keys(&[KeySpec::at(RO | ACCESS, 1)])
        .docs(
            "O(N) for N elements that are compared before enough are found.",
            "Returns where in a list elements with a given value are.",
        )
        .arguments(&[
            KEY,
            ELEMENT,
            argument("rank", ArgumentKind::Integer).token("RANK").optional(),
            argument("num-matches", ArgumentKind::Integer).token("COUNT").optional(),
            argument("len", ArgumentKind::Integer).token("MAXLEN").optional(),
        ]),
    Command::new("lmove", lmove, 5, Group::List, "6.2.0")
        .flags(WRITE | DENYOOM)
        .keys(MOVED)
        .docs("O(1)", "Moves an element from an end of one list to an end of another.")
        .arguments(&[SOURCE, DESTINATION, one_of("wherefrom", ENDS), one_of("whereto", ENDS)]),
    Command::new("rpoplpush", rpoplpush, 3, Group::List, "1.2.0")
        .flags(WRITE | DENYOOM)
        .keys(MOVED)
        .docs("O(1)", "Moves the last element of one list to the front of another.")
        .arguments(&[SOURCE, DESTINATION])
        .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"),
    Command::new("lmpop", lmpop, -4, Group::List, "7.0.0")
        .flags(WRITE | MOVABLE_KEYS)
        .keys(&[KeySpec::counted(RW | ACCESS | DELETE, 1)])
        .docs(POP_MANY_COST, "Takes elements out of the first of several lists that is not empty.")
        .arguments(&[
            NUMKEYS,
            KEY.multiple(),
            one_of("where", ENDS),
            COUNT.token("COUNT").optional(),
        ]),
    Command::new("blpop", blpop, -3, Group::List, "2.0.0")
        .flags(WRITE | BLOCKING)
        .serve(SERVE_BLPOP)
        .keys(&[KeySpec::range(RW | ACCESS | DELETE, 1, -2, 1)])
        .docs(
            "O(N) for N keys.",
            "Takes the first element out of one of several lists, and waits for one if necessary.",
        )
        .arguments(&[KEY.multiple(), TIMEOUT])
        .history(&[("6.0.0", FRACTIONS)]),
    Command::new("brpop", brpop, -3, Group::List, "2.0.0")
        .flags(WRITE | BLOCKING)
        .serve(SERVE_BRPOP)
        .keys(&[KeySpec::range(RW | ACCESS | DELETE, 1, -2, 1)])
        .docs(
            "O(N) for N keys.",
            "Takes the last element out of one of several lists, and waits for one if necessary.",
        )
        .arguments(&[KEY.multiple(), TIMEOUT])
        .history(&[("6.0.0", FRACTIONS)]),
    Command::new("blmove", blmove, 6, Group::List, "6.2.0")
        .flags(WRITE | DENYOOM | BLOCKING)
        .serve(SERVE_BLMOVE)
        .keys(MOVED)
        .docs("O(1)", "Moves an element from list to list, and waits for one if necessary.")
        .arguments(&[
            SOURCE,
            DESTINATION,
            one_of("wherefrom", ENDS),
            one_of("whereto", ENDS),
            TIMEOUT,
        ]),
    Command::new("brpoplpush", brpoplpush, 4, Group::List, "2.2.0")
        .flags(WRITE | DENYOOM | BLOCKING)
        .serve(SERVE_BRPOPLPUSH)
        .keys(MOVED)
        .docs(
            "O(1)",
            "Moves the last element of one list to the front of another, and waits for one if \
             necessary.",
        )
        .arguments(&[SOURCE, DESTINATION, TIMEOUT])
        .history(&[("6.0.0", FRACTIONS)])
        .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"),
    Command::new("blmpop", blmpop, -5, Group::List, "7.0.0")
        .flags(WRITE | BLOCKING | MOVABLE_KEYS)
        .serve(SERVE_BLMPOP)
        .keys(&[KeySpec::counted(RW | ACCESS | DELETE, 2)])
        .docs(
            POP_MANY_COST,
            "Takes elements out of the first of several lists that is not empty, and waits for one \
             if necessary.",
        )
        .arguments(&[
            TIMEOUT,
            NUMKEYS,
            KEY.multiple(),
            one_of("where", ENDS),
            COUNT.token("COUNT").optional(),
        ]),
];
