//! Random calls of functions that Dunlin has in place of Lua's own: those of `string` that search,
//! `unpack`, `table.insert` and those of `coroutine`.

use tests::random::Random;

use super::libraries::literal;

/// A call, as an expression of Lua.
pub(crate) fn call(random: &mut Random) -> String {
    match random.below(14) {
        0..3 => format!("string.find({}{})", searched(random), place(random)),
        3..5 => format!("string.match({}{})", searched(random), place(random)),
        5..7 => format!(
            "(function() local o = {{}} for a, b, c in string.gmatch({}) do \
             o[#o + 1] = {{a, b, c}} end return o end)()",
            searched(random)
        ),
        7..11 => {
            let count = random.pick(&["", "", "", ",1", ",2", ",0", ",-1", ",'2'", ",{}"]);
            format!("string.gsub({},{}{count})", searched(random), replacement(random))
        }
        11 => format!(
            "string.rep({},{})",
            text(random),
            random.pick(&["0", "1", "3", "-1", "2.7", "'2'", "{}", "nil"])
        ),
        12 => moved(random),
        _ => coroutine(random),
    }
}

fn text(random: &mut Random) -> String {
    if random.percent(4) {
        return random.pick(&["12", "-0.5", "{}", "nil", "true"]).to_string();
    }
    let length = random.below(16);
    literal(&(0..length).map(|_| byte(random)).collect::<Vec<_>>())
}

fn byte(random: &mut Random) -> u8 {
    *random.pick(b"aaaabbbcAZ019_ (()),.%-]\n\x0b\x00\x7f\xe4")
}

/// A subject and a pattern.
fn searched(random: &mut Random) -> String {
    let (subject, pattern) = (text(random), pattern(random));
    format!("{subject},{pattern}")
}

fn place(random: &mut Random) -> &'static str {
    random.pick::<&str>(&[
        "", "", "", ",1", ",3", ",0", ",-2", ",-99", ",99", ",2,true", ",1,false", ",'x'",
    ])
}

fn pattern(random: &mut Random) -> String {
    if random.percent(3) {
        return random.pick(&["12", "{}", "nil"]).to_string();
    }
    let mut bytes = Vec::new();
    if random.percent(15) {
        bytes.push(b'^');
    }
    for _ in 0..random.below(6) {
        part(random, &mut bytes);
    }
    if random.percent(15) {
        bytes.push(b'$');
    }
    literal(&bytes)
}

fn part(random: &mut Random, bytes: &mut Vec<u8>) {
    match random.below(20) {
        0..3 => bytes.push(b'('),
        3..6 => bytes.push(b')'),
        6 => bytes.extend(b"()"),
        7 => bytes.extend(*random.pick(&[&b"%b()"[..], b"%bab", b"%baa", b"%b", b"%b("])),
        8 => bytes.extend(*random.pick(&[&b"%f[%w]"[..], b"%f[^%z]", b"%f[a-c]", b"%f", b"%fa"])),
        9 => bytes.extend(*random.pick(&[&b"%1"[..], b"%2", b"%0", b"%9"])),
        10 => bytes.push(byte(random)),
        _ => {
            class(random, bytes);
            bytes.extend(*random.pick(&[&b""[..], b"", b"*", b"+", b"-", b"?"]));
        }
    }
}

/// What stands between brackets.
const SET_PARTS: &[&[u8]] =
    &[b"a", b"b", b"a-c", b"0-9", b"%w", b"%]", b"-", b"%a-z", b"^", b"%", b"\xe0-\xff"];

fn class(random: &mut Random, bytes: &mut Vec<u8>) {
    match random.below(6) {
        0 => bytes.push(b'.'),
        1 | 2 => bytes.push(*random.pick(b"aabbc1_")),
        3 => {
            bytes.push(b'%');
            bytes.push(*random.pick(b"acdlpsuwxzACDLPSUWXZ.%-]bnq"));
        }
        _ => {
            bytes.extend(*random.pick(&[&b"["[..], b"[", b"[^", b"[]", b"[^]"]));
            for _ in 0..random.below(4) {
                bytes.extend(*random.pick(SET_PARTS));
            }
            if !random.percent(4) {
                bytes.push(b']');
            }
        }
    }
}

fn replacement(random: &mut Random) -> &'static str {
    random.pick::<&str>(&[
        "''",
        "'x'",
        "'<%0>'",
        "'%1%1'",
        "'%2'",
        "'%%'",
        "'%'",
        "'%a'",
        "'a\\0b'",
        "7",
        "{a = 'one', b = 2, [1] = 'first'}",
        "{a = false, b = {}}",
        "setmetatable({}, {__index = function(t, k) return k .. '!' end})",
        "function(a, b) return b and a .. b end",
        "function() return 1.5 end",
        "function() return {} end",
        "function() error('own') end",
        "string.upper",
        "nil",
        "true",
    ])
}

/// Ranges that the reference can count.
fn moved(random: &mut Random) -> String {
    let numbers = ["-2", "-1", "0", "1", "2", "3", "5", "'2'", "1.9", "nil", "{}"];
    let mut number = || *random.pick(&numbers);
    let (one, other) = (number(), number());
    match random.below(4) {
        3 => format!(
            "table.concat({{'a', 2, {}}}, {}{})",
            random.pick(&["'c'", "'c', 4.5, 'e'", "{}", "nil, 'x'", "true"]),
            random.pick(&["', '", "nil", "7", "{}", "'a\\0'"]),
            random
                .pick(&["", "", ", 2", ", 1, 2", ", 0", ", 3, 2", ", nil, 2", ", 'x'", ", 2, {}"]),
        ),
        0 => format!("unpack({{1, 2, nil, 4}}, {one}, {other})"),
        1 => format!("unpack({})", random.pick(&["{1, 2}", "'x'", "", "{}, 1, 9000", "{1, 2}, 2"])),
        _ => format!(
            "(function() local t = {{1, 2, 3}} table.insert(t, {one}{}) return t end)()",
            random.pick(&["", ", 'new'", ", 'new'", ", 'new'", ", 1, 2", ", nil"])
        ),
    }
}

fn coroutine(random: &mut Random) -> String {
    let body = random.pick(&[
        "function(a, b) local c = coroutine.yield(a) return b, c end",
        "function(...) return ... end",
        "function() error('own') end",
        "function() error({err = 'ERR own'}) end",
        "function() coroutine.yield(1) coroutine.yield() end",
        "string.upper",
        "7",
        "",
    ]);
    match random.below(3) {
        0 => format!(
            "(function() local f = coroutine.wrap({body}) \
             return {{f(1, 2)}}, {{pcall(f, 3)}}, {{pcall(f)}} end)()"
        ),
        1 => format!(
            "(function() local c = coroutine.create({body}) return {{coroutine.resume(c, 1, 2)}}, \
             coroutine.status(c), {{coroutine.resume(c, 'x')}}, coroutine.status(c) end)()"
        ),
        _ => random
            .pick(&[
                "coroutine.resume()",
                "coroutine.resume(1)",
                "coroutine.wrap()",
                "coroutine.create(1)",
                "coroutine.running()",
                "coroutine.wrap(function() coroutine.wrap(function() error('in') end)() end)()",
                "coroutine.yield(1)",
            ])
            .to_string(),
    }
}
