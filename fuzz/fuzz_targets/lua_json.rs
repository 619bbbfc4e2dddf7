//! Text that a script gives to `cjson.decode`. The result is encoded and must decode to the same
//! again. Another library decides what JSON is.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;
use mlua::BString;
use serde_json::Value;

thread_local!(static SCRIPT: Script = Script::new(
    "local lax, strict = cjson.new(), cjson.new()
    lax.encode_invalid_numbers(true)
    lax.encode_sparse_array(true)
    strict.decode_invalid_numbers(false)

    local function same(one, other)
        if type(one) ~= 'table' or type(other) ~= 'table' then
            return one == other or one ~= one and other ~= other
        end
        for key, item in pairs(one) do
            if not same(item, other[key]) then return false end
        end
        for key in pairs(other) do
            if one[key] == nil then return false end
        end
        return true
    end

    return function(input)
        local is_strict, strictly = pcall(strict.decode, input)
        local valid, value = pcall(lax.decode, input)
        assert(valid or not is_strict, 'strict is what lax is, without some')
        if not valid then return end
        assert(not is_strict or same(strictly, value), 'they read the same')
        -- Numbers lose digits, but only once.
        local rounded = lax.decode(lax.encode(value))
        assert(same(lax.decode(lax.encode(rounded)), rounded), 'what was encoded is decoded')
        -- Numbers that JSON does not have are errors.
        local valid, text = pcall(strict.encode, value)
        return true, valid and text or nil
    end"
));

/// Whether a value is the same after it was encoded: numbers keep 14 digits, and an array without
/// elements becomes an object.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Object(other)) => one.is_empty() && other.is_empty(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found = |key, value| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(|(key, value)| found(key, value))
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64(), other.as_f64());
            let (one, other) = (one.unwrap_or(f64::NAN), other.unwrap_or(f64::NAN));
            one == other || ((one - other) / one).abs() < 1e-13
        }
        _ => one == other,
    }
}

fuzz_target!(|input: &[u8]| {
    let (valid, text): (Option<bool>, Option<BString>) = SCRIPT.with(|script| script.run(input));
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    assert!(valid == Some(true), "what is JSON is decoded");
    if let Some(text) = text {
        let again = serde_json::from_slice(&text).expect("what was encoded is JSON");
        assert!(same(&value, &again), "what was encoded is what was decoded");
    }
});
