//! DEBUG PROTOCOL: a reply of each kind that the protocol has, for tests of clients.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;

/// DEBUG PROTOCOL type
pub(super) fn protocol(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let reply = &mut cx.reply;
    match &*args.bytes()?.to_ascii_lowercase() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double_text(b"3.141"),
        b"bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if !reply.is_resp3() {
                return Err(CommandError::text("ERR RESP2 is not supported by this command"));
            }
            // A message that is pushed while a command runs comes after the command's own reply.
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        b"verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => {
            return Err(CommandError::text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}
