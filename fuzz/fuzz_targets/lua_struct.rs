//! A format and bytes that a script gives to `struct.unpack`: the first byte of the input is the
//! format's length. The result is packed by the same format.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;

thread_local!(static SCRIPT: Script = Script::new(
    "return function(input)
        local split = (string.byte(input, 1) or 0) % 32
        local format, data = string.sub(input, 2, split + 1), string.sub(input, split + 2)
        pcall(struct.size, format)
        pcall(struct.unpack, format, data, -3)
        local results = {pcall(struct.unpack, format, data)}
        if results[1] then
            local packed, text = pcall(struct.pack, format, unpack(results, 2))
            -- Padding may hold anything, and c0 takes its size from the data.
            if packed and not string.find(format, 'c0') then
                assert(#text == results[#results] - 1)
            end
        end
    end"
));

fuzz_target!(|input: &[u8]| SCRIPT.with(|script| script.run(input)));
