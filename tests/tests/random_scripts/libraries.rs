//! Random calls of cjson, cmsgpack, struct and bit.

use tests::random::Random;

/// A call of a library, as an expression of Lua.
pub(crate) fn call(random: &mut Random) -> String {
    match random.below(11) {
        0..2 => encode(random),
        2..4 => decode(random),
        4 => setting(random),
        5 => {
            let values: Vec<_> = (0..random.below(4)).map(|_| value(random, 0)).collect();
            format!("cmsgpack.pack({})", values.join(","))
        }
        6 => unpack(random),
        7 => {
            let mut text = format!("struct.pack({}", literal(format(random).as_bytes()));
            for _ in 0..random.below(6) {
                text += ",";
                text += &packed(random);
            }
            text + ")"
        }
        8 => {
            let length = random.below(40);
            let data =
                if random.percent(60) { bytes(random, length) } else { [2, 0, 0, 0].repeat(8) };
            let rest = random
                .pick(&["", "", "", ",1", ",2", ",0", ",9", ",-1", ",\"2\"", ",2^53", ",1e300"]);
            format!(
                "struct.unpack({},{}{rest})",
                literal(format(random).as_bytes()),
                literal(&data)
            )
        }
        9 => format!("struct.size({})", literal(format(random).as_bytes())),
        _ => {
            let function = random.pick(&[
                "tobit", "bnot", "bswap", "band", "bor", "bxor", "lshift", "rshift", "arshift",
                "rol", "ror", "tohex",
            ]);
            let count = *random.pick(&[0, 1, 1, 2, 2, 2, 3]);
            let values: Vec<_> = (0..count).map(|_| bits(random)).collect();
            format!("bit.{function}({})", values.join(","))
        }
    }
}

fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8).collect()
}

/// A string of Lua with these bytes.
pub(crate) fn literal(bytes: &[u8]) -> String {
    let inner: String = bytes.iter().map(|byte| format!("\\{byte:03}")).collect();
    format!("\"{inner}\"")
}

/// A number as Lua reads it.
pub(crate) fn number(random: &mut Random) -> String {
    const EDGES: &[&str] = &[
        "0",
        "127",
        "128",
        "255",
        "256",
        "65535",
        "65536",
        "2147483648",
        "4294967295",
        "4294967296",
        "2^53",
        "-32",
        "-33",
        "-128",
        "-129",
        "-32768",
        "-32769",
        "-2147483648",
        "-2147483649",
        "2^63",
        "2^64",
        "-2^63",
        "1e14",
        "1e15",
        "1e16",
        "99999999999999",
        "123456789012345",
        "0/0",
        "-(0/0)",
        "1/0",
        "-1/0",
        "-0",
        "0.1",
        "1e-5",
        "1e300",
        "5e-324",
    ];
    match random.below(6) {
        0 => random.between(-5, 20).to_string(),
        1 => (*random.pick(EDGES)).to_string(),
        2 => format!("{}", random.between(-1_000_000, 1_000_000) as f64 / 100.0),
        3 => (random.bits() as i64).to_string(),
        4 => finite(f64::from_bits(random.bits())),
        _ => finite(f64::from(f32::from_bits(random.bits() as u32))),
    }
}

fn finite(number: f64) -> String {
    if number.is_finite() { format!("{number:e}") } else { "1/0".into() }
}

/// A string of Lua. Keys are short, since tables with longer ones are walked in another order.
pub(crate) fn string(random: &mut Random, key: bool) -> String {
    const TEXTS: &[&[u8]] = &[
        b"",
        b"a\"b",
        b"\\",
        b"/",
        b"\n\t\r\x08\x0c",
        b"\x7f\0\x1f",
        b"12",
        b"0x10",
        b"1e3",
        b" \xc3\xa9\xe2\x82\xac",
        b"key",
        b"-1",
        b"nan",
    ];
    match random.below(6) {
        0 => {
            let length = random.below(6);
            literal(&bytes(random, length))
        }
        1 if key => literal(&b"x".repeat(*random.pick(&[1, 5, 30, 31]))),
        1 => literal(&b"x".repeat(*random.pick(&[0, 1, 30, 31, 32, 33, 255, 256, 700, 5000]))),
        2 => literal(random.pick::<&[u8]>(TEXTS)),
        _ => {
            let length = random.below(3) + 1;
            literal(&(0..length).map(|_| *random.pick(b"abcdef")).collect::<Vec<_>>())
        }
    }
}

/// A value of any type, with tables in tables.
pub(crate) fn value(random: &mut Random, depth: usize) -> String {
    match random.below(10) {
        0..3 => number(random),
        3..5 => string(random, false),
        5 => (*random.pick(&["true", "false", "nil", "cjson.null"])).into(),
        _ if depth > 3 => "{}".into(),
        6 => list(random, depth, 5),
        7..9 => {
            let fields: Vec<_> = (0..random.below(5))
                .map(|_| format!("[{}]={}", key(random), value(random, depth + 1)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        _ if random.percent(10) => {
            (*random.pick(&["cjson.encode", "coroutine.create(function() end)"])).into()
        }
        _ => {
            let most = *random.pick(&[2, 16, 18]);
            list(random, depth, most)
        }
    }
}

fn list(random: &mut Random, depth: usize, most: usize) -> String {
    let values: Vec<_> = (0..random.below(most)).map(|_| value(random, depth + 1)).collect();
    format!("{{{}}}", values.join(","))
}

fn key(random: &mut Random) -> String {
    match random.below(8) {
        0 => random.between(-2, 12).to_string(),
        1 => (*random.pick(&["1.5", "7", "3", "100", "1e15"])).into(),
        2 if random.percent(10) => "true".into(),
        _ => string(random, true),
    }
}

/// A copy of cjson with a setting of its own, and a call of it.
fn with(setting: &str, call: &str) -> String {
    format!("(function() local c = cjson.new() c.{setting} return c.{call} end)()")
}

fn encode(random: &mut Random) -> String {
    let call = format!("encode({})", value(random, 0));
    if random.percent(85) {
        return format!("cjson.{call}");
    }
    let setting = match random.below(8) {
        0 => "encode_invalid_numbers(true)".into(),
        1 => "encode_invalid_numbers('null')".into(),
        2 => "encode_sparse_array(true)".into(),
        3 => "encode_sparse_array(true, 1, 2)".into(),
        4 => "encode_sparse_array(false, 0)".into(),
        5 => "encode_max_depth(2)".into(),
        6 => "encode_keep_buffer(false)".into(),
        _ => format!("encode_number_precision({})", random.between(1, 14)),
    };
    with(&setting, &call)
}

fn decode(random: &mut Random) -> String {
    let mut text = json(random, 0);
    if random.percent(30) {
        mutate(random, &mut text, b"[]{},:\"\\0-e.tn\0 ");
    }
    let call = format!("decode({})", literal(&text));
    match random.below(12) {
        0 => with("decode_invalid_numbers(false)", &call),
        1 => with("decode_max_depth(2)", &call),
        2 => format!("cjson.encode(cjson.{call})"),
        _ => format!("cjson.{call}"),
    }
}

fn setting(random: &mut Random) -> String {
    let function = random.pick(&[
        "encode_sparse_array",
        "encode_max_depth",
        "decode_max_depth",
        "encode_number_precision",
        "encode_keep_buffer",
        "encode_invalid_numbers",
        "decode_invalid_numbers",
        "decode",
        "encode",
    ]);
    let values = [
        "nil", "true", "false", "1", "2", "0", "'on'", "'off'", "'null'", "'x'", "-1", "14", "15",
        "1e10", "2.7", "{}", "'3'", "2^31", "-2^31", "2^32+5", "0/0", "'on\\0x'",
    ];
    let values: Vec<_> = (0..random.below(5)).map(|_| *random.pick(&values)).collect();
    format!("cjson.new().{function}({})", values.join(","))
}

fn mutate(random: &mut Random, text: &mut Vec<u8>, likely: &[u8]) {
    if text.is_empty() {
        return;
    }
    let at = random.below(text.len());
    match random.below(4) {
        0 => text[at] = random.bits() as u8,
        1 => drop(text.remove(at)),
        2 => text.insert(at, *random.pick(likely)),
        _ => text.truncate(at),
    }
}

fn space(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["", "", "", " ", "\n", "\t \r", ""])
}

fn json(random: &mut Random, depth: usize) -> Vec<u8> {
    const NUMBERS: &[&str] = &[
        "0",
        "-0",
        "1",
        "-1",
        "12.5",
        "1e5",
        "1E-5",
        ".5",
        "5.",
        "0x1F",
        "0X1p3",
        "-0x.8p1",
        "nan",
        "NaN",
        "NAN(1)",
        "inf",
        "Infinity",
        "-inf",
        "+5",
        "+",
        "-",
        "1e",
        "1e+",
        "00",
        "012",
        "--1",
        "1.2.3",
        "-nan",
        "+inf",
        "n",
        "i",
        "I",
        "N",
        "1e999",
        "123456789012345678901234567890",
        "0.1",
        "1e-400",
        "4.9e-324",
        "0x",
        "-a",
        "0e1",
        "1_0",
        "0x1.8",
        "0xg",
        "17976931348623157e292",
        "2.2250738585072011e-308",
    ];
    let mut text = space(random).as_bytes().to_vec();
    match random.below(9) {
        0..2 => text.extend(json_string(random, false)),
        2 => text.extend(random.pick(NUMBERS).as_bytes()),
        3 => text.extend(format!("{}", random.between(-100_000, 100_000) as f64 / 7.0).as_bytes()),
        4 => {
            let word = random
                .pick(&["true", "false", "null", "true", "false", "null", "tru", "nulll", "True"]);
            text.extend(word.as_bytes());
        }
        _ if depth > 4 => text.push(b'1'),
        5..7 => {
            text.push(b'[');
            for at in 0..random.below(4) {
                text.extend(if at > 0 { &b","[..] } else { b"" });
                text.extend(json(random, depth + 1));
            }
            text.push(b']');
        }
        _ => {
            text.push(b'{');
            for at in 0..random.below(4) {
                text.extend(if at > 0 { &b","[..] } else { b"" });
                let key = if random.percent(93) {
                    json_string(random, true)
                } else {
                    json(random, depth + 1)
                };
                text.extend(key);
                text.extend(space(random).as_bytes());
                text.push(b':');
                text.extend(json(random, depth + 1));
            }
            text.push(b'}');
        }
    }
    text.extend(space(random).as_bytes());
    text
}

fn json_string(random: &mut Random, key: bool) -> Vec<u8> {
    const PARTS: &[&str] = &[
        "a",
        "\\n",
        "\\u0041",
        "\\u00e9",
        "\\u20AC",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\ude00",
        "\\u12",
        "\\x",
        "\\/",
        "\\\"",
        "\\\\",
        "\\b\\f\\r\\t",
        "\x01",
        "\x7f",
        "\u{e9}",
        "\\u0000",
        "\\ud800\\u0041",
        "\\uD83D\\uDE00",
        "\\uzzzz",
    ];
    let mut text = b"\"".to_vec();
    for _ in 0..random.below(4) {
        if random.percent(40) {
            text.extend(random.pick(PARTS).as_bytes());
        } else {
            text.push(*random.pick(b"abc"));
        }
    }
    // A key that is longer than 31 bytes changes the order of fields.
    if !key && random.percent(2) {
        text.extend(b"\\n".repeat(600));
    }
    text.push(b'"');
    text
}

fn unpack(random: &mut Random) -> String {
    let mut text: Vec<u8> = (0..random.below(4)).flat_map(|_| message(random, 0)).collect();
    if random.percent(30) {
        mutate(random, &mut text, b"\x91\x81\xc0\xdb\xcf");
    }
    let text = literal(&text);
    match random.below(4) {
        0 => {
            let rest = random.pick(&["", ",0", ",1", ",-1", ",3"]);
            format!("cmsgpack.unpack_one({text}{rest})")
        }
        1 => {
            let rest = random.pick(&["", ",0", ",1", ",-1", ",1,2"]);
            format!("cmsgpack.unpack_limit({text},{}{rest})", random.between(-1, 3))
        }
        _ => format!("cmsgpack.unpack({text})"),
    }
}

fn message(random: &mut Random, depth: usize) -> Vec<u8> {
    let short = random.below(6) as u8;
    match random.below(13) {
        // A key must not be a table, which has its place in another by its address.
        0..2 => vec![random.bits() as u8 & if random.percent(50) { 0x7f } else { 0xff } | 0x01],
        2 => {
            let kind = 0xca + random.below(10) as u8;
            let length = *random.pick(&[1, 2, 4, 8, 8]);
            [vec![kind], bytes(random, length)].concat()
        }
        3..5 => [vec![0xa0 | short], bytes(random, short.into())].concat(),
        5 => {
            let length = random.below(40) as u8;
            let head: &[u8] = match random.below(6) {
                0 => &[0xd9, length],
                1 => &[0xc4, length],
                2 => &[0xda, 0, length],
                3 => &[0xdb, 0, 0, 0, length],
                4 => &[0xd9, 200],
                _ => &[0xdb, 255, 255, 255, 255],
            };
            [head.to_vec(), bytes(random, length.into())].concat()
        }
        6 => vec![*random.pick(&[0xc0, 0xc2, 0xc3, 0xc0, 0xc2, 0xc3, 0xc1, 0xc7])],
        _ if depth > 4 => vec![1],
        7..10 => {
            let count = short % 4;
            let mut text = match random.below(6) {
                0 => vec![0xdc, 0, count],
                1 => vec![0xdd, 0, 0, 0, count],
                _ => vec![0x90 | count],
            };
            (0..count).for_each(|_| text.extend(message(random, depth + 1)));
            text
        }
        _ => {
            let count = short % 4;
            let mut text = match random.below(6) {
                0 => vec![0xde, 0, count],
                1 => vec![0xdf, 0, 0, 0, count],
                _ => vec![0x80 | count],
            };
            for _ in 0..count {
                let keys: &[&[u8]] = &[
                    b"\xa1a",
                    b"\xa1b",
                    b"\xa1c",
                    b"\x05",
                    b"\xc3",
                    b"\xc0",
                    b"\xca\x7f\xc0\0\0",
                    b"\xff",
                ];
                let likely = if random.percent(80) { 3 } else { keys.len() };
                text.extend(*random.pick(&keys[..likely]));
                text.extend(message(random, depth + 1));
            }
            text
        }
    }
}

fn format(random: &mut Random) -> String {
    const OPTIONS: &[&str] = &[
        "b", "B", "h", "H", "l", "L", "T", "f", "d", "x", "c0", "c", "c3", "s", "i", "I", "i1",
        "i3", "I5", "i8", "i9", "I16", "i32", ">", "<", "!", "!2", "!4", "!8", "!16", " ", "!1",
    ];
    const WRONG: &[&str] = &[
        "i33",
        "i0",
        "!3",
        "!0",
        "Z",
        "%",
        "i99999999999",
        "c2147483647",
        "=",
        "0",
        "I0",
        "c99",
        "!1000000",
        "\0",
        "b\0b",
    ];
    let mut text = String::new();
    for _ in 0..random.below(6) {
        let options = if random.percent(97) { OPTIONS } else { WRONG };
        text += *random.pick(options);
    }
    text
}

fn packed(random: &mut Random) -> String {
    match random.below(6) {
        0..2 => number(random),
        2 => string(random, false),
        3 => random.below(300).to_string(),
        4 => "'abcdef'".into(),
        _ => (*random.pick(&["3", "3", "3", "nil", "{}", "'7'"])).into(),
    }
}

fn bits(random: &mut Random) -> String {
    match random.below(6) {
        0 => number(random),
        1 => random.between(-40, 40).to_string(),
        2..4 => (random.bits() as u32).to_string(),
        4 => {
            let part = random.pick(&["", ".5", ".25", ".75"]);
            format!("{}{part}", random.between(-2_147_483_648, 4_294_967_295))
        }
        _ => (*random.pick(&["'12'", "1", "2", "'x'", "nil", "'0x1f'", "{}"])).into(),
    }
}
