//! The answers of the libraries to some hundred expressions, compared with those of Redis 8.0, and
//! their use of memory.

#![allow(clippy::unwrap_used)]

use mlua::{Lua, LuaOptions, StdLib};

/// Expressions, each with the answer of Redis 8.0 in the line after it.
const ANSWERS: &str = include_str!("answers.txt");

/// Shows the result or the error of a call. Tables are shown in the order in which Lua walks them.
const SHOW: &str = "\
local function show(v, d)
  if type(v) == 'table' then
    if d > 20 then return '...' end
    local o = {}
    for k, x in pairs(v) do o[#o + 1] = '[' .. show(k, d + 1) .. ']=' .. show(x, d + 1) end
    return '{' .. table.concat(o, ',') .. '}'
  elseif type(v) == 'string' then return string.format('%q', v)
  elseif type(v) == 'number' then return string.format('%.17g', v)
  elseif type(v) == 'userdata' then return 'NULL'
  else return tostring(v) end
end
function all(...)
  local o = {}
  for i = 1, select('#', ...) do o[i] = show((select(i, ...)), 0) end
  return table.concat(o, ' ; ')
end";

fn lua() -> Lua {
    let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::new()).unwrap();
    lua::libraries::open(&lua).unwrap();
    lua.load(SHOW).exec().unwrap();
    lua
}

/// The result of an expression, or its error.
fn answer(lua: &Lua, expression: &str) -> Vec<u8> {
    let chunk = format!("return all(pcall(function() return {expression} end))");
    let shown: mlua::LuaString = lua.load(chunk).set_name("@user_script").eval().unwrap();
    shown.as_bytes().to_vec()
}

/// Bytes as the file has them.
fn written(bytes: &[u8]) -> String {
    let each = |byte: &u8| match byte {
        b'\\' => "\\\\".to_string(),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    bytes.iter().map(each).collect()
}

#[test]
fn answers_are_those_of_redis() {
    let lua = lua();
    let mut asked = 0;
    let mut lines = ANSWERS.lines();
    while let (Some(expression), Some(expected)) = (lines.next(), lines.next()) {
        let found = written(&answer(&lua, expression));
        assert_eq!(found, expected.strip_prefix("    ").unwrap(), "{expression}");
        asked += 1;
    }
    assert!(asked > 500);
}

#[test]
fn what_is_too_much_for_memory_is_an_error() {
    let lua = lua();
    lua.set_memory_limit(lua.used_memory() + (8 << 20)).unwrap();
    // Each level has the level below four times: a text of 4^40 numbers.
    lua.load("deep = 1; for i = 1, 40 do deep = {deep, deep, deep, deep} end").exec().unwrap();
    for expression in [
        "cjson.encode(deep)",
        "cmsgpack.pack(deep)",
        "struct.pack(string.rep('c0', 100000), unpack({}))",
        "cjson.decode('[' .. string.rep('1,', 1000000) .. '1]')",
        "cmsgpack.unpack('\\221\\0\\15\\255\\255' .. string.rep('\\1', 0xfffff))",
    ] {
        let shown = answer(&lua, expression);
        let failed = shown.starts_with(b"false ; ");
        assert!(failed, "{expression}: {}", written(&shown[..shown.len().min(200)]));
        // Memory that was taken for it comes back.
        lua.gc_collect().unwrap();
        assert!(lua.used_memory() < 1 << 20, "{expression} has left {}", lua.used_memory());
    }
    assert_eq!(answer(&lua, "cjson.encode({1, 2})"), b"true ; \"[1,2]\"");
}

#[test]
fn a_thousand_results_come_out_of_long_texts() {
    let lua = lua();
    let long = "(function() local t = {} for i = 1, 5000 do t[i] = 'x\"' .. i end return t end)()";
    let same = format!(
        "(function() local t = {long} local u = cjson.decode(cjson.encode(t)) \
        local v = cmsgpack.unpack(cmsgpack.pack(t)) \
        for i = 1, 5000 do assert(t[i] == u[i] and t[i] == v[i]) end return #u + #v end)()"
    );
    assert_eq!(answer(&lua, &same), b"true ; 10000");
    let text = "(function() local s = string.rep('\\n\\0/\\200', 5000) \
        return cjson.decode(cjson.encode(s)) == s, \
        struct.unpack('c0', s) end)()";
    assert_eq!(answer(&lua, text), b"false ; \"user_script:1: format 'c0' needs a previous size\"");
    let text = text.replace(", struct.unpack('c0', s)", "");
    assert_eq!(answer(&lua, &text), b"true ; true");
}
