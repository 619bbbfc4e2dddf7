//! The commands that redis-benchmark measures, under its names and with its arguments, and tests of
//! our own.

use super::Operation;

/// A test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name on a command line: `lrange_100`.
    pub name: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// Further names on a command line that mean it, among others.
    pub groups: &'static [&'static str],
    /// The words of its command. `__score__` is a number if keys are random, else 0.
    words: &'static [&'static str],
    /// What it measures of connections, if not commands.
    pub opens: Option<Opens>,
}

/// A test of encrypted connections: a request is a connection with one command. redis-benchmark has
/// none of these, and they run if they are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// Each shakes hands in full.
    InFull,
    /// Each goes on with the session of an earlier one, where there is one.
    Resuming,
}

/// Fills the list that `lrange` reads.
const FILL: &str = "LPUSH (needed to benchmark LRANGE)";

const KEY: &str = "key:__rand_int__";
const DATA: &str = "__data__";
const ELEMENT: &str = "element:__rand_int__";
const SCORE: &str = "__score__";

const fn test(
    name: &'static str,
    title: &'static str,
    groups: &'static [&'static str],
    words: &'static [&'static str],
) -> Test {
    Test { name, title, groups, words, opens: None }
}

const fn opening(name: &'static str, title: &'static str, opens: Opens) -> Test {
    Test { opens: Some(opens), ..test(name, title, &[], &["PING"]) }
}

/// All tests, in the order in which they run.
pub const TESTS: &[Test] = &[
    test("ping_inline", "PING_INLINE", &["ping"], &["PING\r\n"]),
    test("ping_mbulk", "PING_MBULK", &["ping"], &["PING"]),
    test("set", "SET", &[], &["SET", KEY, DATA]),
    test("get", "GET", &[], &["GET", KEY]),
    test("incr", "INCR", &[], &["INCR", "counter:__rand_int__"]),
    test("lpush", "LPUSH", &[], &["LPUSH", "mylist", DATA]),
    test("rpush", "RPUSH", &[], &["RPUSH", "mylist", DATA]),
    test("lpop", "LPOP", &[], &["LPOP", "mylist"]),
    test("rpop", "RPOP", &[], &["RPOP", "mylist"]),
    test("sadd", "SADD", &[], &["SADD", "myset", ELEMENT]),
    test("hset", "HSET", &[], &["HSET", "myhash", ELEMENT, DATA]),
    test("spop", "SPOP", &[], &["SPOP", "myset"]),
    test("zadd", "ZADD", &[], &["ZADD", "myzset", SCORE, ELEMENT]),
    test("zpopmin", "ZPOPMIN", &[], &["ZPOPMIN", "myzset"]),
    test(
        "lrange",
        FILL,
        &["lrange_100", "lrange_300", "lrange_500", "lrange_600"],
        &["LPUSH", "mylist", DATA],
    ),
    test(
        "lrange_100",
        "LRANGE_100 (first 100 elements)",
        &["lrange"],
        &["LRANGE", "mylist", "0", "99"],
    ),
    test(
        "lrange_300",
        "LRANGE_300 (first 300 elements)",
        &["lrange"],
        &["LRANGE", "mylist", "0", "299"],
    ),
    test(
        "lrange_500",
        "LRANGE_500 (first 500 elements)",
        &["lrange"],
        &["LRANGE", "mylist", "0", "499"],
    ),
    test(
        "lrange_600",
        "LRANGE_600 (first 600 elements)",
        &["lrange"],
        &["LRANGE", "mylist", "0", "599"],
    ),
    test(
        "mset",
        "MSET (10 keys)",
        &[],
        &[
            "MSET", KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA,
            KEY, DATA, KEY, DATA, KEY, DATA,
        ],
    ),
    test("xadd", "XADD", &[], &["XADD", "mystream", "*", "myfield", DATA]),
    opening("tls_connect", "TLS_CONNECT (a full handshake, and PING)", Opens::InFull),
    opening("tls_resume", "TLS_RESUME (a resumed session, and PING)", Opens::Resuming),
];

impl Test {
    /// The tests that a name on a command line means, in the order in which they run.
    pub fn named(name: &str) -> impl Iterator<Item = &'static Test> {
        let name = name.to_ascii_lowercase();
        TESTS.iter().filter(move |test| test.name == name || test.groups.contains(&&name[..]))
    }

    /// The test's command. Without random keys a score is 0, as of redis-benchmark.
    pub fn operation(&self, has_random_keys: bool) -> Operation {
        let score = if has_random_keys { "__rand_int__" } else { "0" };
        let words = self.words.iter().map(|word| word.replace(SCORE, score));
        Operation { name: self.title.to_owned(), weight: 1.0, arguments: words.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_groups_are_found() {
        for (place, test) in TESTS.iter().enumerate() {
            assert!(TESTS[..place].iter().all(|other| other.name != test.name), "{}", test.name);
        }
        let titles = |name| Test::named(name).map(|test| test.title).collect::<Vec<_>>();
        assert_eq!(titles("ping"), ["PING_INLINE", "PING_MBULK"]);
        assert_eq!(titles("LRANGE_300"), [FILL, "LRANGE_300 (first 300 elements)"]);
        assert_eq!(titles("lrange").len(), 5);
        assert_eq!(titles("xadd"), ["XADD"]);
        assert!(titles("nothing").is_empty());
    }

    #[test]
    fn scores_are_random_with_random_keys_only() {
        let zadd = Test::named("zadd").next().expect("it is there");
        assert_eq!(zadd.operation(true).arguments[2], "__rand_int__");
        assert_eq!(zadd.operation(false).arguments[2], "0");
    }
}
