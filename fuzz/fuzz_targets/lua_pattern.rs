//! Patterns with which a script searches a text: the first byte of the input is the pattern's
//! length, the second the place where the search begins and what a match is replaced by. Lua's own
//! functions must find the same.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;

thread_local!(static SCRIPT: Script = Script::new(
    "local function results(...)
        return select('#', ...), {...}
    end

    local function same(name, ...)
        local count, ours = results(pcall(string[name], ...))
        local expected, theirs = results(pcall(original[name], ...))
        assert(count == expected, name)
        for index = 1, count do assert(ours[index] == theirs[index], name) end
        return ours[1]
    end

    -- Calls both iterators, and compares all that they find.
    local function same_matches(text, pattern)
        local ours, theirs = string.gmatch(text, pattern), original.gmatch(text, pattern)
        for _ = 1, #text + 2 do
            local count, found = results(pcall(ours))
            local expected, other = results(pcall(theirs))
            assert(count == expected, 'gmatch')
            for index = 1, count do assert(found[index] == other[index], 'gmatch') end
            if not found[1] or found[2] == nil then return end
        end
        error('gmatch does not end')
    end

    return function(input)
        local split, place = string.byte(input, 1, 2)
        if not place then return end
        split = split % 100
        local pattern, text = string.sub(input, 3, split + 2), string.sub(input, split + 3)
        -- Each repetition may multiply the time by the length of the text.
        local _, repetitions = original.gsub(pattern, '[*+?-]', '')
        if repetitions > 6 then return end
        text = string.sub(text, 1, repetitions > 2 and 20 or 100)
        same('find', text, pattern, place - 128)
        same('find', text, pattern, place - 128, true)
        same('match', text, pattern, place - 128)
        same('gsub', text, pattern, string.sub(text, 1, place % 8), place > 128 and place % 4 or nil)
        same('gsub', text, pattern, place % 2 == 0 and {a = 1, b = false} or function(one, two)
            return two or one ~= 'a' and one
        end)
        same_matches(text, pattern)
    end"
));

fuzz_target!(|input: &[u8]| SCRIPT.with(|script| script.run::<()>(input)));
