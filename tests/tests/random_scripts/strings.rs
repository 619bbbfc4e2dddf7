//! Random calls of the rest of `string` and `table`, and of `load` and `loadstring`.

use tests::random::Random;

use super::libraries::{literal, number};

/// A call, as an expression of Lua.
pub(crate) fn call(random: &mut Random) -> String {
    match random.below(12) {
        0 => format!("string.sub({}, {}{})", text(random), place(random), last(random)),
        1 => format!("string.byte({}{})", text(random), two_places(random)),
        2..4 => formatted(random),
        4 => {
            let function = random.pick(&["len", "lower", "upper", "reverse"]);
            format!("string.{function}({})", text(random))
        }
        5 => {
            let codes = ["0", "65", "255", "256", "-1", "'66'", "1.9", "{}", "nil"];
            let codes: Vec<_> = (0..random.below(4)).map(|_| *random.pick(&codes)).collect();
            format!("string.char({})", codes.join(", "))
        }
        6..9 => sorted(random),
        9 => loaded(random),
        _ => of_table(random),
    }
}

fn text(random: &mut Random) -> String {
    if random.percent(8) {
        return random.pick(&["12", "-0.5", "1e100", "{}", "nil", "true"]).to_string();
    }
    let length = random.below(12);
    literal(&(0..length).map(|_| *random.pick(b"abcAZ09 \n\r\0\\\"%\xe4\xff")).collect::<Vec<_>>())
}

fn place(random: &mut Random) -> &'static str {
    random.pick::<&str>(&[
        "1", "2", "3", "0", "-1", "-2", "-99", "99", "2.7", "-1.5", "'2'", "nil", "{}", "0/0",
        "2^31", "2^53", "-2^63", "1e300", "-1e300",
    ])
}

fn last(random: &mut Random) -> String {
    if random.percent(40) { String::new() } else { format!(", {}", place(random)) }
}

/// Ranges that fit Lua's stack.
fn two_places(random: &mut Random) -> String {
    let place = |random: &mut Random| *random.pick(&["1", "2", "0", "-1", "-3", "9", "'2'", "{}"]);
    match random.below(3) {
        0 => String::new(),
        1 => format!(", {}", place(random)),
        _ => format!(", {}, {}", place(random), place(random)),
    }
}

fn formatted(random: &mut Random) -> String {
    let mut format = Vec::new();
    let mut arguments = String::new();
    for _ in 0..random.below(4) {
        format.extend(*random.pick(&[&b""[..], b"", b"a", b"%%", b"\0", b" "]));
        format.push(b'%');
        format.extend(*random.pick(&[
            &b""[..],
            b"",
            b"",
            b"5",
            b"-5",
            b"05",
            b"+",
            b" ",
            b"#",
            b".3",
            b"10.2",
            b".0",
            b"99.99",
            b"100",
            b".100",
            b"-+ #0",
            b"-+ #00",
        ]));
        let kind = *random.pick(b"cdiouxXeEfgGqsssdy%");
        format.push(kind);
        if random.percent(95) {
            arguments += ", ";
            arguments += &match kind {
                b's' | b'q' => text(random),
                // What is no integer is undefined there.
                b'e' | b'E' | b'f' | b'g' | b'G' => number(random),
                _ => random
                    .pick(&[
                        "0",
                        "1",
                        "-1",
                        "65",
                        "255",
                        "2147483648",
                        "-2^31",
                        "'12'",
                        "{}",
                        "2.5",
                    ])
                    .to_string(),
            };
        }
    }
    if random.percent(5) {
        format.push(b'%');
    }
    format!("string.format({}{arguments})", literal(&format))
}

/// Elements of which many are equal. Orders that are none are noticed alike, or end alike.
fn sorted(random: &mut Random) -> String {
    const ORDERS: &[&str] = &[
        "",
        "",
        ", nil",
        ", function(a, b) return tostring(a) < tostring(b) end",
        ", function(a, b) return tostring(a) > tostring(b) end",
        // Which is not strict.
        ", function(a, b) return tostring(a) <= tostring(b) end",
        ", function(a, b) return #tostring(a) < #tostring(b) end",
        ", function() return true end",
        ", function() return false end",
        ", function() return nil end",
        ", function(a, b) n = n - 1 if n < 0 then error('enough') end return n % 3 == 0 end",
        ", function(a, b) n = n - 1 if n < 0 then error({err = 'ERR enough'}) end return n % 2 == 1 end",
        ", rawequal",
        ", math.max",
        ", 7",
        ", 'x'",
    ];
    let elements: Vec<_> = (0..random.below(24)).map(|_| element(random)).collect();
    format!(
        "(function() local n, t = {}, {{{}}} local o = {{pcall(table.sort, t{})}} return t, n, o end)()",
        random.below(80),
        elements.join(","),
        random.pick::<&str>(ORDERS)
    )
}

fn element(random: &mut Random) -> String {
    match random.below(100) {
        0..70 => random.below(12).to_string(),
        70..80 => format!("{}.5", random.between(-3, 3)),
        80..97 => format!("'{}'", random.below(12)),
        97 => "{}".into(),
        98 => "true".into(),
        _ => "setmetatable({}, {__lt = function() return true end})".into(),
    }
}

fn loaded(random: &mut Random) -> String {
    let pieces: Vec<_> = (0..random.below(5))
        .map(|_| {
            *random.pick(&[
                "'return '",
                "'1 '",
                "'+ 2 '",
                "7",
                "'x'",
                "'='",
                "''",
                "false",
                "{}",
                "'\\27Lua'",
                "'\\0'",
                "'-- \\n'",
                "'if'",
                "'\"'",
                "error",
                "' '",
            ])
        })
        .collect();
    let name =
        random.pick(&["", "", ", 'name'", ", '=name'", ", '@na\\0me'", ", 7", ", {}", ", nil"]);
    // An error is a table with a place in it; what matters is what it says.
    let shown =
        "local r = {pcall(f)} return type(f), type(e) == 'table' and e.err or e, r[1], r[2]";
    if random.percent(40) {
        let code = pieces.iter().filter(|piece| piece.starts_with('\''));
        let code: Vec<_> = code.copied().chain(["''"]).collect();
        return format!(
            "(function() local f, e = loadstring({}{name}) {shown} end)()",
            code.join(" .. ")
        );
    }
    format!(
        "(function() local n, p = 0, {{{}}} local f, e = load(function() n = n + 1 \
         if p[n] == error then error('own') end return p[n] end{name}) {shown} end)()",
        pieces.join(", ")
    )
}

/// The rest of `table`.
fn of_table(random: &mut Random) -> String {
    let table = *random.pick(&[
        "{}",
        "{1, 2, 3}",
        "{'a', 'b', nil, 'd'}",
        "{[1] = 'x', [2.5] = 'y', [-3] = 'z'}",
        "{1, 2, [7] = 3, x = 4}",
        "{[1e15] = 1}",
        "'x'",
        "nil",
        "7",
    ]);
    let function = *random.pick(&[
        "function(k, v) seen[#seen + 1] = {k, v} end",
        "function(k, v) if v == 2 then return 'found' end end",
        "function() return false end",
        "function() error('own') end",
        "type",
        "7",
        "nil",
    ]);
    let call = match random.below(6) {
        0 => format!("table.remove(t, {})", place(random)),
        1 => {
            random.pick(&["table.remove(t)", "table.remove()", "table.remove(t, nil)"]).to_string()
        }
        2 => "table.maxn(t)".into(),
        3 => random.pick(&["table.getn(t)", "table.setn(t, 1)"]).to_string(),
        4 => format!("table.foreachi(t, {function})"),
        _ => format!("table.foreach(t, {function})"),
    };
    format!(
        "(function() local seen, t = {{}}, {table} \
         local o = {{pcall(function() return {call} end)}} return o, t, seen end)()"
    )
}
