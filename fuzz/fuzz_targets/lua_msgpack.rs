//! Bytes that a script gives to `cmsgpack.unpack`. The result is packed, and as long each time.

#![no_main]

use fuzz::scripts::Script;
use libfuzzer_sys::fuzz_target;

thread_local!(static SCRIPT: Script = Script::new(
    "local pack, unpack, limit = cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_limit
    return function(input)
        pcall(cmsgpack.unpack_one, input, 1)
        local valid, offset, value = pcall(limit, input, 1, 0)
        if valid and offset then
            local packed = pack(value)
            assert(#pack((unpack(packed))) == #packed)
        end
        local values = {pcall(unpack, input)}
        if values[1] then pcall(pack, (select(2, values[2], values[3]))) end
    end"
));

fuzz_target!(|input: &[u8]| SCRIPT.with(|script| script.run(input)));
