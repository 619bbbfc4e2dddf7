//! Text that a script gives to `cjson.decode`. The result is encoded, and reads the same again.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;

thread_local!(static SCRIPT: Script = Script::new(
    "local lax, strict = cjson.new(), cjson.new()
    lax.encode_invalid_numbers(true)
    lax.encode_sparse_array(true)
    strict.decode_invalid_numbers(false)
    return function(input)
        pcall(strict.decode, input)
        local valid, value = pcall(lax.decode, input)
        if not valid then return end
        local text = lax.encode(value)
        -- Fields may come in another order, and numbers lose digits.
        local again = lax.encode(lax.decode(text))
        assert(lax.encode(lax.decode(again)) ~= '')
    end"
));

fuzz_target!(|input: &[u8]| SCRIPT.with(|script| script.run(input)));
