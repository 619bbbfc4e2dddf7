//! Bytes that a script gives to `cmsgpack.unpack`. The result must be the same after packing and
//! unpacking it again, and the same in one call as in one call for each value.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;

thread_local!(static SCRIPT: Script = Script::new(
    "local pack, unpack, one = cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_one

    -- Tables are packed down to this level; nil stands for those below it.
    local levels = 16
    local function is_deep(value, left)
        if type(value) ~= 'table' then return false end
        if left == 0 then return true end
        for key, item in pairs(value) do
            if is_deep(key, left - 1) or is_deep(item, left - 1) then return true end
        end
        return false
    end

    -- A text that values have in common if they are the same, in whatever order pairs come.
    local function text(value)
        if type(value) ~= 'table' then return pack(value) end
        local parts = {}
        for key, item in pairs(value) do parts[#parts + 1] = text(key) .. text(item) end
        table.sort(parts)
        return '(' .. table.concat(parts) .. ')'
    end

    local function comes_back(value)
        local packed = pack(value)
        -- It is no key of a table.
        if is_deep(value, levels) then return pcall(one, packed) end
        local rest, again = one(packed)
        assert(rest == -1, 'all that was packed is unpacked')
        assert(text(again) == text(value), 'what was packed is unpacked')
    end

    -- Values that are looked at one by one. More would only be slow.
    local most = 64

    local function each(input, valid, ...)
        local count = select('#', ...)
        if not valid or count == 0 or count > most then return end
        local at = 0
        for index = 1, count do
            local rest, value = one(input, at)
            assert((rest == -1) == (index == count), 'there are as many values one by one')
            assert(type(value) == type((select(index, ...))), 'they are the same')
            comes_back(value)
            at = rest
        end
        local valid, packed = pcall(pack, ...)
        assert(valid, packed)
        pcall(unpack, packed)
    end

    return function(input)
        pcall(one, input, 1)
        local valid, rest, value = pcall(cmsgpack.unpack_limit, input, 1, 0)
        if valid then comes_back(value) end
        each(input, pcall(unpack, input))
    end"
));

fuzz_target!(|input: &[u8]| SCRIPT.with(|script| script.run::<()>(input)));
