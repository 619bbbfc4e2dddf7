//! Random commands, made from a table of shapes.
//!
//! A shape is written like a line of documentation: a word stands for itself, `<kind>` for a random
//! argument of that kind, `( a | b )` for one of several, `[ a ]` for a or nothing, and `( a )+`
//! for one to four times a. Each shape says how its replies can be compared.

mod redis;
mod several;
mod valkey;

use crate::random::Random;

pub use redis::REDIS;
pub use several::SEVERAL;
pub use valkey::VALKEY;

/// How the replies of two servers to one command are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They are the same.
    Exact,
    /// They are the same except for the order of elements.
    Unordered,
    /// They are the same except for the order of pairs of elements.
    Pairs,
    /// Numbers may differ by the time that passes between two servers.
    Time,
    /// They have the same type and the same number of elements.
    Shape,
    /// They describe the same clients, as far as two servers can have the same.
    Clients,
}

/// How replies are compared, and the line that commands are made of.
pub type Form = (Comparison, &'static str);

/// What commands are made of.
pub struct Vocabulary {
    /// All shapes, by family; a family is chosen first, so that long families do not drown others.
    pub families: &'static [&'static [Form]],
    /// How often each family is chosen.
    pub weights: &'static [usize],
    /// Commands that are never made wrong, since their errors have other texts.
    pub always_right: &'static [&'static str],
}

/// One random command.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its arguments, the name first.
    pub words: Vec<Vec<u8>>,
    /// How its replies are compared.
    pub comparison: Comparison,
}

impl Command {
    /// Its name in capital letters.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.words.first().map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(name).to_uppercase()
    }

    /// Whether this is the argument of that number, in capital letters or small ones.
    #[must_use]
    pub fn has(&self, index: usize, word: &str) -> bool {
        self.words.get(index).is_some_and(|own| own.eq_ignore_ascii_case(word.as_bytes()))
    }
}

const _: () = assert!(REDIS.families.len() == REDIS.weights.len());
const _: () = assert!(SEVERAL.families.len() == SEVERAL.weights.len());
const _: () = assert!(VALKEY.families.len() == VALKEY.weights.len());

/// A random command.
pub fn command(vocabulary: &Vocabulary, random: &mut Random) -> Command {
    let weights = vocabulary.weights;
    let mut chosen = random.below(weights.iter().sum());
    let mut family = 0;
    while chosen >= weights[family] {
        chosen -= weights[family];
        family += 1;
    }
    let (comparison, shape) = *random.pick(vocabulary.families[family]);
    let mut words = of_shape(shape, random);
    // A blocking command whose time limit is spoilt might wait for ever, a cursor that no server
    // gave out means nothing, what is drawn of fewer than all is chance, and a lexical key might
    // come by another score.
    const DELICATE: [&str; 8] =
        ["SCAN", "SSCAN", "HSCAN", "ZSCAN", "SPOP", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER"];
    let may_wait = may_wait(&words);
    let named = |name: &&str| words[0].eq_ignore_ascii_case(name.as_bytes());
    let is_delicate = may_wait
        || vocabulary.always_right.iter().any(named)
        || DELICATE.iter().any(named)
        || words.iter().any(|word| LEXICAL.iter().any(|key| word == key));
    if !is_delicate && random.percent(2) {
        spoil(&mut words, random);
    }
    Command { words, comparison }
}

/// Whether a command may wait for something.
pub fn may_wait(words: &[Vec<u8>]) -> bool {
    const WAITING: [&str; 8] =
        ["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP"];
    let named = |name: &&str| words[0].eq_ignore_ascii_case(name.as_bytes());
    WAITING.iter().any(named) || words.iter().any(|word| word.eq_ignore_ascii_case(b"block"))
}

/// The words of a random command of a shape.
pub fn of_shape(shape: &str, random: &mut Random) -> Vec<Vec<u8>> {
    let tokens: Vec<_> = shape.split(' ').collect();
    let mut words = Vec::new();
    sequence(&tokens, &mut 0, true, random, &mut words);
    words
}

/// Follows tokens up to the end of their group; takes part only if `on`.
fn sequence(
    tokens: &[&str],
    at: &mut usize,
    on: bool,
    random: &mut Random,
    out: &mut Vec<Vec<u8>>,
) {
    while let Some(&token) = tokens.get(*at) {
        match token {
            "|" | ")" | ")+" | "]" => return,
            "[" => {
                *at += 1;
                let taken = on && random.percent(35);
                sequence(tokens, at, taken, random, out);
            }
            "(" => {
                choice(tokens, at, on, random, out);
            }
            _ if !on => {}
            _ => match token.strip_prefix('<').and_then(|kind| kind.strip_suffix('>')) {
                Some(kind) => out.push(argument(kind, random)),
                None => out.push(cased(token, random)),
            },
        }
        *at += 1;
    }
}

/// Follows one alternative of the group that opens at `at`, several times if it ends in `)+`;
/// leaves `at` on its end.
fn choice(tokens: &[&str], at: &mut usize, on: bool, random: &mut Random, out: &mut Vec<Vec<u8>>) {
    let start = *at + 1;
    let mut times = 1;
    let mut done = 0;
    while done < times {
        *at = start;
        let chosen = random.below(alternatives(tokens, start));
        let mut current = 0;
        loop {
            sequence(tokens, at, on && current == chosen, random, out);
            if tokens[*at] != "|" {
                break;
            }
            *at += 1;
            current += 1;
        }
        if done == 0 && tokens[*at] == ")+" && on {
            times = 1 + if random.percent(50) { 0 } else { random.below(4) };
        }
        done += 1;
    }
}

/// How many alternatives the group with its first token at `start` has.
fn alternatives(tokens: &[&str], start: usize) -> usize {
    let mut depth = 0;
    let mut count = 1;
    for token in &tokens[start..] {
        match *token {
            "(" | "[" => depth += 1,
            ")" | ")+" | "]" if depth == 0 => break,
            ")" | ")+" | "]" => depth -= 1,
            "|" if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// A word of the protocol, now and then in lower case.
fn cased(word: &str, random: &mut Random) -> Vec<u8> {
    // The patterns of SORT name keys: those must not be changed here.
    if random.percent(10) && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
        word.to_ascii_lowercase().into_bytes()
    } else {
        word.as_bytes().to_vec()
    }
}

/// Makes a command wrong in one of the usual ways.
fn spoil(words: &mut Vec<Vec<u8>>, random: &mut Random) {
    let at = 1 + random.below(words.len());
    match random.below(4) {
        0 if at < words.len() => drop(words.remove(at)),
        1 if at < words.len() => words[at] = nonsense(random),
        2 if at < words.len() => words.insert(at, words[at].clone()),
        _ => words.push(nonsense(random)),
    }
}

fn nonsense(random: &mut Random) -> Vec<u8> {
    let choices = [
        "",
        "abc",
        "-1",
        "0",
        "1.5",
        "nan",
        "inf",
        "(1",
        "[a",
        "NX",
        "LIMIT",
        "9223372036854775807",
        "9223372036854775808",
        " 1",
        "1 ",
        "1e3",
        "+1",
        "\u{fe}",
    ];
    random.pick(&choices).as_bytes().to_vec()
}

/// Scripts with the names that they are cached under.
const SCRIPTS: &[(&str, &str)] = &[
    ("return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
    ("return KEYS[1]", "4a2267357833227dd98abdedb8cf24b15a986445"),
    ("return server.call('get', KEYS[1])", "cfa1941873d886d49b906450a42119186b5ee9f9"),
];

/// A library of functions: one that writes, and one that reads.
const LIBRARY: &str = "#!lua name=lib
redis.register_function('put', function(keys, args)
    redis.call('RPUSH', keys[2], args[1], 'more')
    return redis.call('RPUSH', keys[1], args[1])
end)
redis.register_function{
    function_name = 'count',
    callback = function(keys) return redis.call('LLEN', keys[1]) end,
    flags = {'no-writes'},
}";

/// Keys of sorted sets whose scores are all equal.
const LEXICAL: &[&[u8]] = &[b"x0", b"x1", b"x2"];

/// One of a few keys whose name tells the type that they mostly have.
fn key(letter: char, random: &mut Random) -> Vec<u8> {
    let letter = if random.percent(5) { *random.pick(&['s', 'l', 'm', 'h', 'z']) } else { letter };
    format!("{letter}{}", random.below(4)).into_bytes()
}

/// A random argument of a kind.
fn argument(kind: &str, random: &mut Random) -> Vec<u8> {
    // docs/COMPATIBILITY.md names the bounds of the members of the one, and of the numbers of the
    // other.
    if !matches!(kind, "lexical" | "place" | "client" | "queue" | "ranking") && random.percent(1) {
        return nonsense(random);
    }
    let text = match kind {
        "key" => return key(*random.pick(&['s', 'b', 'l', 'm', 'h', 'z', 'g', 'p', 't']), random),
        "stream" => return key('t', random),
        "group" => format!("g{}", random.below(2)),
        "consumer" => format!("c{}", random.below(3)),
        "id" => id(random),
        // Most are above the last one.
        "newid" => match random.below(20) {
            0..14 => "5-*".to_owned(),
            14 => format!("{}-*", random.below(9)),
            15 => random.below(9).to_string(),
            _ => id(random),
        },
        "idbound" => match random.below(6) {
            0 => "-".to_owned(),
            1 => "+".to_owned(),
            2 => format!("({}", id(random)),
            _ => id(random),
        },
        "string" => return key('s', random),
        "bits" => return key('b', random),
        "list" => return key('l', random),
        "set" => return key('m', random),
        "hash" => return key('h', random),
        "zset" => return key('z', random),
        "lexical" => return random.pick(LEXICAL).to_vec(),
        "geo" => return key('g', random),
        "estimate" => return key('p', random),
        "value" => return value(random),
        "member" => return member(random),
        "field" => format!("f{}", random.below(8)),
        // Neither negative nor zero: the sign of a zero survives in some encodings only.
        "weight" => random.pick(&["1", "2", "0.5", "3.25"]).to_string(),
        "small" => random.between(-3, 12).to_string(),
        "integer" => integer(random),
        "float" => float(random),
        "score" => score(random),
        "index" | "place" => random.between(-6, 12).to_string(),
        "count" => random.between(0, 6).to_string(),
        "bit" => random.below(2).to_string(),
        "offset" => random.pick(&["0", "1", "3", "7", "8", "15", "40", "100", "300"]).to_string(),
        "width" => random
            .pick(&["u1", "i1", "u3", "i5", "u8", "i8", "i13", "u16", "i32", "u63", "i64"])
            .to_string(),
        "bitoffset" => {
            random.pick(&["0", "1", "5", "8", "33", "100", "#0", "#1", "#2", "#7"]).to_string()
        }
        "pattern" => {
            random.pick(&["*", "s*", "?1", "[lm]*", "[^h]0", "m1", "f*", "x*", "*0"]).to_string()
        }
        "seconds" => random.pick(&["1000", "2000", "300000"]).to_string(),
        "milliseconds" => random.pick(&["1000000", "2000000", "-1"]).to_string(),
        "unix" => random.pick(&["9999999999", "8888888888", "7777777777", "1"]).to_string(),
        "future" => random.pick(&["9999999999", "8888888888"]).to_string(),
        "unixms" => random.pick(&["9999999999999", "8888888888888", "7777777777777"]).to_string(),
        "bound" => match random.below(6) {
            0 => "-inf".to_owned(),
            1 => "+inf".to_owned(),
            2 => format!("({}", score(random)),
            _ => score(random),
        },
        "lexbound" => match random.below(6) {
            0 => "-".to_owned(),
            1 => "+".to_owned(),
            2 | 3 => return [b"[", member(random).as_slice()].concat(),
            _ => return [b"(", member(random).as_slice()].concat(),
        },
        "longitude" => format!("{}.{}", random.between(-180, 180), random.below(1000)),
        "latitude" => format!("{}.{}", random.between(-85, 85), random.below(1000)),
        "east" => format!("{}.{}", random.between(0, 89), random.below(1000)),
        "mild" => format!("{}.{}", random.between(-60, 60), random.below(1000)),
        "distance" => random.pick(&["0", "10", "500.5", "3000", "20000"]).to_string(),
        "unit" => random.pick(&["m", "km", "mi", "ft"]).to_string(),
        "script" => random.pick(SCRIPTS).0.to_owned(),
        "sha" => random.pick(SCRIPTS).1.to_owned(),
        "writing" => "return server.call('SET', KEYS[1], ARGV[1])".to_owned(),
        "queue" => format!("q{}", random.below(3)),
        "ranking" => format!("r{}", random.below(3)),
        "channel" => format!("c{}", random.below(3)),
        "client" => format!("client-{}", random.below(3)),
        "reading" => {
            "return {redis.call('TYPE', KEYS[1]), redis.call('EXISTS', KEYS[1])}".to_owned()
        }
        "pushing" => {
            "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('LPUSH', KEYS[2], 'a', 'b')"
                .to_owned()
        }
        "adding" => "return redis.call('ZADD', KEYS[1], 1, ARGV[1], 2, 'two')".to_owned(),
        "publishing" => "return redis.call('PUBLISH', ARGV[1], ARGV[2])".to_owned(),
        "popping" => {
            "return {redis.call('BLPOP', KEYS[1], 0), redis.call('LLEN', KEYS[1])}".to_owned()
        }
        "library" => LIBRARY.to_owned(),
        _ => unreachable!("no argument is of kind {kind}"),
    };
    text.into_bytes()
}

/// The id of an entry: there are few, so that ids occur repeatedly.
fn id(random: &mut Random) -> String {
    match random.below(60) {
        0 => "18446744073709551615-18446744073709551614".to_owned(),
        1..5 => random.below(8).to_string(),
        5..10 => format!("{}-{}", random.below(8), random.below(4)),
        _ => format!("5-{}", random.below(14)),
    }
}

fn integer(random: &mut Random) -> String {
    match random.below(8) {
        0 => "9223372036854775807".to_owned(),
        1 => "-9223372036854775808".to_owned(),
        2 => random.between(-70_000, 70_000).to_string(),
        _ => random.between(-20, 200).to_string(),
    }
}

fn float(random: &mut Random) -> String {
    match random.below(6) {
        0 => random.pick(&["1e3", "-2.5e-3", "0.1", "3.0", "1e17", "12345.678"]).to_string(),
        1 => random.between(-5, 5).to_string(),
        _ => format!("{}.{}", random.between(-20, 20), random.below(10_000)),
    }
}

fn score(random: &mut Random) -> String {
    match random.below(12) {
        0 => random.pick(&["inf", "-inf", "1e20", "-1e-7", "0.1", "3.5e3"]).to_string(),
        1 | 2 => format!("{}.{}", random.between(-5, 5), random.pick(&["5", "25", "125"])),
        _ => random.between(-5, 15).to_string(),
    }
}

/// There are few, so that members are found again.
fn member(random: &mut Random) -> Vec<u8> {
    match random.below(24) {
        0 => Vec::new(),
        1 => vec![b'x'; 70],
        2 => b"\xff\xfe".to_vec(),
        3 => {
            random.pick(&["007", "-0", "1.0", "9223372036854775807", "100000"]).as_bytes().to_vec()
        }
        4..=12 => random.between(0, 9).to_string().into_bytes(),
        _ => format!("m{}", random.below(12)).into_bytes(),
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => integer(random).into_bytes(),
        1 => float(random).into_bytes(),
        2 => vec![*random.pick(b"abc"); random.below(120)],
        3 => vec![b'y'; *random.pick(&[43, 44, 45, 63, 64, 65, 300])],
        4 => b"\x01\x80\xff\"'\\\r\n".to_vec(),
        _ => member(random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_can_be_followed() {
        let mut random = Random::new(1);
        let all = [REDIS, SEVERAL, VALKEY].map(|vocabulary| vocabulary.families);
        for (_, shape) in all.into_iter().flatten().copied().flatten() {
            let tokens: Vec<_> = shape.split(' ').collect();
            for _ in 0..200 {
                let (mut at, mut words) = (0, Vec::new());
                sequence(&tokens, &mut at, true, &mut random, &mut words);
                assert_eq!(at, tokens.len(), "groups do not pair up in {shape}");
                assert!(words.iter().all(|word| word != b"|" && word != b")+"), "{shape}");
            }
        }
    }

    #[test]
    fn one_seed_makes_one_sequence() {
        let make = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| command(&REDIS, &mut random).words).collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
    }
}
