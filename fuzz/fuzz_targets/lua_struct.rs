//! A format and bytes that a script gives to `struct.unpack`: the first byte of the input is the
//! format's length. The results are packed by the same format, and are unpacked again as they were.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;

thread_local!(static SCRIPT: Script = Script::new(
    "-- Integers of more than 53 bits lose some.
    local function same(one, other)
        return one == other or one ~= one and other ~= other
            or type(one) == 'number' and math.abs(one) >= 2 ^ 53
    end

    return function(input)
        local split = (string.byte(input, 1) or 0) % 32
        local format, data = string.sub(input, 2, split + 1), string.sub(input, split + 2)
        pcall(struct.size, format)
        pcall(struct.unpack, format, data, -3)
        local results = {pcall(struct.unpack, format, data)}
        -- c0 takes its size from the result before it, which is lost.
        if not results[1] or string.find(format, 'c0') then return end
        local text = struct.pack(format, unpack(results, 2))
        -- Padding may hold anything, so only the length is as before.
        assert(#text == results[#results] - 1, 'it is as long')
        local again = {struct.unpack(format, text)}
        assert(#again == #results - 1, 'there are as many results')
        for index, result in ipairs(again) do
            assert(same(results[index + 1], result), 'a result is the same')
        end
        if not string.find(format, 's') then
            assert(struct.size(format) == #text, 'the size is that of the format')
        end
    end"
));

fuzz_target!(|input: &[u8]| SCRIPT.with(|script| script.run::<()>(input)));
