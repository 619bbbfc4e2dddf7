//! Random rules of users, most of them made of the words that rules have. `make fuzz` goes on with
//! the same check.

#[path = "common/rules.rs"]
mod rules;

use proptest::prelude::*;

/// Words and parts of words, which are put together in any way.
static PARTS: &[&str] = &[
    "on",
    "off",
    "nopass",
    "resetpass",
    ">p",
    "<p",
    "#",
    "!",
    "sanitize-payload",
    "skip-sanitize-payload",
    "~",
    "%R~",
    "%W~",
    "%RW~",
    "%",
    "*",
    "a",
    "k",
    "b)",
    "b\"",
    "'",
    "[a-",
    "\\",
    "&",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "+",
    "-",
    "+@",
    "-@",
    "all",
    "read",
    "write",
    "dangerous",
    "get",
    "set",
    "config",
    "config|get",
    "|",
    "|a",
    "select|1",
    "eval",
    "allcommands",
    "nocommands",
    "db=",
    "0",
    "1",
    ",",
    "alldbs",
    "resetdbs",
    "clearselectors",
    "role=r",
    "role=",
    "resetroles",
    "reset",
    "\n",
    "\n",
    " ",
    "\u{b}",
];

fn rule() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        30 => prop::sample::select(PARTS).prop_map(|part| part.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

/// Whole rules, some of them in selectors.
fn rules() -> impl Strategy<Value = Vec<u8>> {
    let selector = prop::collection::vec(rule(), 0..4).prop_map(|rules| {
        let quoted = rules.iter().map(|rule| match rule.iter().any(|byte| b"\"'".contains(byte)) {
            true => config::quote(rule),
            false => rule.clone(),
        });
        [b"(", &*quoted.collect::<Vec<_>>().join(&b' '), b")"].concat()
    });
    let one = prop_oneof![4 => rule(), 1 => selector];
    prop::collection::vec(one, 0..10).prop_map(|rules| rules.join(&b'\n'))
}

proptest! {
    #[test]
    fn a_user_is_what_its_line_says(input in rules()) {
        rules::check(&input);
    }

    #[test]
    fn no_bytes_make_a_user_that_its_line_does_not_show(input: Vec<u8>) {
        rules::check(&input);
    }
}
