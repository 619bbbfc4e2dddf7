//! Passwords: kept as their SHA-256 alone, and compared in constant time.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a password, or of a line of rules. Only who changes a user has it hashed, or
/// compared in another way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Of this password.
    pub(crate) fn of(password: &[u8]) -> Digest {
        Digest(Sha256::digest(password).into())
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub(crate) fn parse(text: &[u8]) -> Option<Digest> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Digest(bytes))
    }

    /// 64 hexadecimal digits.
    pub(crate) fn hexadecimal(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Both together, in any order.
    pub(crate) fn xor(mut self, other: Digest) -> Digest {
        self.0.iter_mut().zip(other.0).for_each(|(one, other)| *one ^= other);
        self
    }

    /// Whether both are of the same password. How long that takes shows nothing of them.
    pub(crate) fn is_same(&self, other: &Digest) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        std::hint::black_box(pairs.fold(0, |all, (one, other)| all | (one ^ other))) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of(b"foobared");
        let text = digest.hexadecimal();
        assert_eq!(text.len(), 64);
        assert!(Digest::parse(text.as_bytes()).is_some_and(|own| own.is_same(&digest)));
        assert!(!Digest::of(b"foobare").is_same(&digest));
        for wrong in [&text[1..], &text.to_ascii_uppercase(), &format!("{text}0"), ""] {
            assert!(Digest::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
