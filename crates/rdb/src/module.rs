//! Data of modules in a file: skipped, and named.

use std::borrow::Cow;

use crate::opcodes::module;
use crate::read::{Input, ReadError};

/// A value from before modules' values could be passed over without their module.
pub(crate) const EARLY: ReadError =
    ReadError::Unsupported(Cow::Borrowed("a module's value from before Redis 4.0"));

/// The characters of a name, by their six bits.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const NAME_LENGTH: u32 = 9;
/// The lowest bits of an id are the version of the module's own encoding.
const VERSION_BITS: u32 = 10;

/// The name of a module's type: nine characters, the first one highest in the id.
pub(crate) fn name(id: u64) -> String {
    let character = |index: u32| {
        let bits = id >> (VERSION_BITS + 6 * (NAME_LENGTH - 1 - index));
        char::from(CHARACTERS[(bits & 0x3f) as usize])
    };
    (0..NAME_LENGTH).map(character).collect()
}

/// Skips the data of a module, up to and with the mark of its end.
pub(crate) fn skip(input: &mut impl Input) -> Result<(), ReadError> {
    loop {
        match input.length()? {
            module::END => return Ok(()),
            module::SIGNED | module::UNSIGNED => {
                input.length()?;
            }
            module::FLOAT => {
                input.array::<4>()?;
            }
            module::DOUBLE => {
                input.array::<8>()?;
            }
            module::STRING => input.skip_string()?,
            _ => return Err(ReadError::Malformed("an unknown piece of a module's data")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Reader;

    #[test]
    fn names_are_spelled_by_six_bits_a_character() {
        // "ReJSON-RL", version 3: a name that is widely known.
        let spelled = b"ReJSON-RL".iter().fold(0, |id, wanted| {
            let bits = CHARACTERS.iter().position(|character| character == wanted).unwrap();
            id << 6 | bits as u64
        });
        assert_eq!(name(spelled << VERSION_BITS | 3), "ReJSON-RL");
        assert_eq!(name(0), "AAAAAAAAA");
    }

    #[test]
    fn pieces_are_passed_over() {
        let data = b"\x01\x05\x02\x40\x80\x03abcd\x04abcdefgh\x05\x03abc\x00rest";
        let mut reader = Reader::new(data);
        skip(&mut reader).unwrap();
        assert_eq!(&data[reader.position()..], b"rest");
        for length in 0..data.len() - 4 {
            assert!(skip(&mut Reader::new(&data[..length])).is_err());
        }
        assert!(skip(&mut Reader::new(b"\x06\x00")).is_err());
    }
}
